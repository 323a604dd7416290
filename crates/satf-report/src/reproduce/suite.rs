//! A suite: which datasets, which models, and what others published of them. The paper's is built in.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use satf::data::read_configuration;
use satf::evaluate::SeenPolicy;
use satf::fault::picture;
use satf::models::{ModelEntry, Registry, nearest};
use satf::monitor::Monitor;
use satf::prepare::{Duplicates, Offset};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use toml::Table;

use super::SuiteError;
use super::findings::Published;
use super::plan::{find_file, slug};

/// The suite that is run when none is given.
const PAPER: &str = concat!(include_str!("suite.toml"), "\n", include_str!("paper_scores.toml"));
/// Runs whose mean is reported, where results depend on a seed.
const USUAL_REPEATS: usize = 3;
/// The most that a suite may ask for.
const MOST_REPEATS: usize = 1_000;
/// Most iterations beyond those configured.
const MOST_ITERATIONS: usize = 1_000;

/// What to run: datasets and how they are cut, models and their keys, and what others published of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Heading of the report.
    pub(crate) title: String,
    /// What the published figures are called, such as `paper`.
    #[serde(default = "published_by")]
    pub(crate) published_by: String,
    /// Seeds of shuffled ties and of random starts.
    #[serde(default = "usual_repeats")]
    pub(crate) repeats: usize,
    /// Iterations beyond those configured that are scored on the validation set.
    #[serde(default)]
    pub(crate) curve_iterations: usize,
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) models: Vec<Model>,
    /// Training time against the columns of the item factor.
    #[serde(default)]
    pub(crate) ranks: Vec<Ranks>,
    /// Figures of others, by dataset and model.
    #[serde(default)]
    pub(crate) published: BTreeMap<String, BTreeMap<String, Published>>,
}

/// A dataset and how it is cut.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dataset {
    /// Its short name: in files, and with `--only`.
    pub(crate) name: String,
    /// Its name in the report; the short one if none is given.
    #[serde(default)]
    title: Option<String>,
    /// What a reader should know of it.
    #[serde(default)]
    pub(crate) note: Option<String>,
    /// Files it may be found as: the first that exists is used.
    pub(crate) files: Vec<String>,
    /// Which rows of the same user and item are kept.
    #[serde(default = "all_rows", deserialize_with = "parsed")]
    pub(crate) duplicates: Duplicates,
    /// Rows that users and items have at least.
    #[serde(default = "one")]
    pub(crate) core: usize,
    #[serde(deserialize_with = "parsed")]
    pub(crate) valid: Offset,
    #[serde(deserialize_with = "parsed")]
    pub(crate) test: Offset,
    /// Longest history that order-aware models look at.
    pub(crate) max_len: usize,
    /// The name its presets go by.
    #[serde(default)]
    pub(crate) preset: Option<String>,
    /// Spaces to tune in, by model, where it is not the usual one.
    #[serde(default)]
    pub(crate) spaces: BTreeMap<String, String>,
}

/// A row of the tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(
    clippy::struct_field_names,
    clippy::struct_excessive_bools,
    reason = "the fields are the keys of the file"
)]
pub(crate) struct Model {
    /// Its name in the report.
    pub(crate) name: String,
    /// The model.
    pub(crate) model: String,
    /// What a reader should know of it.
    #[serde(default)]
    pub(crate) note: Option<String>,
    /// The family of presets it takes its keys from.
    #[serde(default)]
    pub(crate) preset: Option<String>,
    /// Keys on every dataset.
    #[serde(default)]
    pub(crate) settings: Table,
    /// Keys on one dataset, over the others.
    #[serde(default)]
    pub(crate) on: BTreeMap<String, Table>,
    #[serde(default, deserialize_with = "parsed")]
    pub(crate) seen: SeenPolicy,
    /// Which published row it is compared with; that of its own name if none is given.
    #[serde(default)]
    published: Option<String>,
    /// Whether training depends on the seed even where ties do not.
    #[serde(default)]
    pub(crate) random_start: bool,
    /// Whether it stands in the table of further models.
    #[serde(default)]
    pub(crate) extra: bool,
    /// Whether it runs only with `--with`. It may be a model that this binary was built without.
    #[serde(default)]
    pub(crate) on_request: bool,
    /// How it is tuned; models without this keep their configuration.
    #[serde(default)]
    pub(crate) tune: Option<Tuning>,
}

/// How a model is tuned.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tuning {
    /// The space; the model's usual one if none is given.
    #[serde(default)]
    pub(crate) space: Option<String>,
    /// Keys that are not searched.
    #[serde(default)]
    pub(crate) fixed: Table,
}

/// What is timed for a figure of training time against rank.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ranks {
    pub(crate) datasets: Vec<String>,
    pub(crate) models: Vec<String>,
    pub(crate) values: Vec<usize>,
}

fn published_by() -> String {
    "published".to_owned()
}

fn usual_repeats() -> usize {
    USUAL_REPEATS
}

fn all_rows() -> Duplicates {
    Duplicates::All
}

fn one() -> usize {
    1
}

/// A value in the words of the command line.
fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(text: D) -> Result<T, D::Error> {
    String::deserialize(text)?.parse().map_err(D::Error::custom)
}

impl Dataset {
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

impl Model {
    /// The model behind it, if this binary has it.
    pub(crate) fn entry(&self, registry: &Registry) -> Option<ModelEntry> {
        registry.find(&self.model).ok()
    }

    /// The published row that it is compared with.
    fn published_row(&self) -> &str {
        self.published.as_deref().unwrap_or(&self.name)
    }
}

impl Suite {
    /// The paper's suite.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn of_paper(registry: &Registry) -> Suite {
        Suite::parse(PAPER, registry).expect("invariant: a test reads the suite of the paper")
    }

    /// The suite in a file or a pipe. The monitor may stop the reading.
    pub fn read(path: &Path, registry: &Registry, monitor: &dyn Monitor) -> Result<Suite, SuiteError> {
        let text = read_configuration(path, monitor)?;
        Suite::parse(&text, registry)
            .map_err(|source| SuiteError::In { path: path.to_owned(), source: Box::new(source) })
    }

    /// The suite that a text says, as TOML.
    pub fn parse(text: &str, registry: &Registry) -> Result<Suite, SuiteError> {
        let suite = toml::from_str::<Suite>(text).map_err(|error| SuiteError::Syntax(picture(&error)))?;
        let faults = suite.faults(registry);
        if faults.is_empty() { Ok(suite) } else { Err(SuiteError::Faults(faults)) }
    }

    /// The files of a folder that are read for this suite.
    pub fn files(&self, data: &Path) -> Vec<PathBuf> {
        self.datasets.iter().filter_map(|dataset| find_file(dataset, data)).collect()
    }

    /// Everything that can be told without data.
    fn faults(&self, registry: &Registry) -> Vec<String> {
        let mut faults = Vec::new();
        for (what, value, least, most) in [
            ("repeats", self.repeats, 1, MOST_REPEATS),
            ("curve_iterations", self.curve_iterations, 0, MOST_ITERATIONS),
        ] {
            if !(least..=most).contains(&value) {
                faults.push(format!("{what} = {value}: expected {least} to {most}"));
            }
        }
        for (what, found) in [("datasets", self.datasets.len()), ("models", self.models.len())] {
            if found == 0 {
                faults.push(format!("{what} is empty: expected at least one"));
            }
        }
        let names = self.datasets.iter().map(|dataset| &dataset.name);
        let models = self.models.iter().map(|model| slug(&model.name));
        for name in repeated(names.clone().map(|name| name.to_lowercase()).chain(models)) {
            faults.push(format!("the name '{name}' is used twice; names tell cells apart"));
        }
        for dataset in &self.datasets {
            let Dataset { name, files, max_len, core, .. } = dataset;
            if !is_file_name(name) {
                faults.push(format!(
                    "dataset '{name}': expected a name of letters, digits, '.', '-' and '_'; hint: title = '{name}'"
                ));
            }
            if files.is_empty() {
                faults.push(format!("dataset '{name}': files is empty: expected names of files to look for"));
            }
            if *max_len < 2 || *core == 0 {
                faults
                    .push(format!("dataset '{name}': expected max_len of at least 2 and core of at least 1"));
            }
        }
        let known: Vec<&str> = names.map(String::as_str).collect();
        for model in &self.models {
            if slug(&model.name).is_empty() {
                faults.push(format!("model '{}': expected a name with letters or digits", model.name));
            }
            if let (Err(error), false) = (registry.find(&model.model), model.on_request) {
                faults.push(format!("model '{}': {error}", model.name));
            }
            if let Some(row) = &model.published
                && !self.published.values().any(|rows| rows.contains_key(row))
            {
                faults
                    .push(format!("model '{}': published = '{row}': nothing is published of it", model.name));
            }
            for dataset in model.on.keys().filter(|name| !known.contains(&name.as_str())) {
                faults.push(format!("model '{}': on.{dataset}: no such dataset", model.name));
            }
        }
        for Ranks { datasets, models, .. } in &self.ranks {
            let models = models.iter().filter(|name| !self.models.iter().any(|model| model.name == **name));
            let datasets = datasets.iter().filter(|name| !known.contains(&name.as_str()));
            faults.extend(models.chain(datasets).map(|name| format!("ranks: '{name}' is not in the suite")));
        }
        for (dataset, rows) in &self.published {
            if !known.contains(&dataset.as_str()) {
                faults.push(format!("published.{dataset}: no such dataset"));
            }
            for (row, published) in rows {
                if !self.models.iter().any(|model| model.published_row() == row) {
                    let names: Vec<&str> = self.models.iter().map(Model::published_row).collect();
                    let near = nearest(row, names.iter().copied());
                    let near = near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default();
                    faults
                        .push(format!("published.{dataset}.{row}: no model of the suite is called so{near}"));
                }
                faults.extend(published.faults().map(|fault| format!("published.{dataset}.{row}: {fault}")));
            }
        }
        faults
    }

    /// Keeps what `only` names: datasets if it names any, models if it names any. Models on request stay out
    /// unless `with` or `only` names them; what `published` has of them is shown all the same.
    pub fn select(
        &mut self,
        only: &[String],
        with: &[String],
        registry: &Registry,
    ) -> Result<Selection, SuiteError> {
        let datasets = self.datasets.iter().map(|dataset| dataset.name.as_str());
        let models = self.models.iter().map(|model| model.name.as_str());
        let all: Vec<&str> = datasets.chain(models).collect();
        for name in only.iter().chain(with) {
            if !all.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                return Err(SuiteError::UnknownName {
                    name: name.clone(),
                    nearest: nearest(name, all.iter().copied()).map(str::to_owned),
                    known: all.into_iter().map(str::to_owned).collect(),
                });
            }
        }
        let among = |names: &[String], name: &str| names.iter().any(|given| given.eq_ignore_ascii_case(name));
        if self.datasets.iter().any(|dataset| among(only, &dataset.name)) {
            self.datasets.retain(|dataset| among(only, &dataset.name));
        }
        if self.models.iter().any(|model| among(only, &model.name)) {
            self.models.retain(|model| among(only, &model.name) || among(with, &model.name));
        }
        let requested: Vec<String> = self
            .models
            .iter()
            .filter(|model| !model.on_request || among(only, &model.name) || among(with, &model.name))
            .map(|model| model.name.clone())
            .collect();
        for model in self.models.iter().filter(|model| requested.contains(&model.name)) {
            let name = || model.name.clone();
            registry.find(&model.model).map_err(|source| SuiteError::CannotRun { name: name(), source })?;
        }
        Ok(Selection { requested })
    }

    /// What was published of a model on a dataset.
    pub(crate) fn published(&self, dataset: &Dataset, model: &Model) -> Option<Published> {
        self.published.get(&dataset.name)?.get(model.published_row()).copied()
    }
}

/// Which models are to be run; the others are shown as far as they are done.
#[derive(Clone, Debug)]
pub struct Selection {
    requested: Vec<String>,
}

impl Selection {
    pub(crate) fn runs(&self, model: &Model) -> bool {
        self.requested.contains(&model.name)
    }
}

fn repeated(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names.filter(|name| !seen.insert(name.clone())).collect()
}

fn is_file_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&c);
    !name.is_empty() && name.chars().all(plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "title = 't'\n[[datasets]]\nname = 'a'\nfiles = ['a.csv']\nvalid = '1day'\ntest = '1day'\n\
                         max_len = 5\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";

    #[test]
    fn the_paper_has_six_models_and_every_figure() {
        let suite = Suite::of_paper(&Registry::default());
        for dataset in ["ml-1m", "amz-b", "amz-g", "steam"] {
            let names: Vec<&String> = suite.published[dataset].keys().collect();
            assert_eq!(names, ["GA-SATF", "LA-SATF", "MP", "PureSVD", "PureSVD-N", "SASRec"]);
        }
        let sample = suite.datasets.iter().find(|dataset| dataset.name == "steam-sample").unwrap();
        assert!(suite.models.iter().all(|model| suite.published(sample, model).is_none()));
        let pooled = suite.models.iter().find(|model| model.seen == SeenPolicy::Pooled).unwrap();
        assert!(suite.published(&suite.datasets[0], pooled).is_some());
    }

    #[test]
    fn faults_come_all_at_once() {
        let text = SMALL.replace("'mp'", "'mq'").replace("name = 'a'", "name = 'a/../b'")
            + "[published.zzz]\nMP = { ndcg = [0, 0], hr = [0, 0], cov = 0 }\n[[ranks]]\ndatasets = ['q']\nmodels = []\nvalues = [1]\n";
        let error = format!("{:#}", Suite::parse(&text, &Registry::default()).unwrap_err());
        for part in ["4 faults", "did you mean 'mp'", "a/../b", "published.zzz", "ranks: 'q'"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        for (figures, part) in [
            ("MP = { ndcg = [nan, 0], hr = [0, 0], cov = 0 }", "published.a.MP: ndcg = NaN: expected"),
            ("MP = { ndcg = [0, 0], hr = [0, 1e308], cov = 0 }", "published.a.MP: hr = 1e308: expected"),
            ("MP = { ndcg = [0, 0], hr = [0, 0], cov = -0.5 }", "published.a.MP: cov = -0.5: expected"),
            (
                "MPP = { ndcg = [0, 0], hr = [0, 0], cov = 0 }",
                "published.a.MPP: no model of the suite is called so, did you",
            ),
        ] {
            let text = format!("{SMALL}[published.a]\n{figures}\n");
            let error = format!("{:#}", Suite::parse(&text, &Registry::default()).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        for (from, to, part) in [
            ("'mp'", "'mp'\npublished = 'PM'", "published = 'PM': nothing is published"),
            ("1day", "1dya", "3weeks"),
            ("max_len", "maxlen", "maxlen"),
            ("title = 't'", "title = 't'\nrepeats = 0", "repeats = 0"),
            ("title = 't'", "title = 't'\nrepeats = 99999999999", "expected 1 to 1000"),
            ("title = 't'", "title = 't'\ncurve_iterations = 9223372036854775807", "expected 0 to 1000"),
        ] {
            let error =
                format!("{:#}", Suite::parse(&SMALL.replace(from, to), &Registry::default()).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn only_picks_datasets_and_models_and_requests_are_explicit() {
        let names = |suite: &Suite| suite.models.iter().map(|model| model.name.clone()).collect::<Vec<_>>();
        let only = |given: &[&str]| given.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut suite = Suite::of_paper(&Registry::default());
        let selection = suite.select(&only(&["AMZ-B", "mp", "la-satf"]), &[], &Registry::default()).unwrap();
        assert_eq!((suite.datasets.len(), names(&suite)), (1, only(&["MP", "LA-SATF"])));
        assert!(suite.models.iter().all(|model| selection.runs(model)));

        let mut suite = Suite::of_paper(&Registry::default());
        let selection = suite.select(&[], &[], &Registry::default()).unwrap();
        let left: Vec<&String> =
            suite.models.iter().filter(|model| !selection.runs(model)).map(|model| &model.name).collect();
        assert_eq!(left, ["SASRec"]);
        let error = suite.select(&only(&["LA-SAFT"]), &[], &Registry::default()).err().unwrap().to_string();
        assert!(error.contains("did you mean 'LA-SATF'?"), "{error}");
    }
}
