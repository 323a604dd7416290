//! How well hidden states predict the items that follow, and the gradients of that.
//!
//! Every loss is a mean over all rows of a batch. Its gradients with respect to the hidden states and to the item embeddings
//! come with it: logits are never kept beyond the piece being worked on, so memory stays bounded for any batch.

mod binary;
mod softmax;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::noise::Noise;
use crate::number::{Number, make_room};
use crate::products::Meter;

/// What training minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Cross-entropy of the softmax over the whole catalogue.
    #[default]
    Ce,
    /// Cross-entropy of the softmax over the item that followed and a random sample of others.
    SampledCe,
    /// Binary cross-entropy of the item that followed and one random item that the user does not have, as in the paper.
    Bce,
}

/// A loss with everything it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Objective {
    pub(crate) loss: Loss,
    /// Items drawn for a batch, with [`Loss::SampledCe`].
    pub(crate) negatives: usize,
}

/// Hidden states, row after row, and the embeddings they are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Predictions<'a, T> {
    pub(crate) width: usize,
    pub(crate) hidden: &'a [T],
    pub(crate) embeddings: &'a [T],
}

/// Where gradients go. Both come as zeros.
pub(crate) struct Gradients<'a, T> {
    pub(crate) hidden: &'a mut [T],
    pub(crate) embeddings: &'a mut [T],
}

/// Memory that is used again for every batch.
#[derive(Debug, Default)]
pub(crate) struct Workspace<T> {
    values: Vec<T>,
}

impl<T: Number> Workspace<T> {
    /// Two pieces of memory of these lengths, with any content.
    fn take(&mut self, first: usize, second: usize) -> (&mut [T], &mut [T]) {
        if self.values.len() < first + second {
            make_room(&mut self.values, first + second);
            self.values.resize(first + second, T::of(0.0));
        }
        self.values[..first + second].split_at_mut(first)
    }
}

impl<'a, T: Number> Predictions<'a, T> {
    fn hidden(&self, row: usize) -> &'a [T] {
        &self.hidden[row * self.width..][..self.width]
    }

    fn embedding(&self, item: u32) -> &'a [T] {
        &self.embeddings[item as usize * self.width..][..self.width]
    }
}

/// Values that a loss holds at once, at most.
pub(crate) fn most_logits(objective: Objective, items: usize, width: usize) -> u64 {
    match objective.loss {
        Loss::Ce => softmax::most_logits(items),
        // The embeddings of the items drawn, and their gradients.
        Loss::SampledCe => (2 * objective.negatives as u64)
            .saturating_mul(width as u64)
            .saturating_add(softmax::most_logits(objective.negatives)),
        Loss::Bce => 0,
    }
}

impl Objective {
    /// The mean loss of a batch.
    pub(crate) fn evaluate<T: Number>(
        &self,
        predictions: Predictions<'_, T>,
        batch: &Batch<'_>,
        noise: Noise,
        gradients: &mut Gradients<'_, T>,
        workspace: &mut Workspace<T>,
        meter: &Arc<Meter>,
    ) -> f64 {
        let items = predictions.embeddings.len() / predictions.width;
        let targets = &batch.targets;
        match self.loss {
            Loss::Ce => softmax::over_all(predictions, targets, gradients, workspace, meter),
            Loss::SampledCe => {
                let drawn: Vec<u32> =
                    (0..self.negatives as u64).map(|index| noise.below(index, items as u32)).collect();
                softmax::over_sample(predictions, targets, &drawn, gradients, workspace, meter)
            }
            Loss::Bce => binary::evaluate(predictions, targets, &batch.unseen(items, noise), gradients),
        }
    }
}
