//! Models: everything that turns histories into scores.

mod batch;
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
mod tensor_model;
mod tensors;
mod training_monitor;
mod transitions;
pub mod variant;
mod vmis_knn;
mod workspace;

pub use crate::fault::Fault;
pub use d_satf::DSatfConfig;
pub use ease::{Ease, EaseConfig};
pub use error::ModelError;
pub use fold_in::FoldIn;
pub use ga_satf::GaSatfConfig;
pub use la_satf::LaSatfConfig;
pub use lag_weights::LagWeights;
pub use popularity::{Popularity, PopularityConfig};
pub use presets::{Preset, PresetProtocol, UnknownPreset};
pub use pure_svd::PureSvdConfig;
pub use quantization::Quantization;
pub use random::{Random, RandomConfig};
pub use recommender::{Iteration, Learner, Recommender, Similarities, Snapshot, UserData};
pub use registry::{ConfigError, Configured, ModelEntry, Registry, crate_with, nearest};
pub use tensor_model::Precision;
pub use tensors::{Element, Shares, StoredTensor, StoredTensors, Tensor, TensorError, TensorType};
pub use training_monitor::{Checkpoints, Memory, RecallError, TrainingMonitor};
pub use transitions::{Transitions, TransitionsConfig};
pub use vmis_knn::{PositionDecay, VmisKnn, VmisKnnConfig};
pub use workspace::{Scores, SparseScores, SparseSums, Workspace};

/// Keys of a model with their values.
pub use toml::Table;
