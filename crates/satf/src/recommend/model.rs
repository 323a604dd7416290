//! What users of the library hold.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::error::check_items;
use super::workspaces::Workspaces;
use super::{Answer, Explanation, RecommendError, Recommendation, Request, SimilarItem, SimilarItems};
use crate::data::{DataError, EventTime, TimeUnit};
use crate::interactions::{AsId, Id, Ids, ItemIndex, OwnedHistory};
use crate::model_file::{self, Content, Dataset, Events, Manifest, ModelFileError, Validation};
use crate::models::{
    Array, Configured, ModelError, Quantization, Recommender, Registry, Similarities, Tensor, TrainingMonitor,
};
use crate::prepare::{Histories, History};
use crate::ranking::{EXCLUDED, Scored, top_n};

/// A trained model with its catalogue: everything that is needed to recommend, and to keep it.
///
/// [`Model::fit`] makes one from a log, [`Model::load`] from a file. [`Model::history`] turns a list of ids into a history, and
/// [`Model::recommend`] says what comes next:
///
/// ```
/// use satf::{Interactions, Model, Request};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let log = Interactions::from_events([("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "stove", 4)])?;
/// let model = Model::fit(&log)?;
/// for next in model.recommend(&model.history(["tent"]), &Request::new(3))?.items {
///     println!("{} {}", next.item, next.score);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Model {
    pub(super) manifest: Manifest,
    catalog: Arc<Ids>,
    item_counts: Array<u32>,
    recommender: Box<dyn Recommender>,
    /// Keys that its configuration leaves to training.
    learned_keys: Vec<&'static str>,
    /// All items, the most popular first, once they were asked for.
    by_popularity: OnceLock<Vec<u32>>,
    workspaces: Workspaces,
    /// That of the file it came from.
    checksum: Option<Box<str>>,
    /// What it learned from, if it is to be kept.
    pub(super) events: Option<Events>,
}

/// What training found, as manifests have it.
fn learned_by(recommender: &dyn Recommender) -> BTreeMap<String, f64> {
    recommender.learned().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Model {
    /// Learns from histories, such as the training set of a split.
    pub fn train(
        configured: &Configured,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Self, ModelError> {
        Ok(Model::new(configured, histories, configured.learner.fit(histories, monitor)?))
    }

    /// A model that was fitted to these histories already.
    ///
    /// # Panics
    /// If it knows another number of items.
    pub fn new(configured: &Configured, histories: &Histories, recommender: Box<dyn Recommender>) -> Self {
        assert_eq!(recommender.num_items(), histories.num_items(), "items of the model and of its histories");
        Model {
            manifest: Manifest {
                model: configured.learner.name().to_owned(),
                configuration: configured.configuration.clone(),
                seed: configured.configuration["seed"].as_u64(),
                quantization: Quantization::None,
                learned: learned_by(&*recommender),
                dataset: Dataset::of(histories),
                statistics: None,
                validation: None,
                satf_version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            catalog: Arc::clone(histories.catalog()),
            item_counts: histories.popularity().into(),
            recommender,
            learned_keys: configured.learner.learned_keys(),
            by_popularity: OnceLock::new(),
            workspaces: Workspaces::default(),
            checksum: None,
            events: None,
        }
    }

    /// Reads a model file. The model is one of this crate; [`Model::load_with`] reads those of other crates.
    ///
    /// The model uses its arrays where they lie in the file, through a memory map: loading takes hardly more memory than the file, and
    /// several processes share it. The file may be replaced by renaming another over it, and removed, but must not be changed in
    /// place for as long as the model lives ([`model_file`] says why).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelFileError> {
        Model::load_with(path, &Registry::default())
    }

    /// Reads a model file whose model is one of `registry`.
    pub fn load_with(path: impl AsRef<Path>, registry: &Registry) -> Result<Self, ModelFileError> {
        Ok(Model::from_content(model_file::read(path.as_ref(), registry)?))
    }

    /// Reads a model file of at most `limit` bytes, statistics aside, into memory, without its statistics. Unlike a model that [`Model::load`] gives, this one does not depend on
    /// the file any more: whoever overwrites it or cuts it short changes nothing. That is what a server wants, which is to go on with the
    /// old model whatever happens to its file.
    pub fn load_copied(
        path: impl AsRef<Path>,
        registry: &Registry,
        limit: u64,
    ) -> Result<Self, ModelFileError> {
        Ok(Model::from_content(model_file::read_copied(path.as_ref(), registry, limit)?))
    }

    fn from_content(content: Content) -> Self {
        let Content { manifest, items, item_counts, model, learned_keys, checksum, events } = content;
        Model {
            manifest,
            catalog: Arc::new(items),
            item_counts,
            recommender: model,
            learned_keys,
            by_popularity: OnceLock::new(),
            workspaces: Workspaces::default(),
            checksum: Some(checksum),
            events,
        }
    }

    /// Reads a model from the bytes of a model file, which messages call `name`.
    pub fn from_bytes(name: &str, bytes: Vec<u8>, registry: &Registry) -> Result<Self, ModelFileError> {
        Ok(Model::from_content(model_file::read_bytes(name, bytes, registry)?))
    }

    /// The checksum of the file that the model came from, in 64 hexadecimal digits: equal for equal files, and for no others.
    pub fn checksum(&self) -> Option<&str> {
        self.checksum.as_deref()
    }

    /// Writes a model file, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ModelFileError> {
        let (manifest, events) = self.kept();
        model_file::write(
            path.as_ref(),
            &manifest,
            &self.catalog,
            &self.item_counts,
            &*self.recommender,
            events,
        )
    }

    /// The bytes of the file that [`Model::save`] writes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelFileError> {
        let (manifest, events) = self.kept();
        model_file::to_bytes(&manifest, &self.catalog, &self.item_counts, &*self.recommender, events)
    }

    /// What a file says of the model, and the events that it holds.
    fn kept(&self) -> (Cow<'_, Manifest>, Option<&Events>) {
        let mut manifest = Cow::Borrowed(&self.manifest);
        let events = self.events.as_ref().filter(|events| !matches!(events, Events::Elsewhere));
        if events.is_none() && manifest.statistics.is_some() {
            manifest.to_mut().statistics = None;
        }
        (manifest, events)
    }

    /// All arrays that its file holds.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = model_file::tensors(&self.catalog, &self.item_counts, &*self.recommender);
        tensors.extend(self.events.as_ref().map(Events::tensors).unwrap_or_default());
        tensors
    }

    /// What the model is, what it learned from and how good it was.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Adds to the description of what it learned from.
    pub fn set_dataset(&mut self, seed: u64, describe: impl FnOnce(&mut Dataset)) {
        self.manifest.seed = Some(seed);
        describe(&mut self.manifest.dataset);
    }

    /// Records how good it was.
    pub fn set_validation(&mut self, validation: Validation) {
        self.manifest.validation = Some(validation);
    }

    /// Rounds item factors to what fewer bytes hold. Scores are those of the rounded factors from now on, before the
    /// model is stored and after.
    pub fn quantize(&mut self, quantization: Quantization) -> Result<(), ModelError> {
        let quantized = self.recommender.quantized(quantization);
        self.recommender = quantized.map_err(|reason| ModelError::Quantization {
            model: self.manifest.model.clone(),
            quantization: quantization.name(),
            reason,
        })?;
        self.manifest.quantization = quantization;
        Ok(())
    }

    /// Ids of the items, in the order of their indices.
    pub fn catalog(&self) -> &Arc<Ids> {
        &self.catalog
    }

    /// Number of items.
    pub fn num_items(&self) -> usize {
        self.catalog.len()
    }

    /// The number of events of every item.
    pub fn item_counts(&self) -> &[u32] {
        &self.item_counts
    }

    /// The fitted model itself.
    pub fn recommender(&self) -> &dyn Recommender {
        &*self.recommender
    }

    /// A history of these ids, oldest first, each with a time of its own. Ids that the model does not know are left out; they are
    /// counted ([`OwnedHistory::unknown`]).
    ///
    /// ```
    /// # use satf::{Interactions, Model};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let log = Interactions::from_events([(1, 3, 10), (1, 5, 20), (2, 3, 30), (2, 5, 40)])?;
    /// # let model = Model::fit(&log)?;
    /// let history = model.history([3, 5, 99]);
    /// assert_eq!((history.len(), history.unknown()), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn history(&self, ids: impl IntoIterator<Item: AsId>) -> OwnedHistory {
        OwnedHistory::from_ids(&self.catalog, ids)
    }

    /// A history of these ids and the times of their events, in any order; times are read as those of a log are. Items with equal times
    /// form a basket.
    ///
    /// ```
    /// # use satf::{Interactions, Model};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let log = Interactions::from_events([(1, "tent", 10), (1, "mug", 20), (2, "tent", 30), (2, "mug", 40)])?;
    /// # let model = Model::fit(&log)?;
    /// let history = model.history_with_times([("mug", "2024-05-18"), ("tent", "2024-05-17")])?;
    /// assert_eq!(history, model.history(["tent", "mug"]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn history_with_times<'t>(
        &self,
        events: impl IntoIterator<Item = (impl AsId, impl Into<EventTime<'t>>)>,
    ) -> Result<OwnedHistory, DataError> {
        OwnedHistory::from_timed(&self.catalog, events, TimeUnit::Auto)
    }

    /// Recommends what comes next after a history: the best items, best first; of equal scores, the lower id. Runs on this thread alone.
    ///
    /// This prepares the request and takes a workspace from those the model keeps. To ask the same for many histories, or to
    /// keep workspaces, use [`Model::prepare`] and [`Prepared::answer`](super::Prepared::answer).
    pub fn recommend<'h>(
        &self,
        history: impl Into<History<'h>>,
        request: &Request,
    ) -> Result<Answer, RecommendError> {
        self.prepare(request)?.answer(history, &mut self.workspaces.take())
    }

    /// [`Model::recommend`] for many histories at once, on all threads of the pool.
    pub fn recommend_batch<H>(
        &self,
        histories: &[H],
        request: &Request,
    ) -> Result<Vec<Answer>, RecommendError>
    where
        for<'h> &'h H: Into<History<'h>>,
    {
        self.prepare(request)?.answer_batch(histories)
    }

    /// Workspaces of those who keep none themselves.
    pub(super) fn workspaces(&self) -> &Workspaces {
        &self.workspaces
    }

    /// An error if a value, of which there is one per item again and again, is not finite: weights that are finite can still be so
    /// large that sums of them overflow, and a file may hold any.
    pub(super) fn check_finite(&self, what: &'static str, values: &[f32]) -> Result<(), RecommendError> {
        match values.par_iter().position_first(|value| !value.is_finite()) {
            None => Ok(()),
            Some(at) => Err(self.not_finite(what, at % self.num_items(), f64::from(values[at]))),
        }
    }

    pub(super) fn not_finite(&self, what: &'static str, item: usize, value: f64) -> RecommendError {
        let (model, item) = (self.manifest.model.clone(), self.catalog.get(item).to_string());
        RecommendError::NotFinite { model, what, item, value: value.to_string() }
    }

    /// The most popular items, for histories without any known item. Scores are numbers of events.
    pub fn popular(&self, request: &Request) -> Result<Vec<Recommendation>, RecommendError> {
        Ok(self.prepare(request)?.popular())
    }

    /// All items, the most popular first; of equal ones the lower.
    pub(super) fn by_popularity(&self) -> &[u32] {
        self.by_popularity.get_or_init(|| {
            let mut items: Vec<u32> = (0..self.num_items() as u32).collect();
            // Single precision, as scores are: counts that round to the same are equal.
            let count = |item: u32| self.item_counts[item as usize] as f32;
            items.par_sort_by(|&a, &b| count(b).total_cmp(&count(a)));
            items
        })
    }

    /// What every item of a history adds to the score of `item`. The sum of shares and base is the score, up to the
    /// rounding of single precision.
    pub fn explain<'h>(
        &self,
        history: impl Into<History<'h>>,
        item: impl AsId,
    ) -> Result<Explanation, RecommendError> {
        let item = self.find(item.as_id())?;
        Ok(self.explain_indexed(history.into(), item)?.with_ids(&self.catalog))
    }

    /// The index of an item that has to be known.
    pub(super) fn find(&self, item: Id<'_>) -> Result<ItemIndex, RecommendError> {
        let found = self.catalog.find(item).map(|index| ItemIndex(index as u32));
        found.ok_or_else(|| RecommendError::UnknownId { item: item.to_owned() })
    }

    pub(super) fn check_explains(&self) -> Result<(), RecommendError> {
        if self.recommender.has_shares() {
            Ok(())
        } else {
            Err(RecommendError::NoShares { model: self.manifest.model.clone() })
        }
    }

    /// The `n` items most similar to `item`, by [`Recommender::similarities`]; fewer if fewer have anything in common with it. The item
    /// itself is not among them. What comes *after* it is another question: [`Model::recommend`] with a history of it alone.
    pub fn similar_items(&self, item: impl AsId, n: usize) -> Result<SimilarItems, RecommendError> {
        Ok(self.similar_items_indexed(self.find(item.as_id())?, n)?.with_ids(&self.catalog))
    }

    /// The same in the indices of the catalogue.
    pub fn similar_items_indexed(
        &self,
        item: ItemIndex,
        n: usize,
    ) -> Result<SimilarItems<ItemIndex>, RecommendError> {
        check_items("item", &[item], self.num_items())?;
        let Some(Similarities { measure, mut values }) = self.recommender.similarities(item) else {
            return Err(RecommendError::NoSimilarities { model: self.manifest.model.clone() });
        };
        self.check_finite("similarity", &values)?;
        values.iter_mut().filter(|value| **value <= 0.0).for_each(|value| *value = EXCLUDED);
        values[item.get()] = EXCLUDED;
        let similar = |scored: Scored| SimilarItem { item: scored.item, similarity: scored.score };
        Ok(SimilarItems { measure, items: top_n(&values, n).into_iter().map(similar).collect() })
    }

    /// What training found by itself, by name: from the manifest or, for files from before it was kept there, what the model's
    /// arrays still tell. `None` stands for a key that was learned and is in neither.
    pub fn learned(&self) -> BTreeMap<String, Option<f64>> {
        let mut learned: BTreeMap<String, Option<f64>> =
            self.learned_keys.iter().map(|key| ((*key).to_owned(), None)).collect();
        let told = self.recommender.learned().into_iter().map(|(name, value)| (name.to_owned(), Some(value)));
        learned.extend(told);
        learned.extend(self.manifest.learned.iter().map(|(name, value)| (name.clone(), Some(*value))));
        learned
    }
}
