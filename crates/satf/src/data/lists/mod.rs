//! Lists of recommendations that any tool made, in the caller's ids: for users, for users at a time, or for single events.

mod ranked_rows;

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use self::ranked_rows::RankedRows;
use super::arrow;
use super::columns::{Columns, OrderBy, Role, Wanted};
use super::error::{Fault, Position};
use super::event_time::{EVENTS, EventTime};
use super::field::Field;
use super::history_text::Cell;
use super::interner::{Digits, Interner};
use super::ledger::Rejection;
use super::log_builder::BATCHES;
use super::parquet::ListColumn;
use super::rows::{Next, Row, Rows};
use super::source::Source;
use super::time::TimeReader;
use super::{DataError, Format, IdType, ReadOptions};
use crate::interactions::{AsId, Id, Ids, Timestamp};
use crate::monitor::{Monitor, check_cancelled};

/// Rows between two questions whether to stop.
const ROWS_A_CHECK: u64 = 4096;

/// Ranked lists of items, best first, each for somebody: what [`evaluate_lists`](crate::evaluate::evaluate_lists) judges.
///
/// [`ListsBuilder`] makes them from memory and from Arrow record batches, [`Lists::read`] from a file.
#[derive(Clone, Debug)]
pub struct Lists {
    /// Users, and ids of events.
    pub(crate) users: Ids,
    pub(crate) items: Ids,
    /// Whom each list is for, and where its items stand.
    spans: Vec<List>,
    /// The items of all lists, one list after the other, as indices of `items`.
    ranked: Vec<u32>,
}

/// Whom a list is for. Numbers are indices of [`Lists::users`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whom {
    /// All events of a user.
    User(u32),
    /// The events of a user at a time.
    At(u32, Timestamp),
    /// The event of this id.
    EventId(u32),
    /// The event at this place of the holdout.
    Place(usize),
}

#[derive(Clone, Copy, Debug)]
struct List {
    whom: Whom,
    start: usize,
    end: usize,
}

impl Lists {
    /// Reads a file of lists: CSV or TSV with a header, JSON lines or Parquet; text may be packed with gzip or zstd.
    ///
    /// | columns | meaning |
    /// |---|---|
    /// | `user_id` | the list is for all events of the user |
    /// | `user_id`, `timestamp` | it is for the user's events at this time |
    /// | `event_id` | it is for this event, by the id that [`EventIds`](crate::prepare::EventIds) give; such ids may also stand under `user_id` |
    /// | `item_id`, `rank` | a row is an item of a list, the lowest rank first |
    /// | `item_id`, `score` | the same, the highest score first; of equal scores, the lower id |
    /// | `item_id` | the same in the order of the rows |
    /// | `items` | a row is a whole list, best first |
    ///
    /// Other names that are common for these columns are known too ([`ReadOptions`]), and others are not looked at. A user who has
    /// several lists, because ranks begin again or because there are several rows of whole lists, has one for each event, in the order of
    /// events.
    pub fn read(path: &Path, options: &ReadOptions, monitor: &dyn Monitor) -> Result<Self, DataError> {
        let mut builder = ListsBuilder::with_options(options.clone());
        builder.add_file(path, monitor)?;
        builder.finish()
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whom a list is for.
    pub(crate) fn whom(&self, list: usize) -> Whom {
        self.spans[list].whom
    }

    /// The items of a list, best first, as indices of [`Lists::items`].
    pub(crate) fn ranked(&self, list: usize) -> &[u32] {
        let List { start, end, .. } = self.spans[list];
        &self.ranked[start..end]
    }
}

/// Gathers [`Lists`] from memory, Arrow record batches and files.
///
/// ```
/// use satf::data::ListsBuilder;
///
/// let mut builder = ListsBuilder::new();
/// builder.push_for_user("ann", ["tent", "stove", "mug"])?;
/// builder.push_for_time("bob", "2024-05-17", ["mug", "tent"])?;
/// assert_eq!(builder.finish()?.len(), 2);
/// # Ok::<(), satf::data::DataError>(())
/// ```
pub struct ListsBuilder {
    options: ReadOptions,
    users: Interner,
    items: Interner,
    times: TimeReader,
    lists: Vec<List>,
    ranked: Vec<u32>,
    /// Rows of one item each.
    rows: RankedRows,
    /// What the rows came from, for messages.
    source: PathBuf,
    pushed: u64,
    batches: u32,
}

impl Default for ListsBuilder {
    fn default() -> Self {
        ListsBuilder::new()
    }
}

impl ListsBuilder {
    /// No list yet.
    pub fn new() -> Self {
        ListsBuilder::with_options(ReadOptions::default())
    }

    /// No list yet; how files and batches are read.
    pub fn with_options(options: ReadOptions) -> Self {
        ListsBuilder {
            users: Interner::new(Role::User, IdType::String),
            items: Interner::new(Role::Item, IdType::String),
            times: TimeReader::new(options.time_unit),
            options,
            lists: Vec::new(),
            ranked: Vec::new(),
            rows: RankedRows::default(),
            source: PathBuf::from(EVENTS),
            pushed: 0,
            batches: 0,
        }
    }

    /// Adds a list, best item first, for all events of a user.
    pub fn push_for_user(
        &mut self,
        user: impl AsId,
        items: impl IntoIterator<Item: AsId>,
    ) -> Result<(), DataError> {
        let user = self.user_number(user.as_id())?;
        self.push(Whom::User(user), items)
    }

    /// Adds a list, best item first, for the events of a user at a time.
    pub fn push_for_time<'t>(
        &mut self,
        user: impl AsId,
        time: impl Into<EventTime<'t>>,
        items: impl IntoIterator<Item: AsId>,
    ) -> Result<(), DataError> {
        let user = self.user_number(user.as_id())?;
        let position = Position::Row(self.pushed + 1);
        let time = self.times.read(&Field::from(time.into()), Some("time"), Path::new(EVENTS), position);
        let time = time.map_err(|rejection| told(rejection, Path::new(EVENTS), position))?;
        self.push(Whom::At(user, Timestamp(time)), items)
    }

    /// Adds a list, best item first, for the event at a place of the holdout, counted from 0.
    pub fn push_for_event(
        &mut self,
        place: usize,
        items: impl IntoIterator<Item: AsId>,
    ) -> Result<(), DataError> {
        self.push(Whom::Place(place), items)
    }

    fn push(&mut self, whom: Whom, items: impl IntoIterator<Item: AsId>) -> Result<(), DataError> {
        self.pushed += 1;
        let start = self.ranked.len();
        for item in items {
            let position = Position::Row(self.pushed);
            let number = number_of(&mut self.items, item.as_id().into(), "item");
            self.ranked.push(number.map_err(|rejection| told(rejection, Path::new(EVENTS), position))?);
        }
        self.lists.push(List { whom, start, end: self.ranked.len() });
        Ok(())
    }

    fn user_number(&mut self, user: Id<'_>) -> Result<u32, DataError> {
        let number = number_of(&mut self.users, user.into(), "user");
        number.map_err(|rejection| told(rejection, Path::new(EVENTS), Position::Row(self.pushed + 1)))
    }

    /// Adds the rows of a record batch of Arrow, whose columns are those of [`Lists::read`]. Batches of one table are added one after the
    /// other.
    pub fn add_batch(&mut self, batch: &RecordBatch) -> Result<(), DataError> {
        let path = Path::new(BATCHES);
        path.clone_into(&mut self.source);
        self.batches = self.batches.saturating_add(1);
        let (chosen, columns) = arrow::choose(path, batch.schema_ref(), &Wanted::lists(&self.options))?;
        let column = |at| arrow::column(path, batch, at);
        let users = column(chosen.user)?;
        let holds_lists = arrow::element(batch.column(chosen.item).data_type()).is_some();
        let lists = if holds_lists { ListColumn::new(batch.column(chosen.item)) } else { None };
        let items = lists.is_none().then(|| column(chosen.item)).transpose()?;
        let times = chosen.time.map(column).transpose()?;
        let orders = chosen.order.map(|(at, _)| column(at)).transpose()?;
        for at in 0..batch.num_rows() {
            let position = Position::BatchRow { batch: self.batches, row: at as u64 + 1 };
            let list = lists.as_ref().and_then(|lists| lists.at(at));
            let item = items.as_ref().map_or(arrow::NULL, |items| items.get(at));
            let cell = Cell(if let Field::Text(text) = item { text } else { &[] });
            let item = match (&list, item) {
                (Some(list), _) => Field::List(list),
                (None, Field::Text(_)) if chosen.is_whole => Field::List(&cell),
                (None, item) => item,
            };
            let time = times.as_ref().map(|times| times.get(at));
            let order = orders.as_ref().map(|orders| orders.get(at));
            let row = Row { position, user: users.get(at), item, time, order };
            self.take(&columns, &row, path).map_err(|rejection| told(rejection, path, position))?;
        }
        Ok(())
    }

    /// Adds the rows of a file, as [`Lists::read`] does.
    pub fn add_file(&mut self, path: &Path, monitor: &dyn Monitor) -> Result<(), DataError> {
        let metadata = fs::metadata(path).map_err(|source| DataError::open(path, source))?;
        if metadata.is_dir() {
            return Err(DataError::Directory { path: path.to_owned() });
        }
        monitor.begin("reading lists", metadata.len());
        path.clone_into(&mut self.source);
        self.times.begin_file();
        let source = Source::open(path, monitor)?;
        let (mut rows, format) = Rows::open(source, Wanted::lists(&self.options), monitor)?;
        if !matches!(format, Format::Csv | Format::Tsv | Format::JsonLines | Format::Parquet) {
            let found = format!("it looks like {format}, and lists are CSV, TSV, JSON lines or Parquet");
            return Err(DataError::UnknownFormat { path: path.to_owned(), found: found.into() });
        }
        let mut count = 0u64;
        loop {
            if count.is_multiple_of(ROWS_A_CHECK) {
                check_cancelled(monitor)?;
            }
            let next = rows.next(|columns, row| {
                self.take(columns, &row, path).map_err(|rejection| told(rejection, path, row.position))
            })?;
            match next {
                Next::Row(taken) => taken?,
                Next::Bad(position, fault) => return Err(fault.at(path, position)),
                Next::End if count == 0 => return Err(rows.no_rows()),
                Next::End => return Ok(()),
            }
            count += 1;
        }
    }

    fn take(&mut self, columns: &Columns, row: &Row<'_>, path: &Path) -> Result<(), Rejection> {
        let user = number_of(&mut self.users, row.user, &columns.names.user)?;
        let whom = match row.time {
            _ if columns.is_event => Whom::EventId(user),
            Some(time) => {
                let name = columns.names.time.as_deref();
                Whom::At(user, Timestamp(self.times.read(&time, name, path, row.position)?))
            }
            None => Whom::User(user),
        };
        if columns.is_whole {
            return self.take_list(columns, row, whom);
        }
        let item = number_of(&mut self.items, row.item, &columns.names.item)?;
        let order = row.order.map(|order| number_in(&order, columns)).transpose()?;
        self.rows.push(whom, item, order.unwrap_or(0.0), columns.order);
        Ok(())
    }

    fn take_list(&mut self, columns: &Columns, row: &Row<'_>, whom: Whom) -> Result<(), Rejection> {
        let start = self.ranked.len();
        let (items, ranked, name) = (&mut self.items, &mut self.ranked, &columns.names.item);
        match row.item {
            Field::List(list) => {
                let mut refused = None;
                list.each(&mut |id| match number_of(items, id.into(), name) {
                    Ok(number) => ranked.push(number),
                    Err(rejection) => refused = refused.take().or(Some(rejection)),
                })
                .map_err(|mut fault| {
                    fault.column.get_or_insert_with(|| name.clone());
                    fault
                })?;
                refused.map_or(Ok(()), Err)?;
            }
            // Nothing recommended is a list without items.
            Field::Other("null") => {}
            other => return Err(Box::new(fault(&other, "a list of ids, such as [\"tent\", 7]", name)).into()),
        }
        self.lists.push(List { whom, start, end: self.ranked.len() });
        Ok(())
    }

    /// The lists.
    pub fn finish(mut self) -> Result<Lists, DataError> {
        let (users, user_ranks) = self.users.rank();
        let (items, item_ranks) = self.items.rank();
        for item in &mut self.ranked {
            *item = item_ranks[*item as usize];
        }
        let ranked_whom = |whom| match whom {
            Whom::User(user) => Whom::User(user_ranks[user as usize]),
            Whom::At(user, time) => Whom::At(user_ranks[user as usize], time),
            Whom::EventId(event) => Whom::EventId(user_ranks[event as usize]),
            Whom::Place(place) => Whom::Place(place),
        };
        for list in &mut self.lists {
            list.whom = ranked_whom(list.whom);
        }
        let mut lists = Lists { users, items, spans: self.lists, ranked: self.ranked };
        self.rows.into_lists(ranked_whom, &item_ranks, &self.source, &mut lists)?;
        Ok(lists)
    }
}

/// The number of an id, which is added if it is new.
fn number_of(ids: &mut Interner, field: Field<'_>, column: &str) -> Result<u32, Rejection> {
    let mut digits = Digits::default();
    let located = ids.locate(field, &mut digits, column)?;
    ids.settle(located)
}

/// A rank or a score.
fn number_in(field: &Field<'_>, columns: &Columns) -> Result<f64, Rejection> {
    let number = match field {
        Field::Integer(number) => Some(*number as f64),
        Field::Unsigned(number) => Some(*number as f64),
        Field::Float(number) => Some(*number),
        Field::Plain(text) | Field::Text(text) => {
            std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok())
        }
        _ => None,
    };
    let name = columns.names.order.as_deref().unwrap_or_default();
    let expected =
        if columns.order == Some(OrderBy::Rank) { "a rank (a number)" } else { "a score (a number)" };
    number
        .filter(|number: &f64| !number.is_nan())
        .ok_or_else(|| Box::new(fault(field, expected, name)).into())
}

fn fault(field: &Field<'_>, expected: &str, column: &str) -> Fault {
    Fault { column: Some(column.into()), found: field.shown().into(), expected: expected.into(), hint: None }
}

fn told(rejection: Rejection, path: &Path, position: Position) -> DataError {
    match rejection {
        Rejection::Row(fault) => fault.at(path, position),
        Rejection::Log(error) => error,
    }
}
