//! Sparse weights from items to items: the part that is the same for every model of pairs.

use std::io;

use rayon::prelude::*;

use super::array::Array;
use super::quantization::Quantization;
use super::rounded_rows;
use super::spilled::SpillWriter;
use super::tensors::{StoredTensors, Tensor, TensorError};
use super::workspace::SparseSums;
use crate::interactions::ItemIndex;

/// A matrix of items by items in compressed rows: row `a` holds the weights of the items after `a`, items ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ItemRows {
    offsets: Array<u64>,
    items: Array<ItemIndex>,
    weights: Array<f32>,
    /// In how many bytes weights are stored.
    quantization: Quantization,
}

/// Names of the arrays in files: offsets, items, weights, and scales of rows where weights have a byte each.
pub(super) type RowNames = [&'static str; 4];

impl ItemRows {
    /// Bytes of a pair.
    pub(super) const BYTES_A_PAIR: u64 = (size_of::<ItemIndex>() + size_of::<f32>()) as u64;

    /// All rows, one chunk after the other.
    pub(super) fn from_chunks(chunks: Vec<RowChunk>) -> Self {
        let num_pairs = chunks.iter().map(RowChunk::len).sum();
        let (mut offsets, mut items, mut weights) = (vec![0], Vec::new(), Vec::new());
        items.reserve_exact(num_pairs);
        weights.reserve_exact(num_pairs);
        for chunk in chunks {
            offsets.extend(chunk.ends.iter().map(|end| (items.len() + end) as u64));
            items.extend_from_slice(&chunk.items);
            weights.extend_from_slice(&chunk.weights);
        }
        ItemRows::new(offsets.into(), items.into(), weights.into())
    }

    fn new(offsets: Array<u64>, items: Array<ItemIndex>, weights: Array<f32>) -> Self {
        ItemRows { offsets, items, weights, quantization: Quantization::None }
    }

    /// The same with weights in fewer bytes, or why that cannot be had.
    pub(super) fn rounded(&self, quantization: Quantization) -> Result<Self, &'static str> {
        let weights = rounded_rows::rounded(self, quantization)?;
        Ok(ItemRows { weights, quantization, ..self.clone() })
    }

    /// No weights at all.
    pub(super) fn empty(num_items: usize) -> Self {
        ItemRows::new(vec![0; num_items + 1].into(), Vec::new().into(), Vec::new().into())
    }

    /// Rows as they lie in a file, one per item of the catalogue.
    pub(super) fn from_tensors(tensors: &StoredTensors<'_>, names: RowNames) -> Result<Self, TensorError> {
        let (offsets, _) = tensors.item_rows(names[0], names[1], Some(tensors.num_items()))?;
        let items = tensors.array(names[1], &[None])?;
        let (weights, quantization) = rounded_rows::stored(tensors, &offsets, [names[2], names[3]])?;
        Ok(ItemRows { offsets, items, weights, quantization })
    }

    /// Its arrays.
    pub(super) fn tensors(&self, names: RowNames) -> Vec<Tensor<'_>> {
        let mut tensors = vec![Tensor::list(names[0], &*self.offsets), Tensor::array(names[1], &self.items)];
        tensors.extend(rounded_rows::tensors(self, self.quantization, [names[2], names[3]]));
        tensors
    }

    /// The weights of all rows.
    pub(super) fn weights(&self) -> &Array<f32> {
        &self.weights
    }

    /// Gives a copy of the weights of every row to `take`, one after the other.
    pub(super) fn each_row(&self, mut take: impl FnMut(&mut [f32]) -> io::Result<()>) -> io::Result<()> {
        let mut weights = Vec::new();
        let mut first = 0;
        while first < self.num_items() {
            let start = self.offsets[first];
            let room = start + PAIRS_AT_ONCE as u64;
            let last = self.offsets.partition_point(|&end| end <= room).saturating_sub(1).max(first + 1);
            self.weights.read(start as usize..self.offsets[last] as usize, &mut weights)?;
            for ends in self.offsets[first..=last].windows(2) {
                take(&mut weights[(ends[0] - start) as usize..(ends[1] - start) as usize])?;
            }
            first = last;
        }
        Ok(())
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

    /// Multiplies every weight by a factor of the item it leads to. Weights in a temporary file go to another one.
    pub(super) fn scale_columns(&mut self, factor: impl Fn(ItemIndex) -> f64 + Sync) -> io::Result<()> {
        let scale = |items: &[ItemIndex], weights: &mut [f32]| {
            for (weight, &item) in weights.iter_mut().zip(items) {
                *weight = (f64::from(*weight) * factor(item)) as f32;
            }
        };
        if !self.weights.is_spilled() {
            let weights = self.weights.make_mut().par_chunks_mut(PAIRS_AT_ONCE);
            weights
                .zip(self.items.par_chunks(PAIRS_AT_ONCE))
                .for_each(|(weights, items)| scale(items, weights));
            return Ok(());
        }
        let mut scaled = SpillWriter::new()?;
        let (mut items, mut weights) = (Vec::new(), Vec::new());
        for start in (0..self.num_pairs()).step_by(PAIRS_AT_ONCE) {
            let range = start..self.num_pairs().min(start + PAIRS_AT_ONCE);
            self.items.read(range.clone(), &mut items)?;
            self.weights.read(range, &mut weights)?;
            scale(&items, &mut weights);
            scaled.extend(&weights)?;
        }
        self.weights = scaled.finish()?;
        Ok(())
    }
}

/// Pairs that are changed as one piece of work.
const PAIRS_AT_ONCE: usize = 1 << 18;

/// Puts rows together, in memory or in temporary files.
pub(super) struct RowWriter {
    offsets: Vec<u64>,
    squares: Vec<f64>,
    store: Store,
}

enum Store {
    Memory(Vec<ItemIndex>, Vec<f32>),
    Spilled(SpillWriter<ItemIndex>, SpillWriter<f32>),
}

impl RowWriter {
    /// For so many rows and, at most, pairs.
    pub(super) fn new(num_items: usize, num_pairs: usize, is_spilled: bool) -> io::Result<Self> {
        let store = if is_spilled {
            Store::Spilled(SpillWriter::new()?, SpillWriter::new()?)
        } else {
            Store::Memory(Vec::with_capacity(num_pairs), Vec::with_capacity(num_pairs))
        };
        let mut offsets = Vec::with_capacity(num_items + 1);
        offsets.push(0);
        Ok(RowWriter { offsets, squares: Vec::with_capacity(num_items), store })
    }

    /// Adds the rows that follow.
    pub(super) fn push(&mut self, chunk: &RowChunk) -> io::Result<()> {
        let before = self.offsets.last().copied().unwrap_or(0);
        self.offsets.extend(chunk.ends.iter().map(|&end| before + end as u64));
        let starts = std::iter::once(0).chain(chunk.ends.iter().copied());
        self.squares.extend(starts.zip(&chunk.ends).map(|(start, &end)| -> f64 {
            chunk.weights[start..end].iter().map(|&weight| f64::from(weight).powi(2)).sum()
        }));
        match &mut self.store {
            Store::Memory(items, weights) => {
                items.extend_from_slice(&chunk.items);
                weights.extend_from_slice(&chunk.weights);
                Ok(())
            }
            Store::Spilled(items, weights) => {
                items.extend(&chunk.items)?;
                weights.extend(&chunk.weights)
            }
        }
    }

    /// All rows, and the sum of the squared weights of each.
    pub(super) fn finish(self) -> io::Result<(ItemRows, Vec<f64>)> {
        let (items, weights) = match self.store {
            Store::Memory(items, weights) => (items.into(), weights.into()),
            Store::Spilled(items, weights) => (items.finish()?, weights.finish()?),
        };
        Ok((ItemRows::new(self.offsets.into(), items, weights), self.squares))
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
    /// Adds an entry to the row under construction, items ascending unless the row ends with its strongest.
    pub(super) fn push(&mut self, item: ItemIndex, weight: f32) {
        self.items.push(item);
        self.weights.push(weight);
    }

    /// Entries of all rows so far.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Ends the row, whose entries came in any order, with at most `limit` of them: those with the largest products of weight and
    /// `factor`; equal ones go to the lower item.
    pub(super) fn end_row_with_strongest(&mut self, limit: usize, factor: impl Fn(ItemIndex) -> f64) {
        let start = self.ends.last().copied().unwrap_or(0);
        let entries = || self.items[start..].iter().copied().zip(self.weights[start..].iter().copied());
        // Items in the upper half: in their order as numbers.
        let key = |(item, weight): (ItemIndex, f32)| u64::from(item.0) << 32 | u64::from(weight.to_bits());
        let mut keys: Vec<u64> = Vec::new();
        if self.items.len() - start > limit {
            let mut strengths: Vec<(f64, ItemIndex, f32)> =
                entries().map(|(item, weight)| (f64::from(weight) * factor(item), item, weight)).collect();
            strengths.select_nth_unstable_by(limit, |one, other| {
                other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
            });
            keys.extend(strengths[..limit].iter().map(|&(_, item, weight)| key((item, weight))));
        } else {
            keys.extend(entries().map(key));
        }
        keys.sort_unstable();
        self.items.truncate(start);
        self.weights.truncate(start);
        for key in keys {
            self.push(ItemIndex((key >> 32) as u32), f32::from_bits(key as u32));
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
