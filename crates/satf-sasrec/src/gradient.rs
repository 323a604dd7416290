//! The loss of a batch and its gradient.
//!
//! Forward, all groups of sequences beside each other; then the loss over the hidden states of all; then back through the
//! network, the groups again beside each other. Work is cut by the data and sums run in the order of the
//! groups, so the number of threads changes nothing.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;

use crate::batch::{Batch, Group};
use crate::loss::{Gradients, Objective, Predictions, Workspace};
use crate::network::{Pass, Trace, Weights, embed};
use crate::noise::Noise;
use crate::number::{Number, add_scaled};
use crate::ops::read;
use crate::parameters::{Array, Parameters};
use crate::products::Meter;

/// Values of one piece of parallel work over the parameters.
const VALUES: usize = 16_384;

/// Sources of random numbers for a batch.
const OF_LOSS: u64 = u64::MAX;

/// What a gradient is taken of, and memory that is used again.
pub(crate) struct Gradient<T> {
    pub(crate) objective: Objective,
    /// Share of values that dropout drops.
    pub(crate) dropout: f64,
    pub(crate) meter: Arc<Meter>,
    /// Where the parameters' gradient is after [`Gradient::evaluate`], in their layout.
    pub(crate) values: Vec<T>,
    hidden: Vec<T>,
    of_hidden: Vec<T>,
    workspace: Workspace<T>,
}

/// A group whose hidden states are known.
struct Forward {
    pass: Pass,
    trace: Trace,
}

/// What a group adds to the gradient.
struct Backward<T> {
    /// Of all arrays but the embeddings, in their order.
    weights: Vec<T>,
    inputs: Tensor,
}

impl<T: Number> Gradient<T> {
    pub(crate) fn new(objective: Objective, dropout: f64, meter: &Arc<Meter>) -> Self {
        let meter = Arc::clone(meter);
        let workspace = Workspace::default();
        Gradient { objective, dropout, meter, values: vec![], hidden: vec![], of_hidden: vec![], workspace }
    }

    /// The mean loss of a batch; its gradient is in `values` afterwards.
    pub(crate) fn evaluate(
        &mut self,
        parameters: &Parameters<T>,
        batch: &Batch<'_>,
        noise: Noise,
    ) -> Result<f64> {
        let sizes = parameters.sizes;
        let weights = Weights::of(parameters)?;
        let forward: Vec<Forward> = batch
            .groups
            .par_iter()
            .enumerate()
            .map(|(number, group)| self.forward(parameters, &weights, batch, group, noise.at(number as u64)))
            .collect::<Result<_>>()?;

        self.gather(&forward, batch, sizes.hidden)?;
        zero(&mut self.values, sizes.num_values());
        zero(&mut self.of_hidden, self.hidden.len());
        let predictions = Predictions {
            width: sizes.hidden,
            hidden: &self.hidden,
            embeddings: parameters.array(Array::ItemEmbeddings),
        };
        let mut gradients = Gradients {
            hidden: &mut self.of_hidden,
            embeddings: &mut self.values[sizes.range(Array::ItemEmbeddings)],
        };
        let of_loss = noise.at(OF_LOSS);
        let loss = self.objective.evaluate(
            predictions,
            batch,
            of_loss,
            &mut gradients,
            &mut self.workspace,
            &self.meter,
        );

        let dense = sizes.range(Array::AttentionNormScale).start;
        let of_hidden = &self.of_hidden;
        let backward: Vec<Backward<T>> = forward
            .into_par_iter()
            .zip(&batch.groups)
            .map(|(forward, group)| {
                let of_hidden = &of_hidden[group.rows.start * sizes.hidden..group.rows.end * sizes.hidden];
                backward(&weights, parameters, forward, of_hidden, dense)
            })
            .collect::<Result<_>>()?;

        self.values[dense..].par_chunks_mut(VALUES).enumerate().for_each(|(piece, into)| {
            for group in &backward {
                add_scaled(into, &group.weights[piece * VALUES..], T::of(1.0));
            }
        });
        self.scatter(parameters, batch, &backward)?;
        Ok(loss)
    }

    fn forward(
        &self,
        parameters: &Parameters<T>,
        weights: &Weights,
        batch: &Batch<'_>,
        group: &Group,
        noise: Noise,
    ) -> Result<Forward> {
        let sizes = parameters.sizes;
        let rows = group.rows.clone();
        let items_and_positions = rows.clone().map(|row| (batch.inputs[row], batch.positions[row]));
        let inputs = embed(parameters, items_and_positions);
        let inputs = Tensor::from_vec(inputs, (rows.len(), sizes.hidden), &Device::Cpu)?;
        let pass = Pass {
            ends: Arc::clone(&group.ends),
            heads: sizes.heads,
            max_len: sizes.max_len,
            dropout: Some((noise, self.dropout)),
            meter: Arc::clone(&self.meter),
        };
        let trace = pass.trace::<T>(weights, &inputs)?;
        Ok(Forward { pass, trace })
    }

    /// Hidden states of all groups, row after row.
    fn gather(&mut self, forward: &[Forward], batch: &Batch<'_>, width: usize) -> Result<()> {
        self.hidden.clear();
        self.hidden.reserve(batch.num_rows() * width);
        for group in forward {
            read::<T, _>(&group.trace.hidden, |hidden| {
                self.hidden.extend_from_slice(hidden);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Takes the gradient of the inputs to the embeddings they are sums of.
    fn scatter(
        &mut self,
        parameters: &Parameters<T>,
        batch: &Batch<'_>,
        backward: &[Backward<T>],
    ) -> Result<()> {
        let sizes = parameters.sizes;
        let width = sizes.hidden;
        let scale = T::of(width as f64).root();
        let (items, positions) = (sizes.range(Array::ItemEmbeddings), sizes.range(Array::PositionEmbeddings));
        for (group, backward) in batch.groups.iter().zip(backward) {
            read::<T, _>(&backward.inputs, |gradient| {
                for (row, gradient) in group.rows.clone().zip(gradient.chunks_exact(width)) {
                    let item = items.start + batch.inputs[row] as usize * width;
                    add_scaled(&mut self.values[item..item + width], gradient, scale);
                    let position = positions.start + batch.positions[row] as usize * width;
                    add_scaled(&mut self.values[position..position + width], gradient, T::of(1.0));
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Back through the network. Arrays begin at `dense`; those before are embeddings.
fn backward<T: Number>(
    weights: &Weights,
    parameters: &Parameters<T>,
    forward: Forward,
    of_hidden: &[T],
    dense: usize,
) -> Result<Backward<T>> {
    let Forward { pass, trace } = forward;
    let sizes = parameters.sizes;
    let of_hidden = Tensor::from_slice(of_hidden, trace.hidden.shape().clone(), &Device::Cpu)?;
    let mut of_weights = vec![T::of(0.0); parameters.values.len() - dense];
    let mut put = |array: Array, block: usize, gradient: &Tensor| {
        let range = sizes.range(array);
        let start = range.start - dense + block * gradient.elem_count();
        let into = &mut of_weights[start..start + gradient.elem_count()];
        read::<T, _>(gradient, |gradient| {
            into.copy_from_slice(gradient);
            Ok(())
        })
    };
    let inputs = pass.backward::<T>(weights, trace, &of_hidden, &mut put)?;
    Ok(Backward { weights: of_weights, inputs })
}

/// So many zeros.
fn zero<T: Number>(values: &mut Vec<T>, len: usize) {
    values.resize(len, T::of(0.0));
    values.par_chunks_mut(VALUES).for_each(|values| values.fill(T::of(0.0)));
}
