//! Rayleigh–Ritz: the best approximate eigenpairs of $A^T A$ within the span of a block.
//!
//! For a block $Y$ of independent columns, with $G = Y^T Y = L L^T$ and $H = Y^T A^T A Y$, the eigenpairs
//! $(Z, \Theta)$ of $L^{-1} H L^{-T}$ give the Ritz vectors $Y L^{-T} Z$ and values $\Theta$. A filtered block is
//! ill-conditioned, and $G$ squares that: a condition number of $10^6$ still leaves both small matrices accurate.

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::Error;
use super::block::Block;
use super::filter::{Scratch, load, store};
use crate::linalg::dense::{
    cholesky, divide_by_transpose, gram, matmul, normalize_columns, solve_lower, solve_lower_transpose,
    symmetric_eigen, symmetric_product,
};
use crate::linalg::operator::{LinearOperator, PANEL};

/// A pivot of the Cholesky factor of a Gram matrix of unit columns is a column's distance from the span of those before
/// it. Squared, it must stay above rounding for the factor to mean anything;
const LEAST_PIVOT: f64 = 1e-7;

/// and Ritz vectors are orthonormal to rounding divided by its square.
const LEAST_PIVOT_OF_RITZ: f64 = 1e-3;

/// The coefficients of the Ritz vectors in the columns of `block`, largest Ritz value first: column $k$ of $L^{-T} Z$ gives
/// the $k$-th Ritz vector. The columns of the block are scaled, or replaced by fewer if dependent.
pub(super) fn ritz_coefficients<A: LinearOperator>(
    operator: &A,
    block: &mut Block,
) -> Result<Mat<f64>, Error> {
    let l = factor_gram(block, LEAST_PIVOT_OF_RITZ)?;
    let (y, mut w) = block.with_room(block.ncols());
    apply_squared(operator, y, w.rb_mut());
    let mut h = symmetric_product(y, w.as_ref());
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
pub(super) fn orthonormalize_filtered(block: &mut Block) -> Result<(), Error> {
    let l = factor_gram(block, LEAST_PIVOT)?;
    block.replace(l.ncols(), |y, quotient| divide_by_transpose(quotient, y, l.as_ref()));
    Ok(())
}

/// The Cholesky factor of the Gram matrix of `block`, with pivots of at least `least`. The columns are scaled to length
/// one before, and made better conditioned as often as it takes.
fn factor_gram(block: &mut Block, least: f64) -> Result<Mat<f64>, Error> {
    loop {
        normalize_columns(block.as_mut());
        let mut l = gram(block.as_ref());
        if (0..l.nrows()).any(|i| !l[(i, i)].is_finite()) {
            return Err(Error::NotFinite);
        }
        let smallest = match cholesky(l.as_mut()) {
            Ok(()) => (0..l.nrows()).map(|i| l[(i, i)]).fold(1.0, f64::min),
            Err(_) => 0.0,
        };
        if smallest >= least {
            return Ok(l);
        }
        if smallest >= LEAST_PIVOT {
            block.replace(l.ncols(), |y, quotient| divide_by_transpose(quotient, y, l.as_ref()));
        } else {
            let basis = independent_part(block.as_ref())?;
            block.replace(basis.ncols(), |y, part| matmul(part, Accum::Replace, y, basis.as_ref(), 1.0));
        }
    }
}

/// For columns $Y$ that are dependent to working precision, the coefficients $Q E^{-1/2}$ of fewer: a basis of what they span
/// for certain, with nothing of what lies outside, which may be locked already. With $Y^T Y = Q E Q^T$, the columns of
/// $Y Q E^{-1/2}$ are orthonormal.
fn independent_part(y: MatRef<'_, f64>) -> Result<Mat<f64>, Error> {
    let (eigenvalues, mut basis) = symmetric_eigen(gram(y).as_ref())?;
    let kept = eigenvalues.iter().take_while(|&&value| value > 4.0 * LEAST_PIVOT.powi(2)).count();
    for (column, value) in basis.as_mut().col_iter_mut().zip(&eigenvalues[..kept]) {
        column.iter_mut().for_each(|x| *x /= value.sqrt());
    }
    basis.truncate(y.ncols(), kept);
    Ok(basis)
}

/// $W = A^T A Y$.
pub(super) fn apply_squared<A: LinearOperator>(operator: &A, y: MatRef<'_, f64>, w: MatMut<'_, f64>) {
    w.par_col_chunks_mut(PANEL).zip(y.par_col_chunks(PANEL)).for_each_init(
        || Scratch::new(operator),
        |scratch, (w, y)| {
            load(y, &mut scratch.current);
            operator.apply_squared(&scratch.current, &mut scratch.image, &mut scratch.next);
            store(&scratch.next, w);
        },
    );
}

/// For every column $y$: the Rayleigh quotient $\theta$ and $\lVert A^T A y - \theta y \rVert / \lVert y \rVert$, in double
/// precision.
pub(super) fn residuals<A: LinearOperator>(operator: &A, block: MatRef<'_, f64>) -> Vec<(f64, f64)> {
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
