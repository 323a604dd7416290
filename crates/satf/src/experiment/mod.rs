//! Experiments: from a log to the scores of models, fairly compared.
//!
//! * A [`Protocol`] says how the log is cut and what is scored; [`Protocol::cut`] does it, and lists what may mislead ([`Warning`]).
//! * [`ModelSettings`] say which models there are, with which keys; configured against a [`Registry`](crate::models::Registry) they are
//!   [`Choice`]s.
//! * [`run`] fits one and scores it. An iterative model may first learn how many iterations are best: training that is watched on the
//!   validation set is [`fit_with_validation`].
//! * A [`Run`] has the model, its scores event by event, and a [`RunReport`] to keep or send. Two of them are compared event by event
//!   ([`Evaluation::difference_from`](crate::evaluate::Evaluation::difference_from)).
//!
//! Nothing is printed, nothing is global; settings and reports have serde.
//!
//! ```
#![doc = include_str!("../../examples/evaluate.rs")]
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
pub use settings::{Asked, Choice, GivenKeys, KeySetting, ModelSettings, SharedKeys};
pub use validation::{Validated, Validation, ValidationScore, fit_with_validation, score_variants};
pub use warning::{OffsetSource, Warning};
