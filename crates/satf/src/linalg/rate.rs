//! How fast this machine multiplies matrices.

use std::time::Instant;

use faer::{Accum, Mat};
use serde::Serialize;

use super::{Real, dense};

/// Measured rate of matrix products, in units of 10^9 floating-point operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GemmRate {
    /// In single precision.
    pub single: f64,
    /// In double precision.
    pub double: f64,
}

/// Measures the rate of matrix products on the current thread pool, in well under a second: the best of three
/// products of two 1024 x 1024 matrices, after one that warms up.
pub fn gemm_rate() -> GemmRate {
    GemmRate { single: measure::<f32>(), double: measure::<f64>() }
}

fn measure<T: Real>() -> f64 {
    const SIZE: usize = 1024;
    let factor = Mat::from_fn(SIZE, SIZE, |i, j| T::of(((i * 31 + j * 17) % 101) as f64 / 101.0 - 0.5));
    let mut product = Mat::zeros(SIZE, SIZE);
    let seconds = (0..4)
        .map(|_| {
            let start = Instant::now();
            dense::matmul(product.as_mut(), Accum::Replace, factor.as_ref(), factor.as_ref(), T::of(1.0));
            start.elapsed().as_secs_f64()
        })
        .skip(1)
        .fold(f64::INFINITY, f64::min);
    2.0 * (SIZE * SIZE * SIZE) as f64 / seconds / 1e9
}
