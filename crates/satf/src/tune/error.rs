//! What can go wrong with a search.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::SpaceFault;
use super::study::{FORMAT, STUDY};
use crate::data::DataError;
use crate::experiment::ExperimentError;
use crate::fault::lines;
use crate::models::{ConfigError, ModelError};
use crate::monitor::Cancelled;
use crate::numbers::counted;

/// Why a search cannot begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// A space that cannot be read: all its faults.
    #[error("the space {name} has {}:{}", counted(faults.len(), "fault"), lines(faults))]
    Space {
        /// The space's name, or the file it is in.
        name: String,
        /// Every fault.
        faults: Vec<SpaceFault>,
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
    #[error("no point of the space {space} is valid on this log; the first of its {}: {reason}", counted(*points, "point"))]
    NoValidPoint {
        /// The space.
        space: String,
        /// How many points it has.
        points: usize,
        /// What is wrong with the first one.
        reason: String,
    },
    /// The file of a space cannot be read.
    #[error(transparent)]
    Read(#[from] DataError),
    /// A configuration that cannot be built.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// A file of the study cannot be read or written.
    #[error("{}: cannot {action}: {source}{}", path.display(),
        hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default())]
    File {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
        /// What to do.
        hint: Option<TuneHint>,
    },
    /// The folder does not hold a study, or a damaged one, or a space cannot be read.
    #[error("{}: {damage}", path.display())]
    Damaged {
        /// Which file or folder.
        path: PathBuf,
        /// What is wrong with it.
        damage: Box<Damage>,
    },
    /// The folder holds another study.
    #[error("{} holds another study, which differs in:{}\nhint: {}",
        folder.display(), lines(differences), TuneHint::RepeatOrMove)]
    OtherStudy {
        /// The folder.
        folder: PathBuf,
        /// One line a difference.
        differences: Vec<String>,
    },
    /// Another process writes the study.
    #[error("another run is at work on the study {}; hint: {}", .0.display(), TuneHint::Wait)]
    Locked(PathBuf),
    /// Every trial failed.
    #[error("none of {} could be scored; the first: {reason}", counted(*trials, "trial"))]
    AllFailed {
        /// How many were run.
        trials: usize,
        /// The first failure.
        reason: String,
    },
    /// A model that cannot learn from the log, or a training that cannot be kept.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The final model could not be fitted or scored.
    #[error(transparent)]
    Refit(#[from] ExperimentError),
    /// Threads for the jobs could not be started.
    #[error("cannot start {jobs} jobs: {reason}")]
    Threads {
        /// How many were asked for.
        jobs: usize,
        /// Why not.
        reason: String,
    },
    /// The caller asked to stop.
    #[error("stopped on request after {done} of {asked} trials, all of them kept in {}; {}",
        folder.display(), TuneHint::GoOn)]
    Stopped {
        /// Trials done.
        done: usize,
        /// Trials asked for.
        asked: usize,
        /// The study.
        folder: PathBuf,
        /// By which every error of this kind is known.
        source: Cancelled,
    },
    /// The caller asked to stop before there was a trial.
    #[error("stopped on request, before the first trial")]
    StoppedEarly(#[from] Cancelled),
}

/// What is wrong with a file or folder of a search.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Damage {
    /// No study is in the folder.
    NoStudy,
    /// The folder is neither empty nor a study: it holds this.
    Stranger(String),
    /// A study of another release, with this format.
    Format(serde_json::Value),
    /// A file that is not what a study writes: what the parser says.
    Content(String),
    /// A space that is not TOML: what the parser says.
    NotToml(String),
    /// A line of the trial log that cannot be read.
    Line {
        /// Counted from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A trial that appears twice.
    Repeated {
        /// The line of the second one, counted from 1.
        line: usize,
        /// The trial.
        trial: usize,
    },
    /// A trial that this search would not have tried.
    OtherTrial {
        /// The trial.
        trial: usize,
        /// Its keys.
        kept: serde_json::Value,
        /// The keys that this search would try.
        asked: serde_json::Value,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::NoStudy => {
                write!(f, "no study here: expected a folder with {STUDY}, {}", TuneHint::StudyIsMade)
            }
            Damage::Stranger(name) => {
                write!(f, "it holds {name} but no study ({STUDY}); hint: {}", TuneHint::EmptyFolder)
            }
            Damage::Format(found) => {
                write!(f, "format {found}: expected {FORMAT}; another release of satf wrote it")
            }
            Damage::Content(reason) => write!(f, "not what a study writes: {reason}"),
            Damage::NotToml(reason) => write!(f, "not TOML: {reason}"),
            Damage::Line { line, reason } => {
                write!(f, "line {line} is damaged: {reason}; hint: {}", TuneHint::NewStudy)
            }
            Damage::Repeated { line, trial } => write!(f, "line {line}: trial {trial} appears twice"),
            Damage::OtherTrial { trial, kept, asked } => {
                let hint = TuneHint::NewStudy;
                write!(f, "trial {trial} has {kept}, where this search would try {asked}; hint: {hint}")
            }
        }
    }
}

/// What the caller can do about a [`TuneError`]. Its text is part of the error's; a program with options of its own words it itself
/// instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuneHint {
    /// Begin a study, or give the folder of one.
    StudyIsMade,
    /// Give a folder that is empty or not there yet.
    EmptyFolder,
    /// Begin a new study.
    NewStudy,
    /// Give a folder that can be written to.
    WritableFolder,
    /// Free some space and ask again: nothing is lost.
    FreeSpace,
    /// Ask for the same as before, or give another folder.
    RepeatOrMove,
    /// Wait for the other run, or stop it.
    Wait,
    /// Ask for the same again: the search continues where it stopped.
    GoOn,
}

impl fmt::Display for TuneHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TuneHint::StudyIsMade => "as Study::open makes it",
            TuneHint::EmptyFolder => "give an empty or new folder",
            TuneHint::NewStudy => "begin a new study",
            TuneHint::WritableFolder => "choose a folder you may write to",
            TuneHint::FreeSpace => "what was done is kept: free some space and search again",
            TuneHint::RepeatOrMove => "ask for the same again, or give another folder",
            TuneHint::Wait => "wait for it, or stop it, then try again",
            TuneHint::GoOn => "the same search continues from there",
        })
    }
}

impl TuneError {
    /// What the caller can do about it, if that is a matter of the request. It is part of the error's text.
    pub fn hint(&self) -> Option<TuneHint> {
        match self {
            TuneError::File { hint, .. } => *hint,
            TuneError::Damaged { damage, .. } => match &**damage {
                Damage::NoStudy => Some(TuneHint::StudyIsMade),
                Damage::Stranger(_) => Some(TuneHint::EmptyFolder),
                Damage::Line { .. } | Damage::OtherTrial { .. } => Some(TuneHint::NewStudy),
                _ => None,
            },
            TuneError::OtherStudy { .. } => Some(TuneHint::RepeatOrMove),
            TuneError::Locked(_) => Some(TuneHint::Wait),
            TuneError::Stopped { .. } => Some(TuneHint::GoOn),
            _ => None,
        }
    }

    pub(super) fn file(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> TuneError {
        move |source| {
            let hint = match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some(TuneHint::WritableFolder)
                }
                io::ErrorKind::StorageFull => Some(TuneHint::FreeSpace),
                _ => None,
            };
            TuneError::File { path: path.to_owned(), action, source, hint }
        }
    }

    pub(super) fn damaged(path: &Path, damage: Damage) -> TuneError {
        TuneError::Damaged { path: path.to_owned(), damage: Box::new(damage) }
    }

    /// What was read is not what a study writes.
    pub(super) fn content(path: &Path, reason: &impl fmt::Display) -> TuneError {
        TuneError::damaged(path, Damage::Content(reason.to_string()))
    }
}
