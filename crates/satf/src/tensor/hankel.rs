//! The two virtual dimensions of local attention.
//!
//! Eq. 16 turns the positional vector of length $K$ of a user and an item into a $K_L \times K_S$ Hankel matrix,
//! $K_L + K_S - 1 = K$: entry $(l, s)$ is that of position $l + s$. Eq. 17 makes these matrices the slices of a
//! tensor of fourth order. Nothing is copied: whatever is contracted with window ($l$) and start ($s$) becomes
//! something over positions $k = l + s$.

use faer::{Mat, MatRef};

/// Contracts both virtual modes: $H_{k,(b,a)} = \sum_{l+s=k} (W_A)_{l,a} (W_S)_{s,b}$, a $K \times r_3 r_4$ matrix whose
/// column $(b, a)$ is $b r_3 + a$. It stands for $W_S \otimes W_A$ of Eq. 22 and 23 at each of the $K$ distinct
/// Hankel matrices.
pub fn position_weights(window: MatRef<'_, f64>, start: MatRef<'_, f64>) -> Mat<f64> {
    let (r3, r4) = (window.ncols(), start.ncols());
    let mut weights = Mat::zeros(window.nrows() + start.nrows() - 1, r3 * r4);
    for (b, start) in start.col_iter().enumerate() {
        for (a, window) in window.col_iter().enumerate() {
            for (l, &w) in window.iter().enumerate() {
                for (s, &v) in start.iter().enumerate() {
                    weights[(l + s, b * r3 + a)] += w * v;
                }
            }
        }
    }
    weights
}

/// Contracts one virtual mode of a $K \times K$ Gram matrix over positions and leaves the other:
/// $\sum_b C_b T C_b^T$ with $(C_b)_{l, l+s} = F_{s,b}$, from Eq. 24 and 25. `factor` ($F$) belongs to the
/// mode that goes; the result has $K - \text{rows}(F) + 1$ rows.
///
/// Costs about $2 r K_L K_S K$ operations.
pub fn contract_gram(gram: MatRef<'_, f64>, factor: MatRef<'_, f64>) -> Mat<f64> {
    let k = gram.nrows();
    let gone = factor.nrows();
    let kept = k + 1 - gone;
    let mut result = Mat::<f64>::zeros(kept, kept);
    // Half of the way: column k' of C_b T.
    let mut half = Mat::<f64>::zeros(k, kept);
    for factor in factor.col_iter() {
        for kept_at in 0..kept {
            for column in 0..k {
                let mut sum = 0.0;
                for (s, &weight) in factor.iter().enumerate() {
                    sum += weight * gram[(kept_at + s, column)];
                }
                half[(column, kept_at)] = sum;
            }
        }
        for j in 0..kept {
            for i in 0..kept {
                let mut sum = 0.0;
                for (s, &weight) in factor.iter().enumerate() {
                    sum += weight * half[(i + s, j)];
                }
                result[(i, j)] += sum;
            }
        }
    }
    // Symmetric but for rounding.
    for j in 0..kept {
        for i in 0..j {
            let mean = f64::midpoint(result[(i, j)], result[(j, i)]);
            result[(i, j)] = mean;
            result[(j, i)] = mean;
        }
    }
    result
}

/// The convolution of two vectors: a weight over positions from one over the window and one over starts, the
/// inner product of Eq. 21 with the Hankel matrix of each position.
pub fn convolve(window: &[f64], start: &[f64]) -> Vec<f64> {
    let mut weights = vec![0.0; window.len() + start.len() - 1];
    for (l, w) in window.iter().enumerate() {
        for (s, v) in start.iter().enumerate() {
            weights[l + s] += w * v;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, columns: usize, seed: usize) -> Mat<f64> {
        Mat::from_fn(rows, columns, |i, j| ((i * 31 + j * 17 + seed * 7) % 23) as f64 / 23.0 - 0.4)
    }

    #[test]
    fn contracting_one_mode_then_the_other_is_contracting_both() {
        let (window, start) = (sample(4, 2, 1), sample(6, 3, 2));
        let root = sample(9, 9, 3);
        let gram = &root * root.transpose();
        let both = position_weights(window.as_ref(), start.as_ref());
        let expected = (0..6).map(|c| (both.col(c).transpose() * &gram * both.col(c)) as f64).sum::<f64>();
        let by_window = contract_gram(gram.as_ref(), start.as_ref());
        let energy: f64 = (0..2).map(|a| window.col(a).transpose() * &by_window * window.col(a)).sum();
        assert!((energy - expected).abs() < 1e-10 * expected.abs());
        let by_start = contract_gram(gram.as_ref(), window.as_ref());
        let energy: f64 = (0..3).map(|b| start.col(b).transpose() * &by_start * start.col(b)).sum();
        assert!((energy - expected).abs() < 1e-10 * expected.abs());
    }

    #[test]
    fn a_convolution_is_one_column_of_the_position_weights() {
        let (window, start) = (sample(3, 1, 4), sample(5, 1, 5));
        let column = position_weights(window.as_ref(), start.as_ref());
        let direct: Vec<f64> = convolve(window.col_as_slice(0), start.col_as_slice(0));
        assert_eq!(direct, column.col_as_slice(0));
    }
}
