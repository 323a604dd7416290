//! What may be recommended.

use crate::evaluate::EXCLUDED;
use crate::interactions::ItemIndex;

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
    /// Added to the scores of these items: finite numbers, in units of the scores.
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
    /// A boost that is no number.
    #[error("boost of item {item} = {boost}: expected a finite number")]
    Boost {
        /// The item.
        item: u32,
        /// Its boost.
        boost: f32,
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
}

impl<'a> Sieve<'a> {
    pub(super) fn new(filters: &'a Filters, num_items: usize) -> Result<Self, RecommendError> {
        check_items("exclude", &filters.exclude, num_items)?;
        check_items("only", filters.only.as_deref().unwrap_or_default(), num_items)?;
        for &(item, boost) in &filters.boosts {
            check_items("boosts", &[item], num_items)?;
            if !boost.is_finite() {
                return Err(RecommendError::Boost { item: item.0, boost });
            }
        }
        let allowed = filters.only.as_ref().map(|only| {
            let mut allowed = vec![false; num_items];
            for item in only {
                allowed[item.get()] = true;
            }
            allowed
        });
        Ok(Sieve { filters, allowed })
    }

    /// Boosts scores and takes out what may not be recommended.
    pub(super) fn apply(&self, history: &[ItemIndex], scores: &mut [f32]) {
        for &(item, boost) in &self.filters.boosts {
            let score = &mut scores[item.get()];
            *score = (*score + boost).clamp(f32::MIN, f32::MAX);
        }
        for (score, _) in
            scores.iter_mut().zip(self.allowed.iter().flatten()).filter(|(_, allowed)| !**allowed)
        {
            *score = EXCLUDED;
        }
        let seen = if self.filters.seen == Seen::Exclude { history } else { &[] };
        for item in self.filters.exclude.iter().chain(seen) {
            scores[item.get()] = EXCLUDED;
        }
    }
}
