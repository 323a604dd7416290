//! Keys of models, from a TOML file and from `--set`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use satf::models::{Configured, MODELS, ModelEntry};
use toml::{Table, Value};

/// Keys that belong to the protocol and that a model takes over unless it is given its own.
pub(crate) struct SharedKeys {
    pub(crate) seed: u64,
    pub(crate) max_len: Option<usize>,
}

/// The models asked for, configured and checked, in the order asked.
pub(crate) fn configure(
    models: &[String],
    file: Option<&Path>,
    assignments: &[String],
    shared: &SharedKeys,
) -> anyhow::Result<Vec<(&'static ModelEntry, Configured)>> {
    let entries = models.iter().map(|name| ModelEntry::find(name.trim())).collect::<Result<Vec<_>, _>>()?;
    let file = file.map(read_table).transpose()?.unwrap_or_default();
    let by_model = file.iter().any(|(key, value)| value.is_table() && is_model(key));
    if let Some((key, _)) = file.iter().find(|(key, value)| by_model && !(value.is_table() && is_model(key)))
    {
        bail!(
            "'{key}' in the configuration file: expected only tables named after models, as the file has one"
        );
    }
    if entries.len() > 1 && !by_model && !file.is_empty() {
        bail!(
            "with several models the configuration file needs a table for each, such as [{}]",
            entries[0].name
        );
    }
    let assignments = assignments.iter().map(|text| parse_assignment(text)).collect::<Result<Vec<_>, _>>()?;
    for (model, key, _) in &assignments {
        match model {
            Some(name) if !entries.iter().any(|entry| entry.name == name) => {
                bail!("--set {name}.{key}: {name} is not among the models asked for")
            }
            None if entries.len() > 1 => {
                bail!("--set {key}: with several models say which one, such as {}.{key}", entries[0].name)
            }
            _ => {}
        }
    }

    let mut configured = Vec::new();
    for entry in entries {
        let mut table = match file.get(entry.name) {
            Some(Value::Table(own)) => own.clone(),
            _ if by_model => Table::new(),
            _ => file.clone(),
        };
        for (model, key, value) in &assignments {
            if model.as_deref().is_none_or(|model| model == entry.name) {
                table.insert(key.clone(), value.clone());
            }
        }
        let known = entry.defaults();
        let seed = i64::try_from(shared.seed).context("--seed: expected at most 2^63 - 1")?;
        let max_len = shared.max_len.map(i64::try_from).transpose().context("--max-len is too large")?;
        for (key, value) in [("seed", Some(seed)), ("max_len", max_len)] {
            if let Some(value) = value.filter(|_| known.contains_key(key) && !table.contains_key(key)) {
                table.insert(key.to_owned(), Value::Integer(value));
            }
        }
        configured.push((entry, entry.configure(&table)?));
    }
    Ok(configured)
}

fn is_model(name: &str) -> bool {
    MODELS.iter().any(|entry| entry.name == name)
}

fn read_table(path: &Path) -> anyhow::Result<Table> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    text.parse::<Table>().map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}

/// `key=value` or `model.key=value`; a value that is no TOML is a string.
fn parse_assignment(text: &str) -> anyhow::Result<(Option<String>, String, Value)> {
    let Some((name, value)) = text.split_once('=') else {
        bail!("--set {text}: expected KEY=VALUE, such as rank=200");
    };
    let (model, key) = match name.trim().split_once('.') {
        Some((model, key)) => (Some(model.to_owned()), key),
        None => (None, name.trim()),
    };
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    Ok((model, key.to_owned(), parsed.unwrap_or_else(|| Value::String(value.to_owned()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(models: &[&str], file: Option<&str>, set: &[&str]) -> Result<Vec<serde_json::Value>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.toml");
        if let Some(text) = file {
            fs::write(&path, text).unwrap();
        }
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let shared = SharedKeys { seed: 5, max_len: Some(50) };
        let configured = configure(&owned(models), file.map(|_| path.as_path()), &owned(set), &shared);
        configured
            .map(|all| all.into_iter().map(|(_, configured)| configured.configuration).collect())
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn set_wins_over_the_file_and_the_file_over_defaults() {
        let configured = outcome(&["pure-svd"], Some("rank = 7\nscaling = 0.2"), &["rank=9"]).unwrap();
        assert_eq!((&configured[0]["rank"], &configured[0]["scaling"]), (&9.into(), &0.2.into()));
        assert_eq!(configured[0]["seed"], 5);
    }

    #[test]
    fn several_models_have_their_own_tables() {
        let file = "[pure-svd]\nrank = 7\n[transitions]\nwindow = 3";
        let configured =
            outcome(&["transitions", "pure-svd", "mp"], Some(file), &["pure-svd.seed=1"]).unwrap();
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
            let error = outcome(&models, file, &set).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
