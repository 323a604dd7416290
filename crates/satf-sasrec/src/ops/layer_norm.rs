//! Layer normalisation.

// Code that is not inlined is not compiled for the vector registers that its caller was dispatched to.
#![allow(clippy::inline_always)]

use std::marker::PhantomData;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};

use super::{like, read, values};
use crate::number::{Number, sum_of};

/// Added to a variance before its root is taken.
const EPSILON: f64 = 1e-8;

/// $y = \gamma \odot \hat x + \beta$ with $\hat x = (x - \bar x) / \sqrt{\sigma^2 + 10^{-8}}$, row by row.
///
/// Backwards, with $g = \partial / \partial y$, $h = \gamma \odot g$ and $s$ the reciprocal of the root:
/// $\partial / \partial x = s (h - \overline{h} - \hat x \, \overline{h \hat x})$,
/// $\partial / \partial \gamma = \sum g \odot \hat x$, $\partial / \partial \beta = \sum g$ over rows.
pub(crate) struct LayerNorm<T>(PhantomData<T>);

impl<T> LayerNorm<T> {
    pub(crate) fn new() -> Self {
        LayerNorm(PhantomData)
    }
}

/// The mean of a row and the reciprocal of its standard deviation.
#[inline(always)]
fn moments<T: Number>(row: &[T]) -> (T, T) {
    let width = T::of(row.len() as f64);
    let mean = sum_of(row.len(), |at| row[at]) / width;
    let variance = sum_of(row.len(), |at| (row[at] - mean) * (row[at] - mean)) / width;
    (mean, T::of(1.0) / (variance + T::of(EPSILON)).root())
}

impl<T: Number> CustomOp3 for LayerNorm<T> {
    fn name(&self) -> &'static str {
        "layer norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        scale: &CpuStorage,
        scale_layout: &Layout,
        shift: &CpuStorage,
        shift_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = values::<T>(x, x_layout)?;
        let (scale, shift) = (values::<T>(scale, scale_layout)?, values::<T>(shift, shift_layout)?);
        let mut y = Vec::with_capacity(x.len());
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for row in x.chunks_exact(scale.len()) {
                    let (mean, inverse) = moments(row);
                    y.extend(row.iter().zip(scale).zip(shift).map(
                        #[inline(always)]
                        |((&x, &scale), &shift)| (x - mean) * inverse * scale + shift,
                    ));
                }
            },
        );
        Ok((T::to_cpu_storage_owned(y), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        scale: &Tensor,
        shift: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let width = scale.elem_count();
        let mut of_x = vec![T::of(0.0); x.elem_count()];
        let (mut of_scale, mut of_shift) = (vec![T::of(0.0); width], vec![T::of(0.0); width]);
        read::<T, _>(x, |x| {
            read::<T, _>(scale, |scale| {
                read::<T, _>(gradient, |gradient| {
                    pulp::Arch::new().dispatch(
                        #[inline(always)]
                        || {
                            let rows = x.chunks_exact(width).zip(gradient.chunks_exact(width));
                            for ((x, g), to) in rows.zip(of_x.chunks_exact_mut(width)) {
                                row_backwards(x, scale, g, to, &mut of_scale, &mut of_shift);
                            }
                        },
                    );
                    Ok(())
                })
            })
        })?;
        Ok((Some(like(x, of_x)?), Some(like(scale, of_scale)?), Some(like(shift, of_shift)?)))
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
