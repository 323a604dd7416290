//! What a reproduction tells its caller.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use satf::models::{Checkpoints, Iteration, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;

/// Watches a reproduction. Every method has a default, so `()` is a watcher too.
pub trait Watcher: TrainingMonitor {
    /// A line about how far the work is.
    fn narrate(&self, _line: &str) {}

    /// The words for an error that keeps a cell empty, in the report and in the warning about it: by default the error and its
    /// causes.
    fn word(&self, error: &(dyn Error + 'static)) -> String {
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
    }
}

impl Watcher for () {}

/// A watcher, with a folder for the unfinished training of one cell: a cell that takes long goes on where it was stopped.
pub(super) struct Keeping<'a> {
    pub(super) watcher: &'a dyn Watcher,
    pub(super) folder: PathBuf,
}

impl Monitor for Keeping<'_> {
    fn begin(&self, stage: &str, total: u64) {
        self.watcher.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.watcher.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.watcher.is_cancelled()
    }
}

impl TrainingMonitor for Keeping<'_> {
    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        self.watcher.iteration(report, snapshot)
    }

    fn progressed(&self, report: &Iteration) {
        self.watcher.progressed(report);
    }

    fn trained(&self, snapshot: &dyn Snapshot) {
        self.watcher.trained(snapshot);
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

impl Checkpoints for Keeping<'_> {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn resumed(&self, earlier: &[Iteration]) {
        if let Some(last) = earlier.last() {
            self.watcher.narrate(&format!("training resumes after iteration {}", last.iteration));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::reproduce::ReproduceError;

    #[test]
    fn an_error_is_told_with_its_causes() {
        let source = io::Error::other("the disk is full");
        let keep = ReproduceError::Keep { path: "cells/a.json".into(), source };
        let error = ReproduceError::Cell { what: "MP on a shop".to_owned(), source: Box::new(keep) };
        let told = ().word(&error);
        assert!(told.starts_with("MP on a shop: cells/a.json: cannot be saved"), "{told}");
        assert!(told.ends_with(": the disk is full"), "{told}");
    }
}
