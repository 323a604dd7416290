//! Linear algebra the models stand on: dense kernels over `faer`, sparse products, truncated SVD.
//!
//! Everything here gives the same bits on any number of threads. Products are cut into tiles of fixed size and
//! each tile is one sequential kernel, so the thread pool decides only *where* a tile is computed; the
//! decompositions of small matrices run with a fixed number of tasks ([`dense::DECOMPOSITION_TASKS`]), never
//! with the size of the pool.
//!
//! * [`dense`]: products, Gram matrices, Cholesky, symmetric eigenproblems, orthonormal bases
//! * [`operator`]: the matrix as something to multiply with, a panel of columns at a time
//! * [`sparse`]: compressed sparse matrices, one such operator
//! * [`density`]: how many eigenvalues lie above a value, without computing them
//! * [`mod@truncated_svd`]: leading singular vectors of an operator, exact to a stated tolerance
//! * [`rate`]: how fast this machine multiplies matrices
// Formulas are in KaTeX, which the lint takes for code without backticks.
#![allow(clippy::doc_markdown)]

pub mod dense;
pub mod density;
pub mod operator;
pub mod rate;
mod real;
pub mod sparse;
pub mod truncated_svd;

pub use operator::{LinearOperator, PANEL, Transposed};
pub use rate::{GemmRate, gemm_rate};
pub use real::Real;
pub use sparse::SparseMatrix;
pub use truncated_svd::{TruncatedSvd, truncated_svd};
