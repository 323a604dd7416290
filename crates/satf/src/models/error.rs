//! What can be wrong with a configuration or with fitting it.

use std::fmt;
use std::path::PathBuf;

use crate::byte_size::ByteSize;
use crate::monitor::Cancelled;

/// One wrong field of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
pub struct Fault {
    /// The field's name, as in the configuration file.
    pub field: &'static str,
    /// The value given.
    pub value: String,
    /// What is allowed.
    pub expected: String,
}

impl Fault {
    /// A fault of `field`, which has `value` where `expected` was allowed.
    pub fn new(field: &'static str, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Fault { field, value: value.to_string(), expected: expected.into() }
    }
}

/// Why a model cannot be configured or fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Fields with values outside their ranges: all of them.
    #[error("the configuration of {model} has {} fault(s):{}", faults.len(),
        lines(faults))]
    Configuration {
        /// The model's name.
        model: &'static str,
        /// Every fault.
        faults: Vec<Fault>,
    },
    /// The model would need more memory than allowed.
    #[error("{model} needs {} of memory for {what}, more than the {} allowed; {hint}",
        ByteSize(*needed).beside(ByteSize(*allowed)), ByteSize(*allowed).beside(ByteSize(*needed)))]
    Memory {
        /// The model's name.
        model: &'static str,
        /// What takes the memory.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        allowed: u64,
        /// What to do instead.
        hint: &'static str,
    },
    /// The histories cannot be learned from.
    #[error("{model} cannot learn from this log: {reason}")]
    Data {
        /// The model's name.
        model: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The numbers went wrong (a decomposition failed, a value is not finite).
    #[error("{model}: {reason}")]
    Numerics {
        /// The model's name.
        model: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// The model cannot be had in fewer bytes.
    #[error("{model} cannot be quantized to {quantization}: {reason}")]
    Quantization {
        /// The model's name.
        model: String,
        /// What was asked for.
        quantization: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// Training cannot go on from a checkpoint, or cannot keep one.
    #[error("{model}: checkpoint {}: {reason}", path.display())]
    Checkpoint {
        /// The model's name.
        model: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The caller asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Each fault on an indented line of its own.
pub(crate) fn lines(faults: &[impl fmt::Display]) -> String {
    use fmt::Write;
    faults.iter().fold(String::new(), |mut text, fault| {
        write!(text, "\n  {fault}").expect("invariant: writing to a string does not fail");
        text
    })
}

impl ModelError {
    /// `Ok` if there is no fault, else all of them in one error.
    pub fn from_faults(model: &'static str, faults: Vec<Fault>) -> Result<(), ModelError> {
        if faults.is_empty() { Ok(()) } else { Err(ModelError::Configuration { model, faults }) }
    }
}
