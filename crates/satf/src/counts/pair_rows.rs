//! Rows of pairs, wherever they come from: counted from histories when they are asked for, or kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::RowCounter;
use super::distance::{CLASSES, DistanceSums};
use crate::interactions::ItemIndex;
use crate::monitor::{Cancelled, Monitor, check_cancelled};

/// Items that are one piece of parallel work.
const ITEMS_A_CHUNK: usize = 64;

/// Chunks that may wait for one before them, per thread.
const WAITING_CHUNKS: usize = 16;

/// The pairs of every item of a catalogue, one item after the other.
pub(crate) trait PairRows: Sync {
    /// Number of items.
    fn num_items(&self) -> usize;

    /// Adds the pairs of one item to a row that is empty.
    fn count(&self, item: ItemIndex, row: &mut RowCounter);

    /// The same with higher items alone, which is half of all pairs: what both directions of a pair come to is known of one of them.
    /// The row's sums of squares are those of all pairs.
    fn count_higher(&self, item: ItemIndex, row: &mut RowCounter);

    /// Sums of squared weights over all pairs by class, if they are known without counting.
    fn squares(&self) -> Option<[u128; CLASSES]>;

    /// Sums of the weights of all pairs by distance.
    fn distances(&self) -> DistanceSums;

    /// Works through the items in chunks, in parallel, with higher items alone. For every item, `take` gets its row, which it leaves
    /// empty, and adds to what its chunk comes to. Chunks come back in the order of items: nothing depends on the number of threads.
    fn each_item_with_higher<C: Default + Send>(
        &self,
        monitor: &dyn Monitor,
        take: impl Fn(&mut RowCounter, ItemIndex, &mut C) + Send + Sync,
    ) -> Result<Vec<C>, Cancelled> {
        let items: Vec<u32> = (0..self.num_items() as u32).step_by(ITEMS_A_CHUNK).collect();
        items
            .into_par_iter()
            .map_init(
                || RowCounter::new(self.num_items()),
                |row, first| {
                    check_cancelled(monitor)?;
                    let mut chunk = C::default();
                    let last = (first as usize + ITEMS_A_CHUNK).min(self.num_items()) as u32;
                    for item in (first..last).map(ItemIndex) {
                        self.count_higher(item, row);
                        take(row, item, &mut chunk);
                    }
                    monitor.advance(u64::from(last - first));
                    Ok(chunk)
                },
            )
            .collect()
    }

    /// Works through the items in chunks, in parallel, with all pairs. What a chunk comes to goes to `keep` as soon as all chunks before
    /// it did: few of them are in memory at a time, and nothing depends on the number of threads. The first error ends the work.
    fn each_item_in_order<C: Default + Send, E: From<Cancelled> + Send>(
        &self,
        monitor: &dyn Monitor,
        take: impl Fn(&mut RowCounter, ItemIndex, &mut C) + Send + Sync,
        keep: impl FnMut(C) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let num_chunks = self.num_items().div_ceil(ITEMS_A_CHUNK);
        let next = AtomicUsize::new(0);
        let queue = Queue::new(keep, WAITING_CHUNKS * rayon::current_num_threads());
        // Every thread takes the next chunk, so that they are finished nearly in order.
        rayon::broadcast(|_| {
            let _panicked = queue.stop_if_panicking();
            let mut row = RowCounter::new(self.num_items());
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= num_chunks {
                    return;
                }
                let mut chunk = C::default();
                let first = at * ITEMS_A_CHUNK;
                let last = (first + ITEMS_A_CHUNK).min(self.num_items());
                let outcome = check_cancelled(monitor).map(|()| {
                    for item in (first as u32..last as u32).map(ItemIndex) {
                        self.count(item, &mut row);
                        take(&mut row, item, &mut chunk);
                    }
                    chunk
                });
                if !queue.put(at, outcome.map_err(E::from)) {
                    return;
                }
                monitor.advance((last - first) as u64);
            }
        });
        queue.finish()
    }
}

/// Puts chunks that are finished in any order into theirs.
struct Queue<C, E, K> {
    state: Mutex<QueueState<C, E, K>>,
    moved: Condvar,
    most_waiting: usize,
}

struct QueueState<C, E, K> {
    /// The chunk that is kept next.
    next: usize,
    waiting: BTreeMap<usize, C>,
    keep: K,
    outcome: Result<(), E>,
    /// A thread panicked: nobody may wait for its chunk.
    is_stopped: bool,
}

impl<C, E, K> QueueState<C, E, K> {
    fn goes_on(&self) -> bool {
        self.outcome.is_ok() && !self.is_stopped
    }
}

/// Something to do at the end.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<C, E, K: FnMut(C) -> Result<(), E>> Queue<C, E, K> {
    fn new(keep: K, most_waiting: usize) -> Self {
        let state =
            QueueState { next: 0, waiting: BTreeMap::new(), keep, outcome: Ok(()), is_stopped: false };
        Queue { state: Mutex::new(state), moved: Condvar::new(), most_waiting }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<C, E, K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a finished chunk and keeps all whose turn it is. If too many wait, so does the caller: whoever works on the chunk that
    /// they wait for does not. Says whether the work goes on.
    fn put(&self, at: usize, chunk: Result<C, E>) -> bool {
        let mut state = self.lock();
        match chunk {
            Err(error) if state.outcome.is_ok() => state.outcome = Err(error),
            Err(_) => {}
            Ok(chunk) => {
                state.waiting.insert(at, chunk);
            }
        }
        let QueueState { next, waiting, keep, outcome, .. } = &mut *state;
        while outcome.is_ok()
            && let Some(chunk) = waiting.remove(next)
        {
            *outcome = keep(chunk);
            *next += 1;
        }
        self.moved.notify_all();
        while state.goes_on() && state.waiting.len() > self.most_waiting {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.goes_on()
    }

    /// Lets nobody wait once the thread that holds this panics.
    fn stop_if_panicking(&self) -> impl Drop {
        OnDrop(|| {
            if std::thread::panicking() {
                self.lock().is_stopped = true;
                self.moved.notify_all();
            }
        })
    }

    fn finish(self) -> Result<(), E> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;

    /// Items with as many pairs as their number says, some of which take long to count.
    struct Slow(usize);

    impl PairRows for Slow {
        fn num_items(&self) -> usize {
            self.0
        }

        fn count(&self, item: ItemIndex, row: &mut RowCounter) {
            if item.0 % 640 == 5 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            row.add(ItemIndex((item.0 + 1) % self.0 as u32), 0, u64::from(item.0) + 1);
        }

        fn count_higher(&self, item: ItemIndex, row: &mut RowCounter) {
            self.count(item, row);
        }

        fn squares(&self) -> Option<[u128; CLASSES]> {
            None
        }

        fn distances(&self) -> DistanceSums {
            DistanceSums::default()
        }
    }

    fn sums(row: &mut RowCounter, chunk: &mut Vec<u64>) {
        row.drain(|_, sums| chunk.push(sums[0]));
    }

    #[test]
    fn chunks_are_kept_in_order_and_few_of_them_wait() {
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut kept = Vec::new();
            let outcome: Result<(), Cancelled> = pool.install(|| {
                Slow(5000).each_item_in_order(
                    &(),
                    |row, _, chunk| sums(row, chunk),
                    |chunk: Vec<u64>| {
                        kept.extend(chunk);
                        Ok(())
                    },
                )
            });
            assert!(outcome.is_ok() && kept.iter().copied().eq(1..=5000), "{threads} threads");
        }
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let mut seen = 0;
        let outcome: Result<(), Cancelled> = Slow(100_000).each_item_in_order(
            &(),
            |row, _, chunk| sums(row, chunk),
            |_: Vec<u64>| {
                seen += 1;
                if seen == 3 { Err(Cancelled) } else { Ok(()) }
            },
        );
        assert!(outcome.is_err() && seen == 3);
    }
}
