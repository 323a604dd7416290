//! A trained model in use: what comes next, why, and what is alike.
//!
//! There is one scoring path for everything. A history, alone or among others, is scored against the whole catalogue
//! by [`Recommender::score_batch`] (for factor models: the gather of the history, one product with the item factors),
//! [`Filters`] take out what may not be recommended, and a bounded top-n with a written tie rule ([`top_n`]) takes the
//! best. The same history therefore gets the same list and the same scores, to the bit, from [`Model::recommend`], from
//! [`Model::recommend_batch`] in any batch, from a stream, and from the evaluation.
//!
//! ```
//! use satf::generate::{ShopOptions, shop};
//! use satf::interactions::Id;
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
//! let history = model.history([Id::Text("laptop"), Id::Text("laptop sleeve")]);
//! for next in model.recommend(&history.items, 3, &Filters::default())? {
//!     println!("{} {}", model.catalog().get(next.item.get()), next.score);
//! }
//! # Ok(())
//! # }
//! ```

mod filters;
mod stream;

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use self::filters::{Sieve, check_items};
use crate::evaluate::{EXCLUDED, Scored, histories_at_once, top_n};
use crate::interactions::{Id, Ids, ItemIndex};
use crate::model_file::{self, Content, Dataset, Manifest, ModelFileError, Validation};
use crate::models::{Configured, ModelError, Quantization, Recommender, Tensor};
use crate::monitor::Monitor;
use crate::prepare::{Histories, History};

pub use filters::{Filters, RecommendError, Seen};
pub use stream::{Fallback, StreamError, StreamOptions, StreamReport, recommend_stream};

/// A trained model with its catalogue: everything that is needed to recommend, and to keep it.
pub struct Model {
    manifest: Manifest,
    catalog: Arc<Ids>,
    item_counts: Vec<u32>,
    recommender: Box<dyn Recommender>,
}

/// A history in the model's own indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownItems {
    /// The items the model knows, in the order given.
    pub items: Vec<ItemIndex>,
    /// How many it does not know.
    pub unknown: usize,
}

/// Where a score comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The score, without boosts.
    pub score: f32,
    /// What every item of the history adds to it, oldest first.
    pub shares: Vec<(ItemIndex, f64)>,
    /// What does not come from the history.
    pub base: f64,
}

impl Model {
    /// Learns from histories.
    pub fn train(
        configured: &Configured,
        histories: &Histories,
        monitor: &dyn Monitor,
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
                dataset: Dataset::of(histories),
                validation: None,
                satf_version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            catalog: Arc::clone(&histories.catalog),
            item_counts: histories.popularity(),
            recommender,
        }
    }

    /// Reads a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelFileError> {
        let Content { manifest, items, item_counts, model } = model_file::read(path.as_ref())?;
        Ok(Model { manifest, catalog: Arc::new(items), item_counts, recommender: model })
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

    /// The items of a history (oldest first) that the model knows.
    pub fn history<'a>(&self, ids: impl IntoIterator<Item = Id<'a>>) -> KnownItems {
        let mut known = KnownItems::default();
        for id in ids {
            match self.catalog.find(id) {
                Some(index) => known.items.push(ItemIndex(index as u32)),
                None => known.unknown += 1,
            }
        }
        known
    }

    /// The `n` best items after a history (oldest item first), best first; of equal scores the lower item.
    pub fn recommend<'h>(
        &self,
        history: impl Into<History<'h>>,
        n: usize,
        filters: &Filters,
    ) -> Result<Vec<Scored>, RecommendError> {
        Ok(self.rank(&[history.into()], n, filters)?.pop().unwrap_or_default())
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
        self.rank(&histories.iter().map(Into::into).collect::<Vec<_>>(), n, filters)
    }

    fn rank(
        &self,
        histories: &[History<'_>],
        n: usize,
        filters: &Filters,
    ) -> Result<Vec<Vec<Scored>>, RecommendError> {
        let num_items = self.num_items();
        let sieve = Sieve::new(filters, num_items)?;
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
            let best = scores.par_chunks_mut(num_items).zip(histories).map(|(scores, history)| {
                sieve.apply(history, scores);
                top_n(scores, n)
            });
            lists.par_extend(best);
        }
        Ok(lists)
    }

    /// The `n` items that were taken most often, for histories that say nothing. Scores are counts.
    pub fn popular(&self, n: usize, filters: &Filters) -> Result<Vec<Scored>, RecommendError> {
        let sieve = Sieve::new(filters, self.num_items())?;
        let mut scores: Vec<f32> = self.item_counts.iter().map(|&count| count as f32).collect();
        sieve.apply(&[], &mut scores);
        Ok(top_n(&scores, n))
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
        if !self.recommender.has_shares() {
            return Err(RecommendError::NoShares { model: self.manifest.model.clone() });
        }
        let mut scores = vec![0f32; self.num_items()];
        self.recommender.score_batch(&[history], &mut scores);
        let shares = self.recommender.shares(history, item);
        Ok(Explanation {
            score: scores[item.get()],
            shares: history.iter().copied().zip(shares.of_history).collect(),
            base: shares.base,
        })
    }

    /// The `n` items most like `item`, by [`Recommender::similarities`]; the item itself is not among them.
    pub fn similar_items(&self, item: ItemIndex, n: usize) -> Result<Vec<Scored>, RecommendError> {
        check_items("item", &[item], self.num_items())?;
        let mut similarities = self.recommender.similarities(item);
        similarities[item.get()] = EXCLUDED;
        Ok(top_n(&similarities, n))
    }
}
