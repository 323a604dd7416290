//! The modes of positions: one with global attention (third order), window and start with local (fourth order).

use faer::{Mat, MatRef};

use super::FactorizeError;
use super::gram_side::leading_eigenpairs;
use crate::linalg::Real;
use crate::tensor::{hankel, last_restored_row};

/// What the positional modes are: attention matrix and ranks.
#[derive(Clone, Debug)]
pub enum PositionModes {
    /// Third order: $\mathcal{X} \times_3 A^T$ of Eq. 10.
    Global {
        /// $A$, $K \times K$.
        attention: Mat<f64>,
        /// $r_3$.
        rank: usize,
    },
    /// Fourth order: $\widetilde{\mathcal{X}} \times_3 A_L^T$ of Eq. 18.
    Local {
        /// $A_L$, $K_L \times K_L$.
        attention: Mat<f64>,
        /// $K$.
        num_positions: usize,
        /// $r_3$.
        attention_rank: usize,
        /// $r_4$.
        sequences_rank: usize,
    },
}

/// The positional factors, with orthonormal columns.
#[derive(Clone, Debug, PartialEq)]
pub enum PositionFactors {
    /// $W$.
    Global {
        /// $K \times r_3$.
        w: Mat<f64>,
    },
    /// $W_L$ and $W_S$.
    Local {
        /// $K_L \times r_3$.
        window: Mat<f64>,
        /// $K_S \times r_4$.
        start: Mat<f64>,
    },
}

impl PositionModes {
    /// $K$.
    pub fn num_positions(&self) -> usize {
        match self {
            PositionModes::Global { attention, .. } => attention.nrows(),
            PositionModes::Local { num_positions, .. } => *num_positions,
        }
    }

    /// Columns of $H$: $r_3$, or $r_3 r_4$.
    pub fn num_weights(&self) -> usize {
        match self {
            PositionModes::Global { rank, .. } => *rank,
            PositionModes::Local { attention_rank, sequences_rank, .. } => attention_rank * sequences_rank,
        }
    }

    /// The position weights $H$: $W_A = A W$, or $W_A = A_L W_L$ and $W_S$ contracted over the virtual modes.
    pub fn weights(&self, factors: &PositionFactors) -> Mat<f64> {
        match (self, factors) {
            (PositionModes::Global { attention, .. }, PositionFactors::Global { w }) => attention * w,
            (PositionModes::Local { attention, .. }, PositionFactors::Local { window, start }) => {
                hankel::position_weights((attention * window).as_ref(), start.as_ref())
            }
            _ => unreachable!("invariant: factors belong to their modes"),
        }
    }

    /// Updates the factors from the Gram matrix over positions; returns the square of the core norm.
    pub(super) fn update<T: Real>(
        &self,
        factors: &mut PositionFactors,
        gram: MatRef<'_, f64>,
    ) -> Result<f64, FactorizeError> {
        match (self, factors) {
            (PositionModes::Global { attention, rank }, PositionFactors::Global { w }) => {
                // Algorithm 1: W <- r3 leading left singular vectors of A^T X(3) (V x U)
                let (energy, vectors) = leading::<T>(congruent(attention, gram).as_ref(), *rank)?;
                *w = vectors;
                Ok(energy)
            }
            (
                PositionModes::Local { attention, attention_rank, sequences_rank, .. },
                PositionFactors::Local { window, start },
            ) => {
                // Algorithm 2: W_L <- r3 leading left singular vectors of A_L^T X(3) (W_S x V x U)
                let over_window = hankel::contract_gram(gram, start.as_ref());
                let attended = congruent(attention, over_window.as_ref());
                *window = leading::<T>(attended.as_ref(), *attention_rank)?.1;
                // W_A <- A_L W_L
                let w_a = attention * &*window;
                // W_S <- r4 leading left singular vectors of X(4) (W_A x V x U)
                let over_start = hankel::contract_gram(gram, w_a.as_ref());
                let (energy, vectors) = leading::<T>(over_start.as_ref(), *sequences_rank)?;
                *start = vectors;
                Ok(energy)
            }
            _ => unreachable!("invariant: factors belong to their modes"),
        }
    }

    /// The weight $g_k$ an item at position $k$ of the *shifted* history has in the score of the next item.
    ///
    /// Folding-in (Eq. 5, 14 and 19) read at the last position only, after the shift $S$ of Eq. 6: $g = A W \hat w_K$
    /// of Eq. 15, or the convolution of $A_L W_L \hat w_{K_L}$ with $W_S w_{K_S}$, which is Eq. 21 for every position.
    pub fn next_item_weights(&self, factors: &PositionFactors) -> Vec<f64> {
        match (self, factors) {
            (PositionModes::Global { attention, .. }, PositionFactors::Global { w }) => {
                let restored = last_restored_row(attention.as_ref(), w.as_ref());
                times((attention * w).as_ref(), &restored)
            }
            (PositionModes::Local { attention, .. }, PositionFactors::Local { window, start }) => {
                let restored = last_restored_row(attention.as_ref(), window.as_ref());
                let over_window = times((attention * window).as_ref(), &restored);
                let last: Vec<f64> = start.row(start.nrows() - 1).iter().copied().collect();
                hankel::convolve(&over_window, &times(start.as_ref(), &last))
            }
            _ => unreachable!("invariant: factors belong to their modes"),
        }
    }

    /// Shapes of the factors: rows and columns of each.
    pub(super) fn shapes(&self) -> Vec<(usize, usize)> {
        match self {
            PositionModes::Global { attention, rank } => vec![(attention.nrows(), *rank)],
            PositionModes::Local { attention, num_positions, attention_rank, sequences_rank } => vec![
                (attention.nrows(), *attention_rank),
                (num_positions + 1 - attention.nrows(), *sequences_rank),
            ],
        }
    }

    /// Columns of the factors as they are.
    pub fn ranks(factors: &PositionFactors) -> Vec<(&'static str, usize)> {
        match factors {
            PositionFactors::Global { w } => vec![("position_rank", w.ncols())],
            PositionFactors::Local { window, start } => {
                vec![("attention_rank", window.ncols()), ("sequences_rank", start.ncols())]
            }
        }
    }

    /// The factors, from one matrix a mode.
    pub(super) fn factors(&self, mut matrices: Vec<Mat<f64>>) -> PositionFactors {
        let last = matrices.pop().expect("invariant: every model has a positional mode");
        match (self, matrices.pop()) {
            (PositionModes::Local { .. }, Some(window)) => PositionFactors::Local { window, start: last },
            _ => PositionFactors::Global { w: last },
        }
    }
}

/// $A^T G A$.
fn congruent(attention: &Mat<f64>, gram: MatRef<'_, f64>) -> Mat<f64> {
    let half = gram * attention;
    attention.transpose() * half
}

fn times(matrix: MatRef<'_, f64>, vector: &[f64]) -> Vec<f64> {
    matrix.row_iter().map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
}

fn leading<T: Real>(gram: MatRef<'_, f64>, rank: usize) -> Result<(f64, Mat<f64>), FactorizeError> {
    let (values, vectors) = leading_eigenpairs::<f64>(gram, rank)?;
    // The Gram matrix carries the roundings of the precision it was summed from.
    let limit = values[0] * T::UNIT_ROUNDOFF;
    let kept = values.iter().take_while(|&&value| value > limit).count();
    Ok((values[..kept].iter().sum(), vectors.get(.., ..kept).to_owned()))
}
