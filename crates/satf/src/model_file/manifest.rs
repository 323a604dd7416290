//! What a model file says about itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::KeptEvents;
use crate::evaluate::Estimate;
use crate::interactions::{Id, Ids, UserIndex};
use crate::models::Quantization;
use crate::prepare::{Histories, Statistics, TiePolicy};
use crate::unique_keys;

/// What a model is, what it learned from, and how good it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The model's name, as in [`Registry::models`](crate::models::Registry::models).
    pub model: String,
    /// Every key of its configuration.
    #[serde(deserialize_with = "unique_keys::value")]
    pub configuration: serde_json::Value,
    /// Seed for everything random on the way from the log to the model.
    pub seed: Option<u64>,
    /// In how many bytes item factors are stored.
    pub quantization: Quantization,
    /// What training found by itself, by name ([`crate::models::Recommender::learned`]). Empty where nothing was, and in files
    /// from before it was kept.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "unique_keys::map")]
    pub learned: BTreeMap<String, f64>,
    /// What it learned from.
    pub dataset: Dataset,
    /// The events that it learned from, if the file holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<KeptEvents>,
    /// How good it was on events held back, if that was measured.
    pub validation: Option<Validation>,
    /// The version of satf that trained it.
    pub satf_version: String,
}

/// What a model learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Users.
    pub users: usize,
    /// Items.
    pub items: usize,
    /// Rows.
    pub rows: usize,
    /// Hash of the histories, ids and times included: equal for equal content, in whatever file it came.
    pub content_hash: String,
    /// How equal times were ordered, if the caller said.
    pub ties: Option<TiePolicy>,
    /// The newest part of the log that was not learned from.
    pub left_out: Option<String>,
    /// Size and shape of the log, if the caller measured them.
    pub statistics: Option<Statistics>,
}

impl Dataset {
    /// What the histories themselves say.
    pub fn of(histories: &Histories) -> Self {
        Dataset {
            users: histories.num_users(),
            items: histories.num_items(),
            rows: histories.num_rows(),
            content_hash: content_hash(histories),
            ties: None,
            left_out: None,
            statistics: None,
        }
    }
}

/// How good a model of the same configuration was that did not see the newest part of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// How much of the log's end was held back.
    pub held_back: String,
    /// Events predicted.
    pub events: usize,
    /// Every metric.
    #[serde(deserialize_with = "unique_keys::map")]
    pub metrics: BTreeMap<String, Estimate>,
    /// The metric after every iteration, for models that learn iteratively.
    pub curve: Vec<Estimate>,
    /// The iteration that was best, counted from 1: as many the model was trained for.
    pub best_iteration: Option<usize>,
}

/// The BLAKE3 hash of histories: ids, items and times of every user.
pub fn content_hash(histories: &Histories) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"satf histories 1");
    for ids in [histories.users(), histories.catalog()] {
        hash_ids(&mut hasher, ids);
    }
    let mut bytes = Vec::new();
    for user in (0..histories.num_users() as u32).map(UserIndex) {
        let (items, times) = (histories.items_of(user), histories.times_of(user));
        bytes.clear();
        bytes.extend_from_slice(&(items.len() as u64).to_le_bytes());
        for (item, time) in items.iter().zip(times) {
            bytes.extend_from_slice(&item.0.to_le_bytes());
            bytes.extend_from_slice(&time.0.to_le_bytes());
        }
        hasher.update(&bytes);
    }
    hasher.finalize().to_hex().to_string()
}

fn hash_ids(hasher: &mut blake3::Hasher, ids: &Ids) {
    hasher.update(&(ids.len() as u64).to_le_bytes());
    for id in ids.iter() {
        match id {
            Id::Integer(id) => hasher.update(&id.to_le_bytes()),
            Id::Text(id) => hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_histories_and_no_others_have_equal_hashes() {
        let hash = |sequences: &[Vec<u32>]| content_hash(&Histories::from_sequences(4, sequences));
        let base = hash(&[vec![0, 1], vec![2, 3]]);
        assert_eq!(base, hash(&[vec![0, 1], vec![2, 3]]));
        assert_ne!(base, hash(&[vec![1, 0], vec![2, 3]]));
        assert_ne!(base, hash(&[vec![0, 1, 2], vec![3]]));
    }
}
