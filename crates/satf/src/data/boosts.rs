//! Boosts of items: numbers to add to scores, or to multiply them by.

use std::path::Path;

use super::DataError;
use super::columns::{self, Role, normalized};
use super::error::{Fault, shown};
use super::format::guess_delimiter;
use super::records::{Records, Splitting};
use super::source::Source;
use crate::monitor::{Monitor, OnlyCancels};

/// Names of the boost's column, the surest first, as [`normalized`] spells them.
const BOOST_NAMES: [&str; 5] = ["boost", "factor", "weight", "value", "score"];

/// What becomes of an item's score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Boost {
    /// A number is added: `0.5`.
    Add(f32),
    /// It is multiplied by a number above 0: `*1.5`.
    Multiply(f32),
}

impl Boost {
    /// What a text says: a number, or `*` and a number above 0. Numbers are finite and within single precision.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let written = text.trim().parse::<f64>().ok()?;
            let number = written as f32;
            // Beyond single precision it would be endless, or nothing.
            (number.is_finite() && (number != 0.0 || written == 0.0)).then_some(number)
        };
        match text.trim().strip_prefix('*') {
            Some(factor) => number(factor).filter(|factor| *factor > 0.0).map(Boost::Multiply),
            None => number(text).map(Boost::Add),
        }
    }
}

/// Reads boosts from a CSV or TSV file, plain, gzip or zstd: a column with the item and one with its boost, found by their names, or the
/// first two of two. Items come as they are written there, in the order of the file. An empty file holds none. The monitor may stop the
/// reading.
pub fn read_boosts(path: &Path, monitor: &dyn Monitor) -> Result<Vec<(String, Boost)>, DataError> {
    let monitor = OnlyCancels(monitor);
    let Some(mut source) = Source::open_unless_empty(path, &monitor)? else { return Ok(Vec::new()) };
    if source.is_parquet() {
        return Err(
            Fault::of_line("a Parquet file", "CSV with a column of items and one of boosts").at(path, 1)
        );
    }
    let delimiter = guess_delimiter(source.peek_line()?).unwrap_or(b',');
    let mut records = Records::new(Splitting::Delimiter(delimiter));
    let mut boosts = Vec::new();
    let mut layout = None;
    while let Some((line, record)) = records.next(&mut source)? {
        let record = record.map_err(|fault| fault.at(path, line))?;
        let text = |at: usize| record.text(at).map_err(|fault| fault.at(path, line));
        if layout.is_none() {
            let names = record.texts().map_err(|fault| fault.at(path, line))?;
            if let Some(named) = named_columns(&names).filter(|_| names.len() > 1) {
                if let Some(at) = [named.0, named.1].into_iter().find(|at| columns::repeats(&names, *at)) {
                    let expected = format!("one column called {}", shown(names[at].as_bytes()));
                    return Err(Fault::of_line(shown(record.bytes()), expected).at(path, line));
                }
                layout = Some((named, names.len()));
                continue;
            }
        }
        let ((item, boost), width) = *layout.get_or_insert(((0, 1), 2));
        if record.len() != width {
            let expected = match width {
                2 => "two columns, an item and its boost".to_owned(),
                width => format!("{width} columns, as the first row has"),
            };
            return Err(Fault::of_line(shown(record.bytes()), expected).at(path, line));
        }
        let fault = |found: String, expected: &str| {
            let column = Some((boost + 1).to_string().into());
            Fault { column, found: found.into(), expected: expected.into(), hint: None }.at(path, line)
        };
        let parsed = Boost::parse(text(boost)?).ok_or_else(|| {
            fault(
                shown(record.field(boost)),
                "a finite number to add to the score, or * and one above 0 to multiply it by, such as *1.5; \
                 numbers go up to 3.4e38",
            )
        })?;
        boosts.push((text(item)?.to_owned(), parsed));
    }
    Ok(boosts)
}

/// The columns of item and boost, if this row names them. A row with a number in it, even one that is none such as `nan`, does not.
fn named_columns(names: &[String]) -> Option<(usize, usize)> {
    let named = BOOST_NAMES.iter().find_map(|name| names.iter().position(|n| normalized(n) == *name));
    let boost = named.unwrap_or(1);
    let item = columns::common(names, Role::Item).filter(|&item| item != boost);
    let is_number = |name: &String| name.trim().trim_start_matches('*').parse::<f64>().is_ok();
    let is_name = |name: &String| columns::is_sure_name(name) || normalized(name) == "item";
    let is_header = (named.is_some() || names.iter().any(is_name)) && !names.iter().any(is_number);
    is_header.then(|| (item.unwrap_or(usize::from(boost == 0)), boost))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boosts(content: &str) -> Result<Vec<(String, Boost)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boosts.csv");
        std::fs::write(&path, content).unwrap();
        read_boosts(&path, &()).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_told_by_name_or_by_place() {
        let expected =
            vec![("tent".to_owned(), Boost::Add(0.5)), ("mug, red".to_owned(), Boost::Multiply(1.5))];
        assert_eq!(boosts("tent,0.5\n\"mug, red\",*1.5\n").unwrap(), expected);
        assert_eq!(boosts("item_id,boost\ntent,0.5\n\"mug, red\",*1.5\n").unwrap(), expected);
        assert_eq!(boosts("\u{feff}Item ID;Weight\r\ntent;0.5\r\n\"mug, red\";*1.5\r\n").unwrap(), expected);
        assert_eq!(boosts("").unwrap(), []);
        assert_eq!(boosts("boost\tx\titem\n0.5\t1\ttent\n*1.5\t1\tmug, red\n").unwrap(), expected);
    }

    #[test]
    fn a_bad_number_says_where() {
        for (content, part) in [
            // A bad first row is no header: a header names columns.
            ("tent,nan\n", "line 1, column 2"),
            ("tent,oops\nmug,1\n", "line 1, column 2"),
            ("boost,inf\n", "line 1, column 2"),
            ("book,much\n", "line 1, column 2"),
            ("item,boost\ntent,1\nmug,nan\n", "line 3, column 2"),
            ("tent,1\nmug,*0\n", "line 2, column 2"),
            ("tent,1\nmug\n", "line 2"),
            // What stands behind the boost was meant for something.
            ("tent,1,5\n", "line 1"),
            ("tent,1\nmug,1,5\n", "line 2"),
            ("item,boost\ntent,1\nmug,1,5\n", "line 3"),
            ("item,boost,note\ntent,1\n", "3 columns, as the first row has"),
            ("boost,item,boost\n1,tent,5\n", "one column called \"boost\""),
            // Nothing that single precision takes for endless or for nothing.
            ("tent,1e39\n", "up to 3.4e38"),
            ("tent,*1e-50\n", "up to 3.4e38"),
            ("tent,-1e-50\n", "up to 3.4e38"),
        ] {
            let message = boosts(content).unwrap_err();
            assert!(message.contains(part), "{content}: {message}");
        }
    }
}
