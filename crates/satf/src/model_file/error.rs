//! What can be wrong with a model file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::FORMAT_VERSION;
use crate::byte_size::ByteSize;
use crate::counts::CountsError;
use crate::models::{TensorError, crate_with};

/// Why a model file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file cannot be written; the old one, if any, is untouched.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else than a model.
    #[error("{}: not a satf model file: {reason}; hint: {}", path.display(), ModelFileHint::SaveOne)]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// How that can be told.
        reason: String,
    },
    /// A file that is larger than the caller takes.
    #[error("{}: the file has {}, at most {} are taken", path.display(), ByteSize(*length), ByteSize(*limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The longest that is taken.
        limit: u64,
    },
    /// The content is not what was written.
    #[error(
        "{}: its content does not match its checksum: the file is damaged or cut off; hint: copy it again, or train again",
        path.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
    },
    /// A later format.
    #[error(
        "{}: a model file of format version {version}, this program reads version {FORMAT_VERSION}; hint: use a \
         newer satf, or train again with this one",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it claims.
        version: String,
    },
    /// A header or manifest that contradicts the file or itself.
    #[error("{}: an invalid model file: {reason}; hint: train again", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A model that the registry does not have.
    #[error("{}: it holds the model '{model}', which the registry it is loaded with does not have{}{}", path.display(),
        nearest.as_ref().map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default(), where_to_find(model))]
    UnknownModel {
        /// The file.
        path: PathBuf,
        /// The model's name; [`crate_with`] knows the crates of some.
        model: String,
        /// The nearest name that the registry has.
        nearest: Option<String>,
    },
    /// An array that is not what the model needs.
    #[error("{}: {source}; hint: train again", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// Which, and what is wrong with it.
        source: TensorError,
    },
}

/// Why the statistics of a model cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatisticsError {
    /// The model was trained without them.
    #[error(
        "the model was trained without statistics; hint: train it again with FitOptions::with_statistics"
    )]
    None,
    /// The model was read into memory, and they were left in its file.
    #[error("the model was read into memory without its statistics; hint: Model::load leaves them at hand")]
    NotLoaded,
    /// They are not what was written.
    #[error(
        "the statistics of the model do not match their checksum: the file is damaged; hint: copy it again, or train again"
    )]
    Checksum,
    /// An array that is not what it should be.
    #[error("the statistics of the model: {0}; hint: train again")]
    Tensor(#[from] TensorError),
    /// They cannot be counted.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

fn where_to_find(model: &str) -> String {
    match crate_with(model) {
        Some(home) => {
            let name = home.replace('-', "_");
            format!(
                "\nhint: the crate {home} has it; load the file with Model::load_with(path, &{name}::registry())"
            )
        }
        None => "\nhint: load the file with Model::load_with and a registry that has it".to_owned(),
    }
}

/// What the caller can do about a [`ModelFileError`]. Its text ends that of the error, after `hint: `; a program with options of
/// its own words it itself instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelFileHint {
    /// Train a model and save it first.
    SaveOne,
}

impl fmt::Display for ModelFileHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelFileHint::SaveOne => f.write_str("Model::save writes one"),
        }
    }
}

impl ModelFileError {
    /// What the caller can do about it, where that is more than to train again. It is part of the error's text.
    pub fn hint(&self) -> Option<ModelFileHint> {
        matches!(self, ModelFileError::NotAModel { .. }).then_some(ModelFileHint::SaveOne)
    }
}
