//! The prepared log on disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::{DataError, time, write_atomically};
use crate::interactions::{Clock, Ids, Interaction, Interactions};
use crate::monitor::{Monitor, check_cancelled};

/// Metadata of a prepared log: its version and what its times mean.
pub(super) const VERSION_KEY: &str = "satf.version";
pub(super) const VERSION: &str = "1";
pub(super) const CLOCK_KEY: &str = "satf.clock";
pub(super) const CLOCK_CALENDAR: &str = "calendar";
pub(super) const CLOCK_ROW_ORDER: &str = "row_order";

const COLUMNS: [&str; 3] = ["user_id", "item_id", "timestamp"];
const ROWS_A_BATCH: usize = 65_536;

/// How a prepared log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Parquet: types, clock and row numbers are kept, nothing needs guessing when it is read.
    Parquet,
    /// CSV with a header. A file of text cannot tell the id `"7"` from the id `7`: string ids that all look like
    /// integers read back as integers unless [`super::ReadOptions::user_type`] and `item_type` say otherwise. A
    /// log in order of rows is written without times, and its rows are numbered again when it is read.
    Csv,
}

impl LogFormat {
    /// The format that a file's name asks for: CSV for `.csv`, `.csv.gz` and `.csv.zst`, Parquet for `.parquet`, `.pq` and names without
    /// an ending. None for any other: a file should be what its name says.
    pub fn of(path: &Path) -> Option<Self> {
        let is_packed = Packing::of(path) != Packing::None;
        let name = if is_packed { Path::new(path.file_stem()?) } else { path };
        match name.extension().map(|ending| ending.to_string_lossy().to_lowercase()).as_deref() {
            Some("csv") => Some(LogFormat::Csv),
            Some("parquet" | "pq") | None if !is_packed => Some(LogFormat::Parquet),
            _ => None,
        }
    }
}

/// How a file of text is packed, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(path: &Path) -> Self {
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("gz") => Packing::Gzip,
            Some(ending) if ending.eq_ignore_ascii_case("zst") => Packing::Zstd,
            _ => Packing::None,
        }
    }
}

/// Writes a prepared log, rows in order, with the columns `user_id`, `item_id` and `timestamp`. CSV is compressed if the name ends in `.gz` or
/// `.zst`. The monitor may stop it.
pub fn write_log(
    log: &Interactions,
    path: &Path,
    format: LogFormat,
    monitor: &dyn Monitor,
) -> Result<(), DataError> {
    let columns = Columns {
        users: IdColumn::Listed(log.users()),
        items: IdColumn::Listed(log.items()),
        clock: log.clock(),
        // Whole seconds are short.
        in_seconds: time::are_whole_seconds(log.rows().iter().map(|row| row.time.0)),
    };
    write_rows(path, format, &columns, |sink| {
        for rows in log.rows().chunks(ROWS_A_BATCH) {
            check_cancelled(monitor).map_err(io::Error::other)?;
            sink.write(rows)?;
        }
        Ok(())
    })
}

/// What the indices and times of rows mean when they are written.
pub(crate) struct Columns<'a> {
    pub(crate) users: IdColumn<'a>,
    pub(crate) items: IdColumn<'a>,
    pub(crate) clock: Clock,
    /// Whether every time is a whole second.
    pub(crate) in_seconds: bool,
}

/// Which ids indices stand for.
#[derive(Clone, Copy)]
pub(crate) enum IdColumn<'a> {
    /// Those of a list.
    Listed(&'a Ids),
    /// The index and one.
    Counted,
}

/// Takes rows of a log on their way into a file.
pub(crate) trait RowSink: Send {
    /// Writes these rows after those before them.
    fn write(&mut self, rows: &[Interaction]) -> io::Result<()>;
}

/// Writes a log whose rows `push` hands over, in any number of pieces: nothing but the piece at hand is in memory, and the file is there whole or
/// not at all.
pub(crate) fn write_rows<T>(
    path: &Path,
    format: LogFormat,
    columns: &Columns<'_>,
    push: impl FnOnce(&mut dyn RowSink) -> io::Result<T>,
) -> Result<T, DataError> {
    let written = write_atomically(path, |writer| match format {
        LogFormat::Parquet => {
            let mut sink = ParquetSink::new(columns, writer)?;
            let value = push(&mut sink)?;
            sink.parquet.close()?;
            Ok(value)
        }
        LogFormat::Csv => match Packing::of(path) {
            Packing::None => write_csv(columns, writer, push),
            Packing::Gzip => {
                let mut packed = GzEncoder::new(writer, flate2::Compression::default());
                let value = write_csv(columns, &mut packed, push)?;
                packed.finish()?;
                Ok(value)
            }
            Packing::Zstd => {
                let mut packed = zstd::Encoder::new(writer, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                let value = write_csv(columns, &mut packed, push)?;
                packed.finish()?;
                Ok(value)
            }
        },
    });
    written.map_err(|source| DataError::write(path, source))
}

struct ParquetSink<'a> {
    columns: &'a Columns<'a>,
    schema: Arc<Schema>,
    parquet: ArrowWriter<&'a mut BufWriter<File>>,
}

impl<'a> ParquetSink<'a> {
    fn new(columns: &'a Columns<'a>, writer: &'a mut BufWriter<File>) -> io::Result<Self> {
        let (clock, time_type) = match columns.clock {
            Clock::Calendar => {
                (CLOCK_CALENDAR, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))
            }
            Clock::RowOrder => (CLOCK_ROW_ORDER, DataType::Int64),
        };
        let id_type = |ids: IdColumn<'_>| match ids {
            IdColumn::Listed(Ids::Integers(_)) | IdColumn::Counted => DataType::Int64,
            IdColumn::Listed(Ids::Texts(_)) => DataType::Utf8,
        };
        let [user, item, time] = COLUMNS;
        let schema = Arc::new(Schema::new(vec![
            Field::new(user, id_type(columns.users), false),
            Field::new(item, id_type(columns.items), false),
            Field::new(time, time_type, false),
        ]));
        let metadata = [(VERSION_KEY, VERSION), (CLOCK_KEY, clock)];
        let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
        // Ids repeat, which dictionaries are for; times hardly do, but their differences are small.
        let properties = WriterProperties::builder()
            .set_created_by(concat!("satf ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(metadata.to_vec()))
            .set_column_dictionary_enabled(ColumnPath::from(time), false)
            .set_column_encoding(ColumnPath::from(time), Encoding::DELTA_BINARY_PACKED)
            .build();
        let parquet = ArrowWriter::try_new(writer, schema.clone(), Some(properties))?;
        Ok(ParquetSink { columns, schema, parquet })
    }
}

impl RowSink for ParquetSink<'_> {
    fn write(&mut self, rows: &[Interaction]) -> io::Result<()> {
        for rows in rows.chunks(ROWS_A_BATCH) {
            let times = rows.iter().map(|row| row.time.0);
            let times: ArrayRef = match self.columns.clock {
                Clock::Calendar => {
                    Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
                }
                Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
            };
            let users = id_array(self.columns.users, rows, |row| row.user.get());
            let items = id_array(self.columns.items, rows, |row| row.item.get());
            let batch = RecordBatch::try_new(self.schema.clone(), vec![users, items, times]);
            self.parquet.write(&batch.map_err(io::Error::other)?)?;
        }
        Ok(())
    }
}

fn id_array(ids: IdColumn<'_>, rows: &[Interaction], index: impl Fn(&Interaction) -> usize) -> ArrayRef {
    match ids {
        IdColumn::Counted => {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| index(row) as i64 + 1)))
        }
        IdColumn::Listed(Ids::Integers(ids)) => {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| ids[index(row)])))
        }
        IdColumn::Listed(Ids::Texts(ids)) => {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &*ids[index(row)])))
        }
    }
}

fn write_csv<T>(
    columns: &Columns<'_>,
    writer: impl Write + Send,
    push: impl FnOnce(&mut dyn RowSink) -> io::Result<T>,
) -> io::Result<T> {
    refuse_nul(columns.users)?;
    refuse_nul(columns.items)?;
    let mut csv = csv::Writer::from_writer(writer);
    csv.write_record(&COLUMNS[..if columns.clock == Clock::Calendar { 3 } else { 2 }])?;
    let mut sink = CsvSink { columns, csv, scratch: Vec::new() };
    let value = push(&mut sink)?;
    sink.csv.flush()?;
    Ok(value)
}

struct CsvSink<'a, W: Write> {
    columns: &'a Columns<'a>,
    csv: csv::Writer<W>,
    scratch: Vec<u8>,
}

impl<W: Write + Send> RowSink for CsvSink<'_, W> {
    fn write(&mut self, rows: &[Interaction]) -> io::Result<()> {
        let CsvSink { columns, csv, scratch } = self;
        for row in rows {
            write_id(csv, columns.users, row.user.get(), scratch)?;
            write_id(csv, columns.items, row.item.get(), scratch)?;
            if columns.clock == Clock::Calendar {
                scratch.clear();
                if columns.in_seconds {
                    write!(scratch, "{}", row.time.0 / 1_000_000)?;
                } else {
                    let text = time::to_iso(row.time.0).ok_or_else(|| {
                        let reason = format!("time {} is out of range", row.time.0);
                        io::Error::new(io::ErrorKind::InvalidData, reason)
                    })?;
                    scratch.extend_from_slice(text.as_bytes());
                }
                csv.write_field(&*scratch)?;
            }
            csv.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }
}

fn write_id<W: Write>(
    csv: &mut csv::Writer<W>,
    ids: IdColumn<'_>,
    at: usize,
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    let number = match ids {
        IdColumn::Listed(Ids::Texts(ids)) => return Ok(csv.write_field(&*ids[at])?),
        IdColumn::Listed(Ids::Integers(ids)) => ids[at],
        IdColumn::Counted => at as i64 + 1,
    };
    scratch.clear();
    write!(scratch, "{number}")?;
    Ok(csv.write_field(&*scratch)?)
}

fn refuse_nul(ids: IdColumn<'_>) -> io::Result<()> {
    match ids {
        IdColumn::Listed(Ids::Texts(ids)) if ids.iter().any(|id| id.contains('\0')) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "an id has a NUL byte, which CSV cannot carry; write Parquet instead",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_name_says() {
        for name in ["a.csv", "a.CSV", "a.csv.gz", "a.b.csv.zst"] {
            assert_eq!(LogFormat::of(Path::new(name)), Some(LogFormat::Csv), "{name}");
        }
        for name in ["a.parquet", "a", "folder.csv/a", "a.pq"] {
            assert_eq!(LogFormat::of(Path::new(name)), Some(LogFormat::Parquet), "{name}");
        }
        for name in ["a.gz", "a.parquet.gz", "a.tsv", "a.jsonl.gz", "a.txt", "a.csv.gz.zst"] {
            assert_eq!(LogFormat::of(Path::new(name)), None, "{name}");
        }
    }
}
