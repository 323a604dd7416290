//! Histories to recommend for, one after the other: any number of them, in bounded memory.

mod gathered;
mod grouping;
mod spill;

use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use hashbrown::{DefaultHashBuilder, HashSet};

use self::gathered::UNKNOWN;
use self::grouping::Grouping;
use super::columns::{Columns, Role, Wanted};
use super::error::Fault;
use super::field::Field;
use super::interner::{Digits, Interner};
use super::ledger::Rejection;
use super::rows::{Next, Row, Rows};
use super::source::Source;
use super::time::TimeReader;
use super::tolerance::Tolerance;
use super::{DataError, FirstRow, Format, ReadOptions, TimeKind};
use crate::interactions::{Clock, Id, Ids, OwnedHistory, OwnedId};
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};

/// Rows between two questions whether to stop.
const ROWS_A_CHECK: u64 = 4096;

/// A user's history in the indices of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHistory {
    /// Whose history.
    pub user: OwnedId,
    /// What the user did so far.
    pub history: OwnedHistory,
}

/// How histories are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// How the file is read; as for a log.
    pub reading: ReadOptions,
    /// The column or key of whole histories: a name, or a number from 1 for columns of text. By name (`history`, `items`, …) if
    /// none.
    pub history_column: Option<String>,
    /// Bytes that rows waiting for others of their user may take, about; [`UserHistories`] says what happens beyond them.
    pub memory: u64,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        HistoryOptions { reading: ReadOptions::default(), history_column: None, memory: 128 << 20 }
    }
}

/// A stream of histories; it ends with the first error.
///
/// Everything that [`read_log`](super::read_log) reads is read as histories too, by the same readers, with the same options and the
/// same reading of ids and times. Times may be missing. Besides, a file may hold whole histories:
///
/// | format | a whole history is |
/// |---|---|
/// | JSON lines | `{"user_id": "ann", "history": ["tent", "sleeping bag"]}`, oldest item first |
/// | JSON list | `[{"user_id": "ann", "history": ["tent"]}, …]`, or lists alone, `[["tent", "mug"], ["lamp"]]`, whose users are their numbers from 1 |
/// | CSV or TSV with a column `history` | `ann,"tent,sleeping bag"` as [`parse_history`](super::parse_history) reads it, or a JSON list |
/// | Parquet with a column `history` | a list of ids, or text as in CSV |
///
/// Items of one basket are rows with equal times, or a list within the list: `["tent", ["mug", "stove"]]`.
///
/// Rows of users and items may stand in any order. A user's rows are put in the order of their times, or of the file where there are
/// none; equal times keep the order of the file. Histories come out in the order in which their users first appear. Up to
/// [`HistoryOptions::memory`] rows are gathered in memory. A file with more is looked through first: if the rows of each user stand
/// together (which is known of up to four million users, and of any number that are sorted), it streams, and only one history is in
/// memory; otherwise, and for a pipe, rows are sorted in temporary files.
///
/// An id that is null, empty, a fraction or a truth value is an error with its place, or counted if bad rows may be skipped. A
/// history that is null or empty is a history without items. A file without any row, such as a header alone, is an error, as it is for
/// a log.
pub struct UserHistories<'a> {
    rows: Rows<'a>,
    format: Format,
    resolver: Resolver<'a>,
    tolerance: Tolerance,
    /// The file, if it can be read again.
    file: Option<PathBuf>,
    wanted: Wanted<'a>,
    monitor: &'a dyn Monitor,
    /// Whether there was a row, be it a bad one.
    has_rows: bool,
    is_read: bool,
    is_over: bool,
}

impl<'a> UserHistories<'a> {
    /// Opens a file, or standard input for `-`.
    pub fn open(
        path: &Path,
        catalog: &'a Ids,
        options: &HistoryOptions,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        let mut file = None;
        let source = if path == Path::new("-") {
            monitor.begin("recommending", 0);
            Source::from_waiting(Path::new("standard input"), std::io::stdin(), monitor)?
        } else {
            let metadata = fs::metadata(path).map_err(|source| DataError::open(path, source))?;
            if metadata.is_dir() {
                return Err(DataError::Directory { path: path.to_owned() });
            }
            monitor.begin("recommending", metadata.len());
            file = metadata.is_file().then(|| path.to_owned());
            Source::open(path, monitor)?
        };
        let wanted = Wanted::histories(&options.reading, options.history_column.as_deref(), catalog);
        let (rows, format) = Rows::open(source, wanted.clone(), monitor)?;
        let resolver = Resolver::new(rows.path(), catalog, options);
        Ok(UserHistories {
            rows,
            format,
            resolver,
            tolerance: Tolerance::new(&options.reading),
            file,
            wanted,
            monitor,
            has_rows: false,
            is_read: false,
            is_over: false,
        })
    }

    /// How many bad rows were skipped so far.
    pub fn skipped_rows(&self) -> u64 {
        self.tolerance.skipped
    }

    /// How many times so far were finer than a microsecond, and were rounded to it.
    pub fn finer_times(&self) -> u64 {
        self.resolver.times.finer()
    }

    /// What the times of the rows are; known once a history was read. Whole histories have none.
    pub fn times(&self) -> TimeKind {
        self.resolver.times.kind()
    }

    /// Whether rows had no times so far and nobody said so: they were taken to be in the order of time. Whole histories say it
    /// themselves.
    pub fn has_assumed_order(&self) -> bool {
        self.resolver.lacks_times && !self.wanted.options.tells_order()
    }

    /// The first time that looks like a date such as 20240517, if most so far do and were taken for seconds since 1970.
    pub fn doubtful_dates(&self) -> Option<i64> {
        self.resolver.times.doubtful_dates()
    }

    /// Whether a row is a whole history; known once one was read.
    pub fn is_whole(&self) -> bool {
        self.resolver.is_whole
    }

    /// Whether all histories so far are lists that stand alone, in which no column and no key has a name; known once one was read.
    pub fn has_only_lists(&self) -> bool {
        self.rows.has_only_lists()
    }

    /// What was wrong with the first few of them.
    pub fn skipped_messages(&self) -> &[String] {
        &self.tolerance.messages
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What messages call the file.
    pub fn path(&self) -> &Path {
        self.rows.path()
    }

    /// What the first row was taken for, if it may be either a header or an event; known once a history was read.
    pub fn doubtful_first_row(&self) -> Option<&FirstRow> {
        self.rows.doubtful_first_row()
    }

    fn read(&mut self) -> Result<Option<UserHistory>, DataError> {
        loop {
            if let Some(history) = self.resolver.grouping.next()? {
                return Ok(Some(history));
            }
            if self.is_read {
                return Ok(None);
            }
            if self.resolver.grouping.rows().is_multiple_of(ROWS_A_CHECK) {
                check_cancelled(self.monitor)?;
            }
            let resolver = &mut self.resolver;
            let next = self.rows.next(|columns, row| (row.position, resolver.take(columns, &row)))?;
            self.has_rows |= !matches!(next, Next::End);
            match next {
                Next::Row((_, Ok(Some(history)))) => return Ok(Some(history)),
                Next::Row((_, Ok(None))) => {}
                Next::Row((position, Err(Rejection::Row(fault)))) | Next::Bad(position, fault) => {
                    self.tolerance.reject(fault.at(self.rows.path(), position))?;
                }
                Next::Row((_, Err(Rejection::Log(error)))) => return Err(error),
                Next::End if !self.has_rows => {
                    return Err(self.rows.no_rows());
                }
                Next::End => {
                    self.is_read = true;
                    self.resolver.grouping.finish()?;
                }
            }
            if self.resolver.grouping.is_full() {
                let is_grouped = self.is_grouped()?;
                self.resolver.grouping.make_room(is_grouped)?;
            }
        }
    }

    /// Whether the file is sure to have the rows of each user together. A pipe is not.
    fn is_grouped(&self) -> Result<bool, DataError> {
        let Some(path) = &self.file else { return Ok(false) };
        let monitor = OnlyCancels(self.monitor);
        let (mut rows, _) = Rows::open(Source::open(path, &monitor)?, self.wanted.clone(), &monitor)?;
        let mut users = Interner::new(Role::User, self.wanted.options.user_type);
        let mut seen = SeenUsers::default();
        for number in 0u64.. {
            if number.is_multiple_of(ROWS_A_CHECK) {
                check_cancelled(self.monitor)?;
            }
            let taken = rows.next(|columns, row| {
                let mut digits = Digits::default();
                // A bad row is dealt with when its turn comes.
                users.read(row.user, &mut digits, &columns.names.user).map_or(true, |user| seen.take(user))
            });
            match taken? {
                Next::Row(false) => return Ok(false),
                Next::Row(true) | Next::Bad(..) => {}
                Next::End => break,
            }
        }
        Ok(true)
    }
}

impl Iterator for UserHistories<'_> {
    type Item = Result<UserHistory, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.read();
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// Rows into items of a catalogue.
struct Resolver<'a> {
    path: PathBuf,
    catalog: &'a Ids,
    users: Interner,
    times: TimeReader,
    grouping: Grouping,
    /// Whether a row was a whole history.
    is_whole: bool,
    /// Whether a row that was not had no time.
    lacks_times: bool,
}

impl<'a> Resolver<'a> {
    fn new(path: &Path, catalog: &'a Ids, options: &HistoryOptions) -> Self {
        Resolver {
            path: path.to_owned(),
            catalog,
            users: Interner::new(Role::User, options.reading.user_type),
            times: TimeReader::new(options.reading.time_unit),
            grouping: Grouping::new(usize::try_from(options.memory).unwrap_or(usize::MAX)),
            is_whole: false,
            lacks_times: false,
        }
    }

    /// Takes a row; the history, if the row holds a whole one.
    fn take(&mut self, columns: &Columns, row: &Row<'_>) -> Result<Option<UserHistory>, Rejection> {
        let mut digits = Digits::default();
        let user = self.users.read(row.user, &mut digits, &columns.names.user)?;
        self.is_whole |= columns.is_whole;
        if columns.is_whole {
            let mut history = OwnedHistory::new();
            match row.item {
                Field::List(list) => list.push_to(self.catalog, &mut history).map_err(|mut fault| {
                    fault.column.get_or_insert_with(|| columns.names.item.clone());
                    fault
                })?,
                // No history is one without items.
                Field::Other("null") => {}
                other => return Err(Box::new(not_a_list(&other, columns)).into()),
            }
            return Ok(Some(UserHistory { user: user.to_owned(), history }));
        }
        let item = self.find(row.item, columns)?;
        self.lacks_times |= row.time.is_none();
        let time = match row.time {
            None => i64::try_from(self.grouping.rows()).unwrap_or(i64::MAX),
            Some(Field::Micros(number)) if columns.clock == Clock::RowOrder => number,
            Some(time) => self.times.read(&time, columns.names.time.as_deref(), &self.path, row.position)?,
        };
        self.grouping.push(user, item, time).map_err(Rejection::Log)?;
        Ok(None)
    }

    /// The index of an item.
    fn find(&self, field: Field<'_>, columns: &Columns) -> Result<u32, Box<Fault>> {
        let unsigned;
        let id = match field {
            Field::Integer(id) => Id::Integer(id),
            Field::Unsigned(id) => {
                unsigned = id.to_string();
                Id::Text(&unsigned)
            }
            Field::Plain(text) | Field::Text(text) if !text.is_empty() => {
                Id::Text(std::str::from_utf8(text).map_err(|_| {
                    Box::new(fault(&field, "the id of an item in valid UTF-8", &columns.names.item))
                })?)
            }
            _ => {
                let expected = "the id of an item (a string or an integer of 64 bits)";
                return Err(Box::new(fault(&field, expected, &columns.names.item)));
            }
        };
        Ok(self.catalog.find(id).map_or(UNKNOWN, |index| index as u32))
    }
}

fn not_a_list(field: &Field<'_>, columns: &Columns) -> Fault {
    fault(field, "a list of ids, such as [\"tent\", \"sleeping bag\"]", &columns.names.item)
}

fn fault(field: &Field<'_>, expected: &str, column: &str) -> Fault {
    Fault { column: Some(column.into()), found: field.shown().into(), expected: expected.into(), hint: None }
}

/// Users whose rows are over, as far as they can be remembered.
#[derive(Default)]
struct SeenUsers {
    hashes: HashSet<u64>,
    hasher: DefaultHashBuilder,
    current: Option<OwnedId>,
    is_unsorted: bool,
}

impl SeenUsers {
    /// The most users that are remembered: about 80 MiB. Beyond them only the order of ids is sure.
    const MOST: usize = 4 << 20;

    /// Takes the user of the next row; whether the rows of each user are sure to have stood together so far.
    fn take(&mut self, user: Id<'_>) -> bool {
        if let Some(current) = &self.current {
            let current = current.as_id();
            if current == user {
                return true;
            }
            self.is_unsorted |= current > user;
        }
        self.current = Some(user.to_owned());
        if self.hashes.len() < SeenUsers::MOST {
            return self.hashes.insert(self.hasher.hash_one(user));
        }
        !self.is_unsorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items and marks of every history in a file of this text.
    fn read(name: &str, text: &str) -> Vec<(Vec<u32>, Vec<bool>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let catalog = Ids::Texts(["lamp", "mat", "mug", "stove", "tent"].map(Into::into).into());
        UserHistories::open(&path, &catalog, &HistoryOptions::default(), &())
            .unwrap()
            .map(|history| {
                let history = history.unwrap().history;
                (history.items().iter().map(|item| item.0).collect(), history.with_previous().to_vec())
            })
            .collect()
    }

    #[test]
    fn items_taken_at_one_time_are_marked_in_every_format() {
        let expected = vec![
            (vec![4, 2, 3, 0], vec![false, false, true, false]),
            // An item that is not known has no place, and none is with it.
            (vec![2, 1], vec![false, false]),
        ];
        let json = "{\"user_id\": 1, \"history\": [\"tent\", [\"mug\", \"stove\"], \"lamp\"]}\n\
                    {\"user_id\": 2, \"history\": [[\"rope\", \"mug\"], [\"rope\"], \"mat\"]}\n";
        assert_eq!(read("a.jsonl", json), expected);
        let rows = "user_id,item_id,timestamp\n1,tent,10\n1,mug,20\n1,stove,20\n1,lamp,30\n\
                    2,rope,10\n2,mug,10\n2,rope,20\n2,mat,30\n";
        assert_eq!(read("a.csv", rows), expected);
        let wide = "user_id;history\n1;[\"tent\", [\"mug\", \"stove\"], \"lamp\"]\n2;[[\"rope\", \"mug\"], \"mat\"]\n";
        assert_eq!(read("b.csv", wide), expected);
        let plain = "user_id;history\n1;tent,mug+stove,lamp\n2;rope+mug,mat\n";
        assert_eq!(read("c.csv", plain), expected);
        let list = "[[\"tent\", [\"mug\", \"stove\"], \"lamp\"],\n[[\"rope\", \"mug\"], \"mat\"]]";
        assert_eq!(read("d.json", list), expected);
    }
}
