//! One pass over the holdout: every event ranked against the whole catalogue, seen items excluded.

use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::evaluation::{Evaluation, number_of_each};
use super::metrics::ResampleUnit;
use crate::choice::{UnknownChoice, choose};
use crate::interactions::ItemIndex;
use crate::models::Recommender;
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::numbers::{Count, counted};
use crate::prepare::{History, Holdout};
use crate::ranking::{EXCLUDED, Scored, rank_unseen};

/// Scores held at once: a batch is as many events as fit, so memory stays bounded whatever the catalogue.
const BATCH_BYTES: usize = 64 << 20;

/// Which items are left out of an event's ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeenPolicy {
    /// Those of the event's own history.
    #[default]
    Own,
    /// Those of its own history and of every earlier event's. Only for reproducing the paper's MP column: its
    /// popularity scores seem to have been one vector shared by all users, from which each event struck its seen items for good.
    Pooled,
}

impl fmt::Display for SeenPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SeenPolicy::Own => "own",
            SeenPolicy::Pooled => "pooled",
        })
    }
}

impl FromStr for SeenPolicy {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        choose(text, [("own", SeenPolicy::Own), ("pooled", SeenPolicy::Pooled)])
    }
}

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluateOptions {
    /// Lengths of the lists, ascending, without repeats, each at least 1.
    pub cutoffs: Vec<usize>,
    /// Events scored at once; `None` chooses by the size of the catalogue. Does not change any result.
    pub batch: Option<usize>,
    /// Which items are left out of a ranking.
    pub seen: SeenPolicy,
    /// What standard errors take for one observation: the events of a user together, or each event by itself.
    pub unit: ResampleUnit,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions { cutoffs: vec![10], batch: None, seen: SeenPolicy::Own, unit: ResampleUnit::User }
    }
}

/// Why an evaluation cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// Cut-offs that make no sense.
    #[error("cut-offs {0:?}: expected one or more whole numbers from 1 on")]
    Cutoffs(Vec<usize>),
    /// A model that was fitted to another catalogue.
    #[error("the model knows {}, the holdout {}: it was fitted to another log", counted(*model, "item"), Count::of(*holdout))]
    Catalog {
        /// Items the model knows.
        model: usize,
        /// Items of the training set.
        holdout: usize,
    },
    /// An event that the holdout does not have.
    #[error("no event at place {event}: the holdout has {events}, counted from 0")]
    NoSuchEvent {
        /// The place asked for.
        event: usize,
        /// How many events there are.
        events: usize,
    },
    /// Evaluations of different events, or of none, cannot be compared event by event.
    #[error(
        "evaluations of {} and of {} that are not the same cannot be compared event by event",
        counted(*first, "event"), counted(*second, "event")
    )]
    NotPaired {
        /// Events of the first.
        first: usize,
        /// Events of the second.
        second: usize,
    },
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// Ranks every holdout event. Results do not depend on the batch size or the number of threads.
pub fn evaluate(
    model: &dyn Recommender,
    holdout: &Holdout,
    num_items: usize,
    options: &EvaluateOptions,
    monitor: &dyn Monitor,
) -> Result<Evaluation, EvaluateError> {
    let events: Vec<usize> = (0..holdout.events.len()).collect();
    evaluate_events(model, holdout, num_items, &events, options, monitor)
}

/// Ranks some events of a holdout, given by their places in it in any order: the share of one worker among several. The parts
/// of all workers give the whole ([`Evaluation::merge`]).
pub fn evaluate_events(
    model: &dyn Recommender,
    holdout: &Holdout,
    num_items: usize,
    events: &[usize],
    options: &EvaluateOptions,
    monitor: &dyn Monitor,
) -> Result<Evaluation, EvaluateError> {
    let (cutoffs, longest) = options.checked_cutoffs()?;
    if model.num_items() != num_items {
        return Err(EvaluateError::Catalog { model: model.num_items(), holdout: num_items });
    }
    let mut events = events.to_vec();
    events.sort_unstable();
    events.dedup();
    if let Some(&event) = events.last().filter(|&&last| last >= holdout.events.len()) {
        return Err(EvaluateError::NoSuchEvent { event, events: holdout.events.len() });
    }
    let batch = options.batch.unwrap_or(histories_at_once(num_items)).max(1);

    let pooled = (options.seen == SeenPolicy::Pooled).then(|| first_event_that_saw(holdout, num_items));
    monitor.begin("evaluating", events.len() as u64);
    let mut tally = Tally::new(events.len(), num_items);
    let mut scores = vec![0f32; batch.min(events.len()) * num_items];
    for places in events.chunks(batch) {
        check_cancelled(monitor)?;
        let histories: Vec<History<'_>> =
            places.iter().map(|&place| holdout.history(&holdout.events[place])).collect();
        let scores = &mut scores[..places.len() * num_items];
        model.score_batch(&histories, scores);
        let lists: Vec<Vec<Scored>> = scores
            .par_chunks_mut(num_items)
            .zip(&histories)
            .zip(places)
            .map(|((scores, history), &place)| {
                for (score, &first) in scores.iter_mut().zip(pooled.iter().flatten()) {
                    if first < place {
                        *score = EXCLUDED;
                    }
                }
                rank_unseen(scores, history, longest)
            })
            .collect();
        for (&place, list) in places.iter().zip(&lists) {
            tally.take(holdout.events[place].target, list.iter().map(|scored| Some(scored.item)));
        }
        monitor.advance(places.len() as u64);
    }
    Ok(tally.finish(holdout, events, cutoffs, options.unit))
}

impl EvaluateOptions {
    /// The cut-offs in ascending order, and the largest.
    pub(super) fn checked_cutoffs(&self) -> Result<(Vec<usize>, usize), EvaluateError> {
        let mut cutoffs = self.cutoffs.clone();
        cutoffs.sort_unstable();
        cutoffs.dedup();
        match cutoffs.last() {
            Some(&longest) if cutoffs[0] > 0 => Ok((cutoffs, longest)),
            _ => Err(EvaluateError::Cutoffs(self.cutoffs.clone())),
        }
    }
}

/// What lists, wherever they come from, tell of the items looked for.
pub(super) struct Tally {
    ranks: Vec<Option<u32>>,
    best_rank: Vec<u32>,
}

impl Tally {
    pub(super) fn new(num_events: usize, num_items: usize) -> Self {
        Tally { ranks: Vec::with_capacity(num_events), best_rank: vec![u32::MAX; num_items] }
    }

    /// Takes the list of the next event, best item first. An item that the training set does not know has its place, and that is all.
    pub(super) fn take(&mut self, target: ItemIndex, list: impl Iterator<Item = Option<ItemIndex>>) {
        let mut found = None;
        for (rank, item) in list.enumerate() {
            let Some(item) = item else { continue };
            let best = &mut self.best_rank[item.get()];
            *best = (*best).min(rank as u32);
            if item == target && found.is_none() {
                found = Some(rank as u32);
            }
        }
        self.ranks.push(found);
    }

    /// The evaluation of these events, whose lists were taken in this order.
    pub(super) fn finish(
        self,
        holdout: &Holdout,
        events: Vec<usize>,
        cutoffs: Vec<usize>,
        unit: ResampleUnit,
    ) -> Evaluation {
        let user_indices: Vec<u32> = events.iter().map(|&place| holdout.events[place].user.0).collect();
        let users = number_of_each(&user_indices);
        let (Tally { ranks, best_rank }, counts) = (self, holdout.counts);
        Evaluation { cutoffs, ranks, users, unit, best_rank, counts, events, user_indices }
    }
}

/// How many histories are scored at once for a catalogue of this size.
pub(crate) fn histories_at_once(num_items: usize) -> usize {
    (BATCH_BYTES / 4 / num_items.max(1)).clamp(16, 1024)
}

/// For every item, the first event whose history holds it (`usize::MAX` for none).
pub(super) fn first_event_that_saw(holdout: &Holdout, num_items: usize) -> Vec<usize> {
    let mut first = vec![usize::MAX; num_items];
    for (at, event) in holdout.events.iter().enumerate() {
        for item in holdout.history(event).items() {
            first[item.get()] = first[item.get()].min(at);
        }
    }
    first
}
