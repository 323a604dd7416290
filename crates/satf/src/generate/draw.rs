//! Random draws both generators need.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// The random stream number `stream` of `seed`: streams are independent of each other and of who reads them.
pub(super) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// A log-normal variable: half of its draws lie below `median`; `spread` is the deviation of its logarithm.
pub(super) fn log_normal(rng: &mut ChaCha8Rng, median: f64, spread: f64) -> f64 {
    // 1 - u lies in (0, 1]: its logarithm is finite.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    let angle = std::f64::consts::TAU * rng.random::<f64>();
    median * (spread * radius * angle.cos()).exp()
}

/// One of `candidates` (value and weight), with probability proportional to its weight; `None` if all weights
/// are zero or there is no candidate.
pub(super) fn weighted<T>(
    rng: &mut ChaCha8Rng,
    candidates: impl Iterator<Item = (T, f64)> + Clone,
) -> Option<T> {
    let total: f64 = candidates.clone().map(|(_, weight)| weight).sum();
    let mut left = rng.random::<f64>() * total;
    let mut chosen = None;
    for (value, weight) in candidates {
        if weight > 0.0 {
            // The last candidate stands if rounding leaves a rest after all weights are taken off.
            chosen = Some(value);
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
    }
    chosen
}

/// The position in `cumulative` (ascending sums of weights) of a draw from its entries in `range`.
///
/// # Panics
/// If `range` is empty or ends beyond `cumulative`.
pub(super) fn cumulated(rng: &mut ChaCha8Rng, cumulative: &[f64], range: std::ops::Range<usize>) -> usize {
    let before = if range.start == 0 { 0.0 } else { cumulative[range.start - 1] };
    let target = before + rng.random::<f64>() * (cumulative[range.end - 1] - before);
    let at = cumulative[range.clone()].partition_point(|&sum| sum <= target);
    (range.start + at).min(range.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [1.0, 0.0, 3.0, 6.0];
        let cumulative = [1.0, 1.0, 4.0, 10.0];
        let mut rng = stream(7, 0);
        let mut counts = [[0u32; 4]; 2];
        for _ in 0..20_000 {
            let at = weighted(&mut rng, weights.iter().copied().enumerate()).unwrap();
            counts[0][at] += 1;
            counts[1][cumulated(&mut rng, &cumulative, 0..4)] += 1;
        }
        for counts in counts {
            assert_eq!(counts[1], 0);
            for (count, weight) in counts.iter().zip(weights) {
                assert!((f64::from(*count) / 2_000.0 - weight).abs() < 0.2, "{counts:?}");
            }
        }
    }

    #[test]
    fn a_draw_from_a_range_stays_in_it() {
        let cumulative = [1.0, 3.0, 4.0, 10.0];
        let mut rng = stream(1, 1);
        assert!((0..1_000).all(|_| (1..3).contains(&cumulated(&mut rng, &cumulative, 1..3))));
    }

    #[test]
    fn nothing_to_draw_from_gives_nothing() {
        let mut rng = stream(1, 2);
        assert_eq!(weighted(&mut rng, [(1, 0.0)].into_iter()), None);
        assert_eq!(weighted(&mut rng, std::iter::empty::<(u8, f64)>()), None);
    }

    #[test]
    fn half_of_the_log_normal_draws_lie_below_the_median() {
        let mut rng = stream(3, 3);
        let below = (0..20_000).filter(|_| log_normal(&mut rng, 5.0, 0.9) < 5.0).count();
        assert!((9_700..10_300).contains(&below), "{below}");
    }
}
