//! The best items that may be recommended, whatever form the scores have.
//!
//! The rule is that of [`top_n`](crate::ranking::top_n): the higher score first; of equal scores, the lower item.

use super::filters::OwnSieve;
use crate::interactions::ItemIndex;
use crate::models::{Scores, SparseScores};
use crate::ranking::{Scored, TopN, top_n_where};

/// An item that was ranked, and its score without boosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    pub(super) scored: Scored,
    pub(super) plain: f32,
}

impl Ranked {
    /// What boosts made of the score.
    pub(super) fn boost(self) -> f64 {
        f64::from(self.scored.score) - f64::from(self.plain)
    }
}

/// The `n` best items of finite scores. Dense scores are boosted in place.
pub(super) fn best(sieve: &OwnSieve<'_>, scores: Scores<'_>, n: usize) -> Vec<Ranked> {
    match scores {
        Scores::Dense(scores) => best_of_all(sieve, scores, n),
        Scores::Sparse(scores) => best_of_touched(sieve, scores, n),
    }
}

/// One pass over the catalogue.
fn best_of_all(sieve: &OwnSieve<'_>, scores: &mut [f32], n: usize) -> Vec<Ranked> {
    let changed = sieve.sieve.changed();
    let plain: Vec<f32> = changed.iter().map(|item| scores[item.get()]).collect();
    for &item in changed {
        scores[item.get()] = sieve.sieve.change(item, scores[item.get()]);
    }
    let ranked = |scored: Scored| {
        let boosted = changed.binary_search(&scored.item);
        Ranked { scored, plain: boosted.map_or(scored.score, |at| plain[at]) }
    };
    top_n_where(scores, n, |item| sieve.allows(item)).into_iter().map(ranked).collect()
}

/// Looks at the touched items, or at the only ones allowed if these are fewer, at those with boosts, and at items without a score for
/// as long as there are too few with one.
fn best_of_touched(sieve: &OwnSieve<'_>, scores: SparseScores<'_>, n: usize) -> Vec<Ranked> {
    let (changed, only) = (sieve.sieve.changed(), sieve.sieve.only());
    let mut best = TopN::new(n);
    for &item in changed {
        let scored = Scored { item, score: sieve.sieve.change(item, scores.get(item)) };
        if best.takes(scored) && sieve.allows(item) {
            best.push(scored);
        }
    }
    let is_candidate = |item: ItemIndex| changed.binary_search(&item).is_err() && sieve.allows(item);
    match only {
        Some(only) if only.len() <= scores.touched().len() => {
            for &item in only {
                let scored = Scored { item, score: scores.get(item) };
                if best.takes(scored) && is_candidate(item) {
                    best.push(scored);
                }
            }
        }
        _ => {
            for item in scores.touched() {
                let scored = Scored { item, score: scores.get(item) };
                if scored.score != 0.0 && best.takes(scored) && is_candidate(item) {
                    best.push(scored);
                }
            }
            match only {
                Some(only) => add_zeros(&mut best, only.iter().copied(), scores, is_candidate),
                None => add_zeros(&mut best, all(sieve.sieve.num_items()), scores, is_candidate),
            }
        }
    }
    let ranked = |scored: Scored| {
        let is_changed = changed.binary_search(&scored.item).is_ok();
        Ranked { scored, plain: if is_changed { scores.get(scored.item) } else { scored.score } }
    };
    best.into_sorted().into_iter().map(ranked).collect()
}

fn all(num_items: usize) -> impl Iterator<Item = ItemIndex> {
    (0..num_items as u32).map(ItemIndex)
}

/// Fills up with items of score 0, which come ascending: the first that is not taken is the last worth looking at.
fn add_zeros(
    best: &mut TopN,
    items: impl Iterator<Item = ItemIndex>,
    scores: SparseScores<'_>,
    is_candidate: impl Fn(ItemIndex) -> bool,
) {
    for item in items {
        let scored = Scored { item, score: scores.get(item) };
        if scored.score == 0.0 {
            if !best.takes(scored) {
                break;
            }
            if is_candidate(item) {
                best.push(scored);
            }
        }
    }
}

/// The same for items that are sorted already, best first.
pub(super) fn best_of_sorted(
    sieve: &OwnSieve<'_>,
    sorted: &[u32],
    score: impl Fn(ItemIndex) -> f32,
    n: usize,
) -> Vec<Ranked> {
    let changed = sieve.sieve.changed();
    let mut best = TopN::new(n);
    for &item in changed {
        let scored = Scored { item, score: sieve.sieve.change(item, score(item)) };
        if best.takes(scored) && sieve.allows(item) {
            best.push(scored);
        }
    }
    for item in sorted.iter().copied().map(ItemIndex) {
        let scored = Scored { item, score: score(item) };
        if !best.takes(scored) {
            break;
        }
        if changed.binary_search(&item).is_err() && sieve.allows(item) {
            best.push(scored);
        }
    }
    best.into_sorted().into_iter().map(|scored| Ranked { scored, plain: score(scored.item) }).collect()
}
