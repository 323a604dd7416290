//! What long work tells its caller while it runs, and what it asks of it.

use std::ops::ControlFlow;
use std::path::Path;

use crate::models::{Iteration, Snapshot};

/// Watches long work: shows progress, sees every iteration of a model that learns iteratively, may stop it.
///
/// Every method has a default that does nothing, so `()` is a monitor too.
pub trait Monitor: Sync {
    /// A stage of known length begins (`total` steps; 0 if the length is unknown).
    fn begin(&self, _stage: &str, _total: u64) {}

    /// The current stage got further by `steps`.
    fn advance(&self, _steps: u64) {}

    /// Whether the caller wants the work to end early. Asked often; long work answers with
    /// [`Cancelled`].
    fn is_cancelled(&self) -> bool {
        false
    }

    /// An iteration of training is over. The model as it stands can be had from `snapshot`, for instance to
    /// score it on a validation split; [`ControlFlow::Break`] ends training with the factors as they are.
    fn iteration(&self, _report: &Iteration, _snapshot: &dyn Snapshot) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// An iteration of training is over after which the model is not looked at: only what was measured is told.
    fn progressed(&self, _report: &Iteration) {}

    /// The folder in which unfinished training is kept, if the caller wants that. Models whose training takes long keep
    /// checkpoints there and go on from them.
    fn checkpoints(&self) -> Option<&Path> {
        None
    }

    /// What this monitor has to be told again if training goes on from a checkpoint. Asked after every iteration.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Training goes on from a checkpoint: what this monitor remembered then, and the model of the iteration that was best.
    /// [`ControlFlow::Break`] if that training was to end there. An error if it cannot go on from there, and training begins
    /// anew.
    fn recall(&self, _memory: &Memory, _best: Option<&dyn Snapshot>) -> Result<ControlFlow<()>, String> {
        Ok(ControlFlow::Continue(()))
    }

    /// Training goes on from a checkpoint: the iterations before it, whose time was spent by an earlier run. Called after
    /// [`Monitor::recall`].
    fn resumed(&self, _earlier: &[Iteration]) {}

    /// Training in one go is over. Called by models that do not iterate but serve several configurations at once: each of
    /// them can be had from `snapshot`.
    fn trained(&self, _snapshot: &dyn Snapshot) {}
}

impl Monitor for () {}

/// What a monitor remembers of the iterations it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Everything, in a form of its own.
    pub text: String,
    /// The iteration whose model it will want again.
    pub best: Option<usize>,
}

/// The caller asked the work to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request; nothing was written")]
pub struct Cancelled;

/// A monitor that can stop work and shows nothing: for work that is part of something whose progress is shown.
pub(crate) struct OnlyCancels<'a>(pub(crate) &'a dyn Monitor);

impl Monitor for OnlyCancels<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// An error if the caller wants to stop.
pub fn check_cancelled(monitor: &dyn Monitor) -> Result<(), Cancelled> {
    if monitor.is_cancelled() { Err(Cancelled) } else { Ok(()) }
}
