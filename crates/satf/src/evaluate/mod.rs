//! Honest scores: the protocol, its metrics, and tests of whether two models differ.
//!
//! [`experiment`](crate::experiment) puts them together: a log is cut, models are trained, judged and compared.

mod compare;
mod evaluation;
mod event_times;
mod lists;
mod metrics;
mod order;
mod per_event;
mod protocol;
mod saved;

pub use compare::{CompareOptions, Difference, compare};
pub use evaluation::{Evaluation, MergeError};
pub use lists::{JudgedLists, ListsError, ListsReport, evaluate_lists};
pub use metrics::{Estimate, Measure, Metric, ResampleUnit, UnknownMetric};
pub use order::{FileOrder, OrderCheck, OrderEffect, OrderError, OrderOptions, Verdict, check_order};
pub use per_event::{PairedEvents, PerEvent, PerEventError, PerEventHint, per_event_table, write_per_event};
pub(crate) use protocol::histories_at_once;
pub use protocol::{EvaluateError, EvaluateOptions, SeenPolicy, evaluate, evaluate_events};
pub use saved::{CatalogReport, evaluate_with_catalog};
