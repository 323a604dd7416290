//! Titles of items: what people read instead of ids.

use std::path::Path;

use super::DataError;
use super::columns::{self, Role, normalized};
use super::error::{Fault, shown};
use super::format::guess_delimiter;
use super::item_table::differs;
use super::records::{Records, Splitting};
use super::source::Source;
use crate::interactions::{Id, Ids, ItemIndex};
use crate::monitor::{Monitor, OnlyCancels};

/// Names of the title's column, the surest first, as [`normalized`] spells them.
const TITLE_NAMES: [&str; 8] =
    ["title", "itemtitle", "name", "itemname", "productname", "producttitle", "label", "description"];

/// A title for each item that has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Titles {
    titles: Vec<Option<Box<str>>>,
}

impl Titles {
    /// The title of an item.
    pub fn get(&self, item: ItemIndex) -> Option<&str> {
        self.titles.get(item.get())?.as_deref()
    }

    /// How many items have one.
    pub fn len(&self) -> usize {
        self.titles.iter().flatten().count()
    }

    /// Whether none has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads the titles of a catalogue's items from a CSV or TSV file, plain, gzip or zstd: a column with the item and one
/// with its title, found by their names, or the first two. Items that the catalogue does not know are passed over; an
/// item with two titles is an error. All rows have as many columns as the first. An empty file holds none. The monitor may stop the reading.
pub fn read_titles(path: &Path, catalog: &Ids, monitor: &dyn Monitor) -> Result<Titles, DataError> {
    let monitor = OnlyCancels(monitor);
    let Some(mut source) = Source::open_unless_empty(path, &monitor)? else { return Ok(Titles::default()) };
    if source.is_parquet() {
        return Err(
            Fault::of_line("a Parquet file", "CSV with a column of items and one of titles").at(path, 1)
        );
    }
    let delimiter = guess_delimiter(source.peek_line()?).unwrap_or(b',');
    let mut records = Records::new(Splitting::Delimiter(delimiter));
    let mut titles: Vec<Option<Box<str>>> = vec![None; catalog.len()];
    let (mut layout, mut width) = (None, None);
    while let Some((line, record)) = records.next(&mut source)? {
        let record = record.map_err(|fault| fault.at(path, line))?;
        let width = *width.get_or_insert(record.len());
        if width < 2 || record.len() != width {
            let expected = match width {
                0..=2 => "two columns, an item and its title".to_owned(),
                width => format!("{width} columns, as the first row has"),
            };
            return Err(Fault::of_line(shown(record.bytes()), expected).at(path, line));
        }
        let text = |at: usize| record.text(at).map_err(|fault| fault.at(path, line));
        let (item, title) = if let Some(layout) = layout {
            layout
        } else {
            let names = record.texts().map_err(|fault| fault.at(path, line))?;
            let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            let title = TITLE_NAMES.iter().find_map(|name| names.iter().position(|n| normalized(n) == *name));
            let item = columns::common(&names, Role::Item);
            let names_columns =
                title.is_some() || item.is_some() || names.iter().any(|name| columns::is_sure_name(name));
            let item = item.unwrap_or(usize::from(title == Some(0)));
            // Words such as `book` and `name` name columns, and are ids and titles as well: an item that is known is no name.
            let is_known = |at: usize| catalog.find(Id::Text(&names[at])).is_some();
            let has_header = names_columns && !is_known(item) && !is_known(0);
            let named = (item, title.unwrap_or(usize::from(item == 0)));
            let chosen = if has_header { named } else { (0, 1) };
            if let Some(at) =
                [named.0, named.1].into_iter().find(|at| has_header && columns::repeats(&names, *at))
            {
                let expected = format!("one column called {}", shown(names[at].as_bytes()));
                return Err(Fault::of_line(shown(record.bytes()), expected).at(path, line));
            }
            layout = Some(chosen);
            if has_header {
                continue;
            }
            chosen
        };
        // Ids are those of the log, with the spaces around them if they have some.
        let (item, title) = (text(item)?, text(title)?.trim());
        if title.is_empty() {
            continue;
        }
        let index = catalog.find(Id::Text(item)).or_else(|| catalog.find(Id::Text(item.trim())));
        let Some(index) = index else { continue };
        let before: &str = titles[index].get_or_insert_with(|| Box::from(title));
        if before != title {
            return Err(differs(item, "title", before, title).at(path, line));
        }
    }
    Ok(Titles { titles })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(content: &str) -> Vec<Option<String>> {
        read(content).unwrap()
    }

    fn read(content: &str) -> Result<Vec<Option<String>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("titles.csv");
        std::fs::write(&path, content).unwrap();
        let titles =
            read_titles(&path, &Ids::Integers(vec![3, 5, 9]), &()).map_err(|error| error.to_string())?;
        Ok((0..3).map(|item| titles.get(ItemIndex(item)).map(str::to_owned)).collect())
    }

    #[test]
    fn a_title_with_a_comma_is_not_cut_in_silence() {
        for content in ["3,Tent\n9,Lamp, red\n", "item_id,title\n9,Lamp, red\n", "3,a,b\n9,Lamp\n", "3\n"] {
            let message = read(content).unwrap_err();
            assert!(message.contains("columns"), "{content}: {message}");
        }
    }

    #[test]
    fn columns_are_told_by_name_or_by_place() {
        let expected = vec![Some("Tent, large".to_owned()), None, Some("Lamp".to_owned())];
        assert_eq!(
            titles("item_id,title\n3,\"Tent, large\"\n9,Lamp\n77,Other\n77,Another\n9,\n9,Lamp\n"),
            expected
        );
        assert_eq!(titles("genre\tTitle\tmovieId\nx\tTent, large\t3\nx\tLamp\t9\n"), expected);
        assert_eq!(titles("3,\"Tent, large\"\n9,Lamp\n5,\n"), expected);
    }

    #[test]
    fn an_item_has_one_title() {
        let message = read("item_id,title\n3,Tent\n9,Lamp\n9,Torch\n").unwrap_err();
        for part in ["line 4", "\"Torch\"", "\"Lamp\"", "the item \"9\"", "one row per item"] {
            assert!(message.contains(part), "no '{part}' in {message}");
        }
    }

    #[test]
    fn a_title_that_is_a_word_for_titles_is_no_header() {
        let expected = vec![Some("Name".to_owned()), None, Some("Lamp".to_owned())];
        assert_eq!(titles("3,Name\n9,Lamp\n"), expected);
        assert_eq!(titles("id,Name\n3,Name\n9,Lamp\n"), expected);
        assert_eq!(titles(""), vec![None; 3]);
    }

    #[test]
    fn an_item_may_be_called_as_a_column_or_have_spaces_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("titles.csv");
        let catalog = Ids::Texts(vec![" pen".into(), "book".into(), "name".into()]);
        let read = |content: &str| {
            std::fs::write(&path, content).unwrap();
            let titles = read_titles(&path, &catalog, &()).unwrap();
            [0, 1, 2].map(|item| titles.get(ItemIndex(item)).map(str::to_owned))
        };
        let shown = |titles: [&str; 3]| titles.map(|title| Some(title.to_owned()));
        assert_eq!(read("book,A book\n pen,A pen\nname,N\n"), shown(["A pen", "A book", "N"]));
        // An item that is called as titles are, with a title that items are called.
        assert_eq!(read("name,song\n pen,A pen\nbook,B\n"), shown(["A pen", "B", "song"]));
    }
}
