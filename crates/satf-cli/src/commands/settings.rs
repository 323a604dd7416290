//! Keys of models, from presets, a TOML file, options of their own and `--set`: each wins over those before it.

use std::collections::HashSet;
use std::path::Path;

use satf::data::read_configuration;
use satf::experiment::{
    Asked, Choice, ExperimentError, GivenKeys, KeySetting, ModelSettings, SettingsError, SharedKeys,
};
use satf::fault::picture;
use satf::models::Registry;
use toml::{Table, Value};

use crate::args::ModelArguments;
use crate::escape;
use crate::misuse::{Misuse, OnCommandLine, misuse};
use crate::signals::StopRequests;

/// The models and presets asked for, in the order asked.
pub(crate) fn configure(
    arguments: &ModelArguments,
    given: GivenKeys,
    shared: SharedKeys,
    registry: &Registry,
) -> anyhow::Result<Vec<Choice>> {
    let build = |arguments: &ModelArguments| -> anyhow::Result<Vec<Choice>> {
        let settings = read_settings(arguments, given, shared, registry)?;
        settings.configure(&shared, registry).map_err(|error| match error {
            ExperimentError::Settings(error) => in_words(error),
            error => error.into(),
        })
    };
    build(arguments).map_err(|error| {
        // A fault that is there without the file is one of the command line.
        let alone = ModelArguments { config: None, ..arguments.clone() };
        let is_misuse = arguments.config.is_none()
            || build(&alone).is_err_and(|alone| has_fault_of(&error.to_string(), &alone.to_string()));
        if is_misuse { Misuse::because(error) } else { error }
    })
}

/// The keys given for the models and presets asked for, in the order asked.
pub(crate) fn gather(
    arguments: &ModelArguments,
    given: GivenKeys,
    shared: SharedKeys,
    registry: &Registry,
) -> anyhow::Result<Vec<Asked>> {
    read_settings(arguments, given, shared, registry)?.gather(&shared, registry).map_err(in_words)
}

/// Whether two lists of faults, a line each below a heading, have one in common.
fn has_fault_of(error: &str, other: &str) -> bool {
    other.lines().skip(1).any(|fault| error.lines().any(|line| line == fault))
}

/// An error if keys are given that the model does not have, or values of other types.
pub(crate) fn check_keys(asked: &Asked, keys_set: &[String]) -> anyhow::Result<()> {
    let set = asked.settings.iter().filter(|(key, _)| keys_set.contains(key));
    let set = set.map(|(key, value)| (key.clone(), value.clone())).collect();
    Asked { settings: set, ..asked.clone() }.check_keys().on_command_line()?;
    Ok(asked.check_keys()?)
}

/// The keys given with `--set`.
pub(crate) fn keys_set(arguments: &ModelArguments) -> anyhow::Result<Vec<String>> {
    arguments.set.iter().map(|text| Ok(parse_assignment(text)?.key)).collect()
}

/// The keys of all models that are given by options of their own; an error if one is given with `--set` too, with another value.
pub(crate) fn given_keys(
    arguments: &ModelArguments,
    seed: Option<u64>,
    max_len: Option<usize>,
) -> anyhow::Result<GivenKeys> {
    let options = [
        ("--seed", "seed", seed),
        ("--max-len", "max_len", max_len.map(|max_len| max_len as u64)),
        ("--memory", "memory_bytes", arguments.memory),
    ];
    check_set_once(&keys_of(arguments)?)?;
    for text in &arguments.set {
        let setting = parse_assignment(text)?;
        let option = options.iter().find(|(_, key, _)| setting.model.is_none() && *key == setting.key);
        // A key of a model by its name is for this model alone.
        if let Some((option, key, Some(given))) = option
            && setting.value.as_integer() != i64::try_from(*given).ok()
        {
            misuse!(
                "--set {key}={}: {option} says {given}; hint: give one of them, or MODEL.{key} for one model alone",
                setting.value
            );
        }
    }
    Ok(GivenKeys { seed, max_len, memory_bytes: arguments.memory })
}

/// What is wrong with settings, with the options that it is about.
fn in_words(error: SettingsError) -> anyhow::Error {
    match error {
        SettingsError::NotAsked { .. } | SettingsError::WhichModel { .. } => {
            Misuse::because(anyhow::anyhow!("--set {error}"))
        }
        SettingsError::NotOnlyTables(key) => anyhow::anyhow!(
            "'{key}' in the configuration file: expected only tables named after models, as the file has one"
        ),
        SettingsError::TableNotAsked(model) => anyhow::anyhow!(
            "[{model}] in the configuration file: {model} is not among the models asked for; hint: ask for it with --model, or leave \
             the table out"
        ),
        SettingsError::NoTables(example) => anyhow::anyhow!(
            "with several models the configuration file needs a table for each, such as [{example}]"
        ),
        SettingsError::TooLarge { key: "seed", .. } => {
            Misuse::because(anyhow::anyhow!("--seed: expected at most 2^63 - 1"))
        }
        SettingsError::TooLarge { key: "max_len", .. } => {
            Misuse::because(anyhow::anyhow!("--max-len is too large"))
        }
        SettingsError::TooLarge { .. } => Misuse::because(anyhow::anyhow!("--memory is too large")),
        error => Misuse::because(error),
    }
}

/// All that is given with `--set`.
fn keys_of(arguments: &ModelArguments) -> anyhow::Result<Vec<KeySetting>> {
    arguments.set.iter().map(|text| parse_assignment(text)).collect()
}

fn check_set_once(keys: &[KeySetting]) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    if let Some(key) = keys.iter().find(|key| !seen.insert((&key.model, &key.key))) {
        let model = key.model.as_ref().map(|model| format!("{model}.")).unwrap_or_default();
        misuse!("--set {model}{}: this key is set twice; hint: set it once", key.key);
    }
    Ok(())
}

/// What the arguments say, the file included. The file is read once everything else is known to make sense.
fn read_settings(
    arguments: &ModelArguments,
    given: GivenKeys,
    shared: SharedKeys,
    registry: &Registry,
) -> anyhow::Result<ModelSettings> {
    let keys = keys_of(arguments)?;
    check_set_once(&keys)?;
    let (models, presets) = (arguments.model.clone(), arguments.preset.clone());
    let settings = ModelSettings { models, presets, given, keys, ..ModelSettings::default() };
    settings.gather(&shared, registry).map_err(in_words)?;
    let configuration = arguments.config.as_deref().map(read_table).transpose()?.unwrap_or_default();
    Ok(ModelSettings { configuration, ..settings })
}

fn read_table(path: &Path) -> anyhow::Result<Table> {
    let text = read_configuration(path, &StopRequests)?;
    text.parse::<Table>().map_err(|error| anyhow::anyhow!("{}: {}", escape::path(path), picture(&error)))
}

/// `key=value` or `model.key=value`; a value that is no TOML is a string.
fn parse_assignment(text: &str) -> anyhow::Result<KeySetting> {
    let Some((name, value)) = text.split_once('=') else {
        misuse!("--set {text}: expected KEY=VALUE, such as rank=200");
    };
    let (model, key) = match name.trim().split_once('.') {
        Some((model, key)) => (Some(model.to_owned()), key),
        None => (None, name.trim()),
    };
    let parsed = format!("value = {value}").parse::<Table>().ok();
    // A value of several lines may hold more than itself.
    let parsed = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    // TOML wants a digit on both sides of the point; people write .6 all the same.
    let number = || value.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float);
    let value = parsed.or_else(number).unwrap_or_else(|| Value::String(value.to_owned()));
    Ok(KeySetting { model, key: key.to_owned(), value })
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
            std::fs::write(&path, text).unwrap();
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
        configure(&arguments, GivenKeys::default(), shared, &Registry::default())
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
            (vec!["pure-svd"], None, vec!["rank=3", "rank=4"], "rank: this key is set twice"),
            (
                vec!["pure-svd", "mp"],
                None,
                vec!["pure-svd.rank=3", "pure-svd.rank=3"],
                "pure-svd.rank: this key",
            ),
            (vec!["pure-svd"], Some("rank = "), vec![], "models.toml"),
            (vec!["pure-svd", "mp"], Some("rank = 3"), vec![], "[pure-svd]"),
            (vec!["pure-svd"], Some("rank = 3\n[mp]"), vec![], "only tables"),
            (vec!["pure-svd"], Some("ranks = 3"), vec![], "did you mean 'rank'"),
            (vec!["mp"], Some("[pure-svd]\nrank = 3"), vec![], "[pure-svd] in the configuration file"),
        ] {
            let error = outcome(&models, &[], file, &set).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
