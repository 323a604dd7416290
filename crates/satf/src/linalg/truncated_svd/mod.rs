//! Leading singular values and right singular vectors of an operator.
//!
//! For $A$ ($m \times n$) and a rank $r$: the $\sigma_1 \ge \dots \ge \sigma_r$ and the orthonormal columns of
//! $V$ ($n \times r$) with $A^T A V = V \Sigma^2$. Left singular vectors come from [`Transposed`](super::Transposed).
//!
//! # How exact
//!
//! Every returned pair meets
//! $$\lVert A^T A v_i - \sigma_i^2 v_i \rVert \le \varepsilon \, \sigma_1 \sigma_i$$
//! with the $\varepsilon$ of [`Params::tolerance`] ($10^{-6}$ unless told otherwise), measured in double precision on
//! the vectors returned. Divided by $\sigma_i$ this is $\lVert A^T u_i - \sigma_i v_i \rVert \le \varepsilon
//! \lVert A \rVert$ with $u_i = A v_i / \sigma_i$: the triplet is exact for a matrix that differs from $A$ by at
//! most $\varepsilon \lVert A \rVert$. Errors of the singular values are of the order of $\varepsilon^2$ where they
//! are separated. This is an iteration to convergence, not a sketch;
//! [`leading_space`] is the rough alternative.
//!
//! Directions with $\sigma_i \le \varepsilon \sigma_1$ cannot be told from zero under such a perturbation: they are
//! not returned, and [`Info::rank`] is lower than the rank asked for.
//!
//! # Two ways
//!
//! [`Plan::choose`] counts operations and takes the cheaper one.
//!
//! * [`Way::Dense`]: the Gram matrix on the smaller side and its whole eigendecomposition (`gram_side`).
//! * [`Way::Filtered`]: Chebyshev-filtered subspace iteration with locking (`filtered`), for large matrices of
//!   which a part of the spectrum is wanted.

mod block;
mod filter;
mod filtered;
mod gram_side;
mod plan;
mod ritz;
mod sketch;
#[cfg(test)]
mod tests;

use faer::Mat;
use faer::linalg::evd::EvdError;
use serde::Serialize;

pub use plan::{Plan, Way};
pub use sketch::leading_space;

use super::LinearOperator;
use crate::monitor::{Cancelled, Monitor};

/// The options of a truncated SVD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Bound $\varepsilon$ of the residuals (see the module's head), at least $10^{-12}$.
    pub tolerance: f64,
    /// Stages of filter and projection one window of the spectrum may take before it is accepted as it is.
    pub max_stages: usize,
    /// Seed of the random start.
    pub seed: u64,
    /// The way to take; the cheaper one by operation count if `None`.
    pub way: Option<Way>,
}

impl Default for Params {
    fn default() -> Self {
        Params { tolerance: 1e-6, max_stages: 24, seed: 0, way: None }
    }
}

/// What came out of it, beside the vectors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// What was planned.
    pub plan: Plan,
    /// Pairs returned: the rank asked for, or the numerical rank if that is lower.
    pub rank: usize,
    /// Whether every pair meets the tolerance.
    pub converged: bool,
    /// Largest $\lVert A^T A v_i - \sigma_i^2 v_i \rVert / (\sigma_1 \sigma_i)$.
    pub residual: f64,
    /// Stages of filter and projection; 1 for the dense way.
    pub iterations: usize,
    /// Columns multiplied by $A^T A$.
    pub products: u64,
    /// Floating-point operations counted while running.
    pub flops: f64,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// Why there is no truncated SVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such rank.
    #[error("rank {rank} of a {nrows} x {ncols} matrix: expected 1 to the smaller side")]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// Rows of the matrix.
        nrows: usize,
        /// Columns of the matrix.
        ncols: usize,
    },
    /// The matrix holds a value that is not finite, or its square overflows.
    #[error("the matrix holds values that are not finite")]
    NotFinite,
    /// An eigendecomposition of a projected matrix did not converge.
    #[error("an eigendecomposition did not converge")]
    Eigen,
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

impl From<EvdError> for Error {
    fn from(_: EvdError) -> Self {
        Error::Eigen
    }
}

/// Leading singular values and right singular vectors.
#[derive(Clone, Debug)]
pub struct TruncatedSvd {
    /// $\sigma_1 \ge \sigma_2 \ge \dots$
    pub singular_values: Vec<f64>,
    /// $V$: one column a singular value, orthonormal to $10^{-10}$ or better.
    pub right: Mat<f64>,
    /// How it went.
    pub info: Info,
}

/// The `rank` leading singular values and right singular vectors of `operator`.
///
/// The monitor sees one stage of `rank` steps, and can stop the work between passes of the iteration.
pub fn truncated_svd<A: LinearOperator>(
    operator: &A,
    rank: usize,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<TruncatedSvd, Error> {
    let start = std::time::Instant::now();
    let nrows = operator.nrows();
    let ncols = operator.ncols();
    if rank == 0 || rank > nrows.min(ncols) {
        return Err(Error::Rank { rank, nrows, ncols });
    }
    let plan = Plan::choose(nrows, ncols, rank, operator.flops_per_column(), params.way);
    let span = tracing::debug_span!("truncated_svd", nrows, ncols, rank, way = ?plan.way);
    let _entered = span.enter();
    monitor.begin("singular vectors", rank as u64);
    let mut svd = match plan.way {
        Way::Dense => gram_side::solve(operator, rank, params, plan, monitor)?,
        Way::Filtered => filtered::solve(operator, rank, params, plan, monitor)?,
    };
    svd.info.seconds = start.elapsed().as_secs_f64();
    tracing::debug!(
        rank = svd.info.rank,
        stages = svd.info.iterations,
        products = svd.info.products,
        residual = svd.info.residual,
        seconds = svd.info.seconds,
        "singular vectors found"
    );
    Ok(svd)
}
