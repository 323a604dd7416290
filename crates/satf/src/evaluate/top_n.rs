//! A bounded top-n with a written tie rule: the higher score first; of equal scores, the lower item index.

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
    /// Best first.
    fn ranking(self, other: Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.item.cmp(&other.item))
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

/// The `n` best items, best first; fewer if fewer are not [`EXCLUDED`]. `scores[j]` belongs to item `j`. A score that is not finite is
/// worth nothing, whatever model it comes from: its item is left out.
pub fn top_n(scores: &[f32], n: usize) -> Vec<Scored> {
    if n == 0 {
        return Vec::new();
    }
    let mut heap: BinaryHeap<Kept> = BinaryHeap::with_capacity(n.min(scores.len()));
    // Indices ascend, so a later item has to be strictly better than the worst one kept.
    let mut worst = EXCLUDED;
    for (index, &score) in scores.iter().enumerate() {
        if score > worst && score < f32::INFINITY {
            if heap.len() == n {
                heap.pop();
            }
            heap.push(Kept(Scored { item: ItemIndex(index as u32), score }));
            if heap.len() == n {
                worst = heap.peek().map_or(EXCLUDED, |kept| kept.0.score);
            }
        }
    }
    let mut best: Vec<Scored> = heap.into_iter().map(|kept| kept.0).collect();
    best.sort_unstable_by(|a, b| a.ranking(*b));
    best
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
    }
}
