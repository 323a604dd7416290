//! What the server is told: a TOML file, the environment and options, checked whole before the port opens.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use satf::fault::{lines, picture};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::filter::Filter;
use crate::keys::Keys;
use crate::tls::TlsFiles;

/// Names of environment variables begin with this; two underscores stand between a table and its key: `SATF_SERVE_LIMITS__N`.
pub const ENVIRONMENT_PREFIX: &str = "SATF_SERVE_";
/// A key that may ask, from the environment.
pub const READ_KEY: &str = "SATF_SERVE_READ_KEY";
/// A key that may administer, from the environment.
pub const ADMIN_KEY: &str = "SATF_SERVE_ADMIN_KEY";

/// Everything that can be set. Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A model file, or a folder of them: every `NAME.satf` in it is a model.
    pub models: Option<PathBuf>,
    /// The model of requests that name none (default: the only one, or the first by name).
    pub default_model: Option<String>,
    /// A CSV or Parquet file with what is known of items: `item_id` and any other columns.
    pub items: Option<PathBuf>,
    /// A filter that every answer obeys, such as `in_stock = true`.
    pub rule: Option<String>,
    /// The address to listen on (default `127.0.0.1:8080`).
    pub listen: SocketAddr,
    /// Whether an address that others can reach may be served without keys.
    pub insecure: bool,
    /// Names under which a server without keys may be called besides those of this machine (the `Host` of requests).
    pub hosts: Vec<String>,
    /// Threads that answer, and as many that compute (default: all cores).
    pub threads: Option<usize>,
    /// Seconds between two looks at the files (default 1; 0 never looks).
    pub watch_seconds: f64,
    /// A file with keys: lines of `read KEY` or `admin KEY`, where a key may be given as `blake3:` and its hash.
    pub keys: Option<PathBuf>,
    /// Certificate and private key; without them the server speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Origins whose pages may call the server, such as `https://shop.example` (default none).
    pub cors: Vec<String>,
    /// How requests that name no model are shared out: weights by model, by the hash of user or session.
    pub split: BTreeMap<String, f64>,
    /// How much a request may ask for.
    pub limits: Limits,
    /// Sessions kept for `GET /v1/recommend`.
    pub sessions: SessionConfig,
    /// What is logged.
    pub log: LogConfig,
}

/// How much a request may ask for, and how long it may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a body (default 1 MiB).
    pub body_bytes: usize,
    /// Items of a history (default 1,000).
    pub history: usize,
    /// Items of an answer (default 1,000).
    pub n: usize,
    /// Ids in a list such as `exclude` (default 10,000).
    pub list: usize,
    /// Requests of a batch call (default 256).
    pub batch: usize,
    /// Connections at one time (default 4,096).
    pub connections: usize,
    /// Requests at one time, computing or waiting (default 1,024).
    pub in_flight: usize,
    /// Histories that may wait for a computing thread (default 256).
    pub queue: usize,
    /// Seconds that a request may have to wait before anything is done about it, by what others took (default 0.025): whoever would wait
    /// longer is refused at once.
    pub wait_seconds: f64,
    /// Seconds for the headers of a request, and until the next one on a connection (default 30).
    pub header_seconds: f64,
    /// Seconds for the body of a request (default 10).
    pub body_seconds: f64,
    /// Seconds for an answer (default 10).
    pub request_seconds: f64,
    /// Seconds that a client may take no byte of an answer (default 10).
    pub write_seconds: f64,
    /// Seconds that requests under way have when the server stops (default 20).
    pub drain_seconds: f64,
    /// Bytes of a model file (default 16 GiB).
    pub model_bytes: u64,
}

/// Sessions kept for `GET /v1/recommend`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// Sessions kept at most (default 100,000).
    pub most: usize,
    /// Items kept of each, the newest (default 50).
    pub items: usize,
    /// Seconds after which a session that nobody asked for is forgotten (default 1,800).
    pub idle_seconds: f64,
}

/// What is logged, to stderr, as lines of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Which requests (default `all`).
    pub requests: LoggedRequests,
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggedRequests {
    /// Every one.
    #[default]
    All,
    /// Those that the server could not answer.
    Errors,
    /// None.
    None,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            models: None,
            default_model: None,
            items: None,
            rule: None,
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            insecure: false,
            hosts: Vec::new(),
            threads: None,
            watch_seconds: 1.0,
            keys: None,
            tls: None,
            cors: Vec::new(),
            split: BTreeMap::new(),
            limits: Limits::default(),
            sessions: SessionConfig::default(),
            log: LogConfig::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 1 << 20,
            history: 1_000,
            n: 1_000,
            list: 10_000,
            batch: 256,
            connections: 4_096,
            in_flight: 1_024,
            queue: 256,
            wait_seconds: 0.025,
            header_seconds: 30.0,
            body_seconds: 10.0,
            request_seconds: 10.0,
            write_seconds: 10.0,
            drain_seconds: 20.0,
            model_bytes: 16 << 30,
        }
    }
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig { most: 100_000, items: 50, idle_seconds: 1_800.0 }
    }
}

/// Everything that is wrong with a configuration, at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The faults, one line each.
    pub faults: Vec<String>,
}

impl ConfigError {
    pub(crate) fn of(fault: impl Into<String>) -> Self {
        ConfigError { faults: vec![fault.into()] }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&all_of(&self.faults))
    }
}

impl std::error::Error for ConfigError {}

/// One fault as it is, several as lines below their number.
pub(crate) fn all_of(faults: &[String]) -> String {
    match faults {
        [fault] => fault.clone(),
        faults => format!("{} faults:{}", faults.len(), lines(faults)),
    }
}

/// The longest time that can be set.
const LONGEST_SECONDS: f64 = 86_400.0;

impl Config {
    /// The file's keys, over them those of the environment, over them `options` (dotted key and value). The keys of
    /// [`READ_KEY`] and [`ADMIN_KEY`] are no part of it.
    pub fn gather(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        options: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Self, ConfigError> {
        let mut table = match file {
            None => Table::new(),
            Some(path) => {
                let text = satf::data::read_configuration(path, &())
                    .map_err(|error| ConfigError::of(error.to_string()))?;
                text.parse::<Table>()
                    .map_err(|error| ConfigError::of(format!("{}: {}", path.display(), picture(&error))))?
            }
        };
        for (name, value) in environment {
            let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
            if name == READ_KEY || name == ADMIN_KEY {
                continue;
            }
            let key = key.to_lowercase().replace("__", ".");
            insert(&mut table, &key, parse_value(&value))
                .map_err(|fault| ConfigError::of(format!("the environment variable {name}: {fault}")))?;
        }
        for (key, value) in options {
            insert(&mut table, &key, value).map_err(ConfigError::of)?;
        }
        Config::deserialize(table).map_err(|error| ConfigError::of(in_words(&error.to_string())))
    }

    /// Whether everything is in its range: all faults at once. `has_keys` says whether there is a key.
    pub fn check(&self, has_keys: bool) -> Result<(), ConfigError> {
        let mut faults = Vec::new();
        let limits = &self.limits;
        if self.models.is_none() {
            faults.push("models: not set: expected a model file, or a folder of them".to_owned());
        }
        for (name, value, most) in [
            ("limits.body_bytes", limits.body_bytes, 1 << 30),
            ("limits.history", limits.history, 1_000_000),
            ("limits.n", limits.n, 1_000_000),
            ("limits.list", limits.list, 10_000_000),
            ("limits.batch", limits.batch, 100_000),
            ("limits.connections", limits.connections, 1_000_000),
            ("limits.in_flight", limits.in_flight, 1_000_000),
            ("limits.queue", limits.queue, 1_000_000),
            ("sessions.items", self.sessions.items, 100_000),
            ("threads", self.threads.unwrap_or(1), 1_024),
        ] {
            if !(1..=most).contains(&value) {
                faults.push(format!("{name} = {value}: expected 1 to {most}"));
            }
        }
        for (name, value, least) in [
            ("limits.wait_seconds", limits.wait_seconds, 0.001),
            ("limits.header_seconds", limits.header_seconds, 0.01),
            ("limits.body_seconds", limits.body_seconds, 0.01),
            ("limits.request_seconds", limits.request_seconds, 0.01),
            ("limits.write_seconds", limits.write_seconds, 0.01),
            ("limits.drain_seconds", limits.drain_seconds, 0.0),
            ("sessions.idle_seconds", self.sessions.idle_seconds, 0.01),
            ("watch_seconds", self.watch_seconds, 0.0),
        ] {
            if !(least..=LONGEST_SECONDS).contains(&value) {
                faults.push(format!("{name} = {value}: expected {least} to {LONGEST_SECONDS}"));
            }
        }
        for (name, weight) in &self.split {
            if !(weight.is_finite() && *weight >= 0.0) {
                faults.push(format!("split.{name} = {weight}: expected a number of at least 0"));
            }
        }
        if !self.split.is_empty() && !self.split.values().any(|weight| *weight > 0.0) {
            faults.push("split: all weights are 0: expected one above it".to_owned());
        }
        if let Some(Err(error)) = self.rule.as_deref().map(Filter::parse) {
            faults.push(format!("rule: {error}"));
        }
        for origin in &self.cors {
            let is_origin = origin.contains("://") && axum::http::HeaderValue::from_str(origin).is_ok();
            if !is_origin {
                faults.push(format!("cors: '{origin}': expected an origin such as https://shop.example"));
            }
        }
        if !self.listen.ip().is_loopback() && !has_keys && !self.insecure {
            faults.push(format!(
                "listen = {}: others can reach this address, and there is no key; hint: give keys (a file, or {READ_KEY} and \
                 {ADMIN_KEY} in the environment), or insecure = true if something before the server checks who asks",
                self.listen
            ));
        }
        if faults.is_empty() { Ok(()) } else { Err(ConfigError { faults }) }
    }

    /// Threads that answer.
    pub(crate) fn num_threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores)
    }
}

/// A number of seconds that [`Config::check`] found in its range.
pub(crate) fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

/// What is wrong with keys that come from the environment, for reading and for administration.
pub fn faults_of_keys(read: Option<&str>, admin: Option<&str>) -> Vec<String> {
    Keys::gather(None, read, admin).err().unwrap_or_default()
}

/// A value as TOML has it; whatever is not TOML is a text.
pub fn parse_value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    let value = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// What a deserializer says of a setting, without the names of types: the key first, then what is wrong with it.
fn in_words(error: &str) -> String {
    const WORDS: [(&str, &str); 18] = [
        ("invalid type: ", ""),
        ("invalid value: ", ""),
        ("floating point `", "`"),
        ("integer `", "`"),
        ("boolean `", "`"),
        ("string \"", "\""),
        ("sequence, expected", "a list, expected"),
        ("map, expected", "a table, expected"),
        (", expected usize", ": expected a whole number of at least 0"),
        (", expected u64", ": expected a whole number of at least 0"),
        (", expected f64", ": expected a number"),
        (", expected a boolean", ": expected true or false"),
        (", expected a string", ": expected a text"),
        (", expected a sequence", ": expected a list"),
        (", expected struct ", ": expected a table of "),
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("invalid socket address syntax", "expected an address such as 127.0.0.1:8080"),
    ];
    // Below what is wrong stands where.
    let (message, place) = error.trim().split_once('\n').unwrap_or((error.trim(), ""));
    let message = WORDS.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to));
    match place.trim().trim_start_matches("in ").trim_matches('`') {
        "" => format!("configuration: {message}"),
        key => format!("{key}: {message}"),
    }
}

fn insert(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
            Ok(())
        }
        Some((outer, inner)) => {
            let within = table.entry(outer).or_insert_with(|| Value::Table(Table::new()));
            match within {
                Value::Table(within) => insert(within, inner, value),
                _ => Err(format!("'{outer}' is not a table, so that there is no '{key}'")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_be_read_are_told_by_key_and_without_names_of_types() {
        for (key, value, said) in [
            ("limits.n", "-1", "limits.n: `-1`: expected a whole number of at least 0"),
            (
                "limits.n",
                "18446744073709551616",
                "limits.n: \"18446744073709551616\": expected a whole number",
            ),
            ("limits.m", "1", "limits: unknown key `m`, expected one of `body_bytes`"),
            ("log.requests", "foo", "log.requests: unknown value `foo`, expected one of `all`"),
            ("listen", "here", "listen: expected an address such as"),
            ("insecure", "3", "insecure: `3`: expected true or false"),
            ("nosuch", "3", "configuration: unknown key `nosuch`"),
        ] {
            let error = Config::gather(None, [], [(key.to_owned(), parse_value(value))]).unwrap_err();
            assert!(error.to_string().starts_with(said), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, "listen = \n").unwrap();
        let error = Config::gather(Some(&path), [], []).unwrap_err().to_string();
        assert!(error.lines().skip(1).all(|line| line.starts_with("  ")), "{error}");
        let two = ConfigError { faults: vec!["a".to_owned(), "b".to_owned()] };
        assert_eq!(two.to_string(), "2 faults:\n  a\n  b");
    }
}
