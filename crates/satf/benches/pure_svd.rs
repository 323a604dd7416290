//! PureSVD-N at the paper's configuration on Amazon Beauty (22,363 users, 12,101 items, 198,502 rows): training and evaluation at rank 2000
//! with scaling .6, and at rank 800 with scaling 1.
//!
//! `cargo bench -p satf --bench pure_svd`. The real log is read from `../shared/data` if it is there, else one of the same shape is
//! generated. The rate of dense products at the beginning is printed first; `pure_svd_scipy.py` times the same SVD with scipy.

// A benchmark talks to the terminal.
#![allow(clippy::print_stderr)]

use std::path::Path;
use std::sync::LazyLock;

use divan::Bencher;
use satf::data::{ReadOptions, read_log};
use satf::evaluate::{EvaluateOptions, evaluate};
use satf::generate::{ShapeOptions, like};
use satf::linalg::gemm_rate;
use satf::models::{Learner, PureSvdConfig};
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};

static PARTITION: LazyLock<Partition> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/amz-beauty.csv.gz");
    let log = if path.exists() {
        read_log(&[path], &ReadOptions::default(), &()).expect("the file can be read").0
    } else {
        let shape = ShapeOptions { users: 22_363, items: 12_101, rows: 198_502, ..ShapeOptions::default() };
        like(&shape).expect("a possible shape")
    };
    let weeks = "3weeks".parse().expect("an offset");
    let scheme = SplitScheme::Calendar { valid: weeks, test: weeks };
    let split = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).expect("a log of years");
    split.test().expect("events to score")
});

fn main() {
    let rate = gemm_rate();
    eprintln!("dense products: {:.0} GFLOP/s in single precision, {:.0} in double", rate.single, rate.double);
    divan::main();
}

fn config(rank: usize) -> PureSvdConfig {
    PureSvdConfig {
        rank: Some(rank),
        scaling: if rank == 2000 { 0.6 } else { 1.0 },
        ..PureSvdConfig::default()
    }
}

#[divan::bench(args = [2000, 800], sample_count = 1, sample_size = 1)]
fn train_beauty_at_rank(bencher: Bencher, rank: usize) {
    let (config, train) = (config(rank), &PARTITION.train);
    bencher.bench_local(|| config.fit(train, &()).map(drop));
}

#[divan::bench(args = [2000, 800], sample_count = 3, sample_size = 1)]
fn evaluate_beauty_at_rank(bencher: Bencher, rank: usize) {
    let model = config(rank).fit(&PARTITION.train, &()).expect("a log to learn from");
    let items = PARTITION.train.num_items();
    bencher.bench_local(|| {
        evaluate(&*model, &PARTITION.holdout, items, &EvaluateOptions::default(), &()).map(drop)
    });
}
