//! The memory that training takes, known before it begins.
//!
//! Histories, places and factors have to be in memory. The pairs that are kept need not: what does not fit beside the rest goes to
//! temporary files.

use super::rehearsal;
use crate::counts::{CLASSES, PairCounter, RowCounter};
use crate::interactions::Ids;
use crate::models::item_rows::ItemRows;
use crate::prepare::Histories;

/// Bytes of a row of a log, and of a row of histories.
const LOG_ROW: u64 = 16;
const HISTORY_ROW: u64 = 12;

/// What a user takes: an id, where the history begins, and a number for each while they are made.
const USER: u64 = 40;

/// What an id takes that is a text, besides its letters.
const TEXT: u64 = 32;

/// What an item takes besides its pairs: ids, counts, trend, scales, the end and the squares of its row.
const ITEM: u64 = 96;

/// What a row takes in a rehearsal: the whole, nine tenths of it as the past, marks of baskets, and an event for one row in ten, in a list
/// that grows by doubling.
const REHEARSED_ROW: u64 = 27;

/// Most bytes of pairs, events and candidates of a rehearsal.
const REHEARSAL: u64 = 768 << 20;
/// What a rehearsal takes of an item, a pair and a sum of a pair: candidates for the scale of every target; what was counted, while it
/// is put together or beside eight kinds of evidence.
const REHEARSED_ITEM: u64 = 140;
const REHEARSED_PAIR: u64 = 48;
const REHEARSED_SUM: u64 = 20;
/// Gains of events with every candidate.
const REHEARSED_GAINS: u64 = 8 << 20;

/// What a rehearsal with a core takes of an item, scores of events at once, and of a pair, whose weights stand in two models besides.
const SCORED_ITEM: u64 = 512;
const SCORED_PAIR: u64 = 16;

/// The program and its buffers, and the most that is on its way to where it is kept.
const PROGRAM: u64 = 24 << 20;
const MOST_ON_ITS_WAY: u64 = 104 << 20;
/// Bytes of a pair on its way, in a list that grows by doubling, and chunks of so many items that wait, per thread.
const PAIR_ON_ITS_WAY: u64 = 16;
const ITEMS_A_CHUNK: u64 = 64;
const CHUNKS_A_THREAD: u64 = 17;
/// What an item takes in products with the item space, per thread: a panel of columns twice, sums, and a column of a block of rows.
const MULTIPLIED_ITEM: u64 = 128 + 8 + 4 * ITEMS_A_CHUNK;

/// Bytes of a row of the log in the matrix from which an item space is learned, by rows and by columns; and of a user or an item in it.
const MATRIX_ROW: u64 = 24;
const MATRIX_END: u64 = 8;
/// Bytes of an entry of the blocks from which an item space is learned, and columns that they have besides its rank, at least.
const BLOCK_ENTRY: u64 = 16;
const MORE_COLUMNS: u64 = 16;
/// Bytes of an entry of an item space while the core is learned.
const FACTOR: u64 = 28;
/// Bytes of an entry of the core: its normal equations, their eigenvectors and what these take to be found.
const CORE_ENTRY: u64 = 72;

/// What is learned besides the memory, which takes memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Learned {
    /// There is a core, or may be one.
    pub(super) core: bool,
    /// Keys are learned by rehearsal.
    pub(super) keys: bool,
    /// So is whether there is a core.
    pub(super) balance: bool,
}

/// Bytes by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    rows: u64,
    /// Users, items, and what hardly depends on the log.
    base: u64,
    /// Where items stand, and a row of pairs per thread.
    counting: u64,
    /// The item space and the core, and the matrix that they are learned from.
    core: u64,
    /// Pairs, events and candidates of a rehearsal.
    rehearsal: u64,
    /// The same of a rehearsal with a core, and what it learns that from.
    balance: u64,
}

impl Needs {
    /// What these histories need with a window, a limit of pairs a row, and a rank.
    pub(super) fn of(histories: &Histories, window: usize, row_limit: usize, rank: usize) -> Self {
        let [rows, users, items] =
            [histories.num_rows(), histories.num_users(), histories.num_items()].map(|count| count as u64);
        let threads = rayon::current_num_threads() as u64;
        let ids = text_bytes(histories.users()) + text_bytes(histories.catalog());
        let occurrences = super::memory::num_occurrences(histories, window);
        // At most every two items are a pair.
        let pairs = occurrences.min(items.saturating_mul(items));
        let longest = pairs.min(items);
        let kept = longest.min(row_limit as u64);
        let a_thread = RowCounter::num_bytes(longest) + 4 * items + 32 * kept;
        let counting_of = |rows: u64| PairCounter::num_bytes(rows, items) + a_thread * threads;
        let waiting = (CHUNKS_A_THREAD * ITEMS_A_CHUNK * threads).min(items) * kept * PAIR_ON_ITS_WAY;
        let on_its_way = waiting.max(MULTIPLIED_ITEM * items * threads).min(MOST_ON_ITS_WAY);
        let core_of = |rows: u64, rank: u64| {
            let matrix = MATRIX_ROW * rows + MATRIX_END * (users + items);
            let learning = BLOCK_ENTRY * (rank + MORE_COLUMNS) + 8 * rank;
            matrix + items * learning.max(FACTOR * rank) + CORE_ENTRY * rank * rank
        };
        let sample = rows.min(rehearsal::MOST_SAMPLED_ROWS as u64);
        let sampled_core = core_of(sample, rank.min(super::MOST_REHEARSED_RANK) as u64);
        let scored = SCORED_ITEM * items + SCORED_PAIR * pairs.min(rehearsal::MOST_SAMPLED_PAIRS);
        Needs {
            rows,
            base: USER * users + ITEM * items + ids + PROGRAM + on_its_way,
            counting: counting_of(rows),
            core: core_of(rows, rank as u64),
            rehearsal: rehearsed_bytes(items, pairs, occurrences, row_limit),
            balance: REHEARSED_ROW * sample + scored.min(REHEARSAL) + counting_of(sample).max(sampled_core),
        }
    }

    /// What counting takes, all pairs that are kept aside.
    fn counting(&self, has_core: bool) -> u64 {
        let core = if has_core { self.core } else { 0 };
        // The core is learned when the places of items are gone.
        self.base + HISTORY_ROW * self.rows + self.counting.max(core)
    }

    /// The least that training can do with.
    pub(super) fn least(&self, learned: Learned) -> u64 {
        let reading = self.base + (LOG_ROW + HISTORY_ROW) * self.rows;
        let keys = self.base + REHEARSED_ROW * self.rows + self.counting + self.rehearsal;
        let balance = self.base + HISTORY_ROW * self.rows + self.balance;
        let keys = if learned.keys { keys } else { 0 };
        let balance = if learned.balance { balance } else { 0 };
        reading.max(keys).max(balance).max(self.counting(learned.core))
    }

    /// What is left of so many bytes for the pairs that are kept. Several of them may be on their way to another form.
    pub(super) fn room_for_pairs(&self, allowed: u64, has_core: bool) -> u64 {
        allowed.saturating_sub(self.counting(has_core)) / ItemRows::BYTES_A_PAIR * ItemRows::BYTES_A_PAIR
    }
}

/// What ids take that are texts.
fn text_bytes(ids: &Ids) -> u64 {
    match ids {
        Ids::Integers(_) => 0,
        Ids::Texts(ids) => ids.iter().map(|id| TEXT + id.len() as u64).sum(),
    }
}

/// Pairs, events and candidates of a rehearsal, of a log with at most so many pairs that occur so often. No event has more than some sources, and no source
/// more pairs than are kept of it; every occurrence of a pair, one way, is in one sum at most.
fn rehearsed_bytes(items: u64, pairs: u64, occurrences: u64, row_limit: usize) -> u64 {
    let sources = items.min(rehearsal::MOST_SOURCES as u64);
    let kept = pairs.min(sources * items.min(row_limit.min(rehearsal::MOST_PAIRS_A_ROW) as u64));
    let sums = occurrences.min(kept * 2 * CLASSES as u64);
    let all = REHEARSED_GAINS + REHEARSED_ITEM * items + REHEARSED_PAIR * kept + REHEARSED_SUM * sums;
    all.min(REHEARSAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_for_pairs() {
        let sequences: Vec<Vec<u32>> = (0..50).map(|user| vec![user % 7, user % 5, user % 3]).collect();
        let histories = Histories::from_sequences(7, &sequences);
        let needs = Needs::of(&histories, 10, 500, 4);
        let nothing = Learned { core: false, keys: false, balance: false };
        let least = needs.least(nothing);
        assert!(needs.least(Learned { core: true, keys: true, ..nothing }) > least);
        assert!(least >= 150 * (LOG_ROW + HISTORY_ROW));
        assert_eq!(needs.room_for_pairs(0, false), 0);
        assert_eq!(needs.room_for_pairs(needs.counting(false) + 8 * 100 + 7, false), 8 * 100);
        // A rehearsal holds more rows than counting.
        let rehearsed = needs.least(Learned { keys: true, ..nothing });
        assert!(rehearsed - needs.rehearsal > needs.counting(false));
    }

    #[test]
    fn small_logs_need_little_and_a_rehearsal_of_large_ones_is_bounded() {
        let all = Learned { core: true, keys: true, balance: false };
        let tiny = Histories::from_sequences(3, &[vec![0, 1], vec![0, 2]]);
        assert!(Needs::of(&tiny, 50, 2000, 1).least(all) < 64 << 20);
        let (items, pairs) = (1_000_000, 10_000_000_000);
        assert_eq!(rehearsed_bytes(items, pairs, pairs, 2000), REHEARSAL);
        // It grows with what there is of each.
        for (more, less) in [
            (rehearsed_bytes(2000, 100_000, 200_000, 2000), rehearsed_bytes(1000, 100_000, 200_000, 2000)),
            (rehearsed_bytes(2000, 200_000, 200_000, 2000), rehearsed_bytes(2000, 100_000, 200_000, 2000)),
            (rehearsed_bytes(2000, 100_000, 400_000, 2000), rehearsed_bytes(2000, 100_000, 200_000, 2000)),
        ] {
            assert!(more > less);
        }
    }
}
