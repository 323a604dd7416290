//! Commands that end early: they say what they have written, leave nothing else behind, and are brief about what is long.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use satf_binary::{SATF, satf, satf_that_hears, shop_log};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_command_that_is_stopped_names_what_it_has_written() {
    let (folder, log) = shop_log(1_000);
    let scores = folder.path().join("scores.csv");
    let first = folder.path().join("scores.mp.csv");
    let mut command = satf_that_hears();
    command.args(["evaluate", &log, "--model", "mp,la-satf", "--set", "la-satf.num_iters=1000"]);
    command.args(["--set", "la-satf.growth_tolerance=0", "--per-event", text(&scores)]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !first.exists() {
        assert!(running.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
    let id = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains(&format!("written: {}", text(&first))) && !said.contains("nothing was"), "{said}");
    assert!(!folder.path().join("scores.la-satf.csv").exists());
}

#[test]
fn an_output_that_is_full_does_not_hide_what_was_written() {
    let (folder, log) = shop_log(100);
    let at = |name: &str| folder.path().join(name);
    let model = at("shop.satf");
    satf(&["train", &log, "--model", "la-satf", "--set", "item_rank=8", "-o", text(&model)]).succeeds();
    let histories = at("histories.jsonl");
    fs::write(&histories, "{\"user_id\": 1, \"history\": [\"tent\"]}\n").unwrap();
    let output = at("output.parquet");
    for (line, written) in [
        (vec!["generate", "--users", "50", "-o", text(&output)], vec!["output.parquet"]),
        (vec!["prepare", &log, "-o", text(&output)], vec!["output.parquet"]),
        (vec!["train", &log, "--model", "mp", "-o", text(&at("mp.satf"))], vec!["mp.satf"]),
        (vec!["train", &log, "--model", "mp", "--json", "-o", text(&at("mp.satf"))], vec!["mp.satf"]),
        (
            vec!["evaluate", &log, "--model", "mp,random", "--per-event", text(&at("e.csv"))],
            vec!["e.mp.csv", "e.random.csv"],
        ),
        (
            vec!["recommend", text(&model), "--histories", text(&histories), "-o", text(&at("r.csv"))],
            vec!["r.csv"],
        ),
        (vec!["inspect", text(&model), "--svg", text(&at("a.svg"))], vec!["a.svg"]),
        // What writes no file has none to name.
        (vec!["stats", &log], vec![]),
        (vec!["recommend", text(&model), "--histories", text(&histories)], vec![]),
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(SATF).args(&line).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line:?}: {said}");
        assert!(said.contains("standard output: ") && said.contains("No space left"), "{line:?}: {said}");
        let names: Vec<String> = written.iter().map(|name| text(&at(name)).to_owned()).collect();
        let expected =
            if names.is_empty() { String::new() } else { format!("; written: {}", names.join(", ")) };
        assert!(said.trim_end().ends_with(&format!("(os error 28){expected}")), "{line:?}: {said}");
        assert!(written.iter().all(|name| at(name).exists()), "{line:?}");
    }
}

#[test]
fn work_that_cannot_begin_leaves_no_folder() {
    let (folder, log) = shop_log(50);
    let at = |name: &str| folder.path().join(name);
    let data = at("data");
    fs::create_dir(&data).unwrap();
    fs::copy(&log, data.join("shop.parquet")).unwrap();
    let suite = |settings: &str| {
        let text = format!(
            "title = 't'\n[[datasets]]\nname = 'shop'\nfiles = ['shop.parquet']\nvalid = '1month'\ntest = '1month'\n\
             max_len = 5\n[[models]]\nname = 'P'\nmodel = 'pure-svd'\nsettings = {{ {settings} }}\n"
        );
        fs::write(at("suite.toml"), text).unwrap();
    };
    suite("rank = 0");
    let (missing, out, checkpoints) = (at("nosuch"), at("out/deep"), at("checkpoints/deep"));
    let (suite_file, model) = (at("suite.toml"), at("m.satf"));
    for line in [
        vec!["reproduce", "--data", text(&missing), "--out", text(&out)],
        vec!["reproduce", "--data", text(&data), "--suite", text(&suite_file), "--out", text(&out)],
        vec![
            "train",
            text(&missing),
            "-m",
            "sasrec",
            "--checkpoints",
            text(&checkpoints),
            "-o",
            text(&model),
        ],
        vec!["evaluate", text(&missing), "-m", "sasrec", "--checkpoints", text(&checkpoints)],
    ] {
        if !cfg!(feature = "sasrec") && line.contains(&"sasrec") {
            continue;
        }
        let before = fs::read_dir(folder.path()).unwrap().count();
        let outcome = satf(&line);
        assert_eq!(outcome.code, 1, "{line:?}: {}", outcome.stderr);
        assert!(!at("out").exists() && !at("checkpoints").exists(), "{line:?}: {}", outcome.stderr);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), before, "{line:?}");
    }
    // A folder that was there stays, and what is done in one is kept.
    fs::create_dir(at("out")).unwrap();
    satf(&["reproduce", "--data", text(&missing), "--out", text(&at("out"))]);
    assert!(at("out").exists() && fs::read_dir(at("out")).unwrap().next().is_none());
    suite("rank = 4");
    satf(&["reproduce", "--data", text(&data), "--suite", text(&suite_file), "--out", text(&out)]).succeeds();
    assert!(out.join("cells").exists());
}

#[test]
fn what_is_wrong_with_a_long_line_is_said_in_short() {
    let (folder, log) = shop_log(50);
    let path = |name: &str, content: String| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        text(&path).to_owned()
    };
    let long = "x".repeat(1_000_000);
    let keys = (0..20_000).fold(String::new(), |text, at| text + &format!("key_{at} = 1\n"));
    let header: Vec<String> = (0..20_000).map(|at| format!("column_{at}")).collect();
    let model = folder.path().join("m.satf");
    let output = ["-o", text(&model)];
    for (command, file) in [
        ("--config", path("a.toml", format!("rank = {long}\n"))),
        ("--config", path("b.toml", format!("{long} = 1\n"))),
        ("--config", path("c.toml", format!("rank = '{long}'\n"))),
        ("--config", path("d.toml", keys)),
        ("--config", path("e.toml", format!("rank = {}", "[".repeat(1_000_000)))),
        ("--space", path("f.toml", format!("keys.rank = {long}\n"))),
        ("--space", path("g.toml", format!("keys.rank = [1]\nconstraints = ['{long} < 1']\n"))),
        ("--space", path("h.toml", format!("keys.rank = [1]\nsummary = 1\n'{long}' = 1\n"))),
        ("--suite", path("i.toml", format!("title = {long}\n"))),
        ("--suite", path("j.toml", format!("title = 't'\n'{long}' = 1\n"))),
        ("LOG", path("k.csv", format!("{}\n1,2,3\n", header.join(",")))),
    ] {
        let line = match command {
            "--config" => [&["train", &log, "--model", "pure-svd", "--config", &file], &output[..]].concat(),
            "--space" => vec!["tune", &log, "--model", "pure-svd", "--space", &file],
            "--suite" => vec!["reproduce", "--data", &log, "--out", text(&model), "--suite", &file],
            _ => vec!["stats", &file],
        };
        let outcome = satf(&line);
        assert_eq!(outcome.code, 1, "{line:?}");
        assert!(outcome.stderr.len() < 10_000, "{line:?}: {} bytes", outcome.stderr.len());
        assert!(outcome.stderr.starts_with("error: "), "{line:?}: {}", outcome.stderr);
    }
}
