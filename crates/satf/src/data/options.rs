//! How a log is to be read, and what reading it came to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::Format;
use crate::choice::{UnknownChoice, choose};

/// How to read a log. By default, everything is detected.
///
/// Columns are recognised by their names, whatever the case and without regard to `_`, `-`, spaces and the like:
///
/// | column | names, among others |
/// |---|---|
/// | user | `user_id`, `user`, `uid`, `customer_id`, `visitor_id`, `session_id` |
/// | item | `item_id`, `item`, `product_id`, `movie_id`, `track_id`, `asin`, `sku` |
/// | time | `timestamp`, `time`, `datetime`, `date`, `event_time`, `created_at` |
///
/// Columns with other names are given here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format of every file; by content if none.
    pub format: Option<Format>,
    /// The user's column or key: a name, or a number from 1 for columns of text.
    pub user_column: Option<String>,
    /// The item's column or key.
    pub item_column: Option<String>,
    /// The time's column or key.
    pub time_column: Option<String>,
    /// Whether the first line of CSV or TSV names the columns; guessed if none.
    pub header: Option<bool>,
    /// What separates the columns of CSV; guessed among `,`, `;`, `|` and tab if none.
    pub delimiter: Option<u8>,
    /// The unit of times that are numbers.
    pub time_unit: TimeUnit,
    /// The order of the rows is the time: no time column is looked for.
    pub order_is_time: bool,
    /// The type of the users' ids.
    pub user_type: IdType,
    /// The type of the items' ids.
    pub item_type: IdType,
    /// How many bad rows may be left out; one more is an error.
    pub skip_bad_rows: u64,
}

/// The unit of times that are numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// By magnitude: below 1e11 seconds, below 1e14 milliseconds, below 1e17 microseconds, else nanoseconds.
    /// All times of a log must agree.
    #[default]
    Auto,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
    /// Nanoseconds since 1970.
    Nanoseconds,
    /// No count at all, but dates whose digits are year, month and day: 20240517.
    Yyyymmdd,
}

impl TimeUnit {
    /// Every unit.
    pub const ALL: [TimeUnit; 6] = [
        TimeUnit::Auto,
        TimeUnit::Seconds,
        TimeUnit::Milliseconds,
        TimeUnit::Microseconds,
        TimeUnit::Nanoseconds,
        TimeUnit::Yyyymmdd,
    ];

    /// Every unit that can be given for numbers, for messages.
    pub(super) fn told_names() -> String {
        let [_, told @ .., last] = TimeUnit::ALL.map(TimeUnit::name);
        format!("{} or {last}", told.join(", "))
    }

    /// The unit's name.
    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Auto => "auto",
            TimeUnit::Seconds => "seconds",
            TimeUnit::Milliseconds => "milliseconds",
            TimeUnit::Microseconds => "microseconds",
            TimeUnit::Nanoseconds => "nanoseconds",
            TimeUnit::Yyyymmdd => "yyyymmdd",
        }
    }
}

/// The type of the ids of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdType {
    /// As the first row has it.
    #[default]
    Auto,
    /// Integers only.
    Integer,
    /// Every id is text, numbers too.
    String,
}

impl IdType {
    /// Every type.
    pub const ALL: [IdType; 3] = [IdType::Auto, IdType::Integer, IdType::String];

    /// The type's name.
    pub fn name(self) -> &'static str {
        match self {
            IdType::Auto => "auto",
            IdType::Integer => "integer",
            IdType::String => "string",
        }
    }
}

impl ReadOptions {
    /// Whether it is said, by the format or else, that rows without times are in the order of time.
    pub(super) fn tells_order(&self) -> bool {
        self.order_is_time || self.format == Some(Format::SasRec)
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for IdType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TimeUnit {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        choose(name, TimeUnit::ALL.map(|unit| (unit.name(), unit)))
    }
}

impl FromStr for IdType {
    type Err = UnknownChoice;

    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        choose(name, IdType::ALL.map(|kind| (kind.name(), kind)))
    }
}

/// What reading a log came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Every file, in the order read.
    pub files: Vec<FileReport>,
    /// Bytes of text in all files, decompressed (the size of the file for Parquet).
    pub text_bytes: u64,
    /// How many bad rows were left out.
    pub skipped_rows: u64,
    /// What was wrong with the first few of them.
    pub skipped_messages: Vec<String>,
    /// How many times were finer than a microsecond, and were rounded to it.
    pub finer_times: u64,
}

/// What reading one file came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Its format, given or detected.
    pub format: Format,
    /// Rows taken from it.
    pub rows: u64,
    /// What its first row was taken for, if it may be either a header or an event.
    pub doubtful_first_row: Option<FirstRow>,
    /// What its times are.
    pub times: TimeKind,
    /// Whether it has no times and nobody said so: its rows were taken to be in the order of time. [`ReadOptions::order_is_time`]
    /// says that they are.
    pub has_assumed_order: bool,
    /// The first of its times that looks like a date such as 20240517, if most of them do and were taken for seconds since 1970.
    /// [`ReadOptions::time_unit`] says which they are.
    pub doubtful_dates: Option<i64>,
}

/// What the times of a file are. Only numbers have a [`TimeUnit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeKind {
    /// There are none: the order of the rows is the time.
    None,
    /// Numbers.
    Numbers,
    /// Dates, or timestamps of a type that says what they are.
    Dates,
}

/// A first row such as `u,game`, which may name the columns and may be an event. [`ReadOptions::header`] says which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRow {
    /// What stands in its columns.
    pub fields: Vec<String>,
    /// Whether it was taken for a header. If not, it was taken for an event.
    pub is_header: bool,
}
