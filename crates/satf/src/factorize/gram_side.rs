//! Leading left singular vectors of an unfolding $Y$ ($m \times n$) from a Gram matrix on its smaller side.
//!
//! * columns: $G = Y^T Y$ is summed over blocks of rows; with the leading eigenvectors $Z$ of $G$ the answer is
//!   $Y Z L^{-T}$, $L L^T = Z^T G Z$. Rows are formed twice, and never all at once
//! * rows: $G = Y Y^T$ is summed over blocks of columns; its leading eigenvectors are the answer
//!
//! HOOI does not care which basis of the leading subspace it gets. So eigenvectors found in single precision are
//! good enough, provided the basis is orthonormal: that is what $L$, taken in double precision from the Gram matrix
//! itself, sees to. Products within a block run in the precision of the data, sums over blocks in double.

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::FactorizeError;
use super::rows::Rows;
use super::unfolding::Unfolding;
use crate::linalg::{Real, dense};
use crate::monitor::{Monitor, check_cancelled};

/// Rows of a block that is added to a Gram matrix over columns.
pub(super) const GRAM_BLOCK: usize = 2048;

/// Rows of a block that is multiplied by the eigenvectors.
pub(super) const PRODUCT_BLOCK: usize = 256;

/// Rows and columns of a tile of a Gram matrix: one task.
const GRAM_TILE: usize = 256;

/// Orthonormal vectors that span the leading left singular space.
pub(super) struct Leading<T> {
    /// One row per row of the unfolding.
    pub(super) vectors: Rows<T>,
    /// Sum of the squares of the singular values kept.
    pub(super) energy: f64,
    /// Operations counted while running, where they cannot be told beforehand.
    pub(super) operations: Option<f64>,
}

/// By the Gram matrix over columns.
pub(super) fn by_columns<T: Real>(
    y: &Unfolding<'_, T>,
    rank: usize,
    monitor: &dyn Monitor,
) -> Result<Leading<T>, FactorizeError> {
    let (m, n) = (y.nrows(), y.ncols());
    let components = 0..y.weights.width();
    let mut gram = Mat::<f64>::zeros(n, n);
    let mut buffer = vec![T::default(); GRAM_BLOCK.min(m) * n];
    for first in (0..m).step_by(GRAM_BLOCK) {
        check_cancelled(monitor)?;
        let rows = GRAM_BLOCK.min(m - first);
        let block = &mut buffer[..rows * n];
        y.form_in_parallel(first, &components, block);
        add_gram(gram.as_mut(), MatRef::from_row_major_slice(block, rows, n));
    }
    drop(buffer);
    mirror(&mut gram);
    let (z, energy) = orthonormalizing_vectors::<T>(gram, rank)?;
    check_cancelled(monitor)?;
    let mut vectors = Rows::zeros(m, z.ncols());
    let width = vectors.width();
    vectors.values_mut().par_chunks_mut(PRODUCT_BLOCK * width).enumerate().for_each_init(
        || vec![T::default(); PRODUCT_BLOCK * n],
        |buffer, (block, out)| {
            let rows = out.len() / width;
            let formed = &mut buffer[..rows * n];
            y.form(block * PRODUCT_BLOCK, &components, formed);
            let out = MatMut::from_row_major_slice_mut(out, rows, width);
            let formed = MatRef::from_row_major_slice(&*formed, rows, n);
            faer::linalg::matmul::matmul(out, Accum::Replace, formed, z.as_ref(), T::of(1.0), Par::Seq);
        },
    );
    Ok(Leading { vectors, energy, operations: None })
}

/// Columns of $H$ in a block that is added to a Gram matrix over rows.
pub(super) fn components_a_block(other_width: usize) -> usize {
    (GRAM_BLOCK / other_width).max(1)
}

/// By the Gram matrix over rows.
pub(super) fn by_rows<T: Real>(
    y: &Unfolding<'_, T>,
    rank: usize,
    monitor: &dyn Monitor,
) -> Result<Leading<T>, FactorizeError> {
    let m = y.nrows();
    let (s, r) = (y.weights.width(), y.other.width());
    let step = components_a_block(r).min(s);
    let mut gram = Mat::<f64>::zeros(m, m);
    let mut buffer = vec![T::default(); m * step * r];
    for first in (0..s).step_by(step) {
        check_cancelled(monitor)?;
        let components = first..(first + step).min(s);
        let width = components.len() * r;
        let block = &mut buffer[..m * width];
        y.form_in_parallel(0, &components, block);
        add_gram(gram.as_mut(), MatRef::from_row_major_slice(block, m, width).transpose());
    }
    drop(buffer);
    mirror(&mut gram);
    let (values, z) = leading_eigenpairs::<T>(gram.as_ref(), rank)?;
    let mut vectors = Rows::zeros(m, z.ncols());
    vectors.as_mat_mut().copy_from(&z);
    Ok(Leading { vectors, energy: values.iter().sum(), operations: None })
}

/// Adds `y^T y` to the lower triangle.
fn add_gram<T: Real>(gram: MatMut<'_, f64>, y: MatRef<'_, T>) {
    gram.par_col_chunks_mut(GRAM_TILE).enumerate().for_each(|(column, strip)| {
        let first = column * GRAM_TILE;
        let right = y.subcols(first, strip.ncols());
        strip.get_mut(first.., ..).par_row_chunks_mut(GRAM_TILE).enumerate().for_each(|(row, tile)| {
            let left = y.subcols(first + row * GRAM_TILE, tile.nrows()).transpose();
            let mut product = Mat::<T>::zeros(tile.nrows(), tile.ncols());
            if row == 0 {
                triangular::matmul(
                    product.as_mut(),
                    BlockStructure::TriangularLower,
                    Accum::Replace,
                    left,
                    BlockStructure::Rectangular,
                    right,
                    BlockStructure::Rectangular,
                    T::of(1.0),
                    Par::Seq,
                );
            } else {
                faer::linalg::matmul::matmul(
                    product.as_mut(),
                    Accum::Replace,
                    left,
                    right,
                    T::of(1.0),
                    Par::Seq,
                );
            }
            for (sum, product) in tile.col_iter_mut().zip(product.col_iter()) {
                for (sum, product) in sum.iter_mut().zip(product.iter()) {
                    *sum += product.double();
                }
            }
        });
    });
}

/// Copies the lower triangle over the upper one.
pub(super) fn mirror(gram: &mut Mat<f64>) {
    const TILE: usize = 64;
    let n = gram.nrows();
    for rows in (0..n).step_by(TILE) {
        for j in 0..n {
            for i in rows.max(j + 1)..n.min(rows + TILE) {
                gram[(j, i)] = gram[(i, j)];
            }
        }
    }
}

/// Eigenvalues below this share of the largest one are zero but for rounding.
pub(super) fn negligible<T: Real>(n: usize) -> f64 {
    16.0 * T::UNIT_ROUNDOFF * (n as f64).sqrt().max(4.0)
}

/// The leading eigenpairs of a Gram matrix: `rank` of them, or fewer if the rest is numerically zero.
pub(super) fn leading_eigenpairs<T: Real>(
    gram: MatRef<'_, f64>,
    rank: usize,
) -> Result<(Vec<f64>, Mat<T>), FactorizeError> {
    let n = gram.nrows();
    if (0..n).any(|i| !gram[(i, i)].is_finite()) {
        return Err(FactorizeError::NotFinite);
    }
    let (values, vectors) = dense::symmetric_eigen(rounded::<T>(gram).as_ref())?;
    let largest = values.first().map_or(0.0, |value| value.double());
    if largest.is_nan() || largest <= 0.0 {
        return Err(FactorizeError::Zero);
    }
    let limit = largest * negligible::<T>(n);
    let kept = values.iter().take(rank).take_while(|value| value.double() > limit).count();
    let values = values[..kept].iter().map(|value| value.double()).collect();
    Ok((values, vectors.get(.., ..kept).to_owned()))
}

/// $Z$ such that $Y Z$ is orthonormal and spans the leading left singular space, from $G = Y^T Y$; and the energy
/// in that space.
fn orthonormalizing_vectors<T: Real>(gram: Mat<f64>, rank: usize) -> Result<(Mat<T>, f64), FactorizeError> {
    let (values, vectors) = leading_eigenpairs::<T>(gram.as_ref(), rank)?;
    let scale = |j: usize| 1.0 / values[j].sqrt();
    let z = Mat::from_fn(gram.nrows(), values.len(), |i, j| vectors[(i, j)].double() * scale(j));
    let mut image = Mat::zeros(z.nrows(), z.ncols());
    dense::matmul(image.as_mut(), Accum::Replace, gram.as_ref(), z.as_ref(), 1.0);
    drop(gram);
    let mut l = dense::symmetric_product(z.as_ref(), image.as_ref());
    // (Z^T G Z)_jj times the eigenvalue is the Rayleigh quotient of the eigenvector.
    let energy = (0..values.len()).map(|j| l[(j, j)] * values[j]).sum();
    if dense::cholesky(l.as_mut()).is_err() {
        return Ok((rounded::<T>(z.as_ref()), energy));
    }
    let mut transposed = z.transpose().to_owned();
    dense::solve_lower(l.as_ref(), transposed.as_mut());
    Ok((rounded::<T>(transposed.as_ref().transpose()), energy))
}

pub(super) fn rounded<T: Real>(matrix: MatRef<'_, f64>) -> Mat<T> {
    let mut round = Mat::zeros(matrix.nrows(), matrix.ncols());
    round.as_mut().par_col_iter_mut().zip(matrix.par_col_iter()).for_each(|(to, from)| {
        to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = T::of(*from));
    });
    round
}
