//! A trained network in use.

use faer::{Accum, MatMut, MatRef};
use rayon::prelude::*;
use satf::History;
use satf::interactions::ItemIndex;
use satf::linalg::dense::{matmul, matmul_alone};
use satf::models::{
    Array, ModelError, Quantization, Recommender, Scores, Shares, Similarities, StoredTensors, Tensor,
    TensorError, UserData, Workspace,
};

use crate::SasRecConfig;
use crate::network::{Pass, embed};
use crate::number::dot;
use crate::parameters::{Array as Parameter, Parameters, Sizes};
use crate::products::Meter;

/// Why there is no network in fewer bytes.
pub(crate) const NEVER_QUANTIZED: &str =
    "its item factors are part of a network; pure-svd, ga-satf, la-satf and d-satf can be";

/// A trained network: what comes next is the product of its last hidden state with every item's embedding.
pub struct SasRec {
    /// Sizes, with the items of the catalogue.
    sizes: Sizes,
    /// The embedding of every item: nearly all there is, used where it lies in a file.
    embeddings: Array<f32>,
    /// All else, as a network without items.
    layers: Parameters<f32>,
}

/// Columns of a product at least. One with a single column takes another kernel that rounds otherwise: a lone history gets company.
const COMPANY: usize = 2;

impl SasRec {
    /// A network with these parameters. An error if one of them is not a number.
    pub(crate) fn new(parameters: Parameters<f32>) -> Result<Self, ModelError> {
        if !parameters.values.par_iter().all(|value| value.is_finite()) {
            let reason =
                "a weight is no longer finite; hint: lower learning_rate, or set clip_norm".to_owned();
            return Err(ModelError::Numerics { model: SasRecConfig::NAME, reason });
        }
        let Parameters { sizes, mut values } = parameters;
        let layers = values.split_off(sizes.range(Parameter::ItemEmbeddings).end);
        Ok(SasRec::from_parts(sizes, values.into(), layers))
    }

    /// Item embeddings, and all other arrays one after the other.
    fn from_parts(sizes: Sizes, embeddings: Array<f32>, layers: Vec<f32>) -> Self {
        let layers = Parameters { sizes: Sizes { items: 0, ..sizes }, values: layers };
        SasRec { sizes, embeddings, layers }
    }

    /// A network from the arrays of a file.
    pub(crate) fn restore(sizes: Sizes, tensors: &StoredTensors<'_>) -> Result<Self, TensorError> {
        let shape = |array| -> Vec<Option<usize>> { sizes.shape(array).into_iter().map(Some).collect() };
        let [items, others @ ..] = Parameter::ALL;
        let embeddings = tensors.array(items.name(), &shape(items))?;
        let mut layers = Vec::new();
        for array in others {
            layers.extend(tensors.values::<f32>(array.name(), &shape(array))?);
        }
        Ok(SasRec::from_parts(sizes, embeddings, layers))
    }

    /// The last hidden state of a history that is not empty. Every history passes the network alone, so that its bits depend
    /// on nothing else.
    fn last_hidden(&self, history: &[ItemIndex]) -> Vec<f32> {
        let max_len = self.sizes.max_len;
        let newest = &history[history.len() - history.len().min(max_len)..];
        let first = max_len - newest.len();
        let rows = newest.iter().enumerate().map(|(at, item)| (item.0, (first + at) as u32));
        let (ends, meter) = ([newest.len()], Meter::default());
        let pass = Pass { parameters: &self.layers, ends: &ends, dropout: None, meter: &meter };
        pass.last_state(embed(&self.embeddings, &self.layers, rows))
    }

    /// # Panics
    /// If an item is outside the catalogue.
    fn check_history(&self, history: History<'_>) {
        let items = self.sizes.items;
        let outside = history.iter().find(|item| item.get() >= items);
        assert!(outside.is_none(), "{outside:?} is outside the catalogue of {items}");
    }

    /// The embeddings as a matrix.
    fn embeddings(&self) -> MatRef<'_, f32> {
        MatRef::from_row_major_slice(&self.embeddings, self.sizes.items, self.sizes.hidden)
    }
}

/// Makes 0 of -0. Of a product that is nothing, as that of an empty history, kernels give either, as their shapes have it.
fn clear_sign_of_zero(score: &mut f32) {
    *score += 0.0;
}

impl Recommender for SasRec {
    fn num_items(&self) -> usize {
        self.sizes.items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        let Sizes { items, hidden: width, .. } = self.sizes;
        assert_eq!(scores.len(), histories.len() * items, "one score per history and item");
        for history in histories {
            self.check_history(*history);
        }
        let columns = histories.len().max(COMPANY);
        let mut states = vec![0f32; columns * width];
        states.par_chunks_mut(width).zip(histories).for_each(|(state, history)| {
            if !history.is_empty() {
                state.copy_from_slice(&self.last_hidden(history));
            }
        });
        let states = MatRef::from_column_major_slice(&states, width, columns);
        let product = |into: &mut [f32]| {
            let into = MatMut::from_column_major_slice_mut(into, items, columns);
            matmul(into, Accum::Replace, self.embeddings(), states, 1.0);
        };
        if histories.len() == columns {
            product(scores);
        } else if !histories.is_empty() {
            let mut wide = vec![0f32; columns * items];
            product(&mut wide);
            scores.copy_from_slice(&wide[..scores.len()]);
        }
        scores.par_iter_mut().for_each(clear_sign_of_zero);
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        self.check_history(history);
        let Sizes { items, hidden: width, .. } = self.sizes;
        let (wide, states) = workspace.dense_and_features(COMPANY * items, COMPANY * width);
        states.fill(0.0);
        if !history.is_empty() {
            states[..width].copy_from_slice(&self.last_hidden(&history));
        }
        let states = MatRef::from_column_major_slice(states, width, COMPANY);
        let into = MatMut::from_column_major_slice_mut(wide, items, COMPANY);
        matmul_alone(into, Accum::Replace, self.embeddings(), states, 1.0);
        let scores = &mut wide[..items];
        scores.iter_mut().for_each(clear_sign_of_zero);
        Scores::Dense(scores)
    }

    fn item_factors(&self) -> Option<(&[f32], usize)> {
        Some((&self.embeddings, self.sizes.hidden))
    }

    fn memory_bytes(&self) -> usize {
        (self.embeddings.len() + self.layers.values.len()) * size_of::<f32>()
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let values = |array: Parameter| match array {
            Parameter::ItemEmbeddings => &*self.embeddings,
            layer => self.layers.array(layer),
        };
        let tensor = |array: Parameter| Tensor::new(array.name(), &self.sizes.shape(array), values(array));
        Parameter::ALL.into_iter().map(tensor).collect()
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
        let width = self.sizes.hidden;
        let embeddings: &[f32] = &self.embeddings;
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
