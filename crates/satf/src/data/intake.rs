//! Where the readers deliver rows: bad ones are counted or end the reading, good ones go into the log.

use std::path::PathBuf;

use super::columns::{Columns, Wanted};
use super::log_builder::{LogBuilder, Rejection};
use super::rows::{Next, Row, Rows};
use super::source::Source;
use super::{DataError, FileReport, Format, ReadOptions, ReadReport};
use crate::interactions::Interactions;
use crate::monitor::{Monitor, check_cancelled};

/// Rows between two questions whether to stop.
const ROWS_A_CHECK: u32 = 4096;

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

pub(super) struct Intake<'a> {
    options: &'a ReadOptions,
    monitor: &'a dyn Monitor,
    builder: LogBuilder,
    tolerance: Tolerance,
    path: PathBuf,
    has_clock: bool,
    rows_before: usize,
    until_check: u32,
    report: ReadReport,
}

impl<'a> Intake<'a> {
    pub(super) fn new(options: &'a ReadOptions, monitor: &'a dyn Monitor) -> Self {
        Intake {
            options,
            monitor,
            builder: LogBuilder::new(options),
            tolerance: Tolerance::new(options),
            path: PathBuf::new(),
            has_clock: false,
            rows_before: 0,
            until_check: 0,
            report: ReadReport::default(),
        }
    }

    /// Reads all rows of a file.
    pub(super) fn read(&mut self, source: Source<'_>) -> Result<(), DataError> {
        source.path().clone_into(&mut self.path);
        self.rows_before = self.builder.num_rows();
        self.has_clock = false;
        self.builder.begin_file();
        let wanted = Wanted::log(self.options, self.builder.next_row_number());
        let (mut rows, format) = Rows::open(source, wanted, self.monitor)?;
        loop {
            self.check()?;
            match rows.next(|columns, row| self.take(columns, &row))? {
                Next::Row(taken) => taken?,
                Next::Bad(line, fault) => self.tolerance.reject(fault.at(&self.path, line))?,
                Next::End => break,
            }
        }
        self.end_file(format, rows.text_bytes())
    }

    #[inline]
    fn take(&mut self, columns: &Columns, row: &Row<'_>) -> Result<(), DataError> {
        if !self.has_clock {
            self.builder.set_clock(columns.clock, &self.path)?;
            self.has_clock = true;
        }
        match self.builder.push(row.user, row.item, row.time, &columns.names, &self.path, row.line) {
            Ok(()) => Ok(()),
            Err(Rejection::Row(fault)) => self.tolerance.reject(fault.at(&self.path, row.line)),
            Err(Rejection::Log(error)) => Err(error),
        }
    }

    #[inline]
    fn check(&mut self) -> Result<(), DataError> {
        if self.until_check == 0 {
            self.until_check = ROWS_A_CHECK;
            check_cancelled(self.monitor)?;
        }
        self.until_check -= 1;
        Ok(())
    }

    fn end_file(&mut self, format: Format, text_bytes: u64) -> Result<(), DataError> {
        let rows = (self.builder.num_rows() - self.rows_before) as u64;
        if rows == 0 {
            return Err(DataError::NoRows { path: Some(self.path.clone()) });
        }
        self.report.text_bytes += text_bytes;
        self.report.files.push(FileReport { path: self.path.clone(), format, rows });
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(Interactions, ReadReport), DataError> {
        if self.builder.num_rows() == 0 {
            return Err(DataError::NoRows { path: None });
        }
        check_cancelled(self.monitor)?;
        self.report.skipped_rows = self.tolerance.skipped;
        self.report.skipped_messages = self.tolerance.messages;
        Ok((self.builder.finish(), self.report))
    }
}
