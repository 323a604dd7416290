//! A cut for other programs: what trains as a log, what is to be predicted as histories.

use std::io::{self, Write};
use std::path::Path;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::event_ids::EventIds;
use super::split::{Event, Partition};
use crate::data::{DataError, LogFormat, time, write_atomically, write_log};
use crate::interactions::{Clock, History, Id, Ids};
use crate::monitor::{Monitor, check_cancelled};

/// Events between two questions whether to stop.
const EVENTS_A_CHECK: usize = 1024;

impl Partition {
    /// Writes what models learn from as a log, user by user, each user's events in the order in which models see them. Ties are settled:
    /// read again in the order of the file, it is the same training set.
    pub fn write_training_set(
        &self,
        path: &Path,
        format: LogFormat,
        monitor: &dyn Monitor,
    ) -> Result<(), DataError> {
        write_log(&self.train.to_log(), path, format, monitor)
    }

    /// Writes the events to predict, one JSON object a line: `event_id`, `user_id`, `timestamp` and `history`, oldest item first. Items of a
    /// history that share a time form a list within the list. The items that are looked for are not there.
    ///
    /// It can be read as histories to recommend for ([`UserHistories`](crate::data::UserHistories)), and lists for these events can be
    /// judged ([`evaluate_lists`](crate::evaluate::evaluate_lists)).
    pub fn write_events(&self, path: &Path, monitor: &dyn Monitor) -> Result<(), DataError> {
        let ids = EventIds::of(self);
        let in_seconds = time::are_whole_seconds(self.holdout.events.iter().map(|event| event.time.0));
        let written = write_atomically(path, |writer| {
            for (place, event) in self.holdout.events.iter().enumerate() {
                if place.is_multiple_of(EVENTS_A_CHECK) {
                    check_cancelled(monitor).map_err(io::Error::other)?;
                }
                serde_json::to_writer(&mut *writer, &self.line(&ids, place, event, in_seconds)?)?;
                writer.write_all(b"\n")?;
            }
            Ok(())
        });
        check_cancelled(monitor)?;
        written.map_err(|source: io::Error| DataError::Write { path: path.to_owned(), source })
    }

    fn line(&self, ids: &EventIds, place: usize, event: &Event, in_seconds: bool) -> io::Result<Line<'_>> {
        let micros = event.time.0;
        let timestamp = match self.holdout.clock {
            Clock::RowOrder => Moment::Number(micros),
            Clock::Calendar if in_seconds => Moment::Number(micros / 1_000_000),
            Clock::Calendar => Moment::Text(time::to_iso(micros).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a time is outside the years 0 to 9999")
            })?),
        };
        let history = Baskets { history: self.holdout.history(event), catalog: self.train.catalog() };
        let user_id = self.holdout.users.get(event.user.get());
        Ok(Line { event_id: ids.id(place), user_id, timestamp, history })
    }
}

#[derive(Serialize)]
struct Line<'p> {
    event_id: String,
    user_id: Id<'p>,
    timestamp: Moment,
    history: Baskets<'p>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Moment {
    Number(i64),
    Text(String),
}

/// A history as a list of ids and baskets.
struct Baskets<'p> {
    history: History<'p>,
    catalog: &'p Ids,
}

impl Serialize for Baskets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = |at: usize| self.catalog.get(self.history.items()[at].get());
        let mut list = serializer.serialize_seq(None)?;
        let mut start = 0;
        for end in 1..=self.history.len() {
            if end < self.history.len() && self.history.is_with_previous(end) {
                continue;
            }
            if end - start == 1 {
                list.serialize_element(&id(start))?;
            } else {
                list.serialize_element(&(start..end).map(id).collect::<Vec<_>>())?;
            }
            start = end;
        }
        list.end()
    }
}
