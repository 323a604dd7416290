//! Rows come in with ids as written; a log with dense, ranked indices comes out.

use std::path::Path;

use super::columns::{Columns, Role};
use super::error::{Fault, Position};
use super::field::Field;
use super::interner::{Digits, Interner};
use super::time::TimeReader;
use super::{DataError, ReadOptions, TimeKind};
use crate::interactions::{Clock, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

/// The most users, items or rows of a log: the largest `u32` marks "none" in places.
pub(super) const MOST: usize = u32::MAX as usize - 1;

/// Why a row was not accepted.
pub(super) enum Rejection {
    /// The row is bad.
    Row(Box<Fault>),
    /// The log is.
    Log(DataError),
}

/// That there is no memory for more than so many of something, of which there would be twice as many next.
#[cold]
pub(super) fn no_room(what: &'static str, count: usize, size: usize) -> Rejection {
    Rejection::Log(DataError::NoRoom { what, count, bytes: 2 * (count * size) as u64 })
}

impl From<Box<Fault>> for Rejection {
    fn from(fault: Box<Fault>) -> Self {
        Rejection::Row(fault)
    }
}

/// A log that grows row by row, ids numbered as they come.
pub(super) struct Ledger {
    users: Interner,
    items: Interner,
    times: TimeReader,
    rows: Vec<Interaction>,
    clock: Option<Clock>,
}

impl Ledger {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Ledger {
            users: Interner::new(Role::User, options.user_type),
            items: Interner::new(Role::Item, options.item_type),
            times: TimeReader::new(options.time_unit),
            rows: Vec::new(),
            clock: None,
        }
    }

    pub(super) fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// How many times were finer than a microsecond, and were rounded to it.
    pub(super) fn finer_times(&self) -> u64 {
        self.times.finer()
    }

    /// What the times of the file are, and the first of them if they may be dates.
    pub(super) fn times_of_file(&self) -> (TimeKind, Option<i64>) {
        (self.times.kind(), self.times.doubtful_dates())
    }

    pub(super) fn begin_file(&mut self) {
        self.times.begin_file();
    }

    /// The number after the last of a log whose times are row numbers.
    pub(super) fn next_row_number(&self) -> i64 {
        self.rows.last().map_or(0, |row| row.time.0.saturating_add(1))
    }

    /// Takes a row whole or not at all: a bad one leaves no id behind.
    #[inline]
    pub(super) fn push(
        &mut self,
        user: Field<'_>,
        item: Field<'_>,
        time: Option<Field<'_>>,
        columns: &Columns,
        path: &Path,
        position: Position,
    ) -> Result<(), Rejection> {
        let Columns { names, clock, .. } = columns;
        if self.clock.is_some_and(|before| before != *clock) {
            let has_times = *clock == Clock::Calendar;
            return Err(Rejection::Log(DataError::MixedClocks { path: path.to_owned(), has_times }));
        }
        let mut digits = [Digits::default(), Digits::default()];
        let [user_digits, item_digits] = &mut digits;
        let user = self.users.locate(user, user_digits, &names.user)?;
        let item = self.items.locate(item, item_digits, &names.item)?;
        let time = match time {
            None => self.next_row_number(),
            Some(Field::Micros(number)) if *clock == Clock::RowOrder => number,
            Some(time) => self.times.read(&time, names.time.as_deref(), path, position)?,
        };
        if self.rows.len() == MOST {
            return Err(Rejection::Log(DataError::TooMany { what: "rows", limit: MOST as u64 }));
        }
        let room = self.rows.try_reserve(1);
        room.map_err(|_| no_room("rows", self.rows.len(), size_of::<Interaction>()))?;
        let user = UserIndex(self.users.settle(user)?);
        let item = ItemIndex(self.items.settle(item)?);
        self.rows.push(Interaction { user, item, time: Timestamp(time) });
        self.clock = Some(*clock);
        Ok(())
    }

    /// The log, users and items ranked by id.
    pub(super) fn finish(self) -> Interactions {
        let (users, user_ranks) = self.users.rank();
        let (items, item_ranks) = self.items.rank();
        let mut rows = self.rows;
        for row in &mut rows {
            row.user = UserIndex(user_ranks[row.user.get()]);
            row.item = ItemIndex(item_ranks[row.item.get()]);
        }
        rows.shrink_to_fit();
        let clock = self.clock.unwrap_or(Clock::Calendar);
        Interactions::from_ranked(users, items, rows, clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::IdType;
    use crate::data::columns::ColumnNames;
    use crate::interactions::Ids;

    fn push(builder: &mut Ledger, user: Field<'_>, item: Field<'_>) -> Result<(), String> {
        let names = ColumnNames { user: "u".into(), item: "i".into(), time: None, order: None };
        let columns =
            Columns { names, clock: Clock::RowOrder, is_whole: false, order: None, is_event: false };
        builder.push(user, item, None, &columns, Path::new("log"), Position::Line(1)).map_err(|rejection| {
            match rejection {
                Rejection::Row(fault) => fault.at(Path::new("log"), 1).to_string(),
                Rejection::Log(error) => error.to_string(),
            }
        })
    }

    #[test]
    fn ids_are_ranked_whatever_the_order_of_rows() {
        let mut builder = Ledger::new(&ReadOptions::default());
        for (user, item) in [("10", "b"), ("9", "a"), ("10", "a"), ("-3", "B")] {
            push(&mut builder, Field::Plain(user.as_bytes()), Field::Plain(item.as_bytes())).unwrap();
        }
        let log = builder.finish();
        assert_eq!(**log.users(), Ids::Integers(vec![-3, 9, 10]));
        assert_eq!(**log.items(), Ids::Texts(vec!["B".into(), "a".into(), "b".into()]));
        let rows: Vec<_> = log.rows().iter().map(|row| (row.user.0, row.item.0, row.time.0)).collect();
        assert_eq!(rows, [(2, 2, 0), (1, 1, 1), (2, 1, 2), (0, 0, 3)]);
    }

    #[test]
    fn a_bad_row_leaves_no_id_behind() {
        let mut builder = Ledger::new(&ReadOptions::default());
        push(&mut builder, Field::Plain(b"x"), Field::Plain(b"")).unwrap_err();
        push(&mut builder, Field::Plain(b"7"), Field::Plain(b"1")).unwrap();
        let message = push(&mut builder, Field::Plain(b"8"), Field::Plain(b"one")).unwrap_err();
        assert!(message.contains("item_type string") && message.contains("column i"), "{message}");
        let log = builder.finish();
        assert_eq!(**log.users(), Ids::Integers(vec![7]));
        assert_eq!(log.rows().len(), 1);
    }

    #[test]
    fn typed_values_keep_their_type_unless_told() {
        let mut auto = Ledger::new(&ReadOptions::default());
        push(&mut auto, Field::Text(b"1"), Field::Integer(1)).unwrap();
        push(&mut auto, Field::Integer(1), Field::Integer(1)).unwrap_err();
        push(&mut auto, Field::Text(b"1"), Field::Text(b"1")).unwrap_err();
        push(&mut auto, Field::Text(b"\xff"), Field::Integer(1)).unwrap_err();
        push(&mut auto, Field::Plain(b"2"), Field::Plain(b"2")).unwrap();
        push(&mut auto, Field::Text(b"2"), Field::Unsigned(u64::MAX)).unwrap_err();
        push(&mut auto, Field::Float(2.0), Field::Integer(1)).unwrap_err();
        push(&mut auto, Field::Missing, Field::Integer(1)).unwrap_err();
        assert_eq!(auto.finish().rows().len(), 2);

        let options =
            ReadOptions { user_type: IdType::String, item_type: IdType::Integer, ..ReadOptions::default() };
        let mut told = Ledger::new(&options);
        push(&mut told, Field::Integer(-5), Field::Text(b"-5")).unwrap();
        push(&mut told, Field::Unsigned(u64::MAX), Field::Plain(b"7")).unwrap();
        push(&mut told, Field::Text(b"x"), Field::Text(b"x")).unwrap_err();
        let log = told.finish();
        assert_eq!(**log.users(), Ids::Texts(vec!["-5".into(), "18446744073709551615".into()]));
        assert_eq!(**log.items(), Ids::Integers(vec![-5, 7]));
    }
}
