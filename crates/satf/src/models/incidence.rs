//! Which items a user has, whatever the order: a binary sparse matrix by rows.

use super::array::Array;
use crate::interactions::ItemIndex;

/// A binary matrix in compressed rows: row `r` holds ones at the columns `columns[offsets[r]..offsets[r + 1]]`,
/// ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Incidence {
    offsets: Array<u64>,
    columns: Array<u32>,
}

impl Incidence {
    /// One row per history: its distinct items.
    pub(super) fn from_histories<'a>(histories: impl Iterator<Item = &'a [ItemIndex]>) -> Self {
        let mut offsets = vec![0];
        let mut columns = Vec::new();
        let mut distinct = Vec::new();
        for history in histories {
            distinct.clear();
            distinct.extend(history.iter().map(|item| item.0));
            distinct.sort_unstable();
            distinct.dedup();
            columns.extend_from_slice(&distinct);
            offsets.push(columns.len() as u64);
        }
        columns.shrink_to_fit();
        Incidence { offsets: offsets.into(), columns: columns.into() }
    }

    /// Rows as they lie in a file: offsets ascend from 0 to the number of columns, columns ascend in every row.
    pub(super) fn from_rows(offsets: Array<u64>, columns: Array<u32>) -> Self {
        Incidence { offsets, columns }
    }

    /// Where rows begin and end.
    pub(super) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The columns of all rows.
    pub(super) fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Number of rows.
    pub(super) fn num_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The columns with a one in `row`, ascending.
    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.columns[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Number of ones in each of `num_columns` columns.
    pub(super) fn column_counts(&self, num_columns: usize) -> Vec<u32> {
        let mut counts = vec![0u32; num_columns];
        for &column in &*self.columns {
            counts[column as usize] += 1;
        }
        counts
    }

    /// The transpose, with `num_columns` rows, each cut to its first `limit` ones.
    pub(super) fn transposed(&self, num_columns: usize, limit: usize) -> Incidence {
        let mut offsets = vec![0usize; num_columns + 1];
        for (column, count) in self.column_counts(num_columns).into_iter().enumerate() {
            offsets[column + 1] = offsets[column] + limit.min(count as usize);
        }
        let mut next = offsets.clone();
        let mut columns = vec![0u32; offsets[num_columns]];
        for row in 0..self.num_rows() {
            for &column in self.row(row) {
                let at = &mut next[column as usize];
                if *at < offsets[column as usize + 1] {
                    columns[*at] = row as u32;
                    *at += 1;
                }
            }
        }
        let offsets: Vec<u64> = offsets.into_iter().map(|end| end as u64).collect();
        Incidence { offsets: offsets.into(), columns: columns.into() }
    }

    /// Bytes kept in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.offsets) + size_of_val(&*self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(of: &[u32]) -> Vec<ItemIndex> {
        of.iter().copied().map(ItemIndex).collect()
    }

    #[test]
    fn repeats_count_once_and_the_transpose_is_cut() {
        let histories = [items(&[2, 0, 2]), items(&[]), items(&[2, 1]), items(&[2])];
        let incidence = Incidence::from_histories(histories.iter().map(Vec::as_slice));
        assert_eq!(incidence.num_rows(), 4);
        assert_eq!(incidence.row(0), [0, 2]);
        assert_eq!(incidence.row(1), [0u32; 0]);
        assert_eq!(incidence.column_counts(4), [1, 1, 3, 0]);
        let transposed = incidence.transposed(4, 2);
        let rows: Vec<&[u32]> = (0..4).map(|row| transposed.row(row)).collect();
        assert_eq!(rows, [&[0][..], &[2], &[0, 2], &[]]);
    }
}
