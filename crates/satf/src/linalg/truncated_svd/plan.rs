//! Which way a truncated SVD takes, and what it will cost.

use serde::Serialize;

/// A way to compute a truncated SVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Gram matrix on the smaller side, whole eigendecomposition.
    Dense,
    /// Chebyshev-filtered subspace iteration with locking: for a part of the spectrum. Of nearly all of it, the last vectors
    /// would inherit the errors of those before and might miss the tolerance.
    Filtered,
}

/// The way chosen and its cost by operation count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The way chosen.
    pub way: Way,
    /// Floating-point operations expected, those of memory-bound kernels weighted by how much slower they run.
    pub flops: f64,
    /// Largest amount of memory held at once, in bytes, the operator not counted.
    pub peak_bytes: u64,
}

/// Operations of a symmetric eigendecomposition with all vectors, as a multiple of $n^3$, weighted: half of them are
/// matrix-vector products that run at the speed of memory, several times slower than a product.
const EIGEN_WEIGHT: f64 = 30.0;

/// Sparse products run at a fraction of the rate of dense ones: one of their operations counts as this many.
const GATHER_WEIGHT: f64 = 5.0;

/// Degree of all filters together that a column sees on its way.
const TYPICAL_DEGREE: f64 = 22.0;

impl Plan {
    /// The cheaper way for the `rank` leading right singular vectors of an `nrows` x `ncols` operator whose two
    /// products cost `flops_per_column` together; or the cost of `way`, if one is given.
    ///
    /// With $s$ the smaller side, the dense way costs $s$ products, $30 s^3$ weighted operations for the eigenproblem and
    /// $2 s^2 r$ for the vectors. The filtered way works in windows of the spectrum, the last of which has about
    /// $a = 0.8 r$ active columns and costs two thirds of the whole: three projections against $0.4 r$ locked vectors
    /// ($4 n \cdot 0.4 r \cdot a$ each), an orthonormalisation, two Gram matrices and a rotation ($6 n a^2$), the projected
    /// eigenproblem ($30 a^3$), and 22 products per column.
    pub fn choose(nrows: usize, ncols: usize, rank: usize, flops_per_column: f64, way: Option<Way>) -> Plan {
        let dense = Self::dense(nrows, ncols, rank, flops_per_column);
        let filtered = Self::filtered(nrows, ncols, rank, flops_per_column);
        match way {
            Some(Way::Dense) => dense,
            None if dense.flops <= filtered.flops => dense,
            Some(Way::Filtered) | None => filtered,
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
        let (m, n, r) = (nrows as f64, ncols as f64, rank as f64);
        let active = (0.8 * r + 96.0).min(n);
        let window = 4.8 * n * r * active + 6.0 * n * active * active + EIGEN_WEIGHT * active.powi(3);
        let products = (r + active) * TYPICAL_DEGREE * GATHER_WEIGHT * flops_per_column;
        let panels = 16.0 * (2.0 * n + m) * rayon::current_num_threads() as f64;
        // Locked vectors, the block with its image or its successor, small matrices.
        let bytes = 8.0 * (n * r + 3.0 * n * active + 4.0 * active * active + panels);
        Plan { way: Way::Filtered, flops: 1.5 * window + products, peak_bytes: bytes as u64 }
    }
}
