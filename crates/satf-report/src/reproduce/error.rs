//! Why a reproduction ends early.

use std::io;
use std::path::PathBuf;

use satf::data::DataError;
use satf::experiment::{ExperimentError, SettingsError};
use satf::fault::lines;
use satf::models::{ConfigError, ModelError, UnknownPreset};
use satf::monitor::Cancelled;
use satf::numbers::counted;
use satf::prepare::SplitError;
use satf::tune::TuneError;

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// Its file cannot be read.
    #[error(transparent)]
    Read(#[from] DataError),
    /// It is not TOML, or has keys that suites do not have, or values of other types.
    #[error("{0}")]
    Syntax(String),
    /// What can be told without data is wrong with it.
    #[error("the suite has {}:{}", counted(.0.len(), "fault"), lines(.0))]
    Faults(Vec<String>),
    /// A suite of a file is wrong.
    #[error("{}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<SuiteError>,
    },
    /// A name that is not in the suite.
    #[error("'{name}' is neither a dataset nor a model of the suite{}; known: {}",
        nearest.as_ref().map(|near| format!(", did you mean '{near}'?")).unwrap_or_default(), known.join(", "))]
    UnknownName {
        /// The name.
        name: String,
        /// The name that may be meant.
        nearest: Option<String>,
        /// All names.
        known: Vec<String>,
    },
    /// A model is to be run that the registry does not have.
    #[error("'{name}' cannot be run")]
    CannotRun {
        /// Its name in the suite.
        name: String,
        /// Why not.
        source: ConfigError,
    },
}

/// Why a reproduction ends early. Cells that are done are kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// The suite cannot be used.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// No dataset of the suite is in the folder.
    #[error("{}: none of the datasets is there; looked for {}", data.display(), looked_for.join("; "))]
    NoData {
        /// The folder.
        data: PathBuf,
        /// Titles of the datasets and names of their files.
        looked_for: Vec<String>,
    },
    /// A log cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A log cannot be cut as the suite says.
    #[error("dataset '{dataset}'")]
    Split {
        /// Its name.
        dataset: String,
        /// Why not.
        source: SplitError,
    },
    /// A model takes presets, and a dataset has none.
    #[error("model '{model}' has presets, dataset '{dataset}' none: expected preset = '…'")]
    NoPreset {
        /// The model.
        model: String,
        /// The dataset.
        dataset: String,
    },
    /// There is no such preset.
    #[error(transparent)]
    UnknownPreset(#[from] UnknownPreset),
    /// Times by rank are asked of a model that has none.
    #[error("it has no item factor: leave it out of [[ranks]]")]
    NoItemFactor,
    /// A model cannot be configured.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// The seed or another shared key does not fit.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A model cannot be fitted or scored.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A search ended early.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// A search scored nothing.
    #[error("{}: no trial could be scored", .0.display())]
    NoTrial(PathBuf),
    /// A value that a search found cannot be a key.
    #[error("a value that the search found cannot be written as TOML")]
    Value(#[from] toml::ser::Error),
    /// One cell cannot be filled.
    #[error("{what}")]
    Cell {
        /// The cell: model, dataset and what is measured.
        what: String,
        /// Why not.
        source: Box<ReproduceError>,
    },
    /// The folder of cells cannot be used.
    #[error("{}: {problem}", path.display())]
    Folder {
        /// The folder, or a file of it.
        path: PathBuf,
        /// What cannot be done.
        problem: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Another process fills cells in this folder.
    #[error("{}: another process is working here; wait for it, or choose another folder", .0.display())]
    Busy(PathBuf),
    /// A file is in the place of a cell that is none, and it would be lost.
    #[error(
        "{}: this file is not of a cell that satf wrote, and would be lost; hint: move it, or choose another folder",
        .0.display()
    )]
    Foreign(PathBuf),
    /// A cell cannot be kept.
    #[error("{}: cannot be saved; cells done before it are safe, and the same request continues from there", path.display())]
    Keep {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("stopped on request; {done} of {of} cells are kept in {}, the same command continues from there", out.display())]
    Stopped {
        /// How many cells are done.
        done: usize,
        /// How many there are.
        of: usize,
        /// The folder that holds them.
        out: PathBuf,
        /// The request to stop.
        source: Cancelled,
    },
}

impl ReproduceError {
    /// Whether it is one model that cannot be run, and not something that keeps others from being run too.
    pub(super) fn is_of_one_model(&self) -> bool {
        matches!(self, ReproduceError::Experiment(ExperimentError::Model(error)) if !matches!(error, ModelError::Checkpoint { .. }))
    }
}
