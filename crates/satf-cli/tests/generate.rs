//! `satf generate` with a given shape: exact, reproducible, in bounded memory, whole or not at all.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use satf_binary::{only_run, satf, satf_that_hears};
use serde_json::Value;

fn shape<'a>(users: &'a str, items: &'a str, rows: &'a str, output: &'a str) -> Vec<&'a str> {
    vec!["generate", "--users", users, "--items", items, "--rows", rows, "-o", output]
}

fn text(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_log_has_exactly_the_shape_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let csv = text(folder.path(), "log.csv");
    let report: Value = serde_json::from_str(
        &satf(&[&shape("3000", "700", "40000", &csv)[..], &["--json"]].concat()).succeeds(),
    )
    .unwrap();
    let content = fs::read_to_string(&csv).unwrap();
    let mut lines = content.lines();
    assert_eq!(lines.next(), Some("user_id,item_id,timestamp"));
    let rows: Vec<[i64; 3]> = lines
        .map(|line| {
            let numbers: Vec<i64> = line.split(',').map(|field| field.parse().unwrap()).collect();
            numbers.try_into().unwrap()
        })
        .collect();
    assert_eq!(rows.len(), 40_000);
    let distinct = |column: usize| rows.iter().map(|row| row[column]).collect::<HashSet<_>>();
    assert_eq!(distinct(0), (1..=3000).collect());
    assert_eq!(distinct(1), (1..=700).collect());
    assert_eq!(rows.iter().map(|row| (row[0], row[1])).collect::<HashSet<_>>().len(), rows.len());
    assert!(rows.is_sorted_by_key(|row| row[2]), "rows in the order of time");
    let days = distinct(2).iter().map(|time| time / 86_400).collect::<HashSet<_>>();
    assert!(days.len() > 600, "{} days", days.len());

    // What is said of it is what is found in it.
    let found: Value = serde_json::from_str(&satf(&["stats", &csv, "--json"]).succeeds()).unwrap();
    assert_eq!(report["statistics"], found);
    assert_eq!(report["seed"], 1);
}

#[test]
fn a_seed_gives_the_same_bytes_on_any_number_of_threads_and_every_format_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| text(folder.path(), name);
    for name in ["a.parquet", "a.csv.gz", "a.csv.zst", "a.csv"] {
        let (first, second, other) = (at(name), at(&format!("second-{name}")), at(&format!("other-{name}")));
        satf(&shape("5000", "900", "60000", &first)).succeeds();
        satf(&[&shape("5000", "900", "60000", &second)[..], &["--threads", "1"]].concat()).succeeds();
        satf(&[&shape("5000", "900", "60000", &other)[..], &["--seed", "2"]].concat()).succeeds();
        assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "{name}");
        assert!(fs::read(&first).unwrap() != fs::read(&other).unwrap(), "{name}");
        let prepared = at(&format!("prepared-{name}.csv"));
        satf(&["prepare", &first, "--core", "1", "-o", &prepared]).succeeds();
    }
    let expected = fs::read(at("a.csv")).unwrap();
    for name in ["a.parquet", "a.csv.gz", "a.csv.zst", "a.csv"] {
        assert!(fs::read(at(&format!("prepared-{name}.csv"))).unwrap() == expected, "{name}");
    }
}

#[test]
fn rows_go_through_a_file_when_they_are_many_and_memory_does_not_grow_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let log = text(folder.path(), "log.parquet");
    // 4.2 million rows would take 50 MB as they are, and twice as much to be sorted.
    let report = satf(&[&shape("400000", "5000", "4200000", &log)[..], &["--json"]].concat()).succeeds();
    let report: Value = serde_json::from_str(&report).unwrap();
    let found: Value = serde_json::from_str(&satf(&["stats", &log, "--json"]).succeeds()).unwrap();
    assert_eq!(report["statistics"], found);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn order_is_worth_learning() {
    let folder = tempfile::tempdir().unwrap();
    let log = text(folder.path(), "log.parquet");
    satf(&shape("4000", "400", "40000", &log)).succeeds();
    let ndcg = |model: &str| {
        let line = ["evaluate", &log, "--model", model, "--test", "2months", "--json"];
        let run = only_run(&satf(&line).succeeds());
        run["metrics"]["NDCG@10"]["value"].as_f64().unwrap()
    };
    let (popular, ordered) = (ndcg("mp"), ndcg("transitions"));
    assert!(ordered > 3.0 * popular, "{ordered} against {popular}");
}

#[test]
fn shapes_that_cannot_be_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let log = text(folder.path(), "log.csv");
    for (line, said) in [
        (
            shape("100", "50", "99", &log),
            "rows = 99: expected 100 to 1,250 for 100 users and 50 items (one for every user and item at least; at most a quarter",
        ),
        (shape("100", "50", "2000", &log), "rows = 2000: expected 100 to 1,250 for"),
        (shape("0", "50", "2000", &log), "users = 0"),
        (
            shape("2", "50", "60", &log),
            "another shape: 2 users and 50 items need 50 rows or more, and 25 are the most (one for",
        ),
        (
            vec!["generate", "--users", "100000000", "-o", &log],
            "expected 1 to 5,000,000: the shop is made in memory",
        ),
        (vec!["generate", "--days", "3651", "-o", &log], "expected 7 to 3,650, from a week to ten years"),
        (
            shape("10", "100000000000", "200000000000", &log),
            "items = 100000000000: expected 1 to 100,000,000: every item takes memory",
        ),
        (shape("18446744073709551615", "2", "18446744073709551615", &log), "rows = 18446744073709551615"),
        (shape("5000000", "1000000", "5000000000", &log), "rows = 5000000000"),
        (vec!["generate", "--rows", "500", "--users", "50", "-o", &log], "--items"),
        (vec!["generate", "--rows", "500", "--items", "50", "-o", &log], "--users"),
        (vec!["generate", "--items", "50", "-o", &log], "--rows"),
        ([&shape("100", "50", "1000", &log)[..], &["--days", "30"]].concat(), "--days"),
    ] {
        let outcome = satf(&line);
        assert_eq!(outcome.code, 2, "{line:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "{line:?}: no '{said}' in {}", outcome.stderr);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupted_log_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (output, temporary) = (folder.path().join("output"), folder.path().join("temporary"));
    fs::create_dir(&output).unwrap();
    fs::create_dir(&temporary).unwrap();
    // While it is made, and while it is written.
    for pause in [100, 1500] {
        let log = text(&output, "log.csv.gz");
        let mut running = satf_that_hears()
            .args(shape("3000000", "100000", "30000000", &log))
            .env("TMPDIR", &temporary)
            .stderr(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(pause));
        let signal = std::process::Command::new("kill").args(["-INT", &running.id().to_string()]).status();
        assert!(signal.unwrap().success());
        let asked = Instant::now();
        let code = running.wait().unwrap().code();
        assert_eq!(code, Some(130));
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
        for folder in [&output, &temporary] {
            assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{}", folder.display());
        }
    }
}
