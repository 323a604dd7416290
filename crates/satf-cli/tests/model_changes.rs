//! Models that are changed where they lie, through the real binary: one change at a time, none lost, and what happened is said as it was.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use satf_binary::{satf, satf_that_hears};
use serde_json::Value;
use tempfile::TempDir;

/// A model with statistics, and days of a log that are not in it yet.
struct Place {
    folder: TempDir,
    model: String,
}

const DAYS: usize = 5;

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place { model: folder.path().join("model.satf").to_str().unwrap().to_owned(), folder };
        place.write("old.csv", &(0..600).collect::<Vec<_>>());
        for day in 0..DAYS {
            place.write(&format!("day{day}.csv"), &(600 + 20 * day..620 + 20 * day).collect::<Vec<_>>());
        }
        place.write("all.csv", &(0..600 + 20 * DAYS).collect::<Vec<_>>());
        satf(&["train", &place.path("old.csv"), "--with-statistics", "-o", &place.model]).succeeds();
        place
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, rows: &[usize]) {
        let row = |at: &usize| {
            let mixed = (*at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            format!("user {},item {},{}\n", mixed % 50, mixed / 50 % 20, 1_600_000_000 + at * 3600)
        };
        let rows: String = rows.iter().map(row).collect();
        fs::write(self.path(name), format!("user,item,time\n{rows}")).unwrap();
    }

    fn events(&self) -> u64 {
        let inspected = satf(&["inspect", &self.model, "--json"]).succeeds();
        let inspected: Value = serde_json::from_str(&inspected).unwrap();
        inspected["manifest"]["statistics"]["events"].as_u64().unwrap()
    }

    fn names(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }
}

fn start(arguments: &[&str]) -> Child {
    let mut command = satf_that_hears();
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn said(child: &mut Child) -> String {
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

/// Whether a process goes on for so long.
fn goes_on(child: &mut Child, how_long: Duration) -> bool {
    let end = Instant::now() + how_long;
    while Instant::now() < end {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn changes_at_once_are_made_one_after_the_other_and_none_is_lost() {
    let place = Place::new();
    let link = place.path("link.satf");
    std::os::unix::fs::symlink("model.satf", &link).unwrap();
    let names = place.names();
    let days: Vec<String> = (0..DAYS).map(|day| place.path(&format!("day{day}.csv"))).collect();
    let mut all: Vec<Child> = (0..DAYS)
        .map(|day| start(&["train", "--update", [&place.model, &link][day % 2], &days[day]]))
        .collect();
    all.push(start(&["forget", &place.model, "--user", "user 3"]));
    for mut child in all {
        let words = said(&mut child);
        assert!(child.wait().unwrap().success(), "{words}");
    }
    assert_eq!(place.names(), names, "nothing is left beside the model");
    // One more makes them comparable, whenever the user was forgotten.
    satf(&["forget", &place.model, "--user", "user 3"]).succeeds();
    let whole = place.path("whole.satf");
    satf(&["train", &place.path("all.csv"), "--with-statistics", "-o", &whole]).succeeds();
    satf(&["forget", &whole, "--user", "user 3"]).succeeds();
    assert!(fs::read(&place.model).unwrap() == fs::read(&whole).unwrap());
}

#[test]
fn a_change_waits_for_another_says_so_and_can_be_stopped() {
    let place = Place::new();
    let before = fs::read(&place.model).unwrap();
    let day = place.path("day0.csv");
    let held = File::open(&place.model).unwrap();
    held.lock().unwrap();
    let wait = Duration::from_millis(1500);
    let changes = [
        vec!["train", "--update", &place.model, &day],
        vec!["forget", &place.model, "--user", "user 3"],
        vec!["train", &day, "-o", &place.model],
    ];
    for change in &changes {
        let mut child = start(change);
        assert!(goes_on(&mut child, wait), "{change:?}: {}", said(&mut child));
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let words = said(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{words}");
        assert!(words.contains("another satf is changing this file; waiting"), "{words}");
    }
    // Whoever only reads does not wait, nor does who writes elsewhere.
    satf(&["recommend", &place.model, "--history", "item 3"]).succeeds();
    satf(&["forget", &place.model, "--user", "user 3", "-o", &place.path("other.satf")]).succeeds();
    assert!(fs::read(&place.model).unwrap() == before);
    // A holder that is killed holds nothing any more.
    let mut waiting = start(&changes[0]);
    let mut killed = start(&changes[1]);
    thread::sleep(Duration::from_millis(200));
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(held);
    let words = said(&mut waiting);
    assert!(waiting.wait().unwrap().success(), "{words}");
    assert_eq!(place.events(), 620);
}

#[test]
fn another_name_of_the_model_is_not_written_as_if_it_were_the_model() {
    let place = Place::new();
    let (hard, soft) = (place.path("hard.satf"), place.path("soft.satf"));
    fs::hard_link(&place.model, &hard).unwrap();
    std::os::unix::fs::symlink("model.satf", &soft).unwrap();
    let before = fs::read(&place.model).unwrap();
    let day = place.path("day0.csv");
    for change in [
        vec!["forget", &place.model, "--user", "user 3", "-o", &hard],
        vec!["train", "--update", &place.model, &day, "-o", &hard],
    ] {
        let outcome = satf(&change);
        assert!(outcome.code == 1 && outcome.stderr.contains("hard link"), "{}", outcome.stderr);
        assert!(fs::read(&place.model).unwrap() == before && fs::read(&hard).unwrap() == before);
    }
    // A symbolic link is the model. The other name keeps what is forgotten, which is said.
    let outcome = satf(&["forget", &place.model, "--user", "user 3", "-o", &soft]);
    assert!(outcome.stderr.contains("1 other name(s) (hard links)"), "{}", outcome.stderr);
    outcome.succeeds();
    assert!(fs::read(&place.model).unwrap() != before && fs::read(&hard).unwrap() == before);
    assert!(Path::new(&soft).is_symlink());
    let outcome = satf(&["forget", &place.model, "--user", "user 4"]);
    assert!(!outcome.stderr.contains("other name"), "{}", outcome.stderr);
}

#[test]
fn nothing_to_forget_is_said_and_nobody_else_is_proposed() {
    let place = Place::new();
    let before = fs::read(&place.model).unwrap();
    let outcome = satf(&["forget", &place.model, "--user", "user 33x", "--item", "itme 3"]);
    assert!(
        outcome.stderr.contains("'user 33x'") && !outcome.stderr.contains("'user 33'"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("did you mean 'item 3'?"), "{}", outcome.stderr);
    let told = outcome.succeeds();
    assert!(told.contains("nothing to forget") && told.contains("model.satf is left as it is"), "{told}");
    assert!(!told.contains("written") && !told.contains("forgot 0"), "{told}");
    let unknown = ["forget", &place.model, "--user", "nobody"];
    let report = |more: &[&str]| -> Value {
        serde_json::from_str(&satf(&[&unknown[..], &["--json"], more].concat()).succeeds()).unwrap()
    };
    assert_eq!(report(&[])["written"], false);
    // Another file is written, and is the same model.
    let other = place.path("other.satf");
    assert_eq!(report(&["-o", &other])["written"], true);
    assert!(fs::read(&other).unwrap() == before && fs::read(&place.model).unwrap() == before);
    // Lists in files have an id per line.
    fs::write(place.path("gone.json"), "[\"user 3\", \"user 4\"]\n").unwrap();
    let outcome = satf(&["forget", &place.model, "--user", &format!("@{}", place.path("gone.json"))]);
    assert!(
        outcome.code == 1 && outcome.stderr.contains("gone.json: the file holds a JSON list"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("one id per line"), "{}", outcome.stderr);
    fs::write(place.path("none.txt"), "\n").unwrap();
    let nobody = satf(&["forget", &place.model, "--user", &format!("@{}", place.path("none.txt"))]);
    assert!(nobody.stderr.contains("the list is empty"), "{}", nobody.stderr);
    nobody.succeeds();
    assert!(fs::read(&place.model).unwrap() == before);
}

#[test]
fn a_log_that_is_added_twice_is_told_of() {
    let place = Place::new();
    let (day, other) = (place.path("day0.csv"), place.path("other.satf"));
    let again = "new events are in the model already (the same user, item and time) and will count twice";
    let first = satf(&["train", "--update", &place.model, &day]);
    assert!(!first.stderr.contains(again), "{}", first.stderr);
    first.succeeds();
    let elsewhere = satf(&["train", "--update", &place.model, &day, "-o", &other, "--json"]);
    assert!(elsewhere.stderr.contains(&format!("20 of 20 {again}")), "{}", elsewhere.stderr);
    assert!(elsewhere.stderr.contains("the model itself is left as it is"), "{}", elsewhere.stderr);
    let report: Value = serde_json::from_str(&elsewhere.succeeds()).unwrap();
    assert_eq!((&report["rows_added"], &report["rows_already_there"]), (&20.into(), &20.into()));
    place.write("half.csv", &(610..630).collect::<Vec<_>>());
    let half = satf(&["train", "--update", &place.model, &place.path("half.csv")]);
    assert!(half.stderr.contains(&format!("10 of 20 {again}")), "{}", half.stderr);
    assert!(half.stderr.contains("Ctrl-C") && half.stderr.contains("train anew"), "{}", half.stderr);
    half.succeeds();
    // Without times it is told of if all histories end so.
    fs::write(place.path("ordered.csv"), "user,item\n1,2\n2,3\n1,4\n3,4\n").unwrap();
    fs::write(place.path("more.csv"), "user,item\n1,4\n3,4\n").unwrap();
    let ordered = place.path("ordered.satf");
    satf(&["train", &place.path("ordered.csv"), "--order-is-time", "--with-statistics", "-o", &ordered])
        .succeeds();
    let add = || satf(&["train", "--update", &ordered, &place.path("more.csv"), "--order-is-time"]);
    let told = add();
    assert!(
        told.stderr.contains("2 of 2 new events are in the model already (all histories end"),
        "{}",
        told.stderr
    );
    fs::write(place.path("more.csv"), "user,item\n1,4\n3,2\n").unwrap();
    assert!(!add().stderr.contains("already"));
}

#[test]
fn a_model_whose_events_contradict_it_is_refused() {
    let place = Place::new();
    let bytes = fs::read(&place.model).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..8 + length].to_vec()).unwrap();
    for (from, to, part) in [
        ("\\\"events\\\":600", "\\\"events\\\":601", "601 as in the manifest"),
        ("\\\"users\\\":50,\\\"events\\\"", "\\\"users\\\":49,\\\"events\\\"", "49 as in the manifest"),
    ] {
        assert_eq!(header.matches(from).count(), 1, "{header}");
        let mut changed = bytes.clone();
        changed[8..8 + length].copy_from_slice(header.replace(from, to).as_bytes());
        sign(&mut changed);
        fs::write(&place.model, &changed).unwrap();
        for arguments in [
            vec!["inspect", &place.model],
            #[cfg(feature = "serve")]
            vec!["serve", &place.model, "--check"],
            vec!["forget", &place.model, "--user", "user 3"],
        ] {
            let outcome = satf(&arguments);
            assert!(outcome.code == 1 && outcome.stderr.contains(part), "{arguments:?}: {}", outcome.stderr);
        }
    }
}

/// Where a file has its checksum, which is over everything before the events, with zeros in its own place.
const CHECKSUM: std::ops::Range<usize> = 37..101;

fn sign(bytes: &mut [u8]) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let first = header["event_offsets"]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[CHECKSUM].fill(b'0');
    let digits = blake3::hash(&bytes[..8 + length + first]).to_hex();
    bytes[CHECKSUM].copy_from_slice(digits.as_bytes());
}
