//! Where every item stands, so that its pairs can be counted alone.

use rayon::prelude::*;

use crate::interactions::{ItemIndex, UserIndex};
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::prepare::Histories;

/// Items that are counted as one piece of parallel work.
const ITEMS_A_CHUNK: usize = 64;

/// Rows for which the first user is remembered once.
const ROWS_A_BLOCK: usize = 64;

/// Where every item stands: rows of all histories, one after the other. Four bytes a row; whose row it is, is looked up.
pub(crate) struct Places<'a> {
    histories: &'a Histories,
    /// By item.
    offsets: Vec<usize>,
    rows: Vec<u32>,
    /// The users of rows 0, 64, 128, and of the last one.
    users: Vec<u32>,
}

impl<'a> Places<'a> {
    /// The places of all items, which occur so often.
    ///
    /// # Panics
    /// If there are more than $2^{32}$ rows.
    pub(crate) fn of(histories: &'a Histories, popularity: &[u32]) -> Self {
        assert!(histories.num_rows() as u64 <= 1 << 32, "rows that can be numbered");
        let mut offsets = vec![0usize; popularity.len() + 1];
        for (item, &count) in popularity.iter().enumerate() {
            offsets[item + 1] = offsets[item] + count as usize;
        }
        let mut rows = vec![0; histories.num_rows()];
        // Where the next row of every item goes. In the end that is where the next item begins.
        for (row, item) in histories.items().iter().enumerate() {
            let next = &mut offsets[item.get()];
            rows[*next] = row as u32;
            *next += 1;
        }
        offsets.copy_within(..popularity.len(), 1);
        offsets[0] = 0;
        Places { histories, offsets, rows, users: users_of_blocks(histories) }
    }

    /// Bytes for so many rows and items.
    pub(crate) fn num_bytes(rows: u64, items: u64) -> u64 {
        4 * rows + 8 * items + 4 * rows / ROWS_A_BLOCK as u64
    }

    /// The rows of one item, ascending.
    pub(crate) fn rows_of_item(&self, item: ItemIndex) -> &[u32] {
        &self.rows[self.offsets[item.get()]..self.offsets[item.get() + 1]]
    }

    /// Whose row it is, and where the history begins and ends.
    pub(crate) fn history_around(&self, row: u32) -> (UserIndex, usize, usize) {
        let block = row as usize / ROWS_A_BLOCK;
        let (first, last) = (self.users[block] as usize, self.users[block + 1] as usize);
        let ends = &self.histories.offsets()[first + 1..=last + 1];
        let user = first + ends.partition_point(|&end| end <= row as usize);
        (UserIndex(user as u32), self.histories.offsets()[user], self.histories.offsets()[user + 1])
    }

    /// The places of one item: users and positions in their histories, in this order.
    pub(crate) fn of_item(&self, item: ItemIndex) -> impl Iterator<Item = (UserIndex, u32)> {
        self.rows_of_item(item).iter().map(|&row| {
            let (user, start, _) = self.history_around(row);
            (user, row - start as u32)
        })
    }

    /// Works through the items in chunks, in parallel. For every item, `count` gets a workspace, which it leaves as it
    /// found it, and adds to what its chunk comes to. Chunks come back in the order of items: nothing depends on the number of threads.
    pub(crate) fn each_item<W, C: Default + Send>(
        &self,
        monitor: &dyn Monitor,
        workspace: impl Fn() -> W + Send + Sync,
        count: impl Fn(&mut W, ItemIndex, &mut C) + Send + Sync,
    ) -> Result<Vec<C>, Cancelled> {
        let num_items = self.offsets.len() - 1;
        let firsts: Vec<usize> = (0..num_items).step_by(ITEMS_A_CHUNK).collect();
        firsts
            .into_par_iter()
            .map_init(workspace, |workspace, first| {
                check_cancelled(monitor)?;
                let mut chunk = C::default();
                let last = num_items.min(first + ITEMS_A_CHUNK);
                for item in first..last {
                    count(workspace, ItemIndex(item as u32), &mut chunk);
                }
                monitor.advance((last - first) as u64);
                Ok(chunk)
            })
            .collect()
    }
}

/// The users of rows 0, 64, 128, and of the last one.
fn users_of_blocks(histories: &Histories) -> Vec<u32> {
    let mut users = Vec::with_capacity(histories.num_rows() / ROWS_A_BLOCK + 2);
    let mut last = 0;
    for (user, ends) in histories.offsets().windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]) {
        while users.len() * ROWS_A_BLOCK < ends[1] {
            users.push(user as u32);
        }
        last = user as u32;
    }
    users.push(last);
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_where_its_item_stands() {
        // Histories longer than a block, short ones and many empty ones.
        let sequences: Vec<Vec<u32>> = (0..400u32)
            .map(|user| {
                (0..if user % 100 == 3 { 200 } else { user * 7 % 3 })
                    .map(|at| (user + at * at) % 13)
                    .collect()
            })
            .collect();
        let histories = Histories::from_sequences(13, &sequences);
        let popularity = histories.popularity();
        let places = Places::of(&histories, &popularity);
        for item in (0..13).map(ItemIndex) {
            let mut expected = Vec::new();
            for (user, items) in sequences.iter().enumerate() {
                let positions = (0u32..).zip(items).filter(|(_, other)| **other == item.0);
                expected.extend(positions.map(|(at, _)| (UserIndex(user as u32), at)));
            }
            assert_eq!(places.of_item(item).collect::<Vec<_>>(), expected);
        }
        let none = Histories::from_sequences(2, &[vec![], vec![]]);
        assert_eq!(Places::of(&none, &[0, 0]).of_item(ItemIndex(1)).count(), 0);
    }
}
