//! Options that would be ignored: they are refused, or told of where they serve part of a command.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;

use satf_binary::{satf, shop_log};
use tempfile::TempDir;

#[test]
fn options_that_mean_nothing_are_refused() {
    let (folder, log) = shop_log(60);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "--model", "mp", "-o", &at("m.satf")]).succeeds();
    fs::write(at("log.dat"), "1::2::5::978300760\n1::3::5::978300761\n").unwrap();
    fs::write(at("h.jsonl"), "{\"user_id\": 1, \"history\": [\"tent\"]}\n").unwrap();
    fs::write(at("lists.json"), "[[\"tent\", \"mug\"], [\"lamp\"]]\n").unwrap();
    for (line, parts) in [
        ("evaluate LOG -m mp --split leave-one-out --test 3weeks", &["--test 3weeks", "leave-one-out"][..]),
        ("evaluate LOG -m mp --split leave-one-out --valid 3weeks", &["--valid 3weeks", "leave-one-out"]),
        ("tune LOG -m pure-svd --split leave-one-out --test 3weeks", &["--test 3weeks", "leave-one-out"]),
        ("plan LOG -m la-satf --split leave-one-out --test 3weeks", &["--test 3weeks", "leave-one-out"]),
        ("plan LOG -m la-satf --seen pooled", &["--seen pooled", "nothing is ranked"]),
        ("evaluate LOG -m mp --order-is-time --test 3weeks", &["--order-is-time", "--test"]),
        (
            "train LOG -m mp --order-is-time --leave-out 3weeks -o %/new.satf",
            &["--order-is-time", "--leave-out"],
        ),
        (
            "train LOG -m mp --order-is-time --validate 3weeks -o %/new.satf",
            &["--order-is-time", "--validate"],
        ),
        ("stats LOG --user-column a --item-column a", &["--user-column and --item-column", "a"]),
        ("evaluate LOG -m mp --patience 2", &["--early-stopping"]),
        ("evaluate LOG -m mp,ease --checkpoints %/ck", &["--checkpoints", "sasrec"]),
        ("train LOG -m mp --checkpoints %/ck -o %/new.satf", &["--checkpoints", "sasrec"]),
        (
            "train LOG -m mp --validate 3weeks --patience 2 -o %/new.satf",
            &["--patience 2", "not trained in iterations"],
        ),
        ("tune LOG -m pure-svd --patience 2 --study %/st", &["--patience 2", "not trained in iterations"]),
        ("recommend %/m.satf --history tent --format csv", &["--format", "--histories"]),
        ("recommend %/m.satf --history tent --header no", &["--header", "--histories"]),
        ("recommend %/m.satf --history tent --skip-bad-rows 3", &["--skip-bad-rows", "--histories"]),
        ("recommend %/m.satf --history tent --time-unit seconds", &["--time-unit", "--histories"]),
        ("recommend %/m.satf --history tent --history-column x", &["--history-column", "--histories"]),
        ("recommend %/m.satf --history tent --memory 1GiB", &["--memory", "--histories"]),
        ("recommend %/m.satf --histories %/h.jsonl --item-type string", &["--item-type"]),
        ("recommend %/m.satf --histories LOG --history-column a --item-column b", &["--item-column"]),
        ("stats LOG --format parquet --header yes", &["--header", "parquet"]),
        ("stats %/log.dat --format movielens --user-column 2", &["--user-column", "movielens"]),
        ("stats LOG --format sasrec --time-unit seconds", &["--time-unit", "no times"]),
        ("stats LOG --time-column t --order-is-time", &["--time-column", "--order-is-time"]),
        ("stats LOG --time-unit seconds --order-is-time", &["--time-unit", "--order-is-time"]),
        ("evaluate LOG -m mp,mp --per-event %/scores.csv", &["--per-event", "mp is given twice"]),
    ] {
        refused(line, 2, parts, &log, &folder);
    }
    // What a file is only its content tells, whatever its name.
    for (line, parts) in [
        ("recommend %/m.satf --histories %/h.jsonl --header yes", &["--header", "jsonl"][..]),
        (
            "recommend %/m.satf --histories %/lists.json --user-column who",
            &["--user-column", "lists without names"],
        ),
        (
            "recommend %/m.satf --histories %/lists.json --item-column what",
            &["--item-column", "lists without names"],
        ),
        (
            "recommend %/m.satf --histories %/lists.json --time-column when",
            &["--time-column", "lists without names"],
        ),
        (
            "recommend %/m.satf --histories %/lists.json --history-column x",
            &["--history-column", "lists without names"],
        ),
        ("stats LOG --header yes", &["--header", "parquet"]),
        ("stats LOG --delimiter ;", &["--delimiter", "parquet"]),
        ("stats LOG --time-unit seconds", &["--time-unit", "dates for times"]),
        ("stats %/log.dat --user-column 2", &["--user-column", "movielens"]),
    ] {
        refused(line, 1, parts, &log, &folder);
    }
    for name in ["ck", "st", "new.satf", "scores.csv"] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
}

/// Runs a line, in which `LOG` and `%` are the log and the folder, that has to end with this code and these words.
fn refused(line: &str, code: i32, parts: &[&str], log: &str, folder: &TempDir) {
    let words = line.split(' ').map(|word| match word {
        "LOG" => log.to_owned(),
        word => word.replace('%', folder.path().to_str().unwrap()),
    });
    let words: Vec<String> = words.collect();
    let outcome = satf(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(outcome.code, code, "{line}: {} {}", outcome.stdout, outcome.stderr);
    for part in parts {
        assert!(outcome.stderr.contains(part), "{line}: no '{part}' in {}", outcome.stderr);
    }
}

#[test]
fn columns_of_objects_in_a_list_are_those_asked_for() {
    let (folder, log) = shop_log(60);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "--model", "mp", "-o", &at("m.satf")]).succeeds();
    fs::write(at("o.json"), "[{\"user_id\": \"ann\", \"who\": \"bob\", \"history\": [\"tent\"]}]").unwrap();
    let (model, objects) = (at("m.satf"), at("o.json"));
    let line = ["recommend", &model, "--histories", &objects, "-n", "1"];
    assert!(satf(&line).succeeds().contains("\"ann\""));
    assert!(satf(&[&line[..], &["--user-column", "who"]].concat()).succeeds().contains("\"bob\""));
    let unknown = satf(&[&line[..], &["--user-column", "whom"]].concat());
    assert!(unknown.code == 1 && unknown.stderr.contains("did you mean \"who\"?"), "{}", unknown.stderr);
}

#[test]
fn options_that_serve_some_files_are_told_of() {
    let (folder, log) = shop_log(60);
    let csv = folder.path().join("more.csv").to_str().unwrap().to_owned();
    fs::write(&csv, "ann;tent;2024-05-17\nann;mug;2024-05-18\n").unwrap();
    let outcome = satf(&["stats", &log, &csv, "--header", "no", "--delimiter", ";"]);
    for part in ["--header means nothing for", "--delimiter means nothing for", "shop.parquet"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    outcome.succeeds();
}
