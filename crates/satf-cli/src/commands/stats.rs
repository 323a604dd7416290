//! `satf stats`: size and shape of a log, and whether order matters in it.

mod order;

use order::OrderReport;
use satf::prepare::Statistics;

use crate::args::StatsArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &StatsArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let (log, _) = super::read(&arguments.log, terminal)?;
    let statistics = Statistics::of(&log);
    let order = if arguments.order_matters {
        Some(OrderReport::run(&log, &arguments.order, terminal)?)
    } else {
        None
    };
    terminal.finish();
    if arguments.json {
        let mut report = serde_json::to_value(&statistics)?;
        if let Some(order) = &order {
            report["order"] = order.to_json();
        }
        return table::print_json(&report);
    }
    match order {
        Some(order) => table::print(&format!("{}\n\n{}", describe(&statistics), order.describe())),
        None => table::print(&describe(&statistics)),
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
        (
            "duplicates",
            format!(
                "{} {} a user and item",
                table::counted(statistics.duplicates, "row"),
                table::agreeing(statistics.duplicates, "repeats", "repeat")
            ),
        ),
        (
            "ties",
            format!(
                "{} ({:.0} %) {} user and time with another",
                table::counted(statistics.tied_rows, "row"),
                share(statistics.tied_rows),
                table::agreeing(statistics.tied_rows, "shares", "share")
            ),
        ),
    ])
    .to_string()
}
