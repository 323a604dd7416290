//! Parquet files: three columns of them, a batch of rows at a time.

use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, LargeBinaryArray, LargeStringArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::FileMetaData;

use super::DataError;
use super::columns::{self, Chosen, ColumnNames, Role};
use super::error::shown;
use super::intake::Intake;
use super::log_builder::Field;
use super::source::{MAGIC_LENGTH, Source};
use super::write::{CLOCK_KEY, CLOCK_ROW_ORDER, VERSION, VERSION_KEY};
use crate::interactions::Clock;

const ROWS_A_BATCH: usize = 16_384;

/// Reads all rows of a Parquet file; its size in bytes.
pub(super) fn read(source: Source<'_>, intake: &mut Intake<'_>) -> Result<u64, DataError> {
    let path = source.path().to_owned();
    if !source.is_parquet() {
        return Err(broken(&path, "it does not begin with PAR1"));
    }
    if let Some(compression) = source.compression() {
        return Err(broken(&path, format!("it is packed with {compression}; unpack it first")));
    }
    drop(source);
    let file = File::open(&path).map_err(|source| DataError::open(&path, source))?;
    let size = file.metadata().map_err(|source| DataError::open(&path, source))?.len();
    let builder = guarded(&path, || ParquetRecordBatchReaderBuilder::try_new(file))?;

    let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let chosen = columns::choose(&path, &names, intake.options)?;
    for (role, at) in chosen.by_role() {
        check_type(&path, role, &names[at], builder.schema().field(at).data_type())?;
    }
    let metadata = builder.metadata().file_metadata();
    let clock = if chosen.time.is_some() { prepared_clock(&path, metadata)? } else { Clock::RowOrder };
    let name = |at: usize| shown(names[at].as_bytes()).into();
    let column_names =
        ColumnNames { user: name(chosen.user), item: name(chosen.item), time: chosen.time.map(name) };
    intake.set_columns(column_names, clock)?;
    let first_number = intake.next_row_number();

    let mut taken: Vec<usize> = chosen.by_role().map(|(_, at)| at).collect();
    taken.sort_unstable();
    taken.dedup();
    let place = |at: usize| taken.partition_point(|&other| other < at);
    let num_rows = u64::try_from(metadata.num_rows()).unwrap_or(0).max(1);
    let mask = ProjectionMask::roots(builder.parquet_schema(), taken.iter().copied());
    let mut reader = guarded(&path, || builder.with_projection(mask).with_batch_size(ROWS_A_BATCH).build())?;

    let mut row = 0u64;
    let mut told = MAGIC_LENGTH;
    while let Some(batch) = guarded(&path, || reader.next().transpose())? {
        let column = |at: usize| guarded(&path, || Column::new(batch.column(place(at))));
        let users = column(chosen.user)?;
        let items = column(chosen.item)?;
        let times = chosen.time.map(column).transpose()?;
        for at in 0..batch.num_rows() {
            row += 1;
            let time = times.as_ref().map(|times| match times.get(at) {
                Field::Integer(number) if clock == Clock::RowOrder => {
                    Field::Micros(number.saturating_add(first_number))
                }
                time => time,
            });
            intake.row(row, users.get(at), items.get(at), time)?;
        }
        let done = (u128::from(size) * u128::from(row.min(num_rows)) / u128::from(num_rows)) as u64;
        intake.monitor.advance(done.saturating_sub(told));
        told = told.max(done);
    }
    intake.monitor.advance(size.saturating_sub(told));
    Ok(size)
}

/// Runs a step of the decoder, which answers some damaged files with a panic where it should with an error.
pub(super) fn guarded<T, E: Display>(
    path: &Path,
    decode: impl FnOnce() -> Result<T, E>,
) -> Result<T, DataError> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(broken(path, error.to_string())),
        Err(_) => Err(broken(path, "it is damaged")),
    }
}

pub(super) fn broken(path: &Path, reason: impl Into<Box<str>>) -> DataError {
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
        [(Role::User, Some(self.user)), (Role::Item, Some(self.item)), (Role::Time, self.time)]
            .into_iter()
            .filter_map(|(role, at)| at.map(|at| (role, at)))
    }
}

pub(super) fn check_type(path: &Path, role: Role, name: &str, data_type: &DataType) -> Result<(), DataError> {
    let plain = match data_type {
        DataType::Dictionary(_, values) => values,
        plain => plain,
    };
    let is_id = plain.is_integer() || plain.is_string() || is_binary(plain) || plain.is_null();
    let is_time = is_id
        || plain.is_floating()
        || matches!(plain, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
    let (is_fit, expected) = match role {
        Role::Time => (is_time, "numbers, strings, dates or timestamps"),
        Role::User | Role::Item => (is_id, "integers or strings"),
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

fn integers(array: &ArrayRef) -> Result<Int64Array, arrow_schema::ArrowError> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// A column of a batch in one of few shapes.
pub(super) enum Column {
    Integers(Int64Array),
    Unsigned(UInt64Array),
    Floats(Float64Array),
    Texts(LargeStringArray),
    /// Strings of a file that does not say that they are: checked like those of a text file.
    Bytes(LargeBinaryArray),
    /// Times, and how many microseconds one step is.
    Times(Int64Array, i64),
    /// Times in nanoseconds.
    Nanoseconds(Int64Array),
    Nulls,
}

impl Column {
    pub(super) fn new(array: &ArrayRef) -> Result<Self, arrow_schema::ArrowError> {
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
                Column::Texts(cast(array, &DataType::LargeUtf8)?.as_string::<i64>().clone())
            }
            kind if is_binary(kind) => {
                Column::Bytes(cast(array, &DataType::LargeBinary)?.as_binary::<i64>().clone())
            }
            kind if kind.is_floating() => {
                Column::Floats(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
            }
            _ => Column::Integers(integers(array)?),
        })
    }

    pub(super) fn get(&self, row: usize) -> Field<'_> {
        const NULL: Field<'static> = Field::Other("null");
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
