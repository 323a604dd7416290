//! $Y = X W + 1 b^T$.

use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use faer::Accum;

use super::{like, read, values};
use crate::number::{Number, add_scaled};
use crate::products::{Meter, rows, rows_mut};

/// $Y = X W + 1 b^T$ for rows $X$ ($t \times m$), weights $W$ ($m \times n$) and a bias $b$.
///
/// Backwards, with $G = \partial / \partial Y$: $\partial / \partial X = G W^T$, $\partial / \partial W = X^T G$,
/// $\partial / \partial b = G^T 1$. Three products of $2tmn$ operations in all.
pub(crate) struct Linear<T> {
    meter: Arc<Meter>,
    number: PhantomData<T>,
}

impl<T> Linear<T> {
    /// Counts its products in `meter`.
    pub(crate) fn new(meter: &Arc<Meter>) -> Self {
        Linear { meter: Arc::clone(meter), number: PhantomData }
    }
}

impl<T: Number> CustomOp3 for Linear<T> {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        w: &CpuStorage,
        w_layout: &Layout,
        b: &CpuStorage,
        b_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (m, n) = w_layout.shape().dims2()?;
        let (x, w) = (values::<T>(x, x_layout)?, values::<T>(w, w_layout)?);
        let b = values::<T>(b, b_layout)?;
        let t = x.len() / m;
        let mut y = Vec::with_capacity(t * n);
        (0..t).for_each(|_| y.extend_from_slice(b));
        self.meter.product(rows_mut(&mut y, n), Accum::Add, rows(x, m), rows(w, n), T::of(1.0));
        Ok((T::to_cpu_storage_owned(y), Shape::from((t, n))))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        b: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (m, n) = w.dims2()?;
        let one = T::of(1.0);
        read::<T, _>(gradient, |g| {
            let of_x = read::<T, _>(w, |w| {
                let mut of_x = vec![T::of(0.0); x.elem_count()];
                let into = rows_mut(&mut of_x, m);
                self.meter.product(into, Accum::Replace, rows(g, n), rows(w, n).transpose(), one);
                like(x, of_x)
            })?;
            let of_w = read::<T, _>(x, |x| {
                let mut of_w = vec![T::of(0.0); m * n];
                let into = rows_mut(&mut of_w, n);
                self.meter.product(into, Accum::Replace, rows(x, m).transpose(), rows(g, n), one);
                like(w, of_w)
            })?;
            let mut of_b = vec![T::of(0.0); n];
            g.chunks_exact(n).for_each(|row| add_scaled(&mut of_b, row, one));
            Ok((Some(of_x), Some(of_w), Some(like(b, of_b)?)))
        })
    }
}
