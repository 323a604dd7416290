//! Folding in: the one scoring path of all linear models.
//!
//! A history with items $j_l$ at lags $l = 0, 1, \dots$ (0 = newest) becomes a point $z$ of the latent space and that a
//! score for every item,
//! $$z = P_{right}^T \sum_l w_l \, e_{j_l}, \qquad s = P_{left} \, z,$$
//! so a user never seen in training is scored like any other, and past item $j_l$ owns exactly the share
//! $w_l \langle P_{right}[j_l], P_{left}[j] \rangle$ of item $j$'s score.

use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::Recommender;
use crate::interactions::ItemIndex;

/// Histories scored by one product. Every product has this width, empty columns included: the kernels for other widths
/// round differently, and a history must get the same bits in any company.
const BATCH: usize = 64;

/// Items scored by one product.
const ITEMS: usize = 512;

/// What an item of a history weighs.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// Every distinct item of the whole history weighs one; a repeated item counts once.
    Flat,
    /// The item at lag `l` (0 = newest) weighs `weights[l]`; items older than the last weight do not count. A
    /// repeated item counts at every lag it stands at.
    ByLag(Vec<f32>),
}

/// Two item factors and the weights of a history's items.
#[derive(Clone, Debug)]
pub struct FoldIn {
    left: Mat<f32>,
    /// Transposed: an item's row of the right factor is a contiguous column here.
    right: Mat<f32>,
    weights: Weights,
}

impl FoldIn {
    /// A model from its factors, items by rank each.
    ///
    /// # Panics
    /// If the factors have different shapes.
    pub fn new(left: Mat<f32>, right: MatRef<'_, f32>, weights: Weights) -> Self {
        assert!(left.nrows() == right.nrows() && left.ncols() == right.ncols(), "factors of one shape");
        FoldIn { left, right: right.transpose().to_owned(), weights }
    }

    /// Columns of the factors.
    pub fn rank(&self) -> usize {
        self.left.ncols()
    }

    /// $P_{left}$, items by rank.
    pub fn left(&self) -> MatRef<'_, f32> {
        self.left.as_ref()
    }

    /// $P_{right}$, items by rank.
    pub fn right(&self) -> MatRef<'_, f32> {
        self.right.as_ref().transpose()
    }

    /// What a history's items weigh.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// $z = P_{right}^T \sum_l w_l e_{j_l}$ into `point`, which comes with any content.
    fn embed(&self, history: &[ItemIndex], point: &mut [f32]) {
        point.fill(0.0);
        let mut add = |item: ItemIndex, weight: f32| {
            for (sum, value) in point.iter_mut().zip(self.right.col(item.get()).iter()) {
                *sum += weight * value;
            }
        };
        match &self.weights {
            Weights::ByLag(weights) => {
                for (&item, &weight) in history.iter().rev().zip(weights) {
                    add(item, weight);
                }
            }
            Weights::Flat => {
                // In the order of the items, so that the sum does not depend on the order of the history.
                let mut items = history.to_vec();
                items.sort_unstable();
                items.dedup();
                items.into_iter().for_each(|item| add(item, 1.0));
            }
        }
    }
}

impl Recommender for FoldIn {
    fn num_items(&self) -> usize {
        self.left.nrows()
    }

    fn score_batch(&self, histories: &[&[ItemIndex]], scores: &mut [f32]) {
        let (items, rank) = (self.num_items(), self.rank());
        assert_eq!(scores.len(), histories.len() * items, "one score a history and item");
        let inside = |history: &&[ItemIndex]| history.iter().all(|item| item.get() < items);
        assert!(histories.iter().all(inside), "items of the catalogue");
        if items == 0 || rank == 0 {
            scores.fill(0.0);
            return;
        }
        for (histories, scores) in histories.chunks(BATCH).zip(scores.chunks_mut(BATCH * items)) {
            let mut points = Mat::<f32>::zeros(rank, BATCH);
            points.as_mut().par_col_iter_mut().zip(histories).for_each(|(point, history)| {
                let point = point.try_as_col_major_mut().expect("invariant: columns of an owned matrix are contiguous");
                self.embed(history, point.as_slice_mut());
            });
            // Row-major scores of histories by items are a column-major matrix of items by histories.
            let scores = MatMut::from_column_major_slice_mut(scores, items, histories.len());
            scores.par_row_chunks_mut(ITEMS).zip(self.left.par_row_chunks(ITEMS)).for_each(|(mut to, left)| {
                let mut tile = Mat::<f32>::zeros(left.nrows(), BATCH);
                faer::linalg::matmul::matmul(tile.as_mut(), Accum::Replace, left, points.as_ref(), 1.0, Par::Seq);
                to.copy_from(tile.get(.., ..histories.len()));
            });
        }
    }

    fn memory_bytes(&self) -> usize {
        let weights = match &self.weights {
            Weights::Flat => 0,
            Weights::ByLag(weights) => weights.len(),
        };
        size_of::<f32>() * (2 * self.left.nrows() * self.left.ncols() + weights)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn factor(items: usize, rank: usize, seed: usize) -> Mat<f32> {
        Mat::from_fn(items, rank, |i, j| (((i * 131 + j * 71 + seed * 17) % 1009) as f32 / 1009.0) - 0.5)
    }

    fn history(len: usize, items: usize, seed: usize) -> Vec<ItemIndex> {
        (0..len).map(|at| ItemIndex(((at * 7919 + seed * 104_729) % items) as u32)).collect()
    }

    /// Scores as the definition has them, in double precision.
    fn slow_scores(model: &FoldIn, history: &[ItemIndex]) -> Vec<f64> {
        let mut selector = vec![0.0f64; model.num_items()];
        for (lag, item) in history.iter().rev().enumerate() {
            match model.weights() {
                Weights::Flat => selector[item.get()] = 1.0,
                Weights::ByLag(weights) => {
                    selector[item.get()] += weights.get(lag).copied().map_or(0.0, f64::from);
                }
            }
        }
        let point: Vec<f64> = (0..model.rank())
            .map(|k| (0..model.num_items()).map(|j| selector[j] * f64::from(model.right()[(j, k)])).sum())
            .collect();
        (0..model.num_items())
            .map(|j| point.iter().enumerate().map(|(k, z)| z * f64::from(model.left()[(j, k)])).sum())
            .collect()
    }

    fn models(items: usize, rank: usize) -> [FoldIn; 2] {
        let by_lag = Weights::ByLag((0..5).map(|lag| 1.0 / (lag + 1) as f32).collect());
        [Weights::Flat, by_lag]
            .map(|weights| FoldIn::new(factor(items, rank, 1), factor(items, rank, 2).as_ref(), weights))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn scores_match_the_definition(items in 1usize..60, rank in 1usize..20, len in 0usize..12, seed in 0usize..99) {
            for model in models(items, rank) {
                let history = history(len, items, seed);
                let mut scores = vec![f32::NAN; items];
                model.score_batch(&[&history], &mut scores);
                for (fast, slow) in scores.iter().zip(slow_scores(&model, &history)) {
                    prop_assert!((f64::from(*fast) - slow).abs() < 1e-4, "{fast} for {slow}");
                }
            }
        }
    }

    #[test]
    fn batch_equals_single_for_any_width_rank_and_number_of_threads() {
        for (items, rank) in [(1, 1), (3, 2), (700, 1), (700, 7), (513, 33), (1100, 130), (300, 600)] {
            for model in models(items, rank) {
                let histories: Vec<Vec<ItemIndex>> = (0..150).map(|h| history(h % 9, items, h)).collect();
                let singles: Vec<f32> = histories
                    .iter()
                    .flat_map(|history| {
                        let mut scores = vec![f32::NAN; items];
                        model.score_batch(&[history], &mut scores);
                        scores
                    })
                    .collect();
                assert!(singles.iter().all(|score| score.is_finite()));
                for threads in [1, 2, 4] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    for width in [1, 2, 3, 5, 8, 17, 31, 63, 64, 65, 100, 150] {
                        let mut scores = vec![f32::NAN; histories.len() * items];
                        for (histories, scores) in histories.chunks(width).zip(scores.chunks_mut(width * items)) {
                            let batch: Vec<&[ItemIndex]> = histories.iter().map(Vec::as_slice).collect();
                            pool.install(|| model.score_batch(&batch, scores));
                        }
                        assert!(scores == singles, "{items} items, rank {rank}, width {width}, {threads} threads");
                    }
                }
            }
        }
    }

    #[test]
    fn flat_weights_count_a_repeated_item_once_and_ignore_the_order() {
        let [flat, by_lag] = models(50, 6);
        let (once, twice) = ([ItemIndex(3), ItemIndex(9)], [ItemIndex(9), ItemIndex(3), ItemIndex(9)]);
        let score = |model: &FoldIn, history: &[ItemIndex]| {
            let mut scores = vec![0.0; 50];
            model.score_batch(&[history], &mut scores);
            scores
        };
        assert_eq!(score(&flat, &once), score(&flat, &twice));
        assert_ne!(score(&by_lag, &once), score(&by_lag, &twice));
    }

    #[test]
    fn only_the_newest_items_count_under_lag_weights() {
        let [_, model] = models(50, 6);
        let long = history(30, 50, 1);
        let mut scores = vec![0.0; 100];
        model.score_batch(&[&long, &long[25..]], &mut scores);
        assert_eq!(scores[..50], scores[50..]);
    }

    #[test]
    fn an_empty_history_scores_zero() {
        for model in models(20, 3) {
            let mut scores = vec![f32::NAN; 20];
            model.score_batch(&[&[]], &mut scores);
            assert!(scores.iter().all(|&score| score == 0.0));
        }
    }
}
