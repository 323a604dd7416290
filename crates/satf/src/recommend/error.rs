//! Why nothing can be recommended.

use crate::interactions::{ItemIndex, OwnedId};

/// Why nothing can be recommended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecommendError {
    /// An index that the model does not have.
    #[error("{place}: item {item} is outside the catalogue of {num_items} items")]
    UnknownItem {
        /// Where it was given.
        place: &'static str,
        /// The index given.
        item: u32,
        /// Items the model knows.
        num_items: usize,
    },
    /// An id that the model does not know, where an answer needs it.
    #[error("the model does not know the item '{}'", item.as_id())]
    UnknownId {
        /// The id.
        item: OwnedId,
    },
    /// The model cannot say what an item of a history adds to a score.
    #[error(
        "{model} does not explain its scores: they are not sums of contributions of past items; linear models such as la-satf do"
    )]
    NoShares {
        /// The model.
        model: String,
    },
    /// The model has no notion of similar items.
    #[error(
        "{model} has no notion of similar items: it scores every item by itself; d-satf and pure-svd have one"
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
