//! What can keep an experiment from being made.

use std::fmt;

use crate::evaluate::EvaluateError;
use crate::models::{ConfigError, ModelError, UnknownPreset};
use crate::monitor::Cancelled;
use crate::prepare::SplitError;

/// Why an experiment cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The log has an order but no times, and a cut by the calendar was asked for.
    #[error(
        "this log has no times, only an order, so it cannot be cut by the calendar; hint: {}",
        ExperimentHint::LeaveOneOut
    )]
    NoTimes,
    /// No offsets were given, and none suit the log.
    #[error(
        "no usual offset, nor a share of the rows, leaves enough of them for training, validation and test; hint: {}",
        ExperimentHint::GiveOffsets
    )]
    NoOffsets,
    /// No length of the test set was given, and none suits the log.
    #[error(
        "no usual offset, nor a share of the rows, leaves enough of them to train on and to predict; hint: {}",
        ExperimentHint::GiveTest
    )]
    NoTestOffset,
    /// Presets that belong to different protocols cannot be compared in one experiment.
    #[error("{first} and {other} belong to different protocols: run them one by one")]
    DifferentProtocols {
        /// One preset.
        first: String,
        /// One of another protocol.
        other: String,
    },
    /// Settings that cannot be meant.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A log that cannot be split as asked.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A model that cannot be configured.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// A model that cannot be fitted.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A model that cannot be scored.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// What is wrong with the settings of an experiment's models.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// No such model.
    #[error(transparent)]
    Model(#[from] ConfigError),
    /// No such preset.
    #[error(transparent)]
    Preset(#[from] UnknownPreset),
    /// A key for a model that was not asked for.
    #[error("{model}.{key}: {model} is not among the models asked for")]
    NotAsked {
        /// The model.
        model: String,
        /// The key.
        key: String,
    },
    /// A key without its model, where there are several.
    #[error("{key}: with several models say which one, such as {example}.{key}")]
    WhichModel {
        /// The key.
        key: String,
        /// One of the models.
        example: String,
    },
    /// A configuration that has tables for models, and something else.
    #[error("'{0}' in the configuration: expected only tables named after models, as it has one")]
    NotOnlyTables(String),
    /// A configuration with a table for a model that was not asked for.
    #[error("[{0}] in the configuration: {0} is not among the models asked for")]
    TableNotAsked(String),
    /// A configuration without tables for models, where there are several.
    #[error("with several models the configuration needs a table for each, such as [{0}]")]
    NoTables(String),
    /// A shared key whose value is more than a configuration can hold.
    #[error("{key} = {value}: expected at most 2^63 - 1")]
    TooLarge {
        /// `seed`, `max_len` or `memory_bytes`.
        key: &'static str,
        /// Its value.
        value: u64,
    },
}

/// What the caller can do about an [`ExperimentError`]. Its text ends that of the error, after `hint: `; a program with options of its
/// own words it itself instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExperimentHint {
    /// Cut by leave-one-out, which needs no times.
    LeaveOneOut,
    /// Give the lengths of the validation set and of the test set.
    GiveOffsets,
    /// Give the length of the test set, or cut by leave-one-out.
    GiveTest,
}

impl fmt::Display for ExperimentHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExperimentHint::LeaveOneOut => "cut it by leave-one-out",
            ExperimentHint::GiveOffsets => {
                "give the lengths of the validation set and of the test set, such as 3weeks"
            }
            ExperimentHint::GiveTest => {
                "give the length of the test set, such as 3weeks, or cut it by leave-one-out"
            }
        })
    }
}

impl ExperimentError {
    /// What the caller can do about it. It is part of the error's text.
    pub fn hint(&self) -> Option<ExperimentHint> {
        match self {
            ExperimentError::NoTimes => Some(ExperimentHint::LeaveOneOut),
            ExperimentError::NoOffsets => Some(ExperimentHint::GiveOffsets),
            ExperimentError::NoTestOffset => Some(ExperimentHint::GiveTest),
            _ => None,
        }
    }
}
