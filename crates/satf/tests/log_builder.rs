//! A log is the same wherever its events come from: pushes, record batches, CSV, Parquet, readers.

#![allow(clippy::unwrap_used)]

mod logs;

use std::fs;
use std::io::{self, Read};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float16Array, Int8Array, Int16Array, Int64Array, LargeBinaryArray,
    NullArray, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use logs::{
    Compression, Event, Id, event, expected, integer_columns, parquet_bytes, raw, text_columns, time_columns,
};
use proptest::prelude::*;
use satf::data::{
    DataError, EventTime, Format, IdType, LogBuilder, LogFormat, Position, ReadOptions, Role, TimeUnit,
    choose_columns, read_log, write_log,
};
use satf::interactions::{Clock, Interactions, OwnedHistory, OwnedId, Timestamp};

fn id(id: &Id) -> OwnedId {
    match id {
        Id::Integer(id) => OwnedId::from(*id),
        Id::Text(id) => OwnedId::from(id),
    }
}

/// The same time in one of the ways a caller may have it.
fn in_some_way(way: usize, seconds: i64, text: &str) -> EventTime<'_> {
    match way {
        0 => seconds.into(),
        1 => EventTime::from(Timestamp::from_seconds(seconds)),
        2 => (seconds as f64).into(),
        _ => text.into(),
    }
}

fn pushed(events: &[Event], way: usize, options: &ReadOptions) -> Interactions {
    let mut builder = LogBuilder::with_options(options.clone());
    for event in events {
        let (seconds, text) = (event.day * 86_400, (event.day * 86_400).to_string());
        builder.push(id(&event.user), id(&event.item), in_some_way(way, seconds, &text)).unwrap();
    }
    assert_eq!(builder.len(), events.len());
    builder.finish().unwrap()
}

fn batches(events: &[Event], rows_a_batch: usize) -> Vec<RecordBatch> {
    let column = |ids: Vec<OwnedId>| -> ArrayRef {
        if let OwnedId::Integer(_) = ids[0] {
            let number = |id: &OwnedId| if let OwnedId::Integer(id) = id { *id } else { unreachable!() };
            Arc::new(Int64Array::from_iter_values(ids.iter().map(number)))
        } else {
            Arc::new(StringArray::from_iter_values(ids.iter().map(ToString::to_string)))
        }
    };
    let whole = table(
        &column(events.iter().map(|event| id(&event.user)).collect()),
        &column(events.iter().map(|event| id(&event.item)).collect()),
        &(Arc::new(Int64Array::from_iter_values(events.iter().map(|event| event.day * 86_400))) as ArrayRef),
    );
    let starts = (0..events.len()).step_by(rows_a_batch);
    starts.map(|start| whole.slice(start, rows_a_batch.min(events.len() - start))).collect()
}

fn table(users: &ArrayRef, items: &ArrayRef, times: &ArrayRef) -> RecordBatch {
    let columns = [("time", times), ("user", users), ("item", items)];
    RecordBatch::try_from_iter(columns.map(|(name, column)| (name, Arc::clone(column)))).unwrap()
}

fn of_batches(batches: &[RecordBatch], options: &ReadOptions) -> Result<Interactions, DataError> {
    let mut builder = LogBuilder::with_options(options.clone());
    for batch in batches {
        builder.add_batch(batch)?;
    }
    builder.finish()
}

fn of_reader(content: &[u8], options: &ReadOptions) -> Result<Interactions, DataError> {
    let mut builder = LogBuilder::with_options(options.clone());
    // A few bytes at a time, as a pipe may give them.
    builder.add_reader("reader", Dripping(content), &())?;
    builder.finish()
}

struct Dripping<'a>(&'a [u8]);

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let few = buffer.len().min(7);
        self.0.read(&mut buffer[..few])
    }
}

fn of_file(content: &[u8], options: &ReadOptions) -> Interactions {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, content).unwrap();
    read_log(&[path], options, &()).unwrap().0
}

fn ids() -> impl Strategy<Value = (Vec<Id>, Vec<Id>)> {
    let integers = prop::collection::vec(any::<i64>().prop_map(Id::Integer), 1..6);
    let texts = prop::collection::vec("[a-z\"é,]{1,6}".prop_map(Id::Text), 1..6);
    let some = || prop_oneof![integers.clone(), texts.clone()];
    (some(), some())
}

fn some_events() -> impl Strategy<Value = Vec<Event>> {
    (ids(), prop::collection::vec((any::<usize>(), any::<usize>(), -1_000i64..40_000), 1..40)).prop_map(
        |((users, items), rows)| {
            let pick = |of: &[Id], at: usize| of[at % of.len()].clone();
            rows.iter().map(|&(user, item, day)| event(pick(&users, user), pick(&items, item), day)).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_way_into_a_log_gives_the_same_log(events in some_events(), way in 0usize..4, rows in 1usize..20) {
        let options = ReadOptions::default();
        let log = expected(&events);
        let (csv, parquet) = (raw(Format::Csv, &events), raw(Format::Parquet, &events));
        let logs = [
            pushed(&events, way, &options),
            of_batches(&batches(&events, rows), &options).unwrap(),
            of_file(&csv, &options),
            of_file(&parquet, &options),
            of_reader(&csv, &options).unwrap(),
            of_reader(&Compression::Zstd.pack(&csv), &options).unwrap(),
            of_reader(&parquet, &options).unwrap(),
        ];
        for (at, other) in logs.into_iter().enumerate() {
            prop_assert_eq!(other.fingerprint(), log.fingerprint(), "way {}", at);
            prop_assert_eq!(&other, &log, "way {}", at);
        }
    }

    #[test]
    fn ids_told_to_be_text_are_text_from_everywhere(events in some_events()) {
        let options =
            ReadOptions { user_type: IdType::String, item_type: IdType::String, ..ReadOptions::default() };
        let log = of_file(&raw(Format::Csv, &events), &options);
        prop_assert_eq!(&pushed(&events, 0, &options), &log);
        prop_assert_eq!(&of_batches(&batches(&events, 7), &options).unwrap(), &log);
    }

    #[test]
    fn the_order_is_the_time_from_everywhere(events in some_events(), rows in 1usize..20) {
        let options = ReadOptions { order_is_time: true, ..ReadOptions::default() };
        let log = of_file(&raw(Format::Csv, &events), &options);
        prop_assert_eq!(log.clock(), Clock::RowOrder);
        prop_assert_eq!(&pushed(&events, 0, &options), &log);
        prop_assert_eq!(&of_batches(&batches(&events, rows), &options).unwrap(), &log);
        let mut builder = LogBuilder::new();
        for event in &events {
            builder.push_in_order(id(&event.user), id(&event.item)).unwrap();
        }
        prop_assert_eq!(&builder.finish().unwrap(), &log);
    }

    #[test]
    fn a_log_may_come_in_pieces_from_several_places(events in some_events(), cuts in prop::collection::vec(any::<usize>(), 3)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (events.len() + 1)).collect();
        cuts.extend([0, events.len()]);
        cuts.sort_unstable();
        let mut builder = LogBuilder::new();
        for (at, ends) in cuts.windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]) {
            let piece = &events[ends[0]..ends[1]];
            match at {
                0 => batches(piece, 3).iter().for_each(|batch| builder.add_batch(batch).unwrap()),
                1 => builder.add_reader("csv", &raw(Format::Csv, piece)[..], &()).unwrap(),
                2 => builder.add_reader("parquet", &raw(Format::Parquet, piece)[..], &()).unwrap(),
                _ => piece.iter().for_each(|event| {
                    builder.push(id(&event.user), id(&event.item), event.day * 86_400).unwrap();
                }),
            }
        }
        prop_assert_eq!(builder.finish().unwrap(), expected(&events));
    }
}

#[test]
fn every_arrow_type_that_parquet_may_have_is_taken() {
    let events: Vec<Event> = [(7, "b", 100), (3, "a", 101), (7, "a", 101)]
        .map(|(user, item, day)| event(Id::Integer(user), Id::Text(item.into()), day))
        .into();
    let log = expected(&events);
    let (users, items) = (integer_columns(&[7, 3, 7]), text_columns(&["b", "a", "a"]));
    let times = time_columns(&[100, 101, 101]);
    let more_users: [ArrayRef; 5] = [
        Arc::new(Int8Array::from(vec![7, 3, 7])),
        Arc::new(Int16Array::from(vec![7, 3, 7])),
        Arc::new(UInt16Array::from(vec![7, 3, 7])),
        Arc::new(UInt32Array::from(vec![7, 3, 7])),
        Arc::new(DictionaryArray::<UInt16Type>::new(
            UInt16Array::from(vec![1, 0, 1]),
            Arc::new(Int64Array::from(vec![3, 7])),
        )),
    ];
    let mut small = StringDictionaryBuilder::<Int8Type>::new();
    small.extend(["b", "a", "a"].map(Some));
    let more_items: [ArrayRef; 2] =
        [Arc::new(LargeBinaryArray::from_iter_values(["b", "a", "a"])), Arc::new(small.finish())];
    for user in users.iter().chain(&more_users) {
        for item in items.iter().chain(&more_items) {
            for time in &times {
                let read = of_batches(&[table(user, item, time)], &ReadOptions::default()).unwrap();
                assert_eq!(read, log, "{} {} {}", user.data_type(), item.data_type(), time.data_type());
                assert_eq!(
                    of_reader(&parquet_bytes(user, item, time), &ReadOptions::default()).unwrap(),
                    log
                );
            }
        }
    }
    let halves: ArrayRef = Arc::new(Float16Array::from_iter_values([1.5, 2.0, 2.0].map(half::f16::from_f32)));
    let read = of_batches(&[table(&users[0], &items[0], &halves)], &ReadOptions::default()).unwrap();
    assert_eq!(read.rows()[0].time, Timestamp(1_500_000));
}

#[test]
fn a_bad_row_names_its_place_and_leaves_nothing_behind() {
    let mut builder = LogBuilder::new();
    builder.push(1, "tent", 10).unwrap();
    let message = |error: DataError| error.to_string();
    for (outcome, part) in [
        (
            builder.push("ann", "tent", 11),
            "pushed events, row 2, column user: expected the id of a user as an integer",
        ),
        (builder.push(2, "", 12), "pushed events, row 3, column item: expected the id of an item"),
        (builder.push(2, "mug", "soon"), "pushed events, row 4, column time: expected a time"),
        (
            builder.push(2, "mug", "2024-05-17"),
            "row 5, column time: expected a number like the times above it",
        ),
        (
            builder.push(2, "mug", Timestamp(i64::MAX)),
            "row 6, column time: expected a time in the years 0 to 9999",
        ),
        (builder.push(2, "mug", 1_700_000_000_000i64), "(pushed events, row 7) like milliseconds"),
        (builder.push_in_order(2, "mug"), "pushed events: has no times, unlike what came before it"),
    ] {
        let text = message(outcome.unwrap_err());
        assert!(text.contains(part), "{text}");
    }
    builder.push(2, "mug", 13).unwrap();
    let log = builder.finish().unwrap();
    assert_eq!(log, Interactions::from_events([(1, "tent", 10), (2, "mug", 13)]).unwrap());

    let mut fresh = LogBuilder::new();
    fresh.push_in_order("", 1).unwrap_err();
    fresh.push(1, 1, 10).unwrap();
    assert_eq!(fresh.finish().unwrap().clock(), Clock::Calendar);
    assert!(matches!(LogBuilder::new().finish(), Err(DataError::NoRows { path: None })));
}

#[test]
fn bad_rows_of_batches_are_errors_with_batch_row_and_column_or_are_counted() {
    let times: ArrayRef = Arc::new(Int64Array::from(vec![10, 11]));
    let good: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![1, u64::MAX]));
    let first = table(&good, &good, &times);
    for (second, part) in [
        (table(&nulls, &good, &times), "record batches, batch 2, row 2, column \"user\": expected"),
        (table(&good, &large, &times), "batch 2, row 2, column \"item\": expected"),
        (table(&good, &good, &nulls), "batch 2, row 2, column \"time\": expected a time, found null"),
        (table(&good, &(Arc::new(NullArray::new(2)) as ArrayRef), &times), "batch 2, row 1, column \"item\""),
        (
            table(&good, &(Arc::new(Float16Array::new_null(2)) as ArrayRef), &times),
            "column `item` is of type Float16",
        ),
    ] {
        let error = of_batches(&[first.clone(), second], &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let lenient = ReadOptions { skip_bad_rows: 2, ..ReadOptions::default() };
    let mut builder = LogBuilder::with_options(lenient);
    for users in [&nulls, &large, &good] {
        builder.add_batch(&table(users, &good, &times)).unwrap();
    }
    let report = builder.report();
    assert_eq!((builder.len(), report.skipped_rows), (4, 2));
    assert!(report.skipped_messages[1].contains("batch 2, row 2"), "{:?}", report.skipped_messages);
    let error = builder.add_batch(&table(&nulls, &good, &times)).unwrap_err();
    assert!(matches!(error, DataError::TooManyBadRows { allowed: 2, .. }), "{error}");
}

#[test]
fn rows_of_a_table_are_numbered_through_its_parts() {
    let times: ArrayRef = Arc::new(Int64Array::from(vec![10, 11]));
    let good: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let mut builder = LogBuilder::new();
    builder.add_part("the frame", &table(&good, &good, &times)).unwrap();
    builder.add_part("the frame", &table(&good, &good, &times)).unwrap();
    let error = builder.add_part("the frame", &table(&good, &nulls, &times)).unwrap_err();
    assert!(error.to_string().starts_with("the frame, row 6, column \"item\": expected"), "{error}");
    let whole =
        of_batches(&[table(&good, &good, &times), table(&good, &good, &times)], &ReadOptions::default());
    let mut again = LogBuilder::new();
    for _ in 0..2 {
        again.add_part("the frame", &table(&good, &good, &times)).unwrap();
    }
    assert_eq!(again.finish().unwrap(), whole.unwrap());
}

#[test]
fn columns_are_chosen_before_anything_is_read() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let chosen = choose_columns(
        "table",
        &names(&["weight", "item_num", "datetime", "user_num"]),
        &ReadOptions::default(),
    );
    assert_eq!(chosen.unwrap(), [(Role::User, 3), (Role::Item, 1), (Role::Time, 2)]);
    let ordered = ReadOptions { order_is_time: true, ..ReadOptions::default() };
    let chosen = choose_columns("table", &names(&["user", "item", "date"]), &ordered);
    assert_eq!(chosen.unwrap(), [(Role::User, 0), (Role::Item, 1)]);
    let error =
        choose_columns("table", &names(&["user", "item", "price"]), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("table: cannot tell which column is the time"), "{error}");
}

#[test]
fn columns_of_batches_are_found_by_the_rules_of_files() {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch =
        |names: [&str; 3]| RecordBatch::try_from_iter(names.map(|name| (name, Arc::clone(&ids)))).unwrap();
    let read = |names, options: &ReadOptions| of_batches(&[batch(names)], options);
    let plain = ReadOptions::default();
    assert!(read(["movieId", "Visitor_ID", "ts"], &plain).is_ok());
    let error = read(["who", "item", "time"], &plain).unwrap_err();
    assert!(error.to_string().contains("cannot tell which column is the user"), "{error}");
    let told = ReadOptions { user_column: Some("who".into()), time_unit: TimeUnit::Milliseconds, ..plain };
    assert_eq!(read(["who", "item", "time"], &told).unwrap().rows()[1].time, Timestamp(2_000));
}

#[test]
fn a_prepared_log_without_times_keeps_its_order_through_batches() {
    let mut builder = LogBuilder::new();
    for (user, item) in [(1, 5), (2, 6), (1, 6), (2, 7), (1, 7)] {
        builder.push_in_order(user, item).unwrap();
    }
    let log = builder.finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    write_log(&log, &path, LogFormat::Parquet, &()).unwrap();
    let file = fs::File::open(&path).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    // The reader knows the schema of the file, its batches only know the columns.
    let schema = Arc::clone(reader.schema());
    let with_schema =
        |batch: Result<RecordBatch, _>| batch.unwrap().with_schema(Arc::clone(&schema)).unwrap();
    let batches: Vec<RecordBatch> = reader.with_batch_size(2).build().unwrap().map(with_schema).collect();
    assert_eq!(batches.len(), 3);
    assert_eq!(of_batches(&batches, &ReadOptions::default()).unwrap(), log);
    // The same table twice is one after the other, as two files are.
    let twice = of_batches(&[&batches[..], &batches[..]].concat(), &ReadOptions::default()).unwrap();
    assert_eq!(twice, read_log(&[path.clone(), path], &ReadOptions::default(), &()).unwrap().0);
}

#[test]
fn readers_of_every_kind_and_their_faults() {
    let events: Vec<Event> =
        (0..50).map(|at| event(Id::Integer(at % 7), Id::Integer(at % 5), 100 + at)).collect();
    for format in Format::ALL {
        for compression in Compression::ALL {
            let content = compression.pack(&raw(format, &events));
            let read = of_reader(&content, &ReadOptions::default());
            match read {
                Ok(log) => assert_eq!(log.len(), 50, "{format} {compression:?}"),
                Err(error) => {
                    let is_packed = format == Format::Parquet && compression != Compression::None;
                    assert!(is_packed && error.to_string().contains("decompress it first"), "{error}");
                }
            }
        }
    }
    let bad = of_reader(b"user,item,time\n1,1,1\n1,,2\n", &ReadOptions::default()).unwrap_err();
    let is_placed = matches!(&bad, DataError::BadRow { position: Position::Line(3), path, .. } if path.as_os_str() == "reader");
    assert!(is_placed, "{bad}");
    let parquet = raw(Format::Parquet, &events);
    assert!(of_reader(&parquet[..parquet.len() - 5], &ReadOptions::default()).is_err());
    let empty = of_reader(b"", &ReadOptions::default()).unwrap_err();
    assert!(matches!(empty, DataError::Empty { .. }), "{empty}");
}

#[test]
fn a_reader_is_read_even_if_a_file_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.parquet");
    let events = |count: i64| -> Vec<Event> {
        (0..count).map(|at| event(Id::Integer(at), Id::Integer(1), at)).collect()
    };
    fs::write(&path, raw(Format::Parquet, &events(3))).unwrap();
    let mut builder = LogBuilder::new();
    builder.add_reader(&path, &raw(Format::Parquet, &events(9))[..], &()).unwrap();
    assert_eq!(builder.report().files[0].path, path);
    assert_eq!(builder.finish().unwrap().len(), 9);
}

#[test]
fn histories_with_times_are_read_as_logs_are() {
    let log = Interactions::from_events([(1, "tent", 10), (1, "mug", 20), (1, "lamp", 30)]).unwrap();
    let history = |events: &[(&str, EventTime<'_>)]| {
        OwnedHistory::from_timed(log.items(), events.iter().copied(), TimeUnit::Auto)
    };
    let ordered = OwnedHistory::from_ids(log.items(), ["tent", "mug"]);
    assert_eq!(history(&[("mug", "2024-05-18".into()), ("tent", "2024-05-17".into())]).unwrap(), ordered);
    let together = history(&[("tent", 1_700_000_000.into()), ("mug", "1700000000.0".into())]).unwrap();
    assert_eq!(together.with_previous(), [false, true]);
    let error = history(&[("mug", 10.into()), ("tent", "soon".into())]).unwrap_err();
    assert!(error.to_string().contains("row 2, column time"), "{error}");
    let error = history(&[("mug", 10.into()), ("tent", 1_700_000_000_000i64.into())]).unwrap_err();
    assert!(matches!(error, DataError::MixedTimeUnits { .. }), "{error}");
}
