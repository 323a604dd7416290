//! `satf prepare`: raw logs become one compact file.

use std::time::Instant;

use anyhow::bail;
use satf::data::write_log;
use satf::prepare::{Statistics, p_core, resolve_duplicates};
use serde_json::json;

use super::files::Files;
use crate::args::PrepareArguments;
use crate::terminal::Terminal;
use crate::{escape, table};

pub(crate) fn run(arguments: &PrepareArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let start = Instant::now();
    Files::of_log(&arguments.log).writing("--output", Some(&arguments.output)).check()?;
    let (raw, report) = super::read(&arguments.log, terminal)?;
    let distinct = resolve_duplicates(&raw, arguments.duplicates);
    let log = p_core(&distinct, arguments.core);
    if log.rows().is_empty() {
        bail!(
            "nothing is left: no user and item have {} rows each after repeated removal; hint: use a smaller --core",
            arguments.core
        );
    }
    write_log(&log, &arguments.output, super::log_format(&arguments.output), terminal)?;
    terminal.wrote(&arguments.output);
    let statistics = Statistics::of(&log);
    terminal.finish();

    let duplicates = raw.rows().len() - distinct.rows().len();
    let outside_core = distinct.rows().len() - log.rows().len();
    if arguments.json {
        return table::print_json(&json!({
            "output": super::path_to_json(&arguments.output),
            "read_rows": raw.rows().len(),
            "skipped_rows": report.skipped_rows,
            "removed_duplicates": duplicates,
            "removed_by_core": outside_core,
            "core": arguments.core,
            "statistics": statistics,
            "seconds": start.elapsed().as_secs_f64(),
        }));
    }
    table::print(&format!(
        "{} read, {} removed, {} outside the {}-core removed\n\n{}\n\nwritten to {} in {:.1} s",
        table::counted(raw.rows().len(), "row"),
        table::counted(duplicates, "duplicate"),
        table::counted(outside_core, "row"),
        arguments.core,
        super::stats::describe(&statistics),
        escape::path(&arguments.output),
        start.elapsed().as_secs_f64(),
    ))
}
