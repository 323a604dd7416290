//! `satf bench serve`: it stops when asked, takes its server along however it ends, and does not call a failure a success.

// Which processes there are is told by /proc.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(clippy::unwrap_used)]

mod satf_binary;
mod server;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use satf_binary::{satf, satf_that_hears, shop_log};
use server::{Server, shop_model};

/// Shorter than what a command gets that does not stop by itself.
const SOON: Duration = Duration::from_secs(6);

/// A benchmark under way, and the process of its server.
struct Bench {
    child: Child,
    server: u32,
}

impl Bench {
    #[expect(clippy::zombie_processes, reason = "whoever gets the benchmark waits for it")]
    fn start(folder: &Path, model: &Path) -> Self {
        let mut child = satf_that_hears()
            .args(["bench", "serve"])
            .arg(folder.join("shop.parquet"))
            .arg("--model")
            .arg(model)
            .args(["--rate", "10", "--seconds", "60", "--connections", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(server) = child_of(child.id()).filter(|server| listens(*server)) {
                return Bench { child, server };
            }
            if Instant::now() > end {
                let _ = child.kill();
                panic!("the server did not start: {:?}", child.wait());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal, and waits until both processes are gone; the exit code.
    fn end_by(mut self, signal: Signal) -> Option<i32> {
        let asked = Instant::now();
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        let code = self.child.wait().unwrap().code();
        while is_running(self.server) {
            if asked.elapsed() > SOON {
                let _ = kill(Pid::from_raw(self.server as i32), Signal::SIGKILL);
                panic!("{signal}: the server is still there");
            }
            thread::sleep(Duration::from_millis(20));
        }
        assert!(asked.elapsed() < SOON, "{signal}: {:?}", asked.elapsed());
        code
    }
}

fn child_of(process: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Whether a server waits for connections: it has threads that answer by then.
fn listens(process: u32) -> bool {
    let names = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.trim() == "satf-serve")
}

fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // A process that ended and that nobody waited for is no server any more.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_benchmark_stops_when_asked_and_takes_its_server_along() {
    let (folder, model) = shop_model(100, &["--model", "mp"]);
    for (signal, code) in [
        (Signal::SIGTERM, Some(143)),
        (Signal::SIGINT, Some(130)),
        // It cannot be heard: the server hears that nobody is there any more.
        (Signal::SIGKILL, None),
    ] {
        let bench = Bench::start(folder.path(), &model);
        assert_eq!(bench.end_by(signal), code, "{signal}");
    }
}

#[test]
fn a_server_hears_signals_that_its_starter_held_back() {
    let (_folder, model) = shop_model(60, &["--model", "mp"]);
    let mut signals = nix::sys::signal::SigSet::empty();
    signals.add(Signal::SIGTERM);
    // Threads and processes of this test begin with what it holds back.
    let mut server = thread::spawn(move || {
        signals.thread_block().unwrap();
        Server::start(&model, &[])
    })
    .join()
    .unwrap();
    server.signal(Signal::SIGTERM);
    let end = Instant::now() + SOON;
    while server.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "the server did not hear the signal");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_benchmark_without_answers_is_a_failure() {
    let (folder, model) = shop_model(60, &["--model", "mp"]);
    let log = folder.path().join("shop.parquet");
    let (log, model) = (log.to_str().unwrap(), model.to_str().unwrap());
    let short = ["--rate", "20", "--seconds", "0.5", "--warm-up", "0"];
    let bench = |options: &[&str]| satf(&[&["bench", "serve", log], options, &short].concat());
    let nobody = bench(&["--address", "127.0.0.1:1"]);
    assert_eq!((nobody.code, nobody.stdout.as_str()), (1, ""), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("127.0.0.1:1: none of 10 requests was answered: "), "{}", nobody.stderr);
    let refused = bench(&["--model", model, "-n", "5000"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("status 422: n: 5000: expected at most 1000"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("\\r"), "{}", refused.stderr);
    bench(&["--model", model]).succeeds();
}

#[test]
fn a_server_that_goes_away_is_told_of() {
    let (folder, model) = shop_model(60, &["--model", "mp"]);
    let log = folder.path().join("shop.parquet");
    let run = |options: &[&str]| {
        satf_that_hears()
            .args(["bench", "serve"])
            .arg(&log)
            .args(["--connections", "2", "--warm-up", "0", "--rate", "50"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let ended = |bench: Child| {
        let output = bench.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // One of its own: nobody waits for the rest of a minute.
    let began = Instant::now();
    let bench = run(&["--model", model.to_str().unwrap(), "--seconds", "60"]);
    let server = loop {
        match child_of(bench.id()).filter(|server| listens(*server)) {
            Some(server) => break server,
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(server as i32), Signal::SIGKILL).unwrap();
    let (code, said) = ended(bench);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ended while it was measured at 50/s (signal: 9"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    // One that was there already.
    let mut server = Server::start(&model, &[]);
    let bench = run(&["--address", &server.address.to_string(), "--seconds", "3"]);
    thread::sleep(Duration::from_millis(1500));
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let (code, said) = ended(bench);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the server went away while it was measured at 50/s"), "{said}");
    // One that does not start says why.
    let refused = satf(&["bench", "serve", log.to_str().unwrap(), "--model", log.to_str().unwrap()]);
    assert!(refused.code == 1 && refused.stderr.contains("did not start"), "{}", refused.stderr);
    assert!(refused.stderr.contains("not a satf model file"), "{}", refused.stderr);
}

#[test]
fn options_of_a_benchmark_that_mean_nothing_are_refused() {
    let (_folder, log) = shop_log(60);
    for (options, part) in [
        ("--address 127.0.0.1:1 --set limits.n=3", "--set"),
        ("--model m.satf --pid 1", "--pid"),
        ("--address 127.0.0.1:1 --max-len 0", "--max-len"),
        ("--address 127.0.0.1:1 --requests 1000000000", "--requests"),
        ("--address 127.0.0.1:1 --warm-up inf", "--warm-up"),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let outcome = satf(&[&["bench", "serve", &log][..], &options].concat());
        assert_eq!(outcome.code, 2, "{options:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{options:?}: {}", outcome.stderr);
    }
}
