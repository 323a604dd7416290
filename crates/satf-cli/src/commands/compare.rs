//! `satf compare`: are two evaluations really different?

use std::path::Path;

use satf::evaluate::{CompareOptions, Difference, Metric, PerEvent, ResampleUnit, compare};
use satf::monitor::Cancelled;
use serde_json::{Map, Value, json};

use super::files::Files;
use super::path_to_json;
use crate::args::CompareArguments;
use crate::terminal::Terminal;
use crate::{escape, table};

pub(crate) fn run(arguments: &CompareArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let Some((base_path, others)) = arguments.files.split_first() else {
        anyhow::bail!("give two files or more");
    };
    let options = CompareOptions { draws: arguments.draws, seed: arguments.seed };
    let unit: ResampleUnit = arguments.unit.into();
    let read = |path: &Path| PerEvent::read(path, terminal);
    files(arguments).check_distinct()?;
    let base = read(base_path)?;

    let mut reports = Vec::new();
    let mut text = String::new();
    for path in others {
        let paired = base.pair(&read(path)?)?;
        if paired.unpaired > 0 {
            tracing::warn!(
                "{} only in {} or only in {}: left out",
                table::counted(paired.unpaired, "event"),
                base_path.display(),
                path.display()
            );
        }
        for (metrics, only, other) in
            [(&paired.only_first, base_path, path), (&paired.only_second, path, base_path)]
        {
            if !metrics.is_empty() {
                tracing::warn!(
                    "{} has no {}, which {} has: left out",
                    escape::path(other),
                    listed(metrics),
                    escape::path(only)
                );
            }
        }
        let events = paired.users.len();
        let groups = match unit {
            ResampleUnit::User => paired.users.clone(),
            ResampleUnit::Event => (0..events).collect(),
        };
        if events == 1 {
            tracing::warn!("one event tells nothing of others: there is no interval");
        } else if groups.iter().all(|group| *group == 0) {
            tracing::warn!(
                "all {} events are of one user, which tells nothing of others: there is no interval; hint: --unit event",
                table::count(events)
            );
        }
        let differences: Vec<(String, Difference)> = paired
            .metrics
            .iter()
            .map(|(metric, first, second)| {
                Ok((metric.to_string(), compare(first, second, &groups, &options, terminal)?))
            })
            .collect::<Result<_, Cancelled>>()?;
        text.push_str(&describe(base_path, path, events, &differences));
        let metrics: Map<String, Value> = differences
            .iter()
            .map(|(name, difference)| Ok((name.clone(), serde_json::to_value(difference)?)))
            .collect::<Result<_, serde_json::Error>>()?;
        reports.push(json!({
            "file": path_to_json(path), "events": events, "unpaired": paired.unpaired, "metrics": metrics,
            "metrics_of_one_file": paired.only_first.iter().chain(&paired.only_second).map(ToString::to_string).collect::<Vec<_>>(),
        }));
    }
    terminal.finish();
    if arguments.json {
        return table::print_json(&json!({
            "base": path_to_json(base_path),
            "unit": unit,
            "draws": arguments.draws,
            "seed": arguments.seed,
            "comparisons": reports,
        }));
    }
    table::print(text.trim_end())
}

fn listed(metrics: &[Metric]) -> String {
    metrics.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn files(arguments: &CompareArguments) -> Files {
    arguments.files.iter().fold(Files::default(), |files, path| files.reading("FILE", Some(path)))
}

fn describe(base: &Path, other: &Path, events: usize, differences: &[(String, Difference)]) -> String {
    let name = |path: &Path| escape::path(Path::new(path.file_stem().unwrap_or_default()));
    let mut shown =
        table::with_header(&["metric", &name(base), &name(other), "difference", "95 % interval", "p"]);
    for (metric, difference) in differences {
        shown.add_row([
            metric.clone(),
            format!("{:.4}", difference.first),
            format!("{:.4}", difference.second),
            format!("{:+.4}", difference.difference),
            table::interval(difference.interval),
            format!("{:.4}", difference.p_value),
        ]);
    }
    format!("{} against {}, {}\n{shown}\n\n", name(other), name(base), table::counted(events, "event"))
}
