//! A factor matrix stored row after row, because everything sparse here gathers whole rows of it.

use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;

use crate::linalg::Real;

/// A dense matrix of at least one column whose rows are contiguous.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    values: Vec<T>,
    width: usize,
}

impl<T: Real> Rows<T> {
    /// Zeros.
    ///
    /// # Panics
    /// If `width` is 0.
    pub fn zeros(nrows: usize, width: usize) -> Self {
        assert!(width > 0, "rows of at least one column");
        Rows { values: vec![T::default(); nrows * width], width }
    }

    /// The same values, rounded to this precision.
    pub fn from_mat(matrix: MatRef<'_, f64>) -> Self {
        let mut rows = Self::zeros(matrix.nrows(), matrix.ncols());
        for (i, row) in rows.values.chunks_exact_mut(matrix.ncols()).enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                *value = T::of(matrix[(i, j)]);
            }
        }
        rows
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.values.len() / self.width
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// As a matrix.
    pub fn as_mat(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.values, self.nrows(), self.width)
    }

    pub(super) fn as_mat_mut(&mut self) -> MatMut<'_, T> {
        let nrows = self.nrows();
        MatMut::from_row_major_slice_mut(&mut self.values, nrows, self.width)
    }

    /// In double precision.
    pub fn to_mat(&self) -> Mat<f64> {
        Mat::from_fn(self.nrows(), self.width, |i, j| self.values[i * self.width + j].double())
    }

    /// Row `i` times `scale[i]`.
    #[must_use]
    pub fn scaled(&self, scale: &[T]) -> Self {
        let mut rows = self.clone();
        rows.values.par_chunks_exact_mut(self.width).zip(scale).for_each(|(row, &scale)| {
            scale_row(row, scale);
        });
        rows
    }

    /// Bytes of the values.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.values.as_slice())
    }
}

/// `row *= scale`.
pub(super) fn scale_row<T: Real>(row: &mut [T], scale: T) {
    for value in row {
        *value *= scale;
    }
}

/// `sum += weight * row`. To be called inside a function compiled for the machine's vector unit.
#[inline(always)]
pub(super) fn add_scaled<T: Real>(sum: &mut [T], weight: T, row: &[T]) {
    for (sum, &value) in sum.iter_mut().zip(row) {
        *sum += weight * value;
    }
}

/// `sum += row`. To be called inside a function compiled for the machine's vector unit.
#[inline(always)]
pub(super) fn add<T: Real>(sum: &mut [T], row: &[T]) {
    for (sum, &value) in sum.iter_mut().zip(row) {
        *sum += value;
    }
}
