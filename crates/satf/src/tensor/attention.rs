//! Attention over positions: a lower triangular matrix that lets a position look back.
//!
//! Two items of one history are uncorrelated in the plain tensor. A bilinear form $P C P^T$ instead of $P P^T$
//! (Eq. 7) correlates them, with $C = A A^T$ (Eq. 8) and $A$ lower triangular with constant diagonals (Eq. 9):
//! $a_1$ on the main one, $a_2$ below it, and so on.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

/// How attention falls with the distance $m = 1, 2, \dots$ (1 is the position itself).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// $a_m = m^{-f}$.
    #[default]
    Power,
    /// $a_m = e^{-f (m-1)}$.
    Exponential,
}

/// What the rows or columns of $A$ are scaled to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalization {
    /// Left as they are.
    #[default]
    None,
    /// Every row sums to one.
    Rows,
    /// Every column sums to one.
    Columns,
}

/// The weights of Eq. 9 and what becomes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// How weights fall.
    pub decay: Decay,
    /// How fast: $f$.
    pub factor: f64,
    /// Number of diagonals; all if `None`.
    pub span: Option<usize>,
    /// Weights below this become 0, but for $a_1$.
    pub cutoff: f64,
    /// Scaling of rows or columns.
    pub normalization: Normalization,
    /// Weights $a_1, a_2, \dots$ given one by one, instead of a decay; those not given are 0.
    pub weights: Option<Vec<f64>>,
}

impl Attention {
    /// The paper's: $a_m = m^{-f}$, nothing else.
    pub fn power(factor: f64) -> Self {
        Attention {
            decay: Decay::Power,
            factor,
            span: None,
            cutoff: 0.0,
            normalization: Normalization::None,
            weights: None,
        }
    }

    /// The weights $a_1, \dots, a_n$.
    pub fn diagonal_weights(&self, n: usize) -> Vec<f64> {
        let span = self.span.unwrap_or(n);
        (1..=n)
            .map(|m| {
                let weight = match (&self.weights, self.decay) {
                    (Some(weights), _) => weights.get(m - 1).copied().unwrap_or(0.0),
                    (None, Decay::Power) => (m as f64).powf(-self.factor),
                    (None, Decay::Exponential) => (-self.factor * (m - 1) as f64).exp(),
                };
                if m > 1 && (m > span || weight.abs() < self.cutoff) { 0.0 } else { weight }
            })
            .collect()
    }

    /// The matrix $A$ of Eq. 9, $n \times n$; scaled rows or columns if asked for.
    pub fn matrix(&self, n: usize) -> Mat<f64> {
        let weights = self.diagonal_weights(n);
        let mut matrix = Mat::from_fn(n, n, |i, j| if i >= j { weights[i - j] } else { 0.0 });
        for i in 0..n {
            // A prefix of the weights is all a row (up to the diagonal) or a column (down from it) holds.
            let (sum, normalized): (f64, bool) = match self.normalization {
                Normalization::None => (1.0, false),
                Normalization::Rows => (weights[..=i].iter().sum(), true),
                Normalization::Columns => (weights[..n - i].iter().sum(), true),
            };
            if normalized {
                for j in 0..n {
                    let at = if self.normalization == Normalization::Rows { (i, j) } else { (j, i) };
                    matrix[at] /= sum;
                }
            }
        }
        matrix
    }
}

/// The last row of $\widehat W = A^{-T} W$ (Eq. 12), which satisfies $\widehat W^T C \widehat W = I$ (Eq. 13).
///
/// $A^T$ is upper triangular, so back substitution begins with the last row and the last row alone is wanted:
/// it is the last row of $W$ over the last diagonal entry of $A$.
pub fn last_restored_row(attention: MatRef<'_, f64>, w: MatRef<'_, f64>) -> Vec<f64> {
    let last = attention.nrows() - 1;
    w.row(last).iter().map(|value| value / attention[(last, last)]).collect()
}

#[cfg(test)]
mod tests {
    use faer::linalg::solvers::Solve;

    use super::*;

    #[test]
    fn diagonals_are_constant_and_nothing_looks_ahead() {
        let a = Attention::power(1.0).matrix(4);
        for i in 0..4 {
            for j in 0..4 {
                let expected = if i >= j { 1.0 / (i - j + 1) as f64 } else { 0.0 };
                assert!((a[(i, j)] - expected).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn span_cutoff_and_exponential_decay_shape_the_weights() {
        let attention = Attention { decay: Decay::Exponential, span: Some(3), ..Attention::power(0.5) };
        let weights = attention.diagonal_weights(5);
        assert_eq!(weights, [1.0, (-0.5f64).exp(), (-1.0f64).exp(), 0.0, 0.0]);
        let attention = Attention { cutoff: 0.3, ..Attention::power(1.0) };
        assert_eq!(attention.diagonal_weights(5), [1.0, 0.5, 1.0 / 3.0, 0.0, 0.0]);
        let attention = Attention { weights: Some(vec![2.0, 0.5]), ..Attention::power(1.0) };
        assert_eq!(attention.diagonal_weights(4), [2.0, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn stochastic_rows_or_columns_sum_to_one() {
        for normalization in [Normalization::Rows, Normalization::Columns] {
            let a = Attention { normalization, ..Attention::power(0.7) }.matrix(6);
            for i in 0..6 {
                let sum: f64 = (0..6)
                    .map(|j| if normalization == Normalization::Rows { a[(i, j)] } else { a[(j, i)] })
                    .sum();
                assert!((sum - 1.0).abs() < 1e-14);
            }
        }
    }

    #[test]
    fn the_last_restored_row_is_that_of_the_whole_solve() {
        let w = Mat::from_fn(7, 3, |i, j| ((i * 5 + j * 3) % 7) as f64 - 2.5);
        for normalization in [Normalization::None, Normalization::Rows, Normalization::Columns] {
            let a = Attention { normalization, ..Attention::power(0.4) }.matrix(7);
            let whole = a.transpose().partial_piv_lu().solve(&w);
            for (at, value) in last_restored_row(a.as_ref(), w.as_ref()).into_iter().enumerate() {
                assert!((value - whole[(6, at)]).abs() < 1e-12);
            }
        }
    }
}
