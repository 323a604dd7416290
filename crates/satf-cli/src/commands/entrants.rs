//! What `satf evaluate` judges: models to train, models from files, lists from anywhere.

use std::path::{Path, PathBuf};
use std::time::Instant;

use satf::data::{DataError, Lists, ReadOptions};
use satf::evaluate::{EvaluateOptions, Evaluation, evaluate_lists};
use satf::experiment::{Choice, Cut, RunOptions, Stopped, run as run_model};
use satf::models::Registry;
use satf::recommend::{Exposure, JudgedModel, Model};
use serde_json::{Map, Value, json};

use super::experiment::{Failure, Judged, to_json};
use super::{path_to_json, protocol};
use crate::args::NamedFile;
use crate::table;
use crate::terminal::Terminal;

/// What the columns of lists are called, for files that have others.
const COLUMNS: &str =
    "lists have a column user_id or event_id, and item_id with rank or score, or items (whole lists)";

/// One row of the table to be.
pub(crate) enum Entrant {
    /// A model that is trained first.
    Trained(Box<Choice>),
    /// A model file.
    Saved { label: String, path: PathBuf, model: Box<Model> },
    /// Lists of recommendations.
    Lists { label: String, path: PathBuf, lists: Lists },
}

/// Whether a model asked for is a file and not a name.
pub(crate) fn is_file(model: &str) -> bool {
    let model = model.trim();
    let has_ending = Path::new(model).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("satf"));
    has_ending || model.contains(std::path::is_separator)
}

impl Entrant {
    /// Reads a model file.
    pub(crate) fn saved(path: &Path, registry: &Registry) -> anyhow::Result<Self> {
        let label = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let model = Box::new(super::load(path, registry)?);
        Ok(Entrant::Saved { label, path: path.to_owned(), model })
    }

    /// Reads a file of lists.
    pub(crate) fn lists(file: &NamedFile, terminal: &Terminal) -> anyhow::Result<Self> {
        let lists = Lists::read(&file.path, &ReadOptions::default(), terminal).map_err(in_words)?;
        Ok(Entrant::Lists { label: file.name.clone(), path: file.path.clone(), lists })
    }

    pub(crate) fn label(&self) -> &str {
        match self {
            Entrant::Trained(choice) => &choice.label,
            Entrant::Saved { label, .. } | Entrant::Lists { label, .. } => label,
        }
    }

    /// Why it could not be judged.
    pub(crate) fn failed(&self, error: anyhow::Error) -> Failure {
        match self {
            Entrant::Trained(choice) => Failure::new(choice, error),
            Entrant::Saved { label, path, model } => {
                Failure::of_file(label, &model.manifest().model, path, error)
            }
            Entrant::Lists { label, path, .. } => Failure::of_file(label, LISTS, path, error),
        }
    }

    /// Scores it, after training if it has to be trained.
    pub(crate) fn judge(
        &self,
        cut: &Cut<'_>,
        options: &RunOptions,
        terminal: &Terminal,
    ) -> anyhow::Result<Judged> {
        let RunOptions { cutoffs, unit, .. } = options;
        let seen = cut.description.seen;
        let evaluation = EvaluateOptions { cutoffs: cutoffs.clone(), batch: None, seen, unit: *unit };
        match self {
            Entrant::Trained(choice) => train(choice, cut, options, terminal),
            Entrant::Saved { label, path, model } => {
                let start = Instant::now();
                let judged = model.evaluate(&cut.partition, &evaluation, terminal)?;
                let seconds = start.elapsed().as_secs_f64();
                protocol::tell(judged.exposure.warning(label).as_slice());
                Ok(of_saved(label, path, model, judged, seconds))
            }
            Entrant::Lists { label, path, lists } => {
                let start = Instant::now();
                let judged = evaluate_lists(lists, &cut.partition, &evaluation, terminal)?;
                let seconds = start.elapsed().as_secs_f64();
                let mut report = described(label, LISTS, path, &judged.evaluation, seconds);
                report.insert("lists".into(), json!(judged.report));
                Ok(Judged {
                    label: label.clone(),
                    evaluation: judged.evaluation,
                    seconds: [None, Some(seconds)],
                    report,
                    notes: format!("{label}: {}\n", judged.report),
                })
            }
        }
    }
}

/// What stands for the model of lists.
const LISTS: &str = "lists";

fn train(
    choice: &Choice,
    cut: &Cut<'_>,
    options: &RunOptions,
    terminal: &Terminal,
) -> anyhow::Result<Judged> {
    let run = run_model(choice, cut, options, terminal)?;
    protocol::tell(&run.warnings);
    let report = to_json(&run);
    let notes = run.stopped.as_ref().and_then(|stopped| best_iteration(&run.label, stopped));
    Ok(Judged {
        seconds: [Some(run.train_seconds), Some(run.evaluate_seconds)],
        label: run.label,
        evaluation: run.evaluation,
        report,
        notes: notes.unwrap_or_default(),
    })
}

fn of_saved(label: &str, path: &Path, model: &Model, judged: JudgedModel, seconds: f64) -> Judged {
    let JudgedModel { evaluation, catalog, exposure } = judged;
    let manifest = model.manifest();
    let mut report = described(label, &manifest.model, path, &evaluation, seconds);
    report.insert("configuration".into(), manifest.configuration.clone());
    report.insert("model_bytes".into(), json!(model.recommender().memory_bytes()));
    report.insert("catalog".into(), json!(catalog));
    let learned = match &exposure {
        Exposure::SameTrainingSet => json!({ "from": "the same training set" }),
        Exposure::Earlier => json!({ "from": "earlier events" }),
        Exposure::MayHaveSeen { until, first_event } => {
            json!({ "from": "perhaps events to predict", "until": until, "first_event": first_event })
        }
        Exposure::Unknown => json!({ "from": "unknown" }),
    };
    report.insert("learned".into(), learned);
    let told = [
        (catalog.missing_items, "items of the training set that it does not know"),
        (catalog.other_items, "items that the training set does not know, which cannot be hit"),
        (catalog.unknown_histories, "events without any item that it knows, which are misses"),
    ];
    let told = told.into_iter().filter(|(count, _)| *count > 0);
    let notes: String = told
        .map(|(count, what)| format!("{label}: {} {what}\n", table::count(count)))
        .collect::<Vec<_>>()
        .concat();
    Judged { label: label.to_owned(), evaluation, seconds: [None, Some(seconds)], report, notes }
}

/// What is told of a file that was judged, whatever it holds.
fn described(
    label: &str,
    model: &str,
    path: &Path,
    evaluation: &Evaluation,
    seconds: f64,
) -> Map<String, Value> {
    let metrics: Map<String, Value> =
        evaluation.report().into_iter().map(|(name, estimate)| (name, json!(estimate))).collect();
    let mut report = Map::new();
    report.insert("model".into(), json!(model));
    report.insert("name".into(), json!(label));
    report.insert("file".into(), path_to_json(path));
    report.insert("metrics".into(), Value::Object(metrics));
    report.insert("events".into(), json!(evaluation.counts));
    report.insert("evaluate_seconds".into(), json!(seconds));
    report
}

/// How many iterations were best on the validation set, as a line.
fn best_iteration(label: &str, stopped: &Stopped) -> Option<String> {
    let (best, estimate) = stopped.best?;
    let Stopped { key, metric, .. } = stopped;
    let value = table::estimate(&estimate);
    Some(format!("{label}: {key} = {best} was best on the validation set, {metric} {value}\n"))
}

/// What is wrong with a file of lists. The options that say how a log is read are not about them.
fn in_words(error: DataError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow::anyhow!(error.to_string().replace(&hint.to_string(), COLUMNS)),
        None => error.into(),
    }
}
