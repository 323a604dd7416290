//! `satf stats`: size and shape of a log.

use satf::prepare::Statistics;

use crate::args::StatsArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &StatsArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let (log, _) = super::read(&arguments.log, terminal)?;
    let statistics = Statistics::of(&log);
    terminal.finish();
    if arguments.json {
        table::print_json(&serde_json::to_value(&statistics)?)
    } else {
        table::print(&describe(&statistics))
    }
}

/// The statistics as a table of names and values.
pub(crate) fn describe(statistics: &Statistics) -> String {
    let share = |part: usize| 100.0 * part as f64 / statistics.rows.max(1) as f64;
    let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "none, rows are in order".to_owned());
    table::of_pairs([
        ("users", table::count(statistics.users)),
        ("items", table::count(statistics.items)),
        ("rows", table::count(statistics.rows)),
        ("average history", format!("{:.1}", statistics.average_history)),
        ("median history", statistics.median_history.to_string()),
        ("density", format!("{:.2} %", 100.0 * statistics.density)),
        ("first time", time(&statistics.first_time)),
        ("last time", time(&statistics.last_time)),
        ("duplicates", format!("{} rows repeat a user and item", table::count(statistics.duplicates))),
        (
            "ties",
            format!(
                "{} rows ({:.0} %) share user and time with another",
                table::count(statistics.tied_rows),
                share(statistics.tied_rows)
            ),
        ),
    ])
    .to_string()
}
