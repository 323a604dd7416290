//! The formats of raw logs, and how they are detected by content.

use std::fmt;
use std::str::FromStr;

use memchr::memchr;
use memchr::memmem;

use super::columns::Wanted;
use super::error::shown;
use super::source::Source;
use super::{DataError, time};
use crate::choice::{UnknownChoice, choose};

/// A format of raw logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `user::item::rating::timestamp`, one per line.
    MovieLens,
    /// Columns between commas (or `;`, `|`), with or without a header.
    Csv,
    /// Columns between tabs, with or without a header.
    Tsv,
    /// Amazon reviews: one JSON object a line with `reviewerID`, `asin`, `unixReviewTime`.
    Amazon,
    /// Steam reviews: one Python dictionary a line with `username`, `product_id`, `date`.
    Steam,
    /// One JSON object a line, or a list of objects.
    JsonLines,
    /// `RecBole`'s atomic files: tabs, and a header of `name:type`.
    RecBole,
    /// `user item` on a line; the order of the lines is the time.
    SasRec,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 9] = [
        Format::MovieLens,
        Format::Csv,
        Format::Tsv,
        Format::Amazon,
        Format::Steam,
        Format::JsonLines,
        Format::RecBole,
        Format::SasRec,
        Format::Parquet,
    ];

    /// The format's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::MovieLens => "movielens",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Amazon => "amazon",
            Format::Steam => "steam",
            Format::JsonLines => "jsonl",
            Format::RecBole => "recbole",
            Format::SasRec => "sasrec",
            Format::Parquet => "parquet",
        }
    }

    /// All names, for messages.
    pub fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        choose(name, Format::ALL.map(|format| (format.name(), format)))
    }
}

/// The format of a file, from its first line that is not blank.
pub(super) fn detect(source: &mut Source<'_>, wanted: &Wanted<'_>) -> Result<Format, DataError> {
    if source.is_parquet() {
        return Ok(Format::Parquet);
    }
    let has_delimiter = wanted.options.delimiter.is_some();
    // A list may be one endless line. Of a log it holds objects, of histories it may hold lists.
    match source.leading()? {
        [Some(b'['), Some(b'{')] if !has_delimiter => return Ok(Format::JsonLines),
        [Some(b'['), _] if !has_delimiter && wanted.is_histories() => return Ok(Format::JsonLines),
        _ => {}
    }
    let path = source.path().to_owned();
    let line = source.peek_line()?;
    let found = match line {
        [] => return Err(DataError::NoRows { path: Some(path) }),
        line if memchr(0, line).is_some() => {
            format!("it looks like binary data, it begins with {}", shown(line))
        }
        line => match detect_line(line, has_delimiter) {
            Some(format) => return Ok(format),
            None => format!("it begins with {}", shown(line)),
        },
    };
    Err(DataError::UnknownFormat { path, found: found.into() })
}

fn detect_line(line: &[u8], has_delimiter: bool) -> Option<Format> {
    if has_delimiter {
        return Some(Format::Csv);
    }
    if let Some(rest) = line.trim_ascii_start().strip_prefix(b"{") {
        return Some(detect_object(rest.trim_ascii_start()));
    }
    if is_movielens(line) {
        return Some(Format::MovieLens);
    }
    match guess_delimiter(line) {
        Some(b'\t') if line.split(|&byte| byte == b'\t').all(is_typed_name) => Some(Format::RecBole),
        Some(b'\t') => Some(Format::Tsv),
        Some(_) => Some(Format::Csv),
        None => {
            let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            (words.count() == 2).then_some(Format::SasRec)
        }
    }
}

fn detect_object(inside: &[u8]) -> Format {
    if let [b'\'' | b'u' | b'U', ..] = inside {
        return Format::Steam;
    }
    let has = |key: &str| memmem::find(inside, key.as_bytes()).is_some();
    if has("\"reviewerID\"") && has("\"asin\"") && has("\"unixReviewTime\"") {
        Format::Amazon
    } else {
        Format::JsonLines
    }
}

fn is_movielens(line: &[u8]) -> bool {
    let mut at = memmem::find_iter(line, b"::");
    match (at.next(), at.next(), at.next(), at.next()) {
        (Some(_), Some(_), Some(last), None) => time::looks_like_time(&line[last + 2..]),
        _ => false,
    }
}

/// Whether a name has the form `name:type` with a type of `RecBole`.
fn is_typed_name(name: &[u8]) -> bool {
    [":token", ":token_seq", ":float", ":float_seq"].iter().any(|kind| name.ends_with(kind.as_bytes()))
}

/// The delimiter that occurs most often in `line` outside quotes, if any does.
pub(super) fn guess_delimiter(line: &[u8]) -> Option<u8> {
    const CANDIDATES: [u8; 4] = *b"\t,;|";
    let mut counts = [0usize; 4];
    let mut quoted = false;
    for &byte in line {
        if byte == b'"' {
            quoted = !quoted;
        } else if let Some(at) = CANDIDATES.iter().position(|&candidate| candidate == byte && !quoted) {
            counts[at] += 1;
        }
    }
    let most = *counts.iter().max()?;
    let first = counts.iter().position(|&count| count == most)?;
    (most > 0).then_some(CANDIDATES[first])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_tell_the_format() {
        let detect = |line: &str| detect_line(line.as_bytes(), false);
        assert_eq!(detect("1::1193::5::978300760"), Some(Format::MovieLens));
        assert_eq!(detect("userid,itemid,timestamp"), Some(Format::Csv));
        assert_eq!(detect("\"a\tb\";\"c\";3"), Some(Format::Csv));
        assert_eq!(detect("196\t242\t3\t881250949"), Some(Format::Tsv));
        assert_eq!(detect("user_id:token\titem_id:token\ttimestamp:float"), Some(Format::RecBole));
        assert_eq!(detect("1 2"), Some(Format::SasRec));
        assert_eq!(detect("{u'username': u'a'}"), Some(Format::Steam));
        assert_eq!(detect(r#" { "user": 1}"#), Some(Format::JsonLines));
        let amazon = r#"{"reviewerID": "A", "asin": "B", "unixReviewTime": 1}"#;
        assert_eq!(detect(amazon), Some(Format::Amazon));
        assert_eq!(detect("[1, 2]").map(Format::name), Some("csv"));
        assert_eq!(detect("word"), None);
    }

    #[test]
    fn names_parse_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xls".parse::<Format>().is_err());
    }
}
