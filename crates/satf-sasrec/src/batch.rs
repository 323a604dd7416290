//! Sequences to learn from, packed batch by batch.

use std::ops::Range;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use satf::interactions::ItemIndex;
use satf::prepare::Histories;

use crate::noise::Noise;

/// Rows of a group of sequences, at least, but for the last group of a batch: enough for matrix products at full speed, few
/// enough to stay in the cache of a core.
pub(crate) const ROWS_A_GROUP: usize = 256;

/// Users whose histories have something to predict.
pub(crate) struct Sequences<'a> {
    histories: Vec<&'a [ItemIndex]>,
    max_len: usize,
}

impl<'a> Sequences<'a> {
    /// The histories of two items and more.
    pub(crate) fn of(histories: &'a Histories, max_len: usize) -> Self {
        Sequences { histories: histories.iter().filter(|history| history.len() > 1).collect(), max_len }
    }

    pub(crate) fn len(&self) -> usize {
        self.histories.len()
    }

    /// Items to predict in all sequences together.
    pub(crate) fn num_rows(&self) -> usize {
        self.histories.iter().map(|history| (history.len() - 1).min(self.max_len)).sum()
    }

    /// Rows of a batch of so many sequences, at most.
    pub(crate) fn most_rows(&self, batch_size: usize) -> usize {
        let mut lens: Vec<usize> =
            self.histories.iter().map(|history| (history.len() - 1).min(self.max_len)).collect();
        lens.sort_unstable_by(|a, b| b.cmp(a));
        lens.into_iter().take(batch_size).sum()
    }

    /// The order of the sequences in an epoch: random, and the same whenever it is asked for.
    pub(crate) fn order(&self, seed: u64, epoch: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5EED_0F0B_A7C4_E500);
        rng.set_stream(epoch as u64);
        order.shuffle(&mut rng);
        order
    }

    /// Packs some sequences.
    pub(crate) fn batch(&self, chosen: &[usize]) -> Batch<'a> {
        let mut batch = Batch::default();
        let mut group = 0..0;
        let mut ends = Vec::new();
        for &sequence in chosen {
            let history = self.histories[sequence];
            let newest = &history[history.len() - history.len().min(self.max_len + 1)..];
            let len = newest.len() - 1;
            batch.inputs.extend(newest[..len].iter().map(|item| item.0));
            batch.targets.extend(newest[1..].iter().map(|item| item.0));
            batch.positions.extend((self.max_len - len..self.max_len).map(|position| position as u32));
            batch.histories.push((history, len));
            group.end += len;
            ends.push(group.len());
            if group.len() >= ROWS_A_GROUP {
                batch.groups.push(Group { rows: group.clone(), ends: std::mem::take(&mut ends) });
                group.start = group.end;
            }
        }
        if !group.is_empty() {
            batch.groups.push(Group { rows: group, ends });
        }
        batch
    }
}

/// Sequences without padding, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    /// The item of every row.
    pub(crate) inputs: Vec<u32>,
    /// The item after it.
    pub(crate) targets: Vec<u32>,
    /// Its position; the newest row of a sequence has the last one.
    pub(crate) positions: Vec<u32>,
    /// Sequences that pass the network together.
    pub(crate) groups: Vec<Group>,
    /// The whole history of every sequence, and its number of rows.
    histories: Vec<(&'a [ItemIndex], usize)>,
}

/// Some sequences of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Their rows among those of the batch.
    pub(crate) rows: Range<usize>,
    /// Where each ends, counted from the first row of the group.
    pub(crate) ends: Vec<usize>,
}

impl Batch<'_> {
    /// Rows, and so predictions.
    pub(crate) fn num_rows(&self) -> usize {
        self.inputs.len()
    }

    /// For every row an item that its user does not have, each with the same chance; none where the user has all.
    pub(crate) fn unseen(&self, num_items: usize, noise: Noise) -> Vec<Option<u32>> {
        let mut unseen = Vec::with_capacity(self.num_rows());
        for (history, rows) in &self.histories {
            let mut seen: Vec<u32> = history.iter().map(|item| item.0).collect();
            seen.sort_unstable();
            seen.dedup();
            let left = num_items - seen.len();
            for _ in 0..*rows {
                let draw = (left > 0).then(|| {
                    let rank = noise.below(unseen.len() as u64, left as u32);
                    nth_outside(&seen, rank)
                });
                unseen.push(draw);
            }
        }
        unseen
    }
}

/// The item of this rank (from 0) among those that are not in a list of ascending items.
fn nth_outside(ascending: &[u32], rank: u32) -> u32 {
    // Before ascending[i] there are ascending[i] - i items outside. That grows with i, so it can be searched.
    let (mut low, mut high) = (0, ascending.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if ascending[middle] - middle as u32 <= rank {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    rank + low as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_the_newest_items_shifted_by_one() {
        let log = Histories::from_sequences(9, &[vec![1, 2, 3, 4, 5], vec![7], vec![8, 0], vec![]]);
        let sequences = Sequences::of(&log, 3);
        assert_eq!((sequences.len(), sequences.num_rows()), (2, 4));
        assert_eq!([1, 2, 9].map(|size| sequences.most_rows(size)), [3, 4, 4]);
        let batch = sequences.batch(&[1, 0]);
        assert_eq!(batch.inputs, [8, 2, 3, 4]);
        assert_eq!(batch.targets, [0, 3, 4, 5]);
        assert_eq!(batch.positions, [2, 0, 1, 2]);
        assert_eq!(batch.groups, [Group { rows: 0..4, ends: vec![1, 4] }]);
    }

    #[test]
    fn groups_share_out_all_rows_and_cut_no_sequence() {
        let log: Vec<Vec<u32>> = (0..300).map(|user| vec![1; 2 + user % 40]).collect();
        let log = Histories::from_sequences(2, &log);
        let sequences = Sequences::of(&log, 30);
        let batch = sequences.batch(&sequences.order(1, 2));
        let mut row = 0;
        for (at, group) in batch.groups.iter().enumerate() {
            assert_eq!(group.rows.start, row);
            row = group.rows.end;
            assert_eq!(group.ends.last(), Some(&group.rows.len()));
            assert!(group.rows.len() >= ROWS_A_GROUP || at + 1 == batch.groups.len());
            let last_of_each = group.ends.iter().map(|end| batch.positions[group.rows.start + end - 1]);
            assert!(last_of_each.into_iter().all(|position| position == 29));
        }
        assert_eq!(row, batch.num_rows());
        assert_eq!(batch.groups.iter().map(|group| group.ends.len()).sum::<usize>(), 300);
    }

    #[test]
    fn an_order_is_a_permutation_of_its_own_for_every_epoch() {
        let log = Histories::from_sequences(2, &vec![vec![0, 1]; 50]);
        let sequences = Sequences::of(&log, 5);
        let mut sorted = sequences.order(3, 1);
        assert_eq!(sorted, sequences.order(3, 1));
        assert_ne!(sorted, sequences.order(3, 2));
        assert_ne!(sorted, sequences.order(4, 1));
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..50));
    }

    #[test]
    fn negatives_are_unseen_and_equally_likely() {
        assert_eq!((0..3).map(|rank| nth_outside(&[0, 1, 4], rank)).collect::<Vec<_>>(), [2, 3, 5]);
        assert_eq!((0..2).map(|rank| nth_outside(&[], rank)).collect::<Vec<_>>(), [0, 1]);
        let log = Histories::from_sequences(8, &[vec![0, 5, 2, 5], (0..8).collect()]);
        let sequences = Sequences::of(&log, 50);
        let batch = sequences.batch(&[0, 1]);
        let mut counts = [0; 8];
        for draw in 0..4000 {
            let unseen = batch.unseen(8, Noise::new(draw));
            assert!(unseen[3..].iter().all(Option::is_none));
            unseen.iter().flatten().for_each(|&item| counts[item as usize] += 1);
        }
        assert_eq!([counts[0], counts[2], counts[5]], [0, 0, 0]);
        assert!(
            [1, 3, 4, 6, 7].iter().all(|&item: &usize| (2200..2600).contains(&counts[item])),
            "{counts:?}"
        );
    }
}
