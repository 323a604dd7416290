//! What holds of the readers for any log and any bytes.

#![allow(clippy::unwrap_used)]

mod logs;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use logs::{Compression, Event, Id, event, expected, raw};
use proptest::prelude::*;
use satf::data::{DataError, Format, IdType, LogFormat, ReadOptions, ReadReport, read_log, write_log};
use satf::interactions::{Clock, Interaction, Interactions};

fn read(content: &[u8], options: &ReadOptions) -> Result<(Interactions, ReadReport), DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, content).unwrap();
    read_log(&[path], options, &())
}

fn read_path(path: &Path, options: &ReadOptions) -> Interactions {
    read_log(&[path.to_owned()], options, &()).unwrap_or_else(|error| panic!("{error}")).0
}

/// Characters that mean something in one format or another, and some that should not.
fn nasty_character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => prop::sample::select("\"',;|:\\{}[]ux0123456789-+.eE #/\t\u{feff}\u{a0}é€😀".chars().collect::<Vec<_>>()),
        1 => prop::sample::select(vec!['\n', '\r', '\u{85}', '\u{2028}', '\u{1}', '\u{7f}']),
        3 => prop::char::range('a', 'f'),
        1 => any::<char>().prop_filter("NUL is no text", |&character| character != '\0'),
    ]
}

fn nasty_id() -> impl Strategy<Value = String> {
    prop::collection::vec(nasty_character(), 1..7).prop_map(|characters| characters.into_iter().collect())
}

fn nasty_events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((nasty_id(), nasty_id(), -1000i64..40_000), 1..12).prop_map(|rows| {
        rows.into_iter().map(|(user, item, day)| event(Id::Text(user), Id::Text(item), day)).collect()
    })
}

/// The events with ids made such that the format can hold them.
fn fitted(format: Format, events: &[Event]) -> Vec<Event> {
    let fit = |id: &Id| {
        let Id::Text(text) = id else { return id.clone() };
        let kept: String = match format {
            Format::MovieLens => text.chars().filter(|character| !":\n\r".contains(*character)).collect(),
            Format::SasRec => text.chars().filter(|character| !character.is_ascii_whitespace()).collect(),
            _ => text.clone(),
        };
        // The format's own name keeps it from being empty, or blank, or a byte-order mark at the start.
        if kept == *text { id.clone() } else { Id::Text(format!("{format}{kept}")) }
    };
    let mut events: Vec<Event> = events
        .iter()
        .map(|event| Event { user: fit(&event.user), item: fit(&event.item), day: event.day })
        .collect();
    if let (Format::MovieLens | Format::SasRec, Id::Text(first)) = (format, &events[0].user)
        && first.starts_with('\u{feff}')
    {
        events[0].user = Id::Text(format!("_{first}"));
    }
    events
}

/// The same users and items with other rows.
fn with_rows(log: &Interactions, rows: Vec<Interaction>, clock: Clock) -> Interactions {
    Interactions::from_indexed(Arc::clone(log.users()), Arc::clone(log.items()), rows, clock)
}

fn as_strings(format: Option<Format>) -> ReadOptions {
    ReadOptions { format, user_type: IdType::String, item_type: IdType::String, ..ReadOptions::default() }
}

proptest! {
    // A prepared log waits for the disk, so fewer of them.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_log_survives_preparation(events in nasty_events(), micros in prop::collection::vec(any::<i32>(), 12)) {
        let folder = tempfile::tempdir().unwrap();
        let whole = expected(&events);
        let mut rows = whole.rows().to_vec();
        for (row, micros) in rows.iter_mut().zip(micros) {
            row.time.0 += i64::from(micros);
        }
        let parts = with_rows(&whole, rows, whole.clock());
        for log in [whole, parts] {
            let path = folder.path().join("log");
            write_log(&log, &path, LogFormat::Parquet, &()).unwrap();
            prop_assert_eq!(&read_path(&path, &ReadOptions::default()), &log);
            write_log(&log, &path, LogFormat::Csv, &()).unwrap();
            prop_assert_eq!(&read_path(&path, &as_strings(None)), &log);
        }
    }
}

proptest! {
    #[test]
    fn any_id_survives_every_format(events in nasty_events()) {
        for format in Format::ALL {
            let events = fitted(format, &events);
            let (log, _) = read(&raw(format, &events), &as_strings(Some(format)))
                .unwrap_or_else(|error| panic!("{format}: {error}"));
            let mut expected = expected(&events);
            if format == Format::SasRec {
                prop_assert_eq!(log.users(), expected.users());
                let mut rows = expected.rows().to_vec();
                for (at, row) in rows.iter_mut().enumerate() {
                    row.time.0 = at as i64;
                }
                expected = with_rows(&expected, rows, log.clock());
            }
            prop_assert_eq!(log, expected, "{}", format);
        }
    }

    #[test]
    fn bad_rows_are_counted_exactly(rows in prop::collection::vec(any::<Option<u8>>(), 1..40), spare in 0u64..3) {
        let mut text = String::from("user,item,time\n1,1,1\n");
        for (at, row) in rows.iter().enumerate() {
            match row {
                Some(user) => writeln!(text, "{user},{at},{}", at + 1).unwrap(),
                None => text.push_str(["x,1,1\n", "1,1\n", "1,,1\n", "1,1,never\n", "1,1,\0\n"][at % 5]),
            }
        }
        let bad = rows.iter().filter(|row| row.is_none()).count() as u64;
        let skip = |skip_bad_rows| {
            read(text.as_bytes(), &ReadOptions { skip_bad_rows, ..ReadOptions::default() })
        };
        let (log, report) = skip(bad + spare).unwrap();
        prop_assert_eq!(report.skipped_rows, bad);
        prop_assert_eq!(report.skipped_messages.len() as u64, bad.min(5));
        prop_assert_eq!(log.rows().len() as u64, 1 + rows.len() as u64 - bad);
        match bad {
            0 => {}
            1 => prop_assert!(matches!(skip(0), Err(DataError::BadRow { .. })), "a bad row is an error"),
            _ => {
                let error = skip(bad - 1).unwrap_err();
                let is_exact = matches!(error, DataError::TooManyBadRows { allowed, .. } if allowed == bad - 1);
                prop_assert!(is_exact, "{}", error);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..400),
            prop::collection::vec(prop::sample::select(b"{}[]()'\":,;|\t\n\r \\ux0129eE-+.::\0\xff".to_vec()), 0..200),
        ],
        skip_bad_rows in prop::sample::select(vec![0, 1000]),
    ) {
        let magics: [&[u8]; 4] = [b"", b"\x1F\x8B\x08\x00", b"\x28\xB5\x2F\xFD", b"PAR1"];
        for magic in magics {
            let folder = tempfile::tempdir().unwrap();
            let paths = [folder.path().join("log")];
            fs::write(&paths[0], [magic, &bytes].concat()).unwrap();
            for format in Format::ALL.map(Some).into_iter().chain([None]) {
                let _ = read_log(&paths, &ReadOptions { format, skip_bad_rows, ..ReadOptions::default() }, &());
            }
        }
    }

    #[test]
    fn damaged_files_never_panic(
        format in prop::sample::select(Format::ALL.to_vec()),
        compression in prop::sample::select(Compression::ALL.to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let events: Vec<Event> = (0..50)
            .map(|at| event(Id::Text(format!("user {}", at % 7)), Id::Text(format!("item {}", at % 5)), at))
            .collect();
        let mut content = compression.pack(&raw(format, &events));
        for (at, byte) in damage {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if let Some(cut) = cut {
            content.truncate(cut.index(content.len()));
        }
        for format in [None, Some(format)] {
            let _ = read(&content, &ReadOptions { format, skip_bad_rows: 1000, ..ReadOptions::default() });
        }
    }
}
