//! A monitor that keeps what training reports.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::models::{Checkpoints, Iteration, Memory, RecallError, Snapshot, TrainingMonitor};
use crate::monitor::Monitor;

/// Keeps the iterations of a training, and passes everything on to the monitor inside.
pub struct Recorder<'a> {
    inner: &'a dyn TrainingMonitor,
    recorded: Mutex<Recorded>,
}

/// The iterations of a training.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// All of them, also those of earlier runs if it went on from a checkpoint.
    pub iterations: Vec<Iteration>,
    /// Seconds of those of earlier runs.
    pub earlier_seconds: f64,
}

impl<'a> Recorder<'a> {
    /// Nothing is recorded yet.
    pub fn new(inner: &'a dyn TrainingMonitor) -> Self {
        Recorder { inner, recorded: Mutex::default() }
    }

    /// What was recorded.
    pub fn finish(self) -> Recorded {
        self.recorded.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checkpoints_inside(&self) -> &dyn Checkpoints {
        self.inner.checkpoints().expect("invariant: given out only where the monitor inside has some")
    }
}

impl Monitor for Recorder<'_> {
    fn begin(&self, stage: &str, total: u64) {
        self.inner.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.inner.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}

impl TrainingMonitor for Recorder<'_> {
    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        self.recorded().iterations.push(report.clone());
        self.inner.iteration(report, snapshot)
    }

    fn progressed(&self, report: &Iteration) {
        self.recorded().iterations.push(report.clone());
        self.inner.progressed(report);
    }

    fn trained(&self, snapshot: &dyn Snapshot) {
        self.inner.trained(snapshot);
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        self.inner.checkpoints().is_some().then_some(self as &dyn Checkpoints)
    }
}

impl Checkpoints for Recorder<'_> {
    fn folder(&self) -> &Path {
        self.checkpoints_inside().folder()
    }

    fn memory(&self) -> Option<Memory> {
        self.checkpoints_inside().memory()
    }

    fn recall(&self, memory: &Memory, best: Option<&dyn Snapshot>) -> Result<ControlFlow<()>, RecallError> {
        self.checkpoints_inside().recall(memory, best)
    }

    fn resumed(&self, earlier: &[Iteration]) {
        {
            let mut recorded = self.recorded();
            recorded.earlier_seconds += earlier.iter().map(|report| report.seconds).sum::<f64>();
            recorded.iterations.extend_from_slice(earlier);
        }
        self.checkpoints_inside().resumed(earlier);
    }
}
