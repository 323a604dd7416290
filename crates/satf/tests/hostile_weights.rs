//! Weights that are finite, and so large that sums of them are not: a model file may hold them under a checksum that fits. No score
//! leaves that is no number: either every number of an answer is finite, or there is an error that names the model and the item.
//! The same history gets the same answer alone and among others.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use satf::interactions::ItemIndex;
use satf::models::Registry;
use satf::prepare::Histories;
use satf::recommend::{Model, RecommendError, Request, Seen};
use serde_json::Value;

const CHECKSUM: std::ops::Range<usize> = 37..101;

const ITEMS: u32 = 9;

fn histories() -> Histories {
    let sequences: Vec<Vec<u32>> =
        (0..14u32).map(|user| (0..6).map(|at| (user + at * (1 + user % 2)) % ITEMS).collect()).collect();
    Histories::from_sequences(ITEMS as usize, &sequences)
}

/// The file with all floating-point values of one array, or of all, replaced.
fn with_values(bytes: &[u8], name: Option<&str>, value: impl Fn(usize) -> f64) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut changed = bytes.to_vec();
    for (tensor, entry) in header.as_object().unwrap() {
        if tensor == "__metadata__" || tensor == "basket_order" || name.is_some_and(|name| name != tensor) {
            continue;
        }
        let place = |at: usize| 8 + length + entry["data_offsets"][at].as_u64().unwrap() as usize;
        let values = &mut changed[place(0)..place(1)];
        match entry["dtype"].as_str().unwrap() {
            "F32" => values.chunks_exact_mut(4).enumerate().for_each(|(at, bytes)| {
                bytes.copy_from_slice(&(value(at) as f32).clamp(f32::MIN, f32::MAX).to_le_bytes());
            }),
            "F64" => values
                .chunks_exact_mut(8)
                .enumerate()
                .for_each(|(at, bytes)| bytes.copy_from_slice(&value(at).to_le_bytes())),
            _ => {}
        }
    }
    changed[CHECKSUM].fill(b'0');
    let checksum = blake3::hash(&changed).to_hex();
    changed[CHECKSUM].copy_from_slice(checksum.as_bytes());
    changed
}

fn float_arrays(bytes: &[u8]) -> Vec<String> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let is_float = |entry: &Value| matches!(entry["dtype"].as_str(), Some("F32" | "F64"));
    let arrays = header.as_object().unwrap().iter().filter(|(_, entry)| is_float(entry));
    arrays.map(|(name, _)| name.clone()).collect()
}

/// Asks a model everything; returns whether it ever refused.
fn ask(path: &Path, what: &str) -> bool {
    let Ok(model) = Model::load(path) else { return true };
    let queries: Vec<Vec<ItemIndex>> = (0..12u32)
        .map(|at| (0..=at % 5).map(|place| ItemIndex((at * 5 + place * 2) % ITEMS)).collect())
        .collect();
    let third = model.catalog().get(2).to_owned();
    let request = Request { seen: Seen::Allow, boosts: vec![(third, 3.5)], ..Request::new(9) };
    let mut has_refused = false;
    let mut check = |error: &RecommendError| {
        has_refused |= matches!(error, RecommendError::NotFinite { .. });
        let message = error.to_string();
        assert!(
            matches!(error, RecommendError::NotFinite { .. } | RecommendError::NoSimilarities { .. }),
            "{what}: {message}"
        );
        assert!(message.contains(&model.manifest().model), "{what}: {message}");
    };
    let alone: Vec<_> = queries.iter().map(|query| model.recommend(query, &request)).collect();
    for (query, outcome) in queries.iter().zip(&alone) {
        match outcome {
            Ok(answer) => assert!(answer.items.iter().all(|next| next.score.is_finite()), "{what}"),
            Err(error) => check(error),
        }
        for item in (0..ITEMS).map(ItemIndex) {
            match model.explain_indexed(query.into(), item) {
                Ok(explanation) => {
                    let shares = explanation.shares.iter().map(|share| share.share);
                    let mut numbers = shares.chain([explanation.base, f64::from(explanation.score)]);
                    assert!(numbers.all(f64::is_finite), "{what}");
                    assert!(outcome.is_ok(), "{what}: a score that was refused is explained");
                }
                Err(error) => check(&error),
            }
        }
    }
    // Together as alone: the first history that has no answer is why all of them have none.
    match model.recommend_batch(&queries, &request) {
        Ok(lists) => assert_eq!(lists, alone.into_iter().map(Result::unwrap).collect::<Vec<_>>(), "{what}"),
        Err(error) => {
            assert_eq!(Some(&error), alone.iter().find_map(|outcome| outcome.as_ref().err()), "{what}");
        }
    }
    for item in (0..ITEMS).map(ItemIndex) {
        match model.similar_items_indexed(item, 9) {
            Ok(similar) => assert!(similar.items.iter().all(|other| other.similarity.is_finite()), "{what}"),
            Err(error) => check(&error),
        }
    }
    has_refused
}

#[test]
fn no_score_that_is_no_number_leaves_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    let (most, least) = (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE));
    let values: [(&str, &dyn Fn(usize) -> f64); 5] = [
        ("the largest", &|_| most),
        ("the largest of either sign", &|at| if at % 2 == 0 { most } else { -most }),
        ("large and small", &|at| if at % 3 == 0 { most } else { least }),
        ("the largest in double precision", &|at| if at % 2 == 0 { f64::MAX } else { -f64::MAX }),
        ("roots", &|at| if at % 2 == 0 { 1e20 } else { -1e19 }),
    ];
    let mut refusals = 0;
    for entry in Registry::default().models() {
        let settings = match entry.name {
            "pure-svd" => "rank = 3\nrescaled = true",
            "la-satf" => "item_rank = 4\nuser_rank = 5\nmax_len = 5\nrescaled = true",
            _ => "",
        };
        let configured = entry.configure(&settings.parse().unwrap()).unwrap();
        Model::train(&configured, &histories(), &()).unwrap().save(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        assert!(
            with_values(&whole, Some("none of them"), |_| 0.0) == whole,
            "the checksum is not where it should be"
        );
        let arrays = float_arrays(&whole);
        for array in arrays.iter().map(|name| Some(name.as_str())).chain([None]) {
            for (label, value) in values {
                std::fs::write(&path, with_values(&whole, array, value)).unwrap();
                let what = format!("{}: {} in {}", entry.name, label, array.unwrap_or("all arrays"));
                refusals += usize::from(ask(&path, &what));
            }
        }
    }
    assert!(refusals > 10, "{refusals} refusals");
}
