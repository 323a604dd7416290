//! The trend: how much of what was ever taken of an item was taken of late.

use crate::interactions::UserIndex;
use crate::prepare::Histories;

/// The least share of an item's events that counts as recent, so that none is ruled out.
const LEAST_RECENT: f64 = 0.01;

const MICROSECONDS_A_DAY: f64 = 86_400e6;

/// The share of every item's events that are recent, an event of age $a$ counting $e^{-a / d}$.
pub(super) struct Trend {
    recent: Vec<f64>,
    counts: Vec<f64>,
}

impl Trend {
    pub(super) fn new(histories: &Histories, days: f64) -> Self {
        let newest = histories.times().iter().max().map_or(0, |time| time.0);
        let mut recent = vec![0.0; histories.num_items()];
        let mut counts = vec![0.0; histories.num_items()];
        for user in (0..histories.num_users() as u32).map(UserIndex) {
            for (item, time) in histories.items_of(user).iter().zip(histories.times_of(user)) {
                let age = (newest as f64 - time.0 as f64) / MICROSECONDS_A_DAY;
                recent[item.get()] += (-age / days).exp();
                counts[item.get()] += 1.0;
            }
        }
        Trend { recent, counts }
    }

    /// $\tau$: the share to a power, with a mean of one over the log; 0 for an item that nobody took.
    pub(super) fn weights(&self, power: f64) -> Vec<f64> {
        let weight = |(recent, count): (&f64, &f64)| {
            if *count > 0.0 { (recent / count + LEAST_RECENT).powf(power) } else { 0.0 }
        };
        let mut weights: Vec<f64> = self.recent.iter().zip(&self.counts).map(weight).collect();
        let total: f64 = self.counts.iter().sum();
        let mean =
            weights.iter().zip(&self.counts).map(|(weight, count)| weight * count).sum::<f64>() / total;
        for weight in &mut weights {
            *weight /= mean;
        }
        weights
    }
}
