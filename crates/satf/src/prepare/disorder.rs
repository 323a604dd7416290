//! The same events without their order: what a model can learn if it sees which items each user has, but not in which order.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::split::{Event, Partition};
use crate::interactions::UserIndex;

/// Random streams below this belong to users, those from it on to events.
const EVENT_STREAMS: u64 = 1 << 32;

impl Partition {
    /// The same training set and the same events to predict, with every history in a seeded random order of its own: each
    /// user's training history, and each event's history as it stood when the event happened, so that nothing of the future
    /// gets into it. Times stay where they are, targets too.
    ///
    /// Takes memory for every event's history: five bytes per item.
    #[must_use]
    pub fn disordered(&self, seed: u64) -> Partition {
        let mut disordered = self.clone();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut restart = |stream: u64| {
            random.set_stream(stream);
            random.set_word_pos(0);
            random.clone()
        };
        for user in 0..self.train.num_users() {
            shuffle(disordered.train.items_of_mut(UserIndex(user as u32)), &mut restart(user as u64));
        }
        let holdout = &mut disordered.holdout;
        holdout.items.clear();
        holdout.with_previous.clear();
        let total = holdout.events.iter().map(Event::history_len).sum();
        holdout.items.reserve_exact(total);
        holdout.with_previous.reserve_exact(total);
        for (at, event) in holdout.events.iter_mut().enumerate() {
            let start = holdout.items.len();
            let history = self.holdout.history(event);
            holdout.items.extend_from_slice(&history);
            holdout.with_previous.extend((0..history.len()).map(|at| history.is_with_previous(at)));
            shuffle(&mut holdout.items[start..], &mut restart(EVENT_STREAMS + at as u64));
            (event.history_start, event.history_end) = (start, holdout.items.len());
        }
        disordered
    }
}

/// Fisher-Yates, spelled out so that a seed means the same order in every release. The draw is scaled by
/// multiplication, whose bias (below 2^-32 a swap) is of no account here.
fn shuffle<T>(rows: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..rows.len()).rev() {
        let draw = (u64::from(random.next_u32()) * (last as u64 + 1)) >> 32;
        rows.swap(last, draw as usize);
    }
}

#[cfg(test)]
mod tests {
    use crate::prepare::testing::log;
    use crate::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};

    fn partition() -> Partition {
        let rows: Vec<(i64, i64, i64)> = (0..600).map(|at| (at % 7, (at * at) % 83, at * 3600)).collect();
        let log = log(&rows);
        let scheme = SplitScheme::Holdout { test: "5days".parse().unwrap() };
        Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).unwrap().test().unwrap()
    }

    #[test]
    fn histories_keep_their_items_and_lose_their_order() {
        let (real, disordered) = (partition(), partition().disordered(3));
        let sorted = |items: &[_]| {
            let mut items = items.to_vec();
            items.sort_unstable();
            items
        };
        let mut moved = 0;
        for (before, after) in real.train.iter().zip(disordered.train.iter()) {
            assert_eq!(sorted(before), sorted(after));
            moved += usize::from(before != after);
        }
        assert_eq!(moved, real.train.num_users());
        assert_eq!(real.holdout.events.len(), disordered.holdout.events.len());
        for (before, after) in real.holdout.events.iter().zip(&disordered.holdout.events) {
            assert_eq!((before.user, before.target, before.time), (after.user, after.target, after.time));
            let (before, after) = (real.holdout.history(before), disordered.holdout.history(after));
            assert_eq!(sorted(&before), sorted(&after));
            assert_ne!(before, after);
        }
    }

    #[test]
    fn a_seed_is_an_order() {
        let order = |seed| partition().disordered(seed).train.iter().map(<[_]>::to_vec).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
