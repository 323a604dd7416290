//! Results event by event, in a file: so that two runs can be compared later.
//!
//! Columns: `user_id`, `item_id` (the target), `timestamp` (as prepared logs have it; the row number in logs
//! without times), `history_length`, `rank` (of the target, from 1; empty beyond the largest cut-off), then one
//! column a metric, such as `NDCG@10`.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use hashbrown::{HashMap, HashSet};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::evaluation::Evaluation;
use super::event_times::{self, EventTimes, Reading};
use super::metrics::Metric;
use crate::data::{
    Content, DataError, check_codecs, guarded, moments, read_content, texts, time, write_atomically,
};
use crate::fault::excerpt;
use crate::interactions::Ids;
use crate::monitor::Monitor;
use crate::numbers::{Count, counted};
use crate::prepare::Partition;

/// The most bytes of a file of text that are read, unpacked: some millions of events. Parquet has no such limit.
const LARGEST_TEXT: u64 = 1 << 30;

/// The column of times.
const TIME: &str = "timestamp";

/// Why per-event results cannot be written, read or paired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerEventError {
    /// The file cannot be opened, read or written; what was there before is unchanged.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not one that [`write_per_event`] writes.
    #[error("{}: not per-event results: {reason}; hint: {}", path.display(), PerEventHint::WriteThem)]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Only some events were scored: parts are merged before they are written.
    #[error("{}: only {} of {} were scored; merge the parts first", path.display(), Count::of(*scored), counted(*events, "event"))]
    Partial {
        /// The file.
        path: PathBuf,
        /// Events scored.
        scored: usize,
        /// Events of the holdout.
        events: usize,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] DataError),
    /// Two files without a common event or metric.
    #[error("{} and {} have no {what} in common: were they made on the same log and split?", first.display(), second.display())]
    NothingInCommon {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// `event` or `metric`.
        what: &'static str,
    },
}

/// What the caller can do about a [`PerEventError`]. Its text ends that of the error, after `hint: `; a program with options of its
/// own words it itself instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PerEventHint {
    /// Write per-event results first.
    WriteThem,
}

impl fmt::Display for PerEventHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerEventHint::WriteThem => f.write_str("write_per_event writes them"),
        }
    }
}

impl PerEventError {
    /// What the caller can do about it. It is part of the error's text.
    pub fn hint(&self) -> Option<PerEventHint> {
        matches!(self, PerEventError::Content { .. }).then_some(PerEventHint::WriteThem)
    }
}

/// Which event a row speaks of. The last number counts repeats of the same user, item and time.
type EventKey<'a> = (&'a str, &'a str, i64, u32);

/// Per-event results read back.
#[derive(Clone, Debug)]
pub struct PerEvent {
    path: PathBuf,
    users: Vec<String>,
    items: Vec<String>,
    times: EventTimes,
    metrics: Vec<(Metric, Vec<f64>)>,
}

/// Two runs side by side.
#[derive(Clone, Debug)]
pub struct PairedEvents {
    /// The metrics both have, with the values of the first and of the second run, event by event.
    pub metrics: Vec<(Metric, Vec<f64>, Vec<f64>)>,
    /// Numbers the user of every event, from 0 without gaps.
    pub users: Vec<usize>,
    /// Events that only one of the two has.
    pub unpaired: usize,
    /// Metrics that only the first has.
    pub only_first: Vec<Metric>,
    /// Metrics that only the second has.
    pub only_second: Vec<Metric>,
}

/// Writes the results of an evaluation: CSV if the name ends in `.csv`, else Parquet.
pub fn write_per_event(
    path: &Path,
    partition: &Partition,
    evaluation: &Evaluation,
) -> Result<(), PerEventError> {
    let holdout = &partition.holdout;
    if !evaluation.is_whole() {
        let (path, scored) = (path.to_owned(), evaluation.ranks.len());
        return Err(PerEventError::Partial { path, scored, events: holdout.events.len() });
    }
    let as_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let times = if as_csv { event_times::text_column(holdout) } else { Some(event_times::column(holdout)) };
    let times = times.ok_or_else(|| PerEventError::Io {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, "a time is outside the years 0 to 9999"),
    })?;
    let table = table(partition, evaluation, times);
    write_atomically(
        path,
        |writer| {
            if as_csv { write_csv(writer, &table) } else { write_parquet(writer, &table) }
        },
    )
    .map_err(|source| PerEventError::Io { path: path.to_owned(), source })
}

/// The results of an evaluation, one row per event that was scored: the table that [`write_per_event`] writes.
///
/// # Panics
/// If not all events were scored ([`Evaluation::is_whole`]).
pub fn per_event_table(partition: &Partition, evaluation: &Evaluation) -> RecordBatch {
    assert!(evaluation.is_whole(), "all events are scored");
    table(partition, evaluation, event_times::column(&partition.holdout))
}

fn table(partition: &Partition, evaluation: &Evaluation, times: ArrayRef) -> RecordBatch {
    let (holdout, catalog) = (&partition.holdout, partition.train.catalog());
    let events = &holdout.events;
    let ids = |ids: &Ids, at: Vec<usize>| -> ArrayRef {
        match ids {
            Ids::Integers(ids) => Arc::new(Int64Array::from_iter_values(at.into_iter().map(|at| ids[at]))),
            Ids::Texts(ids) => Arc::new(StringArray::from_iter_values(at.into_iter().map(|at| &ids[at]))),
        }
    };
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("user_id".into(), ids(&holdout.users, events.iter().map(|event| event.user.get()).collect())),
        ("item_id".into(), ids(catalog, events.iter().map(|event| event.target.get()).collect())),
        (TIME.into(), times),
        (
            "history_length".into(),
            Arc::new(UInt32Array::from_iter_values(events.iter().map(|event| event.history_len() as u32))),
        ),
        (
            "rank".into(),
            Arc::new(evaluation.ranks.iter().map(|rank| rank.map(|rank| rank + 1)).collect::<UInt32Array>()),
        ),
    ];
    for metric in evaluation.metrics() {
        let values = evaluation.ranks.iter().map(|&rank| metric.value(rank));
        columns.push((metric.to_string(), Arc::new(Float64Array::from_iter_values(values))));
    }
    let table = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| {
        let nullable = name == "rank";
        (name, column, nullable)
    }));
    table.expect("invariant: as many rows in every column, and a null in none but the rank")
}

fn write_parquet(writer: &mut BufWriter<File>, table: &RecordBatch) -> io::Result<()> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut parquet =
        ArrowWriter::try_new(writer, table.schema(), Some(properties)).map_err(io::Error::other)?;
    parquet.write(table).map_err(io::Error::other)?;
    parquet.close().map_err(io::Error::other)?;
    Ok(())
}

fn write_csv(writer: &mut BufWriter<File>, table: &RecordBatch) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(writer);
    csv.write_record(table.schema().fields().iter().map(|field| field.name()))?;
    // Floats print in their shortest exact form either way, so both formats carry the same values.
    let columns: Option<Vec<_>> = table.columns().iter().map(texts).collect();
    let columns = columns.expect("invariant: these columns hold numbers, strings and times");
    for row in 0..table.num_rows() {
        csv.write_record(columns.iter().map(|column| column[row].as_deref().unwrap_or_default()))?;
    }
    csv.flush()
}

impl PerEvent {
    /// Reads a file that [`write_per_event`] wrote; CSV may have been compressed since, by gzip or zstd, and may come through a pipe. The
    /// monitor may stop the reading.
    pub fn read(path: &Path, monitor: &dyn Monitor) -> Result<Self, PerEventError> {
        let io_error = |source| PerEventError::Io { path: path.to_owned(), source };
        let content = |reason: String| PerEventError::Content { path: path.to_owned(), reason };
        let columns = match read_content(path, LARGEST_TEXT, monitor)? {
            Content::Bytes(bytes) if bytes.is_empty() => return Err(content("it is empty".to_owned())),
            Content::Bytes(bytes) => csv_columns(&bytes).map_err(|e| content(e.to_string()))?,
            Content::Parquet => {
                if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
                    return Err(DataError::NotSeekable { path: path.to_owned() }.into());
                }
                let file = File::open(path).map_err(io_error)?;
                parquet_columns(path, file)?
            }
        };

        let is_metric = |name: &str| name.parse::<Metric>().is_ok();
        let is_ours = |name: &str| ["user_id", "item_id", TIME].contains(&name) || is_metric(name);
        let mut seen = HashSet::new();
        let mut ours = columns.iter().map(|(name, _)| name).filter(|name| is_ours(name));
        if let Some(name) = ours.find(|name| !seen.insert(name.as_str())) {
            return Err(content(format!("it has several columns `{name}`")));
        }
        let column = |name: &str| {
            let found = columns.iter().find(|(known, _)| known == name).map(|(_, values)| values);
            found.ok_or_else(|| content(format!("there is no column `{name}`")))
        };
        let (users, items) = (column("user_id")?.clone(), column("item_id")?.clone());
        let times = EventTimes::parse(column(TIME)?).map_err(content)?;
        let mut metrics = Vec::new();
        for (name, values) in &columns {
            if let Ok(metric) = name.parse::<Metric>() {
                let value = |text: &String| {
                    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
                    value.ok_or_else(|| {
                        content(format!(
                            "column `{name}` holds '{}': expected numbers from 0 to 1",
                            excerpt(text)
                        ))
                    })
                };
                metrics.push((metric, values.iter().map(value).collect::<Result<_, _>>()?));
            }
        }
        if users.is_empty() {
            return Err(content("it holds no events".to_owned()));
        }
        if metrics.is_empty() {
            return Err(content("there is no column of a metric, such as NDCG@10".to_owned()));
        }
        Ok(PerEvent { path: path.to_owned(), users, items, times, metrics })
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there is none; a file without rows is refused, so never.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Which event each row speaks of, if numbers are read as times in this way.
    fn keys(&self, reading: Reading) -> Vec<EventKey<'_>> {
        let mut repeats: HashMap<(&str, &str, i64), u32> = HashMap::new();
        let mut keys = Vec::with_capacity(self.len());
        for ((user, item), time) in self.users.iter().zip(&self.items).zip(self.times.micros(reading)) {
            let repeat = repeats.entry((user, item, time)).or_insert(0);
            *repeat += 1;
            keys.push((user.as_str(), item.as_str(), time, *repeat));
        }
        keys
    }

    /// The places of the events that both have, here and there. Where numbers may be times in more than one way, the first
    /// way that finds any.
    fn in_common(&self, other: &PerEvent) -> Vec<(usize, usize)> {
        let ways = Reading::ALL.into_iter().flat_map(|ours| Reading::ALL.map(|theirs| (ours, theirs)));
        let mut common = ways.map(|(ours, theirs)| {
            let (ours, theirs) = (self.keys(ours), other.keys(theirs));
            let places: HashMap<&EventKey<'_>, usize> =
                theirs.iter().enumerate().map(|(at, key)| (key, at)).collect();
            let both = ours.iter().enumerate().filter_map(|(at, key)| Some((at, *places.get(key)?)));
            both.collect::<Vec<_>>()
        });
        common.find(|common| !common.is_empty()).unwrap_or_default()
    }

    /// Pairs the events of two runs by user, item and time.
    pub fn pair(&self, other: &PerEvent) -> Result<PairedEvents, PerEventError> {
        let nothing = |what| PerEventError::NothingInCommon {
            first: self.path.clone(),
            second: other.path.clone(),
            what,
        };
        let both = self.in_common(other);
        if both.is_empty() {
            return Err(nothing("event"));
        }
        let mut metrics = Vec::new();
        for (metric, first) in &self.metrics {
            if let Some((_, second)) = other.metrics.iter().find(|(known, _)| known == metric) {
                let (first, second) = both.iter().map(|&(a, b)| (first[a], second[b])).unzip();
                metrics.push((*metric, first, second));
            }
        }
        if metrics.is_empty() {
            return Err(nothing("metric"));
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let users = both
            .iter()
            .map(|&(at, _)| {
                let next = numbers.len();
                *numbers.entry(&self.users[at]).or_insert(next)
            })
            .collect();
        let unpaired = self.len() + other.len() - 2 * both.len();
        let beyond = |run: &PerEvent| {
            let names = run.metrics.iter().map(|(metric, _)| *metric);
            names.filter(|metric| metrics.iter().all(|(known, ..)| known != metric)).collect::<Vec<_>>()
        };
        let (only_first, only_second) = (beyond(self), beyond(other));
        Ok(PairedEvents { metrics, users, unpaired, only_first, only_second })
    }
}

type TextColumns = Vec<(String, Vec<String>)>;

/// The columns of ours. Others may be anything: what a program added is not looked at.
fn parquet_columns(path: &Path, file: File) -> Result<TextColumns, PerEventError> {
    let builder = guarded(path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
    let is_ours = |name: &str| ["user_id", "item_id", TIME].contains(&name) || name.parse::<Metric>().is_ok();
    // From the file, not from its first batch: a file without rows has none.
    let fields = builder.schema().fields().iter().enumerate();
    let (places, mut columns): (Vec<usize>, TextColumns) = fields
        .filter(|(_, field)| is_ours(field.name()))
        .map(|(at, field)| (at, (field.name().clone(), Vec::new())))
        .unzip();
    check_codecs(path, builder.metadata(), &places)?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), places);
    let mut batches = guarded(path, || builder.with_projection(mask).build())?;
    while let Some(batch) = guarded(path, || batches.next().transpose())? {
        for ((name, read), column) in columns.iter_mut().zip(batch.columns()) {
            let times = if name == TIME { moments(column) } else { None };
            if let Some(times) = times {
                read.extend(times.into_iter().map(|time| time.and_then(time::to_iso).unwrap_or_default()));
                continue;
            }
            let values = texts(column).ok_or_else(|| PerEventError::Content {
                path: path.to_owned(),
                reason: format!("the column {name} holds {}", column.data_type()),
            })?;
            read.extend(values.into_iter().map(Option::unwrap_or_default));
        }
    }
    Ok(columns)
}

fn csv_columns(text: &[u8]) -> Result<TextColumns, csv::Error> {
    let mut reader = csv::Reader::from_reader(text);
    let mut columns: TextColumns =
        reader.headers()?.iter().map(|name| (name.to_owned(), Vec::new())).collect();
    for record in reader.records() {
        for ((_, texts), value) in columns.iter_mut().zip(&record?) {
            texts.push(value.to_owned());
        }
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{EvaluateOptions, evaluate};
    use crate::models::{Learner, RandomConfig};
    use crate::prepare::testing::log;
    use crate::prepare::{Split, SplitScheme, TiePolicy, Timeline};

    fn run(seed: u64) -> (Partition, Evaluation) {
        let rows: Vec<(i64, i64, i64)> =
            (0..400).map(|at| (at % 7, (at * at + at / 3) % 23, at * 3600)).collect();
        let log = log(&rows);
        let scheme =
            SplitScheme::Calendar { valid: "2days".parse().unwrap(), test: "3days".parse().unwrap() };
        let split = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).unwrap();
        let partition = split.test().unwrap();
        let model = RandomConfig { seed }.fit(&partition.train, &()).unwrap();
        let options = EvaluateOptions { cutoffs: vec![3, 5], ..EvaluateOptions::default() };
        let evaluation =
            evaluate(&*model, &partition.holdout, partition.train.num_items(), &options, &()).unwrap();
        (partition, evaluation)
    }

    #[test]
    fn results_survive_both_formats_and_pair_up() {
        let folder = tempfile::tempdir().unwrap();
        let (partition, first) = run(1);
        let (_, second) = run(2);
        let (parquet, csv) = (folder.path().join("a.parquet"), folder.path().join("b.csv"));
        write_per_event(&parquet, &partition, &first).unwrap();
        write_per_event(&csv, &partition, &second).unwrap();
        let (a, b) = (PerEvent::read(&parquet, &()).unwrap(), PerEvent::read(&csv, &()).unwrap());
        let paired = a.pair(&b).unwrap();
        assert_eq!((a.len(), paired.unpaired), (first.ranks.len(), 0));
        assert_eq!(paired.metrics.len(), 6);
        for (metric, ours, theirs) in &paired.metrics {
            let expect =
                |run: &Evaluation| run.ranks.iter().map(|&rank| metric.value(rank)).collect::<Vec<_>>();
            assert_eq!((ours, theirs), (&expect(&first), &expect(&second)), "{metric}");
        }
        assert_eq!(paired.users.iter().max(), Some(&6));
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        for (content, reason) in [
            ("", "it is empty"),
            ("user_id,item_id\n1,2\n", "no column `timestamp`"),
            ("user_id,item_id,timestamp,HR@10\n", "no event"),
            ("user_id,item_id,timestamp\n1,2,3\n", "no column of a metric"),
            ("user_id,item_id,timestamp,HR@10\n1,2,3,x\n", "HR@10"),
            ("user_id,item_id,timestamp,HR@10\n1,2,noon,1\n", "noon"),
            ("PAR1 but cut short", "arquet"),
        ] {
            std::fs::write(&path, content).unwrap();
            let message = PerEvent::read(&path, &()).unwrap_err().to_string();
            assert!(message.contains(reason), "{content:?}: {message}");
        }
    }
}
