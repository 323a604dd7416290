//! Experiments: from a log to the scores of models, fairly compared.
//!
//! * A [`Protocol`] says how the log is cut and what is scored; [`Protocol::cut`] does it, and tells what may mislead ([`Warning`]).
//! * [`ModelSettings`] say which models there are, with which keys; configured against a [`Registry`](crate::models::Registry) they are
//!   [`Choice`]s.
//! * [`run`] fits one and scores it. An iterative model may first learn how many iterations are best: training that is watched on the
//!   validation part is [`fit_with_validation`].
//! * A [`Run`] has the model, its scores event by event, and a [`RunReport`] to keep or send. Two of them are compared event by event
//!   ([`Evaluation::difference_from`](crate::evaluate::Evaluation::difference_from)).
//!
//! Nothing is printed, nothing is global; settings and reports have serde.
//!
//! ```
//! use satf::evaluate::CompareOptions;
//! use satf::experiment::{ModelSettings, Protocol, RunOptions, run};
//! use satf::generate::{ShopOptions, shop};
//! use satf::models::Registry;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A log: made up here, from files with `satf::data::read_log`.
//! let log = shop(&ShopOptions { users: 500, ..ShopOptions::default() })?;
//!
//! // All but the last month trains, the last month judges.
//! let protocol = Protocol { test: Some("1month".parse()?), ..Protocol::default() };
//! let cut = protocol.cut(&log)?;
//! for warning in &cut.warnings {
//!     println!("warning: {warning}");
//! }
//!
//! let models = ModelSettings::named(["mp", "transitions"]);
//! let mut runs = Vec::new();
//! for choice in models.configure(&protocol.shared_keys(), &Registry::default())? {
//!     runs.push(run(&choice, &cut, &RunOptions::default(), &())?);
//! }
//!
//! println!("{:12} {:>8} {:>8}", "model", "NDCG@10", "±");
//! let ndcg = "NDCG@10".parse()?;
//! for run in &runs {
//!     let estimate = run.evaluation.estimate(ndcg);
//!     println!("{:12} {:8.4} {:8.4}", run.label, estimate.value, estimate.stderr.unwrap_or_default());
//! }
//!
//! // Is the second one better, or was it luck?
//! let difference =
//!     runs[1].evaluation.difference_from(&runs[0].evaluation, ndcg, &CompareOptions::default(), &())?;
//! println!("{:+.4}, p = {:.4}", difference.difference, difference.p_value);
//! assert!(difference.p_value < 0.01 && difference.interval[0] > 0.0);
//! # Ok(())
//! # }
//! ```

mod error;
mod protocol;
mod recorder;
mod run;
mod settings;
mod validation;
mod warning;

pub use error::{ExperimentError, ExperimentHint, SettingsError};
pub use protocol::{Cut, CutDescription, Part, PartRows, Protocol, SplitKind, TrainingSize, holdout_scheme};
pub use recorder::{Recorded, Recorder};
pub(crate) use run::metrics_by_name;
pub use run::{
    CurvePoint, EarlyStopping, EarlyStoppingReport, Fitted, Run, RunOptions, RunReport, Stopped, fit, run,
    run_on,
};
pub use settings::{Asked, Choice, KeySetting, ModelSettings, SharedKeys};
pub use validation::{Validated, Validation, ValidationScore, fit_with_validation, score_variants};
pub use warning::{OffsetSource, Warning};
