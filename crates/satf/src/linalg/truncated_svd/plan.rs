//! Which way a truncated SVD takes, and what it will cost.

use serde::Serialize;

/// A way to compute a truncated SVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Gram matrix on the smaller side, whole eigendecomposition.
    Dense,
    /// Chebyshev-filtered subspace iteration with locking.
    Filtered,
}

/// The way chosen and its cost by operation count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The way chosen.
    pub way: Way,
    /// Floating-point operations expected.
    pub flops: f64,
    /// Largest amount of memory held at once, in bytes, the operator not counted.
    pub peak_bytes: u64,
}

/// Operations of a symmetric eigendecomposition with all vectors, as a multiple of $n^3$, weighted: half of them are
/// matrix-vector products that run at the speed of memory, several times slower than a product.
const EIGEN_WEIGHT: f64 = 40.0;

/// Sparse products run at a fraction of the rate of dense ones: one of their operations counts as this many.
const GATHER_WEIGHT: f64 = 4.0;

/// Degree of all filters together that a typical column sees on its way.
const TYPICAL_DEGREE: f64 = 30.0;

/// Times a typical window is projected.
const TYPICAL_STAGES: f64 = 2.5;

impl Plan {
    /// The cheaper way for the `rank` leading right singular vectors of an `nrows` x `ncols` operator whose two
    /// products cost `flops_per_column` together; or the cost of `way`, if one is given.
    ///
    /// With $s$ the smaller side, the dense way costs $s$ products, $40 s^3$ weighted operations for the
    /// eigenproblem and $2 s^2 r$ for the vectors. The filtered way works in windows of the spectrum that each span
    /// about a third of the rank, with $a \approx 0.65 r$ active columns in the widest: per stage a projection against
    /// the locked vectors ($4 n r a$), two Gram matrices, a rotation and the projected eigenproblem; and 30 products a
    /// column.
    pub fn choose(nrows: usize, ncols: usize, rank: usize, flops_per_column: f64, way: Option<Way>) -> Plan {
        let dense = Self::dense(nrows, ncols, rank, flops_per_column);
        let filtered = Self::filtered(nrows, ncols, rank, flops_per_column);
        let cheaper = if dense.flops <= filtered.flops { Way::Dense } else { Way::Filtered };
        match way.unwrap_or(cheaper) {
            Way::Dense => dense,
            Way::Filtered => filtered,
        }
    }

    fn dense(nrows: usize, ncols: usize, rank: usize, flops_per_column: f64) -> Plan {
        let (m, n, r) = (nrows as f64, ncols as f64, rank as f64);
        let side = m.min(n);
        let flops =
            side * GATHER_WEIGHT * flops_per_column + EIGEN_WEIGHT * side.powi(3) + 2.0 * side * side * r;
        let bytes = 8.0 * (4.0 * side * side + n * r);
        Plan { way: Way::Dense, flops, peak_bytes: bytes as u64 }
    }

    fn filtered(nrows: usize, ncols: usize, rank: usize, flops_per_column: f64) -> Plan {
        let (n, r) = (ncols as f64, rank as f64);
        let active = (0.65 * r + 64.0).min(n);
        // Windows shrink geometrically towards the top of the spectrum: all of them cost 1.5 times the widest.
        let stage = 4.0 * n * r * active + 6.0 * n * active * active + (EIGEN_WEIGHT + 4.0) * active.powi(3);
        let products = (r + active) * TYPICAL_DEGREE * GATHER_WEIGHT * flops_per_column;
        let flops = 1.5 * TYPICAL_STAGES * stage + products;
        let size = 8.0;
        let panels = 32.0 * (3.0 * n + nrows as f64) * size * rayon::current_num_threads() as f64;
        let bytes = size * n * (r + 2.0 * active) + 16.0 * n * active + 32.0 * active * active + panels;
        Plan { way: Way::Filtered, flops, peak_bytes: bytes as u64 }
    }
}
