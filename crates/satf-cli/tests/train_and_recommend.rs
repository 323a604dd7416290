//! From a log to a model file to recommendations, through the real binary.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use satf::{FitOptions, Model, ReadOptions, Request, TiePolicy};
use satf_binary::{SATF, only_run, satf, shop_log};
use serde_json::Value;

fn train(log: &str, model: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["train", log, "-o", model, "--json"];
    arguments.extend(more);
    serde_json::from_str(&satf(&arguments).succeeds()).unwrap()
}

/// Writes a user and its items as a line.
type Line<'a> = &'a dyn Fn(&(usize, Vec<String>)) -> String;

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// `user, item, score, rank` of a file of recommendations, whatever its format.
fn rows(text: &str) -> Vec<(String, String, f32, u64)> {
    let text_of = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.lines()
        .filter(|line| *line != "user_id,item_id,score,rank")
        .map(|line| {
            if line.starts_with('{') {
                let row: Value = serde_json::from_str(line).unwrap();
                let keys: Vec<&String> =
                    row.as_object().unwrap().keys().filter(|key| *key != "fallback").collect();
                assert_eq!(keys, ["user_id", "item_id", "score", "rank"]);
                let score = row["score"].to_string().parse().unwrap();
                (text_of(&row["user_id"]), text_of(&row["item_id"]), score, row["rank"].as_u64().unwrap())
            } else {
                let fields: Vec<&str> = line.split(',').collect();
                let (score, rank) = (fields[2].parse().unwrap(), fields[3].parse().unwrap());
                (fields[0].to_owned(), fields[1].to_owned(), score, rank)
            }
        })
        .collect()
}

#[test]
fn the_library_trains_in_one_call_what_the_command_trains_to_the_bit() {
    let (folder, log) = shop_log(200);
    let (by_command, by_library) = (path(folder.path(), "command.satf"), path(folder.path(), "library.satf"));
    let (events, _) = satf::read_log(&[log.clone().into()], &ReadOptions::default(), &()).unwrap();
    let of_rank = ["--model", "pure-svd", "--set", "rank=8", "--seed", "3", "--ties", "file"];
    let options = FitOptions { seed: 3, ties: TiePolicy::File, ..FitOptions::new("pure-svd").set("rank", 8) };
    for (arguments, options) in [(&[][..], None), (&of_rank[..], Some(options))] {
        train(&log, &by_command, arguments);
        let model = match options {
            None => Model::fit(&events),
            Some(options) => Model::fit_with(&events, &options, &()),
        };
        model.unwrap().save(&by_library).unwrap();
        assert_eq!(fs::read(&by_command).unwrap(), fs::read(&by_library).unwrap(), "{arguments:?}");
    }
}

#[test]
fn a_model_is_trained_validated_and_shown() {
    let (folder, log) = shop_log(600);
    let model = path(folder.path(), "shop.satf");
    let la_satf = ["--model", "la-satf", "--set", "item_rank=40", "--validate", "1month"];
    let trained = train(&log, &model, &[&la_satf[..], &["--quantize", "half"]].concat());
    let manifest = &trained["manifest"];
    assert_eq!((&manifest["model"], &manifest["quantization"]), (&"la-satf".into(), &"half".into()));
    let best = manifest["validation"]["best_iteration"].as_u64().unwrap();
    assert_eq!(manifest["configuration"]["num_iters"], best);
    assert_eq!(manifest["validation"]["curve"].as_array().unwrap().len(), 3);
    assert!(manifest["validation"]["metrics"]["NDCG@10"]["value"].as_f64().unwrap() > 0.05, "{manifest}");
    assert_eq!(trained["bytes"], fs::metadata(&model).unwrap().len());

    let svg = path(folder.path(), "curve.svg");
    let inspected = satf(&["inspect", &model, "--svg", &svg]).succeeds();
    for part in ["la-satf", "NDCG@10", "item_factors", "F16", "lag (0 = newest)", "█"] {
        assert!(inspected.contains(part), "{part}: {inspected}");
    }
    assert!(fs::read_to_string(&svg).unwrap().contains("<polyline"));
    let json: Value = serde_json::from_str(&satf(&["inspect", &model, "--json"]).succeeds()).unwrap();
    assert_eq!(&json["manifest"], manifest);
    assert_eq!(json["lag_weights"].as_array().unwrap().len(), 49);

    // What it costs is said.
    let text = satf(&[&["train", &log, "-o", &model], &la_satf[..], &["--quantize", "int8"]].concat());
    assert!(
        text.stderr.contains("in single precision") && text.stderr.contains("in int8"),
        "{}",
        text.stderr
    );
    let plain = satf(&["train", &log, "-o", &model, "--model", "mp", "--quantize", "half"]);
    assert!(plain.code == 2 && plain.stderr.contains("no item factors"), "{}", plain.stderr);
}

#[test]
fn one_history_is_answered_for_people_and_programs() {
    let (folder, log) = shop_log(600);
    let model = path(folder.path(), "shop.satf");
    train(&log, &model, &[]);
    let titles = path(folder.path(), "titles.csv");
    fs::write(&titles, "item_id,title\nlaptop,A computer\nusb-c hub,\"Ports, more of them\"\n").unwrap();
    let base = ["recommend", &model, "--history", "tent,laptop", "-n", "6", "--titles", &titles];
    let run = |more: &[&str]| satf(&[&base[..], more].concat());
    let json = |more: &[&str]| -> Value {
        serde_json::from_str(&run(&[more, &["--json"]].concat()).succeeds()).unwrap()
    };

    let explained = json(&["--explain"]);
    let list = explained["recommendations"].as_array().unwrap();
    assert_eq!(list.len(), 6);
    for (at, entry) in list.iter().enumerate() {
        let shares = entry["shares"].as_array().unwrap();
        assert_eq!(shares[1]["title"], "A computer");
        let sum: f64 = shares.iter().map(|share| share["share"].as_f64().unwrap()).sum();
        let score = entry["score"].as_f64().unwrap();
        assert!((sum - score).abs() <= 1e-5 * score.abs(), "{sum} {score}");
        assert_eq!(entry["rank"], at + 1);
    }
    let shown = run(&["--explain"]).succeeds();
    assert!(shown.contains("A computer (laptop)") && shown.contains("tent"), "{shown}");

    // Filters.
    let items = |value: &Value| -> Vec<String> {
        let list = value["recommendations"].as_array().unwrap();
        list.iter().map(|entry| entry["item_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = items(&explained);
    let without = items(&json(&["--exclude", &format!("{},{}", all[0], all[1])]));
    assert_eq!(without[..4], all[2..]);
    assert_eq!(items(&json(&["--only", &format!("{},laptop", all[3])])), all[3..4]);
    assert!(items(&json(&["--only", "laptop", "--allow-seen"])) == ["laptop"]);
    assert_eq!(items(&json(&["--boost", &format!("{}=1e6", all[5])]))[0], all[5]);
    let unknown = run(&["--exclude", "laptpo", "--strict"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("did you mean 'laptop'?"), "{}", unknown.stderr);
    let odd = run(&["--boost", "laptop"]);
    assert!(odd.code == 2 && odd.stderr.contains("ITEM=NUMBER"), "{}", odd.stderr);

    // Unknown items.
    let some = satf(&["recommend", &model, "--history", "tent,tnet,laptop", "-n", "6", "--json"]);
    assert!(some.stderr.contains("1 of 3 items is unknown"), "{}", some.stderr);
    let some: Value = serde_json::from_str(&some.succeeds()).unwrap();
    assert_eq!((items(&some), &some["unknown_items"]), (all, &1.into()));
    let none = satf(&["recommend", &model, "--history", "nothing", "--json"]);
    assert!(none.stderr.contains("--fallback popular"), "{}", none.stderr);
    let none: Value = serde_json::from_str(&none.succeeds()).unwrap();
    assert_eq!(items(&none), [""; 0]);
    let popular = satf(&["recommend", &model, "--history", "", "-n", "3", "--fallback", "popular", "--json"]);
    let popular: Value = serde_json::from_str(&popular.succeeds()).unwrap();
    assert_eq!((items(&popular).len(), &popular["fallback"]), (3, &"popular".into()));

    let similar = satf(&["similar", &model, "laptop", "-n", "4", "--titles", &titles]).succeeds();
    assert!(similar.contains("like A computer (laptop)"), "{similar}");
    let lost = satf(&["similar", &model, "lapto"]);
    assert!(lost.code == 1 && lost.stderr.contains("did you mean 'laptop'?"), "{}", lost.stderr);
}

#[test]
fn histories_in_every_format_get_the_lists_of_the_library() {
    let (folder, log) = shop_log(600);
    let model = path(folder.path(), "shop.satf");
    train(&log, &model, &["--model", "transitions"]);
    let loaded = Model::load(&model).unwrap();
    // More than a batch, users as numbers; some know nothing, one is unknown altogether.
    let known: Vec<String> = loaded.catalog().iter().map(|id| id.to_string()).collect();
    let histories: Vec<(usize, Vec<String>)> = (0..2500)
        .map(|user| {
            let items = (0..=user % 4).map(|at| known[(user * 17 + at * 5) % known.len()].clone());
            let mut items: Vec<String> = items.collect();
            match user {
                700 => items = vec!["unheard of".to_owned()],
                701 => items.push("unheard of".to_owned()),
                _ => {}
            }
            (user, items)
        })
        .collect();
    let mut expected = Vec::new();
    for (user, items) in &histories {
        let history = loaded.history(items.iter().map(|item| satf::interactions::Id::Text(item)));
        if history.is_empty() {
            continue;
        }
        let answer = loaded.recommend(&history, &Request::new(4)).unwrap();
        for (rank, next) in (1..).zip(answer.items) {
            expected.push((user.to_string(), next.item.as_id().to_string(), next.score, rank));
        }
    }

    let write = |name: &str, line: Line<'_>, header: &str| {
        let text: String = histories.iter().map(|history| line(history) + "\n").collect();
        let path = path(folder.path(), name);
        fs::write(&path, header.to_owned() + &text).unwrap();
        path
    };
    let jsonl = write(
        "histories.jsonl",
        &|(user, items)| serde_json::json!({ "user_id": user, "history": items }).to_string(),
        "",
    );
    let wide =
        write("wide.csv", &|(user, items)| format!("{user},\"{}\"", items.join(",")), "user_id,history\n");
    let long = write(
        "long.csv",
        &|(user, items)| items.iter().map(|item| format!("{user},{item}")).collect::<Vec<_>>().join("\n"),
        "user_id,item_id\n",
    );
    let packed = path(folder.path(), "histories.jsonl.gz");
    let mut gzip =
        flate2::write::GzEncoder::new(fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    gzip.write_all(&fs::read(&jsonl).unwrap()).unwrap();
    gzip.finish().unwrap();

    for input in [&jsonl, &wide, &long, &packed] {
        for output in ["next.jsonl", "next.csv"] {
            let output = path(folder.path(), output);
            let run = satf(&["recommend", &model, "--histories", input, "-o", &output, "-n", "4", "--json"]);
            assert!(run.stderr.contains("1 history has no known item: it got nothing"), "{}", run.stderr);
            let report: Value = serde_json::from_str(&run.succeeds()).unwrap();
            assert_eq!(
                (&report["histories"], &report["unknown_items"]),
                (&2500.into(), &2.into()),
                "{input}"
            );
            assert_eq!(rows(&fs::read_to_string(&output).unwrap()), expected, "{input} to {output}");
        }
    }
    // Parquet out, and Parquet in: what was written are rows of users and items like any other.
    let parquet = path(folder.path(), "next.parquet");
    satf(&["recommend", &model, "--histories", &jsonl, "-o", &parquet, "-n", "4"]).succeeds();
    let again = satf(&["recommend", &model, "--histories", &parquet, "-n", "1"]).succeeds();
    assert_eq!(rows(&again).len(), 2499);
    // Standard input and output.
    let mut child = Command::new(SATF)
        .args(["recommend", &model, "--histories", "-", "-n", "4", "--fallback", "popular"])
        .stdin(Stdio::from(fs::File::open(&jsonl).unwrap()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let piped = rows(&text);
    assert_eq!(piped.iter().filter(|row| row.0 == "700").count(), 4);
    assert_eq!(piped.into_iter().filter(|row| row.0 != "700").collect::<Vec<_>>(), expected);
}

#[test]
fn bad_histories_are_named_and_nothing_is_left() {
    let (folder, log) = shop_log(300);
    let model = path(folder.path(), "shop.satf");
    train(&log, &model, &["--model", "mp"]);
    let output = path(folder.path(), "next.csv");
    for (name, content, part) in [
        ("a.jsonl", "{\"user_id\": 1, \"history\": [\"tent\"]}\n{\"user_id\": 2}\n", "line 2"),
        ("b.jsonl", "{\"user_id\": 1, \"history\": \"tent\"}\n", "line 1"),
        ("c.csv", "user_id,item_id\n1,tent\n2,tent\n1,\n", "line 4, column \"item_id\""),
        ("d.csv", "user_id,item_id,time\n1,tent,20\n1,laptop,soon\n", "a time"),
        ("e.csv", "user_id,history\n1,[\"tent\n", "line 2"),
        ("f.csv", "user_id,history\n1,a,b\n", "2 columns"),
        ("g.csv", "who,history\n1,a\n", "which column is the user"),
        ("h.csv", "", "the file is empty"),
    ] {
        let input = path(folder.path(), name);
        fs::write(&input, content).unwrap();
        let run = satf(&["recommend", &model, "--histories", &input, "-o", &output]);
        assert!(run.code == 1 && run.stderr.contains(part), "{name}: {}", run.stderr);
        assert!(run.stderr.contains(name), "{name}: {}", run.stderr);
        assert!(!Path::new(&output).exists());
    }
    let ending = satf(&["recommend", &model, "--histories", &log, "-o", "next.txt"]);
    assert!(ending.code == 2 && ending.stderr.contains(".jsonl, .csv or .parquet"), "{}", ending.stderr);
    assert_eq!(satf(&["recommend", &model]).code, 2);
    assert_eq!(satf(&["recommend", &model, "--history", "a", "--histories", "b"]).code, 2);
    let no_model = satf(&["recommend", &log, "--history", "tent"]);
    assert!(no_model.code == 1 && no_model.stderr.contains("not a satf model file"), "{}", no_model.stderr);
}

#[test]
fn a_killed_train_leaves_the_old_file_or_a_whole_new_one() {
    let (folder, log) = shop_log(400);
    let model = path(folder.path(), "shop.satf");
    train(&log, &model, &["--model", "ease"]);
    let old = fs::read(&model).unwrap();
    let fresh = path(folder.path(), "fresh.satf");
    for milliseconds in [0, 1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200] {
        for output in [&model, &fresh] {
            let mut child = Command::new(SATF)
                .args([
                    "train",
                    &log,
                    "-o",
                    output,
                    "--model",
                    "ease",
                    "--seed",
                    &milliseconds.to_string(),
                    "-q",
                ])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            sleep(Duration::from_millis(milliseconds));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        Model::load(&model).unwrap();
        // Nothing is trained that fast.
        assert!(milliseconds > 0 || fs::read(&model).unwrap() == old);
        assert!(!Path::new(&fresh).exists() || Model::load(&fresh).is_ok());
    }
    // A model that cannot be written leaves the old one, too.
    let folder_instead = path(folder.path(), "folder.satf");
    fs::create_dir(&folder_instead).unwrap();
    let refused = satf(&["train", &log, "-o", &folder_instead, "--model", "mp"]);
    assert!(refused.code == 1 && refused.stderr.contains("cannot be written"), "{}", refused.stderr);
}

#[test]
fn what_is_left_out_is_not_learned_from() {
    let (folder, log) = shop_log(400);
    let model = path(folder.path(), "shop.satf");
    let whole = train(&log, &model, &["--model", "mp"]);
    let part = train(&log, &model, &["--model", "mp", "--leave-out", "2months", "--validate", "1month"]);
    let rows = |trained: &Value| trained["manifest"]["dataset"]["rows"].as_u64().unwrap();
    assert!(rows(&part) < rows(&whole) && rows(&part) > rows(&whole) / 2);
    assert_eq!(part["manifest"]["dataset"]["left_out"], "2months");
    assert_ne!(part["manifest"]["dataset"]["content_hash"], whole["manifest"]["dataset"]["content_hash"]);
    let evaluated = satf(&[
        "evaluate",
        &log,
        "--model",
        "mp",
        "--valid",
        "1month",
        "--test",
        "2months",
        "--on",
        "validation",
        "--json",
    ]);
    let evaluated = only_run(&evaluated.succeeds());
    assert_eq!(evaluated["metrics"]["NDCG@10"], part["manifest"]["validation"]["metrics"]["NDCG@10"]);
    let long = satf(&["train", &log, "-o", &model, "--validate", "10years"]);
    assert!(long.code == 1 && long.stderr.contains("choose a shorter time"), "{}", long.stderr);
}
