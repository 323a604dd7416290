//! The real datasets, where they lie beside the project: exact counts and the protocol's event counts.
//!
//! They are not part of the project. Without them these tests pass without checking anything, and say so.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod satf_binary;

use std::path::PathBuf;

use satf::prepare::{Split, SplitScheme, TiePolicy, Timeline};
use satf::ranking::rank_unseen;
use satf::recommend::Model;
use satf_binary::{only_run, satf};
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
        only_run(&satf(&arguments).succeeds())
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

#[test]
fn train_and_recommend_give_the_lists_that_evaluate_scored() {
    let Some(path) = dataset("amz-beauty.csv.gz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, histories, next, scores) =
        (file("beauty.satf"), file("histories.jsonl"), file("next.jsonl"), file("scores.csv"));
    satf(&["evaluate", &path, "--preset", "la-satf/amz-b", "--per-event", &scores, "-q"]).succeeds();
    satf(&["train", &path, "--preset", "la-satf/amz-b", "--leave-out", "3weeks", "-o", &model, "-q"])
        .succeeds();

    // The histories the evaluation predicts from, and the lists the library ranks for them.
    let (log, _) = satf::data::read_log(&[path.into()], &satf::data::ReadOptions::default(), &()).unwrap();
    let offset = "3weeks".parse().unwrap();
    let scheme = SplitScheme::Calendar { valid: offset, test: offset };
    let partition = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).unwrap().test().unwrap();
    let catalog = partition.train.catalog();
    let mut lines = String::new();
    for (at, event) in partition.holdout.events.iter().enumerate() {
        let items: Vec<String> =
            partition.holdout.history(event).iter().map(|item| catalog.get(item.get()).to_string()).collect();
        lines.push_str(&format!("{}\n", serde_json::json!({ "user_id": at, "history": items })));
    }
    std::fs::write(&histories, lines).unwrap();
    satf(&["recommend", &model, "--histories", &histories, "-o", &next, "-q"]).succeeds();
    let mut lists = vec![Vec::new(); partition.holdout.events.len()];
    for line in std::fs::read_to_string(&next).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let score: f32 = row["score"].to_string().parse().unwrap();
        let item = row["item_id"].as_str().map_or_else(|| row["item_id"].to_string(), str::to_owned);
        lists[row["user_id"].as_u64().unwrap() as usize].push((item, score.to_bits()));
    }

    // Every target stands where the evaluation found it.
    let scores = std::fs::read_to_string(&scores).unwrap();
    let mut scores = scores.lines();
    let rank_at = scores.next().unwrap().split(',').position(|name| name == "rank").unwrap();
    let mut hits = 0;
    for ((line, event), list) in scores.zip(&partition.holdout.events).zip(&lists) {
        let expected = line.split(',').nth(rank_at).unwrap();
        let target = catalog.get(event.target.get()).to_string();
        let rank = list.iter().position(|(item, _)| *item == target).map(|rank| (rank + 1).to_string());
        assert_eq!(rank.clone().unwrap_or_default(), expected, "event of {target}");
        hits += usize::from(rank.is_some());
    }
    assert!(hits > 300, "{hits} hits");

    // And every list is the one that scoring and ranking as the evaluation does gives, score by score.
    let loaded = Model::load(&model).unwrap();
    let mut scores = vec![0f32; catalog.len()];
    for (event, list) in partition.holdout.events.iter().zip(&lists) {
        let history = partition.holdout.history(event);
        loaded.recommender().score_batch(&[history], &mut scores);
        let ranked: Vec<(String, u32)> = rank_unseen(&mut scores, &history, 10)
            .iter()
            .map(|scored| (catalog.get(scored.item.get()).to_string(), scored.score.to_bits()))
            .collect();
        assert_eq!(&ranked, list);
    }
}
