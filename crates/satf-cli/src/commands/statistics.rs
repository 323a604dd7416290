//! Models that hold the log they learned from: what `satf train --update` and `satf forget` share.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use satf::data::{FileIdentity, FileLock, IdType, ReadOptions};
use satf::experiment::{Choice, GivenKeys, SharedKeys};
use satf::interactions::{Clock, Ids, Interactions};
use satf::models::{Registry, Table};
use satf::prepare::TiePolicy;
use satf::recommend::Model;
use serde_json::Value;

use super::files::Files;
use super::settings::configure;
use super::train::{Plan, asked};
use crate::args::TrainArguments;
use crate::terminal::Terminal;
use crate::{escape, table};

/// Where a changed model goes: another file, or the one it came from.
pub(super) struct Output {
    option: &'static str,
    model: PathBuf,
    other: Option<PathBuf>,
}

impl Output {
    /// An error if the file to write is another name of the model: to write to one of them leaves the other as it was.
    pub(super) fn new(option: &'static str, model: &Path, output: Option<&Path>) -> anyhow::Result<Self> {
        let is_model = |path: &Path, identity: fn(&Path) -> io::Result<FileIdentity>| matches!((identity(path), identity(model)), (Ok(one), Ok(other)) if one == other);
        // To name the model itself is to say what happens anyway.
        let other = output.filter(|path| !is_model(path, FileIdentity::of_place)).map(Path::to_owned);
        if let Some(other) = other.as_deref().filter(|path| is_model(path, FileIdentity::of)) {
            bail!(
                "--output {}: this is another name (a hard link) of {}, which is also read; hint: give a name of a file of its own, or \
                 leave --output out to replace the model",
                escape::path(other),
                escape::path(model)
            );
        }
        Ok(Output { option, model: model.to_owned(), other })
    }

    /// Keeps others from changing the model from before it is read until it is replaced; nothing if it is not replaced.
    pub(super) fn lock(&self, terminal: &Terminal) -> anyhow::Result<Option<FileLock>> {
        if self.is_in_place() { lock(&self.model, terminal) } else { Ok(None) }
    }

    /// Keeps others from changing the file that is written, once there is something to write.
    pub(super) fn lock_to_write(&self, terminal: &Terminal) -> anyhow::Result<Option<FileLock>> {
        self.other.as_deref().map_or(Ok(None), |other| lock(other, terminal))
    }

    /// Other names of a model that is replaced, which keep what it was.
    pub(super) fn num_other_names(&self) -> u64 {
        #[cfg(unix)]
        if self.is_in_place() {
            use std::os::unix::fs::MetadataExt;
            return std::fs::metadata(&self.model).map_or(0, |found| found.nlink().saturating_sub(1));
        }
        0
    }

    /// The file that is written.
    pub(super) fn path(&self) -> &Path {
        self.other.as_deref().unwrap_or(&self.model)
    }

    /// Whether the model itself is replaced.
    pub(super) fn is_in_place(&self) -> bool {
        self.other.is_none()
    }

    /// Both files among those of a command. A model that is replaced is not lost.
    pub(super) fn add_to(&self, files: Files) -> Files {
        match &self.other {
            Some(other) => files.reading(self.option, Some(&self.model)).writing("--output", Some(other)),
            None => files.writing(self.option, Some(&self.model)),
        }
    }

    /// An error if the model is to be replaced and is another one by now: what came in between would be lost.
    pub(super) fn check_unchanged(&self, model: &Model) -> anyhow::Result<()> {
        if self.other.is_some() {
            return Ok(());
        }
        let mut begin = Vec::new();
        let path = escape::path(&self.model);
        File::open(&self.model)
            .and_then(|file| file.take(CHECKSUM.end as u64).read_to_end(&mut begin))
            .with_context(|| path.clone())?;
        if begin.get(CHECKSUM) != model.checksum().map(str::as_bytes) {
            bail!(
                "{path}: the model was changed meanwhile, and is left as it is; hint: run this command again"
            );
        }
        Ok(())
    }
}

/// Waits until nobody else changes a file, and says so.
pub(super) fn lock(path: &Path, terminal: &Terminal) -> anyhow::Result<Option<FileLock>> {
    let waits = || {
        tracing::warn!(
            "{}: another satf is changing this file; waiting for it to finish",
            escape::path(path)
        );
    };
    Ok(FileLock::acquire(path, terminal, waits)?)
}

/// Where a model file has its checksum.
const CHECKSUM: std::ops::Range<usize> = 37..101;

/// A model that holds its log.
pub(super) fn load_with_statistics(path: &Path, registry: &Registry) -> anyhow::Result<Model> {
    let model = super::load(path, registry)?;
    if !model.has_statistics() {
        bail!(
            "{}: the model was trained without statistics, so nothing is known of single events; hint: satf train LOG \
             --with-statistics -o FILE keeps them",
            escape::path(path)
        );
    }
    Ok(model)
}

/// What trains a model again as it was trained.
pub(super) fn plan_of(model: &Model, memory: Option<u64>, registry: &Registry) -> anyhow::Result<Plan> {
    let manifest = model.manifest();
    let entry = registry.find(&manifest.model)?;
    let mut keys = Table::new();
    for (key, value) in manifest.configuration.as_object().into_iter().flatten() {
        // Keys that are left to training have none.
        if !value.is_null() {
            keys.insert(key.clone(), toml::Value::try_from(value)?);
        }
    }
    if let (Some(memory), true) = (memory, entry.defaults().contains_key(MEMORY)) {
        keys.insert(MEMORY.to_owned(), toml::Value::Integer(i64::try_from(memory)?));
    }
    Ok(Plan {
        choice: Choice::new(entry.name.to_owned(), entry, keys)?,
        ties: manifest.dataset.ties.unwrap_or_default(),
        seed: manifest.seed.unwrap_or_default(),
        quantize: manifest.quantization,
        with_statistics: true,
    })
}

/// The key that says how much memory training may take, and nothing of what comes of it.
const MEMORY: &str = "memory_bytes";

/// The same for `satf train --update`. What is said again must be as it was.
pub(super) fn plan_of_update(
    arguments: &TrainArguments,
    model: &Model,
    registry: &Registry,
) -> anyhow::Result<Plan> {
    let manifest = model.manifest();
    let again = |option: &str, given: &str, was: &str| -> anyhow::Result<()> {
        if given != was {
            bail!(
                "{option} {given}: the model was trained with {was}, and is updated as it was trained; hint: leave it out, or train anew"
            );
        }
        Ok(())
    };
    if let Some(given) = &arguments.model {
        again("--model", given.trim(), &manifest.model)?;
    }
    if let Some(given) = arguments.ties {
        again("--ties", given.name(), manifest.dataset.ties.map_or("another order", TiePolicy::name))?;
    }
    if let Some(given) = arguments.seed {
        again("--seed", &given.to_string(), &manifest.seed.unwrap_or_default().to_string())?;
    }
    if let Some(given) = arguments.quantize {
        again("--quantize", given.name(), manifest.quantization.name())?;
    }
    let was = |key: &str| manifest.configuration.get(key).cloned().unwrap_or(Value::Null);
    let seed = was("seed").as_u64().unwrap_or_default();
    let shared = SharedKeys { seed, max_len: arguments.max_len, memory_bytes: arguments.memory };
    let keys = GivenKeys { seed: None, max_len: arguments.max_len, memory_bytes: arguments.memory };
    let given = configure(&asked(arguments, vec![manifest.model.clone()]), keys, shared, registry)?;
    for choice in &given {
        for key in choice.settings().keys().filter(|key| *key != MEMORY) {
            let (given, was) = (&choice.configured.configuration[key], was(key));
            if *given != was {
                let was = if was.is_null() { "learned from the log".to_owned() } else { was.to_string() };
                bail!(
                    "{key} = {given}: the model was trained with another value ({was}), and is updated as it was trained; hint: leave it \
                     out, or train anew"
                );
            }
        }
    }
    plan_of(model, arguments.memory, registry)
}

/// How a log is read that is added to another: its ids are of the same types, unless it is said.
pub(super) fn read_options_of(mut options: ReadOptions, before: &Interactions) -> ReadOptions {
    let type_of = |ids: &Ids| match ids {
        Ids::Integers(_) => IdType::Integer,
        Ids::Texts(_) => IdType::String,
    };
    if options.user_type == IdType::Auto {
        options.user_type = type_of(before.users());
    }
    if options.item_type == IdType::Auto {
        options.item_type = type_of(before.items());
    }
    options
}

/// Both logs in one.
pub(super) fn joined(before: &Interactions, new: &Interactions) -> anyhow::Result<Interactions> {
    before.joined(new).map_err(|_| match before.clock() {
        Clock::Calendar => anyhow::anyhow!(
            "the model learned from a log with times, and the new log has none; hint: name its column with --time-column"
        ),
        Clock::RowOrder => anyhow::anyhow!(
            "the model learned from a log without times, and the new log has some; hint: --order-is-time reads it without them"
        ),
    })
}

/// Says that events are added which the model has already: most likely a log is added a second time.
pub(super) fn warn_of_rows_again(log: &Interactions, again: usize, added: usize, is_in_place: bool) {
    if again == 0 {
        return;
    }
    let undo = if is_in_place {
        "stop now with Ctrl-C to leave the model as it is, or train anew later, with every log once"
    } else {
        "the model itself is left as it is, so nothing is lost"
    };
    let how = match log.clock() {
        Clock::Calendar => "the same user, item and time",
        Clock::RowOrder => "all histories end with these very items",
    };
    tracing::warn!(
        "{} of {} new events are in the model already ({how}) and will count twice; if this log was added before: {undo}",
        table::count(again),
        table::count(added)
    );
}
