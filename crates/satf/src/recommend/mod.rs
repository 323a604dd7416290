//! A trained model in use: what comes next, why, and what is alike.
//!
//! There is one scoring path for everything. A history, alone or among others, is scored against the whole catalogue
//! by [`Recommender::score_batch`] (for factor models: the gather of the history, one product with the item factors),
//! [`Filters`] take out what may not be recommended, and a bounded top-n with a written tie rule ([`top_n`]) takes the
//! best. The same history therefore gets the same list and the same scores, to the bit, from [`Model::recommend`], from
//! [`Model::recommend_batch`] in any batch, from [`Model::answer`], from a stream, and from the evaluation.
//!
//! A history is an [`OwnedHistory`] everywhere: [`Model::history`] makes one from ids, [`Model::history_of_events`] from ids and times,
//! [`UserHistories`](crate::data::UserHistories) from files.
//!
//! ```
//! use satf::generate::{ShopOptions, shop};
//! use satf::models::{Configured, TransitionsConfig};
//! use satf::prepare::{TiePolicy, Timeline};
//! use satf::recommend::{Filters, Model};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = shop(&ShopOptions { users: 300, ..ShopOptions::default() })?;
//! let histories = Timeline::new(&log, TiePolicy::Shuffle, 0).histories();
//! let model = Model::train(&Configured::new(TransitionsConfig::default())?, &histories, &())?;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.satf");
//! model.save(&path)?;
//!
//! let model = Model::load(&path)?;
//! let history = model.history(["laptop", "laptop sleeve"]);
//! for next in model.recommend(&history, 3, &Filters::default())? {
//!     println!("{} {}", model.catalog().get(next.item.get()), next.score);
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod filters;
mod stream;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use self::filters::{Ranked, Sieve, check_items};
use crate::evaluate::{EXCLUDED, Scored, histories_at_once, top_n};
use crate::interactions::{AsId, Ids, ItemIndex, OwnedHistory, Timestamp};
use crate::model_file::{self, Content, Dataset, Manifest, ModelFileError, Validation};
use crate::models::{
    Configured, ModelError, Quantization, Recommender, Registry, Similarities, Tensor, TrainingMonitor,
};
use crate::prepare::{Histories, History};

pub use answer::{Answer, Fallback, Recommendation, StreamOptions};
pub use filters::{Filters, RecommendError, Seen};
pub use stream::{StreamError, StreamReport, recommend_stream};

/// A trained model with its catalogue: everything that is needed to recommend, and to keep it.
pub struct Model {
    manifest: Manifest,
    catalog: Arc<Ids>,
    item_counts: Vec<u32>,
    recommender: Box<dyn Recommender>,
    /// Keys that its configuration leaves to training.
    learned_keys: Vec<&'static str>,
}

/// Where a score comes from: shares, base and boost sum to it, up to the rounding of single precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The score.
    pub score: f32,
    /// What every item of the history adds to it, oldest first.
    pub shares: Vec<(ItemIndex, f64)>,
    /// What does not come from the history.
    pub base: f64,
    /// What factors and boosts of [`Filters`] made of it; 0 without them.
    pub boost: f64,
}

/// Items like another one.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarItems {
    /// What was measured, in a few words.
    pub measure: &'static str,
    /// The items with their similarities, which are above 0; the most alike first.
    pub items: Vec<Scored>,
}

/// What training found, as manifests have it.
fn learned_by(recommender: &dyn Recommender) -> BTreeMap<String, f64> {
    recommender.learned().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Model {
    /// Learns from histories.
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
                validation: None,
                satf_version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            catalog: Arc::clone(histories.catalog()),
            item_counts: histories.popularity(),
            recommender,
            learned_keys: configured.learner.learned_keys(),
        }
    }

    /// Reads a model file. The model is one of this crate; [`Model::load_with`] reads those of other crates.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelFileError> {
        Model::load_with(path, &Registry::default())
    }

    /// Reads a model file whose model is one of `registry`.
    pub fn load_with(path: impl AsRef<Path>, registry: &Registry) -> Result<Self, ModelFileError> {
        let Content { manifest, items, item_counts, model, learned_keys } =
            model_file::read(path.as_ref(), registry)?;
        Ok(Model { manifest, catalog: Arc::new(items), item_counts, recommender: model, learned_keys })
    }

    /// Writes a model file, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ModelFileError> {
        model_file::write(path.as_ref(), &self.manifest, &self.catalog, &self.item_counts, &*self.recommender)
    }

    /// Every array of its file.
    pub fn tensors(&self) -> Vec<Tensor<'_>> {
        model_file::tensors(&self.catalog, &self.item_counts, &*self.recommender)
    }

    /// What the model is, what it learned from and how good it was.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Says more about what it learned from.
    pub fn set_dataset(&mut self, seed: u64, describe: impl FnOnce(&mut Dataset)) {
        self.manifest.seed = Some(seed);
        describe(&mut self.manifest.dataset);
    }

    /// Says how good it was.
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

    /// How often every item was taken.
    pub fn item_counts(&self) -> &[u32] {
        &self.item_counts
    }

    /// The fitted model itself.
    pub fn recommender(&self) -> &dyn Recommender {
        &*self.recommender
    }

    /// A history of these ids, oldest first, each taken at a time of its own.
    pub fn history(&self, ids: impl IntoIterator<Item: AsId>) -> OwnedHistory {
        OwnedHistory::from_ids(&self.catalog, ids)
    }

    /// A history of these ids and the times they were taken at, in any order. Equal times were taken together.
    pub fn history_of_events(
        &self,
        events: impl IntoIterator<Item = (impl AsId, Timestamp)>,
    ) -> OwnedHistory {
        OwnedHistory::from_events(&self.catalog, events)
    }

    /// The `n` best items after a history (oldest item first), best first; of equal scores the lower item.
    pub fn recommend<'h>(
        &self,
        history: impl Into<History<'h>>,
        n: usize,
        filters: &Filters,
    ) -> Result<Vec<Scored>, RecommendError> {
        let ranked = self.rank(&[history.into()], n, filters)?.pop().unwrap_or_default();
        Ok(ranked.into_iter().map(|ranked| ranked.scored).collect())
    }

    /// [`Model::recommend`] for many histories at once: for factor models one matrix product a batch of bounded size.
    pub fn recommend_batch<H>(
        &self,
        histories: &[H],
        n: usize,
        filters: &Filters,
    ) -> Result<Vec<Vec<Scored>>, RecommendError>
    where
        for<'h> &'h H: Into<History<'h>>,
    {
        let ranked = self.rank(&histories.iter().map(Into::into).collect::<Vec<_>>(), n, filters)?;
        let scored = |list: Vec<Ranked>| list.into_iter().map(|ranked| ranked.scored).collect();
        Ok(ranked.into_iter().map(scored).collect())
    }

    fn rank(
        &self,
        histories: &[History<'_>],
        n: usize,
        filters: &Filters,
    ) -> Result<Vec<Vec<Ranked>>, RecommendError> {
        let num_items = self.num_items();
        let sieve = Sieve::new(filters, &self.catalog)?;
        histories.iter().try_for_each(|history| check_items("history", history, num_items))?;
        if num_items == 0 {
            return Ok(vec![Vec::new(); histories.len()]);
        }
        let at_once = histories_at_once(num_items).min(histories.len());
        let mut scores = vec![0f32; at_once * num_items];
        let mut lists = Vec::with_capacity(histories.len());
        for histories in histories.chunks(at_once.max(1)) {
            let scores = &mut scores[..histories.len() * num_items];
            self.recommender.score_batch(histories, scores);
            self.check_finite("score", scores)?;
            let best = scores
                .par_chunks_mut(num_items)
                .zip(histories)
                .map(|(scores, history)| sieve.best(history, scores, n));
            lists.par_extend(best);
        }
        Ok(lists)
    }

    /// An error if a value, of which there is one per item again and again, is not finite: weights that are finite can still be so
    /// large that sums of them overflow, and a file may hold any.
    fn check_finite(&self, what: &'static str, values: &[f32]) -> Result<(), RecommendError> {
        match values.par_iter().position_first(|value| !value.is_finite()) {
            None => Ok(()),
            Some(at) => Err(self.not_finite(what, at % self.num_items(), f64::from(values[at]))),
        }
    }

    fn not_finite(&self, what: &'static str, item: usize, value: f64) -> RecommendError {
        let (model, item) = (self.manifest.model.clone(), self.catalog.get(item).to_string());
        RecommendError::NotFinite { model, what, item, value: value.to_string() }
    }

    /// The `n` items that were taken most often, for histories that say nothing. Scores are counts.
    pub fn popular(&self, n: usize, filters: &Filters) -> Result<Vec<Scored>, RecommendError> {
        Ok(self.rank_popular(n, filters)?.into_iter().map(|ranked| ranked.scored).collect())
    }

    fn rank_popular(&self, n: usize, filters: &Filters) -> Result<Vec<Ranked>, RecommendError> {
        let mut scores: Vec<f32> = self.item_counts.iter().map(|&count| count as f32).collect();
        Ok(Sieve::new(filters, &self.catalog)?.best(&[], &mut scores, n))
    }

    /// What every item of a history adds to the score of `item`. The sum of shares and base is the score, up to the
    /// rounding of single precision.
    pub fn explain<'h>(
        &self,
        history: impl Into<History<'h>>,
        item: ItemIndex,
    ) -> Result<Explanation, RecommendError> {
        let history = history.into();
        check_items("history", &history, self.num_items())?;
        check_items("item", &[item], self.num_items())?;
        self.check_explains()?;
        let mut scores = vec![0f32; self.num_items()];
        self.recommender.score_batch(&[history], &mut scores);
        self.check_finite("score", &scores)?;
        let scored = Scored { item, score: scores[item.get()] };
        self.explain_ranked(history, Ranked { scored, plain: scored.score })
    }

    fn check_explains(&self) -> Result<(), RecommendError> {
        if self.recommender.has_shares() {
            Ok(())
        } else {
            Err(RecommendError::NoShares { model: self.manifest.model.clone() })
        }
    }

    fn explain_ranked(&self, history: History<'_>, ranked: Ranked) -> Result<Explanation, RecommendError> {
        let item = ranked.scored.item;
        let shares = self.recommender.shares(history, item);
        if let Some(&value) = shares.of_history.iter().chain([&shares.base]).find(|value| !value.is_finite())
        {
            return Err(self.not_finite("share of a past item in the score", item.get(), value));
        }
        Ok(Explanation {
            score: ranked.scored.score,
            shares: history.iter().copied().zip(shares.of_history).collect(),
            base: shares.base,
            boost: ranked.boost(),
        })
    }

    /// The `n` items most like `item`, by [`Recommender::similarities`]; fewer if fewer have anything in common with it. The item
    /// itself is not among them. What comes *after* it is another question: [`Model::recommend`] with a history of it alone.
    pub fn similar_items(&self, item: ItemIndex, n: usize) -> Result<SimilarItems, RecommendError> {
        check_items("item", &[item], self.num_items())?;
        let Some(Similarities { measure, mut values }) = self.recommender.similarities(item) else {
            return Err(RecommendError::NoSimilarities { model: self.manifest.model.clone() });
        };
        self.check_finite("similarity", &values)?;
        values.iter_mut().filter(|value| **value <= 0.0).for_each(|value| *value = EXCLUDED);
        values[item.get()] = EXCLUDED;
        Ok(SimilarItems { measure, items: top_n(&values, n) })
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
