//! Load on a server, to see how much it handles.
//!
//! Requests are due at a fixed rate whether or not earlier ones were answered (open loop), and a latency runs from the moment a request
//! was *due*, not from when it could be sent: a server that stalls is charged with all that waits meanwhile. One thread does it all, so
//! that the server beside it has the rest of the machine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use satf::monitor::{Cancelled, Monitor, check_cancelled};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

pub use crate::quantiles::Quantiles;
use crate::quantiles::Times;

/// How much load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where the server listens.
    pub address: SocketAddr,
    /// Requests per second.
    pub rate: f64,
    /// How long.
    pub duration: Duration,
    /// Connections kept open.
    pub connections: usize,
    /// Whole requests, headers included, asked in turn.
    pub requests: Arc<[Vec<u8>]>,
    /// The process of the server, whose processor time and memory are measured where the system tells.
    pub process: Option<u32>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// Requests per second that were due.
    pub rate: f64,
    /// Requests that were due.
    pub due: u64,
    /// Answers with status 2xx.
    pub answered: u64,
    /// Answers 503.
    pub rejected: u64,
    /// Any other answer, connections that broke, and requests without an answer at the end.
    pub errors: u64,
    /// What the first errors were that differ from each other.
    pub first_errors: Vec<String>,
    /// Answers 2xx per second, from the first request to the last answer.
    pub answered_per_second: f64,
    /// Latency of answers 2xx.
    pub latency_ms: Option<Quantiles>,
    /// Latency of answers 503.
    pub rejected_ms: Option<Quantiles>,
    /// Processor time of the server, in cores.
    pub server_cores: Option<f64>,
    /// Processor time of this process, in cores.
    pub load_cores: Option<f64>,
    /// Resident memory of the server before and after, in bytes, and the most in between.
    pub server_memory: Option<[u64; 3]>,
}

impl LoadReport {
    /// Whether the server answered at all, be it that it has too much to do.
    pub fn has_answers(&self) -> bool {
        self.answered + self.rejected > 0
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The system gives no thread, timer or socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// A request in JSON, with its headers.
pub fn request(host: &str, path: &str, key: Option<&str>, body: &[u8]) -> Vec<u8> {
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{key}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Between two looks at what is due: as fine as the timer of the runtime is.
const TICK: Duration = Duration::from_millis(1);
/// How long the last answers may take.
const PATIENCE: Duration = Duration::from_secs(5);
const FIRST_ERRORS: usize = 5;
/// Characters of an error that are kept.
const LONGEST_ERROR: usize = 300;

struct Shared {
    load: Load,
    waiting: RefCell<VecDeque<(Instant, usize)>>,
    is_due: Notify,
    seen: RefCell<Seen>,
}

struct Seen {
    answered: Times,
    rejected: Times,
    errors: u64,
    first_errors: Vec<String>,
    last: Instant,
}

/// Loads a server. The monitor may stop it at any moment.
pub fn load(load: Load, monitor: &dyn Monitor) -> Result<LoadReport, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(tokio::task::LocalSet::new().run_until(run(load, monitor)))
}

async fn run(load: Load, monitor: &dyn Monitor) -> Result<LoadReport, LoadError> {
    let started = Instant::now();
    let seen = Seen {
        answered: Times::default(),
        rejected: Times::default(),
        errors: 0,
        first_errors: Vec::new(),
        last: started,
    };
    let (rate, duration, process) =
        (load.rate, load.duration, load.process.map(|process| process.to_string()));
    let shared = Rc::new(Shared {
        waiting: RefCell::default(),
        is_due: Notify::new(),
        seen: RefCell::new(seen),
        load,
    });
    let connections: Vec<_> = (0..shared.load.connections)
        .map(|_| tokio::task::spawn_local(converse(Rc::clone(&shared))))
        .collect();
    let memory = || process.as_deref().and_then(crate::stats::resident_bytes);
    let (memory_before, mut memory_most) = (memory(), memory());
    let processor = || process.as_deref().and_then(processor_seconds);
    let (server_before, own_before) = (processor(), processor_seconds("self"));
    let started = Instant::now();
    let total = (rate * duration.as_secs_f64()) as u64;
    let mut due = 0;
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut ticks = 0u64;
    while due < total {
        interval.tick().await;
        check_cancelled(monitor)?;
        ticks += 1;
        if ticks.is_multiple_of(100) {
            memory_most = memory_most.max(memory());
        }
        let now = total.min((started.elapsed().as_secs_f64() * rate) as u64);
        let mut waiting = shared.waiting.borrow_mut();
        for number in due..now {
            let at = started + Duration::from_secs_f64(number as f64 / rate);
            waiting.push_back((at, number as usize));
        }
        drop(waiting);
        for _ in due..now {
            shared.is_due.notify_one();
        }
        due = now;
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end && answers(&shared) < total {
        check_cancelled(monitor)?;
        shared.is_due.notify_waiters();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let elapsed = started.elapsed().as_secs_f64();
    let cores = |before: Option<f64>, after: Option<f64>| Some((after? - before?) / elapsed);
    let (server_cores, load_cores) =
        (cores(server_before, processor()), cores(own_before, processor_seconds("self")));
    connections.iter().for_each(tokio::task::JoinHandle::abort);
    let unanswered = total.saturating_sub(answers(&shared));
    let seen = shared.seen.borrow();
    let time = seen.last.saturating_duration_since(started).as_secs_f64().max(1e-9);
    Ok(LoadReport {
        rate,
        due: total,
        answered: seen.answered.len(),
        rejected: seen.rejected.len(),
        errors: seen.errors + unanswered,
        first_errors: seen.first_errors.clone(),
        answered_per_second: seen.answered.len() as f64 / time,
        latency_ms: seen.answered.quantiles(),
        rejected_ms: seen.rejected.quantiles(),
        server_cores,
        load_cores,
        server_memory: memory_before
            .zip(memory())
            .zip(memory_most)
            .map(|((before, after), most)| [before, after, most.max(after)]),
    })
}

fn answers(shared: &Shared) -> u64 {
    let seen = shared.seen.borrow();
    seen.answered.len() + seen.rejected.len() + seen.errors
}

/// One connection: asks, reads, asks again.
async fn converse(shared: Rc<Shared>) {
    let mut stream: Option<TcpStream> = None;
    let mut buffer = Vec::with_capacity(16 << 10);
    loop {
        let next = shared.waiting.borrow_mut().pop_front();
        let Some((due, number)) = next else {
            shared.is_due.notified().await;
            continue;
        };
        let requests = &shared.load.requests;
        let Some(request) = requests.get(number % requests.len().max(1)) else { return };
        let outcome = ask(&mut stream, shared.load.address, request, &mut buffer).await;
        let micros = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut seen = shared.seen.borrow_mut();
        seen.last = Instant::now();
        let error = match outcome {
            Ok((200..300, _)) => {
                seen.answered.record(micros);
                None
            }
            Ok((503, _)) => {
                seen.rejected.record(micros);
                None
            }
            Ok((status, body)) => {
                Some(format!("status {status}: {}", in_words(buffer.get(body..).unwrap_or_default())))
            }
            Err(error) => {
                stream = None;
                Some(broken(&error))
            }
        };
        if let Some(error) = error {
            seen.errors += 1;
            if seen.first_errors.len() < FIRST_ERRORS && !seen.first_errors.contains(&error) {
                seen.first_errors.push(error);
            }
        }
    }
}

/// What became of a connection, in words.
fn broken(error: &io::Error) -> String {
    let words = match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            "the connection broke"
        }
        io::ErrorKind::UnexpectedEof => {
            return "the connection was closed before the answer was whole".to_owned();
        }
        _ => return error.to_string(),
    };
    format!("{words}: {error}")
}

/// What a body says went wrong: the server's own message, or the beginning of whatever it is.
fn in_words(body: &[u8]) -> String {
    let message = serde_json::from_slice::<Value>(body).ok();
    let message = message.as_ref().and_then(|body| body.pointer("/error/message")?.as_str());
    let text = message.map_or_else(|| String::from_utf8_lossy(body), Into::into);
    text.chars().take(LONGEST_ERROR).collect()
}

/// Sends a request. Returns the status of its answer, and where the body begins in the buffer.
async fn ask(
    stream: &mut Option<TcpStream>,
    address: SocketAddr,
    request: &[u8],
    buffer: &mut Vec<u8>,
) -> io::Result<(u16, usize)> {
    if stream.is_none() {
        let new = TcpStream::connect(address).await?;
        new.set_nodelay(true)?;
        *stream = Some(new);
    }
    let Some(open) = stream else { return Err(io::ErrorKind::NotConnected.into()) };
    open.write_all(request).await?;
    buffer.clear();
    let Head { status, body, length, closes } = loop {
        if open.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(head) = head(buffer)? {
            break head;
        }
    };
    while buffer.len() < length {
        if open.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    if closes {
        *stream = None;
    }
    Ok((status, body))
}

/// What the head of a response says.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Where the body begins.
    body: usize,
    /// Of the whole response.
    length: usize,
    /// Whether the connection ends with it.
    closes: bool,
}

/// The head of a response; none if it is not all there.
fn head(bytes: &[u8]) -> io::Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { return Ok(None) };
    let strange =
        || io::Error::new(io::ErrorKind::InvalidData, "a response that is not HTTP as this server speaks it");
    let text = bytes.get(..end).and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(strange)?;
    let status = text.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(strange)?;
    let find = |name: &str| {
        let mut lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let length: usize = find("content-length").and_then(|length| length.parse().ok()).ok_or_else(strange)?;
    let closes = find("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let body = end + 4;
    Ok(Some(Head { status, body, length: body + length, closes }))
}

/// Processor time of a process, where the system tells (Linux does).
fn processor_seconds(process: &str) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may hold anything, in brackets.
    let fields = stat.rsplit_once(')')?.1;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    // The kernel counts in hundredths of a second, whatever its own clock.
    Some((user + system) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_when_they_are_whole() {
        let response =
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nconnection: close\r\n\r\n{}";
        let expected = Head { status: 503, body: response.len() - 2, length: response.len(), closes: true };
        assert_eq!(head(response).unwrap(), Some(expected));
        assert_eq!(head(&response[..40]).unwrap(), None);
        assert!(head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert_eq!(in_words(br#"{"error": {"code": "invalid", "message": "n: 0"}}"#), "n: 0");
        assert_eq!(in_words(b"gone"), "gone");
        assert!(processor_seconds("self").is_some() || !cfg!(target_os = "linux"));
    }
}
