//! Lists that any tool made, and models from files, are judged like models that are trained.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use satf_binary::{satf, shop_log};
use serde_json::Value;

const CUT: [&str; 4] = ["--valid", "1month", "--test", "1month"];

/// The runs of `satf evaluate --json` with these arguments.
fn evaluate(log: &str, arguments: &[&str]) -> Vec<Value> {
    let all = [&["evaluate", log, "--json"], &CUT[..], arguments].concat();
    let printed: Value = serde_json::from_str(&satf(&all).succeeds()).unwrap();
    printed["runs"].as_array().unwrap().clone()
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// The lines of the exported events.
fn events(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("cut/events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn export(log: &str, folder: &Path) {
    let cut = at(folder, "cut");
    satf(&[&["evaluate", log, "--export", &cut], &CUT[..]].concat()).succeeds();
}

#[test]
fn lists_of_a_model_and_its_file_have_the_scores_of_the_model_to_the_bit() {
    let (folder, log) = shop_log(400);
    let folder = folder.path();
    export(&log, folder);
    for model in ["transitions", "d-satf", "pure-svd"] {
        let (file, histories) = (at(folder, "m.satf"), at(folder, "cut/events.jsonl"));
        satf(&["train", &log, "--model", model, "--leave-out", "1month", "-o", &file]).succeeds();
        let mut arguments =
            vec!["--model".to_owned(), format!("{model},{file}"), "--at".into(), "5,10".into()];
        for (name, ending, key) in [
            ("a", "csv", "event_id"),
            ("b", "jsonl", "event_id"),
            ("c", "parquet", "event_id"),
            ("d", "csv", "user_id"),
        ] {
            let path = at(folder, &format!("{name}.{ending}"));
            satf(&["recommend", &file, "--histories", &histories, "--user-column", key, "-o", &path])
                .succeeds();
            arguments.extend(["--lists".to_owned(), path]);
        }
        let scores = at(folder, "scores.csv");
        arguments.extend(["--per-event".to_owned(), scores]);
        let runs = evaluate(&log, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(runs.len(), 6);
        assert!(runs[0]["metrics"]["NDCG@10"]["value"].as_f64().unwrap() > 0.0);
        let per_event = |label: &str| fs::read_to_string(folder.join(format!("scores.{label}.csv"))).unwrap();
        for (run, label) in runs[1..].iter().zip(["m.satf", "a", "b", "c", "d"]) {
            assert_eq!(run["metrics"], runs[0]["metrics"], "{model} {label}");
            assert_eq!(run["events"], runs[0]["events"], "{model} {label}");
            assert_eq!(per_event(label), per_event(model), "{model} {label}");
        }
        assert_eq!(runs[1]["learned"]["from"], "the same training set");
        let report = &runs[2]["lists"];
        assert_eq!(report["lists"], report["events"]);
        for what in ["unused_lists", "events_without_list", "short_lists", "seen_items", "unknown_items"] {
            assert_eq!(report[what], 0, "{what}");
        }
    }
}

/// The rows of a file of columns without quotes.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    assert!(!text.contains('"'));
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// How often each item is in the exported training set.
fn popularity(folder: &Path) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for row in rows(&folder.join("cut/train.csv")) {
        *counts.entry(row[1].clone()).or_insert(0) += 1;
    }
    counts
}

#[test]
fn one_list_for_a_user_is_judged_on_all_events_without_what_the_user_has() {
    let (folder, log) = shop_log(300);
    let folder = folder.path();
    export(&log, folder);
    let counts = popularity(folder);
    let users: std::collections::BTreeSet<String> =
        events(folder).iter().map(|event| event["user_id"].to_string()).collect();
    // The whole catalogue, in no order but that of scores.
    let mut by_score = "user,score,item\n".to_owned();
    for user in &users {
        for (item, count) in counts.iter().rev() {
            by_score.push_str(&format!("{},{count},{item}\n", user.trim_matches('"')));
        }
    }
    fs::write(folder.join("by_score.csv"), by_score).unwrap();
    let mut ranked: Vec<(&String, &u32)> = counts.iter().collect();
    ranked.sort_by_key(|(item, count)| (std::cmp::Reverse(**count), (*item).clone()));
    let items: Vec<&String> = ranked.iter().map(|(item, _)| *item).collect();
    let whole: Vec<String> = users
        .iter()
        .map(|user| {
            format!("{{\"user_id\": {user}, \"items\": {}}}\n", serde_json::to_string(&items).unwrap())
        })
        .collect();
    fs::write(folder.join("whole.jsonl"), whole.concat()).unwrap();

    let (by_score, whole) = (at(folder, "by_score.csv"), format!("mine={}", at(folder, "whole.jsonl")));
    let runs = evaluate(&log, &["--model", "mp", "--lists", &by_score, "--lists", &whole]);
    assert_eq!(runs[2]["name"], "mine");
    for run in &runs[1..] {
        assert_eq!(run["metrics"], runs[0]["metrics"], "{}", run["name"]);
        assert_eq!(run["lists"]["lists"], users.len());
        assert!(run["lists"]["seen_items"].as_u64().unwrap() > 0);
        assert_eq!(run["lists"]["short_lists"], 0);
    }
}

/// A log of integers: user 1 to 3, one event a day; the last three days are the test set.
fn small_log(folder: &Path) -> String {
    let mut text = "user_id,item_id,timestamp\n".to_owned();
    for day in 0..30 {
        for user in 1..4 {
            let item = 10 + (day * user + day / 3) % 29;
            text.push_str(&format!("{user},{item},{}\n", 1_600_000_000 + day * 86_400 + user));
        }
    }
    let path = at(folder, "small.csv");
    fs::write(&path, text).unwrap();
    path
}

const SMALL_CUT: [&str; 4] = ["--test", "3days", "--ties", "file"];

fn small(log: &str, lists: &str) -> Result<Value, (i32, String)> {
    let outcome = satf(&[&["evaluate", log, "--json", "--lists", lists], &SMALL_CUT[..]].concat());
    if outcome.code != 0 {
        return Err((outcome.code, outcome.stderr));
    }
    let printed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    Ok(printed["runs"][0].clone())
}

#[test]
fn what_becomes_of_lists_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = small_log(folder);
    satf(&[&["evaluate", &log, "--export", &at(folder, "cut")], &SMALL_CUT[..]].concat()).succeeds();
    let events = events(folder);
    let of = |user: i64| events.iter().filter(|event| event["user_id"] == user).collect::<Vec<_>>();
    assert!(of(1).len() > 1 && of(2).len() > 1 && of(3).len() > 1, "{events:?}");
    assert!(events.iter().all(|event| event.get("item_id").is_none()), "nothing tells what is looked for");

    // User 1 has a list with an unknown item, an item twice and one seen; user 2 has none; user 7 is nobody.
    let seen = &of(1)[0]["history"][0];
    let path = at(folder, "lists.tsv");
    fs::write(
        &path,
        format!(
            "user_id\titem_id\trank\n1\t{seen}\t1\n1\tnosuch\t2\n1\t11\t3\n1\t11\t4\n7\t11\t1\n3\t12\t1\n"
        ),
    )
    .unwrap();
    let run = small(&log, &path).unwrap();
    let report = &run["lists"];
    let expected = [
        ("lists", 3),
        ("unused_lists", 1),
        ("events", events.len()),
        ("events_without_list", of(2).len()),
        ("users_without_list", 1),
        ("short_lists", of(1).len() + of(3).len()),
        ("repeated_items", 1),
        ("unknown_items", 1),
    ];
    for (name, count) in expected {
        assert_eq!(report[name], count, "{name}: {report}");
    }
    assert!(report["seen_items"].as_u64().unwrap() >= of(1).len() as u64, "{report}");
    let told = satf(&[&["evaluate", &log, "--lists", &path], &SMALL_CUT[..]].concat()).succeeds();
    for part in ["lists: 3 lists for", "without a list, which count as misses", "cannot be hit"] {
        assert!(told.contains(part), "no '{part}' in {told}");
    }
}

#[test]
fn a_list_may_be_for_a_time_and_an_unknown_item_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = small_log(folder);
    // The items looked for are not exported; the results of any model name them.
    let scores = at(folder, "scores.csv");
    satf(&[&["evaluate", &log, "--model", "mp", "--per-event", &scores], &SMALL_CUT[..]].concat()).succeeds();
    let mut lists = "user_id,timestamp,item_id,rank\n".to_owned();
    let mut hits = 0;
    for row in rows(Path::new(&scores)) {
        lists.push_str(&format!("{0},{2},nosuch,1\n{0},{2},{1},2\n", row[0], row[1], row[2]));
        hits += 1;
    }
    let path = at(folder, "lists.csv");
    fs::write(&path, lists).unwrap();
    let run = small(&log, &path).unwrap();
    let repeats = run["events"]["repeats"].as_u64().unwrap() as f64;
    let reachable = f64::from(hits) - repeats;
    let mrr = run["metrics"]["MRR@10"]["value"].as_f64().unwrap();
    assert!((mrr - reachable / f64::from(hits) / 2.0).abs() < 1e-12, "{mrr}: every target is second");
}

#[test]
fn lists_that_cannot_be_meant_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = small_log(folder);
    satf(
        &[&["evaluate", &log, "--export", &at(folder, "cut")], &["--test", "4days", "--ties", "file"][..]]
            .concat(),
    )
    .succeeds();
    let other = events(folder)[0]["event_id"].as_str().unwrap().to_owned();
    let path = at(folder, "lists.csv");
    let cases = [
        (format!("event_id,item_id,rank\n{other},11,1\n"), "another cut of the log"),
        (format!("user_id,item_id,rank\n{other},11,1\n"), "another cut of the log"),
        ("event_id,item_id,rank\n3,11,1\n".to_owned(), "expected an id as exported events have it"),
        ("user_id,item_id,rank\n1,11,1\n1,12,1\n1,13,1\n1,14,1\n1,15,1\n".to_owned(), "1 has 5 lists for"),
        ("user_id,item_id,rank\n1,11,2\n1,12,1\n1,13,2\n".to_owned(), "has the rank 2 twice"),
        (
            "user_id,item_id,rank\n1,11,first\n".to_owned(),
            "line 2, column \"rank\": expected a rank (a number)",
        ),
        ("user_id,item_id,score\n1,11,NaN\n".to_owned(), "expected a score (a number)"),
        ("user_id,rank\n1,1\n".to_owned(), "item_id with rank or score"),
        ("user_id,item_id\n9,11\n".to_owned(), "none of 1 lists is for an event to predict"),
        ("user_id,timestamp,item_id\n1,1500000000,11\n".to_owned(), "not those at which lists were made"),
        ("user_id,item_id\n1,11.0\n".to_owned(), "no item of any list is in the training set"),
        ("user_id,item_id,rank\n".to_owned(), "no rows"),
    ];
    for (text, part) in cases {
        fs::write(&path, &text).unwrap();
        let (code, message) = small(&log, &path).unwrap_err();
        assert_eq!(code, 1, "{text}");
        assert!(message.contains(part), "{text}: {message}");
        assert!(!message.contains("-column"), "options of the log are not about lists: {message}");
    }
    // Beside a model it is left out, and told of.
    fs::write(&path, "user_id,item_id\n9,11\n").unwrap();
    let all = [&["evaluate", &log, "--model", "mp", "--lists", &path, "--json"], &SMALL_CUT[..]].concat();
    let outcome = satf(&all);
    assert_eq!(outcome.code, 1);
    let printed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(printed["runs"][0]["metrics"].is_object());
    assert!(printed["runs"][1]["error"].as_str().unwrap().contains("none of 1 lists"));
}

#[test]
fn what_is_exported_is_what_models_learn_from() {
    let (folder, log) = shop_log(300);
    let folder = folder.path();
    export(&log, folder);
    let train = at(folder, "cut/train.csv");
    let hash = |arguments: &[&str]| {
        let file = at(folder, "m.satf");
        let printed =
            satf(&[&["train", "--model", "mp", "--json", "-o", &file], arguments].concat()).succeeds();
        serde_json::from_str::<Value>(&printed).unwrap()["manifest"]["dataset"]["content_hash"].clone()
    };
    assert_eq!(hash(&[&train, "--ties", "file"]), hash(&[&log, "--leave-out", "1month"]));
    // An export alone scores nothing, and goes on where something is asked for.
    let printed =
        satf(&[&["evaluate", &log, "--export", &at(folder, "cut"), "--json"], &CUT[..]].concat()).succeeds();
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["runs"].as_array().unwrap().len(), 0);
    assert_eq!(printed["export"]["events_to_predict"], events(folder).len());
    assert_eq!(evaluate(&log, &["--export", &at(folder, "cut"), "--model", "mp"]).len(), 1);
}

#[test]
fn a_model_file_says_whether_it_may_have_seen_what_it_predicts() {
    let (folder, log) = shop_log(300);
    let folder = folder.path();
    let (all, past) = (at(folder, "all.satf"), at(folder, "past.satf"));
    satf(&["train", &log, "--model", "transitions", "-o", &all]).succeeds();
    satf(&["train", &log, "--model", "transitions", "--leave-out", "2months", "-o", &past]).succeeds();
    let told = |file: &str| satf(&[&["evaluate", &log, "--model", file], &CUT[..]].concat());
    let outcome = told(&all);
    assert!(outcome.stderr.contains("may have seen what it predicts"), "{}", outcome.stderr);
    assert!(outcome.succeeds().contains("all.satf"));
    assert!(!told(&past).stderr.contains("may have seen"));
    let runs = evaluate(&log, &["--model", &format!("{all},transitions,{past}")]);
    let ndcg = |run: &Value| run["metrics"]["NDCG@10"]["value"].as_f64().unwrap();
    assert!(ndcg(&runs[0]) > ndcg(&runs[1]), "whoever saw the test set does better");
    assert_eq!(runs[0]["learned"]["from"], "perhaps events to predict");
    assert_eq!((&runs[1]["model"], &runs[2]["model"]), (&"transitions".into(), &"transitions".into()));
    assert_eq!(runs[2]["learned"]["from"], "earlier events");
}

#[test]
fn worse_is_an_exit_code_of_its_own() {
    let (folder, log) = shop_log(400);
    let folder = folder.path();
    let scores = at(folder, "s.csv");
    satf(
        &[&["evaluate", &log, "--model", "transitions,random,mp", "--per-event", &scores], &CUT[..]].concat(),
    )
    .succeeds();
    let [good, bad, middle] =
        ["transitions", "random", "mp"].map(|model| at(folder, &format!("s.{model}.csv")));
    let compare = |arguments: &[&str]| satf(&[&["compare", "--draws", "2000"], arguments].concat());
    let worse = compare(&[&good, &bad, "--fail-if-worse"]);
    assert_eq!(worse.code, 3, "{}", worse.stderr);
    assert!(worse.stderr.contains("s.random.csv is worse than") && worse.stdout.contains("NDCG@10"));
    assert_eq!(compare(&[&good, &bad]).code, 0, "only if asked for");
    assert_eq!(compare(&[&bad, &good, "--fail-if-worse"]).code, 0, "better");
    assert_eq!(compare(&[&good, &good, "--fail-if-worse"]).code, 0, "the same");
    assert_eq!(compare(&[&good, &good, &bad, "--fail-if-worse=MRR@10", "--level", ".01"]).code, 3);
    let printed = compare(&[&good, &middle, &bad, "--fail-if-worse=HR@10", "--json"]);
    assert_eq!(printed.code, 3);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(printed["fail_if_worse"]["metric"], "HR@10");
    assert_eq!(printed["fail_if_worse"]["level_of_each_file"], 0.025);
    assert_eq!(printed["fail_if_worse"]["is_worse"][1], true);
    for (arguments, code, part) in [
        (vec!["--fail-if-worse=HR@7"], 1, "no such metric in common"),
        (vec!["--fail-if-worse", "--level", "1e-5"], 2, "more --draws"),
        (vec!["--fail-if-worse", "--level", "2"], 2, "between 0 and 1"),
        (vec!["--level", ".1"], 2, "--fail-if-worse"),
        (vec!["--fail-if-worse=GOOD"], 2, "GOOD"),
    ] {
        let outcome = compare(&[&[good.as_str(), bad.as_str()], &arguments[..]].concat());
        assert_eq!(outcome.code, code, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{arguments:?}: {}", outcome.stderr);
    }
}

#[test]
fn options_for_training_are_refused_where_nothing_is_trained() {
    let (folder, log) = shop_log(60);
    let file = at(folder.path(), "m.satf");
    satf(&["train", &log, "--model", "mp", "-o", &file]).succeeds();
    for option in
        [&["--set", "rank=3"][..], &["--max-len", "3"], &["--memory", "1GiB"], &["--early-stopping"]]
    {
        let outcome = satf(&[&["evaluate", &log, "--model", &file], option].concat());
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(option[0]), "{}", outcome.stderr);
    }
    let missing = satf(&["evaluate", &log, "--model", "./nosuch"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("nosuch"), "{}", missing.stderr);
}

#[test]
fn odd_names_of_files_and_lists_that_nobody_takes() {
    let (folder, log) = shop_log(200);
    let folder = folder.path();
    export(&log, folder);
    let event = events(folder).remove(0);
    fs::create_dir(folder.join("day=1")).unwrap();
    let path = at(folder, "day=1/lists.csv");
    let (user, id) = (event["user_id"].as_str().unwrap(), event["event_id"].as_str().unwrap());
    fs::write(&path, format!("user_id,item_id,rank\n{user},laptop,1\n{id},tent,1\n")).unwrap();
    let runs = evaluate(&log, &["--lists", &path]);
    let own = events(folder).iter().filter(|other| other["user_id"] == event["user_id"]).count();
    assert_eq!(runs[0]["lists"]["unused_lists"], usize::from(own == 1), "{}", runs[0]["lists"]);
    // Another spelling of the id is no event: nobody takes its list.
    let other = id.replace("event-0-", "event-00-");
    fs::write(&path, format!("user_id,item_id,rank\n{id},laptop,1\n{other},tent,1\n")).unwrap();
    assert_eq!(evaluate(&log, &["--lists", &path])[0]["lists"]["unused_lists"], 1);

    let model = at(folder, "m.satf");
    satf(&["train", &log, "--model", "mp", "--leave-out", "1month", "-o", &model]).succeeds();
    assert_eq!(evaluate(&log, &["--model", &format!("{model} ,mp")]).len(), 2);
    for option in [["--at", "10"], ["--unit", "event"], ["--seen", "own"]] {
        let cut = at(folder, "again");
        let outcome = satf(&[&["evaluate", &log, "--export", &cut], &CUT[..], &option].concat());
        assert!(outcome.code == 2 && outcome.stderr.contains("nothing is judged"), "{}", outcome.stderr);
        assert!(!Path::new(&cut).exists());
    }
}

#[test]
fn one_metric_decides_for_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, metric: &str| {
        let rows: Vec<String> = (0..40).map(|user| format!("{user},tent,1,{}\n", user % 2)).collect();
        let rows = rows.concat();
        fs::write(folder.path().join(name), format!("user_id,item_id,timestamp,{metric}\n{rows}")).unwrap();
        at(folder.path(), name)
    };
    let both = folder.path().join("both.csv");
    let rows: Vec<String> = (0..40).map(|user| format!("{user},tent,1,1,1\n")).collect();
    let rows = rows.concat();
    fs::write(&both, format!("user_id,item_id,timestamp,NDCG@10,HR@10\n{rows}")).unwrap();
    let (first, second) = (file("a.csv", "NDCG@10"), file("b.csv", "HR@10"));
    let outcome = satf(&["compare", both.to_str().unwrap(), &first, &second, "--fail-if-worse"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("--fail-if-worse=NDCG@10"), "{}", outcome.stderr);
}
