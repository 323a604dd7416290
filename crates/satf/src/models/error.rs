//! What can be wrong with a configuration or with fitting it.

use std::io;
use std::path::PathBuf;

use crate::byte_size::ByteSize;
use crate::fault::{Fault, lines};
use crate::monitor::Cancelled;
use crate::numbers::counted;

/// Why a model cannot be configured or fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Fields with values outside their ranges: all of them.
    #[error("the configuration of {model} has {}:{}", counted(faults.len(), "fault"),
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
    /// The model met the limit of its memory before it knew how much it needs.
    #[error("{model} needs at least {} of memory for {what}, and stopped counting at the {} allowed; {hint}",
        ByteSize(*least).beside(ByteSize(*allowed)), ByteSize(*allowed).beside(ByteSize(*least)))]
    MemoryReached {
        /// The model's name.
        model: &'static str,
        /// What takes the memory.
        what: String,
        /// Bytes needed so far.
        least: u64,
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
    /// What does not fit into memory cannot be put into temporary files.
    #[error("{model} cannot keep {} in temporary files in {}: {source}; make room there, or in another folder for temporary files, \
        or raise memory_bytes", ByteSize(*needed), folder.display())]
    TemporaryFile {
        /// The model's name.
        model: &'static str,
        /// Where they would be.
        folder: PathBuf,
        /// Bytes that they would have.
        needed: u64,
        /// What happened.
        source: io::Error,
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
    /// A variant that a trained model does not have.
    #[error("{model} has no such variant: {reason}")]
    Variant {
        /// The model's name.
        model: &'static str,
        /// What is wrong with the keys asked for.
        reason: String,
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
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

impl ModelError {
    /// `Ok` if there are no faults, else all of them in one error.
    pub fn from_faults(model: &'static str, faults: Vec<Fault>) -> Result<(), ModelError> {
        if faults.is_empty() { Ok(()) } else { Err(ModelError::Configuration { model, faults }) }
    }
}
