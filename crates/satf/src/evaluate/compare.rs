//! Are two models really different? Paired differences over the same events.
//!
//! Events of one user are alike, so users, not events, are drawn and flipped by default: with `d_e` the
//! difference of an event and `D_u` the sum of it over user `u`'s events,
//!
//! * the bootstrap draws users with replacement and takes the 2.5 and 97.5 % quantiles of
//!   `sum D_u / sum n_u` over the draws;
//! * the permutation test flips the sign of each `D_u` at random, as if the two models' names had been swapped
//!   for that user; the p-value is the share of draws, the data among them, whose mean difference is at least
//!   as large as the one seen.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;

use crate::monitor::{Cancelled, Monitor, check_cancelled};

/// How a comparison is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareOptions {
    /// Number of draws of the bootstrap and of the permutation test, each.
    pub draws: usize,
    /// Seed of both.
    pub seed: u64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        CompareOptions { draws: 10_000, seed: 0 }
    }
}

/// A paired difference, the second minus the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean of the first.
    pub first: f64,
    /// Mean of the second.
    pub second: f64,
    /// `second - first`.
    pub difference: f64,
    /// 95 % bootstrap interval of the difference; none if all events are of one unit, which tells nothing of others.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of the permutation test; 1 if there is but one unit.
    pub p_value: f64,
}

/// Draws done by one task. Each task has its own random stream, so threads do not matter.
const DRAWS_PER_TASK: usize = 64;

/// Compares two equally long lists of values, event by event. `groups[e]` numbers the unit event `e` belongs
/// to, from 0 without gaps. The monitor may stop it.
///
/// # Panics
/// If the three slices are not equally long or are empty, or if `draws` is 0.
pub fn compare(
    first: &[f64],
    second: &[f64],
    groups: &[usize],
    options: &CompareOptions,
    monitor: &dyn Monitor,
) -> Result<Difference, Cancelled> {
    assert!(first.len() == second.len() && first.len() == groups.len() && !first.is_empty());
    assert!(options.draws > 0);
    let num_groups = groups.iter().max().map_or(0, |last| last + 1);
    let mut units = vec![(0f64, 0f64); num_groups];
    for ((first, second), &group) in first.iter().zip(second).zip(groups) {
        units[group].0 += second - first;
        units[group].1 += 1.0;
    }
    let events = first.len() as f64;
    let observed: f64 = units.iter().map(|unit| unit.0).sum::<f64>() / events;

    let mut drawn = draws(options, 0, monitor, |random| {
        let (mut sum, mut count) = (0.0, 0.0);
        for _ in 0..num_groups {
            let at = (u64::from(random.next_u32()) * num_groups as u64) >> 32;
            let (difference, events) = units[at as usize];
            sum += difference;
            count += events;
        }
        sum / count
    })?;
    drawn.sort_unstable_by(f64::total_cmp);
    let quantile = |share: f64| drawn[((drawn.len() - 1) as f64 * share).round() as usize];

    // Sums in another order differ in their last bits: a draw as large as the data must count as such.
    let threshold = observed.abs() * (1.0 - 1e-12);
    let flipped = draws(options, 1, monitor, |random| {
        let mut sum = 0.0;
        for chunk in units.chunks(32) {
            let mut signs = random.next_u32();
            for unit in chunk {
                sum += if signs & 1 == 0 { unit.0 } else { -unit.0 };
                signs >>= 1;
            }
        }
        sum / events
    })?;
    let as_large = flipped.iter().filter(|mean| mean.abs() >= threshold).count();

    Ok(Difference {
        first: first.iter().sum::<f64>() / events,
        second: second.iter().sum::<f64>() / events,
        difference: observed,
        interval: (num_groups > 1).then(|| [quantile(0.025), quantile(0.975)]),
        p_value: (as_large + 1) as f64 / (flipped.len() + 1) as f64,
    })
}

fn draws(
    options: &CompareOptions,
    purpose: u64,
    monitor: &dyn Monitor,
    draw: impl Fn(&mut ChaCha8Rng) -> f64 + Sync,
) -> Result<Vec<f64>, Cancelled> {
    let mut values = vec![0.0; options.draws];
    values.par_chunks_mut(DRAWS_PER_TASK).enumerate().try_for_each(|(task, values)| {
        check_cancelled(monitor)?;
        let mut random = ChaCha8Rng::seed_from_u64(options.seed);
        random.set_stream(2 * task as u64 + purpose);
        values.fill_with(|| draw(&mut random));
        Ok(())
    })?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(first: &[f64], second: &[f64], groups: &[usize], options: &CompareOptions) -> Difference {
        super::compare(first, second, groups, options, &()).unwrap()
    }

    fn each(len: usize) -> Vec<usize> {
        (0..len).collect()
    }

    #[test]
    fn a_model_does_not_differ_from_itself() {
        let values: Vec<f64> = (0..50).map(|at| f64::from(at % 3)).collect();
        let outcome = compare(&values, &values, &each(50), &CompareOptions::default());
        assert_eq!((outcome.difference, outcome.interval), (0.0, Some([0.0, 0.0])));
        assert!((outcome.p_value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_constant_gain_is_certain() {
        let first: Vec<f64> = (0..200).map(|at| f64::from(at % 5) / 5.0).collect();
        let second: Vec<f64> = first.iter().map(|value| value + 0.1).collect();
        let outcome = compare(&first, &second, &each(200), &CompareOptions::default());
        assert!((outcome.difference - 0.1).abs() < 1e-12);
        assert!(outcome.interval.unwrap().iter().all(|end| (end - 0.1).abs() < 1e-9));
        assert!(outcome.p_value < 2e-4);
    }

    #[test]
    fn the_permutation_test_is_exact_on_three_events() {
        // Of the 8 sign patterns of (1, 1, 1), two have a mean as large: p = 1/4.
        let outcome = compare(&[0.0; 3], &[1.0; 3], &each(3), &CompareOptions { draws: 40_000, seed: 3 });
        assert!((outcome.p_value - 0.25).abs() < 0.01, "{}", outcome.p_value);
    }

    #[test]
    fn grouped_events_count_as_one_observation() {
        // The same gain, seen in 100 events of a hundred users or in 100 events of two: only the first is sure.
        let first = vec![0.0; 100];
        let second: Vec<f64> = (0..100).map(|at| if at < 90 { 1.0 } else { -1.0 }).collect();
        let options = CompareOptions::default();
        let many = compare(&first, &second, &each(100), &options);
        let two: Vec<usize> = (0..100).map(|at| usize::from(at >= 50)).collect();
        let few = compare(&first, &second, &two, &options);
        assert!(many.p_value < 0.001 && few.p_value > 0.4, "{} {}", many.p_value, few.p_value);
        assert!((many.difference - few.difference).abs() < 1e-12);
    }

    #[test]
    fn one_unit_has_no_interval() {
        let (first, second) = ([0.0, 0.5, 0.25], [1.0, 0.5, 1.0]);
        let outcome = compare(&first, &second, &[0; 3], &CompareOptions::default());
        assert_eq!((outcome.interval, outcome.p_value), (None, 1.0));
        assert!(compare(&first, &second, &[0, 1, 1], &CompareOptions::default()).interval.is_some());
    }

    #[test]
    fn threads_do_not_change_a_digit() {
        let first: Vec<f64> = (0..500).map(|at| f64::from(at * 7 % 11)).collect();
        let second: Vec<f64> = (0..500).map(|at| f64::from(at * 5 % 13)).collect();
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| compare(&first, &second, &each(500), &CompareOptions { draws: 500, seed: 9 }))
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn a_comparison_stops_when_it_is_asked_to() {
        struct Tired;
        impl Monitor for Tired {
            fn is_cancelled(&self) -> bool {
                true
            }
        }
        let options = CompareOptions { draws: 10_000_000, seed: 0 };
        assert_eq!(super::compare(&[0.0; 3], &[1.0; 3], &each(3), &options, &Tired), Err(Cancelled));
    }
}
