//! The sparse directed memory $T$: which items were taken after which, how surely in this order, and against whose
//! popularity.
//!
//! A pair of positions $s < t \le s + w$ of one history of $\ell$ items counts $(t - s)^{-\delta} \, \ell^{-\kappa}$. Summed over all histories,
//! $n_{ab}$ is what speaks for "$a$, then $b$".
//! Four kinds of pairs are counted apart, for their order may tell more or less: pairs taken at one and the same time, neighbours
//! (at distance 1), pairs at a distance of 2 to 5, and those further apart.
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
//! and none of them should drown the others. `O(rows * window)` time; nothing but distinct pairs is stored.

use crate::interactions::{ItemIndex, Timestamp, UserIndex};
use crate::models::ModelError;
use crate::models::item_rows::{ItemRows, Positions, RowChunk};
use crate::monitor::Monitor;
use crate::prepare::Histories;

/// What the memory is made with.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryParams {
    pub(super) window: usize,
    pub(super) distance_decay: f64,
    pub(super) together: f64,
    pub(super) user_power: f64,
    pub(super) saturation: f64,
    pub(super) source_power: f64,
    pub(super) target_power: f64,
}

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

/// Sums over the pairs of one kind from which its direction is learned.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    /// $\sum n_{ab}$.
    weight: f64,
    /// $Q$.
    squares: f64,
    /// $\sum n_{ab}^2$.
    one_way: f64,
    /// $\sum (n_{ab} + n_{ba})^2$, over ordered pairs.
    both_ways: f64,
}

impl Evidence {
    fn add(mut self, other: Evidence) -> Self {
        self.weight += other.weight;
        self.squares += other.squares;
        self.one_way += other.one_way;
        self.both_ways += other.both_ways;
        self
    }

    fn direction(self) -> Direction {
        let pairs_of_occurrences = self.both_ways / 2.0 - self.squares;
        let known = pairs_of_occurrences > 1e-9 * self.both_ways;
        let agreement = known.then(|| ((self.one_way - self.squares) / pairs_of_occurrences).clamp(0.0, 1.0));
        let correlation = (2.0 * agreement.unwrap_or(UNKNOWN_AGREEMENT) - 1.0).max(LEAST_CORRELATION);
        Direction { agreement, prior: (1.0 / correlation - 1.0) / 2.0 * self.typical_weight() }
    }

    /// $u$, the weight of a typical occurrence.
    fn typical_weight(self) -> f64 {
        if self.weight > 0.0 { self.squares / self.weight } else { 1.0 }
    }
}

impl Direction {
    /// $\hat n_{ab}$ of what was seen this way and the other way.
    fn expected(self, forth: f64, back: f64) -> f64 {
        let both = forth + back;
        if both > 0.0 { both * (forth + self.prior) / (both + 2.0 * self.prior) } else { 0.0 }
    }
}

/// How evidence grows with what was seen: in step with it as long as that is little, with its logarithm where it is much.
#[derive(Clone, Copy, Debug)]
struct Saturation {
    level: f64,
}

impl Saturation {
    /// $c \ln(1 + \hat n / c)$.
    fn evidence(self, seen: f64) -> f64 {
        self.level * (seen / self.level).ln_1p()
    }
}

/// Counts the pairs of all histories, twice: once to learn their direction, once to keep them. Comes with the agreement of each kind
/// of pairs, if it is known.
pub(super) fn fit(
    params: &MemoryParams,
    histories: &Histories,
    monitor: &dyn Monitor,
) -> Result<(ItemRows, [Option<f64>; KINDS]), ModelError> {
    let counter = Counter::new(params, histories);
    monitor.begin("learning the direction of pairs", histories.num_items() as u64);
    let evidence =
        counter.each_item(monitor, |row, _, evidence: &mut [Evidence; KINDS]| row.add_to(evidence))?;
    let evidence = evidence.into_iter().fold([Evidence::default(); KINDS], |sum, chunk| {
        std::array::from_fn(|kind| sum[kind].add(chunk[kind]))
    });
    let directions = evidence.map(Evidence::direction);
    let all = evidence.into_iter().fold(Evidence::default(), Evidence::add);
    let saturation = Saturation { level: params.saturation * all.typical_weight() };

    monitor.begin("keeping pairs", histories.num_items() as u64);
    let scale = |power: f64| -> Vec<f64> {
        counter.popularity.iter().map(|&count| f64::from(count.max(1)).powf(-power)).collect()
    };
    let (source_scale, target_scale) = (scale(params.source_power), scale(params.target_power));
    let chunks = counter.each_item(monitor, |row, source, chunk: &mut RowChunk| {
        let scale = |target| source_scale[source] * target_scale[target];
        row.drain_into(chunk, &directions, [params.together, 1.0, 1.0, 1.0], saturation, scale);
    })?;
    Ok((ItemRows::from_chunks(chunks), directions.map(|direction| direction.agreement)))
}

/// The most pairs there can be: what stands near each other, both ways, at most every two items.
pub(super) fn most_pairs(histories: &Histories, window: usize) -> u64 {
    let near = |&(len, count): &(usize, u64)| {
        let (len, window) = (len as u64, window.min(len) as u64);
        // The first positions have fewer before them.
        count * (window * len - window * (window + 1) / 2)
    };
    let occurrences: u64 = histories.lengths().iter().map(near).sum();
    let items = histories.num_items() as u64;
    occurrences.saturating_mul(2).min(items.saturating_mul(items))
}

/// Everything that is needed to count the pairs of an item.
struct Counter<'a> {
    histories: &'a Histories,
    popularity: Vec<u32>,
    positions: Positions,
    distance_weights: Vec<f64>,
    user_weights: Vec<f64>,
}

impl<'a> Counter<'a> {
    fn new(params: &MemoryParams, histories: &'a Histories) -> Self {
        let popularity = histories.popularity();
        let positions = Positions::of(histories, &popularity);
        let longest = histories.iter().map(<[ItemIndex]>::len).max().unwrap_or(0);
        let distances = 1..=params.window.min(longest);
        let distance_weights =
            distances.map(|distance| (distance as f64).powf(-params.distance_decay)).collect();
        Counter {
            histories,
            popularity,
            positions,
            distance_weights,
            user_weights: histories
                .iter()
                .map(|items| (items.len() as f64).powf(-params.user_power))
                .collect(),
        }
    }

    /// Counts the pairs of every item, and hands the row of each to `take`, which leaves it empty.
    fn each_item<C: Default + Send>(
        &self,
        monitor: &dyn Monitor,
        take: impl Fn(&mut Row, usize, &mut C) + Send + Sync,
    ) -> Result<Vec<C>, ModelError> {
        let num_items = self.popularity.len();
        self.positions.each_item(
            monitor,
            || Row::new(num_items),
            |row, source, places, chunk| {
                for &(user, position) in places {
                    self.add_neighbours(row, user, position as usize);
                }
                take(row, source, chunk);
            },
        )
    }

    fn add_neighbours(&self, row: &mut Row, user: UserIndex, at: usize) {
        let (items, times) = (self.histories.items_of(user), self.histories.times_of(user));
        let user_weight = self.user_weights[user.get()];
        let now = times[at];
        let mut add = |way: usize, distance: usize, item: ItemIndex, time: Timestamp, weight: f64| {
            if item != items[at] {
                let kind = kind_of(distance, time == now);
                row.add(item, 2 * kind + way, weight * user_weight);
            }
        };
        let after = items[at + 1..].iter().zip(&times[at + 1..]).zip(&self.distance_weights);
        for (distance, ((&item, &time), &weight)) in (1..).zip(after) {
            add(FORTH, distance, item, time, weight);
        }
        let before = items[..at].iter().rev().zip(times[..at].iter().rev()).zip(&self.distance_weights);
        for (distance, ((&item, &time), &weight)) in (1..).zip(before) {
            add(BACK, distance, item, time, weight);
        }
    }
}

const FORTH: usize = 0;
const BACK: usize = 1;

/// Kinds of pairs whose order may tell more or less.
pub(super) const KINDS: usize = 4;

/// What was seen of a pair: forth and back, kind by kind.
type Sums = [f64; 2 * KINDS];

const NONE: Sums = [0.0; 2 * KINDS];

/// The kind of a pair by its distance, and whether both were taken at one time.
fn kind_of(distance: usize, is_at_once: bool) -> usize {
    match distance {
        _ if is_at_once => 0,
        1 => 1,
        2..=5 => 2,
        _ => 3,
    }
}

/// The pairs of one item: for every other, what was seen forth and back, kind by kind.
struct Row {
    sums: Vec<Sums>,
    used: Vec<u32>,
    /// Sums of squared weights of what was seen forth, by kind.
    squares: [f64; KINDS],
}

impl Row {
    fn new(num_items: usize) -> Self {
        Row { sums: vec![NONE; num_items], used: Vec::new(), squares: [0.0; KINDS] }
    }

    fn add(&mut self, item: ItemIndex, place: usize, weight: f64) {
        // A weight that underflowed would be taken for an unused sum.
        if weight == 0.0 {
            return;
        }
        let sums = &mut self.sums[item.get()];
        if *sums == NONE {
            self.used.push(item.0);
        }
        sums[place] += weight;
        if place % 2 == FORTH {
            self.squares[place / 2] += weight * weight;
        }
    }

    /// Takes all pairs out, items ascending.
    fn drain(&mut self) -> impl Iterator<Item = (u32, Sums)> {
        self.used.sort_unstable();
        self.squares = [0.0; KINDS];
        let Row { sums, used, .. } = self;
        used.drain(..).map(|item| (item, std::mem::take(&mut sums[item as usize])))
    }

    fn add_to(&mut self, evidence: &mut [Evidence; KINDS]) {
        for (evidence, squares) in evidence.iter_mut().zip(self.squares) {
            evidence.squares += squares;
        }
        for (_, sums) in self.drain() {
            for (evidence, sums) in evidence.iter_mut().zip(sums.chunks_exact(2)) {
                evidence.weight += sums[FORTH];
                evidence.one_way += sums[FORTH] * sums[FORTH];
                evidence.both_ways += (sums[FORTH] + sums[BACK]).powi(2);
            }
        }
    }

    fn drain_into(
        &mut self,
        chunk: &mut RowChunk,
        directions: &[Direction; KINDS],
        kind_weights: [f64; KINDS],
        saturation: Saturation,
        scale: impl Fn(usize) -> f64,
    ) {
        for (target, sums) in self.drain() {
            let kinds = directions.iter().zip(sums.chunks_exact(2)).zip(kind_weights);
            let expected: f64 = kinds
                .map(|((direction, sums), weight)| weight * direction.expected(sums[FORTH], sums[BACK]))
                .sum();
            let weight = (saturation.evidence(expected) * scale(target as usize)) as f32;
            if weight > 0.0 {
                chunk.push(ItemIndex(target), weight);
            }
        }
        chunk.end_row();
    }
}
