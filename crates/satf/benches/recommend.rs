//! Recommendations a second: the batch path of `Prepared::rank_batch` on Beauty with LA-SATF at the paper's
//! configuration (12,000 items, rank 600, ten items a list), beside the rate of dense products measured in the same run,
//! and beside scoring event by event.
//!
//! `cargo bench -p satf --bench recommend`. The real log is taken from `../shared/data` if it is there, else one of the same
//! shape is made up.

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use satf::History;
use satf::data::{ReadOptions, read_log};
use satf::generate::{ShapeOptions, like};
use satf::interactions::ItemIndex;
use satf::linalg::gemm_rate;
use satf::models::{Configured, LaSatfConfig};
use satf::prepare::{TiePolicy, Timeline};
use satf::ranking::rank_unseen;
use satf::recommend::{Filters, Model};

/// Histories scored a round, and rounds of which the best counts.
const HISTORIES: usize = 8192;
const ROUNDS: usize = 3;
/// Events scored one by one.
const EVENTS: usize = 200;
/// Items a list.
const N: usize = 10;
/// Seconds an event the authors' per-event scoring takes, on a machine of the kind the figures in docs/results come from.
const REFERENCE_SECONDS: f64 = 0.020;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/amz-beauty.csv.gz");
    let (log, source) = if path.exists() {
        (read_log(&[path], &ReadOptions::default(), &())?.0, "Amazon Beauty")
    } else {
        let shape = ShapeOptions { users: 22_363, items: 12_101, rows: 198_502, ..ShapeOptions::default() };
        (like(&shape)?, "a made-up log of Beauty's shape")
    };
    let histories = Timeline::new(&log, TiePolicy::File, 0).histories();
    // One iteration: the factors' values do not matter here, their size does.
    let config =
        LaSatfConfig { item_rank: Some(600), user_rank: Some(700), num_iters: 1, ..LaSatfConfig::default() };
    let model = Model::train(&Configured::new(config)?, &histories, &())?;
    let queries: Vec<&[ItemIndex]> = histories.iter().cycle().take(HISTORIES).collect();
    let flops = 2.0 * (model.num_items() * 600) as f64;
    println!("{source}: {} items, rank 600, lists of {N}", model.num_items());

    let mut lists = Vec::new();
    for round in 1..=ROUNDS {
        let before = gemm_rate().single;
        let start = Instant::now();
        lists = model.prepare_filters(N, &Filters::default())?.rank_batch(&queries)?;
        let seconds = start.elapsed().as_secs_f64();
        let after = gemm_rate().single;
        let rate = flops * HISTORIES as f64 / seconds / 1e9;
        println!(
            "batch, round {round}: {HISTORIES} histories in {seconds:.2} s, {:.0} a second, {:.3} ms each; {rate:.0} GFLOP/s, \
             {:.0} % of the {:.0} GFLOP/s of dense products (before {before:.0}, after {after:.0})",
            HISTORIES as f64 / seconds,
            1e3 * seconds / HISTORIES as f64,
            100.0 * rate / f64::midpoint(before, after),
            f64::midpoint(before, after),
        );
    }

    let start = Instant::now();
    let mut scores = vec![0f32; model.num_items()];
    for (query, list) in queries.iter().zip(&lists).take(EVENTS) {
        model.recommender().score_batch(&[History::new(query)], &mut scores);
        assert_eq!(&rank_unseen(&mut scores, query, N), list, "event by event as in a batch");
    }
    let seconds = start.elapsed().as_secs_f64() / EVENTS as f64;
    println!(
        "event by event: {:.3} ms each, the same lists; the authors' per-event scoring: {:.0} ms each",
        1e3 * seconds,
        1e3 * REFERENCE_SECONDS
    );
    Ok(())
}
