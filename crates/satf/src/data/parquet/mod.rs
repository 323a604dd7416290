//! Parquet files: the columns that matter of them, a batch of rows at a time.

mod guard;
mod lists;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::ChunkReader;

use self::guard::broken;
pub(crate) use self::guard::guarded;
pub use self::guard::is_decoding;
pub(super) use self::lists::ListColumn;
use super::DataError;
use super::arrow::{self, Column, NULL};
use super::columns::{Chosen, Columns, Wanted};
use super::error::Position;
use super::field::Field;
use super::history_text::Cell;
use super::rows::{Next, Row};
use super::source::{Backing, MAGIC_LENGTH, Source};
use crate::interactions::Clock;
use crate::monitor::{Monitor, check_cancelled};

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
    orders: Option<Column>,
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
        wanted: &Wanted<'_>,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        match open_file(source, monitor)? {
            Input::File { path, file, size } => {
                ParquetRows::of(path, file, size, MAGIC_LENGTH, wanted, monitor)
            }
            Input::Memory { path, bytes } => {
                let size = bytes.len() as u64;
                ParquetRows::of(path, bytes, size, size, wanted, monitor)
            }
        }
    }

    /// The rows of a file of this size, of which `told` bytes were made known as read.
    fn of<R: ChunkReader + 'static>(
        path: PathBuf,
        file: R,
        size: u64,
        told: u64,
        wanted: &Wanted<'_>,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        let metadata = guarded(&path, || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?;
        let (chosen, columns) = arrow::choose(&path, metadata.schema(), wanted)?;
        let num_rows = u64::try_from(metadata.metadata().file_metadata().num_rows()).unwrap_or(0).max(1);
        let mut taken: Vec<usize> = chosen.by_role().map(|(_, at)| at).collect();
        taken.sort_unstable();
        taken.dedup();
        check_codecs(&path, metadata.metadata(), &taken)?;
        let place = |at: usize| taken.partition_point(|&other| other < at);
        let places = Chosen {
            user: place(chosen.user),
            item: place(chosen.item),
            time: chosen.time.map(place),
            order: chosen.order.map(|(at, by)| (place(at), by)),
            ..chosen
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
            told,
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
        let order = batch.orders.as_ref().map(|orders| orders.get(at));
        let user = batch.users.get(at);
        let row = |item| Row { position: Position::Row(self.row), user, item, time, order };
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
        let unfit = || broken(&self.path, "a column is not of the type that the file says");
        let column = |at: usize| Column::new(rows.column(at)).ok_or_else(unfit);
        let items = match rows.column(self.places.item) {
            _ if !self.places.is_whole => Items::Ids(column(self.places.item)?),
            lists if arrow::element(lists.data_type()).is_some() => {
                Items::Lists(ListColumn::new(lists).ok_or_else(unfit)?)
            }
            _ => Items::Cells(column(self.places.item)?),
        };
        let times = self.places.time.map(column).transpose()?;
        let orders = self.places.order.map(|(at, _)| column(at)).transpose()?;
        let (users, len) = (column(self.places.user)?, rows.num_rows());
        self.batch = Some(Batch { users, items, times, orders, len, next: 0 });
        Ok(true)
    }
}

/// The most bytes of a Parquet file that are held in memory if it comes from a reader.
const MOST_BUFFERED: u64 = 1 << 30;

/// What is read from its end and in no order.
enum Input {
    File { path: PathBuf, file: File, size: u64 },
    Memory { path: PathBuf, bytes: Bytes },
}

/// The file itself, or all bytes of a reader.
fn open_file(source: Source<'_>, monitor: &dyn Monitor) -> Result<Input, DataError> {
    let path = source.path().to_owned();
    if !source.is_parquet() {
        return Err(broken(&path, "it does not begin with PAR1"));
    }
    if let Some(compression) = source.compression() {
        return Err(broken(&path, format!("it is compressed with {compression}; decompress it first")));
    }
    match source.backing() {
        Backing::File => {
            drop(source);
            let file = File::open(&path).map_err(|source| DataError::open(&path, source))?;
            let size = file.metadata().map_err(|source| DataError::open(&path, source))?.len();
            return Ok(Input::File { path, file, size });
        }
        Backing::Pipe => return Err(DataError::NotSeekable { path }),
        Backing::Reader => {}
    }
    let bytes = buffered(&path, source.into_reader(), MOST_BUFFERED, monitor)?;
    Ok(Input::Memory { path, bytes })
}

/// All bytes of a reader that has no more than `limit`.
fn buffered(path: &Path, reader: impl Read, limit: u64, monitor: &dyn Monitor) -> Result<Bytes, DataError> {
    let mut reader = reader.take(limit + 1);
    let mut bytes = Vec::new();
    loop {
        check_cancelled(monitor)?;
        let got = reader.by_ref().take(BUFFERED_AT_ONCE).read_to_end(&mut bytes);
        match got.map_err(|source| DataError::open(path, source))? {
            _ if bytes.len() as u64 > limit => {
                return Err(DataError::TooLargeToBuffer { path: path.to_owned(), limit });
            }
            0 => return Ok(bytes.into()),
            _ => {}
        }
    }
}

/// How much of it is read between two questions whether to stop.
const BUFFERED_AT_ONCE: u64 = 1 << 20;

/// An error if a column that is used is compressed with a codec that is not read here: Brotli alone would be a megabyte of program.
pub(crate) fn check_codecs(
    path: &Path,
    metadata: &ParquetMetaData,
    taken: &[usize],
) -> Result<(), DataError> {
    let schema = metadata.file_metadata().schema_descr();
    for (leaf, column) in metadata.row_groups().iter().flat_map(|group| group.columns().iter().enumerate()) {
        let codec = match column.compression() {
            Compression::BROTLI(_) => "Brotli",
            Compression::LZO => "LZO",
            _ => continue,
        };
        if taken.contains(&schema.get_column_root_idx(leaf)) {
            let column = column.column_descr().name().into();
            return Err(DataError::ParquetCodec { path: path.to_owned(), column, codec });
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData, RowGroupMetaData};
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    #[test]
    fn codecs_that_are_not_read_are_named_if_their_column_is_taken() {
        let message = "message log { required int64 user; required int64 item; }";
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap())));
        let metadata = |codecs: [Compression; 2]| {
            let columns = codecs.into_iter().enumerate().map(|(at, codec)| {
                ColumnChunkMetaData::builder(schema.column(at)).set_compression(codec).build().unwrap()
            });
            let group = RowGroupMetaData::builder(Arc::clone(&schema)).set_column_metadata(columns.collect());
            let file = FileMetaData::new(2, 0, None, None, Arc::clone(&schema), None);
            ParquetMetaData::new(file, vec![group.build().unwrap()])
        };
        let path = Path::new("log.parquet");
        let brotli = metadata([Compression::SNAPPY, Compression::BROTLI(Default::default())]);
        let refused = check_codecs(path, &brotli, &[0, 1]).unwrap_err().to_string();
        for part in ["log.parquet", "column item", "Brotli", "zstd"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        assert!(check_codecs(path, &brotli, &[0]).is_ok());
        let usual = metadata([Compression::UNCOMPRESSED, Compression::ZSTD(Default::default())]);
        assert!(check_codecs(path, &usual, &[0, 1]).is_ok());
    }

    #[test]
    fn a_reader_is_held_up_to_the_limit_and_refused_beyond_it() {
        let path = Path::new("reader");
        let limit = 3 * BUFFERED_AT_ONCE + 5;
        let whole = vec![7; limit as usize];
        assert_eq!(buffered(path, &whole[..], limit, &()).unwrap(), whole);
        // However long it goes on, no more than that is read.
        let error = buffered(path, std::io::repeat(7), limit, &()).unwrap_err();
        assert!(matches!(error, DataError::TooLargeToBuffer { limit: said, .. } if said == limit), "{error}");
        assert!(buffered(path, &whole[..], limit - 1, &()).is_err());
    }
}
