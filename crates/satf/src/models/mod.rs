//! Models: everything that turns histories into scores.

mod batch;
mod ease;
mod error;
mod fold_in;
mod ga_satf;
mod incidence;
mod la_satf;
mod popularity;
mod presets;
mod pure_svd;
mod quantization;
mod random;
mod recommender;
mod registry;
mod tensor_model;
mod tensors;
mod transitions;
mod vmis_knn;

pub use ease::{Ease, EaseConfig};
pub(crate) use error::lines;
pub use error::{Fault, ModelError};
pub use fold_in::{FoldIn, LagWeights};
pub use ga_satf::GaSatfConfig;
pub use la_satf::LaSatfConfig;
pub use popularity::{Popularity, PopularityConfig};
pub use presets::{Preset, PresetProtocol, UnknownPreset};
pub use pure_svd::PureSvdConfig;
pub use quantization::Quantization;
pub use random::{Random, RandomConfig};
pub use recommender::{Iteration, Learner, Recommender, Snapshot, Variant};
pub(crate) use registry::registered;
pub use registry::{ConfigError, Configured, MODELS, ModelEntry, models, nearest, register};
pub use tensor_model::Precision;
pub use tensors::{Element, Shares, StoredTensor, StoredTensors, Tensor, TensorError, TensorType};
pub use transitions::{Transitions, TransitionsConfig};
pub use vmis_knn::{PositionDecay, VmisKnn, VmisKnnConfig};
