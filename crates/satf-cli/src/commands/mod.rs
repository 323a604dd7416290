//! The subcommands, a file each, and what they share.

#[cfg(feature = "serve")]
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod entrants;
pub(crate) mod evaluate;
pub(crate) mod experiment;
pub(crate) mod export;
pub(crate) mod files;
pub(crate) mod forget;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod models;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod recommend;
pub(crate) mod reproduce;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod similar;
pub(crate) mod stats;
pub(crate) mod train;
pub(crate) mod tune;

mod items;
mod protocol;
mod statistics;

use std::path::Path;

use anyhow::{anyhow, bail};
use files::Files;
use satf::data::{FirstRow, Format, LogFormat, ReadOptions, ReadReport, TimeKind, TimeUnit, read_log};
use satf::interactions::Interactions;
use satf::model_file::ModelFileError;
use satf::models::{Registry, crate_with};
use satf::recommend::Model;
use serde_json::Value;

use crate::args::LogArguments;
use crate::misuse::{OnCommandLine, misuse};
use crate::terminal::Terminal;
use crate::{escape, hints, table};

/// Reads the log a command was given and says what was skipped.
fn read(log: &LogArguments, terminal: &Terminal) -> anyhow::Result<(Interactions, ReadReport)> {
    read_as(log, &log.read_options(), terminal)
}

/// An error if one column is asked for in two places.
fn check_columns(options: &ReadOptions) -> anyhow::Result<()> {
    let columns = [
        ("--user-column", &options.user_column),
        ("--item-column", &options.item_column),
        ("--time-column", &options.time_column),
    ];
    for (at, (option, column)) in columns.iter().enumerate() {
        if let Some(column) = column
            && let Some((other, _)) = columns[..at].iter().find(|(_, other)| other.as_ref() == Some(column))
        {
            misuse!(
                "{other} and {option} are both {}; hint: give each its own column",
                escape::value(column)
            );
        }
    }
    Ok(())
}

/// The same with other options.
fn read_as(
    log: &LogArguments,
    options: &ReadOptions,
    terminal: &Terminal,
) -> anyhow::Result<(Interactions, ReadReport)> {
    Files::of_log(log).check_distinct()?;
    check_columns(options)?;
    if let Some(format) = options.format {
        let files: Vec<_> = log.files.iter().map(|path| (path.as_path(), format)).collect();
        check_reading(options, &files).on_command_line()?;
        if format == Format::SasRec {
            let times: Vec<_> = log.files.iter().map(|path| (path.as_path(), TimeKind::None)).collect();
            check_time_unit(options.time_unit, &times).on_command_line()?;
        }
    }
    let (interactions, report) = read_log(&log.files, options, terminal)?;
    let files: Vec<_> = report.files.iter().map(|file| (file.path.as_path(), file.format)).collect();
    check_reading(options, &files)?;
    let times: Vec<_> = report.files.iter().map(|file| (file.path.as_path(), file.times)).collect();
    check_time_unit(options.time_unit, &times)?;
    for file in &report.files {
        warn_of_dates(&file.path, file.doubtful_dates);
        if let Some(row) = &file.doubtful_first_row {
            warn_of_first_row(&file.path, row);
        }
    }
    let ordered = report.files.iter().filter(|file| file.has_assumed_order);
    note_assumed_order(&ordered.map(|file| file.path.as_path()).collect::<Vec<_>>(), terminal);
    if report.skipped_rows > 0 {
        tracing::warn!(
            "skipped {}; the first: {}",
            table::counted(report.skipped_rows as usize, "bad row"),
            report.skipped_messages.first().map(|message| hints::skipped_row(message)).unwrap_or_default()
        );
    }
    warn_of_finer_times(report.finer_times);
    Ok((interactions, report))
}

/// An error if an option of reading means nothing to any of the files; a warning if it means something to some. What a file is only its
/// content tells, so the command line alone is to blame only where it names the format.
fn check_reading(options: &ReadOptions, files: &[(&Path, Format)]) -> anyhow::Result<()> {
    use Format::{Csv, MovieLens, RecBole, SasRec, Tsv};
    let without_columns = &[MovieLens, SasRec][..];
    let others_than =
        |formats: &[Format]| Format::ALL.into_iter().filter(|other| !formats.contains(other)).collect();
    let without_header: Vec<Format> = others_than(&[Csv, Tsv]);
    let without_delimiter: Vec<Format> = others_than(&[Csv, Tsv, RecBole]);
    let given = [
        ("--user-column", options.user_column.is_some(), without_columns),
        ("--item-column", options.item_column.is_some(), without_columns),
        ("--time-column", options.time_column.is_some(), without_columns),
        ("--header", options.header.is_some(), &without_header),
        ("--delimiter", options.delimiter.is_some(), &without_delimiter),
    ];
    for (option, _, without) in given.into_iter().filter(|(_, is_given, _)| *is_given) {
        let (others, served): (Vec<_>, Vec<_>) =
            files.iter().partition(|(_, format)| without.contains(format));
        let Some((path, format)) = others.first() else { continue };
        let reason =
            format!("{option} means nothing for {}, whose format is {}", escape::path(path), format.name());
        if served.is_empty() {
            bail!("{reason}; hint: leave it out");
        }
        tracing::warn!("{reason}; it applies to the other files");
    }
    Ok(())
}

/// An error if a unit is given for times that have none; a warning if some have.
fn check_time_unit(unit: TimeUnit, files: &[(&Path, TimeKind)]) -> anyhow::Result<()> {
    if unit == TimeUnit::Auto {
        return Ok(());
    }
    let (served, others): (Vec<_>, Vec<_>) = files.iter().partition(|(_, times)| *times == TimeKind::Numbers);
    let Some((path, times)) = others.first() else { return Ok(()) };
    let times = if *times == TimeKind::None { "has no times" } else { "has dates for times, not numbers" };
    let reason = format!("--time-unit {unit} means nothing for {}, which {times}", escape::path(path));
    if served.is_empty() {
        bail!("{reason}; hint: leave it out");
    }
    tracing::warn!("{reason}; it applies to the other files");
    Ok(())
}

/// Says, once, that rows without times are taken to be in order.
fn note_assumed_order(files: &[&Path], terminal: &Terminal) {
    let Some((first, others)) = files.split_first() else { return };
    let (others, has, its) = match others.len() {
        0 => (String::new(), "has", "its"),
        others => (format!(" and {}", table::counted(others, "other file")), "have", "their"),
    };
    terminal.note(&format!(
        "{}{others} {has} no column of times: {its} rows are taken to be in the order of time; --order-is-time says that they are",
        escape::path(first)
    ));
}

/// Says that numbers were taken for seconds of 1970 that look like dates of our days.
fn warn_of_dates(path: &Path, first: Option<i64>) {
    if let Some(first) = first {
        tracing::warn!(
            "{}: times such as {first} look like dates (year, month, day) and are read as seconds since 1970, all within a few days; \
             --time-unit yyyymmdd reads them as dates, --time-unit seconds as seconds",
            path.display()
        );
    }
}

/// Models that keep unfinished training.
const WITH_CHECKPOINTS: [&str; 1] = ["sasrec"];

/// An error if a folder for unfinished training is given and none of the models keeps any.
fn check_checkpoints<'m>(
    folder: Option<&Path>,
    mut models: impl Iterator<Item = &'m str>,
) -> anyhow::Result<()> {
    if let Some(folder) = folder
        && models.all(|model| !WITH_CHECKPOINTS.contains(&model))
    {
        misuse!(
            "--checkpoints {}: only models that take long to train keep unfinished training ({}), and none of them is asked for; \
             hint: leave it out",
            escape::path(folder),
            WITH_CHECKPOINTS.join(", ")
        );
    }
    Ok(())
}

/// Says that times were rounded: what happened within a microsecond has no order any more.
fn warn_of_finer_times(times: u64) {
    if times > 0 {
        tracing::warn!(
            "{} {} finer than a microsecond and rounded to it; events of a user within one are ties",
            table::counted(times as usize, "time"),
            table::agreeing(times as usize, "is", "are"),
        );
    }
}

/// Says what a first row was taken for that may be either a header or an event.
fn warn_of_first_row(path: &Path, row: &FirstRow) {
    let (taken_for, other, option) = if row.is_header {
        ("the names of the columns", "it is an event", "--header no")
    } else {
        ("an event, because the model knows this item", "it names the columns", "--header yes")
    };
    tracing::warn!(
        "{}: the first row ({}) is taken for {taken_for}; if {other}, add {option}",
        path.display(),
        row.fields.join(", ")
    );
}

/// Reads a model file.
fn load(path: &Path, registry: &Registry) -> anyhow::Result<Model> {
    Files::default().reading("MODEL", Some(path)).check_distinct()?;
    let model = Model::load_with(path, registry);
    model.map_err(|error| match error {
        ModelFileError::UnknownModel { model, .. } if crate_with(&model).is_some() => anyhow!(
            "{}: it holds the model '{model}', which this program was built without; hint: build satf with its default features",
            path.display()
        ),
        error => error.into(),
    })
}

/// A path in JSON. Bytes that are not text are replaced: JSON has no way to say them.
fn path_to_json(path: &Path) -> Value {
    Value::String(path.to_string_lossy().into_owned())
}

/// The format a prepared log is written in, by the file's name.
fn log_format(path: &Path) -> LogFormat {
    LogFormat::of(path).unwrap_or(LogFormat::Parquet)
}
