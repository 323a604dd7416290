//! Large catalogues: the best items are found without scoring all of them, and are the same to the bit.

#![allow(clippy::unwrap_used)]

use satf::generate::{ShapeOptions, like};
use satf::models::{Configured, DSatfConfig, FoldIn, LagWeights, PureSvdConfig, Workspace};
use satf::prepare::{TiePolicy, Timeline};
use satf::{Histories, ItemIndex, Model, Prepared, Request};

const ITEMS: usize = 20_000;

fn histories() -> Histories {
    let shape = ShapeOptions { users: 4000, items: ITEMS, rows: 60_000, seed: 4 };
    Timeline::new(&like(&shape).unwrap(), TiePolicy::File, 0).histories()
}

fn with_core(histories: &Histories) -> Model {
    let keys = DSatfConfig {
        balance: Some(0.3),
        distance_decay: Some(0.5),
        together: Some(1.0),
        target_power: Some(0.2),
        recency_decay: Some(1.0),
        basket_order: Some(1.0),
        trend: Some(0.5),
        rank: Some(24),
        ..DSatfConfig::default()
    };
    Model::train(&Configured::new(keys).unwrap(), histories, &()).unwrap()
}

/// Factors alone; a third of the rows are equal to others, and some are nothing.
fn factors(histories: &Histories, size: f32) -> Model {
    let value = |at: usize| {
        let (item, column) = (at / 16, at % 16);
        let item = if item % 3 == 2 { item - 1 } else { item };
        let mixed = (item * 16 + column).wrapping_mul(2_654_435_761) % 1009;
        if item % 17 == 4 { 0.0 } else { size * (mixed as f32 / 504.5 - 1.0) / (1.0 + (item % 400) as f32) }
    };
    let factor: Vec<f32> = (0..ITEMS * 16).map(value).collect();
    let fold_in = FoldIn::new(ITEMS, factor.clone(), factor, LagWeights::Flat).unwrap();
    Model::new(&Configured::new(PureSvdConfig::default()).unwrap(), histories, Box::new(fold_in))
}

fn queries(histories: &Histories) -> Vec<Vec<ItemIndex>> {
    let mut queries: Vec<Vec<ItemIndex>> =
        histories.iter().step_by(97).map(|history| history[..history.len().min(12)].to_vec()).collect();
    // One item, and one that nobody goes on from: nothing but the core tells them apart.
    queries.extend((0..8).map(|at| vec![ItemIndex(at * 2311)]));
    queries
}

/// How many histories are answered without scoring all items, where all have the answers of a batch.
fn found_alone(model: &Model, queries: &[Vec<ItemIndex>], prepared: &Prepared<'_>) -> usize {
    let mut workspace = Workspace::new();
    let together = prepared.answer_batch(queries).unwrap();
    for (query, expected) in queries.iter().zip(&together) {
        let alone = prepared.answer(query, &mut workspace).unwrap();
        let bits = |answer: &satf::Answer| -> Vec<u32> {
            answer.items.iter().map(|recommendation| recommendation.score.to_bits()).collect()
        };
        assert_eq!(&alone, expected);
        assert_eq!(bits(&alone), bits(expected));
    }
    let best = |query: &&Vec<ItemIndex>, workspace: &mut Workspace| {
        model.recommender().best_one((*query).into(), prepared.n(), &|_| true, workspace).is_some()
    };
    queries.iter().filter(|query| best(query, &mut workspace)).count()
}

#[test]
fn lists_are_those_of_a_full_product_to_the_bit() {
    let histories = histories();
    let queries = queries(&histories);
    for model in [with_core(&histories), factors(&histories, 1.0)] {
        let name = model.manifest().model.clone();
        let before = model.recommender().memory_bytes();
        model.recommender().make_ready();
        assert!(model.recommender().memory_bytes() >= before + 16 * ITEMS, "{name}: the table is not there");
        for n in [1, 10, 100] {
            let prepared = model.prepare(&Request::new(n)).unwrap();
            let found = found_alone(&model, &queries, &prepared);
            assert!(found * 10 >= queries.len() * 9, "{name}: {found} of {}", queries.len());
        }
        // Filters apply before the best are taken, whatever way they are found.
        let exclude = (0..2000).map(|item| (item * 10).into()).collect();
        let filtered = model.prepare(&Request { exclude, ..Request::new(10) }).unwrap();
        found_alone(&model, &queries, &filtered);
        let ruled = model.prepare(&Request::new(10)).unwrap().with_rule(|item| item.0 % 5 == 3);
        found_alone(&model, &queries, &ruled);
        let few = model.prepare(&Request::new(10)).unwrap().with_rule(|item| item.0 % 4999 == 3);
        found_alone(&model, &queries, &few);
        let boosted = Request { boosts: vec![(7.into(), 0.5), (19_000.into(), 2.0)], ..Request::new(10) };
        found_alone(&model, &queries, &model.prepare(&boosted).unwrap());
    }
}

#[test]
fn the_table_is_made_once_it_is_worth_it() {
    let histories = histories();
    let model = factors(&histories, 1.0);
    let prepared = model.prepare(&Request::new(5)).unwrap();
    let (before, mut workspace) = (model.recommender().memory_bytes(), Workspace::new());
    prepared.answer(&[ItemIndex(3)], &mut workspace).unwrap();
    assert_eq!(model.recommender().memory_bytes(), before);
    for _ in 0..10 {
        prepared.answer(&[ItemIndex(3)], &mut workspace).unwrap();
    }
    assert!(model.recommender().memory_bytes() > before);
}

#[test]
fn scores_that_overflow_are_told_of_as_ever() {
    let histories = histories();
    let model = factors(&histories, 3e19);
    model.recommender().make_ready();
    let prepared = model.prepare(&Request::new(5)).unwrap();
    let query = vec![ItemIndex(0), ItemIndex(1)];
    let alone = prepared.answer(&query, &mut Workspace::new()).unwrap_err().to_string();
    let together = prepared.answer_batch(&[query]).unwrap_err().to_string();
    assert_eq!(alone, together);
    assert!(alone.contains("score"), "{alone}");
}
