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

use candle_core::{CustomOp1, CustomOp2, CustomOp3, Device, Result, Tensor, bail};

use crate::noise::{Mask, Noise};
use crate::number::Number;
use crate::ops::{AddDropped, Attention, Dropout, LayerNorm, Linear, ReluDropout, add};
#[cfg(test)]
use crate::parameters::Sizes;
use crate::parameters::{Array, Parameters};
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
}

impl Weights {
    /// Copies the arrays of a network.
    pub(crate) fn of<T: Number>(parameters: &Parameters<T>) -> Result<Self> {
        Weights::with(parameters, |values, shape| Tensor::from_slice(values, shape, &Device::Cpu))
    }

    /// The arrays of a network, each made a tensor by `tensor`.
    pub(crate) fn with<T: Number>(
        parameters: &Parameters<T>,
        tensor: impl Fn(&[T], &[usize]) -> Result<Tensor>,
    ) -> Result<Self> {
        let sizes = parameters.sizes;
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
    #[cfg(test)]
    pub(crate) fn places(&self, sizes: &Sizes) -> Vec<(&Tensor, std::ops::Range<usize>)> {
        let mut places = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let Block { attention_norm, query, key, value, forward_norm, inner, outer } = block;
            let pairs = [attention_norm, query, key, value, forward_norm, inner, outer];
            for (pair, arrays) in pairs.into_iter().zip(Block::PAIRS) {
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
    #[cfg(test)]
    pub(crate) fn forward<T: Number>(&self, weights: &Weights, inputs: &Tensor) -> Result<Tensor> {
        Ok(self.trace::<T>(weights, inputs)?.hidden)
    }

    /// The hidden state of the last row of a single sequence. Of the last block only what that row needs is computed: keys and
    /// values of all rows, everything else of one.
    pub(crate) fn last_state<T: Number>(&self, weights: &Weights, inputs: &Tensor) -> Result<Tensor> {
        let Some((last, before)) = weights.blocks.split_last() else {
            return norm::<T>(&weights.last_norm, inputs);
        };
        let mut x = inputs.clone();
        for (number, block) in before.iter().enumerate() {
            x = self.block::<T>(block, x, number)?.1;
        }
        let newest = x.dim(0)? - 1;
        let q = norm::<T>(&last.attention_norm, &x.narrow(0, newest, 1)?)?;
        let query = self.linear::<T>(&last.query, &q)?;
        let (keys, values) = (self.linear::<T>(&last.key, &x)?, self.linear::<T>(&last.value, &x)?);
        let attention = self.attention::<T>(before.len()).with_queries_from(newest);
        let attended = query.apply_op3(&keys, &values, attention)?;
        let next = self.feed_forward::<T>(last, &q, &attended, before.len())?.1;
        norm::<T>(&weights.last_norm, &next)
    }

    /// Hidden states of embedded rows, and what the way back needs.
    pub(crate) fn trace<T: Number>(&self, weights: &Weights, inputs: &Tensor) -> Result<Trace> {
        let mut x = match self.mask(0) {
            Some(mask) => inputs.apply_op1(Dropout::<T>::new(mask))?,
            None => inputs.clone(),
        };
        let mut blocks = Vec::with_capacity(weights.blocks.len());
        for (number, block) in weights.blocks.iter().enumerate() {
            let (trace, next) = self.block::<T>(block, x, number)?;
            blocks.push(trace);
            x = next;
        }
        let hidden = norm::<T>(&weights.last_norm, &x)?;
        Ok(Trace { blocks, last: x, hidden })
    }

    fn block<T: Number>(&self, block: &Block, x: Tensor, number: usize) -> Result<(BlockTrace, Tensor)> {
        let q = norm::<T>(&block.attention_norm, &x)?;
        let queries = self.linear::<T>(&block.query, &q)?;
        let keys = self.linear::<T>(&block.key, &x)?;
        let values = self.linear::<T>(&block.value, &x)?;
        let attended = queries.apply_op3(&keys, &values, self.attention::<T>(number))?;
        let ([a, f, inner], next) = self.feed_forward::<T>(block, &q, &attended, number)?;
        Ok((BlockTrace { x, q, queries, keys, values, a, f, inner }, next))
    }

    /// The second half of a block: $a$, $f$, what the ReLU gives, and what the block gives.
    fn feed_forward<T: Number>(
        &self,
        block: &Block,
        q: &Tensor,
        attended: &Tensor,
        number: usize,
    ) -> Result<([Tensor; 3], Tensor)> {
        let a = q.apply_op2(attended, AddDropped::<T>::new(None))?;
        let f = norm::<T>(&block.forward_norm, &a)?;
        let inner = self.linear::<T>(&block.inner, &f)?;
        let inner = inner.apply_op1(ReluDropout::<T>::new(self.mask(place_of(number, 1))))?;
        let outer = self.linear::<T>(&block.outer, &inner)?;
        let next = f.apply_op2(&outer, AddDropped::<T>::new(self.mask(place_of(number, 2))))?;
        Ok(([a, f, inner], next))
    }

    fn attention<T: Number>(&self, number: usize) -> Attention<T> {
        let mask = self.mask(place_of(number, 0)).map(|mask| (mask, self.max_len));
        Attention::new(&self.ends, self.heads, mask, &self.meter)
    }

    fn linear<T: Number>(&self, pair: &Pair, x: &Tensor) -> Result<Tensor> {
        x.apply_op3(&pair.0, &pair.1, Linear::<T>::new(&self.meter))
    }

    /// Takes the gradient `of_hidden` of the hidden states back to the embedded rows. What every array gets on the way is
    /// handed to `put`: the array, the block it belongs to, and its gradient.
    pub(crate) fn backward<T: Number>(
        &self,
        weights: &Weights,
        trace: Trace,
        of_hidden: &Tensor,
        put: &mut dyn FnMut(Array, usize, &Tensor) -> Result<()>,
    ) -> Result<Tensor> {
        let Trace { blocks, last, hidden } = trace;
        let mut put_pair = |arrays: (Array, Array), block: usize, pair: Pair| {
            put(arrays.0, block, &pair.0)?;
            put(arrays.1, block, &pair.1)
        };
        let last_arrays = (Array::LastNormScale, Array::LastNormShift);
        let (mut gradient, pair) = norm_backward::<T>(&weights.last_norm, &last, &hidden, of_hidden)?;
        put_pair(last_arrays, 0, pair)?;
        for (number, (block, trace)) in weights.blocks.iter().zip(blocks).enumerate().rev() {
            let mut put = |at: usize, pair: Pair| put_pair(Block::PAIRS[at], number, pair);
            gradient = self.block_backward::<T>(block, trace, number, &gradient, &mut put)?;
        }
        match self.mask(0) {
            Some(mask) => required(Dropout::<T>::new(mask).bwd(&last, &last, &gradient)?),
            None => Ok(gradient),
        }
    }

    /// The steps of [`Pass::block`] in reverse. `put` gets the place of a pair in [`Block::PAIRS`] and its gradient.
    fn block_backward<T: Number>(
        &self,
        block: &Block,
        trace: BlockTrace,
        number: usize,
        gradient: &Tensor,
        put: &mut dyn FnMut(usize, Pair) -> Result<()>,
    ) -> Result<Tensor> {
        let BlockTrace { x, q, queries, keys, values, a, f, inner } = trace;
        let linear = |pair: &Pair, x: &Tensor, gradient: &Tensor| {
            // The result of a product plays no part in its gradient.
            pair_of(Linear::<T>::new(&self.meter).bwd(x, &pair.0, &pair.1, x, gradient)?)
        };
        let sum = AddDropped::<T>::new(self.mask(place_of(number, 2)));
        let (of_f, of_outer) = sum.bwd(&f, &f, &f, gradient)?;
        let (of_inner, pair) = linear(&block.outer, &inner, &required(of_outer)?)?;
        put(6, pair)?;
        let relu = ReluDropout::<T>::new(self.mask(place_of(number, 1)));
        let of_inner = required(relu.bwd(&inner, &inner, &of_inner)?)?;
        let (through, pair) = linear(&block.inner, &f, &of_inner)?;
        put(5, pair)?;
        let of_f = add::<T>(&required(of_f)?, &through)?;
        let (of_a, pair) = norm_backward::<T>(&block.forward_norm, &a, &f, &of_f)?;
        put(4, pair)?;

        let attention = self.attention::<T>(number);
        let (of_queries, of_keys, of_values) = attention.bwd(&queries, &keys, &values, &a, &of_a)?;
        let (through_values, pair) = linear(&block.value, &x, &required(of_values)?)?;
        put(3, pair)?;
        let (through_keys, pair) = linear(&block.key, &x, &required(of_keys)?)?;
        put(2, pair)?;
        let (through_queries, pair) = linear(&block.query, &q, &required(of_queries)?)?;
        put(1, pair)?;
        let of_q = add::<T>(&of_a, &through_queries)?;
        let (of_x, pair) = norm_backward::<T>(&block.attention_norm, &x, &q, &of_q)?;
        put(0, pair)?;
        add::<T>(&add::<T>(&of_x, &through_keys)?, &through_values)
    }
}

/// A group's way through the network: what its gradients need.
pub(crate) struct Trace {
    blocks: Vec<BlockTrace>,
    /// What the last norm got.
    last: Tensor,
    /// The hidden states.
    pub(crate) hidden: Tensor,
}

/// The same of one block, named as in the formulas.
struct BlockTrace {
    x: Tensor,
    q: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    a: Tensor,
    f: Tensor,
    /// After the ReLU.
    inner: Tensor,
}

/// The number of a place in the network where something is dropped.
fn place_of(block: usize, place: u64) -> u64 {
    1 + block as u64 * MASKS_A_BLOCK + place
}

fn norm<T: Number>(pair: &Pair, x: &Tensor) -> Result<Tensor> {
    x.apply_op3(&pair.0, &pair.1, LayerNorm::<T>::new())
}

fn norm_backward<T: Number>(
    pair: &Pair,
    x: &Tensor,
    y: &Tensor,
    gradient: &Tensor,
) -> Result<(Tensor, Pair)> {
    pair_of(LayerNorm::<T>::new().bwd(x, &pair.0, &pair.1, y, gradient)?)
}

/// The gradient of an argument, and those of the arrays beside it.
fn pair_of(gradients: (Option<Tensor>, Option<Tensor>, Option<Tensor>)) -> Result<(Tensor, Pair)> {
    Ok((required(gradients.0)?, Pair(required(gradients.1)?, required(gradients.2)?)))
}

fn required(gradient: Option<Tensor>) -> Result<Tensor> {
    match gradient {
        Some(gradient) => Ok(gradient),
        None => bail!("an operation without a gradient"),
    }
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
