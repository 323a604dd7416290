//! What long work tells its caller while it runs, and how it is asked to stop.
//!
//! A monitor knows no model. What training tells beyond this is in
//! [`TrainingMonitor`](crate::models::TrainingMonitor).

/// Watches long work: shows progress, may stop it.
///
/// Every method has a default that does nothing, so `()` is a monitor too.
pub trait Monitor: Sync {
    /// A stage of known length begins (`total` steps; 0 if the length is unknown).
    fn begin(&self, _stage: &str, _total: u64) {}

    /// The current stage got further by `steps`.
    fn advance(&self, _steps: u64) {}

    /// Whether the caller wants the work to end early. Long work asks often, through [`check_cancelled`].
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Monitor for () {}

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
