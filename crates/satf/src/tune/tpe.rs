//! The tree-structured Parzen estimator (Bergstra, Bardenet, Bengio and Kégl, 2011), on a finite grid.
//!
//! The observations are split into the good ones, the best share $\gamma$, and the others. Each group gives a density over
//! the points, a product over the axes of mixtures of kernels around the values observed, with a uniform one for what was
//! not seen yet:
//!
//! $$ l(x) = \prod_a \frac{1}{m + 1} \Bigl( \frac{1}{n_a} + \sum_{i \in \text{good}} k_a(x_a \mid x_{i,a}) \Bigr),
//!    \qquad g(x) \text{ alike from the others} . $$
//!
//! Expected improvement grows with $l / g$. Of points drawn from $l$, the one with the largest ratio is proposed.
//!
//! On an axis of numbers $k$ is a Gaussian over places in ascending order, normalised over the axis; elsewhere it is most
//! of the mass on the value itself and the rest spread evenly. The grid being finite, $l$ is drawn from exactly: the
//! points are weighted, none can come twice, and constraints need no rejection.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::sampler::{Axis, Candidates, Observation};

/// Share of the observations that counts as good, $\gamma$.
const GOOD_SHARE: f64 = 0.2;
/// Points drawn from $l$ for each proposal.
const DRAWN: usize = 24;
/// Mass of a kernel on its own value where values have no order.
const OWN_MASS: f64 = 0.8;
/// Narrowest Gaussian kernel, in places.
const NARROWEST: f64 = 0.5;

/// $\log l$ and $\log g$, by axis and value.
pub(super) struct Densities {
    good: Vec<Vec<f64>>,
    other: Vec<Vec<f64>>,
}

impl Densities {
    /// The densities of what was seen. Failed trials are never good.
    pub(super) fn of(candidates: &Candidates, seen: &[Observation]) -> Self {
        let mut ranked: Vec<(f64, usize)> =
            seen.iter().map(|seen| (seen.value.unwrap_or(f64::NEG_INFINITY), seen.point)).collect();
        // Stable: of equal ones the earlier trial is the better.
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let scored = seen.iter().filter(|seen| seen.value.is_some()).count();
        let good = ((GOOD_SHARE * seen.len() as f64).ceil() as usize).min(scored);
        let points = |group: &[(f64, usize)]| -> Vec<&[usize]> {
            group.iter().map(|(_, point)| candidates.points[*point].as_slice()).collect()
        };
        Densities {
            good: log_densities(&candidates.axes, &points(&ranked[..good])),
            other: log_densities(&candidates.axes, &points(&ranked[good..])),
        }
    }

    /// A point that is not taken.
    pub(super) fn propose(
        &self,
        candidates: &Candidates,
        taken: &[bool],
        random: &mut ChaCha8Rng,
    ) -> Option<usize> {
        // Adding Gumbel noise to log-weights and taking the largest is a weighted draw without replacement.
        let mut drawn: Vec<(f64, usize)> = Vec::with_capacity(DRAWN + 1);
        for (at, point) in candidates.points.iter().enumerate().filter(|(at, _)| !taken[*at]) {
            let key = sum(&self.good, point) + gumbel(random);
            if drawn.len() == DRAWN && key <= drawn[DRAWN - 1].0 {
                continue;
            }
            let place = drawn.partition_point(|(other, _)| *other >= key);
            drawn.insert(place, (key, at));
            drawn.truncate(DRAWN);
        }
        let ratio = |at: usize| {
            let point = &candidates.points[at];
            sum(&self.good, point) - sum(&self.other, point)
        };
        drawn.into_iter().map(|(_, at)| at).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(b.cmp(&a)))
    }
}

fn sum(log_densities: &[Vec<f64>], point: &[usize]) -> f64 {
    log_densities.iter().zip(point).map(|(axis, &at)| axis[at]).sum()
}

/// $-\log(-\log u)$ for uniform $u$ in the open interval from 0 to 1.
fn gumbel(random: &mut ChaCha8Rng) -> f64 {
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -(-uniform.ln()).ln()
}

/// The log of each axis' mixture, for every value of it.
fn log_densities(axes: &[Axis], points: &[&[usize]]) -> Vec<Vec<f64>> {
    let axis = |(at, axis): (usize, &Axis)| {
        let mut density = vec![1.0 / axis.len as f64; axis.len];
        let values: Vec<usize> = points.iter().map(|point| point[at]).collect();
        for kernel in kernels(*axis, &values) {
            density.iter_mut().zip(kernel).for_each(|(sum, mass)| *sum += mass);
        }
        density.into_iter().map(|mass| (mass / (points.len() + 1) as f64).ln()).collect()
    };
    axes.iter().enumerate().map(axis).collect()
}

/// One distribution over the axis for each value seen.
fn kernels(axis: Axis, values: &[usize]) -> Vec<Vec<f64>> {
    let len = axis.len as f64;
    // As for a Gaussian density estimate, widths fall with the fifth root of the number of observations.
    let width = (len / 4.0 * (values.len() as f64).powf(-0.2)).max(NARROWEST);
    let kernel = |&value: &usize| -> Vec<f64> {
        if !axis.ordered {
            let spread = (1.0 - OWN_MASS) / len;
            return (0..axis.len).map(|at| if at == value { OWN_MASS + spread } else { spread }).collect();
        }
        let mass: Vec<f64> =
            (0..axis.len).map(|at| (-0.5 * ((at as f64 - value as f64) / width).powi(2)).exp()).collect();
        let total: f64 = mass.iter().sum();
        mass.into_iter().map(|mass| mass / total).collect()
    };
    values.iter().map(kernel).collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn line(len: usize) -> Candidates {
        Candidates::new(vec![Axis { len, ordered: true }], (0..len).map(|at| vec![at]).collect())
    }

    #[test]
    fn densities_sum_to_one_on_every_axis() {
        let axes =
            [Axis { len: 7, ordered: true }, Axis { len: 4, ordered: false }, Axis { len: 1, ordered: true }];
        let seen: [&[usize]; 3] = [&[0, 3, 0], &[6, 3, 0], &[2, 1, 0]];
        for count in 0..=3 {
            for density in log_densities(&axes, &seen[..count]) {
                let total: f64 = density.iter().map(|log| log.exp()).sum();
                assert!((total - 1.0).abs() < 1e-12, "{total}");
            }
        }
    }

    #[test]
    fn what_lies_near_good_points_and_far_from_bad_ones_is_likelier() {
        let candidates = line(20);
        let seen: Vec<Observation> = [(2, 0.1), (5, 0.2), (15, 0.9), (10, 0.3), (8, 0.1)]
            .map(|(point, value)| Observation { point, value: Some(value) })
            .to_vec();
        let densities = Densities::of(&candidates, &seen);
        let ratio = |at: usize| densities.good[0][at] - densities.other[0][at];
        assert!(ratio(16) > ratio(10) && ratio(16) > ratio(3), "{} {} {}", ratio(16), ratio(10), ratio(3));
    }

    #[test]
    fn failed_trials_are_never_good() {
        let candidates = line(5);
        let seen: Vec<Observation> = (0..5).map(|point| Observation { point, value: None }).collect();
        let uniform = vec![(0.2f64).ln(); 5];
        let densities = Densities::of(&candidates, &seen);
        assert!(densities.good[0].iter().zip(&uniform).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn nothing_is_proposed_when_all_is_taken() {
        let candidates = line(2);
        let densities = Densities::of(&candidates, &[]);
        let mut random = ChaCha8Rng::seed_from_u64(0);
        assert_eq!(densities.propose(&candidates, &[true, true], &mut random), None);
        assert_eq!(densities.propose(&candidates, &[true, false], &mut random), Some(1));
    }

    #[test]
    fn noise_draws_by_weight() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let weights = [0.1f64, 0.3, 0.6];
        let mut count = [0; 3];
        for _ in 0..20_000 {
            let keys = weights.map(|weight| weight.ln() + gumbel(&mut random));
            let largest = (0..3).max_by(|&a, &b| keys[a].total_cmp(&keys[b])).unwrap();
            count[largest] += 1;
        }
        for (count, weight) in count.iter().zip(weights) {
            assert!((f64::from(*count) / 20_000.0 - weight).abs() < 0.015, "{count} {weight}");
        }
    }
}
