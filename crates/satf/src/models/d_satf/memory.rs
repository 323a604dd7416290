//! The sparse directed memory $T$: which items were taken after which, how surely in this order, and against whose
//! popularity.
//!
//! A pair of positions $s < t \le s + w$ of one history weighs $(t + 1)^{-\kappa}$, with positions counted from 0. Summed over all
//! histories, $n^c_{ab}$ is what speaks for "$a$, then $b$" among pairs of one class of distance $c$ ([`crate::counts`]): integers, which add up.
//! What a class weighs, $v_c$, is the mean of $d^{-\delta}$ over its pairs, so that no key but $w$ and $\kappa$ is inside the counts.
//!
//! Four kinds of pairs are told apart, for their order may tell more or less: pairs taken at one and the same time, neighbours
//! (at distance 1), pairs at a distance of 2 to 5, and those further apart. For each of them, $n_{ab} = \sum_c v_c n^c_{ab}$.
//!
//! # Direction, learned
//!
//! How much does the order of a pair tell? Two occurrences of a pair $\{a, b\}$ drawn at random go the same way with probability
//!
//! $$ p = \frac{\sum_{a,b} n_{ab}^2 - Q}{\tfrac12 \sum_{a,b} (n_{ab} + n_{ba})^2 - Q}, \qquad Q = \text{the sum of all squared weights}, $$
//!
//! which leaves out that every occurrence agrees with itself. $p = 1/2$ says that order is noise, $p = 1$ that it is law. If every pair has
//! its own chance of going one way, drawn from a symmetric Beta distribution, then $2p - 1 = 1 / (2\alpha + 1)$ is the correlation
//! within pairs, and the expected weight of "$a$, then $b$" after what was seen is
//!
//! $$ \hat n_{ab} = (n_{ab} + n_{ba}) \, \frac{n_{ab} + \alpha u}{n_{ab} + n_{ba} + 2 \alpha u} , $$
//!
//! with $u = Q / \sum_{a,b} n_{ab}$, the weight of a typical occurrence of this kind. Pairs seen once are nearly symmetric where order is noise; pairs
//! seen often keep the direction they have.
//!
//! # Evidence
//!
//! $$ T_{ab} = \phi(\hat n_{ab} + \theta \, \hat n'_{ab}) \, c_a^{-p_s} \, c_b^{-p_t}, \qquad \phi(x) = k u \ln\Bigl(1 + \frac{x}{k u}\Bigr) $$
//!
//! for item counts $c$ and the typical weight $u$ of pairs of all kinds, where $\hat n'$ is of pairs taken at one time, which count $\theta$ times as much. Evidence grows in step with what was
//! seen as long as that is little, and with its logarithm beyond $k$ typical occurrences: a history speaks with the many items in it,
//! and none of them should drown the others. A row keeps its strongest targets. `O(rows * window)` time; nothing but the pairs that
//! are kept is stored.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::DSatfConfig;
use crate::byte_size::ByteSize;
use crate::counts::{AT_ONCE, CLASSES, DistanceSums, PairRows, RowCounter, Sums, UNIT};
use crate::interactions::ItemIndex;
use crate::models::ModelError;
use crate::models::item_rows::{ItemRows, RowChunk, RowWriter};
use crate::monitor::Monitor;
use crate::prepare::Histories;

/// What the memory is made with, once pairs are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryParams {
    pub(super) distance_decay: f64,
    pub(super) together: f64,
    pub(super) saturation: f64,
    pub(super) source_power: f64,
    pub(super) target_power: f64,
    pub(super) row_limit: usize,
}

/// Kinds of pairs whose order may tell more or less.
pub(super) const KINDS: usize = 4;

/// The classes of distance of each kind, those of pairs at one time first.
const CLASSES_OF: [std::ops::Range<usize>; KINDS] =
    [0..AT_ONCE, AT_ONCE..AT_ONCE + 1, AT_ONCE + 1..AT_ONCE + 3, AT_ONCE + 3..CLASSES];

/// The kind of each class.
const KIND_OF: [usize; CLASSES] = [0, 0, 0, 0, 1, 2, 2, 3, 3, 3];

/// What is known of the order of pairs of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Direction {
    /// $p$: how often two occurrences of a pair go the same way; none if no pair occurs twice.
    agreement: Option<f64>,
    /// $\alpha u$: what is added to either side.
    prior: f64,
}

/// The least correlation within pairs that is believed: an $\alpha$ of some 500.
const LEAST_CORRELATION: f64 = 1e-3;

/// What is taken for the agreement if no pair occurs twice.
const UNKNOWN_AGREEMENT: f64 = 0.75;

/// Sums over all pairs from which the direction of every kind is learned, whatever its classes weigh: totals by class, products by
/// two classes of one kind, the second not below the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    distances: DistanceSums,
    /// $\sum n^c_{ab}$.
    weight: [u128; CLASSES],
    /// Sums of squared weights.
    squares: [u128; CLASSES],
    /// $\sum n^c_{ab} n^d_{ab}$.
    one_way: [[u128; CLASSES]; CLASSES],
    /// $\sum (n^c_{ab} + n^c_{ba}) (n^d_{ab} + n^d_{ba})$, over ordered pairs.
    both_ways: [[u128; CLASSES]; CLASSES],
}

impl Evidence {
    /// Counts all pairs, and how many of them every item has.
    fn with_lengths(pairs: &impl PairRows, monitor: &dyn Monitor) -> Result<(Self, Vec<u32>), ModelError> {
        let lengths: Vec<AtomicU32> = (0..pairs.num_items()).map(|_| AtomicU32::new(0)).collect();
        let count = |one: ItemIndex, other: ItemIndex| {
            lengths[one.get()].fetch_add(1, Ordering::Relaxed);
            lengths[other.get()].fetch_add(1, Ordering::Relaxed);
        };
        let chunks = pairs.each_item_with_higher(monitor, |row, item, evidence: &mut Evidence| {
            evidence.add_row(row, |other| count(item, other));
        })?;
        let mut evidence = chunks.iter().fold(Evidence::default(), Evidence::add);
        evidence.distances = pairs.distances();
        evidence.squares = pairs.squares().unwrap_or(evidence.squares);
        Ok((evidence, lengths.into_iter().map(AtomicU32::into_inner).collect()))
    }

    /// Nothing but how far apart pairs are.
    pub(super) fn of_distances(distances: DistanceSums) -> Self {
        Evidence { distances, ..Evidence::default() }
    }

    /// Adds the pairs of an item with all others, one way, as far as this item comes first. The row keeps them.
    pub(super) fn add_kept_row(&mut self, row: &mut RowCounter) {
        for (sum, squares) in self.squares.iter_mut().zip(row.squares()) {
            *sum += squares;
        }
        row.each(|sums| {
            for classes in CLASSES_OF {
                for one in classes.clone() {
                    let (forth, back) = (u128::from(sums[2 * one]), u128::from(sums[2 * one + 1]));
                    if forth + back == 0 {
                        continue;
                    }
                    self.weight[one] += forth;
                    for other in one..classes.end {
                        let [forth_too, back_too] = [0, 1].map(|way| u128::from(sums[2 * other + way]));
                        self.one_way[one][other] += forth * forth_too;
                        self.both_ways[one][other] += (forth + back) * (forth_too + back_too);
                    }
                }
            }
        });
    }

    /// Adds the pairs of an item with higher ones, both ways. Integers: their order does not matter.
    fn add_row(&mut self, row: &mut RowCounter, see: impl Fn(ItemIndex)) {
        for (sum, squares) in self.squares.iter_mut().zip(row.squares()) {
            *sum += squares;
        }
        row.drain_unordered(|item, sums| {
            see(item);
            for classes in CLASSES_OF {
                for one in classes.clone() {
                    let (forth, back) = (u128::from(sums[2 * one]), u128::from(sums[2 * one + 1]));
                    if forth + back == 0 {
                        continue;
                    }
                    self.weight[one] += forth + back;
                    for other in one..classes.end {
                        let [forth_too, back_too] = [0, 1].map(|way| u128::from(sums[2 * other + way]));
                        self.one_way[one][other] += forth * forth_too + back * back_too;
                        self.both_ways[one][other] += 2 * (forth + back) * (forth_too + back_too);
                    }
                }
            }
        });
    }

    pub(super) fn add(mut self, other: &Evidence) -> Self {
        for one in 0..CLASSES {
            self.weight[one] += other.weight[one];
            self.squares[one] += other.squares[one];
            for two in 0..CLASSES {
                self.one_way[one][two] += other.one_way[one][two];
                self.both_ways[one][two] += other.both_ways[one][two];
            }
        }
        self
    }

    /// The sums of one kind, with what its classes weigh.
    fn of_kind(&self, kind: usize, class_weights: &[f64; CLASSES]) -> KindEvidence {
        let mut sums = KindEvidence::default();
        for one in CLASSES_OF[kind].clone() {
            let weight = class_weights[one];
            sums.weight += weight * self.weight[one] as f64;
            sums.squares += weight * weight * self.squares[one] as f64;
            for (other, other_weight) in (one..).zip(&class_weights[one..CLASSES_OF[kind].end]) {
                let both = weight * other_weight * if one == other { 1.0 } else { 2.0 };
                sums.one_way += both * self.one_way[one][other] as f64;
                sums.both_ways += both * self.both_ways[one][other] as f64;
            }
        }
        sums
    }
}

/// Sums over the pairs of one kind from which its direction is learned.
#[derive(Clone, Copy, Debug, Default)]
struct KindEvidence {
    /// $\sum n_{ab}$.
    weight: f64,
    /// $Q$.
    squares: f64,
    /// $\sum n_{ab}^2$.
    one_way: f64,
    /// $\sum (n_{ab} + n_{ba})^2$, over ordered pairs.
    both_ways: f64,
}

impl KindEvidence {
    fn direction(self) -> Direction {
        let pairs_of_occurrences = self.both_ways / 2.0 - self.squares;
        let known = pairs_of_occurrences > 1e-9 * self.both_ways;
        let agreement = known.then(|| ((self.one_way - self.squares) / pairs_of_occurrences).clamp(0.0, 1.0));
        let correlation = (2.0 * agreement.unwrap_or(UNKNOWN_AGREEMENT) - 1.0).max(LEAST_CORRELATION);
        let prior = (1.0 / correlation - 1.0) / 2.0 * typical_weight(self.weight, self.squares);
        Direction { agreement, prior }
    }
}

/// $u$, the weight of a typical occurrence.
fn typical_weight(weight: f64, squares: f64) -> f64 {
    if weight > 0.0 { squares / weight } else { 1.0 }
}

impl Direction {
    /// $\hat n_{ab}$ of what was seen this way and the other way.
    fn expected(self, forth: f64, back: f64) -> f64 {
        let both = forth + back;
        if both > 0.0 { both * (forth + self.prior) / (both + 2.0 * self.prior) } else { 0.0 }
    }
}

/// From what was counted of a pair to its evidence, popularity aside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finisher {
    /// $v_c$, for integer sums.
    class_weights: [f64; CLASSES],
    directions: [Direction; KINDS],
    together: f64,
    /// $k u$.
    level: f64,
}

impl Finisher {
    pub(super) fn new(evidence: &Evidence, params: &MemoryParams) -> Self {
        let weights = evidence.distances.mean_weights(params.distance_decay);
        let class_weights = weights.map(|weight| weight / UNIT as f64);
        let kinds: [KindEvidence; KINDS] = std::array::from_fn(|kind| evidence.of_kind(kind, &class_weights));
        let weight = kinds.iter().map(|kind| kind.weight).sum();
        let squares = kinds.iter().map(|kind| kind.squares).sum();
        Finisher {
            class_weights,
            directions: kinds.map(KindEvidence::direction),
            together: params.together,
            level: params.saturation * typical_weight(weight, squares),
        }
    }

    /// How surely pairs of each kind keep their order, where that is known.
    pub(super) fn agreements(&self) -> [Option<f64>; KINDS] {
        self.directions.map(|direction| direction.agreement)
    }

    /// The same of those sums alone that are not 0, by their place.
    pub(super) fn evidence_of(&self, sums: impl Iterator<Item = (usize, f64)>) -> f64 {
        let mut seen = [[0.0; 2]; KINDS];
        for (place, sum) in sums {
            seen[KIND_OF[place / 2]][place % 2] += self.class_weights[place / 2] * sum;
        }
        let expected = |kind: usize| self.directions[kind].expected(seen[kind][0], seen[kind][1]);
        let seen = self.together * expected(0) + (1..KINDS).map(expected).sum::<f64>();
        self.level * (seen / self.level).ln_1p()
    }

    /// $\phi(\hat n_{ab} + \theta \hat n'_{ab})$.
    pub(super) fn evidence(&self, sums: &Sums) -> f64 {
        self.level * (self.seen(sums) / self.level).ln_1p()
    }

    /// $\hat n_{ab} + \theta \hat n'_{ab}$.
    pub(super) fn seen(&self, sums: &Sums) -> f64 {
        let mut seen = 0.0;
        for (kind, (classes, direction)) in CLASSES_OF.into_iter().zip(&self.directions).enumerate() {
            let (mut forth, mut back) = (0.0, 0.0);
            for class in classes {
                forth += self.class_weights[class] * sums[2 * class] as f64;
                back += self.class_weights[class] * sums[2 * class + 1] as f64;
            }
            seen += if kind == 0 { self.together } else { 1.0 } * direction.expected(forth, back);
        }
        seen
    }
}

/// A memory that was learned.
pub(super) struct Memory {
    pub(super) rows: ItemRows,
    /// The sum of the squared weights of every row.
    pub(super) squares: Vec<f64>,
    pub(super) agreements: [Option<f64>; KINDS],
}

/// Counts all pairs, twice: once to learn their direction, once to keep them. `trend` is what else a target's weight is
/// multiplied with when it is scored: a row keeps what is strongest then.
///
/// How many pairs are kept is known before the second time. If they take more than `room` bytes they go to temporary files.
pub(super) fn fit(
    params: &MemoryParams,
    pairs: &impl PairRows,
    popularity: &[u32],
    trend: &[f64],
    room: u64,
    monitor: &dyn Monitor,
) -> Result<Memory, ModelError> {
    monitor.begin("learning the direction of pairs", popularity.len() as u64);
    let (evidence, lengths) = Evidence::with_lengths(pairs, monitor)?;
    let finisher = Finisher::new(&evidence, params);
    let num_pairs: usize = lengths.iter().map(|&len| (len as usize).min(params.row_limit)).sum();
    drop(lengths);

    monitor.begin("keeping pairs", popularity.len() as u64);
    let scale = |power: f64| -> Vec<f64> {
        popularity.iter().map(|&count| f64::from(count.max(1)).powf(-power)).collect()
    };
    let (source_scale, target_scale) = (scale(params.source_power), scale(params.target_power));
    let needed = num_pairs as u64 * ItemRows::BYTES_A_PAIR;
    let is_spilled = needed > room;
    tracing::info!(
        pairs = num_pairs,
        "{} of pairs {}",
        ByteSize(needed),
        if is_spilled { "go to temporary files" } else { "stay in memory" }
    );
    let failed = |source| no_temporary_file(needed, source);
    let mut rows = RowWriter::new(popularity.len(), num_pairs, is_spilled).map_err(failed)?;
    pairs.each_item_in_order(
        monitor,
        |row, source, chunk: &mut RowChunk| {
            row.drain_unordered(|target, sums| {
                let scale = source_scale[source.get()] * target_scale[target.get()];
                let weight = (finisher.evidence(sums) * scale) as f32;
                if weight > 0.0 {
                    chunk.push(target, weight);
                }
            });
            chunk.end_row_with_strongest(params.row_limit, |target: ItemIndex| trend[target.get()]);
        },
        |chunk| rows.push(&chunk).map_err(failed),
    )?;
    let (rows, squares) = rows.finish().map_err(failed)?;
    Ok(Memory { rows, squares, agreements: finisher.agreements() })
}

/// An error that so many bytes of pairs found no place in temporary files.
pub(super) fn no_temporary_file(needed: u64, source: io::Error) -> ModelError {
    ModelError::TemporaryFile { model: DSatfConfig::NAME, folder: std::env::temp_dir(), needed, source }
}

/// How often items stand near each other, both ways.
pub(super) fn num_occurrences(histories: &Histories, window: usize) -> u64 {
    let near = |&(len, count): &(usize, u64)| {
        let (len, window) = (len as u64, window.min(len) as u64);
        // The first positions have fewer before them.
        count * (window * len - window * (window + 1) / 2)
    };
    let occurrences: u64 = histories.lengths().iter().map(near).sum();
    occurrences.saturating_mul(2)
}
