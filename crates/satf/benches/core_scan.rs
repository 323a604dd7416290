//! One recommendation of D-SATF with a core, on one core of the machine: by a scan in eight bits with bounds, and by the product with all item
//! factors, for catalogues of 20,000, 50,000 and 200,000 items and histories of 10.
//!
//! `cargo bench -p satf --bench core_scan`. Both give the same lists to the bit, which is checked before anything is timed.

use std::sync::LazyLock;

use divan::{Bencher, black_box};
use rayon::ThreadPoolBuilder;
use satf::generate::{ShapeOptions, like};
use satf::models::{Configured, DSatfConfig, Workspace};
use satf::prepare::{TiePolicy, Timeline};
use satf::ranking::rank_unseen;
use satf::{ItemIndex, Model, Request};

/// Items of a history, and of a list.
const LEN: usize = 10;
/// Histories that take turns.
const HISTORIES: usize = 500;

const SIZES: [usize; 3] = [20_000, 50_000, 200_000];

static CASES: [LazyLock<Case>; 3] = [
    LazyLock::new(|| Case::new(SIZES[0])),
    LazyLock::new(|| Case::new(SIZES[1])),
    LazyLock::new(|| Case::new(SIZES[2])),
];

fn main() {
    ThreadPoolBuilder::new().num_threads(2).build_global().expect("no pool yet");
    divan::main();
}

/// A model and the histories that it is asked for.
struct Case {
    model: Model,
    queries: Vec<Vec<ItemIndex>>,
}

fn case(items: usize) -> &'static Case {
    let at = SIZES.iter().position(|&size| size == items).expect("one of the sizes");
    &CASES[at]
}

#[divan::bench(args = SIZES)]
fn by_bounded_scan(bencher: Bencher, items: usize) {
    let Case { model, queries } = case(items);
    let prepared = model.prepare(&Request::new(LEN)).expect("a request without ids");
    let (mut workspace, mut queries) = (Workspace::new(), queries.iter().cycle());
    bencher.bench_local(|| {
        let query = queries.next().expect("they go round");
        prepared.answer(black_box(query), &mut workspace)
    });
}

#[divan::bench(args = SIZES)]
fn by_all_item_factors(bencher: Bencher, items: usize) {
    let Case { model, queries } = case(items);
    let (mut workspace, mut queries) = (Workspace::new(), queries.iter().cycle());
    bencher.bench_local(|| {
        let query = queries.next().expect("they go round");
        let satf::models::Scores::Dense(scores) =
            model.recommender().score_one(black_box(query).into(), &mut workspace)
        else {
            unreachable!("a core scores every item")
        };
        rank_unseen(scores, query, LEN)
    });
}

#[divan::bench(args = SIZES)]
fn a_batch_of_64_by_all_item_factors(bencher: Bencher, items: usize) {
    let Case { model, queries } = case(items);
    let prepared = model.prepare(&Request::new(LEN)).expect("a request without ids");
    let mut batches = queries.chunks_exact(64).cycle();
    bencher.bench_local(|| prepared.answer_batch(black_box(batches.next().expect("they go round"))));
}

impl Case {
    fn new(items: usize) -> Self {
        let shape = ShapeOptions { users: items, items, rows: 10 * items, ..ShapeOptions::default() };
        let log = like(&shape).expect("a possible shape");
        let histories = Timeline::new(&log, TiePolicy::File, 0).histories();
        // Nothing is left to be learned by rehearsal.
        let keys = DSatfConfig {
            distance_decay: Some(0.5),
            together: Some(1.0),
            target_power: Some(0.3),
            recency_decay: Some(1.0),
            basket_order: Some(1.0),
            trend: Some(0.5),
            balance: Some(0.25),
            window: 10,
            ..DSatfConfig::default()
        };
        let configured = Configured::new(keys).expect("valid keys");
        let model = Model::train(&configured, &histories, &()).expect("a log to learn from");
        // Every so many-th user's newest items.
        let users = histories.iter().filter(|history| history.len() >= LEN);
        let newest = |history: &[ItemIndex]| history[history.len() - LEN..].to_vec();
        let queries: Vec<Vec<ItemIndex>> =
            users.step_by(items / 5 / HISTORIES).take(HISTORIES).map(newest).collect();

        model.recommender().make_ready();
        let prepared = model.prepare(&Request::new(LEN)).expect("a request without ids");
        let together = prepared.answer_batch(&queries).expect("finite scores");
        let mut workspace = Workspace::new();
        let mut found = 0;
        for (query, expected) in queries.iter().zip(&together) {
            let alone = prepared.answer(query, &mut workspace).expect("finite scores");
            assert_eq!(&alone, expected, "the same list to the bit");
            let is_found = |_| true;
            found += usize::from(
                model.recommender().best_one(query.into(), LEN, &is_found, &mut workspace).is_some(),
            );
        }
        assert!(
            2 * found >= queries.len(),
            "{found} of {} histories were answered by the scan",
            queries.len()
        );
        Case { model, queries }
    }
}
