//! Dropout, alone and together with what stands beside it.

use std::marker::PhantomData;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};

use super::{like, read, values};
use crate::noise::Mask;
use crate::number::Number;

/// Values times the factors of a mask: zeros and the scale of what is kept.
fn masked<T: Number>(values: &[T], mask: &Mask) -> Vec<T> {
    let mut masked = vec![T::of(0.0); values.len()];
    mask.for_row(0, values.len(), |at, factor: T| masked[at] = values[at] * factor);
    masked
}

/// $y = m \odot x$ for a random mask $m$; backwards the same.
pub(crate) struct Dropout<T> {
    mask: Mask,
    number: PhantomData<T>,
}

impl<T> Dropout<T> {
    pub(crate) fn new(mask: Mask) -> Self {
        Dropout { mask, number: PhantomData }
    }
}

impl<T: Number> CustomOp1 for Dropout<T> {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let y = masked(values::<T>(x, layout)?, &self.mask);
        Ok((T::to_cpu_storage_owned(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        read::<T, _>(gradient, |gradient| like(x, masked(gradient, &self.mask))).map(Some)
    }
}

/// $y = m \odot \max(x, 0)$ for a random mask $m$, or without one. Backwards a gradient passes where $y$ is above 0.
pub(crate) struct ReluDropout<T> {
    mask: Option<Mask>,
    number: PhantomData<T>,
}

impl<T> ReluDropout<T> {
    pub(crate) fn new(mask: Option<Mask>) -> Self {
        ReluDropout { mask, number: PhantomData }
    }
}

impl<T: Number> CustomOp1 for ReluDropout<T> {
    fn name(&self) -> &'static str {
        "relu and dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = values::<T>(x, layout)?;
        let zero = T::of(0.0);
        let positive = |x: T| if x > zero { x } else { zero };
        let y = match &self.mask {
            None => x.iter().map(|&x| positive(x)).collect(),
            Some(mask) => {
                let mut y = vec![zero; x.len()];
                mask.for_row(0, x.len(), |at, factor: T| y[at] = positive(x[at]) * factor);
                y
            }
        };
        Ok((T::to_cpu_storage_owned(y), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let zero = T::of(0.0);
        let scale = T::of(self.mask.as_ref().map_or(1.0, Mask::scale));
        let pass = |(&y, &gradient): (&T, &T)| if y > zero { gradient * scale } else { zero };
        read::<T, _>(y, |y| {
            read::<T, _>(gradient, |gradient| like(x, y.iter().zip(gradient).map(pass).collect()))
        })
        .map(Some)
    }
}

/// $y = r + m \odot x$ for a residual $r$ and a random mask $m$, or without one.
pub(crate) struct AddDropped<T> {
    mask: Option<Mask>,
    number: PhantomData<T>,
}

impl<T> AddDropped<T> {
    pub(crate) fn new(mask: Option<Mask>) -> Self {
        AddDropped { mask, number: PhantomData }
    }
}

impl<T: Number> CustomOp2 for AddDropped<T> {
    fn name(&self) -> &'static str {
        "add what dropout leaves"
    }

    fn cpu_fwd(
        &self,
        r: &CpuStorage,
        r_layout: &Layout,
        x: &CpuStorage,
        x_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (r, x) = (values::<T>(r, r_layout)?, values::<T>(x, x_layout)?);
        let y = match &self.mask {
            None => r.iter().zip(x).map(|(&r, &x)| r + x).collect(),
            Some(mask) => {
                let mut y = r.to_vec();
                mask.for_row(0, x.len(), |at, factor: T| y[at] += x[at] * factor);
                y
            }
        };
        Ok((T::to_cpu_storage_owned(y), r_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _: &Tensor,
        x: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let of_x = match &self.mask {
            None => gradient.clone(),
            Some(mask) => read::<T, _>(gradient, |gradient| like(x, masked(gradient, mask)))?,
        };
        Ok((Some(gradient.clone()), Some(of_x)))
    }
}
