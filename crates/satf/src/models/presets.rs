//! Named configurations shipped with the crate: a model's keys and the protocol they belong to.

use serde::Deserialize;
use toml::{Table, Value};

use super::ModelEntry;
use super::registry::nearest;
use crate::prepare::{Offset, TiePolicy};

/// A named configuration, such as `pure-svd-n/amz-b`.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// The model it configures.
    pub model: String,
    /// Keys of the model.
    pub settings: Table,
    /// How the dataset is cut.
    pub protocol: PresetProtocol,
}

/// The protocol a preset belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetProtocol {
    /// Length of the validation set.
    pub valid: Offset,
    /// Length of the test set.
    pub test: Offset,
    /// Order of events with equal times.
    pub ties: TiePolicy,
    /// Longest history.
    pub max_len: usize,
}

/// There is no such preset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown preset '{name}'{}; known: {}",
    nearest.as_ref().map(|nearest| format!(", did you mean '{nearest}'?")).unwrap_or_default(), known.join(", "))]
pub struct UnknownPreset {
    name: String,
    nearest: Option<String>,
    known: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtocolText {
    valid: String,
    test: String,
    ties: String,
    max_len: usize,
}

/// The presets of this crate, in the order of the file they are kept in.
pub(super) fn shipped() -> Vec<Preset> {
    let file = file();
    parse(&file, &protocols(&file)).expect("invariant: the presets shipped are read by a test")
}

/// The presets that a model of another crate brings along; none if they cannot be read.
pub(super) fn of_entry(entry: &ModelEntry) -> Option<Vec<Preset>> {
    parse(&entry.presets.parse().ok()?, &protocols(&file()))
}

/// The preset called `name`.
pub(super) fn find(presets: Vec<Preset>, name: &str) -> Result<Preset, UnknownPreset> {
    let known: Vec<String> = presets.iter().map(|preset| preset.name.clone()).collect();
    presets.into_iter().find(|preset| preset.name == name).ok_or_else(|| UnknownPreset {
        name: name.to_owned(),
        nearest: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
        known,
    })
}

fn file() -> Table {
    include_str!("presets.toml").parse().expect("invariant: the presets shipped are read by a test")
}

fn protocols(file: &Table) -> Table {
    file.get("protocol").and_then(Value::as_table).cloned().unwrap_or_default()
}

fn parse(file: &Table, protocols: &Table) -> Option<Vec<Preset>> {
    let mut presets = Vec::new();
    for (family, datasets) in file.iter().filter(|(family, _)| *family != "protocol") {
        let datasets = datasets.as_table()?;
        let model = datasets.get("model").map_or(Some(family.as_str()), Value::as_str)?;
        for (dataset, settings) in datasets.iter().filter(|(dataset, _)| *dataset != "model") {
            let protocol: ProtocolText = protocols.get(dataset)?.clone().try_into().ok()?;
            presets.push(Preset {
                name: format!("{family}/{dataset}"),
                model: model.to_owned(),
                settings: settings.as_table()?.clone(),
                protocol: PresetProtocol {
                    valid: protocol.valid.parse().ok()?,
                    test: protocol.test.parse().ok()?,
                    ties: protocol.ties.parse().ok()?,
                    max_len: protocol.max_len,
                },
            });
        }
    }
    Some(presets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Registry;

    #[test]
    fn every_preset_configures_its_model() {
        let registry = Registry::default();
        let presets = registry.presets();
        assert!(presets.len() >= 8);
        for preset in presets {
            let entry = registry.find(&preset.model).unwrap();
            let mut settings = preset.settings.clone();
            if entry.defaults().contains_key("max_len") {
                settings.insert("max_len".to_owned(), Value::Integer(preset.protocol.max_len as i64));
            }
            let configured = entry.configure(&settings).unwrap();
            for (key, value) in &preset.settings {
                let expected = serde_json::to_value(value).unwrap();
                assert_eq!(configured.configuration[key], expected, "{} {key}", preset.name);
            }
        }
    }

    #[test]
    fn a_misspelt_preset_is_answered_with_the_nearest() {
        let message = Registry::default().preset("pure-svd/amzb").unwrap_err().to_string();
        assert!(message.contains("did you mean 'pure-svd/amz-b'?"), "{message}");
    }
}
