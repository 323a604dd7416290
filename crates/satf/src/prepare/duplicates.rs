//! Rows that repeat a (user, item) pair.

use std::str::FromStr;

use serde::Serialize;

use crate::choice::{UnknownChoice, choose};
use crate::interactions::Interactions;

/// What to do with rows that share user and item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplicates {
    /// Keep the newest of them (of equal times, the one further down the file).
    #[default]
    Last,
    /// Keep the oldest of them (of equal times, the one further up the file).
    First,
    /// Keep every row.
    All,
}

impl FromStr for Duplicates {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        let choices = [("last", Duplicates::Last), ("first", Duplicates::First), ("all", Duplicates::All)];
        choose(text, choices)
    }
}

/// The log with duplicates treated as asked; the order of the remaining rows is kept.
pub fn resolve_duplicates(log: &Interactions, policy: Duplicates) -> Interactions {
    if policy == Duplicates::All {
        return log.clone();
    }
    let mut keep = vec![true; log.rows().len()];
    for same_pair in pairs_in_order(log).chunk_by(|&a, &b| pair(log, a) == pair(log, b)) {
        let kept = if policy == Duplicates::Last { same_pair.len() - 1 } else { 0 };
        for (at, &row) in same_pair.iter().enumerate() {
            keep[row as usize] = at == kept;
        }
    }
    log.filter(|at, _| keep[at])
}

/// How many rows repeat a pair that another row has already.
pub fn count_duplicates(log: &Interactions) -> usize {
    let order = pairs_in_order(log);
    order.windows(2).filter(|two| pair(log, two[0]) == pair(log, two[1])).count()
}

fn pair(log: &Interactions, row: u32) -> (u32, u32) {
    let row = &log.rows()[row as usize];
    (row.user.0, row.item.0)
}

/// Row numbers sorted by pair, then time, then place in the file.
fn pairs_in_order(log: &Interactions) -> Vec<u32> {
    let mut order: Vec<u32> = (0..log.rows().len() as u32).collect();
    order.sort_unstable_by_key(|&at| (pair(log, at), log.rows()[at as usize].time, at));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::testing::log;

    #[test]
    fn last_and_first_go_by_time_then_by_place() {
        let log = log(&[(1, 7, 30), (1, 7, 10), (2, 7, 5), (1, 8, 1), (1, 7, 30)]);
        assert_eq!(count_duplicates(&log), 2);
        let times = |policy| {
            let kept = resolve_duplicates(&log, policy);
            kept.rows().iter().map(|row| row.time.0 / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(times(Duplicates::Last), [5, 1, 30]);
        assert_eq!(times(Duplicates::First), [10, 5, 1]);
        assert_eq!(times(Duplicates::All), [30, 10, 5, 1, 30]);
    }
}
