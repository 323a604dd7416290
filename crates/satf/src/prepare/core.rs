//! The p-core: every user and every item left has at least `p` rows.

use std::collections::VecDeque;

use crate::interactions::Interactions;

/// Removes users and items with fewer than `p` rows until none is left to remove.
///
/// The result is unique whatever the order of removal. Each row is dropped at most once and looked at twice,
/// by its user and by its item: the cost is linear in the log.
#[must_use]
pub fn p_core(log: &Interactions, p: usize) -> Interactions {
    // Users are nodes 0..M, items nodes M..M+N; rows are the edges between them.
    let num_users = log.users().len();
    let num_nodes = num_users + log.items().len();
    let ends = |row: usize| [log.rows()[row].user.get(), num_users + log.rows()[row].item.get()];

    let mut offsets = vec![0usize; num_nodes + 1];
    for row in 0..log.rows().len() {
        for node in ends(row) {
            offsets[node + 1] += 1;
        }
    }
    for node in 0..num_nodes {
        offsets[node + 1] += offsets[node];
    }
    let mut rows_of = vec![0u32; 2 * log.rows().len()];
    let mut next = offsets.clone();
    for row in 0..log.rows().len() {
        for node in ends(row) {
            rows_of[next[node]] = row as u32;
            next[node] += 1;
        }
    }

    let mut degree: Vec<usize> = offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
    let mut alive = vec![true; log.rows().len()];
    let mut queue: VecDeque<usize> = (0..num_nodes).filter(|&node| degree[node] < p).collect();
    while let Some(node) = queue.pop_front() {
        for &row in &rows_of[offsets[node]..offsets[node + 1]] {
            if !std::mem::replace(&mut alive[row as usize], false) {
                continue;
            }
            for end in ends(row as usize) {
                degree[end] -= 1;
                // A node enters the queue once: when it falls below p, or at the start if it never reached it.
                if degree[end] + 1 == p && end != node {
                    queue.push_back(end);
                }
            }
        }
    }
    log.filter(|at, _| alive[at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prepare::testing::log;

    /// The definition: rescan until nothing changes.
    fn slow_core(log: &Interactions, p: usize) -> Interactions {
        let mut log = log.clone();
        loop {
            let mut users = vec![0; log.users().len()];
            let mut items = vec![0; log.items().len()];
            for row in log.rows() {
                users[row.user.get()] += 1;
                items[row.item.get()] += 1;
            }
            let next = log.filter(|_, row| users[row.user.get()] >= p && items[row.item.get()] >= p);
            if next.rows().len() == log.rows().len() {
                return next;
            }
            log = next;
        }
    }

    proptest! {
        #[test]
        fn peeling_equals_rescanning(
            rows in prop::collection::vec((0i64..12, 0i64..12, 0i64..50), 0..120),
            p in 0usize..6,
        ) {
            let log = log(&rows);
            prop_assert_eq!(p_core(&log, p), slow_core(&log, p));
        }
    }

    #[test]
    fn a_chain_unravels_completely() {
        let rows: Vec<(i64, i64, i64)> = (0..1000).flat_map(|u| [(u, u, 0), (u, u + 1, 1)]).collect();
        assert!(p_core(&log(&rows), 2).rows().is_empty());
    }
}
