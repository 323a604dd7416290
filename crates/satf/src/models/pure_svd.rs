//! PureSVD and its normalised kin: the leading right singular vectors of the scaled user-item matrix.
//!
//! $X$ is the binary matrix of users and items over whole histories, $D = \operatorname{diag}(c_j^{(s-1)/2})$ with $c_j$ the
//! number of rows of item $j$, and $V$ ($n \times r$) holds the $r$ leading right singular vectors of $X D$. A history $p$ (a
//! binary vector) is scored by the projector $V V^T p$, or rescaled by $D^{-1} V V^T D p$. With $s = 1$ this is PureSVD; a
//! smaller $s$ holds popular items back.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::fold_in::{FoldIn, Weights};
use super::{Fault, Learner, ModelError, Recommender};
use crate::interactions::ItemIndex;
use crate::linalg::SparseMatrix;
use crate::linalg::truncated_svd::{self, Params, TruncatedSvd, truncated_svd};
use crate::monitor::Monitor;
use crate::prepare::Histories;

const NAME: &str = "pure-svd";

/// Rank unless one is given, as far as the log allows.
const DEFAULT_RANK: usize = 200;

/// How PureSVD is fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PureSvdConfig {
    /// Singular vectors kept: 1 to the smaller of the numbers of users and items. By default 200, or what the log allows.
    pub rank: Option<usize>,
    /// Exponent $s$ of the popularity scaling, any finite number: 1 leaves the matrix as it is, smaller values hold
    /// popular items back. Default 0.4.
    pub scaling: f64,
    /// Whether scores are taken back to the unscaled space, $D^{-1} V V^T D$. It plays no part in training. Default
    /// `false`.
    pub rescaled: bool,
    /// Seed of the solver's random start. The result depends on it within the solver's tolerance only. Default 0.
    pub seed: u64,
}

impl Default for PureSvdConfig {
    fn default() -> Self {
        PureSvdConfig { rank: None, scaling: 0.4, rescaled: false, seed: 0 }
    }
}

impl PureSvdConfig {
    /// Every fault of this configuration for a log of `num_users` and `num_items`.
    fn faults(&self, num_users: usize, num_items: usize) -> Vec<Fault> {
        let mut faults = Vec::new();
        let most = num_users.min(num_items);
        if let Some(rank) = self.rank.filter(|&rank| rank == 0 || rank > most) {
            let expected = format!("1 to {most}, the smaller of {num_users} users and {num_items} items");
            faults.push(Fault::new("rank", rank, expected));
        }
        if !self.scaling.is_finite() {
            faults.push(Fault::new("scaling", self.scaling, "a finite number"));
        }
        faults
    }

    /// Fits and returns the model with the singular values and how the solver went.
    pub fn fit_model(
        &self,
        histories: &Histories,
        monitor: &dyn Monitor,
    ) -> Result<(FoldIn, TruncatedSvd), ModelError> {
        let (num_users, num_items) = (histories.num_users(), histories.num_items());
        if num_users == 0 || num_items == 0 {
            return Err(ModelError::Data { model: NAME, reason: "it has no rows".to_owned() });
        }
        ModelError::from_faults(NAME, self.faults(num_users, num_items))?;
        let rank = self.rank.unwrap_or(DEFAULT_RANK.min(num_users).min(num_items));
        let span = tracing::info_span!("pure_svd", rank, scaling = self.scaling);
        let _entered = span.enter();

        let scale = popularity_scale(histories, self.scaling);
        let matrix = scaled_matrix(histories, &scale);
        let params = Params { seed: self.seed, ..Params::default() };
        let svd = truncated_svd(&matrix, rank, &params, monitor).map_err(model_error)?;
        if svd.info.rank < rank {
            tracing::warn!(asked = rank, found = svd.info.rank, "the log's numerical rank is lower than the rank asked for");
        }
        if !svd.info.converged {
            tracing::warn!(residual = svd.info.residual, "the singular vectors did not reach the tolerance");
        }
        Ok((self.model(&svd, &scale), svd))
    }

    /// $P_{left} = P_{right} = V$, or $D^{-1} V$ and $D V$.
    fn model(&self, svd: &TruncatedSvd, scale: &[f64]) -> FoldIn {
        let v = &svd.right;
        let scaled = |power: f64| {
            Mat::from_fn(v.nrows(), v.ncols(), |j, k| (v[(j, k)] * scale[j].powf(power)) as f32)
        };
        let (left, right) = if self.rescaled { (scaled(-1.0), scaled(1.0)) } else { (scaled(0.0), scaled(0.0)) };
        FoldIn::new(left, right.as_ref(), Weights::Flat)
    }
}

impl Learner for PureSvdConfig {
    fn name(&self) -> &'static str {
        NAME
    }

    fn fit(&self, histories: &Histories, monitor: &dyn Monitor) -> Result<Box<dyn Recommender>, ModelError> {
        let (model, _) = self.fit_model(histories, monitor)?;
        Ok(Box::new(model))
    }
}

/// The diagonal of $D$. An item without rows, which no column of the matrix mentions, gets 1.
fn popularity_scale(histories: &Histories, scaling: f64) -> Vec<f64> {
    histories.popularity().iter().map(|&count| f64::from(count.max(1)).powf((scaling - 1.0) / 2.0)).collect()
}

/// $X D$: a user's distinct items, each with its scale.
fn scaled_matrix(histories: &Histories, scale: &[f64]) -> SparseMatrix {
    let rows = histories.iter().map(|items| {
        let mut items: Vec<ItemIndex> = items.to_vec();
        items.sort_unstable();
        items.dedup();
        items.into_iter().map(|item| (item.0, scale[item.get()]))
    });
    SparseMatrix::from_rows(histories.num_items(), rows)
}

fn model_error(error: truncated_svd::Error) -> ModelError {
    match error {
        truncated_svd::Error::Cancelled(cancelled) => ModelError::Cancelled(cancelled),
        other => ModelError::Numerics { model: NAME, reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn log(users: usize, items: usize) -> Histories {
        let sequences: Vec<Vec<u32>> = (0..users)
            .map(|user| (0..=user % 7).map(|at| ((user * user * 13 + at * at * 7 + user) % items) as u32).collect())
            .collect();
        Histories::from_sequences(items, &sequences)
    }

    fn scores(model: &dyn Recommender, history: &[u32]) -> Vec<f32> {
        let history: Vec<ItemIndex> = history.iter().map(|&item| ItemIndex(item)).collect();
        let mut scores = vec![f32::NAN; model.num_items()];
        model.score_batch(&[&history], &mut scores);
        scores
    }

    /// $V V^T$ or its rescaled form from a dense decomposition.
    fn dense_projector(histories: &Histories, config: &PureSvdConfig, rank: usize) -> Mat<f64> {
        let scale = popularity_scale(histories, config.scaling);
        let mut dense = Mat::<f64>::zeros(histories.num_users(), histories.num_items());
        for (user, items) in histories.iter().enumerate() {
            for item in items {
                dense[(user, item.get())] = scale[item.get()];
            }
        }
        let svd = dense.thin_svd().unwrap();
        let v = svd.V().subcols(0, rank).to_owned();
        let projector = &v * v.transpose();
        Mat::from_fn(v.nrows(), v.nrows(), |i, j| {
            projector[(i, j)] * if config.rescaled { scale[j] / scale[i] } else { 1.0 }
        })
    }

    #[test]
    fn scores_are_those_of_the_projector() {
        let histories = log(90, 40);
        for rescaled in [false, true] {
            for scaling in [1.0, 0.4, 0.0] {
                let config = PureSvdConfig { rank: Some(12), scaling, rescaled, seed: 1 };
                let (model, svd) = config.fit_model(&histories, &()).unwrap();
                let projector = dense_projector(&histories, &config, svd.info.rank);
                let scores = scores(&model, &[3, 17, 3, 8]);
                for (j, score) in scores.iter().enumerate() {
                    let expected: f64 = [3, 8, 17].iter().map(|&i| projector[(j, i)]).sum();
                    assert!((f64::from(*score) - expected).abs() < 1e-5, "item {j}: {score} for {expected}");
                }
            }
        }
    }

    #[test]
    fn every_fault_is_named_with_its_range() {
        let config = PureSvdConfig { rank: Some(0), scaling: f64::NAN, ..PureSvdConfig::default() };
        let message = config.fit(&log(9, 5), &()).err().unwrap().to_string();
        assert!(message.contains("rank = 0: expected 1 to 5"), "{message}");
        assert!(message.contains("scaling = NaN: expected a finite number"), "{message}");
        let config = PureSvdConfig { rank: Some(6), ..PureSvdConfig::default() };
        assert!(config.fit(&log(9, 5), &()).is_err());
    }

    #[test]
    fn tiny_logs_get_a_rank_they_allow() {
        for (users, items) in [(1, 1), (1, 5), (5, 1), (3, 2), (9, 5)] {
            let model = PureSvdConfig::default().fit(&log(users, items), &()).unwrap();
            assert!(scores(&*model, &[0]).iter().all(|score| score.is_finite()));
        }
        assert!(PureSvdConfig::default().fit(&Histories::from_sequences(0, &[]), &()).is_err());
    }

    #[test]
    fn a_rank_beyond_the_numerical_one_is_lowered() {
        // Three users with the same history: rank one.
        let histories = Histories::from_sequences(4, &[vec![0, 2], vec![2, 0], vec![0, 2, 2]]);
        let config = PureSvdConfig { rank: Some(3), ..PureSvdConfig::default() };
        let (model, svd) = config.fit_model(&histories, &()).unwrap();
        assert_eq!((svd.info.rank, model.rank()), (1, 1));
        assert!(scores(&model, &[0, 1]).iter().all(|score| score.is_finite()));
    }

    #[test]
    fn configurations_read_back_and_refuse_unknown_fields() {
        let config = PureSvdConfig { rank: Some(7), rescaled: true, ..PureSvdConfig::default() };
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<PureSvdConfig>(&text).unwrap(), config);
        assert_eq!(serde_json::from_str::<PureSvdConfig>("{}").unwrap(), PureSvdConfig::default());
        assert!(serde_json::from_str::<PureSvdConfig>(r#"{"ranks": 3}"#).is_err());
    }

    #[test]
    fn a_cancelled_fit_ends_with_that_error() {
        struct Stop(AtomicUsize);
        impl Monitor for Stop {
            fn is_cancelled(&self) -> bool {
                self.0.fetch_add(1, Ordering::Relaxed) > 0
            }
        }
        let result = PureSvdConfig::default().fit(&log(60, 30), &Stop(AtomicUsize::new(0)));
        assert!(matches!(result, Err(ModelError::Cancelled(_))));
    }

    #[test]
    fn factors_are_the_same_bits_on_any_number_of_threads() {
        let histories = log(700, 400);
        let fit = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let config = PureSvdConfig { rank: Some(30), seed: 5, ..PureSvdConfig::default() };
            pool.install(|| config.fit_model(&histories, &()).unwrap().0)
        };
        let one = fit(1);
        for threads in [2, 4] {
            assert!(fit(threads).left() == one.left(), "{threads} threads");
        }
    }
}
