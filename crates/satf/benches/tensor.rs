//! One iteration of LA-SATF on generated logs of Beauty's shape: by users (items and ranks stay the same), by rank, and in single against
//! double precision.
//!
//! `cargo bench -p satf --bench tensor`. Mode by mode, on real logs and against the plan, the same is reported by
//! `cargo run --release -p satf-results --bin tensor_speed`.

use divan::Bencher;
use satf::Histories;
use satf::generate::{ShapeOptions, like};
use satf::models::{LaSatfConfig, Learner, Precision};
use satf::prepare::{TiePolicy, Timeline};

fn main() {
    divan::main();
}

/// So many users with 12,101 items and nine events per user.
fn log(users: usize) -> Histories {
    let shape = ShapeOptions { users, items: 12_101, rows: 9 * users, seed: 1 };
    Timeline::new(&like(&shape).expect("a possible shape"), TiePolicy::File, 0).histories()
}

fn time(bencher: Bencher, users: usize, rank: usize, precision: Precision) {
    let histories = log(users);
    let config = LaSatfConfig {
        user_rank: Some(rank),
        item_rank: Some(rank),
        num_iters: 1,
        precision,
        ..LaSatfConfig::default()
    };
    bencher.bench_local(|| config.fit(&histories, &()).map(drop));
}

#[divan::bench(args = [22_363, 44_726], sample_count = 3, sample_size = 1)]
fn rank_300_with_users(bencher: Bencher, users: usize) {
    time(bencher, users, 300, Precision::Single);
}

#[divan::bench(args = [100, 200, 400], sample_count = 3, sample_size = 1)]
fn single_precision_22363_users_at_rank(bencher: Bencher, rank: usize) {
    time(bencher, 22_363, rank, Precision::Single);
}

#[divan::bench(args = [100, 200, 400], sample_count = 3, sample_size = 1)]
fn double_precision_22363_users_at_rank(bencher: Bencher, rank: usize) {
    time(bencher, 22_363, rank, Precision::Double);
}
