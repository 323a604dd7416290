//! Recommendations per second with LA-SATF at the paper's ranks on a log of Beauty's shape (12,101 items, rank 600, ten items per list):
//! the batch path of `Prepared::rank_batch`, and scoring event by event. Both give the same lists.
//!
//! `cargo bench -p satf --bench recommend`. The real log is read from `../shared/data` if it is there, else one of the same shape is
//! generated. The rate of dense products at the beginning is printed first: the batch path is bound by it.

// A benchmark talks to the terminal.
#![allow(clippy::print_stderr)]

use std::path::Path;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use satf::data::{ReadOptions, read_log};
use satf::generate::{ShapeOptions, like};
use satf::linalg::gemm_rate;
use satf::models::{Configured, LaSatfConfig};
use satf::prepare::{TiePolicy, Timeline};
use satf::ranking::rank_unseen;
use satf::recommend::Filters;
use satf::{Histories, History, ItemIndex, Model};

/// Items per list.
const N: usize = 10;

static HISTORIES: LazyLock<Histories> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/amz-beauty.csv.gz");
    let log = if path.exists() {
        read_log(&[path], &ReadOptions::default(), &()).expect("the file can be read").0
    } else {
        let shape = ShapeOptions { users: 22_363, items: 12_101, rows: 198_502, ..ShapeOptions::default() };
        like(&shape).expect("a possible shape")
    };
    Timeline::new(&log, TiePolicy::File, 0).histories()
});

/// One iteration: the factors' values do not matter here, their size does.
static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let config =
        LaSatfConfig { item_rank: Some(600), user_rank: Some(700), num_iters: 1, ..LaSatfConfig::default() };
    let configured = Configured::new(config).expect("a valid configuration");
    Model::train(&configured, &HISTORIES, &()).expect("a log to learn from")
});

fn main() {
    eprintln!("dense products: {:.0} GFLOP/s", gemm_rate().single);
    divan::main();
}

fn queries(count: usize) -> Vec<&'static [ItemIndex]> {
    HISTORIES.iter().cycle().take(count).collect()
}

#[divan::bench(args = [1024, 8192], sample_count = 5, sample_size = 1)]
fn batch_of_histories(bencher: Bencher, histories: usize) {
    let queries = queries(histories);
    let prepared = MODEL.prepare_filters(N, &Filters::default()).expect("no filters");
    bencher.counter(ItemsCount::new(histories)).bench_local(|| prepared.rank_batch(&queries));
}

#[divan::bench(args = [200], sample_count = 5, sample_size = 1)]
fn event_by_event(bencher: Bencher, histories: usize) {
    let queries = queries(histories);
    let mut scores = vec![0f32; MODEL.num_items()];
    let mut one_by_one = || -> Vec<_> {
        let mut list = |query: &&[ItemIndex]| {
            MODEL.recommender().score_batch(&[History::new(query)], &mut scores);
            rank_unseen(&mut scores, query, N)
        };
        queries.iter().map(&mut list).collect()
    };
    let prepared = MODEL.prepare_filters(N, &Filters::default()).expect("no filters");
    assert_eq!(one_by_one(), prepared.rank_batch(&queries).expect("items of the catalogue"), "as in a batch");
    bencher.counter(ItemsCount::new(histories)).bench_local(one_by_one);
}
