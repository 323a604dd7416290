//! A request made ready for a model: what it was compiled to, and how it answers.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::answer::{Answer, Explanation, Recommendation, Share};
use super::best::{Ranked, best, best_of_sorted};
use super::error::check_items;
use super::filters::Sieve;
use super::{Fallback, Filters, Model, RecommendError, Request, Unknown};
use crate::evaluate::histories_at_once;
use crate::interactions::{History, ItemIndex};
use crate::models::{Scores, Workspace};
use crate::ranking::Scored;

/// A [`Request`] made ready for a model: ids are found, lists are sorted, numbers are checked. It answers any number of histories, from
/// any number of threads.
///
/// Preparing takes time in the order of the request's lists, whatever the catalogue, so that a request of its own for every history
/// costs little.
pub struct Prepared<'m> {
    model: &'m Model,
    n: usize,
    fallback: Fallback,
    explains: bool,
    sieve: Sieve,
    unknown: Vec<Unknown>,
    /// What to recommend when no item of a history is known, once one came.
    of_unknown: OnceLock<Vec<Recommendation<ItemIndex>>>,
}

impl Model {
    /// Makes a request ready for this model. Ids that the model does not know are left out and named by [`Prepared::unknown`].
    pub fn prepare(&self, request: &Request) -> Result<Prepared<'_>, RecommendError> {
        let (filters, unknown) = request.filters(self.catalog());
        let prepared = self.prepare_filters(request.n, &filters)?.with_fallback(request.fallback);
        let prepared = if request.explain { prepared.with_explanations()? } else { prepared };
        Ok(Prepared { unknown, ..prepared })
    }

    /// The same with filters in the indices of [`Model::catalog`], without a fallback and without explanations.
    pub fn prepare_filters(&self, n: usize, filters: &Filters) -> Result<Prepared<'_>, RecommendError> {
        Ok(Prepared {
            model: self,
            n,
            fallback: Fallback::Empty,
            explains: false,
            sieve: Sieve::new(filters, self.catalog())?,
            unknown: Vec::new(),
            of_unknown: OnceLock::new(),
        })
    }
}

impl<'m> Prepared<'m> {
    /// The same with this fallback.
    #[must_use]
    pub fn with_fallback(self, fallback: Fallback) -> Self {
        Prepared { fallback, of_unknown: OnceLock::new(), ..self }
    }

    /// The same with explanations of all scores. An error if the model has none.
    pub fn with_explanations(self) -> Result<Self, RecommendError> {
        self.model.check_explains()?;
        Ok(Prepared { explains: true, of_unknown: OnceLock::new(), ..self })
    }

    /// The same with a rule that items have to satisfy besides, such as one over their attributes. Like all filters it applies before the
    /// best items are taken; it is asked of items that would be among them, and of no others.
    #[must_use]
    pub fn with_rule(self, rule: impl Fn(ItemIndex) -> bool + Send + Sync + 'static) -> Self {
        Prepared { sieve: self.sieve.with_rule(Arc::new(rule)), of_unknown: OnceLock::new(), ..self }
    }

    /// The model it was made for.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// How many items a history gets at most.
    pub fn n(&self) -> usize {
        self.n
    }

    /// What to recommend when no item of a history is known.
    pub fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// Whether scores are explained.
    pub fn explains(&self) -> bool {
        self.explains
    }

    /// The ids of the request that the model does not know, list after list. They were left out.
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// What a history gets, on this thread alone. Whoever recommends again and again keeps the workspace, one per thread: nothing of
    /// the catalogue's size is allocated after the first history.
    pub fn answer<'h>(
        &self,
        history: impl Into<History<'h>>,
        workspace: &mut Workspace,
    ) -> Result<Answer, RecommendError> {
        Ok(self.answer_indexed(history, workspace)?.with_ids(self.model.catalog()))
    }

    /// The same in the indices of the catalogue.
    pub fn answer_indexed<'h>(
        &self,
        history: impl Into<History<'h>>,
        workspace: &mut Workspace,
    ) -> Result<Answer<ItemIndex>, RecommendError> {
        let history = history.into();
        if history.is_empty() {
            return Ok(self.fall_back(history));
        }
        let ranked = self.rank_one(history, workspace)?;
        self.explained(history, ranked)
    }

    /// What each of many histories gets, on all threads of the pool: for factor models one matrix product per batch of bounded size.
    pub fn answer_batch<H>(&self, histories: &[H]) -> Result<Vec<Answer>, RecommendError>
    where
        for<'h> &'h H: Into<History<'h>>,
    {
        let answers = self.answer_batch_indexed(&views(histories))?;
        Ok(answers.into_iter().map(|answer| answer.with_ids(self.model.catalog())).collect())
    }

    /// The same in the indices of the catalogue.
    pub fn answer_batch_indexed(
        &self,
        histories: &[History<'_>],
    ) -> Result<Vec<Answer<ItemIndex>>, RecommendError> {
        let known: Vec<History<'_>> =
            histories.iter().copied().filter(|history| !history.is_empty()).collect();
        let mut lists = self.rank_many(&known)?.into_iter();
        // An empty history has no list; it falls back.
        let lists: Vec<(History<'_>, Option<Vec<Ranked>>)> = histories
            .iter()
            .map(|&history| (history, if history.is_empty() { None } else { lists.next() }))
            .collect();
        let answer = |(history, list): (History<'_>, Option<Vec<Ranked>>)| match list {
            Some(list) => self.explained(history, list),
            None => Ok(self.fall_back(history)),
        };
        // Whatever is wrong, the first history of which it is says so.
        lists.into_par_iter().map(answer).collect::<Vec<_>>().into_iter().collect()
    }

    /// What each of several requests gets that were prepared for one model, in the indices of its catalogue: with dense scores, one matrix product for all of them. The
    /// answers are those of [`Prepared::answer_indexed`], to the bit.
    ///
    /// # Panics
    /// If they were prepared for different models.
    pub fn answer_together_indexed(
        requests: &[(Prepared<'_>, History<'_>)],
        workspace: &mut Workspace,
    ) -> Vec<Result<Answer<ItemIndex>, RecommendError>> {
        let Some((first, _)) = requests.first() else { return Vec::new() };
        let (model, num_items) = (first.model, first.model.num_items());
        assert!(requests.iter().all(|(request, _)| std::ptr::eq(request.model, model)), "one model");
        let alone = |(request, history): &(Prepared<'_>, History<'_>), workspace: &mut Workspace| {
            request.answer_indexed(*history, workspace)
        };
        let is_scored =
            |history: History<'_>| !history.is_empty() && check_items("history", &history, num_items).is_ok();
        if requests.len() < 2 || num_items == 0 || model.recommender().is_sparse() {
            return requests.iter().map(|request| alone(request, workspace)).collect();
        }
        let mut answers = Vec::with_capacity(requests.len());
        for requests in requests.chunks(histories_at_once(num_items).max(1)) {
            let scored: Vec<History<'_>> =
                requests.iter().map(|(_, history)| *history).filter(|&history| is_scored(history)).collect();
            let mut lists = Vec::with_capacity(scored.len());
            if !scored.is_empty() {
                let scores = workspace.dense(scored.len() * num_items);
                model.recommender().score_batch(&scored, scores);
                let own = requests.iter().filter(|(_, history)| is_scored(*history));
                for ((request, history), row) in own.zip(scores.chunks_mut(num_items)) {
                    let scores = Scores::Dense(row);
                    let finite = model.check_scores(&scores);
                    lists.push(finite.map(|()| best(&request.sieve.of(history), scores, request.n)));
                }
            }
            let mut lists = lists.into_iter();
            for request in requests {
                let (prepared, history) = request;
                let list = if is_scored(*history) { lists.next() } else { None };
                answers.push(match list {
                    None => alone(request, workspace),
                    Some(list) => list.and_then(|list| prepared.explained(*history, list)),
                });
            }
        }
        answers
    }

    /// The best items after a history by their scores, whether anything of it is known or not: an empty history gets what the model
    /// scores highest without one, and no fallback.
    pub fn rank<'h>(
        &self,
        history: impl Into<History<'h>>,
        workspace: &mut Workspace,
    ) -> Result<Vec<Scored>, RecommendError> {
        Ok(scored(self.rank_one(history.into(), workspace)?))
    }

    /// [`Prepared::rank`] for many histories at once.
    pub fn rank_batch<H>(&self, histories: &[H]) -> Result<Vec<Vec<Scored>>, RecommendError>
    where
        for<'h> &'h H: Into<History<'h>>,
    {
        Ok(self.rank_many(&views(histories))?.into_iter().map(scored).collect())
    }

    /// The most popular items. Scores are numbers of events.
    pub fn popular(&self) -> Vec<Recommendation> {
        let list = self.popular_indexed();
        list.into_iter().map(|recommendation| recommendation.with_id(self.model.catalog())).collect()
    }

    fn popular_indexed(&self) -> Vec<Recommendation<ItemIndex>> {
        let counts = self.model.item_counts();
        let sieve = self.sieve.of(&[]);
        let list =
            best_of_sorted(&sieve, self.model.by_popularity(), |item| counts[item.get()] as f32, self.n);
        let recommendation = |ranked: Ranked| Recommendation {
            item: ranked.scored.item,
            score: ranked.scored.score,
            explanation: self.explains.then(|| Explanation {
                score: ranked.scored.score,
                shares: Vec::new(),
                base: f64::from(ranked.plain),
                boost: ranked.boost(),
            }),
        };
        list.into_iter().map(recommendation).collect()
    }

    /// What to recommend when no item of a history is known.
    fn fall_back(&self, history: History<'_>) -> Answer<ItemIndex> {
        let items = match self.fallback {
            Fallback::Empty => Vec::new(),
            Fallback::Popular => self.of_unknown.get_or_init(|| self.popular_indexed()).clone(),
        };
        Answer { items, is_fallback: true, unknown_items: history.unknown() }
    }

    fn explained(
        &self,
        history: History<'_>,
        list: Vec<Ranked>,
    ) -> Result<Answer<ItemIndex>, RecommendError> {
        let recommendation = |ranked: Ranked| {
            let explanation =
                if self.explains { Some(self.model.explain_ranked(history, ranked)?) } else { None };
            Ok(Recommendation { item: ranked.scored.item, score: ranked.scored.score, explanation })
        };
        let items = list.into_iter().map(recommendation).collect::<Result<_, RecommendError>>()?;
        Ok(Answer { items, is_fallback: false, unknown_items: history.unknown() })
    }

    fn rank_one(
        &self,
        history: History<'_>,
        workspace: &mut Workspace,
    ) -> Result<Vec<Ranked>, RecommendError> {
        check_items("history", &history, self.model.num_items())?;
        if self.model.num_items() == 0 {
            return Ok(Vec::new());
        }
        let sieve = self.sieve.of(&history);
        if self.sieve.is_plain() {
            let is_allowed = |item| sieve.allows(item);
            if let Some(list) = self.model.recommender().best_one(history, self.n, &is_allowed, workspace) {
                let ranked = |scored: Scored| Ranked { scored, plain: scored.score };
                return Ok(list.into_iter().map(ranked).collect());
            }
        }
        let scores = self.model.recommender().score_one(history, workspace);
        self.model.check_scores(&scores)?;
        Ok(best(&sieve, scores, self.n))
    }

    fn rank_many(&self, histories: &[History<'_>]) -> Result<Vec<Vec<Ranked>>, RecommendError> {
        let (model, num_items) = (self.model, self.model.num_items());
        histories.iter().try_for_each(|history| check_items("history", history, num_items))?;
        if num_items == 0 {
            return Ok(vec![Vec::new(); histories.len()]);
        }
        if model.recommender().is_sparse() {
            let workspace = || model.workspaces().take();
            let ranked = histories
                .par_iter()
                .map_init(workspace, |workspace, &history| self.rank_one(history, workspace));
            // Whatever is wrong, the first history of which it is says so.
            return ranked.collect::<Vec<_>>().into_iter().collect();
        }
        let at_once = histories_at_once(num_items).min(histories.len());
        let mut scores = vec![0f32; at_once * num_items];
        let mut lists = Vec::with_capacity(histories.len());
        for histories in histories.chunks(at_once.max(1)) {
            let scores = &mut scores[..histories.len() * num_items];
            model.recommender().score_batch(histories, scores);
            model.check_finite("score", scores)?;
            let best = scores
                .par_chunks_mut(num_items)
                .zip(histories)
                .map(|(scores, history)| best(&self.sieve.of(history), Scores::Dense(scores), self.n));
            lists.par_extend(best);
        }
        Ok(lists)
    }
}

fn views<H>(histories: &[H]) -> Vec<History<'_>>
where
    for<'h> &'h H: Into<History<'h>>,
{
    histories.iter().map(Into::into).collect()
}

fn scored(list: Vec<Ranked>) -> Vec<Scored> {
    list.into_iter().map(|ranked| ranked.scored).collect()
}

impl Model {
    /// An error if a score is not finite: weights that are finite can still be so large that sums of them overflow, and a file may
    /// hold any.
    fn check_scores(&self, scores: &Scores<'_>) -> Result<(), RecommendError> {
        let worst = match scores {
            Scores::Dense(scores) => scores.iter().position(|score| !score.is_finite()).map(|at| at as u32),
            Scores::Sparse(scores) => {
                let odd = scores.touched().filter(|&item| !scores.get(item).is_finite());
                odd.map(|item| item.0).min()
            }
        };
        match worst.map(ItemIndex) {
            None => Ok(()),
            Some(item) => Err(self.not_finite("score", item.get(), f64::from(scores.get(item)))),
        }
    }

    /// What every item of a history adds to a score.
    fn explain_ranked(
        &self,
        history: History<'_>,
        ranked: Ranked,
    ) -> Result<Explanation<ItemIndex>, RecommendError> {
        let item = ranked.scored.item;
        let shares = self.recommender().shares(history, item);
        if let Some(&value) = shares.of_history.iter().chain([&shares.base]).find(|value| !value.is_finite())
        {
            return Err(self.not_finite("contribution of a past item to the score", item.get(), value));
        }
        let share = |(&item, share): (&ItemIndex, f64)| Share { item, share };
        Ok(Explanation {
            score: ranked.scored.score,
            shares: history.iter().zip(shares.of_history).map(share).collect(),
            base: shares.base,
            boost: ranked.boost(),
        })
    }

    /// [`Model::explain`] in the indices of the catalogue.
    pub fn explain_indexed(
        &self,
        history: History<'_>,
        item: ItemIndex,
    ) -> Result<Explanation<ItemIndex>, RecommendError> {
        check_items("history", &history, self.num_items())?;
        check_items("item", &[item], self.num_items())?;
        self.check_explains()?;
        let workspace = &mut *self.workspaces().take();
        let scores = self.recommender().score_one(history, workspace);
        self.check_scores(&scores)?;
        let scored = Scored { item, score: scores.get(item) };
        self.explain_ranked(history, Ranked { scored, plain: scored.score })
    }
}
