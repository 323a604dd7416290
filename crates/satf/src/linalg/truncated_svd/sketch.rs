//! The leading singular vectors, about: subspace iteration from random columns, a few rounds of it.
//!
//! With $q$ rounds, a direction of singular value $\sigma$ is multiplied by $\sigma^{2q}$ against the others, so that what lies well above
//! the rank asked for is found nearly exactly, and towards the rank vectors mix with those of nearly the same
//! singular value. That is enough for whoever only needs a space in which most of the matrix lies, at a fraction of the cost of
//! [`truncated_svd`](super::truncated_svd).

use faer::{Accum, Mat};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::Error;
use super::block::Block;
use super::ritz::{apply_squared, orthonormalize_filtered, ritz_coefficients};
use crate::linalg::LinearOperator;
use crate::linalg::dense::matmul;
use crate::monitor::{Monitor, check_cancelled};

/// Columns beyond the rank, as a share of it and at least: they take the vectors that mix most.
const MORE_COLUMNS: f64 = 0.1;
const LEAST_MORE_COLUMNS: usize = 16;

/// Orthonormal columns, at most `rank` of them, that span about the leading right singular vectors of `operator`, largest
/// singular value first. There are fewer if the matrix has a lower rank.
pub fn leading_space<A: LinearOperator>(
    operator: &A,
    rank: usize,
    rounds: usize,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<Mat<f64>, Error> {
    let (nrows, ncols) = (operator.nrows(), operator.ncols());
    let side = nrows.min(ncols);
    if rank == 0 || rank > side {
        return Err(Error::Rank { rank, nrows, ncols });
    }
    monitor.begin("item space", rounds as u64 + 1);
    let more = ((rank as f64 * MORE_COLUMNS) as usize).max(LEAST_MORE_COLUMNS);
    let mut block = Block::empty(ncols);
    block.replace((rank + more).min(side), |_, fresh| {
        fresh.par_col_iter_mut().enumerate().for_each(|(stream, column)| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(stream as u64);
            column.iter_mut().for_each(|value| *value = random.random::<f64>() - 0.5);
        });
    });
    for _ in 0..rounds {
        check_cancelled(monitor)?;
        block.replace(block.ncols(), |y, image| apply_squared(operator, y, image));
        orthonormalize_filtered(&mut block)?;
        monitor.advance(1);
    }
    check_cancelled(monitor)?;
    let coefficients = ritz_coefficients(operator, &mut block)?;
    let found = rank.min(coefficients.ncols());
    let mut space = Mat::zeros(ncols, found);
    matmul(space.as_mut(), Accum::Replace, block.as_ref(), coefficients.subcols(0, found), 1.0);
    monitor.advance(1);
    Ok(space)
}
