//! $Y = X W + 1 b^T$.

use faer::Accum;

use crate::number::{Number, add_scaled};
use crate::products::{Meter, rows, rows_mut};

/// $Y = X W + 1 b^T$ for rows $X$ ($t \times m$), weights $W$ ($m \times n$) and a bias $b$.
///
/// Backwards, with $G = \partial / \partial Y$: $\partial / \partial X = G W^T$, $\partial / \partial W = X^T G$,
/// $\partial / \partial b = G^T 1$. Three products of $2tmn$ operations in all.
pub(crate) struct Linear<'a, T> {
    pub(crate) weight: &'a [T],
    pub(crate) bias: &'a [T],
    /// Counts its products.
    pub(crate) meter: &'a Meter,
}

impl<T: Number> Linear<'_, T> {
    /// $m$ and $n$.
    fn widths(&self) -> (usize, usize) {
        (self.weight.len() / self.bias.len(), self.bias.len())
    }

    /// $Y$.
    pub(crate) fn forward(&self, x: &[T]) -> Vec<T> {
        let (m, n) = self.widths();
        let mut y = self.bias.repeat(x.len() / m);
        let into = rows_mut(&mut y, n);
        self.meter.product(into, Accum::Add, rows(x, m), rows(self.weight, n), T::of(1.0));
        y
    }

    /// $\partial / \partial X$ for $X$ and $G$; the gradients of weights and bias go to `into`, which comes as zeros.
    pub(crate) fn backward(&self, x: &[T], g: &[T], into: [&mut [T]; 2]) -> Vec<T> {
        let (m, n) = self.widths();
        let [of_weight, of_bias] = into;
        let one = T::of(1.0);
        let into = rows_mut(of_weight, n);
        self.meter.product(into, Accum::Replace, rows(x, m).transpose(), rows(g, n), one);
        g.chunks_exact(n).for_each(|row| add_scaled(of_bias, row, one));
        let mut of_x = vec![T::of(0.0); x.len()];
        let into = rows_mut(&mut of_x, m);
        self.meter.product(into, Accum::Replace, rows(g, n), rows(self.weight, n).transpose(), one);
        of_x
    }
}
