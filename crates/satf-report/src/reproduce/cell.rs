//! The cells: what is measured, what decides the result, and the measuring itself.

use std::collections::BTreeMap;

use satf::evaluate::{Estimate, EvaluateOptions, Measure, Metric, ResampleUnit, SeenPolicy};
use satf::experiment::{Choice, Validation, fit, fit_with_validation, run_on};
use satf::interactions::Interactions;
use satf::models::TrainingMonitor;
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ReproduceError;
use super::findings::Step;
use super::suite::Dataset;

/// What configurations are chosen by, and the first column of every table.
pub(crate) const TARGET: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The scores on the test set, after training on all before it.
    Score { ties: TiePolicy, seed: u64 },
    /// The target on the validation set, iteration by iteration.
    Curve,
    /// Training time with so many columns of the item factor.
    Time { rank: usize },
}

impl Task {
    fn ties(self) -> TiePolicy {
        match self {
            Task::Score { ties, .. } => ties,
            Task::Curve | Task::Time { .. } => TiePolicy::File,
        }
    }

    /// The seed of the order of ties: of no account where they stand as in the file.
    fn tie_seed(self) -> u64 {
        match self {
            Task::Score { ties: TiePolicy::Shuffle | TiePolicy::Basket, seed } => seed,
            _ => 0,
        }
    }

    /// What standard errors take for one observation; a time has none.
    fn unit(self) -> Option<ResampleUnit> {
        match self {
            Task::Score { .. } | Task::Curve => Some(ResampleUnit::default()),
            Task::Time { .. } => None,
        }
    }

    fn is_curve(self) -> bool {
        self == Task::Curve
    }

    /// `file.1`, `curve`, `rank.300`
    pub(crate) fn file_name(self) -> String {
        match self {
            Task::Score { ties, seed } => format!("{}.{seed}", json!(ties).as_str().unwrap_or_default()),
            Task::Curve => "curve".to_owned(),
            Task::Time { rank } => format!("rank.{rank}"),
        }
    }

    /// `ties shuffled, seed 2`
    pub(crate) fn describe(self) -> String {
        match self {
            Task::Score { ties: TiePolicy::File, seed } => format!("ties in file order, seed {seed}"),
            Task::Score { seed, .. } => format!("ties shuffled, seed {seed}"),
            Task::Curve => "validation curve".to_owned(),
            Task::Time { rank } => format!("training time at rank {rank}"),
        }
    }
}

/// What a cell came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Score(Scored),
    Curve(Vec<Step>),
    Time(Timed),
}

/// A model scored on the test set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Scored {
    pub(crate) metrics: BTreeMap<String, Estimate>,
    pub(crate) events: usize,
    pub(crate) train_seconds: f64,
    pub(crate) evaluate_seconds: f64,
    pub(crate) threads: usize,
    /// What an item counts by its lag, for models that learn it.
    pub(crate) lag_weights: Option<Vec<f64>>,
}

/// The time of a training.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Timed {
    pub(crate) train_seconds: f64,
    pub(crate) threads: usize,
}

/// A log, read and fingerprinted.
pub(crate) struct Log {
    pub(crate) rows: Interactions,
    fingerprint: u64,
}

impl Log {
    pub(crate) fn new(rows: Interactions) -> Self {
        let fingerprint = rows.fingerprint();
        Log { rows, fingerprint }
    }

    /// What tells this log from others.
    pub(crate) fn describe(&self) -> Value {
        json!({
            "fingerprint": format!("{:016x}", self.fingerprint),
            "users": self.rows.users().len(),
            "items": self.rows.items().len(),
            "rows": self.rows.rows().len(),
        })
    }

    /// Training part and events of the test or of the validation set.
    pub(crate) fn cut(
        &self,
        dataset: &Dataset,
        ties: TiePolicy,
        seed: u64,
        validation: bool,
    ) -> Result<Partition, ReproduceError> {
        let scheme = SplitScheme::Calendar { valid: dataset.valid, test: dataset.test };
        let split = Split::new(Timeline::new(&self.rows, ties, seed), scheme);
        let partition = split.and_then(|split| if validation { split.validation() } else { split.test() });
        partition.map_err(|source| ReproduceError::Split { dataset: dataset.name.clone(), source })
    }
}

/// One cell to be filled.
pub(crate) struct Question<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) log: &'a Log,
    pub(crate) choice: Choice,
    pub(crate) seen: SeenPolicy,
    pub(crate) task: Task,
}

impl Question<'_> {
    /// Everything the result depends on (a time depends on the machine too, which is measured, not asked for).
    pub(crate) fn asked(&self) -> Value {
        let mut asked = json!({
            "satf_version": env!("CARGO_PKG_VERSION"),
            "log": self.log.describe(),
            "protocol": {
                "valid": self.dataset.valid.to_string(),
                "test": self.dataset.test.to_string(),
                "part": if self.task.is_curve() { "validation" } else { "test" },
                "ties": self.task.ties(),
                "tie_seed": self.task.tie_seed(),
                "seen": self.seen,
                "cutoff": TARGET.cutoff,
            },
            "task": match self.task {
                Task::Score { .. } => "score",
                Task::Curve => "curve",
                Task::Time { .. } => "time",
            },
            "model": self.choice.entry.name,
            "configuration": self.choice.configured.configuration,
        });
        if let Some(unit) = self.task.unit() {
            asked["protocol"]["error_unit"] = json!(unit);
        }
        asked
    }

    /// Which cut of the log it needs: the order of ties, its seed, and whether the validation set is scored.
    pub(crate) fn cut(&self) -> (TiePolicy, u64, bool) {
        (self.task.ties(), self.task.tie_seed(), self.task.is_curve())
    }

    /// Measures.
    pub(crate) fn answer(
        &self,
        partition: &Partition,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Outcome, ReproduceError> {
        let threads = rayon::current_num_threads();
        let learner = &self.choice.configured.learner;
        match self.task {
            Task::Score { .. } => {
                let cutoffs = vec![TARGET.cutoff];
                let options = EvaluateOptions { cutoffs, seen: self.seen, ..EvaluateOptions::default() };
                let run = run_on(&self.choice, partition, &options, monitor)?;
                Ok(Outcome::Score(Scored {
                    metrics: run.evaluation.report().into_iter().collect(),
                    events: run.evaluation.counts.scored,
                    train_seconds: run.train_seconds,
                    evaluate_seconds: run.evaluate_seconds,
                    threads,
                    lag_weights: run.model.lag_weights().map(<[f64]>::to_vec),
                }))
            }
            Task::Curve => {
                // Every iteration is wanted, however the curve goes.
                let validation = Validation::new(partition, TARGET, usize::MAX);
                let curve = fit_with_validation(&**learner, &validation, monitor)?.curve;
                let step = |(iteration, estimate): (usize, Estimate)| Step {
                    iteration,
                    value: estimate.value,
                    stderr: estimate.stderr,
                };
                Ok(Outcome::Curve(curve.into_iter().map(step).collect()))
            }
            Task::Time { .. } => {
                let train_seconds = fit(&**learner, &partition.train, monitor)?.seconds;
                Ok(Outcome::Time(Timed { train_seconds, threads }))
            }
        }
    }
}
