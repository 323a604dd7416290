//! `satf train`: a model that is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use satf::evaluate::{EvaluateOptions, Measure, Metric, evaluate};
use satf::experiment::{
    Choice, GivenKeys, Recorder, SharedKeys, Validated, Validation, Warning, fit_with_validation,
};
use satf::interactions::Interactions;
use satf::model_file;
use satf::models::{DEFAULT_MODEL, Quantization, Registry, UserData};
use satf::monitor::{Monitor, check_cancelled};
use satf::prepare::{Histories, Offset, Partition, Split, SplitScheme, Statistics, TiePolicy, Timeline};
use satf::recommend::Model;
use serde_json::{Value, json};

use super::files::Files;
use super::inspect::{held_of_users, is_rehearsed, settled, short};
use super::settings::{configure, given_keys};
use super::statistics::{
    Output, joined, load_with_statistics, lock, plan_of_update, read_options_of, warn_of_rows_again,
};
use crate::args::{ModelArguments, TrainArguments};
use crate::misuse::{Misuse, OnCommandLine, misuse};
use crate::options::Options;
use crate::terminal::Terminal;
use crate::{escape, table};

/// What early stopping looks at.
const METRIC: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

/// Iterations without improvement after which it ends.
const PATIENCE: usize = 3;

/// What is trained and how, whether the command line says so or the model that is updated.
pub(super) struct Plan {
    pub(super) choice: Choice,
    pub(super) ties: TiePolicy,
    pub(super) seed: u64,
    pub(super) quantize: Quantization,
    pub(super) with_statistics: bool,
}

/// The newest part of a log: whether it is left out, and whether the model is measured on it first.
#[derive(Clone, Copy, Default)]
pub(super) struct Newest {
    leave_out: Option<Offset>,
    validate: Option<Offset>,
    patience: Option<usize>,
}

pub(crate) fn run(
    arguments: &TrainArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let given = given_keys(&asked(arguments, Vec::new()), arguments.seed, arguments.max_len)?;
    if let Some(model) = &arguments.update {
        return update(arguments, given, model, registry, terminal);
    }
    let output = arguments.output.as_deref().context("--output FILE is missing")?;
    files(arguments).writing("--output", Some(output)).check_distinct()?;
    let preset = arguments.preset.as_deref().map(|name| registry.preset(name.trim()));
    let preset = preset.transpose().on_command_line()?;
    let protocol = preset.map(|preset| preset.protocol);
    let ties = arguments.ties.or(protocol.map(|protocol| protocol.ties)).unwrap_or_default();
    if arguments.with_statistics && ties == TiePolicy::File {
        misuse!(
            "--with-statistics: the order of events with equal times must follow from the events themselves, or none could be added or \
             forgotten, and {} takes it from the file; hint: add --ties shuffle",
            if arguments.ties.is_some() { "--ties file" } else { "the preset" }
        );
    }
    let choice = choose(arguments, given, protocol.map(|protocol| protocol.max_len), registry)?;
    let quantize = arguments.quantize.unwrap_or_default();
    if quantize != Quantization::None
        && let Some(reason) = choice.configured.learner.never_quantized()
    {
        misuse!("--quantize {}: {} cannot be quantized: {reason}", quantize.name(), choice.label);
    }
    check_training(arguments, &choice)?;
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    let seed = arguments.seed.unwrap_or_default();
    let plan = Plan { choice, ties, seed, quantize, with_statistics: arguments.with_statistics };
    let work = || {
        files(arguments).writing("--output", Some(output)).check()?;
        let (log, _) = super::read(&arguments.log, terminal)?;
        let trained = learn(log, plan, newest(arguments), terminal)?;
        let _lock = lock(output, terminal)?;
        trained.write(output, terminal)?;
        trained.report(output, arguments.json, json!({}), "")
    };
    work().map_err(|error| terminal.explain_stop(error))
}

/// Adds a log to a model.
fn update(
    arguments: &TrainArguments,
    given: GivenKeys,
    path: &Path,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if arguments.model.is_some() {
        check_training(arguments, &choose(arguments, given, None, registry)?)?;
    }
    let output = Output::new("--update", path, arguments.output.as_deref())?;
    let files = || output.add_to(files(arguments));
    files().check_distinct()?;
    let _lock = output.lock(terminal)?;
    let model = load_with_statistics(path, registry)?;
    // Which model it is, and with which keys, only its file tells.
    let plan = plan_of_update(arguments, &model, registry).map_err(Misuse::told_by_a_file)?;
    check_training(arguments, &plan.choice).map_err(Misuse::told_by_a_file)?;
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    let work = || {
        files().check()?;
        let before = model.log().with_context(|| escape::path(path))?;
        let options = read_options_of(arguments.log.read_options(), &before);
        let (new, _) = super::read_as(&arguments.log, &options, terminal)?;
        let log = joined(&before, &new)?;
        let (rows_before, rows_added) = (before.len(), new.len());
        drop((before, new));
        let rows_again = log.rows_repeated_from(rows_before);
        warn_of_rows_again(&log, rows_again, rows_added, output.is_in_place());
        let trained = learn(log, plan, newest(arguments), terminal)?;
        let _lock = output.lock_to_write(terminal)?;
        output.check_unchanged(&model)?;
        trained.write(output.path(), terminal)?;
        let told =
            json!({ "rows_before": rows_before, "rows_added": rows_added, "rows_already_there": rows_again });
        let (added, before) = (table::counted(rows_added, "row"), table::count(rows_before));
        trained.report(output.path(), arguments.json, told, &format!("added {added} to {before}\n"))
    };
    work().map_err(|error| terminal.explain_stop(error))
}

fn newest(arguments: &TrainArguments) -> Newest {
    let &TrainArguments { leave_out, validate, patience, .. } = arguments;
    Newest { leave_out, validate, patience }
}

/// An error if an option means nothing to this model.
fn check_training(arguments: &TrainArguments, choice: &Choice) -> anyhow::Result<()> {
    if let (Some(patience), None) = (arguments.patience, choice.entry.iterations_key()) {
        misuse!("--patience {patience}: {} is not trained in iterations; hint: leave it out", choice.label);
    }
    let keeps = arguments.with_statistics || arguments.update.is_some();
    if let (true, Some(offset), Some(key)) = (keeps, arguments.validate, choice.entry.iterations_key()) {
        misuse!(
            "--validate {offset}: {} would find {key} on it, and a model with statistics is trained again with the keys it was given; hint: \
             find {key} first, and give it with --set",
            choice.label
        );
    }
    super::check_checkpoints(arguments.checkpoints.as_deref(), std::iter::once(choice.entry.name))
}

/// A model that was trained, and how long it took.
pub(super) struct Trained {
    model: Model,
    seconds: f64,
    /// Whether it is another model than its file holds.
    is_new: bool,
}

/// Learns from a log, whose rows are not kept beside the histories.
pub(super) fn learn(
    log: Interactions,
    mut plan: Plan,
    newest: Newest,
    terminal: &Terminal,
) -> anyhow::Result<Trained> {
    let scheme = match (newest.validate, newest.leave_out) {
        (None, None) => None,
        (Some(valid), Some(test)) => Some(SplitScheme::Calendar { valid, test }),
        (Some(test), None) | (None, Some(test)) => Some(SplitScheme::Holdout { test }),
    };
    let Learned { histories, statistics, validation } = match scheme {
        None => whole(log, plan.ties, plan.seed),
        Some(scheme) => cut(&log, scheme, &mut plan, newest, terminal)?,
    };
    let Plan { choice, ties, seed, quantize, with_statistics } = plan;
    let start = Instant::now();
    terminal.begin(&choice.label, 0);
    let recorder = Recorder::new(terminal);
    let mut model = Model::train(&choice.configured, &histories, &recorder)?;
    check_cancelled(terminal)?;
    let seconds = recorder.finish().earlier_seconds + start.elapsed().as_secs_f64();
    model.set_dataset(seed, |dataset| {
        dataset.ties = Some(ties);
        dataset.left_out = newest.leave_out.map(|offset| offset.to_string());
        dataset.statistics = Some(statistics);
    });
    if let Some(validation) = validation {
        model.set_validation(validation);
    }
    if quantize != Quantization::None {
        model.quantize(quantize)?;
        if newest.validate.is_none() && Options::running().have(&["--quantize", "--validate"]) {
            tracing::warn!("what --quantize {} costs is measured with --validate", quantize.name());
        }
    }
    if with_statistics {
        model.keep_statistics(histories);
    }
    Ok(Trained { model, seconds, is_new: true })
}

impl Trained {
    /// A model that is what it should be already.
    pub(super) fn unchanged(model: Model) -> Self {
        Trained { model, seconds: 0.0, is_new: false }
    }

    /// Writes the model and says what its file holds about users.
    pub(super) fn write(&self, output: &Path, terminal: &Terminal) -> anyhow::Result<()> {
        check_cancelled(terminal)?;
        self.model.save(output)?;
        terminal.wrote(output);
        terminal.finish();
        warn_of_user_data(&self.model);
        Ok(())
    }

    /// Says what was trained, after what else there is to tell: as JSON, or in words.
    pub(super) fn report(&self, output: &Path, json: bool, more: Value, words: &str) -> anyhow::Result<()> {
        let Trained { model, seconds, is_new } = self;
        let bytes = fs::metadata(output)?.len();
        if json {
            let mut report = json!({
                "output": super::path_to_json(output),
                "bytes": bytes,
                "manifest": model.manifest(),
                "user_data": model.user_data(),
                "train_seconds": seconds,
            });
            if let (Some(report), Value::Object(more)) = (report.as_object_mut(), more) {
                report.extend(more);
            }
            return table::print_json(&report);
        }
        if *is_new {
            tracing::info!("trained in {seconds:.2} s");
        }
        let (file, size) = (escape::path(output), table::bytes(bytes));
        let ending = if *is_new { format!("written to {file}") } else { format!("{file} is left as it is") };
        table::print(&format!("{words}{}\n{ending} ({size})", describe(model)))
    }
}

/// What a model learns from, and what is known of it.
struct Learned {
    histories: Histories,
    /// Of the whole log.
    statistics: Statistics,
    validation: Option<model_file::Validation>,
}

/// The whole log, whose rows are not kept beside the histories.
fn whole(log: Interactions, ties: TiePolicy, seed: u64) -> Learned {
    let (histories, tied_rows) = Histories::of_whole_log(log, ties, seed);
    super::protocol::tell(Warning::of_tied_rows(tied_rows, histories.num_rows(), ties).as_slice());
    let statistics = Statistics::of_histories(&histories);
    Learned { histories, statistics, validation: None }
}

/// The part of a log that is not left out, after the model was validated if that is wanted.
fn cut(
    log: &Interactions,
    scheme: SplitScheme,
    plan: &mut Plan,
    newest: Newest,
    terminal: &Terminal,
) -> anyhow::Result<Learned> {
    let timeline = Timeline::new(log, plan.ties, plan.seed);
    super::protocol::tell(Warning::of_ties(&timeline).as_slice());
    let split = Split::new(timeline.clone(), scheme)?;
    let validation = match newest.validate {
        Some(offset) => {
            let is_last = newest.leave_out.is_none();
            let partition = if is_last { split.test() } else { split.validation() };
            let partition = partition.with_context(|| format!("--validate {offset}"))?;
            Some(validate(&mut plan.choice, &partition, offset, newest.patience, plan.quantize, terminal)?)
        }
        None => None,
    };
    let histories = match newest.leave_out {
        Some(offset) => split.test().with_context(|| format!("--leave-out {offset}"))?.train,
        None => timeline.histories(),
    };
    Ok(Learned { histories, statistics: Statistics::of(log), validation })
}

fn files(arguments: &TrainArguments) -> Files {
    Files::of_log(&arguments.log)
        .reading("--config", arguments.config.as_ref())
        .keeping("--checkpoints", arguments.checkpoints.as_ref())
}

fn choose(
    arguments: &TrainArguments,
    given: GivenKeys,
    max_len: Option<usize>,
    registry: &Registry,
) -> anyhow::Result<Choice> {
    let model = match (&arguments.model, &arguments.preset) {
        (Some(model), _) => vec![model.clone()],
        (None, None) => vec![DEFAULT_MODEL.to_owned()],
        (None, Some(_)) => Vec::new(),
    };
    let asked = asked(arguments, model);
    let shared = SharedKeys {
        seed: arguments.seed.unwrap_or_default(),
        max_len: arguments.max_len.or(max_len),
        memory_bytes: arguments.memory,
    };
    configure(&asked, given, shared, registry)?.pop().context("one model to train")
}

/// The keys that are given for a model.
pub(super) fn asked(arguments: &TrainArguments, model: Vec<String>) -> ModelArguments {
    ModelArguments {
        model,
        preset: arguments.preset.iter().cloned().collect(),
        config: arguments.config.clone(),
        set: arguments.set.clone(),
        memory: arguments.memory,
    }
}

/// Trains without the newest part, keeps the best number of iterations for the model that follows, and says how good
/// it is there.
fn validate(
    choice: &mut Choice,
    partition: &Partition,
    offset: Offset,
    patience: Option<usize>,
    quantize: Quantization,
    terminal: &Terminal,
) -> anyhow::Result<model_file::Validation> {
    terminal.begin("validating", 0);
    let validation = Validation::new(partition, METRIC, patience.unwrap_or(PATIENCE));
    let Validated { curve, best, model, mut evaluation } =
        fit_with_validation(&*choice.configured.learner, &validation, terminal)?;
    if let Some((best, _)) = best {
        super::protocol::tell(choice.last_was_best(best).as_slice());
        *choice = choice.with_iterations(best)?;
    }
    if quantize != Quantization::None {
        let name = quantize.name();
        let quantized = model
            .quantized(quantize)
            .map_err(|reason| anyhow::anyhow!("--quantize {name}: {}: {reason}", choice.entry.name))?;
        let single = evaluation.estimate(METRIC).value;
        let (options, items) = (EvaluateOptions::default(), partition.train.num_items());
        evaluation = evaluate(&*quantized, &partition.holdout, items, &options, terminal)?;
        let rounded = evaluation.estimate(METRIC).value;
        terminal.say(&format!(
            "{METRIC} on the newest {offset}: {single:.4} in single precision, {rounded:.4} in {name} ({:+.4})",
            rounded - single
        ));
    }
    Ok(model_file::Validation {
        held_back: offset.to_string(),
        events: evaluation.counts.scored,
        metrics: evaluation.report().into_iter().collect::<BTreeMap<_, _>>(),
        curve: curve.into_iter().map(|(_, estimate)| estimate).collect(),
        best_iteration: best.map(|(best, _)| best),
    })
}

/// A file with more than sums in it wants to be guarded like the log.
fn warn_of_user_data(model: &Model) {
    match model.user_data() {
        UserData::None => {}
        UserData::Histories { .. } => tracing::warn!(
            "the file holds {}: anyone who knows part of a history can find the rest of it, so guard the file like the log; \
             other models keep nothing but sums over all users",
            held_of_users(model)
        ),
        UserData::Events { .. } => tracing::warn!(
            "the file holds {}, so guard it like the log{}",
            held_of_users(model),
            if Options::running().has("--with-statistics") {
                "; without --with-statistics it would not"
            } else {
                ""
            }
        ),
    }
}

/// What the log told of keys that were left to it.
fn describe_learned(model: &Model) -> Option<String> {
    let manifest = model.manifest();
    let keys = settled(model).into_iter().filter(|(name, _)| manifest.configuration.get(name).is_some());
    let keys: Vec<String> =
        keys.filter_map(|(name, value)| Some(format!("{name} {}", short(value?)))).collect();
    if keys.is_empty() {
        return None;
    }
    let source = if is_rehearsed(model) {
        "from the log"
    } else {
        "by default, because the log is too small to learn from"
    };
    Some(format!("{source}: {}", keys.join(", ")))
}

fn describe(model: &Model) -> String {
    let manifest = model.manifest();
    let dataset = &manifest.dataset;
    let mut text = format!(
        "{} learned from {} of {} and {}",
        manifest.model,
        table::counted(dataset.rows, "row"),
        table::counted(dataset.users, "user"),
        table::counted(dataset.items, "item"),
    );
    if let Some(learned) = describe_learned(model) {
        text.push_str(&format!("\n{learned}"));
    }
    if let Some(validation) = &manifest.validation {
        text.push_str(&format!(
            "\nbefore that, without the newest {}, it predicted {} there:\n",
            validation.held_back,
            table::counted(validation.events, "event")
        ));
        for (metric, estimate) in &validation.metrics {
            text.push_str(&format!("  {metric} {}\n", table::estimate(estimate)));
        }
        if let Some(note) = table::error_note(validation.metrics.values()) {
            text.push_str(&format!("{note}\n"));
        }
        if let Some(best) = validation.best_iteration {
            text.push_str(&format!("best after iteration {best}, so trained for as many"));
        }
    }
    text
}
