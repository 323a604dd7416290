//! The memory that training takes, known before it begins.
//!
//! Histories, places and factors have to be in memory. The pairs that are kept need not: what does not fit beside the rest goes to
//! temporary files.

use crate::counts::{PairCounter, RowCounter};
use crate::models::item_rows::ItemRows;
use crate::prepare::Histories;

/// Bytes of a row of a log, and of a row of histories.
const LOG_ROW: u64 = 16;
const HISTORY_ROW: u64 = 12;

/// What a user takes: an id, where the history begins, and a number for each while they are made.
const USER: u64 = 40;

/// What an item takes besides its pairs: ids, counts, trend, scales, the end and the squares of its row.
const ITEM: u64 = 96;

/// What a row takes in a rehearsal: the past beside the whole, and marks of baskets.
const REHEARSED_ROW: u64 = 2 * HISTORY_ROW + 1;

/// Pairs, events and candidates of a rehearsal, at most.
const REHEARSAL: u64 = 768 << 20;

/// Rows of pairs on their way to where they are kept, and whatever else does not depend on the log.
const OTHER: u64 = 128 << 20;

/// Bytes of an entry of an item space while the core is learned.
const FACTOR: u64 = 28;
/// Bytes of an entry of the core: its normal equations, their eigenvectors and what these take to be found.
const CORE_ENTRY: u64 = 72;

/// Bytes by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    rows: u64,
    /// Users, items, and what does not depend on the log.
    base: u64,
    /// Where items stand, and a row of pairs per thread.
    counting: u64,
    factors: u64,
}

impl Needs {
    /// What these histories need with a window, a limit of pairs a row, and a rank.
    pub(super) fn of(histories: &Histories, window: usize, row_limit: usize, rank: usize) -> Self {
        let (rows, items, rank) = (histories.num_rows() as u64, histories.num_items() as u64, rank as u64);
        let longest = super::memory::most_pairs(histories, window).min(items);
        let a_thread = RowCounter::num_bytes(longest) + 4 * items + 32 * longest.min(row_limit as u64);
        Needs {
            rows,
            base: USER * histories.num_users() as u64 + ITEM * items + OTHER,
            counting: PairCounter::num_bytes(rows, items) + a_thread * rayon::current_num_threads() as u64,
            factors: FACTOR * items * rank + CORE_ENTRY * rank * rank,
        }
    }

    /// What counting takes, all pairs that are kept aside.
    fn counting(&self, has_core: bool) -> u64 {
        let factors = if has_core { self.factors } else { 0 };
        // The core is learned when the places of items are gone.
        self.base + HISTORY_ROW * self.rows + self.counting.max(factors)
    }

    /// The least that training can do with.
    pub(super) fn least(&self, has_core: bool, is_rehearsed: bool) -> u64 {
        let reading = self.base + (LOG_ROW + HISTORY_ROW) * self.rows;
        let rehearsal = self.base + REHEARSED_ROW * self.rows + self.counting + REHEARSAL;
        let rehearsal = if is_rehearsed { rehearsal } else { 0 };
        reading.max(rehearsal).max(self.counting(has_core))
    }

    /// What is left of so many bytes for the pairs that are kept. Several of them may be on their way to another form.
    pub(super) fn room_for_pairs(&self, allowed: u64, has_core: bool) -> u64 {
        allowed.saturating_sub(self.counting(has_core)) / ItemRows::BYTES_A_PAIR * ItemRows::BYTES_A_PAIR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_for_pairs() {
        let sequences: Vec<Vec<u32>> = (0..50).map(|user| vec![user % 7, user % 5, user % 3]).collect();
        let histories = Histories::from_sequences(7, &sequences);
        let needs = Needs::of(&histories, 10, 500, 4);
        let least = needs.least(false, false);
        assert!(needs.least(true, true) > least && least >= 150 * (LOG_ROW + HISTORY_ROW));
        assert_eq!(needs.room_for_pairs(0, false), 0);
        assert_eq!(needs.room_for_pairs(needs.counting(false) + 8 * 100 + 7, false), 8 * 100);
        // A rehearsal holds more rows than counting.
        assert!(needs.least(false, true) - REHEARSAL > needs.counting(false));
    }
}
