//! Studies in words and tables.

use std::path::Path;

use satf::evaluate::Metric;
use satf::models::Registry;
use satf::tune::{Progress, State, Status, Trial};
use serde_json::Value;

use crate::escape;
use crate::table::{self, duration};

/// Trials shown of a study.
const SHOWN: usize = 5;

/// `trial 3 (4 of 30): NDCG@10 0.0512 ± 0.0021, 12.1 s, about 5 min left`
pub(super) fn line(trial: &Trial, progress: Progress, metric: Metric) -> String {
    let outcome = match (trial.best(), &trial.error) {
        (Some(best), _) => format!("{metric} {}", value(best.value, best.stderr)),
        (None, Some(error)) => format!("failed: {error}"),
        (None, None) => "no score".to_owned(),
    };
    let left = progress.seconds_left.filter(|_| progress.done < progress.asked);
    let left = left.map(|left| format!(", about {} left", duration(left))).unwrap_or_default();
    format!(
        "trial {} ({} of {}): {outcome}, {}{left}",
        trial.trial,
        progress.done,
        progress.asked,
        duration(trial.seconds)
    )
}

/// A finished study.
pub(super) fn result(status: &Status, result: &Value, folder: &Path, registry: &Registry) -> String {
    let metric = status.asked["metric"].as_str().unwrap_or_default();
    let model = status.asked["model"].as_str().unwrap_or_default();
    let mut text = format!("{}\n\n{}\n\n", summary(status), best_trials(status, registry));
    text.push_str(&format!("Best: {}\n", keys(&result["best"]["keys"])));
    text.push_str(&format!(
        "  validation  {metric} {}\n  test        {}\n{}\n\n",
        value(result["best"]["value"].as_f64().unwrap_or_default(), result["best"]["stderr"].as_f64()),
        metrics(&result["test"]),
        error_note(status),
    ));
    let (shown, config) = (escape::path(folder), escape::path(&folder.join("best.toml")));
    text.push_str(&format!("Study: {shown}; satf evaluate LOG --model {model} --config {config}"));
    text
}

/// A study at any time.
pub(super) fn status(status: &Status, registry: &Registry) -> String {
    let state = match status.state {
        State::Running => "running",
        State::Stopped => "stopped; run its command again to continue",
        State::Finished => "finished",
    };
    let mut pairs = vec![
        ("model", text(&status.asked["model"])),
        ("space", text(&status.asked["space"]["name"])),
        ("sampler", text(&status.asked["sampler"])),
        ("state", state.to_owned()),
        ("trials", format!("{} of {}", table::count(status.done), table::count(status.limits.trials))),
        ("failed", table::count(status.failed)),
        ("time spent", duration(status.elapsed_seconds)),
    ];
    if let Some(seconds) = status.seconds_a_trial {
        pairs.push(("time per trial", duration(seconds)));
    }
    if let Some(seconds) = status.seconds_left {
        pairs.push(("time left", format!("about {}", duration(seconds))));
    }
    if let Some(best) = &status.best {
        let metric = text(&status.asked["metric"]);
        pairs.push((
            "best so far",
            format!("{metric} {} (trial {})", value(best.value, best.stderr), best.trial),
        ));
    }
    if let Some(result) = &status.result {
        pairs.push(("test", metrics(&result["test"])));
    }
    let pairs = table::of_pairs(pairs).to_string();
    if status.best.is_some() {
        format!("{pairs}\n\n{}\n{}", best_trials(status, registry), error_note(status))
    } else {
        pairs
    }
}

/// What ± means. A study that an earlier release began may have errors of both kinds.
fn error_note(status: &Status) -> String {
    let units = || status.trials.iter().filter_map(Trial::best).map(|score| score.unit);
    match units().next() {
        Some(first) if units().all(|unit| unit == first) => {
            format!("± is one standard error, {}", table::unit_words(first))
        }
        _ => "± is one standard error, clustered by user; in trials of an earlier release as if all events were independent"
            .to_owned(),
    }
}

fn summary(status: &Status) -> String {
    let configurations: usize = status.trials.iter().map(|trial| trial.scores.len()).sum();
    let failed = if status.failed > 0 { format!(", {} failed", status.failed) } else { String::new() };
    format!(
        "{} on the validation set: {}{failed}, {} scored in {} ({} per trial); the space {} has {}",
        text(&status.asked["metric"]),
        table::counted(status.done, "trial"),
        table::counted(configurations, "configuration"),
        duration(status.elapsed_seconds),
        duration(status.seconds_a_trial.unwrap_or_default()),
        text(&status.asked["space"]["name"]),
        table::counted(status.asked["trainings"].as_u64().unwrap_or_default() as usize, "training"),
    )
}

/// The best trials with the best configuration of each, and only the keys in which they differ.
fn best_trials(status: &Status, registry: &Registry) -> String {
    let model = registry.find(status.asked["model"].as_str().unwrap_or_default()).ok();
    let iterations_key = model.and_then(|model| model.iterations_key());
    let mut best: Vec<_> = status.trials.iter().filter_map(|trial| Some((trial, trial.best()?))).collect();
    best.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    best.truncate(SHOWN);
    let all: Vec<_> =
        best.iter().map(|(trial, score)| trial.keys.iter().chain(&score.keys).collect::<Vec<_>>()).collect();
    let value_of = |keys: &[(&String, &Value)], name: &str| {
        let found = keys.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| text(value)).unwrap_or_default()
    };
    let differs = |name: &str| all.iter().any(|keys| value_of(keys, name) != value_of(&all[0], name));
    let names: Vec<&str> = all.first().map_or_else(Vec::new, |keys| {
        let names = keys.iter().map(|(key, _)| key.as_str());
        names.filter(|name| iterations_key == Some(name) || all.len() == 1 || differs(name)).collect()
    });
    let metric = text(&status.asked["metric"]);
    let mut header = vec!["trial", metric.as_str()];
    header.extend(&names);
    header.push("time");
    let mut shown = table::with_header(&header);
    for ((trial, score), keys) in best.iter().zip(&all) {
        let mut row = vec![trial.trial.to_string(), value(score.value, score.stderr)];
        row.extend(names.iter().map(|name| value_of(keys, name)));
        row.push(duration(trial.seconds));
        shown.add_row(row);
    }
    shown.to_string()
}

fn keys(keys: &Value) -> String {
    let pairs = keys.as_object().into_iter().flatten();
    pairs.map(|(key, value)| format!("{key} = {}", text(value))).collect::<Vec<_>>().join(", ")
}

fn metrics(test: &Value) -> String {
    let metrics = test.as_object().into_iter().flatten();
    let shown = metrics.map(|(name, estimate)| {
        let number = estimate["value"].as_f64().unwrap_or_default();
        format!("{name} {}", value(number, estimate["stderr"].as_f64()))
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn value(value: f64, stderr: Option<f64>) -> String {
    stderr.map_or_else(|| format!("{value:.4}"), |stderr| format!("{value:.4} ± {stderr:.4}"))
}
