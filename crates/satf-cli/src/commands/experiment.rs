//! What was judged, in words and tables, and what could not be among it.

use std::path::Path;

use anyhow::bail;
use satf::evaluate::Evaluation;
use satf::experiment::{Choice, Run};
use serde_json::{Map, Value, json};

use super::path_to_json;
use crate::hints;
use crate::table;

/// A run as JSON, to which a command adds what is the same for all its models.
pub(crate) fn to_json(run: &Run) -> Map<String, Value> {
    match json!(run.report()) {
        Value::Object(report) => report,
        _ => Map::new(),
    }
}

/// Scores, wherever they come from.
pub(crate) struct Judged {
    pub(crate) label: String,
    pub(crate) evaluation: Evaluation,
    /// Seconds of training, if there was any, and of scoring.
    pub(crate) seconds: [Option<f64>; 2],
    /// What a program may read.
    pub(crate) report: Map<String, Value>,
    /// What else there is to tell, a line each.
    pub(crate) notes: String,
}

/// One row of a table of scores.
pub(crate) trait Scores {
    fn label(&self) -> &str;
    fn evaluation(&self) -> &Evaluation;
    /// Of training and of scoring, in seconds.
    fn seconds(&self) -> [Option<f64>; 2];
}

impl Scores for Run {
    fn label(&self) -> &str {
        &self.label
    }

    fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    fn seconds(&self) -> [Option<f64>; 2] {
        [Some(self.train_seconds), Some(self.evaluate_seconds)]
    }
}

impl Scores for Judged {
    fn label(&self) -> &str {
        &self.label
    }

    fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    fn seconds(&self) -> [Option<f64>; 2] {
        self.seconds
    }
}

/// What could not be judged.
pub(crate) struct Failure {
    label: String,
    /// What it is, for a program.
    report: Map<String, Value>,
    error: anyhow::Error,
}

impl Failure {
    /// A model that could not be run.
    pub(crate) fn new(choice: &Choice, error: impl Into<anyhow::Error>) -> Self {
        let mut report = Map::new();
        report.insert("model".into(), json!(choice.entry.name));
        if choice.label != choice.entry.name {
            report.insert("preset".into(), json!(choice.label));
        }
        report.insert("configuration".into(), choice.configured.configuration.clone());
        Failure { label: choice.label.clone(), report, error: error.into() }
    }

    /// A file, of lists or of a model, that could not be judged.
    pub(crate) fn of_file(label: &str, model: &str, path: &Path, error: anyhow::Error) -> Self {
        let mut report = Map::new();
        report.insert("model".into(), json!(model));
        report.insert("name".into(), json!(label));
        report.insert("file".into(), path_to_json(path));
        Failure { label: label.to_owned(), report, error }
    }

    /// Says on stderr that this model is left out, where others go on.
    pub(crate) fn tell(&self) {
        tracing::error!("{} is left out: {}", self.label, hints::chain(&self.error));
    }

    /// The failure in the place of a run's JSON.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let mut report = self.report.clone();
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

/// Scores side by side, and what failed among them.
pub(crate) fn describe<'a, S: Scores + 'a>(
    outcomes: impl Iterator<Item = Result<&'a S, &'a Failure>> + Clone,
) -> String {
    let Some(first) = outcomes.clone().flatten().next() else { return String::new() };
    let metrics: Vec<String> = first.evaluation().report().into_iter().map(|(name, _)| name).collect();
    let mut header = vec!["model"];
    header.extend(metrics.iter().map(String::as_str));
    header.extend(["train s", "score s"]);
    let mut shown = table::with_header(&header);
    for outcome in outcomes.clone() {
        shown.add_row(match outcome {
            Ok(judged) => {
                let mut row = vec![judged.label().to_owned()];
                row.extend(
                    judged.evaluation().report().iter().map(|(_, estimate)| table::estimate(estimate)),
                );
                let seconds = |seconds: f64| format!("{seconds:.2}");
                row.extend(judged.seconds().map(|time| time.map(seconds).unwrap_or_default()));
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
