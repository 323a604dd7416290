//! One pass over the holdout: every event ranked against the whole catalogue, seen items excluded.

use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::metrics::{Estimate, Measure, Metric, ResampleUnit, number_users};
use crate::choice::{UnknownChoice, choose};
use crate::models::Recommender;
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::prepare::{EventCounts, History, Holdout};
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

impl FromStr for SeenPolicy {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        choose(text, [("own", SeenPolicy::Own), ("pooled", SeenPolicy::Pooled)])
    }
}

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

/// The outcome of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The cut-offs measured.
    pub cutoffs: Vec<usize>,
    /// Rank of every event's target (from 0), in the order of the holdout; `None` beyond the largest cut-off.
    pub ranks: Vec<Option<u32>>,
    /// Numbers the user of every event, from 0 without gaps.
    pub users: Vec<usize>,
    /// What standard errors take for one observation.
    pub unit: ResampleUnit,
    /// The best rank each item ever reached in a list; `u32::MAX` for items never recommended.
    best_rank: Vec<u32>,
    /// Counts of the holdout.
    pub counts: EventCounts,
}

/// Why an evaluation cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// Cut-offs that make no sense.
    #[error("cut-offs {0:?}: expected one or more whole numbers from 1 on")]
    Cutoffs(Vec<usize>),
    /// A model that was fitted to another catalogue.
    #[error("the model knows {model} items, the holdout {holdout}: it was fitted to another log")]
    Catalog {
        /// Items the model knows.
        model: usize,
        /// Items of the training part.
        holdout: usize,
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
    let mut cutoffs = options.cutoffs.clone();
    cutoffs.sort_unstable();
    cutoffs.dedup();
    let Some(&longest) = cutoffs.last().filter(|_| cutoffs[0] > 0) else {
        return Err(EvaluateError::Cutoffs(options.cutoffs.clone()));
    };
    if model.num_items() != num_items {
        return Err(EvaluateError::Catalog { model: model.num_items(), holdout: num_items });
    }
    let batch = options.batch.unwrap_or(histories_at_once(num_items)).max(1);

    let pooled = (options.seen == SeenPolicy::Pooled).then(|| first_event_that_saw(holdout, num_items));
    monitor.begin("evaluating", holdout.events.len() as u64);
    let mut ranks = Vec::with_capacity(holdout.events.len());
    let mut best_rank = vec![u32::MAX; num_items];
    let mut scores = vec![0f32; batch.min(holdout.events.len()) * num_items];
    for events in holdout.events.chunks(batch) {
        check_cancelled(monitor)?;
        let histories: Vec<History<'_>> = events.iter().map(|event| holdout.history(event)).collect();
        let scores = &mut scores[..events.len() * num_items];
        model.score_batch(&histories, scores);
        let first_event = ranks.len();
        let lists: Vec<Vec<Scored>> = scores
            .par_chunks_mut(num_items)
            .zip(&histories)
            .enumerate()
            .map(|(at, (scores, history))| {
                for (score, &first) in scores.iter_mut().zip(pooled.iter().flatten()) {
                    if first < first_event + at {
                        *score = EXCLUDED;
                    }
                }
                rank_unseen(scores, history, longest)
            })
            .collect();
        for (event, list) in events.iter().zip(&lists) {
            ranks.push(list.iter().position(|scored| scored.item == event.target).map(|rank| rank as u32));
            for (rank, scored) in list.iter().enumerate() {
                let best = &mut best_rank[scored.item.get()];
                *best = (*best).min(rank as u32);
            }
        }
        monitor.advance(events.len() as u64);
    }
    let users = number_users(holdout.events.iter().map(|event| event.user), holdout.users.len());
    Ok(Evaluation { cutoffs, ranks, users, unit: options.unit, best_rank, counts: holdout.counts })
}

/// How many histories are scored at once for a catalogue of this size.
pub(crate) fn histories_at_once(num_items: usize) -> usize {
    (BATCH_BYTES / 4 / num_items.max(1)).clamp(16, 1024)
}

/// For every item, the first event whose history holds it (`usize::MAX` for none).
fn first_event_that_saw(holdout: &Holdout, num_items: usize) -> Vec<usize> {
    let mut first = vec![usize::MAX; num_items];
    for (at, event) in holdout.events.iter().enumerate() {
        for item in holdout.history(event).items() {
            first[item.get()] = first[item.get()].min(at);
        }
    }
    first
}

impl Evaluation {
    /// The per-event metrics measured, cut-off by cut-off.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        let cutoffs = self.cutoffs.clone();
        cutoffs.into_iter().flat_map(|cutoff| Measure::ALL.map(|measure| Metric { measure, cutoff }))
    }

    /// The mean of a metric over the events, with its standard error.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        let values = self.ranks.iter().map(|&rank| metric.value(rank));
        match self.unit {
            ResampleUnit::User => Estimate::by_user(values, &self.users),
            ResampleUnit::Event => Estimate::by_event(values),
        }
    }

    /// How many users have an event.
    pub fn num_users(&self) -> usize {
        self.users.iter().max().map_or(0, |last| last + 1)
    }

    /// Distinct items recommended at a cut-off over items in training.
    pub fn coverage(&self, cutoff: usize) -> f64 {
        let reached = self.best_rank.iter().filter(|&&rank| (rank as usize) < cutoff).count();
        reached as f64 / self.best_rank.len() as f64
    }

    /// Every metric by name, coverage included, in the order of reports.
    pub fn report(&self) -> Vec<(String, Estimate)> {
        let mut report = Vec::new();
        for &cutoff in &self.cutoffs {
            for measure in Measure::ALL {
                let metric = Metric { measure, cutoff };
                report.push((metric.to_string(), self.estimate(metric)));
            }
            report.push((format!("COV@{cutoff}"), Estimate::exact(self.coverage(cutoff))));
        }
        report
    }
}
