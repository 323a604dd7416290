//! The rows of a file, one after the other, whatever its format.

use std::path::Path;

use super::columns::{Columns, Wanted};
use super::delimited::DelimitedRows;
use super::error::{Fault, Position};
use super::field::Field;
use super::format::{self, Format};
use super::json::JsonRows;
use super::parquet::ParquetRows;
use super::source::Source;
use super::steam::SteamRows;
use super::{DataError, FirstRow};
use crate::monitor::Monitor;

/// A row as its file has it.
pub(super) struct Row<'r> {
    /// Where it stands.
    pub(super) position: Position,
    pub(super) user: Field<'r>,
    /// The item, or a whole history or list if [`Columns::is_whole`].
    pub(super) item: Field<'r>,
    pub(super) time: Option<Field<'r>>,
    /// The rank or the score, if [`Columns::order`].
    pub(super) order: Option<Field<'r>>,
}

/// What comes next in a file.
pub(super) enum Next<T> {
    /// A row, and what was made of it.
    Row(T),
    /// A row that cannot be split into columns, and where it stands.
    Bad(Position, Box<Fault>),
    /// Nothing.
    End,
}

/// The rows of one file.
pub(super) enum Rows<'a> {
    Delimited(Box<DelimitedRows<'a>>),
    Json(Box<JsonRows<'a>>),
    Steam(Box<SteamRows<'a>>),
    Parquet(Box<ParquetRows<'a>>),
}

impl<'a> Rows<'a> {
    /// Begins to read; the format is detected by content if none is given.
    pub(super) fn open(
        mut source: Source<'a>,
        wanted: Wanted<'a>,
        monitor: &'a dyn Monitor,
    ) -> Result<(Self, Format), DataError> {
        let format = match wanted.options.format {
            Some(format) => format,
            None => format::detect(&mut source, &wanted)?,
        };
        let rows = match format {
            Format::MovieLens | Format::Csv | Format::Tsv | Format::RecBole | Format::SasRec => {
                Rows::Delimited(Box::new(DelimitedRows::open(source, format, wanted)?))
            }
            Format::Amazon | Format::JsonLines => {
                Rows::Json(Box::new(JsonRows::open(source, format, wanted)?))
            }
            Format::Steam => Rows::Steam(Box::new(SteamRows::open(source, &wanted))),
            Format::Parquet => Rows::Parquet(Box::new(ParquetRows::open(source, &wanted, monitor)?)),
        };
        Ok((rows, format))
    }

    /// Hands the next row and the meaning of its columns to `take`.
    #[inline]
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(&Columns, Row<'_>) -> T,
    ) -> Result<Next<T>, DataError> {
        match self {
            Rows::Delimited(rows) => rows.next(take),
            Rows::Json(rows) => rows.next(take),
            Rows::Steam(rows) => rows.next(take),
            Rows::Parquet(rows) => rows.next(take),
        }
    }

    /// What the first row was taken for, if it may be either a header or an event.
    pub(super) fn doubtful_first_row(&self) -> Option<&FirstRow> {
        match self {
            Rows::Delimited(rows) => rows.doubtful_first_row(),
            Rows::Json(_) | Rows::Steam(_) | Rows::Parquet(_) => None,
        }
    }

    /// Whether all rows so far are lists that stand alone, in which nothing has a name.
    pub(super) fn has_only_lists(&self) -> bool {
        matches!(self, Rows::Json(rows) if rows.has_only_lists())
    }

    /// That there is no row.
    pub(super) fn no_rows(&self) -> DataError {
        let path = self.path().to_owned();
        match self.doubtful_first_row() {
            Some(row) => DataError::OnlyFirstRow { path, fields: row.fields.clone() },
            None => DataError::NoRows { path: Some(path) },
        }
    }

    /// What messages call the file.
    pub(super) fn path(&self) -> &Path {
        match self {
            Rows::Delimited(rows) => rows.path(),
            Rows::Json(rows) => rows.path(),
            Rows::Steam(rows) => rows.path(),
            Rows::Parquet(rows) => rows.path(),
        }
    }

    /// Bytes of text read so far, decompressed; the size of the file for Parquet.
    pub(super) fn text_bytes(&self) -> u64 {
        match self {
            Rows::Delimited(rows) => rows.text_bytes(),
            Rows::Json(rows) => rows.text_bytes(),
            Rows::Steam(rows) => rows.text_bytes(),
            Rows::Parquet(rows) => rows.size(),
        }
    }
}
