//! `satf reproduce` as a user meets it: cells that survive whatever ends the command, and a report of them all.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use satf_binary::{Outcome, only_run, satf, satf_that_hears, shop_log, without_timings};
use serde_json::Value;
use tempfile::TempDir;

/// Two datasets, one of them not there; models with and without iterations; figures to compare with; names that a page or a
/// table could choke on.
const SUITE: &str = r#"
title = "A shop & <script>alert('title')</script>"
published_by = "manual"
repeats = 2
curve_iterations = 1

[[datasets]]
name = "shop"
title = "Shop <script>alert(1)</script> | a_b*c"
files = ["not-there.csv", "shop.parquet"]
valid = "1month"
test = "1month"
max_len = 20
note = "Made up."

[[datasets]]
name = "elsewhere"
files = ["elsewhere.csv"]
valid = "1month"
test = "1month"
max_len = 20

[[models]]
name = "MP"
model = "mp"

[[models]]
name = "PureSVD"
model = "pure-svd"
settings = { rank = 10 }
on.shop = { scaling = 0.4 }
tune.space = "small"

[[models]]
name = "LA-SATF"
model = "la-satf"
settings = { user_rank = 12, item_rank = 10, start = "random" }
random_start = true

[[models]]
name = "Absent"
model = "not-a-model"
on_request = true

[[models]]
name = "transitions"
model = "transitions"
extra = true

[[ranks]]
datasets = ["shop"]
models = ["PureSVD", "LA-SATF"]
values = [4, 8]

[published.shop]
PureSVD = { ndcg = [0.1, 0.002], hr = [0.2, 0.004], cov = 0.5 }
Absent = { ndcg = [0.9, 0.002], hr = [0.95, 0.004], cov = 0.25 }
"#;

/// MP 1 + 2, PureSVD 1 + 2 + 2 ranks, LA-SATF 2 + 2 + curve + 2 ranks, transitions 1 + 2.
const CELLS: usize = 3 + 5 + 7 + 3;

struct Place {
    folder: TempDir,
    data: String,
    suite: String,
}

impl Place {
    fn new(users: usize) -> Self {
        let (folder, log) = shop_log(users);
        let suite = folder.path().join("suite.toml");
        fs::write(&suite, SUITE).unwrap();
        let data = Path::new(&log).parent().unwrap().to_str().unwrap().to_owned();
        Place { folder, data, suite: suite.to_str().unwrap().to_owned() }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments<'a>(&'a self, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let out = out.to_str().unwrap();
        let mut arguments = vec!["reproduce", "--data", &self.data, "--suite", &self.suite, "--out", out];
        arguments.extend(more);
        arguments
    }

    fn run(&self, out: &Path, more: &[&str]) -> Outcome {
        satf(&self.arguments(out, more))
    }

    fn report(&self, out: &Path, more: &[&str]) -> Value {
        let more = [more, &["--json"]].concat();
        serde_json::from_str(&self.run(out, &more).succeeds()).unwrap()
    }

    fn start(&self, out: &Path) -> Child {
        let mut command = satf_that_hears();
        command.args(self.arguments(out, &[])).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// The cells of a folder and when they were written.
fn cells(out: &Path) -> BTreeMap<String, SystemTime> {
    let Ok(entries) = fs::read_dir(out.join("cells")) else { return BTreeMap::new() };
    // Cells take their place whole and stay; temporary files come and go under hidden names.
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .map(|name| {
            let written = fs::metadata(out.join("cells").join(&name)).unwrap().modified().unwrap();
            (name, written)
        })
        .collect()
}

/// A report without times and how it was run.
fn figures(report: &Value) -> Value {
    let mut report = without_timings(report.clone());
    report["made"].as_object_mut().unwrap().remove("command");
    report
}

fn row<'a>(report: &'a Value, model: &str) -> &'a Value {
    report["datasets"][0]["rows"].as_array().unwrap().iter().find(|row| row["model"] == model).unwrap()
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_an_undisturbed_one() {
    let place = Place::new(600);
    let (whole, killed) = (place.out("whole"), place.out("killed"));
    let undisturbed = place.report(&whole, &[]);
    assert_eq!(cells(&whole).len(), CELLS);

    let mut progressed = 0;
    for _ in 0..100 {
        let before = cells(&killed);
        let mut child = place.start(&killed);
        // Until a cell is added, then a moment into the next one.
        let start = Instant::now();
        while cells(&killed).len() == before.len() && child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(120), "nothing happens");
            thread::sleep(Duration::from_millis(1));
        }
        let ended = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        let now = cells(&killed);
        for (name, written) in &before {
            assert_eq!(now.get(name), Some(written), "{name} was done again");
        }
        progressed += usize::from(now.len() > before.len());
        if ended || now.len() == CELLS {
            break;
        }
    }
    assert!(progressed >= 4, "the kills came too late to mean anything: {progressed}");
    let before = cells(&killed);
    let resumed = place.report(&killed, &[]);
    assert!(before.iter().all(|(name, written)| cells(&killed)[name] == *written));
    assert_eq!(figures(&resumed), figures(&undisturbed));
    let left: Vec<_> =
        fs::read_dir(killed.join("cells")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), CELLS + 1, "only cells and the lock: {left:?}");

    // A report that is made again from the same cells is the same, times and all.
    let read = |name: &str| fs::read_to_string(whole.join(name)).unwrap();
    let (html, markdown, written) = (read("report.html"), read("report.md"), cells(&whole));
    place.report(&whole, &[]);
    assert_eq!(
        (cells(&whole), read("report.html") == html, read("report.md") == markdown),
        (written, true, true)
    );
}

#[test]
fn ctrl_c_keeps_what_was_done() {
    let place = Place::new(2000);
    let out = place.out("interrupted");
    let child = place.start(&out);
    let start = Instant::now();
    while cells(&out).len() < 2 && start.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(
        said.contains("stopped on request") && said.contains(&format!("of {CELLS} cells are kept in")),
        "{said}"
    );
    assert!(cells(&out).len() >= 2 && cells(&out).len() < CELLS);
}

#[test]
fn what_does_not_match_is_done_again_and_nothing_else() {
    let place = Place::new(400);
    let out = place.out("out");
    let first = place.report(&out, &[]);
    let before = cells(&out);
    let changed = |before: &BTreeMap<String, SystemTime>| {
        let now = cells(&out);
        now.iter()
            .filter(|(name, written)| before.get(*name) != Some(written))
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };

    // Damaged cells are done again, with a word on it.
    let damaged = out.join("cells/shop.mp.file.1.json");
    let text = fs::read_to_string(&damaged).unwrap();
    for broken in [&text[..text.len() / 2], "", &text[..1], &text.replace("\"value\"", "\"vlaue\"")] {
        fs::write(&damaged, broken).unwrap();
        let outcome = place.run(&out, &["--json"]);
        assert!(outcome.stderr.contains("shop.mp.file.1.json: is damaged"), "{}", outcome.stderr);
        let again: Value = serde_json::from_str(&outcome.succeeds()).unwrap();
        assert_eq!(figures(&again), figures(&first));
    }
    assert_eq!(changed(&before), ["shop.mp.file.1.json"]);
    // What is not a cell is somebody's own.
    fs::write(&damaged, "{\"mine\": true}").unwrap();
    let outcome = place.run(&out, &[]);
    assert!(
        outcome.code == 1 && outcome.stderr.contains("not of a cell that satf wrote"),
        "{}",
        outcome.stderr
    );
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "{\"mine\": true}");
    fs::write(&damaged, &text).unwrap();

    // Another configuration of one model is done again.
    let before = cells(&out);
    fs::write(&place.suite, SUITE.replace("scaling = 0.4", "scaling = 0.5")).unwrap();
    place.report(&out, &[]);
    let names = changed(&before);
    assert!(names.len() == 5 && names.iter().all(|name| name.starts_with("shop.puresvd.")), "{names:?}");

    // Another log, and all is done again.
    let before = cells(&out);
    satf(&["generate", "--users", "400", "--seed", "9", "-o", &format!("{}/shop.parquet", place.data)])
        .succeeds();
    place.report(&out, &[]);
    assert_eq!(changed(&before).len(), CELLS);
}

#[test]
fn the_report_says_it_all_in_every_format() {
    let place = Place::new(600);
    let out = place.out("out");
    let outcome = place.run(&out, &[]);
    assert!(outcome.stderr.contains("elsewhere (elsewhere.csv): left out"), "{}", outcome.stderr);
    let shown = outcome.succeeds();
    for part in ["LA-SATF", "manual NDCG, HR, COV", "report.html"] {
        assert!(shown.contains(part), "{shown}");
    }
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("report.json")).unwrap();
    let (html, markdown) = (read("report.html"), read("report.md"));

    // Every score is in both, and so is every model.
    for model in ["MP", "PureSVD", "LA-SATF", "transitions"] {
        let row = row(&report, model);
        for order in ["file", "shuffled"] {
            for (at, figure) in row[order]["figures"].as_array().unwrap().iter().enumerate() {
                let value = figure["value"].as_f64().unwrap();
                let text = figure["stderr"]
                    .as_f64()
                    .map_or_else(|| format!("{value:.3}"), |stderr| format!("{value:.4} ± {stderr:.4}"));
                assert_eq!(figure["stderr"].is_null(), at == 2);
                assert!(html.contains(&text) && markdown.contains(&text), "{model} {order}: {text}");
            }
        }
        let seeds = if model == "LA-SATF" { 2 } else { 1 };
        assert_eq!(row["file"]["seeds"].as_array().unwrap().len(), seeds, "{model}");
        assert_eq!(row["shuffled"]["seeds"].as_array().unwrap().len(), 2);
    }
    // What was published stands beside it with a mark, also for a model that was not run.
    assert_eq!(row(&report, "PureSVD")["marks"].as_array().unwrap().len(), 3);
    let absent = row(&report, "Absent");
    assert!(absent["file"].is_null() && absent["marks"].is_null());
    assert_eq!(absent["published_places"][0], "best");
    for text in ["0.900", "0.950", "0.250"] {
        assert!(html.contains(text) && markdown.contains(text), "{text}");
    }
    // Rows have as many cells as the table has columns.
    for table in markdown.split("\n\n").filter(|block| block.starts_with("| ")) {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(table.lines().all(|line| cells(line) == cells(table.lines().next().unwrap())), "{table}");
    }

    // Foreign text is text.
    assert!(!html.contains("<script") && !html.contains("alert('title')</"), "a script got through");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!markdown.contains("<script") && markdown.contains("\\| a\\_b\\*c"));
    // Nothing is fetched from elsewhere.
    for part in ["<link rel=\"stylesheet\"", " src=", "@import", "url(http"] {
        assert!(!html.contains(part), "{part}");
    }

    // Charts stand alone too.
    let charts: Vec<String> = fs::read_dir(out.join("charts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in [
        "shop-ndcg",
        "shop-hr",
        "shop-validation",
        "shop-weights",
        "shop-attention",
        "shop-time-by-rank",
        "time-at-configuration",
    ] {
        assert!(charts.contains(&format!("{name}.svg")), "{name}.svg in {charts:?}");
        assert!(
            markdown.contains(&format!("charts/{name}.svg")) && html.contains(&format!("id=\"{name}\"")),
            "{name}"
        );
    }
    // One command scores a row alone, to the digit.
    let command = row(&report, "PureSVD")["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let alone = only_run(&satf(&words).succeeds());
    let ours = row(&report, "PureSVD")["file"]["figures"][0]["value"].as_f64().unwrap();
    assert!((alone["metrics"]["NDCG@10"]["value"].as_f64().unwrap() - ours).abs() < 1e-12);
}

#[test]
fn tuning_finds_configurations_in_studies_that_are_kept() {
    let place = Place::new(300);
    let out = place.out("tuned");
    let more = ["--tune", "--trials", "2", "--only", "PureSVD,MP"];
    let report = place.report(&out, &more);
    assert_eq!(report["made"]["tuned"], true);
    assert!(out.join("studies/shop.puresvd/trials.jsonl").exists());
    assert!(out.join("cells/shop.puresvd.tuned.file.1.json").exists());
    let tuned = &row(&report, "PureSVD")["configuration"];
    // What the suite sets is held, what the space has is searched.
    assert_eq!(tuned["rank"].as_u64().map(|rank| [4, 8, 16, 32, 64, 128, 256].contains(&rank)), Some(true));
    let before = cells(&out);
    assert_eq!(figures(&place.report(&out, &more)), figures(&report));
    assert_eq!(cells(&out), before);
}

#[test]
fn what_cannot_be_done_is_said_before_the_work() {
    let place = Place::new(100);
    let out = place.out("out");
    let said = |arguments: &[&str]| {
        let outcome = satf(arguments);
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        outcome.stderr
    };
    // No dataset at all.
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let nothing = said(&["reproduce", "--data", empty, "--out", out.to_str().unwrap()]);
    assert!(
        nothing.contains("none of the datasets is there") && nothing.contains("amz-beauty.csv.gz"),
        "{nothing}"
    );
    // A folder that is a file.
    let file = place.out("file");
    fs::write(&file, "").unwrap();
    assert!(place.run(&file, &[]).stderr.contains("cannot create the folder"));
    // A model that is not built in, a name that is not in the suite, a suite with a fault.
    assert!(place.run(&out, &["--with", "Absent"]).stderr.contains("unknown model 'not-a-model'"));
    assert!(place.run(&out, &["--only", "PureSDV"]).stderr.contains("did you mean 'PureSVD'?"));
    fs::write(&place.suite, SUITE.replace("rank = 10", "rnak = 10")).unwrap();
    assert!(place.run(&out, &[]).stderr.contains("did you mean 'rank'?"));
    fs::write(&place.suite, SUITE.replace("max_len = 20", "max_len = 'many'")).unwrap();
    let fault = place.run(&out, &[]).stderr;
    assert!(fault.contains("suite.toml") && fault.contains("max_len") && fault.contains("line"), "{fault}");
    assert!(cells(&out).is_empty());
}

/// A folder that takes a little and then no more: what a full disk looks like. Needs the right to mount.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new(kilobytes: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        matches!(mounted, Ok(status) if status.success()).then_some(SmallDisk(folder))
    }
}

impl SmallDisk {
    fn remount(&self, option: &str) {
        let option = format!("remount,{option}");
        assert!(Command::new("mount").args(["-o", &option]).arg(self.0.path()).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_and_a_read_only_folder_keep_what_was_done() {
    let place = Place::new(300);
    let out = place.out("out");
    fs::create_dir_all(out.join("cells")).unwrap();
    // A folder in the place of a cell: nobody, not even root, can write that cell.
    fs::create_dir_all(out.join("cells/shop.puresvd.file.1.json/full")).unwrap();
    let outcome = place.run(&out, &[]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("shop.puresvd.file.1.json: cannot be saved"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("continues from there"), "{}", outcome.stderr);
    let kept = cells(&out);
    assert!(kept.contains_key("shop.mp.file.1.json"));
    fs::remove_dir_all(out.join("cells/shop.puresvd.file.1.json")).unwrap();
    place.run(&out, &[]).succeeds();
    assert_eq!(cells(&out)["shop.mp.file.1.json"], kept["shop.mp.file.1.json"]);

    let Some(disk) = SmallDisk::new(24) else { return };
    let outcome = place.run(disk.0.path(), &[]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("cannot be saved") && outcome.stderr.contains("No space"),
        "{}",
        outcome.stderr
    );
    let kept = cells(disk.0.path());
    assert!(!kept.is_empty(), "nothing was kept");
    disk.remount("size=64m");
    place.run(disk.0.path(), &[]).succeeds();
    assert!(kept.iter().all(|(name, written)| cells(disk.0.path())[name] == *written));

    disk.remount("ro");
    let outcome = place.run(disk.0.path(), &[]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("cannot write here") && outcome.stderr.contains("Read-only"),
        "{}",
        outcome.stderr
    );
}
