//! The trend: how much of what was ever taken of an item was taken of late.
//!
//! With $n_{bd}$ events of item $b$ on day $d$, of which $D$ is the newest of the log, the share of recent ones is
//! $\sum_d n_{bd} e^{-(D - d) / \text{days}} / \sum_d n_{bd}$. The exponentials are integers of a fixed unit, so the sum is the same in every
//! order of events.

use crate::interactions::{Timestamp, UserIndex};
use crate::prepare::Histories;

/// The least share of an item's events that counts as recent, so that none is ruled out.
const LEAST_RECENT: f64 = 0.01;

const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// Ages in days that are looked up: a century.
const TABLE: i64 = 36_525;

/// The integer that stands for an event of the newest day.
const UNIT: f64 = (1u64 << 32) as f64;

/// The share of every item's events that are recent.
pub(super) struct Trend {
    recent: Vec<u64>,
    counts: Vec<u32>,
}

/// The day of an event.
fn day(time: Timestamp) -> i64 {
    time.0.div_euclid(MICROSECONDS_A_DAY)
}

impl Trend {
    pub(super) fn new(histories: &Histories, days: f64) -> Self {
        let newest = histories.times().iter().max().map_or(0, |&time| day(time));
        let by_exponential = |age: i64| (UNIT * (-(age as f64) / days).exp()).round() as u64;
        let by_age: Vec<u64> = (0..TABLE).map(by_exponential).collect();
        let mut recent = vec![0; histories.num_items()];
        let mut counts = vec![0; histories.num_items()];
        for user in (0..histories.num_users() as u32).map(UserIndex) {
            for (item, &time) in histories.items_of(user).iter().zip(histories.times_of(user)) {
                let age = newest.saturating_sub(day(time));
                recent[item.get()] +=
                    by_age.get(age as usize).copied().unwrap_or_else(|| by_exponential(age));
                counts[item.get()] += 1;
            }
        }
        Trend { recent, counts }
    }

    /// $\tau$: the share to a power, with a mean of one over the log; 0 for an item that nobody took.
    pub(super) fn weights(&self, power: f64) -> Vec<f64> {
        let weight = |(&recent, &count): (&u64, &u32)| match count {
            0 => 0.0,
            _ => (recent as f64 / UNIT / f64::from(count) + LEAST_RECENT).powf(power),
        };
        let mut weights: Vec<f64> = self.recent.iter().zip(&self.counts).map(weight).collect();
        let total: f64 = self.counts.iter().map(|&count| f64::from(count)).sum();
        let sum: f64 =
            weights.iter().zip(&self.counts).map(|(weight, &count)| weight * f64::from(count)).sum();
        for weight in &mut weights {
            *weight /= sum / total;
        }
        weights
    }
}
