//! Ids numbered as they come: a new one renumbers nothing.

use std::collections::HashMap;

use crate::interactions::{Id, Ids, OwnedId, shortest_integer};

/// Ids and their numbers. Integers and their decimal texts are one id.
#[derive(Clone, Debug, Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<OwnedId, u32>,
    ids: Vec<OwnedId>,
    /// Whether ids are texts even if all of them are integers.
    pub(super) are_texts: bool,
}

/// An id in the one form it has here.
fn canonical(id: Id<'_>) -> OwnedId {
    match id {
        Id::Text(text) => match shortest_integer(text.as_bytes()) {
            Some(number) => OwnedId::Integer(number),
            None => OwnedId::Text(text.into()),
        },
        Id::Integer(number) => OwnedId::Integer(number),
    }
}

impl Vocabulary {
    /// The ids of a catalogue, numbered in its order.
    pub(super) fn of(catalog: &Ids) -> Self {
        let ids: Vec<OwnedId> = catalog.iter().map(canonical).collect();
        let numbers = ids.iter().cloned().zip(0..).collect();
        Vocabulary { numbers, ids, are_texts: matches!(catalog, Ids::Texts(_)) }
    }

    /// How many ids were ever seen.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The number of an id, if it was seen.
    pub(super) fn find(&self, id: Id<'_>) -> Option<u32> {
        self.numbers.get(&canonical(id)).copied()
    }

    /// The number of an id, a new one if it was not seen.
    pub(super) fn number(&mut self, id: Id<'_>) -> u32 {
        let id = canonical(id);
        if let Some(&number) = self.numbers.get(&id) {
            return number;
        }
        let number = self.ids.len() as u32;
        self.ids.push(id.clone());
        self.numbers.insert(id, number);
        number
    }

    /// The id of a number.
    pub(super) fn id(&self, number: u32) -> Id<'_> {
        self.ids[number as usize].as_id()
    }

    /// A catalogue of those numbers for which `is_used` holds, and the numbers in its order.
    pub(super) fn ranked(&self, is_used: impl Fn(u32) -> bool) -> (Ids, Vec<u32>) {
        let mut used: Vec<u32> = (0..self.ids.len() as u32).filter(|&number| is_used(number)).collect();
        if used.is_empty() {
            return (Ids::Integers(Vec::new()), used);
        }
        let integers: Option<Vec<i64>> = used
            .iter()
            .map(|&number| match self.ids[number as usize] {
                OwnedId::Integer(id) if !self.are_texts => Some(id),
                _ => None,
            })
            .collect();
        if let Some(integers) = integers {
            let mut pairs: Vec<(i64, u32)> = integers.into_iter().zip(used).collect();
            pairs.sort_unstable();
            let (ids, used) = pairs.into_iter().unzip();
            return (Ids::Integers(ids), used);
        }
        let mut texts: Vec<Box<str>> =
            used.iter().map(|&number| self.id(number).to_string().into()).collect();
        let mut order: Vec<usize> = (0..used.len()).collect();
        order.sort_unstable_by(|&one, &other| texts[one].cmp(&texts[other]));
        used = order.iter().map(|&at| used[at]).collect();
        let texts = order.iter().map(|&at| std::mem::take(&mut texts[at])).collect();
        (Ids::Texts(texts), used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ranked_as_in_a_log() {
        let mut vocabulary = Vocabulary::default();
        for id in ["10", "9", "-3"] {
            vocabulary.number(Id::Text(id));
        }
        assert_eq!(vocabulary.number(Id::Integer(9)), 1);
        assert_eq!(vocabulary.ranked(|_| true), (Ids::Integers(vec![-3, 9, 10]), vec![2, 1, 0]));
        assert_eq!(vocabulary.ranked(|number| number > 0), (Ids::Integers(vec![-3, 9]), vec![2, 1]));
        // One text makes texts of all of them, for as long as it is used.
        vocabulary.number(Id::Text("tent"));
        let texts = ["-3", "10", "9", "tent"].map(Box::from).to_vec();
        assert_eq!(vocabulary.ranked(|_| true), (Ids::Texts(texts), vec![2, 0, 1, 3]));
        assert_eq!(vocabulary.ranked(|number| number < 3).0, Ids::Integers(vec![-3, 9, 10]));
        vocabulary.are_texts = true;
        assert_eq!(vocabulary.ranked(|number| number < 2).0, Ids::Texts(vec!["10".into(), "9".into()]));
    }
}
