//! Models: everything that turns histories into scores.

mod error;
mod recommender;

pub use error::{Fault, ModelError};
pub use recommender::{Iteration, Learner, Recommender, Snapshot};
