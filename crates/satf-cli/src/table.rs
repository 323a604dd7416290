//! Tables for people, on stdout.

use std::fmt;
use std::io::Write;

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, ContentArrangement};
use satf::byte_size::ByteSize;
use satf::evaluate::{Estimate, ResampleUnit};

use crate::escape;

/// A table. What its cells hold is escaped, for much of it comes from files.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// Adds a row, a line a cell.
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

/// A table with a header; all columns but the first are right-aligned.
pub(crate) fn with_header(header: &[&str]) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().map(|name| escape::value(name)));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Table(table)
}

/// Names and values, without lines.
pub(crate) fn of_pairs<N: ToString, V: ToString>(pairs: impl IntoIterator<Item = (N, V)>) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let mut table = Table(table);
    for (name, value) in pairs {
        table.add_row([name.to_string(), value.to_string()]);
    }
    table
}

/// Writes lines for people to stdout. A closed pipe comes back as an error that `main` forgives.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&escape::lines(text))
}

/// Writes a value as JSON to stdout.
pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    write(&serde_json::to_string_pretty(value)?)
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()?;
    Ok(())
}

/// `.0459 ± .0021`
pub(crate) fn estimate(estimate: &Estimate) -> String {
    match estimate.stderr {
        Some(stderr) => format!("{:.4} ± {stderr:.4}", estimate.value),
        None => format!("{:.4}", estimate.value),
    }
}

/// What ± means beside these figures; none if no figure has an error.
pub(crate) fn error_note<'a>(estimates: impl IntoIterator<Item = &'a Estimate>) -> Option<String> {
    let mut errors = estimates.into_iter().filter(|estimate| estimate.stderr.is_some());
    errors.next().map(|estimate| format!("± is one standard error, {}", unit_words(estimate.unit)))
}

/// How errors with this unit are made. Releases that did not say it took events.
pub(crate) fn unit_words(unit: Option<ResampleUnit>) -> &'static str {
    match unit {
        Some(ResampleUnit::User) => "clustered by user",
        Some(ResampleUnit::Event) | None => "as if all events were independent",
    }
}

/// `1,000,209`
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `29.1 MiB`
pub(crate) fn bytes(number: u64) -> String {
    ByteSize(number).to_string()
}

/// `40 ms`, `4.2 s`, `12 min`, `3 h 05 min`
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.995 => format!("{:.0} ms", 1000.0 * seconds),
        seconds if seconds < 99.95 => format!("{seconds:.1} s"),
        seconds if seconds < 5970.0 => format!("{:.0} min", seconds / 60.0),
        seconds => {
            let minutes = (seconds / 60.0).round() as u64;
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn durations_have_fitting_units() {
        let shown: Vec<String> = [0.04, 99.9, 100.0, 1500.0, 5969.0, 11_100.0].map(super::duration).to_vec();
        assert_eq!(shown, ["40 ms", "99.9 s", "2 min", "25 min", "99 min", "3 h 05 min"]);
    }

    #[test]
    fn counts_are_grouped() {
        let shown: Vec<String> = [0, 12, 999, 1000, 1_000_209].map(super::count).to_vec();
        assert_eq!(shown, ["0", "12", "999", "1,000", "1,000,209"]);
    }
}
