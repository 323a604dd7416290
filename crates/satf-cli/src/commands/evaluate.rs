//! `satf evaluate`: the past trains, the future judges.

use std::path::{Path, PathBuf};

use satf::evaluate::{EarlyStopping, EvaluateOptions, Metric, write_per_event};
use serde_json::{Value, json};

use super::experiment::{Run, describe};
use super::protocol::{Cut, Protocol};
use super::settings::{Choice, SharedKeys, configure};
use crate::args::EvaluateArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &EvaluateArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    evaluate(arguments, terminal).map_err(|error| terminal.explain_stop(error))
}

fn evaluate(arguments: &EvaluateArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let protocol = Protocol::resolve(&arguments.protocol, &arguments.models.preset)?;
    let shared =
        SharedKeys { seed: protocol.seed, max_len: protocol.max_len, memory_bytes: arguments.models.memory };
    let mut choices = configure(&arguments.models, shared)?;
    let options = EvaluateOptions { cutoffs: arguments.at.clone(), batch: None, seen: protocol.seen };
    if let Some(path) = &arguments.per_event {
        super::check_output("--per-event", path)?;
    }

    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol.cut(&log)?;
    let several = choices.len() > 1;
    let mut runs = Vec::new();
    let mut reports = Vec::new();
    let mut notes = String::new();
    for choice in &mut choices {
        let stopped = match arguments.early_stopping {
            Some(metric) if choice.configured.learner.iterations_key().is_some() => {
                Some(stop_early(choice, &cut, metric, arguments.patience, terminal)?)
            }
            Some(_) => {
                tracing::warn!("{} does not learn iteratively: early stopping does not apply", choice.label);
                None
            }
            None => None,
        };
        let run = Run::new(choice, &cut.partition, &options, terminal)?;
        if let Some(path) = &arguments.per_event {
            let path = per_event_path(path, &choice.label, several);
            write_per_event(&path, &cut.partition, &run.evaluation)?;
        }
        let mut report = run.to_json();
        if let Some((note, stopped)) = stopped {
            notes.push_str(&note);
            report.insert("early_stopping".into(), stopped);
        }
        report.insert("protocol".into(), cut.description.clone());
        report.insert("files".into(), json!(arguments.log.files));
        report.insert("satf_version".into(), json!(env!("CARGO_PKG_VERSION")));
        reports.push(Value::Object(report));
        runs.push(run);
    }
    terminal.finish();

    if arguments.json {
        return match reports.len() {
            1 => table::print_json(&reports.remove(0)),
            _ => table::print_json(&json!({ "runs": reports })),
        };
    }
    let counts = cut.partition.holdout.counts;
    table::print(&format!(
        "{}\n{notes}{} events scored; {} rows of unknown items dropped, {} first events of new users unscored",
        describe(&runs),
        table::count(counts.scored),
        table::count(counts.dropped_unknown_items),
        table::count(counts.unscored_first),
    ))
}

/// Trains on the training part alone, scores every iteration on the validation part, and sets the best number of
/// iterations for the run that follows. What came of it, as a line and as JSON.
fn stop_early(
    choice: &mut Choice,
    cut: &Cut<'_>,
    metric: Metric,
    patience: usize,
    terminal: &Terminal,
) -> anyhow::Result<(String, Value)> {
    let partition = cut.split.validation()?;
    let items = partition.train.num_items();
    let stopping = EarlyStopping::new(&partition.holdout, items, metric, patience, terminal);
    choice.configured.learner.fit(&partition.train, &stopping)?;
    let outcome = stopping.outcome().map_err(anyhow::Error::msg)?;
    let curve: Vec<Value> = outcome
        .curve
        .iter()
        .map(|(iteration, estimate)| {
            json!({ "iteration": iteration, "value": estimate.value, "stderr": estimate.stderr })
        })
        .collect();
    let mut note = String::new();
    let best = outcome.best.map(|best| (best.iteration, best.estimate.value));
    if let Some((best, value)) = best {
        let (label, key) = (&choice.label, choice.configured.learner.iterations_key().unwrap_or_default());
        note = format!("{label}: {key} = {best} was best on the validation part, {metric} {value:.4}\n");
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
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}.{}{ending}", label.replace('/', "-")))
}
