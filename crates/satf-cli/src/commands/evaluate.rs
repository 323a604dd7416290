//! `satf evaluate`: the past trains, the future judges.

use std::path::{Path, PathBuf};

use anyhow::Context;
use satf::evaluate::{EvaluateOptions, write_per_event};
use satf::interactions::Interactions;
use satf::prepare::{Partition, Split, SplitScheme, Timeline, count_duplicates, suggest_offset};
use serde_json::{Value, json};

use super::experiment::{Run, describe};
use super::settings::{SharedKeys, configure};
use crate::args::{EvaluateArguments, PartArgument, ProtocolArguments, SplitArgument};
use crate::table;
use crate::terminal::Terminal;

/// Enough events for a standard error of a few thousandths.
const ENOUGH_EVENTS: usize = 5000;

pub(crate) fn run(arguments: &EvaluateArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let protocol = &arguments.protocol;
    let shared = SharedKeys { seed: protocol.seed, max_len: protocol.max_len };
    let models = configure(&arguments.model, arguments.config.as_deref(), &arguments.set, &shared)?;
    let options = EvaluateOptions { cutoffs: arguments.at.clone(), batch: None, seen: protocol.seen };

    let (log, _) = super::read(&arguments.log, terminal)?;
    let (partition, description) = cut(&log, protocol)?;
    let mut runs = Vec::new();
    for (entry, configured) in &models {
        let run = Run::new(configured, &partition, &options, terminal)?;
        if let Some(path) = &arguments.per_event {
            write_per_event(&per_event_path(path, entry.name, models.len()), &partition, &run.evaluation)?;
        }
        runs.push(run);
    }
    terminal.finish();

    if !arguments.json {
        let counts = partition.holdout.counts;
        return table::print(&format!(
            "{}\n{} events scored; {} rows of unknown items dropped, {} first events of new users unscored",
            describe(&runs),
            table::count(counts.scored),
            table::count(counts.dropped_unknown_items),
            table::count(counts.unscored_first),
        ));
    }
    let mut reports: Vec<Value> = runs
        .iter()
        .map(|run| {
            let mut report = run.to_json();
            report.insert("protocol".into(), description.clone());
            report.insert("files".into(), json!(arguments.log.files));
            report.insert("satf_version".into(), json!(env!("CARGO_PKG_VERSION")));
            Value::Object(report)
        })
        .collect();
    match reports.len() {
        1 => table::print_json(&reports.remove(0)),
        _ => table::print_json(&json!({ "runs": reports })),
    }
}

/// The partition asked for, and the protocol in words for the report.
pub(crate) fn cut(log: &Interactions, protocol: &ProtocolArguments) -> anyhow::Result<(Partition, Value)> {
    let timeline = Timeline::new(log, protocol.ties, protocol.seed);
    warn_of_traps(&timeline, protocol);
    let (scheme, offsets) = match protocol.split {
        SplitArgument::LeaveOneOut => (SplitScheme::LeaveOneOut, None),
        SplitArgument::Calendar => {
            let (valid, test) = match (protocol.valid, protocol.test) {
                (Some(valid), Some(test)) => (valid, test),
                (Some(one), None) | (None, Some(one)) => (one, one),
                (None, None) => {
                    let offset = suggest_offset(&timeline, ENOUGH_EVENTS.min(timeline.rows.len() / 50))
                        .context(
                            "no usual offset leaves enough rows for training, validation and test; \
                         hint: give --valid and --test, such as --valid 3weeks --test 3weeks",
                        )?;
                    tracing::warn!("no offsets given: taking --valid {offset} --test {offset}");
                    (offset, offset)
                }
            };
            (SplitScheme::Calendar { valid, test }, Some((valid, test)))
        }
    };
    let (tied_rows, policy) = (timeline.tied_rows, timeline.policy);
    let split = Split::new(timeline, scheme)?;
    let [train, valid, test] = split.rows();
    let (part, partition) = match protocol.on {
        PartArgument::Test => ("test", split.test()?),
        PartArgument::Validation => ("validation", split.validation()?),
    };
    let description = json!({
        "split": if offsets.is_some() { "calendar" } else { "leave-one-out" },
        "leaks_future": offsets.is_none(),
        "valid": offsets.map(|(valid, _)| valid.to_string()),
        "test": offsets.map(|(_, test)| test.to_string()),
        "rows": { "train": train, "valid": valid, "test": test },
        "scored_part": part,
        "train": {
            "users": partition.train.num_users(),
            "items": partition.train.num_items(),
            "rows": partition.train.num_rows(),
        },
        "ties": policy,
        "tied_rows": tied_rows,
        "seen": protocol.seen,
        "max_len": protocol.max_len,
        "seed": protocol.seed,
    });
    Ok((partition, description))
}

fn warn_of_traps(timeline: &Timeline<'_>, protocol: &ProtocolArguments) {
    let rows = timeline.rows.len();
    if timeline.tied_rows > 0 {
        tracing::warn!(
            "{} of {} rows ({:.0} %) share user and time with another, so their order is not known; they are \
             ordered by --ties {}",
            table::count(timeline.tied_rows),
            table::count(rows),
            100.0 * timeline.tied_rows as f64 / rows as f64,
            json!(timeline.policy).as_str().unwrap_or_default(),
        );
    }
    let duplicates = count_duplicates(timeline.log);
    if duplicates > 0 {
        tracing::warn!(
            "{} rows repeat a user and item: seen items are never recommended, so such an event cannot be hit; \
             hint: satf prepare --duplicates last",
            table::count(duplicates)
        );
    }
    if protocol.split == SplitArgument::LeaveOneOut {
        tracing::warn!(
            "leave-one-out leaks the future: models train on events that happen after those they predict; \
             compare these scores only with others made the same way"
        );
    }
}

/// `scores.parquet` becomes `scores.mp.parquet` when there are several models.
fn per_event_path(path: &Path, model: &str, models: usize) -> PathBuf {
    if models == 1 {
        return path.to_owned();
    }
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}.{model}{ending}"))
}
