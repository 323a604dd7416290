//! A block of columns with room for its successor.
//!
//! The iteration rewrites hundreds of megabytes several times a window. Fresh memory costs a page fault every four
//! kilobytes, which one thread pays while the others wait: two buffers that take turns are faulted in once.

use faer::{MatMut, MatRef};

/// Columns of one length, one after the other.
pub(super) struct Block {
    rows: usize,
    columns: usize,
    current: Vec<f64>,
    spare: Vec<f64>,
}

impl Block {
    /// No columns yet, of length `rows`.
    pub(super) fn empty(rows: usize) -> Self {
        Block { rows, columns: 0, current: Vec::new(), spare: Vec::new() }
    }

    pub(super) fn ncols(&self) -> usize {
        self.columns
    }

    pub(super) fn as_ref(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.current[..self.rows * self.columns], self.rows, self.columns)
    }

    pub(super) fn as_mut(&mut self) -> MatMut<'_, f64> {
        let length = self.rows * self.columns;
        MatMut::from_column_major_slice_mut(&mut self.current[..length], self.rows, self.columns)
    }

    /// The columns, and room for `columns` others with any content.
    pub(super) fn with_room(&mut self, columns: usize) -> (MatRef<'_, f64>, MatMut<'_, f64>) {
        let length = self.rows * columns;
        if self.spare.len() < length {
            self.spare = Vec::new();
            self.spare = vec![0.0; length];
        }
        let room = MatMut::from_column_major_slice_mut(&mut self.spare[..length], self.rows, columns);
        (
            MatRef::from_column_major_slice(
                &self.current[..self.rows * self.columns],
                self.rows,
                self.columns,
            ),
            room,
        )
    }

    /// Replaces the columns by `columns` others, of which `write` writes every entry; it is given those there are.
    pub(super) fn replace(&mut self, columns: usize, write: impl FnOnce(MatRef<'_, f64>, MatMut<'_, f64>)) {
        let (current, room) = self.with_room(columns);
        write(current, room);
        std::mem::swap(&mut self.current, &mut self.spare);
        self.columns = columns;
    }
}
