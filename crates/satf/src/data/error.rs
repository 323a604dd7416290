//! What can be wrong with a file, worded so that it can be fixed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::foreign::ForeignKind;
use super::{DataHint, Role};
use crate::byte_size::ByteSize;
use crate::fault::excerpt;
use crate::monitor::Cancelled;
use crate::numbers::{Count, counted};

/// Why a log cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder stands where a file was expected.
    #[error("{}: is a folder, expected a file", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing is in the file.
    #[error("{}: the file is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file, or the log, holds no row (a header alone, blank lines, no file at all).
    #[error("{}no rows", path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default())]
    NoRows {
        /// The file, or none if no file was given.
        path: Option<PathBuf>,
    },
    /// The file, or the log, holds no row that can be used: all are bad, and were skipped.
    #[error("{}no rows: {}; the first: {first}",
        path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default(), all_skipped(*skipped))]
    OnlyBadRows {
        /// The file, or none if no file was given.
        path: Option<PathBuf>,
        /// How many were skipped.
        skipped: u64,
        /// What was wrong with the first of them.
        first: Box<DataError>,
    },
    /// The only row of a file may be a header or an event, and is taken for a header.
    #[error("{}: no rows but the first ({}), which is taken for the names of the columns\nhint: {}",
        path.display(), fields.join(", "), DataHint::GiveHeader)]
    OnlyFirstRow {
        /// The file.
        path: PathBuf,
        /// What stands in its columns.
        fields: Vec<String>,
    },
    /// The content fits none of the formats that are detected by content.
    #[error("{}: cannot tell the format: {found}\nhint: {}", path.display(), DataHint::GiveFormat)]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// What the file begins with.
        found: Box<str>,
    },
    /// The file is something else altogether.
    #[error("{}: {kind}\nhint: {}", path.display(), kind.hint())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: ForeignKind,
    },
    /// A column that is needed is not there.
    #[error("{}", describe_unknown_column(path, *role, wanted.as_deref(), columns, nearest.as_deref()))]
    UnknownColumn {
        /// The file.
        path: PathBuf,
        /// What the column is for.
        role: Role,
        /// The column asked for; none if no common name was found.
        wanted: Option<Box<str>>,
        /// The columns there are.
        columns: Vec<String>,
        /// The one whose name is nearest to the one asked for.
        nearest: Option<Box<str>>,
    },
    /// One column is asked for twice.
    #[error("{}: the column \"{}\" cannot be both the {first} and the {second}; hint: {}",
        path.display(), excerpt(column), DataHint::GiveColumn(*second))]
    SameColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: Box<str>,
        /// What it is for.
        first: Role,
        /// What else it is for.
        second: Role,
    },
    /// Several columns have the name that is looked for.
    #[error("{}: several columns are called \"{}\", so which is the {role}? hint: {}",
        path.display(), excerpt(column), DataHint::GiveColumn(*role))]
    RepeatedColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: Box<str>,
        /// What the column is for.
        role: Role,
    },
    /// A list has a rank twice, and is not several lists one after the other.
    #[error("{}: the list of {} has the rank {rank} twice; expected every rank once, or several lists one after the other, whose ranks \
        ascend from the same number", path.display(), excerpt(whom))]
    RepeatedRank {
        /// The file.
        path: PathBuf,
        /// Whose list.
        whom: Box<str>,
        /// The rank.
        rank: f64,
    },
    /// A Parquet column has a type that cannot be an id or a time.
    #[error("{}: column `{column}` is of type {found}, expected {expected}", path.display())]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: Box<str>,
        /// Its type.
        found: Box<str>,
        /// The types allowed.
        expected: &'static str,
    },
    /// A row that cannot be used.
    #[error("{}, {position}{}: expected {expected}, found {found}{}", path.display(),
        column.as_ref().map(|column| format!(", column {column}")).unwrap_or_default(),
        hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default())]
    BadRow {
        /// The file, or what else the row came from.
        path: PathBuf,
        /// Where in it.
        position: Position,
        /// The column (name or number), if it is one column that is wrong.
        column: Option<Box<str>>,
        /// What stands there, shortened, control characters escaped.
        found: Box<str>,
        /// What should stand there.
        expected: Box<str>,
        /// What may help.
        hint: Option<DataHint>,
    },
    /// More rows are bad than may be.
    #[error("more than {}, the most that may be skipped; the last one: {last}", counted(*allowed as usize, "bad row"))]
    TooManyBadRows {
        /// How many were allowed.
        allowed: u64,
        /// The one that was too much.
        last: Box<DataError>,
    },
    /// A compressed file ends too early.
    #[error("{}: the {compression} file is truncated: it ends after line {line}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// The last whole line that came out.
        line: u64,
    },
    /// A compressed file cannot be decompressed.
    #[error("{}: the {compression} file is corrupt after line {line}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// The last whole line that came out.
        line: u64,
        /// What the decoder says.
        reason: Box<str>,
    },
    /// A zstd file whose window is larger than what may be kept in memory to decompress it.
    #[error("{}: the zstd file needs a window of more than {} and is refused\n\
        hint: decompress it by hand, or compress it with a smaller window", path.display(), ByteSize(*limit))]
    WindowTooLarge {
        /// The file.
        path: PathBuf,
        /// The largest window in bytes.
        limit: u64,
    },
    /// Something follows the compressed data.
    #[error("{}: bytes that are not {compression} follow the {compression} data, which ends after line {line}{}\n\
        hint: was something appended to it? decompress it by hand, look at its end, and give the decompressed file", path.display(),
        begin.as_ref().map(|begin| format!("; they begin with {begin}")).unwrap_or_default())]
    Trailing {
        /// The file.
        path: PathBuf,
        /// `gzip` or `zstd`.
        compression: &'static str,
        /// The last whole line that came out.
        line: u64,
        /// What follows, if it is known, shortened, control characters escaped.
        begin: Option<Box<str>>,
    },
    /// A line (or a quoted record) is longer than any row can be.
    #[error("{}, line {line}: longer than {}; is this the right format, or a quote left open?",
        path.display(), ByteSize(*limit as u64))]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The most a line may have.
        limit: usize,
    },
    /// A file that is read whole, such as a configuration or a list, and is larger than any should be.
    #[error("{}: holds more than {}, the most that is read of such a file; is it the right one?",
        path.display(), ByteSize(*limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes, unpacked.
        limit: u64,
    },
    /// Numbers that cannot all be times in one unit.
    #[error("times in different units: {first} looks like {}, {second} like {}\nhint: {}",
        first.looks_like, second.looks_like, DataHint::GiveTimeUnit)]
    MixedTimeUnits {
        /// The first time of the log that is not zero.
        first: Box<Place>,
        /// The one that does not go with it.
        second: Box<Place>,
    },
    /// Some events have times and some have not.
    #[error("{}: {}, unlike what came before it; one log needs one clock\nhint: {}", path.display(),
        if *has_times { "has times" } else { "has no times" }, DataHint::OrderIsTime)]
    MixedClocks {
        /// The file that differs, or what else does.
        path: PathBuf,
        /// Whether it has times.
        has_times: bool,
    },
    /// More of something than an index can count.
    #[error("more than {} {what}", Count(*limit))]
    TooMany {
        /// `users`, `items` or `rows`.
        what: &'static str,
        /// The most there can be.
        limit: u64,
    },
    /// The log is larger than the memory there is.
    #[error("the log does not fit into memory: {} {what} have been read, and the {} for more of them are not available", Count::of(*count), ByteSize(*bytes))]
    NoRoom {
        /// `users`, `items` or `rows`.
        what: &'static str,
        /// How many are read.
        count: usize,
        /// Bytes that could not be allocated.
        bytes: u64,
    },
    /// A Parquet file that cannot be decoded.
    #[error("{}: not a complete, valid Parquet file: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the decoder says.
        reason: Box<str>,
    },
    /// A Parquet file with a column in a codec that is not read here.
    #[error("{}: the column {column} is packed with {codec}, which is not read here; write it again with zstd, snappy, gzip or lz4",
        path.display())]
    ParquetCodec {
        /// The file.
        path: PathBuf,
        /// The column.
        column: Box<str>,
        /// The codec.
        codec: &'static str,
    },
    /// A Parquet file that comes through a pipe.
    #[error("{}: Parquet is read from its end, which a pipe cannot do; save it to a file and give that file",
        path.display())]
    NotSeekable {
        /// The pipe.
        path: PathBuf,
    },
    /// A Parquet file from a reader, too large to be held in memory.
    #[error("{}: Parquet is read from its end, so what comes from a reader is held in memory, but at most {} of it; save it to a file",
        path.display(), ByteSize(*limit))]
    TooLargeToBuffer {
        /// What is read.
        path: PathBuf,
        /// The most bytes that are held.
        limit: u64,
    },
    /// A temporary file cannot be written or read.
    #[error("cannot sort rows in temporary files in {}: {source}", path.display())]
    Temporary {
        /// The folder of temporary files.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A prepared log of a later version of this crate.
    #[error("{}: a prepared log of version {version:?}, this program reads version 1", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it claims.
        version: Box<str>,
    },
    /// The file cannot be written; the old one, if any, is untouched.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

impl DataError {
    /// What the caller can do about it, if that is a matter of options. It is part of the error's text.
    pub fn hint(&self) -> Option<DataHint> {
        match self {
            DataError::UnknownFormat { .. } => Some(DataHint::GiveFormat),
            DataError::Foreign { kind, .. } => Some(kind.hint()),
            DataError::UnknownColumn { role, .. }
            | DataError::SameColumn { second: role, .. }
            | DataError::RepeatedColumn { role, .. } => Some(DataHint::GiveColumn(*role)),
            DataError::BadRow { hint, .. } => *hint,
            DataError::TooManyBadRows { last: row, .. } | DataError::OnlyBadRows { first: row, .. } => {
                row.hint()
            }
            DataError::OnlyFirstRow { .. } => Some(DataHint::GiveHeader),
            DataError::MixedTimeUnits { .. } => Some(DataHint::GiveTimeUnit),
            DataError::MixedClocks { .. } => Some(DataHint::OrderIsTime),
            _ => None,
        }
    }

    pub(super) fn open(path: &Path, source: io::Error) -> Self {
        if is_cancelled(&source) {
            return Cancelled.into();
        }
        DataError::Io { path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        if is_cancelled(&source) {
            return Cancelled.into();
        }
        DataError::Write { path: path.to_owned(), source }
    }
}

/// Whether an error of a reader or a writer is the wish to stop, in its clothes.
pub(super) fn is_cancelled(error: &io::Error) -> bool {
    Cancelled::is_cause_of(error)
}

/// What a decoder says of bytes after the end of what it unpacks.
#[derive(Debug, thiserror::Error)]
#[error("bytes follow that are not part of it; they begin with {begin}")]
pub(super) struct TrailingBytes {
    /// The first of them, shortened, control characters escaped.
    pub(super) begin: String,
}

/// Where a row stands in what it came from. Everything counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Position {
    /// A line of text.
    Line(u64),
    /// A row: of a Parquet file, or the events pushed so far.
    Row(u64),
    /// A row of one of several record batches.
    BatchRow {
        /// The batch.
        batch: u32,
        /// The row in it.
        row: u64,
    },
}

impl From<u64> for Position {
    fn from(line: u64) -> Self {
        Position::Line(line)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Row(row) => write!(f, "row {row}"),
            Position::BatchRow { batch, row } => write!(f, "batch {batch}, row {row}"),
        }
    }
}

/// Where a time stands, and what unit it seems to be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub position: Position,
    /// The time as it stands there.
    pub value: String,
    /// The unit that its magnitude suggests.
    pub looks_like: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.value, self.path.display(), self.position)
    }
}

fn all_skipped(skipped: u64) -> String {
    match skipped {
        1 => "the only one is bad and was skipped".to_owned(),
        skipped => format!("all {} are bad and were skipped", counted(skipped as usize, "row")),
    }
}

fn describe_unknown_column(
    path: &Path,
    role: Role,
    wanted: Option<&str>,
    columns: &[String],
    nearest: Option<&str>,
) -> String {
    const SHOWN: usize = 40;
    let mut there =
        columns.iter().take(SHOWN).map(|name| shown(name.as_bytes())).collect::<Vec<_>>().join(", ");
    if columns.len() > SHOWN {
        there.push_str(", ...");
    }
    let file = path.display();
    let what = match wanted {
        Some(wanted) => format!("{file}: no {role} column named {}", shown(wanted.as_bytes())),
        None => format!("{file}: cannot tell which column is the {role}"),
    };
    let nearest =
        nearest.map(|name| format!("; did you mean {}?", shown(name.as_bytes()))).unwrap_or_default();
    format!("{what}; the columns are {there}{nearest}\nhint: {}", DataHint::GiveColumn(role))
}

/// What is wrong with a row, before anybody asks where it stands.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) column: Option<Box<str>>,
    pub(super) found: Box<str>,
    pub(super) expected: Box<str>,
    pub(super) hint: Option<DataHint>,
}

impl Fault {
    pub(super) fn of_line(found: impl Into<Box<str>>, expected: impl Into<Box<str>>) -> Self {
        Fault { column: None, found: found.into(), expected: expected.into(), hint: None }
    }

    pub(super) fn at(self, path: &Path, position: impl Into<Position>) -> DataError {
        DataError::BadRow {
            path: path.to_owned(),
            position: position.into(),
            column: self.column,
            found: self.found,
            expected: self.expected,
            hint: self.hint,
        }
    }
}

/// A value of a file fit for a message: quoted, control characters and invalid bytes escaped, shortened.
pub(super) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 60;
    let mut text = String::from("\"");
    let mut left = LONGEST;
    for chunk in bytes[..bytes.len().min(4 * LONGEST)].utf8_chunks() {
        for character in chunk.valid().chars() {
            if left == 0 {
                break;
            }
            left -= 1;
            if character == '\'' {
                text.push(character);
            } else {
                text.extend(character.escape_debug());
            }
        }
        for byte in chunk.invalid() {
            if left == 0 {
                break;
            }
            left -= 1;
            text.extend(std::ascii::escape_default(*byte).map(char::from));
        }
    }
    text.push('"');
    if left == 0 { format!("{text}... ({})", ByteSize(bytes.len() as u64)) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_short_and_without_control_bytes() {
        assert_eq!(shown("né 'x'".as_bytes()), "\"né 'x'\"");
        assert_eq!(shown(b"a\x00\"\n\xff"), r#""a\0\"\n\xff""#);
        let long = shown(&vec![b'x'; 100_000]);
        assert!(long.len() < 100 && long.ends_with("... (97.7 KiB)"), "{long}");
    }
}
