//! The fitted model: a sparse and a low-rank part, weighted by the same lags.

use faer::Mat;

use super::core::ItemSpace;
use super::memory::no_temporary_file;
use super::not_finite;
use crate::interactions::ItemIndex;
use crate::models::LagWeights;
use crate::models::batch::{check_history, score_each};
use crate::models::company;
use crate::models::fold_in::FoldIn;
use crate::models::item_rows::{ItemRows, RowNames};
use crate::models::tensors::{Shares, StoredTensors, Tensor, TensorError};
use crate::models::{
    ModelError, Quantization, Recommender, Scores, Similarities, SparseSums, UserData, Workspace,
};
use crate::prepare::History;
use crate::ranking::Scored;

/// The scaled memory and, unless the balance leaves it out, the core in factors.
#[derive(Clone, Debug)]
pub(super) struct DSatf {
    memory: ItemRows,
    core: Option<FoldIn>,
    lag_weights: LagWeights,
    learned: Vec<(&'static str, f64)>,
}

/// Names of the memory's arrays in files.
const NAMES: RowNames = ["memory_offsets", "memory_items", "memory_weights", "memory_scales"];

impl DSatf {
    /// Brings both parts to one scale. `squares` are the sums of squared weights of the memory's rows. An error if a factor is not finite,
    /// or if there is no room for what is kept in temporary files.
    pub(super) fn new(
        balance: f64,
        lag_weights: LagWeights,
        mut memory: ItemRows,
        squares: &[f64],
        core: Option<(&ItemSpace, Mat<f64>)>,
        trend: &[f64],
        popularity: &[u32],
    ) -> Result<Self, ModelError> {
        let num_items = popularity.len();
        let memory_size = root_mean_square(popularity, |item| squares[item]);
        if !memory_size.is_finite() {
            return Err(not_finite());
        }
        let scale = if memory_size > 0.0 { (1.0 - balance) / memory_size } else { 0.0 };
        if scale > 0.0 {
            let needed = memory.num_pairs() as u64 * ItemRows::BYTES_A_PAIR;
            let scaled = memory.scale_columns(|item| scale * trend[item.get()]);
            scaled.map_err(|source| no_temporary_file(needed, source))?;
        } else {
            memory = ItemRows::empty(num_items);
        }
        let core = match core {
            None => None,
            Some((space, core)) => {
                let (rank, right) = (space.rank(), space.times(core.as_ref()));
                // V has orthonormal columns: the length of a row of V R is that of the scores it gives.
                let size = root_mean_square(popularity, |item| {
                    right[item * rank..][..rank].iter().map(|value| value * value).sum()
                });
                let scale = if size > 0.0 { 1.0 / size } else { 0.0 };
                let row = |item: usize| {
                    space.row(item).iter().map(move |value| (value * balance * trend[item]) as f32)
                };
                let left: Vec<f32> = (0..num_items).flat_map(row).collect();
                let right: Vec<f32> = right.iter().map(|&value| (value * scale) as f32).collect();
                let core = FoldIn::new(num_items, left, right, lag_weights.clone());
                Some(core.ok_or_else(not_finite)?)
            }
        };
        Ok(DSatf { memory, core, lag_weights, learned: Vec::new() })
    }

    pub(super) fn restore(tensors: &StoredTensors<'_>) -> Result<Self, TensorError> {
        Ok(DSatf {
            memory: ItemRows::from_tensors(tensors, NAMES)?,
            core: if FoldIn::is_in(tensors) { Some(FoldIn::from_tensors(tensors)?) } else { None },
            lag_weights: LagWeights::from_tensors_by_lag(tensors)?,
            learned: Vec::new(),
        })
    }

    /// The same, with what training found by itself.
    #[must_use]
    pub(super) fn with_learned(self, learned: Vec<(&'static str, f64)>) -> Self {
        DSatf { learned, ..self }
    }

    /// The keys that the arrays tell: $\rho$ of $w_1 = 2^{-\rho}$, and how much the order of a basket counts.
    pub(super) fn learned_by_arrays(&self) -> Vec<(&'static str, f64)> {
        let second = self.lag_weights.by_lag().and_then(|weights| weights.get(1));
        let decay = second.map(|weight| -weight.log2()).filter(|decay| decay.is_finite());
        // Keys have few digits; a logarithm returns them but for its rounding.
        let decay = decay.map(|decay| ("recency_decay", (decay * 1e9).round() / 1e9));
        let order = match &self.lag_weights {
            LagWeights::ByBasket { order, .. } => Some(("basket_order", *order)),
            _ => None,
        };
        decay.into_iter().chain(order).collect()
    }
}

/// The root of the mean of `square` over the rows of the log.
fn root_mean_square(popularity: &[u32], square: impl Fn(usize) -> f64) -> f64 {
    let total: f64 = popularity.iter().map(|&count| f64::from(count)).sum();
    let sum: f64 = popularity.iter().enumerate().map(|(item, &count)| f64::from(count) * square(item)).sum();
    if total > 0.0 { (sum / total).sqrt() } else { 0.0 }
}

/// Adds what the memory says to the scores of the core.
fn add(sums: &SparseSums, scores: &mut [f32]) {
    for (score, sum) in scores.iter_mut().zip(sums.sums()) {
        *score = (f64::from(*score) + sum) as f32;
    }
}

impl Recommender for DSatf {
    fn num_items(&self) -> usize {
        self.memory.num_items()
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        if let Some(core) = &self.core {
            core.score_batch(histories, scores);
        }
        score_each(self.num_items(), histories, scores, Workspace::new, |workspace, history, row| {
            let sums = workspace.sparse(self.num_items());
            self.memory.add_to(sums, self.lag_weights.weighted(history));
            match self.core {
                Some(_) => add(sums, row),
                None => Scores::Sparse(sums.scores()).write_to(row),
            }
        });
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items(), history);
        let Workspace { dense, features, sparse, .. } = workspace;
        sparse.begin(self.num_items());
        self.memory.add_to(sparse, self.lag_weights.weighted(history));
        match &self.core {
            None => Scores::Sparse(sparse.scores()),
            Some(core) => {
                let scores = core.score_alone(history, dense, features);
                add(sparse, scores);
                Scores::Dense(scores)
            }
        }
    }

    fn best_one(
        &self,
        history: History<'_>,
        n: usize,
        is_allowed: &dyn Fn(ItemIndex) -> bool,
        workspace: &mut Workspace,
    ) -> Option<Vec<Scored>> {
        let core = self.core.as_ref()?;
        check_history(self.num_items(), history);
        let Workspace { dense, features, sparse, own } = workspace;
        sparse.begin(self.num_items());
        self.memory.add_to(sparse, self.lag_weights.weighted(history));
        core.best_alone(history, (n, is_allowed), sparse.added(), (dense, features, own))
    }

    fn make_ready(&self) {
        if let Some(core) = &self.core {
            core.make_scan();
        }
    }

    fn is_sparse(&self) -> bool {
        self.core.is_none()
    }

    fn memory_bytes(&self) -> usize {
        self.memory.num_bytes() + self.core.as_ref().map_or(0, Recommender::memory_bytes)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = self.memory.tensors(NAMES);
        match &self.core {
            Some(core) => tensors.extend(core.tensors()),
            None => tensors.extend(self.lag_weights.tensors()),
        }
        tensors
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let mut shares = match &self.core {
            Some(core) => core.shares(history, item),
            None => Shares::of_none(&history, 0.0),
        };
        let newest_first = shares.of_history.iter_mut().rev();
        for (share, (past, weight)) in newest_first.zip(self.lag_weights.weighted(history)) {
            *share += weight * self.memory.weight(past, item);
        }
        shares
    }

    /// By the pairs of the memory; without it, by what the core says comes after each of two items.
    fn similarities(&self, item: ItemIndex) -> Option<Similarities> {
        match &self.core {
            Some(core) if self.memory.num_pairs() == 0 => Some(Similarities {
                measure: "cosine of what comes after them, as the core sees it",
                values: core.history_similarities(item),
            }),
            _ => Some(company::similarities(&self.memory, item)),
        }
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }

    fn learned(&self) -> Vec<(&'static str, f64)> {
        self.learned.clone()
    }

    fn item_factors(&self) -> Option<(&[f32], usize)> {
        self.core.as_ref().and_then(Recommender::item_factors)
    }

    fn lag_weights(&self) -> Option<&[f64]> {
        self.lag_weights.by_lag()
    }

    fn quantized(&self, quantization: Quantization) -> Result<Box<dyn Recommender>, &'static str> {
        let core = self.core.as_ref().map(|core| core.rounded(quantization)).transpose()?;
        Ok(Box::new(DSatf { memory: self.memory.rounded(quantization)?, core, ..self.clone() }))
    }
}
