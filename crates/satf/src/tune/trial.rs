//! One trial: a training, and the scores of every configuration it serves.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toml::Table;

use super::Grid;
use crate::evaluate::{Estimate, EvaluateError, EvaluateOptions, Metric, ResampleUnit, SeenPolicy, evaluate};
use crate::models::{
    Checkpoints, ConfigError, Iteration, Memory, ModelError, Recommender, Snapshot, TrainingMonitor,
};
use crate::monitor::{Cancelled, Monitor, OnlyCancels, check_cancelled};
use crate::prepare::Partition;

/// Iterations that take so many seconds are told of one by one; others only trial by trial.
const WORTH_TELLING: f64 = 2.0;

/// What a trial showed: one line of the trial log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Its number, from 0.
    pub trial: usize,
    /// The keys that tell its training from the others.
    pub keys: Map<String, Value>,
    /// Every configuration scored on the validation part, iteration by iteration.
    pub scores: Vec<Score>,
    /// Why there are no scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Wall-clock seconds of this trial.
    pub seconds: f64,
    /// Wall-clock seconds spent on the study when it ended, over all runs.
    pub elapsed_seconds: f64,
}

/// The score of one configuration on the validation part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Its keys beyond those of the training: the number of iterations, and keys that play no part in training.
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// Which trial it is from.
    pub trial: usize,
    /// All its keys that were searched, the number of iterations included.
    pub keys: Map<String, Value>,
    /// The metric on the validation part.
    pub value: f64,
    /// Its standard error.
    pub stderr: Option<f64>,
    /// What the error takes for one observation, as in [`Score::unit`].
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Training and validation part.
    pub partition: &'a Partition,
    /// What is measured.
    pub metric: Metric,
    /// Iterations without growth that early stopping bears.
    pub patience: usize,
    /// Which items are left out of a ranking.
    pub seen: SeenPolicy,
}

/// Why a trial has no scores.
pub(super) enum Failure {
    Cancelled,
    /// It cannot be done, today or tomorrow.
    Failed(String),
    /// Something outside went wrong: the search ends, and this trial is not done.
    Broken(ModelError),
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Cancelled(_) => Failure::Cancelled,
            error @ ModelError::Checkpoint { .. } => Failure::Broken(error),
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<EvaluateError> for Failure {
    fn from(error: EvaluateError) -> Self {
        match error {
            EvaluateError::Cancelled(_) => Failure::Cancelled,
            error => Failure::Failed(error.to_string()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Failure::Cancelled
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
        let watch = Watch {
            scoring: self,
            monitor,
            checkpoints,
            iterations_key: grid.iterations_key(),
            state: Mutex::new(Curves {
                variants: grid.variants(training).into_iter().map(Curve::new).collect(),
                scores: Vec::new(),
                failure: None,
                earlier_seconds: 0.0,
            }),
        };
        let model = configured.learner.fit(&self.partition.train, &watch)?;
        check_cancelled(monitor)?;
        let curves = watch.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = curves.failure {
            return Err(failure);
        }
        if curves.scores.is_empty() {
            let estimate = self.score(&*model, monitor)?;
            return Ok((vec![Score::new(Map::new(), estimate)], curves.earlier_seconds));
        }
        Ok((curves.scores, curves.earlier_seconds))
    }

    fn score(&self, model: &dyn Recommender, monitor: &dyn Monitor) -> Result<Estimate, EvaluateError> {
        let cutoffs = vec![self.metric.cutoff];
        let options = EvaluateOptions { cutoffs, seen: self.seen, ..EvaluateOptions::default() };
        let Partition { train, holdout } = self.partition;
        let outcome = evaluate(model, holdout, train.num_items(), &options, &OnlyCancels(monitor))?;
        Ok(outcome.estimate(self.metric))
    }
}

impl Score {
    fn new(keys: Map<String, Value>, estimate: Estimate) -> Self {
        let Estimate { value, stderr, unit, .. } = estimate;
        Score { keys, value, stderr, unit }
    }
}

/// Scores every configuration that a training serves, after every iteration.
///
/// Each has its own early stopping, as if it were trained alone; training ends when all have stopped.
struct Watch<'a> {
    scoring: Scoring<'a>,
    monitor: &'a dyn TrainingMonitor,
    checkpoints: &'a Path,
    iterations_key: Option<&'static str>,
    state: Mutex<Curves>,
}

struct Curves {
    variants: Vec<Curve>,
    scores: Vec<Score>,
    failure: Option<Failure>,
    /// Seconds of iterations of earlier runs.
    earlier_seconds: f64,
}

struct Curve {
    variant: Table,
    /// The same as JSON.
    keys: Map<String, Value>,
    best: Option<f64>,
    /// Scores since the best one.
    since_best: usize,
    stopped: bool,
}

impl Curve {
    fn new(variant: Table) -> Self {
        let keys = variant.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        Curve { variant, keys, best: None, since_best: 0, stopped: false }
    }

    /// Takes note of a value, and stops if the last `patience` values were no higher than the best before them.
    fn note(&mut self, value: f64, patience: usize) {
        if self.best.is_none_or(|best| value > best) {
            (self.best, self.since_best) = (Some(value), 0);
        } else {
            self.since_best += 1;
        }
        self.stopped = self.since_best >= patience;
    }
}

impl Watch<'_> {
    fn score_all(
        &self,
        curves: &mut Curves,
        snapshot: &dyn Snapshot,
        iteration: Option<usize>,
    ) -> Result<(), Failure> {
        for curve in curves.variants.iter_mut().filter(|curve| !curve.stopped) {
            check_cancelled(self.monitor)?;
            let model = snapshot.variant(&curve.variant)?;
            let estimate = self.scoring.score(&*model, self.monitor)?;
            let mut keys = curve.keys.clone();
            if let Some(iteration) = iteration {
                keys.extend(self.iterations_key.map(|key| (key.to_owned(), json!(iteration))));
                curve.note(estimate.value, self.scoring.patience);
            }
            curves.scores.push(Score::new(keys, estimate));
        }
        Ok(())
    }

    fn curves(&self) -> MutexGuard<'_, Curves> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scores a snapshot; whether there is nothing more to learn from this training.
    fn look(&self, snapshot: &dyn Snapshot, iteration: Option<usize>) -> bool {
        let mut curves = self.curves();
        if let Err(failure) = self.score_all(&mut curves, snapshot, iteration) {
            curves.failure = Some(failure);
            return true;
        }
        curves.variants.iter().all(|curve| curve.stopped)
    }
}

impl Monitor for Watch<'_> {
    fn is_cancelled(&self) -> bool {
        self.monitor.is_cancelled()
    }
}

impl TrainingMonitor for Watch<'_> {
    fn progressed(&self, report: &Iteration) {
        if report.seconds >= WORTH_TELLING {
            self.monitor.progressed(report);
        }
    }

    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        let is_over = self.look(snapshot, Some(report.iteration));
        let mut report = report.clone();
        let last = self.curves().scores.last().map(|score| score.value);
        report.measures.extend(last.map(|value| ("validation", value)));
        self.progressed(&report);
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn trained(&self, snapshot: &dyn Snapshot) {
        self.look(snapshot, None);
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

impl Checkpoints for Watch<'_> {
    fn folder(&self) -> &Path {
        self.checkpoints
    }

    fn memory(&self) -> Option<Memory> {
        let text = serde_json::to_string(&self.curves().scores).ok()?;
        Some(Memory { text, best: None })
    }

    fn resumed(&self, earlier: &[Iteration]) {
        self.curves().earlier_seconds = earlier.iter().map(|report| report.seconds).sum();
    }

    fn recall(&self, memory: &Memory, _best: Option<&dyn Snapshot>) -> Result<ControlFlow<()>, String> {
        let scores: Vec<Score> =
            serde_json::from_str(&memory.text).map_err(|error| format!("no scores of a trial: {error}"))?;
        let mut curves = self.curves();
        for curve in &mut curves.variants {
            for score in &scores {
                let mut keys = score.keys.clone();
                keys.retain(|key, _| self.iterations_key != Some(key));
                if keys == curve.keys {
                    curve.note(score.value, self.scoring.patience);
                }
            }
        }
        curves.scores = scores;
        let is_over = curves.variants.iter().all(|curve| curve.stopped);
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
