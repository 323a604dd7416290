//! Recommendations out, row by row: `user_id`, `item_id`, `score`, `rank` (from 1).

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde::Serialize;

use super::DataError;
use crate::interactions::{Id, Ids, OwnedId};

const COLUMNS: [&str; 4] = ["user_id", "item_id", "score", "rank"];
const ROWS_A_BATCH: usize = 65_536;

/// How recommendations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecommendationFormat {
    /// One JSON object a line.
    JsonLines,
    /// CSV with a header.
    Csv,
    /// Parquet.
    Parquet,
}

impl RecommendationFormat {
    /// The format a file's name asks for by its ending.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Some(RecommendationFormat::JsonLines),
            "csv" => Some(RecommendationFormat::Csv),
            "parquet" => Some(RecommendationFormat::Parquet),
            _ => None,
        }
    }
}

/// Writes recommendations. Scores are written so that they read back to the same bits.
pub struct RecommendationWriter<'a> {
    path: PathBuf,
    kind: Kind<'a>,
}

type Sink<'a> = Box<dyn Write + Send + 'a>;

enum Kind<'a> {
    JsonLines(Sink<'a>),
    Csv(Box<csv::Writer<Sink<'a>>>),
    Parquet(Box<ParquetRows<'a>>),
}

#[derive(Serialize)]
struct Row<'r> {
    user_id: Id<'r>,
    item_id: Id<'r>,
    score: f32,
    rank: u32,
}

impl<'a> RecommendationWriter<'a> {
    /// Writes to `sink`, which messages call `path`, items of this catalogue.
    pub fn new(
        format: RecommendationFormat,
        path: &Path,
        sink: impl Write + Send + 'a,
        catalog: &Ids,
    ) -> Result<Self, DataError> {
        let sink: Sink<'a> = Box::new(sink);
        let kind = match format {
            RecommendationFormat::JsonLines => Kind::JsonLines(sink),
            RecommendationFormat::Csv => {
                let mut writer = csv::Writer::from_writer(sink);
                writer.write_record(COLUMNS).map_err(|error| failed(path, error.into()))?;
                Kind::Csv(Box::new(writer))
            }
            RecommendationFormat::Parquet => {
                Kind::Parquet(Box::new(ParquetRows::new(sink, matches!(catalog, Ids::Integers(_)))))
            }
        };
        Ok(RecommendationWriter { path: path.to_owned(), kind })
    }

    /// Writes one row.
    pub fn write(&mut self, user: Id<'_>, item: Id<'_>, score: f32, rank: u32) -> Result<(), DataError> {
        let row = Row { user_id: user, item_id: item, score, rank };
        let written = match &mut self.kind {
            Kind::JsonLines(sink) => serde_json::to_writer(&mut *sink, &row)
                .map_err(Into::into)
                .and_then(|()| sink.write_all(b"\n")),
            Kind::Csv(writer) => writer.serialize(Plain(&row)).map_err(Into::into),
            Kind::Parquet(rows) => rows.push(&row),
        };
        written.map_err(|error| failed(&self.path, error))
    }

    /// Writes what is left.
    pub fn finish(self) -> Result<(), DataError> {
        let finished = match self.kind {
            Kind::JsonLines(mut sink) => sink.flush(),
            Kind::Csv(mut writer) => writer.flush(),
            Kind::Parquet(rows) => rows.finish(),
        };
        finished.map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, source: io::Error) -> DataError {
    DataError::Write { path: path.to_owned(), source }
}

/// A row without names, which the header of a CSV file has already.
struct Plain<'r>(&'r Row<'r>);

impl Serialize for Plain<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.user_id, self.0.item_id, self.0.score, self.0.rank).serialize(serializer)
    }
}

/// Rows on their way into a Parquet file. Users have the type of the first one.
struct ParquetRows<'a> {
    sink: Option<Sink<'a>>,
    writer: Option<ArrowWriter<Sink<'a>>>,
    has_integer_users: bool,
    has_integer_items: bool,
    users: Vec<OwnedId>,
    items: Vec<OwnedId>,
    scores: Vec<f32>,
    ranks: Vec<u32>,
}

impl<'a> ParquetRows<'a> {
    fn new(sink: Sink<'a>, has_integer_items: bool) -> Self {
        ParquetRows {
            sink: Some(sink),
            writer: None,
            has_integer_users: false,
            has_integer_items,
            users: Vec::new(),
            items: Vec::new(),
            scores: Vec::new(),
            ranks: Vec::new(),
        }
    }

    fn push(&mut self, row: &Row<'_>) -> io::Result<()> {
        let is_integer = matches!(row.user_id, Id::Integer(_));
        if self.writer.is_none() && self.users.is_empty() {
            self.has_integer_users = is_integer;
        }
        if self.has_integer_users && !is_integer {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the user id '{}' is a string where those before were integers: a Parquet column has one type; \
                     hint: write .csv or .jsonl",
                    row.user_id
                ),
            ));
        }
        self.users.push(row.user_id.to_owned());
        self.items.push(row.item_id.to_owned());
        self.scores.push(row.score);
        self.ranks.push(row.rank);
        if self.users.len() == ROWS_A_BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let kind = |integers: bool| if integers { DataType::Int64 } else { DataType::Utf8 };
        let [user, item, score, rank] = COLUMNS;
        let schema = Arc::new(Schema::new(vec![
            Field::new(user, kind(self.has_integer_users), false),
            Field::new(item, kind(self.has_integer_items), false),
            Field::new(score, DataType::Float32, false),
            Field::new(rank, DataType::UInt32, false),
        ]));
        if let Some(sink) = self.sink.take() {
            let properties = WriterProperties::builder()
                .set_created_by(concat!("satf ", env!("CARGO_PKG_VERSION")).to_owned())
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .build();
            let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties));
            self.writer = Some(writer.map_err(io::Error::other)?);
        }
        let columns: Vec<ArrayRef> = vec![
            id_array(&mut self.users, self.has_integer_users),
            id_array(&mut self.items, self.has_integer_items),
            Arc::new(Float32Array::from(std::mem::take(&mut self.scores))),
            Arc::new(UInt32Array::from(std::mem::take(&mut self.ranks))),
        ];
        let batch = RecordBatch::try_new(schema, columns).map_err(io::Error::other)?;
        match &mut self.writer {
            Some(writer) => writer.write(&batch).map_err(io::Error::other),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.into_inner().map_err(io::Error::other)?.flush()
    }
}

fn id_array(ids: &mut Vec<OwnedId>, integers: bool) -> ArrayRef {
    let ids = std::mem::take(ids);
    if integers {
        let number = |id: &OwnedId| if let OwnedId::Integer(id) = id { *id } else { 0 };
        Arc::new(Int64Array::from_iter_values(ids.iter().map(number)))
    } else {
        Arc::new(StringArray::from_iter_values(ids.iter().map(|id| id.as_id().to_string())))
    }
}
