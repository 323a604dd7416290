//! Sparse weights from items to items, and how they are counted: the part that is the same for every model of pairs.

use rayon::prelude::*;

use super::ModelError;
use super::array::Array;
use super::tensors::{StoredTensors, Tensor, TensorError};
use super::workspace::SparseSums;
use crate::interactions::{ItemIndex, UserIndex};
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::Histories;

/// A matrix of items by items in compressed rows: row `a` holds the weights of the items after `a`, items ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ItemRows {
    offsets: Array<u64>,
    items: Array<ItemIndex>,
    weights: Array<f32>,
}

/// Names of the arrays in files: offsets, items, weights.
pub(super) type RowNames = [&'static str; 3];

impl ItemRows {
    /// All rows, one chunk after the other.
    pub(super) fn from_chunks(chunks: Vec<RowChunk>) -> Self {
        let num_pairs = chunks.iter().map(|chunk| chunk.items.len()).sum();
        let mut offsets = vec![0];
        let mut items = Vec::with_capacity(num_pairs);
        let mut weights = Vec::with_capacity(num_pairs);
        for chunk in chunks {
            offsets.extend(chunk.ends.iter().map(|end| (items.len() + end) as u64));
            items.extend_from_slice(&chunk.items);
            weights.extend_from_slice(&chunk.weights);
        }
        ItemRows { offsets: offsets.into(), items: items.into(), weights: weights.into() }
    }

    /// No weights at all.
    pub(super) fn empty(num_items: usize) -> Self {
        ItemRows {
            offsets: vec![0; num_items + 1].into(),
            items: Vec::new().into(),
            weights: Vec::new().into(),
        }
    }

    /// Rows as they lie in a file, one per item of the catalogue.
    pub(super) fn from_tensors(tensors: &StoredTensors<'_>, names: RowNames) -> Result<Self, TensorError> {
        let (offsets, items) = tensors.item_rows(names[0], names[1], Some(tensors.num_items()))?;
        let weights = tensors.array(names[2], &[Some(items.len())])?;
        Ok(ItemRows { offsets, items: tensors.array(names[1], &[None])?, weights })
    }

    /// Its arrays.
    pub(super) fn tensors(&self, names: RowNames) -> Vec<Tensor<'_>> {
        vec![
            Tensor::list(names[0], &*self.offsets),
            Tensor::list(names[1], &*self.items),
            Tensor::list(names[2], &*self.weights),
        ]
    }

    /// Number of rows: of items in the catalogue.
    pub(super) fn num_items(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of weights in all rows.
    pub(super) fn num_pairs(&self) -> usize {
        self.items.len()
    }

    /// Bytes of all arrays.
    pub(super) fn num_bytes(&self) -> usize {
        size_of_val(&*self.offsets) + size_of_val(&*self.items) + size_of_val(&*self.weights)
    }

    /// The items with a weight after this one, ascending, and their weights.
    pub(super) fn row(&self, item: ItemIndex) -> (&[ItemIndex], &[f32]) {
        let ends = &self.offsets[item.get()..item.get() + 2];
        let range = ends[0] as usize..ends[1] as usize;
        (&self.items[range.clone()], &self.weights[range])
    }

    /// One weight; 0 where there is none.
    pub(super) fn weight(&self, from: ItemIndex, to: ItemIndex) -> f64 {
        let (items, weights) = self.row(from);
        items.binary_search(&to).map_or(0.0, |at| f64::from(weights[at]))
    }

    /// The weighted sum of rows, in double precision and in the order given.
    pub(super) fn sum_into(&self, rows: impl Iterator<Item = (ItemIndex, f64)>, sums: &mut [f64]) {
        sums.fill(0.0);
        for (item, factor) in rows {
            let (items, weights) = self.row(item);
            for (to, &weight) in items.iter().zip(weights) {
                sums[to.get()] += factor * f64::from(weight);
            }
        }
    }

    /// Adds the weighted sum of rows, in double precision and in the order given.
    pub(super) fn add_to(&self, sums: &mut SparseSums, rows: impl Iterator<Item = (ItemIndex, f64)>) {
        for (item, factor) in rows {
            let (items, weights) = self.row(item);
            for (&to, &weight) in items.iter().zip(weights) {
                sums.add(to, factor * f64::from(weight));
            }
        }
    }

    /// Multiplies every weight by a factor of the item it leads to.
    pub(super) fn scale_columns(&mut self, factor: impl Fn(ItemIndex) -> f64) {
        for (weight, &item) in self.weights.make_mut().iter_mut().zip(&*self.items) {
            *weight = (f64::from(*weight) * factor(item)) as f32;
        }
    }
}

/// Finished rows of consecutive items.
#[derive(Default)]
pub(super) struct RowChunk {
    ends: Vec<usize>,
    items: Vec<ItemIndex>,
    weights: Vec<f32>,
}

impl RowChunk {
    /// Adds an entry to the row under construction, items ascending.
    pub(super) fn push(&mut self, item: ItemIndex, weight: f32) {
        self.items.push(item);
        self.weights.push(weight);
    }

    /// Entries of all rows so far.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Ends the row.
    pub(super) fn end_row(&mut self) {
        self.ends.push(self.items.len());
    }
}

/// One row under construction: dense sums, and which of them are in use.
pub(super) struct RowSums {
    sums: Vec<f64>,
    used: Vec<u32>,
}

impl RowSums {
    pub(super) fn new(num_items: usize) -> Self {
        RowSums { sums: vec![0.0; num_items], used: Vec::new() }
    }

    /// Adds to the weight of an item; weights are not negative.
    pub(super) fn add(&mut self, item: ItemIndex, weight: f64) {
        // A weight that underflowed would be taken for an unused sum.
        if weight == 0.0 {
            return;
        }
        let sum = &mut self.sums[item.get()];
        if *sum == 0.0 {
            self.used.push(item.0);
        }
        *sum += weight;
    }

    /// Takes all weights out, items ascending.
    pub(super) fn drain(&mut self, mut take: impl FnMut(ItemIndex, f64)) {
        self.used.sort_unstable();
        for item in self.used.drain(..) {
            take(ItemIndex(item), std::mem::take(&mut self.sums[item as usize]));
        }
    }

    /// Appends the row, scaled, and leaves it empty.
    pub(super) fn drain_into(&mut self, chunk: &mut RowChunk, scale: impl Fn(usize) -> f64) {
        self.drain(|item, sum| chunk.push(item, (sum * scale(item.get())) as f32));
        chunk.end_row();
    }
}

/// Items that are counted as one piece of parallel work.
const ITEMS_A_CHUNK: usize = 64;

/// Where every item stands: users and positions in their histories, in this order.
pub(super) struct Positions {
    offsets: Vec<usize>,
    places: Vec<(UserIndex, u32)>,
}

impl Positions {
    /// The places of all items, which occur so often.
    pub(super) fn of(histories: &Histories, popularity: &[u32]) -> Self {
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
        Positions { offsets, places }
    }

    /// Works through the items in chunks, in parallel. For every item, `count` gets its places and a workspace, which it leaves as it
    /// found it, and adds to what its chunk comes to. An item's places are in the order of users and positions, and chunks come
    /// back in the order of items: nothing depends on the number of threads.
    pub(super) fn each_item<W, C: Default + Send>(
        &self,
        monitor: &dyn Monitor,
        workspace: impl Fn() -> W + Send + Sync,
        count: impl Fn(&mut W, usize, &[(UserIndex, u32)], &mut C) + Send + Sync,
    ) -> Result<Vec<C>, ModelError> {
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
