//! Workspaces of those who keep none themselves.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use crate::models::Workspace;

/// Workspaces that are not in use: as many as ever were at one time.
#[derive(Default)]
pub(super) struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    /// One of them, or a new one.
    pub(super) fn take(&self) -> Borrowed<'_> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Borrowed { from: self, workspace: kept.unwrap_or_default() }
    }
}

/// A workspace in use; it goes back when it is dropped.
pub(super) struct Borrowed<'w> {
    from: &'w Workspaces,
    workspace: Workspace,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        let workspace = std::mem::take(&mut self.workspace);
        self.from.0.lock().unwrap_or_else(PoisonError::into_inner).push(workspace);
    }
}

impl Deref for Borrowed<'_> {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Workspace {
        &mut self.workspace
    }
}
