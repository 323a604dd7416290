//! Which models an experiment has, and with which keys.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{ExperimentError, SettingsError, Warning};
use crate::models::{ConfigError, Configured, ModelEntry, Registry};

/// Keys that belong to an experiment as a whole and that a model takes over unless it is given its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SharedKeys {
    /// Seed for everything random.
    pub seed: u64,
    /// Longest history that order-aware models look at.
    pub max_len: Option<usize>,
    /// Memory that training may take.
    pub memory_bytes: Option<u64>,
}

impl SharedKeys {
    /// Adds the keys that the model has and that were not given.
    pub fn add_to(&self, settings: &mut Table, entry: &ModelEntry) -> Result<(), SettingsError> {
        let SharedKeys { seed, max_len, memory_bytes } = *self;
        for (key, value) in (GivenKeys { seed: Some(seed), max_len, memory_bytes }).of(entry)? {
            settings.entry(key).or_insert(value);
        }
        Ok(())
    }
}

/// Keys of the same names that were given for all models at once: each model that has them takes them, whatever its configuration says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GivenKeys {
    /// Seed for everything random.
    pub seed: Option<u64>,
    /// Longest history that order-aware models look at.
    pub max_len: Option<usize>,
    /// Memory that training may take.
    pub memory_bytes: Option<u64>,
}

impl GivenKeys {
    /// Those that the model has, with their values.
    pub fn of(&self, entry: &ModelEntry) -> Result<Vec<(&'static str, Value)>, SettingsError> {
        let all = [
            ("seed", self.seed),
            ("max_len", self.max_len.map(|max_len| max_len as u64)),
            ("memory_bytes", self.memory_bytes),
        ];
        let known = entry.defaults();
        let given = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let given = given.map(|(key, value)| match i64::try_from(value) {
            Ok(value) => Ok((key, Value::Integer(value))),
            Err(_) => Err(SettingsError::TooLarge { key, value }),
        });
        given.filter(|given| given.as_ref().map_or(true, |(key, _)| known.contains_key(*key))).collect()
    }
}

/// The models and presets of an experiment with their keys, as a file or a request has them.
///
/// Keys come from presets, then from `configuration`, then from `given`, then from `keys`; each takes the place of what came before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Models by name.
    pub models: Vec<String>,
    /// Presets by name, such as `la-satf/amz-b`.
    pub presets: Vec<String>,
    /// Keys of the one model there is, or a table of them for each, named after it.
    pub configuration: Table,
    /// Keys that are given for all models at once.
    pub given: GivenKeys,
    /// Single keys.
    pub keys: Vec<KeySetting>,
}

/// One key of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySetting {
    /// The model or preset; none if there is but one.
    #[serde(default)]
    pub model: Option<String>,
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// A model asked for, with the keys given for it, not checked yet.
#[derive(Clone)]
pub struct Asked {
    /// What it is called in reports: the model's or the preset's name.
    pub label: String,
    /// The model.
    pub entry: ModelEntry,
    /// The keys.
    pub settings: Table,
}

impl ModelSettings {
    /// Models with their defaults.
    pub fn named<'a>(models: impl IntoIterator<Item = &'a str>) -> Self {
        ModelSettings { models: models.into_iter().map(str::to_owned).collect(), ..ModelSettings::default() }
    }

    /// The models, configured and checked: those asked for by name in the order asked, then the presets.
    pub fn configure(
        &self,
        shared: &SharedKeys,
        registry: &Registry,
    ) -> Result<Vec<Choice>, ExperimentError> {
        let asked = self.gather(shared, registry)?.into_iter();
        Ok(asked.map(Asked::configure).collect::<Result<_, _>>()?)
    }

    /// The models with the keys given for them, not checked yet, in the same order.
    pub fn gather(&self, shared: &SharedKeys, registry: &Registry) -> Result<Vec<Asked>, SettingsError> {
        let mut all: Vec<Asked> = Vec::new();
        for name in &self.models {
            let entry = registry.find(name.trim())?;
            all.push(Asked { label: entry.name.to_owned(), entry, settings: Table::new() });
        }
        for name in &self.presets {
            let preset = registry.preset(name.trim())?;
            let entry = registry.find(&preset.model)?;
            all.push(Asked { label: preset.name, entry, settings: preset.settings });
        }
        self.check_keys(&all)?;
        let has_tables = self.check_configuration(&all, registry)?;
        for asked in &mut all {
            match self.configuration.get(asked.entry.name) {
                Some(Value::Table(own)) => asked.settings.extend(own.clone()),
                _ if has_tables => {}
                _ => asked.settings.extend(self.configuration.clone()),
            }
            for (key, value) in self.given.of(&asked.entry)? {
                asked.settings.insert(key.to_owned(), value);
            }
            for KeySetting { model, key, value } in &self.keys {
                if model.as_ref().is_none_or(|model| asked.is_called(model)) {
                    asked.settings.insert(key.clone(), value.clone());
                }
            }
            shared.add_to(&mut asked.settings, &asked.entry)?;
        }
        Ok(all)
    }

    /// Every single key must be for one of the models.
    fn check_keys(&self, all: &[Asked]) -> Result<(), SettingsError> {
        for KeySetting { model, key, .. } in &self.keys {
            match model {
                Some(model) if !all.iter().any(|asked| asked.is_called(model)) => {
                    return Err(SettingsError::NotAsked { model: model.clone(), key: key.clone() });
                }
                None if all.len() > 1 => {
                    let example = all[0].label.clone();
                    return Err(SettingsError::WhichModel { key: key.clone(), example });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the configuration has a table for each model. It has nothing else then, and must have them where there are several.
    fn check_configuration(&self, all: &[Asked], registry: &Registry) -> Result<bool, SettingsError> {
        let is_table = |(key, value): &(&String, &Value)| value.is_table() && registry.find(key).is_ok();
        let has_tables = self.configuration.iter().any(|entry| is_table(&entry));
        if has_tables && let Some((key, _)) = self.configuration.iter().find(|entry| !is_table(entry)) {
            return Err(SettingsError::NotOnlyTables(key.clone()));
        }
        let is_asked = |key: &String| all.iter().any(|asked| asked.entry.name == *key);
        if has_tables && let Some(key) = self.configuration.keys().find(|key| !is_asked(key)) {
            return Err(SettingsError::TableNotAsked(key.clone()));
        }
        if all.len() > 1 && !has_tables && !self.configuration.is_empty() {
            return Err(SettingsError::NoTables(all[0].entry.name.to_owned()));
        }
        Ok(has_tables)
    }
}

impl Asked {
    /// The model with its keys, checked.
    pub fn configure(self) -> Result<Choice, ConfigError> {
        Choice::new(self.label, self.entry, self.settings)
    }

    /// An error if keys are given that the model does not have, or values of other types. Whether values are in range is not
    /// asked: that may depend on keys that are not known yet.
    pub fn check_keys(&self) -> Result<(), ConfigError> {
        match self.entry.configure(&self.settings) {
            Err(error @ ConfigError::Keys { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.label == name || self.entry.name == name
    }
}

/// A model of an experiment, configured and checked.
pub struct Choice {
    /// What it is called in reports: the model's or the preset's name.
    pub label: String,
    /// The model.
    pub entry: ModelEntry,
    /// What can be fitted.
    pub configured: Configured,
    settings: Table,
}

impl Choice {
    /// A model with these keys, checked.
    pub fn new(label: String, entry: ModelEntry, settings: Table) -> Result<Self, ConfigError> {
        let configured = entry.configure(&settings)?;
        Ok(Choice { label, entry, configured, settings })
    }

    /// A model with its defaults and the shared keys.
    pub fn with_defaults(entry: ModelEntry, shared: &SharedKeys) -> Result<Self, ExperimentError> {
        let mut settings = Table::new();
        shared.add_to(&mut settings, &entry)?;
        Ok(Choice::new(entry.name.to_owned(), entry, settings)?)
    }

    /// The keys that were given, shared ones included; others have their defaults.
    pub fn settings(&self) -> &Table {
        &self.settings
    }

    /// Whether the model has such a key.
    pub fn has(&self, key: &str) -> bool {
        self.entry.defaults().contains_key(key)
    }

    /// The same with other values of some keys.
    pub fn with(&self, keys: &[(&str, i64)]) -> Result<Self, ConfigError> {
        let mut settings = self.settings.clone();
        settings.extend(keys.iter().map(|&(key, value)| (key.to_owned(), Value::Integer(value))));
        Choice::new(self.label.clone(), self.entry, settings)
    }

    /// The same for another number of iterations, if the model has such a number.
    pub fn with_iterations(&self, iterations: usize) -> Result<Self, ConfigError> {
        let iterations = i64::try_from(iterations).unwrap_or(i64::MAX);
        match self.configured.learner.iterations_key() {
            Some(key) => self.with(&[(key, iterations)]),
            None => self.with(&[]),
        }
    }

    /// A warning if the last iteration it may take was the best one: there may be better ones after it.
    pub fn last_was_best(&self, best: usize) -> Option<Warning> {
        let key = self.configured.learner.iterations_key()?;
        let most = self.configured.configuration[key].as_u64()?;
        let (label, key) = (self.label.clone(), key.to_owned());
        (best as u64 >= most).then_some(Warning::LastWasBest { label, key, best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(settings: &str) -> Result<Vec<serde_json::Value>, String> {
        let settings: ModelSettings = toml::from_str(settings).unwrap();
        let shared = SharedKeys { seed: 5, max_len: Some(50), memory_bytes: Some(1 << 30) };
        let choices = settings.configure(&shared, &Registry::default());
        choices
            .map(|all| all.into_iter().map(|choice| choice.configured.configuration).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn single_keys_win_over_the_configuration_and_it_over_presets_and_defaults() {
        let settings = "models = ['pure-svd']\nkeys = [{ key = 'rank', value = 9 }]\n\
                        configuration = { rank = 7, scaling = 0.2 }";
        let configured = outcome(settings).unwrap();
        assert_eq!((&configured[0]["rank"], &configured[0]["scaling"]), (&9.into(), &0.2.into()));
        assert_eq!(configured[0]["seed"], 5);

        let settings = "presets = ['la-satf/amz-b']\nkeys = [{ key = 'num_iters', value = 1 }]";
        let configured = outcome(settings).unwrap();
        assert_eq!((&configured[0]["item_rank"], &configured[0]["num_iters"]), (&600.into(), &1.into()));
        assert_eq!(configured[0]["max_len"], 50);
        assert_eq!(configured[0]["memory_bytes"], 1 << 30);
    }

    #[test]
    fn what_is_given_for_all_models_wins_over_the_configuration_and_not_over_single_keys() {
        let settings = "models = ['transitions', 'pure-svd', 'd-satf', 'mp']\n\
                        given = { seed = 1, max_len = 20, memory_bytes = 1000000000 }\n\
                        keys = [{ model = 'pure-svd', key = 'seed', value = 2 }]\n\
                        configuration = { pure-svd = { seed = 7 }, transitions = { max_len = 9, window = 3 }, d-satf = { memory_bytes = 7 } }";
        let configured = outcome(settings).unwrap();
        assert_eq!((&configured[0]["max_len"], &configured[0]["window"]), (&20.into(), &3.into()));
        assert_eq!(configured[1]["seed"], 2);
        assert_eq!(configured[2]["memory_bytes"], 1_000_000_000);
    }

    #[test]
    fn several_models_have_their_own_keys() {
        let settings = "models = ['transitions', 'pure-svd', 'mp']\n\
                        keys = [{ model = 'pure-svd', key = 'seed', value = 1 }]\n\
                        configuration = { pure-svd = { rank = 7 }, transitions = { window = 3 } }";
        let configured = outcome(settings).unwrap();
        assert_eq!((&configured[0]["window"], &configured[1]["rank"]), (&3.into(), &7.into()));
        assert_eq!(configured[1]["seed"], 1);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (settings, message) in [
            (
                "models = ['mp', 'random']\nkeys = [{ key = 'seed', value = 1 }]",
                "seed: with several models say which one, such as mp.seed",
            ),
            (
                "models = ['mp']\nkeys = [{ model = 'ease', key = 'x', value = 1 }]",
                "ease is not among the models",
            ),
            (
                "models = ['pure-svd', 'mp']\nconfiguration = { rank = 3 }",
                "a table for each, such as [pure-svd]",
            ),
            ("models = ['pure-svd']\nconfiguration = { rank = 3, mp = {} }", "'rank' in the configuration"),
            ("models = ['pure-svd']\nconfiguration = { ranks = 3 }", "did you mean 'rank'"),
            (
                "models = ['pure-svd']\nconfiguration = { pure-svd = { rank = 3 }, mp = {} }",
                "[mp] in the configuration: mp is not among the models",
            ),
            ("models = ['pure-scd']", "did you mean 'pure-svd'"),
            ("presets = ['pure-svd/amzb']", "did you mean 'pure-svd/amz-b'"),
        ] {
            let error = outcome(settings).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        let shared = SharedKeys { seed: u64::MAX, ..SharedKeys::default() };
        let error = ModelSettings::named(["random"]).configure(&shared, &Registry::default()).err().unwrap();
        assert!(error.to_string().contains("seed = 18446744073709551615"), "{error}");
    }
}
