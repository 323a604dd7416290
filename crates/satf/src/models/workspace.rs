//! Buffers for scoring one history after the other, without allocating them each time.

use std::any::Any;

use super::bounded_scan::Added;
use crate::interactions::ItemIndex;

/// Room for the scores of one history at a time, kept from one to the next: one per thread that recommends.
///
/// It belongs to no model. The first history scored with a model makes room for its catalogue; from then on nothing of the
/// catalogue's size is allocated, and a model of sparse rows looks at nothing but the items it touches.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Scores of all items, and beyond them what a product needs besides. Any content.
    pub(super) dense: Vec<f32>,
    /// What a history comes to before it meets the items. Any content.
    pub(super) features: Vec<f32>,
    pub(super) sparse: SparseSums,
    pub(super) own: OwnRoom,
}

impl Workspace {
    /// A workspace without any room yet.
    pub fn new() -> Self {
        Workspace::default()
    }

    /// Room for the scores of all items, with any content.
    pub fn dense(&mut self, num_items: usize) -> &mut [f32] {
        sized(&mut self.dense, num_items)
    }

    /// Room for so many scores and so many features, both with any content.
    pub fn dense_and_features(&mut self, scores: usize, features: usize) -> (&mut [f32], &mut [f32]) {
        (sized(&mut self.dense, scores), sized(&mut self.features, features))
    }

    /// Sums by item that are all 0, to be added to.
    pub fn sparse(&mut self, num_items: usize) -> &mut SparseSums {
        self.sparse.begin(num_items);
        &mut self.sparse
    }
}

/// The first `len` values, of which there may be more.
pub(super) fn sized<T: Copy + Default>(values: &mut Vec<T>, len: usize) -> &mut [T] {
    if values.len() < len {
        values.resize(len, T::default());
    }
    &mut values[..len]
}

/// Sums by item of which few differ from 0: cleared where they were touched, and nowhere else.
#[derive(Debug, Default)]
pub struct SparseSums {
    /// 0 but for the items in `touched`.
    sums: Vec<f64>,
    /// The items added to; more than once where a sum came back to 0.
    touched: Vec<u32>,
    has_come_back: bool,
}

impl SparseSums {
    /// Clears the sums for a catalogue of this size.
    pub(super) fn begin(&mut self, num_items: usize) {
        for item in self.touched.drain(..) {
            self.sums[item as usize] = 0.0;
        }
        self.has_come_back = false;
        if self.sums.len() != num_items {
            self.sums.resize(num_items, 0.0);
        }
    }

    /// Adds to the sum of an item.
    ///
    /// # Panics
    /// If it is outside the catalogue.
    pub fn add(&mut self, item: ItemIndex, value: f64) {
        let sum = &mut self.sums[item.get()];
        if *sum == 0.0 {
            if value == 0.0 {
                return;
            }
            self.touched.push(item.0);
        }
        *sum += value;
        self.has_come_back |= *sum == 0.0;
    }

    /// Multiplies every sum by a factor of its item.
    pub fn scale(&mut self, factor: impl Fn(ItemIndex) -> f64) {
        self.settle();
        for &item in &self.touched {
            let sum = &mut self.sums[item as usize];
            *sum *= factor(ItemIndex(item));
            self.has_come_back |= *sum == 0.0;
        }
    }

    /// Sees to it that every item was noted once.
    fn settle(&mut self) {
        if self.has_come_back {
            self.touched.sort_unstable();
            self.touched.dedup();
            self.has_come_back = false;
        }
    }

    /// All sums.
    pub(super) fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// All sums, and the items where they may differ from 0, each once.
    pub(super) fn added(&mut self) -> Added<'_> {
        self.settle();
        Added { sums: &self.sums, touched: &self.touched }
    }

    /// The sums as scores, in single precision.
    pub fn scores(&mut self) -> SparseScores<'_> {
        self.settle();
        SparseScores { sums: &self.sums, touched: &self.touched }
    }
}

/// What a model needs beyond the room that all models share.
#[derive(Default)]
pub(super) struct OwnRoom(Option<Box<dyn Any + Send>>);

impl std::fmt::Debug for OwnRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnRoom").finish_non_exhaustive()
    }
}

impl OwnRoom {
    /// What was left here, if it is of this type and fits; otherwise it is made.
    pub(super) fn get<T: Any + Send>(
        &mut self,
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> &mut T {
        if !self.0.as_ref().and_then(|room| room.downcast_ref()).is_some_and(fits) {
            self.0 = None;
        }
        let room = self.0.get_or_insert_with(|| Box::new(make()));
        room.downcast_mut().expect("invariant: what is left is of this type")
    }
}

/// The scores of one history, in a [`Workspace`].
#[derive(Debug)]
pub enum Scores<'w> {
    /// One per item.
    Dense(&'w mut [f32]),
    /// Those of the items that the history's rows name; all others have a score of 0.
    Sparse(SparseScores<'w>),
}

/// Scores of which most are 0.
#[derive(Clone, Copy, Debug)]
pub struct SparseScores<'w> {
    sums: &'w [f64],
    touched: &'w [u32],
}

impl SparseScores<'_> {
    /// The items whose score may differ from 0, each once, in any order.
    pub fn touched(&self) -> impl ExactSizeIterator<Item = ItemIndex> {
        self.touched.iter().copied().map(ItemIndex)
    }

    /// The score of any item.
    ///
    /// # Panics
    /// If it is outside the catalogue.
    pub fn get(&self, item: ItemIndex) -> f32 {
        self.sums[item.get()] as f32
    }
}

impl Scores<'_> {
    /// The score of any item.
    ///
    /// # Panics
    /// If it is outside the catalogue.
    pub fn get(&self, item: ItemIndex) -> f32 {
        match self {
            Scores::Dense(scores) => scores[item.get()],
            Scores::Sparse(scores) => scores.get(item),
        }
    }

    /// Writes the scores of all items, as [`Recommender::score_batch`](super::Recommender::score_batch) gives them.
    ///
    /// # Panics
    /// If there is not one place per item.
    pub fn write_to(&self, row: &mut [f32]) {
        match self {
            Scores::Dense(scores) => row.copy_from_slice(scores),
            Scores::Sparse(scores) => {
                assert_eq!(row.len(), scores.sums.len(), "one score per item");
                row.fill(0.0);
                for item in scores.touched() {
                    row[item.get()] = scores.get(item);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sparse_sums_are_dense_ones_and_name_every_item_once(
            rounds in prop::collection::vec(
                (8usize..12, prop::collection::vec((0u32..8, prop::sample::select(vec![-1.0, -0.5, -0.0, 0.0, 0.5, 1.0])), 0..30)),
                1..5,
            ),
        ) {
            // One workspace for all, of catalogues that grow and shrink.
            let mut workspace = Workspace::new();
            for (num_items, values) in rounds {
                let mut expected = vec![0f64; num_items];
                let sums = workspace.sparse(num_items);
                for (item, value) in values {
                    sums.add(ItemIndex(item), value);
                    expected[item as usize] += value;
                }
                let scores = Scores::Sparse(sums.scores());
                let mut row = vec![f32::NAN; num_items];
                scores.write_to(&mut row);
                let bits = |scores: &[f32]| scores.iter().map(|score| score.to_bits()).collect::<Vec<_>>();
                let expected: Vec<f32> = expected.iter().map(|&sum| sum as f32).collect();
                prop_assert_eq!(bits(&row), bits(&expected));
                let Scores::Sparse(scores) = scores else { unreachable!() };
                let mut touched: Vec<u32> = scores.touched().map(|item| item.0).collect();
                touched.sort_unstable();
                prop_assert!(touched.is_sorted_by(|a, b| a < b), "{touched:?}");
            }
        }
    }
}
