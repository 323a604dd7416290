//! The prepared log on disk, and how every file is written: whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::{DataError, time};
use crate::interactions::{Clock, Ids, Interaction, Interactions};

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
    /// log in order of rows is written without times, and its rows are numbered anew when it is read.
    Csv,
}

/// Writes a prepared log, rows in order, with the columns `user_id`, `item_id` and `timestamp`.
pub fn write_log(log: &Interactions, path: &Path, format: LogFormat) -> Result<(), DataError> {
    let written = write_atomically(path, |writer| match format {
        LogFormat::Parquet => write_parquet(log, writer).map_err(io::Error::other),
        LogFormat::Csv => write_csv(log, writer),
    });
    written.map_err(|source| DataError::Write { path: path.to_owned(), source })
}

/// Writes a file whole or not at all.
///
/// The content goes into a temporary file beside `path`, which takes the place of `path` once everything is safely on
/// disk. If anything fails the old file stays as it was and the temporary one is removed.
pub fn write_atomically<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let (file, temporary) = temporary_beside(path)?.into_parts();
    let mut writer = BufWriter::with_capacity(1 << 18, file);
    let value = write(&mut writer)?;
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    drop(file);
    temporary.persist(path).map_err(|error| error.error)?;
    // The new name is safe only once the folder is.
    #[cfg(unix)]
    File::open(folder_of(path))?.sync_all()?;
    Ok(value)
}

/// Whether [`write_atomically`] could write this file now: asked before long work whose result goes there.
pub fn check_writable(path: &Path) -> io::Result<()> {
    temporary_beside(path).map(drop)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn temporary_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    // A folder, a device or a pipe is not replaced.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is there and is no file"));
    }
    let folder = folder_of(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".satf-").suffix(".tmp");
    // Temporary files are private by default; this one becomes an ordinary file, as the umask has it.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder).map_err(|error| {
        let folder = folder.display();
        let reason = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no folder {folder}"),
            kind => format!("no file can be made in {folder}: {kind}"),
        };
        io::Error::new(error.kind(), reason)
    })
}

fn write_parquet(log: &Interactions, writer: &mut BufWriter<File>) -> parquet::errors::Result<()> {
    let (clock, time_type) = match log.clock {
        Clock::Calendar => (CLOCK_CALENDAR, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        Clock::RowOrder => (CLOCK_ROW_ORDER, DataType::Int64),
    };
    let id_type = |ids: &Ids| match ids {
        Ids::Integers(_) => DataType::Int64,
        Ids::Texts(_) => DataType::Utf8,
    };
    let [user, item, time] = COLUMNS;
    let schema = Arc::new(Schema::new(vec![
        Field::new(user, id_type(&log.users), false),
        Field::new(item, id_type(&log.items), false),
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
    for rows in log.rows.chunks(ROWS_A_BATCH) {
        let times = rows.iter().map(|row| row.time.0);
        let times: ArrayRef = match log.clock {
            Clock::Calendar => {
                Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
            }
            Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
        };
        let users = id_array(&log.users, rows, |row| row.user.get());
        let items = id_array(&log.items, rows, |row| row.item.get());
        parquet.write(&RecordBatch::try_new(schema.clone(), vec![users, items, times])?)?;
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

fn write_csv(log: &Interactions, writer: &mut BufWriter<File>) -> io::Result<()> {
    refuse_nul(&log.users)?;
    refuse_nul(&log.items)?;
    let has_times = log.clock == Clock::Calendar;
    // Whole seconds are short, and unmistakable as long as nobody takes them for milliseconds.
    let in_seconds = log.rows.iter().all(|row| {
        row.time.0 % 1_000_000 == 0 && (row.time.0 / 1_000_000).unsigned_abs() < time::AUTO_SECONDS_END
    });
    let mut csv = csv::Writer::from_writer(writer);
    csv.write_record(&COLUMNS[..if has_times { 3 } else { 2 }])?;
    let mut scratch = Vec::new();
    for row in &log.rows {
        write_id(&mut csv, &log.users, row.user.get(), &mut scratch)?;
        write_id(&mut csv, &log.items, row.item.get(), &mut scratch)?;
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
