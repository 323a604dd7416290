//! Which points are tried, and in what order.
//!
//! Proposals come in rounds. Those of a round depend on the seed and on the results of the rounds before, by the trials'
//! numbers: not on the clock, and not on which trial of a round ends first. That is what makes a search the same for any
//! number of jobs, and after any interruption.

use std::ops::Range;
use std::str::FromStr;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::tpe;
use crate::choice::{UnknownChoice, choose};

/// How points are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampler {
    /// Every point, in the order of the grid.
    Exhaustive,
    /// Points at random, none twice.
    #[default]
    Random,
    /// Tree-structured Parzen estimator: at random first, then where good results are dense and bad ones are not.
    Tpe,
}

impl FromStr for Sampler {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        let choices =
            [("random", Sampler::Random), ("tpe", Sampler::Tpe), ("exhaustive", Sampler::Exhaustive)];
        choose(text, choices)
    }
}

/// One key of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// How many values it has.
    pub len: usize,
    /// Whether they are numbers: neighbours in ascending order are alike.
    pub ordered: bool,
}

/// The points that can be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    pub(super) axes: Vec<Axis>,
    /// For each point, which value it has on each axis.
    pub(super) points: Vec<Vec<usize>>,
}

impl Candidates {
    /// Points on these axes.
    ///
    /// # Panics
    /// If a point is not on the axes.
    pub fn new(axes: Vec<Axis>, points: Vec<Vec<usize>>) -> Self {
        let fits = |point: &Vec<usize>| {
            point.len() == axes.len() && point.iter().zip(&axes).all(|(at, axis)| *at < axis.len)
        };
        assert!(points.iter().all(fits), "points on the axes");
        Candidates { axes, points }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

/// What a trial showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Which point was tried.
    pub point: usize,
    /// Its value, higher is better; none if the trial failed.
    pub value: Option<f64>,
}

/// Trials at random before TPE has something to go by.
const FIRST_ROUND: usize = 10;
/// Trials that TPE proposes at once.
const LATER_ROUNDS: usize = 4;

/// Says what to try next.
pub struct Proposals<'a> {
    sampler: Sampler,
    seed: u64,
    candidates: &'a Candidates,
    /// The order of points for samplers that know it from the start.
    order: Vec<usize>,
}

impl<'a> Proposals<'a> {
    /// Proposals among `candidates`.
    pub fn new(sampler: Sampler, seed: u64, candidates: &'a Candidates) -> Self {
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        if sampler != Sampler::Exhaustive {
            shuffle(&mut order, seed);
        }
        Proposals { sampler, seed, candidates, order }
    }

    /// The round that `trial` belongs to: the numbers of its trials.
    pub fn round(&self, trial: usize) -> Range<usize> {
        let last = self.candidates.len();
        match self.sampler {
            Sampler::Exhaustive | Sampler::Random => 0..last,
            Sampler::Tpe if trial < FIRST_ROUND => 0..FIRST_ROUND.min(last),
            Sampler::Tpe => {
                let start = trial - (trial - FIRST_ROUND) % LATER_ROUNDS;
                start..(start + LATER_ROUNDS).min(last)
            }
        }
    }

    /// The points to try in a round, given what all trials before it showed, in the order of their numbers.
    pub fn propose(&self, round: &Range<usize>, before: &[Observation]) -> Vec<usize> {
        if self.sampler != Sampler::Tpe || round.start < FIRST_ROUND {
            return self.order[round.clone()].to_vec();
        }
        let mut taken = vec![false; self.candidates.len()];
        for observation in before {
            taken[observation.point] = true;
        }
        let densities = tpe::Densities::of(self.candidates, before);
        let mut proposed = Vec::new();
        for trial in round.clone() {
            let mut random = ChaCha8Rng::seed_from_u64(self.seed);
            random.set_stream(trial as u64);
            let Some(point) = densities.propose(self.candidates, &taken, &mut random) else { break };
            taken[point] = true;
            proposed.push(point);
        }
        proposed
    }
}

/// Fisher-Yates, spelled out so that a seed means the same order in every release.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for last in (1..order.len()).rev() {
        let draw = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, draw as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// All points of a grid but every `hole`-th.
    fn grid(lens: &[usize], hole: usize) -> Candidates {
        let total: usize = lens.iter().product();
        let point = |mut place: usize| {
            lens.iter()
                .map(|len| {
                    let at = place % len;
                    place /= len;
                    at
                })
                .collect()
        };
        let axes = lens.iter().enumerate().map(|(at, &len)| Axis { len, ordered: at % 2 == 0 }).collect();
        Candidates::new(axes, (0..total).filter(|place| place % hole != hole - 1).map(point).collect())
    }

    /// Runs a whole search, round by round.
    fn run(
        sampler: Sampler,
        seed: u64,
        candidates: &Candidates,
        value: impl Fn(&[usize]) -> Option<f64>,
    ) -> Vec<usize> {
        let proposals = Proposals::new(sampler, seed, candidates);
        let mut seen: Vec<Observation> = Vec::new();
        while seen.len() < candidates.len() {
            let round = proposals.round(seen.len());
            assert_eq!(round.start, seen.len());
            let points = proposals.propose(&round, &seen);
            assert_eq!(points.len(), round.len());
            let observe = |point| Observation { point, value: value(&candidates.points[point]) };
            seen.extend(points.into_iter().map(observe));
        }
        seen.iter().map(|observation| observation.point).collect()
    }

    fn samplers() -> impl Strategy<Value = Sampler> {
        prop_oneof![Just(Sampler::Exhaustive), Just(Sampler::Random), Just(Sampler::Tpe)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn every_point_is_tried_once_and_the_seed_says_when(
            sampler in samplers(), seed in any::<u64>(), hole in 3usize..9,
            lens in proptest::collection::vec(1usize..5, 1..4),
        ) {
            let candidates = grid(&lens, hole);
            let value = |point: &[usize]| {
                let sum: usize = point.iter().sum();
                (sum % 5 != 4).then_some(sum as f64)
            };
            let tried = run(sampler, seed, &candidates, value);
            prop_assert_eq!(tried.iter().collect::<HashSet<_>>().len(), candidates.len());
            prop_assert_eq!(&tried, &run(sampler, seed, &candidates, value));
        }

        #[test]
        fn rounds_lie_end_to_end(sampler in samplers(), len in 1usize..60) {
            let candidates = grid(&[len], usize::MAX);
            let proposals = Proposals::new(sampler, 0, &candidates);
            for trial in 0..len {
                let round = proposals.round(trial);
                prop_assert!(round.contains(&trial) && round.end <= len);
                prop_assert!(round.clone().all(|other| proposals.round(other) == round));
            }
        }
    }

    #[test]
    fn random_orders_differ_by_seed_and_exhaustive_is_the_grid() {
        let candidates = grid(&[6, 7], usize::MAX);
        let none = |_: &[usize]| None;
        assert_eq!(run(Sampler::Exhaustive, 3, &candidates, none), (0..42).collect::<Vec<_>>());
        assert_ne!(run(Sampler::Random, 3, &candidates, none), run(Sampler::Random, 4, &candidates, none));
    }

    #[test]
    fn every_point_comes_first_equally_often() {
        let candidates = grid(&[4], usize::MAX);
        let mut count = [0; 4];
        for seed in 0..4000 {
            count[Proposals::new(Sampler::Random, seed, &candidates).propose(&(0..1), &[])[0]] += 1;
        }
        assert!(count.iter().all(|count| (850..1150).contains(count)), "{count:?}");
    }

    #[test]
    fn tpe_finds_the_top_of_a_hill_sooner_than_chance() {
        let candidates = grid(&[9, 9, 9, 3], usize::MAX);
        let hill = |point: &[usize]| {
            let far: f64 =
                point[..3].iter().zip([6.0, 2.0, 5.0]).map(|(&at, top)| (at as f64 - top).powi(2)).sum();
            Some(-far - if point[3] == 1 { 0.0 } else { 5.0 })
        };
        let trials_to_the_top = |sampler| {
            let near = |seed| {
                let tried = run(sampler, seed, &candidates, hill);
                tried.iter().position(|&point| hill(&candidates.points[point]) >= Some(-1.0)).unwrap()
            };
            (0..15).map(near).sum::<usize>() as f64 / 15.0
        };
        let (tpe, random) = (trials_to_the_top(Sampler::Tpe), trials_to_the_top(Sampler::Random));
        assert!(tpe < 0.5 * random, "tpe {tpe} random {random}");
    }
}
