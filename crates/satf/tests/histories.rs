//! Histories: read by the readers of logs, in any order and format, with the baskets and times a model was taught with.

#![allow(clippy::unwrap_used)]

mod logs;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use logs::{Compression, event, raw};
use parquet::arrow::ArrowWriter;
use satf::History;
use satf::data::{
    DataError, Format, HistoryOptions, IdType, LogFormat, ReadOptions, UserHistories, read_log, write_log,
};
use satf::interactions::{Id, Ids, ItemIndex, OwnedHistory, Timestamp};
use satf::prepare::{TiePolicy, Timeline};

/// A history with the ids it was made from.
type Shown = (String, Vec<String>, Vec<bool>, usize);

fn catalog() -> Ids {
    Ids::Texts(["book", "game", "lamp", "mug", "stove", "tent"].map(Into::into).into())
}

fn read_file(path: &Path, catalog: &Ids, options: &HistoryOptions) -> Result<Vec<Shown>, DataError> {
    UserHistories::open(path, catalog, options, &())?
        .map(|user| {
            let user = user?;
            let items = user.history.items().iter().map(|item| catalog.get(item.get()).to_string()).collect();
            let marks = user.history.with_previous().to_vec();
            Ok((user.user.as_id().to_string(), items, marks, user.history.unknown()))
        })
        .collect()
}

fn write(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("histories");
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn read_with(content: impl AsRef<[u8]>, options: &HistoryOptions) -> Result<Vec<Shown>, String> {
    let (_folder, path) = write(content);
    read_file(&path, &catalog(), options).map_err(|error| error.to_string())
}

fn read(content: impl AsRef<[u8]>) -> Result<Vec<Shown>, String> {
    read_with(content, &HistoryOptions::default())
}

fn told(reading: ReadOptions) -> HistoryOptions {
    HistoryOptions { reading, ..HistoryOptions::default() }
}

fn shown(user: &str, items: &[&str], together: &[usize], unknown: usize) -> Shown {
    let marks = (0..items.len()).map(|at| together.contains(&at)).collect();
    (user.to_owned(), items.iter().map(|&item| item.to_owned()).collect(), marks, unknown)
}

fn parquet(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn users(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(1..=count))
}

#[test]
fn every_format_of_logs_is_read_as_histories() {
    let id = |text: &str| logs::Id::Text(text.into());
    let events: Vec<_> = [
        ("ann", "tent", 10),
        ("bob", "lamp", 11),
        ("ann", "stove", 13),
        ("ann", "mug", 12),
        ("bob", "rope", 14),
        ("ann", "book", 13),
    ]
    .map(|(user, item, day)| event(id(user), id(item), day))
    .into();
    for format in Format::ALL {
        for compression in Compression::ALL {
            if format == Format::Parquet && compression != Compression::None {
                continue;
            }
            let histories = read(compression.pack(&raw(format, &events)));
            let expected = if format == Format::SasRec {
                // No times: the order of the rows, and no baskets.
                vec![shown("ann", &["tent", "stove", "mug", "book"], &[], 0), shown("bob", &["lamp"], &[], 1)]
            } else {
                vec![
                    shown("ann", &["tent", "mug", "stove", "book"], &[3], 0),
                    shown("bob", &["lamp"], &[], 1),
                ]
            };
            assert_eq!(histories.unwrap(), expected, "{format} {compression:?}");
        }
    }
}

#[test]
fn a_prepared_log_gives_the_histories_a_model_learns_from() {
    let rows: Vec<String> = (0..3000)
        .map(|at: i64| format!("{},{},{}\n", at * 37 % 113, at * 11 % 59, 1_500_000_000 + at / 7 * 3600))
        .collect();
    let (folder, raw) = write(rows.concat());
    let (log, _) = read_log(&[raw], &ReadOptions::default(), &()).unwrap();
    let taught = Timeline::new(&log, TiePolicy::File, 0).histories();
    let marks = taught.with_previous();
    let prepared = folder.path().join("prepared");
    for format in [LogFormat::Parquet, LogFormat::Csv] {
        write_log(&log, &prepared, format, &()).unwrap();
        for memory in [0, 20_000, 128 << 20] {
            let options = HistoryOptions { memory, ..HistoryOptions::default() };
            let asked: Vec<_> = UserHistories::open(&prepared, log.items(), &options, &())
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(asked.len(), 113);
            for user in &asked {
                let index = log.users().find(user.user.as_id()).unwrap();
                let expected = taught.history_of(satf::interactions::UserIndex(index as u32), &marks);
                assert_eq!(History::from(&user.history), expected, "{format:?} {memory}");
            }
            // The order of first appearance.
            let order: Vec<String> = asked.iter().map(|user| user.user.as_id().to_string()).collect();
            let mut first: Vec<String> = Vec::new();
            for row in log.rows() {
                let id = log.users().get(row.user.get()).to_string();
                if !first.contains(&id) {
                    first.push(id);
                }
            }
            assert_eq!(order, first, "{format:?} {memory}");
        }
    }
}

#[test]
fn interleaved_and_grouped_files_agree_whatever_the_memory() {
    let row =
        |user: usize, at: usize| format!("u{user},{},{}\n", ["tent", "mug", "lamp", "rope"][at % 4], at / 2);
    let header = "user_id,item_id,timestamp\n".to_owned();
    let interleaved: String = (0..40).flat_map(|at| (0..200).map(move |user| row(user, at))).collect();
    let grouped: String = (0..200).flat_map(|user| (0..40).map(move |at| row(user, at))).collect();
    let expected = read(header.clone() + &grouped).unwrap();
    assert_eq!(expected.len(), 200);
    for memory in [0, 10_000, 1 << 30] {
        let options = HistoryOptions { memory, ..HistoryOptions::default() };
        assert_eq!(read_with(header.clone() + &grouped, &options).unwrap(), expected, "{memory}");
        assert_eq!(read_with(header.clone() + &interleaved, &options).unwrap(), expected, "{memory}");
        let stray = grouped.clone() + &row(0, 100);
        let with_stray = read_with(header.clone() + &stray, &options).unwrap();
        assert_eq!((with_stray.len(), &with_stray[1..]), (200, &expected[1..]), "{memory}");
        assert_eq!(with_stray[0].1.len(), expected[0].1.len() + 1, "{memory}");
    }
}

#[test]
fn ids_are_what_a_log_takes_them_for() {
    // Spaces belong to an id, in training and in serving.
    let spaced = Ids::Texts(vec![" tent".into(), "mug ".into(), "tent".into()]);
    let (_folder, path) = write("user_id,item_id\nann, tent\nann,mug \nann,mug\n bob,tent\n");
    let histories = read_file(&path, &spaced, &HistoryOptions::default()).unwrap();
    let expected = [shown("ann", &[" tent", "mug "], &[], 1), shown(" bob", &["tent"], &[], 0)];
    assert_eq!(histories, expected);
    // A cell's list too, where spaces that nobody knows are passed over.
    let (_folder, path) = write("user_id,history\nann,\" tent,mug , tent ,lamp\"\n");
    let histories = read_file(&path, &spaced, &HistoryOptions::default()).unwrap();
    assert_eq!(histories, [shown("ann", &[" tent", "mug ", "tent"], &[], 1)]);
    // RecBole separates by spaces.
    let words = "user_id:token\titem_id_list:token_seq\nann\ttent mug rope\n";
    assert_eq!(read(words).unwrap(), [shown("ann", &["tent", "mug"], &[], 1)]);
    // Users have one type, that of the first.
    let mixed = "user_id,item_id\n1,tent\nx,mug\n";
    let message = read(mixed).unwrap_err();
    assert!(message.contains("line 3, column \"user_id\"") && message.contains("integer"), "{message}");
    let strings = told(ReadOptions { user_type: IdType::String, ..ReadOptions::default() });
    assert_eq!(read_with(mixed, &strings).unwrap().len(), 2);
}

#[test]
fn a_first_row_of_ids_is_not_a_header() {
    for (content, user, item) in
        [("ann,book\n", "ann", "book"), ("u,tent\n", "u", "tent"), ("ann,game\nbob,tent\n", "ann", "game")]
    {
        assert_eq!(read(content).unwrap()[0], shown(user, &[item], &[], 0), "{content}");
        // Nor in a log.
        let (_folder, path) = write(content);
        let (log, _) = read_log(&[path], &ReadOptions::default(), &()).unwrap();
        assert_eq!(log.rows().len(), content.lines().count(), "{content}");
    }
    let headless = told(ReadOptions { header: Some(false), ..ReadOptions::default() });
    assert_eq!(read_with("user,item\n", &headless).unwrap(), [shown("user", &[], &[], 1)]);
    let headed =
        told(ReadOptions { header: Some(true), item_column: Some("book".into()), ..ReadOptions::default() });
    assert_eq!(read_with("user,book\nann,tent\n", &headed).unwrap(), [shown("ann", &["tent"], &[], 0)]);
    let asked = HistoryOptions { history_column: Some("what".into()), ..HistoryOptions::default() };
    assert_eq!(
        read_with("user;what\nann;tent,mug\n", &asked).unwrap(),
        [shown("ann", &["tent", "mug"], &[], 0)]
    );
}

#[test]
fn times_are_those_of_logs() {
    // 10:00+02:00 is before 09:00Z, and 9 before 10.
    let zones = "user_id,item_id,time\nann,tent,2024-05-01T09:00:00Z\nann,mug,2024-05-01T10:00:00+02:00\n";
    assert_eq!(read(zones).unwrap(), [shown("ann", &["mug", "tent"], &[], 0)]);
    let same = "user_id,item_id,time\nann,tent,2024-05-01T09:00:00Z\nann,mug,2024-05-01T11:00:00+02:00\n";
    assert_eq!(read(same).unwrap(), [shown("ann", &["tent", "mug"], &[1], 0)]);
    assert_eq!(read("ann,tent,10\nann,mug,9\n").unwrap(), [shown("ann", &["mug", "tent"], &[], 0)]);
    for (content, part) in [
        ("user_id,item_id,time\nann,tent,nan\n", "line 2, column \"time\""),
        ("user_id,item_id,time\nann,tent,soon\n", "a time"),
        ("ann,tent,1500000000\nann,mug,1500000000000\n", "milliseconds"),
    ] {
        let message = read(content).unwrap_err();
        assert!(message.contains(part), "{content}: {message}");
    }
    let ordered = told(ReadOptions { order_is_time: true, ..ReadOptions::default() });
    let rows = "user_id,item_id,time\nann,tent,10\nann,mug,10\n";
    assert_eq!(read_with(rows, &ordered).unwrap(), [shown("ann", &["tent", "mug"], &[], 0)]);
}

#[test]
fn bad_rows_are_named_or_skipped_and_counted() {
    let content = "{\"user_id\": 1, \"history\": [\"tent\"]}\n{\"user_id\": 2, \"history\": [null]}\n\
                   {\"user_id\": 3, \"history\": [1.5]}\n{\"user_id\": 4, \"history\": null}\n";
    let message = read(content).unwrap_err();
    assert!(message.contains("line 2") && message.contains("null"), "{message}");
    let (_folder, path) = write(content);
    let options = told(ReadOptions { skip_bad_rows: 2, ..ReadOptions::default() });
    let catalog = catalog();
    let mut histories = UserHistories::open(&path, &catalog, &options, &()).unwrap();
    assert_eq!(
        histories.by_ref().map(|user| user.unwrap().user.as_id().to_string()).collect::<Vec<_>>(),
        ["1", "4"]
    );
    assert_eq!(histories.skipped_rows(), 2);
    assert!(histories.skipped_messages()[0].contains("line 2"));
    for (content, part) in [
        ("user_id,item_id\nann,\n", "line 2, column \"item_id\""),
        ("{\"user_id\": 1, \"item_id\": null}\n", "null"),
        ("{\"user_id\": 1, \"history\": [true]}\n", "boolean"),
        ("{\"user_id\": 1, \"history\": [\"\"]}\n", "empty"),
    ] {
        let message = read(content).unwrap_err();
        assert!(message.contains(part), "{content}: {message}");
    }
}

#[test]
fn lists_of_a_json_file_are_histories() {
    let objects = "[\n  {\"user_id\": \"ann\", \"history\": [\"tent\", [\"mug\", \"stove\"]]},\n  \
                   {\"user_id\": \"bob\", \"history\": []}\n]\n";
    let expected = [shown("ann", &["tent", "mug", "stove"], &[2], 0), shown("bob", &[], &[], 0)];
    assert_eq!(read(objects).unwrap(), expected);
    let expected = [shown("1", &["tent", "mug"], &[], 0), shown("2", &["lamp"], &[], 1)];
    assert_eq!(read("[[\"tent\",\"mug\"],[\"lamp\",\"rope\"]]").unwrap(), expected);
    // One endless line of rows, too.
    let row = |at: u32| format!("{{\"user\":{},\"item\":\"tent\"}},", at / 4);
    let rows = (0..400_000).map(row).collect::<Vec<_>>().concat();
    assert!(rows.len() > 9 << 20);
    let rows = format!("[{}{{\"user\":100000,\"item\":\"mug\"}}]", rows.repeat(2));
    let histories = read(&rows).unwrap();
    assert_eq!((histories.len(), histories[7].1.len()), (100_001, 8));
    for (content, part) in [
        ("[\"tent\", \"mug\"]", "a history such as {\"user_id\""),
        ("[[\"tent\"]\n", "the end of the file"),
        ("[[\"tent\"]]\n[[\"mug\"]]\n", "line 2: expected nothing after the end of the list"),
    ] {
        let message = read(content).unwrap_err();
        assert!(message.contains(part), "{content}: {message}");
    }
    // A log may come as a list as well.
    let (_folder, path) =
        write("[{\"user\": 1, \"item\": 2, \"time\": 30},\n {\"user\": 1, \"item\": 3, \"time\": 31}]");
    assert_eq!(read_log(&[path], &ReadOptions::default(), &()).unwrap().0.rows().len(), 2);
}

#[test]
fn parquet_lists_are_ids_or_baskets_and_nothing_else() {
    let mut baskets = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for basket in [&["tent"][..], &["mug", "stove"], &[], &["rope", "lamp"]] {
        for item in basket {
            baskets.values().values().append_value(item);
        }
        baskets.values().append(true);
    }
    baskets.append(true);
    baskets.append(false);
    let content = parquet(vec![("user_id", users(2)), ("history", Arc::new(baskets.finish()))]);
    let expected = [shown("1", &["tent", "mug", "stove", "lamp"], &[2], 1), shown("2", &[], &[], 0)];
    assert_eq!(read(content).unwrap(), expected);

    let integers = Ids::Integers(vec![3, 5]);
    let mut lists = ListBuilder::new(Int64Builder::new());
    lists.append_value([Some(5), Some(3), Some(9)]);
    let (_folder, path) = write(parquet(vec![("user_id", users(1)), ("history", Arc::new(lists.finish()))]));
    assert_eq!(
        read_file(&path, &integers, &HistoryOptions::default()).unwrap(),
        [shown("1", &["5", "3"], &[], 1)]
    );

    let mut doubles = ListBuilder::new(Float64Builder::new());
    doubles.append_value([Some(5.0)]);
    let mut truths = ListBuilder::new(BooleanBuilder::new());
    truths.append_value([Some(true)]);
    let odd: [ArrayRef; 3] = [Arc::new(doubles.finish()), Arc::new(truths.finish()), users(1)];
    for column in odd {
        let message = read(parquet(vec![("user_id", users(1)), ("history", column)])).unwrap_err();
        assert!(message.contains("expected lists of integers or strings"), "{message}");
    }
    let mut nulls = ListBuilder::new(StringBuilder::new());
    nulls.append_value([Some("tent"), None]);
    let message =
        read(parquet(vec![("user_id", users(1)), ("history", Arc::new(nulls.finish()))])).unwrap_err();
    assert!(message.contains("row 1") && message.contains("null at place 2 of the list"), "{message}");
    let written: ArrayRef = Arc::new(StringArray::from(vec!["tent,mug+stove", "[\"lamp\"]"]));
    let expected = [shown("1", &["tent", "mug", "stove"], &[2], 0), shown("2", &["lamp"], &[], 0)];
    assert_eq!(read(parquet(vec![("user_id", users(2)), ("history", written)])).unwrap(), expected);
}

/// The most memory this process ever had, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A few kilobytes that stand for gigabytes of text, in rows and in lists.
#[cfg(target_os = "linux")]
#[test]
fn a_dictionary_is_not_spelled_out() {
    const ROWS: i64 = 16_000;
    let long = "x".repeat(100_000);
    let mut items = StringDictionaryBuilder::<Int32Type>::new();
    let mut lists = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    for row in 0..ROWS {
        items.append_value(if row % 2 == 0 { "tent" } else { &long });
        for _ in 0..5 {
            lists.values().append_value(&long);
        }
        lists.append(true);
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    assert_eq!(lists.len(), ROWS as usize);
    let rows = parquet(vec![("user_id", users(ROWS)), ("item_id", Arc::new(items.finish()))]);
    let whole = parquet(vec![("user_id", users(ROWS)), ("history", lists)]);
    let before = peak_memory();
    assert!(rows.len() < 1 << 20 && whole.len() < 1 << 20);
    assert_eq!(read(rows).unwrap().len(), ROWS as usize);
    assert_eq!(read(whole).unwrap().iter().map(|history| history.3).sum::<usize>(), 5 * ROWS as usize);
    let grown = peak_memory() - before;
    // Other tests of this file run beside this one.
    assert!(grown < 512 << 20, "{} MiB", grown >> 20);
}

#[cfg(unix)]
#[test]
fn parquet_through_a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let content = parquet(vec![("user_id", users(1)), ("item_id", users(1))]);
    for reads_log in [false, true] {
        // A pipe for each: the reader of the first may still have it open when the second is written.
        let pipe = folder.path().join(if reads_log { "log" } else { "histories" });
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (to, content) = (pipe.clone(), content.clone());
        let writer = std::thread::spawn(move || fs::write(to, content));
        let message = if reads_log {
            let options = ReadOptions { order_is_time: true, ..ReadOptions::default() };
            read_log(std::slice::from_ref(&pipe), &options, &()).unwrap_err().to_string()
        } else {
            read_file(&pipe, &catalog(), &HistoryOptions::default()).unwrap_err().to_string()
        };
        assert!(message.contains("save it to a file"), "{message}");
        // The writer may have been cut off.
        let _ = writer.join().unwrap();
    }
}

#[test]
fn a_history_from_events_is_that_from_a_file() {
    let catalog = catalog();
    let events = [("stove", 20), ("tent", 10), ("rope", 15), ("mug", 20)];
    let made = OwnedHistory::from_events(&catalog, events.map(|(id, time)| (Id::Text(id), Timestamp(time))));
    let rows: Vec<String> = events.iter().map(|(item, time)| format!("ann,{item},{time}\n")).collect();
    let (_folder, path) = write(rows.concat());
    let mut read = UserHistories::open(&path, &catalog, &HistoryOptions::default(), &()).unwrap();
    assert_eq!(read.next().unwrap().unwrap().history, made);
    assert_eq!(made.items(), [5, 4, 3].map(ItemIndex));
    assert_eq!(made.with_previous(), [false, false, true]);
}
