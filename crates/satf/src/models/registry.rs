//! Models by name, configured by key and value, as the command line and configuration files do.
//!
//! A [`Registry`] is a value: [`Registry::default`] has the models of this crate, [`Registry::with`] adds a model of another crate,
//! which is then found like all others: by name, in model files, with its presets and its spaces for tuning. Whatever finds models
//! by name is given a registry.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::presets::{self, Preset, UnknownPreset};
use super::{
    DSatfConfig, EaseConfig, GaSatfConfig, LaSatfConfig, Learner, ModelError, PopularityConfig,
    PureSvdConfig, RandomConfig, TransitionsConfig, VmisKnnConfig,
};
use crate::fault::{excerpt, lines};
use crate::numbers::counted;

/// A model that can be asked for by name.
#[derive(Clone, Copy)]
pub struct ModelEntry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Presets of its own, in the form of this crate's `presets.toml`; protocols are those of this crate.
    pub(super) presets: &'static str,
    /// Spaces of its own for tuning, in the form of this crate's `spaces.toml`; empty for the models of this crate.
    pub(crate) spaces: &'static str,
    defaults: fn() -> serde_json::Map<String, serde_json::Value>,
    fault: fn(&Table) -> Option<String>,
    build: fn(Table) -> Result<Configured, ConfigError>,
    read: fn(&serde_json::Value) -> Result<Configured, ConfigError>,
    learner: fn() -> Box<dyn Learner>,
}

/// A configuration that passed its checks.
pub struct Configured {
    /// What can be fitted.
    pub learner: Box<dyn Learner>,
    /// Every key with its value, defaults included.
    pub configuration: serde_json::Value,
}

/// Why a model cannot be configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such model in the registry.
    #[error("unknown model '{}'{}; known: {}", excerpt(name), home_or_nearest(name, nearest.as_deref()), known.join(", "))]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// Keys that do not exist or values of the wrong type: all of them.
    #[error("the configuration of {model} has {}:{}", counted(faults.len(), "fault"),
        lines(faults))]
    Keys {
        /// The model.
        model: &'static str,
        /// Every fault.
        faults: Vec<KeyFault>,
    },
    /// Values outside their ranges.
    #[error(transparent)]
    Values(#[from] ModelError),
}

/// What is wrong with a key of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// A key that the model does not have.
    #[error("unknown key '{}'{}; known: {}", excerpt(key), did_you_mean(nearest.as_deref()),
        if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    Unknown {
        /// The key.
        key: String,
        /// The nearest known one.
        nearest: Option<String>,
        /// All keys of the model.
        known: Vec<String>,
    },
    /// A value that the key cannot have.
    #[error("{key} = {}: {}", excerpt(value), excerpt(reason))]
    Value {
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A configuration that cannot be read as a whole: what the parser says.
    #[error("{0}")]
    Unreadable(String),
}

impl KeyFault {
    /// A key that is not among those known.
    pub(crate) fn unknown(key: &str, known: &serde_json::Map<String, serde_json::Value>) -> Self {
        KeyFault::Unknown {
            key: key.to_owned(),
            nearest: nearest(key, known.keys().map(String::as_str)).map(str::to_owned),
            known: known.keys().cloned().collect(),
        }
    }
}

/// Models of other crates that files and users may name.
const ELSEWHERE: &[(&str, &str)] = &[("sasrec", "satf-sasrec")];

/// The crate that has a model which is not one of this crate, if it is known.
pub fn crate_with(model: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(name, _)| *name == model).map(|(_, home)| *home)
}

fn home_or_nearest(name: &str, nearest: Option<&str>) -> String {
    crate_with(name).map_or_else(|| did_you_mean(nearest), |home| format!(", which the crate {home} has"))
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default()
}

/// The known name nearest to what was written, if it is near at all.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = 2 + written.chars().count() / 4;
    let written = written.to_lowercase();
    let length = written.chars().count();
    // Names are at least as far apart as their lengths: most need no look at their letters, above all if the text is no name at all.
    let may_be_near = |name: &String| name.chars().count().abs_diff(length) <= allowed;
    let distance = |name: &'a str| {
        let lowercase = Some(name.to_lowercase()).filter(may_be_near)?;
        Some((strsim::damerau_levenshtein(&written, &lowercase), name))
    };
    let (distance, name) = known.into_iter().filter_map(distance).min()?;
    (distance <= allowed).then_some(name)
}

/// The models that a program knows by name, with their presets and their spaces for tuning.
///
/// ```
/// use satf::models::Registry;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::default();
/// let configured = registry.find("transitions")?.configure(&"window = 3".parse()?)?;
/// assert_eq!(configured.configuration["window"], 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Registry {
    entries: Vec<ModelEntry>,
}

/// The models of this crate.
impl Default for Registry {
    fn default() -> Self {
        Registry { entries: OWN.to_vec() }
    }
}

impl Registry {
    /// The same with one more model. A model of the same name gives way to it.
    ///
    /// # Panics
    /// If the presets of the model cannot be read: they are part of a program, not of its input.
    #[must_use]
    pub fn with(mut self, entry: ModelEntry) -> Self {
        assert!(presets::of_entry(&entry).is_some(), "the presets of {} can be read", entry.name);
        match self.entries.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        self
    }

    /// Every model: those of this crate, then those added.
    pub fn models(&self) -> &[ModelEntry] {
        &self.entries
    }

    /// The model called `name`.
    pub fn find(&self, name: &str) -> Result<ModelEntry, ConfigError> {
        let names = || self.entries.iter().map(|entry| entry.name);
        self.entries.iter().copied().find(|entry| entry.name == name).ok_or_else(|| {
            ConfigError::UnknownModel {
                name: name.to_owned(),
                nearest: nearest(name, names()).map(str::to_owned),
                known: names().collect(),
            }
        })
    }

    /// Every preset: those of this crate in the order of the file they are kept in, then those of models added.
    pub fn presets(&self) -> Vec<Preset> {
        let own = presets::shipped();
        own.into_iter().chain(self.entries.iter().filter_map(presets::of_entry).flatten()).collect()
    }

    /// The preset called `name`.
    pub fn preset(&self, name: &str) -> Result<Preset, UnknownPreset> {
        presets::find(self.presets(), name)
    }
}

const fn entry<C>(name: &'static str, summary: &'static str) -> ModelEntry
where
    C: Learner + Default + Serialize + DeserializeOwned + 'static,
{
    ModelEntry::new::<C>(name, summary)
}

/// Every model of this crate.
const OWN: &[ModelEntry] = &[
    entry::<PopularityConfig>("mp", "most popular items, the same for everybody"),
    entry::<RandomConfig>("random", "seeded random scores: the floor"),
    entry::<PureSvdConfig>("pure-svd", "truncated SVD of the debiased user-item matrix (PureSVD, PureSVD-N)"),
    entry::<GaSatfConfig>("ga-satf", "tensor factorisation with attention over whole histories"),
    entry::<LaSatfConfig>("la-satf", "tensor factorisation with attention within a sliding window"),
    entry::<DSatfConfig>("d-satf", "directed memory of pairs and a directed low-rank core, closed form"),
    entry::<EaseConfig>("ease", "closed-form item-item ridge regression, dense in the items"),
    entry::<VmisKnnConfig>("vmis-knn", "nearest neighbours among recent sessions"),
    entry::<TransitionsConfig>("transitions", "directed item-to-item transitions within a window"),
];

impl ModelEntry {
    /// A model that is configured by `C`.
    pub const fn new<C>(name: &'static str, summary: &'static str) -> Self
    where
        C: Learner + Default + Serialize + DeserializeOwned + 'static,
    {
        ModelEntry {
            name,
            summary,
            presets: "",
            spaces: "",
            defaults: defaults::<C>,
            fault: fault::<C>,
            build: build::<C>,
            read: read::<C>,
            learner: || Box::new(C::default()),
        }
    }

    /// The same with presets and spaces of its own: the text of a `presets.toml` without protocols, and of a `spaces.toml`.
    #[must_use]
    pub const fn with(self, presets: &'static str, spaces: &'static str) -> Self {
        ModelEntry { presets, spaces, ..self }
    }

    /// Every key with its default.
    pub fn defaults(&self) -> serde_json::Map<String, serde_json::Value> {
        (self.defaults)()
    }

    /// The key that says how many iterations to learn for, if the model learns iteratively.
    pub fn iterations_key(&self) -> Option<&'static str> {
        (self.learner)().iterations_key()
    }

    /// Keys that play no part in training ([`Learner::variant_keys`]).
    pub fn variant_keys(&self) -> Vec<String> {
        (self.learner)().variant_keys()
    }

    /// The model with these settings over its defaults. All faults are reported at once.
    pub fn configure(&self, settings: &Table) -> Result<Configured, ConfigError> {
        self.check_keys(settings)?;
        self.configure_known(settings.clone())
    }

    /// The same for settings of which each key and its type is known to be right.
    pub(crate) fn configure_known(&self, settings: Table) -> Result<Configured, ConfigError> {
        (self.build)(settings)
    }

    /// An error if the model lacks a key, or takes no value of that type for it. Whether values suit the model, and each other, is
    /// another matter.
    pub(crate) fn check_keys(&self, settings: &Table) -> Result<(), ConfigError> {
        let known = self.defaults();
        let mut faults = Vec::new();
        for (key, value) in settings {
            if known.contains_key(key) {
                let alone = Table::from_iter([(key.clone(), value.clone())]);
                if let Some(message) = (self.fault)(&alone) {
                    let (key, value) = (key.clone(), value.to_string());
                    faults.push(KeyFault::Value { key, value, reason: in_words(&message) });
                }
            } else {
                faults.push(KeyFault::unknown(key, &known));
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(ConfigError::Keys { model: self.name, faults }) }
    }

    /// The model with a whole configuration as [`Configured::configuration`] has it.
    pub fn read(&self, configuration: &serde_json::Value) -> Result<Configured, ConfigError> {
        (self.read)(configuration)
    }
}

/// What a deserializer says, without the names of types.
fn in_words(message: &str) -> String {
    let words = [
        ("expected usize", "expected a whole number, not below 0"),
        ("expected u64", "expected a whole number, not below 0"),
        ("expected f64", "expected a number"),
        ("unknown variant", "unknown value"),
    ];
    words.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn defaults<C: Default + Serialize>() -> serde_json::Map<String, serde_json::Value> {
    match serde_json::to_value(C::default()) {
        Ok(serde_json::Value::Object(keys)) => keys,
        _ => serde_json::Map::new(),
    }
}

fn fault<C: DeserializeOwned>(settings: &Table) -> Option<String> {
    let outcome = Value::Table(settings.clone()).try_into::<C>();
    outcome.err().map(|error| error.message().to_owned())
}

fn build<C>(settings: Table) -> Result<Configured, ConfigError>
where
    C: Learner + Default + Serialize + DeserializeOwned + 'static,
{
    let learner: C = Value::Table(settings).try_into().map_err(|error| ConfigError::Keys {
        model: C::default().name(),
        faults: vec![KeyFault::Unreadable(error.message().to_owned())],
    })?;
    Configured::new(learner).map_err(Into::into)
}

fn read<C>(configuration: &serde_json::Value) -> Result<Configured, ConfigError>
where
    C: Learner + Default + Serialize + DeserializeOwned + 'static,
{
    let learner = C::deserialize(configuration).map_err(|error| ConfigError::Keys {
        model: C::default().name(),
        faults: vec![KeyFault::Unreadable(error.to_string())],
    })?;
    Configured::new(learner).map_err(Into::into)
}

impl Configured {
    /// A configuration, checked.
    pub fn new<C: Learner + Serialize + 'static>(learner: C) -> Result<Self, ModelError> {
        learner.check()?;
        let configuration = serde_json::to_value(&learner).unwrap_or_default();
        Ok(Configured { learner: Box::new(learner), configuration })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    fn message(name: &str, settings: &str) -> String {
        let outcome = Registry::default().find(name).and_then(|entry| entry.configure(&table(settings)));
        outcome.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_model_is_configured_by_its_defaults_and_knows_its_name() {
        for entry in Registry::default().models() {
            let configured = entry.configure(&Table::new()).unwrap();
            assert_eq!(configured.learner.name(), entry.name);
            assert_eq!(configured.configuration, serde_json::Value::Object(entry.defaults()));
            let derived = entry.variant_keys().into_iter().chain(entry.iterations_key().map(str::to_owned));
            for key in derived {
                assert!(entry.defaults().contains_key(&key), "{}: {key}", entry.name);
            }
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        assert!(message("pure-scd", "").contains("did you mean 'pure-svd'?"));
        assert!(message("pure-svd", "rnak = 5").contains("did you mean 'rank'?"));
        assert!(!message("zzzzzzzzzzzz", "").contains("did you mean"));
    }

    #[test]
    fn a_text_that_is_no_name_is_not_compared_letter_by_letter() {
        // Letter by letter this would take minutes and gigabytes.
        let known = vec!["sleeping bag"; 1000];
        assert_eq!(nearest(&"x".repeat(5_000_000), known.iter().copied()), None);
        assert_eq!(nearest("Sleping bag", known), Some("sleeping bag"));
    }

    #[test]
    fn a_model_of_another_crate_is_added_to_a_value_and_to_nothing_else() {
        const OTHER: ModelEntry = ModelEntry::new::<PopularityConfig>("other", "a model of another crate")
            .with("[other]\nml-1m = {}", "[other.default]\nsummary = 's'\nkeys.x = [1]");
        let registry = Registry::default().with(OTHER).with(OTHER);
        assert_eq!(registry.models().len(), OWN.len() + 1);
        assert_eq!(registry.find("other").unwrap().summary, "a model of another crate");
        assert_eq!(registry.preset("other/ml-1m").unwrap().model, "other");
        assert_eq!(registry.presets().len(), Registry::default().presets().len() + 1);
        assert!(Registry::default().find("other").is_err());

        // Of two with one name the later one counts.
        let again = ModelEntry::new::<RandomConfig>("mp", "another");
        let registry = registry.with(again);
        assert_eq!(registry.models().len(), OWN.len() + 1);
        assert_eq!(registry.find("mp").unwrap().summary, "another");
    }

    #[test]
    #[should_panic(expected = "presets of other")]
    fn presets_that_cannot_be_read_are_found_when_a_model_is_added() {
        let entry = ModelEntry::new::<PopularityConfig>("other", "").with("[other]\nnowhere = {}", "");
        let _ = Registry::default().with(entry);
    }

    #[test]
    fn a_model_of_another_crate_is_said_to_be_there() {
        let message = message("sasrec", "");
        assert!(message.contains("the crate satf-sasrec has"), "{message}");
    }

    #[test]
    fn all_faults_come_at_once() {
        let message = message("pure-svd", "rank = 'many'\nscalling = 1.0\nrescaled = 3");
        for part in ["rank = \"many\"", "expected a whole number", "'scaling'", "rescaled = 3"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
