//! Model files: a trained model in one safetensors file that any program with a safetensors reader can open.
//!
//! ```text
//! 8 bytes     length of the header, little-endian
//! header      {"__metadata__":{"checksum":"<64 hexadecimal digits>","format":"satf","format_version":"1",
//!              "manifest":"<the manifest as JSON>"},"<tensor>":{"dtype":..,"shape":..,"data_offsets":..},...}
//! values      of all tensors, little-endian, in the order of the header
//! ```
//!
//! The checksum is the BLAKE3 hash of the whole file with `0` in place of its own digits, which always stand at
//! byte 37. Besides the model's own arrays there are
//!
//! | tensor | what |
//! |---|---|
//! | `item_ids` | the catalogue, if its ids are integers: ascending |
//! | `item_id_bytes`, `item_id_offsets` | the catalogue, if its ids are strings: UTF-8 one after the other, in byte order, and where each begins and ends |
//! | `item_counts` | number of events of every item |
//!
//! Ids of users and times are stored on request only, see below. What else a file holds about users, its model says
//! ([`Recommender::user_data`](crate::models::Recommender::user_data)): sums over all of them, but for `vmis-knn`, which keeps the
//! items of whole histories.
//!
//! # Statistics
//!
//! A model that was trained with statistics has the events of its log at the end of its file, in columns:
//!
//! | tensor | what |
//! |---|---|
//! | `event_user_ids`, or `event_user_id_bytes` and `event_user_id_offsets` | ids of the users, as those of items |
//! | `event_offsets` | where the events of each user begin and end |
//! | `event_items`, `event_times` | the item of every event as its place in the catalogue, and its microseconds since 1970 or row number |
//!
//! The sums of pairs ([`crate::counts`]) are a pure function of these, of the configuration and of the seed, and are counted when
//! they are wanted. Whoever recommends does not need the events. So they are not read then: `statistics.checksum` in the manifest is the
//! BLAKE3 hash of their bytes, and the checksum of the file, which covers the manifest, is that of everything before them. They are
//! checked when they are asked for. Files without statistics are as they ever were.
//!
//! A file is written whole or not at all. It is read through a memory map: lengths are checked against the file
//! before anything is allocated, then the checksum, then every array against type, shape and range. Arrays of values of eight
//! bytes come first, then those of four, two and one, behind a header that is padded to a multiple of eight: so every array is
//! aligned, and a loaded model uses it where it lies in the map. Files whose arrays are not aligned are read too; those arrays are
//! copied.
//!
//! A model that was loaded refers to its file for as long as it lives. **Never change such a file in place**: write another one and
//! rename it over the first, as [`Model::save`](crate::recommend::Model::save) does; processes that have the old one keep it. A file that
//! is cut short or overwritten under a loaded model makes the process end with a bus error, or scores wrong. A process that cannot rule that out
//! loads a copy ([`Model::load_copied`](crate::recommend::Model::load_copied)).

mod catalog;
mod error;
mod foreign;
mod manifest;
mod read;
pub mod safetensors;
mod statistics;
mod write;

pub use error::{ModelFileError, ModelFileHint, StatisticsError};
pub use manifest::{Dataset, Manifest, Validation, content_hash};
pub(crate) use read::{Content, read, read_bytes, read_copied};
pub(crate) use statistics::Events;
pub use statistics::KeptEvents;
pub(crate) use write::{tensors, to_bytes, write};

/// The version of the format that is written.
pub const FORMAT_VERSION: u32 = 1;

/// What the header of every model file begins with.
const HEADER_START: &str = "{\"__metadata__\":{\"checksum\":\"";
/// Hexadecimal digits of the checksum.
const CHECKSUM_DIGITS: usize = 64;
/// Where they stand in the file.
const CHECKSUM_AT: usize = 8 + HEADER_START.len();
/// What the metadata says the file is.
const FORMAT: &str = "satf";

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_stands_where_the_documentation_says() {
        assert_eq!(super::CHECKSUM_AT, 37);
    }
}
