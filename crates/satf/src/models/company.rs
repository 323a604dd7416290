//! Which items are alike by the company they keep: what comes before and after each of them.
//!
//! With the weights $T_{ab}$ of "$a$, then $b$", their row sums $r_a$, column sums $k_b$ and total $t$, the excess of a pair over what
//! the popularity of both leads to expect, and the profile of an item, are
//!
//! $$ e_{ab} = \max\Bigl(0, T_{ab} - \frac{r_a k_b}{t}\Bigr), \qquad x_a = (e_{a \cdot}, e_{\cdot a}), $$
//!
//! and two items are as alike as their profiles: $\langle x_a, x_b \rangle / (\lVert x_a \rVert \lVert x_b \rVert)$. Items that replace each other
//! need never meet in one history to have the same neighbours, and what follows an item is not like it for that: the weight between
//! two items is in neither product. Without the expectation, everything is like everything on a dense log, for all items stand
//! beside the popular ones.

use super::Similarities;
use super::item_rows::ItemRows;
use crate::interactions::ItemIndex;

/// What is measured, in words.
const MEASURE: &str = "cosine of what comes before and after them, beyond what popularity explains";

/// Sums of weights: what is expected of a pair follows from them.
struct Expectation {
    of_rows: Vec<f64>,
    of_columns: Vec<f64>,
    total: f64,
}

impl Expectation {
    fn of(rows: &ItemRows) -> Self {
        let num_items = rows.num_items();
        let (mut of_rows, mut of_columns) = (vec![0.0; num_items], vec![0.0; num_items]);
        for (source, sum) in of_rows.iter_mut().enumerate() {
            for (target, weight) in entries(rows, source) {
                *sum += weight;
                of_columns[target] += weight;
            }
        }
        let total = of_rows.iter().sum();
        Expectation { of_rows, of_columns, total }
    }

    /// $e_{ab}$.
    fn excess(&self, source: usize, target: usize, weight: f64) -> f64 {
        // Not a number where all weights are 0: then there is no excess either.
        (weight - self.of_rows[source] * self.of_columns[target] / self.total).max(0.0)
    }
}

fn entries(rows: &ItemRows, source: usize) -> impl Iterator<Item = (usize, f64)> {
    let (targets, weights) = rows.row(ItemIndex(source as u32));
    targets.iter().zip(weights).map(|(target, &weight)| (target.get(), f64::from(weight)))
}

/// How alike every item is to `item`. Takes two passes over all pairs, and a few numbers per item.
pub(super) fn similarities(rows: &ItemRows, item: ItemIndex) -> Similarities {
    let num_items = rows.num_items();
    let expectation = Expectation::of(rows);
    let (mut after, mut before) = (vec![0.0; num_items], vec![0.0; num_items]);
    for (target, weight) in entries(rows, item.get()) {
        after[target] = expectation.excess(item.get(), target, weight);
    }
    for (source, value) in before.iter_mut().enumerate() {
        let weight = rows.weight(ItemIndex(source as u32), item);
        *value = expectation.excess(source, item.get(), weight);
    }
    let (mut products, mut squares) = (vec![0.0; num_items], vec![0.0; num_items]);
    for source in 0..num_items {
        for (target, weight) in entries(rows, source) {
            let excess = expectation.excess(source, target, weight);
            products[source] += excess * after[target];
            products[target] += excess * before[source];
            squares[source] += excess * excess;
            squares[target] += excess * excess;
        }
    }
    let own = squares[item.get()].sqrt();
    let cosine = |(product, square): (f64, f64)| {
        if product > 0.0 { (product / (own * square.sqrt())) as f32 } else { 0.0 }
    };
    Similarities { measure: MEASURE, values: products.into_iter().zip(squares).map(cosine).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models::item_rows::RowChunk;

    fn rows(dense: &[Vec<f32>]) -> ItemRows {
        let mut chunk = RowChunk::default();
        for row in dense {
            for (item, &weight) in row.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                chunk.push(ItemIndex(item as u32), weight);
            }
            chunk.end_row();
        }
        ItemRows::from_chunks(vec![chunk])
    }

    /// The module's head word for word.
    fn by_definition(dense: &[Vec<f32>], a: usize, b: usize) -> f64 {
        let n = dense.len();
        let t = |i: usize, j: usize| f64::from(dense[i][j]);
        let (r, k) = (
            |i: usize| (0..n).map(|j| t(i, j)).sum::<f64>(),
            |j: usize| (0..n).map(|i| t(i, j)).sum::<f64>(),
        );
        let total: f64 = (0..n).map(r).sum();
        let e = |i: usize, j: usize| if total > 0.0 { (t(i, j) - r(i) * k(j) / total).max(0.0) } else { 0.0 };
        let profile =
            |i: usize| -> Vec<f64> { (0..n).map(|j| e(i, j)).chain((0..n).map(|j| e(j, i))).collect() };
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let (x, y) = (profile(a), profile(b));
        let norms = (dot(&x, &x) * dot(&y, &y)).sqrt();
        if norms > 0.0 { dot(&x, &y) / norms } else { 0.0 }
    }

    proptest! {
        #[test]
        fn two_passes_give_what_the_definition_gives(
            dense in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0f32), 0.1f32..3.0], 7), 7),
        ) {
            let mut dense = dense;
            (0..7).for_each(|item| dense[item][item] = 0.0);
            let rows = rows(&dense);
            for a in 0..7 {
                let similar = similarities(&rows, ItemIndex(a as u32));
                for b in 0..7 {
                    prop_assert!((f64::from(similar.values[b]) - by_definition(&dense, a, b)).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn substitutes_are_alike_and_what_follows_is_not() {
        // Either tent (0, 1) leads to a bag (2) and then a lamp (3); either pan (4, 5) to a lid (6).
        let mut dense = vec![vec![0.0; 7]; 7];
        for tent in [0, 1] {
            dense[tent][2] = 3.0;
            dense[tent][3] = 1.0;
        }
        dense[2][3] = 3.0;
        dense[4][6] = 2.0;
        dense[5][6] = 2.0;
        let values = similarities(&rows(&dense), ItemIndex(0)).values;
        assert!((values[1] - 1.0).abs() < 1e-6, "{values:?}");
        assert!(values[1] > 2.0 * values[2] && values[4] <= 0.0 && values[6] <= 0.0, "{values:?}");
    }

    #[test]
    fn weights_of_any_size_give_finite_values() {
        for weight in [f32::MAX, f32::MIN, f32::MIN_POSITIVE, -1.0] {
            let dense = vec![vec![0.0, weight, weight], vec![weight, 0.0, -weight], vec![0.0, weight, 0.0]];
            let similar = similarities(&rows(&dense), ItemIndex(0));
            assert!(similar.values.iter().all(|value| value.is_finite()), "{weight}: {similar:?}");
        }
    }
}
