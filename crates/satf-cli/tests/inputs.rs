//! Inputs that are odd without being unreadable: what would be lost or taken for something else is told of or refused.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;

use satf_binary::{satf, shop_log};
use serde_json::Value;

#[test]
fn times_finer_than_a_microsecond_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    let path = log.to_str().unwrap();
    let stats = |rows: &str| {
        fs::write(&log, format!("user,item,time\n{rows}")).unwrap();
        let outcome = satf(&["stats", path, "--json"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        (serde_json::from_str::<Value>(&outcome.stdout).unwrap()["tied_rows"].clone(), outcome.stderr)
    };
    for rows in [
        "1,a,1500000000000000001\n1,b,1500000000000000002\n1,c,1500000000000001000\n",
        "1,a,2017-12-17T10:11:12.0000001Z\n1,b,2017-12-17T10:11:12.0000002Z\n1,c,2017-12-17T10:11:12.5Z\n",
    ] {
        let (tied, said) = stats(rows);
        assert_eq!(tied, 2, "{rows}");
        assert!(
            said.contains("2 times are finer than a microsecond and rounded to it") && said.contains("ties"),
            "{said}"
        );
    }
    let (_, said) = stats("1,a,1500000000000000000\n1,b,1500000000000001000\n");
    assert_eq!(said, "");

    // The same of histories.
    let (shop, log) = shop_log(50);
    let at = |name: &str| shop.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "--model", "mp", "-o", &at("m.satf")]).succeeds();
    fs::write(at("h.csv"), "user,item,time\n1,tent,1500000000000000001\n1,stove,1500000000000000002\n")
        .unwrap();
    let outcome = satf(&["recommend", &at("m.satf"), "--histories", &at("h.csv")]);
    assert!(outcome.stderr.contains("2 times are finer"), "{}", outcome.stderr);
}

#[test]
fn no_column_is_both_user_and_item() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    fs::write(&log, "user,item,time\n1,2,3\n").unwrap();
    for (options, roles) in [
        (["--user-column", "item"], "the user and the item"),
        (["--item-column", "1"], "the user and the item"),
        (["--time-column", "user"], "the user and the time"),
    ] {
        let outcome = satf(&[&["stats", log.to_str().unwrap()], &options[..]].concat());
        assert_eq!(outcome.code, 1, "{options:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(roles) && outcome.stderr.contains("-column (a name"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_name_that_two_columns_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let log = at("log.csv", "user_id,item_id,timestamp,item_id\n1,2,3,4\n");
    let outcome = satf(&["stats", &log]);
    assert!(
        outcome.code == 1 && outcome.stderr.contains("--item-column (a name, or a number"),
        "{}",
        outcome.stderr
    );
    satf(&["stats", &log, "--item-column", "4"]).succeeds();
    let results = at("results.csv", "user_id,item_id,timestamp,NDCG@10,NDCG@10\n1,2,3,0,1\n2,2,3,0,1\n");
    let outcome = satf(&["compare", &results, &results]);
    assert!(outcome.code == 1 && outcome.stderr.contains("several columns `NDCG@10`"), "{}", outcome.stderr);
}

#[test]
fn boosts_and_titles_have_the_columns_that_are_read() {
    let (folder, log) = shop_log(50);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "--model", "mp", "-o", &at("m.satf")]).succeeds();
    let model = at("m.satf");
    fs::write(at("boosts.csv"), "laptop,1,5\n").unwrap();
    fs::write(at("titles.csv"), "laptop,Laptop\ntent,Tent, red\n").unwrap();
    let (boosts, titles) = (format!("@{}", at("boosts.csv")), at("titles.csv"));
    for (options, part) in [(["--boost", &boosts], "line 1"), (["--titles", &titles], "line 2")] {
        let outcome = satf(&[&["recommend", &model, "--history", "tent"], &options[..]].concat());
        assert_eq!(outcome.code, 1, "{options:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(part) && outcome.stderr.contains("two columns"),
            "{}",
            outcome.stderr
        );
    }
    for boost in ["tent=1e39", "tent=*1e-50", "tent=*1e39"] {
        let outcome = satf(&["recommend", &model, "--history", "laptop", "--boost", boost]);
        assert!(outcome.code == 2 && outcome.stderr.contains("3.4e38"), "{boost}: {}", outcome.stderr);
    }
}

#[test]
fn nothing_is_asked_for_by_mistake() {
    let (folder, log) = shop_log(50);
    let model = folder.path().join("m.satf").to_str().unwrap().to_owned();
    satf(&["train", &log, "--model", "pure-svd", "--set", "rank=4", "-o", &model]).succeeds();
    for line in [["similar", &model, "tent", "-n", "0"], ["recommend", &model, "--history=tent", "-n", "0"]] {
        let outcome = satf(&line);
        assert!(outcome.code == 2 && outcome.stderr.contains("'0'"), "{line:?}: {}", outcome.stderr);
    }
}

#[test]
fn the_last_year_is_shown_as_a_date() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    fs::write(&log, "user,item,time\n1,a,0000-01-01\n1,b,9999-12-31T23:59:59Z\n").unwrap();
    let shown = satf(&["stats", log.to_str().unwrap()]).succeeds();
    assert!(shown.contains("9999-12-31T23:59:59Z") && shown.contains("0000-01-01T00:00:00Z"), "{shown}");
}

/// Two files of per-event results with these rows of user and metric.
fn compared(first: &[(&str, &str)], second: &[(&str, &str)], options: &[&str]) -> satf_binary::Outcome {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: &[(&str, &str)]| {
        let path = folder.path().join(name);
        let rows = rows.iter().enumerate().map(|(at, (user, value))| format!("{user},i{at},{at},{value}\n"));
        let text = rows.fold("user_id,item_id,timestamp,NDCG@10\n".to_owned(), |text, row| text + &row);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (first, second) = (write("first.csv", first), write("second.csv", second));
    satf(&[&["compare", &first, &second, "--draws", "200"], options].concat())
}

#[test]
fn one_user_tells_nothing_of_others() {
    let first = [("1", "0"), ("1", "0.5"), ("1", "0")];
    let second = [("1", "1"), ("1", "0.5"), ("1", "1")];
    let metric = |outcome: satf_binary::Outcome| {
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        (report["comparisons"][0]["metrics"]["NDCG@10"].clone(), outcome.stderr)
    };
    let (alone, said) = metric(compared(&first, &second, &["--json"]));
    assert!(alone["interval"].is_null() && alone["p_value"] == 1.0, "{alone}");
    assert!(said.contains("of one user") && said.contains("--unit event"), "{said}");
    let shown = compared(&first, &second, &[]).succeeds();
    assert!(shown.contains("none"), "{shown}");
    // Taken one by one they do.
    let (events, said) = metric(compared(&first, &second, &["--json", "--unit", "event"]));
    assert!(events["interval"].is_array() && said.is_empty(), "{events} {said}");
}

#[test]
fn one_event_has_no_interval_and_says_why() {
    for options in [&[][..], &["--unit", "event"]] {
        let outcome = compared(&[("1", "0")], &[("1", "1")], options);
        assert!(outcome.code == 0 && outcome.stdout.contains("none"), "{}", outcome.stdout);
        assert!(
            outcome.stderr.contains("one event tells nothing of others: there is no interval"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn metrics_of_one_file_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, metric: &str| {
        let path = folder.path().join(name);
        let header = format!("user_id,item_id,timestamp,NDCG@10,{metric}\n");
        fs::write(&path, header + "1,a,3,0,1\n2,a,3,1,1\n3,a,3,1,0\n").unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (first, second) = (write("first.csv", "HR@10"), write("second.csv", "NDCG@20"));
    let outcome = satf(&["compare", &first, &second, "--draws", "200", "--json"]);
    for part in ["second.csv has no HR@10, which", "first.csv has no NDCG@20, which"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
    let report: Value = serde_json::from_str(&outcome.succeeds()).unwrap();
    assert_eq!(report["comparisons"][0]["metrics_of_one_file"], serde_json::json!(["HR@10", "NDCG@20"]));
    assert_eq!(report["comparisons"][0]["metrics"].as_object().unwrap().len(), 1);
}

#[test]
fn metrics_are_shares() {
    for value in ["1e308", "-0.1", "1.5", "nan", "inf", "", "much"] {
        let outcome = compared(&[("1", value), ("2", "1")], &[("1", "0"), ("2", "1")], &["--json"]);
        assert_eq!(outcome.code, 1, "{value}: {}", outcome.stdout);
        assert!(outcome.stderr.contains("numbers from 0 to 1"), "{value}: {}", outcome.stderr);
    }
    compared(&[("1", "0"), ("2", "1")], &[("1", "1.0"), ("2", "1e0")], &[]).succeeds();
}
