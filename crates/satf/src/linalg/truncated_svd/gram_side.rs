//! The dense way: the Gram matrix on the smaller side, all of its eigenvectors.
//!
//! With $n \le m$: $A^T A = V \Sigma^2 V^T$. Otherwise $A A^T = U \Sigma^2 U^T$ and $V = A^T U \Sigma^{-1}$, made
//! orthonormal once more because small $\sigma$ magnify the errors of $U$. All in double precision.

use faer::prelude::*;
use faer::{Mat, MatMut};
use rayon::prelude::*;

use super::filter::{Scratch, load, store};
use super::ritz::residuals;
use super::{Error, Info, Params, Plan, TruncatedSvd};
use crate::linalg::dense::{orthonormalize, symmetric_eigen};
use crate::linalg::operator::{LinearOperator, PANEL, Transposed};
use crate::monitor::{Monitor, check_cancelled};

pub(super) fn solve<A: LinearOperator>(
    operator: &A,
    rank: usize,
    params: &Params,
    plan: Plan,
    monitor: &dyn Monitor,
) -> Result<TruncatedSvd, Error> {
    check_cancelled(monitor)?;
    let side = operator.nrows().min(operator.ncols());
    let right_side = operator.ncols() == side;
    let gram = if right_side { squared(operator) } else { squared(&Transposed(operator)) };
    if gram.col_iter().any(|column| column.iter().any(|x| !x.is_finite())) {
        return Err(Error::NotFinite);
    }
    let (eigenvalues, vectors) = symmetric_eigen(gram.as_ref())?;
    check_cancelled(monitor)?;
    let threshold = eigenvalues[0] * params.tolerance.powi(2).max(side as f64 * f64::EPSILON);
    let rank = eigenvalues[..rank].iter().take_while(|&&value| value > threshold).count();
    let leading = vectors.subcols(0, rank);
    let right = if right_side {
        leading.to_owned()
    } else {
        let mut right = apply_to_columns(&Transposed(operator), leading);
        for (column, value) in right.as_mut().col_iter_mut().zip(&eigenvalues) {
            column.iter_mut().for_each(|x| *x /= value.sqrt());
        }
        orthonormalize(right.as_mut());
        right
    };
    monitor.advance(rank as u64);
    let pairs = residuals(operator, right.as_ref());
    let largest = eigenvalues[0];
    let residual = pairs.iter().map(|&(theta, r)| r / (largest * theta).sqrt()).fold(0.0, f64::max);
    let singular_values = eigenvalues[..rank].iter().map(|value| value.sqrt()).collect();
    let info = Info {
        plan,
        rank,
        converged: residual <= params.tolerance,
        residual,
        iterations: 1,
        products: (side + 2 * rank) as u64,
        flops: 9.0 * (side as f64).powi(3) + (side + 2 * rank) as f64 * operator.flops_per_column(),
        seconds: 0.0,
    };
    Ok(TruncatedSvd { singular_values, right, info })
}

/// $A^T A$, by its products with the unit vectors.
fn squared<A: LinearOperator>(operator: &A) -> Mat<f64> {
    let n = operator.ncols();
    let mut gram = Mat::zeros(n, n);
    gram.as_mut().par_col_chunks_mut(PANEL).enumerate().for_each_init(
        || Scratch::new(operator),
        |scratch, (at, columns): (usize, MatMut<'_, f64>)| {
            scratch.current.fill([0.0; PANEL]);
            for lane in 0..columns.ncols() {
                scratch.current[at * PANEL + lane][lane] = 1.0;
            }
            operator.apply_squared(&scratch.current, &mut scratch.image, &mut scratch.next);
            store(&scratch.next, columns);
        },
    );
    gram
}

/// $A X$ for the columns of $X$.
fn apply_to_columns<A: LinearOperator>(operator: &A, x: MatRef<'_, f64>) -> Mat<f64> {
    let mut product = Mat::zeros(operator.nrows(), x.ncols());
    product.as_mut().par_col_chunks_mut(PANEL).zip(x.par_col_chunks(PANEL)).for_each_init(
        || Scratch::new(operator),
        |scratch, (to, from)| {
            load(from, &mut scratch.current);
            operator.apply(&scratch.current, &mut scratch.image);
            store(&scratch.image, to);
        },
    );
    product
}
