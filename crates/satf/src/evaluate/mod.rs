//! Honest scores: the protocol, its metrics, and tests of whether two models differ.

mod compare;
mod metrics;
mod protocol;
mod top_n;

pub use compare::{CompareOptions, Difference, ResampleUnit, compare};
pub use metrics::{Estimate, Measure, Metric};
pub use protocol::{EvaluateError, EvaluateOptions, Evaluation, evaluate, rank_unseen};
pub use top_n::{EXCLUDED, Scored, top_n};
