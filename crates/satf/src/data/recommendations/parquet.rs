//! Recommendations as Parquet.

use std::io;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::{Names, RecommendationRow, Sink};
use crate::interactions::{Id, Ids, OwnedId};

const ROWS_A_BATCH: usize = 65_536;

/// Shares of a batch: a row of a long history has many.
const SHARES_A_BATCH: usize = 1 << 20;

/// Rows on their way into a Parquet file. Users have the type of the first one.
pub(super) struct ParquetRows<'a> {
    sink: Option<Sink<'a>>,
    writer: Option<ArrowWriter<Sink<'a>>>,
    names: Names<'a>,
    has_integer_users: bool,
    users: Vec<OwnedId>,
    items: Vec<OwnedId>,
    titles: Vec<Option<&'a str>>,
    scores: Vec<f32>,
    ranks: Vec<u32>,
    fallbacks: Vec<Option<String>>,
    shares: Vec<Vec<(OwnedId, f64)>>,
    num_shares: usize,
    bases: Vec<f64>,
    boosts: Vec<f64>,
}

impl<'a> ParquetRows<'a> {
    pub(super) fn new(sink: Sink<'a>, names: Names<'a>) -> Self {
        ParquetRows {
            sink: Some(sink),
            writer: None,
            names,
            has_integer_users: false,
            users: Vec::new(),
            items: Vec::new(),
            titles: Vec::new(),
            scores: Vec::new(),
            ranks: Vec::new(),
            fallbacks: Vec::new(),
            shares: Vec::new(),
            num_shares: 0,
            bases: Vec::new(),
            boosts: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: &RecommendationRow<'_>) -> io::Result<()> {
        let is_integer = matches!(row.user, Id::Integer(_));
        if self.writer.is_none() && self.users.is_empty() {
            self.has_integer_users = is_integer;
        }
        if self.has_integer_users && !is_integer {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the user id '{}' is a string where those before were integers: a Parquet column has one type; \
                     hint: write .csv or .jsonl",
                    row.user
                ),
            ));
        }
        let names = self.names;
        self.users.push(row.user.to_owned());
        self.items.push(names.id(row.item).to_owned());
        self.titles.push(names.title(row.item));
        self.scores.push(row.score);
        self.ranks.push(row.rank);
        self.fallbacks.push(row.fallback.map(str::to_owned));
        if let Some(explanation) = row.explanation {
            let shares = explanation.shares.iter();
            self.shares.push(shares.map(|&(item, share)| (names.id(item).to_owned(), share)).collect());
            self.num_shares += explanation.shares.len();
        } else {
            self.shares.push(Vec::new());
        }
        self.bases.push(row.explanation.map_or(0.0, |explanation| explanation.base));
        self.boosts.push(row.explanation.map_or(0.0, |explanation| explanation.boost));
        let is_full = self.users.len() == ROWS_A_BATCH || self.num_shares >= SHARES_A_BATCH;
        if is_full { self.flush() } else { Ok(()) }
    }

    fn schema(&self) -> Schema {
        let users = if self.has_integer_users { DataType::Int64 } else { DataType::Utf8 };
        let kind = |name: &str| match name {
            "user_id" => (users.clone(), false),
            "item_id" => (item_type(self.names), false),
            "score" => (DataType::Float32, false),
            "rank" => (DataType::UInt32, false),
            "shares" => (DataType::List(Arc::new(share_field(self.names))), false),
            "base" | "boost" => (DataType::Float64, false),
            _ => (DataType::Utf8, true),
        };
        let field = |name: &str| {
            let (data_type, is_nullable) = kind(name);
            Field::new(name, data_type, is_nullable)
        };
        Schema::new(self.names.header().into_iter().map(field).collect::<Vec<_>>())
    }

    fn flush(&mut self) -> io::Result<()> {
        let schema = Arc::new(self.schema());
        if let Some(sink) = self.sink.take() {
            let properties = WriterProperties::builder()
                .set_created_by(concat!("satf ", env!("CARGO_PKG_VERSION")).to_owned())
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .build();
            let writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties));
            self.writer = Some(writer.map_err(io::Error::other)?);
        }
        let columns = schema.fields().iter().map(|field| self.column(field.name())).collect();
        let batch = RecordBatch::try_new(schema, columns).map_err(io::Error::other)?;
        self.titles.clear();
        self.fallbacks.clear();
        self.shares.clear();
        self.bases.clear();
        self.boosts.clear();
        self.num_shares = 0;
        match &mut self.writer {
            Some(writer) => writer.write(&batch).map_err(io::Error::other),
            None => Ok(()),
        }
    }

    /// The values of a column, which are no longer kept.
    fn column(&mut self, name: &str) -> ArrayRef {
        match name {
            "user_id" => id_array(&mut self.users, self.has_integer_users),
            "item_id" => id_array(&mut self.items, matches!(self.names.catalog, Ids::Integers(_))),
            "title" => Arc::new(StringArray::from(std::mem::take(&mut self.titles))),
            "score" => Arc::new(Float32Array::from(std::mem::take(&mut self.scores))),
            "rank" => Arc::new(UInt32Array::from(std::mem::take(&mut self.ranks))),
            "fallback" => Arc::new(StringArray::from(std::mem::take(&mut self.fallbacks))),
            "shares" => share_lists(&self.shares, self.names),
            "base" => Arc::new(Float64Array::from(std::mem::take(&mut self.bases))),
            _ => Arc::new(Float64Array::from(std::mem::take(&mut self.boosts))),
        }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.into_inner().map_err(io::Error::other)?.flush()
    }
}

fn item_type(names: Names<'_>) -> DataType {
    match names.catalog {
        Ids::Integers(_) => DataType::Int64,
        Ids::Texts(_) => DataType::Utf8,
    }
}

/// An element of a list of shares.
fn share_field(names: Names<'_>) -> Field {
    Field::new("item", DataType::Struct(share_fields(names)), false)
}

fn share_fields(names: Names<'_>) -> Fields {
    Fields::from(vec![
        Field::new("item_id", item_type(names), false),
        Field::new("share", DataType::Float64, false),
    ])
}

fn share_lists(shares: &[Vec<(OwnedId, f64)>], names: Names<'_>) -> ArrayRef {
    let elements = StructBuilder::from_fields(share_fields(names), shares.iter().map(Vec::len).sum());
    let mut lists = ListBuilder::new(elements).with_field(share_field(names));
    for list in shares {
        for (item, share) in list {
            let element = lists.values();
            match item {
                OwnedId::Integer(id) => {
                    if let Some(ids) = element.field_builder::<Int64Builder>(0) {
                        ids.append_value(*id);
                    }
                }
                OwnedId::Text(id) => {
                    if let Some(ids) = element.field_builder::<StringBuilder>(0) {
                        ids.append_value(id);
                    }
                }
            }
            if let Some(values) = element.field_builder::<Float64Builder>(1) {
                values.append_value(*share);
            }
            element.append(true);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
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
