//! What the library warns of while it works, as warnings of Python.

use std::ffi::CString;
use std::fmt::{self, Write};
use std::sync::{Mutex, Once, PoisonError};

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Messages that nobody was told of yet.
static UNTOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Hears warnings from now on, unless somebody else does.
pub(crate) fn hear_warnings() {
    static ONCE: Once = Once::new();
    // It fails where the program `satf` runs in this process, which says them itself.
    ONCE.call_once(|| drop(tracing::subscriber::set_global_default(Warnings)));
}

/// Warns of what came up since, at the call that people wrote.
pub(crate) fn tell(py: Python<'_>) -> PyResult<()> {
    const CALLER: i32 = 2;
    let messages = std::mem::take(&mut *UNTOLD.lock().unwrap_or_else(PoisonError::into_inner));
    if messages.is_empty() {
        return Ok(());
    }
    let category = py.import("satf._errors")?.getattr("SatfWarning")?;
    for message in messages {
        PyErr::warn(py, &category, &CString::new(message.replace('\0', " "))?, CALLER)?;
    }
    Ok(())
}

struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("satf")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message::default();
        event.record(&mut message);
        UNTOLD.lock().unwrap_or_else(PoisonError::into_inner).push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The text of an event, with its other fields behind it.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name} = {value:?}"),
        };
    }
}
