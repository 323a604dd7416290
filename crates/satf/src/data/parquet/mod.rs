//! Parquet files: two or three columns of them, a batch of rows at a time.

mod lists;

use std::fmt::Display;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryViewArray, Float64Array, Int64Array, StringViewArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, FieldRef, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::FileMetaData;

use self::lists::{ListColumn, is_list};
use super::DataError;
use super::columns::{self, Chosen, Columns, Role, Wanted};
use super::history_text::Cell;
use super::log_builder::Field;
use super::rows::{Next, Row};
use super::source::{MAGIC_LENGTH, Source};
use super::write::{CLOCK_KEY, CLOCK_ROW_ORDER, VERSION, VERSION_KEY};
use crate::interactions::Clock;
use crate::monitor::Monitor;

const ROWS_A_BATCH: usize = 16_384;

/// Rows of a batch where a row holds a whole history: a batch must stay small however long histories are.
const MOST_LISTS_A_BATCH: u64 = 64;
const ITEMS_A_BATCH: u64 = 65_536;

/// The rows of a Parquet file.
pub(super) struct ParquetRows<'a> {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    columns: Columns,
    /// Where the columns are in a batch.
    places: Chosen,
    first_number: i64,
    batch: Option<Batch>,
    row: u64,
    num_rows: u64,
    size: u64,
    told: u64,
    monitor: &'a dyn Monitor,
}

/// A batch of rows and how far it is read.
struct Batch {
    users: Column,
    items: Items,
    times: Option<Column>,
    len: usize,
    next: usize,
}

enum Items {
    Ids(Column),
    Lists(ListColumn),
    /// Histories written out, as in a CSV file.
    Cells(Column),
}

impl<'a> ParquetRows<'a> {
    pub(super) fn open(
        source: Source<'_>,
        wanted: &Wanted,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        let path = source.path().to_owned();
        let (file, size) = open_file(source)?;
        let metadata = guarded(&path, || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?;
        let fields = metadata.schema().fields();
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let chosen = columns::choose(&path, &names, wanted)?;
        for (role, at) in chosen.by_role() {
            check_type(&path, role, &names[at], fields[at].data_type())?;
        }
        let mut columns = Columns::named(chosen, &names);
        let file_metadata = metadata.metadata().file_metadata();
        if chosen.time.is_some() {
            columns.clock = prepared_clock(&path, file_metadata)?;
        }
        let num_rows = u64::try_from(file_metadata.num_rows()).unwrap_or(0).max(1);
        let mut taken: Vec<usize> = chosen.by_role().map(|(_, at)| at).collect();
        taken.sort_unstable();
        taken.dedup();
        let place = |at: usize| taken.partition_point(|&other| other < at);
        let places = Chosen {
            user: place(chosen.user),
            item: place(chosen.item),
            time: chosen.time.map(place),
            is_whole: chosen.is_whole,
        };
        let mask = ProjectionMask::roots(metadata.parquet_schema(), taken.iter().copied());
        let rows_a_batch = if chosen.is_whole { lists_a_batch(&metadata, chosen.item) } else { ROWS_A_BATCH };
        let metadata = with_views(metadata, &taken);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
        let reader = guarded(&path, || builder.with_projection(mask).with_batch_size(rows_a_batch).build())?;
        Ok(ParquetRows {
            path,
            reader,
            columns,
            places,
            first_number: wanted.first_number,
            batch: None,
            row: 0,
            num_rows,
            size,
            told: MAGIC_LENGTH,
            monitor,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    #[inline]
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(&Columns, Row<'_>) -> T,
    ) -> Result<Next<T>, DataError> {
        while self.batch.as_ref().is_none_or(|batch| batch.next == batch.len) {
            if !self.next_batch()? {
                return Ok(Next::End);
            }
        }
        let Some(batch) = &mut self.batch else { return Ok(Next::End) };
        let at = batch.next;
        batch.next += 1;
        self.row += 1;
        let time = batch.times.as_ref().map(|times| match times.get(at) {
            Field::Integer(number) if self.columns.clock == Clock::RowOrder => {
                Field::Micros(number.saturating_add(self.first_number))
            }
            time => time,
        });
        let row = |item| Row { line: self.row, user: batch.users.get(at), item, time };
        Ok(Next::Row(match &batch.items {
            Items::Ids(items) => take(&self.columns, row(items.get(at))),
            Items::Lists(lists) => match lists.at(at) {
                Some(list) => take(&self.columns, row(Field::List(&list))),
                None => take(&self.columns, row(NULL)),
            },
            Items::Cells(cells) => match cells.get(at) {
                Field::Text(text) => take(&self.columns, row(Field::List(&Cell(text)))),
                other => take(&self.columns, row(other)),
            },
        }))
    }

    /// Reads the next batch of rows; whether there is one.
    fn next_batch(&mut self) -> Result<bool, DataError> {
        // The old batch goes before the new one comes.
        self.batch = None;
        let done =
            u128::from(self.size) * u128::from(self.row.min(self.num_rows)) / u128::from(self.num_rows);
        let Some(rows) = guarded(&self.path, || self.reader.next().transpose())? else {
            self.monitor.advance(self.size.saturating_sub(self.told));
            self.told = self.told.max(self.size);
            return Ok(false);
        };
        self.monitor.advance((done as u64).saturating_sub(self.told));
        self.told = self.told.max(done as u64);
        let column = |at: usize| guarded(&self.path, || Column::new(rows.column(at)));
        let items = match rows.column(self.places.item) {
            items if !self.places.is_whole => Items::Ids(guarded(&self.path, || Column::new(items))?),
            lists if is_list(lists.data_type()) => {
                Items::Lists(guarded(&self.path, || ListColumn::new(lists))?)
            }
            cells => Items::Cells(guarded(&self.path, || Column::new(cells))?),
        };
        let times = self.places.time.map(column).transpose()?;
        self.batch =
            Some(Batch { users: column(self.places.user)?, items, times, len: rows.num_rows(), next: 0 });
        Ok(true)
    }
}

/// The file itself, which is read from its end and in no order, and its size.
fn open_file(source: Source<'_>) -> Result<(File, u64), DataError> {
    let path = source.path().to_owned();
    if !source.is_parquet() {
        return Err(broken(&path, "it does not begin with PAR1"));
    }
    if let Some(compression) = source.compression() {
        return Err(broken(&path, format!("it is packed with {compression}; unpack it first")));
    }
    drop(source);
    // A pipe gives its bytes once; opened again it would wait for ever, and standard input has no name at all.
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => {
            let file = File::open(&path).map_err(|source| DataError::open(&path, source))?;
            Ok((file, metadata.len()))
        }
        _ => Err(DataError::NotSeekable { path }),
    }
}

/// How many rows make a batch of bounded size where a row holds a list.
fn lists_a_batch(metadata: &ArrowReaderMetadata, list: usize) -> usize {
    let schema = metadata.parquet_schema();
    let leaf = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == list).unwrap_or(0);
    let longest = metadata.metadata().row_groups().iter().map(|group| {
        let (rows, items) = (group.num_rows().max(1), group.column(leaf).num_values());
        u64::try_from(items / rows).unwrap_or(0)
    });
    let average = longest.max().unwrap_or(0).max(1);
    (ITEMS_A_BATCH / average).clamp(1, MOST_LISTS_A_BATCH) as usize
}

/// The same file with the strings of these columns read as views: every distinct string of a dictionary is held once, however often
/// it occurs.
fn with_views(metadata: ArrowReaderMetadata, taken: &[usize]) -> ArrowReaderMetadata {
    let fields = metadata.schema().fields().iter().enumerate().map(|(at, field)| {
        if taken.contains(&at) {
            Arc::new(field.as_ref().clone().with_data_type(as_views(field.data_type())))
        } else {
            Arc::clone(field)
        }
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), metadata.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    // A file whose types cannot be told so is read as it says itself.
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).unwrap_or(metadata)
}

fn as_views(data_type: &DataType) -> DataType {
    let inner =
        |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(as_views(field.data_type())));
    match data_type {
        DataType::Dictionary(_, values) => as_views(values),
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(field) => DataType::List(inner(field)),
        DataType::LargeList(field) => DataType::LargeList(inner(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(inner(field), *size),
        other => other.clone(),
    }
}

/// Runs a step of the decoder, which answers some damaged files with a panic where it should with an error.
fn guarded<T, E: Display>(path: &Path, decode: impl FnOnce() -> Result<T, E>) -> Result<T, DataError> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(broken(path, error.to_string())),
        Err(_) => Err(broken(path, "it is damaged")),
    }
}

fn broken(path: &Path, reason: impl Into<Box<str>>) -> DataError {
    DataError::Parquet { path: path.to_owned(), reason: reason.into() }
}

/// What the times mean: a prepared log says so, any other file has times of the calendar.
fn prepared_clock(path: &Path, metadata: &FileMetaData) -> Result<Clock, DataError> {
    let pairs = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let value =
        |wanted: &str| pairs.iter().find(|pair| pair.key == wanted).and_then(|pair| pair.value.as_deref());
    if let Some(version) = value(VERSION_KEY).filter(|&version| version != VERSION) {
        return Err(DataError::Version { path: path.to_owned(), version: version.into() });
    }
    Ok(if value(CLOCK_KEY) == Some(CLOCK_ROW_ORDER) { Clock::RowOrder } else { Clock::Calendar })
}

impl Chosen {
    fn by_role(self) -> impl Iterator<Item = (Role, usize)> {
        let item = if self.is_whole { Role::History } else { Role::Item };
        [(Role::User, Some(self.user)), (item, Some(self.item)), (Role::Time, self.time)]
            .into_iter()
            .filter_map(|(role, at)| at.map(|at| (role, at)))
    }
}

fn check_type(path: &Path, role: Role, name: &str, data_type: &DataType) -> Result<(), DataError> {
    let plain = match data_type {
        DataType::Dictionary(_, values) => values,
        plain => plain,
    };
    let is_id = is_id_type(data_type);
    let is_time = is_id
        || plain.is_floating()
        || matches!(plain, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let (is_fit, expected) = match role {
        Role::Time => (is_time, "numbers, strings, dates or timestamps"),
        Role::User | Role::Item => (is_id, "integers or strings"),
        Role::History => (
            is_history_type(data_type),
            "lists of integers or strings, or lists of such lists (items taken together)",
        ),
    };
    if is_fit {
        return Ok(());
    }
    Err(DataError::ColumnType {
        path: path.to_owned(),
        column: name.into(),
        found: data_type.to_string().into(),
        expected,
    })
}

fn is_id_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_id_type(values),
        plain => plain.is_integer() || plain.is_string() || is_binary(plain) || plain.is_null(),
    }
}

/// Whether a column can hold histories: lists of ids or of baskets, or text.
fn is_history_type(data_type: &DataType) -> bool {
    match lists::element(data_type) {
        Some(element) => is_id_type(lists::element(element).unwrap_or(element)),
        None => is_id_type(data_type) && !data_type.is_integer(),
    }
}

fn integers(array: &ArrayRef) -> Result<Int64Array, arrow_schema::ArrowError> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

const NULL: Field<'static> = Field::Other("null");

/// A column of a batch in one of few shapes.
enum Column {
    Integers(Int64Array),
    Unsigned(UInt64Array),
    Floats(Float64Array),
    Texts(StringViewArray),
    /// Strings of a file that does not say that they are: checked like those of a text file.
    Bytes(BinaryViewArray),
    /// Times, and how many microseconds one step is.
    Times(Int64Array, i64),
    /// Times in nanoseconds.
    Nanoseconds(Int64Array),
    Nulls,
}

/// A column of timestamps or dates in microseconds since 1970, whatever their unit and zone; nulls stay none. `None` for a column
/// of anything else.
pub(crate) fn moments(array: &ArrayRef) -> Result<Option<Vec<Option<i64>>>, arrow_schema::ArrowError> {
    let column = Column::new(array)?;
    if !matches!(column, Column::Times(..) | Column::Nanoseconds(_)) {
        return Ok(None);
    }
    let moment = |row| match column.get(row) {
        Field::Micros(micros) => Some(micros),
        _ => None,
    };
    Ok(Some((0..array.len()).map(moment).collect()))
}

impl Column {
    fn new(array: &ArrayRef) -> Result<Self, arrow_schema::ArrowError> {
        const DAY: i64 = 86_400_000_000;
        Ok(match array.data_type() {
            DataType::Dictionary(_, values) => return Column::new(&cast(array, values)?),
            DataType::UInt64 => Column::Unsigned(array.as_primitive::<UInt64Type>().clone()),
            DataType::Date32 => Column::Times(integers(&cast(array, &DataType::Int32)?)?, DAY),
            DataType::Timestamp(TimeUnit::Second, _) => Column::Times(integers(array)?, 1_000_000),
            DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => {
                Column::Times(integers(array)?, 1_000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => Column::Times(integers(array)?, 1),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Column::Nanoseconds(integers(array)?),
            DataType::Null => Column::Nulls,
            kind if kind.is_string() => {
                Column::Texts(cast(array, &DataType::Utf8View)?.as_string_view().clone())
            }
            kind if is_binary(kind) => {
                Column::Bytes(cast(array, &DataType::BinaryView)?.as_binary_view().clone())
            }
            kind if kind.is_floating() => {
                Column::Floats(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
            }
            _ => Column::Integers(integers(array)?),
        })
    }

    fn get(&self, row: usize) -> Field<'_> {
        match self {
            Column::Integers(values) if values.is_valid(row) => Field::Integer(values.value(row)),
            Column::Unsigned(values) if values.is_valid(row) => {
                let value = values.value(row);
                i64::try_from(value).map_or(Field::Unsigned(value), Field::Integer)
            }
            Column::Floats(values) if values.is_valid(row) => Field::Float(values.value(row)),
            Column::Texts(values) if values.is_valid(row) => Field::Text(values.value(row).as_bytes()),
            Column::Bytes(values) if values.is_valid(row) => Field::Text(values.value(row)),
            // What does not fit is out of the range of years in any case.
            Column::Times(values, step) if values.is_valid(row) => {
                Field::Micros(values.value(row).saturating_mul(*step))
            }
            Column::Nanoseconds(values) if values.is_valid(row) => {
                Field::Micros(values.value(row).div_euclid(1_000))
            }
            _ => NULL,
        }
    }
}
