//! Raw logs in every format, packed or not, prepared logs, and rubbish.

#![allow(clippy::unwrap_used)]

mod logs;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use logs::{Compression, Event, Id, event, expected, parquet_bytes, raw};
use satf::data::{
    DataError, Format, IdType, LogFormat, Position, ReadOptions, ReadReport, TimeUnit, read_log, write_log,
};
use satf::interactions::{Clock, Ids, Interactions, Timestamp};
use satf::monitor::Monitor;

/// A file in a folder of its own that goes when the test ends.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Scratch(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

fn read(path: &Path, options: &ReadOptions) -> Result<(Interactions, ReadReport), DataError> {
    read_log(&[path.to_owned()], options, &())
}

fn read_text(content: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Interactions, DataError> {
    let scratch = Scratch::new();
    read(&scratch.file("log", content), options).map(|(log, _)| log)
}

fn message(content: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    read_text(content, options).unwrap_err().to_string()
}

fn events(is_text: bool) -> Vec<Event> {
    let id = |text: &str, number: i64| if is_text { Id::Text(text.into()) } else { Id::Integer(number) };
    vec![
        event(id("bob", 30), id("it's \"7\"", 7), 17_517),
        event(id("Zoë", -4), id("b", 11), 17_500),
        event(id("bob", 30), id("10", 10), 17_517),
        event(id("al|ice", 4), id("it's \"7\"", 7), 1_000),
        event(id("Zoë", -4), id("c;d", 9), 17_518),
    ]
}

#[test]
fn the_same_events_in_every_format_and_packing_are_the_same_log() {
    let scratch = Scratch::new();
    for is_text in [true, false] {
        let events = events(is_text);
        let expected = expected(&events);
        for format in Format::ALL {
            let content = raw(format, &events);
            for compression in Compression::ALL {
                if format == Format::Parquet && compression != Compression::None {
                    continue;
                }
                let path = scratch.file("log", compression.pack(&content));
                let (log, report) =
                    read(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{format}: {error}"));
                assert_eq!(report.files[0].format, format);
                assert_eq!((report.files[0].rows, report.skipped_rows), (5, 0));
                assert_eq!(report.text_bytes, content.len() as u64);
                if format == Format::SasRec {
                    let ordered: Vec<i64> = log.rows().iter().map(|row| row.time.0).collect();
                    assert_eq!((log.clock(), ordered), (Clock::RowOrder, vec![0, 1, 2, 3, 4]));
                    assert_eq!((log.users().len(), log.items().len()), (3, 4));
                } else {
                    assert_eq!(log, expected, "{format} {compression:?}");
                }
                let told = ReadOptions { format: Some(format), ..ReadOptions::default() };
                assert_eq!(read(&path, &told).unwrap().0, log);
            }
        }
    }
}

#[test]
fn several_files_are_one_log() {
    let scratch = Scratch::new();
    let events = events(true);
    let paths = [
        scratch.file("a", raw(Format::Amazon, &events[..2])),
        scratch.file("b", Compression::Zstd.pack(&raw(Format::Csv, &events[2..4]))),
        scratch.file("c", raw(Format::Parquet, &events[4..])),
    ];
    let (log, report) = read_log(&paths, &ReadOptions::default(), &()).unwrap();
    assert_eq!(log, expected(&events));
    let formats: Vec<_> = report.files.iter().map(|file| (file.format, file.rows)).collect();
    assert_eq!(formats, [(Format::Amazon, 2), (Format::Csv, 2), (Format::Parquet, 1)]);

    let pairs = scratch.file("d", "x y\n");
    let error = read_log(&[paths[0].clone(), pairs], &ReadOptions::default(), &()).unwrap_err();
    assert!(matches!(error, DataError::MixedClocks { has_times: false, .. }), "{error}");
}

#[test]
fn headers_delimiters_and_columns_are_found_or_told() {
    let expected = read_text("userid,itemid,timestamp\n1,2,30\n", &ReadOptions::default()).unwrap();
    let auto = ReadOptions::default();
    for content in [
        "1,2,30\n",
        "1\t2\t5\t30",
        "1;2;5.0;30\r\n",
        "\u{feff}Movie-Id|rating|USER|time\n2|5|1|30\n",
        "\n\"time stamp\",\"item\",\"user\"\n\n30,2,1\n\n",
        "item_id:token\ttimestamp:float\tuser_id:token\n2\t30.0\t1\n",
        "user_id,item_id,event_time\n1,2,1970-01-01 00:00:30 UTC\n",
    ] {
        assert_eq!(read_text(content, &auto).unwrap(), expected, "{content}");
    }
    let named = ReadOptions {
        user_column: Some("who".into()),
        item_column: Some("what".into()),
        time_column: Some("when".into()),
        ..ReadOptions::default()
    };
    assert_eq!(read_text("what,when,who\n2,30,1\n", &named).unwrap(), expected);
    assert_eq!(
        read_text("{\"when\": 30, \"who\": 1, \"x\": [{}], \"what\": 2}\n", &named).unwrap(),
        expected
    );
    let numbered = ReadOptions {
        user_column: Some("5".into()),
        item_column: Some("2".into()),
        time_column: Some("1".into()),
        delimiter: Some(b' '),
        ..ReadOptions::default()
    };
    assert_eq!(read_text("30 2 x y 1\n", &numbered).unwrap(), expected);
    let headless = ReadOptions { header: Some(false), ..ReadOptions::default() };
    let log = read_text("user,item,30\n", &headless).unwrap();
    assert_eq!(**log.users(), Ids::Texts(vec!["user".into()]));
    let ordered = ReadOptions { order_is_time: true, ..ReadOptions::default() };
    let log = read_text("user,item,rating\na,b,1\nc,d,2\n", &ordered).unwrap();
    assert_eq!((log.clock(), log.rows()[1].time), (Clock::RowOrder, Timestamp(1)));
}

#[test]
fn ids_keep_their_type_and_spelling() {
    let log = read_text("1,007,30\n2,8,31\n", &ReadOptions::default()).unwrap();
    assert_eq!(**log.users(), Ids::Integers(vec![1, 2]));
    assert_eq!(**log.items(), Ids::Texts(vec!["007".into(), "8".into()]));

    let mixed = "1,2,30\nx,2,30\n";
    let text = message(mixed, &ReadOptions::default());
    for part in ["log, line 2, column 1", "integer", "\"x\"", "user_type string"] {
        assert!(text.contains(part), "{text}");
    }
    let strings = ReadOptions { user_type: IdType::String, ..ReadOptions::default() };
    assert_eq!(**read_text(mixed, &strings).unwrap().users(), Ids::Texts(vec!["1".into(), "x".into()]));

    let json = "{\"user\":\"1\",\"item\":1,\"time\":1}\n{\"user\":2,\"item\":1,\"time\":1}\n";
    let text = message(json, &ReadOptions::default());
    assert!(text.contains("line 2") && text.contains("the number 2") && text.contains("user_type"), "{text}");
    assert_eq!(**read_text(json, &strings).unwrap().users(), Ids::Texts(vec!["1".into(), "2".into()]));
}

#[test]
fn parquet_columns_of_every_type_are_read() {
    let expected = read_text("u,i,t\n1,2,86400\n3,4,172800\n", &ReadOptions::default()).unwrap();
    for users in logs::integer_columns(&[1, 3]) {
        for times in logs::time_columns(&[1, 2]) {
            let content = parquet_bytes(&users, &logs::integer_columns(&[2, 4])[0], &times);
            let log = read_text(content, &ReadOptions::default());
            let log =
                log.unwrap_or_else(|error| panic!("{} {}: {error}", users.data_type(), times.data_type()));
            assert_eq!(log, expected, "{} {}", users.data_type(), times.data_type());
        }
    }
    let texts = read_text("u,i,t\na,2,86400\nb,4,172800\n", &ReadOptions::default()).unwrap();
    for users in logs::text_columns(&["a", "b"]) {
        let content =
            parquet_bytes(&users, &logs::integer_columns(&[2, 4])[0], &logs::time_columns(&[1, 2])[0]);
        assert_eq!(read_text(content, &ReadOptions::default()).unwrap(), texts, "{}", users.data_type());
    }
}

#[test]
fn prepared_logs_read_back_equal() {
    let scratch = Scratch::new();
    let far = format!("u,i,t\n1,2,{}\n3,4,9999-12-31\n", "5200-01-01");
    let row_order = "a b\nc d\na d\n";
    let fraction = "a,b,1500000000.25\n\"x,\n\"\"y\",b,0\na,d,-5\n";
    for content in [far.as_str(), row_order, fraction, "1,2,30\n1,3,0\n7,2,-86400\n"] {
        let log = read_text(content, &ReadOptions::default()).unwrap();
        for (name, format) in [("p", LogFormat::Parquet), ("c", LogFormat::Csv)] {
            let path = scratch.path(name);
            write_log(&log, &path, format, &()).unwrap();
            assert_eq!(read(&path, &ReadOptions::default()).unwrap().0, log, "{format:?} {content}");
        }
    }
    let csv = fs::read_to_string(scratch.path("c")).unwrap();
    assert_eq!(csv, "user_id,item_id,timestamp\n1,2,30\n1,3,0\n7,2,-86400\n");
}

#[test]
fn row_numbers_with_gaps_survive_parquet() {
    let scratch = Scratch::new();
    let log = read_text("a b\nc d\na d\n", &ReadOptions::default()).unwrap();
    let gaps = log.filter(|at, _| at > 0);
    let path = scratch.path("gaps.parquet");
    write_log(&gaps, &path, LogFormat::Parquet, &()).unwrap();
    assert_eq!(read(&path, &ReadOptions::default()).unwrap().0, gaps);
    let (twice, _) = read_log(&[path.clone(), path], &ReadOptions::default(), &()).unwrap();
    assert!(twice.rows().windows(2).all(|pair| pair[0].time < pair[1].time));
}

#[test]
fn rubbish_gives_clear_errors() {
    let auto = ReadOptions::default();
    let seconds = ReadOptions { time_unit: TimeUnit::Seconds, ..ReadOptions::default() };
    let cases: &[(&[u8], &[&str])] = &[
        (b"", &["the file is empty"]),
        (b"\xEF\xBB\xBF", &["no rows"]),
        (b"\n \r\n\n", &["no rows"]),
        (b"userid,itemid,timestamp\n", &["no rows"]),
        (b"word\nword\n", &["cannot tell the format", "\"word\"", "give the format", "movielens, csv"]),
        (b"\xFF\xFEu\0s\0", &["UTF-16"]),
        (b"\x7FELF\0\0\0\x01", &["binary data"]),
        (b"a,b,30\na,b\x00c,30\n", &["line 2", "NUL"]),
        (b"a,b,30\n\xFF,b,30\n", &["line 2, column 1", "UTF-8", "\\xff"]),
        (b"1,2,30\n1,two,30\n", &["line 2, column 2", "\"two\"", "item_type string"]),
        (b"1,2,30\n1,,30\n", &["line 2, column 2", "found nothing"]),
        (b"1,2,30\n1,2\n", &["line 2", "3 columns", "found 2"]),
        (b"1,2,30\n1,2,soon\n", &["line 2, column 3", "a time", "\"soon\""]),
        (b"1,2,30\n1,2,nan\n", &["line 2, column 3", "years 0 to 9999"]),
        (b"1,2,30\n1,2,-70000000000\n", &["line 2, column 3", "years 0 to 9999"]),
        (b"1,2,30\n1,2,2017-12-17\n", &["line 2, column 3", "a number like"]),
        (b"1,2,1500000000\n1,2,1500000000000\n", &["line 1", "line 2", "milliseconds", "time_unit"]),
        (b"1,2,30\n\"1,2,30\n", &["line 2", "closing quote"]),
        (b"user,thing,time\n1,2,3\n", &["item", "\"user\", \"thing\", \"time\"", "item_column"]),
        (b"1::2::3::4\n1::2::3\n", &["line 2", "4 columns"]),
        (b"{\"user\":1,\"item\":null,\"time\":1}\n", &["line 1, column \"item\"", "null"]),
        (b"{\"user\":1,\"item\":1,\"time\":1}\n{\"user\":1}\n", &["line 2, column \"item\"", "nothing"]),
        (b"{\"user\":1,\"item\":1,\"time\":1}\n{\"user\":\n", &["line 2", "a JSON object"]),
        (
            b"{'username': 'a', 'product_id': 'b', 'date': 5, }\n{'username'\n",
            &["line 2", "a Python dictionary"],
        ),
        (b"{'username': 'a', 'product_id': [], 'date': 5}\n", &["line 1", "a list"]),
        (b"PAR1 and then nothing that Parquet knows PAR1", &["Parquet"]),
    ];
    for (content, parts) in cases {
        let text = message(content, &auto);
        for part in *parts {
            assert!(text.contains(part), "{:?}: {text:?} lacks {part:?}", String::from_utf8_lossy(content));
        }
    }
    assert!(message("1,2,1500000000000\n", &seconds).contains("years 0 to 9999"));
    let named = ReadOptions { user_column: Some("userd".into()), ..ReadOptions::default() };
    let text = message("userid,itemid,timestamp\n1,2,3\n", &named);
    assert!(text.contains("\"userd\"") && text.contains("did you mean \"userid\"?"), "{text}");
    assert!(matches!(read_log(&[], &auto, &()), Err(DataError::NoRows { path: None })));
}

#[test]
fn missing_files_and_folders_are_named() {
    let scratch = Scratch::new();
    let missing = read(&scratch.path("missing.csv"), &ReadOptions::default()).unwrap_err();
    assert!(
        matches!(missing, DataError::Io { .. }) && missing.to_string().contains("missing.csv"),
        "{missing}"
    );
    let folder = read(scratch.0.path(), &ReadOptions::default()).unwrap_err();
    assert!(matches!(folder, DataError::Directory { .. }), "{folder}");
}

#[test]
fn truncated_and_corrupt_packed_files_are_told_apart() {
    let mut lines = String::new();
    for at in 0..50_000 {
        writeln!(lines, "{at},{},{}", at * 7 % 1000, at * 31).unwrap();
    }
    for (compression, name) in [(Compression::Gzip, "gzip"), (Compression::Zstd, "zstd")] {
        let packed = compression.pack(lines.as_bytes());
        let error = read_text(&packed[..packed.len() / 2], &ReadOptions::default()).unwrap_err();
        let DataError::Truncated { compression, line, .. } = &error else { panic!("{error}") };
        assert!(*compression == name && (1..50_000).contains(line), "{error}");
        let mut broken = packed.clone();
        let middle = broken.len() / 2;
        broken[middle..middle + 40].fill(0xA5);
        assert!(read_text(&broken, &ReadOptions::default()).is_err());
    }
    let packed = Compression::Gzip.pack(&raw(Format::Parquet, &events(true)));
    assert!(message(packed, &ReadOptions::default()).contains("decompress it first"));
}

#[test]
fn a_parquet_file_cut_short_is_an_error() {
    let content = raw(Format::Parquet, &events(true));
    for length in [4, 8, content.len() / 2, content.len() - 1] {
        assert!(message(&content[..length], &ReadOptions::default()).contains("Parquet"));
    }
}

#[test]
fn endless_lines_are_refused_in_bounded_memory() {
    let mut content = b"a,b,30\n".to_vec();
    content.extend(std::iter::repeat_n(b'x', 100 << 20));
    let packed = Compression::Zstd.pack(&content);
    drop(content);
    let error = read_text(&packed, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, DataError::LineTooLong { line: 2, .. }), "{error}");

    let mut quoted = b"a,b,30\n\"".to_vec();
    quoted.extend(b"many lines,\n".repeat(2 << 20));
    let error = read_text(quoted, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, DataError::LineTooLong { line: 2, .. }), "{error}");
}

#[test]
fn bad_rows_are_skipped_up_to_the_limit() {
    let scratch = Scratch::new();
    let path = scratch.file("log", "1,2,30\nx,2,30\n1,2,soon\n\n1,2\n5,6,31\n");
    let skip = |skip_bad_rows| read(&path, &ReadOptions { skip_bad_rows, ..ReadOptions::default() });
    let (log, report) = skip(3).unwrap();
    assert_eq!((log.rows().len(), report.skipped_rows, report.skipped_messages.len()), (2, 3, 3));
    assert!(report.skipped_messages[2].contains("line 5"), "{:?}", report.skipped_messages);
    let error = skip(2).unwrap_err();
    assert!(matches!(error, DataError::TooManyBadRows { allowed: 2, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("more than 2") && text.contains("line 5"), "{text}");
    assert!(matches!(skip(0).unwrap_err(), DataError::BadRow { position: Position::Line(2), .. }));
}

/// Counts progress; stops after so many questions.
struct Watch {
    total: AtomicU64,
    done: AtomicU64,
    questions_left: Mutex<u64>,
}

impl Watch {
    fn new(questions: u64) -> Self {
        Watch { total: AtomicU64::new(0), done: AtomicU64::new(0), questions_left: Mutex::new(questions) }
    }
}

impl Monitor for Watch {
    fn begin(&self, _stage: &str, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        let mut left = self.questions_left.lock().unwrap();
        *left = left.saturating_sub(1);
        *left == 0
    }
}

#[test]
fn progress_counts_every_byte_on_disk_and_reading_can_be_stopped() {
    let scratch = Scratch::new();
    let events: Vec<Event> =
        (0..20_000).map(|at| event(Id::Integer(at % 70), Id::Integer(at % 90), 1000 + at)).collect();
    for format in Format::ALL {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            if format == Format::Parquet && compression != Compression::None {
                continue;
            }
            let path = scratch.file("log", compression.pack(&raw(format, &events)));
            let size = fs::metadata(&path).unwrap().len();
            let watch = Watch::new(u64::MAX);
            read_log(std::slice::from_ref(&path), &ReadOptions::default(), &watch).unwrap();
            assert_eq!(watch.total.into_inner(), size);
            assert_eq!(watch.done.into_inner(), size, "{format} {compression:?}");
            let error = read_log(&[path], &ReadOptions::default(), &Watch::new(3)).unwrap_err();
            assert!(matches!(error, DataError::Cancelled(_)), "{error}");
        }
    }
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let scratch = Scratch::new();
    let path = scratch.file("log.csv", "old");
    let failed: std::io::Result<()> = satf::data::write_atomically(&path, |writer| {
        std::io::Write::write_all(writer, b"half of the new")?;
        Err(std::io::Error::other("no more"))
    });
    assert!(failed.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(scratch.0.path()).unwrap().count(), 1);
    satf::data::write_atomically(&path, |writer| std::io::Write::write_all(writer, b"new")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");

    let nul = read_text("{\"user\":\"a\\u0000\",\"item\":1,\"time\":1}\n", &ReadOptions::default()).unwrap();
    assert!(write_log(&nul, &path, LogFormat::Csv, &()).unwrap_err().to_string().contains("NUL"));
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let nowhere = scratch.path("nowhere/log.csv");
    assert!(matches!(write_log(&nul, &nowhere, LogFormat::Parquet, &()), Err(DataError::Write { .. })));
}
