//! One history, as models score it.

use std::ops::Deref;

use super::{ItemIndex, OwnedHistory};

/// What a user did so far: items, oldest first, and which of them form a basket.
///
/// It can be used like a slice of its items. [`OwnedHistory`] is the type to keep one in, and to make one from ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History<'a> {
    items: &'a [ItemIndex],
    with_previous: &'a [bool],
    unknown: usize,
}

impl<'a> History<'a> {
    /// Items without baskets: each has a time of its own, or nothing is known about times.
    pub fn new(items: &'a [ItemIndex]) -> Self {
        History { items, with_previous: &[], unknown: 0 }
    }

    /// Items, and for each whether it has the same time as the one before it.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn with_baskets(items: &'a [ItemIndex], with_previous: &'a [bool]) -> Self {
        assert_eq!(items.len(), with_previous.len(), "one mark per item");
        History { items, with_previous, unknown: 0 }
    }

    /// The items, oldest first.
    pub fn items(self) -> &'a [ItemIndex] {
        self.items
    }

    /// How many items besides these the catalogue does not know.
    pub fn unknown(self) -> usize {
        self.unknown
    }

    /// Whether the item at this place has the same time as the one before it.
    pub fn is_with_previous(self, at: usize) -> bool {
        at > 0 && self.with_previous.get(at).is_some_and(|&with| with)
    }

    /// The history up to its first `len` items.
    ///
    /// # Panics
    /// If it has fewer.
    #[must_use]
    pub fn up_to(self, len: usize) -> Self {
        let with_previous = if self.with_previous.is_empty() { &[] } else { &self.with_previous[..len] };
        History { items: &self.items[..len], with_previous, unknown: self.unknown }
    }

    /// The newest `len` items, or all if there are fewer.
    #[must_use]
    pub fn newest(self, len: usize) -> Self {
        let first = self.items.len().saturating_sub(len);
        let with_previous = if self.with_previous.is_empty() { &[] } else { &self.with_previous[first..] };
        History { items: &self.items[first..], with_previous, unknown: self.unknown }
    }

    /// Whether any two of so many newest items are in one basket.
    pub fn has_baskets_in_newest(self, count: usize) -> bool {
        (self.len().saturating_sub(count)..self.len()).any(|at| self.is_with_previous(at))
    }
}

impl Deref for History<'_> {
    type Target = [ItemIndex];

    fn deref(&self) -> &[ItemIndex] {
        self.items
    }
}

impl<'a> From<&'a [ItemIndex]> for History<'a> {
    fn from(items: &'a [ItemIndex]) -> Self {
        History::new(items)
    }
}

impl<'a, const N: usize> From<&'a [ItemIndex; N]> for History<'a> {
    fn from(items: &'a [ItemIndex; N]) -> Self {
        History::new(items)
    }
}

impl<'a> From<&'a Vec<ItemIndex>> for History<'a> {
    fn from(items: &'a Vec<ItemIndex>) -> Self {
        History::new(items)
    }
}

impl<'a> From<&'a &[ItemIndex]> for History<'a> {
    fn from(items: &'a &[ItemIndex]) -> Self {
        History::new(items)
    }
}

impl<'a> From<&'a OwnedHistory> for History<'a> {
    fn from(history: &'a OwnedHistory) -> Self {
        let known = History::with_baskets(history.items(), history.with_previous());
        History { unknown: history.unknown(), ..known }
    }
}

impl<'a> From<&'a History<'_>> for History<'a> {
    fn from(history: &'a History<'_>) -> Self {
        *history
    }
}
