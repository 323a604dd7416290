//! Sparse weights from items to items: the part that is the same for every model of pairs.

use super::array::Array;
use super::tensors::{StoredTensors, Tensor, TensorError};
use super::workspace::SparseSums;
use crate::interactions::ItemIndex;

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

    /// Ends the row with at most `limit` of its entries, those with the largest products of weight and `factor`; equal ones go to the
    /// lower item.
    pub(super) fn end_row_with_strongest(&mut self, limit: usize, factor: impl Fn(ItemIndex) -> f64) {
        let start = self.ends.last().copied().unwrap_or(0);
        let len = self.items.len() - start;
        if len > limit {
            let mut entries: Vec<(f64, ItemIndex, f32)> = self.items[start..]
                .iter()
                .zip(&self.weights[start..])
                .map(|(&item, &weight)| (f64::from(weight) * factor(item), item, weight))
                .collect();
            if limit > 0 {
                entries.select_nth_unstable_by(limit - 1, |one, other| {
                    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
                });
            }
            entries.truncate(limit);
            entries.sort_unstable_by_key(|entry| entry.1);
            self.items.truncate(start);
            self.weights.truncate(start);
            for (_, item, weight) in entries {
                self.push(item, weight);
            }
        }
        self.end_row();
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
