//! `satf evaluate`: the past trains, the future judges.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use satf::evaluate::write_per_event;
use satf::experiment::{Choice, Cut, EarlyStopping, Protocol, RunOptions, SharedKeys};
use satf::models::{DEFAULT_MODEL, Registry};
use satf::monitor::Monitor;
use serde_json::{Map, Value, json};

use super::entrants::{Entrant, is_file};
use super::experiment::{Failure, Judged, describe};
use super::export::{self, Export};
use super::files::Files;
use super::protocol;
use super::settings::{configure, given_keys};
use crate::args::{EvaluateArguments, ModelArguments};
use crate::misuse::misuse;
use crate::options::Options;
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
    let models = to_train(arguments)?;
    let is_none = models.model.is_empty() && models.preset.is_empty();
    let choices = if is_none { Vec::new() } else { configure(&models, given, shared, registry)? };
    check(arguments, &choices)?;
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    let made = export::folder(arguments.export.as_deref())?;
    let outcome = enter(arguments, choices, registry, terminal)
        .and_then(|entrants| evaluate(arguments, &protocol, &entrants, terminal));
    if let (Err(_), Some(made)) = (&outcome, made) {
        made.remove_if_empty();
    }
    outcome.map_err(|error| terminal.explain_stop(error))
}

/// The models to train: those asked for that are no files; the default if nothing is asked for.
fn to_train(arguments: &EvaluateArguments) -> anyhow::Result<ModelArguments> {
    let mut models = arguments.models.clone();
    models.model.retain(|model| !is_file(model));
    if arguments.models.model.is_empty()
        && models.preset.is_empty()
        && arguments.lists.is_empty()
        && arguments.export.is_none()
    {
        models.model.push(DEFAULT_MODEL.to_owned());
    }
    let given = [
        ("--set", !models.set.is_empty()),
        ("--config", models.config.is_some()),
        ("--memory", models.memory.is_some()),
        ("--max-len", arguments.protocol.max_len.is_some()),
        ("--early-stopping", arguments.early_stopping.is_some()),
    ];
    if models.model.is_empty()
        && models.preset.is_empty()
        && let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given)
    {
        misuse!("{option} is for models that are trained, and none is asked for; hint: leave it out");
    }
    Ok(models)
}

/// Everything to judge, in the order asked for, lists last.
fn enter(
    arguments: &EvaluateArguments,
    choices: Vec<Choice>,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Entrant>> {
    let mut entrants = Vec::new();
    let mut choices = choices.into_iter().map(|choice| Entrant::Trained(Box::new(choice)));
    for model in &arguments.models.model {
        if is_file(model) {
            entrants.push(Entrant::saved(Path::new(model.trim()), registry)?);
        } else {
            entrants.extend(choices.next());
        }
    }
    entrants.extend(choices);
    for file in &arguments.lists {
        entrants.push(Entrant::lists(file, terminal)?);
    }
    Ok(entrants)
}

/// What is read or kept.
fn inputs(arguments: &EvaluateArguments) -> Files {
    let files = Files::of_log(&arguments.log)
        .reading("--config", arguments.models.config.as_ref())
        .keeping("--checkpoints", arguments.checkpoints.as_ref());
    let saved = arguments.models.model.iter().filter(|model| is_file(model));
    let files = saved.fold(files, |files, model| files.reading("--model", Some(model)));
    arguments.lists.iter().fold(files, |files, lists| files.reading("--lists", Some(&lists.path)))
}

/// An error if options and models do not go together.
fn check(arguments: &EvaluateArguments, choices: &[Choice]) -> anyhow::Result<()> {
    super::check_checkpoints(
        arguments.checkpoints.as_deref(),
        choices.iter().map(|choice| choice.entry.name),
    )?;
    let saved = arguments.models.model.iter().filter(|model| is_file(model));
    let saved = saved.map(|model| Path::new(model).file_name().unwrap_or_default().to_string_lossy());
    let trained = choices.iter().map(|choice| choice.label.as_str().into());
    let lists = arguments.lists.iter().map(|lists| lists.name.as_str().into());
    let mut labels = HashSet::new();
    if arguments.per_event.is_some()
        && let Some(label) = trained.chain(saved).chain(lists).find(|label| !labels.insert(label.clone()))
    {
        misuse!(
            "--per-event: the model {label} is given twice, and one file would be written twice; hint: name it once"
        );
    }
    let is_nothing_judged =
        choices.is_empty() && arguments.models.model.is_empty() && arguments.lists.is_empty();
    let judging =
        ["--per-event", "--at", "--unit", "--seen"].into_iter().find(|option| Options::is_given(option));
    if let Some(option) = judging.filter(|_| is_nothing_judged) {
        misuse!("{option}: nothing is judged; hint: leave it out, or add --model or --lists");
    }
    Ok(())
}

fn evaluate(
    arguments: &EvaluateArguments,
    protocol: &Protocol,
    entrants: &[Entrant],
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let several = entrants.len() > 1;
    let export = arguments.export.as_deref().map(Export::to);
    let mut files = inputs(arguments);
    for (path, entrant) in arguments.per_event.iter().flat_map(|path| entrants.iter().map(move |e| (path, e)))
    {
        files = files.writing("--per-event", Some(per_event_path(path, entrant.label(), several)));
    }
    export.iter().fold(files, |files, export| export.add_to(files)).check()?;

    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol::cut(protocol, &log)?;
    if let Some(export) = &export {
        export.write(&cut, terminal)?;
    }
    let options = RunOptions {
        cutoffs: arguments.at.clone(),
        unit: arguments.unit.into(),
        early_stopping: arguments
            .early_stopping
            .map(|metric| EarlyStopping { metric, patience: arguments.patience }),
    };
    let mut outcomes: Vec<Result<Judged, Failure>> = Vec::new();
    let mut reports = Vec::new();
    for entrant in entrants {
        let (outcome, mut report) = match entrant.judge(&cut, &options, terminal) {
            Ok(judged) => {
                if let Some(path) = &arguments.per_event {
                    let path = per_event_path(path, entrant.label(), several);
                    write_per_event(&path, &cut.partition, &judged.evaluation)?;
                    terminal.wrote(&path);
                }
                let report = judged.report.clone();
                (Ok(judged), report)
            }
            Err(error) => {
                if terminal.is_cancelled() || crate::is_cancelled(&error) {
                    return Err(error);
                }
                let failure = entrant.failed(error);
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
    tell(arguments, &cut, export.as_ref(), &outcomes, &reports)?;
    Failure::end(outcomes.into_iter().filter_map(Result::err).collect(), several)
}

/// Says what came of it: as JSON, or in words.
fn tell(
    arguments: &EvaluateArguments,
    cut: &Cut<'_>,
    export: Option<&Export>,
    outcomes: &[Result<Judged, Failure>],
    reports: &[Value],
) -> anyhow::Result<()> {
    if arguments.json {
        let mut printed = json!({ "runs": reports });
        if let Some(export) = export {
            printed["export"] = export.to_json(cut);
        }
        return table::print_json(&printed);
    }
    let mut text = export.map(|export| format!("{}\n", export.describe(cut))).unwrap_or_default();
    if let Some(judged) = outcomes.iter().flatten().next() {
        let counts = cut.partition.holdout.counts;
        let errors = judged.evaluation.report();
        let errors = table::error_note(errors.iter().map(|(_, estimate)| estimate));
        let notes: String = outcomes.iter().flatten().map(|judged| judged.notes.as_str()).collect();
        text.push_str(&format!(
            "{}\n{notes}{} of {} scored; {} of unknown items dropped, {} of new users unscored{}",
            describe(outcomes.iter().map(Result::as_ref)),
            table::counted(counts.scored, "event"),
            table::counted(judged.evaluation.num_users(), "user"),
            table::counted(counts.dropped_unknown_items, "row"),
            table::counted(counts.unscored_first, "first event"),
            errors.map(|note| format!("\n{note}")).unwrap_or_default(),
        ));
    }
    if text.is_empty() { Ok(()) } else { table::print(text.trim_end()) }
}

/// Adds what is the same for all models of a command.
fn describe_command(report: &mut Map<String, Value>, cut: &Cut<'_>, arguments: &EvaluateArguments) {
    report.insert("protocol".into(), json!(cut.description));
    let files = arguments.log.files.iter().map(|path| super::path_to_json(path));
    report.insert("files".into(), files.collect());
    report.insert("satf_version".into(), json!(env!("CARGO_PKG_VERSION")));
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
