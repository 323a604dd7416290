//! The subcommands, a file each, and what they share.

#[cfg(feature = "serve")]
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod experiment;
pub(crate) mod files;
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

use std::path::Path;

use anyhow::anyhow;
use files::Files;
use satf::data::{FirstRow, LogFormat, ReadReport, read_log};
use satf::interactions::Interactions;
use satf::model_file::ModelFileError;
use satf::models::{Registry, crate_with};
use satf::recommend::Model;
use serde_json::Value;

use crate::args::LogArguments;
use crate::terminal::Terminal;
use crate::{hints, table};

/// Reads the log a command was given and says what was skipped.
fn read(log: &LogArguments, terminal: &Terminal) -> anyhow::Result<(Interactions, ReadReport)> {
    Files::of_log(log).check_distinct()?;
    let (interactions, report) = read_log(&log.files, &log.read_options(), terminal)?;
    for file in &report.files {
        if let Some(row) = &file.doubtful_first_row {
            warn_of_first_row(&file.path, row);
        }
    }
    if report.skipped_rows > 0 {
        tracing::warn!(
            "skipped {} bad row(s); the first: {}",
            report.skipped_rows,
            report.skipped_messages.first().map(|message| hints::skipped_row(message)).unwrap_or_default()
        );
    }
    warn_of_finer_times(report.finer_times);
    Ok((interactions, report))
}

/// Says that times were cut: what happened within a microsecond has no order any more.
fn warn_of_finer_times(times: u64) {
    if times > 0 {
        tracing::warn!(
            "{} time(s) are finer than a microsecond and are cut to it; events of a user within one are ties",
            table::count(times as usize)
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
