//! One recommendation from sparse rows, on one core: by the items that the rows of a history name, and by a pass over the whole
//! catalogue, for catalogues of 10,000, 100,000 and 1,000,000 items and histories of 10.
//!
//! `cargo bench -p satf --bench touched`. Rows are as long for every catalogue, so the first figure should not grow with it.
//! Items are all alike in the first three cases; popular ones have long rows in the last, and are asked for more often.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use satf::History;
use satf::generate::{ShapeOptions, like};
use satf::interactions::ItemIndex;
use satf::models::{Configured, Scores, TransitionsConfig, Workspace};
use satf::prepare::{Histories, TiePolicy, Timeline};
use satf::ranking::rank_unseen;
use satf::recommend::{Model, Request};

/// Items of a history, and of a list.
const LEN: usize = 10;
/// Histories that are timed, again and again.
const HISTORIES: usize = 2000;
/// How often: the best of all counts, and they take turns.
const ROUNDS: usize = 5;
/// Histories of a round that look at the whole catalogue.
const DENSE: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "items                  touched items     by touched items   by the whole catalogue   times as fast"
    );
    for (items, popularity) in
        [(10_000, "even"), (100_000, "even"), (1_000_000, "even"), (1_000_000, "skewed")]
    {
        let shape = ShapeOptions { users: items / 2, items, rows: 5 * items, ..ShapeOptions::default() };
        let histories = if popularity == "even" {
            even(items)
        } else {
            Timeline::new(&like(&shape)?, TiePolicy::File, 0).histories()
        };
        let model = Model::train(&Configured::new(TransitionsConfig::default())?, &histories, &())?;
        // Items of all events: popular items as often as they are popular.
        let taken: Vec<ItemIndex> = histories.iter().flatten().copied().collect();
        let stride = taken.len() / (HISTORIES * LEN);
        let queries: Vec<Vec<ItemIndex>> =
            (0..HISTORIES).map(|at| (0..LEN).map(|k| taken[(at * LEN + k) * stride]).collect()).collect();
        time(&model, &queries, popularity)?;
    }
    Ok(())
}

/// Histories of ten items that are drawn alike: five events per item, and some twenty others within reach of each.
fn even(items: usize) -> Histories {
    let drawn = |place: usize| {
        let mixed = (place as u32 ^ place as u32 >> 15).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ mixed >> 12).wrapping_mul(0x297a_2d39) % items as u32
    };
    let sequence = |user: usize| -> Vec<u32> { (0..LEN).map(|at| drawn(user * LEN + at)).collect() };
    Histories::from_sequences(items, &(0..items / 2).map(sequence).collect::<Vec<_>>())
}

fn time(
    model: &Model,
    queries: &[Vec<ItemIndex>],
    popularity: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let one_thread = ThreadPoolBuilder::new().num_threads(1).build()?;
    let prepared = model.prepare(&Request::new(LEN))?;
    let mut workspace = Workspace::new();
    let mut touched = 0;
    for query in queries {
        if let Scores::Sparse(scores) = model.recommender().score_one(History::new(query), &mut workspace) {
            touched += scores.touched().len();
        }
    }
    let (mut sparse, mut dense) = (f64::INFINITY, f64::INFINITY);
    let mut scores = vec![0f32; model.num_items()];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for query in queries {
            black_box(prepared.answer(query, &mut workspace)?);
        }
        sparse = sparse.min(start.elapsed().as_secs_f64() / queries.len() as f64);
        let start = Instant::now();
        one_thread.install(|| {
            for query in &queries[..DENSE] {
                model.recommender().score_batch(&[History::new(query)], &mut scores);
                black_box(rank_unseen(&mut scores, query, LEN));
            }
        });
        dense = dense.min(start.elapsed().as_secs_f64() / DENSE as f64);
    }
    println!(
        "{:<10} {popularity:<8} {:>9.0} {:>16.1} µs {:>20.1} µs {:>15.1}",
        model.num_items(),
        touched as f64 / queries.len() as f64,
        1e6 * sparse,
        1e6 * dense,
        dense / sparse
    );
    Ok(())
}
