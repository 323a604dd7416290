//! The decomposition against a dense twin, and what it promises on any log: a core norm that never falls, orthonormal
//! factors, the same bits on any number of threads, finite scores or a clear error.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use faer::Mat;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use satf::History;
use satf::factorize::{
    FactorizeError, Factors, HooiOptions, ItemUpdate, PositionFactors, PositionModes, Rows, Sizes, Start,
    StartFactors, Way, factorize,
};
use satf::interactions::ItemIndex;
use satf::linalg::{Real, dense};
use satf::models::{GaSatfConfig, LaSatfConfig, Learner, Precision};
use satf::prepare::Histories;
use satf::tensor::{Attention, Decay, Normalization, PositionalLog};

fn options(user_rank: usize, item_rank: usize, num_iters: usize) -> HooiOptions {
    HooiOptions {
        user_rank,
        item_rank,
        num_iters,
        growth_tolerance: 0.0,
        start: Start::Random,
        seed: 5,
        item_update: ItemUpdate::Weighted,
        memory_bytes: None,
        way: None,
    }
}

/// Core norm and factors after every iteration.
fn run<T: Real>(
    log: &PositionalLog,
    scaling: f64,
    modes: &PositionModes,
    options: &HooiOptions,
    start: Option<StartFactors<T>>,
) -> Result<Vec<(f64, Factors<T>)>, FactorizeError> {
    let mut steps = Vec::new();
    factorize(
        log,
        &log.popularity_weights(scaling),
        modes,
        options,
        start,
        &(),
        &mut |progress, factors| {
            steps.push((progress.core_norm, factors.clone()));
            ControlFlow::Continue(())
        },
    )?;
    Ok(steps)
}

fn global(k: usize, rank: usize, decay: f64) -> PositionModes {
    PositionModes::Global { attention: Attention::power(decay).matrix(k), rank }
}

fn local(k: usize, window: usize, ranks: (usize, usize), decay: f64) -> PositionModes {
    PositionModes::Local {
        attention: Attention::power(decay).matrix(window),
        num_positions: k,
        attention_rank: ranks.0,
        sequences_rank: ranks.1,
    }
}

/// A dense tensor of four modes; the last has length 1 at the third order.
struct DenseTensor {
    dims: [usize; 4],
    values: Vec<f64>,
}

impl DenseTensor {
    /// The tensor of the objective, entry by entry.
    fn new(log: &PositionalLog, scaling: f64, modes: &PositionModes) -> Self {
        let d = log.popularity_weights(scaling);
        let (attention, starts) = match modes {
            PositionModes::Global { attention, .. } => (attention, 1),
            PositionModes::Local { attention, num_positions, .. } => {
                (attention, num_positions + 1 - attention.nrows())
            }
        };
        let window = attention.nrows();
        let dims = [log.num_users(), log.num_items(), window, starts];
        let mut values = vec![0.0; dims.iter().product()];
        for user in 0..log.num_users() {
            let (first, items) = log.user(user);
            for (position, &item) in (first..).zip(items) {
                for l in 0..window.min(position + 1) {
                    if position - l < starts {
                        for a in 0..window {
                            let at =
                                ((user * dims[1] + item as usize) * dims[2] + a) * dims[3] + position - l;
                            values[at] += d[item as usize] * attention[(l, a)];
                        }
                    }
                }
            }
        }
        DenseTensor { dims, values }
    }

    /// Contracts one mode with a factor.
    fn contract(&self, mode: usize, factor: &Mat<f64>) -> DenseTensor {
        let mut dims = self.dims;
        dims[mode] = factor.ncols();
        let inner: usize = self.dims[mode + 1..].iter().product();
        let outer: usize = self.dims[..mode].iter().product();
        let mut values = vec![0.0; dims.iter().product()];
        for o in 0..outer {
            for old in 0..self.dims[mode] {
                for new in 0..factor.ncols() {
                    for i in 0..inner {
                        values[(o * dims[mode] + new) * inner + i] +=
                            factor[(old, new)] * self.values[(o * self.dims[mode] + old) * inner + i];
                    }
                }
            }
        }
        DenseTensor { dims, values }
    }

    fn unfold_gram(&self, mode: usize) -> Mat<f64> {
        let inner: usize = self.dims[mode + 1..].iter().product();
        let outer: usize = self.dims[..mode].iter().product();
        let n = self.dims[mode];
        let at = |o: usize, x: usize, i: usize| self.values[(o * n + x) * inner + i];
        Mat::from_fn(n, n, |x, y| {
            (0..outer)
                .flat_map(|o| (0..inner).map(move |i| (o, i)))
                .map(|(o, i)| at(o, x, i) * at(o, y, i))
                .sum()
        })
    }

    /// HOOI by definition. `None` where a subspace is not well determined, so that nothing can be compared.
    fn iterate(&self, factors: &mut [Mat<f64>; 4], ranks: [usize; 4]) -> Option<f64> {
        let mut energy = 0.0;
        for mode in 0..4 {
            if self.dims[mode] == 1 && ranks[mode] == 1 && mode == 3 {
                continue;
            }
            let mut compressed = DenseTensor { dims: self.dims, values: self.values.clone() };
            for other in (0..4).filter(|&other| other != mode) {
                compressed = compressed.contract(other, &factors[other]);
            }
            let (values, vectors) = dense::symmetric_eigen(compressed.unfold_gram(mode).as_ref()).ok()?;
            let next = values.get(ranks[mode]).copied().unwrap_or(0.0);
            if values[ranks[mode] - 1] - next < 1e-5 * values[0] {
                return None;
            }
            factors[mode] = vectors.get(.., ..ranks[mode]).to_owned();
            energy = values[..ranks[mode]].iter().sum();
        }
        Some(f64::sqrt(energy))
    }
}

fn orthonormal(nrows: usize, ncols: usize, random: &mut ChaCha8Rng) -> Mat<f64> {
    let mut matrix = Mat::from_fn(nrows, ncols, |_, _| random.random::<f64>());
    dense::orthonormalize(matrix.as_mut());
    matrix
}

fn projector(factor: &Mat<f64>) -> Mat<f64> {
    factor * factor.transpose()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn the_dense_twin_agrees(
        sequences in prop::collection::vec(prop::collection::vec(0u32..7, 1..9), 8..14),
        window in 1usize..6,
        decay in 0.0f64..1.5,
        scaling in 0.0f64..1.0,
        is_global: bool,
        seed: u64,
    ) {
        let k = 6;
        let log = PositionalLog::from_histories(&Histories::from_sequences(7, &sequences), k);
        let modes = if is_global { global(k, 2, decay) } else { local(k, window, (1, 2.min(k + 1 - window)), decay) };
        let (r3, r4) = match &modes {
            PositionModes::Global { rank, .. } => (*rank, 1),
            PositionModes::Local { attention_rank, sequences_rank, .. } => (*attention_rank, *sequences_rank),
        };
        let ranks = [3.min(3 * r3 * r4), 3.min(3 * r3 * r4), r3, r4];
        let tensor = DenseTensor::new(&log, scaling, &modes);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut factors = [0, 1, 2, 3].map(|mode| orthonormal(tensor.dims[mode], ranks[mode], &mut random));
        let positions = if is_global {
            PositionFactors::Global { w: factors[2].clone() }
        } else {
            PositionFactors::Local { window: factors[2].clone(), start: factors[3].clone() }
        };
        if is_global {
            factors[3] = Mat::identity(1, 1);
        }
        for way in [Way::GramColumns, Way::GramRows, Way::Krylov] {
            let mut factors = factors.clone();
            let start = StartFactors {
                items: Rows::<f64>::from_mat(factors[1].as_ref()),
                positions: positions.clone(),
            };
            let options = HooiOptions { way: Some(way), ..options(ranks[0], ranks[1], 3) };
            let Ok(steps) = run(&log, scaling, &modes, &options, Some(start)) else {
                return Err(TestCaseError::reject("not determined"));
            };
            for (core_norm, found) in steps {
                let Some(expected) = tensor.iterate(&mut factors, ranks) else {
                return Err(TestCaseError::reject("not determined"));
            };
                prop_assert!((core_norm - expected).abs() < 1e-8 * expected, "{way:?}: {core_norm} {expected}");
                let distance = (projector(&found.items.to_mat()) - projector(&factors[1])).norm_max();
                prop_assert!(distance < 1e-7, "{way:?}: items differ by {distance}");
                let distance = (projector(&found.users.to_mat()) - projector(&factors[0])).norm_max();
                prop_assert!(distance < 1e-7, "{way:?}: users differ by {distance}");
            }
        }
    }

    #[test]
    fn the_core_norm_never_falls_and_factors_are_orthonormal(
        sequences in prop::collection::vec(prop::collection::vec(0u32..12, 1..12), 5..40),
        window in 1usize..8,
        decay in 0.0f64..1.5,
        scaling in 0.0f64..1.0,
        is_global: bool,
        ranks in (1usize..9, 1usize..9),
    ) {
        let k = 8;
        let log = PositionalLog::from_histories(&Histories::from_sequences(12, &sequences), k);
        let modes = if is_global { global(k, 3, decay) } else { local(k, window, (1, 2.min(k + 1 - window)), decay) };
        for way in [Way::GramColumns, Way::GramRows, Way::Krylov] {
            let options = HooiOptions { way: Some(way), ..options(ranks.0, ranks.1, 6) };
            check_run::<f64>(&log, scaling, &modes, &options, 1e-10)?;
            check_run::<f32>(&log, scaling, &modes, &options, 1e-4)?;
        }
    }
}

fn check_run<T: Real>(
    log: &PositionalLog,
    scaling: f64,
    modes: &PositionModes,
    options: &HooiOptions,
    tolerance: f64,
) -> Result<(), TestCaseError> {
    let Ok(steps) = run::<T>(log, scaling, modes, options, None) else { return Ok(()) };
    for pair in steps.windows(2) {
        prop_assert!(
            pair[1].0 >= pair[0].0 * (1.0 - tolerance),
            "{:?}: {} {}",
            options.way,
            pair[0].0,
            pair[1].0
        );
    }
    for (_, factors) in &steps {
        for rows in [&factors.users, &factors.items] {
            let factor = rows.to_mat();
            let gram = factor.transpose() * &factor;
            let off = (gram - Mat::<f64>::identity(rows.width(), rows.width())).norm_max();
            // Directions that hold little energy come out of a Gram matrix with its roundings.
            prop_assert!(off < 100.0 * tolerance, "{:?}: off by {off}", options.way);
        }
    }
    Ok(())
}

fn random_log(users: usize, items: u32, longest: usize, seed: u64) -> Histories {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let sequences: Vec<Vec<u32>> = (0..users)
        .map(|_| {
            let mut item = random.random_range(0..items);
            (0..random.random_range(1..=longest))
                .map(|_| {
                    let jump = if random.random_bool(0.6) {
                        random.random_range(0..5)
                    } else {
                        random.random_range(0..items)
                    };
                    item = (item + jump) % items;
                    item
                })
                .collect()
        })
        .collect();
    Histories::from_sequences(items as usize, &sequences)
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let log = PositionalLog::from_histories(&random_log(3000, 700, 30, 1), 20);
    for (modes, way) in [
        (local(20, 2, (1, 2), 0.0), Way::GramColumns),
        (global(20, 5, 1.0), Way::GramRows),
        (local(20, 6, (3, 4), 1.0), Way::Krylov),
    ] {
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let options = HooiOptions { way: Some(way), ..options(70, 60, 2) };
                let steps = run::<f32>(&log, 0.2, &modes, &options, None).unwrap();
                let (core_norm, factors) = steps.last().unwrap();
                let items: Vec<u32> = factors.items.values().iter().map(|value| value.to_bits()).collect();
                (core_norm.to_bits(), items)
            })
        };
        let one = bits(1);
        assert!(one == bits(2), "{way:?}: 2 threads differ from 1");
        assert!(one == bits(4), "{way:?}: 4 threads differ from 1");
    }
}

#[test]
fn the_krylov_way_holds_the_energy_of_the_gram_way() {
    let log = PositionalLog::from_histories(&random_log(2500, 900, 30, 2), 20);
    let modes = local(20, 6, (3, 4), 1.0);
    let core = |way, seed| {
        let options = HooiOptions { way: Some(way), seed, ..options(150, 120, 2) };
        run::<f32>(&log, 0.2, &modes, &options, None).unwrap().iter().map(|step| step.0).collect::<Vec<f64>>()
    };
    let (gram, krylov) = (core(Way::GramRows, 5), core(Way::Krylov, 5));
    for (gram, krylov) in gram.iter().zip(&krylov) {
        assert!((gram - krylov).abs() < 1e-4 * gram, "{gram} {krylov}");
    }
}

#[test]
fn a_plan_takes_the_cheapest_way_that_fits() {
    let log = PositionalLog::from_histories(&random_log(3000, 700, 30, 3), 20);
    let free = Sizes::of(&log, 70, 60, 2, 4).plan(None).unwrap();
    assert_eq!(free.modes[0].way, Way::GramColumns);
    for mode in &free.modes {
        assert!(
            mode.considered
                .iter()
                .any(|cost| cost.way == mode.way && (cost.operations - mode.operations).abs() < 1.0)
        );
    }
    assert!(free.expected_seconds(100.0) > 0.0);
    let tight = Sizes::of(&log, 70, 60, 2, 4).plan(Some(free.memory_bytes)).unwrap();
    assert_eq!(free.modes[0].way, tight.modes[0].way);
    let error = Sizes::of(&log, 70, 60, 2, 4).plan(Some(1000)).unwrap_err();
    assert!(matches!(error, FactorizeError::Memory { allowed: 1000, .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn odd_logs_and_configurations_give_finite_scores_or_a_clear_error(
        kind in 0usize..8,
        sequences in prop::collection::vec(prop::collection::vec(0u32..6, 0..8), 0..9),
        ranks in (1usize..9, 1usize..9, 1usize..6, 1usize..6),
        max_len in 1usize..8,
        window in 1usize..9,
        switches in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        decay in 0.0f64..3.0,
        scaling in -0.5f64..1.5,
    ) {
        let (items, sequences) = match kind {
            0 => (6, sequences.into_iter().take(1).collect()),
            1 => (1, sequences.into_iter().map(|items| vec![0; items.len()]).collect()),
            2 => (6, sequences.into_iter().map(|items| items.into_iter().take(1).collect()).collect()),
            3 => (6, vec![sequences.first().cloned().unwrap_or_default(); 6]),
            4 => (7, sequences.into_iter().chain([vec![6]]).collect()),
            _ => (6, sequences),
        };
        let sequences: Vec<Vec<u32>> = sequences;
        let histories = Histories::from_sequences(items, &sequences);
        let (rescaled, double, unweighted, random, exponential, normalized) = switches;
        let precision = if double { Precision::Double } else { Precision::Single };
        let item_update = if unweighted { ItemUpdate::Unweighted } else { ItemUpdate::Weighted };
        let start = if random { Start::Random } else { Start::Sketch };
        let attention_shape = if exponential { Decay::Exponential } else { Decay::Power };
        let attention_normalization = if normalized { Normalization::Rows } else { Normalization::None };
        let learners: [Box<dyn Learner>; 2] = [
            Box::new(GaSatfConfig {
                user_rank: Some(ranks.0), item_rank: Some(ranks.1), position_rank: ranks.2, max_len, rescaled, precision, item_update,
                start, attention_shape, attention_normalization, attention_decay: decay, scaling, num_iters: 4,
                ..GaSatfConfig::default()
            }),
            Box::new(LaSatfConfig {
                user_rank: Some(ranks.0), item_rank: Some(ranks.1), attention_rank: ranks.2, sequences_rank: ranks.3, max_len,
                attention_window: window, rescaled, precision, item_update, start, attention_shape,
                attention_normalization, attention_decay: decay, scaling, num_iters: 4,
                ..LaSatfConfig::default()
            }),
        ];
        for learner in learners {
            match learner.fit(&histories, &()) {
                Ok(model) => {
                    let query: Vec<ItemIndex> = (0..items as u32).map(ItemIndex).collect();
                    let mut scores = vec![f32::NAN; items];
                    model.score_batch(&[History::new(&query)], &mut scores);
                    prop_assert!(scores.iter().all(|score| score.is_finite()), "{}: {scores:?}", learner.name());
                }
                Err(error) => prop_assert!(error.to_string().contains(learner.name()), "{error}"),
            }
        }
    }
}
