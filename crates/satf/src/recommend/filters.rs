//! What may be recommended.

use crate::evaluate::{EXCLUDED, Scored, top_n};
use crate::interactions::{Ids, ItemIndex, OwnedId};

/// Whether items of the history itself may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// They may not.
    #[default]
    Exclude,
    /// They may.
    Allow,
}

/// What may be recommended, and what is preferred. Filters apply before the best items are taken, so `n` items come
/// back whenever `n` are allowed. The default leaves out what the history holds, and nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// Items that may not be recommended.
    pub exclude: Vec<ItemIndex>,
    /// The only items that may be; all if none.
    pub only: Option<Vec<ItemIndex>>,
    /// Whether items of the history may be.
    pub seen: Seen,
    /// Items that may be recommended again even if those of the history may not: what is used up.
    pub repeatable: Vec<ItemIndex>,
    /// How many times as good these items are: finite numbers above 0. A score above 0 is multiplied, one below 0 divided, so that a
    /// factor above 1 favours an item whatever its score.
    pub factors: Vec<(ItemIndex, f32)>,
    /// Added to the scores of these items, after their factors: finite numbers, in units of the scores.
    pub boosts: Vec<(ItemIndex, f32)>,
}

/// Why nothing can be recommended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecommendError {
    /// An item that the model does not know.
    #[error("{place}: item {item} is outside the catalogue of {num_items} items")]
    UnknownItem {
        /// Where it was given.
        place: &'static str,
        /// The index given.
        item: u32,
        /// Items the model knows.
        num_items: usize,
    },
    /// The model cannot say what an item of a history adds to a score.
    #[error(
        "{model} does not explain its scores: they are no sum of shares of past items; linear models such as la-satf do"
    )]
    NoShares {
        /// The model.
        model: String,
    },
    /// The model has no notion of items that are alike.
    #[error(
        "{model} does not know which items are alike: it scores every item by itself; d-satf or pure-svd know"
    )]
    NoSimilarities {
        /// The model.
        model: String,
    },
    /// A number of the model's making that is not one.
    #[error(
        "{model}: the {what} of item {item} is {value}: the weights of this model are too large to calculate with; \
         hint: train it again"
    )]
    NotFinite {
        /// The model.
        model: String,
        /// What should have been a number.
        what: &'static str,
        /// The item.
        item: String,
        /// What it is instead.
        value: String,
    },
    /// A boost that is not a number.
    #[error("boost of item '{}' = {boost}: expected a finite number", item.as_id())]
    Boost {
        /// The item.
        item: OwnedId,
        /// Its boost.
        boost: f32,
    },
    /// A factor that is not a number above 0.
    #[error("factor of item '{}' = {factor}: expected a finite number above 0", item.as_id())]
    Factor {
        /// The item.
        item: OwnedId,
        /// Its factor.
        factor: f32,
    },
}

/// An error if an item is outside the catalogue.
pub(super) fn check_items(
    place: &'static str,
    items: &[ItemIndex],
    num_items: usize,
) -> Result<(), RecommendError> {
    match items.iter().find(|item| item.get() >= num_items) {
        Some(item) => Err(RecommendError::UnknownItem { place, item: item.0, num_items }),
        None => Ok(()),
    }
}

/// Filters made ready for many histories.
pub(super) struct Sieve<'a> {
    filters: &'a Filters,
    /// For every item whether it is among [`Filters::only`].
    allowed: Option<Vec<bool>>,
    /// For every item whether it is among [`Filters::repeatable`].
    repeatable: Option<Vec<bool>>,
    /// Items with factors or boosts, ascending.
    boosted: Vec<ItemIndex>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(filters: &'a Filters, catalog: &Ids) -> Result<Self, RecommendError> {
        let num_items = catalog.len();
        check_items("exclude", &filters.exclude, num_items)?;
        check_items("only", filters.only.as_deref().unwrap_or_default(), num_items)?;
        check_items("repeatable", &filters.repeatable, num_items)?;
        let id = |item: ItemIndex| catalog.get(item.get()).to_owned();
        for &(item, boost) in &filters.boosts {
            check_items("boosts", &[item], num_items)?;
            if !boost.is_finite() {
                return Err(RecommendError::Boost { item: id(item), boost });
            }
        }
        for &(item, factor) in &filters.factors {
            check_items("factors", &[item], num_items)?;
            if !(factor.is_finite() && factor > 0.0) {
                return Err(RecommendError::Factor { item: id(item), factor });
            }
        }
        let mark = |items: &[ItemIndex]| {
            let mut marks = vec![false; num_items];
            for item in items {
                marks[item.get()] = true;
            }
            marks
        };
        let mut boosted: Vec<ItemIndex> =
            filters.factors.iter().chain(&filters.boosts).map(|&(item, _)| item).collect();
        boosted.sort_unstable();
        boosted.dedup();
        Ok(Sieve {
            filters,
            allowed: filters.only.as_deref().map(mark),
            repeatable: (!filters.repeatable.is_empty()).then(|| mark(&filters.repeatable)),
            boosted,
        })
    }

    /// The `n` best items that may be recommended, with their scores before and after boosts.
    pub(super) fn best(&self, history: &[ItemIndex], scores: &mut [f32], n: usize) -> Vec<Ranked> {
        let plain: Vec<f32> = self.boosted.iter().map(|item| scores[item.get()]).collect();
        self.apply(history, scores);
        let ranked = |scored: Scored| {
            let boosted = self.boosted.binary_search(&scored.item);
            Ranked { scored, plain: boosted.map_or(scored.score, |at| plain[at]) }
        };
        top_n(scores, n).into_iter().map(ranked).collect()
    }

    /// Boosts scores and takes out what may not be recommended.
    fn apply(&self, history: &[ItemIndex], scores: &mut [f32]) {
        for &(item, factor) in &self.filters.factors {
            let score = &mut scores[item.get()];
            *score = if *score < 0.0 { *score / factor } else { *score * factor }.clamp(f32::MIN, f32::MAX);
        }
        for &(item, boost) in &self.filters.boosts {
            let score = &mut scores[item.get()];
            *score = (*score + boost).clamp(f32::MIN, f32::MAX);
        }
        for (score, _) in
            scores.iter_mut().zip(self.allowed.iter().flatten()).filter(|(_, allowed)| !**allowed)
        {
            *score = EXCLUDED;
        }
        for item in &self.filters.exclude {
            scores[item.get()] = EXCLUDED;
        }
        if self.filters.seen == Seen::Exclude {
            let is_repeatable =
                |item: &ItemIndex| self.repeatable.as_ref().is_some_and(|marks| marks[item.get()]);
            for item in history.iter().filter(|item| !is_repeatable(item)) {
                scores[item.get()] = EXCLUDED;
            }
        }
    }
}

/// An item that was ranked, and its score without boosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    pub(super) scored: Scored,
    pub(super) plain: f32,
}

impl Ranked {
    /// What boosts made of the score.
    pub(super) fn boost(self) -> f64 {
        f64::from(self.scored.score) - f64::from(self.plain)
    }
}
