//! The low-rank directed core: what follows what, seen through an item space.
//!
//! With an item space $V$ ($n \times r$, orthonormal columns), lag weights $w$, and the features of a position $t$ of a
//! history $f_t = \sum_l w_l V[j_{t-l}]$, the core $R$ ($r \times r$) minimises
//!
//! $$ \sum_t q_t \lVert f_t^T R \rVert^2 - 2 \langle R, V^T T V \rangle + \lambda \lVert R \rVert^2, \qquad
//! R = (G + \lambda I)^{-1} V^T T V, \qquad G = \sum_t q_t f_t f_t^T . $$
//!
//! If $T$ were the raw counts of next items weighted by $w$, then $V^T T V = \sum_t q_t f_t V[j_{t+1}]^T$ and this would be the ridge
//! regression of the next item's vector on the features. With the memory's $T$ in their place the regression sees what the
//! memory sees: pairs whose direction is learned, scaled against popularity. The sum runs over all positions that have a
//! next item, and $q_t = \ell^{-\kappa}$ weights histories of $\ell$ items as the memory does. $\lambda$ is given in units of the mean eigenvalue
//! of $G$; towards infinity $R$ becomes the memory's projection on the item space.
//!
//! One eigendecomposition $G = Q \Lambda Q^T$ serves all values of $\lambda$. Cost: $r^2$ operations a row of the log, $2r$ a pair of the
//! memory, $10 r^3$ for the rest.

use faer::{Accum, Mat, MatRef};
use rayon::prelude::*;

use crate::interactions::{ItemIndex, UserIndex};
use crate::linalg::dense::{accumulate_symmetric, matmul, symmetric_eigen};
use crate::models::item_rows::ItemRows;
use crate::models::{LagWeights, ModelError};
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::{Histories, History};

/// Positions whose features are kept at a time.
const POSITIONS_A_BLOCK: usize = 4096;

/// An item space by rows, as gathers want it.
pub(super) struct ItemSpace {
    rank: usize,
    rows: Vec<f64>,
}

impl ItemSpace {
    pub(super) fn new(v: MatRef<'_, f64>) -> Self {
        let rank = v.ncols();
        let mut rows = vec![0.0; v.nrows() * rank];
        rows.par_chunks_mut(rank.max(1))
            .enumerate()
            .for_each(|(item, row)| row.iter_mut().enumerate().for_each(|(k, value)| *value = v[(item, k)]));
        ItemSpace { rank, rows }
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

    /// $V R$, row after row.
    pub(super) fn times(&self, core: MatRef<'_, f64>) -> Vec<f64> {
        let mut product = vec![0.0; self.rows.len()];
        let items = self.rows.len() / self.rank.max(1);
        let into = faer::MatMut::from_row_major_slice_mut(&mut product, items, self.rank);
        matmul(into, Accum::Replace, self.as_mat(), core, 1.0);
        product
    }
}

/// The normal equations: $G = Q \Lambda Q^T$ and $Q^T V^T T V$.
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
        histories: &Histories,
        lag_weights: &LagWeights,
        user_power: f64,
        monitor: &dyn Monitor,
    ) -> Result<Self, ModelError> {
        let moments = second_moments(space, histories, lag_weights, user_power, monitor)?;
        let cross = cross_moments(space, memory, monitor)?;
        let (eigenvalues, eigenvectors) = symmetric_eigen(moments.as_ref()).map_err(|error| {
            ModelError::Numerics { model: super::DSatfConfig::NAME, reason: format!("{error:?}") }
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

/// $G$, block by block of positions.
fn second_moments(
    space: &ItemSpace,
    histories: &Histories,
    lag_weights: &LagWeights,
    user_power: f64,
    monitor: &dyn Monitor,
) -> Result<Mat<f64>, ModelError> {
    let rank = space.rank;
    let with_previous = histories.with_previous();
    let mut moments = Mat::zeros(rank, rank);
    let mut features = vec![0.0; POSITIONS_A_BLOCK * rank];
    let mut block: Vec<(UserIndex, usize)> = Vec::with_capacity(POSITIONS_A_BLOCK);
    monitor.begin("learning the core", histories.num_rows() as u64);
    let mut add = |block: &mut Vec<(UserIndex, usize)>| -> Result<(), ModelError> {
        check_cancelled(monitor)?;
        features.par_chunks_mut(rank).zip(block.par_iter()).for_each(|(feature, &(user, position))| {
            let history = histories.history_of(user, &with_previous);
            let weight = (history.len() as f64).powf(-0.5 * user_power);
            gather(space, history.up_to(position + 1), lag_weights, weight, feature);
        });
        let rows = MatRef::from_row_major_slice(&features[..block.len() * rank], block.len(), rank);
        accumulate_symmetric(moments.as_mut(), rows, rows);
        monitor.advance(block.len() as u64);
        block.clear();
        Ok(())
    };
    for user in (0..histories.num_users() as u32).map(UserIndex) {
        for position in 0..histories.items_of(user).len().saturating_sub(1) {
            block.push((user, position));
            if block.len() == POSITIONS_A_BLOCK {
                add(&mut block)?;
            }
        }
    }
    if !block.is_empty() {
        add(&mut block)?;
    }
    Ok(moments)
}

/// `scale` times $\sum_l w_l V[j_l]$ of a history.
fn gather(
    space: &ItemSpace,
    history: History<'_>,
    lag_weights: &LagWeights,
    scale: f64,
    feature: &mut [f64],
) {
    feature.fill(0.0);
    for (item, weight) in lag_weights.weighted(history) {
        let weight = weight * scale;
        feature.iter_mut().zip(space.row(item.get())).for_each(|(sum, value)| *sum += weight * value);
    }
}

/// $V^T T V$.
fn cross_moments(
    space: &ItemSpace,
    memory: &ItemRows,
    monitor: &dyn Monitor,
) -> Result<Mat<f64>, ModelError> {
    check_cancelled(monitor)?;
    let rank = space.rank;
    let mut images = vec![0.0; space.rows.len()];
    images.par_chunks_mut(rank.max(1)).enumerate().for_each(|(source, image)| {
        let (targets, weights) = memory.row(ItemIndex(source as u32));
        for (target, &weight) in targets.iter().zip(weights) {
            let weight = f64::from(weight);
            image.iter_mut().zip(space.row(target.get())).for_each(|(sum, value)| *sum += weight * value);
        }
    });
    let images = MatRef::from_row_major_slice(&images, images.len() / rank.max(1), rank);
    let mut cross = Mat::zeros(rank, rank);
    matmul(cross.as_mut(), Accum::Replace, space.as_mat().transpose(), images, 1.0);
    Ok(cross)
}
