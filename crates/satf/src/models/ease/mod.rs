//! EASE: the best linear item-to-item model without self-weights, in closed form (Steck, "Embarrassingly Shallow
//! Autoencoders for Sparse Data", WWW 2019).
//!
//! With `X` the binary matrix of users and items, `B` minimises `|X - X B|^2 + lambda |B|^2` under `diag B = 0`:
//!
//! ```text
//! P = (X^T X + lambda I)^-1        B[i,j] = -P[i,j] / P[j,j]  for i != j,   B[j,j] = 0
//! score_j = sum over the distinct items i of the history  of  B[i,j]
//! ```
//!
//! The order of a history and repeats in it play no part.
//!
//! `B` is dense, and so is `P`: memory grows with the square of the catalogue and time with its cube, whatever the
//! log. That is the nature of the model. Fitting keeps the lower triangle of `P` in double precision (`4 n^2` bytes,
//! inverted in place) beside `B` in single precision (`4 n^2` bytes): about `8 n^2` bytes at the peak, `4 n^2`
//! afterwards. For 12,101 items that is 1.2 GB and 0.6 GB.

mod tiles;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::tiles::SymmetricTiles;
use super::array::Array;
use super::batch::{check_history, score_each};
use super::incidence::Incidence;
use super::tensors::{Shares, StoredTensors, Tensor, TensorError};
use super::workspace::{Scores, Workspace};
use super::{Fault, Learner, ModelError, Recommender, Similarities, TrainingMonitor, UserData};
use crate::interactions::ItemIndex;
use crate::monitor::{Monitor, check_cancelled};
use crate::numbers::Count;
use crate::prepare::{Histories, History};

/// The model `ease`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EaseConfig {
    /// `lambda`, the weight of `|B|^2`: above 0, at most 1e12 (default 100). Sparse logs want less, dense ones more.
    pub regularization: f64,
    /// Most bytes fitting may take at its peak, about `8 n^2` for `n` items (default: 8 GiB).
    pub memory_bytes: Option<u64>,
}

/// What [`EaseConfig::memory_bytes`] means if it is not given.
const DEFAULT_MEMORY_BYTES: u64 = 8 << 30;

impl Default for EaseConfig {
    fn default() -> Self {
        EaseConfig { regularization: 100.0, memory_bytes: None }
    }
}

impl EaseConfig {
    /// The model's name.
    pub const NAME: &'static str = "ease";

    /// An error if fitting `num_items` items would take more memory than allowed.
    fn check_memory(&self, num_items: usize) -> Result<(), ModelError> {
        let items = num_items as u64;
        let weights = items.saturating_mul(items).saturating_mul(size_of::<f32>() as u64);
        let needed = SymmetricTiles::bytes(items).saturating_add(weights);
        let allowed = self.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        if needed <= allowed {
            return Ok(());
        }
        Err(ModelError::Memory {
            model: Self::NAME,
            what: format!(
                "the dense weights between {} items and the inverse they come from",
                Count::of(num_items)
            ),
            needed,
            allowed,
            hint: "raise memory_bytes, drop rare items, or use a sparse model such as transitions",
        })
    }
}

impl Learner for EaseConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn never_quantized(&self) -> Option<&'static str> {
        Some(super::recommender::NO_ITEM_FACTORS)
    }

    fn check(&self) -> Result<(), ModelError> {
        let mut faults = Vec::new();
        if !(self.regularization > 0.0 && self.regularization <= 1e12) {
            faults.push(Fault::new("regularization", self.regularization, "above 0, at most 1e12"));
        }
        ModelError::from_faults(Self::NAME, faults)
    }

    fn check_on(&self, histories: &Histories) -> Result<(), ModelError> {
        self.check()?;
        self.check_memory(histories.num_items())
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        Ok(Box::new(Ease::fit(self, histories, monitor)?))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        let num_items = tensors.num_items();
        let weights = tensors.array("weights", &[Some(num_items), Some(num_items)])?;
        Ok(Box::new(Ease { num_items, weights }))
    }
}

/// The fitted weights `B`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ease {
    num_items: usize,
    /// `B` row after row.
    weights: Array<f32>,
}

impl Ease {
    /// Solves for `B`.
    pub fn fit(
        config: &EaseConfig,
        histories: &Histories,
        monitor: &dyn Monitor,
    ) -> Result<Self, ModelError> {
        config.check_on(histories)?;
        let num_items = histories.num_items();
        check_cancelled(monitor)?;

        let mut inverse = regularized_gram(histories, config.regularization);
        monitor.begin("inverting the item matrix", inverse.num_blocks() as u64);
        for k in 0..inverse.num_blocks() {
            check_cancelled(monitor)?;
            inverse.sweep(k).map_err(|_| not_invertible(config))?;
            monitor.advance(1);
        }

        // The sign of -P cancels in the quotient.
        let diagonal: Vec<f64> = (0..num_items).map(|j| inverse.diagonal(j)).collect();
        if diagonal.iter().any(|value| !(value.is_finite() && *value < 0.0)) {
            return Err(not_invertible(config));
        }
        let mut weights = vec![0f32; num_items * num_items];
        weights.par_chunks_mut(num_items.max(1)).enumerate().for_each_init(
            || vec![0.0; num_items],
            |row, (i, weights)| {
                inverse.copy_row(i, row);
                for ((weight, value), pivot) in weights.iter_mut().zip(row.iter()).zip(&diagonal) {
                    *weight = (-value / pivot) as f32;
                }
                weights[i] = 0.0;
            },
        );
        Ok(Ease { num_items, weights: weights.into() })
    }

    /// Row `B[item, ..]`: what `item` in a history adds to every score.
    ///
    /// # Panics
    /// If the item is outside the catalogue.
    pub fn weights_of(&self, item: ItemIndex) -> &[f32] {
        &self.weights[item.get() * self.num_items..][..self.num_items]
    }
}

impl Ease {
    /// The scores of one history.
    fn score_into(&self, history: History<'_>, row: &mut [f32]) {
        let mut distinct = history.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        row.fill(0.0);
        // Four rows of B a pass: the scores are read and written a quarter as often.
        let mut fours = distinct.chunks_exact(4);
        for four in &mut fours {
            let [a, b, c, d] = [0, 1, 2, 3].map(|at| self.weights_of(four[at]));
            for ((((score, a), b), c), d) in row.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *score += (a + b) + (c + d);
            }
        }
        for &item in fours.remainder() {
            for (score, weight) in row.iter_mut().zip(self.weights_of(item)) {
                *score += weight;
            }
        }
    }
}

fn not_invertible(config: &EaseConfig) -> ModelError {
    ModelError::Numerics {
        model: EaseConfig::NAME,
        reason: format!(
            "the item matrix cannot be inverted with regularization = {}: raise it",
            config.regularization
        ),
    }
}

/// `X^T X + lambda I`. Entries are counts of users, exact in double precision in any order.
fn regularized_gram(histories: &Histories, lambda: f64) -> SymmetricTiles {
    let items = Incidence::from_histories(histories.iter());
    let users = items.transposed(histories.num_items(), usize::MAX);
    SymmetricTiles::from_lower_rows(histories.num_items(), |a, row| {
        for &user in users.row(a) {
            for &b in items.row(user as usize).iter().take_while(|&&b| b as usize <= a) {
                row[b as usize] += 1.0;
            }
        }
        row[a] += lambda;
    })
}

impl Recommender for Ease {
    fn num_items(&self) -> usize {
        self.num_items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        score_each(
            self.num_items,
            histories,
            scores,
            || (),
            |(), history, row| self.score_into(history, row),
        );
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items, history);
        let scores = workspace.dense(self.num_items);
        self.score_into(history, scores);
        Scores::Dense(scores)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.weights)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![Tensor::new("weights", &[self.num_items, self.num_items], &*self.weights)]
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        Shares::of_distinct(&history, |past| f64::from(self.weights_of(past)[item.get()]))
    }

    /// The partial correlation `-P[i,j] / sqrt(P[i,i] P[j,j])`: `B[i,j]` and `B[j,i]` have its sign, and their product is its
    /// square. One row and one column of `B` tell it.
    fn similarities(&self, item: ItemIndex) -> Option<Similarities> {
        let there = self.weights_of(item);
        let back = self.weights.iter().skip(item.get()).step_by(self.num_items.max(1));
        let correlation = |(&there, &back): (&f32, &f32)| {
            let square = f64::from(there) * f64::from(back);
            (square.max(0.0).sqrt() * f64::from(there).signum()) as f32
        };
        let values = there.iter().zip(back).map(correlation).collect();
        Some(Similarities {
            measure: "partial correlation of the users who have them, all other items being equal",
            values,
        })
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Dense = Vec<Vec<f64>>;

    fn binary(num_items: usize, sequences: &[Vec<u32>]) -> Dense {
        let row = |items: &Vec<u32>| {
            (0..num_items as u32).map(|item| f64::from(u8::from(items.contains(&item)))).collect()
        };
        sequences.iter().map(row).collect()
    }

    fn regularized_gram_of(x: &Dense, num_items: usize, lambda: f64) -> Dense {
        let entry = |a: usize, b: usize| {
            x.iter().map(|row| row[a] * row[b]).sum::<f64>() + if a == b { lambda } else { 0.0 }
        };
        (0..num_items).map(|a| (0..num_items).map(|b| entry(a, b)).collect()).collect()
    }

    /// Gauss-Jordan on `[A | I]`.
    fn inverse_of(matrix: &Dense) -> Dense {
        let n = matrix.len();
        let mut wide: Dense = matrix
            .iter()
            .enumerate()
            .map(|(a, row)| row.iter().copied().chain((0..n).map(|b| f64::from(u8::from(a == b)))).collect())
            .collect();
        for k in 0..n {
            let pivot_row: Vec<f64> = wide[k].iter().map(|value| value / wide[k][k]).collect();
            for (a, row) in wide.iter_mut().enumerate() {
                let factor = row[k];
                for (value, pivot) in row.iter_mut().zip(&pivot_row) {
                    *value = if a == k { *pivot } else { *value - factor * pivot };
                }
            }
        }
        wide.into_iter().map(|row| row[n..].to_vec()).collect()
    }

    /// `|X - X B|^2 + lambda |B|^2`.
    fn objective(x: &Dense, b: &Dense, lambda: f64) -> f64 {
        let n = b.len();
        let misfit: f64 = x
            .iter()
            .flat_map(|row| (0..n).map(move |j| row[j] - (0..n).map(|i| row[i] * b[i][j]).sum::<f64>()))
            .map(|error| error * error)
            .sum();
        misfit + lambda * b.iter().flatten().map(|weight| weight * weight).sum::<f64>()
    }

    fn logs() -> impl Strategy<Value = Vec<Vec<u32>>> {
        prop::collection::vec(prop::collection::vec(0u32..8, 0..9), 1..14)
    }

    fn fit(sequences: &[Vec<u32>], regularization: f64) -> Ease {
        let config = EaseConfig { regularization, ..EaseConfig::default() };
        Ease::fit(&config, &Histories::from_sequences(8, sequences), &()).unwrap()
    }

    proptest! {
        #[test]
        fn weights_and_scores_equal_the_dense_formula(
            sequences in logs(),
            history in prop::collection::vec(0u32..8, 0..12),
            lambda in 0.1..50.0,
        ) {
            let model = fit(&sequences, lambda);
            let inverse = inverse_of(&regularized_gram_of(&binary(8, &sequences), 8, lambda));
            let weight = |i: usize, j: usize| if i == j { 0.0 } else { -inverse[i][j] / inverse[j][j] };
            for i in 0..8 {
                for (j, &found) in model.weights_of(ItemIndex(i as u32)).iter().enumerate() {
                    prop_assert!((f64::from(found) - weight(i, j)).abs() < 1e-6);
                }
            }
            let items: Vec<ItemIndex> = history.iter().copied().map(ItemIndex).collect();
            let mut scores = [f32::NAN; 8];
            model.score_batch(&[History::new(&items)], &mut scores);
            for (j, &score) in scores.iter().enumerate() {
                let expected: f64 =
                    (0..8).filter(|&i| history.contains(&(i as u32))).map(|i| weight(i, j)).sum();
                prop_assert!((f64::from(score) - expected).abs() < 1e-5);
            }
        }

        #[test]
        fn no_other_weights_without_a_diagonal_do_better(
            sequences in logs(),
            lambda in 0.1..50.0,
            changes in prop::collection::vec((0usize..8, 0usize..8, -0.1..0.1), 1..20),
        ) {
            let model = fit(&sequences, lambda);
            let x = binary(8, &sequences);
            let b: Dense = (0..8)
                .map(|i| model.weights_of(ItemIndex(i)).iter().map(|&weight| f64::from(weight)).collect())
                .collect();
            prop_assert!((0..8).all(|j| b[j][j] == 0.0));
            let best = objective(&x, &b, lambda);
            let mut other = b.clone();
            for (i, j, change) in changes {
                if i != j {
                    other[i][j] += change;
                }
                prop_assert!(objective(&x, &other, lambda) >= best * (1.0 - 1e-12));
            }
            // Where a minimum is, the gradient vanishes: (X^T X + lambda I) B - X^T X off the diagonal.
            let gram = regularized_gram_of(&x, 8, lambda);
            for (i, gram_row) in gram.iter().enumerate() {
                for j in (0..8).filter(|&j| j != i) {
                    let product: f64 = gram_row.iter().zip(&b).map(|(value, weights)| value * weights[j]).sum();
                    let gradient = product - gram_row[j];
                    prop_assert!(gradient.abs() < 1e-5, "gradient {gradient} at ({i}, {j})");
                }
            }
        }
    }

    #[test]
    fn too_little_memory_is_said_before_anything_is_allocated() {
        let config = EaseConfig { memory_bytes: Some(1000), ..EaseConfig::default() };
        let error = Ease::fit(&config, &Histories::from_sequences(40, &[vec![1, 2]]), &()).unwrap_err();
        assert!(matches!(error, ModelError::Memory { allowed: 1000, .. }), "{error}");
        let error = EaseConfig::default().check_memory(usize::MAX).unwrap_err();
        assert!(matches!(error, ModelError::Memory { .. }));
        assert!(EaseConfig::default().check_memory(30_000).is_ok());
    }

    #[test]
    fn hopeless_regularization_is_an_error() {
        let config = EaseConfig { regularization: 1e-300, ..EaseConfig::default() };
        let histories = Histories::from_sequences(3, &vec![vec![0, 1]; 3]);
        let error = Ease::fit(&config, &histories, &()).unwrap_err();
        assert!(matches!(error, ModelError::Numerics { .. }), "{error}");
    }

    #[test]
    fn faults_name_field_value_and_range() {
        for (value, shown) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            let error = EaseConfig { regularization: value, ..EaseConfig::default() }.check().unwrap_err();
            let expected = format!("regularization = {shown}: expected above 0, at most 1e12");
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }

    #[test]
    fn a_configuration_reads_as_it_is_written() {
        let config = EaseConfig { regularization: 3.0, memory_bytes: Some(1 << 20) };
        assert_eq!(toml::from_str::<EaseConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        assert_eq!(toml::from_str::<EaseConfig>("").unwrap(), EaseConfig::default());
        assert!(toml::from_str::<EaseConfig>("lambda = 3").is_err());
    }
}
