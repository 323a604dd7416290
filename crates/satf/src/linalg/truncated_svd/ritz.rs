//! Rayleigh–Ritz: the best approximate eigenpairs of $A^T A$ within the span of a block.
//!
//! For a block $Y$ of independent columns, with $G = Y^T Y = L L^T$ and $H = Y^T A^T A Y$, the eigenpairs
//! $(Z, \Theta)$ of $L^{-1} H L^{-T}$ give the Ritz vectors $Y L^{-T} Z$ and values $\Theta$. A filtered block is
//! ill-conditioned, and $G$ squares that: both small matrices are formed and reduced in double precision from whatever
//! precision the block has, so that a condition number of $10^6$ still leaves them accurate.

use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::Error;
use super::filter::{Scratch, load, store};
use crate::linalg::dense::{cholesky, divide_by_transpose, gram, matmul, orthonormalize, solve_lower, solve_lower_transpose, symmetric_eigen, symmetric_product};
use crate::linalg::operator::{LinearOperator, PANEL};
use crate::linalg::Real;

/// Projected eigenproblems up to this size are solved in double precision whatever the block's.
const SMALL: usize = 512;

/// Condition number of a block up to which its Gram matrices may be formed in its own precision.
const MILD: f64 = 100.0;

/// Replaces the columns of `block` by Ritz vectors, largest Ritz value first, and returns the Ritz values.
pub(super) fn rayleigh_ritz<T: Real, A>(operator: &A, block: &mut Mat<T>) -> Result<Vec<f64>, Error>
where
    A: LinearOperator<T> + LinearOperator<f64>,
{
    normalize_columns(block.as_mut());
    let t0 = std::time::Instant::now();
    let g = gram(block.as_ref());
    if (0..g.nrows()).any(|i| !g[(i, i)].double().is_finite()) {
        return Err(Error::NotFinite);
    }
    // Well-conditioned after an orthonormalisation or two: the block's own precision will do.
    let mut l = doubled(g.as_ref());
    drop(g);
    let mild = block.ncols() > SMALL && cholesky(l.as_mut()).is_ok() && condition(l.as_ref()) < MILD;
    let t1 = std::time::Instant::now();
    let mut h = if mild {
        let w = apply_squared(operator, block.as_ref());
        doubled(symmetric_product(block.as_ref(), w.as_ref()).as_ref())
    } else {
        let mut y = doubled(block.as_ref());
        l = gram(y.as_ref());
        if cholesky(l.as_mut()).is_err() {
            // Dependent columns: any orthonormal basis that holds their span will do.
            orthonormalize(y.as_mut());
            *block = rounded(y.as_ref());
            l = Mat::identity(block.ncols(), block.ncols());
        }
        let w = apply_squared(operator, y.as_ref());
        symmetric_product(y.as_ref(), w.as_ref())
    };
    let t2 = std::time::Instant::now();
    // L^{-1} H L^{-T}, one side after the other: the matrix between is transposed by symmetry of H.
    solve_lower(l.as_ref(), h.as_mut());
    let mut h = h.transpose().to_owned();
    solve_lower(l.as_ref(), h.as_mut());
    let t3 = std::time::Instant::now();
    let (values, mut z) = if h.nrows() <= SMALL {
        symmetric_eigen(h.as_ref())?
    } else {
        let (values, z) = symmetric_eigen(rounded::<T>(h.as_ref()).as_ref())?;
        (values.into_iter().map(Real::double).collect(), doubled(z.as_ref()))
    };
    let t4 = std::time::Instant::now();
    solve_lower_transpose(l.as_ref(), z.as_mut());
    let mut vectors = Mat::zeros(block.nrows(), block.ncols());
    matmul(vectors.as_mut(), Accum::Replace, block.as_ref(), rounded::<T>(z.as_ref()).as_ref(), T::of(1.0));
    *block = vectors;
    tracing::trace!("   rr mild {mild} cond {:.1e} G {:.3} H {:.3} whiten {:.3} eig {:.3} rot {:.3}", condition(l.as_ref()), (t1-t0).as_secs_f64(), (t2-t1).as_secs_f64(), (t3-t2).as_secs_f64(), (t4-t3).as_secs_f64(), t4.elapsed().as_secs_f64());
    Ok(values)
}

/// Estimate of a Cholesky factor's condition number: the ratio of its extreme pivots.
fn condition(l: MatRef<'_, f64>) -> f64 {
    let pivots = (0..l.nrows()).map(|i| l[(i, i)]);
    pivots.clone().fold(0.0, f64::max) / pivots.fold(f64::INFINITY, f64::min)
}

/// Makes the columns of a filtered block of about the given condition number orthonormal, to rounding times that number,
/// each staying in the span of itself and those before it.
pub(super) fn orthonormalize_filtered<T: Real>(block: &mut Mat<T>, condition: f64) -> Result<(), Error> {
    normalize_columns(block.as_mut());
    if condition < 40.0 * MILD {
        let mut l = gram(block.as_ref());
        if cholesky(l.as_mut()).is_ok() {
            *block = divide_by_transpose(block.as_ref(), l.as_ref());
            return Ok(());
        }
    }
    let mut y = doubled(block.as_ref());
    let mut l = gram(y.as_ref());
    if (0..l.nrows()).any(|i| !l[(i, i)].is_finite()) {
        return Err(Error::NotFinite);
    }
    if cholesky(l.as_mut()).is_ok() {
        *block = divide_by_transpose(block.as_ref(), rounded::<T>(l.as_ref()).as_ref());
    } else {
        orthonormalize(y.as_mut());
        *block = rounded(y.as_ref());
    }
    Ok(())
}

/// $A^T A Y$.
fn apply_squared<T: Real, A: LinearOperator<T>>(operator: &A, y: MatRef<'_, T>) -> Mat<T> {
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
pub(super) fn residuals<T: Real, A: LinearOperator<f64>>(operator: &A, block: MatRef<'_, T>) -> Vec<(f64, f64)> {
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
    let theta: [f64; PANEL] = std::array::from_fn(|lane| if yy[lane] > 0.0 { yw[lane] / yy[lane] } else { 0.0 });
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
