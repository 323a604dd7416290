//! Bad rows: counted, or the end of the reading.

use super::{DataError, ReadOptions};

/// Messages of skipped rows that are kept.
const MESSAGES_KEPT: usize = 5;

/// Bad rows that may be left out, and those that were.
pub(super) struct Tolerance {
    allowed: u64,
    pub(super) skipped: u64,
    /// What was wrong with the first few of them.
    pub(super) messages: Vec<String>,
}

impl Tolerance {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Tolerance { allowed: options.skip_bad_rows, skipped: 0, messages: Vec::new() }
    }

    /// Leaves a bad row out, or ends the reading.
    #[cold]
    pub(super) fn reject(&mut self, error: DataError) -> Result<(), DataError> {
        if self.allowed == 0 {
            return Err(error);
        }
        if self.skipped == self.allowed {
            return Err(DataError::TooManyBadRows { allowed: self.allowed, last: Box::new(error) });
        }
        self.skipped += 1;
        if self.messages.len() < MESSAGES_KEPT {
            self.messages.push(error.to_string());
        }
        Ok(())
    }
}
