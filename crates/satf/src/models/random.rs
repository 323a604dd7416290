//! Random scores: what a ranking is worth that knows nothing.

use serde::{Deserialize, Serialize};

use super::batch::{check_history, score_each};
use super::tensors::{Shares, StoredTensors, Tensor, TensorError};
use super::workspace::{Scores, Workspace};
use super::{Learner, ModelError, Recommender, TrainingMonitor, UserData};
use crate::interactions::ItemIndex;
use crate::prepare::{Histories, History};

/// The baseline `random`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomConfig {
    /// Seed of the scores: any number (default 0).
    pub seed: u64,
}

impl RandomConfig {
    /// The model's name.
    pub const NAME: &'static str = "random";
}

impl Learner for RandomConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn never_quantized(&self) -> Option<&'static str> {
        Some(super::recommender::NO_ITEM_FACTORS)
    }

    fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }

    fn fit(
        &self,
        histories: &Histories,
        _monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.check()?;
        Ok(Box::new(Random::new(self.seed, histories.num_items())))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        Ok(Box::new(Random::new(self.seed, tensors.num_items())))
    }
}

/// Scores uniform in `[0, 1)` that depend on the seed, the items of the history and the item scored, and on
/// nothing else.
///
/// A stateful generator would make a score depend on what was scored before it. Here every score is a hash of
/// its own inputs: `mix(key + (j + 1) * STEP)`, where `key` sums the hashes of the history's items. The sum
/// makes the order of the history irrelevant, as for every model that does not learn from order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    seed: u64,
    num_items: usize,
}

/// The increment of the splitmix64 sequence: 2^64 divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64: every input bit reaches every output bit.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Random {
    /// Scores for a catalogue of `num_items`.
    pub fn new(seed: u64, num_items: usize) -> Self {
        Random { seed, num_items }
    }

    fn key(&self, history: &[ItemIndex]) -> u64 {
        let seed = mix(self.seed.wrapping_add(STEP));
        let items = history
            .iter()
            .map(|item| mix(seed ^ u64::from(item.0).wrapping_add(1).wrapping_mul(STEP)))
            .fold(0, u64::wrapping_add);
        mix(seed.wrapping_add(items))
    }

    /// The scores of one history.
    fn score_into(&self, history: History<'_>, row: &mut [f32]) {
        let mut state = self.key(&history);
        for score in row {
            state = state.wrapping_add(STEP);
            *score = unit(state);
        }
    }
}

/// A number in `[0, 1)` of the upper 24 bits: as many as a single-precision fraction holds without rounding up to 1.
fn unit(state: u64) -> f32 {
    const UNIT: f32 = 1.0 / (1 << 24) as f32;
    (mix(state) >> 40) as f32 * UNIT
}

impl Recommender for Random {
    fn num_items(&self) -> usize {
        self.num_items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        score_each(
            self.num_items,
            histories,
            scores,
            || (),
            |(), history, row| self.score_into(history, row),
        );
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items, history);
        let scores = workspace.dense(self.num_items);
        self.score_into(history, scores);
        Scores::Dense(scores)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }

    /// None: the seed stands in the configuration.
    fn tensors(&self) -> Vec<Tensor<'_>> {
        Vec::new()
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let state = self.key(&history).wrapping_add(STEP.wrapping_mul(u64::from(item.0) + 1));
        Shares::of_none(&history, f64::from(unit(state)))
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(seed: u64, history: &[u32], num_items: usize) -> Vec<f32> {
        let history: Vec<ItemIndex> = history.iter().copied().map(ItemIndex).collect();
        let mut scores = vec![f32::NAN; num_items];
        Random::new(seed, num_items).score_batch(&[History::new(&history)], &mut scores);
        scores
    }

    #[test]
    fn scores_are_uniform() {
        let scores = scores(7, &[3, 1], 100_000);
        assert!(scores.iter().all(|score| (0.0..1.0).contains(score)));
        for tenth in 0..10 {
            let (low, high) = (tenth as f32 / 10.0, (tenth + 1) as f32 / 10.0);
            let share = scores.iter().filter(|&&score| score >= low && score < high).count() as f64 / 1e5;
            assert!((share - 0.1).abs() < 0.005, "{share} of the scores lie in {low}..{high}");
        }
    }

    #[test]
    fn seed_and_history_change_every_ranking() {
        let base = scores(1, &[2, 5], 50);
        assert_ne!(base, scores(2, &[2, 5], 50));
        assert_ne!(base, scores(1, &[2, 6], 50));
        assert_ne!(base, scores(1, &[2, 5, 5], 50));
        assert_eq!(base, scores(1, &[5, 2], 50));
    }
}
