//! The pairs of one item, kept: sums that change with every event.

use super::row_counter::Sums;

/// What a sum is of: the other item, and the place in its [`Sums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

/// Bits of a place.
const PLACE_BITS: u32 = 5;
const _: () = assert!(size_of::<Sums>() / size_of::<u64>() <= 1 << PLACE_BITS);

impl Key {
    fn new(target: u32, place: usize) -> Self {
        Key(u64::from(target) << PLACE_BITS | place as u64)
    }

    fn target(self) -> u32 {
        (self.0 >> PLACE_BITS) as u32
    }

    fn place(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize
    }
}

/// Changes that wait are put in order when they are more than this, and more than a quarter of what is in order.
const MOST_WAITING: usize = 32;

/// The sums of one item by other item and place. What was added or taken away of late waits at the end, so that a change costs the same
/// however many pairs there are.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptRow {
    /// In order up to `settled`, without zeros; behind it whatever came since.
    entries: Vec<(Key, i64)>,
    settled: usize,
}

impl KeptRow {
    /// A row for so many sums.
    pub(super) fn with_capacity(sums: usize) -> Self {
        KeptRow { entries: Vec::with_capacity(sums), settled: 0 }
    }

    /// Appends a sum that is not 0 and stands behind all others.
    pub(super) fn push_settled(&mut self, target: u32, place: usize, sum: i64) {
        let key = Key::new(target, place);
        debug_assert!(sum != 0 && self.entries.last().is_none_or(|last| last.0 < key));
        self.entries.push((key, sum));
        self.settled = self.entries.len();
    }

    /// Adds to a sum.
    pub(super) fn change(&mut self, target: u32, place: usize, weight: i64) {
        self.entries.push((Key::new(target, place), weight));
        let waiting = self.entries.len() - self.settled;
        if waiting > MOST_WAITING.max(self.settled / 4) {
            self.settle();
        }
    }

    /// Puts all sums in order, each once, and none that is 0.
    pub(super) fn settle(&mut self) {
        if self.settled == self.entries.len() {
            return;
        }
        // What is in order already is one run, which the sort merges.
        self.entries.sort_by_key(|entry| entry.0);
        let mut kept = 0;
        let mut at = 0;
        while at < self.entries.len() {
            let (key, mut sum) = self.entries[at];
            at += 1;
            while at < self.entries.len() && self.entries[at].0 == key {
                sum += self.entries[at].1;
                at += 1;
            }
            if sum != 0 {
                self.entries[kept] = (key, sum);
                kept += 1;
            }
        }
        self.entries.truncate(kept);
        self.settled = kept;
        if self.entries.capacity() > 4 * kept + 64 {
            self.entries.shrink_to(2 * kept);
        }
    }

    /// How many changes and sums there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Every change and sum: other item, place, weight. Several may be of one sum.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, usize, i64)> {
        self.entries.iter().map(|&(key, weight)| (key.target(), key.place(), weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_up_whatever_their_order() {
        let changes: Vec<(u32, usize, i64)> =
            (0..500).map(|at| (at * 7 % 40, (at % 14) as usize, i64::from(at % 5) + 1)).collect();
        let (mut one, mut other) = (KeptRow::default(), KeptRow::default());
        for &(target, place, weight) in &changes {
            one.change(target, place, weight);
        }
        for &(target, place, weight) in changes.iter().rev() {
            other.change(target, place, weight);
        }
        one.settle();
        other.settle();
        assert_eq!(one.entries, other.entries);
        for &(target, place, weight) in &changes {
            one.change(target, place, -weight);
        }
        one.settle();
        assert!(one.entries.is_empty() && !other.entries.is_empty());
    }
}
