//! Results event by event, through the hands of other programs.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use satf::evaluate::{EvaluateOptions, PerEvent, evaluate, write_per_event};
use satf::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use satf::models::{Learner, PopularityConfig};
use satf::prepare::{Split, SplitScheme, TiePolicy, Timeline};

/// A log of 300 rows, `step` microseconds apart, from `start` on.
fn log(start: i64, step: i64, clock: Clock) -> Interactions {
    let ids = |n: i64| Ids::Integers((0..n).collect());
    let rows = (0..300i64).map(|at| Interaction {
        user: UserIndex((at % 7) as u32),
        item: ItemIndex(((at * at + at / 3) % 23) as u32),
        time: Timestamp(start + at * step),
    });
    Interactions::from_indexed(ids(7), ids(23), rows.collect(), clock)
}

/// Writes the results of a model on the newest events of a log.
fn write(log: &Interactions, path: &Path) {
    let scheme = match log.clock() {
        Clock::Calendar => SplitScheme::Holdout { test: "20minutes".parse().unwrap() },
        Clock::RowOrder => SplitScheme::LeaveOneOut,
    };
    let partition = Split::new(Timeline::new(log, TiePolicy::File, 0), scheme).unwrap().test().unwrap();
    let model = PopularityConfig::default().fit(&partition.train, &()).unwrap();
    let items = partition.train.num_items();
    let outcome = evaluate(&*model, &partition.holdout, items, &EvaluateOptions::default(), &()).unwrap();
    write_per_event(path, &partition, &outcome).unwrap();
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.build().unwrap().next().unwrap().unwrap()
}

/// The same results with another column of times.
fn with_times(results: &RecordBatch, times: &ArrayRef, path: &Path) {
    let schema = results.schema();
    let columns = schema.fields().iter().zip(results.columns()).map(|(field, column)| {
        let column = if field.name() == "timestamp" { Arc::clone(times) } else { Arc::clone(column) };
        (field.name().clone(), column, true)
    });
    // What others add is not looked at, whatever it is.
    let added: ArrayRef =
        Arc::new(TimestampSecondArray::from(vec![0; results.num_rows()]).with_timezone("UTC"));
    let columns = columns.chain([("added".to_owned(), added, true)]);
    let table = RecordBatch::try_from_iter_with_nullable(columns.collect::<Vec<_>>()).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), table.schema(), None).unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
}

/// All events of two files pair up.
fn assert_paired(a: &Path, b: &Path) {
    let (first, second) = (PerEvent::read(a, &()).unwrap(), PerEvent::read(b, &()).unwrap());
    let paired = first.pair(&second).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((paired.users.len(), paired.unpaired), (first.len(), 0), "{} {}", a.display(), b.display());
    for (metric, ours, theirs) in &paired.metrics {
        assert_eq!(ours, theirs, "{metric}");
    }
}

struct Place(tempfile::TempDir);

impl Place {
    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

const MAY_2014: i64 = 1_400_000_000_000_000;
const MINUTE: i64 = 60_000_000;

#[test]
fn times_are_written_as_prepared_logs_have_them() {
    let place = Place(tempfile::tempdir().unwrap());
    let (parquet, csv) = (place.file("a.parquet"), place.file("a.csv"));
    let calendar = log(MAY_2014, MINUTE, Clock::Calendar);
    write(&calendar, &parquet);
    write(&calendar, &csv);
    let results = read(&parquet);
    let times = results.column_by_name("timestamp").unwrap();
    assert_eq!(times.data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    let last = times.as_primitive::<TimestampMicrosecondType>().values().last().copied();
    assert_eq!(last, Some(MAY_2014 + 299 * MINUTE));
    let text = fs::read_to_string(&csv).unwrap();
    assert!(text.lines().last().unwrap().contains(",1400017940,"), "{text}");
    assert_paired(&parquet, &csv);

    // Fractions of a second have a spelling of their own in CSV.
    write(&log(MAY_2014 + 500_000, MINUTE, Clock::Calendar), &csv);
    let text = fs::read_to_string(&csv).unwrap();
    assert!(text.lines().last().unwrap().contains(",2014-05-13T21:52:20.5Z,"), "{text}");
    write(&log(MAY_2014 + 500_000, MINUTE, Clock::Calendar), &parquet);
    assert_paired(&parquet, &csv);

    // A log without times has the numbers of its rows.
    let ordered = log(0, 1, Clock::RowOrder);
    write(&ordered, &parquet);
    write(&ordered, &csv);
    assert_eq!(read(&parquet).column_by_name("timestamp").unwrap().data_type(), &DataType::Int64);
    assert_paired(&parquet, &csv);
}

#[test]
fn times_are_read_however_other_programs_write_them() {
    let place = Place(tempfile::tempdir().unwrap());
    let (ours, theirs) = (place.file("ours.parquet"), place.file("theirs.parquet"));
    write(&log(MAY_2014, MINUTE, Clock::Calendar), &ours);
    let results = read(&ours);
    let micros: Vec<i64> = results
        .column_by_name("timestamp")
        .unwrap()
        .as_primitive::<TimestampMicrosecondType>()
        .values()
        .to_vec();
    let scaled = |factor: fn(i64) -> i64| micros.iter().map(|&micros| factor(micros)).collect::<Vec<i64>>();
    let (seconds, nanos) = (scaled(|micros| micros / 1_000_000), scaled(|micros| micros * 1000));
    let spelled = |zone: &str| -> ArrayRef {
        let text = |second: &i64| {
            let (days, rest) = ((second - 1_399_939_200) / 86_400, (second - 1_399_939_200) % 86_400);
            format!(
                "2014-05-{:02} {:02}:{:02}:{:02}{zone}",
                13 + days,
                rest / 3600,
                rest / 60 % 60,
                rest % 60
            )
        };
        Arc::new(seconds.iter().map(|second| Some(text(second))).collect::<StringArray>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("timestamp[ns, UTC]", Arc::new(TimestampNanosecondArray::from(nanos.clone()).with_timezone("UTC"))),
        ("timestamp[ns]", Arc::new(TimestampNanosecondArray::from(nanos.clone()))),
        (
            "timestamp[us, +02:00]",
            Arc::new(TimestampMicrosecondArray::from(micros.clone()).with_timezone("+02:00")),
        ),
        ("timestamp[ms]", Arc::new(TimestampMillisecondArray::from(scaled(|micros| micros / 1000)))),
        ("timestamp[s, UTC]", Arc::new(TimestampSecondArray::from(seconds.clone()).with_timezone("UTC"))),
        ("microseconds, as earlier releases had them", Arc::new(Int64Array::from(micros.clone()))),
        ("seconds", Arc::new(Int64Array::from(seconds.clone()))),
        ("nanoseconds", Arc::new(Int64Array::from(nanos))),
        (
            "microseconds as floats",
            Arc::new(Float64Array::from(micros.iter().map(|&micros| micros as f64).collect::<Vec<_>>())),
        ),
        ("pandas' text with a zone", spelled("+00:00")),
        ("text without a zone", spelled("")),
        ("text with a Z", spelled("Z")),
    ];
    for (what, times) in columns {
        with_times(&results, &times, &theirs);
        let paired = PerEvent::read(&theirs, &()).map_err(|error| format!("{what}: {error}")).unwrap();
        assert_eq!(paired.len(), micros.len(), "{what}");
        assert_paired(&ours, &theirs);
    }
    let fractions: ArrayRef = Arc::new(Float64Array::from(vec![0.5; micros.len()]));
    with_times(&results, &fractions, &theirs);
    let message = PerEvent::read(&theirs, &()).unwrap_err().to_string();
    assert!(message.contains("timestamp '0.5'") && message.contains("expected"), "{message}");
}

#[test]
fn files_of_earlier_releases_pair_with_new_ones_whenever_the_log_begins() {
    let place = Place(tempfile::tempdir().unwrap());
    // Near 1970 whole microseconds look like seconds.
    for start in [0, 3_600_000_000, MAY_2014] {
        let (new, csv) = (place.file("new.parquet"), place.file("new.csv"));
        let calendar = log(start, MINUTE, Clock::Calendar);
        write(&calendar, &new);
        write(&calendar, &csv);
        let results = read(&new);
        let times = results.column_by_name("timestamp").unwrap();
        let micros = times.as_primitive::<TimestampMicrosecondType>().values().to_vec();
        let old = place.file("old.parquet");
        let old_times: ArrayRef = Arc::new(Int64Array::from(micros));
        with_times(&results, &old_times, &old);
        for (a, b) in [(&old, &new), (&new, &old), (&old, &csv), (&csv, &old), (&csv, &new), (&old, &old)] {
            assert_paired(a, b);
        }
    }
}

#[test]
fn a_codec_that_is_not_read_is_named() {
    // Written by pyarrow 26 with compression='brotli'.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/per_event_brotli.parquet");
    let message = PerEvent::read(&path, &()).unwrap_err().to_string();
    for part in ["per_event_brotli.parquet", "column user_id", "Brotli", "zstd"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // It is whole, and it is what it should be.
    for part in ["not per-event results", "valid Parquet"] {
        assert!(!message.contains(part), "{part}: {message}");
    }
}

#[test]
fn a_damaged_file_does_not_end_in_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.parquet");
    write(&log(0, 60_000_000, Clock::Calendar), &path);
    let whole = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.parquet");
    // Every eleventh byte in turn: an error, or another reading, and never a panic.
    for at in (4..whole.len() - 8).step_by(11) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&damaged, bytes).unwrap();
        let _ = PerEvent::read(&damaged, &());
    }
}
