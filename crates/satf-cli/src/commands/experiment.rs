//! One model on one partition: fit it, score it, say what happened.

use std::time::Instant;

use anyhow::bail;

use satf::evaluate::{EvaluateOptions, Evaluation, evaluate};
use satf::linalg::gemm_rate;
use satf::models::{Iteration, Recommender};
use satf::monitor::{Monitor, check_cancelled};
use satf::prepare::Partition;
use serde_json::{Map, Value, json};

use super::settings::Choice;
use crate::table;
use crate::terminal::Terminal;

/// What came of one model.
pub(crate) struct Run {
    pub(crate) label: String,
    model_name: &'static str,
    plan: Option<Value>,
    pub(crate) model: Box<dyn Recommender>,
    pub(crate) evaluation: Evaluation,
    configuration: Value,
    iterations: Vec<Iteration>,
    pub(crate) train_seconds: f64,
    pub(crate) evaluate_seconds: f64,
}

impl Run {
    /// Fits a model to the training part and scores it on the holdout.
    pub(crate) fn new(
        choice: &Choice,
        partition: &Partition,
        options: &EvaluateOptions,
        terminal: &Terminal,
    ) -> anyhow::Result<Self> {
        let Choice { label, entry, configured, .. } = choice;
        let plan = configured.learner.plan(&partition.train)?.map(|plan| {
            let rate = gemm_rate();
            let double = configured.configuration["precision"] == "double";
            let mut report = json!(plan);
            report["gemm_gflops"] = json!(if double { rate.double } else { rate.single });
            report
        });
        terminal.begin(label, 0);
        terminal.take_reported();
        let start = Instant::now();
        let model = configured.learner.fit(&partition.train, terminal)?;
        check_cancelled(terminal)?;
        let reported = terminal.take_reported();
        let train_seconds = reported.earlier_seconds + start.elapsed().as_secs_f64();
        let start = Instant::now();
        let evaluation =
            evaluate(&*model, &partition.holdout, partition.train.num_items(), options, terminal)?;
        let evaluate_seconds = start.elapsed().as_secs_f64();
        let (configuration, iterations) = (configured.configuration.clone(), reported.iterations);
        Ok(Run {
            label: label.clone(),
            model_name: entry.name,
            plan,
            model,
            evaluation,
            configuration,
            iterations,
            train_seconds,
            evaluate_seconds,
        })
    }

    /// The run as JSON.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let metrics: Map<String, Value> =
            self.evaluation.report().into_iter().map(|(name, estimate)| (name, json!(estimate))).collect();
        let mut run = names(self.model_name, &self.label);
        run.insert("configuration".into(), self.configuration.clone());
        run.insert("metrics".into(), Value::Object(metrics));
        run.insert("events".into(), json!(self.evaluation.counts));
        run.insert("train_seconds".into(), json!(self.train_seconds));
        run.insert("evaluate_seconds".into(), json!(self.evaluate_seconds));
        run.insert("model_bytes".into(), json!(self.model.memory_bytes()));
        if let Some(plan) = &self.plan {
            run.insert("plan".into(), plan.clone());
        }
        if !self.iterations.is_empty() {
            let iteration = |report: &Iteration| {
                let mut entry: Map<String, Value> =
                    report.measures.iter().map(|&(name, value)| (name.to_owned(), json!(value))).collect();
                entry.insert("iteration".into(), json!(report.iteration));
                entry.insert("seconds".into(), json!(report.seconds));
                Value::Object(entry)
            };
            run.insert("iterations".into(), self.iterations.iter().map(iteration).collect());
        }
        run
    }
}

/// A model that could not be run.
pub(crate) struct Failure {
    label: String,
    model_name: &'static str,
    configuration: Value,
    error: anyhow::Error,
}

impl Failure {
    pub(crate) fn new(choice: &Choice, error: anyhow::Error) -> Self {
        Failure {
            label: choice.label.clone(),
            model_name: choice.entry.name,
            configuration: choice.configured.configuration.clone(),
            error,
        }
    }

    /// Says on stderr that this model is left out, where others go on.
    pub(crate) fn tell(&self) {
        tracing::error!("{} is left out: {}", self.label, crate::hints::chain(&self.error));
    }

    /// The failure in the place of a run's JSON.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let mut run = names(self.model_name, &self.label);
        run.insert("configuration".into(), self.configuration.clone());
        run.insert("error".into(), json!(crate::hints::chain(&self.error)));
        run
    }

    /// The end of a command that left these out: an error if there are any. The only model of a command fails with its own
    /// error, which is not told yet.
    pub(crate) fn end(mut failures: Vec<Failure>, several: bool) -> anyhow::Result<()> {
        match failures.pop() {
            None => Ok(()),
            Some(only) if !several => Err(only.error),
            Some(last) => {
                failures.push(last);
                let labels: Vec<&str> = failures.iter().map(|failure| failure.label.as_str()).collect();
                bail!("left out, for the reasons above: {}", labels.join(", "))
            }
        }
    }
}

/// The names of a model in a report: its own, and that of the preset.
fn names(model_name: &str, label: &str) -> Map<String, Value> {
    let mut names = Map::new();
    names.insert("model".into(), json!(model_name));
    if label != model_name {
        names.insert("preset".into(), json!(label));
    }
    names
}

/// Runs side by side, and those that failed among them.
pub(crate) fn describe<'a>(outcomes: impl Iterator<Item = Result<&'a Run, &'a Failure>> + Clone) -> String {
    let Some(first) = outcomes.clone().flatten().next() else { return String::new() };
    let metrics: Vec<String> = first.evaluation.report().into_iter().map(|(name, _)| name).collect();
    let mut header = vec!["model"];
    header.extend(metrics.iter().map(String::as_str));
    header.extend(["train s", "score s"]);
    let mut shown = table::with_header(&header);
    for outcome in outcomes.clone() {
        shown.add_row(match outcome {
            Ok(run) => {
                let mut row = vec![run.label.clone()];
                row.extend(run.evaluation.report().iter().map(|(_, estimate)| table::estimate(estimate)));
                row.extend([run.train_seconds, run.evaluate_seconds].map(|seconds| format!("{seconds:.2}")));
                row
            }
            Err(failure) => vec![failure.label.clone(), "failed".to_owned()],
        });
    }
    let mut text = shown.to_string();
    for failure in outcomes.filter_map(Result::err) {
        text.push_str(&format!("\n{} failed: {}", failure.label, crate::hints::chain(&failure.error)));
    }
    text
}
