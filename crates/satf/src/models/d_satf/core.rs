//! The low-rank directed core: what follows what, seen through an item space.
//!
//! With an item space $V$ ($n \times r$, orthonormal columns), lag weights $w$, and the features of a moment $t$ of a
//! history $f_t = \sum_l w_l V[j_{t-l}]$, the core $R$ ($r \times r$) minimises
//!
//! $$ \sum_t q_t \lVert f_t^T R \rVert^2 - 2 \langle R, V^T T V \rangle + \lambda \lVert R \rVert^2, \qquad
//! R = (G + \lambda I)^{-1} V^T T V, \qquad G = \sum_t q_t f_t f_t^T . $$
//!
//! If $T$ were the raw counts of next items weighted by $w$, then $V^T T V = \sum_t q_t f_t V[j_{t+1}]^T$ and this would be the ridge
//! regression of the next item's vector on the features. With the memory's $T$ in their place the regression sees what the
//! memory sees: pairs whose direction is learned, scaled against popularity. The weight $q_t = \ell^{-\kappa}$ of a history of
//! $\ell$ items is the memory's. $\lambda$ is given in units of the mean eigenvalue of $G$; towards infinity $R$ becomes the memory's
//! projection on the item space.
//!
//! # Moments from pairs
//!
//! The sum runs over all moments at which a history is remembered, those after its end included. Two items $d$ positions apart then
//! meet in $G$ with the weight $K(d) = \sum_l w_l w_{l+d}$, the autocorrelation of the lag weights, wherever they stand:
//!
//! $$ G = V^T C V, \qquad C_{ab} = \sum q \, K(|s - t|) \text{ over all positions } s \text{ of } a \text{ and } t \text{ of } b \text{ in one history} . $$
//!
//! $C$ is a matrix of pairs like the memory. Its rows are counted one by one, up to the memory's window, and go into $G$ at once: no
//! feature is ever made. Cut at the window, $G$ may have slightly negative eigenvalues, which count as 0. Baskets are not averaged here.
//!
//! One eigendecomposition $G = Q \Lambda Q^T$ serves all values of $\lambda$. Cost: $2r$ operations a pair, twice, and $10 r^3 + 4 n r^2$ for the rest.

use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::counts::Places;
use crate::interactions::ItemIndex;
use crate::linalg::dense::{matmul, symmetric_eigen};
use crate::models::ModelError;
use crate::models::item_rows::{ItemRows, RowSums};
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};
use crate::prepare::Histories;

/// An item space by rows, as gathers want it.
pub(super) struct ItemSpace {
    rank: usize,
    rows: Vec<f64>,
    /// The same in single precision: what is gathered for every pair is half as long.
    rounded: Vec<f32>,
}

impl ItemSpace {
    pub(super) fn new(v: MatRef<'_, f64>) -> Self {
        let rank = v.ncols();
        let mut rows = vec![0.0; v.nrows() * rank];
        rows.par_chunks_mut(rank.max(1))
            .enumerate()
            .for_each(|(item, row)| row.iter_mut().enumerate().for_each(|(k, value)| *value = v[(item, k)]));
        let rounded = rows.iter().map(|&value| value as f32).collect();
        ItemSpace { rank, rows, rounded }
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn row(&self, item: usize) -> &[f64] {
        &self.rows[item * self.rank..][..self.rank]
    }

    fn as_mat(&self) -> MatRef<'_, f64> {
        MatRef::from_row_major_slice(&self.rows, self.rows.len() / self.rank.max(1), self.rank)
    }

    /// $M V$ for a matrix of items by items whose rows `push` adds one after the other, each in any order.
    fn images(
        &self,
        monitor: &dyn Monitor,
        push: impl Fn(usize, &mut RowSums, &mut SparseRows) + Sync,
    ) -> Result<Vec<f64>, ModelError> {
        let num_items = self.num_items();
        let mut images = vec![0.0; self.rows.len()];
        images.par_chunks_mut(ROWS_A_BLOCK * self.rank.max(1)).enumerate().try_for_each_init(
            || (RowSums::new(num_items), SparseRows::default()),
            |(sums, rows), (block, images)| -> Result<(), ModelError> {
                check_cancelled(monitor)?;
                rows.clear();
                let first = block * ROWS_A_BLOCK;
                let last = num_items.min(first + ROWS_A_BLOCK);
                for item in first..last {
                    push(item, sums, rows);
                    rows.ends.push(rows.entries.len());
                }
                rows.times(self, images);
                monitor.advance((last - first) as u64);
                Ok(())
            },
        )?;
        Ok(images)
    }

    fn num_items(&self) -> usize {
        self.rows.len() / self.rank.max(1)
    }

    /// $V^T Y$ for as many rows of $Y$ as there are items.
    fn transpose_times(&self, rows: &[f64]) -> Mat<f64> {
        let rows = MatRef::from_row_major_slice(rows, rows.len() / self.rank.max(1), self.rank);
        let mut product = Mat::zeros(self.rank, self.rank);
        matmul(product.as_mut(), Accum::Replace, self.as_mat().transpose(), rows, 1.0);
        product
    }

    /// $V R$, row after row.
    pub(super) fn times(&self, core: MatRef<'_, f64>) -> Vec<f64> {
        let mut product = vec![0.0; self.rows.len()];
        let items = self.num_items();
        let into = MatMut::from_row_major_slice_mut(&mut product, items, self.rank);
        matmul(into, Accum::Replace, self.as_mat(), core, 1.0);
        product
    }
}

/// Rows that are multiplied with the space together.
const ROWS_A_BLOCK: usize = 64;

/// From one entry in so many on, a block of rows is multiplied as a dense matrix.
const DENSE_FROM: usize = 12;

/// Some rows of a matrix of items by items.
#[derive(Default)]
struct SparseRows {
    entries: Vec<(ItemIndex, f32)>,
    ends: Vec<usize>,
    dense: Vec<f32>,
    image: Vec<f32>,
}

impl SparseRows {
    fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
    }

    /// The rows seen through a space. Sums of single precision: what is learned of them is no more exact than the space.
    fn times(&mut self, space: &ItemSpace, images: &mut [f64]) {
        let (rows, columns, rank) = (self.ends.len(), space.num_items(), space.rank);
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.image.clear();
        self.image.resize(rows * rank, 0.0);
        if self.entries.len() * DENSE_FROM >= rows * columns {
            self.dense.clear();
            self.dense.resize(rows * columns, 0.0);
            for ((row, start), &end) in self.dense.chunks_mut(columns).zip(starts).zip(&self.ends) {
                for &(item, weight) in &self.entries[start..end] {
                    row[item.get()] += weight;
                }
            }
            let image = MatMut::from_row_major_slice_mut(&mut self.image, rows, rank);
            let dense = MatRef::from_row_major_slice(&self.dense, rows, columns);
            let space = MatRef::from_row_major_slice(&space.rounded, columns, rank);
            faer::linalg::matmul::matmul(image, Accum::Replace, dense, space, 1.0, Par::Seq);
        } else {
            for ((image, start), &end) in self.image.chunks_mut(rank.max(1)).zip(starts).zip(&self.ends) {
                pulp::Arch::new().dispatch(|| {
                    for &(item, weight) in &self.entries[start..end] {
                        let row = &space.rounded[item.get() * rank..][..rank];
                        image.iter_mut().zip(row).for_each(|(sum, &value)| *sum += weight * value);
                    }
                });
            }
        }
        images.iter_mut().zip(&self.image).for_each(|(to, &from)| *to = f64::from(from));
    }
}

/// The normal equations of a core: $G = Q \Lambda Q^T$ and $Q^T V^T T V$.
pub(super) struct NormalEquations {
    eigenvalues: Vec<f64>,
    eigenvectors: Mat<f64>,
    /// $Q^T V^T T V$.
    rotated: Mat<f64>,
}

impl NormalEquations {
    pub(super) fn new(
        space: &ItemSpace,
        memory: &ItemRows,
        moments: MatRef<'_, f64>,
        monitor: &dyn Monitor,
    ) -> Result<Self, ModelError> {
        monitor.begin("learning the core", 0);
        let cross = seen_through(space, memory, monitor)?;
        let (eigenvalues, eigenvectors) = symmetric_eigen(moments).map_err(|error| ModelError::Numerics {
            model: super::DSatfConfig::NAME,
            reason: format!("{error:?}"),
        })?;
        let mut rotated = Mat::zeros(space.rank, space.rank);
        matmul(rotated.as_mut(), Accum::Replace, eigenvectors.transpose(), cross.as_ref(), 1.0);
        Ok(NormalEquations { eigenvalues, eigenvectors, rotated })
    }

    /// $R$ for a ridge in units of the mean eigenvalue.
    pub(super) fn core(&self, ridge: f64) -> Mat<f64> {
        let rank = self.eigenvalues.len();
        let mean = self.eigenvalues.iter().map(|value| value.max(0.0)).sum::<f64>() / rank.max(1) as f64;
        let strength = if mean > 0.0 { ridge * mean } else { 1.0 };
        let shrunk =
            Mat::from_fn(rank, rank, |i, j| self.rotated[(i, j)] / (self.eigenvalues[i].max(0.0) + strength));
        let mut core = Mat::zeros(rank, rank);
        matmul(core.as_mut(), Accum::Replace, self.eigenvectors.as_ref(), shrunk.as_ref(), 1.0);
        core
    }
}

/// $G$, from the pairs of every item.
pub(super) fn second_moments(
    space: &ItemSpace,
    histories: &Histories,
    lag_weights: &[f64],
    window: usize,
    user_power: f64,
    monitor: &dyn Monitor,
) -> Result<Mat<f64>, ModelError> {
    let num_items = histories.num_items();
    let places = Places::of(histories, &histories.popularity());
    let longest = histories.iter().map(<[ItemIndex]>::len).max().unwrap_or(0);
    let weights = autocorrelation(lag_weights, window.min(longest));
    monitor.begin("counting what stands together", num_items as u64);
    let images = space.images(monitor, |item, sums, rows| {
        for (user, at) in places.of_item(ItemIndex(item as u32)) {
            let items = histories.items_of(user);
            let at = at as usize;
            let user_weight = (items.len() as f64).powf(-user_power);
            let after = items[at..].iter().zip(&weights);
            let before = items[..at].iter().rev().zip(&weights[1..]);
            after.chain(before).for_each(|(&item, &weight)| sums.add(item, user_weight * weight));
        }
        sums.drain(|item, weight| rows.entries.push((item, weight as f32)));
    })?;
    Ok(space.transpose_times(&images))
}

/// $K(0), \dots, K(\text{most})$ of lag weights.
fn autocorrelation(lag_weights: &[f64], most: usize) -> Vec<f64> {
    let shifted = |distance: usize| lag_weights.get(distance..).unwrap_or_default();
    let product =
        |distance: usize| shifted(distance).iter().zip(lag_weights).map(|(one, other)| one * other).sum();
    (0..=most).map(product).collect()
}

/// $V^T T V$.
fn seen_through(space: &ItemSpace, memory: &ItemRows, monitor: &dyn Monitor) -> Result<Mat<f64>, ModelError> {
    let images = space.images(&OnlyCancels(monitor), |item, _, rows| {
        let (targets, weights) = memory.row(ItemIndex(item as u32));
        rows.entries.extend(targets.iter().copied().zip(weights.iter().copied()));
    })?;
    Ok(space.transpose_times(&images))
}
