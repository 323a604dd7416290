//! A trained network in use.

use faer::{Accum, MatMut, MatRef};
use rayon::prelude::*;
use satf::interactions::ItemIndex;
use satf::linalg::dense::matmul;
use satf::models::{
    ModelError, Quantization, Recommender, Shares, Similarities, StoredTensors, Tensor, TensorError, UserData,
};
use satf::prepare::History;

use crate::SasRecConfig;
use crate::network::{Pass, embed};
use crate::number::dot;
use crate::parameters::{Array, Parameters, Sizes};
use crate::products::Meter;

/// Why there is no network in fewer bytes.
pub(crate) const NEVER_QUANTIZED: &str =
    "its item factors are part of a network; pure-svd, ga-satf, la-satf and d-satf can be";

/// A trained network: what comes next is the product of its last hidden state with every item's embedding.
pub struct SasRec {
    parameters: Parameters<f32>,
}

impl SasRec {
    /// A network with these parameters. An error if one of them is not a number.
    pub(crate) fn new(parameters: Parameters<f32>) -> Result<Self, ModelError> {
        if !parameters.values.par_iter().all(|value| value.is_finite()) {
            let reason =
                "a weight is no longer finite; hint: lower learning_rate, or set clip_norm".to_owned();
            return Err(ModelError::Numerics { model: SasRecConfig::NAME, reason });
        }
        Ok(SasRec { parameters })
    }

    /// A network from the arrays of a file.
    pub(crate) fn restore(sizes: Sizes, tensors: &StoredTensors<'_>) -> Result<Self, TensorError> {
        let mut values = Vec::new();
        for array in Array::ALL {
            let shape: Vec<Option<usize>> = sizes.shape(array).into_iter().map(Some).collect();
            values.extend(tensors.values::<f32>(array.name(), &shape)?);
        }
        let parameters = Parameters { sizes, values };
        SasRec::new(parameters).map_err(|error| TensorError::new("all", error, "a network"))
    }

    /// The last hidden state of a history that is not empty. Every history passes the network alone, so that its bits depend
    /// on nothing else.
    fn last_hidden(&self, history: &[ItemIndex]) -> Vec<f32> {
        let max_len = self.parameters.sizes.max_len;
        let newest = &history[history.len() - history.len().min(max_len)..];
        let first = max_len - newest.len();
        let rows = newest.iter().enumerate().map(|(at, item)| (item.0, (first + at) as u32));
        let (ends, meter) = ([newest.len()], Meter::default());
        let pass = Pass { parameters: &self.parameters, ends: &ends, dropout: None, meter: &meter };
        pass.last_state(embed(&self.parameters, rows))
    }
}

impl Recommender for SasRec {
    fn num_items(&self) -> usize {
        self.parameters.sizes.items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        let Sizes { items, hidden: width, .. } = self.parameters.sizes;
        assert_eq!(scores.len(), histories.len() * items, "one score a history and item");
        let outside = histories.iter().flat_map(|history| history.iter()).find(|item| item.get() >= items);
        assert!(outside.is_none(), "{outside:?} is outside the catalogue of {items}");
        // A product with a single column takes another kernel that rounds otherwise: a lone history gets company.
        let columns = histories.len().max(2);
        let mut states = vec![0f32; columns * width];
        states.par_chunks_mut(width).zip(histories).for_each(|(state, history)| {
            if !history.is_empty() {
                state.copy_from_slice(&self.last_hidden(history));
            }
        });
        let states = MatRef::from_column_major_slice(&states, width, columns);
        let embeddings =
            MatRef::from_row_major_slice(self.parameters.array(Array::ItemEmbeddings), items, width);
        let product = |into: &mut [f32]| {
            let into = MatMut::from_column_major_slice_mut(into, items, columns);
            matmul(into, Accum::Replace, embeddings, states, 1.0);
        };
        if histories.len() == columns {
            product(scores);
        } else if !histories.is_empty() {
            let mut wide = vec![0f32; columns * items];
            product(&mut wide);
            scores.copy_from_slice(&wide[..scores.len()]);
        }
        // Of a product that is nothing, kernels give 0 or -0 as their shapes have it; the sum makes 0 of both.
        scores.par_iter_mut().for_each(|score| *score += 0.0);
    }

    fn memory_bytes(&self) -> usize {
        self.parameters.values.len() * size_of::<f32>()
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let sizes = self.parameters.sizes;
        let tensor =
            |array: Array| Tensor::new(array.name(), &sizes.shape(array), self.parameters.array(array));
        Array::ALL.into_iter().map(tensor).collect()
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let mut scores = vec![0f32; self.num_items()];
        self.score_batch(&[history], &mut scores);
        Shares::of_none(&history, f64::from(scores[item.get()]))
    }

    fn has_shares(&self) -> bool {
        false
    }

    fn quantized(&self, _quantization: Quantization) -> Result<Box<dyn Recommender>, &'static str> {
        Err(NEVER_QUANTIZED)
    }

    /// The cosine of the angle between item embeddings.
    fn similarities(&self, item: ItemIndex) -> Option<Similarities> {
        let width = self.parameters.sizes.hidden;
        let embeddings = self.parameters.array(Array::ItemEmbeddings);
        let own = &embeddings[item.get() * width..][..width];
        let cosine = |row: &[f32]| {
            let norms = (dot(own, own) * dot(row, row)).sqrt();
            if norms > 0.0 { dot(row, own) / norms } else { 0.0 }
        };
        let values = embeddings.par_chunks_exact(width).map(cosine).collect();
        Some(Similarities { measure: "cosine of item embeddings", values })
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}
