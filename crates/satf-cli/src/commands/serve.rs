//! `satf serve`: recommendations over HTTP.

use std::collections::HashSet;

use anyhow::Context;
use satf::models::Registry;
use satf_server::config::{Config, parse_value};
use satf_server::{State, serve};
use toml::Value;

use super::files::Files;
use crate::args::ServeArguments;
use crate::misuse::OnCommandLine;
use crate::{misuse, table};

pub(crate) fn run(
    arguments: &ServeArguments,
    threads: Option<usize>,
    registry: Registry,
) -> anyhow::Result<()> {
    Files::default().reading("--config", arguments.config.as_ref()).check_distinct()?;
    let config = Config::gather(arguments.config.as_deref(), environment(), options(arguments, threads)?)?;
    let tls = config.tls.as_ref();
    Files::default()
        .keeping("MODELS", config.models.as_ref())
        .reading("--items", config.items.as_ref())
        .reading("--keys", config.keys.as_ref())
        .reading("--tls-certificate", tls.map(|tls| &tls.certificate))
        .reading("--tls-key", tls.map(|tls| &tls.key))
        .check_distinct()?;
    let state = State::open(config, registry)?;
    if arguments.check {
        return table::print(&format!("everything is right: {}", state.describe()));
    }
    serve(state, |address| {
        // Whoever started it may wait for this line.
        let _ = table::print(&format!("listening on {address}"));
    })
    .context("the server stopped")
}

/// Variables whose names or values are not text are nobody's settings.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

fn options(arguments: &ServeArguments, threads: Option<usize>) -> anyhow::Result<Vec<(String, Value)>> {
    let mut options: Vec<(String, Value)> = Vec::new();
    for (key, path) in [
        ("models", &arguments.models),
        ("items", &arguments.items),
        ("keys", &arguments.keys),
        ("tls.certificate", &arguments.tls_certificate),
        ("tls.key", &arguments.tls_key),
    ] {
        if let Some(path) = path {
            let text = path.to_str().with_context(|| format!("{}: expected a path in UTF-8", path.display()));
            options.push((key.to_owned(), Value::String(text.on_command_line()?.to_owned())));
        }
    }
    options.extend(arguments.listen.map(|listen| ("listen".to_owned(), Value::String(listen.to_string()))));
    options.extend(arguments.rule.clone().map(|rule| ("rule".to_owned(), Value::String(rule))));
    options.extend(threads.map(|threads| ("threads".to_owned(), Value::Integer(threads as i64))));
    options.extend(arguments.insecure.then(|| ("insecure".to_owned(), Value::Boolean(true))));
    let mut seen = HashSet::new();
    for setting in &arguments.set {
        let Some((key, value)) = setting.split_once('=') else {
            misuse::misuse!("--set {setting}: expected KEY=VALUE, such as limits.n=100");
        };
        if !seen.insert(key.trim()) {
            misuse::misuse!("--set {}: this key is set twice; hint: set it once", key.trim());
        }
        options.push((key.trim().to_owned(), parse_value(value.trim())));
    }
    Ok(options)
}
