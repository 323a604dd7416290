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

/// The sums of one item by other item and place. What was added or taken away of late waits beside them, so that a change costs the same
/// however many pairs there are.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptRow {
    /// In order, each once, and none that is 0.
    settled: Vec<(Key, i64)>,
    /// Whatever came since.
    waiting: Vec<(Key, i64)>,
}

impl KeptRow {
    /// A row for so many sums.
    pub(super) fn with_capacity(sums: usize) -> Self {
        KeptRow { settled: Vec::with_capacity(sums), waiting: Vec::new() }
    }

    /// Appends a sum that is not 0 and stands behind all others.
    pub(super) fn push_settled(&mut self, target: u32, place: usize, sum: i64) {
        let key = Key::new(target, place);
        debug_assert!(sum != 0 && self.settled.last().is_none_or(|last| last.0 < key));
        self.settled.push((key, sum));
    }

    /// Adds to a sum.
    pub(super) fn change(&mut self, target: u32, place: usize, weight: i64) {
        self.waiting.push((Key::new(target, place), weight));
        if self.waiting.len() > MOST_WAITING.max(self.settled.len() / 4) {
            self.settle();
        }
    }

    /// Puts all sums in order, each once, and none that is 0.
    pub(super) fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        self.waiting.sort_unstable_by_key(|entry| entry.0);
        let mut sums = Vec::with_capacity(self.settled.len() + self.waiting.len());
        let mut settled = self.settled.iter().copied().peekable();
        let mut waiting = self.waiting.iter().copied().peekable();
        while let Some((key, change)) = waiting.next() {
            while let Some(sum) = settled.next_if(|sum| sum.0 < key) {
                sums.push(sum);
            }
            let mut sum = change + settled.next_if(|sum| sum.0 == key).map_or(0, |(_, sum)| sum);
            while let Some((_, change)) = waiting.next_if(|change| change.0 == key) {
                sum += change;
            }
            if sum != 0 {
                sums.push((key, sum));
            }
        }
        sums.extend(settled);
        sums.shrink_to_fit();
        self.settled = sums;
        self.waiting = Vec::new();
    }

    /// How many changes and sums there are.
    pub(super) fn len(&self) -> usize {
        self.settled.len() + self.waiting.len()
    }

    /// Every change and sum: other item, place, weight. Several may be of one sum.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, usize, i64)> {
        self.settled.iter().chain(&self.waiting).map(|&(key, weight)| (key.target(), key.place(), weight))
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
        assert_eq!(one.settled, other.settled);
        assert!(one.settled.is_sorted_by_key(|entry| entry.0) && one.waiting.is_empty());
        let mut sums = std::collections::BTreeMap::new();
        for &(target, place, weight) in &changes {
            *sums.entry((target, place)).or_insert(0) += weight;
        }
        assert!(one.iter().eq(sums.into_iter().map(|((target, place), sum)| (target, place, sum))));
        for &(target, place, weight) in &changes {
            one.change(target, place, -weight);
        }
        one.settle();
        assert!(one.len() == 0 && other.len() > 0);
    }
}
