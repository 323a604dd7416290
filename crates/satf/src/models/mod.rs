//! Models: everything that turns histories into scores.
//!
//! | name | what it is | configuration |
//! |---|---|---|
//! | `d-satf` | directed memory of pairs and a directed low-rank core, closed form: the default | [`DSatfConfig`] |
//! | `ga-satf`, `la-satf` | tensor factorisation with attention over positions | [`GaSatfConfig`], [`LaSatfConfig`] |
//! | `transitions` | directed item-to-item transitions within a window | [`TransitionsConfig`] |
//! | `vmis-knn` | nearest neighbours among recent sessions | [`VmisKnnConfig`] |
//! | `ease` | closed-form item-item ridge regression | [`EaseConfig`] |
//! | `pure-svd` | truncated SVD of the debiased user-item matrix | [`PureSvdConfig`] |
//! | `mp`, `random` | most popular items; seeded random scores | [`PopularityConfig`], [`RandomConfig`] |
//!
//! A configuration is a [`Learner`]; fitted to [`Histories`](crate::prepare::Histories) it gives a [`Recommender`]. A [`Registry`] finds
//! models by name. [`Model`](crate::recommend::Model) puts a fitted model and its catalogue of ids together: that is what to hold in
//! order to recommend.
//!
//! # A model of one's own
//!
//! It implements both traits, and is then trained, judged, tuned, stored and asked like all others:
//!
//! ```
#![doc = include_str!("../../examples/own_model.rs")]
//! ```

/// The model used if none is asked for.
pub const DEFAULT_MODEL: &str = DSatfConfig::NAME;

mod array;
mod batch;
mod bounded_scan;
mod company;
mod d_satf;
mod ease;
mod error;
mod fold_in;
mod ga_satf;
mod incidence;
mod item_rows;
mod la_satf;
mod lag_weights;
mod memory;
mod popularity;
mod positions;
mod presets;
mod pure_svd;
mod quantization;
mod random;
mod recommender;
mod registry;
mod rounded_rows;
mod spilled;
mod tensor_model;
mod tensors;
mod training_monitor;
mod transitions;
pub mod variant;
mod vmis_knn;
mod workspace;

pub use crate::factorize::{Cost, ModePlan, Plan, Way};
pub use crate::fault::Fault;
pub use crate::linalg::{GemmRate, gemm_rate};
pub use crate::tensor::Attention;
pub use array::{Array, SharedBytes};
pub use d_satf::DSatfConfig;
pub use ease::{Ease, EaseConfig};
pub use error::ModelError;
pub use fold_in::FoldIn;
pub use ga_satf::GaSatfConfig;
pub use la_satf::LaSatfConfig;
pub use lag_weights::LagWeights;
pub use popularity::{Popularity, PopularityConfig};
pub use positions::positions_on;
pub use presets::{Preset, PresetProtocol, UnknownPreset};
pub use pure_svd::PureSvdConfig;
pub use quantization::Quantization;
pub use random::{Random, RandomConfig};
pub use recommender::{Iteration, Learner, Recommender, Similarities, Snapshot, UserData};
pub use registry::{ConfigError, Configured, KeyFault, ModelEntry, Registry, crate_with, nearest};
pub use tensor_model::Precision;
pub use tensors::{Element, Shares, StoredTensor, StoredTensors, Tensor, TensorError, TensorType};
pub use training_monitor::{Checkpoints, Memory, RecallError, TrainingMonitor};
pub use transitions::{Transitions, TransitionsConfig};
pub use vmis_knn::{PositionDecay, VmisKnn, VmisKnnConfig};
pub use workspace::{Scores, SparseScores, SparseSums, Workspace};

/// Keys of a model with their values.
pub use toml::Table;
