//! Messages say what is so: of this log, this command and this number.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;

use satf_binary::{Outcome, satf, shop_log};

/// A folder and what is in it, by name.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn with(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.0.path().join(name), content).unwrap();
        self.at(name)
    }
}

fn says(outcome: &Outcome, parts: &[&str], not: &[&str]) {
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    for part in parts {
        assert!(said.contains(part), "no '{part}' in {said}");
    }
    for part in not {
        assert!(!said.contains(part), "'{part}' in {said}");
    }
}

const PAIRS: &str = "user,item\n1,a\n1,b\n2,a\n2,c\n3,b\n3,a\n";

#[test]
fn a_log_without_times_holds_none() {
    let folder = Folder::new();
    let log = folder.with("pairs.csv", PAIRS);
    let model = folder.at("m.satf");
    let trained = satf(&["train", &log, "-m", "transitions", "--with-statistics", "-o", &model]);
    says(&trained, &["6 events of 3 users, with ids and their order, without times"], &["ids and times"]);
    says(
        &satf(&["inspect", &model]),
        &["ids and their order", "none, rows were in order"],
        &["ids and times", "none to none"],
    );
    let (_shop, log) = shop_log(30);
    let trained = satf(&["train", &log, "-m", "transitions", "--with-statistics", "-o", &model]);
    says(&trained, &["with ids and times"], &["order, without"]);
}

#[test]
fn rows_that_are_taken_to_be_in_order_are_told_of_once() {
    let folder = Folder::new();
    let log = folder.with("pairs.csv", PAIRS);
    let other = folder.with("more.jsonl", "{\"user\": 4, \"item\": \"a\"}\n{\"user\": 4, \"item\": \"b\"}\n");
    let note = "note: ";
    let (shop, shop_log) = shop_log(40);
    let model = shop.path().join("m.satf").to_str().unwrap().to_owned();
    satf(&["train", &shop_log, "-m", "mp", "-o", &model]).succeeds();
    let histories = folder.with("h.csv", "user,item\n1,tent\n");
    for line in [
        &["stats", &log][..],
        &["prepare", &log, "-o", &folder.at("p.parquet")],
        &["train", &log, "-m", "mp", "-o", &folder.at("m.satf")],
        &["evaluate", &log, "-m", "mp", "--split", "leave-one-out"],
        &["recommend", &model, "--histories", &histories],
    ] {
        let outcome = satf(line);
        says(&outcome, &["rows are taken to be in the order of time; --order-is-time"], &[]);
        assert_eq!(outcome.stderr.matches(note).count(), 1, "{line:?}: {}", outcome.stderr);
        says(&satf(&[line, &["--order-is-time"]].concat()), &[], &[note]);
        says(&satf(&[line, &["--quiet"]].concat()), &[], &[note]);
    }
    let both = satf(&["stats", &log, &other]);
    says(&both, &["pairs.csv and 1 other file have no column of times: their rows"], &[]);
    // Who said it before, and who has times, is not told.
    says(&satf(&["stats", &folder.at("p.parquet")]), &[], &[note]);
    says(&satf(&["stats", &shop_log]), &[], &[note]);
    let lists = folder.with("lists.jsonl", "{\"user\": 1, \"history\": [\"tent\"]}\n");
    says(&satf(&["recommend", &model, "--histories", &lists]), &[], &[note]);
}

#[test]
fn hints_name_options_that_the_command_has() {
    let folder = Folder::new();
    let log = folder.with("pairs.csv", PAIRS);
    let model = folder.at("m.satf");
    for option in ["--validate", "--leave-out"] {
        let outcome = satf(&["train", &log, "-m", "mp", option, "3weeks", "-o", &model]);
        assert_eq!(outcome.code, 1, "{}", outcome.stdout);
        says(&outcome, &["satf evaluate LOG --split leave-one-out"], &["hint: --split"]);
    }
    says(&satf(&["evaluate", &log, "-m", "mp"]), &["hint: --split leave-one-out"], &[]);

    // Options that were never given, of a model that is trained again.
    let tied = folder.with("tied.csv", "user,item,time\n1,a,5\n1,b,5\n2,a,5\n2,b,5\n2,c,5\n3,c,6\n3,a,6\n");
    let train =
        ["train", &tied, "-m", "pure-svd", "--set", "rank=1", "--quantize", "half", "--with-statistics"];
    let trained = satf(&[&train[..], &["-o", &model]].concat());
    says(&trained, &["--ties", "--quantize half costs", "without --with-statistics"], &["ordered by --ties"]);
    let forgot = satf(&["forget", &model, "--user", "3"]);
    says(
        &forgot,
        &["ordered by the policy shuffle", "guard it"],
        &["--ties", "--quantize", "--with-statistics"],
    );
    forgot.succeeds();
    let more = folder.with("more.csv", "user,item,time\n4,a,7\n4,b,7\n");
    let updated = satf(&["train", "--update", &model, &more]);
    says(&updated, &["ordered by the policy shuffle"], &["--ties", "--quantize", "--with-statistics"]);
    updated.succeeds();
}

#[test]
fn nothing_left_is_explained_by_what_was_asked() {
    let folder = Folder::new();
    let log = folder.with("log.csv", "user,item,time\n1,a,1\n1,b,2\n2,b,3\n2,a,4\n");
    let model = folder.at("m.satf");
    satf(&["train", &log, "-m", "mp", "-o", &model]).succeeds();
    let line = ["recommend", &model, "--history", "a,b"];
    says(&satf(&line), &["every item is in the history; hint: --allow-seen"], &["--exclude", "--only"]);
    let excluded = satf(&["recommend", &model, "--history", "a", "--exclude", "b"]);
    says(&excluded, &["in the history or in --exclude; hint: --allow-seen"], &["--only"]);
    let allowed = satf(&[&line[..], &["--allow-seen", "--exclude", "a,b"]].concat());
    says(&allowed, &["every item is in --exclude"], &["--only", "hint", "history"]);
}

#[test]
fn what_is_no_log_at_all_is_named() {
    let folder = Folder::new();
    let (shop, log) = shop_log(40);
    let model = shop.path().join("m.satf").to_str().unwrap().to_owned();
    satf(&["train", &log, "-m", "mp", "-o", &model]).succeeds();
    let wide: Vec<u8> =
        "\u{feff}user,item,time\n1,tent,5\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = folder.with("wide.csv", wide);
    let swapped: Vec<u8> = "\u{feff}tent,mug\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let swapped = folder.with("swapped.csv", swapped);
    let listed = format!("@{wide}");
    for line in [
        &["stats", &wide][..],
        &["stats", &wide, "--format", "csv"],
        &["stats", &swapped],
        &["recommend", &model, "--histories", &wide],
        &["recommend", &model, "--history", "tent", "--titles", &wide],
        &["recommend", &model, "--history", "tent", "--only", &listed],
        &["evaluate", &log, "-m", "mp", "--config", &wide],
    ] {
        let outcome = satf(line);
        assert_eq!(outcome.code, 1, "{line:?}: {}", outcome.stdout);
        says(&outcome, &["text in UTF-16, expected UTF-8", "iconv"], &["--format", "NUL"]);
    }
    let unmarked: Vec<u8> = "user,item,time\n1,tent,5\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let unmarked = folder.with("unmarked.csv", unmarked);
    says(&satf(&["stats", &unmarked, "--format", "csv"]), &["looks like UTF-16: convert it"], &[]);
    for line in [
        &["stats", &model][..],
        &["stats", &model, "--format", "csv"],
        &["train", &model, "-m", "mp", "-o", &folder.at("new.satf")],
        &["recommend", &model, "--histories", &model, "-o", &folder.at("x.csv")],
        &["recommend", &model, "--history", "tent", "--titles", &model],
    ] {
        let outcome = satf(line);
        assert_ne!(outcome.code, 0, "{line:?}: {}", outcome.stdout);
        if !outcome.stderr.contains("given twice") {
            says(
                &outcome,
                &["this is a model file, expected data", "satf inspect"],
                &["--format", "binary", "NUL"],
            );
        }
    }
    says(&satf(&["recommend", &log, "--history", "tent"]), &["not a satf model file", "perhaps a log"], &[]);
}

#[test]
fn what_follows_a_closing_quote_is_not_taken_in_silence() {
    let folder = Folder::new();
    for (row, found) in [
        ("1,\"2\"x,3", "found \"x,3\" in "),
        ("1,\"2\" ,3", "found \" ,3\" in "),
        ("\"1\"\"\"y,2,3", "found \"y,2,3\" in "),
        ("1,\"a\nb\"c,3", "found \"c,3\" in "),
    ] {
        let log = folder.with("log.csv", format!("user,item,time\n4,5,6\n{row}\n7,8,9\n"));
        let outcome = satf(&["stats", &log]);
        assert_eq!(outcome.code, 1, "{row}: {}", outcome.stdout);
        says(&outcome, &["line 3: expected the end of the field after a closing quote", found], &[]);
        let skipped = satf(&["stats", &log, "--skip-bad-rows", "2", "--json"]);
        says(&skipped, &["closing quote"], &[]);
        assert_eq!(skipped.code, 0, "{row}: {}", skipped.stderr);
    }
    let log = folder.with("log.csv", "user,item,time\n1,\"a\"\n");
    says(&satf(&["stats", &log]), &["expected 3 columns, found 2 in \"1a\""], &["\\0", "KiB"]);
    let log =
        folder.with("log.csv", "user,item,time\n\"1\",\"a \"\"b\"\"\",\"3\"\n2,c\"d,4\n\"3\",\"x\r\ny\",5\n");
    assert!(satf(&["stats", &log, "--json"]).succeeds().contains("\"items\": 3"));
}

#[test]
fn one_is_not_many_and_thousands_are_set_apart() {
    let folder = Folder::new();
    let rows = |users: usize| {
        (0..users).fold("user,item,time\n".to_owned(), |text, user| {
            text + &format!("{user},a,{user}\n{user},b,{}\n", user + 1)
        })
    };
    let one = folder.with("one.csv", rows(1));
    says(
        &satf(&["evaluate", &one, "-m", "mp", "--split", "leave-one-out"]),
        &[],
        &["1 users", "1 rows", "1 events"],
    );
    let few = folder
        .with("few.csv", "user,item,time\n1,a,2020-01-01\n1,b,2020-01-02\n2,a,2020-03-01\n2,c,2020-03-02\n");
    let outcome = satf(&["evaluate", &few, "-m", "mp", "--valid", "1day", "--test", "3weeks"]);
    says(&outcome, &[], &["1 users", "1 items", "1 rows"]);
    let model = folder.at("m.satf");
    says(
        &satf(&["train", &one, "-m", "mp", "-o", &model]),
        &["learned from 2 rows of 1 user and 2 items"],
        &[],
    );
    let histories = folder.with("h.jsonl", "{\"user\": 1, \"history\": [\"zebra\"]}\n");
    let outcome = satf(&["recommend", &model, "--histories", &histories]);
    says(&outcome, &["1 item of histories is unknown", "1 history has no known item: it got nothing"], &[]);
    let (_shop, log) = shop_log(1500);
    let outcome = satf(&["train", &log, "-m", "transitions", "--memory", "100KB", "-o", &model]);
    assert_eq!(outcome.code, 1, "{}", outcome.stdout);
    assert!(outcome.stderr.contains(" pairs of items") && outcome.stderr.contains(','), "{}", outcome.stderr);
    let outcome = satf(&["train", &log, "-m", "pure-svd", "--set", "rank=99999", "-o", &model]);
    says(&outcome, &["1 fault:", "on this log of 1,500 users and"], &["fault(s)"]);
}
