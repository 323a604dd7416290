//! `satf recommend` through the real binary: histories as they come, filters of a shop, and outputs that sum.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use satf_binary::{Outcome, SATF, satf, shop_log};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Shop {
    folder: TempDir,
    log: String,
    model: String,
}

impl Shop {
    /// A shop with a model that knows baskets.
    fn new() -> Self {
        let (folder, log) = shop_log(400);
        let model = folder.path().join("shop.satf").to_str().unwrap().to_owned();
        satf(&["train", &log, "-o", &model, "-q"]).succeeds();
        Shop { folder, log, model }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        satf(&[&["recommend", &self.model], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(&[arguments, &["--json"]].concat()).succeeds()).unwrap()
    }

    /// Rows of JSON lines.
    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        lines(&self.run(arguments).succeeds())
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn items(value: &Value) -> Vec<String> {
    let list = value["recommendations"].as_array().unwrap();
    list.iter().map(|entry| entry["item_id"].as_str().unwrap().to_owned()).collect()
}

/// Item and score of each row, to the bit.
fn scores(rows: &[Value]) -> Vec<(String, u32)> {
    rows.iter().map(|row| (row["item_id"].to_string(), score(row).to_bits())).collect()
}

fn score(row: &Value) -> f32 {
    row["score"].to_string().parse().unwrap()
}

fn assert_sums(row: &Value) {
    let number = |value: &Value| value.as_f64().unwrap();
    let shares = row["shares"].as_array().unwrap().iter().map(|share| number(&share["share"]));
    let parts: Vec<f64> = shares.chain([number(&row["base"]), number(&row["boost"])]).collect();
    let size: f64 = parts.iter().map(|part| part.abs()).sum();
    let off = parts.iter().sum::<f64>() - number(&row["score"]);
    assert!(off.abs() <= 1e-5 * size, "{row}");
}

#[test]
fn items_taken_together_are_asked_for_as_they_are_taught() {
    let shop = Shop::new();
    let plain = shop.json(&["--history", "tent,mug+sleeping bag"]);
    // The same history in every way there is to say it.
    let basket = shop.json(&["--history", "tent,laptop+sleeping bag"]);
    let listed = shop.json(&["--history", "[\"tent\", [\"laptop\", \"sleeping bag\"]]"]);
    let ordered = shop.json(&["--history", "tent,laptop,sleeping bag"]);
    assert_eq!(basket["recommendations"], listed["recommendations"]);
    assert_ne!(basket["recommendations"], ordered["recommendations"]);
    assert_eq!(plain["unknown_items"], 1);
    let rows = "user_id,item_id,timestamp\n7,laptop,2024-05-01T10:00:00Z\n7,tent,2024-05-01T10:00:00+02:00\n\
                7,sleeping bag,2024-05-01T12:00:00+02:00\n";
    let batch = shop.lines(&["--histories", &shop.file("rows.csv", rows)]);
    assert_eq!(scores(&batch), scores(basket["recommendations"].as_array().unwrap()));
    let odd = shop.run(&["--history", "[\"tent\", null]"]);
    assert!(odd.code == 2 && odd.stderr.contains("--history"), "{}", odd.stderr);
}

#[test]
fn a_log_is_a_file_of_histories() {
    let shop = Shop::new();
    let rows = shop.lines(&["--histories", &shop.log, "-n", "2"]);
    let mut lists: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        *lists.entry(row["user_id"].to_string()).or_default() += 1;
    }
    assert_eq!((lists.len(), rows.len()), (400, 800));
    // On disk, from a pipe and packed alike.
    let csv = shop.path("shop.csv");
    satf(&["prepare", &shop.log, "--duplicates", "all", "-o", &csv]).succeeds();
    let on_disk = shop.run(&["--histories", &csv, "-n", "2", "--memory", "1KB"]).succeeds();
    assert_eq!(lines(&on_disk), rows);
    let piped = Command::new(SATF)
        .args(["recommend", &shop.model, "--histories", "-", "-n", "2", "--memory", "1KB"])
        .stdin(fs::File::open(&csv).unwrap())
        .output()
        .unwrap();
    assert_eq!(lines(&String::from_utf8(piped.stdout).unwrap()), rows);
}

#[test]
fn histories_are_read_with_the_options_of_logs() {
    let shop = Shop::new();
    let odd = shop.file("odd.csv", "who|what|when\n7|laptop|2000\n7|tent|1000\n");
    let unnamed = shop.run(&["--histories", &odd]);
    assert!(unnamed.code == 1 && unnamed.stderr.contains("--user-column"), "{}", unnamed.stderr);
    let named = ["--user-column", "who", "--item-column", "what", "--time-column", "when", "-n", "3"];
    let rows = shop.lines(&[&["--histories", &odd][..], &named].concat());
    assert_eq!(
        scores(&rows),
        scores(shop.json(&["--history", "tent,laptop", "-n", "3"])["recommendations"].as_array().unwrap())
    );
    // A first row of ids is a row.
    let book = shop.file("book.csv", "u,tent\nann,laptop\n");
    assert_eq!(shop.lines(&["--histories", &book, "-n", "1"]).len(), 2);
    assert_eq!(
        shop.lines(&[
            "--histories",
            &book,
            "-n",
            "1",
            "--header",
            "yes",
            "--user-column",
            "u",
            "--item-column",
            "tent"
        ])
        .len(),
        1
    );
    let list = shop.file("list.json", "[[\"tent\", \"laptop\"], [\"laptop\"]]");
    let rows = shop.lines(&["--histories", &list, "-n", "1"]);
    assert_eq!(rows.iter().map(|row| row["user_id"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    let bad = shop.file(
        "bad.jsonl",
        "{\"user_id\": 1, \"history\": [\"tent\"]}\n{\"user_id\": 2, \"history\": [null]}\n",
    );
    let skipped = shop.run(&["--histories", &bad, "--skip-bad-rows", "1", "-n", "1"]);
    assert!(
        skipped.stderr.contains("skipped 1 bad row;") && skipped.stderr.contains("line 2"),
        "{}",
        skipped.stderr
    );
    assert_eq!(lines(&skipped.succeeds()).len(), 1);
}

#[test]
fn parquet_on_stdin_says_what_to_do() {
    let shop = Shop::new();
    let mut child = Command::new(SATF)
        .args(["recommend", &shop.model, "--histories", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may stop to listen before everything is said.
    let _ = child.stdin.take().unwrap().write_all(&fs::read(&shop.log).unwrap());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && stderr.contains("save it to a file"), "{stderr}");
    assert!(!stderr.contains("not a complete, valid"), "{stderr}");
}

#[test]
fn titles_explanations_and_fallbacks_are_in_batches_too() {
    let shop = Shop::new();
    let histories = shop.file(
        "h.jsonl",
        "{\"user_id\": \"ann\", \"history\": [\"tent\", \"laptop\"]}\n{\"user_id\": \"bob\", \"history\": [\"rope\"]}\n",
    );
    let alone = shop.json(&["--history", "tent,laptop", "-n", "3", "--explain"]);
    let first = items(&alone)[0].clone();
    let titles = shop.file("titles.csv", &format!("item_id,title\n{first},\"The first, best\"\n"));
    let boost = format!("{first}=*1.5");
    let base =
        ["--histories", &histories, "-n", "3", "--titles", &titles, "--fallback", "popular", "--explain"];
    let boosted = [&base[..], &["--boost", &boost, "--boost", "tent=1"]].concat();
    let rows = shop.lines(&boosted);
    assert_eq!(rows.len(), 6);
    rows.iter().for_each(assert_sums);
    assert_eq!((&rows[0]["title"], &rows[0]["fallback"]), (&json!("The first, best"), &Value::Null));
    assert!(rows[1]["title"].is_null() && rows[0]["boost"].as_f64().unwrap() > 0.0);
    assert_eq!(rows[0]["shares"].as_array().unwrap().len(), 2);
    assert!(rows[3..].iter().all(|row| row["fallback"] == "popular" && row["shares"] == json!([])));
    // Without boosts these are the shares of one history.
    for (row, one) in shop.lines(&base).iter().zip(alone["recommendations"].as_array().unwrap()) {
        assert_eq!(score(row).to_bits(), score(one).to_bits());
        assert_eq!((&row["base"], &row["boost"]), (&one["base"], &json!(0.0)));
        assert_eq!(row["shares"].to_string(), one["shares"].to_string());
    }
    // CSV has the same, and Parquet is written and reads as rows.
    let (csv, parquet) = (shop.path("next.csv"), shop.path("next.parquet"));
    shop.run(&[&boosted[..], &["-o", &csv]].concat()).succeeds();
    let text = fs::read_to_string(&csv).unwrap();
    assert_eq!(text.lines().next().unwrap(), "user_id,item_id,title,score,rank,fallback,shares,base,boost");
    assert!(text.contains("\"The first, best\"") && text.contains(",popular,[],"), "{text}");
    assert!(text.contains("\"[{\"\"item_id\"\":\"\"tent\"\",\"\"share\"\":"), "{text}");
    shop.run(&[&boosted[..], &["-o", &parquet]].concat()).succeeds();
    assert_eq!(shop.lines(&["--histories", &parquet, "-n", "1"]).len(), 2);
    // Explanations are refused where there are none, before anything is read.
    let random = shop.path("knn.satf");
    satf(&["train", &shop.log, "-o", &random, "--model", "mp", "-q"]).succeeds();
    satf(&["recommend", &random, "--histories", &histories, "--explain"]).succeeds();
}

#[test]
fn one_history_is_written_to_a_file_and_shown_with_boosts() {
    let shop = Shop::new();
    let output = shop.path("next.csv");
    let said = shop.run(&["--history", "tent,laptop", "-n", "4", "-o", &output]).succeeds();
    assert!(said.contains("1 history, 4 recommendations written"), "{said}");
    let alone = shop.json(&["--history", "tent,laptop", "-n", "4"]);
    let text = fs::read_to_string(&output).unwrap();
    let written: Vec<&str> = text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(written, items(&alone));
    assert!(text.lines().nth(1).unwrap().starts_with("1,"), "{text}");
    let ending = shop.run(&["--history", "tent", "-o", &shop.path("next.txt")]);
    assert!(ending.code == 2 && ending.stderr.contains(".jsonl, .csv or .parquet"), "{}", ending.stderr);

    let last = items(&alone)[3].clone();
    let explained =
        shop.json(&["--history", "tent,laptop", "-n", "4", "--explain", "--boost", &format!("{last}=2")]);
    explained["recommendations"].as_array().unwrap().iter().for_each(assert_sums);
    let boost = explained["recommendations"][0]["boost"].as_f64().unwrap();
    assert!(items(&explained)[0] == last && (boost - 2.0).abs() < 1e-6, "{explained}");
    let shown =
        shop.run(&["--history", "tent,laptop", "--explain", "--boost", &format!("{last}=2")]).succeeds();
    assert!(shown.lines().any(|line| line.contains("boost")), "{shown}");
    let popular = shop.run(&["--history", "rope", "--fallback", "popular"]).succeeds();
    assert!(popular.starts_with("fallback: the most popular items"), "{popular}");
}

#[test]
fn lists_of_a_shop_may_name_items_that_are_new() {
    let shop = Shop::new();
    let all = items(&shop.json(&["--history", "tent,laptop", "-n", "5"]));
    let stock = shop.file("stock.txt", &format!("brand new\n{}\nnewer still\n{}\n", all[1], all[3]));
    let stock = format!("@{stock}");
    let some = shop.run(&["--history", "tent,laptop", "--only", &stock, "--json"]);
    assert!(some.stderr.contains("--only: 2 of 4 items are unknown"), "{}", some.stderr);
    assert_eq!(items(&serde_json::from_str(&some.succeeds()).unwrap()), [&*all[1], &*all[3]]);
    let excluded = shop.run(&["--history", "tent,laptop", "--exclude", "laptpo", "--json", "-n", "5"]);
    assert!(excluded.stderr.contains("did you mean 'laptop'?"), "{}", excluded.stderr);
    assert_eq!(items(&serde_json::from_str(&excluded.succeeds()).unwrap()), all);
    let boosted = shop.run(&["--history", "tent", "--boost", "brand new=3"]);
    assert!(boosted.code == 0 && boosted.stderr.contains("--boost: 1 of 1"), "{}", boosted.stderr);
    for arguments in
        [["--only", &*stock], ["--exclude", "laptpo"], ["--boost", "brand new=3"], ["--allow-seen", "rope"]]
    {
        let strict = shop.run(&[&["--history", "tent", "--strict"][..], &arguments].concat());
        assert!(strict.code == 1 && strict.stderr.contains("does not know the item"), "{}", strict.stderr);
    }
    // Nothing at all that may be recommended is a mistake.
    let none = shop.run(&["--history", "tent", "--only", "brand new,newer still"]);
    assert!(none.code == 1 && none.stderr.contains("knows none of these items"), "{}", none.stderr);
}

#[test]
fn boosts_and_consumables_come_from_files() {
    let shop = Shop::new();
    let alone = shop.json(&["--history", "tent,laptop", "-n", "5"]);
    let all = items(&alone);
    let boosts =
        shop.file("boosts.csv", &format!("item_id,boost\n{},*100\n{},50\nbrand new,1\n", all[2], all[4]));
    let boosted = shop.run(&[
        "--history",
        "tent,laptop",
        "-n",
        "5",
        "--boost",
        &format!("@{boosts}"),
        "--json",
        "--explain",
    ]);
    assert!(boosted.stderr.contains("1 of 3 items is unknown"), "{}", boosted.stderr);
    let boosted: Value = serde_json::from_str(&boosted.succeeds()).unwrap();
    boosted["recommendations"].as_array().unwrap().iter().for_each(assert_sums);
    let mut first = items(&boosted)[..2].to_vec();
    first.sort();
    let mut expected = vec![all[2].clone(), all[4].clone()];
    expected.sort();
    assert_eq!(first, expected);
    let score = |value: &Value, item: &str| {
        let list = value["recommendations"].as_array().unwrap();
        list.iter().find(|entry| entry["item_id"] == item).unwrap()["score"].as_f64().unwrap()
    };
    let (plain, multiplied) = (score(&alone, &all[2]), score(&boosted, &all[2]));
    assert!((multiplied - 100.0 * plain).abs() <= 1e-4 * multiplied.abs(), "{plain} {multiplied}");

    for (boost, part) in [
        ("tent=inf", "'tent=inf' for '--boost"),
        ("tent=nan", "'tent=nan' for '--boost"),
        ("tent=*0", "factors above 0"),
        ("tent", "ITEM=NUMBER"),
    ] {
        let odd = shop.run(&["--history", "laptop", "--boost", boost]);
        assert!(odd.code == 2 && odd.stderr.contains(part), "{boost}: {}", odd.stderr);
    }
    let bad = shop.file("bad.csv", "tent,1\nlaptop,much\n");
    let odd = shop.run(&["--history", "laptop", "--boost", &format!("@{bad}")]);
    assert!(odd.code == 1 && odd.stderr.contains("line 2"), "{}", odd.stderr);

    let consumables = shop.file("consumables.txt", "tent\ngas canister\n");
    let repeated = ["--history", "tent,laptop", "--only", "tent,laptop", "--json"];
    let seen = |more: &[&str]| {
        let run = satf(&[&["recommend", &shop.model], &repeated[..], more].concat());
        items(&serde_json::from_str(&run.succeeds()).unwrap())
    };
    assert_eq!(seen(&[]), [""; 0]);
    assert_eq!(seen(&["--allow-seen"]).len(), 2);
    assert_eq!(seen(&["--allow-seen", &format!("@{consumables}")]), ["tent"]);
}

#[cfg(target_os = "linux")]
#[test]
fn long_histories_take_no_more_memory_than_short_ones() {
    let shop = Shop::new();
    let long = format!("\"tent\"{}", ",\"laptop\"".repeat(200_000));
    let path = shop.path("long.jsonl.gz");
    let mut gzip =
        flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    for user in 0..300 {
        writeln!(gzip, "{{\"user_id\": {user}, \"history\": [{long}]}}").unwrap();
    }
    gzip.finish().unwrap();
    let model = shop.path("mp.satf");
    satf(&["train", &shop.log, "-o", &model, "--model", "mp", "-q"]).succeeds();
    let mut child = Command::new(SATF)
        .args(["recommend", &model, "--histories", &path, "-o", &shop.path("next.csv"), "-n", "1", "-q"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0u64;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(Path::new(&status)).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success());
    // 60 million items would be 300 MB and more.
    assert!(peak > 0 && peak < 150 << 10, "{} MiB", peak >> 10);
}

#[test]
fn a_bad_first_row_of_boosts_is_not_a_header() {
    let shop = Shop::new();
    for content in ["tent,nan\n", "tent,oops\n", "tent,oops\nlaptop,1\n"] {
        let boosts = format!("@{}", shop.file("bad.csv", content));
        let odd = shop.run(&["--history", "laptop", "--boost", &boosts]);
        assert!(odd.code == 1 && odd.stderr.contains("line 1, column 2"), "{content}: {}", odd.stderr);
    }
}

#[test]
fn an_empty_list_is_a_warning_and_names_nothing() {
    let shop = Shop::new();
    let (empty, header) = (shop.file("empty.txt", ""), shop.file("header.csv", "item,boost\n"));
    let (empty, header) = (format!("@{empty}"), format!("@{header}"));
    let plain = items(&shop.json(&["--history", "tent,laptop"]));
    for arguments in [
        ["--boost", &*empty],
        ["--boost", &*header],
        ["--exclude", &*empty],
        ["--exclude", ""],
        ["--allow-seen", &*empty],
        ["--allow-seen", ""],
    ] {
        let run = shop.run(&[&["--history", "tent,laptop", "--json"][..], &arguments].concat());
        let warning = format!("{}: the list is empty", arguments[0]);
        assert!(run.stderr.contains(&warning), "{arguments:?}: {}", run.stderr);
        assert_eq!(items(&serde_json::from_str(&run.succeeds()).unwrap()), plain, "{arguments:?}");
    }
    let none = shop.run(&["--history", "tent", "--only", &empty]);
    assert!(none.code == 1 && none.stderr.contains("nothing else may be recommended"), "{}", none.stderr);
    // Alone the option allows everything.
    let all = shop.json(&["--history", "tent,laptop", "--only", "tent,laptop", "--allow-seen"]);
    assert_eq!(items(&all).len(), 2);
}

#[test]
fn integer_ids_have_one_spelling() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, model, histories) = (path("log.csv"), path("m.satf"), path("h.csv"));
    let rows: Vec<String> = (0..60).map(|at| format!("{},{},{at}\n", at % 9, at * 7 % 11)).collect();
    fs::write(&log, format!("user_id,item_id,timestamp\n{}", rows.concat())).unwrap();
    satf(&["train", &log, "--model", "mp", "-o", &model, "-q"]).succeeds();
    let asked = satf(&["recommend", &model, "--history", "[\"03\", \"003\", \"+3\", 3]", "--json"]);
    assert!(asked.stderr.contains("3 of 4 items are unknown"), "{}", asked.stderr);
    let asked: Value = serde_json::from_str(&asked.succeeds()).unwrap();
    assert_eq!(asked["unknown_items"], 3);
    let filtered = satf(&["recommend", &model, "--history", "3", "--exclude", "04,5", "--json", "-n", "99"]);
    assert!(filtered.stderr.contains("--exclude: 1 of 2 items is unknown"), "{}", filtered.stderr);
    assert!(filtered.succeeds().contains("\"item_id\": 4"));
    fs::write(&histories, "user_id,item_id\n1,3\n1,04\n").unwrap();
    let batch = satf(&["recommend", &model, "--histories", &histories, "-n", "99"]);
    assert!(batch.stderr.contains("1 item of histories is unknown"), "{}", batch.stderr);
    assert!(lines(&batch.succeeds()).iter().any(|row| row["item_id"] == 4));
}

#[test]
fn files_of_windows_programs_are_read_as_they_are_meant() {
    let shop = Shop::new();
    let all = items(&shop.json(&["--history", "tent,laptop", "-n", "5"]));
    let list = |name: &str, lines: &[&str]| {
        format!("@{}", shop.file(name, &format!("\u{feff}{}\r\n", lines.join("\r\n"))))
    };
    let (history, only) = (list("history.txt", &["tent", "laptop"]), list("only.txt", &[&all[3], &all[1]]));
    let asked = shop.run(&["--history", &history, "--only", &only, "--strict", "--json"]);
    assert!(asked.stderr.is_empty(), "{}", asked.stderr);
    assert_eq!(items(&serde_json::from_str(&asked.succeeds()).unwrap()), [&*all[1], &*all[3]]);
    let odd = shop.run(&["--history", "\u{feff}tent"]);
    assert!(odd.stderr.contains("'\\u{feff}tent'"), "{}", odd.stderr);
}

#[test]
fn quiet_commands_say_nothing_but_errors() {
    let shop = Shop::new();
    let histories = shop
        .file("h.jsonl", "{\"user_id\": 1, \"history\": [\"rope\"]}\n{\"user_id\": 2, \"history\": []}\n");
    let titles = shop.file("titles.csv", "item_id,title\nrope,A rope\n");
    for arguments in [
        vec!["--histories", &histories],
        vec!["--histories", &histories, "--fallback", "popular", "--titles", &titles],
        vec!["--history", "rope"],
        vec!["--history", "tent", "--exclude", "rope", "--boost", "rope=1"],
    ] {
        assert!(!shop.run(&arguments).stderr.is_empty(), "{arguments:?}");
        let quiet = shop.run(&[&arguments[..], &["-q"]].concat());
        assert_eq!((quiet.code, &*quiet.stderr), (0, ""), "{arguments:?}");
    }
}

#[test]
fn a_file_without_histories_is_an_error() {
    let shop = Shop::new();
    for (name, content) in [
        ("header.csv", "user_id,item_id,timestamp\n"),
        ("whole.csv", "user_id,history\n"),
        ("blank.csv", "\n  \n\n"),
        ("list.json", "[]"),
    ] {
        let none = shop.run(&["--histories", &shop.file(name, content)]);
        assert!(none.code == 1 && none.stderr.contains("no rows"), "{name}: {} {}", none.code, none.stderr);
    }
    let piped = Command::new(SATF)
        .args(["recommend", &shop.model, "--histories", "-"])
        .stdin(fs::File::open(shop.path("header.csv")).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8(piped.stderr).unwrap();
    assert!(piped.status.code() == Some(1) && said.contains("standard input: no rows"), "{said}");
}

#[test]
fn a_first_row_that_may_be_a_header_is_told_of() {
    let shop = Shop::new();
    let users = |outcome: Outcome| -> Vec<String> {
        let mut users: Vec<String> = lines(&outcome.succeeds())
            .iter()
            .map(|row| row["user_id"].as_str().unwrap().to_owned())
            .collect();
        users.dedup();
        users
    };
    // Neither word is known: it is taken for a header, and that is said.
    let file = shop.file("u.csv", "u,game\nann,tent\n");
    let outcome = shop.run(&["--histories", &file]);
    for part in ["u.csv", "(u, game)", "the names of the columns", "--header no"] {
        assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
    }
    assert_eq!(users(outcome), ["ann"]);
    let told = shop.run(&["--histories", &file, "--header", "no", "--fallback", "popular"]);
    assert!(!told.stderr.contains("the first row"), "{}", told.stderr);
    assert_eq!(users(told), ["u", "ann"]);
    let told = shop.run(&["--histories", &file, "--header", "yes", "--order-is-time"]);
    assert_eq!((told.stderr.clone().as_str(), users(told)), ("", vec!["ann".to_owned()]));

    let only = shop.file("only.csv", "u,game\n");
    for outcome in [shop.run(&["--histories", &only]), satf(&["stats", &only])] {
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        assert!(
            outcome.stderr.contains("(u, game)") && outcome.stderr.contains("--header no"),
            "{}",
            outcome.stderr
        );
    }

    // A log has nothing to tell by; it says so too.
    let log = shop.file("log.csv", "u,game\nann,game\nann,tent\nbob,game\nbob,tent\n");
    let rows = |arguments: &[&str]| {
        let outcome = satf(&[&["stats", &log, "--json"], arguments].concat());
        let statistics: Value = serde_json::from_str(&outcome.stdout).unwrap();
        (statistics["rows"].as_u64().unwrap(), outcome.stderr.contains("(u, game)"))
    };
    assert_eq!((rows(&[]), rows(&["--header", "no"])), ((4, true), (5, false)));

    // An item that the model knows is an item.
    let model = shop.path("games.satf");
    satf(&["train", &log, "--model", "transitions", "--header", "no", "-o", &model]).succeeds();
    let outcome = satf(&["recommend", &model, "--histories", &file, "--fallback", "popular"]);
    assert!(
        outcome.stderr.contains("knows this item") && outcome.stderr.contains("--header yes"),
        "{}",
        outcome.stderr
    );
    assert_eq!(users(outcome), ["u", "ann"]);

    // A header that is one beyond doubt needs no word.
    for header in ["user_id,item_id", "user,item", "User;Item ID"] {
        let content = format!("{header}\nann{}tent\n", if header.contains(';') { ';' } else { ',' });
        let outcome = shop.run(&["--histories", &shop.file("sure.csv", &content), "--order-is-time"]);
        assert_eq!(
            (outcome.stderr.clone().as_str(), users(outcome)),
            ("", vec!["ann".to_owned()]),
            "{header}"
        );
    }
}

#[test]
fn an_id_of_megabytes_is_named_in_short() {
    let shop = Shop::new();
    let list = format!("@{}", shop.file("list.txt", &"x".repeat(20_000_000)));
    let began = Instant::now();
    for arguments in [
        &["--history", "tent", "--exclude", &list][..],
        &["--history", "tent", "--allow-seen", &list],
        &["--history", "tent", "--only", &list],
        &["--history", "tent", "--exclude", &list, "--strict"],
        &["--history", &list],
    ] {
        let outcome = shop.run(arguments);
        assert!(outcome.stderr.contains("xxx… (20000000 bytes)"), "{arguments:?}: {:.500}", outcome.stderr);
        assert!(outcome.stderr.len() < 2000, "{arguments:?}: {} bytes", outcome.stderr.len());
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
