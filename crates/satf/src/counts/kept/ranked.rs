//! Kept counts in the order of item ids, as models want them.

use super::Counts;
use crate::counts::distance::{CLASSES, DistanceSums};
use crate::counts::pair_rows::PairRows;
use crate::counts::row_counter::RowCounter;
use crate::interactions::{Ids, ItemIndex};

impl Counts {
    /// The kept pairs in the order of item ids.
    pub(crate) fn ranked(&self) -> RankedCounts<'_> {
        RankedCounts { counts: self, ranks: self.ranked_items().1 }
    }

    /// Ids of all items with an event, and where they stand.
    pub(super) fn ranked_items(&self) -> (Ids, Ranks) {
        let (ids, numbers) = self.items.ranked(|item| self.popularity[item as usize] > 0);
        let mut of_number = vec![u32::MAX; self.items.len()];
        for (rank, &number) in numbers.iter().enumerate() {
            of_number[number as usize] = rank as u32;
        }
        (ids, Ranks { numbers, of_number })
    }
}

/// Items in the order of their ids.
pub(super) struct Ranks {
    /// By rank.
    pub(super) numbers: Vec<u32>,
    /// By number; those without an event have none.
    pub(super) of_number: Vec<u32>,
}

/// Kept counts, seen in the order of item ids.
pub(crate) struct RankedCounts<'a> {
    counts: &'a Counts,
    ranks: Ranks,
}

impl PairRows for RankedCounts<'_> {
    fn num_items(&self) -> usize {
        self.ranks.numbers.len()
    }

    fn count(&self, item: ItemIndex, row: &mut RowCounter) {
        let kept = &self.counts.rows[self.ranks.numbers[item.get()] as usize];
        for (target, place, weight) in kept.iter() {
            let rank = self.ranks.of_number[target as usize];
            // Pairs with an item that has no events left add up to nothing.
            if rank != u32::MAX {
                row.add(ItemIndex(rank), place, weight as u64);
            }
        }
    }

    fn count_higher(&self, item: ItemIndex, row: &mut RowCounter) {
        let kept = &self.counts.rows[self.ranks.numbers[item.get()] as usize];
        for (target, place, weight) in kept.iter() {
            let rank = self.ranks.of_number[target as usize];
            if rank != u32::MAX && rank > item.0 {
                row.add(ItemIndex(rank), place, weight as u64);
            }
        }
    }

    fn squares(&self) -> Option<[u128; CLASSES]> {
        Some(self.counts.squares)
    }

    fn distances(&self) -> DistanceSums {
        self.counts.distances.clone()
    }
}
