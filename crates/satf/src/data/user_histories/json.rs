//! Histories as JSON lines.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::UserHistory;
use crate::data::DataError;
use crate::data::error::{Fault, shown};
use crate::data::source::Source;
use crate::interactions::{Id, Ids};

pub(super) struct JsonHistories<'a> {
    source: Source<'a>,
    catalog: &'a Ids,
}

#[derive(Deserialize)]
struct Object<'t> {
    #[serde(borrow, alias = "user", alias = "userid", alias = "session_id")]
    user_id: JsonId<'t>,
    #[serde(borrow, alias = "items", alias = "item_ids")]
    history: Vec<JsonEntry<'t>>,
}

/// An item, or items that were taken at one time.
pub(super) enum JsonEntry<'t> {
    One(JsonId<'t>),
    Together(Vec<JsonId<'t>>),
}

impl JsonEntry<'_> {
    pub(super) fn push_to(&self, history: &mut UserHistory, catalog: &Ids) {
        match self {
            JsonEntry::One(item) => history.push(catalog, item.as_id(), false),
            JsonEntry::Together(items) => {
                for (at, item) in items.iter().enumerate() {
                    history.push(catalog, item.as_id(), at > 0);
                }
            }
        }
    }
}

impl<'de: 't, 't> Deserialize<'de> for JsonEntry<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = JsonEntry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id (an integer or a string), or a list of ids taken at one time")
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<JsonEntry<'de>, E> {
        IdVisitor.visit_i64(id).map(JsonEntry::One)
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<JsonEntry<'de>, E> {
        IdVisitor.visit_u64(id).map(JsonEntry::One)
    }

    fn visit_borrowed_str<E: Error>(self, id: &'de str) -> Result<JsonEntry<'de>, E> {
        IdVisitor.visit_borrowed_str(id).map(JsonEntry::One)
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<JsonEntry<'de>, E> {
        IdVisitor.visit_str(id).map(JsonEntry::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut ids: A) -> Result<JsonEntry<'de>, A::Error> {
        let mut together = Vec::new();
        while let Some(id) = ids.next_element()? {
            together.push(id);
        }
        Ok(JsonEntry::Together(together))
    }
}

/// An id as JSON has it.
pub(super) enum JsonId<'t> {
    Integer(i64),
    Text(Cow<'t, str>),
}

impl JsonId<'_> {
    pub(super) fn as_id(&self) -> Id<'_> {
        match self {
            JsonId::Integer(id) => Id::Integer(*id),
            JsonId::Text(id) => Id::Text(id),
        }
    }
}

impl<'de: 't, 't> Deserialize<'de> for JsonId<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = JsonId<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id: an integer or a string")
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<JsonId<'de>, E> {
        Ok(JsonId::Integer(id))
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<JsonId<'de>, E> {
        i64::try_from(id)
            .map(JsonId::Integer)
            .map_err(|_| E::custom(format!("the id {id} is above 2^63 - 1")))
    }

    fn visit_borrowed_str<E: Error>(self, id: &'de str) -> Result<JsonId<'de>, E> {
        Ok(JsonId::Text(Cow::Borrowed(id)))
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<JsonId<'de>, E> {
        Ok(JsonId::Text(Cow::Owned(id.to_owned())))
    }
}

impl<'a> JsonHistories<'a> {
    pub(super) fn new(source: Source<'a>, catalog: &'a Ids) -> Self {
        JsonHistories { source, catalog }
    }

    pub(super) fn next(&mut self) -> Result<Option<UserHistory>, DataError> {
        let Some(line) = self.source.next_line()? else { return Ok(None) };
        let text = self.source.text(line);
        let object: Object<'_> = serde_json::from_slice(text).map_err(|error| {
            let expected = "{\"user_id\": \"ann\", \"history\": [\"tent\", \"sleeping bag\"]}";
            Fault::of_line(format!("{} ({error})", shown(text)), expected).at(self.source.path(), line.number)
        })?;
        let mut history = UserHistory::new(object.user_id.as_id().to_owned());
        for item in &object.history {
            item.push_to(&mut history, self.catalog);
        }
        Ok(Some(history))
    }
}
