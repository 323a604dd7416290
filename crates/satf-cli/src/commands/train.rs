//! `satf train`: a model that is kept.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use anyhow::Context;
use satf::evaluate::{EvaluateOptions, Measure, Metric, evaluate};
use satf::experiment::{Choice, Recorder, SharedKeys, Validated, Validation, Warning, fit_with_validation};
use satf::interactions::Interactions;
use satf::model_file;
use satf::models::{DEFAULT_MODEL, Quantization, Registry, UserData};
use satf::monitor::{Monitor, check_cancelled};
use satf::prepare::{Histories, Offset, Partition, Split, SplitScheme, Statistics, TiePolicy, Timeline};
use satf::recommend::Model;
use serde_json::json;

use super::files::Files;
use super::inspect::{held_of_users, is_rehearsed, settled, short};
use super::settings::configure;
use crate::args::{ModelArguments, TrainArguments};
use crate::misuse::{OnCommandLine, misuse};
use crate::terminal::Terminal;
use crate::{escape, table};

/// What early stopping looks at.
const METRIC: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

/// Iterations without improvement after which it ends.
const PATIENCE: usize = 3;

pub(crate) fn run(
    arguments: &TrainArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    files(arguments).check_distinct()?;
    let preset = arguments.preset.as_deref().map(|name| registry.preset(name.trim()));
    let preset = preset.transpose().on_command_line()?;
    let protocol = preset.map(|preset| preset.protocol);
    let ties = arguments.ties.or(protocol.map(|protocol| protocol.ties)).unwrap_or_default();
    let choice = choose(arguments, protocol.map(|protocol| protocol.max_len), registry)?;
    if arguments.quantize != Quantization::None
        && let Some(reason) = choice.configured.learner.never_quantized()
    {
        misuse!("--quantize {}: {} cannot be quantized: {reason}", arguments.quantize.name(), choice.label);
    }
    if let (Some(patience), None) = (arguments.patience, choice.entry.iterations_key()) {
        misuse!("--patience {patience}: {} is not trained in iterations; hint: leave it out", choice.label);
    }
    super::check_checkpoints(arguments.checkpoints.as_deref(), std::iter::once(choice.entry.name))?;
    let terminal = &terminal.with_checkpoints(arguments.checkpoints.as_deref())?;
    train(arguments, choice, ties, terminal).map_err(|error| terminal.explain_stop(error))
}

fn train(
    arguments: &TrainArguments,
    mut choice: Choice,
    ties: TiePolicy,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    files(arguments).check()?;
    let (log, _) = super::read(&arguments.log, terminal)?;
    let scheme = match (arguments.validate, arguments.leave_out) {
        (None, None) => None,
        (Some(valid), Some(test)) => Some(SplitScheme::Calendar { valid, test }),
        (Some(test), None) | (None, Some(test)) => Some(SplitScheme::Holdout { test }),
    };
    let Learned { histories, statistics, validation } = match scheme {
        None => whole(log, ties, arguments.seed),
        Some(scheme) => cut(&log, scheme, &mut choice, ties, arguments, terminal)?,
    };
    let start = Instant::now();
    terminal.begin(&choice.label, 0);
    let recorder = Recorder::new(terminal);
    let mut model = Model::train(&choice.configured, &histories, &recorder)?;
    check_cancelled(terminal)?;
    let seconds = recorder.finish().earlier_seconds + start.elapsed().as_secs_f64();
    model.set_dataset(arguments.seed, |dataset| {
        dataset.ties = Some(ties);
        dataset.left_out = arguments.leave_out.map(|offset| offset.to_string());
        dataset.statistics = Some(statistics);
    });
    if let Some(validation) = validation {
        model.set_validation(validation);
    }
    if arguments.quantize != Quantization::None {
        model.quantize(arguments.quantize)?;
        if arguments.validate.is_none() {
            tracing::warn!("what --quantize {} costs is measured with --validate", arguments.quantize.name());
        }
    }
    model.save(&arguments.output)?;
    terminal.wrote(&arguments.output);
    terminal.finish();
    warn_of_user_data(&model);
    let bytes = fs::metadata(&arguments.output)?.len();
    if arguments.json {
        return table::print_json(&json!({
            "output": super::path_to_json(&arguments.output),
            "bytes": bytes,
            "manifest": model.manifest(),
            "user_data": model.recommender().user_data(),
            "train_seconds": seconds,
        }));
    }
    tracing::info!("trained in {seconds:.2} s");
    table::print(&describe(&model, arguments, bytes))
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
    choice: &mut Choice,
    ties: TiePolicy,
    arguments: &TrainArguments,
    terminal: &Terminal,
) -> anyhow::Result<Learned> {
    let timeline = Timeline::new(log, ties, arguments.seed);
    super::protocol::tell(Warning::of_ties(&timeline).as_slice());
    let split = Split::new(timeline.clone(), scheme)?;
    let validation = match arguments.validate {
        Some(offset) => {
            let is_last = arguments.leave_out.is_none();
            let partition = if is_last { split.test() } else { split.validation() };
            let partition = partition.with_context(|| format!("--validate {offset}"))?;
            Some(validate(choice, &partition, offset, arguments, terminal)?)
        }
        None => None,
    };
    let histories = match arguments.leave_out {
        Some(offset) => split.test().with_context(|| format!("--leave-out {offset}"))?.train,
        None => timeline.histories(),
    };
    Ok(Learned { histories, statistics: Statistics::of(log), validation })
}

fn files(arguments: &TrainArguments) -> Files {
    Files::of_log(&arguments.log)
        .reading("--config", arguments.config.as_ref())
        .writing("--output", Some(&arguments.output))
        .keeping("--checkpoints", arguments.checkpoints.as_ref())
}

fn choose(arguments: &TrainArguments, max_len: Option<usize>, registry: &Registry) -> anyhow::Result<Choice> {
    let model = match (&arguments.model, &arguments.preset) {
        (Some(model), _) => vec![model.clone()],
        (None, None) => vec![DEFAULT_MODEL.to_owned()],
        (None, Some(_)) => Vec::new(),
    };
    let asked = ModelArguments {
        model,
        preset: arguments.preset.iter().cloned().collect(),
        config: arguments.config.clone(),
        set: arguments.set.clone(),
        memory: arguments.memory,
    };
    let shared = SharedKeys {
        seed: arguments.seed,
        max_len: arguments.max_len.or(max_len),
        memory_bytes: arguments.memory,
    };
    configure(&asked, shared, registry)?.pop().context("one model to train")
}

/// Trains without the newest part, keeps the best number of iterations for the model that follows, and says how good
/// it is there.
fn validate(
    choice: &mut Choice,
    partition: &Partition,
    offset: Offset,
    arguments: &TrainArguments,
    terminal: &Terminal,
) -> anyhow::Result<model_file::Validation> {
    terminal.begin("validating", 0);
    let validation = Validation::new(partition, METRIC, arguments.patience.unwrap_or(PATIENCE));
    let Validated { curve, best, model, mut evaluation } =
        fit_with_validation(&*choice.configured.learner, &validation, terminal)?;
    if let Some((best, _)) = best {
        super::protocol::tell(choice.last_was_best(best).as_slice());
        *choice = choice.with_iterations(best)?;
    }
    if arguments.quantize != Quantization::None {
        let name = arguments.quantize.name();
        let quantized = model
            .quantized(arguments.quantize)
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
    let user_data = model.recommender().user_data();
    if user_data != UserData::None {
        tracing::warn!(
            "the file holds {}: anyone who knows part of a history can find the rest of it, so guard the file like the log; \
             other models keep nothing but sums over all users",
            held_of_users(user_data)
        );
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

fn describe(model: &Model, arguments: &TrainArguments, bytes: u64) -> String {
    let manifest = model.manifest();
    let dataset = &manifest.dataset;
    let mut text = format!(
        "{} learned from {} rows of {} users and {} items",
        manifest.model,
        table::count(dataset.rows),
        table::count(dataset.users),
        table::count(dataset.items),
    );
    if let Some(learned) = describe_learned(model) {
        text.push_str(&format!("\n{learned}"));
    }
    if let Some(validation) = &manifest.validation {
        text.push_str(&format!(
            "\nbefore that, without the newest {}, it predicted {} events there:\n",
            validation.held_back,
            table::count(validation.events)
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
    text.push_str(&format!("\nwritten to {} ({})", escape::path(&arguments.output), table::bytes(bytes)));
    text
}
