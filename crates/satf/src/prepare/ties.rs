//! The order of events: by time, and by an explicit policy where times are equal.
//!
//! Rows of one user with the same time have no order of their own. The order of the file is often that of a
//! catalogue, which no user followed, and order-aware models learn it; so the policy is always named.

use std::str::FromStr;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::histories::Histories;
use super::statistics::count_tied_rows;
use crate::choice::{UnknownChoice, choose};
use crate::interactions::{Interaction, Interactions, UserIndex, event_hash};

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
    /// Orders a log. Under [`TiePolicy::Shuffle`] and [`TiePolicy::Basket`] one user's events of the same time stand in the order of a
    /// seeded hash of their ids and time. So it depends on the seed and on each event itself: not on the order of the file, nor on
    /// any other event.
    pub fn new(log: &'a Interactions, policy: TiePolicy, seed: u64) -> Self {
        let (mut rows, tied_rows) = match policy {
            TiePolicy::File => (log.rows().to_vec(), count_tied_rows(log)),
            TiePolicy::Shuffle | TiePolicy::Basket => ordered_by_user(log, policy, seed),
        };
        rows.par_sort_by_key(|row| row.time);
        Timeline { log, rows, policy, tied_rows }
    }

    /// The whole log as histories: what a model learns from when it is not going to be scored.
    pub fn histories(&self) -> Histories {
        let rows = self.rows.iter().map(|row| (row.user, row.item, row.time));
        let (users, items) = (Arc::clone(self.log.users()), Arc::clone(self.log.items()));
        Histories::from_ordered_rows(users, items, self.log.clock(), rows)
    }
}

/// Users whose events are put in order as one piece of parallel work.
const USERS_A_PIECE: usize = 4096;

impl Histories {
    /// The histories of a whole log, ties settled, and how many of its rows are tied. The same as those of its [`Timeline`], without putting
    /// all rows in the order of time.
    pub fn of_log(log: &Interactions, policy: TiePolicy, seed: u64) -> (Self, usize) {
        Histories::by_user(log).in_order(policy, seed)
    }

    /// The same of a log that nobody else needs: its rows are gone before the rest of the work begins.
    pub fn of_whole_log(log: Interactions, policy: TiePolicy, seed: u64) -> (Self, usize) {
        let histories = Histories::by_user(&log);
        drop(log);
        histories.in_order(policy, seed)
    }

    /// Puts every user's events in the order of time, and settles ties.
    fn in_order(mut self, policy: TiePolicy, seed: u64) -> (Self, usize) {
        let (users, items) = (Arc::clone(self.users()), Arc::clone(self.catalog()));
        let tied_rows = self
            .pieces_mut(USERS_A_PIECE)
            .into_par_iter()
            .map_init(Vec::new, |events, piece| {
                let mut tied_rows = 0;
                piece.each_user(|user, own_items, times| {
                    // As most logs have them.
                    if times.is_sorted_by(|one, next| one < next) {
                        return;
                    }
                    events.clear();
                    events.extend(times.iter().copied().zip(own_items.iter().copied()));
                    events.sort_by_key(|event| event.0);
                    for tied in events.chunk_by_mut(|one, next| one.0 == next.0).filter(|tied| tied.len() > 1)
                    {
                        tied_rows += tied.len();
                        if policy != TiePolicy::File {
                            let id = users.get(user.get());
                            tied.sort_by_cached_key(|&(time, item)| {
                                (event_hash(seed, id, items.get(item.get()), time), item)
                            });
                        }
                    }
                    for (at, &(time, item)) in events.iter().enumerate() {
                        (times[at], own_items[at]) = (time, item);
                    }
                });
                tied_rows
            })
            .sum();
        (self, tied_rows)
    }
}

/// The rows of a log by user, then by time, ties settled, and how many of them are tied.
fn ordered_by_user(log: &Interactions, policy: TiePolicy, seed: u64) -> (Vec<Interaction>, usize) {
    let (histories, tied_rows) = Histories::of_log(log, policy, seed);
    let of_user = |user: UserIndex| {
        let events = histories.items_of(user).iter().zip(histories.times_of(user));
        events.map(move |(&item, &time)| Interaction { user, item, time })
    };
    ((0..histories.num_users() as u32).map(UserIndex).flat_map(of_user).collect(), tied_rows)
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
    fn the_order_of_ties_depends_on_each_event_alone() {
        let rows: Vec<(i64, i64, i64)> = (0..90).map(|item| (item % 3, item * 7, item / 30)).collect();
        let ids = |rows: &[(i64, i64, i64)]| {
            let log = log(rows);
            let mut rows = Timeline::new(&log, TiePolicy::Shuffle, 4).rows;
            rows.sort_by_key(|row| row.user);
            rows.iter()
                .map(|row| {
                    (log.users().get(row.user.get()).to_owned(), log.items().get(row.item.get()).to_owned())
                })
                .collect::<Vec<_>>()
        };
        let whole = ids(&rows);
        // Without a user, without an item, and without every other event.
        for keep in [
            |row: &(i64, i64, i64)| row.0 != 0,
            |row: &(i64, i64, i64)| row.1 != 14,
            |row: &(i64, i64, i64)| row.1 % 2 == 0,
        ] {
            let kept: Vec<_> = rows.iter().copied().filter(keep).collect();
            let left = ids(&kept);
            let expected: Vec<_> = whole.iter().filter(|event| left.contains(event)).cloned().collect();
            assert_eq!(left, expected);
        }
    }

    #[test]
    fn histories_are_those_of_the_timeline() {
        let rows: Vec<(i64, i64, i64)> = (0..200).map(|at| (at % 7, at * at % 31, at * 13 % 40)).collect();
        let log = log(&rows);
        for policy in TiePolicy::ALL {
            let timeline = Timeline::new(&log, policy, 3);
            let (histories, tied_rows) = Histories::of_log(&log, policy, 3);
            assert_eq!((histories, tied_rows), (timeline.histories(), timeline.tied_rows));
        }
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
