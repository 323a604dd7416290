//! What users of a log of a given shape take, and when.

use std::ops::Range;

use hashbrown::HashSet;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{SPAN, ShapeOptions};
use crate::generate::draw::{DAY, cumulated, log_normal, stream, weighted};

/// Items of a cluster.
const CLUSTER: usize = 80;

/// How many items the last one leads to.
const AHEAD: usize = 8;

/// Draws of an item before the next free one is taken instead.
const ATTEMPTS: usize = 12;

/// Taken slots for which room is kept from one user to the next.
const KEPT_ROOM: usize = 1 << 10;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Seconds since the log began.
    pub(super) seconds: u32,
    pub(super) user: u32,
    pub(super) item: u32,
}

/// The items as all users see them. Slots are items in the order of clusters and rings.
pub(super) struct Market {
    /// The item in each slot.
    items: Vec<u32>,
    /// Running sums of the popularities of the items in all slots.
    cumulative: Vec<f64>,
    /// From the slot that is assigned to one row to the one assigned next: coprime to the slots, so that all of them have their turn.
    step: usize,
}

impl Market {
    pub(super) fn new(options: &ShapeOptions) -> Market {
        let mut rng = stream(options.seed, u64::MAX - 1);
        let mut items: Vec<u32> = (0..options.items as u32).collect();
        items.shuffle(&mut rng);
        // The offset keeps the very first items from drowning all others.
        let mut cumulative: Vec<f64> =
            (0..options.items).map(|rank| (rank as f64 + 10.0).powf(-0.9)).collect();
        cumulative.shuffle(&mut rng);
        let mut sum = 0.0;
        for weight in &mut cumulative {
            sum += *weight;
            *weight = sum;
        }
        let mut step = (options.items as f64 * 0.618) as usize + 1;
        while greatest_common_divisor(step, options.items) != 1 {
            step += 1;
        }
        Market { items, cumulative, step }
    }

    /// The rows of users one after the other, each history oldest first. `first_row` rows belong to the users before them.
    pub(super) fn play(
        &self,
        options: &ShapeOptions,
        first_user: usize,
        first_row: usize,
        lengths: &[usize],
    ) -> Vec<Row> {
        let mut rows = Vec::with_capacity(lengths.iter().sum());
        let mut taken = HashSet::new();
        for (at, &length) in lengths.iter().enumerate() {
            let (user, before) = (first_user + at, rows.len());
            let row = first_row + before;
            let assigned = self.assigned(options, row)..self.assigned(options, row + length);
            let mut rng = stream(options.seed, user as u64);
            self.take(&mut rng, user as u32, length, assigned, &mut taken, &mut rows);
            fill_times(&mut rng, &mut rows[before..]);
            taken.clear();
            taken.shrink_to(KEPT_ROOM);
        }
        rows
    }

    /// How many slots are assigned to the rows before this one: all of them to all rows.
    fn assigned(&self, options: &ShapeOptions, row: usize) -> usize {
        (row as u128 * self.items.len() as u128 / options.rows as u128) as usize
    }

    /// What one user takes, the slots assigned to it among the rest.
    fn take(
        &self,
        rng: &mut ChaCha8Rng,
        user: u32,
        length: usize,
        assigned: Range<usize>,
        taken: &mut HashSet<u32>,
        rows: &mut Vec<Row>,
    ) {
        let slots = self.items.len();
        let assigned = assigned.map(|at| (at as u128 * self.step as u128 % slots as u128) as usize);
        taken.extend(assigned.clone().map(|slot| slot as u32));
        // The history in as many parts as slots are assigned to it: each has one, at a place of its own.
        let parts = assigned.len();
        let place = move |rng: &mut ChaCha8Rng, part: usize| {
            rng.random_range(part * length / parts..(part + 1) * length / parts)
        };
        let mut assigned = assigned.enumerate();
        let mut due = assigned.next().map(|(part, slot)| (place(rng, part), slot));

        // Liked clusters are those of three popular items; the first is liked most.
        let tastes = [(); 3].map(|()| self.cluster_of(cumulated(rng, &self.cumulative, 0..slots)));
        let mut last: Option<usize> = None;
        for at in 0..length {
            let slot = match due {
                Some((place, slot)) if place == at => slot,
                _ => self.free(rng, last, &tastes, taken),
            };
            if due.is_some_and(|(place, _)| place == at) {
                due = assigned.next().map(|(part, slot)| (place(rng, part), slot));
            }
            taken.insert(slot as u32);
            last = Some(slot);
            rows.push(Row { seconds: 0, user, item: self.items[slot] });
        }
    }

    /// A slot to go to from the last one that is not taken yet.
    fn free(
        &self,
        rng: &mut ChaCha8Rng,
        last: Option<usize>,
        tastes: &[Range<usize>; 3],
        taken: &HashSet<u32>,
    ) -> usize {
        let is_taken = |slot: usize| taken.contains(&(slot as u32));
        let mut slot = self.next(rng, last, tastes);
        for _ in 1..ATTEMPTS {
            if !is_taken(slot) {
                return slot;
            }
            slot = self.next(rng, last, tastes);
        }
        // Half of the catalogue is free, so this ends.
        while is_taken(slot) {
            slot = (slot + 1) % self.items.len();
        }
        slot
    }

    /// A slot to go to from the last one, which may be taken already.
    fn next(&self, rng: &mut ChaCha8Rng, last: Option<usize>, tastes: &[Range<usize>; 3]) -> usize {
        let dice: f64 = rng.random();
        if let (Some(last), true) = (last, dice < 0.6) {
            let ring = self.cluster_of(last);
            let ahead = (1..=AHEAD).map(|step| {
                let slot = ring.start + (last - ring.start + step) % ring.len();
                (slot, self.weight(slot))
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

    /// The popularity of the item in a slot.
    fn weight(&self, slot: usize) -> f64 {
        let before = if slot == 0 { 0.0 } else { self.cumulative[slot - 1] };
        self.cumulative[slot] - before
    }

    /// The slots of the cluster that `slot` belongs to.
    fn cluster_of(&self, slot: usize) -> Range<usize> {
        let first = slot / CLUSTER * CLUSTER;
        first..(first + CLUSTER).min(self.items.len())
    }
}

/// Times of one user's rows: sessions of seconds and minutes with days or weeks between them, each row at least
/// one second after the one before, all within [`SPAN`].
fn fill_times(rng: &mut ChaCha8Rng, history: &mut [Row]) {
    let joined = (0.95 * rng.random::<f64>() * SPAN as f64) as i64;
    let mut since_joined = 0.0;
    let mut active = 0.0;
    let pauses: Vec<f64> = history
        .iter()
        .map(|_| {
            active = since_joined;
            since_joined += if rng.random::<f64>() < 0.6 {
                log_normal(rng, 120.0, 1.0)
            } else {
                log_normal(rng, 9.0, 1.2) * DAY as f64
            };
            active
        })
        .collect();
    // A row's number is added to its time: two rows a fraction of a second apart stay apart.
    let room = (SPAN - history.len() as i64 - 1).max(0);
    let first = joined.min(room * 19 / 20);
    let scale = ((room - first) as f64 / active.max(1.0)).min(1.0);
    for (at, (row, pause)) in history.iter_mut().zip(pauses).enumerate() {
        row.seconds = (first + (scale * pause) as i64 + at as i64) as u32;
    }
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
