//! One history in the indices of a catalogue, as models are taught and asked.

use super::{AsId, Ids, ItemIndex, Timestamp};

/// A history to recommend from, as [`Model::history`](crate::recommend::Model::history) makes it: the items that a catalogue
/// knows, oldest first, which of them form a basket, and how many ids the catalogue does not know.
///
/// A basket is a run of items that share a time, as in the log a model learned from. Unknown items are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedHistory {
    items: Vec<ItemIndex>,
    with_previous: Vec<bool>,
    unknown: usize,
    /// Whether the newest time has an item that is known.
    newest_is_known: bool,
}

impl OwnedHistory {
    /// A history without items.
    pub fn new() -> Self {
        OwnedHistory::default()
    }

    /// Items with a time of its own each, oldest first.
    pub fn from_ids(catalog: &Ids, ids: impl IntoIterator<Item: AsId>) -> Self {
        let mut history = OwnedHistory::new();
        for id in ids {
            history.push_id(catalog, id, false);
        }
        history
    }

    /// Items with the times of their events, in any order. Items with equal times form a basket and keep their order.
    pub fn from_events(catalog: &Ids, events: impl IntoIterator<Item = (impl AsId, Timestamp)>) -> Self {
        let mut events: Vec<(Timestamp, Option<ItemIndex>)> =
            events.into_iter().map(|(id, time)| (time, find(catalog, id))).collect();
        events.sort_by_key(|(time, _)| *time);
        OwnedHistory::from_ordered(events)
    }

    /// Items in the order of their times; none is an unknown item.
    pub(crate) fn from_ordered(events: impl IntoIterator<Item = (Timestamp, Option<ItemIndex>)>) -> Self {
        let mut history = OwnedHistory::new();
        let mut last = None;
        for (time, item) in events {
            history.push(item, last.replace(time) == Some(time));
        }
        history
    }

    /// Adds the next item, which is in one basket with the item before it, or later.
    pub fn push_id(&mut self, catalog: &Ids, id: impl AsId, is_with_previous: bool) {
        self.push(find(catalog, id), is_with_previous);
    }

    /// The same with an index; none is an unknown item.
    pub fn push(&mut self, item: Option<ItemIndex>, is_with_previous: bool) {
        self.newest_is_known &= is_with_previous;
        match item {
            Some(item) => {
                self.items.push(item);
                self.with_previous.push(self.newest_is_known);
                self.newest_is_known = true;
            }
            None => self.unknown += 1,
        }
    }

    /// A history as [`OwnedHistory::items`], [`OwnedHistory::with_previous`] and [`OwnedHistory::unknown`] gave it.
    pub(crate) fn from_parts(items: Vec<ItemIndex>, with_previous: Vec<bool>, unknown: usize) -> Self {
        debug_assert_eq!(items.len(), with_previous.len());
        OwnedHistory { items, with_previous, unknown, newest_is_known: false }
    }

    /// The items that are known, oldest first.
    pub fn items(&self) -> &[ItemIndex] {
        &self.items
    }

    /// For each of them whether it is in one basket with the item before it.
    pub fn with_previous(&self) -> &[bool] {
        &self.with_previous
    }

    /// How many ids the catalogue does not know.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// Whether no item is known.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many items are known.
    pub fn len(&self) -> usize {
        self.items.len()
    }
}

fn find(catalog: &Ids, id: impl AsId) -> Option<ItemIndex> {
    catalog.find(id.as_id()).map(|index| ItemIndex(index as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_any_order_are_put_in_order_and_equal_ones_are_a_basket() {
        let catalog = Ids::Texts(["lamp", "mug", "stove", "tent"].map(Into::into).into());
        let events = [("mug", 20), ("tent", 10), ("rope", 20), ("stove", 20), ("lamp", 30)];
        let events = events.map(|(id, time)| (id, Timestamp(time)));
        let history = OwnedHistory::from_events(&catalog, events);
        assert_eq!(history.items(), [3, 1, 2, 0].map(ItemIndex));
        assert_eq!(history.with_previous(), [false, false, true, false]);
        assert_eq!((history.unknown(), history.len()), (1, 4));
    }

    #[test]
    fn nothing_is_with_an_item_that_is_not_known() {
        let catalog = Ids::Integers(vec![1, 2]);
        let mut history = OwnedHistory::new();
        for (id, with_previous) in [(1, false), (9, false), (2, true), (1, true)] {
            history.push_id(&catalog, id, with_previous);
        }
        assert_eq!(history.with_previous(), [false, false, true]);
    }
}
