//! The scoring path of all linear models: gather the history, one product with the item factors.
//!
//! With item factors $P_L, P_R$ ($n \times r$) and lag weights $w$, a history $j_0, j_1, \dots$ (newest first) has the
//! scores
//!
//! $$ s = P_L f, \qquad f = P_R^T \sum_l w_l e_{j_l} = \sum_l w_l P_R[j_l] . $$
//!
//! A batch of $b$ histories is one product of $2nrb$ operations. No user is stored: any list of known items can be
//! scored, and item $j_l$'s share of item $j$'s score is exactly $w_l \langle P_R[j_l], P_L[j] \rangle$.

mod best;

use faer::{Accum, MatMut, MatRef};
use rayon::prelude::*;

use super::array::Array;
use super::batch::check_history;
use super::bounded_scan::{Added, LazyScan};
use super::lag_weights::LagWeights;
use super::quantization::{self, Quantization};
use super::tensors::{Shares, StoredTensors, Tensor, TensorError, TensorType};
use super::workspace::{Scores, Workspace, sized};
use super::{Recommender, Similarities, UserData};
use crate::interactions::ItemIndex;
use crate::linalg::dense::{matmul, matmul_alone};
use crate::prepare::History;
use crate::ranking::Scored;

/// Item factors and lag weights: everything a linear model needs to score.
#[derive(Clone, Debug)]
pub struct FoldIn {
    num_items: usize,
    /// $P_L$, row after row.
    left: Array<f32>,
    /// $P_R$, row after row; the same as the left one where they are equal.
    right: Array<f32>,
    weights: LagWeights,
    /// In how many bytes the factors are stored: they hold values that this leaves as they are.
    quantization: Quantization,
    /// What training found by itself.
    learned: Vec<(&'static str, f64)>,
    /// The left factor in eight bits, once it is worth it.
    scan: LazyScan,
}

/// Names of the factors in files: the left one and, where it differs, the right one.
const LEFT: &str = "item_factors";
const LEFT_SCALES: &str = "item_factor_scales";
const RIGHT: &str = "history_factors";
const RIGHT_SCALES: &str = "history_factor_scales";

/// Columns of a product at least. One with a single column takes another kernel that rounds otherwise: a lone history gets company.
const COMPANY: usize = 2;

impl FoldIn {
    /// The projector on an item space $V$ ($n$ items, `rank` columns, at most $n$): $V V^T$ or, with the diagonal of the
    /// debiasing $D$ given, $D^{-1} V V^T D$. `row` writes a row of $V$. `None` if a value is not finite.
    pub(crate) fn from_item_space(
        num_items: usize,
        rank: usize,
        row: impl Fn(usize, &mut [f64]) + Sync,
        debias: Option<&[f64]>,
        weights: LagWeights,
    ) -> Option<Self> {
        let scaled = |scale: &(dyn Fn(usize) -> f64 + Sync)| -> Array<f32> {
            let mut factor = vec![0f32; num_items * rank];
            let rows = factor.par_chunks_mut(rank.max(1)).enumerate();
            rows.for_each_init(
                || vec![0.0; rank],
                |values, (item, into)| {
                    row(item, values);
                    let scale = scale(item);
                    into.iter_mut().zip(values).for_each(|(to, value)| *to = (*value * scale) as f32);
                },
            );
            factor.into()
        };
        let (left, right) = match debias {
            None => {
                let both = scaled(&|_| 1.0);
                (both.clone(), both)
            }
            // An item that nobody took has no weight: nothing is known of it either way.
            Some(debias) => (
                scaled(&|item| if debias[item] > 0.0 { 1.0 / debias[item] } else { 0.0 }),
                scaled(&|item| debias[item]),
            ),
        };
        FoldIn::new(num_items, left, right, weights)
    }

    /// Factors of one shape, both row after row. `None` if a value is not finite.
    ///
    /// # Panics
    /// If the shapes do not fit.
    pub fn new(
        num_items: usize,
        left: impl Into<Array<f32>>,
        right: impl Into<Array<f32>>,
        weights: LagWeights,
    ) -> Option<Self> {
        let (left, right) = (left.into(), right.into());
        assert!(
            left.len() == right.len() && left.len().is_multiple_of(num_items.max(1)),
            "factors of one shape"
        );
        let finite = left.par_iter().chain(right.par_iter()).all(|value| value.is_finite());
        finite.then_some(FoldIn {
            num_items,
            left,
            right,
            weights,
            quantization: Quantization::None,
            learned: Vec::new(),
            scan: LazyScan::default(),
        })
    }

    /// The same, with what training found by itself.
    #[must_use]
    pub(crate) fn with_learned(self, learned: Vec<(&'static str, f64)>) -> Self {
        FoldIn { learned, ..self }
    }

    /// Number of columns of the factors.
    pub fn rank(&self) -> usize {
        self.left.len() / self.num_items.max(1)
    }

    /// The model as its arrays lie in a file, for a registry of models.
    pub(super) fn restore(tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        Ok(Box::new(FoldIn::from_tensors(tensors)?))
    }

    /// Whether a file has its arrays.
    pub(super) fn is_in(tensors: &StoredTensors<'_>) -> bool {
        tensors.find(LEFT).is_some()
    }

    /// The model as its arrays lie in a file.
    pub(super) fn from_tensors(tensors: &StoredTensors<'_>) -> Result<Self, TensorError> {
        let num_items = tensors.num_items();
        let (left, quantization) = stored_factor(tensors, LEFT, LEFT_SCALES)?;
        let right = match tensors.find(RIGHT) {
            None => left.clone(),
            Some(_) => stored_factor(tensors, RIGHT, RIGHT_SCALES)?.0,
        };
        if left.len() != right.len() {
            let rank = |factor: &[f32]| factor.len() / num_items.max(1);
            return Err(TensorError::new(
                RIGHT,
                format!("rank {}", rank(&right)),
                format!("rank {}, as {LEFT} has", rank(&left)),
            ));
        }
        let model = FoldIn::new(num_items, left, right, LagWeights::from_tensors(tensors)?)
            .ok_or_else(|| TensorError::new(LEFT, "values that overflow", "finite numbers"))?;
        Ok(FoldIn { quantization, ..model })
    }

    /// The same with factors in fewer bytes.
    pub(super) fn rounded(&self, quantization: Quantization) -> Result<Self, &'static str> {
        let rank = self.rank();
        let rounded = |factor: &Array<f32>| -> Array<f32> {
            match quantization {
                Quantization::None => factor.clone(),
                Quantization::Half => quantization::from_half(&quantization::to_half(factor)).into(),
                Quantization::Int8 => {
                    let (codes, scales) = quantization::to_int8(factor, rank);
                    quantization::from_int8(&codes, &scales).into()
                }
            }
        };
        let left = rounded(&self.left);
        let right = if self.shares_a_factor() { left.clone() } else { rounded(&self.right) };
        let model = FoldIn::new(self.num_items, left, right, self.weights.clone());
        let model = model.ok_or("its factors are too large for half precision; int8 has no such limit")?;
        Ok(FoldIn { quantization, learned: self.learned.clone(), ..model })
    }

    fn shares_a_factor(&self) -> bool {
        self.left.is_same(&self.right)
    }

    fn row<'a>(&self, factor: &'a [f32], item: ItemIndex) -> &'a [f32] {
        &factor[item.get() * self.rank()..][..self.rank()]
    }

    /// The cosines of the angles between one row of a factor and all of them.
    fn cosines(&self, factor: &[f32], item: ItemIndex) -> Vec<f32> {
        let own = self.row(factor, item);
        let own_norm = dot(own, own).sqrt();
        let cosine = |row: &[f32]| {
            let norms = own_norm * dot(row, row).sqrt();
            if norms > 0.0 { (dot(row, own) / norms) as f32 } else { 0.0 }
        };
        if self.rank() == 0 {
            return vec![0.0; self.num_items];
        }
        factor.par_chunks(self.rank()).map(cosine).collect()
    }

    /// How alike every item is to one by what it says of others when it stands in a history: the cosine of rows of $P_R$.
    pub(super) fn history_similarities(&self, item: ItemIndex) -> Vec<f32> {
        self.cosines(&self.right, item)
    }

    /// The lag weights.
    pub fn weights(&self) -> &LagWeights {
        &self.weights
    }

    /// $f$ of one history, summed in double precision in an order that depends on the history alone.
    fn gather(&self, history: History<'_>, feature: &mut [f32]) {
        let rank = feature.len();
        let mut sums = vec![0f64; rank];
        let mut add = |item: ItemIndex, weight: f64| {
            let row = &self.right[item.get() * rank..(item.get() + 1) * rank];
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += weight * f64::from(value);
            }
        };
        if let Some(weights) = self.weights.of(history) {
            for (&item, &weight) in history.iter().rev().zip(&*weights) {
                add(item, weight);
            }
        } else {
            let mut distinct = history.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            for item in distinct {
                add(item, 1.0);
            }
        }
        feature.iter_mut().zip(sums).for_each(|(value, sum)| *value = sum as f32);
    }
}

impl FoldIn {
    /// The scores of one history, with the bits of a batch, on this thread alone and in room that is kept.
    pub(super) fn score_alone<'w>(
        &self,
        history: History<'_>,
        dense: &'w mut Vec<f32>,
        features: &mut Vec<f32>,
    ) -> &'w mut [f32] {
        let (items, rank) = (self.num_items, self.rank());
        if rank == 0 {
            let scores = sized(dense, items);
            scores.fill(0.0);
            return scores;
        }
        let (wide, features) = (sized(dense, COMPANY * items), sized(features, COMPANY * rank));
        features.fill(0.0);
        self.gather(history, &mut features[..rank]);
        let features = MatRef::from_column_major_slice(features, rank, COMPANY);
        let left = MatRef::from_row_major_slice(&self.left, items, rank);
        let into = MatMut::from_column_major_slice_mut(wide, items, COMPANY);
        matmul_alone(into, Accum::Replace, left, features, 1.0);
        let scores = &mut wide[..items];
        clear_signs_of_zeros(scores);
        scores
    }
}

impl Recommender for FoldIn {
    fn num_items(&self) -> usize {
        self.num_items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        let (items, rank) = (self.num_items(), self.rank());
        assert_eq!(scores.len(), histories.len() * items, "one score per history and item");
        if rank == 0 {
            scores.fill(0.0);
            return;
        }
        let width = histories.len().max(COMPANY);
        let mut features = vec![0f32; width * rank];
        features
            .par_chunks_mut(rank)
            .zip(histories)
            .for_each(|(feature, history)| self.gather(*history, feature));
        let features = MatRef::from_column_major_slice(&features, rank, width);
        let product = |into: &mut [f32]| {
            let into = MatMut::from_column_major_slice_mut(into, items, width);
            let left = MatRef::from_row_major_slice(&self.left, items, rank);
            matmul(into, Accum::Replace, left, features, 1.0);
        };
        if histories.len() == width {
            product(scores);
        } else if !histories.is_empty() {
            let mut wide = vec![0f32; width * items];
            product(&mut wide);
            scores.copy_from_slice(&wide[..scores.len()]);
        }
        scores.par_chunks_mut(items.max(1)).for_each(clear_signs_of_zeros);
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items, history);
        Scores::Dense(self.score_alone(history, &mut workspace.dense, &mut workspace.features))
    }

    fn best_one(
        &self,
        history: History<'_>,
        n: usize,
        is_allowed: &dyn Fn(ItemIndex) -> bool,
        workspace: &mut Workspace,
    ) -> Option<Vec<Scored>> {
        check_history(self.num_items, history);
        let Workspace { dense, features, own, .. } = workspace;
        let nothing = Added { sums: &[], touched: &[] };
        self.best_alone(history, (n, is_allowed), nothing, (dense, features, own))
    }

    fn make_ready(&self) {
        self.make_scan();
    }

    fn memory_bytes(&self) -> usize {
        let weights = self.weights.by_lag().map_or(0, size_of_val);
        let copies = if self.shares_a_factor() { 1 } else { 2 };
        size_of_val(&*self.right) * copies + weights + self.scan.num_bytes()
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors = factor_tensors(&self.left, self.num_items, self.quantization, LEFT, LEFT_SCALES);
        if !self.shares_a_factor() {
            tensors.extend(factor_tensors(
                &self.right,
                self.num_items,
                self.quantization,
                RIGHT,
                RIGHT_SCALES,
            ));
        }
        tensors.extend(self.weights.tensors());
        tensors
    }

    /// $w_l$ times the product of rows $j_l$ of $P_R$ and $j$ of $P_L$, in double precision.
    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let left = self.row(&self.left, item);
        let product = |past: ItemIndex| dot(self.row(&self.right, past), left);
        match self.weights.of(history) {
            None => Shares::of_distinct(&history, product),
            Some(weights) => {
                let mut shares = Shares::of_none(&history, 0.0);
                let newest_first = shares.of_history.iter_mut().rev().zip(history.iter().rev());
                for ((share, &past), &weight) in newest_first.zip(&*weights) {
                    *share = weight * product(past);
                }
                shares
            }
        }
    }

    /// The cosine of the angle between item factors. Debiasing scales whole rows, so it plays no part.
    fn similarities(&self, item: ItemIndex) -> Option<Similarities> {
        Some(Similarities { measure: "cosine of item factors", values: self.cosines(&self.left, item) })
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }

    fn learned(&self) -> Vec<(&'static str, f64)> {
        self.learned.clone()
    }

    fn item_factors(&self) -> Option<(&[f32], usize)> {
        Some((&self.left, self.left.len() / self.num_items.max(1)))
    }

    fn lag_weights(&self) -> Option<&[f64]> {
        self.weights.by_lag()
    }

    fn quantized(&self, quantization: Quantization) -> Result<Box<dyn Recommender>, &'static str> {
        Ok(Box::new(self.rounded(quantization)?))
    }
}

/// Makes 0 of -0. Of a product that is nothing, as that of an empty history, kernels give either, as their shapes have it.
fn clear_signs_of_zeros(scores: &mut [f32]) {
    for score in scores {
        *score += 0.0;
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn factor_tensors<'a>(
    factor: &'a [f32],
    num_items: usize,
    quantization: Quantization,
    name: &'static str,
    scales_name: &'static str,
) -> Vec<Tensor<'a>> {
    let rank = factor.len() / num_items.max(1);
    let shape = [num_items, rank];
    match quantization {
        Quantization::None => vec![Tensor::new(name, &shape, factor)],
        Quantization::Half => vec![Tensor::new(name, &shape, quantization::to_half(factor))],
        Quantization::Int8 => {
            let (codes, scales) = quantization::to_int8(factor, rank);
            vec![Tensor::new(name, &shape, codes), Tensor::list(scales_name, scales)]
        }
    }
}

/// A factor in single precision, and how it was stored.
fn stored_factor(
    tensors: &StoredTensors<'_>,
    name: &str,
    scales_name: &str,
) -> Result<(Array<f32>, Quantization), TensorError> {
    let shape = [Some(tensors.num_items()), None];
    match tensors.find(name).map(|tensor| tensor.kind) {
        Some(TensorType::F16) => {
            let halves = tensors.values(name, &shape)?;
            Ok((quantization::from_half(&halves).into(), Quantization::Half))
        }
        Some(TensorType::I8) => {
            let codes: Array<i8> = tensors.array(name, &shape)?;
            let scales: Array<f32> = tensors.per_item(scales_name)?;
            Ok((quantization::from_int8(&codes, &scales).into(), Quantization::Int8))
        }
        _ => Ok((tensors.array(name, &shape)?, Quantization::None)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn model(items: usize, rank: usize, weights: LagWeights) -> FoldIn {
        let value = |i: usize, k: usize, a: usize| ((i * a + k * 17) % 101) as f32 / 77.0 - 0.6;
        let factor = |a: usize| -> Vec<f32> {
            (0..items).flat_map(|i| (0..rank).map(move |k| value(i, k, a))).collect()
        };
        FoldIn::new(items, factor(31), factor(13), weights).unwrap()
    }

    fn histories(count: usize, items: usize) -> Vec<Vec<ItemIndex>> {
        (0..count)
            .map(|h| (0..h % 7).map(|at| ItemIndex(((h * 29 + at * 11) % items) as u32)).collect())
            .collect()
    }

    fn scores(model: &FoldIn, histories: &[Vec<ItemIndex>]) -> Vec<u32> {
        let histories: Vec<History<'_>> = histories.iter().map(History::from).collect();
        let mut scores = vec![f32::NAN; histories.len() * model.num_items()];
        model.score_batch(&histories, &mut scores);
        scores.iter().map(|score| score.to_bits()).collect()
    }

    #[test]
    fn a_batch_of_any_width_gives_the_bits_of_a_history_alone() {
        for (items, rank) in
            [(2, 2), (5, 1), (40, 7), (60, 60), (300, 300), (513, 513), (1025, 33), (1300, 700)]
        {
            for weights in [LagWeights::Flat, LagWeights::ByLag(vec![1.0, 0.5, 0.25, 0.1])] {
                let model = model(items, rank, weights);
                let all = histories(514, items);
                let together = scores(&model, &all);
                for width in [1, 2, 3, 8, 17, 64, 129, 513] {
                    let apart: Vec<u32> = all.chunks(width).flat_map(|chunk| scores(&model, chunk)).collect();
                    assert!(apart == together, "items {items} rank {rank} width {width}");
                }
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let model = model(1200, 300, LagWeights::Flat);
        let all = histories(70, 1200);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| scores(&model, &all))
        };
        let expected = on(1);
        assert!(on(2) == expected && on(4) == expected);
    }

    proptest! {
        #[test]
        fn scores_are_the_sums_of_the_shares(
            history in prop::collection::vec(0u32..12, 0..9),
            weights in prop::option::of(prop::collection::vec(-1f64..1.0, 1..6)),
        ) {
            let weights = weights.map_or(LagWeights::Flat, LagWeights::ByLag);
            let model = model(12, 5, weights.clone());
            let history: Vec<ItemIndex> = history.into_iter().map(ItemIndex).collect();
            let mut scores = vec![0f32; 12];
            model.score_batch(&[History::new(&history)], &mut scores);
            for (item, score) in scores.iter().enumerate() {
                let share = |past: ItemIndex| -> f64 {
                    (0..5).map(|k| f64::from(model.left[item * 5 + k]) * f64::from(model.right[past.get() * 5 + k])).sum()
                };
                let expected: f64 = match weights.by_lag() {
                    Some(weights) => {
                        history.iter().rev().zip(weights).map(|(&past, &w)| w * share(past)).sum()
                    }
                    None => {
                        (0..12).map(ItemIndex).filter(|past| history.contains(past)).map(share).sum()
                    }
                };
                prop_assert!((f64::from(*score) - expected).abs() < 1e-4, "{score} {expected}");
            }
        }
    }
}
