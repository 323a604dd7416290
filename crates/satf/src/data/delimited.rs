//! Columns of text: CSV, TSV, `RecBole`, `MovieLens` and the pairs of `SASRec`.

use std::path::{Path, PathBuf};

use super::columns::{self, Chosen, Columns, Wanted};
use super::error::{Fault, Position, shown};
use super::field::{Field, IdList};
use super::format::guess_delimiter;
use super::history_text::{Cell, Words};
use super::records::{Record, Records, Splitting};
use super::rows::{Next, Row};
use super::source::Source;
use super::{DataError, FirstRow, Format};

/// Which columns to take, and how many a row must have.
struct Layout {
    chosen: Chosen,
    columns: Columns,
    count: usize,
}

/// The rows of a file of columns.
pub(super) struct DelimitedRows<'a> {
    source: Source<'a>,
    path: PathBuf,
    format: Format,
    wanted: Wanted<'a>,
    records: Records,
    layout: Option<Layout>,
    doubtful: Option<FirstRow>,
}

impl<'a> DelimitedRows<'a> {
    pub(super) fn open(
        mut source: Source<'a>,
        format: Format,
        wanted: Wanted<'a>,
    ) -> Result<Self, DataError> {
        let has_times = !wanted.options.order_is_time;
        let fixed = |time: Option<usize>, count: usize| {
            let chosen = Chosen::rows(0, 1, time.filter(|_| has_times));
            Some(Layout { chosen, columns: Columns::numbered(chosen), count })
        };
        let (splitting, layout) = match format {
            Format::MovieLens => (Splitting::DoubleColon, fixed(Some(3), 4)),
            Format::SasRec => (Splitting::Spaces, fixed(None, 2)),
            _ => {
                let told = wanted.options.delimiter;
                let usual =
                    if format == Format::Csv { guess_delimiter(source.peek_line()?) } else { Some(b'\t') };
                (Splitting::Delimiter(told.or(usual).unwrap_or(b',')), None)
            }
        };
        let path = source.path().to_owned();
        let records = Records::new(splitting);
        Ok(DelimitedRows { source, path, format, wanted, records, layout, doubtful: None })
    }

    pub(super) fn doubtful_first_row(&self) -> Option<&FirstRow> {
        self.doubtful.as_ref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn text_bytes(&self) -> u64 {
        self.source.text_bytes()
    }

    #[inline]
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(&Columns, Row<'_>) -> T,
    ) -> Result<Next<T>, DataError> {
        loop {
            let Some((line, record)) = self.records.next(&mut self.source)? else { return Ok(Next::End) };
            let record = match record {
                Ok(record) => record,
                Err(fault) => return Ok(Next::Bad(Position::Line(line), fault)),
            };
            let layout = if let Some(layout) = &self.layout {
                layout
            } else {
                let first = lay_out(record, &self.path, self.format, &self.wanted)?;
                let layout = self.layout.insert(first.layout);
                self.doubtful = first.doubtful;
                if first.is_header {
                    continue;
                }
                layout
            };
            if record.len() != layout.count {
                let found = format!("{} in {}", record.len(), shown(record.bytes()));
                let fault = Fault::of_line(found, format!("{} columns", layout.count));
                return Ok(Next::Bad(Position::Line(line), Box::new(fault)));
            }
            let field = |at| Field::Plain(record.field(at));
            let chosen = layout.chosen;
            let (user, time) = (field(chosen.user), chosen.time.map(field));
            let order = chosen.order.map(|(at, _)| field(at));
            if chosen.is_whole {
                let (cell, words) = (Cell(record.field(chosen.item)), Words(record.field(chosen.item)));
                let list: &dyn IdList = if self.format == Format::RecBole { &words } else { &cell };
                let row = Row { position: Position::Line(line), user, item: Field::List(list), time, order };
                return Ok(Next::Row(take(&layout.columns, row)));
            }
            return Ok(Next::Row(take(
                &layout.columns,
                Row { position: Position::Line(line), user, item: field(chosen.item), time, order },
            )));
        }
    }
}

/// What the first record tells.
struct First {
    layout: Layout,
    is_header: bool,
    /// The record, if it may be either a header or an event.
    doubtful: Option<FirstRow>,
}

/// Finds the columns from the first record, and whether that is a header.
fn lay_out(record: Record<'_>, path: &Path, format: Format, wanted: &Wanted<'_>) -> Result<First, DataError> {
    let names: Vec<String> = (0..record.len())
        .map(|at| {
            let name = String::from_utf8_lossy(record.field(at)).into_owned();
            match (format, name.rsplit_once(':')) {
                (Format::RecBole, Some((name, _))) => name.to_owned(),
                _ => name,
            }
        })
        .collect();
    let (is_header, doubtful) = match format {
        Format::RecBole => (true, None),
        _ => columns::judge_first_row(path, &names, wanted),
    };
    let (chosen, columns) = if is_header {
        let chosen = columns::choose(path, &names, wanted)?;
        (chosen, Columns::named(chosen, &names))
    } else {
        let chosen = columns::choose_unnamed(path, names.len(), wanted)?;
        (chosen, Columns::numbered(chosen))
    };
    let layout = Layout { chosen, columns, count: names.len() };
    Ok(First { layout, is_header, doubtful })
}
