//! Models that hold their log, through the real binary: what is added and what is forgotten leaves, byte for byte, what training on the
//! rest gives.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::path::Path;
use std::process::Command;

use satf_binary::{SATF, satf};
use serde_json::Value;

/// A folder with a log in two parts, and all of it, as CSV; some rows have equal times.
struct Case {
    folder: tempfile::TempDir,
    rows: Vec<String>,
}

const HEADER: &str = "user,item,time";

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<String> = (0..900u64)
            .map(|at| {
                let mixed = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                let day = at / 3 % 300;
                format!("u{},item {},{}", mixed % 60, mixed / 60 % 25, 1_600_000_000 + day * 86_400)
            })
            .collect();
        let case = Case { folder, rows };
        case.write("old.csv", |at, _| at < 700);
        case.write("new.csv", |at, _| at >= 700);
        case.write("all.csv", |_, _| true);
        case
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A log of the rows for which `keep` holds.
    fn write(&self, name: &str, keep: impl Fn(usize, &str) -> bool) {
        let kept =
            self.rows.iter().enumerate().filter(|(at, row)| keep(*at, row)).map(|(_, row)| row.clone());
        let lines: Vec<String> = std::iter::once(HEADER.to_owned()).chain(kept).collect();
        fs::write(self.path(name), lines.join("\n") + "\n").unwrap();
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn train(&self, log: &str, model: &str, more: &[&str]) {
        let (log, model) = (self.path(log), self.path(model));
        satf(&[&["train", &log, "-o", &model, "--with-statistics"], more].concat()).succeeds();
    }
}

#[test]
fn what_is_added_is_as_if_it_had_always_been_there() {
    let case = Case::new();
    let (model, new) = (case.path("model.satf"), case.path("new.csv"));
    for keys in [
        &[][..],
        &["--seed", "7", "--set", "window=5", "--set", "balance=0.3", "--quantize", "half"],
        &["--model", "transitions", "--ties", "basket"],
    ] {
        case.train("old.csv", "model.satf", keys);
        case.train("all.csv", "whole.satf", keys);
        let before = case.bytes("model.satf");
        let report = satf(&["train", "--update", &model, &new, "-o", &case.path("other.satf"), "--json"]);
        let report: Value = serde_json::from_str(&report.succeeds()).unwrap();
        assert_eq!((&report["rows_before"], &report["rows_added"]), (&700.into(), &200.into()));
        assert_eq!(report["user_data"]["kind"], "events");
        assert!(case.bytes("other.satf") == case.bytes("whole.satf"), "{keys:?}");
        assert!(case.bytes("model.satf") == before, "the model itself is left alone");
        // Keys that agree may be said again; the model itself is replaced.
        let threads = ["--threads", "1"];
        let said = satf(&[&["train", "--update", &model, &new], keys, &threads].concat()).succeeds();
        assert!(said.contains("added 200 rows to 700"), "{said}");
        assert!(case.bytes("model.satf") == case.bytes("whole.satf"), "{keys:?}");
    }
    // Measured on the newest part as in any training.
    case.train("old.csv", "model.satf", &[]);
    case.train("all.csv", "whole.satf", &["--validate", "1month"]);
    satf(&["train", "--update", &model, &new, "--validate", "1month", "-o", &model]).succeeds();
    assert!(case.bytes("model.satf") == case.bytes("whole.satf"));
}

#[test]
fn what_is_forgotten_was_never_there() {
    let case = Case::new();
    let model = case.path("model.satf");
    case.train("all.csv", "model.satf", &[]);
    let of_user = |row: &str, user: &str| row.starts_with(&format!("{user},"));
    let of_item = |row: &str, item: &str| row.contains(&format!(",{item},"));
    case.write("without.csv", |_, row| {
        !of_user(row, "u3") && !of_user(row, "u14") && !of_item(row, "item 7") && !of_item(row, "item 0")
    });
    case.train("without.csv", "without.satf", &[]);
    fs::write(case.path("users.txt"), "u14\n\nnobody\n").unwrap();
    let users = format!("@{}", case.path("users.txt"));
    let items = "[\"item 7\", \"item 0\"]";
    let run = |more: &[&str]| {
        satf(
            &[&["forget", &model, "--user", "u3", "--user", &users, "--item", items, "--json"], more]
                .concat(),
        )
    };
    let strict = run(&["--strict"]);
    assert!(strict.code == 1 && strict.stderr.contains("'nobody'"), "{}", strict.stderr);
    let outcome = run(&["-o", &case.path("less.satf")]);
    assert!(outcome.stderr.contains("1 of 3 users is unknown"), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.succeeds()).unwrap();
    assert_eq!((&report["forgotten_users"], &report["forgotten_items"]), (&2.into(), &2.into()));
    let left = report["manifest"]["statistics"]["events"].as_u64().unwrap();
    assert_eq!(report["forgotten_events"].as_u64().unwrap() + left, 900);
    assert!(case.bytes("less.satf") == case.bytes("without.satf"));
    let text = String::from_utf8_lossy(&case.bytes("less.satf")).into_owned();
    assert!(!text.contains("item 7") && text.contains("item 8"));
    // In place, on another number of threads.
    run(&["--threads", "1"]).succeeds();
    assert!(case.bytes("model.satf") == case.bytes("without.satf"));
    // Nobody is left to forget, and nothing is written.
    let changed = fs::metadata(&model).unwrap().modified().unwrap();
    let again = satf(&["forget", &model, "--user", "u3"]);
    assert!(again.stderr.contains("unknown"), "{}", again.stderr);
    assert!(again.succeeds().contains("nothing to forget"));
    assert_eq!(fs::metadata(&model).unwrap().modified().unwrap(), changed);
    // All of them are too many.
    let everybody: Vec<String> = (0..60).map(|user| format!("u{user}")).collect();
    let none = satf(&["forget", &model, "--user", &everybody.join(",")]);
    assert!(none.code == 1 && none.stderr.contains("nothing would be left"), "{}", none.stderr);
    assert!(case.bytes("model.satf") == case.bytes("without.satf"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let case = Case::new();
    let (old, new, plain) = (case.path("old.csv"), case.path("new.csv"), case.path("plain.satf"));
    satf(&["train", &old, "-o", &plain]).succeeds();
    case.train("old.csv", "model.satf", &["--set", "window=5"]);
    let (model, before) = (case.path("model.satf"), case.bytes("model.satf"));
    fs::write(case.path("ordered.csv"), "user,item\nu1,item 1\nu1,item 2\n").unwrap();
    let ordered = case.path("ordered.csv");
    for (arguments, code, part) in [
        (
            vec!["train", "--update", &plain, &new],
            1,
            "without statistics, so nothing is known of single events; hint: satf train LOG",
        ),
        (vec!["forget", &plain, "--user", "u1"], 1, "--with-statistics"),
        (vec!["forget", &model], 2, "--user"),
        (vec!["train", &old], 2, "--output"),
        (vec!["train", &old, "-o", "x.satf", "--with-statistics", "--ties", "file"], 2, "--ties shuffle"),
        (
            vec!["train", &old, "-o", "x.satf", "--with-statistics", "--preset", "la-satf/amz-b"],
            2,
            "the preset takes it from the file",
        ),
        (vec!["train", &old, "-o", "x.satf", "--with-statistics", "--leave-out", "1month"], 2, "--leave-out"),
        (
            vec![
                "train",
                &old,
                "-o",
                "x.satf",
                "--with-statistics",
                "--model",
                "la-satf",
                "--validate",
                "1month",
            ],
            2,
            "find num_iters first",
        ),
        (
            vec!["train", "--update", &model, &new, "--model", "mp"],
            1,
            "--model mp: the model was trained with d-satf",
        ),
        (vec!["train", "--update", &model, &new, "--seed", "1"], 1, "--seed 1: the model was trained with 0"),
        (vec!["train", "--update", &model, &new, "--ties", "basket"], 1, "--ties basket"),
        (vec!["train", "--update", &model, &new, "--quantize", "half"], 1, "--quantize half"),
        (
            vec!["train", "--update", &model, &new, "--set", "window=6"],
            1,
            "window = 6: the model was trained with another value (5)",
        ),
        (vec!["train", "--update", &model, &new, "--set", "trend=1"], 1, "learned from the log"),
        // Which model it is the file tells, unless it is said.
        (vec!["train", "--update", &model, &new, "--set", "windo=5"], 1, "did you mean 'window'"),
        (
            vec!["train", "--update", &model, &new, "--model", "d-satf", "--set", "windo=5"],
            2,
            "did you mean 'window'",
        ),
        (vec!["train", "--update", &model, &new, "--set", "window=5", "--set", "window=5"], 2, "set twice"),
        (
            vec!["train", "--update", &model, &new, "--validate", "1month", "--patience", "2"],
            1,
            "--patience 2",
        ),
        (
            vec!["train", "--update", &model, &ordered, "--order-is-time"],
            1,
            "a log with times, and the new log has none",
        ),
        (vec!["train", "--update", &model, &model], 1, "also read"),
        (vec!["train", "--update", &model, &new, "-o", &new], 1, "also read"),
        (vec!["train", "--update", &old, &new], 1, "not a satf model file"),
    ] {
        let outcome = satf(&arguments);
        assert!(
            outcome.code == code && outcome.stderr.contains(part),
            "{arguments:?} {}: {}",
            outcome.code,
            outcome.stderr
        );
        assert!(case.bytes("model.satf") == before, "{arguments:?}");
    }
    assert!(!Path::new("x.satf").exists());
}

#[test]
fn a_log_without_times_is_updated_and_forgotten_from() {
    let case = Case::new();
    let ordered = |name: &str, items: &[(u32, u32)]| {
        let lines: Vec<String> = items.iter().map(|(user, item)| format!("{user},{item}\n")).collect();
        fs::write(case.path(name), format!("user,item\n{}", lines.concat())).unwrap();
    };
    let rows: Vec<(u32, u32)> = (0..300).map(|at| (at * 7 % 20, at * at % 11)).collect();
    ordered("a.csv", &rows[..200]);
    ordered("b.csv", &rows[200..]);
    ordered("ab.csv", &rows);
    ordered("less.csv", &rows.iter().copied().filter(|row| row.0 != 7).collect::<Vec<_>>());
    case.train("a.csv", "model.satf", &["--order-is-time"]);
    case.train("ab.csv", "whole.satf", &["--order-is-time"]);
    case.train("less.csv", "less.satf", &["--order-is-time"]);
    let (model, b) = (case.path("model.satf"), case.path("b.csv"));
    satf(&["train", "--update", &model, &b, "--order-is-time"]).succeeds();
    assert!(case.bytes("model.satf") == case.bytes("whole.satf"));
    satf(&["forget", &model, "--user", "7"]).succeeds();
    assert!(case.bytes("model.satf") == case.bytes("less.satf"));
    let timed = satf(&[
        "train",
        "--update",
        &model,
        &case.path("new.csv"),
        "--user-type",
        "string",
        "--item-type",
        "string",
    ]);
    assert!(timed.code == 1 && timed.stderr.contains("--order-is-time"), "{}", timed.stderr);
    // Ids of another type than before are an error, as in files that are read together, unless it is said.
    fs::write(case.path("texts.csv"), "user,item\nann,1\n").unwrap();
    let texts = case.path("texts.csv");
    let refused = satf(&["train", "--update", &model, &texts, "--order-is-time"]);
    assert!(refused.code == 1 && refused.stderr.contains("--user-type string"), "{}", refused.stderr);
    satf(&["train", "--update", &model, &texts, "--order-is-time", "--user-type", "string"]).succeeds();
    let inspected = satf(&["inspect", &model, "--json"]).succeeds();
    assert!(inspected.contains("event_user_id_bytes") && inspected.contains("\"item_ids\""), "{inspected}");
}

#[test]
fn what_a_file_holds_about_users_is_said() {
    let case = Case::new();
    let (old, model) = (case.path("old.csv"), case.path("model.satf"));
    let trained = satf(&["train", &old, "-o", &model, "--with-statistics"]);
    let words = "the log itself: 700 events of 60 users, with ids and times";
    assert!(
        trained.stderr.contains(words) && trained.stderr.contains("guard it like the log"),
        "{}",
        trained.stderr
    );
    trained.succeeds();
    let inspected = satf(&["inspect", &model]).succeeds();
    assert!(inspected.contains(words) && inspected.contains("event_times"), "{inspected}");
    // Recommendations are those of a model without.
    let plain = case.path("plain.satf");
    satf(&["train", &old, "-o", &plain]).succeeds();
    let ask = |model: &str| satf(&["recommend", model, "--history", "item 3", "--json"]).succeeds();
    assert_eq!(ask(&model), ask(&plain));
    let grown = case.bytes("model.satf").len() - case.bytes("plain.satf").len();
    assert!((12 * 700..12 * 700 + 3000).contains(&grown), "{grown}");
}

#[test]
fn hostile_files_are_refused() {
    let case = Case::new();
    case.train("old.csv", "model.satf", &["--set", "balance=0", "--model", "d-satf"]);
    let (model, new, whole) = (case.path("model.satf"), case.path("new.csv"), case.bytes("model.satf"));
    // Events that were changed are noticed by whoever uses them or looks into the file, and not by those who only recommend.
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&model, &changed).unwrap();
    satf(&["recommend", &model, "--history", "item 3"]).succeeds();
    for arguments in [
        vec!["train", "--update", &model, &new],
        vec!["forget", &model, "--user", "u1"],
        vec!["inspect", &model],
        #[cfg(feature = "serve")]
        vec!["serve", &model, "--check"],
    ] {
        let outcome = satf(&arguments);
        assert!(
            outcome.code == 1
                && outcome.stderr.contains("do not match their checksum")
                && outcome.stderr.contains("model.satf"),
            "{arguments:?}: {}",
            outcome.stderr
        );
        assert!(case.bytes("model.satf") == changed);
    }
    for length in [whole.len() - 1, whole.len() - 1000] {
        fs::write(&model, &whole[..length]).unwrap();
        let outcome = satf(&["forget", &model, "--user", "u1"]);
        assert!(outcome.code == 1 && outcome.stderr.contains("hint:"), "{}", outcome.stderr);
    }
}

#[test]
fn a_stop_leaves_the_old_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, model) = (at("shop.parquet"), at("model.satf"));
    satf(&["generate", "--users", "3000", "-o", &log]).succeeds();
    satf(&["train", &log, "-o", &model, "--with-statistics", "--set", "balance=0"]).succeeds();
    let before = fs::read(&model).unwrap();
    for wait in ["0.05", "0.2", "0.4"] {
        let command =
            format!("'{SATF}' train --update '{model}' '{log}' & sleep {wait}; kill -INT $!; wait $!");
        Command::new("bash").args(["-mc", &command]).output().unwrap();
        let after = fs::read(&model).unwrap();
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        if after != before {
            // It was done by then: all of it.
            satf(&["inspect", &model]).succeeds();
            return;
        }
    }
}
