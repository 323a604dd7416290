//! Logs: how they are read, prepared, looked at and made up.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use satf::data::{Format, IdType, ReadOptions, TimeUnit};
use satf::prepare::{Duplicates, Offset};

use super::SplitArgument;
use super::values::{parse_delimiter, parse_log, parse_yes_no};

/// Where the log is and how to read it.
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Files of the log (several files form one log): plain, .gz or .zst
    #[arg(required = true, value_name = "LOG")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
}

/// How files of rows are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingArguments {
    /// Format of the files [default: by content]
    #[arg(long, value_name = "FORMAT", value_parser = str::parse::<Format>)]
    format: Option<Format>,
    /// The user column: a name, or a number counted from 1 in files without a header
    #[arg(long, value_name = "COLUMN")]
    user_column: Option<String>,
    /// The item column
    #[arg(long, value_name = "COLUMN")]
    item_column: Option<String>,
    /// The time column
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// CSV and TSV: whether the first line holds column names [default: guessed]
    #[arg(long, value_name = "yes|no", value_parser = parse_yes_no)]
    header: Option<bool>,
    /// CSV: what separates the columns, one character or `tab` [default: guessed]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Unit of numeric times
    #[arg(long, value_name = "UNIT", value_enum, default_value_t = TimeUnitArgument::Auto)]
    time_unit: TimeUnitArgument,
    /// The log has no times: its rows are in the order of time
    #[arg(long, conflicts_with_all = ["time_column", "time_unit"])]
    order_is_time: bool,
    /// Type of the user ids
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IdTypeArgument::Auto)]
    user_type: IdTypeArgument,
    /// Type of the item ids
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IdTypeArgument::Auto)]
    item_type: IdTypeArgument,
    /// Skip and count up to N rows that cannot be read
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad_rows: u64,
}

impl LogArguments {
    pub(crate) fn read_options(&self) -> ReadOptions {
        self.reading.read_options()
    }
}

impl ReadingArguments {
    /// The first option that is given, by name.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--format", self.format.is_some()),
            ("--user-column", self.user_column.is_some()),
            ("--item-column", self.item_column.is_some()),
            ("--time-column", self.time_column.is_some()),
            ("--header", self.header.is_some()),
            ("--delimiter", self.delimiter.is_some()),
            ("--time-unit", self.time_unit != TimeUnitArgument::Auto),
            ("--order-is-time", self.order_is_time),
            ("--user-type", self.user_type != IdTypeArgument::Auto),
            ("--item-type", self.has_item_type()),
            ("--skip-bad-rows", self.skip_bad_rows > 0),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Whether the type of items is given.
    pub(crate) fn has_item_type(&self) -> bool {
        self.item_type != IdTypeArgument::Auto
    }

    pub(crate) fn read_options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            user_column: self.user_column.clone(),
            item_column: self.item_column.clone(),
            time_column: self.time_column.clone(),
            header: self.header,
            delimiter: self.delimiter,
            time_unit: self.time_unit.into(),
            order_is_time: self.order_is_time,
            user_type: self.user_type.into(),
            item_type: self.item_type.into(),
            skip_bad_rows: self.skip_bad_rows,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf prepare ratings.dat.gz -o ml-1m.parquet
  satf prepare steam_reviews.json.gz --core 5 -o steam.parquet
  satf prepare day1.csv day2.csv --user-column customer --duplicates all -o log.csv")]
pub(crate) struct PrepareArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// The file to write: Parquet (.parquet), or CSV (.csv, .csv.gz or .csv.zst)
    #[arg(short, long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(parse_log))]
    pub(crate) output: PathBuf,
    /// Which of the rows with the same user and item to keep: last, first or all
    #[arg(long, value_name = "WHICH", default_value = "last", value_parser = str::parse::<Duplicates>)]
    pub(crate) duplicates: Duplicates,
    /// Keep the P-core: remove users and items with fewer than P rows until none are left
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub(crate) core: usize,
    /// Write the result as JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf stats ratings.dat.gz
  satf stats log.parquet --json
  satf stats log.parquet --order-matters
  satf stats amz-beauty.csv.gz --order-matters --test 3weeks

--order-matters trains models on the past of the log and predicts its newest part, with histories as they are and with
histories in random order, and says in words whether order helps.")]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// Check whether order helps to predict what comes next
    #[arg(long)]
    pub(crate) order_matters: bool,
    #[command(flatten)]
    pub(crate) order: OrderArguments,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// How order is checked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Order")]
pub(crate) struct OrderArguments {
    /// Length of the test set, counted back from the newest time: 3weeks, 4months, 1day [default: the shortest usual one
    /// with enough events]
    #[arg(long, value_name = "OFFSET", requires = "order_matters")]
    pub(crate) test: Option<Offset>,
    /// How the log is cut [default: calendar; leave-one-out for a log without times]
    #[arg(long, value_enum, requires = "order_matters", conflicts_with = "test")]
    pub(crate) split: Option<SplitArgument>,
    /// How often histories are shuffled and ties drawn [default: 3]
    #[arg(long, value_name = "N", requires = "order_matters", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub(crate) repetitions: Option<usize>,
    /// Seed for everything random [default: 0]
    #[arg(long, value_name = "SEED", requires = "order_matters")]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf generate --users 10000 --seed 7 -o shop.csv
  satf generate --users 1000000 --items 100000 --rows 10000000 -o large.parquet")]
pub(crate) struct GenerateArguments {
    /// The file to write: Parquet (.parquet), or CSV (.csv, .csv.gz or .csv.zst)
    #[arg(short, long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(parse_log))]
    pub(crate) output: PathBuf,
    /// Number of users [default: 4000]
    #[arg(long, value_name = "N")]
    pub(crate) users: Option<usize>,
    /// Days the log of the shop covers [default: 365]
    #[arg(long, value_name = "N", conflicts_with = "rows")]
    pub(crate) days: Option<u32>,
    /// Number of items, with --rows
    #[arg(long, value_name = "N", requires = "rows")]
    pub(crate) items: Option<usize>,
    /// Number of rows: instead of the shop, a log of exactly so many users, items and rows over two years, which is never in memory as a whole
    #[arg(long, value_name = "N", requires_all = ["users", "items"])]
    pub(crate) rows: Option<usize>,
    /// Seed: the same one gives the same log
    #[arg(long, default_value_t = satf::generate::ShopOptions::default().seed)]
    pub(crate) seed: u64,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimeUnitArgument {
    Auto,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
    Yyyymmdd,
}

impl From<TimeUnitArgument> for TimeUnit {
    fn from(unit: TimeUnitArgument) -> Self {
        match unit {
            TimeUnitArgument::Auto => TimeUnit::Auto,
            TimeUnitArgument::Seconds => TimeUnit::Seconds,
            TimeUnitArgument::Milliseconds => TimeUnit::Milliseconds,
            TimeUnitArgument::Microseconds => TimeUnit::Microseconds,
            TimeUnitArgument::Nanoseconds => TimeUnit::Nanoseconds,
            TimeUnitArgument::Yyyymmdd => TimeUnit::Yyyymmdd,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IdTypeArgument {
    Auto,
    Integer,
    String,
}

impl From<IdTypeArgument> for IdType {
    fn from(kind: IdTypeArgument) -> Self {
        match kind {
            IdTypeArgument::Auto => IdType::Auto,
            IdTypeArgument::Integer => IdType::Integer,
            IdTypeArgument::String => IdType::String,
        }
    }
}
