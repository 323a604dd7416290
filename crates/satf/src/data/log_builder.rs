//! Rows come in with ids as written; a log with dense, ranked indices comes out.

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::columns::{ColumnNames, Role};
use super::error::{Fault, shown};
use super::time::TimeReader;
use super::{DataError, IdType, ReadOptions};
use crate::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

/// The most users, items or rows of a log: the largest `u32` marks "none" in places.
const MOST: usize = u32::MAX as usize - 1;

/// A value of a row, as far as its format tells what it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    /// Text that may mean a number: the column decides.
    Plain(&'a [u8]),
    /// A string, whatever it looks like.
    Text(&'a [u8]),
    /// An integer.
    Integer(i64),
    /// An integer above `i64::MAX`.
    Unsigned(u64),
    /// A number with a fraction.
    Float(f64),
    /// A time in microseconds since 1970.
    Micros(i64),
    /// Something that is neither id nor time, by name: `null`, `a list`.
    Other(&'static str),
    /// Nothing stands there.
    Missing,
}

/// Why a row was not taken.
pub(super) enum Rejection {
    /// The row is bad.
    Row(Box<Fault>),
    /// The log is.
    Log(DataError),
}

impl From<Box<Fault>> for Rejection {
    fn from(fault: Box<Fault>) -> Self {
        Rejection::Row(fault)
    }
}

/// A log that grows row by row.
pub(super) struct LogBuilder {
    users: Interner,
    items: Interner,
    times: TimeReader,
    rows: Vec<Interaction>,
    clock: Option<Clock>,
}

impl LogBuilder {
    pub(super) fn new(options: &ReadOptions) -> Self {
        LogBuilder {
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

    pub(super) fn begin_file(&mut self) {
        self.times.begin_file();
    }

    /// Says what the times of the coming file mean. All files must agree.
    pub(super) fn set_clock(&mut self, clock: Clock, path: &Path) -> Result<(), DataError> {
        match self.clock {
            Some(before) if before != clock => {
                Err(DataError::MixedClocks { path: path.to_owned(), has_times: clock == Clock::Calendar })
            }
            _ => {
                self.clock = Some(clock);
                Ok(())
            }
        }
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
        names: &ColumnNames,
        path: &Path,
        line: u64,
    ) -> Result<(), Rejection> {
        let mut digits = [Digits::default(), Digits::default()];
        let [user_digits, item_digits] = &mut digits;
        let user = self.users.locate(user, user_digits, &names.user)?;
        let item = self.items.locate(item, item_digits, &names.item)?;
        let time = match time {
            None => self.next_row_number(),
            Some(Field::Micros(number)) if self.clock == Some(Clock::RowOrder) => number,
            Some(time) => self.times.read(&time, names.time.as_deref(), path, line)?,
        };
        if self.rows.len() == MOST {
            return Err(Rejection::Log(DataError::TooMany { what: "rows", limit: MOST as u64 }));
        }
        let user = UserIndex(self.users.settle(user)?);
        let item = ItemIndex(self.items.settle(item)?);
        self.rows.push(Interaction { user, item, time: Timestamp(time) });
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
        Interactions { users: Arc::new(users), items: Arc::new(items), rows, clock }
    }
}

/// Room for an integer written out.
#[derive(Default)]
struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    fn write(&mut self, mut magnitude: u64, is_negative: bool) -> &[u8] {
        self.start = self.bytes.len();
        loop {
            self.start -= 1;
            self.bytes[self.start] = b'0' + (magnitude % 10) as u8;
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if is_negative {
            // At most 19 digits stand behind a sign.
            self.start -= 1;
            self.bytes[self.start] = b'-';
        }
        &self.bytes[self.start..]
    }
}

/// Ids by the order in which they came.
enum Known {
    /// The first row will tell.
    Undecided,
    Integers(Vec<i64>),
    /// Id `n` is `text[ends[n - 1]..ends[n]]`.
    Texts {
        text: String,
        ends: Vec<usize>,
    },
}

/// Gives every distinct id a number, in the order of first sight.
struct Interner {
    role: Role,
    id_type: IdType,
    known: Known,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// An id looked up, and what it takes to add it if it is new.
enum Located<'a> {
    Known(u32),
    NewInteger(i64, u64),
    NewText(&'a str, u64),
}

impl Interner {
    fn new(role: Role, id_type: IdType) -> Self {
        let known = match id_type {
            IdType::Auto => Known::Undecided,
            IdType::Integer => Known::Integers(Vec::new()),
            IdType::String => Known::Texts { text: String::new(), ends: Vec::new() },
        };
        Interner { role, id_type, known, numbers: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }

    fn what(&self) -> &'static str {
        match self.role {
            Role::Item => "items",
            _ => "users",
        }
    }

    #[inline]
    fn locate<'a>(
        &self,
        field: Field<'a>,
        digits: &'a mut Digits,
        column: &str,
    ) -> Result<Located<'a>, Box<Fault>> {
        let told = self.id_type != IdType::Auto;
        match (&self.known, field) {
            (_, Field::Plain([]) | Field::Text([])) => Err(self.fault(field, column)),
            (Known::Texts { .. }, Field::Plain(text) | Field::Text(text)) => self.locate_text(text, column),
            (Known::Integers(_), Field::Integer(id)) => Ok(self.locate_integer(id)),
            (Known::Integers(_), Field::Plain(text)) => match canonical_integer(text) {
                Some(id) => Ok(self.locate_integer(id)),
                None => Err(self.fault(field, column)),
            },
            (Known::Integers(_), Field::Text(text)) if told => match canonical_integer(text) {
                Some(id) => Ok(self.locate_integer(id)),
                None => Err(self.fault(field, column)),
            },
            (Known::Texts { .. }, Field::Integer(id)) if told => {
                self.locate_text(digits.write(id.unsigned_abs(), id < 0), column)
            }
            (Known::Texts { .. }, Field::Unsigned(id)) if told => {
                self.locate_text(digits.write(id, false), column)
            }
            (Known::Undecided, Field::Integer(id)) => Ok(self.locate_integer(id)),
            (Known::Undecided, Field::Text(text)) => self.locate_text(text, column),
            (Known::Undecided, Field::Plain(text)) => match canonical_integer(text) {
                Some(id) => Ok(self.locate_integer(id)),
                None => self.locate_text(text, column),
            },
            _ => Err(self.fault(field, column)),
        }
    }

    #[inline]
    fn locate_integer<'a>(&self, id: i64) -> Located<'a> {
        let hash = self.hasher.hash_one(id);
        let found = match &self.known {
            Known::Integers(ids) => self.numbers.find(hash, |&number| ids[number as usize] == id),
            _ => None,
        };
        found.map_or(Located::NewInteger(id, hash), |&number| Located::Known(number))
    }

    #[inline]
    fn locate_text<'a>(&self, id: &'a [u8], column: &str) -> Result<Located<'a>, Box<Fault>> {
        let hash = self.hasher.hash_one(id);
        if let Known::Texts { text, ends } = &self.known {
            let found = self.numbers.find(hash, |&number| text.as_bytes()[span(ends, number)] == *id);
            if let Some(&number) = found {
                return Ok(Located::Known(number));
            }
        }
        match std::str::from_utf8(id) {
            Ok(id) => Ok(Located::NewText(id, hash)),
            Err(_) => Err(Box::new(Fault {
                column: Some(column.into()),
                found: shown(id).into(),
                expected: format!("the id of {} in valid UTF-8", self.article()).into(),
                hint: None,
            })),
        }
    }

    fn article(&self) -> &'static str {
        match self.role {
            Role::Item => "an item",
            _ => "a user",
        }
    }

    #[cold]
    fn fault(&self, field: Field<'_>, column: &str) -> Box<Fault> {
        let whose = self.article();
        let is_id = !matches!(
            field,
            Field::Plain([])
                | Field::Text([])
                | Field::Missing
                | Field::Other(_)
                | Field::Float(_)
                | Field::Micros(_)
        );
        let expected = match &self.known {
            Known::Integers(_) => format!("the id of {whose} as an integer (like the first one)"),
            Known::Texts { .. } if is_id => format!("the id of {whose} as a string (like the first one)"),
            _ => format!("the id of {whose} (a string or an integer of 64 bits)"),
        };
        let expected = match self.id_type {
            IdType::Auto => expected,
            told => format!("the id of {whose} (of type {told})"),
        };
        let hint = (is_id && self.id_type != IdType::String)
            .then(|| format!("--{}-type string reads all these ids as text", self.role.name()).into());
        let found = match field {
            Field::Text(text) if is_id => format!("the string {}", shown(text)),
            Field::Integer(_) | Field::Unsigned(_) | Field::Float(_) => {
                format!("the number {}", field.shown())
            }
            _ => field.shown(),
        };
        Box::new(Fault { column: Some(column.into()), found: found.into(), expected: expected.into(), hint })
    }

    /// The number of an id, which is added if it is new.
    #[inline]
    fn settle(&mut self, located: Located<'_>) -> Result<u32, Rejection> {
        match located {
            Located::Known(number) => Ok(number),
            new => self.add(&new),
        }
    }

    fn add(&mut self, new: &Located<'_>) -> Result<u32, Rejection> {
        let number = self.numbers.len();
        if number == MOST {
            return Err(Rejection::Log(DataError::TooMany { what: self.what(), limit: MOST as u64 }));
        }
        let number = number as u32;
        let hasher = &self.hasher;
        if matches!(self.known, Known::Undecided) {
            self.known = match new {
                Located::NewText(..) => Known::Texts { text: String::new(), ends: Vec::new() },
                _ => Known::Integers(Vec::new()),
            };
        }
        match (&mut self.known, new) {
            (Known::Integers(ids), Located::NewInteger(id, hash)) => {
                ids.push(*id);
                self.numbers.insert_unique(*hash, number, |&number| hasher.hash_one(ids[number as usize]));
            }
            (Known::Texts { text, ends }, Located::NewText(id, hash)) => {
                text.push_str(id);
                ends.push(text.len());
                self.numbers.insert_unique(*hash, number, |&number| {
                    hasher.hash_one(&text.as_bytes()[span(ends, number)])
                });
            }
            _ => unreachable!("invariant: an id is located among ids of its own type"),
        }
        Ok(number)
    }

    /// The ids in ascending order, and the rank of every number.
    fn rank(self) -> (Ids, Vec<u32>) {
        drop(self.numbers);
        match self.known {
            Known::Undecided => (Ids::Integers(Vec::new()), Vec::new()),
            Known::Integers(ids) => {
                let (order, ranks) = sorted(ids.len(), |number| ids[number as usize]);
                (Ids::Integers(order.iter().map(|&number| ids[number as usize]).collect()), ranks)
            }
            Known::Texts { text, ends } => {
                let (order, ranks) = sorted(ends.len(), |number| &text.as_bytes()[span(&ends, number)]);
                (Ids::Texts(order.iter().map(|&number| text[span(&ends, number)].into()).collect()), ranks)
            }
        }
    }
}

#[inline]
fn span(ends: &[usize], number: u32) -> std::ops::Range<usize> {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    start..ends[number]
}

/// The numbers below `count` in the order of their keys, and the place of every number in that order.
fn sorted<K: Ord>(count: usize, key: impl Fn(u32) -> K) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_unstable_by_key(|&number| key(number));
    let mut ranks = vec![0; count];
    for (rank, &number) in order.iter().enumerate() {
        ranks[number as usize] = rank as u32;
    }
    (order, ranks)
}

/// An integer in its one shortest spelling, so that the id can be written back as it was.
pub(super) fn canonical_integer(text: &[u8]) -> Option<i64> {
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && (digits.len() > 1 || is_negative)) {
        return None;
    }
    let mut magnitude = 0u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 19 digits always fit.
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(builder: &mut LogBuilder, user: Field<'_>, item: Field<'_>) -> Result<(), String> {
        let names = ColumnNames { user: "u".into(), item: "i".into(), time: None };
        builder.push(user, item, None, &names, Path::new("log"), 1).map_err(|rejection| match rejection {
            Rejection::Row(fault) => fault.at(Path::new("log"), 1).to_string(),
            Rejection::Log(error) => error.to_string(),
        })
    }

    #[test]
    fn only_the_shortest_spelling_is_an_integer() {
        for id in [0, 1, -1, 42, i64::MAX, i64::MIN] {
            assert_eq!(canonical_integer(id.to_string().as_bytes()), Some(id));
            let mut digits = Digits::default();
            assert_eq!(digits.write(id.unsigned_abs(), id < 0), id.to_string().as_bytes());
        }
        assert_eq!(Digits::default().write(u64::MAX, false), u64::MAX.to_string().as_bytes());
        for text in ["", "-", "-0", "007", "+7", " 7", "7.0", "9223372036854775808", "-9223372036854775809"] {
            assert_eq!(canonical_integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn ids_are_ranked_whatever_the_order_of_rows() {
        let mut builder = LogBuilder::new(&ReadOptions::default());
        for (user, item) in [("10", "b"), ("9", "a"), ("10", "a"), ("-3", "B")] {
            push(&mut builder, Field::Plain(user.as_bytes()), Field::Plain(item.as_bytes())).unwrap();
        }
        let log = builder.finish();
        assert_eq!(*log.users, Ids::Integers(vec![-3, 9, 10]));
        assert_eq!(*log.items, Ids::Texts(vec!["B".into(), "a".into(), "b".into()]));
        let rows: Vec<_> = log.rows.iter().map(|row| (row.user.0, row.item.0, row.time.0)).collect();
        assert_eq!(rows, [(2, 2, 0), (1, 1, 1), (2, 1, 2), (0, 0, 3)]);
    }

    #[test]
    fn a_bad_row_leaves_no_id_behind() {
        let mut builder = LogBuilder::new(&ReadOptions::default());
        push(&mut builder, Field::Plain(b"x"), Field::Plain(b"")).unwrap_err();
        push(&mut builder, Field::Plain(b"7"), Field::Plain(b"1")).unwrap();
        let message = push(&mut builder, Field::Plain(b"8"), Field::Plain(b"one")).unwrap_err();
        assert!(message.contains("--item-type string") && message.contains("column i"), "{message}");
        let log = builder.finish();
        assert_eq!((*log.users).clone(), Ids::Integers(vec![7]));
        assert_eq!(log.rows.len(), 1);
    }

    #[test]
    fn typed_values_keep_their_type_unless_told() {
        let mut auto = LogBuilder::new(&ReadOptions::default());
        push(&mut auto, Field::Text(b"1"), Field::Integer(1)).unwrap();
        push(&mut auto, Field::Integer(1), Field::Integer(1)).unwrap_err();
        push(&mut auto, Field::Text(b"1"), Field::Text(b"1")).unwrap_err();
        push(&mut auto, Field::Text(b"\xff"), Field::Integer(1)).unwrap_err();
        push(&mut auto, Field::Plain(b"2"), Field::Plain(b"2")).unwrap();
        push(&mut auto, Field::Text(b"2"), Field::Unsigned(u64::MAX)).unwrap_err();
        push(&mut auto, Field::Float(2.0), Field::Integer(1)).unwrap_err();
        push(&mut auto, Field::Missing, Field::Integer(1)).unwrap_err();
        assert_eq!(auto.finish().rows.len(), 2);

        let options =
            ReadOptions { user_type: IdType::String, item_type: IdType::Integer, ..ReadOptions::default() };
        let mut told = LogBuilder::new(&options);
        push(&mut told, Field::Integer(-5), Field::Text(b"-5")).unwrap();
        push(&mut told, Field::Unsigned(u64::MAX), Field::Plain(b"7")).unwrap();
        push(&mut told, Field::Text(b"x"), Field::Text(b"x")).unwrap_err();
        let log = told.finish();
        assert_eq!(*log.users, Ids::Texts(vec!["-5".into(), "18446744073709551615".into()]));
        assert_eq!(*log.items, Ids::Integers(vec![-5, 7]));
    }
}
