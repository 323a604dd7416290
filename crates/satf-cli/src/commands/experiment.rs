//! Runs of models in words and tables, and those that failed among them.

use anyhow::bail;
use satf::experiment::{Choice, Run};
use serde_json::{Map, Value, json};

use crate::hints;
use crate::table;

/// A run as JSON, to which a command adds what is the same for all its models.
pub(crate) fn to_json(run: &Run) -> Map<String, Value> {
    match json!(run.report()) {
        Value::Object(report) => report,
        _ => Map::new(),
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
    pub(crate) fn new(choice: &Choice, error: impl Into<anyhow::Error>) -> Self {
        Failure {
            label: choice.label.clone(),
            model_name: choice.entry.name,
            configuration: choice.configured.configuration.clone(),
            error: error.into(),
        }
    }

    /// Says on stderr that this model is left out, where others go on.
    pub(crate) fn tell(&self) {
        tracing::error!("{} is left out: {}", self.label, hints::chain(&self.error));
    }

    /// The failure in the place of a run's JSON.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let mut report = Map::new();
        report.insert("model".into(), json!(self.model_name));
        if self.label != self.model_name {
            report.insert("preset".into(), json!(self.label));
        }
        report.insert("configuration".into(), self.configuration.clone());
        report.insert("error".into(), json!(hints::chain(&self.error)));
        report
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
        text.push_str(&format!("\n{} failed: {}", failure.label, hints::chain(&failure.error)));
    }
    text
}
