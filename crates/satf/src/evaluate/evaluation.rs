//! What an evaluation came to: of a whole holdout, or of some of its events, to be merged.

use serde::{Deserialize, Serialize};

use super::compare::{CompareOptions, Difference, compare};
use super::metrics::{Estimate, Measure, Metric, ResampleUnit, number_users};
use super::protocol::EvaluateError;
use crate::interactions::UserIndex;
use crate::monitor::Monitor;
use crate::prepare::EventCounts;

/// The outcome of an evaluation.
///
/// It can be made in parts, by one process or by several ([`evaluate_events`](super::evaluate_events)): [`Evaluation::merge`] puts
/// them together to exactly what one evaluation of all events would be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub(super) best_rank: Vec<u32>,
    /// Counts of the whole holdout.
    pub counts: EventCounts,
    /// Which events of the holdout these are: their places in it, ascending.
    pub(super) events: Vec<usize>,
    /// The user of every event as the holdout knows it.
    pub(super) user_indices: Vec<u32>,
}

/// Why evaluations are not parts of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("no evaluation to merge")]
    Nothing,
    /// They were not made of the same holdout, for the same catalogue, with the same options.
    #[error("evaluations with different {0} are not parts of one")]
    Different(&'static str),
    /// Two of them scored the same event.
    #[error("the event at place {0} of the holdout was scored twice")]
    Repeated(usize),
}

impl Evaluation {
    /// The evaluation of all events that these parts scored, in whatever order they come: exactly what one evaluation of those events
    /// would be. Parts may hold any events, so long as none is in two of them.
    pub fn merge(parts: impl IntoIterator<Item = Evaluation>) -> Result<Evaluation, MergeError> {
        let mut parts = parts.into_iter();
        let mut merged = parts.next().ok_or(MergeError::Nothing)?;
        let mut scored = merged.take_scored();
        for mut part in parts {
            merged.check_kin(&part)?;
            for (best, other) in merged.best_rank.iter_mut().zip(&part.best_rank) {
                *best = (*best).min(*other);
            }
            scored.append(&mut part.take_scored());
        }
        scored.sort_unstable_by_key(|&(event, ..)| event);
        if let Some(pair) = scored.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(MergeError::Repeated(pair[0].0));
        }
        for (event, rank, user) in scored {
            merged.events.push(event);
            merged.ranks.push(rank);
            merged.user_indices.push(user);
        }
        merged.users = number_of_each(&merged.user_indices);
        Ok(merged)
    }

    /// Whether every event of the holdout is scored.
    pub fn is_whole(&self) -> bool {
        self.events.len() == self.counts.scored
    }

    /// Takes the events out: place, rank, user.
    fn take_scored(&mut self) -> Vec<(usize, Option<u32>, u32)> {
        let events = std::mem::take(&mut self.events).into_iter();
        let users = std::mem::take(&mut self.user_indices);
        let ranks = std::mem::take(&mut self.ranks);
        events.zip(ranks).zip(users).map(|((event, rank), user)| (event, rank, user)).collect()
    }

    fn check_kin(&self, other: &Evaluation) -> Result<(), MergeError> {
        let differences = [
            ("cut-offs", self.cutoffs != other.cutoffs),
            ("units of standard errors", self.unit != other.unit),
            ("holdouts", self.counts != other.counts),
            ("catalogues", self.best_rank.len() != other.best_rank.len()),
        ];
        let first = differences.into_iter().find(|(_, differs)| *differs);
        first.map_or(Ok(()), |(what, _)| Err(MergeError::Different(what)))
    }

    /// The per-event metrics measured, cut-off by cut-off.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        let cutoffs = self.cutoffs.clone();
        cutoffs.into_iter().flat_map(|cutoff| Measure::ALL.map(|measure| Metric { measure, cutoff }))
    }

    /// A metric of every event.
    pub fn values(&self, metric: Metric) -> impl ExactSizeIterator<Item = f64> + Clone {
        self.ranks.iter().map(move |&rank| metric.value(rank))
    }

    /// The mean of a metric over the events, with its standard error.
    pub fn estimate(&self, metric: Metric) -> Estimate {
        let values = self.values(metric);
        match self.unit {
            ResampleUnit::User => Estimate::by_user(values, &self.users),
            ResampleUnit::Event => Estimate::by_event(values),
        }
    }

    /// How a metric of this evaluation differs from that of `first`, event by event: the difference is this minus the first. Its
    /// interval and p-value take for one observation what the standard errors of `first` do.
    pub fn difference_from(
        &self,
        first: &Evaluation,
        metric: Metric,
        options: &CompareOptions,
        monitor: &dyn Monitor,
    ) -> Result<Difference, EvaluateError> {
        if self.events != first.events || self.user_indices != first.user_indices || self.events.is_empty() {
            return Err(EvaluateError::NotPaired { first: first.events.len(), second: self.events.len() });
        }
        let each: Vec<usize>;
        let groups = match first.unit {
            ResampleUnit::User => &first.users,
            ResampleUnit::Event => {
                each = (0..first.ranks.len()).collect();
                &each
            }
        };
        let (before, after): (Vec<f64>, Vec<f64>) =
            (first.values(metric).collect(), self.values(metric).collect());
        Ok(compare(&before, &after, groups, options, monitor)?)
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

/// Numbers users from 0 without gaps, as they come up.
pub(super) fn number_of_each(users: &[u32]) -> Vec<usize> {
    let num_users = users.iter().max().map_or(0, |last| *last as usize + 1);
    number_users(users.iter().map(|&user| UserIndex(user)), num_users)
}
