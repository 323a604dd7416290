//! The network: from embedded items to hidden states.
//!
//! With $x_i = \sqrt d \, e_{j_i} + p_{K-n+i}$ for the $i$-th of $n$ items of a history (the newest always has the last of the
//! $K$ positions), and dropout after the sum, each block computes
//!
//! $$ q = \mathrm{LN}(x), \quad a = q + \mathrm{Attention}(q W_Q, x W_K, x W_V), \quad f = \mathrm{LN}(a), \quad
//!    x' = f + W_2 \max(W_1 f, 0) $$
//!
//! with biases, and with dropout on attention weights, after the ReLU and after $W_2$. Both residuals start from what the norm
//! gives, keys and values from what came in, as in the authors' code. A last norm gives the hidden state $h_i$, and
//! $\langle h_i, e_j \rangle$ is how much item $j$ is expected next.
//!
//! Sequences are packed: a group's rows stand one after the other, without padding. All but the attention works on rows, so
//! nothing is computed for places where no item stands, and no sequence touches another.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor, Var};

use crate::noise::{Mask, Noise};
use crate::number::Number;
use crate::ops::{AddDropped, Attention, Dropout, LayerNorm, Linear, ReluDropout};
use crate::parameters::{Array, Parameters, Sizes};
use crate::products::Meter;

/// The arrays of the network as candle has them: all but the embeddings.
pub(crate) struct Weights {
    blocks: Vec<Block>,
    last_norm: Pair,
}

/// Weights and bias of a product, or scale and shift of a norm.
struct Pair(Tensor, Tensor);

struct Block {
    attention_norm: Pair,
    query: Pair,
    key: Pair,
    value: Pair,
    forward_norm: Pair,
    inner: Pair,
    outer: Pair,
}

impl Block {
    const PAIRS: [(Array, Array); 7] = [
        (Array::AttentionNormScale, Array::AttentionNormShift),
        (Array::QueryWeight, Array::QueryBias),
        (Array::KeyWeight, Array::KeyBias),
        (Array::ValueWeight, Array::ValueBias),
        (Array::ForwardNormScale, Array::ForwardNormShift),
        (Array::InnerWeight, Array::InnerBias),
        (Array::OuterWeight, Array::OuterBias),
    ];

    fn pairs(&self) -> [&Pair; 7] {
        let Block { attention_norm, query, key, value, forward_norm, inner, outer } = self;
        [attention_norm, query, key, value, forward_norm, inner, outer]
    }
}

/// Whether gradients will be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Train,
    Score,
}

impl Weights {
    /// Copies the arrays of a network.
    pub(crate) fn of<T: Number>(parameters: &Parameters<T>, purpose: Purpose) -> Result<Self> {
        let sizes = parameters.sizes;
        let tensor = |values: &[T], shape: &[usize]| match purpose {
            Purpose::Score => Tensor::from_slice(values, shape, &Device::Cpu),
            Purpose::Train => Ok(Var::from_slice(values, shape, &Device::Cpu)?.into_inner()),
        };
        let block = |block: usize| -> Result<Block> {
            let pair = |at: usize| -> Result<Pair> {
                let (first, second) = Block::PAIRS[at];
                let tensor = |array| tensor(parameters.of_block(array, block), &sizes.shape(array)[1..]);
                Ok(Pair(tensor(first)?, tensor(second)?))
            };
            Ok(Block {
                attention_norm: pair(0)?,
                query: pair(1)?,
                key: pair(2)?,
                value: pair(3)?,
                forward_norm: pair(4)?,
                inner: pair(5)?,
                outer: pair(6)?,
            })
        };
        let last = |array| tensor(parameters.array(array), &[sizes.hidden]);
        Ok(Weights {
            blocks: (0..sizes.blocks).map(block).collect::<Result<_>>()?,
            last_norm: Pair(last(Array::LastNormScale)?, last(Array::LastNormShift)?),
        })
    }

    /// Every tensor and where its values lie among all parameters.
    pub(crate) fn places(&self, sizes: &Sizes) -> Vec<(&Tensor, std::ops::Range<usize>)> {
        let mut places = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            for (pair, arrays) in block.pairs().into_iter().zip(Block::PAIRS) {
                places.push((&pair.0, sizes.block_range(arrays.0, number)));
                places.push((&pair.1, sizes.block_range(arrays.1, number)));
            }
        }
        places.push((&self.last_norm.0, sizes.range(Array::LastNormScale)));
        places.push((&self.last_norm.1, sizes.range(Array::LastNormShift)));
        places
    }
}

/// How a group of sequences passes the network.
pub(crate) struct Pass {
    /// Where sequences end among the rows.
    pub(crate) ends: Arc<[usize]>,
    /// Heads of the attention.
    pub(crate) heads: usize,
    /// Longest history.
    pub(crate) max_len: usize,
    /// Where masks come from and what share of values they drop; none when a history is scored.
    pub(crate) dropout: Option<(Noise, f64)>,
    /// Counts matrix products.
    pub(crate) meter: Arc<Meter>,
}

/// Places of a block where something is dropped.
const MASKS_A_BLOCK: u64 = 3;

impl Pass {
    /// The mask of a place in the network; place 0 is the input.
    fn mask(&self, place: u64) -> Option<Mask> {
        let (noise, rate) = self.dropout?;
        (rate > 0.0).then(|| Mask::new(noise.at(place), rate))
    }

    /// Hidden states of embedded rows.
    pub(crate) fn forward<T: Number>(&self, weights: &Weights, inputs: &Tensor) -> Result<Tensor> {
        let mut x = match self.mask(0) {
            Some(mask) => inputs.apply_op1(Dropout::<T>::new(mask))?,
            None => inputs.clone(),
        };
        for (number, block) in (0..).zip(&weights.blocks) {
            x = self.block::<T>(block, &x, 1 + number * MASKS_A_BLOCK)?;
        }
        norm::<T>(&weights.last_norm, &x)
    }

    fn block<T: Number>(&self, block: &Block, x: &Tensor, place: u64) -> Result<Tensor> {
        let q = norm::<T>(&block.attention_norm, x)?;
        let queries = self.linear::<T>(&block.query, &q)?;
        let keys = self.linear::<T>(&block.key, x)?;
        let values = self.linear::<T>(&block.value, x)?;
        let mask = self.mask(place).map(|mask| (mask, self.max_len));
        let attention = Attention::<T>::new(&self.ends, self.heads, mask, &self.meter);
        let a = (queries.apply_op3(&keys, &values, attention)? + q)?;

        let f = norm::<T>(&block.forward_norm, &a)?;
        let inner = self.linear::<T>(&block.inner, &f)?;
        let inner = inner.apply_op1(ReluDropout::<T>::new(self.mask(place + 1)))?;
        let outer = self.linear::<T>(&block.outer, &inner)?;
        match self.mask(place + 2) {
            Some(mask) => f.apply_op2(&outer, AddDropped::<T>::new(mask)),
            None => outer + f,
        }
    }

    fn linear<T: Number>(&self, pair: &Pair, x: &Tensor) -> Result<Tensor> {
        x.apply_op3(&pair.0, &pair.1, Linear::<T>::new(&self.meter))
    }
}

fn norm<T: Number>(pair: &Pair, x: &Tensor) -> Result<Tensor> {
    x.apply_op3(&pair.0, &pair.1, LayerNorm::<T>::new())
}

/// $\sqrt d \, e_j + p$ for every row: its item and its position.
pub(crate) fn embed<T: Number>(
    parameters: &Parameters<T>,
    rows: impl ExactSizeIterator<Item = (u32, u32)>,
) -> Vec<T> {
    let width = parameters.sizes.hidden;
    let (items, positions) =
        (parameters.array(Array::ItemEmbeddings), parameters.array(Array::PositionEmbeddings));
    let scale = T::of(width as f64).root();
    let mut embedded = Vec::with_capacity(rows.len() * width);
    for (item, position) in rows {
        let item = &items[item as usize * width..][..width];
        let position = &positions[position as usize * width..][..width];
        embedded.extend(item.iter().zip(position).map(|(&item, &position)| item * scale + position));
    }
    embedded
}
