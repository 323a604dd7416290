//! Requests to stop: heard wherever a command is, with the exit code of the signal, and no half-written file is left.

// Whether a process listens already is told by /proc.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use satf_binary::{SATF, satf, satf_that_hears, shop_log};
use tempfile::TempDir;

/// Long enough for a busy machine, and shorter than what a command gets that does not stop by itself.
const SOON: Duration = Duration::from_secs(6);
const LINE: &[u8] = b"{\"user_id\": 1, \"history\": [\"tent\"]}\n";

/// A running command, killed if a test leaves it behind.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        Running::spawn(satf_that_hears().args(arguments))
    }

    /// Returns once signals are listened for.
    fn spawn(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running(piped.spawn().unwrap());
        let listens = || listens_to_signals(running.0.id());
        wait_until("it listens", listens);
        assert!(running.0.try_wait().unwrap().is_none(), "it ended too soon");
        running
    }

    fn stdin(&mut self) -> &mut ChildStdin {
        self.0.stdin.as_mut().unwrap()
    }

    fn signal(&self, name: &str) {
        assert!(self.signal_if_there(name));
    }

    /// A process that has ended keeps its number until it is waited for.
    fn signal_if_there(&self, name: &str) -> bool {
        let mut kill = Command::new("kill");
        kill.args([&format!("-{name}"), &self.0.id().to_string()]).status().unwrap().success()
    }

    /// The exit code of a process that ends within a time, and what it said.
    fn ends_within(&mut self, time: Duration) -> (i32, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < time, "it does not end");
            thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!said.contains("panicked"), "{said}");
        (status.code().unwrap_or_else(|| panic!("ended by {status}: {said}")), said)
    }

    /// Sends a signal; it must end soon, with the code of the signal.
    fn stops_on(&mut self, signal: &str, code: i32) -> String {
        self.signal(signal);
        let (found, said) = self.ends_within(SOON);
        assert_eq!(found, code, "{signal}: {said}");
        said
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: waited in vain");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process holds signals back for one of its threads to wait for: SIGXFSZ is always among them.
fn listens_to_signals(process: u32) -> bool {
    let status = format!("/proc/{process}/status");
    mask_of(&status, "SigBlk:").is_some_and(|mask| mask >> 24 & 1 == 1)
}

fn mask_of(status: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    u64::from_str_radix(text.lines().find_map(|line| line.strip_prefix(name))?.trim(), 16).ok()
}

/// The signals a test can send: tests may themselves run where SIGHUP is ignored, and then so is it by what they start.
fn signals() -> Vec<(&'static str, i32)> {
    let mut signals = vec![("INT", 130), ("TERM", 143)];
    if mask_of("/proc/self/status", "SigIgn:").is_some_and(|mask| mask & 1 == 0) {
        signals.push(("HUP", 129));
    }
    signals
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

/// A folder with a model in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let (folder, log) = shop_log(200);
        let place = Place(folder);
        satf(&["train", &log, "--model", "mp", "-o", &place.path("shop.satf")]).succeeds();
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn pipe(&self, name: &str) -> String {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// A command that waits where it hears nothing: a file of a study that is a pipe.
    fn deaf(&self) -> Running {
        fs::create_dir(self.path("study")).unwrap();
        self.pipe("study/study.json");
        Running::start(&["tune", "status", &self.path("study")])
    }

    fn temporary_files(&self) -> Vec<PathBuf> {
        let hidden = names(self.0.path()).into_iter().filter(|name| name.starts_with(".satf-"));
        hidden.map(|name| self.0.path().join(name)).collect()
    }

    /// Recommendations for histories on standard input, begun and waiting for more, with a temporary file.
    fn recommending(&self) -> Running {
        let (model, output) = (self.path("shop.satf"), self.path("next.csv"));
        let before = self.temporary_files();
        let mut running = Running::start(&["recommend", &model, "--histories", "-", "-o", &output]);
        running.stdin().write_all(LINE).unwrap();
        let is_new = |path: &PathBuf| !before.contains(path);
        wait_until("a temporary file", || self.temporary_files().iter().any(is_new));
        running
    }
}

#[test]
fn every_signal_stops_the_work_and_removes_what_is_half_written() {
    let place = Place::new();
    for (signal, code) in signals() {
        let said = place.recommending().stops_on(signal, code);
        assert!(said.contains("stopped on request"), "{said}");
        assert_eq!(names(place.0.path()), ["shop.parquet", "shop.satf"], "{signal}");
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_removes_what_is_half_written() {
    let place = Place::new();
    // Batches of it take long enough that the first one is not heard at once.
    let (large, slow) = (shop_log(4000), place.path("slow.satf"));
    satf(&["train", &large.1, "--model", "vmis-knn", "-o", &slow]).succeeds();
    let (histories, output) = (place.path("histories.jsonl"), place.path("next.csv"));
    let line = "{\"user_id\": 1, \"history\": [\"laptop\", \"tent\", \"usb-c hub\", \"sleeping bag\"]}\n";
    fs::write(&histories, line.repeat(200_000)).unwrap();
    for signal in ["INT", "TERM"] {
        let mut running = Running::start(&["recommend", &slow, "--histories", &histories, "-o", &output]);
        wait_until("a temporary file", || !place.temporary_files().is_empty());
        running.signal("INT");
        thread::sleep(Duration::from_millis(150));
        // It may have ended by the first one already.
        running.signal_if_there(signal);
        let (code, said) = running.ends_within(SOON);
        assert!(code == 130 || (signal == "TERM" && code == 143), "{code}: {said}");
        assert_eq!(names(place.0.path()), ["histories.jsonl", "shop.parquet", "shop.satf", "slow.satf"]);
    }
    // Where the work cannot hear it, the second one ends it.
    let mut running = place.deaf();
    // Two that come together are one.
    let process = running.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process, &process]).status().unwrap().success());
    thread::sleep(Duration::from_millis(300));
    assert!(running.0.try_wait().unwrap().is_none());
    running.stops_on("INT", 130);
}

#[test]
fn work_that_does_not_hear_a_request_is_ended_after_a_while() {
    let place = Place::new();
    let mut running = place.deaf();
    running.signal("TERM");
    let (code, said) = running.ends_within(Duration::from_secs(30));
    assert!(code == 143 && said.contains("stopped on request"), "{code}: {said}");
}

#[test]
fn waiting_for_input_is_interrupted() {
    let place = Place::new();
    let model = place.path("shop.satf");
    // Nothing on standard input, and a pipe that nobody opens.
    Running::start(&["recommend", &model, "--histories", "-"]).stops_on("INT", 130);
    let pipe = place.pipe("pipe.csv");
    Running::start(&["stats", &pipe]).stops_on("TERM", 143);
    Running::start(&["recommend", &model, "--histories", &pipe]).stops_on("INT", 130);
    let list = format!("@{pipe}");
    let recommend = ["recommend", &model, "--history", "tent"];
    for option in [
        ["--titles", &*pipe],
        ["--only", &*list],
        ["--exclude", &*list],
        ["--allow-seen", &*list],
        ["--boost", &*list],
    ] {
        Running::start(&[&recommend[..], &option].concat()).stops_on("INT", 130);
    }
    Running::start(&["recommend", &model, "--history", &list]).stops_on("TERM", 143);
    Running::start(&["similar", &model, "tent", "--titles", &pipe]).stops_on("INT", 130);
    Running::start(&["compare", &pipe, &pipe]).stops_on("INT", 130);
    let log = place.path("shop.parquet");
    for command in [&["evaluate", &log][..], &["train", &log, "-o", &place.path("new.satf")]] {
        Running::start(&[command, &["--model", "pure-svd", "--config", &pipe]].concat()).stops_on("INT", 130);
    }
    let asked = place.pipe("asked.toml");
    let said = Running::start(&["tune", &log, "--model", "pure-svd", "--space", &asked]).stops_on("INT", 130);
    assert!(said.contains("nothing was written"), "{said}");
    let out = place.path("out");
    Running::start(&["reproduce", "--data", &log, "--out", &out, "--suite", &asked]).stops_on("TERM", 143);
    // What comes through a pipe is read all the same.
    let mut running = Running::start(&["recommend", &model, "--history", "tent", "--only", &list]);
    fs::write(&pipe, "laptop\n").unwrap();
    assert_eq!(running.ends_within(SOON * 5).0, 0);
    let mut running = Running::start(&["stats", &pipe]);
    fs::write(&pipe, "user,item,time\na,b,1\n").unwrap();
    assert_eq!(running.ends_within(SOON * 5).0, 0);
}

#[test]
fn blank_lines_without_end_are_interrupted() {
    let blank = vec![b'\n'; 1 << 16];
    let mut running = Running::start(&["stats", "/dev/stdin"]);
    let mut stdin = running.0.stdin.take().unwrap();
    let writer = thread::spawn(move || while stdin.write_all(&blank).is_ok() {});
    thread::sleep(Duration::from_millis(200));
    running.stops_on("INT", 130);
    writer.join().unwrap();

    // The same, packed so well that little of the file is read.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blank.zst");
    let mut encoder = zstd::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    for _ in 0..2000 {
        encoder.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap();
    Running::start(&["stats", path.to_str().unwrap()]).stops_on("INT", 130);
}

#[test]
fn long_draws_and_large_logs_are_interrupted() {
    let place = Place::new();
    let (log, scores) = (place.path("shop.parquet"), place.path("scores.csv"));
    satf(&["evaluate", &log, "--model", "mp,random", "--per-event", &scores]).succeeds();
    let compare =
        ["compare", &place.path("scores.mp.csv"), &place.path("scores.random.csv"), "--draws", "10000000"];
    let mut running = Running::start(&compare);
    thread::sleep(Duration::from_millis(200));
    running.stops_on("INT", 130);

    let before = names(place.0.path());
    let mut running = Running::start(&["generate", "--users", "2000000", "-o", &place.path("large.csv")]);
    thread::sleep(Duration::from_millis(200));
    running.stops_on("TERM", 143);
    assert_eq!(names(place.0.path()), before);
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_run_and_what_is_written_stays() {
    let place = Place::new();
    let mut killed = place.recommending();
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let left = place.temporary_files();
    assert_eq!(left.len(), 1);

    // A run for the same file removes it, and one that is at work at the same time is left alone.
    let mut first = place.recommending();
    assert!(!left[0].exists());
    let of_first = place.temporary_files();
    assert_eq!(of_first.len(), 1);
    let mut second = place.recommending();
    assert!(of_first[0].exists() && place.temporary_files().len() == 2);
    drop(second.0.stdin.take());
    assert_eq!(second.ends_within(SOON * 5).0, 0);
    assert!(of_first[0].exists());
    first.stdin().write_all(LINE).unwrap();
    drop(first.0.stdin.take());
    assert_eq!(first.ends_within(SOON * 5).0, 0);
    assert_eq!(names(place.0.path()), ["next.csv", "shop.parquet", "shop.satf"]);
    assert_eq!(fs::read_to_string(place.path("next.csv")).unwrap().lines().count(), 21);
}

#[test]
fn a_signal_that_was_ignored_stays_so() {
    let place = Place::new();
    for signal in ["HUP", "INT", "TERM"] {
        let script = format!("trap '' {signal}; exec \"$0\" recommend \"$1\" --histories -");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(SATF).arg(place.path("shop.satf"));
        let mut running = Running::spawn(&mut command);
        running.signal(signal);
        thread::sleep(Duration::from_millis(300));
        running.stdin().write_all(LINE).unwrap();
        drop(running.0.stdin.take());
        let (code, said) = running.ends_within(SOON * 5);
        assert_eq!(code, 0, "{signal}: {said}");
    }
}

#[test]
fn a_file_larger_than_allowed_fails_as_on_a_full_disk() {
    let place = Place::new();
    let (log, before) = (place.path("shop.parquet"), names(place.0.path()));
    let large = ["generate", "--users", "20000", "-o", &place.path("large.csv")].map(str::to_owned);
    let many = ["prepare", &log, "-o", &place.path("many.csv")].map(str::to_owned);
    for arguments in [&large[..], &many] {
        let limited = Command::new("sh")
            .args(["-c", "ulimit -f 8; exec \"$@\"", "sh"])
            .arg(SATF)
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8(limited.stderr).unwrap();
        assert!(
            limited.status.code() == Some(1) && said.contains("cannot write"),
            "{}: {said}",
            limited.status
        );
        assert_eq!(names(place.0.path()), before);
    }
}

#[test]
fn a_search_is_stopped_while_it_looks_for_valid_points() {
    let place = Place::new();
    // A space of a million and a half points.
    let (log, study) = (place.path("shop.parquet"), place.path("study"));
    let tune = ["tune", &log, "--model", "d-satf", "--jobs", "2", "--study", &study];
    let mut running = Running::start(&[&tune[..], &["--valid", "1month", "--test", "1month"]].concat());
    thread::sleep(Duration::from_millis(400));
    let said = running.stops_on("TERM", 143);
    assert!(said.contains("stopped on request"), "{said}");
}

#[test]
fn an_abort_from_outside_is_one() {
    let place = Place::new();
    let mut running = place.recommending();
    running.signal("ABRT");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = running.0.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < SOON, "it goes on");
        thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "{status}");
}
