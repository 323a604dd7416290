//! Logs of a given shape, for benchmarks: as many users, items and rows as asked for.
//!
//! Items fall into clusters and stand in a ring within each; their popularity follows a power law that has
//! nothing to do with their ids. A user likes a few clusters. The next item is mostly one of the few that
//! follow the last one in its ring, the popular ones first, else one from a liked cluster, else one from the whole
//! catalogue. So order, taste and popularity all carry information, and every draw costs at most a binary search.
//! Every item is assigned to one row beforehand, so that none is missing.
//!
//! Users are played in pieces, each from random streams of its own. [`like`] keeps their rows in memory; [`write_like`]
//! sorts them by time in a temporary file and writes them slice by slice, in memory that does not grow with the rows or the
//! users. The time is linear in the rows but for the sorting of each slice.

mod lengths;
mod market;
mod time_slices;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::lengths::Lengths;
use self::market::{Market, Row};
use self::time_slices::TimeSlices;
use super::GenerateError;
use super::draw::DAY;
use crate::data::{Columns, IdColumn, LogFormat, RowSink, write_rows};
use crate::fault::Fault;
use crate::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::numbers::{Count, counted};
use crate::prepare::{Statistics, iso};

/// The size of a generated log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShapeOptions {
    /// Number of users, at least 1. Each has at least one row, five where the rows suffice. Default 10,000.
    pub users: usize,
    /// Number of items, from 1 to 100,000,000. Each has at least one row. Default 2000.
    pub items: usize,
    /// Number of rows: no fewer than users or items, no more than a quarter of the pairs of a user and an item
    /// (or one per user), at most 4,000,000,000, and at most 500,000,000 in memory. Default 120,000.
    pub rows: usize,
    /// The same seed gives the same log. Default 1.
    pub seed: u64,
}

impl Default for ShapeOptions {
    fn default() -> Self {
        ShapeOptions { users: 10_000, items: 2_000, rows: 120_000, seed: 1 }
    }
}

impl ShapeOptions {
    /// `Ok` if a log of this shape can be written.
    pub fn check(&self) -> Result<(), GenerateError> {
        self.check_rows(MAX_ROWS)
    }

    fn check_rows(&self, allowed: usize) -> Result<(), GenerateError> {
        let mut faults = Vec::new();
        if self.users == 0 {
            faults.push(Fault::new("users", self.users, "at least 1"));
        }
        if !(1..=MAX_ITEMS).contains(&self.items) {
            let expected = format!("1 to {}: every item takes memory", Count::of(MAX_ITEMS));
            faults.push(Fault::new("items", self.items, expected));
        }
        let fewest = self.users.max(self.items).max(1);
        let most = (self.users.saturating_mul(self.items) / 4).max(self.users).min(allowed);
        // What is wrong with users or items is wrong with rows too, and said once.
        if faults.is_empty() && !(fewest..=most).contains(&self.rows) {
            faults.push(Fault::new("rows", self.rows, self.rows_expected(fewest, most, allowed)));
        }
        GenerateError::from_faults(faults)
    }

    /// How many rows there may be, and why.
    fn rows_expected(&self, fewest: usize, most: usize, allowed: usize) -> String {
        let shape = format!("{} and {}", counted(self.users, "user"), counted(self.items, "item"));
        let rule = format!(
            "one for every user and item at least; at most a quarter of all pairs of a user and an item, or one for every user, and {} \
             in all",
            Count::of(allowed)
        );
        let (fewest, most, fits) = (Count::of(fewest), Count::of(most), fewest <= most);
        if fits {
            format!("{fewest} to {most} for {shape} ({rule})")
        } else {
            format!("another shape: {shape} need {fewest} rows or more, and {most} are the most ({rule})")
        }
    }
}

/// Users and rows have numbers of 32 bits.
const MAX_ROWS: usize = 4_000_000_000;

/// Eight gigabytes of rows.
const MAX_ROWS_IN_MEMORY: usize = 500_000_000;

/// About a gigabyte of popularities. Half of the catalogue, the longest history, is also less than the seconds of [`SPAN`].
const MAX_ITEMS: usize = 100_000_000;

/// 2023-01-01 00:00:00 UTC, in seconds.
const OPENING: i64 = 1_672_531_200;

/// Two years, in seconds.
const SPAN: i64 = 730 * DAY;

/// Users played as one piece of work: fixed, so that the work is split the same way on any number of threads.
const USERS_AT_ONCE: usize = 1024;

/// Rows of a piece of work after which no more users join it.
const ROWS_AT_ONCE: usize = 1 << 15;

/// Pieces of work that are in memory at once.
const PIECES_AT_ONCE: usize = 32;

/// Rows handed to a file at once.
const ROWS_A_BATCH: usize = 1 << 16;

/// Makes a log of the shape asked for: integer ids, rows in time order over two years, no pair of a user and an
/// item twice.
pub fn like(options: &ShapeOptions) -> Result<Interactions, GenerateError> {
    options.check_rows(MAX_ROWS_IN_MEMORY)?;
    let mut rows: Vec<Interaction> = Vec::with_capacity(options.rows);
    play(options, &(), |piece| {
        rows.extend(piece.iter().map(interaction));
        Ok(())
    })
    // Nothing else can be wrong in memory.
    .map_err(|_| Cancelled)?;
    // No user has two rows at one time: the key has no ties, so an unstable sort has one outcome.
    rows.par_sort_unstable_by_key(|row| (row.time, row.user));
    let ids = |len: usize| Ids::Integers((1..=len as i64).collect());
    Ok(Interactions::from_ranked(ids(options.users), ids(options.items), rows, Clock::Calendar))
}

/// Writes the log that [`like`] makes, without ever having it in memory: this takes 12 bytes per item and some hundred megabytes at most for
/// anything else, and as many as 12 bytes per row in a temporary file, which vanishes with the process.
///
/// The same seed gives the same bytes on any number of threads. The monitor sees the rows and may stop it, which leaves nothing.
///
/// ```
/// use satf::data::LogFormat;
/// use satf::generate::{ShapeOptions, write_like};
///
/// let folder = tempfile::tempdir()?;
/// let shape = ShapeOptions { users: 1000, items: 300, rows: 9000, seed: 1 };
/// let statistics = write_like(&shape, &folder.path().join("log.csv"), LogFormat::Csv, &())?;
/// assert_eq!((statistics.users, statistics.items, statistics.rows), (1000, 300, 9000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_like(
    options: &ShapeOptions,
    path: &Path,
    format: LogFormat,
    monitor: &dyn Monitor,
) -> Result<Statistics, GenerateError> {
    options.check()?;
    let columns = Columns {
        users: IdColumn::Counted,
        items: IdColumn::Counted,
        clock: Clock::Calendar,
        in_seconds: true,
    };
    let statistics = write_rows(path, format, &columns, |sink| {
        let mut slices = TimeSlices::new(options.rows);
        monitor.begin("generating", options.rows as u64);
        let lengths = play(options, monitor, |piece| {
            slices.push(piece)?;
            monitor.advance(piece.len() as u64);
            Ok(())
        })?;
        monitor.begin("writing", options.rows as u64);
        let (first, last) = write_slices(slices, sink, monitor)?;
        Ok(statistics(options, &lengths, first, last))
    })?;
    Ok(statistics)
}

/// How many users have a history of each length.
type LengthCounts = BTreeMap<usize, usize>;

/// Plays all users, and hands their rows to `take`, users in order, each history oldest first.
fn play(
    options: &ShapeOptions,
    monitor: &dyn Monitor,
    mut take: impl FnMut(&[Row]) -> io::Result<()> + Send,
) -> io::Result<LengthCounts> {
    let market = Market::new(options);
    let mut pieces = Pieces { lengths: Lengths::new(options), counts: LengthCounts::new(), user: 0, row: 0 };
    let mut played: Vec<Vec<Row>> = Vec::new();
    loop {
        let next = pieces.next_batch();
        if next.is_empty() && played.is_empty() {
            return Ok(pieces.counts);
        }
        let play = |piece: Piece| {
            check_cancelled(monitor)?;
            Ok(market.play(options, piece.first_user, piece.first_row, &piece.lengths))
        };
        // While these users are played, the rows of those before them are taken.
        let (next, taken) = rayon::join(
            || next.into_par_iter().map(play).collect::<Result<Vec<_>, Cancelled>>(),
            || played.iter().try_for_each(|piece| take(piece)),
        );
        taken?;
        played = next.map_err(io::Error::other)?;
    }
}

/// Users that are played one after the other.
struct Piece {
    first_user: usize,
    /// The rows of all users before them.
    first_row: usize,
    lengths: Vec<usize>,
}

/// All users, piece by piece.
struct Pieces {
    lengths: Lengths,
    counts: LengthCounts,
    user: usize,
    row: usize,
}

impl Pieces {
    /// Some pieces to be played beside each other; none after the last one.
    fn next_batch(&mut self) -> Vec<Piece> {
        let mut batch = Vec::new();
        let before = self.row;
        while batch.len() < PIECES_AT_ONCE && self.row - before < PIECES_AT_ONCE * ROWS_AT_ONCE {
            let (first_user, first_row) = (self.user, self.row);
            let mut lengths = Vec::new();
            while lengths.len() < USERS_AT_ONCE && self.row - first_row < ROWS_AT_ONCE {
                let Some(length) = self.lengths.next() else { break };
                *self.counts.entry(length).or_default() += 1;
                self.row += length;
                lengths.push(length);
            }
            if lengths.is_empty() {
                break;
            }
            self.user += lengths.len();
            batch.push(Piece { first_user, first_row, lengths });
        }
        batch
    }
}

/// Writes rows slice by slice, each in the order of time, and tells the first and the last time.
fn write_slices(
    mut slices: TimeSlices,
    sink: &mut dyn RowSink,
    monitor: &dyn Monitor,
) -> io::Result<(Timestamp, Timestamp)> {
    let (mut first, mut last) = (None, Timestamp(0));
    let mut rows: Vec<Row> = Vec::new();
    let mut batch: Vec<Interaction> = Vec::new();
    for slice in 0..=slices.len() {
        // While one slice is written, the next one is read and sorted.
        let (next, written) = rayon::join(
            || if slice < slices.len() { slices.sorted(slice) } else { Ok(Vec::new()) },
            || {
                rows.chunks(ROWS_A_BATCH).try_for_each(|rows| {
                    check_cancelled(monitor).map_err(io::Error::other)?;
                    batch.clear();
                    batch.extend(rows.iter().map(interaction));
                    first = first.or(batch.first().map(|row| row.time));
                    last = batch.last().map_or(last, |row| row.time);
                    monitor.advance(rows.len() as u64);
                    sink.write(&batch)
                })
            },
        );
        written?;
        rows = next?;
    }
    Ok((first.unwrap_or(last), last))
}

fn interaction(row: &Row) -> Interaction {
    Interaction {
        user: UserIndex(row.user),
        item: ItemIndex(row.item),
        time: Timestamp::from_seconds(OPENING + i64::from(row.seconds)),
    }
}

/// The statistics of a log of this shape, which repeats no pair and has no ties.
fn statistics(
    options: &ShapeOptions,
    lengths: &LengthCounts,
    first: Timestamp,
    last: Timestamp,
) -> Statistics {
    let users = options.users;
    let length_of = |place: usize| {
        let mut before = 0;
        let mut shorter = lengths.iter().skip_while(|&(_, &count)| {
            before += count;
            before <= place
        });
        shorter.next().map_or(0, |(&length, _)| length) as f64
    };
    Statistics {
        users,
        items: options.items,
        rows: options.rows,
        average_history: options.rows as f64 / users as f64,
        median_history: f64::midpoint(length_of((users - 1) / 2), length_of(users / 2)),
        density: options.rows as f64 / (users as f64 * options.items as f64),
        first_time: Some(iso(first)),
        last_time: Some(iso(last)),
        duplicates: 0,
        tied_rows: 0,
    }
}

#[cfg(test)]
mod tests;
