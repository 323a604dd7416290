//! Bad rows: counted, or the end of the reading.

use super::rows::Rows;
use super::{DataError, ReadOptions};

/// Messages of skipped rows that are kept.
const MESSAGES_KEPT: usize = 5;

/// Bad rows that may be left out, and those that were.
pub(super) struct Tolerance {
    allowed: u64,
    pub(super) skipped: u64,
    /// What was wrong with the first few of them.
    pub(super) messages: Vec<String>,
    /// How many were left out of earlier files.
    skipped_before: u64,
    /// The first one of this file.
    first: Option<Box<DataError>>,
}

impl Tolerance {
    pub(super) fn new(options: &ReadOptions) -> Self {
        Tolerance {
            allowed: options.skip_bad_rows,
            skipped: 0,
            messages: Vec::new(),
            skipped_before: 0,
            first: None,
        }
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
        self.first.get_or_insert_with(|| Box::new(error));
        Ok(())
    }

    /// Another file begins.
    pub(super) fn begin_file(&mut self) {
        (self.skipped_before, self.first) = (self.skipped, None);
    }

    /// That a file, or what else was read, has no row that can be used.
    pub(super) fn no_rows(&mut self, rows: Option<&Rows<'_>>) -> DataError {
        let path = rows.map(|rows| rows.path().to_owned());
        match (self.first.take(), rows) {
            (Some(first), _) => {
                DataError::OnlyBadRows { path, skipped: self.skipped - self.skipped_before, first }
            }
            (None, Some(rows)) => rows.no_rows(),
            (None, None) => DataError::NoRows { path },
        }
    }
}
