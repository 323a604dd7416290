//! Columns of text: CSV, TSV, `RecBole`, `MovieLens` and the pairs of `SASRec`.

use super::columns::{self, Chosen, ColumnNames};
use super::error::{Fault, shown};
use super::format::guess_delimiter;
use super::intake::Intake;
use super::log_builder::Field;
use super::records::{Record, Records, Splitting};
use super::source::Source;
use super::{DataError, Format, time};
use crate::interactions::Clock;

/// Which columns to take, and how many a row must have.
#[derive(Clone, Copy)]
struct Layout {
    chosen: Chosen,
    count: usize,
}

/// Reads all rows of a file of columns.
pub(super) fn read(
    source: &mut Source<'_>,
    format: Format,
    intake: &mut Intake<'_>,
) -> Result<(), DataError> {
    let has_times = !intake.options.order_is_time;
    let (splitting, mut layout) = match format {
        Format::MovieLens => {
            let chosen = Chosen { user: 0, item: 1, time: has_times.then_some(3) };
            (Splitting::DoubleColon, Some(Layout { chosen, count: 4 }))
        }
        Format::SasRec => {
            let chosen = Chosen { user: 0, item: 1, time: None };
            (Splitting::Spaces, Some(Layout { chosen, count: 2 }))
        }
        _ => {
            let told = intake.options.delimiter;
            let usual =
                if format == Format::Csv { guess_delimiter(source.peek_line()?) } else { Some(b'\t') };
            (Splitting::Delimiter(told.or(usual).unwrap_or(b',')), None)
        }
    };
    if let Some(Layout { chosen, .. }) = layout {
        set_columns(chosen, |at| (at + 1).to_string(), intake)?;
    }
    let mut records = Records::new(splitting);
    while let Some((line, record)) = records.next(source)? {
        let record = match record {
            Ok(record) => record,
            Err(fault) => {
                intake.bad_row(line, *fault)?;
                continue;
            }
        };
        let Some(Layout { chosen, count }) = layout else {
            let (chosen, is_header) = lay_out(record, format, intake)?;
            layout = Some(Layout { chosen, count: record.len() });
            if !is_header {
                take(record, chosen, line, intake)?;
            }
            continue;
        };
        if record.len() == count {
            take(record, chosen, line, intake)?;
        } else {
            let found = format!("{} in {}", record.len(), shown(record.bytes()));
            intake.bad_row(line, Fault::of_line(found, format!("{count} columns")))?;
        }
    }
    Ok(())
}

#[inline]
fn take(record: Record<'_>, chosen: Chosen, line: u64, intake: &mut Intake<'_>) -> Result<(), DataError> {
    let field = |at| Field::Plain(record.field(at));
    intake.row(line, field(chosen.user), field(chosen.item), chosen.time.map(field))
}

/// Finds the columns from the first record, and whether that is a header.
fn lay_out(record: Record<'_>, format: Format, intake: &mut Intake<'_>) -> Result<(Chosen, bool), DataError> {
    let names: Vec<String> = (0..record.len())
        .map(|at| {
            let name = String::from_utf8_lossy(record.field(at)).into_owned();
            match (format, name.rsplit_once(':')) {
                (Format::RecBole, Some((name, _))) => name.to_owned(),
                _ => name,
            }
        })
        .collect();
    let options = intake.options;
    let is_header = match options.header {
        _ if format == Format::RecBole => true,
        Some(told) => told,
        None => {
            let asked = [&options.user_column, &options.item_column, &options.time_column];
            let is_asked_for = asked.into_iter().flatten().any(|asked| names.contains(asked));
            let has_time = names.iter().any(|name| time::looks_like_time(name.as_bytes()));
            let has_common_name = names.iter().any(|name| columns::is_common_name(name));
            // A row of two columns has no time that could tell it from a header.
            !has_time && (is_asked_for || has_common_name || names.len() > 2)
        }
    };
    let chosen = if is_header {
        columns::choose(intake.path(), &names, options)?
    } else {
        columns::choose_unnamed(intake.path(), names.len(), options)?
    };
    let name = |at: usize| if is_header { shown(names[at].as_bytes()) } else { (at + 1).to_string() };
    set_columns(chosen, name, intake)?;
    Ok((chosen, is_header))
}

fn set_columns(
    chosen: Chosen,
    name: impl Fn(usize) -> String,
    intake: &mut Intake<'_>,
) -> Result<(), DataError> {
    let names = ColumnNames {
        user: name(chosen.user).into(),
        item: name(chosen.item).into(),
        time: chosen.time.map(|at| name(at).into()),
    };
    let clock = if chosen.time.is_some() { Clock::Calendar } else { Clock::RowOrder };
    intake.set_columns(names, clock)
}
