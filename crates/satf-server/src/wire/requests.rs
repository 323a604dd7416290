//! What can be asked.

use serde::{Deserialize, Serialize};

use super::ids::objects;
use super::{AnyId, Step};

/// Which items of the history may be recommended again: none (`false`), all (`true`), or those of a list, such as what is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "true, false, or a list of ids")]
pub enum AllowSeen {
    /// None or all.
    All(bool),
    /// These.
    These(Vec<AnyId>),
}

impl Default for AllowSeen {
    fn default() -> Self {
        AllowSeen::All(false)
    }
}

/// What becomes of an item's score before the best are taken: it is multiplied first, then added to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ItemBoost {
    /// The item.
    pub item_id: AnyId,
    /// How many times as good it is: above 0.
    #[cfg_attr(test, schema(exclusive_minimum = 0.0))]
    pub multiply: Option<f32>,
    /// Added to its score.
    pub add: Option<f32>,
}

/// What a history gets of which no item is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum FallbackKind {
    /// The most popular items.
    #[default]
    Popular,
    /// Nothing.
    Empty,
}

/// What is asked of a model. Filters apply before the best items are taken, so `n` items come back whenever that many are allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RecommendRequest {
    /// What was taken so far, oldest first.
    pub history: Vec<Step>,
    /// How many items to recommend (default 10).
    #[cfg_attr(test, schema(minimum = 0, maximum = 1000))]
    pub n: Option<u64>,
    /// Items that may not be recommended.
    pub exclude: Vec<AnyId>,
    /// The only items that may be recommended.
    pub only: Option<Vec<AnyId>>,
    /// A filter over the attributes of items, such as `category = tents and price < 100`.
    pub r#where: Option<String>,
    /// Items that are to come sooner or later than their scores say.
    #[serde(deserialize_with = "objects")]
    pub boost: Vec<ItemBoost>,
    /// Which items of the history may be recommended again (default none).
    pub allow_seen: AllowSeen,
    /// Whether to say how much of each score comes from which past item (default no).
    pub explain: bool,
    /// What a history gets of which no item is known (default the most popular items).
    pub fallback: FallbackKind,
    /// The model that answers (default: by the split, or the default model).
    pub model: Option<String>,
    /// Who asks: decides which model answers if requests are split. Nothing is kept of it.
    pub user_id: Option<AnyId>,
    /// The session: decides as `user_id` does, where that is missing.
    pub session_id: Option<AnyId>,
}

/// Many requests at once. Each is answered as if it had come alone, to the bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The requests.
    #[serde(deserialize_with = "objects")]
    pub requests: Vec<RecommendRequest>,
}

/// One item after the other, as a page of a shop asks.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct SessionQuery {
    /// The session. What it looked at before is remembered if there is consent.
    #[cfg_attr(test, param(min_length = 1, max_length = 200))]
    pub session_id: Option<String>,
    /// The item that is looked at.
    pub item_id: Option<String>,
    /// Whether the visitor agreed to be remembered (default no: then nothing is kept, and what was is forgotten).
    #[serde(default)]
    pub user_consent: bool,
    /// How many items to recommend (default 10).
    #[cfg_attr(test, param(minimum = 0, maximum = 1000))]
    pub n: Option<u64>,
    /// The model that answers.
    pub model: Option<String>,
}

/// Which model, and how much.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct SimilarQuery {
    /// The item.
    pub item_id: String,
    /// How many items (default 10).
    #[cfg_attr(test, param(minimum = 0, maximum = 1000))]
    pub n: Option<u64>,
    /// The model that answers.
    pub model: Option<String>,
}

/// Which model, and how much.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct PopularQuery {
    /// How many items (default 10).
    #[cfg_attr(test, param(minimum = 0, maximum = 1000))]
    pub n: Option<u64>,
    /// A filter over the attributes of items.
    pub r#where: Option<String>,
    /// The model that answers.
    pub model: Option<String>,
}

/// What was typed.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct CompletionQuery {
    /// The beginning of a title, of a word of it, or of an id; empty for the most popular.
    #[serde(default)]
    pub prefix: String,
    /// How many items (default 10).
    #[cfg_attr(test, param(minimum = 0, maximum = 1000))]
    pub n: Option<u64>,
    /// The model whose catalogue is searched.
    pub model: Option<String>,
}

/// Which model.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct ModelQuery {
    /// The model (default: the default model).
    pub model: Option<String>,
}
