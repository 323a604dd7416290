//! Safetensors, as much of the format as model files and checkpoints need.
//!
//! ```text
//! 8 bytes     length of the header, little-endian
//! header      {"__metadata__":{"<key>":"<text>",...},"<tensor>":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
//! values      of all tensors, one after the other, without gaps
//! ```
//!
//! Whatever a file says is checked against what it holds: tensors lie one behind the other from the first byte after the header to the
//! last of the file, and each has the bytes that its shape needs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::byte_size::ByteSize;
use crate::fault::excerpt;
use crate::models::{StoredTensor, TensorType};
use crate::unique_keys;

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SafetensorsError {
    /// The file ends before its header does.
    #[error("it ends within its header")]
    Cut,
    /// The header is not what the format has there.
    #[error("its header: {0}")]
    Header(String),
    /// A tensor that is not where or what it should be.
    #[error("tensor '{}' {reason}", excerpt(name))]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// Texts by key.
    pub metadata: HashMap<String, String>,
    /// Tensors by name.
    pub tensors: BTreeMap<String, StoredTensor<'a>>,
}

/// The header of a file, not checked against its values yet. Every name is there once.
pub(super) struct Header {
    pub(super) metadata: HashMap<String, String>,
    tensors: BTreeMap<String, Place>,
}

/// The key of the texts among the names of tensors.
const METADATA: &str = "__metadata__";

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;
        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Header, A::Error> {
                let (mut metadata, mut tensors) = (None, BTreeMap::new());
                while let Some(name) = entries.next_key::<String>()? {
                    if name == METADATA {
                        let Texts(texts) = entries.next_value()?;
                        if metadata.replace(texts).is_some() {
                            return Err(unique_keys::repeated(METADATA));
                        }
                        continue;
                    }
                    match tensors.entry(name) {
                        Entry::Occupied(known) => return Err(unique_keys::repeated(known.key())),
                        Entry::Vacant(free) => free.insert(entries.next_value()?),
                    };
                }
                Ok(Header { metadata: metadata.unwrap_or_default(), tensors })
            }
        }
        deserializer.deserialize_map(HeaderVisitor)
    }
}

/// Texts by key.
#[derive(serde::Deserialize)]
struct Texts(#[serde(deserialize_with = "unique_keys::map")] HashMap<String, String>);

#[derive(serde::Deserialize)]
struct Place {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl Place {
    /// The type of a tensor that has as many bytes as its shape needs.
    fn check(&self, name: &str) -> Result<TensorType, SafetensorsError> {
        let fault = |reason: String| SafetensorsError::Tensor { name: name.to_owned(), reason };
        let kind = TensorType::ALL.into_iter().find(|kind| kind.name() == self.dtype);
        let kind = kind.ok_or_else(|| fault(format!("is of type {}", excerpt(&self.dtype))))?;
        let (begin, end) = self.data_offsets;
        let len = end.saturating_sub(begin);
        let needed = self.shape.iter().try_fold(kind.size(), |size, extent| size.checked_mul(*extent));
        if needed != Some(len) {
            return Err(fault(format!("of shape {:?} has {}", self.shape, ByteSize(len as u64))));
        }
        Ok(kind)
    }
}

/// A tensor at the end of a file: its type, its shape, and where it lies among the values.
#[derive(Clone, Debug)]
pub(super) struct LastTensor {
    pub(super) name: &'static str,
    pub(super) kind: TensorType,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

/// The texts and tensors of a file. Nothing is copied but the header.
pub fn parse(file: &[u8]) -> Result<Content<'_>, SafetensorsError> {
    let (length, rest) = file.split_first_chunk::<8>().ok_or(SafetensorsError::Cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (header, values) = rest.split_at_checked(length).ok_or(SafetensorsError::Cut)?;
    Header::parse(header)?.content(values)
}

impl Header {
    pub(super) fn parse(header: &[u8]) -> Result<Self, SafetensorsError> {
        serde_json::from_slice(header).map_err(|error| SafetensorsError::Header(error.to_string()))
    }

    /// The tensors, each where it lies in the values.
    pub(super) fn content(self, values: &[u8]) -> Result<Content<'_>, SafetensorsError> {
        check_order(&self.tensors, values.len())?;
        self.content_of(values)
    }

    /// Takes the tensors with these names out, which stand in this order at the end of `room` bytes of values; none if there are none of
    /// them. Says where they begin.
    pub(super) fn take_last(
        &mut self,
        names: &[&'static str],
        room: usize,
    ) -> Result<(Vec<LastTensor>, usize), SafetensorsError> {
        check_order(&self.tensors, room)?;
        let mut taken = Vec::new();
        for &name in names {
            let Some(place) = self.tensors.remove(name) else { continue };
            let kind = place.check(name)?;
            let (begin, end) = place.data_offsets;
            taken.push(LastTensor { name, kind, shape: place.shape, range: begin..end });
        }
        let first = taken.first().map_or(room, |tensor| tensor.range.start);
        let is_last = self.tensors.values().all(|place| place.data_offsets.1 <= first);
        if !is_last || !taken.is_sorted_by_key(|tensor| (tensor.range.start, tensor.range.end)) {
            return Err(SafetensorsError::Header("its statistics are not at the end".to_owned()));
        }
        Ok((taken, first))
    }

    /// The same of tensors whose order is known to be right.
    pub(super) fn content_of(self, values: &[u8]) -> Result<Content<'_>, SafetensorsError> {
        let tensor = |(name, place): (String, Place)| {
            let kind = place.check(&name)?;
            let bytes = values.get(place.data_offsets.0..place.data_offsets.1);
            let bytes = bytes.ok_or_else(|| SafetensorsError::Tensor {
                name: name.clone(),
                reason: "is not in the file".to_owned(),
            })?;
            Ok((name, StoredTensor { kind, shape: place.shape, bytes }))
        };
        let tensors = self.tensors.into_iter().map(tensor).collect::<Result<_, _>>()?;
        Ok(Content { metadata: self.metadata, tensors })
    }
}

/// Tensors follow each other without gaps, from the first byte to the last.
fn check_order(tensors: &BTreeMap<String, Place>, room: usize) -> Result<(), SafetensorsError> {
    let mut places: Vec<(&String, (usize, usize))> =
        tensors.iter().map(|(name, place)| (name, place.data_offsets)).collect();
    places.sort_unstable_by_key(|(_, offsets)| *offsets);
    let mut expected = 0;
    for (name, (begin, end)) in places {
        let fault = |reason: String| SafetensorsError::Tensor { name: name.clone(), reason };
        if end > room {
            return Err(fault(format!("would end at byte {end} of {room}")));
        }
        if begin != expected || end < begin {
            return Err(fault(format!(
                "lies from byte {begin} to {end}, expected it to begin at {expected}"
            )));
        }
        expected = end;
    }
    if expected == room {
        Ok(())
    } else {
        Err(SafetensorsError::Header(format!("its tensors end at byte {expected} of {room}")))
    }
}

/// A file of these texts and tensors, in this order. The header is padded with spaces to a multiple of eight bytes.
pub fn serialize(metadata: &[(&str, String)], tensors: &[(&str, StoredTensor<'_>)]) -> Vec<u8> {
    let texts: Map<String, Value> =
        metadata.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
    let mut header = Map::new();
    header.insert("__metadata__".to_owned(), Value::Object(texts));
    let mut end = 0;
    for (name, StoredTensor { kind, shape, bytes }) in tensors {
        let begin = end;
        end += bytes.len();
        let place = json!({ "dtype": kind.name(), "shape": shape, "data_offsets": [begin, end] });
        header.insert((*name).to_owned(), place);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = Vec::with_capacity(8 + header.len() + end);
    file.extend((header.len() as u64).to_le_bytes());
    file.extend(header);
    for (_, tensor) in tensors {
        file.extend(tensor.bytes);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, values: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), values].concat()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let view =
            |shape: &[usize], bytes| StoredTensor { kind: TensorType::F32, shape: shape.to_vec(), bytes };
        let tensors = [("b", view(&[2, 1], &[1; 8])), ("a", view(&[0], &[])), ("c", view(&[], &[7; 4]))];
        let written = serialize(&[("key", "\"text\"".to_owned())], &tensors);
        assert_eq!(written.len() % 4, 0);
        let read = parse(&written).unwrap();
        assert_eq!(read.metadata, HashMap::from([("key".to_owned(), "\"text\"".to_owned())]));
        assert_eq!(read.tensors, tensors.map(|(name, view)| (name.to_owned(), view)).into());
        for len in 0..written.len() {
            assert!(parse(&written[..len]).is_err(), "cut at {len}");
        }
        assert!(parse(&[&written[..], b"x"].concat()).is_err());
    }

    #[test]
    fn what_a_file_says_must_be_what_it_holds() {
        let of = |place: &str| file(&format!("{{\"a\":{place}}}"), &[0; 8]);
        assert!(parse(&of(r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#)).is_ok());
        for (place, part) in [
            (r#"{"dtype":"F32","shape":[3],"data_offsets":[0,8]}"#, "has 8 bytes"),
            (r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}"#, "has 8 bytes"),
            (r#"{"dtype":"F32","shape":[2],"data_offsets":[0,80]}"#, "byte 80 of 8"),
            (r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#, "begin at 0"),
            (r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#, "end at byte 4 of 8"),
            (r#"{"dtype":"F32","shape":[1],"data_offsets":[8,0]}"#, "begin at 0"),
            (r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}"#, "header"),
            (r#"{"dtype":"C64","shape":[1],"data_offsets":[0,8]}"#, "of type C64"),
            ("7", "header"),
        ] {
            let message = parse(&of(place)).unwrap_err().to_string();
            assert!(message.contains(part), "{place}: {message}");
        }
        let both = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}"#;
        assert!(parse(&file(both, &[0; 8])).unwrap_err().to_string().contains("tensor 'b'"));
        let place = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
        for (header, name) in [
            (format!(r#"{{"a":{place},"a":{place}}}"#), "a"),
            (format!(r#"{{"__metadata__":{{}},"a":{place},"__metadata__":{{}}}}"#), "__metadata__"),
            (format!(r#"{{"__metadata__":{{"k":"1","k":"2"}},"a":{place}}}"#), "k"),
        ] {
            let message = parse(&file(&header, &[0; 8])).unwrap_err().to_string();
            assert!(message.contains(&format!("the key '{name}' appears twice")), "{header}: {message}");
        }
        assert_eq!(parse(&file("{}", &[])).unwrap(), Content::default());
        assert_eq!(parse(&u64::MAX.to_le_bytes()), Err(SafetensorsError::Cut));
    }
}
