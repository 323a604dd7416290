//! What candle does not have, or not fast enough: operations with hand-written gradients.
//!
//! All of them work on packed tokens: the rows of all sequences of a group, one after the other, without padding. Each is
//! sequential; groups of sequences run beside each other ([`crate::gradient`]). A group's rows fit into the cache, so what
//! one operation writes the next one finds there.
//!
//! They are candle's custom operations, so that its graphs differentiate a network of them; a test does. Training calls their
//! gradients itself ([`crate::network`]): a graph adds every gradient to zeros first, value by value in a thread pool of
//! its own, which took two thirds of the time of an epoch.

mod attention;
mod dropout;
mod layer_norm;
mod linear;

use candle_core::{CpuStorage, Layout, Result, Storage, Tensor, bail};

pub(crate) use attention::Attention;
pub(crate) use dropout::{AddDropped, Dropout, ReluDropout};
pub(crate) use layer_norm::LayerNorm;
pub(crate) use linear::Linear;

use crate::number::Number;

/// The values of an argument, row after row.
fn values<'a, T: Number>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [T]> {
    let values = storage.as_slice::<T>()?;
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&values[start..end]),
        None => bail!("expected rows one after the other, found strides {:?}", layout.stride()),
    }
}

/// Calls `with` on the values of a tensor, row after row.
pub(crate) fn read<T: Number, R>(tensor: &Tensor, with: impl FnOnce(&[T]) -> Result<R>) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => with(values(storage, layout)?),
        _ => bail!("expected a tensor in the memory of the CPU"),
    }
}

/// The sum of two tensors of one shape.
pub(crate) fn add<T: Number>(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    read::<T, _>(a, |a_values| {
        read::<T, _>(b, |b_values| like(a, a_values.iter().zip(b_values).map(|(&a, &b)| a + b).collect()))
    })
}

/// A tensor like another one, of these values.
fn like<T: Number>(tensor: &Tensor, values: Vec<T>) -> Result<Tensor> {
    Tensor::from_vec(values, tensor.shape().clone(), tensor.device())
}
