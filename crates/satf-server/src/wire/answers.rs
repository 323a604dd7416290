//! What comes back about items.

use satf::interactions::Id;
use serde::Serialize;

#[cfg(test)]
use super::AnyId;

/// Why the list does not follow from the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// The history is empty.
    EmptyHistory,
    /// The model knows no item of the history.
    NoKnownItem,
}

/// What a history gets.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RecommendResponse<'a> {
    /// The model that answered.
    pub model: &'a str,
    /// Its version: the beginning of its file's checksum.
    pub model_version: &'a str,
    /// Items, best first.
    pub items: Vec<RecommendedItem<'a>>,
    /// How many items of the history the model does not know.
    pub unknown_items: usize,
    /// Why the list does not follow from the history; null if it does.
    pub fallback: Option<FallbackReason>,
    /// Ids of `exclude`, `only`, `boost` and `allow_seen` that the model does not know, at most ten of them. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schema(value_type = Vec<AnyId>, required = false))]
    pub unknown_ids: Vec<Id<'a>>,
}

/// An item that is recommended.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct RecommendedItem<'a> {
    /// The item.
    #[cfg_attr(test, schema(value_type = AnyId))]
    pub item_id: Id<'a>,
    /// Its score, in single precision.
    pub score: f32,
    /// What people call it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub title: Option<&'a str>,
    /// Where the score comes from, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub explanation: Option<ScoreExplanation<'a>>,
}

/// Where a score comes from: shares, base and boost sum to it, up to the rounding of single precision.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ScoreExplanation<'a> {
    /// What each known item of the history adds, oldest first.
    pub shares: Vec<HistoryShare<'a>>,
    /// What does not come from the history.
    pub base: f64,
    /// What `boost` made of it.
    pub boost: f64,
}

/// What an item of the history adds to a score.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct HistoryShare<'a> {
    /// The item.
    #[cfg_attr(test, schema(value_type = AnyId))]
    pub item_id: Id<'a>,
    /// What it adds.
    pub share: f64,
}

/// The answers to a batch call, in the order of its requests.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct BatchResponse<'a> {
    /// The answers.
    pub answers: Vec<RecommendResponse<'a>>,
}

/// Items that are alike.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SimilarResponse<'a> {
    /// The model that answered.
    pub model: &'a str,
    /// Its version.
    pub model_version: &'a str,
    /// What was measured, in a few words.
    pub measure: &'a str,
    /// The most alike first.
    pub items: Vec<SimilarItemOut<'a>>,
}

/// An item like another one.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SimilarItemOut<'a> {
    /// The item.
    #[cfg_attr(test, schema(value_type = AnyId))]
    pub item_id: Id<'a>,
    /// How alike it is: above 0.
    pub similarity: f32,
    /// What people call it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub title: Option<&'a str>,
}

/// Items with their counts.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ItemList<'a> {
    /// The model whose catalogue it is.
    pub model: &'a str,
    /// Its version.
    pub model_version: &'a str,
    /// The items.
    pub items: Vec<ItemSummary<'a>>,
}

/// An item of the catalogue.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ItemSummary<'a> {
    /// The item.
    #[cfg_attr(test, schema(value_type = AnyId))]
    pub item_id: Id<'a>,
    /// How often it was taken in the log that the model learned from.
    pub count: u32,
    /// What people call it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schema(nullable = false))]
    pub title: Option<&'a str>,
}

/// All that is known of an item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ItemResponse<'a> {
    /// The model whose catalogue it is in.
    pub model: &'a str,
    /// Its version.
    pub model_version: &'a str,
    /// The item.
    #[cfg_attr(test, schema(value_type = AnyId))]
    pub item_id: Id<'a>,
    /// How often it was taken in the log that the model learned from.
    pub count: u32,
    /// What people call it; null if that is not known.
    pub title: Option<&'a str>,
    /// Its attributes, by name.
    #[cfg_attr(test, schema(value_type = Object))]
    pub attributes: serde_json::Value,
}
