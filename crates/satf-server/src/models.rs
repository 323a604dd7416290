//! The models that are served: loaded from files, named, swapped as a whole.

use std::collections::BTreeMap;
use std::fs;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use satf::interactions::ItemIndex;
use satf::models::Registry;
use satf::recommend::{Model, Request};

use crate::attributes::{AttributeFile, Attributes, Rule};
use crate::config::Config;
use crate::filter::Filter;
use crate::metrics::ModelMetrics;
use crate::scoring::Cost;
use crate::titles::TitleIndex;

/// A model that is served. Whoever has it goes on with it, whatever is loaded meanwhile.
pub(crate) struct Served {
    pub(crate) name: Box<str>,
    pub(crate) model: Model,
    /// The beginning of its file's checksum: equal for equal files.
    pub(crate) version: Box<str>,
    pub(crate) loaded: SystemTime,
    pub(crate) file_bytes: u64,
    pub(crate) attributes: Arc<Attributes>,
    pub(crate) titles: TitleIndex,
    /// The rule that every answer obeys.
    pub(crate) rule: Option<Arc<Rule>>,
    /// Figures by the model's name: those of its earlier versions go on.
    pub(crate) metrics: Arc<ModelMetrics>,
    pub(crate) costs: Costs,
    path: PathBuf,
    stamp: Stamp,
}

/// What work with a model takes on one thread.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// One history, alone or among others.
    pub(crate) history: Cost,
    /// The items like one.
    pub(crate) similar: Cost,
    /// The most popular items.
    pub(crate) popular: Cost,
}

/// All models at one time, and who gets which.
pub(crate) struct ModelSet {
    models: BTreeMap<Box<str>, Arc<Served>>,
    default: Arc<Served>,
    /// Models with the upper ends of their shares of 0 to 1.
    split: Vec<(f64, Arc<Served>)>,
}

/// What tells one state of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            #[cfg(unix)]
            inode: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// What came of loading.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Models that are new, or of a new version.
    pub(crate) loaded: Vec<String>,
    /// Models whose files are as they were.
    pub(crate) unchanged: Vec<String>,
    /// Models whose files are gone.
    pub(crate) removed: Vec<String>,
    /// What was refused, and why: the old one goes on.
    pub(crate) refused: Vec<(String, String)>,
}

/// Reads models.
pub(crate) struct Loader<'a> {
    pub(crate) config: &'a Config,
    pub(crate) registry: &'a Registry,
    pub(crate) metrics: &'a crate::metrics::Metrics,
    pub(crate) attributes: Option<AttributeFile>,
    /// Whether attributes or rules changed, so that all models are made anew.
    pub(crate) anew: bool,
}

/// The ending of model files in a folder.
const ENDING: &str = "satf";

/// The files that are to be served, by name.
pub(crate) fn model_files(path: &Path) -> Result<BTreeMap<Box<str>, PathBuf>, String> {
    let shown = |error: std::io::Error| format!("models: {}: {error}", path.display());
    let name = |path: &Path| -> Option<Box<str>> { Some(path.file_stem()?.to_str()?.into()) };
    if !fs::metadata(path).map_err(shown)?.is_dir() {
        return Ok(BTreeMap::from([(name(path).unwrap_or_else(|| "model".into()), path.to_owned())]));
    }
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path).map_err(shown)? {
        let path = entry.map_err(shown)?.path();
        let is_model = path.extension().is_some_and(|ending| ending == ENDING) && path.is_file();
        if let Some(name) = name(&path).filter(|name| is_model && !name.starts_with('.')) {
            files.insert(name, path);
        }
    }
    if files.is_empty() {
        return Err(format!(
            "models: {}: the folder holds no file that ends in .{ENDING}; hint: satf train LOG -o {}/NAME.{ENDING}",
            path.display(),
            path.display()
        ));
    }
    Ok(files)
}

impl Loader<'_> {
    /// Loads what is new or changed, keeps what is not, and says what it did. An error if there is nothing to serve.
    pub(crate) fn load(&self, old: Option<&ModelSet>) -> Result<(ModelSet, Outcome), Vec<String>> {
        let path = self.config.models.as_deref().ok_or_else(|| vec!["models: not set".to_owned()])?;
        let files = model_files(path).map_err(|fault| vec![fault])?;
        let mut outcome = Outcome::default();
        let mut models = BTreeMap::new();
        for (name, path) in files {
            let before = old.and_then(|old| old.models.get(&name));
            if let Some(before) =
                before.filter(|before| !self.anew && Stamp::of(&path).as_ref() == Some(&before.stamp))
            {
                outcome.unchanged.push(name.to_string());
                models.insert(name, Arc::clone(before));
                continue;
            }
            match self.read(&name, &path) {
                Ok(served) => {
                    outcome.loaded.push(name.to_string());
                    models.insert(name, Arc::new(served));
                }
                Err(reason) => {
                    outcome.refused.push((name.to_string(), reason));
                    if let Some(before) = before {
                        models.insert(name, Arc::clone(before));
                    }
                }
            }
        }
        if let Some(old) = old {
            let gone = old.models.keys().filter(|name| !models.contains_key(*name));
            outcome.removed = gone.map(ToString::to_string).collect();
        }
        let reasons = || outcome.refused.iter().map(|(_, reason)| reason.clone()).collect::<Vec<_>>();
        let set = ModelSet::new(models, self.config).map_err(|faults| [reasons(), faults].concat())?;
        Ok((set, outcome))
    }

    fn read(&self, name: &str, path: &Path) -> Result<Served, String> {
        // Before it is read: a file that changes meanwhile is looked at again.
        let stamp = Stamp::of(path).ok_or_else(|| format!("{}: the file is gone", path.display()))?;
        let model = Model::load_copied(path, self.registry, self.config.limits.model_bytes)
            .map_err(|error| error.to_string())?;
        let attributes =
            Arc::new(self.attributes.as_ref().map(|file| file.of(model.catalog())).unwrap_or_default());
        let rule = match &self.config.rule {
            None => None,
            Some(text) => {
                let filter = Filter::parse(text).map_err(|error| format!("rule: {error}"))?;
                Some(Arc::new(attributes.rule(&filter).map_err(|error| format!("rule: {error}"))?))
            }
        };
        // What the model makes once, it makes now and not in the first requests.
        model.recommender().make_ready();
        model.popular(&Request::new(1)).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Served {
            name: name.into(),
            version: model.checksum().unwrap_or_default().chars().take(16).collect::<String>().into(),
            loaded: SystemTime::now(),
            file_bytes: stamp.length,
            titles: TitleIndex::new(model.catalog(), &attributes),
            metrics: self.metrics.model(name),
            costs: Costs::default(),
            attributes,
            rule,
            model,
            path: path.to_owned(),
            stamp,
        })
    }
}

impl Served {
    /// Whether a history is scored by looking at few items: then it is done at once, on the thread that asks.
    pub(crate) fn is_quick(&self) -> bool {
        self.model.recommender().is_sparse()
    }

    /// Whether its file is as it was.
    pub(crate) fn is_current(&self) -> bool {
        Stamp::of(&self.path).as_ref() == Some(&self.stamp)
    }

    /// What an item is called.
    pub(crate) fn title(&self, item: ItemIndex) -> Option<&str> {
        self.attributes.title(item)
    }
}

impl ModelSet {
    fn new(models: BTreeMap<Box<str>, Arc<Served>>, config: &Config) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let mut find = |key: &str, name: &str| {
            let found = models.get(name).cloned();
            if found.is_none() {
                let known: Vec<&str> = models.keys().map(|name| &**name).collect();
                faults.push(format!("{key}: there is no model '{name}': there are {}", known.join(", ")));
            }
            found
        };
        let named = config.default_model.as_deref().map(|name| find("default_model", name));
        let total: f64 = config.split.values().sum();
        let (mut split, mut end) = (Vec::new(), 0.0);
        for (name, weight) in config.split.iter().filter(|(_, weight)| **weight > 0.0) {
            end += weight / total;
            split.extend(find(&format!("split.{name}"), name).map(|served| (end, served)));
        }
        let default = named.flatten().or_else(|| models.values().next().cloned());
        match default {
            Some(default) if faults.is_empty() => Ok(ModelSet { models, default, split }),
            _ => Err(faults),
        }
    }

    /// The model of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Served>> {
        self.models.get(name)
    }

    /// All models by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.models.values()
    }

    /// The model of requests that name none and that the split does not reach.
    pub(crate) fn default_model(&self) -> &Arc<Served> {
        &self.default
    }

    /// The share of a model, from 0 to 1, if requests are split.
    pub(crate) fn share(&self, name: &str) -> Option<f64> {
        let mut start = 0.0;
        for (end, served) in &self.split {
            if &*served.name == name {
                return Some(end - start);
            }
            start = *end;
        }
        None
    }

    /// The model for a user or session: the same one every time, for as long as the split stays the same.
    pub(crate) fn pick(&self, key: Option<&[u8]>) -> &Arc<Served> {
        let Some(key) = key.filter(|_| !self.split.is_empty()) else { return &self.default };
        let hash = blake3::hash(key);
        let first = hash.as_bytes().first_chunk::<8>().copied().unwrap_or_default();
        let place = u64::from_le_bytes(first) as f64 / u64::MAX as f64;
        let found = self.split.iter().find(|(end, _)| place < *end);
        found.or(self.split.last()).map_or(&self.default, |(_, served)| served)
    }
}
