//! What may be recommended, in the indices of a catalogue.

use std::sync::Arc;

use super::error::check_items;
use super::{RecommendError, Seen};
use crate::interactions::{Ids, ItemIndex};

/// What may be recommended, and what is preferred, in the indices of a catalogue: what [`Request`](super::Request) says in ids. The default
/// leaves out what the history holds, and nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// Items that may not be recommended.
    pub exclude: Vec<ItemIndex>,
    /// The only items that may be; all if none.
    pub only: Option<Vec<ItemIndex>>,
    /// Whether items of the history may be.
    pub seen: Seen,
    /// Items that may be recommended again even if those of the history may not: what is used up.
    pub repeatable: Vec<ItemIndex>,
    /// How many times as good these items are: finite numbers above 0. A score above 0 is multiplied, one below 0 divided, so that a
    /// factor above 1 favours an item whatever its score.
    pub factors: Vec<(ItemIndex, f32)>,
    /// Added to the scores of these items, after their factors: finite numbers, in units of the scores.
    pub boosts: Vec<(ItemIndex, f32)>,
}

/// A set of items: a sorted list or, once that is no smaller, a bit per item of the catalogue. Making one takes time in the order of
/// the list, whatever the catalogue.
#[derive(Clone, Debug)]
enum ItemSet {
    Sorted(Vec<ItemIndex>),
    Bits(Vec<u64>),
}

impl ItemSet {
    fn new(items: &[ItemIndex], num_items: usize) -> Self {
        if items.len() >= num_items.div_ceil(u64::BITS as usize) {
            let mut bits = vec![0u64; num_items.div_ceil(u64::BITS as usize)];
            for item in items {
                bits[item.get() / 64] |= 1 << (item.get() % 64);
            }
            return ItemSet::Bits(bits);
        }
        ItemSet::Sorted(sorted(items.iter().copied()))
    }

    fn contains(&self, item: ItemIndex) -> bool {
        match self {
            ItemSet::Sorted(items) => items.binary_search(&item).is_ok(),
            ItemSet::Bits(bits) => bits[item.get() / 64] >> (item.get() % 64) & 1 == 1,
        }
    }
}

/// Distinct items, ascending.
fn sorted(items: impl IntoIterator<Item = ItemIndex>) -> Vec<ItemIndex> {
    let mut items: Vec<ItemIndex> = items.into_iter().collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// What becomes of an item's score.
#[derive(Clone, Copy, Debug)]
enum Change {
    Multiply(f32),
    Add(f32),
}

impl Change {
    fn apply(self, score: f32) -> f32 {
        let changed = match self {
            Change::Multiply(factor) if score < 0.0 => score / factor,
            Change::Multiply(factor) => score * factor,
            Change::Add(boost) => score + boost,
        };
        changed.clamp(f32::MIN, f32::MAX)
    }
}

/// What else an item has to be. It is asked of items that would be among the best, and of no others.
pub(super) type Rule = Arc<dyn Fn(ItemIndex) -> bool + Send + Sync>;

/// Filters made ready for many histories.
#[derive(Clone)]
pub(super) struct Sieve {
    num_items: usize,
    exclude: ItemSet,
    /// The only items allowed, ascending, and as a set.
    only: Option<(Vec<ItemIndex>, ItemSet)>,
    seen: Seen,
    repeatable: ItemSet,
    /// Changes by item, ascending; those of one item in the order they apply in.
    changes: Vec<(ItemIndex, Change)>,
    /// The items with changes, ascending.
    changed: Vec<ItemIndex>,
    rule: Option<Rule>,
}

impl Sieve {
    pub(super) fn new(filters: &Filters, catalog: &Ids) -> Result<Self, RecommendError> {
        let num_items = catalog.len();
        check_items("exclude", &filters.exclude, num_items)?;
        check_items("only", filters.only.as_deref().unwrap_or_default(), num_items)?;
        check_items("repeatable", &filters.repeatable, num_items)?;
        let id = |item: ItemIndex| catalog.get(item.get()).to_owned();
        for &(item, boost) in &filters.boosts {
            check_items("boosts", &[item], num_items)?;
            if !boost.is_finite() {
                return Err(RecommendError::Boost { item: id(item), boost });
            }
        }
        for &(item, factor) in &filters.factors {
            check_items("factors", &[item], num_items)?;
            if !(factor.is_finite() && factor > 0.0) {
                return Err(RecommendError::Factor { item: id(item), factor });
            }
        }
        let factors = filters.factors.iter().map(|&(item, factor)| (item, Change::Multiply(factor)));
        let boosts = filters.boosts.iter().map(|&(item, boost)| (item, Change::Add(boost)));
        let mut changes: Vec<(ItemIndex, Change)> = factors.chain(boosts).collect();
        // Stable: factors stay before boosts, and both in the order given.
        changes.sort_by_key(|(item, _)| *item);
        let only = filters.only.as_deref();
        Ok(Sieve {
            num_items,
            exclude: ItemSet::new(&filters.exclude, num_items),
            only: only.map(|only| (sorted(only.iter().copied()), ItemSet::new(only, num_items))),
            seen: filters.seen,
            repeatable: ItemSet::new(&filters.repeatable, num_items),
            changed: sorted(changes.iter().map(|(item, _)| *item)),
            changes,
            rule: None,
        })
    }

    /// The same with a rule besides.
    pub(super) fn with_rule(self, rule: Rule) -> Self {
        Sieve { rule: Some(rule), ..self }
    }

    /// Number of items in the catalogue.
    pub(super) fn num_items(&self) -> usize {
        self.num_items
    }

    /// The only items allowed, ascending, if not all are.
    pub(super) fn only(&self) -> Option<&[ItemIndex]> {
        self.only.as_ref().map(|(items, _)| items.as_slice())
    }

    /// Whether scores stay as they are and hardly any item is left out: then the best items are found among the best of all.
    pub(super) fn is_plain(&self) -> bool {
        self.changed.is_empty() && self.only.is_none()
    }

    /// The items whose scores change, ascending.
    pub(super) fn changed(&self) -> &[ItemIndex] {
        &self.changed
    }

    /// What becomes of the score of such an item.
    pub(super) fn change(&self, item: ItemIndex, score: f32) -> f32 {
        let first = self.changes.partition_point(|(other, _)| *other < item);
        let own = self.changes[first..].iter().take_while(|(other, _)| *other == item);
        own.fold(score, |score, (_, change)| change.apply(score))
    }

    /// The same for one history.
    pub(super) fn of(&self, history: &[ItemIndex]) -> OwnSieve<'_> {
        let barred = match self.seen {
            Seen::Allow => Vec::new(),
            Seen::Exclude => sorted(history.iter().copied().filter(|&item| !self.repeatable.contains(item))),
        };
        OwnSieve { sieve: self, barred }
    }
}

/// Filters for one history.
pub(super) struct OwnSieve<'s> {
    pub(super) sieve: &'s Sieve,
    /// Items of the history that may not be recommended, ascending.
    barred: Vec<ItemIndex>,
}

impl OwnSieve<'_> {
    /// Whether an item may be recommended.
    pub(super) fn allows(&self, item: ItemIndex) -> bool {
        let is_only = self.sieve.only.as_ref().is_none_or(|(_, only)| only.contains(item));
        is_only
            && !self.sieve.exclude.contains(item)
            && self.barred.binary_search(&item).is_err()
            && self.sieve.rule.as_ref().is_none_or(|rule| rule(item))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_holds_what_it_was_made_of(
            items in prop::collection::vec(0u32..200, 0..40),
            num_items in 200usize..400,
        ) {
            let given: Vec<ItemIndex> = items.iter().copied().map(ItemIndex).collect();
            for len in [given.len(), given.len().min(2)] {
                let set = ItemSet::new(&given[..len], num_items);
                for item in (0..num_items as u32).map(ItemIndex) {
                    prop_assert_eq!(set.contains(item), given[..len].contains(&item));
                }
            }
        }
    }
}
