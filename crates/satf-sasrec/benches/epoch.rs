//! One epoch of SASRec on a generated log, 64 wide with two blocks, by loss and by the number of items: the full softmax (`ce`) grows with
//! the catalogue, the published loss (`bce`) does not. D-SATF, trained whole on the same log, stands beside them.
//!
//! `cargo bench -p satf-sasrec --bench epoch`. On real logs, with the share of time in products, the same is reported by
//! `cargo run --release -p satf-results --bin sasrec_speed`.

use divan::Bencher;
use satf::Histories;
use satf::generate::{ShapeOptions, like};
use satf::prepare::{TiePolicy, Timeline};

/// 5,000 users with nine events each, and so many items.
const ITEMS: [usize; 2] = [1000, 4000];

fn main() {
    divan::main();
}

fn log(items: usize) -> Histories {
    let shape = ShapeOptions { users: 5000, items, rows: 45_000, seed: 1 };
    Timeline::new(&like(&shape).expect("a possible shape"), TiePolicy::File, 0).histories()
}

fn time(bencher: Bencher, items: usize, model: &str, keys: &str) {
    let histories = log(items);
    let registry = satf_sasrec::registry();
    let settings = keys.parse().expect("keys as TOML");
    let configured = registry.find(model).and_then(|entry| entry.configure(&settings)).expect("valid keys");
    bencher.bench_local(|| configured.learner.fit(&histories, &()).map(drop));
}

#[divan::bench(args = ITEMS, sample_count = 3, sample_size = 1)]
fn ce_epoch_5000_users_with_items(bencher: Bencher, items: usize) {
    time(bencher, items, "sasrec", "loss = 'ce'\nhidden = 64\nblocks = 2\nepochs = 1");
}

#[divan::bench(args = ITEMS, sample_count = 3, sample_size = 1)]
fn bce_epoch_5000_users_with_items(bencher: Bencher, items: usize) {
    time(bencher, items, "sasrec", "loss = 'bce'\nhidden = 64\nblocks = 2\nepochs = 1");
}

#[divan::bench(args = ITEMS, sample_count = 3, sample_size = 1)]
fn d_satf_whole_5000_users_with_items(bencher: Bencher, items: usize) {
    time(bencher, items, "d-satf", "");
}
