//! The real binary, as a user meets it.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::io::Write;

use satf_binary::{Outcome, only_run, satf, shop_log, without_timings};
use serde_json::Value;

#[test]
fn every_command_has_help_with_an_example() {
    for command in [
        "prepare",
        "stats",
        "evaluate",
        "train",
        "forget",
        "recommend",
        "similar",
        "inspect",
        #[cfg(feature = "serve")]
        "serve",
        #[cfg(feature = "serve")]
        "bench",
        "tune",
        "plan",
        "compare",
        "models",
        "generate",
        "demo",
    ] {
        let help = satf(&[command, "--help"]).succeeds();
        assert!(help.contains("Example") && help.contains(&format!("satf {command}")), "{command}: {help}");
    }
    assert!(satf(&["--help"]).succeeds().contains("satf demo"));
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    assert_eq!(satf(&["evaluate"]).code, 2);
    assert_eq!(satf(&["stats", "x.csv", "--format", "xml"]).code, 2);
    assert_eq!(satf(&["stats", "x.csv", "--threads", "0"]).code, 2);
    let ties = satf(&["evaluate", "x.csv", "--model", "mp", "--ties", "random"]);
    assert!(ties.code == 2 && ties.stderr.contains("expected file, shuffle or basket"), "{}", ties.stderr);
    let offset = satf(&["evaluate", "x.csv", "--model", "mp", "--test", "3"]);
    assert!(offset.code == 2 && offset.stderr.contains("such as 3weeks"), "{}", offset.stderr);
}

#[test]
fn stats_say_whether_order_matters() {
    let (_folder, log) = shop_log(800);
    let arguments = ["stats", &log, "--order-matters", "--test", "1month", "--repetitions", "2"];
    let text = satf(&arguments).succeeds();
    for part in [
        "users",
        "Does order matter? NDCG@10 of",
        "transitions",
        "la-satf",
        "pure-svd",
        "Order helps clearly",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = |threads: &str, seed: &str| -> Value {
        let more = ["--json", "--threads", threads, "--seed", seed];
        serde_json::from_str(&satf(&[&arguments[..], &more].concat()).succeeds()).unwrap()
    };
    let report = json("1", "4");
    assert_eq!(report["users"], 800);
    let order = &report["order"];
    assert_eq!(order["verdict"], "helps-clearly", "{order}");
    assert_eq!((&order["test"], &order["metric"]), (&"1month".into(), &"NDCG@10".into()));
    let best = &order["models"][0];
    assert!(
        best["real"].as_f64() > best["shuffled"].as_f64() && best["p_value"].as_f64() < Some(0.001),
        "{best}"
    );
    assert_eq!(report, json("2", "4"));
    assert_ne!(report, json("2", "5"));

    // An option of the check makes no sense without it.
    let alone = satf(&["stats", &log, "--test", "1month"]);
    assert!(alone.code == 2 && alone.stderr.contains("--order-matters"), "{}", alone.stderr);
}

#[test]
fn order_is_checked_on_logs_without_times_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("order.txt");
    // Everybody goes around the same ring of 60 items.
    let mut text = String::new();
    for user in 0..120 {
        for step in 0..8 {
            text.push_str(&format!("{user} {}\n", (user * 7 + step) % 60));
        }
    }
    fs::write(&path, text).unwrap();
    let outcome = satf(&["stats", path.to_str().unwrap(), "--order-matters"]);
    assert!(outcome.stderr.contains("each user's last event is predicted"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("the last of each user"), "{}", outcome.stdout);
    assert!(outcome.succeeds().contains("Order helps clearly"));
}

#[test]
fn stats_speak_to_people_and_to_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    fs::write(&path, "user,item,time\na,x,2020-01-01\na,y,2020-01-02\nb,x,2020-01-02\na,x,2020-02-01\n")
        .unwrap();
    let json: Value =
        serde_json::from_str(&satf(&["stats", path.to_str().unwrap(), "--json"]).succeeds()).unwrap();
    let expected = serde_json::json!({
        "users": 2, "items": 2, "rows": 4, "average_history": 2.0, "median_history": 2.0, "density": 0.75,
        "first_time": "2020-01-01T00:00:00Z", "last_time": "2020-02-01T00:00:00Z", "duplicates": 1, "tied_rows": 0,
    });
    assert_eq!(json, expected);
    assert!(satf(&["stats", path.to_str().unwrap()]).succeeds().contains("average history"));
}

#[test]
fn preparing_keeps_what_it_says_and_the_result_is_a_log_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let raw = folder.path().join("raw.csv");
    let mut file = fs::File::create(&raw).unwrap();
    writeln!(file, "user,item,time").unwrap();
    for user in 0..6 {
        for item in 0..5 {
            writeln!(file, "u{user},i{item},{}", 1_500_000_000 + user * 1000 + item).unwrap();
        }
    }
    writeln!(file, "u0,i0,1500009999\nu9,i9,1500000001").unwrap();
    drop(file);
    for name in ["log.parquet", "log.csv"] {
        let out = folder.path().join(name);
        let arguments =
            ["prepare", raw.to_str().unwrap(), "--core", "5", "--json", "-o", out.to_str().unwrap()];
        let json: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
        assert_eq!(json["read_rows"], 32);
        assert_eq!((&json["removed_duplicates"], &json["removed_by_core"]), (&1.into(), &1.into()));
        let stats = satf(&["stats", out.to_str().unwrap(), "--json"]).succeeds();
        let stats: Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats, json["statistics"], "{name}");
        assert_eq!((&stats["users"], &stats["items"], &stats["rows"]), (&6.into(), &5.into(), &30.into()));
        assert_eq!(stats["last_time"], "2017-07-14T05:26:39Z", "the last of the duplicates stays");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "no temporary file is left: {left:?}");
}

#[test]
fn a_failed_prepare_leaves_the_old_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (raw, out) = (folder.path().join("raw.csv"), folder.path().join("out.parquet"));
    fs::write(&raw, "user,item,time\na,x,1\n").unwrap();
    fs::write(&out, "precious").unwrap();
    let outcome = satf(&["prepare", raw.to_str().unwrap(), "--core", "3", "-o", out.to_str().unwrap()]);
    assert!(outcome.code == 1 && outcome.stderr.contains("--core"), "{}", outcome.stderr);
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
}

#[test]
fn evaluation_is_the_same_bytes_on_any_number_of_threads() {
    let (_folder, log) = shop_log(600);
    for model in
        ["mp", "random", "pure-svd", "ga-satf", "la-satf", "d-satf", "ease", "vmis-knn", "transitions"]
    {
        let on = |threads: &str| {
            let outcome = satf(&[
                "evaluate",
                &log,
                "--model",
                model,
                "--valid",
                "3weeks",
                "--test",
                "3weeks",
                "--max-len",
                "50",
                "--at",
                "5,10",
                "--seed",
                "3",
                "--threads",
                threads,
                "--json",
            ]);
            let json = only_run(&outcome.succeeds());
            for metric in ["NDCG@10", "HR@10", "MRR@10", "COV@10", "NDCG@5"] {
                assert!(json["metrics"][metric]["value"].is_f64(), "{model} {metric}: {json}");
            }
            assert!(json["train_seconds"].is_f64() && json["evaluate_seconds"].is_f64());
            let events = &json["events"];
            let sum =
                ["scored", "unscored_first"].map(|name| events[name].as_u64().unwrap()).iter().sum::<u64>();
            assert_eq!(sum, events["known"].as_u64().unwrap());
            without_timings(json).to_string()
        };
        assert_eq!(on("1"), on("2"), "{model}");
    }
}

#[test]
fn configuration_comes_from_a_file_and_from_set() {
    let (folder, log) = shop_log(300);
    let file = folder.path().join("svd.toml");
    fs::write(&file, "rank = 12\nscaling = 0.2\n").unwrap();
    let arguments = [
        "evaluate",
        &log,
        "--model",
        "pure-svd",
        "--config",
        file.to_str().unwrap(),
        "--set",
        "rescaled=true",
        "--json",
    ];
    let json = only_run(&satf(&arguments).succeeds());
    assert_eq!(json["configuration"]["rank"], 12);
    assert_eq!(json["configuration"]["rescaled"], true);

    let refused_with = |code: i32, arguments: &[&str], parts: &[&str]| {
        let mut all = vec!["evaluate", log.as_str()];
        all.extend(arguments);
        let outcome = satf(&all);
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
        }
    };
    let refused = |arguments: &[&str], parts: &[&str]| refused_with(2, arguments, parts);
    refused(&["--model", "pure-svd", "--set", "rnak=3"], &["unknown key 'rnak'", "did you mean 'rank'"]);
    refused(&["--model", "pur-svd"], &["unknown model", "did you mean 'pure-svd'"]);
    refused(&["--model", "pure-svd", "--set", "rank=0"], &["rank = 0"]);
    // Only the log tells that this is too much.
    refused_with(1, &["--model", "pure-svd", "--set", "rank=99999999"], &["rank = 99999999", "expected"]);
    refused(&["--model", "pure-svd", "--set", "scaling=nan"], &["scaling = NaN"]);
    refused(&["--model", "transitions", "--set", "window=0"], &["window = 0"]);
    refused(&["--model", "mp", "--at", "0"], &["--at"]);
}

#[test]
fn presets_bring_their_protocol_and_plans_say_what_training_costs() {
    let (_folder, log) = shop_log(500);
    let small = ["--set", "user_rank=20", "--set", "item_rank=16"];
    let offsets = ["--valid", "3weeks", "--test", "3weeks"];
    let mut arguments = vec!["evaluate", &log, "--preset", "la-satf/amz-b", "--json"];
    arguments.extend(small.iter().chain(&offsets));
    let json = only_run(&satf(&arguments).succeeds());
    assert_eq!((&json["model"], &json["preset"]), (&"la-satf".into(), &"la-satf/amz-b".into()));
    assert_eq!((&json["protocol"]["ties"], &json["protocol"]["max_len"]), (&"file".into(), &50.into()));
    assert_eq!(
        (&json["configuration"]["item_rank"], &json["configuration"]["num_iters"]),
        (&16.into(), &3.into())
    );
    let iterations = json["iterations"].as_array().unwrap();
    let norms: Vec<f64> =
        iterations.iter().map(|iteration| iteration["core_norm"].as_f64().unwrap()).collect();
    assert!(norms.len() == 3 && norms.is_sorted(), "{norms:?}");
    for name in ["seconds", "seconds_users", "seconds_items", "seconds_positions"] {
        assert!(iterations[0][name].is_f64(), "{name}");
    }
    for name in ["operations", "memory_bytes", "gemm_gflops"] {
        assert!(json["plan"][name].as_f64().unwrap() > 0.0, "{name}");
    }

    let mut arguments = vec!["plan", &log, "--preset", "la-satf/amz-b"];
    arguments.extend(small.iter().chain(&offsets));
    let table = satf(&arguments).succeeds();
    assert!(table.contains("users") && table.contains("positions") && table.contains("GFLOP/s"), "{table}");
    let unplanned = satf(&["plan", &log, "--model", "mp", "--valid", "3weeks"]);
    assert!(unplanned.code == 1 && unplanned.stderr.contains("plans ahead"), "{}", unplanned.stderr);
    let unknown = satf(&["evaluate", &log, "--preset", "la-satf/amz"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean 'la-satf/amz-"), "{}", unknown.stderr);
    let mixed = satf(&["evaluate", &log, "--preset", "la-satf/amz-b,la-satf/ml-1m"]);
    assert!(mixed.code == 2 && mixed.stderr.contains("different protocols"), "{}", mixed.stderr);
}

#[test]
fn early_stopping_keeps_the_best_number_of_iterations() {
    let (_folder, log) = shop_log(500);
    let arguments = [
        "evaluate",
        &log,
        "--model",
        "la-satf",
        "--set",
        "user_rank=20",
        "--set",
        "item_rank=16",
        "--set",
        "num_iters=12",
        "--early-stopping",
        "NDCG@10",
        "--patience",
        "2",
        "--valid",
        "1month",
        "--test",
        "1month",
        "--json",
    ];
    let json = only_run(&satf(&arguments).succeeds());
    let stopped = &json["early_stopping"];
    let best = stopped["best_iteration"].as_u64().unwrap();
    let value = |point: &Value| point["value"].as_f64().unwrap();
    let curve = stopped["curve"].as_array().unwrap();
    let highest = curve.iter().map(value).fold(0.0, f64::max);
    assert!((value(&curve[best as usize - 1]) - highest).abs() < 1e-15, "{stopped}");
    assert_eq!(json["configuration"]["num_iters"].as_u64(), Some(best));
    assert_eq!(json["iterations"].as_array().unwrap().len() as u64, best);
    assert!(curve.len() as u64 <= best + 2);
}

#[test]
fn two_runs_are_compared_event_by_event() {
    let (folder, log) = shop_log(600);
    let scores = folder.path().join("scores.parquet");
    satf(&["evaluate", &log, "--model", "mp,transitions", "--per-event", scores.to_str().unwrap()])
        .succeeds();
    let file =
        |model: &str| folder.path().join(format!("scores.{model}.parquet")).to_str().unwrap().to_owned();
    let (mp, transitions) = (file("mp"), file("transitions"));

    let json: Value = serde_json::from_str(
        &satf(&["compare", &mp, &transitions, &mp, "--draws", "2000", "--json"]).succeeds(),
    )
    .unwrap();
    let better = &json["comparisons"][0]["metrics"]["NDCG@10"];
    assert!(
        better["difference"].as_f64().unwrap() > 0.0 && better["p_value"].as_f64().unwrap() < 0.01,
        "{better}"
    );
    let same = &json["comparisons"][1]["metrics"]["NDCG@10"];
    assert_eq!((same["difference"].as_f64(), same["p_value"].as_f64()), (Some(0.0), Some(1.0)));

    let table = satf(&["compare", &mp, &transitions]).succeeds();
    assert!(table.contains("scores.transitions against scores.mp") && table.contains("HR@10"), "{table}");
    let outcome = satf(&["compare", &mp, &log]);
    assert!(outcome.code == 1 && outcome.stderr.contains("not per-event results"), "{}", outcome.stderr);
}

#[test]
fn leave_one_out_is_labelled_and_ties_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    let mut text = String::from("user,item,time\n");
    for user in 0..30 {
        for step in 0..6 {
            text.push_str(&format!(
                "{user},{},{}\n",
                (user * 7 + step * 3) % 17,
                1_600_000_000 + step / 2 * 86_400
            ));
        }
    }
    fs::write(&path, text).unwrap();
    let arguments =
        ["evaluate", path.to_str().unwrap(), "--model", "transitions", "--split", "leave-one-out", "--json"];
    let Outcome { stdout, stderr, code } = satf(&arguments);
    assert_eq!(code, 0, "{stderr}");
    let json = only_run(&stdout);
    assert_eq!(json["protocol"]["leaks_future"], true);
    assert_eq!(json["protocol"]["tied_rows"], 180);
    assert!(stderr.contains("leaks the future") && stderr.contains("180 of 180 rows (100 %)"), "{stderr}");
}

#[test]
fn the_demo_shows_that_order_matters() {
    let json: Value = serde_json::from_str(&satf(&["demo", "--json"]).succeeds()).unwrap();
    let ndcg = |name: &str| {
        let run = json["runs"].as_array().unwrap().iter().find(|run| run["model"] == name).unwrap();
        run["metrics"]["NDCG@10"]["value"].as_f64().unwrap()
    };
    assert!(ndcg("transitions") > 1.2 * ndcg("pure-svd"), "{} {}", ndcg("transitions"), ndcg("pure-svd"));
    assert!(ndcg("pure-svd") > 1.2 * ndcg("mp") && ndcg("mp") > ndcg("random"));
    assert!(json["recommendations"].as_array().unwrap().len() >= 3);
    let text = satf(&["demo"]).succeeds();
    assert!(text.contains("What comes next") && text.contains("satf prepare"), "{text}");
}
