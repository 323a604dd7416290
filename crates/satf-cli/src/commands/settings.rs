//! Keys of models, from presets, a TOML file and `--set`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use satf::models::{ConfigError, Configured, ModelEntry, Registry};
use toml::{Table, Value};

use crate::args::ModelArguments;
use crate::escape;
use crate::misuse::{Misuse, OnCommandLine, misuse};

/// The model taken if none is asked for.
pub(crate) const DEFAULT_MODEL: &str = "d-satf";

/// Keys that belong to the run as a whole and that a model takes over unless it is given its own.
#[derive(Clone, Copy, Default)]
pub(crate) struct SharedKeys {
    pub(crate) seed: u64,
    pub(crate) max_len: Option<usize>,
    pub(crate) memory_bytes: Option<u64>,
}

/// A model asked for, configured and checked.
pub(crate) struct Choice {
    /// What it is called in reports: the model's or the preset's name.
    pub(crate) label: String,
    pub(crate) entry: ModelEntry,
    pub(crate) configured: Configured,
    table: Table,
}

impl Choice {
    /// A model with these keys, checked.
    pub(crate) fn new(label: String, entry: ModelEntry, table: Table) -> anyhow::Result<Self> {
        let configured = entry.configure(&table)?;
        Ok(Choice { label, entry, configured, table })
    }

    /// The same with another value of one key.
    pub(crate) fn with(&self, key: &str, value: i64) -> anyhow::Result<Self> {
        self.with_all(&[(key, value)])
    }

    /// The same with other values of some keys.
    pub(crate) fn with_all(&self, keys: &[(&str, i64)]) -> anyhow::Result<Self> {
        let mut table = self.table.clone();
        table.extend(keys.iter().map(|(key, value)| ((*key).to_owned(), Value::Integer(*value))));
        Choice::new(self.label.clone(), self.entry, table)
    }

    /// The same for another number of iterations, if the model has such a number.
    pub(crate) fn with_iterations(&self, iterations: usize) -> anyhow::Result<Self> {
        let iterations = i64::try_from(iterations)?;
        let key = self.configured.learner.iterations_key();
        self.with_all(&key.map(|key| (key, iterations)).into_iter().collect::<Vec<_>>())
    }

    /// A warning if the last iteration it may take was the best one: there may be better ones after it.
    pub(crate) fn warn_of_last(&self, best: usize) {
        let Some(key) = self.configured.learner.iterations_key() else { return };
        if self.configured.configuration[key].as_u64().is_some_and(|most| best as u64 >= most) {
            let (label, more) = (&self.label, best.saturating_mul(2));
            tracing::warn!(
                "{label}: the last of {key} = {best} was the best; more may be better: --set {key}={more}"
            );
        }
    }

    /// Whether the model has such a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entry.defaults().contains_key(key)
    }
}

/// The models and presets asked for, in the order asked.
pub(crate) fn configure(
    arguments: &ModelArguments,
    shared: SharedKeys,
    registry: &Registry,
) -> anyhow::Result<Vec<Choice>> {
    let build = |arguments: &ModelArguments| -> anyhow::Result<Vec<Choice>> {
        let asked = gather(arguments, shared, registry)?.into_iter();
        asked.map(|asked| Choice::new(asked.label, asked.entry, asked.settings)).collect()
    };
    build(arguments).map_err(|error| {
        // A fault that is there without the file is one of the command line.
        let alone = ModelArguments { config: None, ..arguments.clone() };
        let is_misuse = arguments.config.is_none()
            || build(&alone).is_err_and(|alone| has_fault_of(&error.to_string(), &alone.to_string()));
        if is_misuse { Misuse::because(error) } else { error }
    })
}

/// Whether two lists of faults, a line each below a heading, have one in common.
fn has_fault_of(error: &str, other: &str) -> bool {
    other.lines().skip(1).any(|fault| error.lines().any(|line| line == fault))
}

/// An error if keys are given that the model does not have, or values of other types. Whether values are in range is not
/// asked: that may depend on keys that are not known yet.
pub(crate) fn check_keys(asked: &Asked, keys_set: &[String]) -> anyhow::Result<()> {
    let check = |settings: &Table| match asked.entry.configure(settings) {
        Err(error @ ConfigError::Keys { .. }) => Err(error),
        _ => Ok(()),
    };
    let set = asked.settings.iter().filter(|(key, _)| keys_set.contains(key));
    check(&set.map(|(key, value)| (key.clone(), value.clone())).collect()).on_command_line()?;
    Ok(check(&asked.settings)?)
}

/// A model asked for, with the keys given for it, not checked yet.
pub(crate) struct Asked {
    pub(crate) label: String,
    pub(crate) entry: ModelEntry,
    pub(crate) settings: Table,
}

/// The keys given for the models and presets asked for, in the order asked.
pub(crate) fn gather(
    arguments: &ModelArguments,
    shared: SharedKeys,
    registry: &Registry,
) -> anyhow::Result<Vec<Asked>> {
    let mut asked: Vec<(String, ModelEntry, Table)> = Vec::new();
    for name in &arguments.model {
        let entry = registry.find(name.trim()).on_command_line()?;
        asked.push((entry.name.to_owned(), entry, Table::new()));
    }
    for name in &arguments.preset {
        let preset = registry.preset(name.trim()).on_command_line()?;
        asked.push((preset.name, registry.find(&preset.model)?, preset.settings));
    }
    let several = asked.len() > 1;

    let assignments =
        arguments.set.iter().map(|text| parse_assignment(text)).collect::<Result<Vec<_>, _>>()?;
    for (model, key, _) in &assignments {
        match model {
            Some(name) if !asked.iter().any(|(label, entry, _)| label == name || entry.name == name) => {
                misuse!("--set {name}.{key}: {name} is not among the models asked for")
            }
            None if several => {
                misuse!("--set {key}: with several models say which one, such as {}.{key}", asked[0].0)
            }
            _ => {}
        }
    }

    let file = arguments.config.as_deref().map(read_table).transpose()?.unwrap_or_default();
    let is_model = |name: &str| registry.find(name).is_ok();
    let by_model = file.iter().any(|(key, value)| value.is_table() && is_model(key));
    if let Some((key, _)) = file.iter().find(|(key, value)| by_model && !(value.is_table() && is_model(key)))
    {
        bail!(
            "'{key}' in the configuration file: expected only tables named after models, as the file has one"
        );
    }
    if several && !by_model && !file.is_empty() {
        bail!(
            "with several models the configuration file needs a table for each, such as [{}]",
            asked[0].1.name
        );
    }

    let mut gathered = Vec::new();
    for (label, entry, mut table) in asked {
        let own = match file.get(entry.name) {
            Some(Value::Table(own)) => own.clone(),
            _ if by_model => Table::new(),
            _ => file.clone(),
        };
        table.extend(own);
        for (model, key, value) in &assignments {
            if model.as_ref().is_none_or(|model| *model == label || model == entry.name) {
                table.insert(key.clone(), value.clone());
            }
        }
        add_shared(&mut table, &entry, shared)?;
        gathered.push(Asked { label, entry, settings: table });
    }
    Ok(gathered)
}

/// The keys given with `--set`.
pub(crate) fn keys_set(arguments: &ModelArguments) -> anyhow::Result<Vec<String>> {
    arguments.set.iter().map(|text| Ok(parse_assignment(text)?.1)).collect()
}

/// One model with its defaults and the shared keys.
pub(crate) fn with_defaults(entry: &ModelEntry, shared: SharedKeys) -> anyhow::Result<Choice> {
    let mut table = Table::new();
    add_shared(&mut table, entry, shared)?;
    Choice::new(entry.name.to_owned(), *entry, table)
}

/// Adds the shared keys that the model has and that were not given.
pub(crate) fn add_shared(table: &mut Table, entry: &ModelEntry, shared: SharedKeys) -> anyhow::Result<()> {
    let seed = i64::try_from(shared.seed).context("--seed: expected at most 2^63 - 1").on_command_line()?;
    let max_len = shared.max_len.map(i64::try_from).transpose();
    let max_len = max_len.context("--max-len is too large").on_command_line()?;
    let memory = shared.memory_bytes.map(i64::try_from).transpose();
    let memory = memory.context("--memory is too large").on_command_line()?;
    let known = entry.defaults();
    for (key, value) in [("seed", Some(seed)), ("max_len", max_len), ("memory_bytes", memory)] {
        if let Some(value) = value.filter(|_| known.contains_key(key) && !table.contains_key(key)) {
            table.insert(key.to_owned(), Value::Integer(value));
        }
    }
    Ok(())
}

fn read_table(path: &Path) -> anyhow::Result<Table> {
    let text = fs::read_to_string(path).with_context(|| escape::path(path))?;
    text.parse::<Table>().map_err(|error| {
        // Below its first line it is a picture of the place.
        let error = error.to_string().trim_end().replace('\n', "\n  ");
        anyhow::anyhow!("{}: {error}", escape::path(path))
    })
}

/// `key=value` or `model.key=value`; a value that is no TOML is a string.
fn parse_assignment(text: &str) -> anyhow::Result<(Option<String>, String, Value)> {
    let Some((name, value)) = text.split_once('=') else {
        misuse!("--set {text}: expected KEY=VALUE, such as rank=200");
    };
    let (model, key) = match name.trim().split_once('.') {
        Some((model, key)) => (Some(model.to_owned()), key),
        None => (None, name.trim()),
    };
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    // TOML wants a digit on both sides of the point; people write .6 all the same.
    let number = || value.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float);
    let parsed = parsed.or_else(number).unwrap_or_else(|| Value::String(value.to_owned()));
    Ok((model, key.to_owned(), parsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(
        models: &[&str],
        presets: &[&str],
        file: Option<&str>,
        set: &[&str],
    ) -> Result<Vec<serde_json::Value>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.toml");
        if let Some(text) = file {
            fs::write(&path, text).unwrap();
        }
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let arguments = ModelArguments {
            model: owned(models),
            preset: owned(presets),
            config: file.map(|_| path.clone()),
            set: owned(set),
            memory: None,
        };
        let shared = SharedKeys { seed: 5, max_len: Some(50), memory_bytes: Some(1 << 30) };
        configure(&arguments, shared, &Registry::default())
            .map(|all| all.into_iter().map(|choice| choice.configured.configuration).collect())
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn set_wins_over_the_file_and_the_file_over_defaults() {
        let configured = outcome(&["pure-svd"], &[], Some("rank = 7\nscaling = 0.2"), &["rank=9"]).unwrap();
        assert_eq!((&configured[0]["rank"], &configured[0]["scaling"]), (&9.into(), &0.2.into()));
        assert_eq!(configured[0]["seed"], 5);
    }

    #[test]
    fn numbers_need_no_digit_before_the_point() {
        let configured = outcome(&["pure-svd"], &[], None, &["scaling=.6"]).unwrap();
        assert_eq!(configured[0]["scaling"], 0.6);
    }

    #[test]
    fn presets_are_overridden_key_by_key() {
        let configured = outcome(&[], &["la-satf/amz-b"], None, &["num_iters=1"]).unwrap();
        assert_eq!((&configured[0]["item_rank"], &configured[0]["num_iters"]), (&600.into(), &1.into()));
        assert_eq!(
            (&configured[0]["max_len"], &configured[0]["memory_bytes"]),
            (&50.into(), &(1 << 30).into())
        );
    }

    #[test]
    fn several_models_have_their_own_tables() {
        let file = "[pure-svd]\nrank = 7\n[transitions]\nwindow = 3";
        let configured =
            outcome(&["transitions", "pure-svd", "mp"], &[], Some(file), &["pure-svd.seed=1"]).unwrap();
        assert_eq!((&configured[0]["window"], &configured[1]["rank"]), (&3.into(), &7.into()));
        assert_eq!(configured[1]["seed"], 1);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (models, file, set, message) in [
            (vec!["mp", "random"], None, vec!["seed=1"], "say which one"),
            (vec!["mp"], None, vec!["ease.x=1"], "not among the models"),
            (vec!["pure-svd"], None, vec!["rank"], "KEY=VALUE"),
            (vec!["pure-svd"], Some("rank = "), vec![], "models.toml"),
            (vec!["pure-svd", "mp"], Some("rank = 3"), vec![], "[pure-svd]"),
            (vec!["pure-svd"], Some("rank = 3\n[mp]"), vec![], "only tables"),
            (vec!["pure-svd"], Some("ranks = 3"), vec![], "did you mean 'rank'"),
        ] {
            let error = outcome(&models, &[], file, &set).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
