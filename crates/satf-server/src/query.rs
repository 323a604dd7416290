//! A request made ready for a model, and its answer in JSON.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use satf::data::EventTime;
use satf::interactions::{History, Id, ItemIndex, OwnedHistory, OwnedId};
use satf::models::Workspace;
use satf::recommend::{Answer, Explanation, Fallback, Prepared, Recommendation, Request, Seen};

use crate::attributes::Rule;
use crate::config::Limits;
use crate::error::ApiError;
use crate::filter::Filter;
use crate::models::{ModelSet, Served};
use crate::wire::{
    AllowSeen, AnyId, FallbackKind, FallbackReason, HistoryShare, RecommendRequest, RecommendResponse,
    RecommendedItem, ScoreExplanation, Step, StepTime,
};

/// A request in the indices of the model that answers it.
pub(crate) struct Query {
    pub(crate) served: Arc<Served>,
    pub(crate) request: Request,
    history: OwnedHistory,
    /// Whether the request has a history at all.
    has_steps: bool,
    filter: Option<Filter>,
}

/// Unknown ids of filters that an answer names.
const MOST_UNKNOWN: usize = 10;
/// Items looked at on the thread that asks, at most: more take too long.
const QUICK_ITEMS: usize = 200_000;
/// Shares that are computed there.
const QUICK_SHARES: usize = 2_000;

/// The model that answers: the one that is named, or that of the user or session.
pub(crate) fn choose<'s>(
    set: &'s ModelSet,
    name: Option<&str>,
    user: Option<Id<'_>>,
    session: Option<Id<'_>>,
) -> Result<&'s Arc<Served>, ApiError> {
    match name {
        Some(name) => set.get(name).ok_or_else(|| {
            let known: Vec<&str> = set.iter().map(|served| &*served.name).collect();
            // A name may be as long as a body.
            let name: String = name.chars().take(100).collect();
            ApiError::not_found(
                "unknown_model",
                format!("there is no model '{name}': there are {}", known.join(", ")),
            )
        }),
        // 7 and "7" are one user.
        None => Ok(set.pick(user.or(session).map(|id| id.to_string()).as_deref().map(str::as_bytes))),
    }
}

/// How many items are wanted.
pub(crate) fn count(n: Option<u64>, limits: &Limits) -> Result<usize, ApiError> {
    let n = usize::try_from(n.unwrap_or(10)).unwrap_or(usize::MAX);
    if n > limits.n { Err(ApiError::beyond("n", n, limits.n)) } else { Ok(n) }
}

/// A filter, as it was written.
pub(crate) fn filter(text: &str) -> Result<Filter, ApiError> {
    Filter::parse(text).map_err(|error| ApiError::invalid(format!("where: {error}")))
}

impl Query {
    /// Checks a request against the limits and finds the model that answers it.
    pub(crate) fn new(request: RecommendRequest, set: &ModelSet, limits: &Limits) -> Result<Self, ApiError> {
        let n = count(request.n, limits)?;
        let steps = request.history.iter().map(|step| match step {
            Step::Basket(items) => items.len(),
            _ => 1,
        });
        let length = steps.sum();
        if length > limits.history {
            return Err(ApiError::beyond("history: items", length, limits.history));
        }
        let repeatable = match &request.allow_seen {
            AllowSeen::These(items) => items.len(),
            AllowSeen::All(_) => 0,
        };
        for (name, length) in [
            ("exclude: ids", request.exclude.len()),
            ("only: ids", request.only.as_ref().map_or(0, Vec::len)),
            ("boost: items", request.boost.len()),
            ("allow_seen: ids", repeatable),
        ] {
            if length > limits.list {
                return Err(ApiError::beyond(name, length, limits.list));
            }
        }
        let id = |id: &Option<AnyId>| id.as_ref().map(|id| id.0.clone());
        let (user, session) = (id(&request.user_id), id(&request.session_id));
        let served = choose(
            set,
            request.model.as_deref(),
            user.as_ref().map(OwnedId::as_id),
            session.as_ref().map(OwnedId::as_id),
        )?;
        let history = history(served, &request.history)?;
        let filter = request.r#where.as_deref().map(self::filter).transpose()?;
        let ids = |ids: Vec<AnyId>| ids.into_iter().map(|id| id.0).collect::<Vec<OwnedId>>();
        let (mut factors, mut boosts) = (Vec::new(), Vec::new());
        for boost in request.boost {
            let item = boost.item_id.0;
            if boost.multiply.is_none() && boost.add.is_none() {
                return Err(ApiError::invalid(format!(
                    "boost: item '{}': expected multiply, add or both",
                    item.as_id()
                )));
            }
            factors.extend(boost.multiply.map(|factor| (item.clone(), factor)));
            boosts.extend(boost.add.map(|number| (item, number)));
        }
        let (seen, repeatable) = match request.allow_seen {
            AllowSeen::All(true) => (Seen::Allow, Vec::new()),
            AllowSeen::All(false) => (Seen::Exclude, Vec::new()),
            AllowSeen::These(items) => (Seen::Exclude, ids(items)),
        };
        let has_steps = !request.history.is_empty();
        let request = Request {
            n,
            exclude: ids(request.exclude),
            only: request.only.map(ids),
            seen,
            repeatable,
            factors,
            boosts,
            fallback: match request.fallback {
                FallbackKind::Popular => Fallback::Popular,
                FallbackKind::Empty => Fallback::Empty,
            },
            explain: request.explain,
        };
        Ok(Query { served: Arc::clone(served), request, history, has_steps, filter })
    }

    /// A request for the items after a list of ids.
    pub(crate) fn of_items(served: &Arc<Served>, items: &[OwnedId], n: usize) -> Self {
        Query {
            served: Arc::clone(served),
            request: Request { n, fallback: Fallback::Popular, ..Request::default() },
            history: served.model.history(items),
            has_steps: !items.is_empty(),
            filter: None,
        }
    }

    /// Whether it is answered in microseconds, so that no other thread need be asked.
    pub(crate) fn is_quick(&self) -> bool {
        let shares = if self.request.explain { self.request.n * self.history.len() } else { 0 };
        let may_scan = self.filter.is_some() || self.served.rule.is_some();
        self.served.is_quick()
            && shares <= QUICK_SHARES
            && (!may_scan || self.served.model.num_items() <= QUICK_ITEMS)
    }

    fn prepare(&self) -> Result<Prepared<'_>, ApiError> {
        let prepared = self.served.model.prepare(&self.request)?;
        Ok(match rule(&self.served, self.filter.as_ref())? {
            None => prepared,
            Some(rule) => prepared.with_rule(rule),
        })
    }

    /// The answer.
    pub(crate) fn answer(&self, workspace: &mut Workspace) -> Result<RecommendResponse<'_>, ApiError> {
        let started = Instant::now();
        let prepared = self.prepare()?;
        let answer = prepared.answer_indexed(&self.history, workspace)?;
        let response = self.response(answer);
        self.served.metrics.scoring.record(started.elapsed());
        Ok(response)
    }

    /// The answers to several requests to one model, as if each came alone.
    pub(crate) fn answer_together<'q>(
        queries: &[&'q Query],
        workspace: &mut Workspace,
    ) -> Vec<Result<RecommendResponse<'q>, ApiError>> {
        let started = Instant::now();
        let prepared: Vec<Result<Prepared<'q>, ApiError>> =
            queries.iter().map(|query| query.prepare()).collect();
        let mut faults: Vec<Option<ApiError>> = Vec::with_capacity(queries.len());
        let mut requests: Vec<(Prepared<'q>, History<'q>)> = Vec::with_capacity(queries.len());
        for (prepared, query) in prepared.into_iter().zip(queries) {
            match prepared {
                Ok(prepared) => {
                    requests.push((prepared, (&query.history).into()));
                    faults.push(None);
                }
                Err(error) => faults.push(Some(error)),
            }
        }
        let mut answers = Prepared::answer_together_indexed(&requests, workspace).into_iter();
        let responses = faults.into_iter().zip(queries).map(|(fault, query)| match fault {
            Some(error) => Err(error),
            None => match answers.next() {
                Some(answer) => answer.map(|answer| query.response(answer)).map_err(ApiError::from),
                None => Err(ApiError::internal("an answer is missing")),
            },
        });
        let responses = responses.collect();
        let elapsed = started.elapsed();
        let each = elapsed.checked_div(queries.len().max(1) as u32).unwrap_or_default();
        if let Some(query) = queries.first() {
            query.served.costs.history.record(elapsed, queries.len());
        }
        for query in queries {
            query.served.metrics.scoring.record(each);
        }
        responses
    }

    fn response(&self, answer: Answer<ItemIndex>) -> RecommendResponse<'_> {
        let metrics = &self.served.metrics;
        metrics.answers.fetch_add(1, Ordering::Relaxed);
        metrics.history_items.fetch_add(self.history.len() as u64, Ordering::Relaxed);
        metrics.unknown_items.fetch_add(answer.unknown_items as u64, Ordering::Relaxed);
        if answer.is_fallback {
            metrics.fallbacks.fetch_add(1, Ordering::Relaxed);
        }
        let item = |item: Recommendation<ItemIndex>| RecommendedItem {
            item_id: id(&self.served, item.item),
            score: item.score,
            title: self.served.title(item.item),
            explanation: item.explanation.map(|explanation| self.explanation(explanation)),
        };
        let fallback = answer.is_fallback.then_some(if self.has_steps {
            FallbackReason::NoKnownItem
        } else {
            FallbackReason::EmptyHistory
        });
        RecommendResponse {
            model: &self.served.name,
            model_version: &self.served.version,
            items: answer.items.into_iter().map(item).collect(),
            unknown_items: answer.unknown_items,
            fallback,
            unknown_ids: self.unknown_ids(),
        }
    }

    fn explanation(&self, explanation: Explanation<ItemIndex>) -> ScoreExplanation<'_> {
        let shares = explanation.shares.into_iter();
        ScoreExplanation {
            shares: shares
                .map(|share| HistoryShare { item_id: id(&self.served, share.item), share: share.share })
                .collect(),
            base: explanation.base,
            boost: explanation.boost,
        }
    }

    /// Ids of filters that the model does not know.
    fn unknown_ids(&self) -> Vec<Id<'_>> {
        let request = &self.request;
        let catalog = self.served.model.catalog();
        let lists = request.exclude.iter().chain(request.only.iter().flatten()).chain(&request.repeatable);
        let valued = request.factors.iter().chain(&request.boosts).map(|(id, _)| id);
        let ids = lists.chain(valued).map(OwnedId::as_id);
        ids.filter(|id| catalog.find(*id).is_none()).take(MOST_UNKNOWN).collect()
    }
}

/// The id of an item of the catalogue.
pub(crate) fn id(served: &Served, item: ItemIndex) -> Id<'_> {
    served.model.catalog().get(item.get())
}

/// The rule that every answer obeys and the filter of a request, as one.
pub(crate) fn rule(served: &Arc<Served>, filter: Option<&Filter>) -> Result<Option<Rule>, ApiError> {
    let own = filter
        .map(|filter| served.attributes.rule(filter))
        .transpose()
        .map_err(|error| ApiError::invalid(format!("where: {error}")))?;
    Ok(match (served.rule.clone(), own) {
        (None, own) => own,
        (Some(every), None) => Some(Box::new(move |item| every(item))),
        (Some(every), Some(own)) => Some(Box::new(move |item| every(item) && own(item))),
    })
}

/// A history in the indices of a model.
fn history(served: &Served, steps: &[Step]) -> Result<OwnedHistory, ApiError> {
    let model = &served.model;
    let timed = steps.iter().filter(|step| matches!(step, Step::Timed { .. })).count();
    if timed > 0 {
        if timed < steps.len() {
            return Err(ApiError::invalid(format!(
                "history: {timed} of {} steps have a time: expected times for all of them or for none",
                steps.len()
            )));
        }
        let events = steps.iter().filter_map(|step| match step {
            Step::Timed { item, time: StepTime::Number(time) } => Some((item, EventTime::from(*time))),
            Step::Timed { item, time: StepTime::Text(time) } => Some((item, EventTime::from(&**time))),
            _ => None,
        });
        let history = model.history_with_times(events);
        return history.map_err(|error| ApiError::invalid(format!("history: {error}")));
    }
    let mut history = OwnedHistory::new();
    for step in steps {
        match step {
            Step::Item(item) | Step::Timed { item, .. } => history.push_id(model.catalog(), item, false),
            Step::Basket(items) => {
                for (at, item) in items.iter().enumerate() {
                    history.push_id(model.catalog(), item.as_id(), at > 0);
                }
            }
        }
    }
    Ok(history)
}
