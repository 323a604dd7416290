//! The order of events: by time, and by an explicit policy where times are equal.
//!
//! Rows of one user with the same time have no order of their own. The order of the file is often that of a
//! catalogue, which no user followed, and order-aware models learn it; so the policy is always named.

use std::str::FromStr;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::histories::Histories;
use super::statistics::count_tied_rows;
use crate::choice::{UnknownChoice, choose};
use crate::interactions::{Interaction, Interactions};

/// How rows of one user with equal times are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TiePolicy {
    /// The order of the file.
    File,
    /// Seeded random order: the honest default.
    #[default]
    Shuffle,
    /// Like [`TiePolicy::Shuffle`], but a holdout event is predicted from strictly earlier ones only: other items of its own
    /// basket are neither in its history nor left out of its ranking. Earlier baskets, in training and in histories, stand in
    /// seeded random order: a model that reads order reads that one, so several seeds tell more than one.
    Basket,
}

impl TiePolicy {
    /// Every policy.
    pub const ALL: [TiePolicy; 3] = [TiePolicy::File, TiePolicy::Shuffle, TiePolicy::Basket];

    /// The policy's name, in settings and in reports.
    pub fn name(self) -> &'static str {
        match self {
            TiePolicy::File => "file",
            TiePolicy::Shuffle => "shuffle",
            TiePolicy::Basket => "basket",
        }
    }
}

impl FromStr for TiePolicy {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        choose(text, TiePolicy::ALL.map(|policy| (policy.name(), policy)))
    }
}

/// A log in the order its events happened, ties settled.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// The log.
    pub log: &'a Interactions,
    /// Its rows by time.
    pub rows: Vec<Interaction>,
    /// How ties were settled.
    pub policy: TiePolicy,
    /// Rows that share user and time with another row.
    pub tied_rows: usize,
}

impl<'a> Timeline<'a> {
    /// Orders a log. Under [`TiePolicy::Shuffle`] and [`TiePolicy::Basket`] the result depends on the seed and
    /// on what the rows say, not on their order in the file.
    pub fn new(log: &'a Interactions, policy: TiePolicy, seed: u64) -> Self {
        let tied_rows = count_tied_rows(log);
        let mut rows = log.rows().to_vec();
        if policy != TiePolicy::File {
            rows.sort_unstable_by_key(|row| (row.user, row.time, row.item));
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            for history in rows.chunk_by_mut(|a, b| a.user == b.user) {
                random.set_stream(u64::from(history[0].user.0));
                random.set_word_pos(0);
                for tied in history.chunk_by_mut(|a, b| a.time == b.time) {
                    shuffle(tied, &mut random);
                }
            }
        }
        rows.sort_by_key(|row| row.time);
        Timeline { log, rows, policy, tied_rows }
    }

    /// The whole log as histories: what a model learns from when it is not going to be scored.
    pub fn histories(&self) -> Histories {
        let rows = self.rows.iter().map(|row| (row.user, row.item, row.time));
        let (users, items) = (Arc::clone(self.log.users()), Arc::clone(self.log.items()));
        Histories::from_ordered_rows(users, items, self.log.clock(), rows)
    }
}

/// Fisher-Yates, spelled out so that a seed means the same order in every release. The draw is scaled by
/// multiplication, whose bias (below 2^-32 a swap) is of no account here.
pub(super) fn shuffle<T>(rows: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..rows.len()).rev() {
        let draw = (u64::from(random.next_u32()) * (last as u64 + 1)) >> 32;
        rows.swap(last, draw as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::testing::log;

    fn items(timeline: &Timeline<'_>) -> Vec<u32> {
        timeline.rows.iter().map(|row| row.item.0).collect()
    }

    #[test]
    fn file_order_is_kept_among_ties() {
        let log = log(&[(1, 5, 10), (1, 3, 10), (1, 4, 10), (1, 1, 2)]);
        let timeline = Timeline::new(&log, TiePolicy::File, 0);
        assert_eq!(items(&timeline), [0, 3, 1, 2]);
        assert_eq!(timeline.tied_rows, 3);
    }

    #[test]
    fn shuffle_depends_on_the_seed_and_not_on_the_file() {
        let rows: Vec<(i64, i64, i64)> = (0..60).map(|item| (item % 3, item, item / 30)).collect();
        let reversed: Vec<_> = rows.iter().rev().copied().collect();
        let (log, reversed) = (log(&rows), log(&reversed));
        let order = |log, seed| {
            let timeline = Timeline::new(log, TiePolicy::Shuffle, seed);
            let mut rows = timeline.rows.clone();
            rows.sort_by_key(|row| row.user);
            rows.iter().map(|row| row.item.0).collect::<Vec<_>>()
        };
        assert_eq!(order(&log, 1), order(&reversed, 1));
        assert_ne!(order(&log, 1), order(&log, 2));
        let mut sorted = order(&log, 1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..60).collect::<Vec<_>>());
    }

    #[test]
    fn every_order_of_three_ties_is_equally_likely() {
        let log = log(&[(1, 0, 0), (1, 1, 0), (1, 2, 0)]);
        let mut seen = std::collections::HashMap::new();
        for seed in 0..6000 {
            *seen.entry(items(&Timeline::new(&log, TiePolicy::Shuffle, seed))).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }
}
