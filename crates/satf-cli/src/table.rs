//! Tables for people, on stdout.

use std::io::Write;

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{CellAlignment, ContentArrangement, Table};
use satf::evaluate::Estimate;

/// A table with a header; all columns but the first are right-aligned.
pub(crate) fn with_header(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Names and values, without lines.
pub(crate) fn of_pairs<N: ToString, V: ToString>(pairs: impl IntoIterator<Item = (N, V)>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    for (name, value) in pairs {
        table.add_row([name.to_string(), value.to_string()]);
    }
    table
}

/// Writes data to stdout. A closed pipe comes back as an error that `main` forgives.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()?;
    Ok(())
}

/// Writes a value as JSON to stdout.
pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// `.0459 ± .0021`
pub(crate) fn estimate(estimate: &Estimate) -> String {
    match estimate.stderr {
        Some(stderr) => format!("{:.4} ± {stderr:.4}", estimate.value),
        None => format!("{:.4}", estimate.value),
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
    let size = number as f64;
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| number >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", size / unit as f64),
        None => format!("{number} bytes"),
    }
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
    fn sizes_have_units() {
        let shown: Vec<String> = [12, 1536, 30 << 20].map(super::bytes).to_vec();
        assert_eq!(shown, ["12 bytes", "1.5 KiB", "30.0 MiB"]);
    }

    #[test]
    fn counts_are_grouped() {
        let shown: Vec<String> = [0, 12, 999, 1000, 1_000_209].map(super::count).to_vec();
        assert_eq!(shown, ["0", "12", "999", "1,000", "1,000,209"]);
    }
}
