//! Matrix products, and how much of the time goes into them.
//!
//! Every product is one sequential kernel of a size that depends on the data alone; what runs in parallel is many of them. So
//! the number of threads never changes a bit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use faer::{Accum, MatMut, MatRef, Par};

use crate::number::Number;

/// Counts operations in matrix products and the time spent in them, over all threads.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    nanoseconds: AtomicU64,
    operations: AtomicU64,
}

/// What a [`Meter`] has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// Seconds in products, summed over threads.
    pub(crate) seconds: f64,
    /// Floating-point operations.
    pub(crate) operations: f64,
}

impl Meter {
    /// Everything since the last call.
    pub(crate) fn take(&self) -> Counted {
        Counted {
            seconds: self.nanoseconds.swap(0, Ordering::Relaxed) as f64 / 1e9,
            operations: self.operations.swap(0, Ordering::Relaxed) as f64,
        }
    }

    /// `dst = alpha lhs rhs`, or `dst += alpha lhs rhs` with [`Accum::Add`]: $2mnk$ operations.
    pub(crate) fn product<T: Number>(
        &self,
        dst: MatMut<'_, T>,
        accum: Accum,
        lhs: MatRef<'_, T>,
        rhs: MatRef<'_, T>,
        alpha: T,
    ) {
        let operations = 2 * dst.nrows() * dst.ncols() * lhs.ncols();
        let start = Instant::now();
        faer::linalg::matmul::matmul(dst, accum, lhs, rhs, alpha, Par::Seq);
        self.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.operations.fetch_add(operations as u64, Ordering::Relaxed);
    }
}

/// Rows of `width` values, one after the other, as a matrix.
pub(crate) fn rows<T>(values: &[T], width: usize) -> MatRef<'_, T> {
    MatRef::from_row_major_slice(values, values.len() / width, width)
}

/// The same to write to.
pub(crate) fn rows_mut<T>(values: &mut [T], width: usize) -> MatMut<'_, T> {
    MatMut::from_row_major_slice_mut(values, values.len() / width, width)
}
