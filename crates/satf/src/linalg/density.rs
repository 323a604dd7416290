//! How many eigenvalues of $A^T A$ lie above a value, without computing them.
//!
//! Stochastic Lanczos quadrature: for a random unit vector $z$ with independent components, the spectral measure
//! $\sum_i (v_i^T z)^2 \delta_{\lambda_i}$ has the mean $\frac1n \sum_i \delta_{\lambda_i}$, and $k$ Lanczos steps
//! give the Gauss quadrature of it: the eigenvalues of the $k \times k$ tridiagonal matrix are the nodes, the
//! squared first components of its eigenvectors the weights. Lost orthogonality only repeats nodes and shares
//! their weight. One panel of probes puts the count above $\lambda$ within a few per cent, which is all a filter
//! needs to know where to cut.

use faer::Mat;
use faer::linalg::evd::EvdError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::dense::symmetric_eigen;
use super::operator::{LinearOperator, PANEL};

/// An estimate of the eigenvalues of $A^T A$, largest first.
#[derive(Clone, Debug)]
pub struct SpectralDensity {
    /// For every probe: `(number of eigenvalues above, value)`, the first ascending, the second descending.
    probes: Vec<Vec<(f64, f64)>>,
}

impl SpectralDensity {
    /// Estimates with one panel of probes and at most `lanczos_steps` products with $A^T A$.
    pub fn estimate<A: LinearOperator>(
        operator: &A,
        lanczos_steps: usize,
        seed: u64,
    ) -> Result<Self, EvdError> {
        let n = operator.ncols();
        let steps = lanczos_steps.min(n);
        let (alphas, betas) = lanczos(operator, steps, seed);
        let probes = (0..PANEL)
            .map(|lane| {
                // A probe that has exhausted its invariant subspace stops early.
                let largest = alphas.iter().map(|a| a[lane].abs()).fold(0.0, f64::max);
                let used = betas.iter().position(|b| b[lane] <= 1e-12 * largest).map_or(steps, |at| at + 1);
                let tridiagonal = Mat::from_fn(used, used, |i, j| match i.abs_diff(j) {
                    0 => alphas[i][lane],
                    1 => betas[i.min(j)][lane],
                    _ => 0.0,
                });
                let (values, vectors) = symmetric_eigen(tridiagonal.as_ref())?;
                let mut above = 0.0;
                Ok(values
                    .iter()
                    .enumerate()
                    .map(|(k, &value)| {
                        let share = vectors[(0, k)].powi(2) * n as f64;
                        above += share;
                        // The middle of the step: half of a node's weight lies above it.
                        (above - share / 2.0, larger(value, 0.0))
                    })
                    .collect())
            })
            .collect::<Result<_, EvdError>>()?;
        Ok(SpectralDensity { probes })
    }

    /// Estimate of the eigenvalue that `count` eigenvalues exceed: the mean over the probes. (Their nodes crowd at
    /// the same places, so a merged quadrature would be a staircase; between its own nodes a probe is smooth.)
    pub fn eigenvalue(&self, count: usize) -> f64 {
        let count = count as f64;
        let of_probe = |steps: &Vec<(f64, f64)>| {
            let at = steps.partition_point(|&(above, _)| above < count);
            match (at.checked_sub(1).and_then(|before| steps.get(before)), steps.get(at)) {
                (Some(&(a, x)), Some(&(b, y))) if b > a => x + (y - x) * (count - a) / (b - a),
                (_, Some(&(_, value))) | (Some(&(_, value)), None) => value,
                (None, None) => 0.0,
            }
        };
        self.probes.iter().map(of_probe).sum::<f64>() / self.probes.len() as f64
    }

    /// Largest node: a lower bound of the largest eigenvalue, in practice sharp.
    pub fn largest(&self) -> f64 {
        self.probes.iter().filter_map(|steps| steps.first()).map(|&(_, value)| value).fold(0.0, larger)
    }
}

/// The larger number; not a number if one of them is not.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Lanczos coefficients of every probe: `alphas[k][lane]`, `betas[k][lane]`.
fn lanczos<A: LinearOperator>(
    operator: &A,
    steps: usize,
    seed: u64,
) -> (Vec<[f64; PANEL]>, Vec<[f64; PANEL]>) {
    let n = operator.ncols();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut current: Vec<[f64; PANEL]> =
        (0..n).map(|_| std::array::from_fn(|_| if random.random::<bool>() { 1.0 } else { -1.0 })).collect();
    let scale = 1.0 / (n as f64).sqrt();
    current.iter_mut().flatten().for_each(|x| *x *= scale);
    let mut previous = vec![[0.0; PANEL]; n];
    let mut image = vec![[0.0; PANEL]; operator.nrows()];
    let mut next = vec![[0.0; PANEL]; n];
    let (mut alphas, mut betas): (Vec<[f64; PANEL]>, Vec<[f64; PANEL]>) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        operator.apply_squared(&current, &mut image, &mut next);
        let beta = betas.last().copied().unwrap_or([0.0; PANEL]);
        let mut alpha = [0.0; PANEL];
        for ((next, current), previous) in next.iter_mut().zip(&current).zip(&previous) {
            for lane in 0..PANEL {
                next[lane] -= beta[lane] * previous[lane];
                alpha[lane] += next[lane] * current[lane];
            }
        }
        let mut square = [0.0; PANEL];
        for (next, current) in next.iter_mut().zip(&current) {
            for lane in 0..PANEL {
                next[lane] -= alpha[lane] * current[lane];
                square[lane] += next[lane] * next[lane];
            }
        }
        let norm = square.map(f64::sqrt);
        for next in &mut next {
            for lane in 0..PANEL {
                next[lane] = if norm[lane] > 0.0 { next[lane] / norm[lane] } else { 0.0 };
            }
        }
        alphas.push(alpha);
        betas.push(norm);
        std::mem::swap(&mut previous, &mut current);
        std::mem::swap(&mut current, &mut next);
    }
    (alphas, betas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::SparseMatrix;

    #[test]
    fn counts_of_a_known_spectrum_are_met_within_a_few_per_cent() {
        let n = 3000;
        let sigma = |j: usize| 1.0 + 9.0 * (1.0 - j as f64 / n as f64).powi(3);
        let matrix = SparseMatrix::from_rows(n, (0..n).map(|j| [(j as u32, sigma(j))]));
        let density = SpectralDensity::estimate(&matrix, 64, 1).unwrap();
        assert!((density.largest() / 100.0 - 1.0).abs() < 0.01);
        for count in [100, 300, 800, 1500, 2500] {
            let estimate = density.eigenvalue(count) / sigma(count).powi(2);
            assert!((estimate - 1.0).abs() < 0.06, "{count}: {estimate}");
        }
    }

    #[test]
    fn a_spectrum_of_one_value_or_none_is_no_trouble() {
        let identity = SparseMatrix::from_rows(20, (0..20).map(|j| [(j, 2.0)]));
        assert!((SpectralDensity::estimate(&identity, 64, 1).unwrap().eigenvalue(10) - 4.0).abs() < 1e-9);
        let zero = SparseMatrix::from_rows(5, std::iter::repeat_n([], 3));
        assert!(SpectralDensity::estimate(&zero, 64, 1).unwrap().eigenvalue(2).abs() < 1e-300);
    }
}
