//! A Chebyshev polynomial in $A^T A$, applied to a block of columns.
//!
//! $T_d(2 \lambda / c - 1)$ stays within $\pm 1$ for eigenvalues $0 \le \lambda \le c$ and grows like
//! $\tfrac12 e^{d g(\lambda)}$ above, with $g(\lambda) = \operatorname{arcosh}(2 \lambda / c - 1)$: no polynomial of the
//! degree separates better. Panels of columns go through several degrees while they are in cache.

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::linalg::operator::{LinearOperator, PANEL};

/// $g(\lambda)$: the logarithm of what one degree of the filter multiplies an eigenvalue's component by.
pub(super) fn growth(eigenvalue: f64, cut: f64) -> f64 {
    (2.0 * eigenvalue / cut - 1.0).max(1.0).acosh()
}

/// How many locked vectors a filter cleans out of its panels as it goes; the rest waits for the end of the pass.
pub(super) const CLEANED_IN_PANELS: usize = 32;

/// Logarithm of how much a trace of rounding may grow before it must be projected out: from $10^{-16}$ to a tenth of
/// the guards or so. More would survive the projections in the locked vectors of the next window.
pub(super) const TRACE_BUDGET: f64 = 38.0;

/// The degree of a pass: `most`, or fewer if some of the `locked` eigenvalues (those not cleaned out of the panels) cannot
/// wait that long to be projected out.
pub(super) fn pass_degree(cut: f64, most: usize, locked: &[f64]) -> usize {
    match locked.get(CLEANED_IN_PANELS) {
        Some(&eigenvalue) => most.min((TRACE_BUDGET / growth(eigenvalue, cut).max(1e-3)) as usize).max(1),
        None => most.max(1),
    }
}

/// One pass of the filter, and when it cleans the locked directions out of what it works on.
///
/// The filter of degree $Pk$ is the product of its linear factors $2 (x - \cos \theta_j)$, and a pass takes every $P$-th of
/// them: by $T_{Pk} = T_P \circ T_k$ these multiply to $2 (T_k(x) - y)$ with some $|y| < 1$, so that every pass is a
/// modest filter by itself and the block may be projected and made orthonormal after it. Within a pass the factors come in
/// an order that keeps the partial products even.
///
/// Rounding puts a trace of every locked direction back, and the filter multiplies it by $e^{g}$ a degree, most of all for
/// the largest eigenvalues. Each locked direction must be projected out again before its trace drowns the guards: the
/// largest few after every degree or two, while the panels are in cache; the others between passes.
pub(super) struct Filter {
    cut: f64,
    /// $\cos \theta_j$ of the factors.
    roots: Vec<f64>,
    /// Beside every factor: how many locked vectors (a prefix: the largest eigenvalues) are projected out after it.
    clean: Vec<usize>,
}

impl Filter {
    /// Pass `pass` of `passes`, each of `degree`, suppressing eigenvalues up to `cut`.
    pub(super) fn new(cut: f64, degree: usize, pass: usize, passes: usize, locked: &[f64]) -> Self {
        let patience = |i: usize| TRACE_BUDGET / growth(locked[i], cut).max(1e-3);
        let cleaned = locked.len().min(CLEANED_IN_PANELS);
        let mut since = vec![0.0; cleaned];
        let clean = (1..=degree)
            .map(|step| {
                for steps in &mut since {
                    *steps += 1.0;
                }
                // When one is due, those soon due go with it. After the last degree all are projected anyway.
                let due = step < degree && (0..cleaned).any(|i| since[i] + 1.0 > patience(i));
                let soon = |i: &usize| 1.5 * since[*i] + 1.0 > patience(*i);
                let prefix = if due { (0..cleaned).rev().find(soon).map_or(0, |i| i + 1) } else { 0 };
                since[..prefix].fill(0.0);
                prefix
            })
            .collect();
        // T_k(cos theta) = cos(k theta) equals y = cos(phi) at the angles (2 pi j +- phi) / k.
        let phi = std::f64::consts::PI * (pass as f64 + 0.5) / passes as f64;
        let angle = |j: usize| {
            let turn = 2.0 * std::f64::consts::PI * j.div_ceil(2) as f64;
            (if j.is_multiple_of(2) { turn + phi } else { turn - phi }) / degree as f64
        };
        Filter { cut, roots: evenly((0..degree).map(|j| angle(j).cos()).collect()), clean }
    }

    /// The degree of the polynomial.
    pub(super) fn degree(&self) -> usize {
        self.clean.len()
    }

    /// Operations on one column.
    pub(super) fn flops_per_column(&self, operator: f64, nrows: usize) -> f64 {
        let cleaned: usize = self.clean.iter().sum();
        self.clean.len() as f64 * operator + 4.0 * nrows as f64 * cleaned as f64
    }

    /// Applies the filter to every column of `block`; `locked` holds the locked vectors in the order of their
    /// eigenvalues.
    pub(super) fn apply<A: LinearOperator>(
        &self,
        operator: &A,
        locked: MatRef<'_, f64>,
        block: MatMut<'_, f64>,
    ) {
        block.par_col_chunks_mut(PANEL).for_each_init(
            || Scratch::new(operator),
            |scratch, columns| self.apply_panel(operator, locked, columns, scratch),
        );
    }

    fn apply_panel<A: LinearOperator>(
        &self,
        operator: &A,
        locked: MatRef<'_, f64>,
        mut columns: MatMut<'_, f64>,
        scratch: &mut Scratch,
    ) {
        let Scratch { current, next, image } = scratch;
        load(columns.as_ref(), current);
        for (&root, &prefix) in self.roots.iter().zip(&self.clean) {
            operator.apply_squared(current, image, next);
            let (scale, shift) = (4.0 / self.cut, 2.0 + 2.0 * root);
            for (next, current) in next.iter().zip(current.iter_mut()) {
                for lane in 0..PANEL {
                    current[lane] = scale * next[lane] - shift * current[lane];
                }
            }
            if prefix > 0 {
                project_panel(locked.subcols(0, prefix), current);
            }
        }
        store(current, columns.rb_mut());
    }
}

/// The roots in Leja's order: each as far as possible, in the product of distances, from those before it.
fn evenly(mut roots: Vec<f64>) -> Vec<f64> {
    let mut ordered: Vec<f64> = Vec::with_capacity(roots.len());
    while !roots.is_empty() {
        let distance =
            |root: f64| ordered.iter().map(|other| (root - other).abs().max(1e-9).ln()).sum::<f64>();
        let farthest = (0..roots.len())
            .max_by(|&a, &b| {
                (distance(roots[a]), roots[a])
                    .partial_cmp(&(distance(roots[b]), roots[b]))
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
            .unwrap_or(0);
        ordered.push(roots.swap_remove(farthest));
    }
    ordered
}

/// Panels one thread works with.
pub(super) struct Scratch {
    pub(super) current: Vec<[f64; PANEL]>,
    pub(super) next: Vec<[f64; PANEL]>,
    pub(super) image: Vec<[f64; PANEL]>,
}

impl Scratch {
    pub(super) fn new<A: LinearOperator>(operator: &A) -> Self {
        let tall = || vec![[0.0; PANEL]; operator.ncols()];
        Scratch { current: tall(), next: tall(), image: vec![[0.0; PANEL]; operator.nrows()] }
    }
}

/// Columns (at most [`PANEL`]) as a panel, missing ones zero.
pub(super) fn load(columns: MatRef<'_, f64>, panel: &mut [[f64; PANEL]]) {
    if columns.ncols() < PANEL {
        panel.fill([0.0; PANEL]);
    }
    for (lane, column) in columns.col_iter().enumerate() {
        for (row, value) in panel.iter_mut().zip(column.iter()) {
            row[lane] = *value;
        }
    }
}

/// A panel as columns.
pub(super) fn store(panel: &[[f64; PANEL]], columns: MatMut<'_, f64>) {
    for (lane, column) in columns.col_iter_mut().enumerate() {
        for (row, value) in panel.iter().zip(column.iter_mut()) {
            *value = row[lane];
        }
    }
}

/// $y \leftarrow y - V V^T y$ for a panel.
fn project_panel(vectors: MatRef<'_, f64>, panel: &mut [[f64; PANEL]]) {
    let rows = panel.len();
    let mut y = MatMut::from_row_major_slice_mut(panel.as_flattened_mut(), rows, PANEL);
    let mut components = Mat::zeros(vectors.ncols(), PANEL);
    faer::linalg::matmul::matmul(
        components.as_mut(),
        Accum::Replace,
        vectors.transpose(),
        y.as_ref(),
        1.0,
        Par::Seq,
    );
    faer::linalg::matmul::matmul(y.rb_mut(), Accum::Add, vectors, components.as_ref(), -1.0, Par::Seq);
}
