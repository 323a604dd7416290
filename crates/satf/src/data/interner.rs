//! Every distinct id once, with a number of its own.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::columns::Role;
use super::error::{Fault, shown};
use super::field::Field;
use super::ledger::{MOST, Rejection, no_room};
use super::{DataError, DataHint, IdType};
use crate::interactions::{Id, Ids, shortest_integer};

/// Room for an integer written out.
#[derive(Default)]
pub(super) struct Digits {
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
pub(super) struct Interner {
    role: Role,
    id_type: IdType,
    known: Known,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// An id looked up, and what it takes to add it if it is new.
pub(super) enum Located<'a> {
    Known(u32),
    NewInteger(i64, u64),
    NewText(&'a str, u64),
}

impl Interner {
    pub(super) fn new(role: Role, id_type: IdType) -> Self {
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
    pub(super) fn locate<'a>(
        &self,
        field: Field<'a>,
        digits: &'a mut Digits,
        column: &str,
    ) -> Result<Located<'a>, Box<Fault>> {
        let is_told = self.id_type != IdType::Auto;
        match (&self.known, field) {
            (_, Field::Plain([]) | Field::Text([])) => Err(Box::new(self.fault(field, column))),
            (Known::Integers(_) | Known::Undecided, Field::Integer(id)) => Ok(self.locate_integer(id)),
            (Known::Texts { .. }, Field::Plain(id))
            | (Known::Texts { .. } | Known::Undecided, Field::Text(id)) => self.locate_text(id, column),
            (Known::Integers(_), Field::Plain(id)) => self.locate_digits(id, field, column),
            (Known::Integers(_), Field::Text(id)) if is_told => self.locate_digits(id, field, column),
            (Known::Texts { .. }, Field::Integer(id)) if is_told => {
                self.locate_text(digits.write(id.unsigned_abs(), id < 0), column)
            }
            (Known::Texts { .. }, Field::Unsigned(id)) if is_told => {
                self.locate_text(digits.write(id, false), column)
            }
            (Known::Undecided, Field::Plain(id)) => match shortest_integer(id) {
                Some(id) => Ok(self.locate_integer(id)),
                None => self.locate_text(id, column),
            },
            _ => Err(Box::new(self.fault(field, column))),
        }
    }

    /// The id itself, as the type of its column has it. The first one decides about that type, and no id is kept.
    pub(super) fn read<'a>(
        &mut self,
        field: Field<'a>,
        digits: &'a mut Digits,
        column: &str,
    ) -> Result<Id<'a>, Box<Fault>> {
        let id = match self.locate(field, digits, column)? {
            Located::NewInteger(id, _) => Id::Integer(id),
            Located::NewText(id, _) => Id::Text(id),
            Located::Known(_) => unreachable!("invariant: no id is kept"),
        };
        if matches!(self.known, Known::Undecided) {
            self.known = match id {
                Id::Integer(_) => Known::Integers(Vec::new()),
                Id::Text(_) => Known::Texts { text: String::new(), ends: Vec::new() },
            };
        }
        Ok(id)
    }

    /// An id in a column of integers that stands there as text.
    #[inline]
    fn locate_digits<'a>(
        &self,
        id: &[u8],
        field: Field<'_>,
        column: &str,
    ) -> Result<Located<'a>, Box<Fault>> {
        match shortest_integer(id) {
            Some(id) => Ok(self.locate_integer(id)),
            None => Err(Box::new(self.fault(field, column))),
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
    fn fault(&self, field: Field<'_>, column: &str) -> Fault {
        let whose = self.article();
        let is_id = !matches!(
            field,
            Field::Plain([])
                | Field::Text([])
                | Field::Missing
                | Field::Other(_)
                | Field::List(_)
                | Field::Float(_)
                | Field::Micros(_)
                | Field::Nanos(_)
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
        let hint = (is_id && self.id_type != IdType::String).then_some(DataHint::ReadIdsAsText(self.role));
        let found = match field {
            Field::Text(text) if is_id => format!("the string {}", shown(text)),
            Field::Integer(_) | Field::Unsigned(_) | Field::Float(_) => {
                format!("the number {}", field.shown())
            }
            _ => field.shown(),
        };
        Fault { column: Some(column.into()), found: found.into(), expected: expected.into(), hint }
    }

    /// The number of an id, which is added if it is new.
    #[inline]
    pub(super) fn settle(&mut self, located: Located<'_>) -> Result<u32, Rejection> {
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
        let what = self.what();
        let no_room = |size: usize| no_room(what, number as usize, size);
        match (&mut self.known, new) {
            (Known::Integers(ids), Located::NewInteger(id, hash)) => {
                ids.try_reserve(1).map_err(|_| no_room(size_of::<i64>()))?;
                let hash_of = |&number: &u32| hasher.hash_one(ids[number as usize]);
                self.numbers.try_reserve(1, hash_of).map_err(|_| no_room(size_of::<u32>()))?;
                ids.push(*id);
                self.numbers.insert_unique(*hash, number, |&number| hasher.hash_one(ids[number as usize]));
            }
            (Known::Texts { text, ends }, Located::NewText(id, hash)) => {
                let length = text.len().div_ceil(ends.len().max(1));
                text.try_reserve(id.len()).map_err(|_| no_room(length))?;
                ends.try_reserve(1).map_err(|_| no_room(size_of::<usize>()))?;
                let hash_of = |&number: &u32| hasher.hash_one(&text.as_bytes()[span(ends, number)]);
                self.numbers.try_reserve(1, hash_of).map_err(|_| no_room(size_of::<u32>()))?;
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
    pub(super) fn rank(self) -> (Ids, Vec<u32>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_integer() {
        for id in [0, 1, -1, 42, i64::MAX, i64::MIN] {
            let mut digits = Digits::default();
            assert_eq!(digits.write(id.unsigned_abs(), id < 0), id.to_string().as_bytes());
        }
        assert_eq!(Digits::default().write(u64::MAX, false), u64::MAX.to_string().as_bytes());
    }
}
