//! Dense kernels: products in fixed tiles, Gram matrices of one triangle, small decompositions.
//!
//! `faer` splits a parallel product by the number of threads it is told. Here every product is instead cut into
//! tiles of [`TILE`] x [`TILE`] results whose size depends on the matrices alone, and each tile is one
//! sequential product: the same bits whatever the pool, and no core waits for another.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::evd::{ComputeEigenvectors, EvdError, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::triangular_solve;
use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::Real;

/// Rows and columns of the results one sequential product computes.
pub const TILE: usize = 512;

/// Tasks `faer` may split a decomposition into: fixed, because its roundings follow the split.
pub const DECOMPOSITION_TASKS: usize = 2;

/// `dst = alpha lhs rhs`, or `dst += alpha lhs rhs` with [`Accum::Add`]. Costs $2mnk$ operations.
///
/// # Panics
/// If the shapes do not fit.
pub fn matmul<T: Real>(dst: MatMut<'_, T>, accum: Accum, lhs: MatRef<'_, T>, rhs: MatRef<'_, T>, alpha: T) {
    assert!(
        dst.nrows() == lhs.nrows() && dst.ncols() == rhs.ncols() && lhs.ncols() == rhs.nrows(),
        "shapes of a product"
    );
    // Parts of even size, not whole tiles and a rest: a rest of one row or column would take another kernel, which
    // rounds otherwise, and a column's bits would depend on how many others stand beside it.
    let (rows, columns) = (dst.nrows().div_ceil(TILE), dst.ncols().div_ceil(TILE));
    dst.par_col_partition_mut(columns).zip(rhs.par_col_partition(columns)).for_each(|(dst, rhs)| {
        dst.par_row_partition_mut(rows).zip(lhs.par_row_partition(rows)).for_each(|(dst, lhs)| {
            faer::linalg::matmul::matmul(dst, accum, lhs, rhs, alpha, Par::Seq);
        });
    });
}

/// `lhs^T rhs`, of which only the tiles that touch the lower triangle are computed; the upper triangle mirrors
/// the lower one. For products known to be symmetric. Costs about $k n^2$ operations, half of [`matmul`].
///
/// # Panics
/// If the shapes differ.
pub fn symmetric_product<T: Real>(lhs: MatRef<'_, T>, rhs: MatRef<'_, T>) -> Mat<T> {
    assert!(lhs.nrows() == rhs.nrows() && lhs.ncols() == rhs.ncols(), "shapes of a symmetric product");
    let mut product = Mat::zeros(lhs.ncols(), lhs.ncols());
    accumulate_symmetric(product.as_mut(), lhs, rhs);
    mirror_lower(product.as_mut());
    product
}

/// The Gram matrix $Y^T Y$. Costs about $m n^2$ operations for an $m \times n$ matrix.
pub fn gram<T: Real>(y: MatRef<'_, T>) -> Mat<T> {
    symmetric_product(y, y)
}

/// A Gram matrix $\sum_b Y_b^T Y_b$ that grows by blocks of rows, for matrices never held whole.
#[derive(Clone, Debug)]
pub struct GramAccumulator<T> {
    lower: Mat<T>,
}

impl<T: Real> GramAccumulator<T> {
    /// Zero, for blocks of `ncols` columns.
    pub fn new(ncols: usize) -> Self {
        GramAccumulator { lower: Mat::zeros(ncols, ncols) }
    }

    /// Adds `block^T block`.
    ///
    /// # Panics
    /// If the block has another number of columns.
    pub fn add(&mut self, block: MatRef<'_, T>) {
        assert!(block.ncols() == self.lower.ncols(), "columns of a block");
        accumulate_symmetric(self.lower.as_mut(), block, block);
    }

    /// The whole matrix, both triangles.
    pub fn finish(mut self) -> Mat<T> {
        mirror_lower(self.lower.as_mut());
        self.lower
    }
}

/// Adds `lhs^T rhs` to the tiles of `dst` that touch its lower triangle.
fn accumulate_symmetric<T: Real>(dst: MatMut<'_, T>, lhs: MatRef<'_, T>, rhs: MatRef<'_, T>) {
    // Narrow tiles here: what a tile across the diagonal computes above it is wasted.
    const NARROW: usize = 256;
    dst.par_col_chunks_mut(NARROW).enumerate().for_each(|(at, dst)| {
        let first = at * NARROW;
        let rhs = rhs.subcols(first, dst.ncols());
        let below = dst.get_mut(first.., ..);
        below.par_row_chunks_mut(TILE).enumerate().for_each(|(tile, dst)| {
            let lhs = lhs.subcols(first + tile * TILE, dst.nrows());
            faer::linalg::matmul::matmul(dst, Accum::Add, lhs.transpose(), rhs, T::of(1.0), Par::Seq);
        });
    });
}

/// Copies the lower triangle over the upper one.
fn mirror_lower<T: Real>(mut matrix: MatMut<'_, T>) {
    const BLOCK: usize = 64;
    let n = matrix.nrows();
    for first in (0..n).step_by(BLOCK) {
        for j in 0..n {
            for i in first.max(j + 1)..n.min(first + BLOCK) {
                matrix[(j, i)] = matrix[(i, j)];
            }
        }
    }
}

/// Eigenvalues in descending order and the eigenvectors, column by column, of a symmetric matrix (its lower
/// triangle is read). Costs about $9n^3$ operations, a good part of them bound by memory.
pub fn symmetric_eigen<T: Real>(matrix: MatRef<'_, T>) -> Result<(Vec<T>, Mat<T>), EvdError> {
    let n = matrix.nrows();
    if n == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    let par = Par::rayon(DECOMPOSITION_TASKS);
    let params = Default::default();
    let mut values = faer::diag::Diag::<T>::zeros(n);
    let mut vectors = Mat::<T>::zeros(n, n);
    let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, par, params));
    let stack = MemStack::new(&mut memory);
    self_adjoint_evd(matrix, values.as_mut(), Some(vectors.as_mut()), par, stack, params)?;
    // Ascending from the decomposition; every user here wants the leading ones first.
    let descending = (0..n).rev().map(|i| values.column_vector()[i]).collect();
    let vectors = Mat::from_fn(n, n, |i, j| vectors[(i, n - 1 - j)]);
    Ok((descending, vectors))
}

/// The matrix is not positive definite to working precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the matrix is not positive definite to working precision")]
pub struct NotPositiveDefinite;

/// The lower triangular $L$ with $L L^T = G$, in the place of a symmetric matrix $G$ (its lower triangle is
/// read; the upper one keeps its content). Costs $n^3 / 3$ operations.
pub fn cholesky<T: Real>(mut matrix: MatMut<'_, T>) -> Result<(), NotPositiveDefinite> {
    let n = matrix.nrows();
    let par = Par::rayon(DECOMPOSITION_TASKS);
    let params = Default::default();
    let mut memory = MemBuffer::new(llt::cholesky_in_place_scratch::<T>(n, par, params));
    let stack = MemStack::new(&mut memory);
    llt::cholesky_in_place(matrix.rb_mut(), Default::default(), par, stack, params)
        .map_err(|_| NotPositiveDefinite)?;
    // A pivot that is not a number passes the comparison inside.
    let finite = (0..n).all(|i| matrix[(i, i)].double().is_finite() && matrix[(i, i)] > T::of(0.0));
    if finite { Ok(()) } else { Err(NotPositiveDefinite) }
}

/// `rhs = L^{-1} rhs` for a lower triangular `l`. Costs $n^2$ operations a column.
pub fn solve_lower<T: Real>(l: MatRef<'_, T>, rhs: MatMut<'_, T>) {
    rhs.par_col_chunks_mut(TILE).for_each(|rhs| {
        triangular_solve::solve_lower_triangular_in_place(l, rhs, Par::Seq);
    });
}

/// `rhs = L^{-T} rhs` for a lower triangular `l`. Costs $n^2$ operations a column.
pub fn solve_lower_transpose<T: Real>(l: MatRef<'_, T>, rhs: MatMut<'_, T>) {
    rhs.par_col_chunks_mut(TILE).for_each(|rhs| {
        triangular_solve::solve_upper_triangular_in_place(l.transpose(), rhs, Par::Seq);
    });
}

/// $Y L^{-T}$ for a lower triangular $L$, as a product with the inverse: its zeros are skipped tile by tile, so that
/// the cost is $m n^2 + n^3$ operations at the rate of [`matmul`].
pub fn divide_by_transpose<T: Real>(y: MatRef<'_, T>, l: MatRef<'_, T>) -> Mat<T> {
    let n = l.nrows();
    let mut inverse = Mat::<T>::identity(n, n);
    solve_lower_transpose(l, inverse.as_mut());
    let mut quotient = Mat::zeros(y.nrows(), n);
    quotient.as_mut().par_col_chunks_mut(TILE).enumerate().for_each(|(at, dst)| {
        let (first, width) = (at * TILE, dst.ncols());
        // Upper triangular: rows below the tile's last column are zero.
        let rhs = inverse.get(..first + width, first..first + width);
        let y = y.subcols(0, first + width);
        dst.par_row_chunks_mut(TILE).zip(y.par_row_chunks(TILE)).for_each(|(dst, y)| {
            faer::linalg::matmul::matmul(dst, Accum::Replace, y, rhs, T::of(1.0), Par::Seq);
        });
    });
    quotient
}

/// Replaces the columns of `y` (at most as many as rows) by an orthonormal basis of their span.
///
/// Cholesky QR, twice: $Y \leftarrow Y L^{-T}$ with $L L^T = Y^T Y$ is orthonormal to $u \kappa^2$, and the second
/// pass brings that to rounding. Costs $4mn^2$ operations. If the columns are dependent to working precision the
/// Cholesky decomposition fails and Householder reflections take over: the basis then spans more than the
/// columns did, but is orthonormal all the same.
///
/// # Panics
/// If there are more columns than rows.
pub fn orthonormalize<T: Real>(mut y: MatMut<'_, T>) {
    assert!(y.ncols() <= y.nrows(), "an orthonormal basis of {} columns in {} rows", y.ncols(), y.nrows());
    for _ in 0..2 {
        let mut l = gram(y.as_ref());
        let (largest, smallest) = (0..l.nrows())
            .fold((0.0, f64::INFINITY), |(a, b): (f64, f64), i| (a.max(l[(i, i)].double()), b.min(l[(i, i)].double())));
        // Beyond this the first pass would not leave the second one anything to repair.
        let too_uneven = smallest < 64.0 * T::UNIT_ROUNDOFF * largest;
        if too_uneven || cholesky(l.as_mut()).is_err() || pivots_collapse(l.as_ref()) {
            householder_basis(y);
            return;
        }
        let quotient = divide_by_transpose(y.as_ref(), l.as_ref());
        y.copy_from(&quotient);
    }
}

/// Whether the pivots of a Cholesky factor say that a second pass cannot repair the first.
fn pivots_collapse<T: Real>(l: MatRef<'_, T>) -> bool {
    let limit = (64.0 * T::UNIT_ROUNDOFF).sqrt();
    let largest = (0..l.nrows()).map(|i| l[(i, i)].double()).fold(0.0, f64::max);
    (0..l.nrows()).any(|i| l[(i, i)].double() < limit * largest)
}

fn householder_basis<T: Real>(mut y: MatMut<'_, T>) {
    use faer::linalg::householder;
    use faer::linalg::qr::no_pivoting::factor;
    let (m, n) = y.shape();
    let par = Par::rayon(DECOMPOSITION_TASKS);
    let block = factor::recommended_block_size::<T>(m, n);
    let mut coefficients = Mat::<T>::zeros(block, n);
    let params = Default::default();
    let mut memory = MemBuffer::new(factor::qr_in_place_scratch::<T>(m, n, block, par, params));
    factor::qr_in_place(y.rb_mut(), coefficients.as_mut(), par, MemStack::new(&mut memory), params);
    let mut basis = Mat::<T>::identity(m, n);
    let mut memory = MemBuffer::new(
        householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, n),
    );
    householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        y.as_ref(),
        coefficients.as_ref(),
        faer::Conj::No,
        basis.as_mut(),
        par,
        MemStack::new(&mut memory),
    );
    y.copy_from(&basis);
}
