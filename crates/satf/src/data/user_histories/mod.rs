//! Histories to recommend for, one after the other: any number of them, never held at once.
//!
//! | format | a history is |
//! |---|---|
//! | JSON lines | `{"user_id": "ann", "history": ["tent", "sleeping bag"]}`, oldest item first |
//! | CSV with a column `history` | `ann,"tent,sleeping bag"`, or a JSON list where ids have commas |
//! | CSV with a column `item_id` | the rows of one user, which stand together, oldest first; a column of times is used if there is one |
//! | Parquet | a row with a list in the column `history`, or rows of `user_id` and `item_id` as in CSV |
//!
//! Items taken at one and the same time are rows with equal times, or a list within a JSON list: `["tent", ["mug", "stove"]]`. Models
//! to which their order means nothing can tell so.
//!
//! Text may be packed with gzip or zstd.

mod json;
mod parquet;
mod rows;

use std::fs::{self, File};
use std::path::Path;

use self::json::JsonHistories;
use self::parquet::ParquetHistories;
use self::rows::RowHistories;
use super::source::Source;
use super::{DataError, parquet as parquet_log};
use crate::interactions::{Id, Ids, ItemIndex, OwnedId};
use crate::monitor::Monitor;
use crate::prepare::History;

/// A user's history in the indices of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHistory {
    /// Whose history.
    pub user: OwnedId,
    /// The items the catalogue knows, oldest first.
    pub items: Vec<ItemIndex>,
    /// For each of them whether it was taken at the same time as the one before it.
    pub with_previous: Vec<bool>,
    /// How many items the catalogue does not know.
    pub unknown: usize,
    /// Whether the newest time has an item that is known.
    newest_is_known: bool,
}

impl UserHistory {
    fn new(user: OwnedId) -> Self {
        UserHistory { user, items: vec![], with_previous: vec![], unknown: 0, newest_is_known: false }
    }

    /// Adds the next item, which was taken at the same time as the one before it, or later.
    fn push(&mut self, catalog: &Ids, item: Id<'_>, is_with_previous: bool) {
        self.newest_is_known &= is_with_previous;
        match catalog.find(item) {
            Some(index) => {
                self.items.push(ItemIndex(index as u32));
                self.with_previous.push(self.newest_is_known);
                self.newest_is_known = true;
            }
            None => self.unknown += 1,
        }
    }
}

impl<'a> From<&'a UserHistory> for History<'a> {
    fn from(history: &'a UserHistory) -> Self {
        History::with_baskets(&history.items, &history.with_previous)
    }
}

/// What an id in a text file is: an integer in its shortest spelling, else a string.
fn plain_id(text: &str) -> Id<'_> {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => Id::Integer(number),
        _ => Id::Text(text),
    }
}

/// Names of a column that holds whole histories, as [`super::columns::normalized`] spells them.
const HISTORY_NAMES: [&str; 5] = ["history", "items", "itemids", "itemsequence", "sequence"];

fn is_history_name(name: &str) -> bool {
    HISTORY_NAMES.contains(&super::columns::normalized(name).as_str())
}

/// A stream of histories; it ends with the first error.
pub struct UserHistories<'a> {
    inner: Inner<'a>,
    is_over: bool,
}

enum Inner<'a> {
    Json(JsonHistories<'a>),
    Rows(Box<RowHistories<'a>>),
    Parquet(Box<ParquetHistories<'a>>),
}

impl<'a> UserHistories<'a> {
    /// Opens a file, or standard input for `-`. The format is told by content.
    pub fn open(path: &Path, catalog: &'a Ids, monitor: &'a dyn Monitor) -> Result<Self, DataError> {
        let is_stdin = path == Path::new("-");
        let mut source = if is_stdin {
            monitor.begin("recommending", 0);
            Source::from_reader(Path::new("standard input"), std::io::stdin(), monitor)?
        } else {
            let metadata = fs::metadata(path).map_err(|source| DataError::open(path, source))?;
            if metadata.is_dir() {
                return Err(DataError::Directory { path: path.to_owned() });
            }
            monitor.begin("recommending", metadata.len());
            Source::open(path, monitor)?
        };
        let inner = if source.is_parquet() {
            if is_stdin || source.compression().is_some() {
                return Err(parquet_log::broken(
                    source.path(),
                    "Parquet is read from its end: give it as a file, unpacked",
                ));
            }
            drop(source);
            let file = File::open(path).map_err(|source| DataError::open(path, source))?;
            Inner::Parquet(Box::new(ParquetHistories::open(path, file, catalog, monitor)?))
        } else if source.peek_line()?.trim_ascii_start().starts_with(b"{") {
            Inner::Json(JsonHistories::new(source, catalog))
        } else {
            Inner::Rows(Box::new(RowHistories::open(source, catalog)?))
        };
        Ok(UserHistories { inner, is_over: false })
    }
}

impl Iterator for UserHistories<'_> {
    type Item = Result<UserHistory, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = match &mut self.inner {
            Inner::Json(histories) => histories.next(),
            Inner::Rows(histories) => histories.next(),
            Inner::Parquet(histories) => histories.next(),
        };
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items and marks of every history in a file of this text.
    fn read(name: &str, text: &str) -> Vec<(Vec<u32>, Vec<bool>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let catalog = Ids::Texts(["lamp", "mat", "mug", "stove", "tent"].map(Into::into).into());
        UserHistories::open(&path, &catalog, &())
            .unwrap()
            .map(|history| {
                let history = history.unwrap();
                (history.items.iter().map(|item| item.0).collect(), history.with_previous)
            })
            .collect()
    }

    #[test]
    fn items_taken_at_one_time_are_marked_in_every_format() {
        let expected = vec![
            (vec![4, 2, 3, 0], vec![false, false, true, false]),
            // An item that is not known has no place, and none is with it.
            (vec![2, 1], vec![false, false]),
        ];
        let json = "{\"user_id\": 1, \"history\": [\"tent\", [\"mug\", \"stove\"], \"lamp\"]}\n\
                    {\"user_id\": 2, \"history\": [[\"rope\", \"mug\"], [\"rope\"], \"mat\"]}\n";
        assert_eq!(read("a.jsonl", json), expected);
        let rows = "user_id,item_id,timestamp\n1,tent,10\n1,mug,20\n1,stove,20\n1,lamp,30\n\
                    2,rope,10\n2,mug,10\n2,rope,20\n2,mat,30\n";
        assert_eq!(read("a.csv", rows), expected);
        let wide = "user_id;history\n1;[\"tent\", [\"mug\", \"stove\"], \"lamp\"]\n2;[[\"rope\", \"mug\"], \"mat\"]\n";
        assert_eq!(read("b.csv", wide), expected);
    }
}
