//! `satf evaluate`: the past trains, the future judges.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use satf::evaluate::write_per_event;
use satf::experiment::{
    Choice, Cut, EarlyStopping, Protocol, Run, RunOptions, SharedKeys, Stopped, run as run_model,
};
use satf::models::{DEFAULT_MODEL, Registry};
use satf::monitor::Monitor;
use serde_json::{Map, Value, json};

use super::experiment::{Failure, describe, to_json};
use super::files::Files;
use super::protocol;
use super::settings::{configure, given_keys};
use crate::args::EvaluateArguments;
use crate::misuse::misuse;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &EvaluateArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    inputs(arguments).check_distinct()?;
    let given = given_keys(&arguments.models, arguments.protocol.seed, arguments.protocol.max_len)?;
    let protocol = protocol::resolve(&arguments.protocol, &arguments.models.preset, registry)?;
    let shared = SharedKeys { memory_bytes: arguments.models.memory, ..protocol.shared_keys() };
    let mut models = arguments.models.clone();
    if models.model.is_empty() && models.preset.is_empty() {
        models.model.push(DEFAULT_MODEL.to_owned());
    }
    let choices = configure(&models, given, shared, registry)?;
    check(arguments, &choices)?;
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    evaluate(arguments, &protocol, choices, terminal).map_err(|error| terminal.explain_stop(error))
}

/// What is read or kept.
fn inputs(arguments: &EvaluateArguments) -> Files {
    Files::of_log(&arguments.log)
        .reading("--config", arguments.models.config.as_ref())
        .keeping("--checkpoints", arguments.checkpoints.as_ref())
}

/// An error if options and models do not go together.
fn check(arguments: &EvaluateArguments, choices: &[Choice]) -> anyhow::Result<()> {
    super::check_checkpoints(
        arguments.checkpoints.as_deref(),
        choices.iter().map(|choice| choice.entry.name),
    )?;
    let mut labels = HashSet::new();
    if arguments.per_event.is_some()
        && let Some(choice) = choices.iter().find(|choice| !labels.insert(&choice.label))
    {
        misuse!(
            "--per-event: the model {} is given twice, and one file would be written twice; hint: name it once",
            choice.label
        );
    }
    Ok(())
}

fn evaluate(
    arguments: &EvaluateArguments,
    protocol: &Protocol,
    choices: Vec<Choice>,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let several = choices.len() > 1;
    let files = inputs(arguments);
    let per_event = arguments.per_event.iter();
    per_event
        .flat_map(|path| choices.iter().map(move |choice| per_event_path(path, &choice.label, several)))
        .fold(files, |files, path| files.writing("--per-event", Some(path)))
        .check()?;

    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol::cut(protocol, &log)?;
    let options = RunOptions {
        cutoffs: arguments.at.clone(),
        unit: arguments.unit.into(),
        early_stopping: arguments
            .early_stopping
            .map(|metric| EarlyStopping { metric, patience: arguments.patience }),
    };
    let mut outcomes: Vec<Result<Run, Failure>> = Vec::new();
    let mut reports = Vec::new();
    let mut notes = String::new();
    for choice in choices {
        let (outcome, mut report) = match run_model(&choice, &cut, &options, terminal) {
            Ok(run) => {
                protocol::tell(&run.warnings);
                if let Some(path) = &arguments.per_event {
                    let path = per_event_path(path, &choice.label, several);
                    write_per_event(&path, &cut.partition, &run.evaluation)?;
                    terminal.wrote(&path);
                }
                notes.extend(run.stopped.as_ref().and_then(|stopped| best_iteration(&run.label, stopped)));
                let report = to_json(&run);
                (Ok(run), report)
            }
            Err(error) => {
                let error = anyhow::Error::from(error);
                if terminal.is_cancelled() || crate::is_cancelled(&error) {
                    return Err(error);
                }
                let failure = Failure::new(&choice, error);
                if several {
                    failure.tell();
                }
                let report = failure.to_json();
                (Err(failure), report)
            }
        };
        describe_command(&mut report, &cut, arguments);
        reports.push(Value::Object(report));
        outcomes.push(outcome);
    }
    terminal.finish();

    if arguments.json {
        table::print_json(&json!({ "runs": reports }))?;
    } else if let Some(run) = outcomes.iter().flatten().next() {
        let counts = cut.partition.holdout.counts;
        let errors = run.evaluation.report();
        let errors = table::error_note(errors.iter().map(|(_, estimate)| estimate));
        table::print(&format!(
            "{}\n{notes}{} of {} scored; {} of unknown items dropped, {} of new users unscored{}",
            describe(outcomes.iter().map(Result::as_ref)),
            table::counted(counts.scored, "event"),
            table::counted(run.evaluation.num_users(), "user"),
            table::counted(counts.dropped_unknown_items, "row"),
            table::counted(counts.unscored_first, "first event"),
            errors.map(|note| format!("\n{note}")).unwrap_or_default(),
        ))?;
    }
    Failure::end(outcomes.into_iter().filter_map(Result::err).collect(), several)
}

/// Adds what is the same for all models of a command.
fn describe_command(report: &mut Map<String, Value>, cut: &Cut<'_>, arguments: &EvaluateArguments) {
    report.insert("protocol".into(), json!(cut.description));
    let files = arguments.log.files.iter().map(|path| super::path_to_json(path));
    report.insert("files".into(), files.collect());
    report.insert("satf_version".into(), json!(env!("CARGO_PKG_VERSION")));
}

/// How many iterations were best on the validation set, as a line.
fn best_iteration(label: &str, stopped: &Stopped) -> Option<String> {
    let (best, estimate) = stopped.best?;
    let Stopped { key, metric, .. } = stopped;
    let value = table::estimate(&estimate);
    Some(format!("{label}: {key} = {best} was best on the validation set, {metric} {value}\n"))
}

/// `scores.parquet` becomes `scores.mp.parquet` when there are several models.
fn per_event_path(path: &Path, label: &str, several: bool) -> PathBuf {
    if !several {
        return path.to_owned();
    }
    // Not as text, for a name need not be that.
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}", label.replace('/', "-")));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}
