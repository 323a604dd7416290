//! A matrix as something to multiply with.
//!
//! Iterative methods see a matrix $A$ (`nrows` x `ncols`) only through $A x$ and $A^T y$. Vectors come in
//! *panels* of [`PANEL`] columns stored row after row, so that one access to row $j$ of the panel fetches a
//! whole cache line or two, and so that a panel with its image stays in cache while a polynomial in $A^T A$
//! is applied to it. A panel with fewer columns in use is filled up with zeros.

/// Columns of a panel: sixteen doubles are two cache lines, and keep a panel of ten thousand rows near the cores.
pub const PANEL: usize = 16;

/// A matrix $A$ that can be applied to panels of columns.
///
/// Both products are called from many threads at once, each with panels of its own, and must not start work in
/// parallel themselves: the callers have more panels than cores.
pub trait LinearOperator: Sync {
    /// Rows of $A$.
    fn nrows(&self) -> usize;

    /// Columns of $A$.
    fn ncols(&self) -> usize;

    /// `y = A x`, where `x` has `ncols` rows and `y` has `nrows`. `y` comes with any content.
    fn apply(&self, x: &[[f64; PANEL]], y: &mut [[f64; PANEL]]);

    /// `y = A^T x`, where `x` has `nrows` rows and `y` has `ncols`. `y` comes with any content.
    fn apply_transpose(&self, x: &[[f64; PANEL]], y: &mut [[f64; PANEL]]);

    /// `y = A^T A x`, where `x` and `y` have `ncols` rows. `image`, of `nrows` rows, is room for `A x`; both come with
    /// any content.
    fn apply_squared(&self, x: &[[f64; PANEL]], image: &mut [[f64; PANEL]], y: &mut [[f64; PANEL]]) {
        self.apply(x, image);
        self.apply_transpose(image, y);
    }

    /// Floating-point operations of $A x$ and $A^T y$ together, for one column each.
    fn flops_per_column(&self) -> f64;
}

/// An operator with the roles of rows and columns exchanged: its right singular vectors are the left ones of
/// the operator inside.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<'a, A>(pub &'a A);

impl<A: LinearOperator> LinearOperator for Transposed<'_, A> {
    fn nrows(&self) -> usize {
        self.0.ncols()
    }

    fn ncols(&self) -> usize {
        self.0.nrows()
    }

    fn apply(&self, x: &[[f64; PANEL]], y: &mut [[f64; PANEL]]) {
        self.0.apply_transpose(x, y);
    }

    fn apply_transpose(&self, x: &[[f64; PANEL]], y: &mut [[f64; PANEL]]) {
        self.0.apply(x, y);
    }

    fn flops_per_column(&self) -> f64 {
        self.0.flops_per_column()
    }
}
