//! One value of a row, and lists of values, before anybody knows what they mean.

use std::fmt;

use super::error::{Fault, shown};
use crate::interactions::{Id, Ids, OwnedHistory};

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
    /// A time in nanoseconds since 1970.
    Nanos(i64),
    /// A list of ids, where a file may hold whole histories.
    List(&'a dyn IdList),
    /// Something that is neither id nor time, by name: `null`, `a list`.
    Other(&'static str),
    /// Nothing stands there.
    Missing,
}

impl Field<'_> {
    /// The value, fit for a message.
    pub(super) fn shown(&self) -> String {
        match self {
            Field::Plain([]) | Field::Text([]) | Field::Missing => "nothing".to_owned(),
            Field::Plain(text) | Field::Text(text) => shown(text),
            Field::Integer(number) | Field::Micros(number) | Field::Nanos(number) => number.to_string(),
            Field::Unsigned(number) => number.to_string(),
            Field::Float(number) => number.to_string(),
            Field::List(_) => "a list".to_owned(),
            Field::Other(what) => (*what).to_owned(),
        }
    }
}

/// A list of ids as a file has it.
pub(super) trait IdList {
    /// Adds the items, oldest first, to a history.
    fn push_to(&self, catalog: &Ids, history: &mut OwnedHistory) -> Result<(), Box<Fault>>;

    /// Hands out the ids one by one, as a ranking that knows of no baskets.
    fn each(&self, take: &mut dyn FnMut(Id<'_>)) -> Result<(), Box<Fault>>;
}

impl fmt::Debug for dyn IdList + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
}

impl<'a> From<Id<'a>> for Field<'a> {
    fn from(id: Id<'a>) -> Self {
        match id {
            Id::Integer(id) => Field::Integer(id),
            Id::Text(id) => Field::Text(id.as_bytes()),
        }
    }
}
