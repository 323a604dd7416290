//! The triples behind the positional tensor of Eq. 2, ordered by user, by item and by position.

use crate::interactions::UserIndex;
use crate::prepare::{Histories, popularity_weights};

/// One triple as an item sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemEntry {
    /// Who has the item.
    pub user: u32,
    /// At which position.
    pub position: u32,
}

/// The users who have one item at one position: consecutive entries of
/// [`PositionalLog::users_at`], from `start` to the start of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The item.
    pub item: u32,
    /// Its first user.
    pub start: u32,
}

/// Triples `(user, item, position)` with histories cut to the newest `K`, and how popular items are in whole
/// histories. Takes 16 bytes a triple and 8 a distinct pair of item and position.
#[derive(Clone, Debug)]
pub struct PositionalLog {
    num_positions: usize,
    user_offsets: Vec<usize>,
    /// Items of each user, oldest first; the last one stands at position `K - 1`.
    user_items: Vec<u32>,
    item_offsets: Vec<usize>,
    item_entries: Vec<ItemEntry>,
    /// Users position after position, within one by item, then by user.
    position_users: Vec<u32>,
    /// Runs of one item, position after position.
    runs: Vec<Run>,
    /// First run of each position.
    run_offsets: Vec<usize>,
    popularity: Vec<u32>,
}

impl PositionalLog {
    /// The triples of histories cut to the newest `num_positions` items.
    ///
    /// # Panics
    /// If `num_positions` is 0, or 2^32 triples or more remain.
    pub fn from_histories(histories: &Histories, num_positions: usize) -> Self {
        assert!(num_positions > 0, "a tensor needs positions");
        let (num_users, num_items) = (histories.num_users(), histories.num_items());
        let mut user_offsets = Vec::with_capacity(num_users + 1);
        user_offsets.push(0);
        let mut user_items = Vec::new();
        let mut item_offsets = vec![0usize; num_items + 1];
        for user in 0..num_users {
            let items = histories.items_of(UserIndex(user as u32));
            for item in &items[items.len().saturating_sub(num_positions)..] {
                user_items.push(item.0);
                item_offsets[item.get() + 1] += 1;
            }
            user_offsets.push(user_items.len());
        }
        user_items.shrink_to_fit();
        assert!(u32::try_from(user_items.len()).is_ok(), "fewer than 2^32 triples");
        for item in 0..num_items {
            item_offsets[item + 1] += item_offsets[item];
        }
        let mut log = PositionalLog {
            num_positions,
            user_offsets,
            item_entries: vec![ItemEntry { user: 0, position: 0 }; user_items.len()],
            position_users: vec![0; user_items.len()],
            user_items,
            item_offsets,
            runs: Vec::new(),
            run_offsets: Vec::with_capacity(num_positions + 1),
            popularity: histories.popularity(),
        };
        let position_starts = log.order_by_item();
        log.order_by_position(&position_starts);
        log
    }

    /// Fills the entries of items; returns where each position starts among all triples.
    fn order_by_item(&mut self) -> Vec<usize> {
        let mut next = self.item_offsets.clone();
        let mut starts = vec![0usize; self.num_positions + 1];
        for user in 0..self.num_users() {
            let range = self.user_offsets[user]..self.user_offsets[user + 1];
            let first = self.num_positions - range.len();
            for (at, &item) in self.user_items[range].iter().enumerate() {
                let position = first + at;
                starts[position + 1] += 1;
                let slot = &mut next[item as usize];
                self.item_entries[*slot] = ItemEntry { user: user as u32, position: position as u32 };
                *slot += 1;
            }
        }
        for position in 0..self.num_positions {
            starts[position + 1] += starts[position];
        }
        starts
    }

    fn order_by_position(&mut self, starts: &[usize]) {
        let mut next = starts.to_vec();
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); self.num_positions];
        for item in 0..self.num_items() {
            for entry in self.item_offsets[item]..self.item_offsets[item + 1] {
                let ItemEntry { user, position } = self.item_entries[entry];
                let position = position as usize;
                let slot = &mut next[position];
                if runs[position].last().is_none_or(|run| run.item != item as u32) {
                    runs[position].push(Run { item: item as u32, start: *slot as u32 });
                }
                self.position_users[*slot] = user;
                *slot += 1;
            }
        }
        self.runs.reserve_exact(runs.iter().map(Vec::len).sum());
        self.run_offsets.push(0);
        for runs in runs {
            self.runs.extend(runs);
            self.run_offsets.push(self.runs.len());
        }
    }

    /// Number of users, $M$.
    pub fn num_users(&self) -> usize {
        self.user_offsets.len() - 1
    }

    /// Number of items, $N$.
    pub fn num_items(&self) -> usize {
        self.item_offsets.len() - 1
    }

    /// Number of positions, $K$.
    pub fn num_positions(&self) -> usize {
        self.num_positions
    }

    /// Number of triples.
    pub fn num_entries(&self) -> usize {
        self.user_items.len()
    }

    /// Number of distinct pairs of item and position.
    pub fn num_runs(&self) -> usize {
        self.runs.len()
    }

    /// A user's items, oldest first, and the position of the first; the others follow without gaps.
    pub fn user(&self, user: usize) -> (usize, &[u32]) {
        let items = &self.user_items[self.user_offsets[user]..self.user_offsets[user + 1]];
        (self.num_positions - items.len(), items)
    }

    /// Who has an item and where, by user and then by position.
    pub fn item(&self, item: usize) -> &[ItemEntry] {
        &self.item_entries[self.item_offsets[item]..self.item_offsets[item + 1]]
    }

    /// Runs of equal items at a position, items ascending.
    pub fn runs_at(&self, position: usize) -> &[Run] {
        &self.runs[self.run_offsets[position]..self.run_offsets[position + 1]]
    }

    /// The users of one run, given its index among all runs of the log.
    pub fn users_of_run(&self, run: usize) -> &[u32] {
        let end = self.runs.get(run + 1).map_or(self.position_users.len(), |next| next.start as usize);
        &self.position_users[self.runs[run].start as usize..end]
    }

    /// Index of the first run of a position among all runs.
    pub fn first_run(&self, position: usize) -> usize {
        self.run_offsets[position]
    }

    /// All users with an item at a position, by item and then by user.
    pub fn users_at(&self, position: usize) -> &[u32] {
        let start =
            |run: usize| self.runs.get(run).map_or(self.position_users.len(), |run| run.start as usize);
        &self.position_users[start(self.run_offsets[position])..start(self.run_offsets[position + 1])]
    }

    /// For every triple, in the order of users and of positions within a user, the index of its run.
    pub fn runs_by_user(&self) -> Vec<u32> {
        let mut runs = vec![0u32; self.user_items.len()];
        for position in 0..self.num_positions {
            for run in self.run_offsets[position]..self.run_offsets[position + 1] {
                for &user in self.users_of_run(run) {
                    // The newest item is the last of its user's.
                    let end = self.user_offsets[user as usize + 1];
                    runs[end - (self.num_positions - position)] = run as u32;
                }
            }
        }
        runs
    }

    /// Index of a user's first triple, in the order of [`PositionalLog::runs_by_user`].
    pub fn first_entry(&self, user: usize) -> usize {
        self.user_offsets[user]
    }

    /// Rows of every item in whole histories, $c_j$.
    pub fn popularity(&self) -> &[u32] {
        &self.popularity
    }

    /// The popularity weights $d_j = c_j^{(s-1)/2}$ of Eq. 26, the diagonal of $D$; 0 for an item without rows.
    pub fn popularity_weights(&self, scaling: f64) -> Vec<f64> {
        popularity_weights(&self.popularity, scaling)
    }

    /// Bytes a log of this size takes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.user_offsets.as_slice())
            + size_of_val(self.user_items.as_slice())
            + size_of_val(self.item_offsets.as_slice())
            + size_of_val(self.item_entries.as_slice())
            + size_of_val(self.position_users.as_slice())
            + size_of_val(self.runs.as_slice())
            + size_of_val(self.run_offsets.as_slice())
            + size_of_val(self.popularity.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_three_orders_hold_the_same_triples(
            sequences in prop::collection::vec(prop::collection::vec(0u32..6, 0..9), 0..9),
            k in 1usize..7,
        ) {
            let histories = Histories::from_sequences(6, &sequences);
            let log = PositionalLog::from_histories(&histories, k);
            let mut expected = Vec::new();
            for (user, items) in sequences.iter().enumerate() {
                for (lag, &item) in items.iter().rev().take(k).enumerate() {
                    expected.push((user as u32, item, (k - 1 - lag) as u32));
                }
            }
            expected.sort_unstable();
            let mut by_item = Vec::new();
            for item in 0..6 {
                by_item.extend(log.item(item).iter().map(|entry| (entry.user, item as u32, entry.position)));
            }
            by_item.sort_unstable();
            prop_assert_eq!(&by_item, &expected);
            let mut by_position = Vec::new();
            for position in 0..k {
                let mut users = Vec::new();
                for (at, run) in log.runs_at(position).iter().enumerate() {
                    for &user in log.users_of_run(log.first_run(position) + at) {
                        by_position.push((user, run.item, position as u32));
                        users.push(user);
                    }
                }
                prop_assert_eq!(users.as_slice(), log.users_at(position));
            }
            by_position.sort_unstable();
            prop_assert_eq!(&by_position, &expected);
            prop_assert_eq!(log.popularity().to_vec(), histories.popularity());
        }
    }
}
