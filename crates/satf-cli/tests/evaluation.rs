//! `satf evaluate` and its kin: how sure figures are, one shape of JSON, logs of odd shapes, models that cannot be run.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use satf_binary::{only_run, satf, shop_log};
use serde_json::Value;

const DAY: i64 = 86_400;

/// Writes rows of user, item and seconds, and returns the path.
fn csv(folder: &Path, name: &str, rows: impl IntoIterator<Item = (i64, i64, i64)>) -> String {
    let mut text = String::from("user,item,time\n");
    for (user, item, seconds) in rows {
        writeln!(text, "{user},{item},{seconds}").unwrap();
    }
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The values of a column of per-event results, with the users.
fn per_event(path: &str, column: &str) -> Vec<(String, f64)> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let at = |name: &str, header: &str| header.split(',').position(|known| known == name).unwrap();
    let header = lines.next().unwrap();
    let (user, value) = (at("user_id", header), at(column, header));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            (fields[user].to_owned(), fields[value].parse().unwrap())
        })
        .collect()
}

/// Standard errors by their formulas: users taken for independent, and events.
fn errors(events: &[(String, f64)]) -> (f64, f64) {
    let count = events.len() as f64;
    let mean = events.iter().map(|event| event.1).sum::<f64>() / count;
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (user, value) in events {
        *sums.entry(user).or_default() += value - mean;
    }
    let groups = sums.len() as f64;
    let by_user = (groups / (groups - 1.0) * sums.values().map(|sum| sum * sum).sum::<f64>()).sqrt() / count;
    let variance = events.iter().map(|event| (event.1 - mean).powi(2)).sum::<f64>() / count;
    (by_user, (variance / (count - 1.0)).sqrt())
}

const MONTHS: [&str; 4] = ["--valid", "1month", "--test", "1month"];

#[test]
fn errors_are_clustered_by_user_unless_asked_otherwise() {
    let (folder, log) = shop_log(600);
    let scores = folder.path().join("scores.csv").to_str().unwrap().to_owned();
    let run = |more: &[&str]| {
        let base = ["evaluate", &log, "--model", "transitions", "--json", "--per-event", &scores];
        only_run(&satf(&[&base[..], &MONTHS, more].concat()).succeeds())["metrics"]["HR@10"].clone()
    };
    let by_user = run(&[]);
    let (of_users, of_events) = errors(&per_event(&scores, "HR@10"));
    let close = |estimate: &Value, expected: f64| {
        assert!((estimate["stderr"].as_f64().unwrap() - expected).abs() < 1e-12, "{estimate} {expected}");
        let ends: Vec<f64> =
            estimate["interval"].as_array().unwrap().iter().map(|end| end.as_f64().unwrap()).collect();
        assert!((ends[1] - ends[0] - 2.0 * 1.959_964 * expected).abs() < 1e-6, "{estimate}");
    };
    close(&by_user, of_users);
    assert_eq!(by_user["unit"], "user");
    let by_event = run(&["--unit", "event"]);
    close(&by_event, of_events);
    assert_eq!((&by_event["unit"], &by_event["value"]), (&"event".into(), &by_user["value"]));
    assert!((of_users - of_events).abs() > 1e-5, "the test tells the two apart");

    let shown = |more: &[&str]| {
        satf(&[&["evaluate", &log, "--model", "transitions"], &MONTHS[..], more].concat()).succeeds()
    };
    let text = shown(&[]);
    assert!(text.contains("clustered by user") && text.contains(" users scored"), "{text}");
    assert!(text.contains(&format!("± {of_users:.4}")), "{text}");
    assert!(shown(&["--unit", "event"]).contains("as if all events were independent"));
    assert_eq!(satf(&["evaluate", &log, "--unit", "day"]).code, 2);
}

#[test]
fn every_command_with_an_error_has_the_same_one() {
    let (folder, log) = shop_log(400);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let pure_svd = ["--model", "pure-svd", "--set", "rank=8"];
    let evaluated = |more: &[&str]| {
        only_run(&satf(&[&["evaluate", &log, "--json"], &pure_svd[..], &MONTHS, more].concat()).succeeds())
    };
    let expected = &evaluated(&["--on", "validation"])["metrics"]["NDCG@10"];
    assert_eq!(expected["unit"], "user");

    let model = path("shop.satf");
    let train = ["train", &log, "-o", &model, "--validate", "1month", "--leave-out", "1month"];
    let text = satf(&[&train[..], &pure_svd].concat()).succeeds();
    assert!(text.contains("clustered by user"), "{text}");
    let inspected = satf(&["inspect", &model, "--json"]).succeeds();
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(&inspected["manifest"]["validation"]["metrics"]["NDCG@10"], expected);
    assert!(satf(&["inspect", &model]).succeeds().contains("clustered by user"));

    let (study, space) = (path("study"), path("space.toml"));
    fs::write(&space, "keys.rank = [8]\n").unwrap();
    let tune = ["tune", &log, "--study", &study, "--space", &space];
    let text = satf(&[&tune[..], &pure_svd, &MONTHS].concat()).succeeds();
    assert!(text.contains("clustered by user"), "{text}");
    let status = satf(&["tune", "status", &study, "--json"]).succeeds();
    let status: Value = serde_json::from_str(&status).unwrap();
    let best = &status["best"];
    assert_eq!((&best["stderr"], &best["unit"]), (&expected["stderr"], &expected["unit"]));
    assert!(satf(&["tune", "status", &study]).succeeds().contains("clustered by user"));

    let la_satf = ["--model", "la-satf", "--set", "user_rank=12", "--set", "item_rank=10"];
    let stopped = ["evaluate", &log, "--json", "--early-stopping", "--unit", "event"];
    let stopped = only_run(&satf(&[&stopped[..], &la_satf, &MONTHS].concat()).succeeds());
    assert_eq!(stopped["early_stopping"]["curve"][0]["unit"], "event");
    assert!(satf(&["demo"]).succeeds().contains("± is one standard error, clustered by user"));
}

#[test]
fn reproductions_mark_figures_by_clustered_errors() {
    let (folder, log) = shop_log(400);
    let suite = folder.path().join("suite.toml");
    let text = "title = 'A shop'\nrepeats = 1\n[[datasets]]\nname = 'shop'\nfiles = ['shop.parquet']\nvalid = '1month'\n\
                test = '1month'\nmax_len = 20\n[[models]]\nname = 'transitions'\nmodel = 'transitions'\n[[models]]\n\
                name = 'EASE'\nmodel = 'ease'\nsettings = { memory_bytes = 100000 }\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";
    fs::write(&suite, text).unwrap();
    let (data, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
    let arguments =
        ["reproduce", "--data", data, "--suite", suite.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let outcome = satf(&[&arguments[..], &["--json"]].concat());
    // EASE cannot be run; the models before and after it are there.
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("left out: EASE on shop"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("97.7 KiB allowed"), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["failed"].as_array().unwrap().len(), 2, "{}", report["failed"]);
    let rows = report["datasets"][0]["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["transitions", "MP"]);
    let markdown = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(markdown.contains("could not be run: EASE on shop"), "{markdown}");
    assert!(markdown.contains("± is one standard error, clustered by user"), "{markdown}");

    assert_eq!(report["made"]["error_unit"], "user");
    let alone = ["evaluate", &log, "--model", "transitions", "--ties", "file", "--max-len", "20", "--json"];
    let alone = only_run(&satf(&[&alone[..], &MONTHS].concat()).succeeds());
    let figure = &rows[0]["file"]["figures"][0];
    assert_eq!(figure["stderr"], alone["metrics"]["NDCG@10"]["stderr"]);

    // A cell whose errors were made in another way is done again; a time has no error and stays.
    let cell = out.join("cells/shop.transitions.file.1.json");
    let kept: Value = serde_json::from_str(&fs::read_to_string(&cell).unwrap()).unwrap();
    assert_eq!(kept["asked"]["protocol"]["error_unit"], "user");
}

#[test]
fn reports_have_one_shape_for_one_model_and_for_several() {
    let (_folder, log) = shop_log(300);
    let run = |models: &str| -> Value {
        let arguments = ["evaluate", &log, "--model", models, "--json"];
        serde_json::from_str(&satf(&[&arguments[..], &MONTHS].concat()).succeeds()).unwrap()
    };
    let (one, two) = (run("mp"), run("mp,transitions"));
    for (report, count) in [(&one, 1), (&two, 2)] {
        assert_eq!(report.as_object().unwrap().keys().collect::<Vec<_>>(), ["runs"]);
        assert_eq!(report["runs"].as_array().unwrap().len(), count);
    }
    assert_eq!(one["runs"][0]["metrics"], two["runs"][0]["metrics"]);
    let plan = |models: &str| -> Value {
        let arguments = ["plan", &log, "--model", models, "--json"];
        serde_json::from_str(&satf(&[&arguments[..], &MONTHS].concat()).succeeds()).unwrap()
    };
    assert_eq!(plan("la-satf")["plans"].as_array().unwrap().len(), 1);
    assert_eq!(plan("la-satf,ga-satf")["plans"][1]["model"], "ga-satf");
}

#[test]
fn a_model_that_cannot_be_run_does_not_end_the_others() {
    let (folder, log) = shop_log(300);
    let scores = folder.path().join("scores.csv").to_str().unwrap().to_owned();
    let arguments = ["evaluate", &log, "--model", "mp,ease,transitions", "--set", "ease.memory_bytes=300000"];
    let arguments = [&arguments[..], &MONTHS, &["--per-event", &scores]].concat();
    let outcome = satf(&[&arguments[..], &["--json"]].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    for part in [
        "ease is left out",
        "ease needs",
        " of memory for",
        "more than the 293.0 KiB allowed",
        "error: left out",
    ] {
        assert!(outcome.stderr.contains(part), "no '{part}' in {}", outcome.stderr);
    }
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["mp", "ease", "transitions"]);
    assert!(runs[1]["error"].as_str().unwrap().contains("ease needs") && runs[1]["metrics"].is_null());
    assert_eq!(runs[1]["configuration"]["memory_bytes"], 300_000);
    assert!(runs[0]["error"].is_null() && runs[2]["metrics"]["NDCG@10"]["value"].is_f64());
    assert!(folder.path().join("scores.transitions.csv").exists());
    assert!(!folder.path().join("scores.ease.csv").exists());

    let outcome = satf(&arguments);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    for part in ["transitions", " failed ", "ease failed: ease needs", "clustered by user"] {
        assert!(outcome.stdout.contains(part), "no '{part}' in {}", outcome.stdout);
    }

    // Alone it fails as ever, in the same shape.
    let alone = ["evaluate", &log, "--model", "ease", "--set", "memory_bytes=300000", "--json"];
    let outcome = satf(&[&alone[..], &MONTHS].concat());
    assert!(outcome.code == 1 && outcome.stderr.contains("error: ease needs"), "{}", outcome.stderr);
    assert!(only_run(&outcome.stdout)["error"].as_str().unwrap().contains("ease needs"));

    let plan = ["plan", &log, "--model", "la-satf,ga-satf", "--set", "la-satf.memory_bytes=1000", "--json"];
    let outcome = satf(&[&plan[..], &MONTHS].concat());
    assert!(outcome.code == 1 && outcome.stderr.contains("la-satf is left out"), "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(report["plans"][0]["error"].is_string() && report["plans"][1]["operations"].is_f64(), "{report}");
}

/// 6,000 rows over 18 years: a third of a percent of them in the last one.
fn thinning(folder: &Path) -> String {
    let seconds = |at: i64| ((1.0 - (1.0 - at as f64 / 6000.0).sqrt()) * (18 * 365 * DAY) as f64) as i64;
    csv(
        folder,
        "thinning.csv",
        (0..6000).map(|at| (at % 61, (at * at + at / 7) % 83, 1_000_000_000 + seconds(at))),
    )
}

#[test]
fn a_log_that_thins_out_is_cut_by_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let log = thinning(folder.path());
    let outcome = satf(&["evaluate", &log, "--model", "mp", "--json"]);
    for part in ["no usual one leaves enough rows", "newest 10 % of the rows", "--valid ", "--test "] {
        assert!(outcome.stderr.contains(part), "no '{part}' in {}", outcome.stderr);
    }
    let run = only_run(&outcome.succeeds());
    let rows = &run["protocol"]["rows"];
    for part in ["valid", "test"] {
        let rows = rows[part].as_u64().unwrap();
        assert!((600..680).contains(&rows), "{part}: {rows}");
    }
    // What was said can be given.
    let (valid, test) =
        (run["protocol"]["valid"].as_str().unwrap(), run["protocol"]["test"].as_str().unwrap());
    let given = satf(&["evaluate", &log, "--model", "mp", "--json", "--valid", valid, "--test", test]);
    assert!(!given.stderr.contains("no usual one"), "{}", given.stderr);
    assert_eq!(only_run(&given.succeeds())["metrics"], run["metrics"]);

    let order = satf(&["stats", &log, "--order-matters", "--repetitions", "1"]);
    assert!(order.stderr.contains("newest 10 %"), "{}", order.stderr);
    assert!(order.succeeds().contains("Does order matter?"));

    let ordered = folder.path().join("order.txt");
    fs::write(&ordered, "1 5\n1 6\n2 5\n2 7\n3 6\n3 7\n").unwrap();
    let outcome = satf(&["evaluate", ordered.to_str().unwrap(), "--model", "mp"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("no times"), "{}", outcome.stderr);
}

#[test]
fn ties_are_told_of_where_they_could_matter() {
    let folder = tempfile::tempdir().unwrap();
    let log = |name: &str, tied: i64| {
        // Rows come in pairs of one user; so many of the pairs share their time.
        let row = |at: i64| {
            let time = if at % 2 == 1 && at / 2 < tied { at - 1 } else { at };
            (at / 2 % 40, (at * 7 + at / 40) % 61, 1_500_000_000 + time * 600)
        };
        csv(folder.path(), name, (0..4000).map(row))
    };
    let said = |log: &str, more: &[&str]| {
        let arguments = ["evaluate", log, "--model", "mp", "--valid", "3days", "--test", "3days"];
        satf(&[&arguments[..], more].concat()).stderr
    };
    let few = log("few.csv", 2);
    assert!(!said(&few, &[]).contains("share user and time"), "{}", said(&few, &[]));
    assert!(said(&few, &["-v"]).contains("4 of 4,000 rows (less than 1 %)"));
    assert_eq!(
        only_run(&satf(&["evaluate", &few, "--model", "mp", "--json"]).succeeds())["protocol"]["tied_rows"],
        4
    );
    assert!(said(&log("more.csv", 40), &[]).contains("80 of 4,000 rows (2 %) share user and time"));
}

#[test]
fn repeats_are_counted_where_they_cannot_be_hit() {
    let folder = tempfile::tempdir().unwrap();
    // Everybody takes 0 to 9 twice over in the first twenty days; then two take something again, and others something new.
    let mut rows = Vec::new();
    for user in 0..20 {
        rows.extend((0..20).map(|day| (user, (user + day) % 10, day * DAY)));
    }
    rows.extend((0..20).map(|item| (20 + item, 10 + item, DAY)));
    rows.extend([
        (0, 3, 40 * DAY),
        (1, 4, 40 * DAY),
        (1, 10, 41 * DAY),
        (2, 11, 41 * DAY),
        (1, 10, 42 * DAY),
    ]);
    let log = csv(
        folder.path(),
        "log.csv",
        rows.iter().map(|&(user, item, time)| (user, item, 1_500_000_000 + time)),
    );
    let arguments = ["evaluate", &log, "--model", "mp", "--valid", "1day", "--test", "5days", "--json"];
    let outcome = satf(&arguments);
    assert!(
        outcome.stderr.contains("3 of 5 scored events are of items that their users already have"),
        "{}",
        outcome.stderr
    );
    assert_eq!(only_run(&outcome.succeeds())["events"]["repeats"], 3);

    // Repeats in training alone take nothing from any score.
    let trained: Vec<_> =
        rows[..rows.len() - 5].iter().copied().chain([(0, 12, 40 * DAY), (1, 13, 40 * DAY)]).collect();
    let log = csv(
        folder.path(),
        "trained.csv",
        trained.into_iter().map(|(user, item, time)| (user, item, 1_500_000_000 + time)),
    );
    let outcome = satf(&["evaluate", &log, "--model", "mp", "--valid", "1day", "--test", "5days", "--json"]);
    assert!(!outcome.stderr.contains("already have"), "{}", outcome.stderr);
    assert_eq!(only_run(&outcome.succeeds())["events"]["repeats"], 0);
}

#[test]
fn the_default_model_is_evaluated_as_it_is_trained() {
    let (_folder, log) = shop_log(300);
    let run = |more: &[&str]| {
        only_run(&satf(&[&["evaluate", &log, "--json"], &MONTHS[..], more].concat()).succeeds())
    };
    let default = run(&[]);
    assert_eq!(default["model"], "d-satf");
    assert_eq!(default["metrics"], run(&["--model", "d-satf"])["metrics"]);
    assert_eq!(run(&["--set", "window=5"])["configuration"]["window"], 5);
    // Others say which one.
    assert_eq!(satf(&["plan", &log]).code, 2);
    assert_eq!(satf(&["tune", &log]).code, 2);
    assert!(satf(&["evaluate", "--help"]).succeeds().contains("[default: d-satf]"));
}

/// The date so many days after 1970-01-01.
fn date_of(mut days: i64) -> String {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while days >= 365 + i64::from(is_leap(year)) {
        days -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

#[test]
fn a_file_that_came_back_from_another_program_is_compared() {
    let (folder, log) = shop_log(400);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let scores = path("scores.csv");
    let arguments = ["evaluate", &log, "--model", "mp,transitions", "--per-event", &scores];
    satf(&[&arguments[..], &MONTHS].concat()).succeeds();
    let (mp, transitions, other) = (path("scores.mp.csv"), path("scores.transitions.csv"), path("other.csv"));
    let direct = satf(&["compare", &mp, &transitions, "--draws", "500", "--json"]).succeeds();
    // As pandas writes a column of times with a zone.
    let text = fs::read_to_string(&transitions).unwrap();
    let mut lines = text.lines();
    let mut spelled = format!("{}\n", lines.next().unwrap());
    for line in lines {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        let seconds: i64 = fields[2].parse().unwrap();
        let rest = seconds.rem_euclid(DAY);
        let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
        fields[2] = format!("{} {clock}+00:00", date_of(seconds.div_euclid(DAY)));
        spelled.push_str(&fields.join(","));
        spelled.push('\n');
    }
    fs::write(&other, spelled).unwrap();
    let again = satf(&["compare", &mp, &other, "--draws", "500", "--json"]).succeeds();
    let metrics =
        |printed: &str| serde_json::from_str::<Value>(printed).unwrap()["comparisons"][0]["metrics"].clone();
    assert_eq!(metrics(&again), metrics(&direct));
}
