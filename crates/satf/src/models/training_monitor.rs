//! What training reports to its caller beyond progress: every iteration, and checkpoints to resume from.

use std::ops::ControlFlow;
use std::path::Path;

use super::{Iteration, ModelError, Snapshot};
use crate::monitor::Monitor;
use crate::numbers::{Count, counted};

/// Watches a training: sees every iteration of a model that learns iteratively, and may end it.
///
/// Every method has a default that does nothing, so `()` watches a training too.
pub trait TrainingMonitor: Monitor {
    /// An iteration of training is over. The model as it stands can be had from `snapshot`, for instance to
    /// score it on a validation split; [`ControlFlow::Break`] ends training with the factors as they are.
    fn iteration(&self, _report: &Iteration, _snapshot: &dyn Snapshot) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An iteration of training is over after which the model is not scored: only measurements are reported.
    fn progressed(&self, _report: &Iteration) {}

    /// Training in one go is over. Called by models that do not iterate but serve several configurations at once: each of
    /// them can be had from `snapshot`.
    fn trained(&self, _snapshot: &dyn Snapshot) {}

    /// Where unfinished training is kept, if the caller wants that. Models whose training takes long keep checkpoints there
    /// and go on from them.
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        None
    }
}

impl TrainingMonitor for () {}

/// Where unfinished training is kept, and what a resumed training must report to its monitor again.
pub trait Checkpoints: Sync {
    /// The folder. It may not be there yet.
    fn folder(&self) -> &Path;

    /// What the monitor has to be given again if training resumes from a checkpoint. Asked after every iteration.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Training resumes from a checkpoint: what the monitor remembered then, and the model of the iteration that was best.
    /// [`ControlFlow::Break`] if that training was to end there. An error if it cannot go on from there, and training begins
    /// anew.
    fn recall(&self, _memory: &Memory, _best: Option<&dyn Snapshot>) -> Result<ControlFlow<()>, RecallError> {
        Ok(ControlFlow::Continue(()))
    }

    /// Training resumes from a checkpoint: the iterations before it, whose time was spent by an earlier run. Called after
    /// [`Checkpoints::recall`].
    fn resumed(&self, _earlier: &[Iteration]) {}
}

/// What a monitor remembers of the iterations it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Everything, in a form of its own.
    pub text: String,
    /// The iteration whose model it will want again.
    pub best: Option<usize>,
}

/// Why training cannot go on from a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// What was remembered is not what this monitor remembers: what the parser says.
    #[error("no validation curve: {0}")]
    Unreadable(String),
    /// No monitor of this kind saw the iterations before it.
    #[error("the epochs before it were not watched")]
    NotWatched,
    /// It was scored by another metric or on other events.
    #[error("it watched {} on {}, this training watches {} on {}", then.0, counted(then.1, "event"), now.0, Count::of(now.1))]
    OtherValidation {
        /// Metric and number of events then.
        then: (String, usize),
        /// Metric and number of events now.
        now: (String, usize),
    },
    /// It went on past the iteration that ends this training.
    #[error("it went on to iteration {reached}, which a patience of {patience} ends after iteration {end}")]
    TooFar {
        /// The last iteration.
        reached: usize,
        /// Scores without growth that this training allows.
        patience: usize,
        /// The iteration that ends it.
        end: usize,
    },
    /// The score or the model of the best iteration is missing.
    #[error("the model of its best iteration {0} is missing, or its score")]
    NoBest(usize),
    /// The model of the best iteration cannot be had.
    #[error(transparent)]
    Model(#[from] ModelError),
}
