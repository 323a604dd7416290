use std::sync::Arc;

use faer::Mat;
use proptest::prelude::*;

use super::core::{ItemSpace, NormalEquations};
use super::memory::MemoryParams;
use super::recommender::DSatf;
use super::*;
use crate::counts::{Counting, PairCounter};
use crate::interactions::{Clock, Ids, ItemIndex, Timestamp, UserIndex};
use crate::models::fold_in::FoldIn;
use crate::models::item_rows::ItemRows;
use crate::prepare::History;

const ITEMS: usize = 9;

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

/// One user a sequence of items and times.
fn histories(num_items: usize, sequences: &[Vec<(u32, i64)>]) -> Histories {
    histories_by(Clock::Calendar, num_items, sequences)
}

fn histories_by(clock: Clock, num_items: usize, sequences: &[Vec<(u32, i64)>]) -> Histories {
    let ids = |n: usize| Arc::new(Ids::Integers((0..n as i64).collect()));
    let rows = sequences.iter().enumerate().flat_map(|(user, events)| {
        let row = move |&(item, time)| (UserIndex(user as u32), ItemIndex(item), Timestamp(time));
        events.iter().map(row)
    });
    Histories::from_ordered_rows(ids(sequences.len()), ids(num_items), clock, rows)
}

/// Items with times that do not fall, and are equal now and then.
fn logs() -> impl Strategy<Value = Vec<Vec<(u32, i64)>>> {
    let event = (0u32..ITEMS as u32, prop::sample::select(vec![0, 0, 1, 400 * DAY]));
    let sequence = prop::collection::vec(event, 0..12).prop_map(|events| {
        let mut now = 0;
        events
            .into_iter()
            .map(|(item, step)| {
                (item, {
                    now += step;
                    now
                })
            })
            .collect::<Vec<_>>()
    });
    prop::collection::vec(sequence, 1..10)
}

/// What is counted, and what is made of it.
#[derive(Clone, Copy, Debug)]
struct Making {
    counting: Counting,
    params: MemoryParams,
}

fn makings() -> impl Strategy<Value = Making> {
    let saturations = prop::sample::select(vec![0.5, 30.0, 1e12]);
    (1usize..9, 0.0..2.0, 0.0..4.0, 0.0..1.0, saturations, (0.0..1.0, 0.0..1.0)).prop_map(
        |(window, distance_decay, together, user_power, saturation, (source_power, target_power))| Making {
            counting: Counting { window, user_power },
            params: MemoryParams {
                distance_decay,
                together,
                saturation,
                source_power,
                target_power,
                row_limit: usize::MAX,
            },
        },
    )
}

fn memory_of(making: &Making, histories: &Histories) -> ItemRows {
    let popularity = histories.popularity();
    let pairs = PairCounter::new(&making.counting, histories, &popularity);
    let trend = vec![1.0; popularity.len()];
    let [kept, spilled] = [u64::MAX, 0]
        .map(|room| memory::fit(&making.params, &pairs, &popularity, &trend, room, &()).unwrap());
    assert!(kept.rows == spilled.rows && kept.squares == spilled.squares);
    kept.rows
}

/// The largest distances of the classes, those of pairs at one time first.
const CLASSES: [usize; 10] = [1, 2, 5, usize::MAX, 1, 2, 5, 10, 20, usize::MAX];

fn class_of(at_once: bool, distance: usize) -> usize {
    let range = if at_once { 0..4 } else { 4..10 };
    range.clone().find(|&class| distance <= CLASSES[class]).unwrap()
}

/// `T` from its definition: all pairs of positions, the agreement of all pairs of occurrences, the posterior.
fn memory_by_definition(making: &Making, sequences: &[Vec<(u32, i64)>]) -> Vec<Vec<f64>> {
    let (params, window) = (&making.params, making.counting.window);
    // First item, second item, class, weight by position.
    let mut pairs: Vec<(usize, usize, usize, f64)> = Vec::new();
    let mut popularity = [0f64; ITEMS];
    let mut by_class = [(0.0, 0.0); 10];
    for events in sequences {
        for (item, _) in events {
            popularity[*item as usize] += 1.0;
        }
        for s in 0..events.len() {
            for t in s + 1..events.len().min(s + window + 1) {
                let ((a, before), (b, after)) = (events[s], events[t]);
                let weight = (t as f64 + 1.0).powf(-making.counting.user_power);
                let class = class_of(before == after, t - s);
                by_class[class].0 += weight;
                by_class[class].1 += weight * ((t - s) as f64).powf(-params.distance_decay);
                if a != b {
                    pairs.push((a as usize, b as usize, class, weight));
                }
            }
        }
    }
    let mut occurrences: [Vec<(usize, usize, f64)>; 4] = Default::default();
    for (a, b, class, weight) in pairs {
        let kind = [0, 0, 0, 0, 1, 2, 2, 3, 3, 3][class];
        occurrences[kind].push((a, b, weight * by_class[class].1 / by_class[class].0));
    }
    let mut memory = vec![vec![0f64; ITEMS]; ITEMS];
    for (occurrences, kind_weight) in occurrences.iter().zip([params.together, 1.0, 1.0, 1.0]) {
        let (mut agreeing, mut all) = (0.0, 0.0);
        for (i, &(a, b, one)) in occurrences.iter().enumerate() {
            for (k, &(c, d, other)) in occurrences.iter().enumerate() {
                if i != k && ((a, b) == (c, d) || (a, b) == (d, c)) {
                    all += one * other;
                    agreeing += if (a, b) == (c, d) { one * other } else { 0.0 };
                }
            }
        }
        let agreement: f64 = if all > 0.0 { agreeing / all } else { 0.75 };
        let alpha = (1.0 / (2.0 * agreement - 1.0).max(1e-3) - 1.0) / 2.0;
        let weight: f64 = occurrences.iter().map(|(_, _, weight)| weight).sum();
        let squares: f64 = occurrences.iter().map(|(_, _, weight)| weight * weight).sum();
        let prior = alpha * if weight > 0.0 { squares / weight } else { 1.0 };
        for (a, row) in memory.iter_mut().enumerate() {
            for (b, value) in row.iter_mut().enumerate() {
                let sum = |from: usize, to: usize| -> f64 {
                    occurrences
                        .iter()
                        .filter(|(a, b, _)| (*a, *b) == (from, to))
                        .map(|(_, _, weight)| weight)
                        .sum()
                };
                let (forth, back) = (sum(a, b), sum(b, a));
                if forth + back > 0.0 {
                    *value += kind_weight * (forth + back) * (forth + prior) / (forth + back + 2.0 * prior);
                }
            }
        }
    }
    let weights = occurrences.iter().flatten().map(|(_, _, weight)| *weight);
    let typical = weights.clone().map(|weight| weight * weight).sum::<f64>() / weights.sum::<f64>();
    let level = params.saturation * typical;
    for (a, row) in memory.iter_mut().enumerate() {
        for (b, value) in row.iter_mut().enumerate().filter(|(_, value)| **value > 0.0) {
            *value = level
                * (1.0 + *value / level).ln()
                * popularity[a].powf(-params.source_power)
                * popularity[b].powf(-params.target_power);
        }
    }
    memory
}

fn dense(memory: &ItemRows) -> Vec<Vec<f64>> {
    let weight = |a: u32, b: u32| memory.weight(ItemIndex(a), ItemIndex(b));
    let items = memory.num_items() as u32;
    (0..items).map(|a| (0..items).map(|b| weight(a, b)).collect()).collect()
}

proptest! {
    #[test]
    fn the_memory_equals_its_definition(making in makings(), sequences in logs()) {
        let memory = memory_of(&making, &histories(ITEMS, &sequences));
        let expected = memory_by_definition(&making, &sequences);
        // A logarithm of 1 + x is exact to the rounding of 1 only.
        let rounding = making.params.saturation * 1e-15;
        for (row, expected) in dense(&memory).iter().zip(&expected) {
            for (value, expected) in row.iter().zip(expected) {
                prop_assert!((value - expected).abs() <= 1e-4 * expected.abs() + rounding.max(1e-12), "{value} is not {expected}");
            }
        }
    }

    /// The core against a dense solution of its normal equations, from features made one by one.
    #[test]
    fn the_core_equals_a_dense_solution(
        making in makings(),
        sequences in logs(),
        ridge in 0.01f64..10.0,
        lag_weights in prop::collection::vec(0.0f64..1.0, 1..5),
    ) {
        let log = histories(ITEMS, &sequences);
        let memory = memory_of(&making, &log);
        let user_power = making.counting.user_power;
        let rank = 3;
        let v = orthonormal(ITEMS, rank);
        let space = ItemSpace::new(v.as_ref());
        let moments = second_moments(&space, &log, &lag_weights, ITEMS * 4, user_power, &()).unwrap();
        let equations = NormalEquations::new(&space, &memory, moments.as_ref(), &()).unwrap();
        let core = equations.core(ridge);

        // A history is remembered until its last item has no weight any more.
        let mut moments = Mat::<f64>::zeros(rank, rank);
        for events in sequences.iter().filter(|events| !events.is_empty()) {
            for t in 0..events.len() + lag_weights.len() {
                let mut feature = Mat::<f64>::zeros(rank, 1);
                for (lag, weight) in lag_weights.iter().enumerate().take(t + 1) {
                    if let Some(event) = events.get(t - lag) {
                        let row = v.as_ref().row(event.0 as usize).transpose();
                        feature += row.to_owned().as_mat() * *weight;
                    }
                }
                moments += &feature * feature.transpose() * (events.len() as f64).powf(-user_power);
            }
        }
        let weights = dense(&memory);
        let cross = v.transpose() * Mat::from_fn(ITEMS, ITEMS, |a, b| weights[a][b]) * &v;
        let mean = (0..rank).map(|k| moments[(k, k)]).sum::<f64>() / rank as f64;
        let strength = if mean > 0.0 { ridge * mean } else { 1.0 };
        let left = (&moments + Mat::<f64>::identity(rank, rank) * strength) * &core;
        for i in 0..rank {
            for j in 0..rank {
                let scale = cross.norm_max().max(1e-12);
                prop_assert!((left[(i, j)] - cross[(i, j)]).abs() < 1e-5 * scale, "{} {}", left[(i, j)], cross[(i, j)]);
            }
        }
    }
}

/// Every pair counts one.
fn plain(window: usize) -> Making {
    Making {
        counting: Counting { window, user_power: 0.0 },
        params: MemoryParams {
            distance_decay: 0.0,
            together: 1.0,
            saturation: 1e12,
            source_power: 0.0,
            target_power: 0.0,
            row_limit: usize::MAX,
        },
    }
}

/// Some matrix with orthonormal columns.
fn orthonormal(rows: usize, columns: usize) -> Mat<f64> {
    let start = Mat::<f64>::from_fn(rows, columns, |i, j| ((i * 7 + j * 13 + i * i * j) % 11) as f64 - 4.5);
    start.qr().compute_thin_Q()
}

fn pairs(rows: impl Iterator<Item = [(u32, i64); 2]>) -> [f64; 2] {
    let sequences: Vec<Vec<(u32, i64)>> = rows.map(Vec::from).collect();
    let memory = memory_of(&plain(5), &histories(2, &sequences));
    let weights = dense(&memory);
    [weights[0][1], weights[1][0]]
}

#[test]
fn an_order_that_is_law_is_kept_and_one_that_is_noise_is_not() {
    let law = pairs((0..20).map(|_| [(0, 0), (1, 1)]));
    assert!((law[0] - 20.0).abs() < 1e-4 && law[1] < 1e-4, "{law:?}");
    let noise = pairs((0..20).map(|user| if user % 2 == 0 { [(0, 0), (1, 1)] } else { [(1, 0), (0, 1)] }));
    assert!((noise[0] - noise[1]).abs() < 1e-4 && (noise[0] - 10.0).abs() < 1e-4, "{noise:?}");
    // Mostly one way: kept, but shrunk.
    let mostly = pairs((0..20).map(|user| if user % 10 > 0 { [(0, 0), (1, 1)] } else { [(1, 0), (0, 1)] }));
    assert!(
        mostly[0] > 15.0 && mostly[0] < 18.0 && (mostly[0] + mostly[1] - 20.0).abs() < 1e-4,
        "{mostly:?}"
    );
}

#[test]
fn pairs_taken_at_once_have_a_direction_of_their_own() {
    // At different times always 0 then 1, at one time either way.
    let rows = (0..40).map(|user| match user % 4 {
        0 => [(0, 5), (1, 5)],
        1 => [(1, 5), (0, 5)],
        _ => [(0, 0), (1, 1)],
    });
    let [forth, back] = pairs(rows);
    assert!((forth - 30.0).abs() < 1e-3 && (back - 10.0).abs() < 1e-3, "{forth} {back}");
}

fn scores(model: &dyn Recommender, history: &[u32]) -> Vec<f32> {
    let history: Vec<ItemIndex> = history.iter().copied().map(ItemIndex).collect();
    let mut scores = vec![0f32; model.num_items()];
    model.score_batch(&[History::new(&history)], &mut scores);
    scores
}

/// With an empty memory and the identity for a core, the predictor is $V V^T$ with lag weights: that of the SATF models, and of
/// PureSVD-N where all weights are one.
#[test]
fn the_projectors_of_the_other_models_are_special_cases() {
    let (items, rank) = (12, 5);
    let v = orthonormal(items, rank);
    let popularity = vec![3; items];
    for lag_weights in [vec![1.0; 4], vec![1.0, 0.7, 0.3, 0.2]] {
        let nothing = histories(items, &vec![vec![(0, 0)]; 3]);
        let memory = memory_of(&plain(1), &nothing);
        let space = ItemSpace::new(v.as_ref());
        let core = Some((&space, Mat::identity(rank, rank)));
        let trend = vec![1.0; items];
        let model = DSatf::new(
            1.0,
            LagWeights::ByLag(lag_weights.clone()),
            memory,
            &vec![0.0; items],
            core,
            &trend,
            &popularity,
        )
        .unwrap();
        let row = |item: usize, into: &mut [f64]| {
            into.iter_mut().enumerate().for_each(|(k, value)| *value = v[(item, k)]);
        };
        let projector =
            FoldIn::from_item_space(items, rank, row, None, LagWeights::ByLag(lag_weights.clone())).unwrap();
        // The core is scaled to unit size; the projector is not.
        let size = (rank as f64 / items as f64).sqrt();
        for history in [vec![2, 9, 4], vec![7], vec![]] {
            for (score, expected) in scores(&model, &history).iter().zip(scores(&projector, &history)) {
                assert!((f64::from(*score) * size - f64::from(expected)).abs() < 1e-5, "{score} {expected}");
            }
        }
    }
}

/// A log in which the next item follows from the newest one alone, and one in which it follows from the oldest.
fn chain(follows: impl Fn(&[u32], u32) -> u32) -> Histories {
    let sequences: Vec<Vec<(u32, i64)>> = (0..600u32)
        .map(|user| {
            let mut items = vec![user * 7 % 40];
            for step in 0..7 {
                let noise = (user * 31 + step * 17 + user * user) % 40;
                let next = follows(&items, noise);
                items.push(next);
            }
            let start = i64::from(user) * 10;
            items.into_iter().enumerate().map(|(at, item)| (item, start + at as i64)).collect()
        })
        .collect();
    histories(40, &sequences)
}

#[test]
fn recency_is_learned_from_the_log() {
    let config = DSatfConfig { balance: Some(0.0), max_len: 8, ..Default::default() };
    let fall = |log: &Histories| {
        let model = config.fit(log, &()).unwrap();
        let weights = model.lag_weights().unwrap().to_vec();
        weights[4] / weights[0]
    };
    let newest =
        fall(&chain(|items, noise| if noise % 4 == 0 { noise } else { (items[items.len() - 1] + 1) % 40 }));
    let oldest =
        fall(&chain(|items, noise| if noise % 2 == 0 { noise } else { (items[0] + noise % 5 + 1) % 40 }));
    assert!(newest < oldest, "{newest} {oldest}");
}

#[test]
fn a_key_that_is_given_is_kept() {
    let log = chain(|items, _| (items[items.len() - 1] + 1) % 40);
    let config = DSatfConfig { recency_decay: Some(3.0), balance: Some(0.0), ..Default::default() };
    let model = config.fit(&log, &()).unwrap();
    assert!((model.lag_weights().unwrap()[1] - 0.125).abs() < 1e-12);
}

/// A log of which the later half takes other items than the earlier one, a day between any two events.
fn changing_tastes(clock: Clock) -> Histories {
    let sequences: Vec<Vec<(u32, i64)>> = (0..400u32)
        .map(|user| {
            let first = if user < 200 { 0 } else { 20 };
            let item =
                |at: u32| (first + (user * 7 + at * (1 + user % 5)) % 22, i64::from(user * 8 + at) * DAY);
            (0..8).map(item).collect()
        })
        .collect();
    histories_by(clock, 42, &sequences)
}

#[test]
fn without_times_the_trend_is_off_and_said_to_be() {
    let config = |trend| DSatfConfig { trend, balance: Some(0.0), ..Default::default() };
    let learned = |clock: Clock, trend| {
        let model = config(trend).fit(&changing_tastes(clock), &()).unwrap();
        let found = model.learned().into_iter().find(|(key, _)| *key == "trend").map(|(_, value)| value);
        (found, scores(&*model, &[3, 17, 8]))
    };
    let off = learned(Clock::RowOrder, Some(0.0)).1;
    // Learned, it is 0. Given, it plays no part.
    assert_eq!(learned(Clock::RowOrder, None), (Some(0.0), off.clone()));
    assert_eq!(learned(Clock::RowOrder, Some(1.0)), (None, off.clone()));
    // The same events with times know what is new.
    assert_ne!(learned(Clock::Calendar, Some(1.0)).1, off);
    assert_eq!(learned(Clock::Calendar, Some(0.0)).1, off);
}

/// Scores a history with several variants of one training.
struct Variants(std::sync::Mutex<Vec<Vec<f32>>>, Vec<Table>);

impl crate::monitor::Monitor for Variants {}

impl TrainingMonitor for Variants {
    fn trained(&self, snapshot: &dyn Snapshot) {
        for variant in &self.1 {
            let model = snapshot.variant(variant).unwrap();
            self.0.lock().unwrap().push(scores(&*model, &[3, 17, 8]));
        }
    }
}

#[test]
fn one_training_serves_every_balance_and_ridge() {
    let log = chain(|items, noise| if noise % 3 == 0 { noise } else { (items[items.len() - 1] + 1) % 40 });
    let config = |balance, regularization| DSatfConfig {
        balance: Some(balance),
        regularization,
        rank: Some(8),
        ..Default::default()
    };
    let points = [(0.0, 0.1), (0.4, 0.1), (0.4, 5.0), (1.0, 0.1)];
    let variants = points.map(|(balance, regularization)| {
        format!("balance = {balance:?}\nregularization = {regularization:?}").parse().unwrap()
    });
    let monitor = Variants(Default::default(), variants.to_vec());
    config(0.2, 1.0).fit(&log, &monitor).unwrap();
    let served = monitor.0.into_inner().unwrap();
    for (served, (balance, regularization)) in served.iter().zip(points) {
        let trained = config(balance, regularization).fit(&log, &()).unwrap();
        assert_eq!(*served, scores(&*trained, &[3, 17, 8]), "{balance} {regularization}");
    }
    assert_ne!(served[1], served[2]);
}

#[test]
fn the_training_that_serves_all_has_both_parts() {
    let tables = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Table>>();
    let config = DSatfConfig { balance: Some(0.0), ..Default::default() };
    let to_train = |texts: &[&str]| config.variant_to_train(&tables(texts));
    assert_eq!(to_train(&["balance = 0.0", "balance = 0.25", "balance = 1.0"]).unwrap(), 1);
    assert_eq!(to_train(&["balance = 0.0", "regularization = 2.0"]).unwrap(), 0);
    assert!(to_train(&["balance = 0.0", "rank = 2"]).unwrap_err().to_string().contains("rank"));
    assert_eq!(config.variant_keys(), ["balance", "regularization"]);
}

#[test]
fn too_little_memory_is_said_before_anything_is_counted() {
    let log = chain(|items, _| (items[items.len() - 1] + 1) % 40);
    let config = DSatfConfig { memory_bytes: Some(1000), ..Default::default() };
    let Err(ModelError::Memory { needed, allowed: 1000, .. }) = config.check_on(&log) else {
        panic!("allowed")
    };
    DSatfConfig { memory_bytes: Some(needed), ..Default::default() }.check_on(&log).unwrap();
    let larger = DSatfConfig { memory_bytes: Some(needed), rank: Some(40), ..Default::default() };
    let alone = DSatfConfig { balance: Some(0.0), ..larger.clone() };
    assert!(alone.check_on(&log).is_ok());
    let with_more = DSatfConfig { memory_bytes: Some(1 << 40), ..larger };
    assert!(with_more.check_on(&log).is_ok());
}

#[test]
fn there_are_never_more_pairs_than_said() {
    let log = chain(|items, noise| if noise % 3 == 0 { noise } else { (items[0] + noise) % 40 });
    for window in [1, 3, 7, 50] {
        let memory = memory_of(&plain(window), &log);
        let pairs: usize = (0..40).map(|item| memory.row(ItemIndex(item)).0.len()).sum();
        assert!(pairs as u64 <= memory::num_occurrences(&log, window), "{pairs} pairs within {window}");
    }
    assert_eq!(memory::num_occurrences(&histories(9, &[vec![(0, 0), (1, 1), (2, 2), (3, 3)]]), 2), 10);
}

#[test]
fn all_faults_are_named_at_once() {
    let config = DSatfConfig {
        window: 0,
        max_len: 0,
        trend: Some(-1.0),
        balance: Some(1.5),
        regularization: 0.0,
        rank: Some(0),
        recency_decay: Some(f64::NAN),
        saturation: 1e-300,
        ..Default::default()
    };
    let message = config.check().unwrap_err().to_string();
    for fault in [
        "window = 0",
        "max_len = 0",
        "trend = -1",
        "balance = 1.5",
        "regularization = 0",
        "rank = 0",
        "recency_decay = NaN",
        "saturation = ",
    ] {
        assert!(message.contains(fault), "{fault}: {message}");
    }
}
