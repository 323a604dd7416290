//! Events written in every raw format, and the log they should be.

// Each test file takes what it needs.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, Date64Array, Float32Array, Float64Array, Int32Array, Int64Array,
    LargeStringArray, RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt64Array,
};
use satf::data::Format;
use satf::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    Integer(i64),
    Text(String),
}

#[derive(Clone, Debug)]
pub struct Event {
    pub user: Id,
    pub item: Id,
    /// Days since 1970: what a date can say.
    pub day: i64,
}

pub fn event(user: Id, item: Id, day: i64) -> Event {
    Event { user, item, day }
}

impl Event {
    fn seconds(&self) -> i64 {
        self.day * 86_400
    }

    fn date(&self) -> String {
        let epoch = jiff::civil::date(1970, 1, 1);
        (epoch + jiff::Span::new().days(self.day)).to_string()
    }
}

/// The log of the events, by the slow and obvious way.
pub fn expected(events: &[Event]) -> Interactions {
    fn ids(ids: BTreeSet<&Id>) -> (Vec<&Id>, Ids) {
        let sorted: Vec<&Id> = ids.into_iter().collect();
        let ids = match sorted[0] {
            Id::Integer(_) => Ids::Integers(
                sorted.iter().map(|id| if let Id::Integer(id) = id { *id } else { unreachable!() }).collect(),
            ),
            Id::Text(_) => Ids::Texts(
                sorted
                    .iter()
                    .map(|id| if let Id::Text(id) = id { id.as_str().into() } else { unreachable!() })
                    .collect(),
            ),
        };
        (sorted, ids)
    }
    let (users, user_ids) = ids(events.iter().map(|event| &event.user).collect());
    let (items, item_ids) = ids(events.iter().map(|event| &event.item).collect());
    let rows = events
        .iter()
        .map(|event| Interaction {
            user: UserIndex(users.iter().position(|&id| *id == event.user).unwrap() as u32),
            item: ItemIndex(items.iter().position(|&id| *id == event.item).unwrap() as u32),
            time: Timestamp::from_seconds(event.seconds()),
        })
        .collect();
    Interactions::from_indexed(user_ids, item_ids, rows, Clock::Calendar)
}

/// The events as a file of a raw format (ids must be such that the format can hold them).
pub fn raw(format: Format, events: &[Event]) -> Vec<u8> {
    let mut text = String::new();
    for event in events {
        let (user, item, seconds) = (&event.user, &event.item, event.seconds());
        match format {
            Format::MovieLens => writeln!(text, "{}::{}::5::{seconds}", plain(user), plain(item)),
            // Pairs cannot hold spaces.
            Format::SasRec => {
                writeln!(text, "{} {}", plain(user).replace(' ', "_"), plain(item).replace(' ', "_"))
            }
            Format::Amazon => writeln!(
                text,
                "{{\"reviewerID\": {}, \"helpful\": [0, {{}}], \"asin\": {}, \"unixReviewTime\": {seconds}}}",
                json(user),
                json(item)
            ),
            Format::JsonLines => writeln!(
                text,
                "{{\"item\":{},\"text\":\"\\\"{{\",\"date\":\"{}\",\"user\":{}}}",
                json(item),
                event.date(),
                json(user)
            ),
            Format::Steam => writeln!(
                text,
                "{{u'username': {}, u'hours': 0.1, u'text': u'it\\'s', u'product_id': {}, u'date': u'{}'}}",
                python(user),
                python(item),
                event.date()
            ),
            Format::Csv | Format::Tsv | Format::RecBole | Format::Parquet => Ok(()),
            other => panic!("no way to write {other}"),
        }
        .unwrap();
    }
    match format {
        Format::Csv => separated(b',', ["rating", "user_id", "timestamp", "item_id"], events),
        Format::Tsv => separated(b'\t', ["rating", "UserId", "Time", "MovieID"], events),
        Format::RecBole => {
            separated(b'\t', ["rating:float", "user_id:token", "timestamp:float", "item_id:token"], events)
        }
        Format::Parquet => {
            let times = Int64Array::from_iter_values(events.iter().map(Event::seconds));
            let users: Vec<&Id> = events.iter().map(|event| &event.user).collect();
            let items: Vec<&Id> = events.iter().map(|event| &event.item).collect();
            parquet_bytes(&id_column(&users), &id_column(&items), &(Arc::new(times) as ArrayRef))
        }
        _ => text.into_bytes(),
    }
}

fn separated(delimiter: u8, header: [&str; 4], events: &[Event]) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    writer.write_record(header).unwrap();
    for event in events {
        let fields = [&plain(&event.user), &event.seconds().to_string(), &plain(&event.item)];
        writer.write_record(["5".as_bytes()].into_iter().chain(fields.map(String::as_bytes))).unwrap();
    }
    writer.into_inner().unwrap()
}

fn plain(id: &Id) -> String {
    match id {
        Id::Integer(id) => id.to_string(),
        Id::Text(id) => id.clone(),
    }
}

fn json(id: &Id) -> String {
    match id {
        Id::Integer(id) => id.to_string(),
        Id::Text(id) => serde_json::to_string(id).unwrap(),
    }
}

/// As `repr` of Python 2 writes it: everything beyond ASCII escaped, double quotes around an apostrophe.
fn python(id: &Id) -> String {
    let Id::Text(id) = id else { return plain(id) };
    let quote = if id.contains('\'') && !id.contains('"') { '"' } else { '\'' };
    let mut text = format!("u{quote}");
    for character in id.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if character == quote => write!(text, "\\{quote}").unwrap(),
            ' '..='~' => text.push(character),
            '\0'..='\u{ff}' => write!(text, "\\x{:02x}", character as u32).unwrap(),
            '\u{100}'..='\u{ffff}' => write!(text, "\\u{:04x}", character as u32).unwrap(),
            _ => write!(text, "\\U{:08x}", character as u32).unwrap(),
        }
    }
    text.push(quote);
    text
}

fn id_column(ids: &[&Id]) -> ArrayRef {
    match ids[0] {
        Id::Integer(_) => Arc::new(Int64Array::from_iter_values(
            ids.iter().map(|id| if let Id::Integer(id) = id { *id } else { unreachable!() }),
        )),
        Id::Text(_) => Arc::new(StringArray::from_iter_values(ids.iter().map(|id| plain(id)))),
    }
}

/// A Parquet file of three columns.
pub fn parquet_bytes(users: &ArrayRef, items: &ArrayRef, times: &ArrayRef) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(
        [("time", times), ("user", users), ("item", items)].map(|(n, c)| (n, c.clone())),
    )
    .unwrap();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// The same small integers as columns of several types.
pub fn integer_columns(values: &[i64]) -> Vec<ArrayRef> {
    vec![
        Arc::new(Int64Array::from_iter_values(values.iter().copied())),
        Arc::new(Int32Array::from_iter_values(values.iter().map(|&value| value as i32))),
        Arc::new(UInt8Array::from_iter_values(values.iter().map(|&value| value as u8))),
        Arc::new(UInt64Array::from_iter_values(values.iter().map(|&value| value as u64))),
    ]
}

/// The same texts as columns of several types.
pub fn text_columns(values: &[&str]) -> Vec<ArrayRef> {
    let mut dictionary = StringDictionaryBuilder::<Int32Type>::new();
    dictionary.extend(values.iter().map(|&value| Some(value)));
    vec![
        Arc::new(StringArray::from_iter_values(values)),
        Arc::new(LargeStringArray::from_iter_values(values)),
        Arc::new(StringViewArray::from_iter_values(values)),
        Arc::new(BinaryArray::from_iter_values(values)),
        Arc::new(dictionary.finish()),
    ]
}

/// The same days as columns of several types.
pub fn time_columns(days: &[i64]) -> Vec<ArrayRef> {
    const DAY: i64 = 86_400;
    let scaled = |scale: i64| days.iter().map(move |&day| day * DAY * scale);
    vec![
        Arc::new(Int64Array::from_iter_values(scaled(1))),
        Arc::new(Float64Array::from_iter_values(scaled(1).map(|seconds| seconds as f64))),
        Arc::new(Float32Array::from_iter_values(scaled(1).map(|seconds| seconds as f32))),
        Arc::new(TimestampSecondArray::from_iter_values(scaled(1))),
        Arc::new(TimestampMillisecondArray::from_iter_values(scaled(1_000))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(scaled(1_000_000)).with_timezone("+02:00")),
        Arc::new(TimestampNanosecondArray::from_iter_values(scaled(1_000_000_000))),
        Arc::new(Date32Array::from_iter_values(days.iter().map(|&day| day as i32))),
        Arc::new(Date64Array::from_iter_values(scaled(1_000))),
        Arc::new(StringArray::from_iter_values(
            days.iter().map(|&day| event(Id::Integer(0), Id::Integer(0), day).date()),
        )),
        Arc::new(StringArray::from_iter_values(scaled(1).map(|seconds| seconds.to_string()))),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    /// Two members one after the other, split in the middle of the text.
    GzipMembers,
    Zstd,
}

impl Compression {
    pub const ALL: [Compression; 4] =
        [Compression::None, Compression::Gzip, Compression::GzipMembers, Compression::Zstd];

    pub fn pack(self, content: &[u8]) -> Vec<u8> {
        match self {
            Compression::None => content.to_vec(),
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Compression::GzipMembers => {
                let (first, second) = content.split_at(content.len() / 2);
                [Compression::Gzip.pack(first), Compression::Gzip.pack(second)].concat()
            }
            Compression::Zstd => zstd::encode_all(content, 1).unwrap(),
        }
    }
}
