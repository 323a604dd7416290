//! What a history gets: a list, or a fallback, and why.

use serde::{Deserialize, Serialize};

use crate::interactions::{Ids, ItemIndex, OwnedId};

/// The recommendations for one history. Items go by the caller's ids; `Answer<ItemIndex>` is the same in the indices of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer<I = OwnedId> {
    /// Items, best first.
    pub items: Vec<Recommendation<I>>,
    /// Whether no item of the history is known and the list does not follow from it.
    pub is_fallback: bool,
    /// How many items of the history the model does not know.
    pub unknown_items: usize,
}

/// An item that is recommended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation<I = OwnedId> {
    /// The item.
    #[serde(rename = "item_id")]
    pub item: I,
    /// Its score, with boosts.
    pub score: f32,
    /// Where the score comes from, if that was asked for.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation<I>>,
}

/// Where a score comes from: shares, base and boost sum to it, up to the rounding of single precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation<I = OwnedId> {
    /// The score.
    pub score: f32,
    /// What every item of the history adds to it, oldest first.
    pub shares: Vec<Share<I>>,
    /// What does not come from the history.
    pub base: f64,
    /// What factors and boosts of the request made of it; 0 without them.
    pub boost: f64,
}

/// What an item of a history adds to a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share<I = OwnedId> {
    /// The item.
    #[serde(rename = "item_id")]
    pub item: I,
    /// What it adds.
    pub share: f64,
}

/// Items like another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimilarItems<I = OwnedId> {
    /// What was measured, in a few words.
    pub measure: &'static str,
    /// The items with their similarities, which are above 0; the most similar first.
    pub items: Vec<SimilarItem<I>>,
}

/// An item like another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarItem<I = OwnedId> {
    /// The item.
    #[serde(rename = "item_id")]
    pub item: I,
    /// How similar it is; above 0.
    pub similarity: f32,
}

fn id(catalog: &Ids, item: ItemIndex) -> OwnedId {
    catalog.get(item.get()).to_owned()
}

impl Answer<ItemIndex> {
    /// The same in the ids of the catalogue.
    pub fn with_ids(self, catalog: &Ids) -> Answer {
        Answer {
            items: self.items.into_iter().map(|item| item.with_id(catalog)).collect(),
            is_fallback: self.is_fallback,
            unknown_items: self.unknown_items,
        }
    }
}

impl Recommendation<ItemIndex> {
    /// The same in the ids of the catalogue.
    pub fn with_id(self, catalog: &Ids) -> Recommendation {
        Recommendation {
            item: id(catalog, self.item),
            score: self.score,
            explanation: self.explanation.map(|explanation| explanation.with_ids(catalog)),
        }
    }
}

impl Explanation<ItemIndex> {
    /// The same in the ids of the catalogue.
    pub fn with_ids(self, catalog: &Ids) -> Explanation {
        let share = |share: Share<ItemIndex>| Share { item: id(catalog, share.item), share: share.share };
        Explanation {
            score: self.score,
            shares: self.shares.into_iter().map(share).collect(),
            base: self.base,
            boost: self.boost,
        }
    }
}

impl SimilarItems<ItemIndex> {
    /// The same in the ids of the catalogue.
    pub fn with_ids(self, catalog: &Ids) -> SimilarItems {
        let item = |similar: SimilarItem<ItemIndex>| SimilarItem {
            item: id(catalog, similar.item),
            similarity: similar.similarity,
        };
        SimilarItems { measure: self.measure, items: self.items.into_iter().map(item).collect() }
    }
}
