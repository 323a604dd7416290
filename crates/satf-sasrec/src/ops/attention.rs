//! Causal self-attention of packed sequences.

use std::ops::Range;

use faer::{Accum, MatMut, MatRef};

use crate::noise::Mask;
use crate::number::{Number, dot, largest};
use crate::products::{Meter, rows, rows_mut};

/// Queries that are worked on at once: what lies beyond the newest of them is not computed.
const QUERIES: usize = 64;

/// $O = \tilde P V$ a sequence and head, where row $i$ of $P$ is the softmax of $q_i k_j^T / \sqrt{d_h}$ over $j \le i$, and
/// $\tilde P = m \odot P$ for a random mask $m$.
///
/// Backwards, with $G = \partial / \partial O$: $\partial / \partial V = \tilde P^T G$; with $H = m \odot G V^T$ and
/// $S_{ij} = P_{ij} (H_{ij} - \sum_l P_{il} H_{il})$, $\partial / \partial Q = S K / \sqrt{d_h}$ and
/// $\partial / \partial K = S^T Q / \sqrt{d_h}$. $P$ is computed again rather than kept: one product of six.
pub(crate) struct Attention<'a> {
    /// Where sequences end among the rows.
    pub(crate) ends: &'a [usize],
    /// The first row with a query; those before have keys and values only.
    pub(crate) first_query: usize,
    /// Width of queries, keys and values.
    pub(crate) width: usize,
    /// Heads, which divide the width.
    pub(crate) heads: usize,
    /// The mask of attention weights, and how many weights a query may have.
    pub(crate) mask: Option<(Mask, usize)>,
    /// Counts its products.
    pub(crate) meter: &'a Meter,
}

impl Attention<'_> {
    /// $O$ for the rows with a query.
    pub(crate) fn forward<T: Number>(&self, q: &[T], k: &[T], v: &[T]) -> Vec<T> {
        let width = self.width;
        let mut out = vec![T::of(0.0); q.len()];
        let mut weights = Vec::with_capacity(self.most_weights());
        for (start, queries) in self.pieces() {
            let keys = start..queries.end;
            for head in 0..self.heads {
                let of_head = self.columns(head);
                let rows_of = queries.start - self.first_query..queries.end - self.first_query;
                let queries_of = part(q, width, rows_of.clone(), of_head.clone());
                let keys_of = part(k, width, keys.clone(), of_head.clone());
                self.weights(queries_of, keys_of, queries.start - start, &mut weights);
                self.drop_some(&mut weights, queries.start, head, keys.len());
                let into = part_mut(&mut out, width, rows_of, of_head.clone());
                let values_of = part(v, width, keys.clone(), of_head);
                self.meter.product(into, Accum::Replace, rows(&weights, keys.len()), values_of, T::of(1.0));
            }
        }
        out
    }

    /// The gradients of queries, keys and values for that of $O$. Every row must have a query.
    pub(crate) fn backward<T: Number>(&self, q: &[T], k: &[T], v: &[T], gradient: &[T]) -> [Vec<T>; 3] {
        assert_eq!(self.first_query, 0, "attention of a part of the rows has no gradient");
        let width = self.width;
        let [mut of_q, mut of_k, mut of_v] = [(); 3].map(|()| vec![T::of(0.0); q.len()]);
        let scale = T::of(1.0) / T::of((width / self.heads) as f64).root();
        let [mut weights, mut dropped, mut of_weights] =
            [(); 3].map(|()| Vec::with_capacity(self.most_weights()));
        for (start, queries) in self.pieces() {
            let keys = start..queries.end;
            let count = keys.len();
            for head in 0..self.heads {
                let columns = self.columns(head);
                let of_queries = |values| part(values, width, queries.clone(), columns.clone());
                let of_keys = |values| part(values, width, keys.clone(), columns.clone());
                self.weights(of_queries(q), of_keys(k), queries.start - start, &mut weights);
                dropped.clone_from(&weights);
                self.drop_some(&mut dropped, queries.start, head, count);
                let into = part_mut(&mut of_v, width, keys.clone(), columns.clone());
                self.meter.product(
                    into,
                    Accum::Add,
                    rows(&dropped, count).transpose(),
                    of_queries(gradient),
                    T::of(1.0),
                );
                // H = m * G V^T, then S in its place.
                of_weights.clear();
                of_weights.resize(weights.len(), T::of(0.0));
                let into = rows_mut(&mut of_weights, count);
                self.meter.product(
                    into,
                    Accum::Replace,
                    of_queries(gradient),
                    of_keys(v).transpose(),
                    T::of(1.0),
                );
                self.drop_some(&mut of_weights, queries.start, head, count);
                for (h, p) in of_weights.chunks_exact_mut(count).zip(weights.chunks_exact(count)) {
                    let mean = dot(h, p);
                    h.iter_mut().zip(p).for_each(|(h, &p)| *h = p * (*h - mean));
                }
                let s = rows(&of_weights, count);
                let into = part_mut(&mut of_q, width, queries.clone(), columns.clone());
                self.meter.product(into, Accum::Replace, s, of_keys(k), scale);
                let into = part_mut(&mut of_k, width, keys.clone(), columns.clone());
                self.meter.product(into, Accum::Add, s.transpose(), of_queries(q), scale);
            }
        }
        [of_q, of_k, of_v]
    }

    /// The columns of a head.
    fn columns(&self, head: usize) -> Range<usize> {
        head * self.width / self.heads..(head + 1) * self.width / self.heads
    }

    /// Rows of every sequence, cut into pieces of a few queries: (first row of the sequence, queries).
    fn pieces(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).flat_map(|(start, end)| {
            let first = start.max(self.first_query);
            (first..end).step_by(QUERIES).map(move |first| (start, first..end.min(first + QUERIES)))
        })
    }

    /// Weights of one piece, at most.
    fn most_weights(&self) -> usize {
        self.pieces().map(|(start, queries)| queries.len() * (queries.end - start)).max().unwrap_or(0)
    }

    /// $P$ for some queries of a sequence, row after row: as many columns as there are keys up to the newest query.
    fn weights<T: Number>(&self, q: MatRef<'_, T>, k: MatRef<'_, T>, before: usize, weights: &mut Vec<T>) {
        let (zero, keys) = (T::of(0.0), k.nrows());
        weights.clear();
        weights.resize(q.nrows() * keys, zero);
        let scale = T::of(1.0) / T::of(q.ncols() as f64).root();
        self.meter.product(rows_mut(weights, keys), Accum::Replace, q, k.transpose(), scale);
        for (query, row) in weights.chunks_exact_mut(keys).enumerate() {
            let (seen, future) = row.split_at_mut(before + query + 1);
            let shift = largest(seen);
            let inverse = T::of(1.0) / T::exp_shifted(seen, shift);
            for weight in seen {
                *weight *= inverse;
            }
            future.fill(zero);
        }
    }

    /// Multiplies what belongs to some queries with the factors of the mask.
    fn drop_some<T: Number>(&self, values: &mut [T], first: usize, head: usize, keys: usize) {
        let Some((mask, stride)) = &self.mask else { return };
        for (query, row) in values.chunks_exact_mut(keys).enumerate() {
            let index = ((first + query) * self.heads + head) * stride;
            mask.for_row(index as u64, keys, |at, factor: T| row[at] *= factor);
        }
    }
}

/// Some rows of a head's columns.
fn part<T>(values: &[T], width: usize, rows_of: Range<usize>, columns: Range<usize>) -> MatRef<'_, T> {
    rows(values, width).get(rows_of, columns)
}

fn part_mut<T>(
    values: &mut [T],
    width: usize,
    rows_of: Range<usize>,
    columns: Range<usize>,
) -> MatMut<'_, T> {
    rows_mut(values, width).get_mut(rows_of, columns)
}
