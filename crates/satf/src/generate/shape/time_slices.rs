//! Rows in any order, to be had again in the order of time without all of them in memory.
//!
//! Time is cut into slices of equal length. Rows gather in one block per slice; a block that is full goes to the end of a temporary file.
//! Afterwards one slice after the other is read and sorted.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rayon::slice::ParallelSliceMut;

use super::SPAN;
use super::market::Row;
use crate::data::nameless_file;

/// Rows of a slice, about: few enough to be sorted within a cache or two.
const ROWS_A_SLICE: usize = 100_000;

/// The most slices, whose blocks are all in memory.
const MOST_SLICES: usize = 1000;

/// Rows that stay in memory if all are no more than this.
const ROWS_IN_MEMORY: usize = 4_000_000;

/// Rows of a block that goes to the file.
const ROWS_A_BLOCK: usize = 4096;

/// Bytes of a row in the file.
const ROW: usize = 12;

/// The rows of a log by slices of time.
pub(super) struct TimeSlices {
    /// Rows of each slice that are not in the file.
    blocks: Vec<Vec<Row>>,
    /// Where in the file each slice has blocks.
    places: Vec<Vec<u64>>,
    /// Where the file ends.
    end: u64,
    file: Option<File>,
    /// Rows that make a block full.
    full: usize,
    bytes: Vec<u8>,
}

impl TimeSlices {
    /// For so many rows.
    pub(super) fn new(rows: usize) -> Self {
        let full = if rows <= ROWS_IN_MEMORY { usize::MAX } else { ROWS_A_BLOCK };
        TimeSlices::with_blocks(rows, full)
    }

    fn with_blocks(rows: usize, full: usize) -> Self {
        let slices = (rows / ROWS_A_SLICE).clamp(1, MOST_SLICES);
        TimeSlices {
            blocks: vec![Vec::new(); slices],
            places: vec![Vec::new(); slices],
            end: 0,
            file: None,
            full,
            bytes: Vec::new(),
        }
    }

    /// The number of slices.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Takes these rows.
    pub(super) fn push(&mut self, rows: &[Row]) -> io::Result<()> {
        let slices = self.len() as u64;
        for &row in rows {
            let slice = (u64::from(row.seconds) * slices / SPAN as u64).min(slices - 1) as usize;
            self.blocks[slice].push(row);
            if self.blocks[slice].len() >= self.full {
                self.put_away(slice)?;
            }
        }
        Ok(())
    }

    fn put_away(&mut self, slice: usize) -> io::Result<()> {
        self.bytes.clear();
        for row in self.blocks[slice].drain(..) {
            for number in [row.seconds, row.user, row.item] {
                self.bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless_file()?),
        };
        file.write_all(&self.bytes)?;
        self.places[slice].push(self.end);
        self.end += self.bytes.len() as u64;
        Ok(())
    }

    /// The rows of a slice by time and user. They are handed out once, when all rows were pushed.
    pub(super) fn sorted(&mut self, slice: usize) -> io::Result<Vec<Row>> {
        let mut rows = std::mem::take(&mut self.blocks[slice]);
        if let Some(file) = &mut self.file {
            rows.reserve_exact(self.places[slice].len() * self.full);
            self.bytes.resize(self.full * ROW, 0);
            for &place in &self.places[slice] {
                file.seek(SeekFrom::Start(place))?;
                file.read_exact(&mut self.bytes)?;
                rows.extend(self.bytes.chunks_exact(ROW).map(row));
            }
        }
        // No user has two rows at one time: the key has no ties, so an unstable sort has one outcome.
        rows.par_sort_unstable_by_key(|row| (row.seconds, row.user));
        Ok(rows)
    }
}

fn row(bytes: &[u8]) -> Row {
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Row { seconds: number(0), user: number(4), item: number(8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_the_order_of_time_with_and_without_a_file() {
        // A step coprime to the number of rows mixes them.
        let rows: Vec<Row> = (0..250_007u64)
            .map(|at| at * 100_003 % 250_007)
            .map(|at| Row { seconds: (at * 250) as u32, user: (at % 1000) as u32, item: at as u32 })
            .collect();
        let mut expected = rows.clone();
        expected.sort_unstable_by_key(|row| row.seconds);
        for full in [usize::MAX, 100] {
            let mut slices = TimeSlices::with_blocks(rows.len(), full);
            rows.chunks(777).for_each(|rows| slices.push(rows).unwrap());
            assert_eq!((slices.len(), slices.file.is_some()), (2, full == 100));
            let back: Vec<Row> = (0..slices.len()).flat_map(|slice| slices.sorted(slice).unwrap()).collect();
            assert!(back == expected, "{full}");
        }
    }
}
