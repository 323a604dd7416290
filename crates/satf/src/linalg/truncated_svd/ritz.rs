//! Rayleigh–Ritz: the best approximate eigenpairs of $A^T A$ within the span of a block.
//!
//! For a block $Y$ of independent columns, with $G = Y^T Y = L L^T$ and $H = Y^T A^T A Y$, the eigenpairs
//! $(Z, \Theta)$ of $L^{-1} H L^{-T}$ give the Ritz vectors $Y L^{-T} Z$ and values $\Theta$. A filtered block is
//! ill-conditioned, and $G$ squares that: a condition number of $10^6$ still leaves both small matrices accurate.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::Error;
use super::filter::{Scratch, load, store};
use crate::linalg::dense::{
    cholesky, divide_by_transpose, gram, normalize_columns, orthonormalize, solve_lower,
    solve_lower_transpose, symmetric_eigen, symmetric_product,
};
use crate::linalg::operator::{LinearOperator, PANEL};

/// The coefficients of the Ritz vectors in the columns of `block`, largest Ritz value first: column $k$ of $L^{-T} Z$ gives
/// the $k$-th Ritz vector. The columns of the block are scaled, or replaced by others of the same span if dependent.
pub(super) fn ritz_coefficients<A: LinearOperator<f64>>(
    operator: &A,
    block: &mut Mat<f64>,
) -> Result<Mat<f64>, Error> {
    let l = factor_gram(block)?;
    let w = apply_squared(operator, block.as_ref());
    let mut h = symmetric_product(block.as_ref(), w.as_ref());
    drop(w);
    // L^{-1} H L^{-T}, one side after the other: the matrix between is transposed by symmetry of H.
    solve_lower(l.as_ref(), h.as_mut());
    let mut h = h.transpose().to_owned();
    solve_lower(l.as_ref(), h.as_mut());
    let (_, mut z) = symmetric_eigen(h.as_ref())?;
    solve_lower_transpose(l.as_ref(), z.as_mut());
    Ok(z)
}

/// Makes the columns of a filtered block orthonormal, as far as their condition allows, each staying in the span of itself
/// and those before it.
pub(super) fn orthonormalize_filtered(block: &mut Mat<f64>) -> Result<(), Error> {
    let l = factor_gram(block)?;
    *block = divide_by_transpose(block.as_ref(), l.as_ref());
    Ok(())
}

/// The Cholesky factor of the Gram matrix of `block`, whose columns are scaled to length one before. If they are
/// dependent to working precision they are replaced by an orthonormal basis that holds their span.
fn factor_gram(block: &mut Mat<f64>) -> Result<Mat<f64>, Error> {
    normalize_columns(block.as_mut());
    let mut l = gram(block.as_ref());
    if (0..l.nrows()).any(|i| !l[(i, i)].is_finite()) {
        return Err(Error::NotFinite);
    }
    if cholesky(l.as_mut()).is_err() {
        orthonormalize(block.as_mut());
        l = Mat::identity(block.ncols(), block.ncols());
    }
    Ok(l)
}

/// $A^T A Y$.
fn apply_squared<A: LinearOperator<f64>>(operator: &A, y: MatRef<'_, f64>) -> Mat<f64> {
    let mut w = Mat::zeros(y.nrows(), y.ncols());
    w.as_mut().par_col_chunks_mut(PANEL).zip(y.par_col_chunks(PANEL)).for_each_init(
        || Scratch::new(operator),
        |scratch, (w, y)| {
            load(y, &mut scratch.current);
            operator.apply_squared(&scratch.current, &mut scratch.image, &mut scratch.next);
            store(&scratch.next, w);
        },
    );
    w
}

/// For every column $y$: the Rayleigh quotient $\theta$ and $\lVert A^T A y - \theta y \rVert / \lVert y \rVert$, in double
/// precision.
pub(super) fn residuals<A: LinearOperator<f64>>(operator: &A, block: MatRef<'_, f64>) -> Vec<(f64, f64)> {
    let panels: Vec<Vec<(f64, f64)>> = block
        .par_col_chunks(PANEL)
        .map_init(
            || Scratch::new(operator),
            |scratch, columns| {
                load(columns, &mut scratch.current);
                operator.apply_squared(&scratch.current, &mut scratch.image, &mut scratch.next);
                panel_residuals(&scratch.current, &scratch.next, columns.ncols())
            },
        )
        .collect();
    panels.into_iter().flatten().collect()
}

fn panel_residuals(y: &[[f64; PANEL]], w: &[[f64; PANEL]], used: usize) -> Vec<(f64, f64)> {
    let (mut yy, mut yw) = ([0.0; PANEL], [0.0; PANEL]);
    for (y, w) in y.iter().zip(w) {
        for lane in 0..PANEL {
            yy[lane] += y[lane] * y[lane];
            yw[lane] += y[lane] * w[lane];
        }
    }
    let theta: [f64; PANEL] =
        std::array::from_fn(|lane| if yy[lane] > 0.0 { yw[lane] / yy[lane] } else { 0.0 });
    let mut square = [0.0; PANEL];
    for (y, w) in y.iter().zip(w) {
        for lane in 0..PANEL {
            let difference = w[lane] - theta[lane] * y[lane];
            square[lane] += difference * difference;
        }
    }
    (0..used).map(|lane| (theta[lane], (square[lane] / yy[lane].max(f64::MIN_POSITIVE)).sqrt())).collect()
}
