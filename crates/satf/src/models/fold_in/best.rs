//! The best items of a linear model without a product for every item.

use faer::{Accum, MatMut, MatRef};

use super::{COMPANY, FoldIn, clear_signs_of_zeros};
use crate::interactions::ItemIndex;
use crate::linalg::dense::{matmul_alone, part_len};
use crate::models::bounded_scan::{Added, ScanRoom};
use crate::models::workspace::{OwnRoom, sized};
use crate::prepare::History;
use crate::ranking::Scored;

impl FoldIn {
    /// The best items by these scores and what is added to them, if they are found without scoring all items.
    pub(in crate::models) fn best_alone(
        &self,
        history: History<'_>,
        (n, is_allowed): (usize, &dyn Fn(ItemIndex) -> bool),
        added: Added<'_>,
        (dense, features, own): (&mut Vec<f32>, &mut Vec<f32>, &mut OwnRoom),
    ) -> Option<Vec<Scored>> {
        let (items, rank) = (self.num_items, self.rank());
        // Where a good part of all items is asked for, they are scored sooner than sorted out.
        if rank == 0 || n > items / 64 {
            return None;
        }
        let scan = self.scan.ask(&self.left, rank)?;
        let features = sized(features, COMPANY * rank);
        features.fill(0.0);
        self.gather(history, &mut features[..rank]);
        let features = &*features;
        let room = own.get(|_: &ScanRoom| true, ScanRoom::default);
        scan.best(&features[..rank], added, n, is_allowed, room, |chosen, scores| {
            self.score_some(chosen, features, dense, scores);
        })
    }

    /// Appends the scores of these items, with the bits that they have among all.
    fn score_some(
        &self,
        chosen: &[ItemIndex],
        features: &[f32],
        dense: &mut Vec<f32>,
        scores: &mut Vec<f32>,
    ) {
        let (rank, len) = (self.rank(), part_len(self.num_items));
        let (rows, products) = sized(dense, len * (rank + COMPANY)).split_at_mut(len * rank);
        let features = MatRef::from_column_major_slice(features, rank, COMPANY);
        for chosen in chosen.chunks(len) {
            for (row, &item) in rows.chunks_mut(rank).zip(chosen) {
                row.copy_from_slice(self.row(&self.left, item));
            }
            // Rows beyond those chosen are left of something else, and so are their products.
            let left = MatRef::from_row_major_slice(rows, len, rank);
            let into = MatMut::from_column_major_slice_mut(products, len, COMPANY);
            matmul_alone(into, Accum::Replace, left, features, 1.0);
            let products = &mut products[..chosen.len()];
            clear_signs_of_zeros(products);
            scores.extend_from_slice(products);
        }
    }

    /// Makes the factors in eight bits, if the catalogue is to have them.
    pub(in crate::models) fn make_scan(&self) {
        self.scan.make(&self.left, self.rank());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models::bounded_scan::BoundedScan;
    use crate::models::{LagWeights, Recommender, Scores, Workspace};
    use crate::ranking::top_n_where;

    /// Numbers that look random, from -1 to 1.
    fn noise(seed: usize, at: usize) -> f32 {
        let mixed = (seed as u32).wrapping_mul(0x9e37_79b9) ^ (at as u32).wrapping_mul(0x85eb_ca6b);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x2c1b_3c6d);
        let mixed = (mixed ^ mixed >> 12).wrapping_mul(0x297a_2d39);
        (mixed ^ mixed >> 15) as f32 / u32::MAX as f32 * 2.0 - 1.0
    }

    /// Rows of all lengths, some of them equal and some nothing.
    fn model(items: usize, rank: usize, seed: usize) -> FoldIn {
        let value = |at: usize| {
            let (item, column) = (at / rank, at % rank);
            let item = if item % 7 == 3 { item - 1 } else { item };
            let length = if item % 11 == 5 { 0.0 } else { 1.0 / (1.0 + (item % 50) as f32) };
            length * noise(seed, item * rank + column)
        };
        let left: Vec<f32> = (0..items * rank).map(value).collect();
        let right: Vec<f32> = (0..items * rank).map(|at| noise(seed + 1, at)).collect();
        FoldIn::new(items, left, right, LagWeights::Flat).unwrap()
    }

    fn scores_of(model: &FoldIn, history: &[ItemIndex]) -> Vec<f32> {
        let mut workspace = Workspace::new();
        let Scores::Dense(scores) = model.score_one(History::new(history), &mut workspace) else {
            unreachable!("factors score every item")
        };
        scores.to_vec()
    }

    #[test]
    fn some_items_have_the_bits_that_they_have_among_all() {
        for (items, rank) in [
            (2, 2),
            (5, 1),
            (40, 7),
            (300, 300),
            (511, 64),
            (512, 8),
            (513, 33),
            (1025, 250),
            (2900, 129),
            (5001, 50),
        ] {
            let model = model(items, rank, items);
            let history: Vec<ItemIndex> = (0..5).map(|at| ItemIndex((at * 31 % items) as u32)).collect();
            let all = scores_of(&model, &history);
            let mut features = vec![0f32; COMPANY * rank];
            model.gather(History::new(&history), &mut features[..rank]);
            for step in [1, 3, 17] {
                let chosen: Vec<ItemIndex> = (0..items as u32).step_by(step).map(ItemIndex).collect();
                let (mut dense, mut scores) = (vec![f32::MAX; 3], Vec::new());
                model.score_some(&chosen, &features, &mut dense, &mut scores);
                assert_eq!(scores.len(), chosen.len());
                for (item, score) in chosen.iter().zip(scores) {
                    assert_eq!(
                        score.to_bits(),
                        all[item.get()].to_bits(),
                        "{items} {rank} {step} {}",
                        item.0
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_best_are_those_of_all_scores_to_the_bit(
            items in prop::sample::select(vec![30usize, 129, 700, 1500]),
            rank in prop::sample::select(vec![1usize, 5, 32, 70]),
            seed in 0usize..1000,
            n in 1usize..12,
            touched in prop::collection::btree_map(0u32..30, prop_oneof![-2f64..2.0, Just(0.0), Just(0.25)], 0..20),
            barred in 2usize..9,
        ) {
            let model = model(items, rank, seed);
            let history: Vec<ItemIndex> = (0..4).map(|at| ItemIndex(((seed + at * 13) % items) as u32)).collect();
            let mut sums = vec![0f64; items];
            for (&item, &sum) in &touched {
                sums[item as usize] = sum;
            }
            let touched: Vec<u32> = touched.keys().copied().collect();
            let is_allowed = |item: ItemIndex| item.get() % barred != 1;

            let scores = scores_of(&model, &history);
            let scores: Vec<f32> =
                scores.iter().zip(&sums).map(|(&score, sum)| (f64::from(score) + sum) as f32).collect();
            let expected = top_n_where(&scores, n, is_allowed);

            let mut features = vec![0f32; COMPANY * rank];
            model.gather(History::new(&history), &mut features[..rank]);
            let scan = BoundedScan::new(&model.left, rank).unwrap();
            let (mut room, mut dense, mut scored) = (ScanRoom::default(), Vec::new(), 0);
            let added = Added { sums: &sums, touched: &touched };
            let found = scan.best(&features[..rank], added, n, &is_allowed, &mut room, |chosen, scores| {
                scored = chosen.len();
                model.score_some(chosen, &features, &mut dense, scores);
            });
            let bits = |list: &[Scored]| -> Vec<(u32, u32)> {
                list.iter().map(|scored| (scored.item.0, scored.score.to_bits())).collect()
            };
            // A catalogue so small never has too many items that wait.
            prop_assert_eq!(bits(&found.unwrap()), bits(&expected));
            // It is not done by scoring everything: rows have many lengths.
            if items >= 700 && rank >= 32 {
                prop_assert!(scored < items / 2, "{} of {}", scored, items);
            }
        }
    }

    #[test]
    fn scores_that_may_overflow_are_left_to_those_who_look_at_all() {
        let items = 300;
        let left: Vec<f32> = (0..items * 4).map(|at| noise(1, at) * 1e30).collect();
        let model = FoldIn::new(items, left.clone(), left, LagWeights::Flat).unwrap();
        let mut features = [1e30f32; 4];
        let scan = BoundedScan::new(&model.left, 4).unwrap();
        let nothing = Added { sums: &[], touched: &[] };
        let search = |features: &[f32], added: Added<'_>| {
            let mut room = ScanRoom::default();
            scan.best(features, added, 3, &|_| true, &mut room, |chosen, scores| {
                scores.extend(chosen.iter().map(|_| 0.0));
            })
        };
        assert!(search(&features, nothing).is_none());
        features = [1e-3; 4];
        assert!(search(&features, nothing).is_some());
        let mut sums = vec![0.0; items];
        sums[7] = f64::INFINITY;
        assert!(search(&features, Added { sums: &sums, touched: &[7] }).is_none());
    }
}
