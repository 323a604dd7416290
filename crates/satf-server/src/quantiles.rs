//! Many times, and how long most of them were.

use serde::Serialize;

/// How long requests took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half took at most so long.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// Ninety-nine of a hundred.
    pub p99: f64,
    /// All but one of a thousand.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Bits that are kept of a time: its neighbours differ by less than a thousandth.
const BITS: u32 = 10;

/// Times in microseconds, counted by their leading bits: 1,024 counts for each power of two.
#[derive(Debug, Default)]
pub(crate) struct Times {
    counts: Vec<u64>,
    total: u64,
    longest: u64,
}

impl Times {
    pub(crate) fn record(&mut self, micros: u64) {
        let place = place(micros);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.total += 1;
        self.longest = self.longest.max(micros);
    }

    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// The time that this share of all does not exceed, in microseconds; what is left off of it is never in its favour.
    fn at(&self, share: f64) -> u64 {
        let wanted = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (place, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= wanted {
                return largest(place).min(self.longest);
            }
        }
        self.longest
    }

    pub(crate) fn quantiles(&self) -> Option<Quantiles> {
        let at = |share| self.at(share) as f64 / 1e3;
        (self.total > 0).then(|| Quantiles {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.longest as f64 / 1e3,
        })
    }
}

/// Where a time is counted.
fn place(micros: u64) -> usize {
    let shift = (u64::BITS - micros.leading_zeros()).saturating_sub(BITS + 1);
    (u64::from(shift << BITS) + (micros >> shift)) as usize
}

/// The largest time that is counted there.
fn largest(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place >> BITS).saturating_sub(1);
    let leading = place - (shift << BITS);
    ((leading + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_where_no_other_is_far_from_it() {
        let mut last = 0;
        for micros in (0..5_000).chain((5_000..100_000_000).step_by(9_973)) {
            let at = place(micros);
            assert!(at >= last, "{micros}");
            last = at;
            let most = largest(at);
            assert_eq!(place(most), at);
            assert_ne!(place(most + 1), at);
            assert!(most >= micros && (most - micros) as f64 <= micros as f64 / 1_000.0, "{micros}: {most}");
        }
    }

    #[test]
    fn quantiles_are_those_of_sorted_times() {
        let mut times = Times::default();
        assert_eq!(times.quantiles(), None);
        let mut sorted: Vec<u64> = (1..=10_000).map(|at| at * at / 7 + 3).collect();
        for micros in &sorted {
            times.record(*micros);
        }
        sorted.sort_unstable();
        let found = times.quantiles().unwrap();
        for (share, found) in [(0.5, found.p50), (0.9, found.p90), (0.99, found.p99), (0.999, found.p999)] {
            let exact = *sorted.get((share * 10_000.0) as usize - 1).unwrap() as f64 / 1e3;
            assert!(found >= exact && found <= exact * 1.001, "{share}: {found}, exactly {exact}");
        }
        assert_eq!((found.max, times.len()), (*sorted.last().unwrap() as f64 / 1e3, 10_000));
    }
}
