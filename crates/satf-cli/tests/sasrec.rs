//! The neural baseline through the real binary: found by name, trained, stored, stopped and taken up again.

#![cfg(feature = "sasrec")]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;
use satf_binary::{satf, shop_log, without_timings};
use serde_json::Value;

/// A network small enough for a test.
const SMALL: [&str; 8] =
    ["--set", "hidden=16", "--set", "epochs=3", "--set", "batch_size=64", "--set", "max_len=10"];

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn it_is_listed_with_its_keys_and_presets() {
    let listed = satf(&["models"]).succeeds();
    for part in ["sasrec: ", "loss = \"ce\"", "epochs = 20", "sasrec/amz-b"] {
        assert!(listed.contains(part), "{listed}");
    }
    let refused =
        satf(&["evaluate", "none.csv", "--model", "sasrec", "--set", "heads=3", "--set", "dropout=2.0"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("heads = 3") && refused.stderr.contains("dropout = 2"),
        "{}",
        refused.stderr
    );
}

#[test]
fn it_is_trained_stopped_early_stored_and_recommends() {
    let (folder, log) = shop_log(500);
    let model = path(folder.path(), "shop.satf");
    let mut arguments =
        vec!["train", &log, "--model", "sasrec", "-o", &model, "--validate", "1month", "--json"];
    arguments.extend(SMALL);
    let trained: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
    let manifest = &trained["manifest"];
    assert_eq!(manifest["configuration"]["epochs"], manifest["validation"]["best_iteration"]);
    assert_eq!(manifest["validation"]["curve"].as_array().unwrap().len(), 3);

    let recommend = ["recommend", &model, "--history", "laptop,laptop sleeve", "-n", "3", "--json"];
    let list: Value = serde_json::from_str(&satf(&recommend).succeeds()).unwrap();
    assert_eq!(list["recommendations"].as_array().unwrap().len(), 3);
    let explained = satf(&["recommend", &model, "--history", "laptop", "--explain"]);
    assert_eq!(explained.code, 1);
    assert!(explained.stderr.contains("sasrec does not explain its scores"), "{}", explained.stderr);
    assert!(satf(&["inspect", &model]).succeeds().contains("item_embeddings"));
    assert!(!satf(&["similar", &model, "laptop"]).succeeds().is_empty());
}

#[test]
fn an_evaluation_that_was_killed_goes_on_and_ends_the_same() {
    let (folder, log) = shop_log(500);
    let runs = path(folder.path(), "runs");
    let mut arguments = vec![
        "evaluate",
        &log,
        "--model",
        "sasrec",
        "--valid",
        "1month",
        "--test",
        "1month",
        "--early-stopping",
        "--json",
    ];
    arguments.extend(SMALL);
    let unbroken: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
    arguments.extend(["--checkpoints", &runs]);

    // Killed once there is a checkpoint, whatever it was doing then.
    let mut killed = Command::new(cargo_bin("satf"))
        .args(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let has_checkpoint = || fs::read_dir(&runs).is_ok_and(|mut files| files.next().is_some());
    while !has_checkpoint() && killed.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(has_checkpoint());

    let resumed: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
    let result = |report: &Value| {
        let report = without_timings(report.clone());
        ["metrics", "configuration", "early_stopping"].map(|part| report[part].clone())
    };
    assert_eq!(result(&resumed), result(&unbroken));
    assert_eq!(unbroken["early_stopping"]["curve"].as_array().unwrap().len(), 3);
}

#[test]
fn it_is_tuned_by_epochs() {
    let (folder, log) = shop_log(300);
    let space = path(folder.path(), "space.toml");
    fs::write(&space, "keys.hidden = [8, 16]\nkeys.epochs = 2\nkeys.max_len = 8\n").unwrap();
    let study = path(folder.path(), "study");
    let arguments = [
        "tune",
        &log,
        "--model",
        "sasrec",
        "--space",
        &space,
        "--sampler",
        "exhaustive",
        "--valid",
        "1month",
        "--test",
        "1month",
        "--study",
        &study,
        "--json",
    ];
    let tuned: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
    let trials = tuned["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let epochs: Vec<u64> = trial["scores"]
            .as_array()
            .unwrap()
            .iter()
            .map(|score| score["keys"]["epochs"].as_u64().unwrap())
            .collect();
        assert_eq!(epochs, [1, 2]);
        assert!(trial["keys"].get("epochs").is_none());
    }
}
