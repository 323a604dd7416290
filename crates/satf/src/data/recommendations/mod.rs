//! Recommendations out, row by row: `user_id`, `item_id`, `score`, `rank` (from 1), and what else is asked for.

mod parquet;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::ser::{SerializeMap, SerializeTuple};
use serde::{Serialize, Serializer};

use self::parquet::ParquetRows;
use super::{DataError, Titles};
use crate::escape;
use crate::interactions::{Id, Ids, ItemIndex};

/// How recommendations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecommendationFormat {
    /// One JSON object a line. Characters that act on a terminal are escaped: these lines may end on one.
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

/// The columns beside `user_id`, `item_id`, `score` and `rank`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecommendationColumns<'t> {
    /// `title`: what people call the item; empty for one without.
    pub titles: Option<&'t Titles>,
    /// `fallback`: what the row is instead of a recommendation that follows from the history; empty for one that does.
    pub fallback: bool,
    /// `shares`, `base` and `boost`, which sum to the score. Shares are a list of `item_id` and `share`, oldest item first; in CSV
    /// it is written as JSON.
    pub explanations: bool,
}

/// A row to write.
#[derive(Clone, Copy, Debug)]
pub struct RecommendationRow<'r> {
    /// To whom.
    pub user: Id<'r>,
    /// What.
    pub item: ItemIndex,
    /// Its score.
    pub score: f32,
    /// Its rank in the list of the user, from 1.
    pub rank: u32,
    /// What it is instead of a recommendation that follows from the history.
    pub fallback: Option<&'r str>,
    /// Where the score comes from.
    pub explanation: Option<ExplanationRow<'r>>,
}

/// Where a score comes from.
#[derive(Clone, Copy, Debug)]
pub struct ExplanationRow<'r> {
    /// What each item of the history adds, oldest first.
    pub shares: &'r [(ItemIndex, f64)],
    /// What does not come from the history.
    pub base: f64,
    /// What boosts made of it.
    pub boost: f64,
}

/// Writes recommendations. Scores are written so that they read back to the same bits.
pub struct RecommendationWriter<'a> {
    path: PathBuf,
    names: Names<'a>,
    kind: Kind<'a>,
}

type Sink<'a> = Box<dyn Write + Send + 'a>;

enum Kind<'a> {
    JsonLines(Sink<'a>),
    Csv(Box<csv::Writer<Sink<'a>>>),
    Parquet(Box<ParquetRows<'a>>),
}

/// Which columns there are, and what items are called in them.
#[derive(Clone, Copy)]
struct Names<'a> {
    catalog: &'a Ids,
    columns: RecommendationColumns<'a>,
}

impl<'a> Names<'a> {
    fn id(&self, item: ItemIndex) -> Id<'a> {
        self.catalog.get(item.get())
    }

    fn title(&self, item: ItemIndex) -> Option<&'a str> {
        self.columns.titles?.get(item)
    }

    fn header(&self) -> Vec<&'static str> {
        let mut header = vec!["user_id", "item_id"];
        header.extend(self.columns.titles.map(|_| "title"));
        header.extend(["score", "rank"]);
        header.extend(self.columns.fallback.then_some("fallback"));
        if self.columns.explanations {
            header.extend(["shares", "base", "boost"]);
        }
        header
    }
}

impl<'a> RecommendationWriter<'a> {
    /// Writes to `sink`, which messages call `path`, items of this catalogue.
    pub fn new(
        format: RecommendationFormat,
        path: &Path,
        sink: impl Write + Send + 'a,
        catalog: &'a Ids,
        columns: RecommendationColumns<'a>,
    ) -> Result<Self, DataError> {
        let sink: Sink<'a> = Box::new(sink);
        let names = Names { catalog, columns };
        let kind = match format {
            RecommendationFormat::JsonLines => Kind::JsonLines(sink),
            RecommendationFormat::Csv => {
                let mut writer = csv::Writer::from_writer(sink);
                writer.write_record(names.header()).map_err(|error| failed(path, error.into()))?;
                Kind::Csv(Box::new(writer))
            }
            RecommendationFormat::Parquet => Kind::Parquet(Box::new(ParquetRows::new(sink, names))),
        };
        Ok(RecommendationWriter { path: path.to_owned(), names, kind })
    }

    /// Writes one row.
    pub fn write(&mut self, row: &RecommendationRow<'_>) -> Result<(), DataError> {
        let row = NamedRow { row, names: self.names };
        let written = match &mut self.kind {
            Kind::JsonLines(sink) => {
                escape::write_json(&mut *sink, &row).map_err(Into::into).and_then(|()| sink.write_all(b"\n"))
            }
            Kind::Csv(writer) => writer.serialize(Plain(&row)).map_err(Into::into),
            Kind::Parquet(rows) => rows.push(row.row),
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

/// A row as a JSON object.
struct NamedRow<'r> {
    row: &'r RecommendationRow<'r>,
    names: Names<'r>,
}

impl NamedRow<'_> {
    fn shares(&self) -> Vec<Share<'_>> {
        let shares = self.row.explanation.map_or(&[][..], |explanation| explanation.shares);
        shares.iter().map(|&(item, share)| Share { item_id: self.names.id(item), share }).collect()
    }

    fn base_and_boost(&self) -> (f64, f64) {
        self.row.explanation.map_or((0.0, 0.0), |explanation| (explanation.base, explanation.boost))
    }
}

#[derive(Serialize)]
struct Share<'r> {
    item_id: Id<'r>,
    share: f64,
}

impl Serialize for NamedRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let NamedRow { row, names } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("user_id", &row.user)?;
        map.serialize_entry("item_id", &names.id(row.item))?;
        if names.columns.titles.is_some() {
            map.serialize_entry("title", &names.title(row.item))?;
        }
        map.serialize_entry("score", &row.score)?;
        map.serialize_entry("rank", &row.rank)?;
        if names.columns.fallback {
            map.serialize_entry("fallback", &row.fallback)?;
        }
        if names.columns.explanations {
            let (base, boost) = self.base_and_boost();
            map.serialize_entry("shares", &self.shares())?;
            map.serialize_entry("base", &base)?;
            map.serialize_entry("boost", &boost)?;
        }
        map.end()
    }
}

/// A row without names, which the header of a CSV file has already.
struct Plain<'r>(&'r NamedRow<'r>);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let NamedRow { row, names } = self.0;
        let mut fields = serializer.serialize_tuple(names.header().len())?;
        fields.serialize_element(&row.user)?;
        fields.serialize_element(&names.id(row.item))?;
        if names.columns.titles.is_some() {
            fields.serialize_element(&names.title(row.item))?;
        }
        fields.serialize_element(&row.score)?;
        fields.serialize_element(&row.rank)?;
        if names.columns.fallback {
            fields.serialize_element(&row.fallback)?;
        }
        if names.columns.explanations {
            let (base, boost) = self.0.base_and_boost();
            let shares = serde_json::to_string(&self.0.shares()).map_err(serde::ser::Error::custom)?;
            fields.serialize_element(&shares)?;
            fields.serialize_element(&base)?;
            fields.serialize_element(&boost)?;
        }
        fields.end()
    }
}
