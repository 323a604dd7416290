//! Rows of pairs, wherever they come from: counted from histories when they are asked for, or kept.

use rayon::prelude::*;

use super::RowCounter;
use super::distance::{CLASSES, DistanceSums};
use crate::interactions::ItemIndex;
use crate::monitor::{Cancelled, Monitor, check_cancelled};

/// Items that are one piece of parallel work.
const ITEMS_A_CHUNK: usize = 64;

/// The pairs of every item of a catalogue, one item after the other.
pub(crate) trait PairRows: Sync {
    /// Number of items.
    fn num_items(&self) -> usize;

    /// Adds the pairs of one item to a row that is empty.
    fn count(&self, item: ItemIndex, row: &mut RowCounter);

    /// Sums of squared weights over all pairs by class, if they are known without counting.
    fn squares(&self) -> Option<[u128; CLASSES]>;

    /// Sums of the weights of all pairs by distance.
    fn distances(&self) -> DistanceSums;

    /// Works through the items in chunks, in parallel. For every item, `take` gets its row, which it leaves empty, and adds to what its
    /// chunk comes to. Chunks come back in the order of items: nothing depends on the number of threads.
    fn each_item<C: Default + Send>(
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
                        self.count(item, row);
                        take(row, item, &mut chunk);
                    }
                    monitor.advance(u64::from(last - first));
                    Ok(chunk)
                },
            )
            .collect()
    }
}
