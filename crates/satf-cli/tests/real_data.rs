//! The real datasets, where they lie beside the project: exact counts and the protocol's event counts.
//!
//! They are not part of the project. Without them these tests pass without checking anything, and say so.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod satf_binary;

use std::path::PathBuf;

use satf_binary::satf;
use serde_json::Value;

fn dataset(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if path.exists() {
        return Some(path.to_str().unwrap().to_owned());
    }
    eprintln!("{} is not there: nothing is checked", path.display());
    None
}

#[test]
fn statistics_are_those_of_the_paper() {
    let expected = [
        ("ml-1m.ratings.dat.gz", 6_040, 3_706, 1_000_209),
        ("amz-beauty.csv.gz", 22_363, 12_101, 198_502),
        ("amz-toys.csv.gz", 19_412, 11_924, 167_597),
        ("steam-100k-sample.csv.gz", 10_360, 3_592, 124_150),
        ("ml-100k.csv.gz", 943, 1_682, 100_000),
    ];
    for (name, users, items, rows) in expected {
        let Some(path) = dataset(name) else { continue };
        let stats: Value = serde_json::from_str(&satf(&["stats", &path, "--json"]).succeeds()).unwrap();
        assert_eq!(stats["users"], users, "{name}");
        assert_eq!(stats["items"], items, "{name}");
        assert_eq!(stats["rows"], rows, "{name}");
        assert_eq!(stats["duplicates"], 0, "{name}");
        let history = (stats["average_history"].as_f64().unwrap(), stats["median_history"].as_f64().unwrap());
        match name {
            "ml-1m.ratings.dat.gz" => {
                assert!((history.0 - 165.6).abs() < 0.05 && (history.1 - 96.0).abs() < 1e-9);
            }
            "amz-beauty.csv.gz" => assert!((history.0 - 8.9).abs() < 0.05 && (history.1 - 6.0).abs() < 1e-9),
            _ => {}
        }
    }
}

#[test]
fn beauty_has_the_events_and_the_scores_of_the_reference() {
    let Some(path) = dataset("amz-beauty.csv.gz") else { return };
    let run = |model: &str, ties: &str| -> Value {
        let arguments = [
            "evaluate",
            &path,
            "--model",
            model,
            "--valid",
            "3weeks",
            "--test",
            "3weeks",
            "--max-len",
            "50",
            "--ties",
            ties,
            "--json",
        ];
        serde_json::from_str(&satf(&arguments).succeeds()).unwrap()
    };
    let popular = run("mp", "file");
    assert_eq!((&popular["events"]["known"], &popular["events"]["scored"]), (&5125.into(), &4964.into()));
    let value = |run: &Value, metric: &str| run["metrics"][metric]["value"].as_f64().unwrap();
    for (metric, reference) in [("NDCG@10", 0.00583), ("HR@10", 0.01168), ("COV@10", 0.00132)] {
        assert!((value(&popular, metric) - reference).abs() < 1e-5, "{metric} {}", value(&popular, metric));
    }
    // Rows of one day stand in catalogue order in this file, and an order-aware model learns it.
    let (file, shuffled) = (run("transitions", "file"), run("transitions", "shuffle"));
    assert!((value(&file, "NDCG@10") - 0.083).abs() < 0.003, "{}", value(&file, "NDCG@10"));
    assert!(value(&shuffled, "NDCG@10") < 0.07, "{}", value(&shuffled, "NDCG@10"));
}
