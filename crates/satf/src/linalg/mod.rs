//! Linear algebra the models stand on: dense kernels over `faer`.

pub mod dense;
pub mod rate;
mod real;

pub use rate::{GemmRate, gemm_rate};
pub use real::Real;
