//! Layer normalisation.

// Code that is not inlined is not compiled for the vector registers that its caller was dispatched to.
#![allow(clippy::inline_always)]

use crate::number::{Number, sum_of};

/// Added to a variance before its root is taken.
const EPSILON: f64 = 1e-8;

/// $y = \gamma \odot \hat x + \beta$ with $\hat x = (x - \bar x) / \sqrt{\sigma^2 + 10^{-8}}$, row by row.
///
/// Backwards, with $g = \partial / \partial y$, $h = \gamma \odot g$ and $s$ the reciprocal of the root:
/// $\partial / \partial x = s (h - \overline{h} - \hat x \, \overline{h \hat x})$,
/// $\partial / \partial \gamma = \sum g \odot \hat x$, $\partial / \partial \beta = \sum g$ over rows.
pub(crate) struct LayerNorm<'a, T> {
    /// $\gamma$.
    pub(crate) scale: &'a [T],
    /// $\beta$.
    pub(crate) shift: &'a [T],
}

/// The mean of a row and the reciprocal of its standard deviation.
#[inline(always)]
fn moments<T: Number>(row: &[T]) -> (T, T) {
    let width = T::of(row.len() as f64);
    let mean = sum_of(row.len(), |at| row[at]) / width;
    let variance = sum_of(row.len(), |at| (row[at] - mean) * (row[at] - mean)) / width;
    (mean, T::of(1.0) / (variance + T::of(EPSILON)).root())
}

impl<T: Number> LayerNorm<'_, T> {
    /// All rows, normalised.
    pub(crate) fn forward(&self, x: &[T]) -> Vec<T> {
        let mut y = Vec::with_capacity(x.len());
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for row in x.chunks_exact(self.scale.len()) {
                    let (mean, inverse) = moments(row);
                    y.extend(row.iter().zip(self.scale).zip(self.shift).map(
                        #[inline(always)]
                        |((&x, &scale), &shift)| (x - mean) * inverse * scale + shift,
                    ));
                }
            },
        );
        y
    }

    /// $\partial / \partial x$ for rows $x$ and $g$; the gradients of scale and shift go to `into`, which comes as zeros.
    pub(crate) fn backward(&self, x: &[T], g: &[T], into: [&mut [T]; 2]) -> Vec<T> {
        let width = self.scale.len();
        let [of_scale, of_shift] = into;
        let mut of_x = vec![T::of(0.0); x.len()];
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let rows = x.chunks_exact(width).zip(g.chunks_exact(width));
                for ((x, g), to) in rows.zip(of_x.chunks_exact_mut(width)) {
                    row_backwards(x, self.scale, g, to, of_scale, of_shift);
                }
            },
        );
        of_x
    }
}

#[inline(always)]
fn row_backwards<T: Number>(
    x: &[T],
    scale: &[T],
    g: &[T],
    to: &mut [T],
    of_scale: &mut [T],
    of_shift: &mut [T],
) {
    let width = T::of(x.len() as f64);
    let (mean, inverse) = moments(x);
    let normal = |at: usize| (x[at] - mean) * inverse;
    let mean_h = sum_of(x.len(), |at| g[at] * scale[at]) / width;
    let mean_hx = sum_of(x.len(), |at| g[at] * scale[at] * normal(at)) / width;
    for at in 0..x.len() {
        let normal = normal(at);
        to[at] = inverse * (g[at] * scale[at] - mean_h - normal * mean_hx);
        of_scale[at] += g[at] * normal;
        of_shift[at] += g[at];
    }
}
