//! Completion: items whose title, or a word of it, or whose id begins with what was typed.

use satf::interactions::{Ids, ItemIndex};

use crate::attributes::Attributes;

/// Every place where a word begins, sorted by what follows.
pub(crate) struct TitleIndex {
    /// Lower case: what people call each item, or its id.
    texts: Vec<Box<str>>,
    /// Item and byte where a word begins.
    starts: Vec<(u32, u32)>,
}

/// Words of a title at which it can be found.
const MOST_WORDS: usize = 8;
/// Bytes of a title that are looked at.
const LONGEST: usize = 200;
/// Matches among which the most popular are chosen.
const MOST_MATCHES: usize = 10_000;

impl TitleIndex {
    pub(crate) fn new(catalog: &Ids, attributes: &Attributes) -> Self {
        let text = |(at, id): (usize, satf::interactions::Id<'_>)| -> Box<str> {
            let title = attributes.title(ItemIndex(at as u32)).map_or_else(|| id.to_string(), str::to_owned);
            let end = title.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONGEST).last();
            let short = if title.len() <= LONGEST {
                title.as_str()
            } else {
                title.get(..end.unwrap_or(0)).unwrap_or("")
            };
            short.to_lowercase().into()
        };
        let texts: Vec<Box<str>> = catalog.iter().enumerate().map(text).collect();
        let mut starts = Vec::with_capacity(texts.len());
        for (item, text) in (0..).zip(&texts) {
            let mut is_inside = false;
            let mut words = 0;
            for (at, letter) in text.char_indices() {
                if letter.is_alphanumeric() && !is_inside && words < MOST_WORDS {
                    starts.push((item, at as u32));
                    words += 1;
                }
                is_inside = letter.is_alphanumeric();
            }
        }
        let rest = |start: &(u32, u32)| rest(&texts, *start);
        starts.sort_unstable_by(|a, b| rest(a).cmp(rest(b)).then(a.cmp(b)));
        TitleIndex { texts, starts }
    }

    /// At most `n` items that match what was typed, the most popular first.
    pub(crate) fn complete(&self, typed: &str, n: usize, popularity: &[u32]) -> Vec<ItemIndex> {
        let typed = typed.trim().to_lowercase();
        let first = self.starts.partition_point(|start| rest(&self.texts, *start) < typed.as_str());
        let matches = self.starts.iter().skip(first).take(MOST_MATCHES);
        let matches = matches.take_while(|start| rest(&self.texts, **start).starts_with(&typed));
        let mut items: Vec<u32> = matches.map(|(item, _)| *item).collect();
        items.sort_unstable();
        items.dedup();
        let count = |item: u32| popularity.get(item as usize).copied().unwrap_or(0);
        items.sort_by_key(|item| std::cmp::Reverse(count(*item)));
        items.truncate(n);
        items.into_iter().map(ItemIndex).collect()
    }
}

fn rest(texts: &[Box<str>], (item, at): (u32, u32)) -> &str {
    texts.get(item as usize).and_then(|text| text.get(at as usize..)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_and_the_most_popular_come_first() {
        let catalog =
            Ids::Texts(["camp bed", "laptop sleeve", "SLEEPING bag", "Ölofen"].map(Into::into).into());
        let index = TitleIndex::new(&catalog, &Attributes::default());
        let complete = |typed: &str| {
            index.complete(typed, 2, &[5, 1, 9, 0]).iter().map(|item| item.0).collect::<Vec<_>>()
        };
        assert_eq!(complete("slee"), [2, 1]);
        assert_eq!(complete("Sleeping B"), [2]);
        assert_eq!(complete("ÖL"), [3]);
        assert_eq!(complete(""), [2, 0]);
        assert!(complete("leeve").is_empty());
    }
}
