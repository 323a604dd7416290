//! `satf tune`: the search for a model's best configuration.

mod report;

use std::path::{Path, PathBuf};

use anyhow::Context;
use satf::evaluate::EvaluateOptions;
use satf::experiment::{Asked, CutDescription, GivenKeys, SharedKeys};
use satf::interactions::Interactions;
use satf::models::{ModelEntry, Registry};
use satf::tune::{
    Ending, Grid, Limits, Progress, Sampler, Scoring, SearchOptions, Space, Status, Study, Trial, search,
};
use serde_json::{Value, json};

use super::files::Files;
use super::protocol;
use super::settings::{check_keys, gather, given_keys, keys_set};
use crate::args::{ModelArguments, PartArgument, SearchArguments, TuneArguments, TuneCommand};
use crate::misuse::{OnCommandLine, misuse};
use crate::signals::StopRequests;
use crate::terminal::Terminal;
use crate::{escape, table};

/// Iterations without improvement after which a training ends.
const USUAL_PATIENCE: usize = 2;

/// Trials of a random search where nothing else limits it.
const USUAL_TRIALS: usize = 30;

pub(crate) fn run(arguments: &TuneArguments, registry: &Registry, terminal: &Terminal) -> anyhow::Result<()> {
    let options = &arguments.search;
    if let Some(TuneCommand::Status { study, json }) = &arguments.command {
        keeping_study(Files::default(), "DIR", study).check_distinct()?;
        let status = Status::read(study)?;
        return if *json {
            table::print_json(&json!(status))
        } else {
            table::print(&report::status(&status, registry))
        };
    }
    match &options.study {
        Some(folder) => check_files(arguments, folder)?,
        None => inputs(arguments).check_distinct()?,
    }
    if arguments.protocol.on == PartArgument::Validation {
        misuse!(
            "--on validation: tuning is on the validation set already; the test set is scored once, at the end"
        );
    }
    let given = given_keys(&arguments.models, arguments.protocol.seed, arguments.protocol.max_len)?;
    let protocol = protocol::resolve(&arguments.protocol, &arguments.models.preset, registry)?;
    let shared = SharedKeys { memory_bytes: arguments.models.memory, ..protocol.shared_keys() };
    let asked = only_model(&arguments.models, given, shared, registry)?;
    let keys = keys_set(&arguments.models)?;
    check_keys(&asked, &keys)?;
    let Asked { entry, settings, .. } = asked;
    if let (Some(patience), None) = (options.patience, entry.iterations_key()) {
        misuse!("--patience {patience}: {} is not trained in iterations; hint: leave it out", entry.name);
    }
    let patience = options.patience.unwrap_or(USUAL_PATIENCE);
    let mut space = find_space(&entry, options.space.as_deref())?;
    for key in &keys {
        let value =
            settings.get(key).with_context(|| format!("--set {key}: the model does not have this key"));
        space.pin(key, value.on_command_line()?.clone());
    }
    for (key, value) in given.of(&entry).on_command_line()? {
        // A key that has an option of its own is held too, where a space of one's own would search for it.
        if space.dimensions().iter().any(|dimension| dimension.key == key)
            && !keys.iter().any(|set| set == key)
        {
            space.pin(key, value);
        }
    }
    space.check(&entry)?;

    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol::cut(&protocol, &log)?;
    let validation = cut.split.validation()?;
    let grid = Grid::new(&entry, &settings, &space, &validation.train, terminal)?;
    let asked = json!({
        "model": entry.name,
        "settings": settings,
        "space": space.to_json(),
        "sampler": options.sampler,
        "seed": protocol.seed,
        "metric": options.metric,
        "patience": patience,
        "trainings": grid.num_trainings(),
        "configurations": grid.num_configurations(),
        "protocol": protocol_asked(&cut.description),
        "log": describe_log(&log),
        "satf_version": env!("CARGO_PKG_VERSION"),
    });
    let limits = limits(options, &grid);
    let folder =
        options.study.clone().unwrap_or_else(|| default_folder(&arguments.log.files, &space, &asked));
    check_files(arguments, &folder)?;
    let mut study = Study::open(&folder, &asked, limits)?;
    announce(&study, &grid, limits, terminal);

    let metric = options.metric;
    let scoring = Scoring { partition: &validation, metric, patience, seen: protocol.seen };
    let search_options =
        SearchOptions { grid: &grid, scoring, sampler: options.sampler, seed: protocol.seed, limits };
    let narrate =
        |trial: &Trial, progress: Progress| terminal.narrate(&report::line(trial, progress, metric));
    search(&search_options, &mut study, terminal, &narrate)?;

    let cutoffs = vec![metric.cutoff];
    let evaluation = EvaluateOptions { cutoffs, seen: protocol.seen, ..EvaluateOptions::default() };
    let usage = Some(format!("satf evaluate LOG --model {} --config best.toml", entry.name));
    let (entry, settings, test) = (&entry, &settings, &cut.partition);
    let ending = Ending { entry, settings, metric, test, evaluation, usage };
    let keeping = terminal.keeping_checkpoints_in(study.refit_checkpoints());
    let mut warnings = Vec::new();
    let result = ending.conclude(&study, &keeping, &mut warnings);
    protocol::tell(&warnings);
    let result = json!(result?);
    terminal.wrote(&folder);
    terminal.finish();
    let status = Status::read(&folder)?;
    if arguments.json {
        let trials: Vec<Value> = status.trials.iter().map(|trial| json!(trial)).collect();
        return table::print_json(&json!({
            "study": super::path_to_json(&folder), "asked": asked, "limits": limits, "trials": trials, "result": result,
        }));
    }
    table::print(&report::result(&status, &result, &folder, registry))
}

/// The one model asked for. Where a preset of the very model is given too, the preset says it all.
fn only_model(
    arguments: &ModelArguments,
    given: GivenKeys,
    shared: SharedKeys,
    registry: &Registry,
) -> anyhow::Result<Asked> {
    let mut arguments = arguments.clone();
    if let ([model], [preset]) = (arguments.model.as_slice(), arguments.preset.as_slice())
        && registry.preset(preset.trim()).on_command_line()?.model == model.trim()
    {
        arguments.model.clear();
    }
    if arguments.model.len() + arguments.preset.len() != 1 {
        let names = [arguments.model, arguments.preset].concat().join(", ");
        misuse!("{names}: expected one model; tune them one by one");
    }
    gather(&arguments, given, shared, registry)?.pop().context("expected a model")
}

fn find_space(model: &ModelEntry, asked: Option<&Path>) -> anyhow::Result<Space> {
    match asked {
        Some(path) if is_file_of_space(path) => Ok(Space::read(path, &StopRequests)?),
        name => Space::named(model, name.map(Path::to_string_lossy).as_deref()).on_command_line(),
    }
}

/// Whether a space is meant by its file rather than by its name. Pipes have no ending of their own, such as `/dev/fd/63`.
fn is_file_of_space(asked: &Path) -> bool {
    asked.extension().is_some_and(|ending| ending == "toml") || asked.components().count() > 1
}

/// The files of a study, those of unfinished training among them.
fn keeping_study(files: Files, option: &'static str, folder: &Path) -> Files {
    let files = Study::files(folder).into_iter().fold(files, |files, path| files.keeping(option, Some(path)));
    files.keeping(option, Some(Study::all_checkpoints(folder)))
}

/// What is read.
fn inputs(arguments: &TuneArguments) -> Files {
    Files::of_log(&arguments.log)
        .reading("--config", arguments.models.config.as_ref())
        .reading("--space", arguments.search.space.as_deref().filter(|space| is_file_of_space(space)))
}

/// An error if the study would write over something that is read.
fn check_files(arguments: &TuneArguments, folder: &Path) -> anyhow::Result<()> {
    let files = inputs(arguments).keeping("--study", Some(Study::all_checkpoints(folder)));
    let written = Study::files(folder).into_iter();
    written.fold(files, |files, path| files.writing("--study", Some(path))).check_distinct()
}

fn limits(options: &SearchArguments, grid: &Grid) -> Limits {
    let unlimited = options.sampler == Sampler::Exhaustive || options.time_budget.is_some();
    let usual = if unlimited { grid.num_trainings() } else { USUAL_TRIALS };
    Limits {
        trials: options.trials.unwrap_or(usual).min(grid.num_trainings()),
        time_budget_seconds: options.time_budget,
        jobs: options.jobs,
    }
}

/// The protocol without what follows from it.
fn protocol_asked(description: &CutDescription) -> Value {
    let mut asked = json!(description).as_object().cloned().unwrap_or_default();
    asked.retain(|name, _| name != "scored_part" && name != "train");
    Value::Object(asked)
}

fn describe_log(log: &Interactions) -> Value {
    json!({
        "fingerprint": format!("{:016x}", log.fingerprint()),
        "users": log.users().len(),
        "items": log.items().len(),
        "rows": log.rows().len(),
    })
}

/// `satf-studies/amz-beauty.la-satf.paper.1f9a03`: a folder of its own for every request.
fn default_folder(files: &[PathBuf], space: &Space, asked: &Value) -> PathBuf {
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('.').next().unwrap_or("log").to_owned()
    };
    let log = files.first().map_or_else(|| "log".to_owned(), |file| stem(file));
    let space = stem(Path::new(&space.name));
    // FNV-1a: the same request has the same name, on any machine.
    let hash = asked
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let model = asked["model"].as_str().unwrap_or_default();
    Path::new("satf-studies").join(format!("{log}.{model}.{space}.{:06x}", hash >> 40))
}

fn announce(study: &Study, grid: &Grid, limits: Limits, terminal: &Terminal) {
    let done = study.trials().len();
    let gone_on = if done > 0 { format!("; {done} are done already") } else { String::new() };
    terminal.narrate(&format!(
        "{} of {} points are valid; {} trainings serve them all, up to {} are tried{gone_on}. Study: {}",
        table::count(grid.num_configurations()),
        table::count(grid.num_points()),
        table::count(grid.num_trainings()),
        table::count(limits.trials),
        escape::path(study.folder()),
    ));
}
