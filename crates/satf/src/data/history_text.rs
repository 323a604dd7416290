//! A history as people write it, in a cell or on a command line: `tent,mug+stove`, or a JSON list.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::error::{Fault, shown};
use super::field::IdList;
use crate::interactions::{Id, Ids, ItemIndex, OwnedHistory};

/// Why a text is not a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected ids between commas, or a JSON list of ids such as [\"tent\", [\"mug\", \"stove\"]], found {found}"
)]
pub struct HistoryTextError {
    /// What stands there.
    pub found: Box<str>,
}

/// Reads a history as people write it, oldest item first, and names every id that the catalogue does not know to `unknown`.
///
/// Ids stand between commas, and `+` joins items of one basket: `tent,mug+stove`. Spaces around an id do not count, unless
/// the catalogue knows the id with them, and an id that the catalogue knows is not split at a `+`. A JSON list holds any
/// id as it is: `["tent", ["mug", "stove"]]`, where a list within the list is a basket. An empty text is an empty history; an empty
/// id in it, as in `tent,,mug`, is an error.
pub fn parse_history(
    text: &str,
    catalog: &Ids,
    mut unknown: impl FnMut(&str),
) -> Result<OwnedHistory, HistoryTextError> {
    let mut history = OwnedHistory::new();
    push_text(text, catalog, &mut history, &mut unknown).map_err(|found| HistoryTextError { found })?;
    Ok(history)
}

fn push_text(
    text: &str,
    catalog: &Ids,
    history: &mut OwnedHistory,
    unknown: &mut dyn FnMut(&str),
) -> Result<(), Box<str>> {
    if !text.trim_start().starts_with('[') {
        if text.trim().is_empty() && find(catalog, Id::Text(text)).is_none() {
            return Ok(());
        }
        for (at, entry) in text.split(',').enumerate() {
            push_entry(entry, catalog, history, unknown).map_err(|EmptyId| {
                format!("an empty id at place {} of {}", at + 1, shown(text.as_bytes()))
            })?;
        }
        return Ok(());
    }
    let entries: Vec<JsonEntry<'_>> =
        serde_json::from_str(text).map_err(|error| format!("{} ({error})", shown(text.as_bytes())))?;
    let mut push = |id: &JsonId<'_>, is_with_previous: bool| {
        let item = find(catalog, id.as_id());
        if item.is_none() {
            unknown(&id.as_id().to_string());
        }
        history.push(item, is_with_previous);
    };
    for entry in &entries {
        match entry {
            JsonEntry::One(id) => push(id, false),
            JsonEntry::Together(ids) => {
                ids.iter().enumerate().for_each(|(at, id)| push(id, at > 0));
            }
        }
    }
    Ok(())
}

/// Where an id should stand there is none.
struct EmptyId;

/// Adds what stands between two commas: an id, or ids joined by `+`.
fn push_entry(
    entry: &str,
    catalog: &Ids,
    history: &mut OwnedHistory,
    unknown: &mut dyn FnMut(&str),
) -> Result<(), EmptyId> {
    let mut push = |part: &str, is_with_previous: bool| {
        let item = find_written(catalog, part);
        if item.is_none() {
            if part.trim().is_empty() {
                return Err(EmptyId);
            }
            unknown(part.trim());
        }
        history.push(item, is_with_previous);
        Ok(())
    };
    let is_basket = find_written(catalog, entry).is_none()
        && entry.split('+').any(|part| find_written(catalog, part).is_some());
    if !is_basket {
        return push(entry, false);
    }
    entry.split('+').enumerate().try_for_each(|(at, part)| push(part, at > 0))
}

/// The item of this name, with the spaces around it or without.
fn find_written(catalog: &Ids, name: &str) -> Option<ItemIndex> {
    find(catalog, Id::Text(name)).or_else(|| find(catalog, Id::Text(name.trim())))
}

fn find(catalog: &Ids, id: Id<'_>) -> Option<ItemIndex> {
    catalog.find(id).map(|index| ItemIndex(index as u32))
}

/// A history in a cell of a table.
pub(super) struct Cell<'c>(pub(super) &'c [u8]);

impl IdList for Cell<'_> {
    fn push_to(&self, catalog: &Ids, history: &mut OwnedHistory) -> Result<(), Box<Fault>> {
        let text = std::str::from_utf8(self.0)
            .map_err(|_| Box::new(Fault::of_line(shown(self.0), "a history in valid UTF-8")))?;
        push_text(text, catalog, history, &mut |_| {}).map_err(|found| {
            Box::new(Fault::of_line(found, "a list of ids, such as [\"tent\", 7, [\"mug\", \"stove\"]]"))
        })
    }

    fn each(&self, take: &mut dyn FnMut(Id<'_>)) -> Result<(), Box<Fault>> {
        let text = std::str::from_utf8(self.0)
            .map_err(|_| Box::new(Fault::of_line(shown(self.0), "a list in valid UTF-8")))?;
        each_written(text, take)
    }
}

/// The ids of a list that stands in a cell: a JSON list, or ids between commas.
fn each_written(text: &str, take: &mut dyn FnMut(Id<'_>)) -> Result<(), Box<Fault>> {
    let refuse = |found: String| Box::new(Fault::of_line(found, "a list of ids, such as [\"tent\", 7]"));
    if text.trim_start().starts_with('[') {
        let entries: Vec<JsonEntry<'_>> = serde_json::from_str(text)
            .map_err(|error| refuse(format!("{} ({error})", shown(text.as_bytes()))))?;
        return JsonList(entries).each(take);
    }
    if text.trim().is_empty() {
        return Ok(());
    }
    for (at, id) in text.split(',').map(str::trim).enumerate() {
        if id.is_empty() {
            return Err(refuse(format!("an empty id at place {} of {}", at + 1, shown(text.as_bytes()))));
        }
        take(Id::Text(id));
    }
    Ok(())
}

/// What is wrong with a list within a ranking.
pub(super) fn no_basket(place: usize) -> Fault {
    Fault::of_line(format!("a list at place {place} of the list"), "the id of an item")
}

/// A history as `RecBole` has it: ids between spaces.
pub(super) struct Words<'c>(pub(super) &'c [u8]);

impl IdList for Words<'_> {
    fn push_to(&self, catalog: &Ids, history: &mut OwnedHistory) -> Result<(), Box<Fault>> {
        let text = std::str::from_utf8(self.0)
            .map_err(|_| Box::new(Fault::of_line(shown(self.0), "a history in valid UTF-8")))?;
        text.split_ascii_whitespace().for_each(|id| history.push_id(catalog, Id::Text(id), false));
        Ok(())
    }

    fn each(&self, take: &mut dyn FnMut(Id<'_>)) -> Result<(), Box<Fault>> {
        let text = std::str::from_utf8(self.0)
            .map_err(|_| Box::new(Fault::of_line(shown(self.0), "a list in valid UTF-8")))?;
        text.split_ascii_whitespace().for_each(|id| take(Id::Text(id)));
        Ok(())
    }
}

/// A history as JSON has it.
pub(super) struct JsonList<'t>(pub(super) Vec<JsonEntry<'t>>);

impl IdList for JsonList<'_> {
    fn push_to(&self, catalog: &Ids, history: &mut OwnedHistory) -> Result<(), Box<Fault>> {
        for entry in &self.0 {
            match entry {
                JsonEntry::One(id) => history.push_id(catalog, id.as_id(), false),
                JsonEntry::Together(ids) => {
                    for (at, id) in ids.iter().enumerate() {
                        history.push_id(catalog, id.as_id(), at > 0);
                    }
                }
            }
        }
        Ok(())
    }

    fn each(&self, take: &mut dyn FnMut(Id<'_>)) -> Result<(), Box<Fault>> {
        for (at, entry) in self.0.iter().enumerate() {
            match entry {
                JsonEntry::One(id) => take(id.as_id()),
                JsonEntry::Together(_) => return Err(Box::new(no_basket(at + 1))),
            }
        }
        Ok(())
    }
}

/// An item, or the items of a basket.
pub(super) enum JsonEntry<'t> {
    One(JsonId<'t>),
    Together(Vec<JsonId<'t>>),
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
        f.write_str("an id (an integer or a string), or a list of ids (a basket)")
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
    fn as_id(&self) -> Id<'_> {
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
        f.write_str("an id (an integer or a string)")
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<JsonId<'de>, E> {
        Ok(JsonId::Integer(id))
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<JsonId<'de>, E> {
        // What is above the integers can be an id only as text.
        Ok(i64::try_from(id).map_or_else(|_| JsonId::Text(Cow::Owned(id.to_string())), JsonId::Integer))
    }

    fn visit_borrowed_str<E: Error>(self, id: &'de str) -> Result<JsonId<'de>, E> {
        not_empty(id)?;
        Ok(JsonId::Text(Cow::Borrowed(id)))
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<JsonId<'de>, E> {
        not_empty(id)?;
        Ok(JsonId::Text(Cow::Owned(id.to_owned())))
    }
}

fn not_empty<E: Error>(id: &str) -> Result<(), E> {
    if id.is_empty() { Err(E::custom("an id is empty")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items, marks and unknown ids.
    type Parsed = (Vec<String>, Vec<bool>, Vec<String>);

    fn parse(text: &str) -> Result<Parsed, String> {
        let catalog = Ids::Texts([" old", "a,b", "c++ book", "mug", "stove", "tent"].map(Into::into).into());
        let mut unknown = Vec::new();
        let history = parse_history(text, &catalog, |id| unknown.push(id.to_owned()))
            .map_err(|error| error.to_string())?;
        assert_eq!(history.unknown(), unknown.len());
        let items = history.items().iter().map(|item| catalog.get(item.get()).to_string()).collect();
        Ok((items, history.with_previous().to_vec(), unknown))
    }

    fn expected(items: &[&str], marks: &[bool], unknown: &[&str]) -> Parsed {
        let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        (owned(items), marks.to_vec(), owned(unknown))
    }

    #[test]
    fn commas_separate_and_plus_joins() {
        let basket = expected(&["tent", "mug", "stove"], &[false, false, true], &[]);
        assert_eq!(parse("tent, mug + stove").unwrap(), basket);
        assert_eq!(parse("[\"tent\", [\"mug\", \"stove\"]]").unwrap(), basket);
        assert_eq!(parse("tent,rope+mug+stove").unwrap().1, [false, false, true]);
        assert_eq!(parse("").unwrap(), expected(&[], &[], &[]));
    }

    #[test]
    fn ids_that_hold_what_separates_can_be_named() {
        assert_eq!(parse("c++ book, tent").unwrap(), expected(&["c++ book", "tent"], &[false; 2], &[]));
        assert_eq!(parse("[\"a,b\", [\"c++ book\", \"tent\"]]").unwrap().1, [false, false, true]);
        assert_eq!(parse("a,b").unwrap(), expected(&[], &[], &["a", "b"]));
        assert_eq!(parse(" old,mug").unwrap(), expected(&[" old", "mug"], &[false; 2], &[]));
        assert_eq!(parse("x+y").unwrap(), expected(&[], &[], &["x+y"]));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["[1.5]", "[true]", "[null]", "[[[\"tent\"]]]", "[\"\"]", "[\"tent\"", "[{}]"] {
            let message = parse(text).unwrap_err();
            assert!(message.contains("expected ids between commas"), "{text}: {message}");
        }
        for text in ["tent,,mug", "tent++mug", "tent,", ",tent", "+tent", "tent, ,mug", "c++ book+tent", ","]
        {
            let message = parse(text).unwrap_err();
            assert!(message.contains("found an empty id at place "), "{text}: {message}");
        }
    }
}
