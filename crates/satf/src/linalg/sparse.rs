//! Compressed sparse matrices.

use super::operator::{LinearOperator, PANEL};

/// A sparse matrix in compressed rows, with its transpose beside it so that both products gather.
#[derive(Clone, Debug)]
pub struct SparseMatrix {
    by_row: Compressed,
    by_column: Compressed,
}

/// Rows one after the other: row `i` owns entries `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug)]
struct Compressed {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl SparseMatrix {
    /// A matrix from its rows: each yields `(column, value)` in any order; values of a repeated column add up.
    ///
    /// # Panics
    /// If a column is not below `ncols`.
    pub fn from_rows<R>(ncols: usize, rows: impl Iterator<Item = R>) -> Self
    where
        R: IntoIterator<Item = (u32, f64)>,
    {
        let mut by_row = Compressed::with_rows(0);
        let mut row_entries: Vec<(u32, f64)> = Vec::new();
        for row in rows {
            row_entries.clear();
            row_entries.extend(row);
            row_entries.sort_by_key(|&(column, _)| column);
            let start = by_row.indices.len();
            for &(column, value) in &row_entries {
                assert!((column as usize) < ncols, "column {column} of a matrix with {ncols} columns");
                if by_row.indices.len() > start && by_row.indices.last() == Some(&column) {
                    let last = by_row.values.len() - 1;
                    by_row.values[last] += value;
                } else {
                    by_row.indices.push(column);
                    by_row.values.push(value);
                }
            }
            by_row.offsets.push(by_row.indices.len());
        }
        let by_column = by_row.transposed(ncols);
        SparseMatrix { by_row, by_column }
    }

    /// Number of stored entries.
    pub fn num_entries(&self) -> usize {
        self.by_row.indices.len()
    }

    /// The stored entries of row `i`, columns ascending.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = (u32, f64)> {
        let range = self.by_row.offsets[i]..self.by_row.offsets[i + 1];
        self.by_row.indices[range.clone()].iter().copied().zip(self.by_row.values[range].iter().copied())
    }
}

impl Compressed {
    fn with_rows(rows: usize) -> Self {
        Compressed { offsets: vec![0; rows + 1], indices: Vec::new(), values: Vec::new() }
    }

    fn transposed(&self, ncols: usize) -> Self {
        let mut transposed = Compressed::with_rows(ncols);
        for &column in &self.indices {
            transposed.offsets[column as usize + 1] += 1;
        }
        for column in 0..ncols {
            transposed.offsets[column + 1] += transposed.offsets[column];
        }
        transposed.indices = vec![0; self.indices.len()];
        transposed.values = vec![0.0; self.indices.len()];
        let mut next = transposed.offsets.clone();
        for (row, ends) in self.offsets.windows(2).enumerate() {
            for entry in ends[0]..ends[1] {
                let at = &mut next[self.indices[entry] as usize];
                transposed.indices[*at] = row as u32;
                transposed.values[*at] = self.values[entry];
                *at += 1;
            }
        }
        transposed
    }
}

/// `y = A x` row by row: every row of `y` is a weighted sum of gathered rows of `x`.
struct Gather<'a> {
    matrix: &'a Compressed,
    x: &'a [[f64; PANEL]],
    y: &'a mut [[f64; PANEL]],
}

impl pulp::WithSimd for Gather<'_> {
    type Output = ();

    // Inlined into a function compiled for the machine's vector unit; the loops over a panel's row vectorise.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        for (ends, out) in self.matrix.offsets.windows(2).zip(self.y) {
            let mut sum = [0.0; PANEL];
            let range = ends[0]..ends[1];
            for (&index, &value) in self.matrix.indices[range.clone()].iter().zip(&self.matrix.values[range])
            {
                let row = &self.x[index as usize];
                for lane in 0..PANEL {
                    sum[lane] += value * row[lane];
                }
            }
            *out = sum;
        }
    }
}

/// `y = A^T A x` row by row: the image of a row is gathered, and scattered again while it is in registers.
struct GatherScatter<'a> {
    matrix: &'a Compressed,
    x: &'a [[f64; PANEL]],
    y: &'a mut [[f64; PANEL]],
}

impl pulp::WithSimd for GatherScatter<'_> {
    type Output = ();

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        self.y.fill([0.0; PANEL]);
        for ends in self.matrix.offsets.windows(2) {
            let (indices, values) =
                (&self.matrix.indices[ends[0]..ends[1]], &self.matrix.values[ends[0]..ends[1]]);
            let mut sum = [0.0; PANEL];
            for (&index, &value) in indices.iter().zip(values) {
                let row = &self.x[index as usize];
                for lane in 0..PANEL {
                    sum[lane] += value * row[lane];
                }
            }
            for (&index, &value) in indices.iter().zip(values) {
                let row = &mut self.y[index as usize];
                for lane in 0..PANEL {
                    row[lane] += value * sum[lane];
                }
            }
        }
    }
}

impl LinearOperator for SparseMatrix {
    fn nrows(&self) -> usize {
        self.by_row.offsets.len() - 1
    }

    fn ncols(&self) -> usize {
        self.by_column.offsets.len() - 1
    }

    fn apply(&self, x: &[[f64; PANEL]], y: &mut [[f64; PANEL]]) {
        assert!(x.len() == self.ncols() && y.len() == self.nrows(), "panel heights");
        pulp::Arch::new().dispatch(Gather { matrix: &self.by_row, x, y });
    }

    fn apply_transpose(&self, x: &[[f64; PANEL]], y: &mut [[f64; PANEL]]) {
        assert!(x.len() == self.nrows() && y.len() == self.ncols(), "panel heights");
        pulp::Arch::new().dispatch(Gather { matrix: &self.by_column, x, y });
    }

    fn apply_squared(&self, x: &[[f64; PANEL]], _: &mut [[f64; PANEL]], y: &mut [[f64; PANEL]]) {
        assert!(x.len() == self.ncols() && y.len() == self.ncols(), "panel heights");
        pulp::Arch::new().dispatch(GatherScatter { matrix: &self.by_row, x, y });
    }

    fn flops_per_column(&self) -> f64 {
        4.0 * self.num_entries() as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Entries = Vec<Vec<(u32, f64)>>;

    fn entries(ncols: u32) -> impl Strategy<Value = Entries> {
        prop::collection::vec(prop::collection::vec((0..ncols, -2.0..2.0f64), 0..6), 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn products_match_the_dense_ones(rows in entries(23), seed in 0u32..99) {
            let matrix = SparseMatrix::from_rows(23, rows.iter().cloned());
            let mut dense = vec![vec![0.0; 23]; rows.len()];
            for (i, row) in rows.iter().enumerate() {
                for &(j, value) in row {
                    dense[i][j as usize] += value;
                }
            }
            let sample = |i: usize, lane: usize| f64::from((i as u32 * 37 + lane as u32 * 11 + seed) % 101) / 101.0;
            let x: Vec<[f64; PANEL]> = (0..23).map(|j| std::array::from_fn(|lane| sample(j, lane))).collect();
            let mut y = vec![[f64::NAN; PANEL]; rows.len()];
            matrix.apply(&x, &mut y);
            let mut back = vec![[f64::NAN; PANEL]; 23];
            matrix.apply_transpose(&y, &mut back);
            for lane in 0..PANEL {
                for i in 0..rows.len() {
                    let expected: f64 = (0..23).map(|j| dense[i][j] * x[j][lane]).sum();
                    prop_assert!((y[i][lane] - expected).abs() < 1e-12);
                }
                for j in 0..23 {
                    let expected: f64 = (0..rows.len()).map(|i| dense[i][j] * y[i][lane]).sum();
                    prop_assert!((back[j][lane] - expected).abs() < 1e-11);
                }
            }
        }
    }

    #[test]
    fn repeated_columns_add_up_and_rows_come_back_sorted() {
        let matrix = SparseMatrix::from_rows(4, [vec![(3, 1.0), (0, 2.0), (3, 0.5)], vec![]].into_iter());
        assert_eq!(matrix.row(0).collect::<Vec<_>>(), [(0, 2.0), (3, 1.5)]);
        assert_eq!(matrix.row(1).len(), 0);
        assert_eq!(matrix.num_entries(), 2);
    }
}
