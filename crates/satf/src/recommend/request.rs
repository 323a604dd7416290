//! What is asked of a model, in the caller's ids.

use serde::{Deserialize, Serialize};

use super::Filters;
use crate::interactions::{Ids, ItemIndex, OwnedId};

/// Whether items of the history itself may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Seen {
    /// They may not.
    #[default]
    Exclude,
    /// They may.
    Allow,
}

/// What to recommend when no item of a history is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Nothing.
    #[default]
    Empty,
    /// The most popular items.
    Popular,
}

/// What to recommend, in the caller's ids. Filters apply before the best items are chosen, so [`Request::n`] items come back whenever
/// that many are allowed. The default asks for ten items that the history does not hold.
///
/// [`Model::prepare`](super::Model::prepare) makes a request ready for any number of histories. Ids that a model does not know are no
/// error: they are left out, and [`Prepared::unknown`](super::Prepared::unknown) names them.
///
/// ```
/// use satf::recommend::Request;
///
/// let request: Request = serde_json::from_str(r#"{"n": 5, "exclude": ["tent", 17], "factors": [["mug", 1.5]]}"#)?;
/// assert_eq!(request.exclude.len(), 2);
/// // Misspelled fields are refused.
/// assert!(serde_json::from_str::<Request>(r#"{"exlude": []}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// How many items a history gets at most (default 10).
    pub n: usize,
    /// Items that may not be recommended (default none).
    pub exclude: Vec<OwnedId>,
    /// The only items that may be recommended (default all). An empty list allows none.
    pub only: Option<Vec<OwnedId>>,
    /// Whether items of the history may be recommended (default `exclude`: they may not).
    pub seen: Seen,
    /// Items that may be recommended again even if those of the history may not: what is used up (default none).
    pub repeatable: Vec<OwnedId>,
    /// How many times as good these items are: finite numbers above 0 (default none). A score above 0 is multiplied, one below 0 is
    /// divided, so that a factor above 1 favours an item whatever its score.
    pub factors: Vec<(OwnedId, f32)>,
    /// Added to the scores of these items, after their factors: finite numbers, in units of the scores (default none).
    pub boosts: Vec<(OwnedId, f32)>,
    /// What to recommend when no item of a history is known (default `empty`: nothing).
    pub fallback: Fallback,
    /// Whether every score is explained (default no).
    pub explain: bool,
}

impl Default for Request {
    fn default() -> Self {
        Request {
            n: 10,
            exclude: Vec::new(),
            only: None,
            seen: Seen::Exclude,
            repeatable: Vec::new(),
            factors: Vec::new(),
            boosts: Vec::new(),
            fallback: Fallback::Empty,
            explain: false,
        }
    }
}

/// A list of a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// [`Request::exclude`].
    Exclude,
    /// [`Request::only`].
    Only,
    /// [`Request::repeatable`].
    Repeatable,
    /// [`Request::factors`].
    Factors,
    /// [`Request::boosts`].
    Boosts,
}

/// An id of a [`Request`] that the model does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The list it stands in.
    pub place: Place,
    /// The id.
    #[serde(rename = "item_id")]
    pub item: OwnedId,
}

impl Request {
    /// A request for `n` items per history.
    pub fn new(n: usize) -> Self {
        Request { n, ..Request::default() }
    }

    /// The lists in the indices of a catalogue, and the ids that it does not know, list after list.
    pub fn filters(&self, catalog: &Ids) -> (Filters, Vec<Unknown>) {
        let mut unknown = Vec::new();
        let mut find = |place: Place, id: &OwnedId| -> Option<ItemIndex> {
            let found = catalog.find(id.as_id()).map(|index| ItemIndex(index as u32));
            if found.is_none() {
                unknown.push(Unknown { place, item: id.clone() });
            }
            found
        };
        let mut all = |place, ids: &[OwnedId]| -> Vec<ItemIndex> {
            ids.iter().filter_map(|id| find(place, id)).collect()
        };
        let exclude = all(Place::Exclude, &self.exclude);
        let only = self.only.as_ref().map(|only| all(Place::Only, only));
        let repeatable = all(Place::Repeatable, &self.repeatable);
        let mut valued = |place, pairs: &[(OwnedId, f32)]| -> Vec<(ItemIndex, f32)> {
            pairs.iter().filter_map(|(id, value)| Some((find(place, id)?, *value))).collect()
        };
        let factors = valued(Place::Factors, &self.factors);
        let boosts = valued(Place::Boosts, &self.boosts);
        (Filters { exclude, only, seen: self.seen, repeatable, factors, boosts }, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_ids_are_named_with_their_list_and_the_others_are_found() {
        let catalog = Ids::Texts(["7", "lamp", "mug"].map(Into::into).into());
        let text = |id: &str| OwnedId::Text(id.into());
        let request = Request {
            exclude: vec![text("tent"), OwnedId::Integer(7)],
            only: Some(vec![text("mug"), text("lamp"), text("rope")]),
            factors: vec![(text("mug"), 2.0), (text("tent"), 3.0)],
            ..Request::default()
        };
        let (filters, unknown) = request.filters(&catalog);
        assert_eq!(filters.exclude, [ItemIndex(0)]);
        assert_eq!(filters.only, Some(vec![ItemIndex(2), ItemIndex(1)]));
        assert_eq!(filters.factors, [(ItemIndex(2), 2.0)]);
        let named: Vec<(Place, &OwnedId)> =
            unknown.iter().map(|unknown| (unknown.place, &unknown.item)).collect();
        let (tent, rope) = (text("tent"), text("rope"));
        assert_eq!(named, [(Place::Exclude, &tent), (Place::Only, &rope), (Place::Factors, &tent)]);
    }

    #[test]
    fn a_request_reads_as_it_is_written() {
        let request: Request = serde_json::from_str("{}").unwrap();
        assert_eq!(request, Request::default());
        let text = r#"{"n":3,"exclude":["a",-5],"only":["b"],"seen":"allow","repeatable":["c"],
            "factors":[["d",1.5]],"boosts":[[9,-0.25]],"fallback":"popular","explain":true}"#;
        let request: Request = serde_json::from_str(text).unwrap();
        let again: Request = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!(request, again);
        assert_eq!(request.boosts, [(OwnedId::Integer(9), -0.25)]);
        assert_eq!((request.seen, request.fallback, request.explain), (Seen::Allow, Fallback::Popular, true));
        for wrong in [r#"{"count": 3}"#, r#"{"n": -1}"#, r#"{"seen": "never"}"#, r#"{"exclude": [1.5]}"#] {
            assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
        }
    }
}
