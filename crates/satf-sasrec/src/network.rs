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

use crate::noise::{Mask, Noise};
use crate::number::{Number, add_scaled};
use crate::ops::{Attention, LayerNorm, Linear, add_dropped, drop_some, relu_dropout, relu_dropout_backward};
use crate::parameters::{Array, Layer, LayerGradients, Parameters};
use crate::products::Meter;

/// How a group of sequences passes the network.
pub(crate) struct Pass<'a, T> {
    pub(crate) parameters: &'a Parameters<T>,
    /// Where sequences end among the rows.
    pub(crate) ends: &'a [usize],
    /// Where masks come from and what share of values they drop; none when a history is scored.
    pub(crate) dropout: Option<(Noise, f64)>,
    /// Counts matrix products.
    pub(crate) meter: &'a Meter,
}

/// Places of a block where something is dropped.
const MASKS_A_BLOCK: u64 = 3;

/// The number of a place in the network where something is dropped; place 0 is the input.
fn place_of(block: usize, place: u64) -> u64 {
    1 + block as u64 * MASKS_A_BLOCK + place
}

impl<T: Number> Pass<'_, T> {
    /// The mask of a place in the network.
    fn mask(&self, place: u64) -> Option<Mask> {
        let (noise, rate) = self.dropout?;
        (rate > 0.0).then(|| Mask::new(noise.at(place), rate))
    }

    fn norm(&self, layer: Layer, block: usize) -> LayerNorm<'_, T> {
        let [scale, shift] = self.parameters.of_layer(layer, block);
        LayerNorm { scale, shift }
    }

    fn linear(&self, layer: Layer, block: usize) -> Linear<'_, T> {
        let [weight, bias] = self.parameters.of_layer(layer, block);
        Linear { weight, bias, meter: self.meter }
    }

    /// The attention of a block, with queries from row `first_query` on.
    fn attention(&self, block: usize, first_query: usize) -> Attention<'_> {
        let sizes = &self.parameters.sizes;
        let mask = self.mask(place_of(block, 0)).map(|mask| (mask, sizes.max_len));
        let (ends, meter) = (self.ends, self.meter);
        Attention { ends, first_query, width: sizes.hidden, heads: sizes.heads, mask, meter }
    }

    /// The hidden state of the last row of a single sequence. Of the last block only what that row needs is computed: keys and
    /// values of all rows, everything else of one.
    pub(crate) fn last_state(&self, inputs: Vec<T>) -> Vec<T> {
        let sizes = &self.parameters.sizes;
        let newest = inputs.len() / sizes.hidden - 1;
        let last = sizes.blocks - 1;
        let mut x = inputs;
        for number in 0..last {
            x = self.block(x, number).1;
        }
        let q = self.norm(Layer::AttentionNorm, last).forward(&x[newest * sizes.hidden..]);
        let query = self.linear(Layer::Query, last).forward(&q);
        let keys = self.linear(Layer::Key, last).forward(&x);
        let values = self.linear(Layer::Value, last).forward(&x);
        let attended = self.attention(last, newest).forward(&query, &keys, &values);
        let (_, next) = self.feed_forward(&q, attended, last);
        self.norm(Layer::LastNorm, 0).forward(&next)
    }

    /// Hidden states of embedded rows, and what the way back needs.
    pub(crate) fn forward(&self, inputs: Vec<T>) -> (Vec<T>, Trace<T>) {
        let mut x = inputs;
        if let Some(mask) = self.mask(0) {
            drop_some(&mut x, &mask);
        }
        let blocks = self.parameters.sizes.blocks;
        let mut traces = Vec::with_capacity(blocks);
        for number in 0..blocks {
            let (trace, next) = self.block(x, number);
            traces.push(trace);
            x = next;
        }
        let hidden = self.norm(Layer::LastNorm, 0).forward(&x);
        (hidden, Trace { blocks: traces, last: x })
    }

    fn block(&self, x: Vec<T>, number: usize) -> (BlockTrace<T>, Vec<T>) {
        let q = self.norm(Layer::AttentionNorm, number).forward(&x);
        let queries = self.linear(Layer::Query, number).forward(&q);
        let keys = self.linear(Layer::Key, number).forward(&x);
        let values = self.linear(Layer::Value, number).forward(&x);
        let attended = self.attention(number, 0).forward(&queries, &keys, &values);
        let ([a, f, inner], next) = self.feed_forward(&q, attended, number);
        (BlockTrace { x, q, queries, keys, values, a, f, inner }, next)
    }

    /// The second half of a block: $a$, $f$, what the ReLU gives, and what the block gives.
    fn feed_forward(&self, q: &[T], attended: Vec<T>, number: usize) -> ([Vec<T>; 3], Vec<T>) {
        let mut a = attended;
        add_dropped(&mut a, q, None);
        let f = self.norm(Layer::ForwardNorm, number).forward(&a);
        let mut inner = self.linear(Layer::Inner, number).forward(&f);
        relu_dropout(&mut inner, self.mask(place_of(number, 1)).as_ref());
        let mut next = self.linear(Layer::Outer, number).forward(&inner);
        add_dropped(&mut next, &f, self.mask(place_of(number, 2)).as_ref());
        ([a, f, inner], next)
    }

    /// Takes the gradient `of_hidden` of the hidden states back to the embedded rows. What every layer gets on the way goes to
    /// `into`, which comes as zeros.
    pub(crate) fn backward(&self, trace: Trace<T>, of_hidden: &[T], into: &mut LayerGradients<T>) -> Vec<T> {
        let Trace { blocks, last } = trace;
        let of_last_norm = into.of_layer(Layer::LastNorm, 0);
        let mut gradient = self.norm(Layer::LastNorm, 0).backward(&last, of_hidden, of_last_norm);
        for (number, trace) in blocks.into_iter().enumerate().rev() {
            let of_a = self.feed_forward_backward(&trace, number, gradient, into);
            gradient = self.attention_backward(&trace, number, &of_a, into);
        }
        if let Some(mask) = self.mask(0) {
            drop_some(&mut gradient, &mask);
        }
        gradient
    }

    /// The steps of [`Pass::feed_forward`] in reverse: from the gradient of what a block gives to that of $a$.
    fn feed_forward_backward(
        &self,
        trace: &BlockTrace<T>,
        number: usize,
        gradient: Vec<T>,
        into: &mut LayerGradients<T>,
    ) -> Vec<T> {
        let BlockTrace { a, f, inner, .. } = trace;
        let outer = self.linear(Layer::Outer, number);
        let of_outer = into.of_layer(Layer::Outer, number);
        let mut of_inner = match self.mask(place_of(number, 2)) {
            None => outer.backward(inner, &gradient, of_outer),
            Some(mask) => {
                let mut left = gradient.clone();
                drop_some(&mut left, &mask);
                outer.backward(inner, &left, of_outer)
            }
        };
        relu_dropout_backward(inner, &mut of_inner, self.mask(place_of(number, 1)).as_ref());
        let through =
            self.linear(Layer::Inner, number).backward(f, &of_inner, into.of_layer(Layer::Inner, number));
        let mut of_f = gradient;
        add_scaled(&mut of_f, &through, T::of(1.0));
        self.norm(Layer::ForwardNorm, number).backward(a, &of_f, into.of_layer(Layer::ForwardNorm, number))
    }

    /// The first half of [`Pass::block`] in reverse: from the gradient of $a$ to that of $x$.
    fn attention_backward(
        &self,
        trace: &BlockTrace<T>,
        number: usize,
        of_a: &[T],
        into: &mut LayerGradients<T>,
    ) -> Vec<T> {
        let BlockTrace { x, q, queries, keys, values, .. } = trace;
        let one = T::of(1.0);
        let [of_queries, of_keys, of_values] =
            self.attention(number, 0).backward(queries, keys, values, of_a);
        let mut linear_backward = |layer: Layer, x: &[T], gradient: &[T]| {
            self.linear(layer, number).backward(x, gradient, into.of_layer(layer, number))
        };
        let through_values = linear_backward(Layer::Value, x, &of_values);
        let through_keys = linear_backward(Layer::Key, x, &of_keys);
        let mut of_q = linear_backward(Layer::Query, q, &of_queries);
        add_scaled(&mut of_q, of_a, one);
        let norm = self.norm(Layer::AttentionNorm, number);
        let mut of_x = norm.backward(x, &of_q, into.of_layer(Layer::AttentionNorm, number));
        add_scaled(&mut of_x, &through_keys, one);
        add_scaled(&mut of_x, &through_values, one);
        of_x
    }
}

/// A group's way through the network: what its gradients need.
pub(crate) struct Trace<T> {
    blocks: Vec<BlockTrace<T>>,
    /// What the last norm got.
    last: Vec<T>,
}

/// The same of one block, named as in the formulas.
struct BlockTrace<T> {
    x: Vec<T>,
    q: Vec<T>,
    queries: Vec<T>,
    keys: Vec<T>,
    values: Vec<T>,
    a: Vec<T>,
    f: Vec<T>,
    /// After the ReLU.
    inner: Vec<T>,
}

/// $\sqrt d \, e_j + p$ for every row: its item and its position. The embeddings of all items come apart from the other parameters.
pub(crate) fn embed<T: Number>(
    items: &[T],
    parameters: &Parameters<T>,
    rows: impl ExactSizeIterator<Item = (u32, u32)>,
) -> Vec<T> {
    let width = parameters.sizes.hidden;
    let positions = parameters.array(Array::PositionEmbeddings);
    let scale = T::of(width as f64).root();
    let mut embedded = Vec::with_capacity(rows.len() * width);
    for (item, position) in rows {
        let item = &items[item as usize * width..][..width];
        let position = &positions[position as usize * width..][..width];
        embedded.extend(item.iter().zip(position).map(|(&item, &position)| item * scale + position));
    }
    embedded
}
