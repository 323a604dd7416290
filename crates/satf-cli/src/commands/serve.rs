//! `satf serve`: recommendations over HTTP.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;

use anyhow::Context;
use satf::models::Registry;
use satf_server::config::{ADMIN_KEY, Config, ENVIRONMENT_PREFIX, READ_KEY, faults_of_keys, parse_value};
use satf_server::{ServeError, State, serve};
use toml::Value;

use super::files::Files;
use crate::args::ServeArguments;
use crate::misuse::{Misuse, OnCommandLine};
use crate::{escape, misuse, table};

pub(crate) fn run(
    arguments: &ServeArguments,
    threads: Option<usize>,
    registry: Registry,
) -> anyhow::Result<()> {
    let (environment, options) = (environment()?, options(arguments, threads)?);
    #[cfg(unix)]
    crate::signals::unblock().context("signals")?;
    let state = open(arguments, &environment, &options, registry).map_err(|error| {
        // A fault that is there without any file is one of the command line.
        let text = error.to_string();
        let is_misuse = faults_without_files(&environment, &options).iter().any(|fault| text.contains(fault));
        if is_misuse { Misuse::because(error) } else { error }
    })?;
    if arguments.check {
        state.check_statistics()?;
        let warnings = state.warnings();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        let found = if warnings.is_empty() {
            "everything is right"
        } else {
            "nothing is wrong, but see the warnings"
        };
        return table::print(&format!("{found}: {}", state.describe()));
    }
    if arguments.until_stdin_ends {
        end_with_stdin()?;
    }
    let served = serve(state, |address| {
        // Whoever started it may wait for this line.
        let _ = table::print(&format!("listening on {address}"));
    });
    served.map_err(|error| match in_the_way(&error) {
        Some(hint) => anyhow::anyhow!("{error}; hint: {hint}"),
        None => error.into(),
    })
}

/// What helps against an address that cannot be listened on.
fn in_the_way(error: &ServeError) -> Option<&'static str> {
    let ServeError::Io { source, .. } = error else { return None };
    match source.kind() {
        ErrorKind::AddrInUse => Some(
            "another program listens there, perhaps this server already; stop it, or choose another address with --listen",
        ),
        ErrorKind::AddrNotAvailable => Some(
            "this machine does not have that address; --listen 0.0.0.0:PORT takes all it has, 127.0.0.1:PORT is for itself only",
        ),
        ErrorKind::PermissionDenied => {
            Some("ports below 1024 are for the system; choose another one with --listen")
        }
        _ => None,
    }
}

/// Everything that is to be served, read and checked.
fn open(
    arguments: &ServeArguments,
    environment: &[(String, String)],
    options: &[(String, Value)],
    registry: Registry,
) -> anyhow::Result<Arc<State>> {
    Files::default().reading("--config", arguments.config.as_ref()).check_distinct()?;
    let config = Config::gather(arguments.config.as_deref(), environment.to_vec(), options.to_vec())?;
    let tls = config.tls.as_ref();
    Files::default()
        .keeping("MODELS", config.models.as_ref())
        .reading("--items", config.items.as_ref())
        .reading("--keys", config.keys.as_ref())
        .reading("--tls-certificate", tls.map(|tls| &tls.certificate))
        .reading("--tls-key", tls.map(|tls| &tls.key))
        .check_distinct()?;
    Ok(State::open(config, registry)?)
}

/// What is wrong with options and environment, whatever files hold.
fn faults_without_files(environment: &[(String, String)], options: &[(String, Value)]) -> Vec<String> {
    let has_key = environment.iter().any(|(name, _)| [READ_KEY, ADMIN_KEY].contains(&name.as_str()));
    let config = Config::gather(None, environment.to_vec(), options.to_vec());
    let checked = config.and_then(|config| config.check(has_key || config.keys.is_some()));
    let key = |name: &str| environment.iter().find(|(other, _)| other == name).map(|(_, key)| &**key);
    let mut faults = faults_of_keys(key(READ_KEY), key(ADMIN_KEY));
    faults.extend(checked.err().into_iter().flat_map(|error| error.faults));
    faults
}

/// Stops as on SIGTERM once stdin ends.
fn end_with_stdin() -> anyhow::Result<()> {
    let watch = || {
        // Whatever comes is passed over; an error is an end too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        #[cfg(unix)]
        let is_told =
            nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGTERM).is_ok();
        #[cfg(not(unix))]
        let is_told = false;
        if !is_told {
            std::process::exit(0);
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(watch).map(drop).context("a thread for stdin")
}

/// The variables that are settings of the server. One that is not text is refused: to leave it out may leave a door open.
fn environment() -> anyhow::Result<Vec<(String, String)>> {
    let ours = std::env::vars_os()
        .filter(|(name, _)| name.as_encoded_bytes().starts_with(ENVIRONMENT_PREFIX.as_bytes()));
    ours.map(|(name, value)| {
        let shown = escape::value(&name.to_string_lossy()).into_owned();
        let text = name.into_string().ok().zip(value.into_string().ok());
        let text =
            text.with_context(|| format!("the environment variable {shown}: it is not text: expected UTF-8"));
        text.on_command_line()
    })
    .collect()
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
    let by_option = options.clone();
    for setting in &arguments.set {
        let Some((key, value)) = setting.split_once('=') else {
            misuse::misuse!("--set {setting}: expected KEY=VALUE, such as limits.n=100");
        };
        if !seen.insert(key.trim()) {
            misuse::misuse!("--set {}: this key is set twice; hint: set it once", key.trim());
        }
        let value = parse_value(value.trim());
        if let Some((key, other)) =
            by_option.iter().find(|(other, given)| other == key.trim() && *given != value)
        {
            let option = if key == "models" {
                "MODELS".to_owned()
            } else {
                format!("--{}", key.replace(['.', '_'], "-"))
            };
            misuse::misuse!("--set {key}={value}: {option} says {other}; hint: give one of them");
        }
        options.push((key.trim().to_owned(), value));
    }
    Ok(options)
}
