//! Histories as rows of text: one a row, or one item a row.

use hashbrown::{DefaultHashBuilder, HashSet};
use std::hash::BuildHasher;

use super::json::JsonEntry;
use super::{UserHistory, is_history_name, plain_id};
use crate::data::columns::{self, Role};
use crate::data::error::{Fault, shown};
use crate::data::format::guess_delimiter;
use crate::data::records::{Record, Records, Splitting};
use crate::data::source::Source;
use crate::data::{DataError, ReadOptions};
use crate::interactions::{Id, Ids};

/// Which columns hold what.
#[derive(Clone, Copy)]
struct Layout {
    user: usize,
    /// The history or the item.
    content: usize,
    time: Option<usize>,
    is_whole: bool,
    count: usize,
}

pub(super) struct RowHistories<'a> {
    source: Source<'a>,
    records: Records,
    layout: Option<Layout>,
    catalog: &'a Ids,
    grouping: Grouping,
}

impl<'a> RowHistories<'a> {
    pub(super) fn open(mut source: Source<'a>, catalog: &'a Ids) -> Result<Self, DataError> {
        let delimiter = guess_delimiter(source.peek_line()?).unwrap_or(b',');
        let records = Records::new(Splitting::Delimiter(delimiter));
        Ok(RowHistories { source, records, layout: None, catalog, grouping: Grouping::default() })
    }

    pub(super) fn next(&mut self) -> Result<Option<UserHistory>, DataError> {
        loop {
            let path = self.source.path().to_owned();
            let Some((line, record)) = self.records.next(&mut self.source)? else {
                return Ok(self.grouping.finish());
            };
            let at = |fault: Fault| fault.at(&path, line);
            let record = record.map_err(|fault| at(*fault))?;
            let Some(layout) = self.layout else {
                let (layout, is_header) = lay_out(record, &path)?;
                self.layout = Some(layout);
                if is_header {
                    continue;
                }
                if let Some(history) = take(record, layout, self.catalog, &mut self.grouping).map_err(at)? {
                    return Ok(Some(history));
                }
                continue;
            };
            if let Some(history) = take(record, layout, self.catalog, &mut self.grouping).map_err(at)? {
                return Ok(Some(history));
            }
        }
    }
}

/// Finds the columns from the first record, and whether that is a header.
fn lay_out(record: Record<'_>, path: &std::path::Path) -> Result<(Layout, bool), DataError> {
    let names: Vec<String> =
        (0..record.len()).map(|at| String::from_utf8_lossy(record.field(at)).into_owned()).collect();
    let count = names.len();
    let options = ReadOptions { order_is_time: true, ..ReadOptions::default() };
    if let Some(content) = names.iter().position(|name| is_history_name(name)) {
        // The item's column is looked for among the names and is not there: the history stands in for it.
        let mut renamed = names.clone();
        "item_id".clone_into(&mut renamed[content]);
        let user = columns::choose(path, &renamed, &options)?.user;
        return Ok((Layout { user, content, time: None, is_whole: true, count }, true));
    }
    let is_header = names.iter().any(|name| columns::is_common_name(name));
    let chosen = if is_header {
        columns::choose(path, &names, &options)?
    } else {
        columns::choose_unnamed(path, count, &options)?
    };
    let time = if is_header { columns::common(&names, Role::Time) } else { None };
    Ok((Layout { user: chosen.user, content: chosen.item, time, is_whole: false, count }, is_header))
}

fn take(
    record: Record<'_>,
    layout: Layout,
    catalog: &Ids,
    grouping: &mut Grouping,
) -> Result<Option<UserHistory>, Fault> {
    if record.len() != layout.count {
        let found = format!("{} in {}", record.len(), shown(record.bytes()));
        return Err(Fault::of_line(found, format!("{} columns", layout.count)));
    }
    let user = text(record, layout.user)?;
    let content = text(record, layout.content)?;
    if user.is_empty() {
        return Err(Fault::of_line(shown(record.bytes()), "a user id"));
    }
    if layout.is_whole {
        let mut history = UserHistory::new(plain_id(user).to_owned());
        push_list(content, catalog, &mut history)?;
        return Ok(Some(history));
    }
    let time = layout.time.map(|at| text(record, at)).transpose()?;
    grouping.push(plain_id(user), plain_id(content), time, catalog)
}

fn text(record: Record<'_>, at: usize) -> Result<&str, Fault> {
    let bytes = record.field(at).trim_ascii();
    std::str::from_utf8(bytes).map_err(|_| Fault::of_line(shown(bytes), "text in UTF-8"))
}

/// Items between commas, or a JSON list.
fn push_list(list: &str, catalog: &Ids, history: &mut UserHistory) -> Result<(), Fault> {
    if list.starts_with('[') {
        let items: Vec<JsonEntry<'_>> = serde_json::from_str(list).map_err(|error| {
            Fault::of_line(
                format!("{} ({error})", shown(list.as_bytes())),
                "a list of ids, such as [\"tent\", 7]",
            )
        })?;
        for item in &items {
            item.push_to(history, catalog);
        }
    } else {
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            history.push(catalog, plain_id(item), false);
        }
    }
    Ok(())
}

/// How many users are remembered to notice those that come back: enough for any file that is out of order.
const USERS_REMEMBERED: usize = 4 << 20;

/// Gathers rows that stand together into histories.
#[derive(Default)]
pub(super) struct Grouping {
    current: Option<UserHistory>,
    last_time: Option<String>,
    past_users: HashSet<u64>,
    hasher: DefaultHashBuilder,
}

impl Grouping {
    /// Takes one row; the history before it, if it belongs to another user.
    pub(super) fn push(
        &mut self,
        user: Id<'_>,
        item: Id<'_>,
        time: Option<&str>,
        catalog: &Ids,
    ) -> Result<Option<UserHistory>, Fault> {
        let is_same = self.current.as_ref().is_some_and(|current| current.user.as_id() == user);
        let mut finished = None;
        if !is_same {
            finished = self.current.replace(UserHistory::new(user.to_owned()));
            self.last_time = None;
            let hash = self.hasher.hash_one(user);
            if self.past_users.contains(&hash) {
                let found =
                    format!("user {} again, after rows of others", shown(user.to_string().as_bytes()));
                return Err(Fault::of_line(
                    found,
                    "all rows of a user together: sort the file by user and time",
                ));
            }
            if self.past_users.len() < USERS_REMEMBERED {
                self.past_users.insert(hash);
            }
        }
        let is_with_previous = time.is_some() && time == self.last_time.as_deref();
        if let Some(time) = time {
            if self.last_time.as_deref().is_some_and(|last| is_earlier(time, last)) {
                let last = self.last_time.take().unwrap_or_default();
                let found = format!("{} after {}", shown(time.as_bytes()), shown(last.as_bytes()));
                return Err(Fault::of_line(found, "a user's rows in the order of time, oldest first"));
            }
            self.last_time = Some(time.to_owned());
        }
        if let Some(current) = &mut self.current {
            current.push(catalog, item, is_with_previous);
        }
        Ok(finished)
    }

    /// The last history.
    pub(super) fn finish(&mut self) -> Option<UserHistory> {
        self.current.take()
    }
}

/// Whether one time is before another: by number, or by letter where they are none (ISO dates sort so).
fn is_earlier(time: &str, other: &str) -> bool {
    match (time.parse::<f64>(), other.parse::<f64>()) {
        (Ok(time), Ok(other)) => time < other,
        _ => time < other,
    }
}
