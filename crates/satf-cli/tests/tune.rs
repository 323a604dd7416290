//! `satf tune` as a user meets it: studies that survive whatever ends them.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use satf_binary::{only_run, satf, satf_that_hears, shop_log, without_timings};
use serde_json::Value;
use tempfile::TempDir;

/// A log, a small space, and studies beside them.
struct Place {
    folder: TempDir,
    log: String,
    space: String,
}

const SPACE: &str = "keys.user_rank = [4, 6, 8]\nkeys.item_rank = [4, 6, 8]\nkeys.scaling = [0.0, 0.3, 0.6]\nkeys.rescaled \
                     = [false, true]\nkeys.num_iters = 3\nconstraints = ['user_rank < 8 or item_rank < 8']\n";

impl Place {
    fn new() -> Self {
        let (folder, log) = shop_log(300);
        let space = folder.path().join("small.toml");
        fs::write(&space, SPACE).unwrap();
        let space = space.to_str().unwrap().to_owned();
        Place { folder, log, space }
    }

    fn study(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments<'a>(&'a self, study: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["tune", &self.log, "--model", "la-satf", "--space", &self.space];
        arguments.extend(["--valid", "1month", "--test", "1month", "--seed", "5", "--json", "--study"]);
        arguments.push(study.to_str().unwrap());
        arguments.extend(more);
        arguments
    }

    fn start(&self, study: &Path, more: &[&str]) -> Child {
        let mut command = satf_that_hears();
        command.args(self.arguments(study, more)).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn run(&self, study: &Path, more: &[&str]) -> Value {
        serde_json::from_str(&satf(&self.arguments(study, more)).succeeds()).unwrap()
    }
}

/// What a study came to, without times, places and how it was run.
fn outcome(report: &Value) -> Value {
    let mut report = without_timings(report.clone());
    let fields = report.as_object_mut().unwrap();
    fields.retain(|name, _| ["trials", "result"].contains(&name.as_str()));
    report
}

fn lines(study: &Path) -> usize {
    fs::read(study.join("trials.jsonl")).map_or(0, |bytes| bytes.split(|&byte| byte == b'\n').count() - 1)
}

/// Numbers that look random and are the same every time.
fn draws(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    })
}

#[test]
fn a_study_killed_twenty_times_ends_as_an_undisturbed_one() {
    let place = Place::new();
    for (sampler, jobs) in [("tpe", "2"), ("random", "1")] {
        let options = ["--sampler", sampler, "--trials", "24", "--jobs", jobs];
        let start = Instant::now();
        let undisturbed = place.run(&place.study(&format!("{sampler}-whole")), &options);
        let whole = start.elapsed().as_secs_f64();
        let trials = undisturbed["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 24);
        let in_trials =
            trials.iter().map(|trial| trial["elapsed_seconds"].as_f64().unwrap()).fold(0.0, f64::max);
        let (before, a_trial) = ((whole - in_trials).max(0.01), in_trials / 24.0);
        let study = place.study(&format!("{sampler}-killed"));
        let mut kept = 0;
        let mut progressed = 0;
        for (at, draw) in draws(41).take(20).enumerate() {
            let mut child = place.start(&study, &options);
            // As long as that, but not beyond the next trial: the machine may have become faster since the times were taken.
            let mut sleep = |seconds: f64| {
                let (begun, trials) = (Instant::now(), lines(&study));
                let is_over = || begun.elapsed().as_secs_f64() >= seconds || lines(&study) > trials;
                while !is_over() && child.try_wait().unwrap().is_none() {
                    thread::sleep(Duration::from_millis(1));
                }
            };
            if at % 2 == 0 {
                // From the first moments, when not even the study is there, to about the first trial.
                sleep(draw * (before + a_trial));
            } else {
                // Somewhere in the trial after the first that was added.
                sleep(f64::INFINITY);
                sleep(draw * a_trial);
            }
            child.kill().unwrap();
            child.wait().unwrap();
            let now = lines(&study);
            assert!(now >= kept, "a trial was lost: {kept} before, {now} now");
            progressed += usize::from(now > kept);
            kept = now;
        }
        assert!(progressed >= 5, "the kills came too early to mean anything: {progressed}");
        let resumed = place.run(&study, &options);
        assert_eq!(outcome(&resumed), outcome(&undisturbed), "{sampler}");
        let mut numbers: Vec<u64> = resumed["trials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trial| trial["trial"].as_u64().unwrap())
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..24).collect::<Vec<_>>(), "none lost, none doubled");
        // A finished study is not done again.
        let again = place.run(&study, &options);
        assert_eq!(again["result"], resumed["result"]);
    }
}

#[test]
fn a_torn_last_line_is_done_again() {
    let place = Place::new();
    let study = place.study("torn");
    let whole = place.run(&study, &["--trials", "6"]);
    let path = study.join("trials.jsonl");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    fs::remove_file(study.join("result.json")).unwrap();
    let status: Value =
        serde_json::from_str(&satf(&["tune", "status", study.to_str().unwrap(), "--json"]).succeeds())
            .unwrap();
    assert_eq!((&status["done"], &status["state"]), (&5.into(), &"stopped".into()));
    let outcome_again = satf(&place.arguments(&study, &["--trials", "6"]));
    assert!(outcome_again.stderr.contains("torn"), "{}", outcome_again.stderr);
    let again: Value = serde_json::from_str(&outcome_again.succeeds()).unwrap();
    assert_eq!(outcome(&again), outcome(&whole));
}

/// Waits until a study has so many trials.
fn wait_for(study: &Path, trials: usize) {
    let start = Instant::now();
    while lines(study) < trials && start.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(2));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn ctrl_c_keeps_what_was_done() {
    let mut place = Place::new();
    // Far more trials than the test waits for.
    "small".clone_into(&mut place.space);
    let study = place.study("interrupted");
    let child = place.start(&study, &["--sampler", "exhaustive"]);
    wait_for(&study, 2);
    signal(&child, "-INT");
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("stopped on request after") && said.contains("continues from there"), "{said}");
    let kept = lines(&study);
    assert!(kept >= 2);
    let trials = (kept + 2).to_string();
    let options = ["--sampler", "exhaustive", "--trials", &trials];
    let resumed = place.run(&study, &options);
    assert_eq!(resumed["trials"].as_array().unwrap().len(), kept + 2);
    let undisturbed = place.run(&place.study("undisturbed"), &options);
    assert_eq!(outcome(&resumed), outcome(&undisturbed));
}

#[test]
fn the_best_is_scored_once_on_the_test_part_and_can_be_had_again() {
    let place = Place::new();
    let study = place.study("best");
    let report = place.run(&study, &["--trials", "8"]);
    let result = &report["result"];
    let trials = report["trials"].as_array().unwrap();
    let scores = trials.iter().flat_map(|trial| trial["scores"].as_array().unwrap());
    let highest = scores.map(|score| score["value"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(result["best"]["value"].as_f64(), Some(highest));
    let keys = &result["best"]["keys"];
    assert_eq!(result["configuration"]["num_iters"], keys["num_iters"]);
    assert_eq!((&result["test_part_scored"], &result["trials"]["done"]), (&1.into(), &8.into()));

    let config = study.join("best.toml");
    let evaluated = |more: &[&str]| -> Value {
        let mut arguments =
            vec!["evaluate", &place.log, "--model", "la-satf", "--config", config.to_str().unwrap()];
        arguments.extend(["--valid", "1month", "--test", "1month", "--seed", "5", "--json"]);
        arguments.extend(more);
        only_run(&satf(&arguments).succeeds())
    };
    assert_eq!(evaluated(&[])["metrics"], result["test"]);
    assert_eq!(evaluated(&[])["configuration"], result["configuration"]);
    let validation = &evaluated(&["--on", "validation"])["metrics"]["NDCG@10"]["value"];
    assert!((validation.as_f64().unwrap() - highest).abs() < 1e-15);

    // More trials go on with the same study; the test set is looked at again only for a new best.
    let more = place.run(&study, &["--trials", "24"]);
    assert_eq!(more["trials"].as_array().unwrap()[..8], trials[..]);
    let scored = if more["result"]["best"] == result["best"] { 1 } else { 2 };
    assert_eq!(more["result"]["test_part_scored"], scored);
}

#[test]
fn threads_and_jobs_change_no_digit() {
    let place = Place::new();
    let on = |name: &str, more: &[&str]| {
        let mut options = vec!["--trials", "12", "--sampler", "tpe"];
        options.extend(more);
        outcome(&place.run(&place.study(name), &options))
    };
    assert_eq!(on("one", &["--threads", "1"]), on("two", &["--threads", "2", "--jobs", "2"]));
}

#[test]
fn status_speaks_to_people_and_to_programs() {
    let place = Place::new();
    let study = place.study("shown");
    let mut arguments = place.arguments(&study, &["--trials", "3"]);
    arguments.retain(|argument| *argument != "--json");
    let table = satf(&arguments).succeeds();
    for part in ["NDCG@10 on the validation set: 3 trials", "Best: ", "test  ", "best.toml", "num_iters"] {
        assert!(table.contains(part), "no '{part}' in: {table}");
    }
    let path = study.to_str().unwrap();
    let table = satf(&["tune", "status", path]).succeeds();
    for part in ["finished", "3 of 3", "best so far", "NDCG@10", "num_iters"] {
        assert!(table.contains(part), "no '{part}' in: {table}");
    }
    let status: Value = serde_json::from_str(&satf(&["tune", "status", path, "--json"]).succeeds()).unwrap();
    assert_eq!(
        (&status["state"], &status["done"], &status["failed"]),
        (&"finished".into(), &3.into(), &0.into())
    );
    assert_eq!(status["asked"]["model"], "la-satf");
    assert!(status["best"]["value"].is_f64() && status["seconds_a_trial"].is_f64());
    let missing = satf(&["tune", "status", "/nowhere/study"]);
    assert!(missing.code == 1 && missing.stderr.contains("no study here"), "{}", missing.stderr);
}

#[test]
fn keys_set_are_held_and_presets_bring_their_protocol() {
    let place = Place::new();
    let study = place.study("preset");
    let arguments = [
        "tune",
        &place.log,
        "--model",
        "la-satf",
        "--preset",
        "la-satf/amz-b",
        "--space",
        "small",
        "--trials",
        "2",
        "--set",
        "item_rank=6",
        "--set",
        "user_rank=7",
        "--valid",
        "1month",
        "--test",
        "1month",
        "--json",
        "--study",
        study.to_str().unwrap(),
    ];
    let report: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
    assert_eq!(report["asked"]["protocol"]["ties"], "file");
    for trial in report["trials"].as_array().unwrap() {
        assert_eq!((&trial["keys"]["item_rank"], &trial["keys"]["user_rank"]), (&6.into(), &7.into()));
    }
    assert_eq!(
        report["result"]["configuration"]["start"], "random",
        "the preset's keys stay where the space has none"
    );
}

#[test]
fn every_tunable_model_has_a_space_that_runs() {
    let place = Place::new();
    for (model, space) in
        [("pure-svd", "small"), ("ease", "default"), ("vmis-knn", "default"), ("transitions", "default")]
    {
        let study = place.study(model);
        let arguments = [
            "tune",
            &place.log,
            "--model",
            model,
            "--space",
            space,
            "--trials",
            "2",
            "--valid",
            "1month",
            "--test",
            "1month",
            "--json",
            "--study",
            study.to_str().unwrap(),
        ];
        let report: Value = serde_json::from_str(&satf(&arguments).succeeds()).unwrap();
        assert_eq!(report["trials"].as_array().unwrap().len(), 2, "{model}");
        assert!(report["result"]["test"]["NDCG@10"]["value"].as_f64().unwrap() > 0.0, "{model}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let place = Place::new();
    let study = place.study("refused");
    place.run(&study, &["--trials", "2"]);
    let refused_with = |code: i32, arguments: Vec<&str>, parts: &[&str]| {
        let outcome = satf(&arguments);
        assert_eq!(outcome.code, code, "{arguments:?}: {}", outcome.stderr);
        for part in parts {
            assert!(outcome.stderr.contains(part), "no '{part}' in: {}", outcome.stderr);
        }
    };
    let refused = |arguments: Vec<&str>, parts: &[&str]| refused_with(1, arguments, parts);
    // What the command line alone gets wrong.
    let wrong = |arguments: Vec<&str>, parts: &[&str]| refused_with(2, arguments, parts);
    refused(
        place.arguments(&study, &["--metric", "HR@5", "--sampler", "tpe"]),
        &["another study", "metric: \"NDCG@10\" there, \"HR@5\" asked for now", "sampler", "--study"],
    );
    wrong(place.arguments(&study, &["--on", "validation"]), &["--on validation"]);
    wrong(place.arguments(&study, &["--set", "rnak=3"]), &["unknown key 'rnak'"]);
    let simple = |more: &[&'static str]| {
        let mut arguments = vec!["tune", place.log.as_str(), "--valid", "1month", "--test", "1month"];
        arguments.extend(more);
        arguments
    };
    wrong(simple(&["--model", "la-satf,ga-satf"]), &["expected one model"]);
    wrong(simple(&["--model", "mp"]), &["mp has no space"]);
    wrong(simple(&["--model", "la-satf", "--space", "papre"]), &["did you mean 'paper'"]);
    refused(simple(&["--model", "la-satf", "--space", "/nowhere/mine.toml"]), &["/nowhere/mine.toml"]);
    let bad = place.study("bad.toml");
    fs::write(&bad, "keys.rank = [").unwrap();
    refused(
        vec!["tune", &place.log, "--model", "pure-svd", "--space", bad.to_str().unwrap()],
        &["bad.toml", "TOML"],
    );
    assert_eq!(satf(&["tune", &place.log, "--model", "mp", "--trials", "0"]).code, 2);
    assert_eq!(satf(&["tune"]).code, 2);
    let time = satf(&["tune", &place.log, "--model", "ease", "--time-budget", "soon"]);
    assert!(time.code == 2 && time.stderr.contains("30min"), "{}", time.stderr);
}

#[test]
fn folders_that_cannot_be_written_are_named() {
    let place = Place::new();
    let refused = |study: &Path, part: &str| {
        let outcome = satf(&place.arguments(study, &["--trials", "1"]));
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(study.to_str().unwrap()), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    };
    let file = place.study("file");
    fs::write(&file, "precious").unwrap();
    refused(&file, "create the study folder");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let others = place.study("others");
    fs::create_dir(&others).unwrap();
    fs::write(others.join("thesis.tex"), "precious").unwrap();
    refused(&others, "thesis.tex");

    let closed = place.study("closed");
    fs::create_dir(&closed).unwrap();
    let mut permissions = fs::metadata(&closed).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&closed, permissions).unwrap();
    // Whoever may do everything is not kept out by permissions.
    if fs::write(closed.join("probe"), "").is_err() {
        refused(&closed, "--study");
    }
}

#[test]
fn a_folder_of_something_else_is_left_as_it_is() {
    let place = Place::new();
    let study = place.study("thesis");
    fs::create_dir(&study).unwrap();
    for name in ["thesis.tex", "study.json"] {
        fs::write(study.join(name), "precious").unwrap();
        let outcome = satf(&place.arguments(&study, &[]));
        assert!(outcome.code == 1 && outcome.stderr.contains(name), "{}", outcome.stderr);
        let names: Vec<_> = fs::read_dir(&study).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [name]);
        fs::remove_file(study.join(name)).unwrap();
    }
}

#[test]
fn two_runs_do_not_write_at_once() {
    let place = Place::new();
    let study = place.study("busy");
    let mut child = place.start(&study, &["--sampler", "exhaustive"]);
    wait_for(&study, 1);
    signal(&child, "-STOP");
    let second = satf(&place.arguments(&study, &["--sampler", "exhaustive"]));
    let status = satf(&["tune", "status", study.to_str().unwrap(), "--json"]).succeeds();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(second.code, 1, "{}", second.stderr);
    assert!(second.stderr.contains("another run is at work"), "{}", second.stderr);
    assert!(status.contains("\"state\": \"running\""), "{status}");
}
