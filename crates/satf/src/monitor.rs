//! What long work tells its caller while it runs, and what it asks of it.

use std::ops::ControlFlow;

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

    /// Training in one go is over. Called by models that do not iterate but serve several configurations at once: each of
    /// them can be had from `snapshot`.
    fn trained(&self, _snapshot: &dyn Snapshot) {}
}

impl Monitor for () {}

/// The caller asked the work to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped on request; nothing was written")]
pub struct Cancelled;

/// An error if the caller wants to stop.
pub fn check_cancelled(monitor: &dyn Monitor) -> Result<(), Cancelled> {
    if monitor.is_cancelled() { Err(Cancelled) } else { Ok(()) }
}
