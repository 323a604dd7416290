//! Dense kernels: products in fixed tiles, Gram matrices of one triangle, small decompositions.
//!
//! `faer` splits a parallel product by the number of threads it is told. Here every product is instead cut into
//! tiles of [`TILE`] x [`TILE`] results whose size depends on the matrices alone, and each tile is one
//! sequential product: the same bits whatever the pool, and no core waits for another.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{self as llt, LltRegularization};
use faer::linalg::evd::{ComputeEigenvectors, EvdError, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::triangular_solve;
use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef, Par, Spec};
use rayon::prelude::*;

use super::Real;

/// Rows and columns of the results one sequential product computes.
pub const TILE: usize = 512;

/// Columns of a tile where one triangle is computed: what a wide tile would add beyond the diagonal is wasted.
const NARROW: usize = 256;

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
    if dst.nrows() == 0 || dst.ncols() == 0 {
        return;
    }
    // Parts of even size, not whole tiles and a rest: a rest of one row or column would take another kernel, which
    // rounds otherwise, and a column's bits would depend on how many others stand beside it.
    let (rows, columns) = (dst.nrows().div_ceil(TILE), dst.ncols().div_ceil(TILE));
    dst.par_col_partition_mut(columns).zip(rhs.par_col_partition(columns)).for_each(|(dst, rhs)| {
        dst.par_row_partition_mut(rows).zip(lhs.par_row_partition(rows)).for_each(|(dst, lhs)| {
            faer::linalg::matmul::matmul(dst, accum, lhs, rhs, alpha, Par::Seq);
        });
    });
}

/// The same bits on this thread alone, for a product with at most [`TILE`] columns.
///
/// # Panics
/// If the shapes do not fit, or there are more columns.
pub fn matmul_alone<T: Real>(
    mut dst: MatMut<'_, T>,
    accum: Accum,
    lhs: MatRef<'_, T>,
    rhs: MatRef<'_, T>,
    alpha: T,
) {
    assert!(
        dst.nrows() == lhs.nrows() && dst.ncols() == rhs.ncols() && lhs.ncols() == rhs.nrows(),
        "shapes of a product"
    );
    assert!(dst.ncols() <= TILE, "as many columns as one part has");
    // The parts of `matmul`: as many, of even size, the larger ones first.
    let rows = dst.nrows();
    let parts = rows.div_ceil(TILE);
    let mut start = 0;
    for part in 0..parts {
        let len = rows / parts + usize::from(part < rows % parts);
        let (dst, lhs) = (dst.rb_mut().subrows_mut(start, len), lhs.subrows(start, len));
        faer::linalg::matmul::matmul(dst, accum, lhs, rhs, alpha, Par::Seq);
        start += len;
    }
}

/// Rows of the smaller parts of a product of so many: one of as many rows rounds each of them as the whole does.
pub fn part_len(rows: usize) -> usize {
    rows / rows.div_ceil(TILE).max(1)
}

/// Makes one small product on this thread and no other, so that the kernel reserves here and now whatever it wants to have on a
/// thread.
pub fn warm_up() {
    const SIZE: usize = 64;
    let factor = Mat::<f64>::identity(SIZE, SIZE);
    let mut product = Mat::<f64>::zeros(SIZE, SIZE);
    faer::linalg::matmul::matmul(product.as_mut(), Accum::Replace, &factor, &factor, 1.0, Par::Seq);
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

/// Adds `lhs^T rhs` to the tiles of `dst` that touch its lower triangle.
pub fn accumulate_symmetric<T: Real>(dst: MatMut<'_, T>, lhs: MatRef<'_, T>, rhs: MatRef<'_, T>) {
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
    let params = Spec::default();
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
    let params = Spec::default();
    let mut memory = MemBuffer::new(llt::cholesky_in_place_scratch::<T>(n, par, params));
    let stack = MemStack::new(&mut memory);
    llt::cholesky_in_place(matrix.rb_mut(), LltRegularization::default(), par, stack, params)
        .map_err(|_| NotPositiveDefinite)?;
    // A pivot that is not a number passes the comparison inside.
    let finite = (0..n).all(|i| matrix[(i, i)].double().is_finite() && matrix[(i, i)] > T::of(0.0));
    if finite { Ok(()) } else { Err(NotPositiveDefinite) }
}

/// `rhs = L^{-1} rhs` for a lower triangular `l`. Costs $n^2$ operations per column.
pub fn solve_lower<T: Real>(l: MatRef<'_, T>, rhs: MatMut<'_, T>) {
    rhs.par_col_chunks_mut(TILE).for_each(|rhs| {
        triangular_solve::solve_lower_triangular_in_place(l, rhs, Par::Seq);
    });
}

/// `rhs = L^{-T} rhs` for a lower triangular `l`. Costs $n^2$ operations per column.
pub fn solve_lower_transpose<T: Real>(l: MatRef<'_, T>, rhs: MatMut<'_, T>) {
    rhs.par_col_chunks_mut(TILE).for_each(|rhs| {
        triangular_solve::solve_upper_triangular_in_place(l.transpose(), rhs, Par::Seq);
    });
}

/// `quotient` $= Y L^{-T}$ for a lower triangular $L$, as a product with the inverse: its zeros are skipped tile by tile, so
/// that the cost is $m n^2 + n^3$ operations at the rate of [`matmul`].
pub fn divide_by_transpose<T: Real>(quotient: MatMut<'_, T>, y: MatRef<'_, T>, l: MatRef<'_, T>) {
    let n = l.nrows();
    // Upper triangular: rows below a chunk's last column are zero and stay so.
    let mut inverse = Mat::<T>::identity(n, n);
    inverse.as_mut().par_col_chunks_mut(NARROW).enumerate().for_each(|(at, chunk)| {
        let end = at * NARROW + chunk.ncols();
        let upper = l.get(..end, ..end).transpose();
        triangular_solve::solve_upper_triangular_in_place(upper, chunk.get_mut(..end, ..), Par::Seq);
    });
    quotient.par_col_chunks_mut(NARROW).enumerate().for_each(|(at, dst)| {
        let (first, width) = (at * NARROW, dst.ncols());
        let rhs = inverse.get(..first + width, first..first + width);
        let y = y.subcols(0, first + width);
        dst.par_row_chunks_mut(TILE).zip(y.par_row_chunks(TILE)).for_each(|(dst, y)| {
            faer::linalg::matmul::matmul(dst, Accum::Replace, y, rhs, T::of(1.0), Par::Seq);
        });
    });
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
    if !normalize_columns(y.rb_mut()) {
        householder_basis(y);
        return;
    }
    let mut quotient = Mat::zeros(y.nrows(), y.ncols());
    for _ in 0..2 {
        let mut l = gram(y.as_ref());
        if cholesky(l.as_mut()).is_err() || pivots_collapse(l.as_ref()) {
            householder_basis(y);
            return;
        }
        divide_by_transpose(quotient.as_mut(), y.as_ref(), l.as_ref());
        y.copy_from(&quotient);
    }
}

/// Scales every column to length one; `false` if one is zero or not finite, and is left as it is.
pub fn normalize_columns<T: Real>(y: MatMut<'_, T>) -> bool {
    let sound: Vec<bool> = y
        .par_col_iter_mut()
        .map(|column| {
            let norm = column.as_ref().norm_l2();
            let sound = norm > T::of(0.0) && norm.double().is_finite();
            if sound {
                column.iter_mut().for_each(|x| *x /= norm);
            }
            sound
        })
        .collect();
    sound.into_iter().all(|sound| sound)
}

/// Whether the pivots of a Cholesky factor say that a second pass cannot repair the first.
fn pivots_collapse<T: Real>(l: MatRef<'_, T>) -> bool {
    let limit = (64.0 * T::UNIT_ROUNDOFF).sqrt();
    (0..l.nrows()).any(|i| l[(i, i)].double() < limit)
}

fn householder_basis<T: Real>(mut y: MatMut<'_, T>) {
    use faer::linalg::householder;
    use faer::linalg::qr::no_pivoting::factor;
    let (m, n) = y.shape();
    let par = Par::rayon(DECOMPOSITION_TASKS);
    let block = factor::recommended_block_size::<T>(m, n);
    let mut coefficients = Mat::<T>::zeros(block, n);
    let params = Spec::default();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample(m: usize, n: usize, seed: usize) -> Mat<f64> {
        Mat::from_fn(m, n, |i, j| {
            let hash = (i * 7919 + j * 104_729 + seed * 31 + i * j * 17) % 10_007;
            hash as f64 / 10_007.0 - 0.5
        })
    }

    fn distance(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
        (a - b).norm_max()
    }

    fn orthonormality(q: &Mat<f64>) -> f64 {
        distance(&(q.transpose() * q), &Mat::identity(q.ncols(), q.ncols()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn products_match_the_naive_ones(m in 1usize..40, n in 1usize..700, k in 0usize..30, seed in 0usize..99) {
            let (a, b) = (sample(m, k, seed), sample(k, n, seed + 1));
            let naive = Mat::from_fn(m, n, |i, j| (0..k).map(|l| a[(i, l)] * b[(l, j)]).sum::<f64>());
            let mut product = sample(m, n, seed + 2);
            let twice_added = &product + Scale(2.0) * &naive;
            matmul(product.as_mut(), Accum::Add, a.as_ref(), b.as_ref(), 2.0);
            prop_assert!(distance(&product, &twice_added) < 1e-12);
            matmul(product.as_mut(), Accum::Replace, a.as_ref(), b.as_ref(), 1.0);
            prop_assert!(distance(&product, &naive) < 1e-12);
        }

        #[test]
        fn gram_matrices_are_whole(m in 1usize..50, n in 1usize..600, seed in 0usize..99) {
            let y = sample(m, n, seed);
            let naive = Mat::from_fn(n, n, |i, j| (0..m).map(|l| y[(l, i)] * y[(l, j)]).sum::<f64>());
            prop_assert!(distance(&gram(y.as_ref()), &naive) < 1e-12);
        }
    }

    #[test]
    fn eigenpairs_rebuild_the_matrix_largest_first() {
        for n in [0, 1, 2, 37, 200] {
            let s = sample(n, n, 3);
            let symmetric = &s + s.transpose();
            let (values, z) = symmetric_eigen(symmetric.as_ref()).unwrap();
            assert!(values.is_sorted_by(|a, b| a >= b));
            assert!(orthonormality(&z) < 1e-12);
            let scaled = Mat::from_fn(n, n, |i, j| z[(i, j)] * values[j]);
            assert!(distance(&(scaled * z.transpose()), &symmetric) < 1e-11);
        }
    }

    #[test]
    fn cholesky_factors_or_says_no() {
        let y = sample(90, 40, 5);
        let g = gram(y.as_ref());
        let mut l = g.clone();
        cholesky(l.as_mut()).unwrap();
        let l = Mat::from_fn(40, 40, |i, j| if i >= j { l[(i, j)] } else { 0.0 });
        assert!(distance(&(&l * l.transpose()), &g) < 1e-12);
        let mut quotient = Mat::zeros(90, 40);
        divide_by_transpose(quotient.as_mut(), y.as_ref(), l.as_ref());
        assert!(distance(&(quotient * l.transpose()), &y) < 1e-11);
        assert_eq!(cholesky(Mat::<f64>::zeros(3, 3).as_mut()), Err(NotPositiveDefinite));
        assert_eq!(cholesky(Mat::from_fn(2, 2, |_, _| f64::NAN).as_mut()), Err(NotPositiveDefinite));
    }

    #[test]
    fn bases_are_orthonormal_and_hold_the_span() {
        let mut y = sample(300, 60, 7);
        let original = y.clone();
        orthonormalize(y.as_mut());
        assert!(orthonormality(&y) < 1e-13);
        assert!(distance(&(&y * (y.transpose() * &original)), &original) < 1e-12);
    }

    #[test]
    fn bases_of_dependent_columns_are_orthonormal_all_the_same() {
        // Columns 3.. repeat the first three; one column is zero, one is tiny.
        let mut y = Mat::from_fn(50, 9, |i, j| sample(50, 3, 1)[(i, j % 3)]);
        y.as_mut().col_mut(4).fill(0.0);
        for i in 0..50 {
            y[(i, 5)] *= 1e-200;
        }
        let original = y.clone();
        orthonormalize(y.as_mut());
        assert!(orthonormality(&y) < 1e-13);
        assert!(distance(&(&y * (y.transpose() * &original)), &original) < 1e-12);
        let mut single = Mat::from_fn(50, 9, |i, j| original[(i, j)] as f32);
        orthonormalize(single.as_mut());
        let single = Mat::from_fn(50, 9, |i, j| f64::from(single[(i, j)]));
        assert!(orthonormality(&single) < 1e-5);
    }

    #[test]
    fn results_are_the_same_bits_on_any_number_of_threads() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let y = sample(1500, 300, 1);
                let g = gram(y.as_ref());
                let (values, z) = symmetric_eigen(g.as_ref()).unwrap();
                let mut basis = y.clone();
                orthonormalize(basis.as_mut());
                let mut product = Mat::zeros(1500, 300);
                matmul(product.as_mut(), Accum::Replace, y.as_ref(), z.as_ref(), 1.0);
                let mut dependent = Mat::from_fn(600, 80, |i, j| y[(i, j % 50)]);
                orthonormalize(dependent.as_mut());
                let single = Mat::from_fn(1500, 300, |i, j| y[(i, j)] as f32);
                (g, values, z, basis, product, dependent, gram(single.as_ref()))
            })
        };
        let one = run(1);
        for threads in [2, 4] {
            assert!(run(threads) == one, "{threads} threads");
        }
    }
}
