//! One recommendation of D-SATF without a core, on one core of the machine: by the items that the rows of a history name, and by a pass over the whole
//! catalogue, for catalogues of 10,000, 100,000 and 1,000,000 items and histories of 10.
//!
//! `cargo bench -p satf --bench touched`. Rows are as long for every catalogue, so `by_touched_items` should not grow with it.
//! Items are equally popular in the first three cases; in the last, popular ones have long rows and are asked for more often.

use std::sync::LazyLock;

use divan::{Bencher, black_box};
use rayon::ThreadPoolBuilder;
use satf::generate::{ShapeOptions, like};
use satf::models::{Configured, DSatfConfig, Workspace};
use satf::prepare::{TiePolicy, Timeline};
use satf::ranking::rank_unseen;
use satf::{Histories, History, ItemIndex, Model, Request};

/// Items of a history, and of a list.
const LEN: usize = 10;
/// Histories that take turns.
const HISTORIES: usize = 2000;

fn main() {
    ThreadPoolBuilder::new().num_threads(1).build_global().expect("no pool yet");
    divan::main();
}

/// A model and the histories that it is asked for.
struct Case {
    model: Model,
    queries: Vec<Vec<ItemIndex>>,
}

static EVEN_10_000: LazyLock<Case> = LazyLock::new(|| Case::new(&even(10_000)));
static EVEN_100_000: LazyLock<Case> = LazyLock::new(|| Case::new(&even(100_000)));
static EVEN_1_000_000: LazyLock<Case> = LazyLock::new(|| Case::new(&even(1_000_000)));
static SKEWED_1_000_000: LazyLock<Case> = LazyLock::new(|| Case::new(&skewed(1_000_000)));

const CASES: [&str; 4] =
    ["10000_items_even", "100000_items_even", "1000000_items_even", "1000000_items_skewed"];

fn case(name: &str) -> &'static Case {
    match name {
        "10000_items_even" => &EVEN_10_000,
        "100000_items_even" => &EVEN_100_000,
        "1000000_items_even" => &EVEN_1_000_000,
        _ => &SKEWED_1_000_000,
    }
}

#[divan::bench(args = CASES)]
fn by_touched_items(bencher: Bencher, name: &str) {
    let Case { model, queries } = case(name);
    let prepared = model.prepare(&Request::new(LEN)).expect("a request without ids");
    let (mut workspace, mut queries) = (Workspace::new(), queries.iter().cycle());
    bencher.bench_local(|| {
        let query = queries.next().expect("they go round");
        prepared.answer(black_box(query), &mut workspace)
    });
}

#[divan::bench(args = CASES)]
fn by_whole_catalogue(bencher: Bencher, name: &str) {
    let Case { model, queries } = case(name);
    let mut scores = vec![0f32; model.num_items()];
    let mut queries = queries.iter().cycle();
    bencher.bench_local(|| {
        let query = queries.next().expect("they go round");
        model.recommender().score_batch(&[History::new(black_box(query))], &mut scores);
        rank_unseen(&mut scores, query, LEN)
    });
}

impl Case {
    fn new(histories: &Histories) -> Self {
        // No core, and nothing is left to be learned by rehearsal.
        let keys = DSatfConfig {
            balance: Some(0.0),
            distance_decay: Some(0.5),
            together: Some(1.0),
            target_power: Some(0.3),
            recency_decay: Some(1.0),
            basket_order: Some(1.0),
            trend: Some(0.0),
            ..DSatfConfig::default()
        };
        let configured = Configured::new(keys).expect("valid keys");
        let model = Model::train(&configured, histories, &()).expect("a log to learn from");
        // Items of all events: popular ones as often as they are popular.
        let items: Vec<ItemIndex> = histories.iter().flatten().copied().collect();
        let stride = items.len() / (HISTORIES * LEN);
        let query = |at: usize| (0..LEN).map(|k| items[(at * LEN + k) * stride]).collect();
        Case { model, queries: (0..HISTORIES).map(query).collect() }
    }
}

/// Histories of ten items that are equally likely: five events per item, and some twenty others within reach of each.
fn even(items: usize) -> Histories {
    let drawn = |place: usize| {
        let mixed = (place as u32 ^ place as u32 >> 15).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ mixed >> 12).wrapping_mul(0x297a_2d39) % items as u32
    };
    let sequence = |user: usize| -> Vec<u32> { (0..LEN).map(|at| drawn(user * LEN + at)).collect() };
    Histories::from_sequences(items, &(0..items / 2).map(sequence).collect::<Vec<_>>())
}

/// The same number of events, with items as popular as in real logs.
fn skewed(items: usize) -> Histories {
    let shape = ShapeOptions { users: items / 2, items, rows: 5 * items, ..ShapeOptions::default() };
    Timeline::new(&like(&shape).expect("a possible shape"), TiePolicy::File, 0).histories()
}
