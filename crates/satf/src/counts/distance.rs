//! Classes of distance between the two items of a pair.

use std::ops::RangeInclusive;

/// How many classes there are.
pub(crate) const CLASSES: usize = 10;

/// How many of them, the first ones, are of pairs at one and the same time.
pub(crate) const AT_ONCE: usize = 4;

/// The largest distance of each class.
const LAST: [usize; CLASSES] = [1, 2, 5, usize::MAX, 1, 2, 5, 10, 20, usize::MAX];

/// The classes of pairs at one time, or of the others, with their distances up to a window.
pub(crate) fn classes(at_once: bool, window: usize) -> impl Iterator<Item = (usize, RangeInclusive<usize>)> {
    let classes = if at_once { 0..AT_ONCE } else { AT_ONCE..CLASSES };
    let mut next = 1;
    classes.map(move |class| {
        let distances = next..=LAST[class].min(window);
        next = LAST[class].saturating_add(1);
        (class, distances)
    })
}

/// The class of a pair.
pub(crate) fn class_of(at_once: bool, distance: usize) -> usize {
    let (first, last) = if at_once { (0, AT_ONCE) } else { (AT_ONCE, CLASSES) };
    first + LAST[first..last - 1].iter().take_while(|&&most| distance > most).count()
}

/// Sums of the weights of all pairs by distance, from 1: of those at one time, and of the others. Integers, so they add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DistanceSums([Vec<u128>; 2]);

impl DistanceSums {
    pub(crate) fn new(window: usize) -> Self {
        DistanceSums([vec![0; window], vec![0; window]])
    }

    /// Adds the weight of a pair.
    pub(crate) fn add(&mut self, at_once: bool, distance: usize, weight: u64) {
        self.0[usize::from(at_once)][distance - 1] += u128::from(weight);
    }

    /// Takes the weight of a pair away that was added before.
    pub(crate) fn subtract(&mut self, at_once: bool, distance: usize, weight: u64) {
        self.0[usize::from(at_once)][distance - 1] -= u128::from(weight);
    }

    /// Adds all sums of others.
    #[must_use]
    pub(crate) fn merge(mut self, other: &DistanceSums) -> Self {
        for (sums, others) in self.0.iter_mut().zip(&other.0) {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
        self
    }

    /// The mean of $d^{-\delta}$ over the pairs of each class: what one of them weighs. 0 for a class without pairs.
    pub(crate) fn mean_weights(&self, decay: f64) -> [f64; CLASSES] {
        let mut weights = [0.0; CLASSES];
        for at_once in [true, false] {
            let sums = &self.0[usize::from(at_once)];
            for (class, distances) in classes(at_once, sums.len()) {
                let (mut total, mut weighted) = (0.0, 0.0);
                for distance in distances {
                    let sum = sums[distance - 1] as f64;
                    total += sum;
                    weighted += sum * (distance as f64).powf(-decay);
                }
                weights[class] = if total > 0.0 { weighted / total } else { 0.0 };
            }
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_is_in_one_class() {
        for window in [1, 2, 4, 5, 6, 20, 21, 50] {
            for at_once in [true, false] {
                let of = classes(at_once, window);
                let distances: Vec<(usize, usize)> = of
                    .flat_map(|(class, distances)| distances.map(move |distance| (distance, class)))
                    .collect();
                let expected: Vec<_> =
                    (1..=window).map(|distance| (distance, class_of(at_once, distance))).collect();
                assert_eq!(distances, expected);
            }
        }
        assert_eq!(
            [class_of(true, 1), class_of(true, 6), class_of(false, 1), class_of(false, 1000)],
            [0, 3, 4, 9]
        );
    }

    #[test]
    fn a_class_weighs_what_its_pairs_weigh_on_average() {
        let mut sums = DistanceSums::new(4);
        for (distance, weight) in [(1, 5), (3, 30), (4, 10)] {
            sums.add(false, distance, weight);
        }
        let weights = sums.mean_weights(1.0);
        assert_eq!(weights[..AT_ONCE], [0.0; AT_ONCE]);
        assert_eq!(weights[AT_ONCE..AT_ONCE + 2], [1.0, 0.0]);
        assert!((weights[AT_ONCE + 2] - (30.0 / 3.0 + 10.0 / 4.0) / 40.0).abs() < 1e-15);
        sums.subtract(false, 4, 10);
        let more = DistanceSums::new(4).merge(&sums);
        assert!(more == sums && (more.mean_weights(1.0)[AT_ONCE + 2] - 1.0 / 3.0).abs() < 1e-15);
    }
}
