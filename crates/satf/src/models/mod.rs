//! Models: everything that turns histories into scores.

mod error;
pub mod fold_in;
pub mod pure_svd;
mod recommender;

pub use fold_in::{FoldIn, Weights};
pub use pure_svd::PureSvdConfig;
pub use error::{Fault, ModelError};
pub use recommender::{Iteration, Learner, Recommender, Snapshot};
