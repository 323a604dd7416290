//! GA-SATF: attention over all positions of a history (Eq. 7 to 15, Algorithm 1).
//!
//! Histories become a tensor of users, items and positions, weighted by a lower triangular attention matrix; its
//! decomposition (Eq. 10) gives an item space $V$ and one weight a lag, and Eq. 15 scores the next item with them.

// Formulas are not code.
#![allow(clippy::doc_markdown)]

use serde::{Deserialize, Serialize};

use super::fold_in::FoldIn;
use super::positions::Positions;
use super::tensor_model::{
    CommonFields, DEFAULT_RANK, Precision, TensorModel, Variant, asked_for, given_ranks,
};
use super::tensors::{StoredTensors, TensorError};
use super::{Learner, ModelError, Recommender, TrainingMonitor, variant};
use crate::factorize::{HooiOptions, ItemUpdate, Plan, Start};
use crate::prepare::Histories;
use crate::tensor::{Attention, Decay, Normalization};

/// The model `ga-satf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GaSatfConfig {
    /// Columns of the user factor, $r_1$ (default: 500, fewer on a small log). Lowered where the data does not support it.
    pub user_rank: Option<usize>,
    /// Columns of the item factor, $r_2$ (default: 500, at most a quarter of the items). Lowered where the data does not
    /// support it.
    pub item_rank: Option<usize>,
    /// Columns of the factor of positions, $r_3$: at most `max_len` (default 5).
    pub position_rank: usize,
    /// Fall of attention with distance, $f$: 0 to 100 (default 1; 0 attends to all positions alike).
    pub attention_decay: f64,
    /// Shape of that fall: `power` (default) or `exponential`.
    pub attention_shape: Decay,
    /// Positions looked back at, the own one included: at least 1 (default: all).
    pub attention_span: Option<usize>,
    /// Attention weights below this are dropped (default 0).
    pub attention_cutoff: f64,
    /// Whether `rows` or `columns` of the attention matrix are scaled to sum one (default `none`).
    pub attention_normalization: Normalization,
    /// Attention weights one by one, instead of a decay (default: none given).
    pub attention_weights: Option<Vec<f64>>,
    /// Popularity debiasing $s$: items weigh $c^{(s-1)/2}$ for $c$ rows, -1 to 2 (default 0.2).
    pub scaling: f64,
    /// Whether scores are taken back to the space before debiasing (default false). Plays no part in training.
    pub rescaled: bool,
    /// Iterations at most: 1 to 1,000,000 (default 2).
    pub num_iters: usize,
    /// Ends training when the core norm grows by no more than this share (default 0: never).
    pub growth_tolerance: f64,
    /// Newest items of a history that are learned from, $K$: at least 2 (default 50). More than 256 counts at most as one more
    /// than the longest history has.
    pub max_len: usize,
    /// Seed of the start (default 0).
    pub seed: u64,
    /// First factors: from the data by a `sketch` (default), or `random` as published.
    pub start: Start,
    /// Update of the item factor: `weighted` (default) as the objective has it, or `unweighted`.
    pub item_update: ItemUpdate,
    /// Precision of large factors: `single` (default) or `double`.
    pub precision: Precision,
    /// Bytes training may hold at once, histories included (default: 8 GiB).
    pub memory_bytes: Option<u64>,
}

impl Default for GaSatfConfig {
    fn default() -> Self {
        GaSatfConfig {
            user_rank: None,
            item_rank: None,
            position_rank: 5,
            attention_decay: 1.0,
            attention_shape: Decay::Power,
            attention_span: None,
            attention_cutoff: 0.0,
            attention_normalization: Normalization::None,
            attention_weights: None,
            scaling: 0.2,
            rescaled: false,
            num_iters: 2,
            growth_tolerance: 0.0,
            max_len: 50,
            seed: 0,
            start: Start::Sketch,
            item_update: ItemUpdate::Weighted,
            precision: Precision::Single,
            memory_bytes: None,
        }
    }
}

impl GaSatfConfig {
    /// The model's name.
    pub const NAME: &'static str = "ga-satf";

    fn attention(&self) -> Attention {
        Attention {
            decay: self.attention_shape,
            factor: self.attention_decay,
            span: self.attention_span,
            cutoff: self.attention_cutoff,
            normalization: self.attention_normalization,
            weights: self.attention_weights.clone(),
        }
    }

    fn model(&self) -> TensorModel {
        TensorModel {
            name: Self::NAME,
            positions: Positions::Global {
                attention: self.attention(),
                positions: self.max_len,
                rank: self.position_rank,
            },
            scaling: self.scaling,
            rescaled: self.rescaled,
            precision: self.precision,
            user_rank: self.user_rank,
            item_rank: self.item_rank,
            position_ranks: asked_for([(
                "position_rank",
                self.position_rank,
                GaSatfConfig::default().position_rank,
            )]),
            options: HooiOptions {
                user_rank: DEFAULT_RANK,
                item_rank: DEFAULT_RANK,
                num_iters: self.num_iters,
                growth_tolerance: self.growth_tolerance,
                start: self.start,
                seed: self.seed,
                item_update: self.item_update,
                memory_bytes: self.memory_bytes,
                way: None,
            },
        }
    }
}

impl Learner for GaSatfConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn check(&self) -> Result<(), ModelError> {
        let (user_rank, item_rank) = given_ranks(self.user_rank, self.item_rank, self.position_rank);
        let ranks = [
            ("user_rank", user_rank, None),
            ("item_rank", item_rank, None),
            ("position_rank", self.position_rank, Some(self.max_len)),
        ];
        let attention = self.attention();
        let faults = CommonFields {
            attention: &attention,
            scaling: self.scaling,
            num_iters: self.num_iters,
            growth_tolerance: self.growth_tolerance,
            max_len: self.max_len,
            ranks: &ranks,
        }
        .faults();
        ModelError::from_faults(Self::NAME, faults)
    }

    fn check_on(&self, histories: &Histories) -> Result<(), ModelError> {
        self.check()?;
        self.model().positions_on(histories).map(drop)
    }

    fn variant_keys(&self) -> Vec<String> {
        variant::keys_of::<Variant>()
    }

    fn iterations_key(&self) -> Option<&'static str> {
        Some("num_iters")
    }

    fn plan(&self, histories: &Histories) -> Result<Option<Plan>, ModelError> {
        self.check()?;
        self.model().plan(histories).map(Some)
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.check()?;
        self.model().fit(histories, monitor)
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        FoldIn::restore(tensors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_named_at_once() {
        let config = GaSatfConfig {
            user_rank: Some(0),
            scaling: f64::NAN,
            attention_decay: -1.0,
            attention_weights: Some(vec![0.0]),
            num_iters: 0,
            max_len: 1,
            ..Default::default()
        };
        let message = config.check().unwrap_err().to_string();
        for field in ["user_rank", "scaling", "attention_decay", "attention_weights", "num_iters", "max_len"]
        {
            assert!(message.contains(field), "{message}");
        }
    }

    #[test]
    fn a_rank_above_the_product_of_the_others_is_a_fault() {
        let config = GaSatfConfig { user_rank: Some(5000), item_rank: Some(10), ..Default::default() };
        assert!(config.check().unwrap_err().to_string().contains("user_rank = 5000"));
    }

    #[test]
    fn a_configuration_reads_as_it_is_written() {
        let config = GaSatfConfig { start: Start::Random, memory_bytes: Some(1 << 30), ..Default::default() };
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("start = \"random\""));
        assert_eq!(toml::from_str::<GaSatfConfig>(&text).unwrap(), config);
        assert_eq!(toml::from_str::<GaSatfConfig>("").unwrap(), GaSatfConfig::default());
        assert!(toml::from_str::<GaSatfConfig>("ranks = 3").is_err());
    }
}
