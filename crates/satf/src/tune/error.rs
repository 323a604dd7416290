//! What can go wrong with a search.

use std::io;
use std::path::{Path, PathBuf};

use crate::evaluate::EvaluateError;
use crate::fault::lines;
use crate::models::{ConfigError, ModelError};

/// Why a search cannot begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A space that cannot be read: all its faults.
    #[error("the space {name} has {} fault(s):{}", faults.len(), lines(faults))]
    Space {
        /// The space's name, or the file it is in.
        name: String,
        /// One line a fault.
        faults: Vec<String>,
    },
    /// No such space.
    #[error("{model} has no space '{name}'{}; {}",
        nearest.as_ref().map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default(),
        if known.is_empty() { "it has none: give a TOML file with one".to_owned() }
        else { format!("it has {}, or give a TOML file", known.join(", ")) })]
    UnknownSpace {
        /// The model.
        model: String,
        /// The name asked for.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// No point of the space can be trained.
    #[error("no point of the space {space} is valid on this log; the first of its {points} points: {reason}")]
    NoValidPoint {
        /// The space.
        space: String,
        /// How many points it has.
        points: usize,
        /// What is wrong with the first one.
        reason: String,
    },
    /// A configuration that cannot be built.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// A file of the study cannot be read or written.
    #[error("{}: cannot {action}: {source}{hint}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The folder does not hold a study, or a damaged one.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// Which file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder holds the study of another command.
    #[error("{} holds another study, which differs in:{}\nhint: repeat its command, or give another folder with --study",
        folder.display(), lines(differences))]
    OtherStudy {
        /// The folder.
        folder: PathBuf,
        /// One line a difference.
        differences: Vec<String>,
    },
    /// Another process writes the study.
    #[error("another run is at work on the study {}; wait for it, or stop it, then run this command again", .0.display())]
    Locked(PathBuf),
    /// Every trial failed.
    #[error("none of {trials} trials could be scored; the first: {reason}")]
    AllFailed {
        /// How many were run.
        trials: usize,
        /// The first failure.
        reason: String,
    },
    /// The final model could not be fitted.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The final model could not be scored.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// Threads for the jobs could not be started.
    #[error("cannot start {jobs} jobs: {reason}")]
    Threads {
        /// How many were asked for.
        jobs: usize,
        /// Why not.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("stopped on request after {done} of {asked} trials, all of them kept in {}; the same command goes on from there",
        folder.display())]
    Stopped {
        /// Trials done.
        done: usize,
        /// Trials asked for.
        asked: usize,
        /// The study.
        folder: PathBuf,
    },
}

impl TuneError {
    pub(super) fn file(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> TuneError {
        move |source| {
            let hint = match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "; hint: choose a folder you may write to with --study"
                }
                io::ErrorKind::StorageFull => {
                    "; what was done is kept: free some space and run the same command again"
                }
                _ => "",
            };
            TuneError::File { path: path.to_owned(), action, source, hint }
        }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> TuneError {
        TuneError::Damaged { path: path.to_owned(), reason: reason.into() }
    }
}
