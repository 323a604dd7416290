//! Logs put together, and logs without some of their events.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::HashSet;
use rayon::prelude::*;

use super::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

/// Two logs of which one has times and the other only an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one of the logs has times and the other an order only: they cannot be put together")]
pub struct MixedClocks;

impl Interactions {
    /// The events of this log and those of a later one, as if they had been read from the same files.
    ///
    /// Ids are texts if those of either log are. Where times are row numbers, those of the later log continue after the last of this
    /// one.
    pub fn joined(&self, later: &Interactions) -> Result<Interactions, MixedClocks> {
        if self.clock != later.clock {
            return Err(MixedClocks);
        }
        let shift = match self.clock {
            Clock::Calendar => 0,
            Clock::RowOrder => self.rows.iter().map(|row| row.time.0.saturating_add(1)).max().unwrap_or(0),
        };
        let (users, user_ranks) = self.users.union(&later.users);
        let (items, item_ranks) = self.items.union(&later.items);
        let mut rows = Vec::with_capacity(self.rows.len() + later.rows.len());
        for (part, log) in [self, later].into_iter().enumerate() {
            let shift = if part == 0 { 0 } else { shift };
            rows.extend(log.rows.iter().map(|row| Interaction {
                user: UserIndex(user_ranks[part][row.user.get()]),
                item: ItemIndex(item_ranks[part][row.item.get()]),
                time: Timestamp(row.time.0.saturating_add(shift)),
            }));
        }
        Ok(Interactions { users: Arc::new(users), items: Arc::new(items), rows, clock: self.clock })
    }

    /// How many of the rows from `first` on are there before it already. In a log with times these are rows with the same user, item and
    /// time. Without times it is all of them or none: all if the later rows of every user repeat, in their order, the end of what the
    /// user has before them.
    pub fn rows_repeated_from(&self, first: usize) -> usize {
        let (before, after) = self.rows.split_at(first.min(self.rows.len()));
        if self.clock == Clock::RowOrder {
            return if repeats_the_ends(before, after) { after.len() } else { 0 };
        }
        // Numbers of rows take a quarter of what rows do.
        let key = |row: &Interaction| (row.user, row.item, row.time);
        let key_of = |at: u32| key(&after[at as usize]);
        let mut order: Vec<u32> = (0..after.len() as u32).collect();
        order.par_sort_unstable_by_key(|&at| key_of(at));
        let mut is_repeated = vec![false; order.len()];
        for row in before {
            let mut place = order.partition_point(|&at| key_of(at) < key(row));
            while place < order.len() && !is_repeated[place] && key_of(order[place]) == key(row) {
                is_repeated[place] = true;
                place += 1;
            }
        }
        is_repeated.iter().filter(|is_repeated| **is_repeated).count()
    }

    /// The log without the events for which `is_gone` holds, as if they had never been in its files: where times are row numbers
    /// without gaps, they are so again.
    #[must_use]
    pub fn without(&self, mut is_gone: impl FnMut(&Interaction) -> bool) -> Interactions {
        let mut left = self.filter(|_, row| !is_gone(row));
        if self.clock == Clock::RowOrder && has_no_gaps(&self.rows) {
            let mut order: Vec<u32> = (0..left.rows.len() as u32).collect();
            order.sort_unstable_by_key(|&at| left.rows[at as usize].time);
            for (number, &at) in (0..).zip(&order) {
                left.rows[at as usize].time = Timestamp(number);
            }
        }
        left
    }
}

/// Whether the later rows of every user are, in their order, the last of the user's earlier ones.
fn repeats_the_ends(before: &[Interaction], after: &[Interaction]) -> bool {
    let users: HashSet<UserIndex> = after.iter().map(|row| row.user).collect();
    // Numbers of rows, user by user and the newest first.
    let newest_first = |rows: &[Interaction]| {
        let is_of_them = |at: &u32| users.contains(&rows[*at as usize].user);
        let mut order: Vec<u32> = (0..rows.len() as u32).filter(is_of_them).collect();
        order.par_sort_unstable_by_key(|&at| (rows[at as usize].user, Reverse(rows[at as usize].time)));
        order
    };
    let (earlier, later) = (newest_first(before), newest_first(after));
    later.chunk_by(|&one, &other| after[one as usize].user == after[other as usize].user).all(|later| {
        let user = after[later[0] as usize].user;
        let first = earlier.partition_point(|&at| before[at as usize].user < user);
        let earlier = earlier[first..].iter().map(|&at| before[at as usize]);
        let mut earlier = earlier.take_while(|row| row.user == user);
        later.iter().all(|&at| earlier.next().is_some_and(|row| row.item == after[at as usize].item))
    })
}

/// Whether times are the numbers from 0 on, each once.
fn has_no_gaps(rows: &[Interaction]) -> bool {
    let mut times: Vec<i64> = rows.iter().map(|row| row.time.0).collect();
    times.sort_unstable();
    times.iter().zip(0..).all(|(&time, number)| time == number)
}

impl Ids {
    /// The ids of two catalogues in one, and where those of each stand in it. They are texts if those of either are.
    fn union(&self, other: &Ids) -> (Ids, [Vec<u32>; 2]) {
        if let (Ids::Integers(one), Ids::Integers(two)) = (self, other) {
            let mut all: Vec<i64> = one.iter().chain(two).copied().collect();
            all.sort_unstable();
            all.dedup();
            let ranks = [one, two].map(|ids| ranks(ids, &all));
            return (Ids::Integers(all), ranks);
        }
        let parts = [self, other].map(|ids| ids.iter().map(|id| id.to_string().into()).collect());
        let mut all: Vec<Box<str>> =
            parts.iter().flat_map(|part: &Vec<Box<str>>| part.iter().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        let ranks = parts.each_ref().map(|ids| ranks(ids, &all));
        (Ids::Texts(all), ranks)
    }
}

/// Where ids stand among all.
fn ranks<T: Ord>(ids: &[T], all: &[T]) -> Vec<u32> {
    ids.iter().map(|id| all.partition_point(|other| other < id) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(events: &[(&str, &str, i64)]) -> Interactions {
        Interactions::from_events(events.iter().copied()).unwrap()
    }

    #[test]
    fn logs_are_joined_as_their_files_would_be() {
        let (one, two) = ([("10", "b", 5), ("9", "a", 7)], [("9", "c", 1), ("11", "a", 2)]);
        let joined = log(&one).joined(&log(&two)).unwrap();
        assert_eq!(joined, log(&[one, two].concat()));
        // Numbers among texts are texts.
        let (texts, numbers) = ([("x", "b", 5)], [("7", "c", 1)]);
        assert_eq!(log(&texts).joined(&log(&numbers)).unwrap(), log(&[texts, numbers].concat()));
        let joined = log(&numbers).joined(&log(&texts)).unwrap();
        assert_eq!(**joined.users(), Ids::Texts(vec!["7".into(), "x".into()]));
    }

    #[test]
    fn rows_that_are_added_twice_are_counted() {
        let one = [("a", "x", 1), ("a", "y", 2), ("b", "x", 1)];
        for (more, count) in [
            (vec![], 0),
            (vec![("a", "y", 2)], 1),
            (vec![("a", "y", 3), ("c", "x", 1)], 0),
            (one.to_vec(), 3),
            ([&one[..2], &one[..1], &[("a", "z", 1)]].concat(), 3),
        ] {
            let both = log(&one).joined(&log(&[&more[..], &[("new", "x", 0)]].concat())).unwrap();
            assert_eq!(both.rows_repeated_from(3), count, "{more:?}");
        }
        assert_eq!(log(&one).rows_repeated_from(9), 0);
    }

    #[test]
    fn rows_without_times_are_repeated_if_all_histories_end_so() {
        let ordered = |events: &[(u32, u32)]| {
            let rows = events.iter().zip(0..).map(|(&(user, item), time)| Interaction {
                user: UserIndex(user),
                item: ItemIndex(item),
                time: Timestamp(time),
            });
            let ids = || Ids::Integers((0..4).collect());
            Interactions::from_indexed(ids(), ids(), rows.collect(), Clock::RowOrder)
        };
        let old = [(0, 1), (1, 3), (0, 2), (1, 1), (0, 3)];
        for (new, count) in [
            (vec![(0, 2), (1, 1), (0, 3)], 3),
            (vec![(0, 3)], 1),
            (vec![(0, 3), (0, 2)], 0),
            (vec![(0, 3), (2, 1)], 0),
            (vec![(1, 0), (1, 3), (1, 1)], 0),
            (old.to_vec(), 5),
        ] {
            let all = ordered(&[&old[..], &new].concat());
            assert_eq!(all.rows_repeated_from(old.len()), count, "{new:?}");
        }
    }

    #[test]
    fn row_numbers_go_on_and_have_no_gaps() {
        let ordered = |items: &[(i64, i64)]| {
            let rows = items.iter().map(|&(item, time)| Interaction {
                user: UserIndex(0),
                item: ItemIndex(item as u32),
                time: Timestamp(time),
            });
            let ids = Ids::Integers((0..4).collect());
            Interactions::from_indexed(Ids::Integers(vec![1]), ids, rows.collect(), Clock::RowOrder)
        };
        let times = |log: &Interactions| log.rows().iter().map(|row| row.time.0).collect::<Vec<_>>();
        let joined = ordered(&[(0, 0), (1, 1)]).joined(&ordered(&[(2, 0), (3, 1)])).unwrap();
        assert_eq!(times(&joined), [0, 1, 2, 3]);
        assert_eq!(times(&joined.without(|row| row.item == ItemIndex(1))), [0, 1, 2]);
        // Gaps that were there stay.
        assert_eq!(times(&ordered(&[(0, 2), (1, 5), (2, 9)]).without(|row| row.item.0 == 1)), [2, 9]);
        assert_eq!(joined.joined(&log(&[("1", "1", 1)])), Err(MixedClocks));
    }
}
