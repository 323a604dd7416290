//! `satf inspect`: what is in a model file.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use satf::data::write_atomically;
use satf::models::{Registry, UserData};
use satf::recommend::Model;
use satf_report::charts::{self, HAS_PNG, Theme};
use serde_json::{Value, json};

use super::files::Files;
use crate::args::InspectArguments;
use crate::misuse::misuse;
use crate::terminal::Terminal;
use crate::{escape, table};

pub(crate) fn run(
    arguments: &InspectArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    Files::default()
        .reading("MODEL", Some(&arguments.model))
        .writing("--svg", arguments.svg.as_ref())
        .writing("--png", arguments.png.as_ref())
        .check()?;
    if arguments.png.is_some() && !HAS_PNG {
        misuse!(
            "--png: this satf was built without PNG; hint: --svg works in every build, or build satf with its feature png"
        );
    }
    let model = super::load(&arguments.model, registry)?;
    model.check_statistics().with_context(|| escape::path(&arguments.model))?;
    let tensors = model.tensors();
    let bytes = fs::metadata(&arguments.model)?.len();
    let weights = model.recommender().lag_weights();
    terminal.finish();
    let pictures = draw(arguments, &model.manifest().model, weights)?;
    for path in &pictures {
        terminal.wrote(path);
    }
    if arguments.json {
        let tensors: Vec<Value> = tensors
            .iter()
            .map(|tensor| {
                json!({
                    "name": tensor.name, "type": tensor.kind.name(), "shape": tensor.shape,
                    "bytes": tensor.num_bytes(),
                })
            })
            .collect();
        return table::print_json(&json!({
            "file": super::path_to_json(&arguments.model), "bytes": bytes, "manifest": model.manifest(), "tensors": tensors,
            "lag_weights": weights, "learned": model.learned(), "user_data": model.user_data(),
        }));
    }
    let mut text = describe(&model, bytes);
    let mut shown = table::with_header(&["tensor", "type", "shape", "size"]);
    for tensor in &tensors {
        let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
        let size = table::bytes(tensor.num_bytes() as u64);
        shown.add_row([tensor.name.to_owned(), tensor.kind.name().to_owned(), shape.join(" x "), size]);
    }
    text.push_str(&format!("\n\n{shown}\n"));
    match weights {
        Some(weights) => text.push_str(&format!(
            "\nWeight of an item by its lag (0 = newest):\n\n{}",
            charts::attention_bars(weights)
        )),
        None => text.push_str("\nThis model learns no weights by lag."),
    }
    for (at, path) in pictures.iter().enumerate() {
        let gap = if at == 0 { "\n\n" } else { "\n" };
        text.push_str(&format!("{gap}written to {}", escape::path(path)));
    }
    table::print(&text)
}

/// Pixels per unit of a chart: sharp on paper and on screens with small pixels.
const PIXELS_PER_UNIT: f32 = 2.0;

/// Writes the attention curve to the files asked for.
fn draw<'a>(
    arguments: &'a InspectArguments,
    model: &str,
    weights: Option<&[f64]>,
) -> anyhow::Result<Vec<&'a Path>> {
    let mut written = Vec::new();
    for (option, path) in [("--svg", &arguments.svg), ("--png", &arguments.png)] {
        let Some(path) = path else { continue };
        let weights = weights.with_context(|| {
            format!("{option}: {model} learns no weights by lag; d-satf, ga-satf and la-satf do")
        })?;
        let svg = charts::attention_curve(model, weights).svg(Theme::Alone);
        let picture = if option == "--png" { charts::png(&svg, PIXELS_PER_UNIT)? } else { svg.into_bytes() };
        write_atomically(path, |file| file.write_all(&picture))
            .with_context(|| format!("cannot write {}", escape::path(path)))?;
        written.push(path.as_path());
    }
    Ok(written)
}

fn describe(model: &Model, bytes: u64) -> String {
    let manifest = model.manifest();
    let dataset = &manifest.dataset;
    let mut pairs = vec![
        ("model", manifest.model.clone()),
        ("trained by", format!("satf {}", manifest.satf_version)),
        ("size", table::bytes(bytes)),
        ("item factors", manifest.quantization.name().replace("none", "single precision")),
        ("users", table::count(dataset.users)),
        ("items", table::count(dataset.items)),
        ("rows", table::count(dataset.rows)),
        ("holds about users", held_of_users(model)),
    ];
    if let Some(statistics) = &dataset.statistics {
        let times = statistics.first_time.as_ref().zip(statistics.last_time.as_ref());
        let none = || "none, rows were in order".to_owned();
        pairs.push(("times", times.map_or_else(none, |(first, last)| format!("{first} to {last}"))));
    }
    if let Some(left_out) = &dataset.left_out {
        pairs.push(("left out", format!("the newest {left_out}")));
    }
    if let Some(ties) = dataset.ties {
        pairs.push(("ties", json!(ties).as_str().unwrap_or_default().to_owned()));
    }
    if let Some(seed) = manifest.seed {
        pairs.push(("seed", seed.to_string()));
    }
    pairs.push(("content", dataset.content_hash.chars().take(16).collect()));
    if let Some(validation) = &manifest.validation {
        pairs.push((
            "validated on",
            format!("{} of {}", table::counted(validation.events, "event"), validation.held_back),
        ));
        if let Some(best) = validation.best_iteration {
            pairs.push(("best iteration", best.to_string()));
        }
    }
    let mut rows: Vec<(String, String)> =
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(validation) = &manifest.validation {
        rows.extend(validation.metrics.iter().map(|(name, value)| (name.clone(), table::estimate(value))));
        rows.extend(table::error_note(validation.metrics.values()).map(|note| (String::new(), note)));
    }
    if let Some(keys) = manifest.configuration.as_object() {
        let set = keys.iter().filter(|(_, value)| !value.is_null());
        rows.extend(set.map(|(key, value)| (key.clone(), value.to_string())));
    }
    let is_rehearsed = is_rehearsed(model);
    rows.extend(settled(model).into_iter().map(|(name, value)| {
        // Keys that were left to a log which could not tell are what they are by default; what was measured is what it is.
        let is_default = !is_rehearsed && manifest.configuration.get(&name).is_some_and(Value::is_null);
        let value = match value {
            Some(value) if name == REHEARSED => short(value),
            Some(value) if is_default => format!("{} (default)", short(value)),
            Some(value) => format!("{} (learned)", short(value)),
            None => format!("learned; satf {} did not keep the value", manifest.satf_version),
        };
        (name, value)
    }));
    table::of_pairs(rows).to_string()
}

/// What a model calls the number of events from which it learned keys that were left to the log.
const REHEARSED: &str = "rehearsed_events";

/// Whether the log was large enough for keys that were left to it.
pub(super) fn is_rehearsed(model: &Model) -> bool {
    model.manifest().learned.get(REHEARSED).is_none_or(|events| *events > 0.0)
}

/// What training found that the configuration does not say already.
pub(super) fn settled(model: &Model) -> Vec<(String, Option<f64>)> {
    let configuration = &model.manifest().configuration;
    let says = |name: &str, value: Option<f64>| value.is_some() && configuration[name].as_f64() == value;
    model.learned().into_iter().filter(|(name, value)| !says(name, *value)).collect()
}

/// At most four digits after the point.
pub(super) fn short(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

/// What a file holds of single users, in words.
pub(super) fn held_of_users(model: &Model) -> String {
    match model.user_data() {
        UserData::None => "nothing: sums over all users".to_owned(),
        UserData::Histories { histories } => format!(
            "the items of {}, without user ids, times and order",
            table::counted(histories, "whole history")
        ),
        UserData::Events { users, events } => {
            let statistics = model.manifest().dataset.statistics.as_ref();
            let has_times = statistics.is_none_or(|statistics| statistics.first_time.is_some());
            format!(
                "the log itself: {} of {}, with ids and {}",
                table::counted(events, "event"),
                table::counted(users, "user"),
                if has_times { "times" } else { "their order, without times" }
            )
        }
    }
}
