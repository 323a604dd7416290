//! What long work reports to its caller while it runs, and how it is asked to stop.
//!
//! A monitor does not depend on models. What training reports beyond this is in
//! [`TrainingMonitor`](crate::models::TrainingMonitor).

use std::error::Error;
use std::io;

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
#[error("stopped on request")]
pub struct Cancelled;

impl Cancelled {
    /// Whether an error is a request to stop, or caused by one: found by its type, however deep it lies among the causes.
    pub fn is_cause_of(error: &(dyn Error + 'static)) -> bool {
        // A reader or a writer carries it inside, which is not the source of its error.
        let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        error.is::<Cancelled>()
            || carried.is_some_and(|carried| Cancelled::is_cause_of(carried))
            || error.source().is_some_and(Cancelled::is_cause_of)
    }
}

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
