//! The compressed unfoldings of users and items, a block of rows at a time.
//!
//! Of Eq. 11 and its form for these tensors (Eq. 22 and 23), with $v_j$ the rows of $D V$, $u_u$ those of $U$ and
//! $h_k$ those of the position weights $H$:
//! $$(Y_1)_u = \sum_{(j,k) \in x_u} h_k \otimes v_j \qquad (Y_2)_j = d_j \sum_{(u,k) \text{ at } j} h_k \otimes u_u$$
//!
//! Left singular vectors depend on $H$ only through $H H^T$, so $H$ is replaced by a factor of it with as many
//! columns as its numerical rank: at most $K$, often far fewer than $r_3 r_4$.

use std::ops::Range;

use faer::Mat;
use rayon::prelude::*;

use super::FactorizeError;
use super::rows::{Rows, add_scaled, scale_row};
use crate::linalg::{Real, dense};
use crate::tensor::PositionalLog;

/// Which of the two large modes an unfolding belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Users,
    Items,
}

/// $Y_1$ or $Y_2$, never held whole.
pub(super) struct Unfolding<'a, T> {
    pub(super) log: &'a PositionalLog,
    pub(super) side: Side,
    /// Rows of $D V$ for the users' side, of $U$ for the items'.
    pub(super) other: &'a Rows<T>,
    /// What each row is multiplied by: $d_j$ for items.
    pub(super) row_scale: Option<&'a [T]>,
    /// The reduced $H$: one row per position.
    pub(super) weights: &'a Rows<T>,
}

/// Rows formed by one task: enough to hide the cost of a task, few enough to share popular items out evenly.
const ROWS_A_TASK: usize = 16;

impl<T: Real> Unfolding<'_, T> {
    pub(super) fn nrows(&self) -> usize {
        match self.side {
            Side::Users => self.log.num_users(),
            Side::Items => self.log.num_items(),
        }
    }

    /// Columns: those of the reduced $H$ times those of the other factor.
    pub(super) fn ncols(&self) -> usize {
        self.weights.width() * self.other.width()
    }

    /// Forms rows from `first` on, as many as fit `block`, restricted to some columns of $H$.
    pub(super) fn form(&self, first: usize, components: &Range<usize>, block: &mut [T]) {
        let width = components.len() * self.other.width();
        pulp::Arch::new().dispatch(|| {
            for (at, row) in block.chunks_exact_mut(width).enumerate() {
                self.form_row(first + at, components, row);
            }
        });
    }

    /// [`Unfolding::form`] by all threads.
    pub(super) fn form_in_parallel(&self, first: usize, components: &Range<usize>, block: &mut [T]) {
        let width = components.len() * self.other.width();
        block.par_chunks_mut(width * ROWS_A_TASK).enumerate().for_each(|(task, block)| {
            self.form(first + task * ROWS_A_TASK, components, block);
        });
    }

    #[inline(always)]
    fn form_row(&self, at: usize, components: &Range<usize>, row: &mut [T]) {
        row.fill(T::default());
        match self.side {
            Side::Users => {
                let (first, items) = self.log.user(at);
                for (position, &item) in (first..).zip(items) {
                    self.add_entry(position, item as usize, components, row);
                }
            }
            Side::Items => {
                for entry in self.log.item(at) {
                    self.add_entry(entry.position as usize, entry.user as usize, components, row);
                }
            }
        }
        if let Some(scale) = self.row_scale {
            let scale = scale[at];
            scale_row(row, scale);
        }
    }

    #[inline(always)]
    fn add_entry(&self, position: usize, other: usize, components: &Range<usize>, row: &mut [T]) {
        let other = self.other.row(other);
        let weights = &self.weights.row(position)[components.clone()];
        for (&weight, part) in weights.iter().zip(row.chunks_exact_mut(other.len())) {
            add_scaled(part, weight, other);
        }
    }
}

/// A factor $F$ of $H H^T = F F^T$ with as few columns as its numerical rank in the precision `T`.
pub(super) fn reduce_weights<T: Real>(weights: &Mat<f64>) -> Result<Rows<T>, FactorizeError> {
    let square = weights * weights.transpose();
    let (values, vectors) = dense::symmetric_eigen(square.as_ref())?;
    let limit = values.first().copied().unwrap_or(0.0) * T::UNIT_ROUNDOFF;
    let rank = values.iter().take_while(|&&value| value > limit).count().max(1);
    if weights.ncols() <= rank {
        return Ok(Rows::from_mat(weights.as_ref()));
    }
    let factor = Mat::from_fn(weights.nrows(), rank, |k, c| vectors[(k, c)] * values[c].max(0.0).sqrt());
    Ok(Rows::from_mat(factor.as_ref()))
}
