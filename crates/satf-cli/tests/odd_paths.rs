//! Paths that are not text: every command takes them, and says them as well as it can.

// Other systems do not allow such names.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Runs in a folder; a word with `?` stands for a name with a byte that is not text.
fn run(folder: &Path, words: &[&str]) -> (String, String, i32) {
    let words: Vec<OsString> = words.iter().map(|word| odd(word)).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_satf")).args(&words).current_dir(folder).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(!stderr.contains("panicked"), "{words:?}: {stderr}");
    (stdout, stderr.into_owned(), output.status.code().unwrap())
}

fn succeeds(folder: &Path, words: &[&str]) -> String {
    let (stdout, stderr, code) = run(folder, words);
    assert_eq!(code, 0, "{words:?}: {stderr}");
    stdout
}

fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&succeeds(folder, words)).unwrap()
}

fn odd(word: &str) -> OsString {
    let bytes: Vec<u8> = word.bytes().map(|byte| if byte == b'?' { 0xFF } else { byte }).collect();
    OsStr::from_bytes(&bytes).to_owned()
}

fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join(odd(name))
}

#[test]
fn every_command_takes_paths_that_are_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let months = ["--valid", "1month", "--test", "1month"];
    succeeds(folder, &["generate", "--users", "300", "-o", "?raw.csv"]);
    assert!(place(folder, "?raw.csv").exists());
    let prepared = json(folder, &["prepare", "?raw.csv", "-o", "?log.parquet", "--json"]);
    assert_eq!(prepared["output"], "\u{fffd}log.parquet");
    succeeds(folder, &["stats", "?log.parquet"]);

    fs::write(place(folder, "?config.toml"), "rank = 6\n").unwrap();
    let configured = ["--model", "pure-svd", "--config", "?config.toml", "--json"];
    let evaluated = json(folder, &[&["evaluate", "?log.parquet"], &configured[..], &months].concat());
    assert_eq!(evaluated["runs"][0]["files"], serde_json::json!(["\u{fffd}log.parquet"]));
    let trained = json(
        folder,
        &[
            "train",
            "?log.parquet",
            "--model",
            "la-satf",
            "--set",
            "item_rank=8",
            "-o",
            "?model.satf",
            "--json",
        ],
    );
    assert_eq!(trained["output"], "\u{fffd}model.satf");
    let inspected = json(folder, &["inspect", "?model.satf", "--svg", "?curve.svg", "--json"]);
    assert_eq!(inspected["file"], "\u{fffd}model.satf");
    assert!(place(folder, "?curve.svg").exists());
    succeeds(folder, &["similar", "?model.satf", "tent"]);
    fs::write(place(folder, "?histories.jsonl"), "{\"user_id\": 1, \"history\": [\"tent\"]}\n").unwrap();
    fs::write(place(folder, "?titles.csv"), "item_id,title\ntent,A tent\n").unwrap();
    succeeds(folder, &["recommend", "?model.satf", "--histories", "?histories.jsonl", "-o", "?next.csv"]);
    succeeds(folder, &["recommend", "?model.satf", "--history", "tent", "--titles", "?titles.csv"]);
    fs::write(place(folder, "?list.txt"), "tent\nroof tent\n").unwrap();
    fs::write(place(folder, "?boosts.csv"), "tent,0.5\n").unwrap();
    let recommend = ["recommend", "?model.satf", "--json", "--history"];
    let items = |words: &[&str]| json(folder, &[&recommend[..], words].concat())["recommendations"].clone();
    assert_eq!(
        items(&["@?list.txt", "--only", "@?list.txt", "--allow-seen", "@?list.txt"]),
        items(&["tent,roof tent", "--only", "tent,roof tent", "--allow-seen"])
    );
    assert_eq!(items(&["tent", "--exclude", "@?list.txt"]), items(&["tent", "--exclude", "tent,roof tent"]));
    assert_eq!(
        items(&["tent", "--allow-seen", "--boost", "@?boosts.csv"]),
        items(&["tent", "--allow-seen", "--boost", "tent=0.5"])
    );
    // Ids that are not text are in no model.
    let (_, stderr, code) = run(folder, &["recommend", "?model.satf", "--history", "?tent"]);
    assert!(code == 2 && stderr.contains("valid UTF-8, or @FILE"), "{stderr}");

    // The names that several models make of one name keep its bytes.
    let per_event = ["evaluate", "?log.parquet", "--model", "mp,random", "--per-event", "?scores.csv"];
    succeeds(folder, &[&per_event[..], &months].concat());
    let compare = ["compare", "?scores.mp.csv", "?scores.random.csv", "--draws", "100"];
    let compared = json(folder, &[&compare[..], &["--json"]].concat());
    assert_eq!(compared["base"], "\u{fffd}scores.mp.csv");
    assert_eq!(compared["comparisons"][0]["file"], "\u{fffd}scores.random.csv");
    assert!(succeeds(folder, &compare).contains("\u{fffd}scores.random against"));

    fs::write(place(folder, "?space.toml"), "keys.rank = [2, 4]\n").unwrap();
    let tune = [
        "tune",
        "?log.parquet",
        "--model",
        "pure-svd",
        "--space",
        "?space.toml",
        "--trials",
        "2",
        "--study",
        "?study",
    ];
    let tuned = json(folder, &[&tune[..], &months, &["--json"]].concat());
    assert_eq!(tuned["study"], "\u{fffd}study");
    assert!(succeeds(folder, &[&tune[..], &months].concat()).contains("Study: \u{fffd}study"));
    json(folder, &["tune", "status", "?study", "--json"]);
}

#[test]
fn a_report_is_made_of_paths_that_are_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(place(folder, "?data")).unwrap();
    succeeds(folder, &["generate", "--users", "200", "-o", "?data/shop.parquet"]);
    let suite = "title = 't'\nrepeats = 1\n[[datasets]]\nname = 'shop'\nfiles = ['shop.parquet']\nvalid = '1month'\n\
                 test = '1month'\nmax_len = 20\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";
    fs::write(place(folder, "?suite.toml"), suite).unwrap();
    let report =
        json(folder, &["reproduce", "--data", "?data", "--out", "?out", "--suite", "?suite.toml", "--json"]);
    assert!(
        report["made"]["command"].as_str().unwrap().contains("--out '\u{fffd}out'"),
        "{}",
        report["made"]
    );
    assert!(place(folder, "?out/report.html").exists());
}

#[test]
fn errors_name_paths_that_are_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(place(folder, "?empty"), "").unwrap();
    for words in [
        &["stats", "?none.csv"][..],
        &["stats", "?empty"],
        &["inspect", "?empty"],
        &["compare", "?empty", "?empty"],
        &["tune", "status", "?none"],
        &["recommend", "?empty", "--history", "tent", "--only", "@?none"],
        &["evaluate", "?empty", "--model", "mp", "--config", "?none.toml"],
        &["evaluate", "?empty", "--model", "sasrec", "--checkpoints", "?empty"],
    ] {
        if !cfg!(feature = "sasrec") && words.contains(&"sasrec") {
            continue;
        }
        let (_, stderr, code) = run(folder, words);
        assert!(code == 1 && stderr.contains('\u{fffd}'), "{words:?}: {code} {stderr}");
    }
}
