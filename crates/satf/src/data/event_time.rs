//! The time of an event, as the caller has it.

use std::path::Path;

use super::error::Position;
use super::field::Field;
use super::ledger::Rejection;
use super::time::TimeReader;
use super::{DataError, TimeUnit};
use crate::interactions::{AsId, Ids, OwnedHistory, Timestamp};

/// What messages call events that did not come from a file.
pub(super) const EVENTS: &str = "pushed events";

/// The time of an event: a number, a date, or a [`Timestamp`].
///
/// Numbers and texts are read as those of a file are: numbers count from 1970 in a [`TimeUnit`] that is guessed from their magnitude unless
/// it is given, texts are numbers or dates of ISO 8601 (`2024-05-17`, `2024-05-17T10:11:12Z`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventTime<'a> {
    /// A whole number of the unit since 1970.
    Number(i64),
    /// A number with a fraction.
    Fraction(f64),
    /// A number or a date, written out.
    Text(&'a str),
    /// The time itself.
    Exact(Timestamp),
}

impl<'a> From<EventTime<'a>> for Field<'a> {
    fn from(time: EventTime<'a>) -> Self {
        match time {
            EventTime::Number(number) => Field::Integer(number),
            EventTime::Fraction(number) => Field::Float(number),
            EventTime::Text(text) => Field::Text(text.as_bytes()),
            EventTime::Exact(Timestamp(micros)) => Field::Micros(micros),
        }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for EventTime<'_> {
            fn from(number: $number) -> Self {
                EventTime::Number(i64::from(number))
            }
        }
    )*};
}

numbers!(i32, i64, u32);

impl From<f64> for EventTime<'_> {
    fn from(number: f64) -> Self {
        EventTime::Fraction(number)
    }
}

impl<'a> From<&'a str> for EventTime<'a> {
    fn from(text: &'a str) -> Self {
        EventTime::Text(text)
    }
}

impl<'a> From<&'a String> for EventTime<'a> {
    fn from(text: &'a String) -> Self {
        EventTime::Text(text)
    }
}

impl From<Timestamp> for EventTime<'_> {
    fn from(time: Timestamp) -> Self {
        EventTime::Exact(time)
    }
}

impl OwnedHistory {
    /// Items with the times of their events, in any order, the times read as those of a log are. Items with equal times form a
    /// basket and keep their order.
    pub fn from_timed<'t>(
        catalog: &Ids,
        events: impl IntoIterator<Item = (impl AsId, impl Into<EventTime<'t>>)>,
        unit: TimeUnit,
    ) -> Result<Self, DataError> {
        let mut times = TimeReader::new(unit);
        let mut read = Vec::new();
        for (row, (id, time)) in (1..).zip(events) {
            let (field, position) = (Field::from(time.into()), Position::Row(row));
            let micros = times.read(&field, Some("time"), Path::new(EVENTS), position);
            let micros = micros.map_err(|rejection| match rejection {
                Rejection::Row(fault) => fault.at(Path::new(EVENTS), position),
                Rejection::Log(error) => error,
            })?;
            read.push((id, Timestamp(micros)));
        }
        Ok(OwnedHistory::from_events(catalog, read))
    }
}
