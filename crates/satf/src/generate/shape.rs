//! Logs of a given shape, for benchmarks: as many users, items and rows as asked for.
//!
//! Items fall into clusters and stand in a ring within each; their popularity follows a power law that has
//! nothing to do with their ids. A user likes a few clusters. The next item is mostly one of the [`AHEAD`] that
//! follow the last one in its ring, the popular ones first, else one from a liked cluster, else one from the whole
//! catalogue. So order, taste and popularity all carry information, and every draw costs at most a binary search:
//! the time is linear in the rows but for their final sort, the memory is the rows and a few arrays over users
//! and items.

use std::ops::Range;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::GenerateError;
use super::draw::{DAY, cumulated, log_normal, stream, weighted};
use crate::fault::Fault;
use crate::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

/// The size of a generated log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShapeOptions {
    /// Number of users, at least 1. Each has at least one row, five where the rows suffice. Default 10,000.
    pub users: usize,
    /// Number of items, at least 1. Each has at least one row. Default 2000.
    pub items: usize,
    /// Number of rows: no fewer than users or items, no more than a quarter of the pairs of a user and an item
    /// (or one per user), at most 500,000,000. Default 120,000.
    pub rows: usize,
    /// The same seed gives the same log. Default 1.
    pub seed: u64,
}

impl Default for ShapeOptions {
    fn default() -> Self {
        ShapeOptions { users: 10_000, items: 2_000, rows: 120_000, seed: 1 }
    }
}

impl ShapeOptions {
    /// `Ok` if a log of this shape can be made.
    pub fn check(&self) -> Result<(), GenerateError> {
        let mut faults = Vec::new();
        if self.users == 0 {
            faults.push(Fault::new("users", self.users, "at least 1"));
        }
        if self.items == 0 {
            faults.push(Fault::new("items", self.items, "at least 1"));
        }
        let fewest = self.users.max(self.items).max(1);
        let most = (self.users.saturating_mul(self.items) / 4).max(self.users).min(MAX_ROWS);
        if fewest > most {
            let expected =
                format!("a shape that some number of rows fits: here at least {fewest}, at most {most}");
            faults.push(Fault::new("rows", self.rows, expected));
        } else if !(fewest..=most).contains(&self.rows) {
            faults.push(Fault::new(
                "rows",
                self.rows,
                format!("{fewest} to {most} for so many users and items"),
            ));
        }
        GenerateError::from_faults(faults)
    }
}

/// Eight gigabytes of rows.
const MAX_ROWS: usize = 500_000_000;

/// 2023-01-01 00:00:00 UTC, in seconds.
const OPENING: i64 = 1_672_531_200;

/// Two years, in seconds.
const SPAN: i64 = 730 * DAY;

/// Items of a cluster.
const CLUSTER: usize = 80;

/// How many items the last one leads to.
const AHEAD: usize = 8;

/// Users played as one piece of work: fixed, so that the work is split the same way on any number of threads.
const USERS_AT_ONCE: usize = 1024;

/// Draws of an item before the next free one is taken instead.
const ATTEMPTS: usize = 12;

/// Makes a log of the shape asked for: integer ids, rows in time order over two years, no pair of a user and an
/// item twice.
pub fn like(options: &ShapeOptions) -> Result<Interactions, GenerateError> {
    options.check()?;
    let market = Market::new(options);
    let lengths = history_lengths(options);
    let nothing = Interaction { user: UserIndex(0), item: ItemIndex(0), time: Timestamp(0) };
    let mut rows = vec![nothing; options.rows];

    let mut pieces = Vec::with_capacity(options.users.div_ceil(USERS_AT_ONCE));
    let mut rest = &mut rows[..];
    for (piece, lengths) in lengths.chunks(USERS_AT_ONCE).enumerate() {
        let (rows, later) = rest.split_at_mut(lengths.iter().sum());
        pieces.push((piece * USERS_AT_ONCE, lengths, rows));
        rest = later;
    }
    // `last_taker[slot]` is one more than the last user who took the item; users never share a number, so what
    // another piece left there does no harm.
    pieces.into_par_iter().for_each_init(
        || vec![0u32; options.items],
        |last_taker, (first, lengths, mut rows)| {
            for (at, &length) in lengths.iter().enumerate() {
                let (history, later) = rows.split_at_mut(length);
                market.play(options.seed, (first + at) as u32, history, last_taker);
                rows = later;
            }
        },
    );
    place_missing_items(options, &mut rows);
    // No user has two rows at one time: the key has no ties, so an unstable sort has one outcome.
    rows.par_sort_unstable_by_key(|row| (row.time, row.user));

    let ids = |len: usize| Ids::Integers((1..=len as i64).collect());
    Ok(Interactions::from_ranked(ids(options.users), ids(options.items), rows, Clock::Calendar))
}

/// How many rows each user has: skewed, and exactly `rows` in sum.
fn history_lengths(options: &ShapeOptions) -> Vec<usize> {
    let mut rng = stream(options.seed, u64::MAX);
    let shortest = (options.rows / options.users).min(5).min(longest(options));
    let shares: Vec<f64> = (0..options.users).map(|_| log_normal(&mut rng, 1.0, 1.0)).collect();
    let spare = options.rows - shortest * options.users;
    let per_share = spare as f64 / shares.iter().sum::<f64>();
    // Rounding the running total, not each share, makes the parts add up to the whole.
    let (mut total, mut given) = (0.0, 0);
    let mut lengths = Vec::with_capacity(options.users);
    for share in shares {
        total += share * per_share;
        let part = (total.round() as usize).min(spare) - given;
        given += part;
        lengths.push((shortest + part).min(longest(options)));
    }
    let mut left = options.rows - lengths.iter().sum::<usize>();
    // What the longest histories could not take goes to the others, evenly.
    while left > 0 {
        let open = lengths.iter().filter(|&&length| length < longest(options)).count();
        let each = left.div_ceil(open);
        for length in lengths.iter_mut().filter(|length| **length < longest(options)) {
            let more = each.min(longest(options) - *length).min(left);
            *length += more;
            left -= more;
        }
    }
    lengths
}

/// The longest history allowed: with half of the catalogue free, a draw seldom meets an item already taken.
fn longest(options: &ShapeOptions) -> usize {
    (options.items / 2).max(1)
}

/// Gives every item that nobody took the row of one that has others.
fn place_missing_items(options: &ShapeOptions, rows: &mut [Interaction]) {
    let mut counts = vec![0u32; options.items];
    for row in rows.iter() {
        counts[row.item.get()] += 1;
    }
    let missing: Vec<usize> = (0..options.items).filter(|&item| counts[item] == 0).collect();
    // A step coprime to the length visits every row once, far from the one before.
    let mut step = (rows.len() as f64 * 0.618) as usize + 1;
    while greatest_common_divisor(step, rows.len()) != 1 {
        step += 1;
    }
    let mut at = 0;
    for item in missing {
        while counts[rows[at].item.get()] < 2 {
            at = (at + step) % rows.len();
        }
        counts[rows[at].item.get()] -= 1;
        counts[item] += 1;
        rows[at].item = ItemIndex(item as u32);
    }
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The items as all users see them. Slots are items in the order of clusters and rings.
struct Market {
    /// The item in each slot.
    items: Vec<u32>,
    /// The popularity of the item in each slot.
    weights: Vec<f64>,
    /// Running sums of `weights`.
    cumulative: Vec<f64>,
}

impl Market {
    fn new(options: &ShapeOptions) -> Market {
        let mut rng = stream(options.seed, u64::MAX - 1);
        let mut items: Vec<u32> = (0..options.items as u32).collect();
        items.shuffle(&mut rng);
        // The offset keeps the very first items from drowning all others.
        let mut weights: Vec<f64> = (0..options.items).map(|rank| (rank as f64 + 10.0).powf(-0.9)).collect();
        weights.shuffle(&mut rng);
        let cumulative = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        Market { items, weights, cumulative }
    }

    /// The slots of the cluster that `slot` belongs to.
    fn cluster_of(&self, slot: usize) -> Range<usize> {
        let first = slot / CLUSTER * CLUSTER;
        first..(first + CLUSTER).min(self.items.len())
    }

    /// Fills in one user's rows, oldest first.
    fn play(&self, seed: u64, user: u32, history: &mut [Interaction], last_taker: &mut [u32]) {
        let mut rng = stream(seed, u64::from(user));
        let all = 0..self.items.len();
        // Liked clusters are those of three popular items; the first is liked most.
        let tastes = [(); 3].map(|()| self.cluster_of(cumulated(&mut rng, &self.cumulative, all.clone())));
        let mut last: Option<usize> = None;
        for row in history.iter_mut() {
            let mut slot = self.next(&mut rng, last, &tastes);
            for _ in 1..ATTEMPTS {
                if last_taker[slot] != user + 1 {
                    break;
                }
                slot = self.next(&mut rng, last, &tastes);
            }
            // Half of the catalogue is free, so this ends.
            while last_taker[slot] == user + 1 {
                slot = (slot + 1) % self.items.len();
            }
            last_taker[slot] = user + 1;
            last = Some(slot);
            row.user = UserIndex(user);
            row.item = ItemIndex(self.items[slot]);
        }
        fill_times(&mut rng, history);
    }

    /// A slot to go to from the last one, which may be taken already.
    fn next(&self, rng: &mut ChaCha8Rng, last: Option<usize>, tastes: &[Range<usize>; 3]) -> usize {
        let dice: f64 = rng.random();
        if let (Some(last), true) = (last, dice < 0.6) {
            let ring = self.cluster_of(last);
            let ahead = (1..=AHEAD).map(|step| {
                let slot = ring.start + (last - ring.start + step) % ring.len();
                (slot, self.weights[slot])
            });
            return weighted(rng, ahead).unwrap_or(last);
        }
        let range = if dice < 0.85 {
            let taste = [0, 0, 0, 1, 1, 2][rng.random_range(0..6)];
            tastes[taste].clone()
        } else {
            0..self.items.len()
        };
        cumulated(rng, &self.cumulative, range)
    }
}

/// Times of one user's rows: sessions of seconds and minutes with days or weeks between them, each row at least
/// one second after the one before, all within [`SPAN`].
fn fill_times(rng: &mut ChaCha8Rng, history: &mut [Interaction]) {
    let joined = (0.95 * rng.random::<f64>() * SPAN as f64) as i64;
    let mut since_joined = 0.0;
    for row in history.iter_mut() {
        row.time = Timestamp(since_joined as i64);
        since_joined += if rng.random::<f64>() < 0.6 {
            log_normal(rng, 120.0, 1.0)
        } else {
            log_normal(rng, 9.0, 1.2) * DAY as f64
        };
    }
    let Some(active) = history.last().map(|row| row.time.0) else { return };
    // A row's number is added to its time: two rows a fraction of a second apart stay apart.
    let room = (SPAN - history.len() as i64 - 1).max(0);
    let first = joined.min(room * 19 / 20);
    let scale = ((room - first) as f64 / active.max(1) as f64).min(1.0);
    for (at, row) in history.iter_mut().enumerate() {
        let seconds = (scale * row.time.0 as f64) as i64;
        row.time = Timestamp::from_seconds(OPENING + first + seconds + at as i64);
    }
}

#[cfg(test)]
mod tests;
