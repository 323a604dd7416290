//! Standard errors that know that a user's events are alike.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use satf::evaluate::{Estimate, EvaluateOptions, Evaluation, Metric, ResampleUnit, evaluate};
use satf::experiment::{self, fit_with_validation};
use satf::generate::{ShopOptions, shop};
use satf::model_file::Validation;
use satf::models::{Learner, Registry, TransitionsConfig};
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};

/// The formula, word by word: for every user, all pairs of its events.
fn by_definition(values: &[f64], users: &[usize]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let groups = users.iter().max().unwrap() + 1;
    let mut sum = 0.0;
    for (a, &user) in values.iter().zip(users) {
        for (b, &other) in values.iter().zip(users) {
            if user == other {
                sum += (a - mean) * (b - mean);
            }
        }
    }
    (sum.max(0.0) * groups as f64 / (groups as f64 - 1.0)).sqrt() / count
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

/// Values of events, and users from 0 without gaps.
fn events() -> impl Strategy<Value = (Vec<f64>, Vec<usize>)> {
    prop::collection::vec((0.0f64..1.0, 0usize..9), 2..60).prop_map(|events| {
        let mut known: Vec<usize> = events.iter().map(|event| event.1).collect();
        known.sort_unstable();
        known.dedup();
        let users = events.iter().map(|event| known.binary_search(&event.1).unwrap()).collect();
        (events.into_iter().map(|event| event.0).collect(), users)
    })
}

proptest! {
    #[test]
    fn the_error_is_that_of_its_definition((values, users) in events()) {
        let estimate = Estimate::by_user(values.iter().copied(), &users);
        prop_assert!(close(estimate.value, values.iter().sum::<f64>() / values.len() as f64));
        match estimate.stderr {
            None => prop_assert!(users.iter().all(|&user| user == 0)),
            Some(stderr) => {
                prop_assert!(close(stderr, by_definition(&values, &users)));
                let half = estimate.interval.unwrap().map(|end| (end - estimate.value).abs());
                prop_assert!(half.iter().all(|half| *half <= 1.96 * stderr + 1e-9));
            }
        }
    }

    #[test]
    fn users_with_one_event_each_have_the_error_of_events(values in prop::collection::vec(0.0f64..1.0, 2..80)) {
        let users: Vec<usize> = (0..values.len()).collect();
        let (by_user, by_event) = (Estimate::by_user(values.iter().copied(), &users), Estimate::by_event(values.iter().copied()));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        let expected = (variance / (values.len() as f64 - 1.0)).sqrt();
        prop_assert!(close(by_event.stderr.unwrap(), expected) && close(by_user.stderr.unwrap(), expected));
    }

    /// Events that say again what the user's other events said tell nothing new.
    #[test]
    fn repeated_events_make_nothing_surer((values, users) in events(), times in 2usize..5) {
        let repeated: Vec<(f64, usize)> = values.iter().copied().zip(users.iter().copied())
            .flat_map(|event| vec![event; times]).collect();
        let more_users: Vec<usize> = repeated.iter().map(|event| event.1).collect();
        let once = Estimate::by_user(values.iter().copied(), &users);
        let often = Estimate::by_user(repeated.iter().map(|event| event.0), &more_users);
        prop_assert_eq!(once.stderr.is_some(), often.stderr.is_some());
        prop_assert!(close(once.stderr.unwrap_or(0.0), often.stderr.unwrap_or(0.0)));
    }
}

fn partition() -> Partition {
    let log = shop(&ShopOptions { users: 400, ..ShopOptions::default() }).unwrap();
    let month = "1month".parse().unwrap();
    let scheme = SplitScheme::Calendar { valid: month, test: month };
    Split::new(Timeline::new(&log, TiePolicy::Shuffle, 1), scheme).unwrap().test().unwrap()
}

fn evaluated(partition: &Partition, unit: Option<ResampleUnit>) -> Evaluation {
    let mut options = EvaluateOptions::default();
    options.unit = unit.unwrap_or(options.unit);
    let model = TransitionsConfig::default().fit(&partition.train, &()).unwrap();
    evaluate(&*model, &partition.holdout, partition.train.num_items(), &options, &()).unwrap()
}

#[test]
fn evaluations_take_users_for_independent_unless_told_otherwise() {
    let partition = partition();
    let metric: Metric = "NDCG@10".parse().unwrap();
    let outcome = evaluated(&partition, None);
    let values: Vec<f64> = outcome.ranks.iter().map(|&rank| metric.value(rank)).collect();
    let mut ids: Vec<u32> = partition.holdout.events.iter().map(|event| event.user.0).collect();
    let events = ids.clone();
    ids.sort_unstable();
    ids.dedup();
    let users: Vec<usize> = events.iter().map(|user| ids.binary_search(user).unwrap()).collect();
    assert_eq!(outcome.num_users(), ids.len());
    assert!(ids.len() < values.len(), "some users have several events");
    let estimate = outcome.estimate(metric);
    assert_eq!(estimate.unit, Some(ResampleUnit::User));
    assert!(close(estimate.stderr.unwrap(), by_definition(&values, &users)));

    let of_events = evaluated(&partition, Some(ResampleUnit::Event)).estimate(metric);
    let each: Vec<usize> = (0..values.len()).collect();
    assert_eq!((of_events.value, of_events.unit), (estimate.value, Some(ResampleUnit::Event)));
    assert!(close(of_events.stderr.unwrap(), by_definition(&values, &each)));
    assert!(!close(of_events.stderr.unwrap(), estimate.stderr.unwrap()));
    let json = serde_json::to_value(estimate).unwrap();
    assert_eq!(json["unit"], "user");
    let coverage = outcome.report().into_iter().find(|(name, _)| name == "COV@10").unwrap().1;
    assert_eq!((coverage.stderr, coverage.unit), (None, None));
}

#[test]
fn one_user_has_no_error() {
    let estimate = Estimate::by_user([0.1, 0.5, 0.2].into_iter(), &[0, 0, 0]);
    assert_eq!((estimate.stderr, estimate.interval, estimate.unit), (None, None, None));
}

#[test]
fn early_stopping_has_the_same_errors() {
    let partition = partition();
    let metric: Metric = "NDCG@10".parse().unwrap();
    let settings = "user_rank = 12\nitem_rank = 10\nnum_iters = 1".parse().unwrap();
    let configured = Registry::default().find("la-satf").unwrap().configure(&settings).unwrap();
    for unit in [ResampleUnit::User, ResampleUnit::Event] {
        let items = partition.train.num_items();
        let watched = experiment::Validation { unit, ..experiment::Validation::new(&partition, metric, 1) };
        let validated = fit_with_validation(&*configured.learner, &watched, &()).unwrap();
        let options = EvaluateOptions { unit, ..EvaluateOptions::default() };
        let outcome = evaluate(&*validated.model, &partition.holdout, items, &options, &()).unwrap();
        assert_eq!(validated.curve[0].1, outcome.estimate(metric));
        assert_eq!(validated.curve[0].1.unit, Some(unit));
        assert_eq!(validated.evaluation, outcome);
    }
}

#[test]
fn metrics_of_earlier_releases_still_load() {
    let old = r#"{"held_back": "3weeks", "events": 7, "metrics": {"NDCG@10": {"value": 0.1, "stderr": 0.01, "interval":
        [0.08, 0.12]}, "COV@10": {"value": 0.5, "stderr": null, "interval": null}}, "curve": [{"value": 0.1,
        "stderr": 0.01, "interval": [0.08, 0.12]}], "best_iteration": 1}"#;
    let validation: Validation = serde_json::from_str(old).unwrap();
    let estimate = validation.metrics["NDCG@10"];
    assert_eq!((estimate.stderr, estimate.unit), (Some(0.01), None));
    let again: Validation = serde_json::from_str(&serde_json::to_string(&validation).unwrap()).unwrap();
    assert_eq!(again, validation);
}
