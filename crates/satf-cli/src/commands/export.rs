//! A cut for other tools: what trains, and what is to be predicted.

use std::path::{Path, PathBuf};

use anyhow::Context;
use satf::data::{LogFormat, NewFolder};
use satf::experiment::Cut;
use serde_json::{Value, json};

use super::files::Files;
use super::path_to_json;
use crate::terminal::Terminal;
use crate::{escape, table};

/// The option that asks for it.
pub(crate) const OPTION: &str = "--export";

/// The files of an export.
pub(crate) struct Export {
    train: PathBuf,
    events: PathBuf,
}

impl Export {
    pub(crate) fn to(folder: &Path) -> Self {
        Export { train: folder.join("train.csv"), events: folder.join("events.jsonl") }
    }

    pub(crate) fn add_to(&self, files: Files) -> Files {
        files.writing(OPTION, Some(&self.train)).writing(OPTION, Some(&self.events))
    }

    /// Writes both files.
    pub(crate) fn write(&self, cut: &Cut<'_>, terminal: &Terminal) -> anyhow::Result<()> {
        cut.partition.write_training_set(&self.train, LogFormat::Csv, terminal)?;
        terminal.wrote(&self.train);
        cut.partition.write_events(&self.events, terminal)?;
        terminal.wrote(&self.events);
        Ok(())
    }

    pub(crate) fn to_json(&self, cut: &Cut<'_>) -> Value {
        json!({
            "train": path_to_json(&self.train),
            "events": path_to_json(&self.events),
            "train_rows": cut.partition.train.num_rows(),
            "events_to_predict": cut.partition.holdout.events.len(),
        })
    }

    pub(crate) fn describe(&self, cut: &Cut<'_>) -> String {
        format!(
            "{} rows to learn from written to {}, the histories of {} events to predict to {}",
            table::count(cut.partition.train.num_rows()),
            escape::path(&self.train),
            table::count(cut.partition.holdout.events.len()),
            escape::path(&self.events),
        )
    }
}

/// Makes the folder of an export, if there is one.
pub(crate) fn folder(path: Option<&Path>) -> anyhow::Result<Option<NewFolder>> {
    path.map(|path| NewFolder::make(path).with_context(|| format!("{OPTION} {}", escape::path(path))))
        .transpose()
}
