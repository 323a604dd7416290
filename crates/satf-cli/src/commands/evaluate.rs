//! `satf evaluate`: the past trains, the future judges.

use std::path::{Path, PathBuf};

use satf::evaluate::{EarlyStopping, EvaluateOptions, Metric, ResampleUnit, write_per_event};
use satf::models::Registry;
use satf::monitor::Monitor;
use serde_json::{Map, Value, json};

use super::experiment::{Failure, Run, describe};
use super::files::Files;
use super::protocol::{Cut, Protocol};
use super::settings::{Choice, DEFAULT_MODEL, SharedKeys, configure};
use crate::args::EvaluateArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &EvaluateArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    evaluate(arguments, registry, terminal).map_err(|error| terminal.explain_stop(error))
}

fn evaluate(arguments: &EvaluateArguments, registry: &Registry, terminal: &Terminal) -> anyhow::Result<()> {
    let protocol = Protocol::resolve(&arguments.protocol, &arguments.models.preset, registry)?;
    let shared =
        SharedKeys { seed: protocol.seed, max_len: protocol.max_len, memory_bytes: arguments.models.memory };
    let mut models = arguments.models.clone();
    if models.model.is_empty() && models.preset.is_empty() {
        models.model.push(DEFAULT_MODEL.to_owned());
    }
    let choices = configure(&models, shared, registry)?;
    let several = choices.len() > 1;
    let files = Files::of_log(&arguments.log).reading("--config", arguments.models.config.as_ref());
    let per_event = arguments.per_event.iter();
    per_event
        .flat_map(|path| choices.iter().map(move |choice| per_event_path(path, &choice.label, several)))
        .fold(files, |files, path| files.writing("--per-event", Some(path)))
        .check()?;

    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol.cut(&log)?;
    let unit: ResampleUnit = arguments.unit.into();
    let options = EvaluateOptions { cutoffs: arguments.at.clone(), batch: None, seen: protocol.seen, unit };
    let mut outcomes: Vec<Result<Run, Failure>> = Vec::new();
    let mut reports = Vec::new();
    let mut notes = String::new();
    for mut choice in choices {
        let ran = run_model(&mut choice, &cut, &options, arguments, terminal);
        let (outcome, mut report) = match ran {
            Ok((run, stopped)) => {
                if let Some(path) = &arguments.per_event {
                    let path = per_event_path(path, &choice.label, several);
                    write_per_event(&path, &cut.partition, &run.evaluation)?;
                }
                let mut report = run.to_json();
                if let Some((note, stopped)) = stopped {
                    notes.push_str(&note);
                    report.insert("early_stopping".into(), stopped);
                }
                (Ok(run), report)
            }
            Err(error) if terminal.is_cancelled() || crate::is_cancelled(&error) => {
                return Err(error);
            }
            Err(error) => {
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
            "{}\n{notes}{} events of {} users scored; {} rows of unknown items dropped, {} first events of new users \
             unscored{}",
            describe(outcomes.iter().map(Result::as_ref)),
            table::count(counts.scored),
            table::count(run.evaluation.num_users()),
            table::count(counts.dropped_unknown_items),
            table::count(counts.unscored_first),
            errors.map(|note| format!("\n{note}")).unwrap_or_default(),
        ))?;
    }
    Failure::end(outcomes.into_iter().filter_map(Result::err).collect(), several)
}

/// A run, and what early stopping came to as a line and as JSON.
type Ran = (Run, Option<(String, Value)>);

/// One model: early stopping if that was asked for, then training and scoring.
fn run_model(
    choice: &mut Choice,
    cut: &Cut<'_>,
    options: &EvaluateOptions,
    arguments: &EvaluateArguments,
    terminal: &Terminal,
) -> anyhow::Result<Ran> {
    let stopped = match arguments.early_stopping {
        Some(metric) if choice.configured.learner.iterations_key().is_some() => {
            Some(stop_early(choice, cut, metric, options.unit, arguments.patience, terminal)?)
        }
        Some(_) => {
            tracing::warn!("{} does not learn iteratively: early stopping does not apply", choice.label);
            None
        }
        None => None,
    };
    Ok((Run::new(choice, &cut.partition, options, terminal)?, stopped))
}

/// Adds what is the same for all models of a command.
fn describe_command(report: &mut Map<String, Value>, cut: &Cut<'_>, arguments: &EvaluateArguments) {
    report.insert("protocol".into(), cut.description.clone());
    let files = arguments.log.files.iter().map(|path| super::path_to_json(path));
    report.insert("files".into(), files.collect());
    report.insert("satf_version".into(), json!(env!("CARGO_PKG_VERSION")));
}

/// Trains on the training part alone, scores every iteration on the validation part, and sets the best number of
/// iterations for the run that follows. What came of it, as a line and as JSON.
fn stop_early(
    choice: &mut Choice,
    cut: &Cut<'_>,
    metric: Metric,
    unit: ResampleUnit,
    patience: usize,
    terminal: &Terminal,
) -> anyhow::Result<(String, Value)> {
    let partition = cut.split.validation()?;
    let items = partition.train.num_items();
    let stopping = EarlyStopping::new(&partition.holdout, items, metric, patience, terminal).with_unit(unit);
    choice.configured.learner.fit(&partition.train, &stopping)?;
    let outcome = stopping.outcome().map_err(anyhow::Error::msg)?;
    let curve: Vec<Value> = outcome
        .curve
        .iter()
        .map(|(iteration, estimate)| {
            json!({
                "iteration": iteration, "value": estimate.value, "stderr": estimate.stderr, "unit": estimate.unit,
            })
        })
        .collect();
    let mut note = String::new();
    let best = outcome.best.map(|best| (best.iteration, best.estimate));
    if let Some((best, estimate)) = best {
        let (label, key) = (&choice.label, choice.configured.learner.iterations_key().unwrap_or_default());
        let value = table::estimate(&estimate);
        note = format!("{label}: {key} = {best} was best on the validation part, {metric} {value}\n");
        choice.warn_of_last(best);
        *choice = choice.with_iterations(best)?;
    }
    Ok((note, json!({ "metric": metric, "curve": curve, "best_iteration": best.map(|(best, _)| best) })))
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
