//! The ids of users and items, as the caller has them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// One id as the caller wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id<'a> {
    /// An integer id.
    Integer(i64),
    /// A string id.
    Text(&'a str),
}

impl Id<'_> {
    /// The id with a text of its own.
    pub fn to_owned(self) -> OwnedId {
        match self {
            Id::Integer(id) => OwnedId::Integer(id),
            Id::Text(id) => OwnedId::Text(id.into()),
        }
    }
}

/// An id that borrows from nothing. In JSON and the like it is a number or a string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "an id: an integer of 64 bits or a string")]
pub enum OwnedId {
    /// An integer id.
    Integer(i64),
    /// A string id.
    Text(Box<str>),
}

impl OwnedId {
    /// The id as others take it.
    pub fn as_id(&self) -> Id<'_> {
        match self {
            OwnedId::Integer(id) => Id::Integer(*id),
            OwnedId::Text(id) => Id::Text(id),
        }
    }
}

impl fmt::Display for OwnedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_id().fmt(f)
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Integer(id) => write!(f, "{id}"),
            Id::Text(id) => f.write_str(id),
        }
    }
}

impl Serialize for Id<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Integer(id) => serializer.serialize_i64(*id),
            Id::Text(id) => serializer.serialize_str(id),
        }
    }
}

/// What can stand for an id: integers of the types `i8` to `i64` and `u8` to `u32`, strings, and references to them.
///
/// `u64` and `usize` are not among them, for their values may be too large: convert them with `i64::try_from`, or use them as text.
pub trait AsId {
    /// The id.
    fn as_id(&self) -> Id<'_>;
}

impl<T: AsId + ?Sized> AsId for &T {
    fn as_id(&self) -> Id<'_> {
        (**self).as_id()
    }
}

impl AsId for Id<'_> {
    fn as_id(&self) -> Id<'_> {
        *self
    }
}

impl AsId for OwnedId {
    fn as_id(&self) -> Id<'_> {
        OwnedId::as_id(self)
    }
}

impl From<Id<'_>> for OwnedId {
    fn from(id: Id<'_>) -> Self {
        id.to_owned()
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl AsId for $integer {
            fn as_id(&self) -> Id<'_> {
                Id::Integer(i64::from(*self))
            }
        }

        impl From<$integer> for Id<'_> {
            fn from(id: $integer) -> Self {
                Id::Integer(i64::from(id))
            }
        }

        impl From<$integer> for OwnedId {
            fn from(id: $integer) -> Self {
                OwnedId::Integer(i64::from(id))
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, u8, u16, u32);

macro_rules! texts {
    ($($text:ty),*) => {$(
        impl AsId for $text {
            fn as_id(&self) -> Id<'_> {
                Id::Text(self)
            }
        }

        impl<'a> From<&'a $text> for Id<'a> {
            fn from(id: &'a $text) -> Self {
                Id::Text(id)
            }
        }

        impl From<&$text> for OwnedId {
            fn from(id: &$text) -> Self {
                OwnedId::Text((**id).into())
            }
        }
    )*};
}

texts!(String, Box<str>, Arc<str>, Cow<'_, str>);

impl AsId for str {
    fn as_id(&self) -> Id<'_> {
        Id::Text(self)
    }
}

impl<'a> From<&'a str> for Id<'a> {
    fn from(id: &'a str) -> Self {
        Id::Text(id)
    }
}

impl From<&str> for OwnedId {
    fn from(id: &str) -> Self {
        OwnedId::Text(id.into())
    }
}

impl From<String> for OwnedId {
    fn from(id: String) -> Self {
        OwnedId::Text(id.into())
    }
}

/// Distinct ids in ascending order: the index of an id is its position here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Integer ids, ascending.
    Integers(Vec<i64>),
    /// String ids in byte order.
    Texts(Vec<Box<str>>),
}

impl Ids {
    /// How many ids there are.
    pub fn len(&self) -> usize {
        match self {
            Ids::Integers(ids) => ids.len(),
            Ids::Texts(ids) => ids.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`Ids::len`].
    pub fn get(&self, index: usize) -> Id<'_> {
        match self {
            Ids::Integers(ids) => Id::Integer(ids[index]),
            Ids::Texts(ids) => Id::Text(&ids[index]),
        }
    }

    /// The index of `id`, if it is known. An integer looked up among strings is compared as text; a text looked up among integers is one
    /// in its shortest spelling only, as in a log: `7`, but not `07` or `+7`.
    pub fn find(&self, id: Id<'_>) -> Option<usize> {
        match (self, id) {
            (Ids::Integers(ids), Id::Integer(id)) => ids.binary_search(&id).ok(),
            (Ids::Integers(ids), Id::Text(id)) => {
                let number = shortest_integer(id.as_bytes())?;
                ids.binary_search(&number).ok()
            }
            (Ids::Texts(ids), Id::Text(id)) => ids.binary_search_by(|known| (**known).cmp(id)).ok(),
            (Ids::Texts(ids), Id::Integer(id)) => {
                let text = id.to_string();
                ids.binary_search_by(|known| (**known).cmp(&text)).ok()
            }
        }
    }

    /// The ids at `kept` (ascending positions), as a dictionary of their own.
    #[must_use]
    pub fn subset(&self, kept: &[u32]) -> Ids {
        match self {
            Ids::Integers(ids) => Ids::Integers(kept.iter().map(|&at| ids[at as usize]).collect()),
            Ids::Texts(ids) => Ids::Texts(kept.iter().map(|&at| ids[at as usize].clone()).collect()),
        }
    }

    pub(super) fn are_ascending(&self) -> bool {
        match self {
            Ids::Integers(ids) => ids.is_sorted_by(|one, next| one < next),
            Ids::Texts(ids) => ids.is_sorted_by(|one, next| one < next),
        }
    }

    /// All ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Id<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// An integer in its one shortest spelling, so that the id can be written back as it was.
pub(crate) fn shortest_integer(text: &[u8]) -> Option<i64> {
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

    #[test]
    fn only_the_shortest_spelling_is_an_integer() {
        for id in [0, 1, -1, 42, i64::MAX, i64::MIN] {
            assert_eq!(shortest_integer(id.to_string().as_bytes()), Some(id));
        }
        let integers = Ids::Integers(vec![i64::MIN, -7, 0, 7, i64::MAX]);
        for text in ["", "-", "-0", "007", "+7", " 7", "7.0", "9223372036854775808", "-9223372036854775809"] {
            assert_eq!(shortest_integer(text.as_bytes()), None, "{text}");
            assert_eq!(integers.find(Id::Text(text)), None, "{text}");
        }
        assert_eq!(integers.find(Id::Text("-7")), Some(1));
    }

    #[test]
    fn ids_are_found_whatever_their_spelling() {
        let integers = Ids::Integers(vec![-4, 7, 12]);
        assert_eq!(integers.find(Id::Integer(12)), Some(2));
        assert_eq!(integers.find(Id::Text("7")), Some(1));
        assert_eq!(integers.find(Id::Text("seven")), None);
        let texts = Ids::Texts(vec!["10".into(), "9".into()]);
        assert_eq!(texts.find(Id::Integer(9)), Some(1));
        assert_eq!(texts.find(Id::Text("10")), Some(0));
    }

    #[test]
    fn whatever_stands_for_an_id_is_one() {
        fn text(id: impl AsId) -> String {
            let owned = OwnedId::from(id.as_id());
            assert_eq!(owned.as_id(), id.as_id());
            owned.to_string()
        }
        assert_eq!([text(7), text(7i64), text(7u8), text(Id::Integer(7))], ["7"; 4]);
        let string = String::from("mug");
        let all =
            [text("mug"), text(&string), text(Cow::from("mug")), text(OwnedId::from("mug")), text(string)];
        assert_eq!(all, ["mug"; 5]);
    }

    #[test]
    fn ids_are_numbers_or_strings_in_json() {
        for (id, json) in [(OwnedId::from(-7), "-7"), (OwnedId::from("7"), "\"7\"")] {
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
            assert_eq!(serde_json::to_string(&id.as_id()).unwrap(), json);
            assert_eq!(serde_json::from_str::<OwnedId>(json).unwrap(), id);
        }
        for json in ["1.5", "null", "[1]", "18446744073709551615"] {
            let message = serde_json::from_str::<OwnedId>(json).unwrap_err().to_string();
            assert!(message.contains("an integer of 64 bits or a string"), "{message}");
        }
    }
}
