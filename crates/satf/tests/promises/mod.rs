//! What every model promises, whatever it computes: the same scores alone and in a batch, on one thread and on many, today and
//! tomorrow; finite numbers or a clear error on the oddest logs.
//!
//! [`promised_by!`] makes a test of each promise, for any list of cases. A model of another crate is held to the same promises by
//! the same line.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;
use satf::interactions::{History, ItemIndex};
use satf::models::{
    Iteration, Learner, ModelEntry, ModelError, Recommender, Scores, Snapshot, Table, TrainingMonitor,
    UserData, Workspace,
};
use satf::monitor::Monitor;
use satf::prepare::Histories;

/// A model with a configuration, and what it is known to do.
pub(crate) struct Case {
    /// What a failed assertion calls it.
    label: String,
    learner: Box<dyn Learner>,
    /// Whether scores depend on the order of the history scored.
    reads_order: bool,
    /// Whether it holds whole histories of single users.
    holds_histories: bool,
    /// The keys that play no part in its training, as it is configured.
    as_configured: Table,
}

impl Case {
    /// A model with these settings over its defaults, which reads the order of histories and holds nothing but sums over users.
    pub(crate) fn new(entry: &ModelEntry, settings: &str) -> Self {
        let configured = entry.configure(&settings.parse().unwrap()).unwrap();
        let value = |key: &String| toml::Value::try_from(&configured.configuration[key]).ok();
        let keys = configured.learner.variant_keys();
        let as_configured = keys.into_iter().filter_map(|key| Some((value(&key)?, key)));
        let as_configured = as_configured.map(|(value, key)| (key, value)).collect();
        let label = format!("{} {settings:?}", entry.name);
        Case { label, learner: configured.learner, reads_order: true, holds_histories: false, as_configured }
    }

    /// The same, whose scores depend on the order of a history or do not.
    #[allow(dead_code)] // Not every list of cases has both.
    pub(crate) fn reading_order(self, reads_order: bool) -> Self {
        Case { reads_order, ..self }
    }

    /// The same, which holds whole histories or does not.
    #[allow(dead_code)]
    pub(crate) fn holding_histories(self, holds_histories: bool) -> Self {
        Case { holds_histories, ..self }
    }
}

/// A test of every promise, for the cases that an expression makes.
macro_rules! promised_by {
    ($cases:expr) => {
        promises::promised_by! { $cases =>
            a_batch_gives_every_history_the_bits_it_gets_alone,
            one_history_at_a_time_gives_the_bits_of_a_batch,
            the_number_of_threads_does_not_change_a_bit,
            the_same_fit_twice_gives_the_same_bits,
            order_counts_for_the_models_that_read_it_and_for_no_other,
            odd_logs_fit_or_give_a_clear_error,
            a_model_says_what_it_holds_of_users,
            an_item_outside_the_catalogue_is_refused,
            a_fit_stops_on_request,
            keys_that_play_no_part_in_training_are_its_own,
            any_log_gives_finite_scores_that_do_not_depend_on_the_batch,
        }
    };
    ($cases:expr => $($promise:ident,)*) => {
        $(
            #[test]
            fn $promise() {
                promises::$promise(&$cases);
            }
        )*
    };
}

pub(crate) use promised_by;

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

pub(crate) fn a_batch_gives_every_history_the_bits_it_gets_alone(cases: &[Case]) {
    let log = generated_log(80, 60, 1);
    let queries = queries(60, 41, 2);
    for case in cases {
        let model = fit(case, &log);
        let alone = bits(&scores_in_batches(&*model, &queries, 1));
        for size in [2, 3, 7, 16, 40, 41] {
            let batch = bits(&scores_in_batches(&*model, &queries, size));
            assert!(alone == batch, "{}: batches of {size} differ", case.label);
        }
    }
}

pub(crate) fn one_history_at_a_time_gives_the_bits_of_a_batch(cases: &[Case]) {
    // One workspace for all models and catalogues: what a history leaves behind would show in the next.
    let mut workspace = Workspace::new();
    for (num_users, num_items) in [(80, 60), (150, 1100), (80, 60)] {
        let log = generated_log(num_users, num_items, 12);
        let queries = queries(num_items, 30, 13);
        for case in cases {
            let model = fit(case, &log);
            let batch = scores(&*model, &queries);
            for (query, expected) in queries.iter().zip(batch.chunks(num_items as usize)) {
                let alone = model.score_one(query.into(), &mut workspace);
                assert_eq!(matches!(alone, Scores::Sparse(_)), model.is_sparse(), "{}", case.label);
                let mut row = vec![f32::NAN; num_items as usize];
                alone.write_to(&mut row);
                assert!(bits(&row) == bits(expected), "{}: alone differs", case.label);
            }
        }
    }
}

pub(crate) fn the_number_of_threads_does_not_change_a_bit(cases: &[Case]) {
    // More items than any model treats as one piece of work.
    let log = generated_log(300, 700, 3);
    let queries = queries(700, 60, 4);
    for case in cases {
        let of_threads: Vec<Vec<u32>> = [1, 2, 4]
            .into_iter()
            .map(|threads| {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| bits(&scores(&*fit(case, &log), &queries)))
            })
            .collect();
        assert!(of_threads[0] == of_threads[1], "{}: 2 threads differ from 1", case.label);
        assert!(of_threads[0] == of_threads[2], "{}: 4 threads differ from 1", case.label);
    }
}

pub(crate) fn the_same_fit_twice_gives_the_same_bits(cases: &[Case]) {
    let log = generated_log(120, 300, 5);
    let queries = queries(300, 30, 6);
    for case in cases {
        let once = bits(&scores(&*fit(case, &log), &queries));
        let twice = bits(&scores(&*fit(case, &log), &queries));
        assert!(once == twice, "{}: two fits differ", case.label);
    }
}

pub(crate) fn order_counts_for_the_models_that_read_it_and_for_no_other(cases: &[Case]) {
    let log = generated_log(80, 40, 7);
    let forwards: Vec<ItemIndex> = [3, 17, 8, 30, 21, 9].map(ItemIndex).to_vec();
    let backwards: Vec<ItemIndex> = forwards.iter().rev().copied().collect();
    for case in cases {
        let model = fit(case, &log);
        let same = bits(&scores(&*model, std::slice::from_ref(&forwards)))
            == bits(&scores(&*model, std::slice::from_ref(&backwards)));
        assert_eq!(same, !case.reads_order, "{}", case.label);
    }
}

pub(crate) fn odd_logs_fit_or_give_a_clear_error(cases: &[Case]) {
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
        for case in cases {
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

pub(crate) fn a_model_says_what_it_holds_of_users(cases: &[Case]) {
    let log = generated_log(33, 40, 10);
    for case in cases {
        let model = fit(case, &log);
        let expected =
            if case.holds_histories { UserData::Histories { histories: 33 } } else { UserData::None };
        assert_eq!(model.user_data(), expected, "{}", case.label);
        // What is kept of every user shows in the shape of an array; sums have those of items and ranks.
        let tensors = model.tensors();
        let per_user = tensors.iter().any(|tensor| tensor.shape == [34] || tensor.shape.first() == Some(&33));
        assert_eq!(per_user, case.holds_histories, "{}", case.label);
    }
}

pub(crate) fn an_item_outside_the_catalogue_is_refused(cases: &[Case]) {
    let log = generated_log(20, 10, 8);
    for case in cases {
        let model = fit(case, &log);
        let attempt = std::panic::AssertUnwindSafe(|| {
            model.score_batch(&[History::new(&[ItemIndex(10)])], &mut [0.0; 10]);
        });
        assert!(std::panic::catch_unwind(attempt).is_err(), "{}: item 10 of 10 was scored", case.label);
        let attempt = std::panic::AssertUnwindSafe(|| {
            model.score_one(History::new(&[ItemIndex(10)]), &mut Workspace::new());
        });
        assert!(std::panic::catch_unwind(attempt).is_err(), "{}: item 10 of 10 was scored alone", case.label);
    }
}

pub(crate) fn a_fit_stops_on_request(cases: &[Case]) {
    struct Impatient;
    impl Monitor for Impatient {
        fn is_cancelled(&self) -> bool {
            true
        }
    }
    impl TrainingMonitor for Impatient {}
    let log = generated_log(20, 10, 9);
    for case in cases {
        // Models that have nothing to wait for may finish.
        match case.learner.fit(&log, &Impatient) {
            Ok(_) | Err(ModelError::Cancelled(_)) => {}
            Err(error) => panic!("{}: {error}", case.label),
        }
    }
}

pub(crate) fn keys_that_play_no_part_in_training_are_its_own(cases: &[Case]) {
    /// Asks every snapshot for variants, and counts the snapshots.
    struct Asks<'a>(&'a Case, AtomicUsize);
    impl Asks<'_> {
        fn ask(&self, snapshot: &dyn Snapshot) {
            let Asks(Case { label, learner, as_configured, .. }, asked) = self;
            asked.fetch_add(1, Ordering::Relaxed);
            let unknown = snapshot.variant(&"no_such_key = 1".parse().unwrap());
            assert!(
                matches!(unknown, Err(ModelError::Variant { .. })),
                "{label}: a key that it does not have"
            );
            for key in learner.variant_keys() {
                let wrong = format!("{key} = 'of no such type'").parse().unwrap();
                assert!(
                    matches!(snapshot.variant(&wrong), Err(ModelError::Variant { .. })),
                    "{label}: {key}"
                );
            }
            let (plain, same) = (snapshot.recommender().unwrap(), snapshot.variant(as_configured).unwrap());
            let queries = queries(30, 9, 12);
            assert!(bits(&scores(&*plain, &queries)) == bits(&scores(&*same, &queries)), "{label}");
        }
    }
    impl Monitor for Asks<'_> {}
    impl TrainingMonitor for Asks<'_> {
        fn iteration(&self, _: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
            self.ask(snapshot);
            ControlFlow::Continue(())
        }

        fn trained(&self, snapshot: &dyn Snapshot) {
            self.ask(snapshot);
        }
    }
    let log = generated_log(40, 30, 11);
    for case in cases {
        let asks = Asks(case, AtomicUsize::new(0));
        case.learner.fit(&log, &asks).unwrap();
        let needs_to = !case.learner.variant_keys().is_empty() || case.learner.iterations_key().is_some();
        assert!(asks.1.into_inner() > 0 || !needs_to, "{}: no snapshot was shown", case.label);
    }
}

pub(crate) fn any_log_gives_finite_scores_that_do_not_depend_on_the_batch(cases: &[Case]) {
    let lists = |count| prop::collection::vec(prop::collection::vec(0u32..12, 0..15), 1..count);
    proptest!(ProptestConfig::with_cases(64), |(sequences in lists(20), histories in lists(9), size in 1usize..9)| {
        let log = Histories::from_sequences(12, &sequences);
        let histories: Vec<Vec<ItemIndex>> =
            histories.into_iter().map(|items| items.into_iter().map(ItemIndex).collect()).collect();
        for case in cases {
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
            if !case.reads_order {
                let reversed: Vec<Vec<ItemIndex>> =
                    histories.iter().map(|items| items.iter().rev().copied().collect()).collect();
                let reversed = scores(&*model, &reversed);
                prop_assert!(bits(&alone) == bits(&reversed), "{} reads the order", case.label);
            }
        }
    });
}
