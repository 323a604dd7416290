//! Histories in Parquet files, a batch of rows at a time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, LargeListArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field as ArrowField};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::rows::Grouping;
use super::{UserHistory, is_history_name};
use crate::data::columns::{self, Role};
use crate::data::error::Fault;
use crate::data::log_builder::Field;
use crate::data::parquet::{Column, check_type, guarded};
use crate::data::{DataError, ReadOptions};
use crate::interactions::{Id, Ids};
use crate::monitor::Monitor;

const ROWS_A_BATCH: usize = 4096;

pub(super) struct ParquetHistories<'a> {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    user: usize,
    content: usize,
    time: Option<usize>,
    is_whole: bool,
    catalog: &'a Ids,
    grouping: Grouping,
    batch: Option<Batch>,
    row: u64,
    num_rows: u64,
    size: u64,
    monitor: &'a dyn Monitor,
}

/// A batch of rows and how far it is read.
struct Batch {
    users: Column,
    times: Option<Column>,
    content: Content,
    len: usize,
    next: usize,
}

enum Content {
    Items(Column),
    Lists(LargeListArray),
}

impl<'a> ParquetHistories<'a> {
    pub(super) fn open(
        path: &Path,
        file: File,
        catalog: &'a Ids,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        let size = file.metadata().map_err(|source| DataError::open(path, source))?.len();
        let builder = guarded(path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
        let mut names: Vec<String> =
            builder.schema().fields().iter().map(|field| field.name().clone()).collect();
        let whole = names.iter().position(|name| is_history_name(name));
        if let Some(at) = whole {
            "item_id".clone_into(&mut names[at]);
        }
        let options = ReadOptions { order_is_time: true, ..ReadOptions::default() };
        let chosen = columns::choose(path, &names, &options)?;
        let content = whole.unwrap_or(chosen.item);
        let kind = |at: usize| builder.schema().field(at).data_type();
        check_type(path, Role::User, &names[chosen.user], kind(chosen.user))?;
        match whole {
            Some(at) if !matches!(kind(at), DataType::List(_) | DataType::LargeList(_)) => {
                return Err(DataError::ColumnType {
                    path: path.to_owned(),
                    column: builder.schema().field(at).name().as_str().into(),
                    found: kind(at).to_string().into(),
                    expected: "lists of integers or strings",
                });
            }
            Some(_) => {}
            None => check_type(path, Role::Item, &names[content], kind(content))?,
        }
        let num_rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0).max(1);
        let time = columns::common(&names, Role::Time).filter(|_| whole.is_none());
        let mut roots: Vec<usize> = [chosen.user, content].into_iter().chain(time).collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        roots.sort_unstable();
        let place = |root: usize| roots.iter().position(|&other| other == root).unwrap_or_default();
        let reader = guarded(path, || builder.with_projection(mask).with_batch_size(ROWS_A_BATCH).build())?;
        Ok(ParquetHistories {
            path: path.to_owned(),
            reader,
            user: place(chosen.user),
            content: place(content),
            time: time.map(place),
            is_whole: whole.is_some(),
            catalog,
            grouping: Grouping::default(),
            batch: None,
            row: 0,
            num_rows,
            size,
            monitor,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<UserHistory>, DataError> {
        loop {
            let Some(batch) = &mut self.batch else {
                let Some(rows) = guarded(&self.path, || self.reader.next().transpose())? else {
                    return Ok(self.grouping.finish());
                };
                self.batch = Some(self.open_batch(&rows)?);
                let share = u128::from(self.size) * rows.num_rows() as u128 / u128::from(self.num_rows);
                self.monitor.advance(share as u64);
                continue;
            };
            if batch.next == batch.len {
                self.batch = None;
                continue;
            }
            let at = batch.next;
            batch.next += 1;
            self.row += 1;
            let bad =
                |found: String, expected: &str| Fault::of_line(found, expected).at(&self.path, self.row);
            let user = batch.users.get(at);
            let user = id_of(&user).ok_or_else(|| bad(user.shown(), "a user id"))?;
            match &batch.content {
                Content::Items(items) => {
                    let item = items.get(at);
                    let item = id_of(&item).ok_or_else(|| bad(item.shown(), "an item id"))?;
                    let time = batch.times.as_ref().map(|times| times.get(at).shown());
                    let pushed = self.grouping.push(user, item, time.as_deref(), self.catalog);
                    if let Some(history) = pushed.map_err(|fault| fault.at(&self.path, self.row))? {
                        return Ok(Some(history));
                    }
                }
                Content::Lists(lists) => {
                    let mut history = UserHistory::new(user.to_owned());
                    if lists.is_valid(at) {
                        let items = lists.value(at);
                        for item in items.as_string::<i64>().iter().flatten() {
                            history.push(self.catalog, Id::Text(item), false);
                        }
                    }
                    return Ok(Some(history));
                }
            }
        }
    }

    fn open_batch(&self, rows: &RecordBatch) -> Result<Batch, DataError> {
        let column = |at: usize| guarded(&self.path, || Column::new(rows.column(at)));
        let content = if self.is_whole {
            let texts = DataType::LargeList(Arc::new(ArrowField::new("item", DataType::LargeUtf8, true)));
            let lists = guarded(&self.path, || cast(rows.column(self.content), &texts))?;
            Content::Lists(lists.as_list::<i64>().clone())
        } else {
            Content::Items(column(self.content)?)
        };
        let times = self.time.map(column).transpose()?;
        Ok(Batch { users: column(self.user)?, times, content, len: rows.num_rows(), next: 0 })
    }
}

fn id_of<'f>(field: &Field<'f>) -> Option<Id<'f>> {
    match *field {
        Field::Integer(id) => Some(Id::Integer(id)),
        Field::Text(text) => std::str::from_utf8(text).ok().map(Id::Text),
        _ => None,
    }
}
