//! Requests to stop: Ctrl-C, SIGTERM and SIGHUP.
//!
//! The first one asks the work to stop, and it ends as it does of itself: what is done is kept, what is half done is removed, and
//! stderr says so. The second one, or work that does not stop for a while, ends the process at once; temporary files go even then.
//! A signal that whoever started the process had ignored stays ignored.
//!
//! A file that grows beyond the limit of the system (`ulimit -f`) does not end the process: the write fails, as on a full disk.

use std::io::Write;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use nix::sys::signal::{SigSet, Signal};
use satf::data::discard_unfinished;
use satf::monitor::Monitor;

/// SIGINT and SIGHUP as every system numbers them.
const INTERRUPT: i32 = 2;
const HANG_UP: i32 = 1;

/// How long work may go on after a request: shorter than what those wait who then kill (`docker stop`: 10 seconds).
const GRACE: Duration = Duration::from_secs(8);

/// Requests that come closer together are one: some programs send a signal both to a process and to its group.
const TOGETHER: Duration = Duration::from_millis(100);

/// The signal that asked first; 0 if none has.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// When it did.
static ASKED: OnceLock<Instant> = OnceLock::new();

/// Whether the work is to stop.
pub(crate) fn is_stop_requested() -> bool {
    RECEIVED.load(Ordering::Relaxed) != 0
}

/// Hears requests to stop and shows nothing: for what is read before there is any progress to show.
pub(crate) struct StopRequests;

impl Monitor for StopRequests {
    fn is_cancelled(&self) -> bool {
        is_stop_requested()
    }
}

/// The exit code of a command that was stopped, as shells have it: 128 and the number of the signal.
pub(crate) fn exit_code() -> u8 {
    match RECEIVED.load(Ordering::Relaxed) {
        0 => code(INTERRUPT),
        signal => code(signal),
    }
}

fn code(signal: i32) -> u8 {
    128 + signal as u8
}

/// Listens for signals from now on, on a thread of its own. Called before there is any other thread, for those that begin earlier do
/// not leave the signals to it.
#[cfg(unix)]
pub(crate) fn watch() -> std::io::Result<()> {
    let requests = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let signals: SigSet = requests.into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let mut blocked = signals;
    // Nobody waits for it: held back, it leaves the write with an error.
    blocked.add(Signal::SIGXFSZ);
    blocked.thread_block()?;
    let listen = move || {
        loop {
            if let Ok(signal) = signals.wait() {
                receive(signal as i32);
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map(drop)
}

/// Lets signals through that whoever started the process held back: for a command that hears them itself.
#[cfg(all(unix, feature = "serve"))]
pub(crate) fn unblock() -> std::io::Result<()> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    Ok(signals.thread_unblock()?)
}

/// Listens for Ctrl-C from now on, on a thread of its own.
#[cfg(not(unix))]
pub(crate) fn watch() -> std::io::Result<()> {
    ctrlc::set_handler(|| receive(INTERRUPT)).map_err(std::io::Error::other)
}

/// Whether whoever started the process had a signal ignored, as `nohup` does with SIGHUP and a shell without job control with SIGINT
/// for what runs in the background: then it stays so. Where the system does not tell, only SIGHUP is taken to be.
#[cfg(unix)]
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.map_or(signal == Signal::SIGHUP, |mask| mask >> (signal as i32 - 1) & 1 == 1)
}

fn receive(signal: i32) {
    let asked = ASKED.get_or_init(Instant::now);
    match RECEIVED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            // Without this thread the work has all the time it wants.
            let _ = thread::Builder::new().spawn(move || {
                thread::sleep(GRACE);
                end_at_once(signal, "stopped on request, before the work could end cleanly");
            });
        }
        // A terminal that goes away may say so twice.
        Err(_) if signal == HANG_UP || asked.elapsed() < TOGETHER => {}
        Err(_) => end_at_once(signal, "stopped at once"),
    }
}

/// Ends the process. Whatever was done before is on disk as a whole, and no half-written file is left.
fn end_at_once(signal: i32, message: &str) -> ! {
    discard_unfinished();
    let _ = writeln!(std::io::stderr(), "\n{message}; no half-written file is left");
    process::exit(i32::from(code(signal)))
}
