//! From scores to places: a bounded top-n with a written tie rule, and what a place in a list is worth.
//!
//! The tie rule holds everywhere: the higher score first; of equal scores, the lower item index. 0 and -0 are equal. Evaluation, recommendation and the
//! rehearsal of D-SATF rank by it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::interactions::ItemIndex;

/// A score that takes an item out of the ranking. Models never give it: their scores are finite.
pub const EXCLUDED: f32 = f32::NEG_INFINITY;

/// An item with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The item.
    pub item: ItemIndex,
    /// Its score.
    pub score: f32,
}

impl Scored {
    /// Best first. Scores that are ranked are finite, so that any two of them compare.
    fn ranking(self, other: Self) -> Ordering {
        // The sum makes 0 of -0, of which models give either.
        (other.score + 0.0).total_cmp(&(self.score + 0.0)).then(self.item.cmp(&other.item))
    }
}

/// Ordered so that the heap's top is the worst of the items kept.
struct Kept(Scored);

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Kept {}
impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Kept {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.ranking(other.0)
    }
}

/// The `n` best of items that come in any order, each once and with a finite score.
pub(crate) struct TopN {
    n: usize,
    heap: BinaryHeap<Kept>,
}

impl TopN {
    pub(crate) fn new(n: usize) -> Self {
        TopN { n, heap: BinaryHeap::new() }
    }

    /// Whether an item would be among the best so far.
    pub(crate) fn takes(&self, scored: Scored) -> bool {
        if self.heap.len() < self.n {
            return true;
        }
        self.heap.peek().is_some_and(|worst| scored.ranking(worst.0) == Ordering::Less)
    }

    /// Takes an item that is among the best so far.
    pub(crate) fn push(&mut self, scored: Scored) {
        if self.heap.len() == self.n {
            self.heap.pop();
        }
        self.heap.push(Kept(scored));
    }

    /// The worst score that is kept, once there are as many as asked for.
    fn worst(&self) -> f32 {
        let worst = self.heap.peek().filter(|_| self.heap.len() == self.n);
        worst.map_or(EXCLUDED, |kept| kept.0.score)
    }

    /// Best first.
    pub(crate) fn into_sorted(self) -> Vec<Scored> {
        let mut best: Vec<Scored> = self.heap.into_iter().map(|kept| kept.0).collect();
        best.sort_unstable_by(|a, b| a.ranking(*b));
        best
    }
}

/// The `n` best items, best first; fewer if fewer are not [`EXCLUDED`]. `scores[j]` belongs to item `j`. A score that is not finite is
/// worth nothing, whatever model it comes from: its item is left out.
pub fn top_n(scores: &[f32], n: usize) -> Vec<Scored> {
    top_n_where(scores, n, |_| true)
}

/// The same of the items that are allowed, which is asked only of those that would be among the best.
pub(crate) fn top_n_where(scores: &[f32], n: usize, is_allowed: impl Fn(ItemIndex) -> bool) -> Vec<Scored> {
    if n == 0 {
        return Vec::new();
    }
    let mut best = TopN::new(n);
    // Indices ascend, so a later item has to be strictly better than the worst one kept.
    let mut worst = EXCLUDED;
    for (index, &score) in scores.iter().enumerate() {
        if score > worst && score < f32::INFINITY {
            let item = ItemIndex(index as u32);
            if is_allowed(item) {
                best.push(Scored { item, score });
                worst = best.worst();
            }
        }
    }
    best.into_sorted()
}

/// The `n` best items that the history does not hold. Overwrites the scores of seen items.
pub fn rank_unseen(scores: &mut [f32], history: &[ItemIndex], n: usize) -> Vec<Scored> {
    for item in history {
        scores[item.get()] = EXCLUDED;
    }
    top_n(scores, n)
}

/// The rank of an item (from 0) among `num_items`: how many stand before it by the tie rule.
pub fn rank_of(item: ItemIndex, num_items: usize, score: impl Fn(ItemIndex) -> f64) -> usize {
    let own = score(item) + 0.0;
    let is_before = |other: &ItemIndex| match (score(*other) + 0.0).total_cmp(&own) {
        Ordering::Greater => true,
        Ordering::Equal => *other < item,
        Ordering::Less => false,
    };
    (0..num_items as u32).map(ItemIndex).filter(is_before).count()
}

/// What a hit at `rank` (from 0) is worth in NDCG: `1 / log2(rank + 2)`.
pub fn discount(rank: usize) -> f64 {
    1.0 / (rank as f64 + 2.0).log2()
}

/// The NDCG of a list of `cutoff` items with one target, which stands at `rank` (from 0): 0 beyond the list.
pub fn ndcg(rank: usize, cutoff: usize) -> f64 {
    if rank < cutoff { discount(rank) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bounded_equals_sorting_everything(
            scores in prop::collection::vec(
                prop_oneof![
                    8 => (-3i8..3).prop_map(f32::from),
                    1 => Just(-0.0),
                    1 => Just(EXCLUDED),
                    1 => Just(f32::INFINITY),
                    1 => Just(f32::NAN),
                ],
                0..60,
            ),
            n in 0usize..70,
        ) {
            let mut all: Vec<Scored> = scores.iter().enumerate()
                .map(|(index, &score)| Scored { item: ItemIndex(index as u32), score })
                .filter(|scored| scored.score.is_finite())
                .collect();
            all.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap().then(a.item.cmp(&b.item)));
            all.truncate(n);
            prop_assert_eq!(top_n(&scores, n), all);
        }

        #[test]
        fn a_rank_is_the_place_among_all(scores in prop::collection::vec(-3i8..4, 1..40)) {
            let scores: Vec<f32> =
                scores.into_iter().map(|score| if score == 3 { -0.0 } else { f32::from(score) }).collect();
            for (rank, scored) in top_n(&scores, scores.len()).iter().enumerate() {
                let found = rank_of(scored.item, scores.len(), |item| f64::from(scores[item.get()]));
                prop_assert_eq!(found, rank);
            }
        }
    }

    #[test]
    fn a_hit_is_worth_less_the_later_it_comes_and_nothing_beyond_the_list() {
        let bits = |value: f64| value.to_bits();
        assert_eq!([0, 2, 6].map(discount).map(bits), [1.0, 0.5, 1.0 / 3.0].map(bits));
        assert_eq!(bits(ndcg(2, 3)), bits(0.5));
        assert_eq!(bits(ndcg(3, 3)), bits(0.0));
    }

    #[test]
    fn items_seen_are_not_ranked() {
        let mut scores = [3.0, 1.0, 2.0];
        let list = rank_unseen(&mut scores, &[ItemIndex(0)], 5);
        assert_eq!(list.iter().map(|scored| scored.item.0).collect::<Vec<_>>(), [2, 1]);
    }
}
