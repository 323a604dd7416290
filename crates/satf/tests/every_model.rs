//! What every model promises, whatever it computes: the same scores alone and in a batch, on one thread and on
//! many, today and tomorrow; finite numbers or a clear error on the oddest logs.
//!
//! A new model joins by one line in [`every_model`].

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;
use satf::factorize::Start;
use satf::interactions::ItemIndex;
use satf::models::{
    DSatfConfig, EaseConfig, GaSatfConfig, LaSatfConfig, Learner, ModelError, PopularityConfig,
    PositionDecay, Precision, RandomConfig, Recommender, TrainingMonitor, TransitionsConfig, UserData,
    VmisKnnConfig,
};
use satf::monitor::Monitor;
use satf::prepare::{Histories, History};

/// Whether scores depend on the order of the history scored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Read,
    Ignored,
}

struct Case {
    /// What a failed assertion calls it.
    label: &'static str,
    learner: Box<dyn Learner>,
    order: Order,
}

fn case(label: &'static str, learner: impl Learner + 'static, order: Order) -> Case {
    Case { label, learner: Box::new(learner), order }
}

/// Every model, some with more than one configuration.
fn every_model() -> Vec<Case> {
    vec![
        case("mp", PopularityConfig::default(), Order::Ignored),
        case("random", RandomConfig { seed: 11 }, Order::Ignored),
        case("d-satf", DSatfConfig::default(), Order::Read),
        case("d-satf, memory alone", DSatfConfig { balance: 0.0, ..Default::default() }, Order::Read),
        case(
            "d-satf, core alone",
            DSatfConfig { balance: 1.0, rank: Some(7), recency_decay: Some(1.0), ..Default::default() },
            Order::Read,
        ),
        case("ease", EaseConfig::default(), Order::Ignored),
        case("ease, weak", EaseConfig { regularization: 0.5, ..Default::default() }, Order::Ignored),
        case("ga-satf", GaSatfConfig::default(), Order::Read),
        case(
            "ga-satf, rescaled",
            GaSatfConfig {
                user_rank: Some(12),
                item_rank: Some(9),
                position_rank: 3,
                rescaled: true,
                ..Default::default()
            },
            Order::Read,
        ),
        case("la-satf", LaSatfConfig::default(), Order::Read),
        case(
            "la-satf, double",
            LaSatfConfig {
                user_rank: Some(12),
                item_rank: Some(9),
                attention_rank: 3,
                sequences_rank: 4,
                attention_window: 6,
                attention_decay: 1.0,
                precision: Precision::Double,
                start: Start::Random,
                max_len: 10,
                rescaled: true,
                ..Default::default()
            },
            Order::Read,
        ),
        case("vmis-knn", VmisKnnConfig::default(), Order::Read),
        case(
            "vmis-knn, few neighbours",
            VmisKnnConfig {
                neighbors: 3,
                sample_size: 7,
                max_items: 4,
                decay: PositionDecay::Linear,
                idf: false,
            },
            Order::Read,
        ),
        case("transitions", TransitionsConfig::default(), Order::Read),
        case(
            "transitions, both ways",
            TransitionsConfig { reverse: 0.5, window: 3, max_len: Some(4), ..Default::default() },
            Order::Read,
        ),
    ]
}

/// A log in which items follow their neighbours in the catalogue more often than not, repeats included.
fn generated_log(num_users: usize, num_items: u32, seed: u64) -> Histories {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sequences: Vec<Vec<u32>> = (0..num_users)
        .map(|_| {
            let mut item = rng.random_range(0..num_items);
            (0..rng.random_range(1..30))
                .map(|_| {
                    item = if rng.random_bool(0.7) {
                        (item + rng.random_range(0..4)) % num_items
                    } else {
                        rng.random_range(0..num_items)
                    };
                    item
                })
                .collect()
        })
        .collect();
    Histories::from_sequences(num_items as usize, &sequences)
}

/// Histories to score: an empty one, a single item, a long one with repeats, random ones.
fn queries(num_items: u32, count: usize, seed: u64) -> Vec<Vec<ItemIndex>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|at| {
            let len = match at {
                0 => 0,
                1 => 1,
                2 => 150,
                _ => rng.random_range(0..20),
            };
            (0..len).map(|_| ItemIndex(rng.random_range(0..num_items))).collect()
        })
        .collect()
}

/// Scores in batches of `size`, into a buffer that starts as garbage.
fn scores_in_batches(model: &dyn Recommender, histories: &[Vec<ItemIndex>], size: usize) -> Vec<f32> {
    let mut scores = vec![f32::NAN; histories.len() * model.num_items()];
    for (at, batch) in histories.chunks(size).enumerate() {
        let batch: Vec<History<'_>> = batch.iter().map(History::from).collect();
        let rows = &mut scores[at * size * model.num_items()..][..batch.len() * model.num_items()];
        model.score_batch(&batch, rows);
    }
    scores
}

fn scores(model: &dyn Recommender, histories: &[Vec<ItemIndex>]) -> Vec<f32> {
    scores_in_batches(model, histories, histories.len().max(1))
}

/// Bits, so that 0 and -0 differ and nothing is equal by tolerance.
fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

fn fit(case: &Case, histories: &Histories) -> Box<dyn Recommender> {
    match case.learner.fit(histories, &()) {
        Ok(model) => model,
        Err(error) => panic!("{}: {error}", case.label),
    }
}

#[test]
fn a_batch_gives_every_history_the_bits_it_gets_alone() {
    let log = generated_log(80, 60, 1);
    let queries = queries(60, 41, 2);
    for case in every_model() {
        let model = fit(&case, &log);
        let alone = bits(&scores_in_batches(&*model, &queries, 1));
        for size in [2, 3, 7, 16, 40, 41] {
            let batch = bits(&scores_in_batches(&*model, &queries, size));
            assert!(alone == batch, "{}: batches of {size} differ", case.label);
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    // More items than any model treats as one piece of work.
    let log = generated_log(300, 700, 3);
    let queries = queries(700, 60, 4);
    for case in every_model() {
        let of_threads: Vec<Vec<u32>> = [1, 2, 4]
            .into_iter()
            .map(|threads| {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| bits(&scores(&*fit(&case, &log), &queries)))
            })
            .collect();
        assert!(of_threads[0] == of_threads[1], "{}: 2 threads differ from 1", case.label);
        assert!(of_threads[0] == of_threads[2], "{}: 4 threads differ from 1", case.label);
    }
}

#[test]
fn the_same_fit_twice_gives_the_same_bits() {
    let log = generated_log(120, 300, 5);
    let queries = queries(300, 30, 6);
    for case in every_model() {
        let once = bits(&scores(&*fit(&case, &log), &queries));
        let twice = bits(&scores(&*fit(&case, &log), &queries));
        assert!(once == twice, "{}: two fits differ", case.label);
    }
}

#[test]
fn order_counts_for_the_models_that_read_it_and_for_no_other() {
    let log = generated_log(80, 40, 7);
    let forwards: Vec<ItemIndex> = [3, 17, 8, 30, 21, 9].map(ItemIndex).to_vec();
    let backwards: Vec<ItemIndex> = forwards.iter().rev().copied().collect();
    for case in every_model() {
        let model = fit(&case, &log);
        let same = bits(&scores(&*model, std::slice::from_ref(&forwards)))
            == bits(&scores(&*model, std::slice::from_ref(&backwards)));
        assert_eq!(same, case.order == Order::Ignored, "{}", case.label);
    }
}

#[test]
fn odd_logs_fit_or_give_a_clear_error() {
    let logs: Vec<(&str, usize, Vec<Vec<u32>>)> = vec![
        ("one user", 4, vec![vec![2, 0, 3, 1]]),
        ("one item", 1, vec![vec![0], vec![0], vec![0]]),
        ("one row", 1, vec![vec![0]]),
        ("one user, one item again and again", 1, vec![vec![0; 20]]),
        ("the same history for all", 5, vec![vec![4, 1, 3, 0, 2]; 12]),
        ("histories of length 1", 6, (0..18).map(|user| vec![user % 6]).collect()),
        ("an item of one user only", 4, vec![vec![0, 1], vec![1, 0, 1], vec![0, 3, 1], vec![2]]),
        ("repeats of one item", 3, vec![vec![0, 0, 0, 1], vec![2, 2, 2], vec![1, 1, 0]]),
        ("users without rows", 3, vec![vec![], vec![0, 1, 2], vec![]]),
        ("items without rows", 9, vec![vec![0, 8], vec![8, 4]]),
        ("no rows", 3, vec![vec![], vec![]]),
        ("no users", 3, vec![]),
        ("nothing at all", 0, vec![]),
    ];
    for (what, num_items, sequences) in logs {
        let log = Histories::from_sequences(num_items, &sequences);
        let mut queries = vec![Vec::new()];
        if num_items > 0 {
            queries.push(vec![ItemIndex(0)]);
            queries.push(vec![ItemIndex(num_items as u32 - 1); 5]);
            queries.push((0..num_items as u32).map(ItemIndex).collect());
        }
        for case in every_model() {
            match case.learner.fit(&log, &()) {
                Ok(model) => {
                    assert_eq!(model.num_items(), num_items, "{} on {what}", case.label);
                    let scores = scores(&*model, &queries);
                    assert!(scores.iter().all(|score| score.is_finite()), "{} on {what}", case.label);
                }
                Err(error) => {
                    let message = error.to_string();
                    assert!(message.contains(case.learner.name()), "{} on {what}: {message}", case.label);
                }
            }
        }
    }
}

#[test]
fn every_model_says_what_it_holds_of_users() {
    let log = generated_log(33, 40, 10);
    for case in every_model() {
        let model = fit(&case, &log);
        let holds_histories = case.learner.name() == "vmis-knn";
        let expected = if holds_histories { UserData::Histories { histories: 33 } } else { UserData::None };
        assert_eq!(model.user_data(), expected, "{}", case.label);
        // What is kept of every user shows in the shape of an array; sums have those of items and ranks.
        let tensors = model.tensors();
        let per_user = tensors.iter().any(|tensor| tensor.shape == [34] || tensor.shape.first() == Some(&33));
        assert_eq!(per_user, holds_histories, "{}", case.label);
    }
}

#[test]
fn an_item_outside_the_catalogue_is_refused() {
    let log = generated_log(20, 10, 8);
    for case in every_model() {
        let model = fit(&case, &log);
        let attempt = std::panic::AssertUnwindSafe(|| {
            model.score_batch(&[History::new(&[ItemIndex(10)])], &mut [0.0; 10]);
        });
        assert!(std::panic::catch_unwind(attempt).is_err(), "{}: item 10 of 10 was scored", case.label);
    }
}

#[test]
fn a_fit_stops_on_request() {
    struct Impatient;
    impl Monitor for Impatient {
        fn is_cancelled(&self) -> bool {
            true
        }
    }
    impl TrainingMonitor for Impatient {}
    let log = generated_log(20, 10, 9);
    for case in every_model() {
        // Models that have nothing to wait for may finish.
        match case.learner.fit(&log, &Impatient) {
            Ok(_) | Err(ModelError::Cancelled(_)) => {}
            Err(error) => panic!("{}: {error}", case.label),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_log_gives_finite_scores_that_do_not_depend_on_the_batch(
        sequences in prop::collection::vec(prop::collection::vec(0u32..12, 0..15), 1..20),
        histories in prop::collection::vec(prop::collection::vec(0u32..12, 0..15), 1..9),
        size in 1usize..9,
    ) {
        let log = Histories::from_sequences(12, &sequences);
        let histories: Vec<Vec<ItemIndex>> =
            histories.into_iter().map(|items| items.into_iter().map(ItemIndex).collect()).collect();
        for case in every_model() {
            let model = match case.learner.fit(&log, &()) {
                Ok(model) => model,
                Err(error) => {
                    prop_assert!(error.to_string().contains(case.learner.name()), "{error}");
                    continue;
                }
            };
            let alone = scores_in_batches(&*model, &histories, 1);
            prop_assert!(alone.iter().all(|score| score.is_finite()), "{}", case.label);
            let batch = scores_in_batches(&*model, &histories, size);
            prop_assert!(bits(&alone) == bits(&batch), "{}: batches of {size} differ", case.label);
            if case.order == Order::Ignored {
                let reversed: Vec<Vec<ItemIndex>> =
                    histories.iter().map(|items| items.iter().rev().copied().collect()).collect();
                let reversed = scores(&*model, &reversed);
                prop_assert!(bits(&alone) == bits(&reversed), "{} reads the order", case.label);
            }
        }
    }
}
