//! What training may take: known before anything is allocated, and refused where it is too much.

use super::ModelError;

/// What `memory_bytes` of a configuration means if it is not given.
pub(super) const DEFAULT_MEMORY_BYTES: u64 = 8 << 30;

/// An error if `what` needs more bytes than allowed.
pub(super) fn check_memory(
    model: &'static str,
    what: impl FnOnce() -> String,
    needed: u64,
    allowed: Option<u64>,
    hint: &'static str,
) -> Result<(), ModelError> {
    let allowed = allowed.unwrap_or(DEFAULT_MEMORY_BYTES);
    if needed <= allowed {
        return Ok(());
    }
    Err(ModelError::Memory { model, what: what(), needed, allowed, hint })
}
