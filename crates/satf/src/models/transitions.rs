//! Windowed directed transitions: which items follow which, how closely, and against whose popularity.
//!
//! A user's items stand at positions `0, 1, ...`, oldest first. Every ordered pair of positions at most `window`
//! apart is a rule from the earlier item to the later one:
//!
//! ```text
//! S[a,b] = sum over users, s < t <= s + window, x_s = a, x_t = b, a != b  of  (t - s)^-distance_decay
//! T[a,b] = (S[a,b] + reverse * S[b,a]) * c_a^-source_power * c_b^-target_power
//! score_b = sum over lags l = 0, 1, ...  of  (l + 1)^-recency_decay * T[x_l, b]
//! ```
//!
//! where `c_j` is the number of rows of item `j` and `x_l` the item of the history at lag `l` (0 = newest).
//!
//! `T` is stored in compressed rows, single precision; every sum runs in double. It takes
//! `O(rows * window)` time to build and 8 bytes a distinct pair to keep.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::batch::{check_history, score_each};
use super::company;
use super::item_rows::{ItemRows, RowChunk, RowNames, RowSums};
use super::memory::DEFAULT_MEMORY_BYTES;
use super::tensors::{Shares, StoredTensors, Tensor, TensorError};
use super::workspace::{Scores, Workspace};
use super::{Fault, Learner, ModelError, Recommender, Similarities, TrainingMonitor, UserData};
use crate::counts::Places;
use crate::interactions::ItemIndex;
use crate::monitor::Monitor;
use crate::numbers::Count;
use crate::prepare::{Histories, History};

/// The model `transitions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransitionsConfig {
    /// How far apart two positions of one history may be: at least 1 (default 10).
    pub window: usize,
    /// Exponent of the fall of a pair's weight with its distance: 0 to 10 (default 1).
    pub distance_decay: f64,
    /// Weight of the opposite direction, later item to earlier one: 0 to 1 (default 0, none).
    pub reverse: f64,
    /// Exponent of the division by the popularity of the earlier item: 0 to 2 (default 0.5).
    pub source_power: f64,
    /// Exponent of the division by the popularity of the item scored: 0 to 2 (default 0.3).
    pub target_power: f64,
    /// Exponent of the fall of an item's weight with its lag in the history scored: 0 to 10 (default 1).
    pub recency_decay: f64,
    /// Newest items of a history that count when it is scored: at least 1 (default: all).
    pub max_len: Option<usize>,
    /// Most memory that pairs may take in training, in bytes (default 8 GiB).
    pub memory_bytes: Option<u64>,
}

impl Default for TransitionsConfig {
    fn default() -> Self {
        TransitionsConfig {
            window: 10,
            distance_decay: 1.0,
            reverse: 0.0,
            source_power: 0.5,
            target_power: 0.3,
            recency_decay: 1.0,
            max_len: None,
            memory_bytes: None,
        }
    }
}

/// Bytes of a pair while all of them are put together: it is there twice.
const BYTES_A_PAIR: u64 = 16;

impl TransitionsConfig {
    /// The model's name.
    pub const NAME: &'static str = "transitions";
}

impl Learner for TransitionsConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn never_quantized(&self) -> Option<&'static str> {
        Some(super::recommender::NO_ITEM_FACTORS)
    }

    fn check(&self) -> Result<(), ModelError> {
        let mut faults = Vec::new();
        if self.window == 0 {
            faults.push(Fault::new("window", self.window, "at least 1"));
        }
        // The bounds keep every score finite in single precision for any log of up to 2^32 rows.
        let ranges = [
            ("distance_decay", self.distance_decay, 0.0, 10.0),
            ("reverse", self.reverse, 0.0, 1.0),
            ("source_power", self.source_power, 0.0, 2.0),
            ("target_power", self.target_power, 0.0, 2.0),
            ("recency_decay", self.recency_decay, 0.0, 10.0),
        ];
        for (field, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                faults.push(Fault::new(field, value, format!("{least} to {most}")));
            }
        }
        if self.max_len == Some(0) {
            faults.push(Fault::new("max_len", 0, "at least 1, or nothing for the whole history"));
        }
        ModelError::from_faults(Self::NAME, faults)
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        Ok(Box::new(Transitions::fit(self, histories, monitor)?))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        Ok(Box::new(Transitions::new(self, ItemRows::from_tensors(tensors, NAMES)?)))
    }
}

/// The fitted matrix `T` by rows, and how to weight the rows of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Transitions {
    rows: ItemRows,
    recency_decay: f64,
    max_len: usize,
}

/// Names of the arrays in files.
const NAMES: RowNames = ["transition_offsets", "transition_items", "transition_weights", "transition_scales"];

impl Transitions {
    /// Counts the transitions of all histories.
    ///
    /// Row `a` of `T` is built from the positions where `a` stands, in the order of users and positions, so
    /// its sums do not depend on the number of threads and nothing but distinct pairs is ever stored.
    pub fn fit(
        config: &TransitionsConfig,
        histories: &Histories,
        monitor: &dyn Monitor,
    ) -> Result<Self, ModelError> {
        config.check()?;
        let num_items = histories.num_items();
        let popularity = histories.popularity();
        let sources = Places::of(histories, &popularity);
        let longest = histories.iter().map(<[ItemIndex]>::len).max().unwrap_or(0);
        let distance_weights: Vec<f64> = (1..=config.window.min(longest))
            .map(|distance| (distance as f64).powf(-config.distance_decay))
            .collect();
        let target_scale: Vec<f64> =
            popularity.iter().map(|&count| f64::from(count).powf(-config.target_power)).collect();

        let allowed = config.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        let most_pairs = allowed / BYTES_A_PAIR;
        let num_pairs = AtomicU64::new(0);
        monitor.begin("counting transitions", num_items as u64);
        let chunks = sources.each_item(
            monitor,
            || RowSums::new(num_items),
            |row, source, chunk: &mut RowChunk| {
                // The outcome is an error by now: nothing more is kept.
                if num_pairs.load(Ordering::Relaxed) > most_pairs {
                    *chunk = RowChunk::default();
                    return;
                }
                let before = chunk.len();
                for (user, position) in sources.of_item(source) {
                    let history = histories.items_of(user);
                    add_neighbours(row, history, position as usize, &distance_weights, config.reverse);
                }
                let scale = f64::from(popularity[source.get()]).powf(-config.source_power);
                row.drain_into(chunk, |target| scale * target_scale[target]);
                num_pairs.fetch_add((chunk.len() - before) as u64, Ordering::Relaxed);
            },
        )?;
        if num_pairs.into_inner() > most_pairs {
            return Err(ModelError::MemoryReached {
                model: TransitionsConfig::NAME,
                what: format!("more than {} pairs of items", Count(most_pairs)),
                least: (most_pairs + 1).saturating_mul(BYTES_A_PAIR),
                allowed,
                hint: "lower window, drop rare items, or raise memory_bytes",
            });
        }
        Ok(Transitions::new(config, ItemRows::from_chunks(chunks)))
    }

    fn new(config: &TransitionsConfig, rows: ItemRows) -> Self {
        let max_len = config.max_len.unwrap_or(usize::MAX);
        Transitions { rows, recency_decay: config.recency_decay, max_len }
    }

    /// Row `T[source, ..]`: the items with a weight, ascending, and their weights.
    ///
    /// # Panics
    /// If the item is outside the catalogue.
    pub fn from_item(&self, source: ItemIndex) -> (&[ItemIndex], &[f32]) {
        self.rows.row(source)
    }

    /// The items of a history that count, newest first, and what their rows count.
    fn weighted<'h>(&'h self, history: &'h [ItemIndex]) -> impl Iterator<Item = (ItemIndex, f64)> + 'h {
        let recency = |lag: usize| (lag as f64 + 1.0).powf(-self.recency_decay);
        history.iter().rev().take(self.max_len).enumerate().map(move |(lag, &item)| (item, recency(lag)))
    }
}

impl Recommender for Transitions {
    fn num_items(&self) -> usize {
        self.rows.num_items()
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        score_each(self.num_items(), histories, scores, Workspace::new, |workspace, history, row| {
            self.score_one(history, workspace).write_to(row);
        });
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items(), history);
        let sums = workspace.sparse(self.num_items());
        self.rows.add_to(sums, self.weighted(&history));
        Scores::Sparse(sums.scores())
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn memory_bytes(&self) -> usize {
        self.rows.num_bytes()
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        self.rows.tensors(NAMES)
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let mut shares = Shares::of_none(&history, 0.0);
        let newest_first = shares.of_history.iter_mut().rev();
        for (share, (past, recency)) in newest_first.zip(self.weighted(&history)) {
            *share = recency * self.rows.weight(past, item);
        }
        shares
    }

    fn similarities(&self, item: ItemIndex) -> Option<Similarities> {
        Some(company::similarities(&self.rows, item))
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}

/// Adds what stands near position `at`: later items by the weight of their distance, earlier ones by `reverse` times it.
fn add_neighbours(
    row: &mut RowSums,
    history: &[ItemIndex],
    at: usize,
    distance_weights: &[f64],
    reverse: f64,
) {
    let after = history[at + 1..].iter().zip(distance_weights).map(|(&item, &weight)| (item, weight));
    let before = history[..at].iter().rev().zip(distance_weights);
    let before = before.map(|(&item, &weight)| (item, reverse * weight));
    for (item, weight) in after.chain(before) {
        if item != history[at] {
            row.add(item, weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `T` by three loops: users, earlier positions, later positions.
    fn transitions_by_definition(
        config: &TransitionsConfig,
        num_items: usize,
        sequences: &[Vec<u32>],
    ) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![0.0; num_items]; num_items];
        let mut popularity = vec![0.0f64; num_items];
        for items in sequences {
            for s in 0..items.len() {
                popularity[items[s] as usize] += 1.0;
                for t in s + 1..items.len() {
                    let (a, b) = (items[s] as usize, items[t] as usize);
                    if a != b && t - s <= config.window {
                        let weight = ((t - s) as f64).powf(-config.distance_decay);
                        sums[a][b] += weight;
                        sums[b][a] += config.reverse * weight;
                    }
                }
            }
        }
        for (a, row) in sums.iter_mut().enumerate() {
            for (b, sum) in row.iter_mut().enumerate() {
                if *sum > 0.0 {
                    *sum *=
                        popularity[a].powf(-config.source_power) * popularity[b].powf(-config.target_power);
                }
            }
        }
        sums
    }

    fn is_close(value: f32, expected: f64) -> bool {
        (f64::from(value) - expected).abs() <= 1e-6 * expected
    }

    proptest! {
        #[test]
        fn transitions_and_scores_equal_the_definition(
            sequences in prop::collection::vec(prop::collection::vec(0u32..9, 0..12), 1..12),
            history in prop::collection::vec(0u32..9, 0..12),
            window in 1usize..6,
            distance_decay in 0.0..2.0,
            reverse in prop::sample::select(vec![0.0, 0.4, 1.0]),
            powers in (0.0..1.0, 0.0..1.0),
            recency_decay in 0.0..2.0,
            max_len in prop::option::of(1usize..6),
        ) {
            let config = TransitionsConfig {
                window,
                distance_decay,
                reverse,
                source_power: powers.0,
                target_power: powers.1,
                recency_decay,
                max_len,
                memory_bytes: None,
            };
            let model = Transitions::fit(&config, &Histories::from_sequences(9, &sequences), &()).unwrap();
            let expected = transitions_by_definition(&config, 9, &sequences);
            for source in 0..9u32 {
                let mut row = [0f32; 9];
                let (targets, weights) = model.from_item(ItemIndex(source));
                prop_assert!(targets.is_sorted_by(|a, b| a < b));
                for (target, &weight) in targets.iter().zip(weights) {
                    row[target.get()] = weight;
                }
                for (&weight, &expected) in row.iter().zip(&expected[source as usize]) {
                    prop_assert!(is_close(weight, expected), "{weight} is not {expected}");
                }
            }

            let items: Vec<ItemIndex> = history.iter().copied().map(ItemIndex).collect();
            let mut scores = [f32::NAN; 9];
            model.score_batch(&[History::new(&items)], &mut scores);
            for (item, &score) in scores.iter().enumerate() {
                let expected: f64 = history
                    .iter()
                    .rev()
                    .take(max_len.unwrap_or(usize::MAX))
                    .enumerate()
                    .map(|(lag, &past)| ((lag + 1) as f64).powf(-recency_decay) * expected[past as usize][item])
                    .sum();
                prop_assert!(is_close(score, expected), "{score} is not {expected}");
            }
        }
    }

    #[test]
    fn a_vanishing_weight_makes_no_pair() {
        let config = TransitionsConfig { reverse: f64::MIN_POSITIVE * f64::EPSILON, ..Default::default() };
        let sequences = [vec![0, 2, 3, 1], vec![0, 2, 1]];
        let model = Transitions::fit(&config, &Histories::from_sequences(4, &sequences), &()).unwrap();
        for source in 0..4 {
            assert!(model.from_item(ItemIndex(source)).0.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let config = TransitionsConfig {
            window: 0,
            distance_decay: f64::NAN,
            reverse: -0.1,
            source_power: f64::INFINITY,
            target_power: 3.0,
            recency_decay: -1.0,
            max_len: Some(0),
            memory_bytes: None,
        };
        let Err(ModelError::Configuration { faults, .. }) = config.check() else { panic!("no fault found") };
        assert_eq!(faults.len(), 7);
        assert_eq!(faults[4].to_string(), "target_power = 3: expected 0 to 2");
    }

    #[test]
    fn a_configuration_reads_as_it_is_written() {
        let config = TransitionsConfig { window: 3, max_len: Some(7), ..TransitionsConfig::default() };
        assert_eq!(toml::from_str::<TransitionsConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        assert_eq!(toml::from_str::<TransitionsConfig>("").unwrap(), TransitionsConfig::default());
        assert!(toml::from_str::<TransitionsConfig>("windows = 3").is_err());
    }
}
