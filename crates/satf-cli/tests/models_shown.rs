//! What is shown of a model, through the real binary: what is alike, what it learned by itself, what it holds about users, and numbers
//! that are numbers.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::path::{Path, PathBuf};

use satf_binary::{satf, shop_log};
use serde_json::Value;

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&satf(&[arguments, &["--json"]].concat()).succeeds()).unwrap()
}

/// A model file that a satf wrote which kept no learned values.
fn old_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../satf/tests/files/version_1").join(name)
}

const LEARNED: [&str; 6] =
    ["distance_decay", "together", "target_power", "recency_decay", "basket_order", "trend"];

#[test]
fn what_is_alike_is_told_apart_from_what_comes_next() {
    let (folder, log) = shop_log(1500);
    let model = path(folder.path(), "shop.satf");
    satf(&["train", &log, "-o", &model]).succeeds();
    let items = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap();
        list.iter().map(|entry| entry["item_id"].as_str().unwrap().to_owned()).collect()
    };
    let alike = json(&["similar", &model, "laptop", "-n", "5"]);
    let after = json(&["recommend", &model, "--history", "laptop", "-n", "5"]);
    let (alike_items, after_items) = (items(&alike["similar"]), items(&after["recommendations"]));
    assert_ne!(alike_items, after_items);
    // Other devices, and not the sleeve that goes with it, come first.
    let devices = ["smartphone", "games console", "television", "tablet", "smart speaker", "foldable phone"];
    assert!(devices.contains(&&*alike_items[0]), "{alike_items:?}");
    assert!(alike_items.iter().filter(|item| devices.contains(&&***item)).count() >= 3, "{alike_items:?}");
    assert!(["laptop sleeve", "laptop backpack"].contains(&&*after_items[0]), "{after_items:?}");
    assert!(alike["measure"].as_str().unwrap().contains("before and after"), "{alike}");
    let shown = satf(&["similar", &model, "laptop"]).succeeds();
    assert!(shown.starts_with("like laptop, by the cosine of"), "{shown}");
    let help = satf(&["similar", "--help"]).succeeds();
    assert!(help.contains("what comes after it") && help.contains("same neighbours"), "{help}");

    for other in ["mp", "random"] {
        satf(&["train", &log, "--model", other, "-o", &model]).succeeds();
        let refused = satf(&["similar", &model, "laptop"]);
        assert!(refused.code == 1 && refused.stdout.is_empty(), "{}", refused.stdout);
        assert!(refused.stderr.contains("has no notion of similar items"), "{}", refused.stderr);
    }
}

#[test]
fn what_the_log_told_is_shown() {
    let (folder, log) = shop_log(1500);
    let model = path(folder.path(), "shop.satf");
    let text = satf(&["train", &log, "-o", &model]).succeeds();
    let line =
        text.lines().find(|line| line.starts_with("from the log: ")).unwrap_or_else(|| panic!("{text}"));
    let inspected = satf(&["inspect", &model]).succeeds();
    let report = json(&["inspect", &model]);
    for key in LEARNED {
        assert!(line.contains(key), "{key}: {line}");
        let value = report["manifest"]["learned"][key].as_f64().unwrap();
        assert_eq!(report["learned"][key], report["manifest"]["learned"][key]);
        let row = inspected
            .lines()
            .find(|row| row.split_whitespace().next() == Some(key))
            .unwrap_or_else(|| panic!("{inspected}"));
        assert!(row.contains(&format!("{value} (learned)")), "{row}");
    }
    // It is what the model is made with.
    let weights = report["lag_weights"].as_array().unwrap();
    let decay = -weights[1].as_f64().unwrap().log2();
    assert!((decay - report["learned"]["recency_decay"].as_f64().unwrap()).abs() < 1e-9);
    assert!(report["learned"]["rehearsed_events"].as_f64().unwrap() >= 200.0);
    assert!(report["learned"]["agreement_neighbours"].as_f64().unwrap() > 0.6);

    // What was given was not learned.
    let text =
        satf(&["train", &log, "-o", &model, "--set", "trend=0.1", "--set", "recency_decay=0.6"]).succeeds();
    assert!(!text.contains("recency_decay") && text.contains("distance_decay"), "{text}");
    let report = json(&["inspect", &model]);
    assert!(report["learned"].get("trend").is_none(), "{report}");
    assert_eq!(report["manifest"]["configuration"]["trend"], 0.1);

    // Ranks and iterations of the others.
    let text = satf(&["train", &log, "-o", &model, "--model", "ga-satf"]).succeeds();
    assert!(text.contains("item_rank") && text.contains("user_rank"), "{text}");
    let report = json(&["inspect", &model]);
    assert_eq!(
        report["learned"]["num_iters"].as_f64(),
        report["manifest"]["configuration"]["num_iters"].as_f64()
    );
    let text = satf(&["train", &log, "-o", &model, "--model", "pure-svd", "--set", "rank=20"]).succeeds();
    assert!(!text.contains("rank"), "{text}");
}

#[test]
fn a_log_too_small_to_tell_and_files_from_before_are_said_to_be() {
    let (folder, log) = shop_log(20);
    let model = path(folder.path(), "shop.satf");
    let text = satf(&["train", &log, "-o", &model]).succeeds();
    assert!(
        text.contains("the log is too small to learn from: ") && text.contains("recency_decay 1"),
        "{text}"
    );

    let inspected = satf(&["inspect", &model]).succeeds();
    for key in LEARNED {
        let row = inspected.lines().find(|row| row.split_whitespace().next() == Some(key)).unwrap();
        assert!(row.contains("(default)") && !row.contains("learned"), "{inspected}");
    }

    let old = old_file("d-satf.none.satf");
    let old = old.to_str().unwrap();
    let report = json(&["inspect", old]);
    assert!(report["manifest"].get("learned").is_none(), "{report}");
    // The arrays still tell these; the others are gone.
    assert_eq!(report["learned"]["recency_decay"], 1.0);
    assert_eq!(report["learned"]["basket_order"], 0.0);
    assert_eq!(report["learned"]["trend"], Value::Null);
    let inspected = satf(&["inspect", old]).succeeds();
    let row = |key: &str| {
        inspected.lines().find(|row| row.split_whitespace().next() == Some(key)).unwrap().to_owned()
    };
    assert!(row("recency_decay").contains("1 (learned)"), "{inspected}");
    assert!(row("trend").contains("did not keep the value"), "{inspected}");
}

#[test]
fn files_that_hold_histories_are_told_apart_from_those_that_hold_sums() {
    let (folder, log) = shop_log(300);
    let model = path(folder.path(), "shop.satf");
    let trained = satf(&["train", &log, "-o", &model, "--model", "vmis-knn"]);
    assert!(trained.stderr.contains("the items of 300 whole histories"), "{}", trained.stderr);
    assert!(trained.stderr.contains("guard the file like the log"), "{}", trained.stderr);
    trained.succeeds();
    let report = json(&["inspect", &model]);
    assert_eq!(report["user_data"], serde_json::json!({ "kind": "histories", "histories": 300 }));
    let inspected = satf(&["inspect", &model]).succeeds();
    assert!(inspected.contains("the items of 300 whole histories, without user ids"), "{inspected}");

    for other in ["d-satf", "mp", "transitions", "pure-svd"] {
        let trained = satf(&["train", &log, "-o", &model, "--model", other]);
        assert!(!trained.stderr.contains("histories"), "{}", trained.stderr);
        trained.succeeds();
        let report = json(&["inspect", &model]);
        assert_eq!(report["user_data"], serde_json::json!({ "kind": "none" }));
        assert!(satf(&["inspect", &model]).succeeds().contains("nothing: sums over all users"));
    }
}

#[test]
fn no_score_is_null() {
    let (folder, log) = shop_log(300);
    let model = path(folder.path(), "shop.satf");
    for name in ["d-satf", "la-satf", "ease", "mp"] {
        satf(&["train", &log, "-o", &model, "--model", name]).succeeds();
        let mut bytes = fs::read(&model).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        for (_, entry) in header.as_object().unwrap().iter().filter(|(_, entry)| entry["dtype"] == "F32") {
            let place = |at: usize| 8 + length + entry["data_offsets"][at].as_u64().unwrap() as usize;
            let range = place(0)..place(1);
            bytes[range].chunks_exact_mut(4).for_each(|value| value.copy_from_slice(&f32::MAX.to_le_bytes()));
        }
        bytes[37..101].fill(b'0');
        let checksum = blake3::hash(&bytes).to_hex();
        bytes[37..101].copy_from_slice(checksum.as_bytes());
        fs::write(&model, bytes).unwrap();

        let histories = path(folder.path(), "histories.jsonl");
        fs::write(&histories, "{\"user_id\": 1, \"history\": [\"tent\", \"laptop\"]}\n").unwrap();
        for arguments in [
            vec!["recommend", &model, "--history", "tent,laptop", "--json"],
            vec!["recommend", &model, "--history", "tent,laptop", "--json", "--explain"],
            vec!["recommend", &model, "--histories", &histories],
        ] {
            let outcome = satf(&arguments);
            for no_number in ["\"score\": null", "\"score\":null", "\"share\": null", "inf", "NaN"] {
                assert!(!outcome.stdout.contains(no_number), "{name}: {}", outcome.stdout);
            }
            // Popularity has nothing to add up: its counts are large, and numbers.
            if name != "mp" {
                assert_eq!(outcome.code, 1, "{name}: {}", outcome.stdout);
                assert!(
                    outcome.stderr.contains(name) && outcome.stderr.contains("too large"),
                    "{}",
                    outcome.stderr
                );
            }
        }
    }
}

#[test]
fn ranks_that_nobody_asked_for_are_lowered_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let (log, model) = (path(folder.path(), "log.csv"), path(folder.path(), "m.satf"));
    // All users do the same: there is but one direction to learn.
    let rows: String = (0..30)
        .flat_map(|user| (0..12).map(move |item| format!("{user},{item},{}\n", 100 * user + item)))
        .collect();
    fs::write(&log, format!("user_id,item_id,timestamp\n{rows}")).unwrap();
    for (name, rank) in [
        ("pure-svd", "rank"),
        ("d-satf", "rank"),
        ("ga-satf", "user_rank"),
        ("ga-satf", "item_rank"),
        ("la-satf", "item_rank"),
    ] {
        let train = ["train", &log, "--model", name, "-o", &model];
        let usual = satf(&train);
        assert!(!usual.stderr.contains("rank"), "{name}: {}", usual.stderr);
        usual.succeeds();
        let asked = satf(&[&train[..], &["--set", &format!("{rank}=9")]].concat());
        let warning = format!("warning: {name}: {rank} = 9 is more than this log has; it is lowered to ");
        assert!(asked.stderr.contains(&warning), "{name}: {}", asked.stderr);
        assert!(!asked.stderr.contains("asked="), "{}", asked.stderr);
        asked.succeeds();
    }
    // No two items are taken at once here: nothing is learned of such pairs.
    satf(&["train", &log, "-o", &model]).succeeds();
    let learned = json(&["inspect", &model])["learned"].clone();
    assert!(learned.get("agreement_neighbours").is_some(), "{learned}");
    assert!(learned.get("agreement_at_once").is_none(), "{learned}");
}
