//! Tables for people, on stdout.

use std::fmt;
use std::io::Write;

use anyhow::Context;

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, ContentArrangement};
use satf::byte_size::ByteSize;
use satf::evaluate::Estimate;
use terminal_size::{Width, terminal_size_of};

pub(crate) use satf::numbers::{agreeing, counted};
pub(crate) use satf_report::numbers::{count, duration, unit_words};

use crate::escape;

/// What messages call it.
pub(crate) const STANDARD_OUTPUT: &str = "standard output";

/// A table. What its cells hold is escaped, for much of it comes from files.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// Adds a row, one line per cell.
    pub(crate) fn add_row<C: ToString>(&mut self, row: impl IntoIterator<Item = C>) {
        self.0.add_row(row.into_iter().map(|cell| escape::value(&cell.to_string()).into_owned()));
    }

    /// Adds a row whose cells may have several lines.
    pub(crate) fn add_row_of_lines<C: ToString>(&mut self, row: impl IntoIterator<Item = C>) {
        self.0.add_row(row.into_iter().map(|cell| escape::lines(&cell.to_string()).into_owned()));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An empty table. In a terminal it takes no more than its width; in a file or pipe, what it needs.
fn fitted(style: comfy_table::TableStyle) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic);
    if let Some((Width(width), _)) = terminal_size_of(std::io::stdout()) {
        table.set_width(width);
    }
    table
}

/// A table with a header; all columns but the first are right-aligned.
pub(crate) fn with_header(header: &[&str]) -> Table {
    let mut table = fitted(UTF8_HORIZONTAL_ONLY);
    table.set_header(header.iter().map(|name| escape::value(name)));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Table(table)
}

/// Names and values, without lines.
pub(crate) fn of_pairs<N: ToString, V: ToString>(pairs: impl IntoIterator<Item = (N, V)>) -> Table {
    let mut table = Table(fitted(NOTHING));
    for (name, value) in pairs {
        table.add_row([name.to_string(), value.to_string()]);
    }
    table
}

/// Writes lines for people to stdout. A closed pipe comes back as an error that `main` forgives.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&escape::lines(text))
}

/// Writes a value as JSON to stdout. What acts on a terminal is spelled as JSON can spell it, and nothing is lost.
pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    write(&escape::json(&serde_json::to_string_pretty(value)?))
}

/// A number of single precision in JSON, with as many digits as it takes to tell it from others.
pub(crate) fn single(number: f32) -> serde_json::Value {
    serde_json::Value::from(number.to_string().parse().unwrap_or_else(|_| f64::from(number)))
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    written.context(STANDARD_OUTPUT)
}

/// `.0459 ± .0021`
pub(crate) fn estimate(estimate: &Estimate) -> String {
    match estimate.stderr {
        Some(stderr) => format!("{:.4} ± {stderr:.4}", estimate.value),
        None => format!("{:.4}", estimate.value),
    }
}

/// `+0.0012 to +0.0031`
pub(crate) fn interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(|| "none".to_owned(), |[low, high]| format!("{low:+.4} to {high:+.4}"))
}

/// What ± means beside these figures; none if no figure has an error.
pub(crate) fn error_note<'a>(estimates: impl IntoIterator<Item = &'a Estimate>) -> Option<String> {
    let mut errors = estimates.into_iter().filter(|estimate| estimate.stderr.is_some());
    errors.next().map(|estimate| format!("± is one standard error, {}", unit_words(estimate.unit)))
}

/// `29.1 MiB`
pub(crate) fn bytes(number: u64) -> String {
    ByteSize(number).to_string()
}
