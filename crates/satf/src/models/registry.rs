//! Models by name, configured by key and value, as the command line and configuration files do.
//!
//! The models of this crate are always known. A model of another crate, whose dependencies are too heavy for this one,
//! [`register`]s once at the start of a program and is found like all others from then on: by name, in model files, with its
//! presets and its spaces for tuning.

use std::sync::{PoisonError, RwLock};

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::error::lines;
use super::{
    DSatfConfig, EaseConfig, GaSatfConfig, LaSatfConfig, Learner, ModelError, PopularityConfig,
    PureSvdConfig, RandomConfig, TransitionsConfig, VmisKnnConfig,
};

/// A model that can be asked for by name.
#[derive(Clone, Copy)]
pub struct ModelEntry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Presets of its own, in the form of this crate's `presets.toml`; protocols are those of this crate.
    pub(super) presets: &'static str,
    /// Spaces of its own for tuning, in the form of this crate's `spaces.toml`.
    pub(crate) spaces: &'static str,
    defaults: fn() -> serde_json::Map<String, serde_json::Value>,
    fault: fn(&Table) -> Option<String>,
    build: fn(Table) -> Result<Configured, ConfigError>,
    read: fn(&serde_json::Value) -> Result<Configured, ConfigError>,
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
    /// No such model.
    #[error("unknown model '{name}'{}; known: {}", did_you_mean(nearest.as_deref()), known.join(", "))]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
        /// All names.
        known: Vec<&'static str>,
    },
    /// Keys that do not exist or values of the wrong type: all of them.
    #[error("the configuration of {model} has {} fault(s):{}", faults.len(),
        lines(faults))]
    Keys {
        /// The model.
        model: &'static str,
        /// One line a fault.
        faults: Vec<String>,
    },
    /// Values outside their ranges.
    #[error(transparent)]
    Values(#[from] ModelError),
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default()
}

/// The known name nearest to what was written, if it is near at all.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(&written.to_lowercase(), &name.to_lowercase());
    let (distance, name) = known.into_iter().map(|name| (distance(name), name)).min()?;
    (distance <= 2 + written.chars().count() / 4).then_some(name)
}

/// Models of other crates, in the order they registered.
static REGISTERED: RwLock<Vec<&'static ModelEntry>> = RwLock::new(Vec::new());

/// Makes a model of another crate known. A name that is known already stays with the model that has it, so registering twice
/// does nothing.
pub fn register(entry: &'static ModelEntry) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if !MODELS.iter().chain(registered.iter().copied()).any(|known| known.name == entry.name) {
        registered.push(entry);
    }
}

/// Every model that can be asked for: those of this crate, then those registered.
pub fn models() -> Vec<&'static ModelEntry> {
    MODELS.iter().chain(registered()).collect()
}

/// The models of other crates.
pub(crate) fn registered() -> Vec<&'static ModelEntry> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

const fn entry<C>(name: &'static str, summary: &'static str) -> ModelEntry
where
    C: Learner + Default + Serialize + DeserializeOwned + 'static,
{
    ModelEntry::new::<C>(name, summary)
}

/// Every model of this crate.
pub const MODELS: &[ModelEntry] = &[
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
        }
    }

    /// The same with presets and spaces of its own: the text of a `presets.toml` without protocols, and of a `spaces.toml`.
    #[must_use]
    pub const fn with(self, presets: &'static str, spaces: &'static str) -> Self {
        ModelEntry { presets, spaces, ..self }
    }

    /// The model called `name`.
    pub fn find(name: &str) -> Result<&'static ModelEntry, ConfigError> {
        let models = models();
        let names = || models.iter().map(|entry| entry.name);
        models.iter().copied().find(|entry| entry.name == name).ok_or_else(|| ConfigError::UnknownModel {
            name: name.to_owned(),
            nearest: nearest(name, names()).map(str::to_owned),
            known: names().collect(),
        })
    }

    /// Every key with its default.
    pub fn defaults(&self) -> serde_json::Map<String, serde_json::Value> {
        (self.defaults)()
    }

    /// The model with these settings over its defaults. All faults are reported at once.
    pub fn configure(&self, settings: &Table) -> Result<Configured, ConfigError> {
        let known = self.defaults();
        let mut faults = Vec::new();
        for (key, value) in settings {
            if known.contains_key(key) {
                let alone = Table::from_iter([(key.clone(), value.clone())]);
                if let Some(message) = (self.fault)(&alone) {
                    faults.push(format!("{key} = {value}: {}", in_words(&message)));
                }
            } else {
                let nearest = nearest(key, known.keys().map(String::as_str));
                let keys: Vec<&str> = known.keys().map(String::as_str).collect();
                let keys = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
                faults.push(format!("unknown key '{key}'{}; known: {keys}", did_you_mean(nearest)));
            }
        }
        if !faults.is_empty() {
            return Err(ConfigError::Keys { model: self.name, faults });
        }
        (self.build)(settings.clone())
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
        faults: vec![error.message().to_owned()],
    })?;
    Configured::new(learner).map_err(Into::into)
}

fn read<C>(configuration: &serde_json::Value) -> Result<Configured, ConfigError>
where
    C: Learner + Default + Serialize + DeserializeOwned + 'static,
{
    let learner = C::deserialize(configuration)
        .map_err(|error| ConfigError::Keys { model: C::default().name(), faults: vec![error.to_string()] })?;
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
        let outcome = ModelEntry::find(name).and_then(|entry| entry.configure(&table(settings)));
        outcome.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn every_model_is_configured_by_its_defaults_and_knows_its_name() {
        for entry in MODELS {
            let configured = entry.configure(&Table::new()).unwrap();
            assert_eq!(configured.learner.name(), entry.name);
            assert_eq!(configured.configuration, serde_json::Value::Object(entry.defaults()));
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        assert!(message("pure-scd", "").contains("did you mean 'pure-svd'?"));
        assert!(message("pure-svd", "rnak = 5").contains("did you mean 'rank'?"));
        assert!(!message("zzzzzzzzzzzz", "").contains("did you mean"));
    }

    #[test]
    fn all_faults_come_at_once() {
        let message = message("pure-svd", "rank = 'many'\nscalling = 1.0\nrescaled = 3");
        for part in ["rank = \"many\"", "expected a whole number", "'scaling'", "rescaled = 3"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
