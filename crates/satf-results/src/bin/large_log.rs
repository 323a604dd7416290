//! Writes a made-up log of any shape as Parquet: what docs/results/serving.md asks a catalogue of a million items with.
//!
//! ```sh
//! cargo run --release -p satf-results --bin large_log -- USERS ITEMS ROWS FILE.parquet
//! ```

use std::error::Error;
use std::path::Path;

use satf::data::{LogFormat, write_log};
use satf::generate::{ShapeOptions, like};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [users, items, rows, file] = &arguments[..] else {
        return Err("expected USERS ITEMS ROWS FILE.parquet".into());
    };
    let (users, items, rows) = (users.parse()?, items.parse()?, rows.parse()?);
    let log = like(&ShapeOptions { users, items, rows, ..ShapeOptions::default() })?;
    write_log(&log, Path::new(file), LogFormat::Parquet, &())?;
    Ok(())
}
