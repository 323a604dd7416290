//! A bound on the memory of training changes where pairs are kept, and nothing else: not a bit of the model, on any number of threads.

#![allow(clippy::unwrap_used)]

use std::fs;

use proptest::prelude::*;
use satf::generate::{ShapeOptions, like};
use satf::models::ModelError;
use satf::recommend::FitError;
use satf::{FitOptions, Interactions, Model, Request};
use serde_json::Value;

/// The keys that a rehearsal would learn, so that nothing but the log has to be in memory.
fn given() -> FitOptions {
    let keys = ["distance_decay", "together", "target_power", "recency_decay", "basket_order", "trend"];
    keys.into_iter().fold(FitOptions::default().set("balance", 0.0), |options, key| options.set(key, 0.5))
}

fn with_bound(options: &FitOptions, bytes: u64) -> FitOptions {
    options.clone().set("memory_bytes", i64::try_from(bytes).unwrap())
}

/// The least bound that is not refused.
fn least(log: &Interactions, options: &FitOptions) -> u64 {
    let error = Model::fit_with(log, &with_bound(options, 1), &()).err().unwrap();
    let FitError::Training(ModelError::Memory { needed, .. }) = error else { panic!("{error}") };
    assert!(error.to_string().contains("memory_bytes"), "{error}");
    needed
}

/// The file of a model: its header without the bound and the checksum, which differ with it, and all arrays.
fn file(model: &Model) -> (Value, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    model.save(&path).unwrap();
    let bytes = fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let metadata = header["__metadata__"].as_object_mut().unwrap();
    metadata.remove("checksum").unwrap();
    let mut manifest: Value = serde_json::from_str(metadata["manifest"].as_str().unwrap()).unwrap();
    manifest["configuration"].as_object_mut().unwrap().remove("memory_bytes");
    metadata["manifest"] = manifest;
    (header, bytes[8 + length..].to_vec())
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn models_are_the_same_with_and_without_spill(
        events in prop::collection::vec((0u8..9, 0u8..40, 0i64..30), 1..300),
        row_limit in prop::sample::select(vec![1i64, 3, 100]),
    ) {
        let log = Interactions::from_events(
            events.iter().map(|&(user, item, day)| (i64::from(user), i64::from(item), day * 86_400)),
        ).unwrap();
        let options = given().set("row_limit", row_limit);
        let expected = file(&Model::fit_with(&log, &options, &()).unwrap());
        for threads in [1, 2, 3] {
            let spilled = on_threads(threads, || {
                let tight = with_bound(&options, least(&log, &options));
                file(&Model::fit_with(&log, &tight, &()).unwrap())
            });
            prop_assert!(spilled == expected, "{} threads", threads);
        }
    }
}

/// A log with more chunks of items than threads, with and without everything learned.
#[test]
fn a_larger_log_is_the_same_within_any_bound() {
    let log = like(&ShapeOptions { users: 3000, items: 1000, rows: 30_000, seed: 5 }).unwrap();
    for options in
        [given(), FitOptions::default().set("balance", 0.0), FitOptions::default().set("balance", 0.3)]
    {
        let free = Model::fit_with(&log, &options, &()).unwrap();
        let expected = file(&free);
        let request = Request::new(10);
        for threads in [1, 2, 3] {
            on_threads(threads, || {
                let least = least(&log, &options);
                assert!(Model::fit_with(&log, &with_bound(&options, least - 1), &()).is_err());
                for bound in [least, least + 8 * 100_000, 1 << 40] {
                    let model = Model::fit_with(&log, &with_bound(&options, bound), &()).unwrap();
                    assert!(file(&model) == expected, "{threads} threads, {bound} bytes");
                    // What is in temporary files is used like any other model.
                    let history = [3i64, 500, 77];
                    let [one, other] = [&model, &free]
                        .map(|model| model.recommend(&model.history(history), &request).unwrap());
                    assert_eq!(one, other);
                }
            });
        }
    }
}
