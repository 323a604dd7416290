//! The two traits every model implements: [`Learner`], a checked configuration that can fit, and
//! [`Recommender`], what comes out of it.

use serde::Serialize;
use toml::Table;

use super::quantization::Quantization;
use super::tensors::{Shares, StoredTensors, Tensor, TensorError};
use super::workspace::{Scores, Workspace};
use super::{ModelError, TrainingMonitor};
use crate::counts::Counts;
use crate::factorize::Plan;
use crate::interactions::ItemIndex;
use crate::prepare::{Histories, History};
use crate::ranking::Scored;

/// A fitted model: scores the whole catalogue for any list of known items. No stored user is needed.
///
/// Scores depend on nothing but the history: a batch gives every history the very bits it gets alone, on any
/// number of threads.
pub trait Recommender: Send + Sync {
    /// Number of items in the catalogue, and so of scores a history.
    fn num_items(&self) -> usize;

    /// Scores of all items for each history (oldest item first), row after row:
    /// `scores[h * num_items + j]` is item `j`'s score for `histories[h]`. Higher is better; every value is
    /// finite. The buffer comes with any content and is overwritten whole.
    ///
    /// An empty history is allowed. Items already seen are scored like all others: the ranking leaves them out.
    ///
    /// # Panics
    /// If `scores` is not `histories.len() * num_items` long, or an item is outside the catalogue.
    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]);

    /// Scores of all items for one history, on this thread alone and in room that is kept from one history to the next: the very bits of
    /// [`Recommender::score_batch`].
    ///
    /// The models of this project use no other thread and allocate nothing of the catalogue's size but in a new workspace. What
    /// stands here serves a model that has nothing better.
    ///
    /// # Panics
    /// If an item is outside the catalogue.
    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        let scores = workspace.dense(self.num_items());
        self.score_batch(&[history], scores);
        Scores::Dense(scores)
    }

    /// The `n` best allowed items after a history, as the scores of [`Recommender::score_one`] have them to the bit, if the model finds them
    /// without scoring the whole catalogue. `None` if it does not, for this history or at all: then all items have to be scored.
    ///
    /// `is_allowed` is asked of items that may be among the best. Scores that were not computed are known to be finite.
    ///
    /// # Panics
    /// If an item is outside the catalogue.
    fn best_one(
        &self,
        _history: History<'_>,
        _n: usize,
        _is_allowed: &dyn Fn(ItemIndex) -> bool,
        _workspace: &mut Workspace,
    ) -> Option<Vec<Scored>> {
        None
    }

    /// Makes what [`Recommender::best_one`] needs, which otherwise is made when it has been asked a few times: for a program that will be asked often.
    fn make_ready(&self) {}

    /// Whether [`Recommender::score_one`] touches few items and gives [`Scores::Sparse`]: then many histories are best scored one by
    /// one too.
    fn is_sparse(&self) -> bool {
        false
    }

    /// Bytes the model itself keeps in memory.
    fn memory_bytes(&self) -> usize;

    /// The arrays it is made of: what [`Learner::restore`] needs, besides the configuration, to build it again to the
    /// last bit.
    fn tensors(&self) -> Vec<Tensor<'_>>;

    /// What every item of a history adds to the score of `item`: their sum and the base are the score, up to rounding.
    ///
    /// # Panics
    /// If an item is outside the catalogue.
    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares;

    /// Whether scores are sums of what single items add. Where they are not, all of a score is in the base of
    /// [`Recommender::shares`], and nothing is explained by it.
    fn has_shares(&self) -> bool {
        true
    }

    /// How similar every item is to `item`, or `None` if the model has no notion of that. Similar is what could stand in the same
    /// place, not what comes next: that is what scores say of a history of this item alone.
    ///
    /// Takes no more time and memory than one pass over the arrays of the model.
    ///
    /// # Panics
    /// If the item is outside the catalogue.
    fn similarities(&self, _item: ItemIndex) -> Option<Similarities> {
        None
    }

    /// What the model, and with it its file, holds of single users.
    fn user_data(&self) -> UserData;

    /// What training found by itself where the configuration leaves it open, by name: exponents, ranks, iterations. A model that
    /// comes from a file knows only what its arrays tell; [`crate::model_file::Manifest::learned`] has the rest.
    fn learned(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// The factors of all items, one row per item, and how many columns there are, for models that have them in this form: what scores of
    /// items are made of. Items alike have rows alike.
    fn item_factors(&self) -> Option<(&[f32], usize)> {
        None
    }

    /// What an item counts by its lag (0 = newest), for models that learn that.
    fn lag_weights(&self) -> Option<&[f64]> {
        None
    }

    /// The same model with factors in fewer bytes, or why there is none.
    fn quantized(&self, _quantization: Quantization) -> Result<Box<dyn Recommender>, &'static str> {
        Err(NO_ITEM_FACTORS)
    }
}

/// Why most models cannot be had in fewer bytes.
pub(super) const NO_ITEM_FACTORS: &str = "it has no item factors; pure-svd, ga-satf, la-satf and d-satf do";

/// How similar all items are to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Similarities {
    /// What is measured, in a few words.
    pub measure: &'static str,
    /// One value per item of the catalogue; higher is more similar, and 0 or less means not similar.
    pub values: Vec<f32>,
}

/// What a fitted model holds of single users, and everybody can read who has its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum UserData {
    /// Nothing but sums over all users.
    None,
    /// Which items stood together in whole histories, without user ids, times and order.
    Histories {
        /// How many.
        histories: usize,
    },
    /// Ids of users with the items and times of all their events: the log itself. That is what a model with statistics holds.
    Events {
        /// How many users.
        users: usize,
        /// How many events.
        events: usize,
    },
}

/// A checked configuration that can be fitted to histories.
pub trait Learner: Send + Sync {
    /// The model's name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Whether every field is in its range: all faults in one error. Needs no data, so it comes before all work.
    fn check(&self) -> Result<(), ModelError>;

    /// Whether it can be fitted to these histories, as far as that is known before the work.
    fn check_on(&self, _histories: &Histories) -> Result<(), ModelError> {
        self.check()
    }

    /// Keys that play no part in training: one training serves them for every value ([`Snapshot::variant`]). They are the fields of a
    /// struct of the model's own ([`variant::keys_of`](super::variant::keys_of)).
    fn variant_keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which of these variants to train with, so that all of them can be had of that training ([`Snapshot::variant`]). Each is a
    /// table of some [`Learner::variant_keys`]; the other keys are those of this configuration.
    ///
    /// The first will do unless training leaves out what a variant does not need.
    fn variant_to_train(&self, _variants: &[Table]) -> Result<usize, ModelError> {
        Ok(0)
    }

    /// The key that says how many iterations to learn for, if the model learns iteratively. [`Iteration::iteration`] counts in its
    /// unit: trained again with that value, the model is what it was then.
    fn iterations_key(&self) -> Option<&'static str> {
        None
    }

    /// Keys that training settles by itself because the configuration leaves them open ([`Recommender::learned`]).
    fn learned_keys(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// What an iteration on these histories will cost and how it will be done, for models that plan ahead.
    fn plan(&self, _histories: &Histories) -> Result<Option<Plan>, ModelError> {
        Ok(None)
    }

    /// Why the model can never be had in fewer bytes ([`Recommender::quantized`]), if that is known before training.
    fn never_quantized(&self) -> Option<&'static str> {
        None
    }

    /// Learns. A model that learns iteratively calls [`TrainingMonitor::iteration`] after every iteration; one that learns in one
    /// go and has [`Learner::variant_keys`] calls [`TrainingMonitor::trained`].
    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError>;

    /// Learns from events that were counted already: the same model, to the bit, as from their histories, which are given too. A
    /// model that uses no counts learns from the histories.
    fn fit_counted(
        &self,
        _counts: &Counts,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.fit(histories, monitor)
    }

    /// Builds a fitted model of this configuration again, from the arrays it was stored as.
    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError>;
}

/// A model in the middle of its training.
pub trait Snapshot {
    /// The model as it would be if training ended now.
    fn recommender(&self) -> Result<Box<dyn Recommender>, ModelError> {
        self.variant(&Table::new())
    }

    /// The same with other values of keys that play no part in training ([`Learner::variant_keys`]); those not given stay as
    /// configured. Any other key is an error ([`variant::read`](super::variant::read)).
    fn variant(&self, keys: &Table) -> Result<Box<dyn Recommender>, ModelError>;
}

/// What an iterative model reports after each iteration.
#[derive(Clone, Debug, Serialize)]
pub struct Iteration {
    /// Counted from 1. Numbers may be left out: a model may be worth looking at every few iterations only.
    pub iteration: usize,
    /// Wall-clock seconds of this iteration.
    pub seconds: f64,
    /// What this model measures: core norm, seconds per mode, loss, achieved rate.
    pub measures: Vec<(&'static str, f64)>,
}
