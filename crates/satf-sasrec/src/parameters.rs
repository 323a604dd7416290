//! What is learned: eighteen arrays, one after the other in one piece of memory.
//!
//! With $n$ items, width $d$, histories of at most $K$ items and $b$ blocks:
//!
//! | array | shape | start |
//! |---|---|---|
//! | `item_embeddings` | $n \times d$ | Xavier |
//! | `position_embeddings` | $K \times d$ | Xavier |
//! | `attention_norm_scale`, `attention_norm_shift` | $b \times d$ | 1, 0 |
//! | `query_weight`, `key_weight`, `value_weight` | $b \times d \times d$ | Xavier |
//! | `query_bias`, `key_bias`, `value_bias` | $b \times d$ | 0 |
//! | `forward_norm_scale`, `forward_norm_shift` | $b \times d$ | 1, 0 |
//! | `inner_weight`, `outer_weight` | $b \times d \times d$ | Xavier |
//! | `inner_bias`, `outer_bias` | $b \times d$ | 0 |
//! | `last_norm_scale`, `last_norm_shift` | $d$ | 1, 0 |
//!
//! Xavier's start is uniform in $\pm \sqrt{6 / (\mathrm{rows} + \mathrm{columns})}$. Gradients and the moments of Adam have the
//! same layout, so that an update is one loop.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::number::Number;

/// The sizes of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Items of the catalogue, $n$.
    pub(crate) items: usize,
    /// Longest history, $K$.
    pub(crate) max_len: usize,
    /// Width, $d$.
    pub(crate) hidden: usize,
    /// Blocks, $b$; at least one.
    pub(crate) blocks: usize,
    /// Heads of the attention; they divide the width.
    pub(crate) heads: usize,
}

/// How an array starts, which also says its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Items,
    Positions,
    /// A matrix a block.
    Weights,
    /// A vector of a value, a block.
    Vectors(u8),
    /// One vector of a value.
    Last(u8),
}

/// An array of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Array {
    ItemEmbeddings,
    PositionEmbeddings,
    AttentionNormScale,
    AttentionNormShift,
    QueryWeight,
    QueryBias,
    KeyWeight,
    KeyBias,
    ValueWeight,
    ValueBias,
    ForwardNormScale,
    ForwardNormShift,
    InnerWeight,
    InnerBias,
    OuterWeight,
    OuterBias,
    LastNormScale,
    LastNormShift,
}

impl Array {
    /// All arrays in the order they lie in memory.
    pub(crate) const ALL: [Array; 18] = [
        Array::ItemEmbeddings,
        Array::PositionEmbeddings,
        Array::AttentionNormScale,
        Array::AttentionNormShift,
        Array::QueryWeight,
        Array::QueryBias,
        Array::KeyWeight,
        Array::KeyBias,
        Array::ValueWeight,
        Array::ValueBias,
        Array::ForwardNormScale,
        Array::ForwardNormShift,
        Array::InnerWeight,
        Array::InnerBias,
        Array::OuterWeight,
        Array::OuterBias,
        Array::LastNormScale,
        Array::LastNormShift,
    ];

    /// Its name in files.
    pub(crate) fn name(self) -> &'static str {
        self.describe().0
    }

    fn describe(self) -> (&'static str, Start) {
        match self {
            Array::ItemEmbeddings => ("item_embeddings", Start::Items),
            Array::PositionEmbeddings => ("position_embeddings", Start::Positions),
            Array::AttentionNormScale => ("attention_norm_scale", Start::Vectors(1)),
            Array::AttentionNormShift => ("attention_norm_shift", Start::Vectors(0)),
            Array::QueryWeight => ("query_weight", Start::Weights),
            Array::QueryBias => ("query_bias", Start::Vectors(0)),
            Array::KeyWeight => ("key_weight", Start::Weights),
            Array::KeyBias => ("key_bias", Start::Vectors(0)),
            Array::ValueWeight => ("value_weight", Start::Weights),
            Array::ValueBias => ("value_bias", Start::Vectors(0)),
            Array::ForwardNormScale => ("forward_norm_scale", Start::Vectors(1)),
            Array::ForwardNormShift => ("forward_norm_shift", Start::Vectors(0)),
            Array::InnerWeight => ("inner_weight", Start::Weights),
            Array::InnerBias => ("inner_bias", Start::Vectors(0)),
            Array::OuterWeight => ("outer_weight", Start::Weights),
            Array::OuterBias => ("outer_bias", Start::Vectors(0)),
            Array::LastNormScale => ("last_norm_scale", Start::Last(1)),
            Array::LastNormShift => ("last_norm_shift", Start::Last(0)),
        }
    }
}

/// A part of the network that has two arrays: weight and bias of a linear map, or scale and shift of a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    AttentionNorm,
    Query,
    Key,
    Value,
    ForwardNorm,
    Inner,
    Outer,
    /// The only one that is not part of a block.
    LastNorm,
}

impl Layer {
    fn arrays(self) -> [Array; 2] {
        match self {
            Layer::AttentionNorm => [Array::AttentionNormScale, Array::AttentionNormShift],
            Layer::Query => [Array::QueryWeight, Array::QueryBias],
            Layer::Key => [Array::KeyWeight, Array::KeyBias],
            Layer::Value => [Array::ValueWeight, Array::ValueBias],
            Layer::ForwardNorm => [Array::ForwardNormScale, Array::ForwardNormShift],
            Layer::Inner => [Array::InnerWeight, Array::InnerBias],
            Layer::Outer => [Array::OuterWeight, Array::OuterBias],
            Layer::LastNorm => [Array::LastNormScale, Array::LastNormShift],
        }
    }
}

impl Sizes {
    /// The extents of an array.
    pub(crate) fn shape(&self, array: Array) -> Vec<usize> {
        let &Sizes { items, max_len, hidden, blocks, .. } = self;
        match array.describe().1 {
            Start::Items => vec![items, hidden],
            Start::Positions => vec![max_len, hidden],
            Start::Weights => vec![blocks, hidden, hidden],
            Start::Vectors(_) => vec![blocks, hidden],
            Start::Last(_) => vec![hidden],
        }
    }

    fn len(&self, array: Array) -> usize {
        let &Sizes { items, max_len, hidden, blocks, .. } = self;
        match array.describe().1 {
            Start::Items => items * hidden,
            Start::Positions => max_len * hidden,
            Start::Weights => blocks * hidden * hidden,
            Start::Vectors(_) => blocks * hidden,
            Start::Last(_) => hidden,
        }
    }

    /// Where an array lies.
    pub(crate) fn range(&self, array: Array) -> Range<usize> {
        let before = Array::ALL.iter().take_while(|&&other| other != array);
        let start = before.map(|&other| self.len(other)).sum();
        start..start + self.len(array)
    }

    /// Where a block's part of an array lies. The last norm is the same for every block.
    pub(crate) fn block_range(&self, array: Array, block: usize) -> Range<usize> {
        let all = self.range(array);
        if let Start::Last(_) = array.describe().1 {
            return all;
        }
        let len = all.len() / self.blocks;
        all.start + block * len..all.start + (block + 1) * len
    }

    /// Where the arrays of layers begin: after the embeddings.
    pub(crate) fn first_layer(&self) -> usize {
        self.range(Array::AttentionNormScale).start
    }

    /// Values of all arrays together.
    pub(crate) fn num_values(&self) -> usize {
        Array::ALL.iter().map(|&array| self.len(array)).sum()
    }
}

/// All arrays of a network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameters<T> {
    pub(crate) sizes: Sizes,
    /// One array after the other, in the order of [`Array::ALL`].
    pub(crate) values: Vec<T>,
}

impl<T: Number> Parameters<T> {
    /// A network before it has learned anything. Every array has random numbers of its own.
    pub(crate) fn start(sizes: Sizes, seed: u64) -> Self {
        let mut values = Vec::with_capacity(sizes.num_values());
        for (number, &array) in (0..).zip(&Array::ALL) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(number);
            let shape = sizes.shape(array);
            let len = sizes.len(array);
            match array.describe().1 {
                Start::Vectors(value) | Start::Last(value) => {
                    values.extend(std::iter::repeat_n(T::of(f64::from(value)), len));
                }
                Start::Items | Start::Positions | Start::Weights => {
                    let [.., rows, columns] = shape.as_slice() else { unreachable!("a matrix") };
                    let bound = (6.0 / (rows + columns) as f64).sqrt();
                    let mut draw = || T::of((2.0 * rng.random::<f64>() - 1.0) * bound);
                    values.extend(std::iter::repeat_with(&mut draw).take(len));
                }
            }
        }
        Parameters { sizes, values }
    }

    /// The values of an array.
    pub(crate) fn array(&self, array: Array) -> &[T] {
        &self.values[self.sizes.range(array)]
    }

    /// A block's part of an array.
    pub(crate) fn of_block(&self, array: Array, block: usize) -> &[T] {
        &self.values[self.sizes.block_range(array, block)]
    }

    /// The two arrays of a layer of a block.
    pub(crate) fn of_layer(&self, layer: Layer, block: usize) -> [&[T]; 2] {
        layer.arrays().map(|array| self.of_block(array, block))
    }
}

/// Gradients of all arrays but the embeddings, laid out as the parameters are.
pub(crate) struct LayerGradients<T> {
    sizes: Sizes,
    pub(crate) values: Vec<T>,
}

impl<T: Number> LayerGradients<T> {
    /// All zeros.
    pub(crate) fn new(sizes: Sizes) -> Self {
        LayerGradients { sizes, values: vec![T::of(0.0); sizes.num_values() - sizes.first_layer()] }
    }

    /// The two arrays of a layer of a block.
    pub(crate) fn of_layer(&mut self, layer: Layer, block: usize) -> [&mut [T]; 2] {
        let first = self.sizes.first_layer();
        let places = layer.arrays().map(|array| {
            let range = self.sizes.block_range(array, block);
            range.start - first..range.end - first
        });
        self.values.get_disjoint_mut(places).expect("invariant: arrays lie one after the other")
    }
}

#[cfg(test)]
// Values are equal to the last bit or the test fails.
#[allow(clippy::float_cmp)]
mod tests {
    use super::*;

    #[test]
    fn arrays_fill_the_memory_without_gaps() {
        let sizes = Sizes { items: 7, max_len: 5, hidden: 4, blocks: 3, heads: 2 };
        let mut end = 0;
        for array in Array::ALL {
            let range = sizes.range(array);
            assert_eq!(range.start, end, "{}", array.name());
            end = range.end;
        }
        assert_eq!(end, sizes.num_values());
        let last = sizes.block_range(Array::KeyWeight, 2);
        assert_eq!((last.len(), last.end), (16, sizes.range(Array::KeyWeight).end));
        assert!(
            Array::ALL.iter().all(|&array| sizes.shape(array).iter().product::<usize>() == sizes.len(array))
        );
    }

    #[test]
    fn layers_share_out_all_arrays_but_the_embeddings() {
        let sizes = Sizes { items: 7, max_len: 5, hidden: 4, blocks: 3, heads: 2 };
        let parameters = Parameters::<f64>::start(sizes, 3);
        let mut gradients = LayerGradients::<f64>::new(sizes);
        let of_block = [
            Layer::AttentionNorm,
            Layer::Query,
            Layer::Key,
            Layer::Value,
            Layer::ForwardNorm,
            Layer::Inner,
            Layer::Outer,
        ];
        let layers = (0..3).flat_map(|block| of_block.map(|layer| (layer, block)));
        for (layer, block) in layers.chain([(Layer::LastNorm, 0)]) {
            let from = parameters.of_layer(layer, block);
            for (into, from) in gradients.of_layer(layer, block).into_iter().zip(from) {
                assert!(
                    into.iter().all(|&value| value == 0.0),
                    "{layer:?} of block {block} was there before"
                );
                into.iter_mut().zip(from).for_each(|(into, &value)| *into = value + 2.0);
            }
        }
        let expected = parameters.values[sizes.first_layer()..].iter().map(|value| value + 2.0);
        assert!(gradients.values.iter().copied().eq(expected));
    }

    #[test]
    fn a_start_has_xaviers_spread_and_follows_the_seed() {
        let sizes = Sizes { items: 900, max_len: 20, hidden: 64, blocks: 1, heads: 1 };
        let start = Parameters::<f64>::start(sizes, 3);
        let embeddings = start.array(Array::ItemEmbeddings);
        let variance = embeddings.iter().map(|value| value * value).sum::<f64>() / embeddings.len() as f64;
        assert!((variance / (2.0 / 964.0) - 1.0).abs() < 0.03, "{variance}");
        assert!(start.array(Array::LastNormScale).iter().all(|&value| value == 1.0));
        assert!(start.array(Array::OuterBias).iter().all(|&value| value == 0.0));
        assert_eq!(start, Parameters::start(sizes, 3));
        assert_ne!(start, Parameters::start(sizes, 4));
        assert_ne!(start.array(Array::QueryWeight), start.array(Array::KeyWeight));
    }
}
