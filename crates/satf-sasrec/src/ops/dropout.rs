//! Dropout, alone and together with what stands beside it.

use crate::noise::Mask;
use crate::number::{Number, add_scaled};

/// $x \leftarrow m \odot x$ for a random mask $m$; backwards the same.
pub(crate) fn drop_some<T: Number>(x: &mut [T], mask: &Mask) {
    mask.for_row(0, x.len(), |at, factor: T| x[at] *= factor);
}

/// $x \leftarrow m \odot \max(x, 0)$ for a random mask $m$, or without one.
pub(crate) fn relu_dropout<T: Number>(x: &mut [T], mask: Option<&Mask>) {
    let zero = T::of(0.0);
    let positive = |x: T| if x > zero { x } else { zero };
    match mask {
        None => x.iter_mut().for_each(|x| *x = positive(*x)),
        Some(mask) => mask.for_row(0, x.len(), |at, factor: T| x[at] = positive(x[at]) * factor),
    }
}

/// The gradient of what [`relu_dropout`] got, in place of that of its result $y$: it passes where $y$ is above 0.
pub(crate) fn relu_dropout_backward<T: Number>(y: &[T], gradient: &mut [T], mask: Option<&Mask>) {
    let zero = T::of(0.0);
    let scale = T::of(mask.map_or(1.0, Mask::scale));
    for (&y, gradient) in y.iter().zip(gradient) {
        *gradient = if y > zero { *gradient * scale } else { zero };
    }
}

/// $x \leftarrow r + m \odot x$ for a residual $r$ and a random mask $m$, or without one. Backwards, $r$ gets the gradient as it is
/// and $x$ what dropout leaves of it.
pub(crate) fn add_dropped<T: Number>(x: &mut [T], r: &[T], mask: Option<&Mask>) {
    match mask {
        None => add_scaled(x, r, T::of(1.0)),
        Some(mask) => mask.for_row(0, x.len(), |at, factor: T| x[at] = r[at] + x[at] * factor),
    }
}
