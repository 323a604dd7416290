//! A log from wherever events are: memory, Arrow, files, anything that can be read.

use std::fs;
use std::io::Read;
use std::path::Path;

use arrow_array::RecordBatch;

use super::arrow;
use super::columns::{ColumnNames, Columns, Wanted};
use super::error::Position;
use super::event_time::{EVENTS, EventTime};
use super::field::Field;
use super::ledger::{Ledger, Rejection};
use super::rows::{Next, Row, Rows};
use super::source::Source;
use super::tolerance::Tolerance;
use super::{DataError, FileReport, ReadOptions, ReadReport};
use crate::interactions::{AsId, Clock, Interactions};
use crate::monitor::{Monitor, check_cancelled};

/// Rows between two questions whether to stop.
const ROWS_A_CHECK: u64 = 4096;

/// What messages call record batches.
pub(super) const BATCHES: &str = "record batches";

/// Builds a log from events in memory, Arrow record batches, files and readers, one after the other and in any mixture.
///
/// All of them go through the same checks: the first id of a column decides whether its ids are integers or strings, times become
/// microseconds, and a bad row is an error that names its place, or is left out and counted if [`ReadOptions::skip_bad_rows`] allows.
/// A bad row leaves nothing behind: after an error the builder holds what came before it.
///
/// ```
/// use satf::LogBuilder;
///
/// # fn main() -> Result<(), satf::data::DataError> {
/// let mut builder = LogBuilder::new();
/// builder.push("ann", 17, "2024-05-17T10:11:12Z")?;
/// builder.push("bob", 4, "2024-05-18")?;
/// builder.add_reader("more.csv", &b"user,item,time\nann,4,2024-05-19\n"[..], &())?;
/// let log = builder.finish()?;
/// assert_eq!((log.len(), log.users().len(), log.items().len()), (3, 2, 2));
/// # Ok(())
/// # }
/// ```
pub struct LogBuilder {
    options: ReadOptions,
    ledger: Ledger,
    tolerance: Tolerance,
    report: ReadReport,
    supply: Supply,
    /// Events pushed and batches added so far, good or bad.
    events: u64,
    batches: u32,
    timed: Columns,
    ordered: Columns,
}

/// Where rows come from at the moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Supply {
    Source,
    Events,
    Batches {
        /// What is added to the row numbers of a prepared log.
        first_number: i64,
        /// Rows of the table so far, if they are numbered through it.
        rows: u64,
    },
}

impl Default for LogBuilder {
    fn default() -> Self {
        LogBuilder::new()
    }
}

impl LogBuilder {
    /// An empty log; types of ids and units of times are found out.
    pub fn new() -> Self {
        LogBuilder::with_options(ReadOptions::default())
    }

    /// An empty log with options for how events are read. Options that concern files have no effect on other events.
    pub fn with_options(options: ReadOptions) -> Self {
        let columns = |clock: Clock| {
            let time = (clock == Clock::Calendar).then(|| "time".into());
            let names = ColumnNames { user: "user".into(), item: "item".into(), time, order: None };
            Columns { names, clock, is_whole: false, order: None, is_event: false }
        };
        LogBuilder {
            ledger: Ledger::new(&options),
            tolerance: Tolerance::new(&options),
            options,
            report: ReadReport::default(),
            supply: Supply::Source,
            events: 0,
            batches: 0,
            timed: columns(Clock::Calendar),
            ordered: columns(Clock::RowOrder),
        }
    }

    /// Adds an event: a user, an item and a time. Events may come in any order; those with equal times keep theirs.
    ///
    /// If [`ReadOptions::order_is_time`], the time plays no part.
    pub fn push<'t>(
        &mut self,
        user: impl AsId,
        item: impl AsId,
        time: impl Into<EventTime<'t>>,
    ) -> Result<(), DataError> {
        let time = (!self.options.order_is_time).then(|| Field::from(time.into()));
        self.push_event(user, item, time)
    }

    /// Adds an event of a log without times: the order in which events are added is the time.
    pub fn push_in_order(&mut self, user: impl AsId, item: impl AsId) -> Result<(), DataError> {
        self.push_event(user, item, None)
    }

    fn push_event(
        &mut self,
        user: impl AsId,
        item: impl AsId,
        time: Option<Field<'_>>,
    ) -> Result<(), DataError> {
        if self.supply != Supply::Events {
            self.ledger.begin_file();
            self.supply = Supply::Events;
        }
        self.events += 1;
        let columns = if time.is_some() { &self.timed } else { &self.ordered };
        let row = Row {
            position: Position::Row(self.events),
            user: user.as_id().into(),
            item: item.as_id().into(),
            time,
            order: None,
        };
        take(&mut self.ledger, &mut self.tolerance, Path::new(EVENTS), columns, &row)
    }

    /// Adds the rows of a record batch of Arrow; its types are in [`data::arrow_array`](crate::data::arrow_array). Columns are found by
    /// name, as in a file ([`ReadOptions`](crate::data::ReadOptions) has the names).
    ///
    /// Ids are integers or strings of any Arrow type, plain or in dictionaries; times are these too, or timestamps, dates and floats.
    /// Values are read where they lie: no column is copied. Batches added one after the other are one table. That a prepared log has row
    /// numbers for times is said in the metadata of its schema.
    pub fn add_batch(&mut self, batch: &RecordBatch) -> Result<(), DataError> {
        self.batches = self.batches.saturating_add(1);
        let number = self.batches;
        self.add_rows(Path::new(BATCHES), batch, |_, row| Position::BatchRow { batch: number, row })
    }

    /// The same for a table that is added part by part: messages call it by `name`, and number its rows through all parts, from 1.
    pub fn add_part(&mut self, name: impl AsRef<Path>, part: &RecordBatch) -> Result<(), DataError> {
        self.add_rows(name.as_ref(), part, |before, row| Position::Row(before + row))
    }

    fn add_rows(
        &mut self,
        path: &Path,
        batch: &RecordBatch,
        position: impl Fn(u64, u64) -> Position,
    ) -> Result<(), DataError> {
        let next_number = self.ledger.next_row_number();
        let (mut first_number, mut rows_before) = (next_number, 0);
        if let Supply::Batches { first_number: of_table, rows } = self.supply {
            (first_number, rows_before) = (of_table, rows);
        } else {
            self.ledger.begin_file();
        }
        let (chosen, columns) = arrow::choose(path, batch.schema_ref(), &Wanted::log(&self.options, 0))?;
        let column = |at| arrow::column(path, batch, at);
        let (users, items) = (column(chosen.user)?, column(chosen.item)?);
        let times = chosen.time.map(column).transpose()?;
        for at in 0..batch.num_rows() {
            let time = times.as_ref().map(|times| match times.get(at) {
                Field::Integer(number) if columns.clock == Clock::RowOrder => {
                    // Numbers that begin again are those of another table.
                    if at == 0 && number.saturating_add(first_number) < next_number {
                        first_number = next_number;
                    }
                    Field::Micros(number.saturating_add(first_number))
                }
                time => time,
            });
            let position = position(rows_before, at as u64 + 1);
            let row = Row { position, user: users.get(at), item: items.get(at), time, order: None };
            take(&mut self.ledger, &mut self.tolerance, path, &columns, &row)?;
        }
        self.supply = Supply::Batches { first_number, rows: rows_before + batch.num_rows() as u64 };
        Ok(())
    }

    /// Adds the rows of a file: plain, gzip or zstd, in any [`Format`](super::Format).
    pub fn add_file(&mut self, path: impl AsRef<Path>, monitor: &dyn Monitor) -> Result<(), DataError> {
        let path = path.as_ref();
        let metadata = fs::metadata(path).map_err(|source| DataError::open(path, source))?;
        if metadata.is_dir() {
            return Err(DataError::Directory { path: path.to_owned() });
        }
        self.add_source(Source::open(path, monitor)?, monitor)
    }

    /// Adds the rows of anything that can be read, as those of a file. Messages call it by `name`.
    ///
    /// Text is streamed. Parquet is read from its end, so it is held in memory: up to 1 GiB of it.
    pub fn add_reader(
        &mut self,
        name: impl AsRef<Path>,
        reader: impl Read + Send,
        monitor: &dyn Monitor,
    ) -> Result<(), DataError> {
        self.add_source(Source::new(name.as_ref(), reader, monitor)?, monitor)
    }

    fn add_source(&mut self, source: Source<'_>, monitor: &dyn Monitor) -> Result<(), DataError> {
        let path = source.path().to_owned();
        let rows_before = self.ledger.num_rows();
        self.ledger.begin_file();
        self.tolerance.begin_file();
        self.supply = Supply::Source;
        let wanted = Wanted::log(&self.options, self.ledger.next_row_number());
        let (mut rows, format) = Rows::open(source, wanted, monitor)?;
        let (ledger, tolerance) = (&mut self.ledger, &mut self.tolerance);
        let mut has_times = true;
        for number in 0u64.. {
            if number.is_multiple_of(ROWS_A_CHECK) {
                check_cancelled(monitor)?;
            }
            let taken = rows.next(|columns, row| {
                has_times = row.time.is_some();
                take(ledger, tolerance, &path, columns, &row)
            });
            match taken? {
                Next::Row(taken) => taken?,
                Next::Bad(position, fault) => tolerance.reject(fault.at(&path, position))?,
                Next::End => break,
            }
        }
        let (times, doubtful_dates) = ledger.times_of_file();
        let taken = (ledger.num_rows() - rows_before) as u64;
        if taken == 0 {
            return Err(tolerance.no_rows(Some(&rows)));
        }
        self.report.text_bytes += rows.text_bytes();
        let doubtful_first_row = rows.doubtful_first_row().cloned();
        let has_assumed_order = !has_times && !self.options.tells_order();
        let report = FileReport {
            path,
            format,
            rows: taken,
            doubtful_first_row,
            times,
            has_assumed_order,
            doubtful_dates,
        };
        self.report.files.push(report);
        Ok(())
    }

    /// How many events the log has so far.
    pub fn len(&self) -> usize {
        self.ledger.num_rows()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What came of it so far: files and readers, and rows left out wherever they came from.
    pub fn report(&self) -> ReadReport {
        ReadReport {
            skipped_rows: self.tolerance.skipped,
            skipped_messages: self.tolerance.messages.clone(),
            finer_times: self.ledger.finer_times(),
            ..self.report.clone()
        }
    }

    /// The log; an error if it has no event.
    pub fn finish(mut self) -> Result<Interactions, DataError> {
        if self.is_empty() {
            return Err(self.tolerance.no_rows(None));
        }
        Ok(self.ledger.finish())
    }
}

/// Takes a row into the log, or leaves a bad one out if that is allowed.
#[inline]
fn take(
    ledger: &mut Ledger,
    tolerance: &mut Tolerance,
    path: &Path,
    columns: &Columns,
    row: &Row<'_>,
) -> Result<(), DataError> {
    match ledger.push(row.user, row.item, row.time, columns, path, row.position) {
        Ok(()) => Ok(()),
        Err(Rejection::Row(fault)) => tolerance.reject(fault.at(path, row.position)),
        Err(Rejection::Log(error)) => Err(error),
    }
}

impl Interactions {
    /// A log of these events: user, item, time. [`LogBuilder`] takes them from elsewhere, and one by one.
    ///
    /// ```
    /// use satf::Interactions;
    ///
    /// let log = Interactions::from_events([("ann", 17, "2024-05-17"), ("bob", 4, "2024-05-18")])?;
    /// assert_eq!(log.users().get(1), "bob".into());
    /// # Ok::<(), satf::data::DataError>(())
    /// ```
    pub fn from_events<'t>(
        events: impl IntoIterator<Item = (impl AsId, impl AsId, impl Into<EventTime<'t>>)>,
    ) -> Result<Self, DataError> {
        let mut builder = LogBuilder::new();
        for (user, item, time) in events {
            builder.push(user, item, time)?;
        }
        builder.finish()
    }
}
