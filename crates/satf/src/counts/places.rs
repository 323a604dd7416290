//! Where every item stands, so that its pairs can be counted alone.

use rayon::prelude::*;

use crate::interactions::{ItemIndex, UserIndex};
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::prepare::Histories;

/// Items that are counted as one piece of parallel work.
const ITEMS_A_CHUNK: usize = 64;

/// Where every item stands: users and positions in their histories, in this order.
pub(crate) struct Places {
    offsets: Vec<usize>,
    places: Vec<(UserIndex, u32)>,
}

impl Places {
    /// The places of all items, which occur so often.
    pub(crate) fn of(histories: &Histories, popularity: &[u32]) -> Self {
        let mut offsets = vec![0usize; popularity.len() + 1];
        for (item, &count) in popularity.iter().enumerate() {
            offsets[item + 1] = offsets[item] + count as usize;
        }
        let mut next = offsets.clone();
        let mut places = vec![(UserIndex(0), 0); histories.num_rows()];
        for (user, history) in histories.iter().enumerate() {
            for (at, item) in history.iter().enumerate() {
                places[next[item.get()]] = (UserIndex(user as u32), at as u32);
                next[item.get()] += 1;
            }
        }
        Places { offsets, places }
    }

    /// The places of one item.
    pub(crate) fn of_item(&self, item: ItemIndex) -> &[(UserIndex, u32)] {
        &self.places[self.offsets[item.get()]..self.offsets[item.get() + 1]]
    }

    /// Works through the items in chunks, in parallel. For every item, `count` gets its places and a workspace, which it leaves as it
    /// found it, and adds to what its chunk comes to. An item's places are in the order of users and positions, and chunks come
    /// back in the order of items: nothing depends on the number of threads.
    pub(crate) fn each_item<W, C: Default + Send>(
        &self,
        monitor: &dyn Monitor,
        workspace: impl Fn() -> W + Send + Sync,
        count: impl Fn(&mut W, usize, &[(UserIndex, u32)], &mut C) + Send + Sync,
    ) -> Result<Vec<C>, Cancelled> {
        self.offsets[1..]
            .par_chunks(ITEMS_A_CHUNK)
            .enumerate()
            .map_init(workspace, |workspace, (at, ends)| {
                check_cancelled(monitor)?;
                let mut chunk = C::default();
                for (item, &end) in (at * ITEMS_A_CHUNK..).zip(ends) {
                    count(workspace, item, &self.places[self.offsets[item]..end], &mut chunk);
                }
                monitor.advance(ends.len() as u64);
                Ok(chunk)
            })
            .collect()
    }
}
