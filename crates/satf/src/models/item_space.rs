//! Scores from an item space: a history becomes a point, the scores are its products with all items.
//!
//! With lag weights $w$ (0 = newest), scores are $P_\text{left} (P_\text{right}^T \sum_l w_l e_{j_l})$.

// Formulas are not code.
#![allow(clippy::doc_markdown)]

use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::interactions::ItemIndex;

/// Histories scored by one product. Always as many columns, used or not, so that a history gets the same bits in
/// every batch.
const HISTORIES_A_PRODUCT: usize = 32;

/// Items scored by one product.
const ITEMS_A_PRODUCT: usize = 512;

/// Factors of an item-item matrix, and how lags are weighted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ItemSpace {
    rank: usize,
    /// $P_\text{left}$, a row an item.
    left: Vec<f32>,
    /// $P_\text{right}$, a row an item; the same as the left one if `None`.
    right: Option<Vec<f32>>,
    /// Weight of the newest item, the one before, and so on; older ones have none.
    lag_weights: Vec<f64>,
}

impl ItemSpace {
    pub(super) fn new(rank: usize, left: Vec<f32>, right: Option<Vec<f32>>, lag_weights: Vec<f64>) -> Self {
        ItemSpace { rank, left, right, lag_weights }
    }

    pub(super) fn num_items(&self) -> usize {
        self.left.len() / self.rank
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.left.as_slice())
            + self.right.as_ref().map_or(0, |right| size_of_val(right.as_slice()))
            + size_of_val(self.lag_weights.as_slice())
    }

    pub(super) fn score_batch(&self, histories: &[&[ItemIndex]], scores: &mut [f32]) {
        let n = self.num_items();
        assert_eq!(scores.len(), histories.len() * n, "one score for each history and item");
        if let Some(item) = histories.iter().flat_map(|history| history.iter()).find(|item| item.get() >= n) {
            panic!("item {} is outside the catalogue of {n}", item.0);
        }
        if n == 0 {
            return;
        }
        let tiles =
            scores.par_chunks_mut(HISTORIES_A_PRODUCT * n).zip(histories.par_chunks(HISTORIES_A_PRODUCT));
        tiles.for_each(|(scores, histories)| {
            let mut points = vec![0f32; HISTORIES_A_PRODUCT * self.rank];
            let mut sum = vec![0f64; self.rank];
            for (point, history) in points.chunks_exact_mut(self.rank).zip(histories) {
                self.locate(history, &mut sum, point);
            }
            let points = MatRef::from_row_major_slice(&points, HISTORIES_A_PRODUCT, self.rank);
            let scores = MatMut::from_row_major_slice_mut(scores, histories.len(), n);
            scores.par_col_chunks_mut(ITEMS_A_PRODUCT).enumerate().for_each(|(chunk, mut scores)| {
                let items = scores.ncols();
                let left = &self.left[chunk * ITEMS_A_PRODUCT * self.rank..][..items * self.rank];
                let left = MatRef::from_row_major_slice(left, items, self.rank);
                let mut tile = Mat::<f32>::zeros(items, HISTORIES_A_PRODUCT);
                faer::linalg::matmul::matmul(
                    tile.as_mut(),
                    Accum::Replace,
                    left,
                    points.transpose(),
                    1.0,
                    Par::Seq,
                );
                for (history, tile) in tile.col_iter().take(scores.nrows()).enumerate() {
                    for (item, score) in tile.iter().enumerate() {
                        scores[(history, item)] = *score;
                    }
                }
            });
        });
    }

    /// The point of a history.
    fn locate(&self, history: &[ItemIndex], sum: &mut [f64], point: &mut [f32]) {
        let right = self.right.as_ref().unwrap_or(&self.left);
        sum.fill(0.0);
        for (item, weight) in history.iter().rev().zip(&self.lag_weights) {
            let row = &right[item.get() * self.rank..][..self.rank];
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += weight * f64::from(*value);
            }
        }
        for (point, sum) in point.iter_mut().zip(sum) {
            *point = *sum as f32;
        }
    }
}
