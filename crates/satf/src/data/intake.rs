//! Where the readers deliver rows: bad ones are counted or end the reading, good ones go into the log.

use std::path::{Path, PathBuf};

use super::columns::ColumnNames;
use super::error::Fault;
use super::log_builder::{Field, LogBuilder, Rejection};
use super::{DataError, FileReport, Format, ReadOptions, ReadReport};
use crate::interactions::{Clock, Interactions};
use crate::monitor::{Monitor, check_cancelled};

/// Rows between two questions whether to stop.
const ROWS_A_CHECK: u32 = 4096;

/// Messages of skipped rows that are kept.
const MESSAGES_KEPT: usize = 5;

pub(super) struct Intake<'a> {
    pub(super) options: &'a ReadOptions,
    pub(super) monitor: &'a dyn Monitor,
    builder: LogBuilder,
    path: PathBuf,
    names: ColumnNames,
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
            path: PathBuf::new(),
            names: ColumnNames::default(),
            rows_before: 0,
            until_check: 0,
            report: ReadReport::default(),
        }
    }

    pub(super) fn begin_file(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
        self.rows_before = self.builder.num_rows();
        self.builder.begin_file();
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says what the columns of the file are called and what its times mean.
    pub(super) fn set_columns(&mut self, names: ColumnNames, clock: Clock) -> Result<(), DataError> {
        self.names = names;
        self.builder.set_clock(clock, &self.path)
    }

    /// The row number that comes next in a log whose times are row numbers.
    pub(super) fn next_row_number(&self) -> i64 {
        self.builder.next_row_number()
    }

    #[inline]
    pub(super) fn row(
        &mut self,
        line: u64,
        user: Field<'_>,
        item: Field<'_>,
        time: Option<Field<'_>>,
    ) -> Result<(), DataError> {
        self.check()?;
        match self.builder.push(user, item, time, &self.names, &self.path, line) {
            Ok(()) => Ok(()),
            Err(Rejection::Row(fault)) => self.reject(line, *fault),
            Err(Rejection::Log(error)) => Err(error),
        }
    }

    /// A row that cannot even be taken apart.
    #[cold]
    pub(super) fn bad_row(&mut self, line: u64, fault: Fault) -> Result<(), DataError> {
        self.check()?;
        self.reject(line, fault)
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

    #[cold]
    fn reject(&mut self, line: u64, fault: Fault) -> Result<(), DataError> {
        let error = fault.at(&self.path, line);
        let allowed = self.options.skip_bad_rows;
        if allowed == 0 {
            return Err(error);
        }
        if self.report.skipped_rows == allowed {
            return Err(DataError::TooManyBadRows { allowed, last: Box::new(error) });
        }
        self.report.skipped_rows += 1;
        if self.report.skipped_messages.len() < MESSAGES_KEPT {
            self.report.skipped_messages.push(error.to_string());
        }
        Ok(())
    }

    pub(super) fn end_file(&mut self, format: Format, text_bytes: u64) -> Result<(), DataError> {
        let rows = (self.builder.num_rows() - self.rows_before) as u64;
        if rows == 0 {
            return Err(DataError::NoRows { path: Some(self.path.clone()) });
        }
        self.report.text_bytes += text_bytes;
        self.report.files.push(FileReport { path: self.path.clone(), format, rows });
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(Interactions, ReadReport), DataError> {
        if self.builder.num_rows() == 0 {
            return Err(DataError::NoRows { path: None });
        }
        check_cancelled(self.monitor)?;
        Ok((self.builder.finish(), self.report))
    }
}
