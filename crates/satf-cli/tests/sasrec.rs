//! The neural baseline through the real binary: found by name, trained, stored, stopped and taken up again.

#![cfg(feature = "sasrec")]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use satf_binary::{only_run, satf, satf_that_hears, shop_log, without_timings};
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
    assert_eq!(refused.code, 2);
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
    let unbroken = only_run(&satf(&arguments).succeeds());
    arguments.extend(["--checkpoints", &runs]);

    signal_once_checkpointed(&arguments, &runs, "KILL");
    let resumed = only_run(&satf(&arguments).succeeds());
    let result = |report: &Value| {
        let report = without_timings(report.clone());
        ["metrics", "configuration", "early_stopping"].map(|part| report[part].clone())
    };
    assert_eq!(result(&resumed), result(&unbroken));
    assert_eq!(unbroken["early_stopping"]["curve"].as_array().unwrap().len(), 3);
    // What was learned by the first run counts: its epochs and their time.
    let again = only_run(&satf(&arguments).succeeds());
    let epochs = |report: &Value| report["iterations"].as_array().map(Vec::len);
    assert_eq!((epochs(&resumed), epochs(&again)), (epochs(&unbroken), epochs(&unbroken)));
    let seconds =
        |of: &Value| of.as_array().unwrap().iter().map(|epoch| epoch["seconds"].as_f64().unwrap()).sum();
    let learning: f64 = seconds(&again["iterations"]);
    assert!(again["train_seconds"].as_f64().unwrap() >= learning && learning > 0.0);
}

/// Starts the command, waits until it has written a checkpoint into a folder, and sends it a signal. Its exit code, if it has
/// one, and what it said.
fn signal_once_checkpointed(arguments: &[&str], checkpoints: &str, signal: &str) -> (Option<i32>, String) {
    let mut running =
        satf_that_hears().args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let has_checkpoint = || {
        let mut files = fs::read_dir(checkpoints).into_iter().flatten().flatten();
        files.any(|file| file.path().extension().is_some_and(|ending| ending == "safetensors"))
    };
    while !has_checkpoint() && running.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(5));
    }
    if running.try_wait().unwrap().is_none() {
        let process = running.id().to_string();
        Command::new("kill").args([&format!("-{signal}"), &process]).status().unwrap();
    }
    let output = running.wait_with_output().unwrap();
    assert!(has_checkpoint());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_training_that_is_interrupted_says_that_it_can_go_on() {
    let (folder, log) = shop_log(500);
    let (runs, model) = (path(folder.path(), "runs"), path(folder.path(), "shop.satf"));
    let mut arguments = vec!["train", &log, "--model", "sasrec", "-o", &model, "--checkpoints", &runs];
    arguments.extend(SMALL.map(|word| if word == "epochs=3" { "epochs=5000" } else { word }));
    let (code, said) = signal_once_checkpointed(&arguments, &runs, "INT");
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains(&format!("kept in {runs}")) && said.contains("continues from there"), "{said}");
    assert!(!Path::new(&model).exists());
}

#[test]
fn what_cannot_be_is_refused_before_training() {
    let (folder, log) = shop_log(100);
    let (nowhere, model) = (path(folder.path(), "nowhere/shop.satf"), path(folder.path(), "shop.satf"));
    let refused_with = |code: i32, output: &str, more: &[&str], expected: &[&str]| {
        // It would take hours.
        let mut arguments = vec!["train", &log, "--model", "sasrec", "--set", "epochs=100000", "-o", output];
        arguments.extend(more);
        let answer = satf(&arguments);
        assert_eq!(answer.code, code, "{}", answer.stderr);
        assert!(expected.iter().all(|part| answer.stderr.contains(part)), "{}", answer.stderr);
    };
    let refused = |output: &str, more: &[&str], expected: &[&str]| refused_with(1, output, more, expected);
    refused(&nowhere, &[], &["--output", "there is no folder"]);
    refused(folder.path().to_str().unwrap(), &[], &["--output", "is not a regular file"]);
    // What the command line alone gets wrong.
    refused_with(2, &model, &["--quantize", "int8"], &["--quantize int8", "sasrec cannot be quantized"]);
    refused(
        &model,
        &["--memory", "1MB"],
        &["sasrec needs", "more than the 976.6 KiB allowed", "lower hidden"],
    );
    refused(&model, &["--set", "hidden=8192", "--set", "blocks=64"], &["sasrec needs", "batch_size"]);
    refused(&model, &["--set", "loss=sampled-ce", "--set", "negatives=100000"], &["negatives", "loss = ce"]);
}

#[test]
fn a_trial_that_was_killed_goes_on_and_ends_the_same() {
    let (folder, log) = shop_log(300);
    let space = path(folder.path(), "space.toml");
    fs::write(&space, "keys.hidden = [8, 16]\nkeys.epochs = 100\nkeys.max_len = 8\nkeys.batch_size = 16\n")
        .unwrap();
    let scores = |study: &str, kill: bool| {
        let mut arguments = vec!["tune", &log, "--model", "sasrec", "--space", &space, "--study", study];
        arguments.extend([
            "--sampler",
            "exhaustive",
            "--valid",
            "1month",
            "--test",
            "1month",
            "--patience",
            "100",
            "--json",
        ]);
        if kill {
            let checkpoints = format!("{study}/checkpoints/0");
            signal_once_checkpointed(&arguments, &checkpoints, "KILL");
            // A checkpoint that cannot be read is no reason to give the trial up.
            let files = fs::read_dir(&checkpoints).unwrap().map(|file| file.unwrap().path());
            let file = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "safetensors"));
            let (file, sound) = (file.clone().unwrap(), fs::read(file.unwrap()).unwrap());
            fs::write(&file, &sound[..sound.len() / 2]).unwrap();
            let refused = satf(&arguments);
            assert_eq!(refused.code, 1);
            assert!(refused.stderr.contains("remove it to start again"), "{}", refused.stderr);
            fs::write(&file, sound).unwrap();
        }
        let mut tuned: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
        assert!(!Path::new(study).join("checkpoints").exists());
        let trials = tuned["trials"].as_array_mut().unwrap();
        trials.iter_mut().map(|trial| (trial["keys"].take(), trial["scores"].take())).collect::<Vec<_>>()
    };
    let unbroken = scores(&path(folder.path(), "unbroken"), false);
    assert_eq!(unbroken.len(), 2);
    assert_eq!(scores(&path(folder.path(), "broken"), true), unbroken);
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
