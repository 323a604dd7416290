//! What all requests share.

use std::collections::HashSet;
use std::env::VarError;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use satf::models::Registry;
use satf::recommend::Model;
use serde_json::json;

use crate::attributes::AttributeFile;
use crate::config::{ADMIN_KEY, Config, ConfigError, READ_KEY};
use crate::error::ServeError;
use crate::keys::Keys;
use crate::log::{Level, Log};
use crate::metrics::Metrics;
use crate::models::{Loader, ModelSet, Outcome, Stamp, model_files};
use crate::pulse::Pulse;
use crate::scoring::Scorer;
use crate::sessions::Sessions;
use crate::stats::Seconds;

/// What all requests share: configuration, models, keys, sessions, figures. [`State::open`] makes it from a configuration, and
/// [`app`](crate::app) a router from it.
///
/// Everything that can be replaced while requests are under way is behind one pointer each; a request takes the models once and keeps
/// them, so that it never sees two versions.
pub struct State {
    pub(crate) config: Config,
    registry: Registry,
    /// Keys of the environment: read and admin.
    environment_keys: [Option<String>; 2],
    pub(crate) models: ArcSwap<ModelSet>,
    pub(crate) keys: ArcSwap<Keys>,
    pub(crate) tls: Option<ArcSwap<ServerConfig>>,
    pub(crate) metrics: Metrics,
    pub(crate) sessions: Sessions,
    pub(crate) scorer: Scorer,
    pub(crate) pulse: Pulse,
    pub(crate) log: Log,
    pub(crate) started: Instant,
    pub(crate) seconds: Seconds,
    pub(crate) is_draining: AtomicBool,
    pub(crate) is_stopped: AtomicBool,
    requests: AtomicU64,
    id_prefix: u32,
    /// Held while files are read again: one at a time. What the files were like then.
    files: Mutex<Files>,
}

/// Files that are not models, as they were when they were last read.
#[derive(Default)]
struct Files {
    items: Option<Stamp>,
    attributes: Option<AttributeFile>,
    others: Vec<Option<Stamp>>,
    /// Files that were refused, as they were then: they are not tried again until they change.
    refused: Vec<(std::path::PathBuf, Option<Stamp>)>,
}

/// What is to be done about files that may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    /// Somebody asks: everything is looked at, whatever was refused before is tried again.
    Asked,
    /// The watch goes round.
    Watched,
}

impl State {
    /// Reads all files that the configuration names and checks everything. All faults come at once.
    pub fn open(config: Config, registry: Registry) -> Result<Arc<Self>, ServeError> {
        State::open_with_keys(config, registry, environment_keys()?, false)
    }

    /// The same with these keys, for reading and for administration, besides those of a file. `is_silent` leaves the log out.
    pub fn open_with_keys(
        config: Config,
        registry: Registry,
        environment_keys: [Option<String>; 2],
        is_silent: bool,
    ) -> Result<Arc<Self>, ServeError> {
        let mut faults = Vec::new();
        let [read, admin] = &environment_keys;
        let keys = Keys::gather(config.keys.as_deref(), read.as_deref(), admin.as_deref());
        let has_keys = keys.as_ref().map_or(true, |keys| !keys.is_empty());
        if let Err(ConfigError { faults: found }) = config.check(has_keys) {
            faults.extend(found);
        }
        let keys = keys.unwrap_or_else(|found| {
            faults.extend(found);
            Keys::default()
        });
        let tls = config.tls.as_ref().map(crate::tls::TlsFiles::load).transpose().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        let metrics = Metrics::default();
        let mut files = Files { items: config.items.as_deref().and_then(Stamp::of), ..Files::default() };
        files.others = other_stamps(&config);
        files.attributes =
            config.items.as_deref().map(AttributeFile::read).transpose().unwrap_or_else(|fault| {
                faults.push(fault);
                None
            });
        let attributes = files.attributes.clone();
        let loader =
            Loader { config: &config, registry: &registry, metrics: &metrics, attributes, anew: true };
        let models = match config.models.as_ref().map(|_| loader.load(None)) {
            None => None,
            Some(Err(found)) => {
                faults.extend(found);
                None
            }
            Some(Ok((models, outcome))) => {
                faults.extend(outcome.refused.into_iter().map(|(_, reason)| reason));
                Some(models)
            }
        };
        let models = match models {
            Some(models) if faults.is_empty() => models,
            _ => {
                // What is wrong for all models is told by each of them.
                let mut told = HashSet::new();
                faults.retain(|fault| told.insert(fault.clone()));
                return Err(ServeError::Files(faults));
            }
        };
        let io = |what: &str| {
            let what = what.to_owned();
            move |source| ServeError::Io { what, source }
        };
        let longest_wait = crate::config::seconds(config.limits.wait_seconds);
        let scorer = Scorer::start(config.num_threads(), config.limits.queue, longest_wait)
            .map_err(io("computing threads"))?;
        let mut id_prefix = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8) as u32;
        id_prefix |= 1 << 31;
        Ok(Arc::new(State {
            models: ArcSwap::from_pointee(models),
            keys: ArcSwap::from_pointee(keys),
            tls: tls.map(ArcSwap::new),
            metrics,
            sessions: Sessions::new(&config.sessions),
            scorer,
            pulse: Pulse::default(),
            log: Log::new(config.log.requests, is_silent),
            started: Instant::now(),
            seconds: Seconds::default(),
            is_draining: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            id_prefix,
            files: Mutex::new(files),
            environment_keys,
            registry,
            config,
        }))
    }

    /// What is served, in one line.
    pub fn describe(&self) -> String {
        let models = self.models.load();
        let shown = |served: &Arc<crate::models::Served>| {
            format!(
                "{} ({} of {} items, version {})",
                served.name,
                served.model.manifest().model,
                served.model.num_items(),
                served.version
            )
        };
        models.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// What may be meant otherwise, one line each: attributes that no item of a model has.
    pub fn warnings(&self) -> Vec<String> {
        let Some(items) = &self.config.items else { return Vec::new() };
        let models = self.models.load();
        let strangers = models.iter().filter(|served| served.attributes.known() == 0);
        let warning = |served: &Arc<crate::models::Served>| {
            let rule =
                if served.rule.is_some() { ", so that the rule may leave nothing to recommend" } else { "" };
            format!(
                "items: {}: no item of the model '{}' is in this file{rule}: are its ids those of the log?",
                items.display(),
                served.name
            )
        };
        strangers.map(warning).collect()
    }

    /// What is wrong with parts of model files that a server has no use for: the events that a model learned from, of those that hold them.
    pub fn check_statistics(&self) -> Result<(), ServeError> {
        let mut faults = Vec::new();
        for (name, path) in self.model_paths() {
            let models = self.models.load();
            if !models.get(&name).is_some_and(|served| served.model.has_statistics()) {
                continue;
            }
            let fault = match Model::load_with(&path, &self.registry) {
                Ok(model) => {
                    model.check_statistics().err().map(|error| format!("{}: {error}", path.display()))
                }
                Err(error) => Some(error.to_string()),
            };
            faults.extend(fault);
        }
        if faults.is_empty() { Ok(()) } else { Err(ServeError::Files(faults)) }
    }

    /// Logs the warnings.
    pub(crate) fn warn(&self) {
        for warning in self.warnings() {
            self.log.event(Level::Warn, &warning, &json!({}));
        }
    }

    /// A new id for a request.
    pub(crate) fn request_id(&self) -> String {
        format!("{:08x}{:08x}", self.id_prefix, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Reads files again that changed. What cannot be used is refused, and what was served before goes on. Takes as long as reading
    /// takes: not for a thread that answers requests.
    pub(crate) fn reload(&self, kind: Reload) -> Outcome {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if kind == Reload::Watched && !self.has_changed(&files) {
            return Outcome::default();
        }
        let mut refused = Vec::new();
        self.reload_others(&mut files, &mut refused);
        let stamp = self.config.items.as_deref().and_then(Stamp::of);
        let mut anew = false;
        if let Some(path) = self.config.items.as_deref()
            && (stamp != files.items || kind == Reload::Asked && is_refused(&files, path))
        {
            match AttributeFile::read(path) {
                Ok(attributes) => {
                    files.attributes = Some(attributes);
                    anew = true;
                }
                Err(reason) => refused.push(("items".to_owned(), reason)),
            }
            files.items = stamp;
        }
        let loader = Loader {
            config: &self.config,
            registry: &self.registry,
            metrics: &self.metrics,
            attributes: files.attributes.clone(),
            anew,
        };
        let mut outcome = match loader.load(Some(&self.models.load())) {
            Ok((models, outcome)) => {
                if !outcome.loaded.is_empty() || !outcome.removed.is_empty() {
                    self.models.store(Arc::new(models));
                    self.metrics.reloads.fetch_add(1, Ordering::Relaxed);
                }
                outcome
            }
            Err(faults) => Outcome {
                refused: faults.into_iter().map(|fault| ("models".to_owned(), fault)).collect(),
                ..Outcome::default()
            },
        };
        outcome.refused.splice(0..0, refused);
        files.refused = self.refused_files(&outcome);
        drop(files);
        self.tell(&outcome);
        outcome
    }

    fn tell(&self, outcome: &Outcome) {
        for (name, reason) in &outcome.refused {
            self.metrics.reloads_refused.fetch_add(1, Ordering::Relaxed);
            let fields = json!({"name": name, "reason": reason});
            self.log.event(Level::Error, "refused: what was served before goes on", &fields);
        }
        if !outcome.loaded.is_empty() || !outcome.removed.is_empty() {
            let fields =
                json!({"loaded": outcome.loaded, "removed": outcome.removed, "unchanged": outcome.unchanged});
            self.log.event(Level::Info, "models reloaded", &fields);
            self.warn();
        }
    }

    /// Keys and certificates.
    fn reload_others(&self, files: &mut Files, refused: &mut Vec<(String, String)>) {
        let stamps = other_stamps(&self.config);
        if stamps == files.others {
            return;
        }
        files.others = stamps;
        let [read, admin] = &self.environment_keys;
        match Keys::gather(self.config.keys.as_deref(), read.as_deref(), admin.as_deref()) {
            // A file without keys is a fault: a server that asked for keys never stops asking.
            Ok(keys) => self.keys.store(Arc::new(keys)),
            Err(faults) => refused.push(("keys".to_owned(), faults.join("; "))),
        }
        if let (Some(files), Some(tls)) = (&self.config.tls, &self.tls) {
            match files.load() {
                Ok(config) => tls.store(config),
                Err(reason) => refused.push(("tls".to_owned(), reason)),
            }
        }
    }

    fn model_paths(&self) -> Vec<(Box<str>, std::path::PathBuf)> {
        let files = self.config.models.as_deref().map(model_files);
        files.and_then(Result::ok).map(|files| files.into_iter().collect()).unwrap_or_default()
    }

    fn has_changed(&self, files: &Files) -> bool {
        let models = self.models.load();
        let paths = self.model_paths();
        // A folder that cannot be read for a moment is no reason to read everything again.
        let is_other = !paths.is_empty() && paths.len() != models.iter().count() + files.refused_new(&models);
        is_other
            || paths.iter().any(|(name, path)| match models.get(name) {
                Some(served) => !served.is_current() && !files.was_refused(path),
                None => !files.was_refused(path),
            })
            || self.config.items.as_deref().and_then(Stamp::of) != files.items
            || other_stamps(&self.config) != files.others
    }

    fn refused_files(&self, outcome: &Outcome) -> Vec<(std::path::PathBuf, Option<Stamp>)> {
        let is_refused = |name: &str| outcome.refused.iter().any(|(refused, _)| refused == name);
        let models =
            self.model_paths().into_iter().filter(|(name, _)| is_refused(name)).map(|(_, path)| path);
        let items = self.config.items.iter().filter(|_| is_refused("items")).cloned();
        models.chain(items).map(|path| (path.clone(), Stamp::of(&path))).collect()
    }
}

/// The keys of the environment, for reading and for administration. One that is set and is not text is an error, not no key.
fn environment_keys() -> Result<[Option<String>; 2], ConfigError> {
    let key = |name: &str| match std::env::var(name) {
        Ok(key) => Ok(Some(key)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(ConfigError::of(format!(
            "the environment variable {name}: it is not text: expected a key in UTF-8"
        ))),
    };
    Ok([key(READ_KEY)?, key(ADMIN_KEY)?])
}

impl Files {
    fn was_refused(&self, path: &Path) -> bool {
        self.refused.iter().any(|(refused, stamp)| refused == path && Stamp::of(path) == *stamp)
    }

    /// Files that were refused and have no model from before.
    fn refused_new(&self, models: &ModelSet) -> usize {
        let name = |path: &Path| path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let is_model = |path: &Path| path.extension().is_some_and(|ending| ending == "satf");
        let refused = self.refused.iter().filter(|(path, _)| is_model(path));
        refused.filter(|(path, _)| name(path).is_some_and(|name| models.get(&name).is_none())).count()
    }
}

fn is_refused(files: &Files, path: &Path) -> bool {
    files.refused.iter().any(|(refused, _)| refused == path)
}

fn other_stamps(config: &Config) -> Vec<Option<Stamp>> {
    let tls = config.tls.iter().flat_map(|files| [&files.certificate, &files.key]);
    config.keys.iter().chain(tls).map(|path| Stamp::of(path)).collect()
}
