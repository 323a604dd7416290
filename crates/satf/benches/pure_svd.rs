//! PureSVD-N at the paper's configuration on Amazon Beauty (rank 2000, scaling .6): training and evaluation together,
//! beside the rate of dense products measured in the same run.
//!
//! `cargo bench -p satf --bench pure_svd`. The real log is taken from `../shared/data` if it is there, else one of the same
//! shape is made up (22,363 users, 12,101 items, 198,502 rows).

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use satf::data::{ReadOptions, read_log};
use satf::evaluate::{EvaluateOptions, Measure, Metric, evaluate};
use satf::generate::{ShapeOptions, like};
use satf::linalg::gemm_rate;
use satf::models::{Learner, PureSvdConfig};
use satf::prepare::{Split, SplitScheme, TiePolicy, Timeline};

/// Seconds the paper's authors' code takes for both, on a machine of the kind the figures in docs/results come from.
const REFERENCE_SECONDS: f64 = 278.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/amz-beauty.csv.gz");
    let (log, source) = if path.exists() {
        (read_log(&[path], &ReadOptions::default(), &())?.0, "Amazon Beauty")
    } else {
        let shape = ShapeOptions { users: 22_363, items: 12_101, rows: 198_502, ..ShapeOptions::default() };
        (like(&shape)?, "a made-up log of Beauty's shape")
    };
    let weeks = "3weeks".parse()?;
    let scheme = SplitScheme::Calendar { valid: weeks, test: weeks };
    let partition = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme)?.test()?;
    println!(
        "{source}: {} users, {} items, {} rows, {} events",
        partition.train.num_users(),
        partition.train.num_items(),
        partition.train.num_rows(),
        partition.holdout.counts.scored
    );
    for (rank, scaling) in [(2000, 0.6), (800, 1.0)] {
        let config = PureSvdConfig { rank: Some(rank), scaling, ..PureSvdConfig::default() };
        let before = gemm_rate();
        let start = Instant::now();
        let model = config.fit(&partition.train, &())?;
        let train = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let items = partition.train.num_items();
        let outcome = evaluate(&*model, &partition.holdout, items, &EvaluateOptions::default(), &())?;
        let scored = start.elapsed().as_secs_f64();
        let after = gemm_rate();
        let scoring_flops = 2.0 * (items * rank * outcome.counts.scored) as f64;
        println!(
            "rank {rank}, scaling {scaling}: NDCG@10 {:.4}; train {train:.2} s, evaluate {scored:.2} s ({:.0} GFLOP/s); \
             GEMM rate before {:.0} and after {:.0} GFLOP/s (single), {:.0} and {:.0} (double)",
            outcome.estimate(Metric { measure: Measure::Ndcg, cutoff: 10 }).value,
            scoring_flops / scored / 1e9,
            before.single,
            after.single,
            before.double,
            after.double,
        );
        if rank == 2000 {
            println!(
                "  {:.1} times as fast as the reference's {REFERENCE_SECONDS} s",
                REFERENCE_SECONDS / (train + scored)
            );
        }
    }
    Ok(())
}
