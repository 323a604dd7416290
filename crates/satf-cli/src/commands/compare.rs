//! `satf compare`: are two evaluations really different?

use std::path::Path;

use satf::evaluate::{CompareOptions, Difference, Metric, PairedEvents, PerEvent, ResampleUnit, compare};
use satf::monitor::Cancelled;
use serde_json::{Map, Value, json};

use super::files::Files;
use super::path_to_json;
use crate::args::CompareArguments;
use crate::misuse::misuse;
use crate::terminal::Terminal;
use crate::worse::Worse;
use crate::{escape, table};

pub(crate) fn run(arguments: &CompareArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let Some((base_path, others)) = arguments.files.split_first() else {
        anyhow::bail!("give two files or more");
    };
    let options = CompareOptions { draws: arguments.draws, seed: arguments.seed };
    let unit: ResampleUnit = arguments.unit.into();
    let read = |path: &Path| PerEvent::read(path, terminal);
    let mut guard = Guard::new(arguments)?;
    files(arguments).check_distinct()?;
    let base = read(base_path)?;

    let mut reports = Vec::new();
    let mut text = String::new();
    let mut verdicts = Vec::new();
    for path in others {
        let paired = base.pair(&read(path)?)?;
        warn(&paired, base_path, path);
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
        let differences: Vec<(Metric, Difference)> = paired
            .metrics
            .iter()
            .map(|(metric, first, second)| {
                Ok((*metric, compare(first, second, &groups, &options, terminal)?))
            })
            .collect::<Result<_, Cancelled>>()?;
        text.push_str(&describe(base_path, path, events, &differences));
        if let Some(guard) = &mut guard {
            let units = groups.iter().max().map_or(0, |last| last + 1);
            let verdict = guard.judge(base_path, path, units, &differences)?;
            // One metric decides for all files.
            guard.metric = Some(verdict.metric);
            verdicts.push(verdict);
        }
        let metrics: Map<String, Value> = differences
            .iter()
            .map(|(metric, difference)| Ok((metric.to_string(), serde_json::to_value(difference)?)))
            .collect::<Result<_, serde_json::Error>>()?;
        reports.push(json!({
            "file": path_to_json(path), "events": events, "unpaired": paired.unpaired, "metrics": metrics,
            "metrics_of_one_file": paired.only_first.iter().chain(&paired.only_second).map(ToString::to_string).collect::<Vec<_>>(),
        }));
    }
    terminal.finish();
    let worse: Vec<&str> = verdicts.iter().filter_map(|verdict| verdict.worse.as_deref()).collect();
    if arguments.json {
        let mut printed = json!({
            "base": path_to_json(base_path),
            "unit": unit,
            "draws": arguments.draws,
            "seed": arguments.seed,
            "comparisons": reports,
        });
        if let Some(guard) = &guard {
            printed["fail_if_worse"] = guard.to_json(&verdicts);
        }
        table::print_json(&printed)?;
    } else {
        table::print(text.trim_end())?;
    }
    if worse.is_empty() { Ok(()) } else { Err(Worse(worse.join("; ")).into()) }
}

/// Says what cannot be compared.
fn warn(paired: &PairedEvents, base_path: &Path, path: &Path) {
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
}

/// What `--fail-if-worse` asks for: a file is worse than the first if its metric is lower and the permutation test gives that a p-value
/// below the level. Of several files each may be worse by chance, so that the level is divided among them.
struct Guard {
    /// None until the first pair of files: then the first metric that both have.
    metric: Option<Metric>,
    level: f64,
    /// The level of a single file.
    share: f64,
}

/// What came of one file.
struct Verdict {
    metric: Metric,
    worse: Option<String>,
}

impl Guard {
    fn new(arguments: &CompareArguments) -> anyhow::Result<Option<Self>> {
        let Some(metric) = arguments.fail_if_worse else { return Ok(None) };
        let level = arguments.level;
        let share = level / (arguments.files.len() - 1).max(1) as f64;
        let lowest = 1.0 / (arguments.draws + 1) as f64;
        if share <= lowest {
            misuse!(
                "--level {level}: with {} draws no p-value is below {share:e}, which is the level of each file, so nothing could be worse; \
                 hint: more --draws",
                arguments.draws
            );
        }
        Ok(Some(Guard { metric, level, share }))
    }

    /// Whether a file is worse than the first, as measured by differences of so many units.
    fn judge(
        &self,
        base: &Path,
        other: &Path,
        units: usize,
        differences: &[(Metric, Difference)],
    ) -> anyhow::Result<Verdict> {
        let is_it = |(metric, _): &&(Metric, Difference)| self.metric.is_none_or(|asked| asked == *metric);
        let Some((metric, difference)) = differences.iter().find(is_it) else {
            anyhow::bail!(
                "--fail-if-worse={}: {} and {} have no such metric in common, but {}",
                self.metric.map(|metric| metric.to_string()).unwrap_or_default(),
                escape::path(base),
                escape::path(other),
                listed(&differences.iter().map(|(metric, _)| *metric).collect::<Vec<_>>())
            );
        };
        // Of all signs that the units can have, two give a difference as large as can be.
        if 0.5f64.powi(i32::try_from(units).unwrap_or(i32::MAX).saturating_sub(1)) >= self.share {
            tracing::warn!(
                "{units} unit(s) are too few for any p-value below {}: {} cannot be worse, whatever its {metric}",
                self.share,
                escape::path(other)
            );
        }
        let is_worse = difference.difference < 0.0 && difference.p_value < self.share;
        let worse = is_worse.then(|| {
            format!(
                "{} is worse than {}: {metric} {:.4} against {:.4}, p {:.4} (below {})",
                escape::path(other),
                escape::path(base),
                difference.second,
                difference.first,
                difference.p_value,
                self.share
            )
        });
        Ok(Verdict { metric: *metric, worse })
    }

    fn to_json(&self, verdicts: &[Verdict]) -> Value {
        json!({
            "metric": verdicts.first().map(|verdict| verdict.metric),
            "level": self.level,
            "level_of_each_file": self.share,
            "is_worse": verdicts.iter().map(|verdict| verdict.worse.is_some()).collect::<Vec<_>>(),
        })
    }
}

fn listed(metrics: &[Metric]) -> String {
    metrics.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn files(arguments: &CompareArguments) -> Files {
    arguments.files.iter().fold(Files::default(), |files, path| files.reading("FILE", Some(path)))
}

fn describe(base: &Path, other: &Path, events: usize, differences: &[(Metric, Difference)]) -> String {
    let name = |path: &Path| escape::path(Path::new(path.file_stem().unwrap_or_default()));
    let mut shown =
        table::with_header(&["metric", &name(base), &name(other), "difference", "95 % interval", "p"]);
    for (metric, difference) in differences {
        shown.add_row([
            metric.to_string(),
            format!("{:.4}", difference.first),
            format!("{:.4}", difference.second),
            format!("{:+.4}", difference.difference),
            table::interval(difference.interval),
            format!("{:.4}", difference.p_value),
        ]);
    }
    format!("{} against {}, {}\n{shown}\n\n", name(other), name(base), table::counted(events, "event"))
}
