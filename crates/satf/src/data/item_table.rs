//! What is known of items: a table with a row per item and any columns.

use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::DataError;
use super::arrow::texts;
use super::columns::{self, Role};
use super::error::{Fault, shown};
use super::format::guess_delimiter;
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
    let (mut table, mut item) = (ItemTable::default(), None);
    while let Some((line, record)) = records.next(&mut source)? {
        let record = record.map_err(|fault| fault.at(path, line))?;
        let text = |at: usize| String::from_utf8_lossy(record.field(at)).trim().to_owned();
        let Some(item) = item else {
            let names: Vec<String> = (0..record.len()).map(text).collect();
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
        table.items.push(text(item));
        let others = (0..record.len()).filter(|at| *at != item);
        for (column, at) in table.columns.iter_mut().zip(others) {
            column.push(Some(text(at)).filter(|value| !value.is_empty()));
        }
    }
    Ok(table)
}

fn read_parquet(path: &Path) -> Result<ItemTable, DataError> {
    let fault = |error: &dyn std::fmt::Display| {
        Fault::of_line(error.to_string(), "a Parquet file of items").at(path, 1)
    };
    let file = File::open(path).map_err(|error| DataError::open(path, error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| fault(&error))?;
    let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let item = columns::common(&names, Role::Item).unwrap_or(0);
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    for batch in builder.build().map_err(|error| fault(&error))? {
        let batch = batch.map_err(|error| fault(&error))?;
        for ((column, array), name) in columns.iter_mut().zip(batch.columns()).zip(&names) {
            let values = texts(array).ok_or_else(|| {
                fault(&format!("the column {name} holds {}, not numbers, flags or texts", array.data_type()))
            })?;
            column.extend(values);
        }
    }
    let mut names = names;
    if names.is_empty() {
        return Ok(ItemTable::default());
    }
    names.remove(item);
    let items = columns.remove(item).into_iter().map(Option::unwrap_or_default).collect();
    Ok(ItemTable { items, names, columns })
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
        let message = table("item_id,price\ntent,1,2\n").unwrap_err();
        assert!(message.contains("line 2"), "{message}");
    }
}
