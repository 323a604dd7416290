//! `PureSVD` and `PureSVD-N`: the leading right singular vectors of the popularity-debiased user-item matrix.
//!
//! With the binary matrix $X$ of all users' whole histories, $D = \mathrm{diag}(c_j^{(s-1)/2})$ for item counts $c_j$ and
//! scaling $s$, and $X D \approx U \Sigma V^T$ of rank $r$, the scores of a binary preference vector $p$ are
//!
//! * $V V^T p$, or with `rescaled` $D^{-1} V V^T D p$ (the two projectors of the paper's section on SVD models).
//!
//! `scaling = 1` is plain `PureSVD`; lower values are `PureSVD-N`.

use faer::Mat;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::fold_in::FoldIn;
use super::lag_weights::LagWeights;
use super::memory::{DEFAULT_MEMORY_BYTES, check_memory};
use super::tensors::{StoredTensors, TensorError};
use super::{Fault, Learner, ModelError, Recommender, Snapshot, TrainingMonitor, variant};
use crate::linalg::truncated_svd::{self, Params, Way, leading_space};
use crate::linalg::{SparseMatrix, truncated_svd as leading_singular_vectors};
use crate::monitor::Monitor;
use crate::numbers::counted;
use crate::prepare::{Histories, popularity_weights};

/// The rank used if none is given, where the log allows it.
const DEFAULT_RANK: usize = 200;

/// The model `pure-svd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PureSvdConfig {
    /// Number of singular vectors: 1 to the smaller of users and items (default: 200, at most a quarter of the items).
    pub rank: Option<usize>,
    /// Exponent `s` of the popularity debiasing, -10 to 10: 1 leaves popularity as it is, lower values favour rare
    /// items (default 0.4).
    pub scaling: f64,
    /// Whether the debiasing is undone at prediction (default no).
    pub rescaled: bool,
    /// Seed of the solver's random start.
    pub seed: u64,
    /// Most memory that training may take, in bytes (default 8 GiB).
    pub memory_bytes: Option<u64>,
}

impl Default for PureSvdConfig {
    fn default() -> Self {
        PureSvdConfig { rank: None, scaling: 0.4, rescaled: false, seed: 0, memory_bytes: None }
    }
}

/// Bytes of an entry of the sparse matrix, its transpose included, and of one of the item factors: the singular vectors in
/// double precision, and both factors of the model.
const BYTES_A_ROW: u64 = 24;
const BYTES_A_FACTOR: u64 = 16;

impl PureSvdConfig {
    /// The model's name.
    pub const NAME: &'static str = "pure-svd";

    fn rank_on(&self, histories: &Histories) -> usize {
        self.rank.unwrap_or_else(|| default_rank(histories, DEFAULT_RANK))
    }

    /// The way of the solver: the cheaper one, or the leaner one if only that fits the memory allowed. An error if neither does.
    fn way_on(&self, histories: &Histories) -> Result<Option<Way>, ModelError> {
        let (users, items, rank) = (histories.num_users(), histories.num_items(), self.rank_on(histories));
        let rows = histories.num_rows() as u64;
        let factors = (items as u64).saturating_mul(rank as u64).saturating_mul(BYTES_A_FACTOR);
        let needed = |way: Option<Way>| {
            // A product with a sparse matrix multiplies and adds once per entry, and so does one with its transpose.
            let plan = truncated_svd::Plan::choose(users, items, rank, 4.0 * rows as f64, way);
            plan.peak_bytes.max(factors).saturating_add(rows.saturating_mul(BYTES_A_ROW))
        };
        if needed(None) <= self.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES) {
            return Ok(None);
        }
        let leaner = Some(Way::Filtered);
        let what = || format!("rank {rank} on {} and {}", counted(users, "user"), counted(items, "item"));
        let hint = "lower rank, drop rare items, or raise memory_bytes";
        check_memory(Self::NAME, what, needed(leaner), self.memory_bytes, hint)?;
        Ok(leaner)
    }
}

impl Learner for PureSvdConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn check(&self) -> Result<(), ModelError> {
        let mut faults = Vec::new();
        if self.rank == Some(0) {
            faults.push(Fault::new("rank", 0, "at least 1"));
        }
        if !(-10.0..=10.0).contains(&self.scaling) {
            faults.push(Fault::new("scaling", self.scaling, "-10 to 10"));
        }
        ModelError::from_faults(Self::NAME, faults)
    }

    fn check_on(&self, histories: &Histories) -> Result<(), ModelError> {
        self.check()?;
        check_rank(Self::NAME, self.rank, histories)?;
        self.way_on(histories).map(drop)
    }

    fn variant_keys(&self) -> Vec<String> {
        variant::keys_of::<Variant>()
    }

    /// The largest rank: its leading columns are those of every lower one.
    fn variant_to_train(&self, variants: &[Table]) -> Result<usize, ModelError> {
        let mut largest = (None, 0);
        for (at, keys) in variants.iter().enumerate() {
            let Variant { rank, .. } = variant::read(Self::NAME, keys)?;
            if rank > largest.0 {
                largest = (rank, at);
            }
        }
        Ok(largest.1)
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.check_on(histories)?;
        let rank = self.rank_on(histories);
        let debias = popularity_weights(&histories.popularity(), self.scaling);
        let params = Params { seed: self.seed, way: self.way_on(histories)?, ..Params::default() };
        let v = item_space(histories, rank, &debias, &params, monitor)?;
        if let Some(asked) = self.rank {
            warn_of_rank(Self::NAME, "rank", asked, v.ncols());
        }
        let fitted = Fitted { v, debias, rescaled: self.rescaled };
        monitor.trained(&fitted);
        fitted.recommender()
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        FoldIn::restore(tensors)
    }
}

/// The leading right singular vectors of $X D$. There are fewer than asked for if the matrix has a lower rank.
fn item_space(
    histories: &Histories,
    rank: usize,
    debias: &[f64],
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Mat<f64>, ModelError> {
    let matrix = debiased_matrix(histories, debias);
    let svd = leading_singular_vectors(&matrix, rank, params, monitor)
        .map_err(|error| svd_error(PureSvdConfig::NAME, error))?;
    if !svd.info.converged {
        let (residual, tolerance) = (svd.info.residual, params.tolerance);
        tracing::warn!("pure-svd: residual {residual:.1e} is above the tolerance {tolerance:.0e}");
    }
    Ok(svd.right)
}

/// About the same space, at a fraction of the cost: for models that learn on any space.
pub(super) fn rough_item_space(
    model: &'static str,
    histories: &Histories,
    rank: usize,
    scaling: f64,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<Mat<f64>, ModelError> {
    let debias = popularity_weights(&histories.popularity(), scaling);
    let matrix = debiased_matrix(histories, &debias);
    let space =
        leading_space(&matrix, rank, ROUNDS, seed, monitor).map_err(|error| svd_error(model, error))?;
    Ok(space)
}

/// Rounds of subspace iteration for [`rough_item_space`]: with more of them, models built on it were not better.
const ROUNDS: usize = 3;

fn svd_error(model: &'static str, error: truncated_svd::Error) -> ModelError {
    match error {
        truncated_svd::Error::Cancelled(cancelled) => ModelError::Cancelled(cancelled),
        other => ModelError::Numerics { model, reason: other.to_string() },
    }
}

/// Says that the log does not have a rank that was asked for, if so.
pub(super) fn warn_of_rank(model: &str, name: &str, asked: usize, found: usize) {
    if found < asked {
        tracing::warn!("{model}: {name} = {asked} is more than this log has; it is lowered to {found}");
    }
}

/// The rank used if none is given: so many columns, at most a quarter of the items.
pub(super) fn default_rank(histories: &Histories, most: usize) -> usize {
    most.min(histories.num_items() / 4).clamp(1, largest_rank(histories).max(1))
}

/// An error if there are no rows, or not so many singular vectors.
pub(super) fn check_rank(
    model: &'static str,
    rank: Option<usize>,
    histories: &Histories,
) -> Result<(), ModelError> {
    let largest = largest_rank(histories);
    if largest == 0 {
        return Err(ModelError::Data { model, reason: "it has no rows".to_owned() });
    }
    let faults = rank.filter(|&rank| rank > largest).map(|rank| {
        let (users, items) = (counted(histories.num_users(), "user"), counted(histories.num_items(), "item"));
        let expected = format!("1 to {largest} on this log of {users} and {items}");
        Fault::new("rank", rank, expected)
    });
    ModelError::from_faults(model, Vec::from_iter(faults))
}

/// The most singular vectors there can be.
fn largest_rank(histories: &Histories) -> usize {
    histories.num_users().min(histories.num_items())
}

/// The right singular vectors: every lower rank is their leading columns, and both projectors are made of them.
struct Fitted {
    v: Mat<f64>,
    debias: Vec<f64>,
    rescaled: bool,
}

/// The keys that play no part in training.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Variant {
    rescaled: Option<bool>,
    /// At most the one trained with.
    rank: Option<usize>,
}

impl Snapshot for Fitted {
    fn variant(&self, keys: &Table) -> Result<Box<dyn Recommender>, ModelError> {
        let variant: Variant = variant::read(PureSvdConfig::NAME, keys)?;
        let Fitted { v, debias, rescaled } = self;
        let row = |item: usize, into: &mut [f64]| {
            into.iter_mut().enumerate().for_each(|(k, value)| *value = v[(item, k)]);
        };
        let rank = variant.rank.map_or(v.ncols(), |rank| rank.min(v.ncols()));
        let debias = variant.rescaled.unwrap_or(*rescaled).then_some(debias.as_slice());
        let model = FoldIn::from_item_space(v.nrows(), rank, row, debias, LagWeights::Flat);
        let model = model.map(|model| model.with_learned(vec![("rank", rank as f64)]));
        model.map(|model| Box::new(model) as Box<dyn Recommender>).ok_or_else(|| ModelError::Numerics {
            model: PureSvdConfig::NAME,
            reason: "the item factors are not finite".to_owned(),
        })
    }
}

/// $X D$: one row per user, each distinct item once.
fn debiased_matrix(histories: &Histories, debias: &[f64]) -> SparseMatrix {
    let rows = histories.iter().map(|history| {
        let mut items: Vec<u32> = history.iter().map(|item| item.0).collect();
        items.sort_unstable();
        items.dedup();
        items.into_iter().map(|item| (item, debias[item as usize]))
    });
    SparseMatrix::from_rows(histories.num_items(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;

    fn sequences() -> Vec<Vec<u32>> {
        (0..40u32).map(|u| (0..3 + u % 5).map(|at| (u * 7 + at * at * 3 + u / 9) % 15).collect()).collect()
    }

    fn scores(config: &PureSvdConfig, history: &[u32]) -> Vec<f64> {
        let model = config.fit(&Histories::from_sequences(15, &sequences()), &()).unwrap();
        let history: Vec<ItemIndex> = history.iter().copied().map(ItemIndex).collect();
        let mut scores = vec![0f32; 15];
        model.score_batch(&[(&history).into()], &mut scores);
        scores.into_iter().map(f64::from).collect()
    }

    /// $V V^T p$ and $D^{-1} V V^T D p$ from a dense SVD.
    fn dense_scores(config: &PureSvdConfig, rank: usize, history: &[u32]) -> Vec<f64> {
        let sequences = sequences();
        let mut x = Mat::<f64>::zeros(40, 15);
        let mut counts = [0u32; 15];
        for (user, items) in sequences.iter().enumerate() {
            for &item in items {
                x[(user, item as usize)] = 1.0;
                counts[item as usize] += 1;
            }
        }
        let d: Vec<f64> =
            counts.iter().map(|&count| f64::from(count.max(1)).powf((config.scaling - 1.0) / 2.0)).collect();
        let xd = Mat::from_fn(40, 15, |i, j| x[(i, j)] * d[j]);
        let svd = xd.thin_svd().unwrap();
        let v = svd.V();
        let mut p = [0.0; 15];
        for &item in history {
            p[item as usize] = 1.0;
        }
        let (left, right) = if config.rescaled { (-1, 1) } else { (0, 0) };
        (0..15)
            .map(|a| {
                (0..rank)
                    .map(|k| {
                        let f: f64 = (0..15).map(|b| v[(b, k)] * d[b].powi(right) * p[b]).sum();
                        v[(a, k)] * d[a].powi(left) * f
                    })
                    .sum()
            })
            .collect()
    }

    #[test]
    fn both_projectors_equal_a_dense_svd() {
        for rescaled in [false, true] {
            for (rank, scaling) in [(1, 1.0), (4, 0.4), (15, 0.0)] {
                let config =
                    PureSvdConfig { rank: Some(rank), scaling, rescaled, seed: 3, memory_bytes: None };
                let history = [2, 9, 2, 14];
                let (ours, dense) = (scores(&config, &history), dense_scores(&config, rank, &history));
                for (ours, dense) in ours.iter().zip(&dense) {
                    assert!((ours - dense).abs() < 1e-5, "rank {rank} rescaled {rescaled}: {ours} {dense}");
                }
            }
        }
    }

    #[test]
    fn a_rank_beyond_the_log_is_an_error_and_the_default_is_not() {
        let histories = Histories::from_sequences(15, &sequences());
        let message =
            |rank| match (PureSvdConfig { rank: Some(rank), ..Default::default() }).fit(&histories, &()) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
        assert!(message(16).contains("rank = 16: expected 1 to 15"), "{}", message(16));
        assert!(PureSvdConfig::default().fit(&histories, &()).is_ok());
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let config = PureSvdConfig { rank: Some(0), scaling: f64::NAN, ..Default::default() };
        let message = config.check().unwrap_err().to_string();
        assert!(message.contains("rank = 0") && message.contains("scaling = NaN"), "{message}");
    }

    #[test]
    fn identical_users_have_rank_one() {
        let same = vec![vec![0, 1, 2]; 6];
        let config = PureSvdConfig { rank: Some(3), ..Default::default() };
        let model = config.fit(&Histories::from_sequences(3, &same), &()).unwrap();
        let mut scores = vec![0f32; 3];
        model.score_batch(&[(&[ItemIndex(0)]).into()], &mut scores);
        assert!(scores.iter().all(|score| score.is_finite() && *score > 0.0), "{scores:?}");
    }
}
