//! Lines of JSON on stderr, which may be a terminal: characters that act on one are escaped.
//!
//! Lines gather in memory, and a thread of its own writes them, many times a second: a request never waits for whoever reads the log. If
//! nobody does, lines are dropped, and their number is logged.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use satf::escape;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::LoggedRequests;

/// Bytes that may gather before lines are dropped.
const MOST_BYTES: usize = 4 << 20;

/// The log of a server.
pub(crate) struct Log {
    lines: Mutex<Lines>,
    pub(crate) requests: LoggedRequests,
    is_silent: bool,
}

#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    dropped: u64,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Info,
    Warn,
    Error,
}

/// A request that was answered.
#[derive(Serialize)]
pub(crate) struct RequestLine<'a> {
    pub(crate) time: f64,
    pub(crate) level: Level,
    pub(crate) message: &'a str,
    pub(crate) request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_span_id: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    pub(crate) milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_version: Option<&'a str>,
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

impl Log {
    pub(crate) fn new(requests: LoggedRequests, is_silent: bool) -> Self {
        Log { lines: Mutex::default(), requests, is_silent }
    }

    /// Something that happened, with what belongs to it.
    pub(crate) fn event(&self, level: Level, message: &str, fields: &Value) {
        let mut line = json!({"time": now(), "level": level, "message": message});
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        self.push(&line);
    }

    /// A request that was answered.
    pub(crate) fn request(&self, line: &RequestLine<'_>) {
        let is_wanted = match self.requests {
            LoggedRequests::All => true,
            LoggedRequests::Errors => line.status >= 500,
            LoggedRequests::None => false,
        };
        if is_wanted {
            self.push(line);
        }
    }

    fn push(&self, line: &impl Serialize) {
        if self.is_silent {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.text.len() >= MOST_BYTES || escape::write_json(&mut lines.text, line).is_err() {
            lines.dropped += 1;
            return;
        }
        lines.text.push(b'\n');
    }

    /// Writes what has gathered. A log that cannot be written is no reason to stop.
    pub(crate) fn flush(&self) {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        if !lines.text.is_empty() {
            let _ = std::io::stderr().write_all(&lines.text);
        }
        if lines.dropped > 0 {
            let fields = json!({"lines": lines.dropped});
            self.event(Level::Warn, "the log is not read fast enough: lines were dropped", &fields);
        }
    }
}
