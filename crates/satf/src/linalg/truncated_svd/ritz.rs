//! Rayleigh–Ritz: the best approximate eigenpairs of $A^T A$ within the span of a block.
//!
//! For a block $Y$ of independent columns, with $G = Y^T Y = L L^T$ and $H = Y^T A^T A Y$, the eigenpairs
//! $(Z, \Theta)$ of $L^{-1} H L^{-T}$ give the Ritz vectors $Y L^{-T} Z$ and values $\Theta$. A filtered block is
//! ill-conditioned, and $G$ squares that: both small matrices are formed and reduced in double precision from whatever
//! precision the block has, so that a condition number of $10^6$ still leaves them accurate.

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::Error;
use super::filter::{Scratch, load, store};
use crate::linalg::Real;
use crate::linalg::dense::{
    cholesky, matmul, orthonormalize, solve_lower, solve_lower_transpose, symmetric_eigen, symmetric_product,
};
use crate::linalg::operator::{LinearOperator, PANEL};

/// Projected eigenproblems up to this size are solved in double precision whatever the block's.
const SMALL: usize = 512;

/// Replaces the columns of `block` by Ritz vectors, largest Ritz value first, and returns the Ritz values.
pub(super) fn rayleigh_ritz<T: Real, A: LinearOperator<f64>>(
    operator: &A,
    block: &mut Mat<T>,
) -> Result<Vec<f64>, Error> {
    normalize_columns(block.as_mut());
    let y = doubled(block.as_ref());
    let mut l = symmetric_product(y.as_ref(), y.as_ref());
    if (0..l.nrows()).any(|i| !l[(i, i)].is_finite()) {
        return Err(Error::NotFinite);
    }
    let y = if cholesky(l.as_mut()).is_ok() {
        y
    } else {
        // Dependent columns: any orthonormal basis that holds their span will do.
        let mut basis = y;
        orthonormalize(basis.as_mut());
        *block = Mat::from_fn(basis.nrows(), basis.ncols(), |i, j| T::of(basis[(i, j)]));
        l = Mat::identity(block.ncols(), block.ncols());
        basis
    };
    let w = apply_squared(operator, y.as_ref());
    let mut h = symmetric_product(y.as_ref(), w.as_ref());
    drop((y, w));
    // L^{-1} H L^{-T}, one side after the other: the matrix between is transposed by symmetry of H.
    solve_lower(l.as_ref(), h.as_mut());
    let mut h = h.transpose().to_owned();
    solve_lower(l.as_ref(), h.as_mut());
    let (values, mut z) = if h.nrows() <= SMALL {
        symmetric_eigen(h.as_ref())?
    } else {
        let (values, z) = symmetric_eigen(rounded::<T>(h.as_ref()).as_ref())?;
        (values.into_iter().map(Real::double).collect(), doubled(z.as_ref()))
    };
    solve_lower_transpose(l.as_ref(), z.as_mut());
    let mut vectors = Mat::zeros(block.nrows(), block.ncols());
    matmul(vectors.as_mut(), Accum::Replace, block.as_ref(), rounded::<T>(z.as_ref()).as_ref(), T::of(1.0));
    *block = vectors;
    Ok(values)
}

/// $A^T A Y$ in double precision.
fn apply_squared<A: LinearOperator<f64>>(operator: &A, y: MatRef<'_, f64>) -> Mat<f64> {
    let mut w = Mat::zeros(y.nrows(), y.ncols());
    w.as_mut().par_col_chunks_mut(PANEL).zip(y.par_col_chunks(PANEL)).for_each_init(
        || Scratch::new(operator),
        |scratch, (w, y)| {
            load(y, &mut scratch.current);
            operator.apply(&scratch.current, &mut scratch.image);
            operator.apply_transpose(&scratch.image, &mut scratch.next);
            store(&scratch.next, w);
        },
    );
    w
}

/// For every column $y$: the Rayleigh quotient $\theta$ and $\lVert A^T A y - \theta y \rVert / \lVert y \rVert$, in double
/// precision.
pub(super) fn residuals<T: Real, A: LinearOperator<f64>>(
    operator: &A,
    block: MatRef<'_, T>,
) -> Vec<(f64, f64)> {
    let panels: Vec<Vec<(f64, f64)>> = block
        .par_col_chunks(PANEL)
        .map_init(
            || Scratch::new(operator),
            |scratch, columns| {
                load(columns, &mut scratch.current);
                operator.apply(&scratch.current, &mut scratch.image);
                operator.apply_transpose(&scratch.image, &mut scratch.next);
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

/// Scales every column to length one; a column of zeros stays.
pub(super) fn normalize_columns<T: Real>(block: MatMut<'_, T>) {
    block.par_col_iter_mut().for_each(|column| {
        let norm = column.as_ref().iter().map(|x| x.double() * x.double()).sum::<f64>().sqrt();
        if norm > 0.0 {
            let scale = 1.0 / norm;
            column.iter_mut().for_each(|x| *x = T::of(x.double() * scale));
        }
    });
}

pub(super) fn doubled<T: Real>(matrix: MatRef<'_, T>) -> Mat<f64> {
    let mut double = Mat::zeros(matrix.nrows(), matrix.ncols());
    double.as_mut().par_col_iter_mut().zip(matrix.par_col_iter()).for_each(|(to, from)| {
        to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = from.double());
    });
    double
}

pub(super) fn rounded<T: Real>(matrix: MatRef<'_, f64>) -> Mat<T> {
    let mut round = Mat::zeros(matrix.nrows(), matrix.ncols());
    round.as_mut().par_col_iter_mut().zip(matrix.par_col_iter()).for_each(|(to, from)| {
        to.iter_mut().zip(from.iter()).for_each(|(to, from)| *to = T::of(*from));
    });
    round
}
