//! Configurations found by a search on the validation set, instead of those given.

use std::path::Path;

use satf::experiment::SharedKeys;
use satf::models::Registry;
use satf::prepare::TiePolicy;
use satf::tune::{
    Grid, Limits, Progress, Sampler, Scoring, SearchOptions, Space, Study, Trial, best_of, search,
};
use serde_json::json;
use toml::Table;

use super::cell::TARGET;
use super::plan::{Found, given_settings, own_settings, slug};
use super::suite::Model;
use super::{ReproduceError, Watcher};

/// Iterations without growth that a trial bears.
const PATIENCE: usize = 2;

/// How to search.
pub(crate) struct Search<'a> {
    pub(crate) registry: &'a Registry,
    /// The folder of the report; studies are in `studies` below it.
    pub(crate) out: &'a Path,
    pub(crate) trials: usize,
    pub(crate) seed: u64,
    pub(crate) watcher: &'a dyn Watcher,
}

impl Search<'_> {
    /// The best keys of a model on a dataset. Models that the suite does not tune keep what it gives them.
    ///
    /// Presets play no part: the space says what is searched, other keys are as the suite itself sets them, or as the model has
    /// them by default.
    pub(crate) fn settings(
        &self,
        model: &Model,
        found: &Found<'_>,
    ) -> Result<(Table, &'static str), ReproduceError> {
        let (Some(entry), Some(tuning)) = (model.entry(self.registry), &model.tune) else {
            return Ok((given_settings(model, found.dataset, self.registry)?, ""));
        };
        let dataset = found.dataset;
        let mut settings = own_settings(model, dataset);
        let named = dataset.spaces.get(&model.model).or(tuning.space.as_ref());
        let mut space = Space::named(&entry, named.map(String::as_str))?;
        for (key, value) in &tuning.fixed {
            space.pin(key, value.clone());
        }
        let mut base = settings.clone();
        let shared = SharedKeys { seed: self.seed, max_len: Some(dataset.max_len), memory_bytes: None };
        shared.add_to(&mut base, &entry)?;

        let validation = found.log.cut(dataset, TiePolicy::File, 0, true)?;
        let grid = Grid::new(&entry, &base, &space, &validation.train, self.watcher)?;
        let asked = json!({
            "model": entry.name,
            "settings": base,
            "space": space.to_json(),
            "sampler": Sampler::Random,
            "seed": self.seed,
            "metric": TARGET,
            "patience": PATIENCE,
            "trainings": grid.num_trainings(),
            "protocol": {
                "valid": dataset.valid.to_string(),
                "test": dataset.test.to_string(),
                "ties": TiePolicy::File,
                "seen": model.seen,
            },
            "log": found.log.describe(),
            "satf_version": env!("CARGO_PKG_VERSION"),
        });
        let limits =
            Limits { trials: self.trials.min(grid.num_trainings()), time_budget_seconds: None, jobs: 1 };
        let folder = self.out.join("studies").join(format!("{}.{}", dataset.name, slug(&model.name)));
        let mut study = Study::open(&folder, &asked, limits)?;
        let scoring =
            Scoring { partition: &validation, metric: TARGET, patience: PATIENCE, seen: model.seen };
        let options =
            SearchOptions { grid: &grid, scoring, sampler: Sampler::Random, seed: self.seed, limits };
        let narrate = |trial: &Trial, progress: Progress| {
            let left = progress.seconds_left.unwrap_or_default();
            self.watcher.narrate(&format!(
                "tuning {} on {}: trial {} of {}, {TARGET} {:.4}, about {left:.0} s left",
                model.name,
                dataset.title(),
                progress.done,
                progress.asked,
                trial.best().map_or(0.0, |best| best.value),
            ));
        };
        search(&options, &mut study, self.watcher, &narrate)?;
        let best = best_of(study.trials()).ok_or(ReproduceError::NoTrial(folder))?;
        for (key, value) in &best.keys {
            settings.insert(key.clone(), toml::Value::try_from(value)?);
        }
        Ok((settings, "tuned"))
    }
}
