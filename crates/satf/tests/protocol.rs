//! Evaluation against its definition: batches, exclusion, coverage.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;
use satf::evaluate::{EvaluateError, EvaluateOptions, SeenPolicy, evaluate};
use satf::generate::{ShopOptions, shop};
use satf::interactions::ItemIndex;
use satf::models::{Learner, PopularityConfig, Recommender, Registry};
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};

fn partition(users: usize) -> Partition {
    let log = shop(&ShopOptions { users, ..ShopOptions::default() }).unwrap();
    let month = "1month".parse().unwrap();
    let scheme = SplitScheme::Calendar { valid: month, test: month };
    Split::new(Timeline::new(&log, TiePolicy::Shuffle, 1), scheme).unwrap().test().unwrap()
}

fn fit(model: &str, partition: &Partition) -> Box<dyn Recommender> {
    let configured = Registry::default().find(model).unwrap().configure(&toml::Table::new()).unwrap();
    configured.learner.fit(&partition.train, &()).unwrap()
}

/// Rank of the target and the list itself, by sorting the whole catalogue.
fn slow_list(scores: &[f32], excluded: &[ItemIndex], n: usize) -> Vec<u32> {
    let mut items: Vec<u32> =
        (0..scores.len() as u32).filter(|item| !excluded.contains(&ItemIndex(*item))).collect();
    items.sort_by(|&a, &b| scores[b as usize].partial_cmp(&scores[a as usize]).unwrap().then(a.cmp(&b)));
    items.truncate(n);
    items
}

#[test]
fn ranks_and_coverage_are_those_of_sorting_everything() {
    let partition = partition(300);
    for seen in [SeenPolicy::Own, SeenPolicy::Pooled] {
        for model in ["mp", "transitions"] {
            let model = fit(model, &partition);
            let options =
                EvaluateOptions { cutoffs: vec![3, 10], batch: Some(7), seen, ..EvaluateOptions::default() };
            let outcome =
                evaluate(&*model, &partition.holdout, partition.train.num_items(), &options, &()).unwrap();
            let mut pool = Vec::new();
            let mut recommended = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
            for (event, rank) in partition.holdout.events.iter().zip(&outcome.ranks) {
                let history = partition.holdout.history(event);
                if seen == SeenPolicy::Own {
                    pool.clear();
                }
                pool.extend_from_slice(&history);
                let mut scores = vec![f32::NAN; model.num_items()];
                model.score_batch(&[history], &mut scores);
                let list = slow_list(&scores, &pool, 10);
                let expected = list.iter().position(|&item| item == event.target.0).map(|rank| rank as u32);
                assert_eq!(*rank, expected);
                recommended[0].extend(list.iter().take(3).copied());
                recommended[1].extend(list);
            }
            for (cutoff, recommended) in [3, 10].into_iter().zip(&recommended) {
                let expected = recommended.len() as f64 / partition.train.num_items() as f64;
                assert!((outcome.coverage(cutoff) - expected).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn neither_batches_nor_threads_change_anything() {
    let partition = partition(400);
    for name in ["pure-svd", "transitions", "vmis-knn", "ease"] {
        let model = fit(name, &partition);
        let on = |threads: usize, batch: Option<usize>| {
            let options = EvaluateOptions { cutoffs: vec![1, 10, 50], batch, ..EvaluateOptions::default() };
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                evaluate(&*model, &partition.holdout, partition.train.num_items(), &options, &()).unwrap()
            })
        };
        let expected = on(1, None);
        for (threads, batch) in [(2, None), (1, Some(1)), (2, Some(3)), (4, Some(64)), (2, Some(10_000))] {
            assert_eq!(on(threads, batch), expected, "{name} {threads} {batch:?}");
        }
    }
}

#[test]
fn cutoffs_and_foreign_models_are_checked() {
    let partition = partition(100);
    let model = fit("mp", &partition);
    let items = partition.train.num_items();
    for cutoffs in [vec![], vec![0], vec![0, 10]] {
        let options = EvaluateOptions { cutoffs, ..EvaluateOptions::default() };
        let outcome = evaluate(&*model, &partition.holdout, items, &options, &());
        assert!(matches!(outcome, Err(EvaluateError::Cutoffs(_))));
    }
    let outcome = evaluate(&*model, &partition.holdout, items + 1, &EvaluateOptions::default(), &());
    assert!(matches!(outcome, Err(EvaluateError::Catalog { .. })));
    // A list longer than the catalogue holds every unseen item.
    let options = EvaluateOptions { cutoffs: vec![items * 2], ..EvaluateOptions::default() };
    let outcome = evaluate(&*model, &partition.holdout, items, &options, &()).unwrap();
    assert!(outcome.ranks.iter().all(Option::is_some));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn metrics_stay_in_range_and_grow_with_the_cutoff(users in 50usize..150, seed in 0u64..1000) {
        let log = shop(&ShopOptions { users, seed, ..ShopOptions::default() }).unwrap();
        let month = "2months".parse().unwrap();
        let scheme = SplitScheme::Calendar { valid: month, test: month };
        let Ok(partition) = Split::new(Timeline::new(&log, TiePolicy::Basket, seed), scheme).unwrap().test() else {
            return Ok(());
        };
        let model = PopularityConfig::default().fit(&partition.train, &()).unwrap();
        let options = EvaluateOptions { cutoffs: vec![1, 5, 20], ..EvaluateOptions::default() };
        let outcome = evaluate(&*model, &partition.holdout, partition.train.num_items(), &options, &()).unwrap();
        let values: Vec<f64> = outcome.metrics().map(|metric| outcome.estimate(metric).value).collect();
        prop_assert!(values.iter().all(|value| (0.0..=1.0).contains(value)));
        for smaller in 0..6 {
            prop_assert!(values[smaller] <= values[smaller + 3] + 1e-12);
        }
        prop_assert!(outcome.coverage(1) <= outcome.coverage(5) && outcome.coverage(5) <= outcome.coverage(20));
    }
}
