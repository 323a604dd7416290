//! One trial: a training, and the scores of every configuration it serves.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toml::Table;

use super::Grid;
use crate::evaluate::{EvaluateError, Metric, ResampleUnit, SeenPolicy};
use crate::experiment::{ExperimentError, Validation, ValidationScore, score_variants};
use crate::models::{Checkpoints, ConfigError, Iteration, ModelError, Snapshot, TrainingMonitor};
use crate::monitor::{Cancelled, Monitor};
use crate::prepare::Partition;
use crate::unique_keys;

/// Iterations that take so many seconds are reported one by one; others only trial by trial.
const WORTH_TELLING: f64 = 2.0;

/// What a trial showed: one line of the trial log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Its number, from 0.
    pub trial: usize,
    /// The keys that tell its training from the others.
    #[serde(deserialize_with = "unique_keys::object")]
    pub keys: Map<String, Value>,
    /// Every configuration scored on the validation set, iteration by iteration.
    pub scores: Vec<Score>,
    /// Why there are no scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Wall-clock seconds of this trial.
    pub seconds: f64,
    /// Wall-clock seconds spent on the study when it ended, over all runs.
    pub elapsed_seconds: f64,
}

/// The score of one configuration on the validation set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Its keys beyond those of the training: the number of iterations, and keys that play no part in training.
    #[serde(deserialize_with = "unique_keys::object")]
    pub keys: Map<String, Value>,
    /// The metric.
    pub value: f64,
    /// Its standard error.
    pub stderr: Option<f64>,
    /// What the error takes for one observation; none in studies of releases that did not say it: there it was the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ResampleUnit>,
}

impl Trial {
    /// Its best score; of equal ones the first, which has the fewest iterations.
    pub fn best(&self) -> Option<&Score> {
        self.scores.iter().reduce(|best, score| if score.value > best.value { score } else { best })
    }
}

/// The best configuration of several trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Which trial it is from.
    pub trial: usize,
    /// All its keys that were searched, the number of iterations included.
    pub keys: Map<String, Value>,
    /// The metric on the validation set.
    pub value: f64,
    /// Its standard error.
    pub stderr: Option<f64>,
    /// What the error takes for one observation, as in [`Score::unit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ResampleUnit>,
}

/// The best configuration; of equal ones that of the earlier trial.
pub fn best_of(trials: &[Trial]) -> Option<Best> {
    let scored = trials.iter().filter_map(|trial| Some((trial, trial.best()?)));
    let (trial, score) =
        scored.reduce(|best, other| if other.1.value > best.1.value { other } else { best })?;
    let mut keys = trial.keys.clone();
    keys.extend(score.keys.clone());
    let &Score { value, stderr, unit, .. } = score;
    Some(Best { trial: trial.trial, keys, value, stderr, unit })
}

/// How configurations are scored.
#[derive(Clone, Copy)]
pub struct Scoring<'a> {
    /// Training and validation set.
    pub partition: &'a Partition,
    /// What is measured.
    pub metric: Metric,
    /// Stop after this many iterations without improvement.
    pub patience: usize,
    /// Which items are left out of a ranking.
    pub seen: SeenPolicy,
}

/// Why a trial has no scores.
pub(super) enum Failure {
    Cancelled(Cancelled),
    /// It cannot be done, today or tomorrow.
    Failed(ExperimentError),
    /// Something outside went wrong: the search ends, and this trial is not done.
    Broken(ModelError),
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Cancelled(cancelled)
            | ExperimentError::Model(ModelError::Cancelled(cancelled))
            | ExperimentError::Evaluate(EvaluateError::Cancelled(cancelled)) => Failure::Cancelled(cancelled),
            ExperimentError::Model(error @ ModelError::Checkpoint { .. }) => Failure::Broken(error),
            error => Failure::Failed(error),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Failed(error.into())
    }
}

impl Scoring<'_> {
    /// Trains once and scores everything that this training serves. Unfinished training is kept in `checkpoints`, by models
    /// that do so; the seconds that earlier runs spent on it come with the scores.
    pub(super) fn run(
        self,
        grid: &Grid,
        training: usize,
        checkpoints: &Path,
        monitor: &dyn TrainingMonitor,
    ) -> Result<(Vec<Score>, f64), Failure> {
        let configured = grid.configure(training)?;
        let variants = grid.variants(training);
        let Scoring { partition, metric, patience, seen } = self;
        let validation = Validation { partition, metric, patience, seen, unit: ResampleUnit::default() };
        let quiet = QuietTrial { monitor, folder: checkpoints, earlier_seconds: Mutex::new(0.0) };
        let scores = score_variants(&*configured.learner, &variants, &validation, &quiet)?;
        let key = grid.iterations_key();
        let scores = scores.iter().map(|score| Score::new(&variants[score.variant], key, score));
        Ok((scores.collect(), quiet.earlier_seconds.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Score {
    fn new(variant: &Table, iterations_key: Option<&str>, score: &ValidationScore) -> Self {
        let mut keys: Map<String, Value> =
            variant.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        if let (Some(key), Some(iteration)) = (iterations_key, score.iteration) {
            keys.insert(key.to_owned(), json!(iteration));
        }
        let estimate = score.estimate;
        Score { keys, value: estimate.value, stderr: estimate.stderr, unit: estimate.unit }
    }
}

/// Watches a trial, whose progress is that of the search: only slow iterations are reported. Has a folder of its own for unfinished
/// training.
struct QuietTrial<'a> {
    monitor: &'a dyn TrainingMonitor,
    folder: &'a Path,
    /// Seconds of iterations of earlier runs.
    earlier_seconds: Mutex<f64>,
}

impl Monitor for QuietTrial<'_> {
    fn is_cancelled(&self) -> bool {
        self.monitor.is_cancelled()
    }
}

impl TrainingMonitor for QuietTrial<'_> {
    fn iteration(&self, report: &Iteration, _snapshot: &dyn Snapshot) -> ControlFlow<()> {
        self.progressed(report);
        ControlFlow::Continue(())
    }

    fn progressed(&self, report: &Iteration) {
        if report.seconds >= WORTH_TELLING {
            self.monitor.progressed(report);
        }
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

impl Checkpoints for QuietTrial<'_> {
    fn folder(&self) -> &Path {
        self.folder
    }

    fn resumed(&self, earlier: &[Iteration]) {
        let seconds = earlier.iter().map(|report| report.seconds).sum();
        *self.earlier_seconds.lock().unwrap_or_else(PoisonError::into_inner) = seconds;
    }
}
