//! The loss of a batch and its gradient.
//!
//! Forward, all groups of sequences beside each other; then the loss over the hidden states of all; then back through the
//! network, the groups again beside each other. Work is cut by the data and sums run in the order of the
//! groups, so the number of threads changes nothing.

use std::sync::Arc;

use rayon::prelude::*;

use crate::batch::{Batch, Group};
use crate::loss::{Gradients, Objective, Predictions, Workspace};
use crate::network::{Pass, Trace, embed};
use crate::noise::Noise;
use crate::number::{Number, add_scaled, make_room};
use crate::parameters::{Array, LayerGradients, Parameters};
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

/// What a group adds to the gradient.
struct Backward<T> {
    layers: LayerGradients<T>,
    /// Of its embedded rows.
    inputs: Vec<T>,
}

impl<T: Number> Gradient<T> {
    pub(crate) fn new(objective: Objective, dropout: f64, meter: &Arc<Meter>) -> Self {
        let meter = Arc::clone(meter);
        let workspace = Workspace::default();
        Gradient { objective, dropout, meter, values: vec![], hidden: vec![], of_hidden: vec![], workspace }
    }

    /// The mean loss of a batch; its gradient is in `values` afterwards.
    pub(crate) fn evaluate(&mut self, parameters: &Parameters<T>, batch: &Batch<'_>, noise: Noise) -> f64 {
        let sizes = parameters.sizes;
        let of_group = |number: usize| noise.at(number as u64);
        let (hidden, traces): (Vec<Vec<T>>, Vec<Trace<T>>) = batch
            .groups
            .par_iter()
            .enumerate()
            .map(|(number, group)| {
                let rows = group.rows.clone().map(|row| (batch.inputs[row], batch.positions[row]));
                self.pass(parameters, group, of_group(number)).forward(embed(
                    parameters.array(Array::ItemEmbeddings),
                    parameters,
                    rows,
                ))
            })
            .unzip();

        self.gather(hidden, batch.num_rows() * sizes.hidden);
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

        let backward: Vec<Backward<T>> = traces
            .into_par_iter()
            .zip(&batch.groups)
            .enumerate()
            .map(|(number, (trace, group))| {
                let rows = &group.rows;
                let of_hidden = &self.of_hidden[rows.start * sizes.hidden..rows.end * sizes.hidden];
                let mut layers = LayerGradients::new(sizes);
                let pass = self.pass(parameters, group, of_group(number));
                let inputs = pass.backward(trace, of_hidden, &mut layers);
                Backward { layers, inputs }
            })
            .collect();

        let layers = &mut self.values[sizes.first_layer()..];
        layers.par_chunks_mut(VALUES).enumerate().for_each(|(piece, into)| {
            for group in &backward {
                add_scaled(into, &group.layers.values[piece * VALUES..], T::of(1.0));
            }
        });
        self.scatter(parameters, batch, &backward);
        loss
    }

    /// How a group passes the network. Both ways have the same masks.
    fn pass<'a>(&'a self, parameters: &'a Parameters<T>, group: &'a Group, noise: Noise) -> Pass<'a, T> {
        Pass { parameters, ends: &group.ends, dropout: Some((noise, self.dropout)), meter: &self.meter }
    }

    /// Hidden states of all groups, row after row: `len` values.
    fn gather(&mut self, groups: Vec<Vec<T>>, len: usize) {
        self.hidden.clear();
        make_room(&mut self.hidden, len);
        for hidden in groups {
            self.hidden.extend_from_slice(&hidden);
        }
    }

    /// Takes the gradient of the inputs to the embeddings they are sums of.
    fn scatter(&mut self, parameters: &Parameters<T>, batch: &Batch<'_>, backward: &[Backward<T>]) {
        let sizes = parameters.sizes;
        let width = sizes.hidden;
        let scale = T::of(width as f64).root();
        let (items, positions) = (sizes.range(Array::ItemEmbeddings), sizes.range(Array::PositionEmbeddings));
        for (group, backward) in batch.groups.iter().zip(backward) {
            for (row, gradient) in group.rows.clone().zip(backward.inputs.chunks_exact(width)) {
                let item = items.start + batch.inputs[row] as usize * width;
                add_scaled(&mut self.values[item..item + width], gradient, scale);
                let position = positions.start + batch.positions[row] as usize * width;
                add_scaled(&mut self.values[position..position + width], gradient, T::of(1.0));
            }
        }
    }
}

/// So many zeros.
fn zero<T: Number>(values: &mut Vec<T>, len: usize) {
    make_room(values, len);
    values.resize(len, T::of(0.0));
    values.par_chunks_mut(VALUES).for_each(|values| values.fill(T::of(0.0)));
}
