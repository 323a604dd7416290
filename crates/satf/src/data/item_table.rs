//! What is known of items: a table with a row per item and any columns.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::DataError;
use super::arrow::texts;
use super::columns::{self, Role};
use super::error::{Fault, shown};
use super::format::guess_delimiter;
use super::parquet::in_words;
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
        table.items.push(text(item)?.to_owned());
        let others = (0..record.len()).filter(|at| *at != item);
        for (column, at) in table.columns.iter_mut().zip(others) {
            column.push(Some(text(at)?).filter(|value| !value.is_empty()).map(str::to_owned));
        }
    }
    Ok(table)
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
    let fault = |error: &dyn std::fmt::Display| {
        Fault::of_line(in_words(&error.to_string()), "a Parquet file of items").at(path, 1)
    };
    let file = File::open(path).map_err(|error| DataError::open(path, error))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| fault(&error))?;
    let names: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    check_names(&names).map_err(|fault| fault.at(path, 1))?;
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
}
