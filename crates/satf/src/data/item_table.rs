//! What is known of items: a table with a row per item and any columns.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::DataError;
use super::arrow::texts;
use super::columns::{self, Role};
use super::error::{Fault, Position, shown};
use super::format::guess_delimiter;
use super::parquet::guarded;
use super::records::{Records, Splitting};
use super::source::Source;
use crate::monitor::{Monitor, OnlyCancels};

/// A table of items, all values as texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemTable {
    /// The ids of the items, row after row, as they are written.
    pub items: Vec<String>,
    /// The names of the other columns.
    pub names: Vec<String>,
    /// Their values, row after row; none where a cell is empty or null.
    pub columns: Vec<Vec<Option<String>>>,
}

/// Reads a table of items from a CSV or TSV file (plain, gzip or zstd), whose first row names the columns, or from a Parquet file. The
/// column of items is told by its name, such as `item_id`, or is the first one. An empty file holds nothing. The monitor may stop the
/// reading.
pub fn read_item_table(path: &Path, monitor: &dyn Monitor) -> Result<ItemTable, DataError> {
    let monitor = OnlyCancels(monitor);
    let Some(mut source) = Source::open_unless_empty(path, &monitor)? else {
        return Ok(ItemTable::default());
    };
    if source.is_parquet() {
        return read_parquet(path);
    }
    let delimiter = guess_delimiter(source.peek_line()?).unwrap_or(b',');
    let mut records = Records::new(Splitting::Delimiter(delimiter));
    let (mut table, mut rows, mut item) = (ItemTable::default(), RowsByItem::default(), None);
    while let Some((line, record)) = records.next(&mut source)? {
        let record = record.map_err(|fault| fault.at(path, line))?;
        let text = |at: usize| record.text(at).map(str::trim).map_err(|fault| fault.at(path, line));
        let Some(item) = item else {
            let names = record.texts().map_err(|fault| fault.at(path, line))?;
            let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
            check_names(&names).map_err(|fault| fault.at(path, line))?;
            let at = columns::common(&names, Role::Item).unwrap_or(0);
            table.names = names;
            table.names.remove(at);
            table.columns = vec![Vec::new(); table.names.len()];
            item = Some(at);
            continue;
        };
        if record.len() != table.names.len() + 1 {
            let expected = format!("{} columns, as the first row has", table.names.len() + 1);
            return Err(Fault::of_line(shown(record.bytes()), expected).at(path, line));
        }
        let others = (0..record.len()).filter(|at| *at != item);
        let value = |at| Ok(Some(text(at)?).filter(|value| !value.is_empty()).map(str::to_owned));
        let values = others.map(value).collect::<Result<_, DataError>>()?;
        rows.add(&mut table, text(item)?.to_owned(), values).map_err(|fault| fault.at(path, line))?;
    }
    Ok(table)
}

/// Where each item stands in a table.
#[derive(Default)]
struct RowsByItem(HashMap<String, usize>);

impl RowsByItem {
    /// Adds a row. Another row of the same item may add to it, and may not say otherwise.
    fn add(&mut self, table: &mut ItemTable, item: String, values: Vec<Option<String>>) -> Result<(), Fault> {
        if let Some(&row) = self.0.get(&item) {
            for ((column, name), value) in table.columns.iter_mut().zip(&table.names).zip(values) {
                let Some(value) = value else { continue };
                let before = column[row].get_or_insert_with(|| value.clone());
                if *before != value {
                    return Err(differs(&item, name, before, &value));
                }
            }
            return Ok(());
        }
        self.0.insert(item.clone(), table.items.len());
        table.items.push(item);
        for (column, value) in table.columns.iter_mut().zip(values) {
            column.push(value);
        }
        Ok(())
    }
}

/// That two rows of one item say different things.
pub(super) fn differs(item: &str, column: &str, before: &str, value: &str) -> Fault {
    let of = |value: &str| shown(value.as_bytes());
    Fault {
        column: Some(column.into()),
        found: of(value).into(),
        expected: format!(
            "{}, as a row above it has for the item {}; keep one row per item",
            of(before),
            of(item)
        )
        .into(),
        hint: None,
    }
}

/// A fault if two columns have one name. Columns without a name cannot be asked for, and do no harm.
fn check_names(names: &[String]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !name.is_empty() && !seen.insert(name.as_str())) {
        Some(name) => {
            let name = shown(name.as_bytes());
            Err(Fault::of_line(
                format!("several columns called {name}"),
                "a name of its own for every column",
            ))
        }
        None => Ok(()),
    }
}

fn read_parquet(path: &Path) -> Result<ItemTable, DataError> {
    let file = File::open(path).map_err(|error| DataError::open(path, error))?;
    let builder = guarded(path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
    let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    check_names(&names).map_err(|fault| fault.at(path, 1))?;
    let item = columns::common(&names, Role::Item).unwrap_or(0);
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    let mut batches = guarded(path, || builder.build())?;
    while let Some(batch) = guarded(path, || batches.next().transpose())? {
        for ((column, array), name) in columns.iter_mut().zip(batch.columns()).zip(&names) {
            let values = texts(array).ok_or_else(|| {
                let found = format!("the column {name} holds {}", array.data_type());
                Fault::of_line(found, "numbers, flags or texts").at(path, 1)
            })?;
            column.extend(values);
        }
    }
    let mut names = names;
    if names.is_empty() {
        return Ok(ItemTable::default());
    }
    names.remove(item);
    let items = columns.remove(item).into_iter().map(Option::unwrap_or_default);
    let mut rows = RowsByItem::default();
    let mut table = ItemTable { items: Vec::new(), columns: vec![Vec::new(); names.len()], names };
    for (row, item) in items.enumerate() {
        let values = columns.iter_mut().map(|column| column[row].take()).collect();
        rows.add(&mut table, item, values).map_err(|fault| fault.at(path, Position::Row(row as u64 + 1)))?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(content: &str) -> Result<ItemTable, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items.csv");
        std::fs::write(&path, content).unwrap();
        read_item_table(&path, &()).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_those_of_the_first_row() {
        let read = table("price;item_id;category\n9.5; tent ;camping\n;mug;\n").unwrap();
        assert_eq!(read.items, ["tent", "mug"]);
        assert_eq!(read.names, ["price", "category"]);
        let value = |value: &str| Some(value.to_owned());
        assert_eq!(read.columns, [[value("9.5"), None], [value("camping"), None]]);
        assert_eq!(table("").unwrap(), ItemTable::default());
        for (content, part) in [
            ("item_id,price\ntent,1,2\n", "line 2"),
            ("item_id,price,price\ntent,1,2\n", "several columns called \"price\""),
            ("item_id,item_id\ntent,1\n", "several columns called \"item_id\""),
        ] {
            let message = table(content).unwrap_err();
            assert!(message.contains(part), "{content}: {message}");
        }
        assert_eq!(table("item_id,,\ntent,,\n").unwrap().items, ["tent"]);
    }

    #[test]
    fn rows_of_one_item_add_to_each_other_and_do_not_contradict() {
        let read = table("item_id,title,price\ntent,Tent,\nmug,Mug,3\ntent,Tent,9\n").unwrap();
        assert_eq!(read.items, ["tent", "mug"]);
        assert_eq!(read.columns[1], [Some("9".to_owned()), Some("3".to_owned())]);
        let message = table("item_id,title\ntent,Tent\nmug,Mug\ntent,Zelt\n").unwrap_err();
        for part in
            ["line 4", "column title", "\"Zelt\"", "\"Tent\"", "the item \"tent\"", "one row per item"]
        {
            assert!(message.contains(part), "no '{part}' in {message}");
        }
    }
}
