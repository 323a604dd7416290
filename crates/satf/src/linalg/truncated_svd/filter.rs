//! A Chebyshev polynomial in $A^T A$, applied to a block of columns.
//!
//! $T_d(2 \lambda / c - 1)$ stays within $\pm 1$ for eigenvalues $0 \le \lambda \le c$ and grows like
//! $\tfrac12 e^{d g(\lambda)}$ above, with $g(\lambda) = \operatorname{arcosh}(2 \lambda / c - 1)$: no polynomial of the
//! degree separates better. Panels of columns go through all $d$ steps of the recurrence
//! $$y_{k+1} = 2 (\tfrac{2}{c} A^T A - I) y_k - y_{k-1}$$
//! while they are in cache.

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::linalg::Real;
use crate::linalg::operator::{LinearOperator, PANEL};

/// $g(\lambda)$: the logarithm of what one degree of the filter multiplies an eigenvalue's component by.
pub(super) fn growth(eigenvalue: f64, cut: f64) -> f64 {
    (2.0 * eigenvalue / cut - 1.0).max(1.0).acosh()
}

/// A filter, and when to clean the locked directions out of what it works on.
pub(super) struct Filter {
    pub(super) cut: f64,
    /// One entry a degree: how many locked vectors (a prefix: the largest eigenvalues) are projected out after it.
    pub(super) clean: Vec<usize>,
}

impl Filter {
    /// A filter of `degree` that suppresses eigenvalues up to `cut`.
    ///
    /// Rounding puts a trace `u` of every locked direction back, and the filter multiplies it by $e^{g}$ a degree, far
    /// more than the `wanted` eigenvalue for large ones. Each locked direction is projected out again before it
    /// outgrows the wanted ones: the largest after every degree or two, most of them never.
    pub(super) fn new<T: Real>(cut: f64, degree: usize, wanted: f64, locked: &[f64]) -> Self {
        let budget = (0.1 / T::UNIT_ROUNDOFF).ln();
        let own = growth(wanted, cut);
        let excess: Vec<f64> = locked.iter().map(|&eigenvalue| growth(eigenvalue, cut) - own).collect();
        let mut since = vec![0usize; locked.len()];
        let clean = (1..=degree)
            .map(|step| {
                since.iter_mut().for_each(|steps| *steps += 1);
                let due = |i: &usize| (since[*i] + 1) as f64 * excess[*i] > budget;
                // After the last degree the whole block is projected anyway.
                let prefix =
                    if step == degree { 0 } else { (0..locked.len()).rev().find(due).map_or(0, |i| i + 1) };
                since[..prefix].fill(0);
                prefix
            })
            .collect();
        Filter { cut, clean }
    }

    /// Operations on one column.
    pub(super) fn flops_per_column(&self, operator: f64, nrows: usize) -> f64 {
        let cleaned: usize = self.clean.iter().sum();
        self.clean.len() as f64 * operator + 8.0 * nrows as f64 * cleaned as f64
    }

    /// Applies the filter to every column of `block`; `locked` holds the locked vectors in the order of their
    /// eigenvalues.
    pub(super) fn apply<T: Real, A: LinearOperator<T>>(
        &self,
        operator: &A,
        locked: MatRef<'_, T>,
        block: MatMut<'_, T>,
    ) {
        block.par_col_chunks_mut(PANEL).for_each_init(
            || Scratch::new(operator),
            |scratch, columns| self.apply_panel(operator, locked, columns, scratch),
        );
    }

    fn apply_panel<T: Real, A: LinearOperator<T>>(
        &self,
        operator: &A,
        locked: MatRef<'_, T>,
        mut columns: MatMut<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let scale = T::of(2.0 / self.cut);
        let two = T::of(2.0);
        let Scratch { current, previous, next, image } = scratch;
        load(columns.as_ref(), current);
        for (step, &prefix) in self.clean.iter().enumerate() {
            operator.apply(current, image);
            operator.apply_transpose(image, next);
            for ((next, current), previous) in next.iter().zip(current.iter()).zip(previous.iter_mut()) {
                for lane in 0..PANEL {
                    let image = scale * next[lane] - current[lane];
                    previous[lane] = if step == 0 { image } else { two * image - previous[lane] };
                }
            }
            std::mem::swap(current, previous);
            if prefix > 0 {
                let vectors = locked.subcols(0, prefix);
                project_panel(vectors, current);
                project_panel(vectors, previous);
            }
        }
        store(current, columns.rb_mut());
    }
}

/// Panels one thread works with.
pub(super) struct Scratch<T> {
    pub(super) current: Vec<[T; PANEL]>,
    previous: Vec<[T; PANEL]>,
    pub(super) next: Vec<[T; PANEL]>,
    pub(super) image: Vec<[T; PANEL]>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new<A: LinearOperator<T>>(operator: &A) -> Self {
        let tall = || vec![[T::default(); PANEL]; operator.ncols()];
        Scratch {
            current: tall(),
            previous: tall(),
            next: tall(),
            image: vec![[T::default(); PANEL]; operator.nrows()],
        }
    }
}

/// Columns (at most [`PANEL`], any precision) as a panel, missing ones zero.
pub(super) fn load<S: Real, T: Real>(columns: MatRef<'_, S>, panel: &mut [[T; PANEL]]) {
    if columns.ncols() < PANEL {
        panel.fill([T::default(); PANEL]);
    }
    for (lane, column) in columns.col_iter().enumerate() {
        for (row, value) in panel.iter_mut().zip(column.iter()) {
            row[lane] = T::of(value.double());
        }
    }
}

/// A panel as columns.
pub(super) fn store<T: Real>(panel: &[[T; PANEL]], columns: MatMut<'_, T>) {
    for (lane, column) in columns.col_iter_mut().enumerate() {
        for (row, value) in panel.iter().zip(column.iter_mut()) {
            *value = row[lane];
        }
    }
}

/// $y \leftarrow y - V V^T y$ for a panel.
fn project_panel<T: Real>(vectors: MatRef<'_, T>, panel: &mut [[T; PANEL]]) {
    let rows = panel.len();
    let mut y = MatMut::from_row_major_slice_mut(panel.as_flattened_mut(), rows, PANEL);
    let mut components = Mat::<T>::zeros(vectors.ncols(), PANEL);
    let one = T::of(1.0);
    faer::linalg::matmul::matmul(
        components.as_mut(),
        Accum::Replace,
        vectors.transpose(),
        y.as_ref(),
        one,
        Par::Seq,
    );
    faer::linalg::matmul::matmul(y.rb_mut(), Accum::Add, vectors, components.as_ref(), -one, Par::Seq);
}
