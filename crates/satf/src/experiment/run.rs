//! One model on one cut: fit it, score it, keep what happened.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Choice, Cut, ExperimentError, Recorder, Validation, Warning, fit_with_validation};
use crate::evaluate::{Estimate, EvaluateOptions, Evaluation, Metric, ResampleUnit, evaluate};
use crate::linalg::gemm_rate;
use crate::models::{Iteration, Learner, Recommender, TrainingMonitor};
use crate::monitor::check_cancelled;
use crate::prepare::{EventCounts, Histories, Partition};

/// What is measured of every model of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Lengths of the lists, each at least 1 (default: 10 alone).
    pub cutoffs: Vec<usize>,
    /// What standard errors take for one observation (default: a user with all events).
    pub unit: ResampleUnit,
    /// Whether iterative models learn on the validation set how many iterations are best, and are then fitted for as many (default:
    /// they do not, and learn as long as they are configured to).
    pub early_stopping: Option<EarlyStopping>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { cutoffs: vec![10], unit: ResampleUnit::default(), early_stopping: None }
    }
}

/// When an iterative model has learned enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyStopping {
    /// The metric to maximise on the validation set.
    pub metric: Metric,
    /// How many scores in a row may be no higher than the best before them; at least 1.
    pub patience: usize,
}

/// A model that learned.
pub struct Fitted {
    /// The model.
    pub model: Box<dyn Recommender>,
    /// The iterations of its training, also those of earlier runs if it went on from a checkpoint.
    pub iterations: Vec<Iteration>,
    /// Wall-clock seconds of training, earlier runs included.
    pub seconds: f64,
}

/// Fits a model and keeps what its training reports.
pub fn fit(
    learner: &dyn Learner,
    histories: &Histories,
    monitor: &dyn TrainingMonitor,
) -> Result<Fitted, ExperimentError> {
    let recorder = Recorder::new(monitor);
    let start = Instant::now();
    let model = learner.fit(histories, &recorder)?;
    check_cancelled(monitor)?;
    let elapsed = start.elapsed().as_secs_f64();
    let recorded = recorder.finish();
    let seconds = recorded.earlier_seconds + elapsed;
    Ok(Fitted { model, iterations: recorded.iterations, seconds })
}

/// What came of one model.
pub struct Run {
    /// What it is called in reports: the model's or the preset's name.
    pub label: String,
    /// The name of the model.
    pub model_name: String,
    /// The model itself.
    pub model: Box<dyn Recommender>,
    /// Its scores, event by event.
    pub evaluation: Evaluation,
    /// Every key with its value, defaults included.
    pub configuration: Value,
    /// What an iteration was expected to cost, for models that plan ahead, with this machine's rate of dense products.
    pub plan: Option<Value>,
    /// The iterations of its training.
    pub iterations: Vec<Iteration>,
    /// Wall-clock seconds of training.
    pub train_seconds: f64,
    /// Wall-clock seconds of scoring.
    pub evaluate_seconds: f64,
    /// What early stopping came to, if it was asked for and applies.
    pub stopped: Option<Stopped>,
    /// What may mislead.
    pub warnings: Vec<Warning>,
}

/// What early stopping came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// What was to be high.
    pub metric: Metric,
    /// The key that says how many iterations there are.
    pub key: &'static str,
    /// The metric on the validation set after every iteration.
    pub curve: Vec<(usize, Estimate)>,
    /// The best iteration, and the metric then.
    pub best: Option<(usize, Estimate)>,
}

/// Fits a model to what a cut has for training, after early stopping on the validation set if that is asked for, and scores it on the
/// part the cut is for.
pub fn run(
    choice: &Choice,
    cut: &Cut<'_>,
    options: &RunOptions,
    monitor: &dyn TrainingMonitor,
) -> Result<Run, ExperimentError> {
    let RunOptions { cutoffs, unit, early_stopping } = options;
    let (unit, seen) = (*unit, cut.description.seen);
    let evaluation = EvaluateOptions { cutoffs: cutoffs.clone(), batch: None, seen, unit };
    let Some(stopping) = early_stopping else {
        return run_on(choice, &cut.partition, &evaluation, monitor);
    };
    let Some(key) = choice.configured.learner.iterations_key() else {
        let mut run = run_on(choice, &cut.partition, &evaluation, monitor)?;
        run.warnings.push(Warning::NotIterative { label: choice.label.clone() });
        return Ok(run);
    };
    let partition = cut.split.validation()?;
    let EarlyStopping { metric, patience } = *stopping;
    let validation = Validation { partition: &partition, metric, patience, seen, unit };
    let validated = fit_with_validation(&*choice.configured.learner, &validation, monitor)?;
    let (curve, best) = (validated.curve, validated.best);
    let warning = best.and_then(|(best, _)| choice.last_was_best(best));
    let mut run = match best {
        Some((best, _)) => run_on(&choice.with_iterations(best)?, &cut.partition, &evaluation, monitor)?,
        None => run_on(choice, &cut.partition, &evaluation, monitor)?,
    };
    run.warnings.extend(warning);
    run.stopped = Some(Stopped { metric, key, curve, best });
    Ok(run)
}

/// Fits a model to a training set and scores it on its holdout.
pub fn run_on(
    choice: &Choice,
    partition: &Partition,
    options: &EvaluateOptions,
    monitor: &dyn TrainingMonitor,
) -> Result<Run, ExperimentError> {
    let Choice { label, entry, configured, .. } = choice;
    let plan = configured.learner.plan(&partition.train)?.map(|plan| {
        let rate = gemm_rate();
        let is_double = configured.configuration["precision"] == "double";
        let mut report = json!(plan);
        report["gemm_gflops"] = json!(if is_double { rate.double } else { rate.single });
        report
    });
    monitor.begin(label, 0);
    let fitted = fit(&*configured.learner, &partition.train, monitor)?;
    let start = Instant::now();
    let Partition { train, holdout } = partition;
    let evaluation = evaluate(&*fitted.model, holdout, train.num_items(), options, monitor)?;
    Ok(Run {
        label: label.clone(),
        model_name: entry.name.to_owned(),
        model: fitted.model,
        evaluation,
        configuration: configured.configuration.clone(),
        plan,
        iterations: fitted.iterations,
        train_seconds: fitted.seconds,
        evaluate_seconds: start.elapsed().as_secs_f64(),
        stopped: None,
        warnings: Vec::new(),
    })
}

impl Run {
    /// The report of a run: everything but the model and the single events.
    pub fn report(&self) -> RunReport {
        let point = |&(iteration, estimate): &(usize, Estimate)| CurvePoint {
            iteration,
            value: estimate.value,
            stderr: estimate.stderr,
            unit: estimate.unit,
        };
        RunReport {
            model: self.model_name.clone(),
            preset: (self.label != self.model_name).then(|| self.label.clone()),
            configuration: self.configuration.clone(),
            metrics: self.evaluation.report(),
            events: self.evaluation.counts,
            train_seconds: self.train_seconds,
            evaluate_seconds: self.evaluate_seconds,
            model_bytes: self.model.memory_bytes(),
            plan: self.plan.clone(),
            iterations: self.iterations.iter().map(iteration_report).collect(),
            early_stopping: self.stopped.as_ref().map(|stopped| EarlyStoppingReport {
                metric: stopped.metric,
                curve: stopped.curve.iter().map(point).collect(),
                best_iteration: stopped.best.map(|(iteration, _)| iteration),
            }),
        }
    }
}

fn iteration_report(report: &Iteration) -> Map<String, Value> {
    let mut entry: Map<String, Value> =
        report.measures.iter().map(|&(name, value)| (name.to_owned(), json!(value))).collect();
    entry.insert("iteration".into(), json!(report.iteration));
    entry.insert("seconds".into(), json!(report.seconds));
    entry
}

/// A run as it is reported, stored and sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The name of the model.
    pub model: String,
    /// The name of the preset, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Every key with its value, defaults included.
    pub configuration: Value,
    /// Every metric by name, coverage included, in the order of reports.
    #[serde(with = "metrics_by_name")]
    pub metrics: Vec<(String, Estimate)>,
    /// Counts of the holdout.
    pub events: EventCounts,
    /// Wall-clock seconds of training.
    pub train_seconds: f64,
    /// Wall-clock seconds of scoring.
    pub evaluate_seconds: f64,
    /// Bytes the model keeps in memory.
    pub model_bytes: usize,
    /// What an iteration was expected to cost, for models that plan ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// The iterations of training: number, seconds, and what the model measures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<Map<String, Value>>,
    /// What early stopping came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stopping: Option<EarlyStoppingReport>,
}

/// The result of early stopping, as it is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlyStoppingReport {
    /// What was to be high.
    pub metric: Metric,
    /// The metric on the validation set after every iteration.
    pub curve: Vec<CurvePoint>,
    /// The best iteration.
    pub best_iteration: Option<usize>,
}

/// A metric after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Counted from 1.
    pub iteration: usize,
    /// The metric.
    pub value: f64,
    /// Its standard error.
    pub stderr: Option<f64>,
    /// What the error takes for one observation.
    pub unit: Option<ResampleUnit>,
}

/// Metrics by name as a map, in their order.
pub(crate) mod metrics_by_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::{Map, Value};

    use crate::evaluate::Estimate;

    pub(crate) fn serialize<S: Serializer>(
        metrics: &[(String, Estimate)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(metrics.iter().map(|(name, estimate)| (name, estimate)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Estimate)>, D::Error> {
        let metrics = Map::<String, Value>::deserialize(deserializer)?.into_iter();
        metrics
            .map(|(name, value)| Ok((name, serde_json::from_value(value).map_err(D::Error::custom)?)))
            .collect()
    }
}
