//! From a suite and a folder of data to the list of cells.

use std::path::{Path, PathBuf};

use satf::data::{ReadOptions, read_log};
use satf::experiment::{Choice, SharedKeys};
use satf::models::{ModelEntry, Registry};
use satf::monitor::Monitor;
use satf::prepare::{Statistics, TiePolicy, p_core, resolve_duplicates};
use toml::Table;

use super::ReproduceError;
use super::cell::{Log, Question, Task};
use super::suite::{Dataset, Model, Ranks, Selection, Suite};

/// A dataset of the suite that is there.
pub(crate) struct Found<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) path: PathBuf,
    pub(crate) log: Log,
    pub(crate) statistics: Statistics,
}

/// The file of a dataset, if it is in the folder.
pub(crate) fn find_file(dataset: &Dataset, data: &Path) -> Option<PathBuf> {
    dataset.files.iter().map(|file| data.join(file)).find(|path| path.is_file())
}

/// The datasets that are in the folder; a warning for each that is not, an error if none is.
pub(crate) fn find_datasets<'a>(
    suite: &'a Suite,
    data: &Path,
    monitor: &dyn Monitor,
) -> Result<Vec<Found<'a>>, ReproduceError> {
    let mut found = Vec::new();
    for dataset in &suite.datasets {
        let Some(path) = find_file(dataset, data) else { continue };
        let (log, _) = read_log(std::slice::from_ref(&path), &ReadOptions::default(), monitor)?;
        let log = resolve_duplicates(&log, dataset.duplicates);
        let log = if dataset.core > 1 { p_core(&log, dataset.core) } else { log };
        let statistics = Statistics::of(&log);
        found.push(Found { dataset, path, log: Log::new(log), statistics });
    }
    let missing =
        suite.datasets.iter().filter(|dataset| !found.iter().any(|found| found.dataset.name == dataset.name));
    let looked_for = |dataset: &Dataset| format!("{} ({})", dataset.title(), dataset.files.join(", "));
    if found.is_empty() {
        let looked_for = suite.datasets.iter().map(looked_for).collect();
        return Err(ReproduceError::NoData { data: data.to_owned(), looked_for });
    }
    for dataset in missing {
        tracing::warn!("{}: left out, none of its files is in {}", looked_for(dataset), data.display());
    }
    Ok(found)
}

/// A cell of the plan: whose it is, and the file it is kept in.
pub(crate) struct Planned<'a> {
    pub(crate) dataset: usize,
    pub(crate) model: usize,
    pub(crate) name: String,
    pub(crate) question: Question<'a>,
    /// Whether it is to be filled if it is empty.
    pub(crate) wanted: bool,
}

/// The keys of a model on a dataset, and a word that tells them from others in the names of cells.
pub(crate) type Settings<'a> =
    dyn Fn(&Model, &Found<'_>) -> Result<(Table, &'static str), ReproduceError> + 'a;

/// The keys of a model on a dataset: its preset, then the suite's settings, then those for the dataset.
pub(crate) fn given_settings(
    model: &Model,
    dataset: &Dataset,
    registry: &Registry,
) -> Result<Table, ReproduceError> {
    let mut settings = Table::new();
    if let Some(family) = &model.preset {
        let preset = dataset.preset.as_ref().ok_or_else(|| ReproduceError::NoPreset {
            model: model.name.clone(),
            dataset: dataset.name.clone(),
        })?;
        settings = registry.preset(&format!("{family}/{preset}"))?.settings;
    }
    settings.extend(own_settings(model, dataset));
    Ok(settings)
}

/// The keys that the suite itself gives a model on a dataset.
pub(crate) fn own_settings(model: &Model, dataset: &Dataset) -> Table {
    let mut settings = model.settings.clone();
    settings.extend(model.on.get(&dataset.name).cloned().unwrap_or_default());
    settings
}

/// Every cell of a suite on the datasets found, in the order they are done.
pub(crate) fn cells<'a>(
    suite: &'a Suite,
    registry: &Registry,
    selection: &Selection,
    found: &'a [Found<'a>],
    first_seed: u64,
    settings_of: &Settings<'_>,
) -> Result<Vec<Planned<'a>>, ReproduceError> {
    let mut cells = Vec::new();
    for (at, dataset) in found.iter().enumerate() {
        for (model_at, model) in suite.models.iter().enumerate() {
            let Some(entry) = model.entry(registry) else { continue };
            let (settings, tag) = match settings_of(model, dataset) {
                // A model that nobody asked for need not have a configuration.
                Err(_) if !selection.runs(model) => continue,
                settings => settings?,
            };
            let configure = |task| {
                configure(
                    suite,
                    model.name.clone(),
                    entry,
                    settings.clone(),
                    dataset.dataset,
                    task,
                    first_seed,
                )
                .map_err(|source| ReproduceError::Cell {
                    what: format!("{} on {}, {}", model.name, dataset.dataset.title(), task.describe()),
                    source: Box::new(source),
                })
            };
            for task in tasks(suite, model, &entry, dataset.dataset, first_seed) {
                let choice = configure(task)?;
                let name = [&dataset.dataset.name, &slug(&model.name), tag, &task.file_name()];
                let name =
                    name.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<&str>>().join(".");
                let question =
                    Question { dataset: dataset.dataset, log: &dataset.log, choice, seen: model.seen, task };
                cells.push(Planned {
                    dataset: at,
                    model: model_at,
                    name,
                    question,
                    wanted: selection.runs(model),
                });
            }
        }
    }
    Ok(cells)
}

/// Models with this key have a validation curve. SASRec counts epochs: one more training of hours would tell nothing new.
const CURVE_KEY: &str = "num_iters";

/// A model with the keys of a task.
fn configure(
    suite: &Suite,
    label: String,
    entry: ModelEntry,
    mut settings: Table,
    dataset: &Dataset,
    task: Task,
    first_seed: u64,
) -> Result<Choice, ReproduceError> {
    let seed = match task {
        Task::Score { seed, .. } => seed,
        Task::Curve | Task::Time { .. } => first_seed,
    };
    let shared = SharedKeys { seed, max_len: Some(dataset.max_len), memory_bytes: None };
    shared.add_to(&mut settings, &entry)?;
    let choice = Choice::new(label, entry, settings)?;
    match task {
        Task::Score { .. } => Ok(choice),
        Task::Curve => {
            let iterations = choice.configured.configuration[CURVE_KEY].as_i64().unwrap_or(1);
            Ok(choice.with(&[(CURVE_KEY, iterations.saturating_add(suite.curve_iterations as i64))])?)
        }
        Task::Time { rank } => with_item_rank(&choice, rank as i64),
    }
}

/// The model with so many columns of the item factor: the item rank, the rank, or the width of embeddings. No rank of a Tucker
/// decomposition is above the product of the others: that of the users gives way.
fn with_item_rank(choice: &Choice, rank: i64) -> Result<Choice, ReproduceError> {
    let key = ["item_rank", "rank", "hidden"].into_iter().find(|key| choice.has(key));
    let key = key.ok_or(ReproduceError::NoItemFactor)?;
    if key != "item_rank" {
        return Ok(choice.with(&[(key, rank)])?);
    }
    let keys = &choice.configured.configuration;
    let small: i64 = ["position_rank", "attention_rank", "sequences_rank"]
        .iter()
        .filter_map(|key| keys[key].as_i64())
        .fold(1, i64::saturating_mul);
    Ok(match keys["user_rank"].as_i64() {
        Some(users) if users > rank.saturating_mul(small) => {
            choice.with(&[("item_rank", rank), ("user_rank", rank.saturating_mul(small))])?
        }
        _ => choice.with(&[("item_rank", rank)])?,
    })
}

fn tasks(suite: &Suite, model: &Model, entry: &ModelEntry, dataset: &Dataset, first_seed: u64) -> Vec<Task> {
    let seeds = |count: usize| (0..count as u64).map(move |at| first_seed.saturating_add(at));
    let score = |ties| move |seed| Task::Score { ties, seed };
    let starts = if model.random_start { suite.repeats } else { 1 };
    let mut tasks: Vec<Task> = seeds(starts).map(score(TiePolicy::File)).collect();
    tasks.extend(seeds(suite.repeats).map(score(TiePolicy::Shuffle)));
    if entry.defaults().contains_key(CURVE_KEY) {
        tasks.push(Task::Curve);
    }
    let of_this =
        |ranks: &&Ranks| ranks.datasets.contains(&dataset.name) && ranks.models.contains(&model.name);
    let mut ranks: Vec<usize> =
        suite.ranks.iter().filter(of_this).flat_map(|ranks| ranks.values.iter().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    tasks.extend(ranks.into_iter().map(|rank| Task::Time { rank }));
    tasks
}

/// A name as part of a file's.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => slug.push(c),
            _ if slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_names_of_files() {
        for (name, expected) in
            [("MP, seen pooled", "mp-seen-pooled"), ("LA-SATF", "la-satf"), ("../x ", "x"), ("Ä", "")]
        {
            assert_eq!(slug(name), expected);
        }
    }

    #[test]
    fn the_rank_of_users_gives_way_to_that_of_items() {
        let registry = satf_sasrec::registry();
        let entry = registry.find("la-satf").unwrap();
        let settings: Table =
            "user_rank = 700\nitem_rank = 600\nattention_rank = 1\nsequences_rank = 2".parse().unwrap();
        let choice = |rank| {
            let choice = Choice::new("LA".to_owned(), entry, settings.clone()).unwrap();
            let keys = with_item_rank(&choice, rank).unwrap().configured.configuration;
            (keys["item_rank"].as_i64().unwrap(), keys["user_rank"].as_i64().unwrap())
        };
        assert_eq!([100, 350, 900].map(choice), [(100, 200), (350, 700), (900, 700)]);
        let plain = |model| Choice::new(String::new(), registry.find(model).unwrap(), Table::new()).unwrap();
        assert_eq!(with_item_rank(&plain("pure-svd"), 7).unwrap().configured.configuration["rank"], 7);
        let refused = with_item_rank(&plain("mp"), 7).err().unwrap().to_string();
        assert!(refused.contains("no item factor"), "{refused}");
        assert_eq!(with_item_rank(&plain("sasrec"), 8).unwrap().configured.configuration["hidden"], 8);
    }

    #[test]
    fn every_cell_of_the_paper_can_be_configured() {
        let registry = Registry::default();
        let suite = Suite::of_paper(&registry);
        for dataset in &suite.datasets {
            let mut cells = 0;
            for model in &suite.models {
                let Some(entry) = model.entry(&registry).filter(|_| !model.on_request) else { continue };
                for task in tasks(&suite, model, &entry, dataset, 1) {
                    let settings = given_settings(model, dataset, &registry).unwrap();
                    let choice =
                        configure(&suite, model.name.clone(), entry, settings, dataset, task, 1).unwrap();
                    let keys = &choice.configured.configuration;
                    assert!(keys["max_len"].is_null() || keys["max_len"] == dataset.max_len);
                    cells += 1;
                }
            }
            // Four for each of seven models without a random start, seven for each of two with one.
            assert!(cells >= 7 * 4 + 2 * 7, "{}: {cells}", dataset.name);
        }
    }
}
