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
    let written = write_atomically(path, |writer| match format {
        LogFormat::Parquet => write_parquet(log, writer, monitor),
        LogFormat::Csv => match Packing::of(path) {
            Packing::None => write_csv(log, writer, monitor),
            Packing::Gzip => {
                let mut packed = GzEncoder::new(writer, flate2::Compression::default());
                write_csv(log, &mut packed, monitor)?;
                packed.finish().map(drop)
            }
            Packing::Zstd => {
                let mut packed = zstd::Encoder::new(writer, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                write_csv(log, &mut packed, monitor)?;
                packed.finish().map(drop)
            }
        },
    });
    written.map_err(|source| DataError::write(path, source))
}

fn write_parquet(log: &Interactions, writer: &mut BufWriter<File>, monitor: &dyn Monitor) -> io::Result<()> {
    let (clock, time_type) = match log.clock() {
        Clock::Calendar => (CLOCK_CALENDAR, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        Clock::RowOrder => (CLOCK_ROW_ORDER, DataType::Int64),
    };
    let id_type = |ids: &Ids| match ids {
        Ids::Integers(_) => DataType::Int64,
        Ids::Texts(_) => DataType::Utf8,
    };
    let [user, item, time] = COLUMNS;
    let schema = Arc::new(Schema::new(vec![
        Field::new(user, id_type(log.users()), false),
        Field::new(item, id_type(log.items()), false),
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
    let mut parquet = ArrowWriter::try_new(&mut *writer, schema.clone(), Some(properties))?;
    for rows in log.rows().chunks(ROWS_A_BATCH) {
        check_cancelled(monitor).map_err(io::Error::other)?;
        let times = rows.iter().map(|row| row.time.0);
        let times: ArrayRef = match log.clock() {
            Clock::Calendar => {
                Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
            }
            Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
        };
        let users = id_array(log.users(), rows, |row| row.user.get());
        let items = id_array(log.items(), rows, |row| row.item.get());
        let batch = RecordBatch::try_new(schema.clone(), vec![users, items, times]);
        parquet.write(&batch.map_err(io::Error::other)?)?;
    }
    parquet.close()?;
    Ok(())
}

fn id_array(ids: &Ids, rows: &[Interaction], index: impl Fn(&Interaction) -> usize) -> ArrayRef {
    match ids {
        Ids::Integers(ids) => Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| ids[index(row)]))),
        Ids::Texts(ids) => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &*ids[index(row)]))),
    }
}

fn write_csv(log: &Interactions, writer: &mut dyn Write, monitor: &dyn Monitor) -> io::Result<()> {
    refuse_nul(log.users())?;
    refuse_nul(log.items())?;
    let has_times = log.clock() == Clock::Calendar;
    // Whole seconds are short.
    let in_seconds = time::are_whole_seconds(log.rows().iter().map(|row| row.time.0));
    let mut csv = csv::Writer::from_writer(writer);
    csv.write_record(&COLUMNS[..if has_times { 3 } else { 2 }])?;
    let mut scratch = Vec::new();
    for (at, row) in log.rows().iter().enumerate() {
        if at % ROWS_A_BATCH == 0 {
            check_cancelled(monitor).map_err(io::Error::other)?;
        }
        write_id(&mut csv, log.users(), row.user.get(), &mut scratch)?;
        write_id(&mut csv, log.items(), row.item.get(), &mut scratch)?;
        if has_times {
            scratch.clear();
            if in_seconds {
                write!(scratch, "{}", row.time.0 / 1_000_000)?;
            } else {
                let text = time::to_iso(row.time.0).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("time {} is out of range", row.time.0))
                })?;
                scratch.extend_from_slice(text.as_bytes());
            }
            csv.write_field(&scratch)?;
        }
        csv.write_record(None::<&[u8]>)?;
    }
    csv.flush()
}

fn write_id<W: Write>(
    csv: &mut csv::Writer<W>,
    ids: &Ids,
    at: usize,
    scratch: &mut Vec<u8>,
) -> io::Result<()> {
    match ids {
        Ids::Integers(ids) => {
            scratch.clear();
            write!(scratch, "{}", ids[at])?;
            csv.write_field(scratch)?;
        }
        Ids::Texts(ids) => csv.write_field(&*ids[at])?,
    }
    Ok(())
}

fn refuse_nul(ids: &Ids) -> io::Result<()> {
    match ids {
        Ids::Texts(ids) if ids.iter().any(|id| id.contains('\0')) => Err(io::Error::new(
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
