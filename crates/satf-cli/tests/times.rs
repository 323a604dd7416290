//! What times are taken for, and which options of times mean something.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;

use satf_binary::{satf, shop_log};

const DATES: &str = "user_id,item_id,date\n1,a,20230115\n1,b,20230228\n2,a,20231231\n";

#[test]
fn dates_that_are_numbers_are_told_of_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv").to_str().unwrap().to_owned();
    fs::write(&path, DATES).unwrap();
    let stats = |options: &[&str]| satf(&[&["stats", &path][..], options].concat());
    let told = |said: &str| said.contains("times such as 20230115 look like dates");
    let auto = stats(&[]);
    assert!(told(&auto.stderr) && auto.stderr.contains("--time-unit yyyymmdd"), "{}", auto.stderr);
    assert!(auto.stdout.contains("1970-08-23"), "{}", auto.stdout);
    let seconds = stats(&["--time-unit", "seconds"]);
    assert!(!told(&seconds.stderr) && seconds.stdout.contains("1970-08-23"), "{}", seconds.stderr);
    let dates = stats(&["--time-unit", "yyyymmdd"]);
    assert!(
        dates.stderr.is_empty() && dates.stdout.contains("2023-12-31"),
        "{}{}",
        dates.stderr,
        dates.stdout
    );
    // One number that is no date does not make seconds of all the others.
    for other in ["20230230", "1500000000", "0", "-1", "99999999", "20230115.5"] {
        fs::write(&path, format!("{DATES}2,b,{other}\n")).unwrap();
        let auto = stats(&[]);
        assert!(told(&auto.stderr), "{other}: {}", auto.stderr);
        let dates = stats(&["--time-unit", "yyyymmdd"]);
        assert_eq!(dates.code, 1, "{other}: {}", dates.stdout);
        assert!(
            dates.stderr.contains("line 5") && dates.stderr.contains("a date such as"),
            "{}",
            dates.stderr
        );
    }
    // Whatever stands first.
    fs::write(&path, "user_id,item_id,date\n1,c,0\n1,a,99999999\n1,a,20230115\n1,b,20230228\n").unwrap();
    assert!(told(&stats(&[]).stderr));
}

#[test]
fn dates_that_are_numbers_with_a_point_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("log.csv").to_str().unwrap().to_owned();
    let json = folder.path().join("log.jsonl").to_str().unwrap().to_owned();
    fs::write(&csv, "user_id,item_id,date\n1,a,20230115.0\n1,b,20230228.0\n2,a,2.0231231e7\n").unwrap();
    fs::write(&json, "{\"user\": 1, \"item\": \"a\", \"date\": 20230115.0}\n{\"user\": 1, \"item\": \"b\", \"date\": 20230228.0}\n")
        .unwrap();
    for path in [&csv, &json] {
        let auto = satf(&["stats", path]);
        assert!(auto.stderr.contains("times such as 20230115 look like dates"), "{path}: {}", auto.stderr);
        let dates = satf(&["stats", path, "--time-unit", "yyyymmdd"]).succeeds();
        assert!(dates.contains("2023-01-15"), "{dates}");
    }
    // Seconds that count from some beginning are no dates, though a few of them look like some.
    let rows = (0..2000).fold(String::new(), |rows, at| rows + &format!("1,{at},{}\n", 20_230_000 + at));
    fs::write(&csv, format!("user_id,item_id,time\n{rows}")).unwrap();
    let seconds = satf(&["stats", &csv]);
    assert!(!seconds.stderr.contains("look like dates"), "{}", seconds.stderr);
}

#[test]
fn options_of_times_that_mean_nothing_are_refused() {
    let (folder, log) = shop_log(60);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "-m", "mp", "-o", &at("m.satf")]).succeeds();
    fs::write(at("iso.csv"), "user_id,item_id,time\n1,tent,2024-05-17\n").unwrap();
    fs::write(at("numbers.csv"), "user_id,item_id,time\na,tent,1500000000\n").unwrap();
    fs::write(at("order.txt"), "1 1\n1 2\n2 1\n").unwrap();
    fs::write(at("lists.jsonl"), "{\"user_id\": 1, \"history\": [\"tent\"]}\n").unwrap();
    for (line, part) in [
        ("stats LOG --time-unit seconds", "dates for times"),
        ("stats %/iso.csv --time-unit seconds", "dates for times"),
        ("stats %/order.txt --format sasrec --time-unit seconds", "no times"),
        ("recommend %/m.satf --histories LOG --time-unit seconds -o %/x.csv", "dates for times"),
        ("recommend %/m.satf --histories %/iso.csv --time-unit seconds -o %/x.csv", "dates for times"),
        ("recommend %/m.satf --histories %/lists.jsonl --time-unit seconds -o %/x.csv", "no times"),
        ("recommend %/m.satf --histories %/lists.jsonl --order-is-time -o %/x.csv", "whole histories"),
    ] {
        let line = line.replace('%', folder.path().to_str().unwrap()).replace("LOG", &log);
        let outcome = satf(&line.split(' ').collect::<Vec<_>>());
        // The format is said, or the content tells.
        let code = if line.contains("--format") { 2 } else { 1 };
        assert_eq!(outcome.code, code, "{line}: {} {}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(part), "{line}: {}", outcome.stderr);
    }
    assert!(!folder.path().join("x.csv").exists());
    satf(&["stats", &at("numbers.csv"), "--time-unit", "seconds"]).succeeds();
    satf(&["recommend", &at("m.satf"), "--histories", &at("numbers.csv"), "--time-unit", "seconds"])
        .succeeds();
    let (first, second) = (at("iso.csv"), at("numbers.csv"));
    let mixed = satf(&["stats", &first, &second, "--time-unit", "seconds", "--user-type", "string"]);
    assert!(mixed.stderr.contains("iso.csv") && mixed.stderr.contains("the other files"), "{}", mixed.stderr);
    mixed.succeeds();
}
