//! The search: spaces are counted as by hand, one training equals many, and nothing but the request decides the result.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use satf::evaluate::{EvaluateOptions, Metric, SeenPolicy, evaluate};
use satf::experiment::{Validation, fit_with_validation};
use satf::generate::{ShopOptions, shop};
use satf::models::Registry;
use satf::prepare::{Histories, Partition, Split, SplitScheme, TiePolicy, Timeline};
use satf::tune::{
    Grid, Limits, Sampler, Scoring, SearchOptions, Space, Study, Trial, best_of, refit, search,
};
use serde_json::json;
use toml::Table;

/// A log with as many users as items, each user with one.
fn diagonal(size: u32) -> Histories {
    let sequences: Vec<Vec<u32>> = (0..size).map(|item| vec![item]).collect();
    Histories::from_sequences(size as usize, &sequences)
}

fn paper_grid(model: &str, space: &str, base: &str) -> Grid {
    let space = Space::named(&Registry::default().find(model).unwrap(), Some(space)).unwrap();
    Grid::new(&Registry::default().find(model).unwrap(), &base.parse().unwrap(), &space, &diagonal(3200), &())
        .unwrap()
}

/// Points of the paper's LA grid, by the letter of its constraints; times two values of `rescaled`, four of `s`, two of `f`.
fn la_points(windows: [u64; 4], ranks: [u64; 4]) -> usize {
    let mut points = 0;
    for (r1, r2) in (1..=9).flat_map(|r1| (1..=9).map(move |r2| (r1 * 100, r2 * 100))) {
        for (r3, r4) in ranks.iter().flat_map(|&r3| ranks.map(|r4| (r3, r4))) {
            let smaller = r1 < r2 * r3 * r4 && r2 < r1 * r3 * r4 && r3 < r1 * r2 * r4 && r4 < r1 * r2 * r3;
            let paired = r3 == r4 || (r3 == 1 && 1 < r4);
            points += windows.iter().filter(|&&window| r3 < window && paired && smaller).count();
        }
    }
    points * 2 * 4 * 2
}

#[test]
fn the_papers_grids_have_the_papers_points() {
    let svd = paper_grid("pure-svd", "paper", "");
    assert_eq!((svd.num_points(), svd.num_configurations(), svd.num_trainings()), (16 * 6, 16 * 6, 6));
    let ga = paper_grid("ga-satf", "paper", "");
    assert_eq!(ga.num_points(), 9 * 9 * 4 * 4 * 2 * 2);
    let ga_points = (1..=9u64)
        .flat_map(|r1| (1..=9u64).flat_map(move |r2| [5, 10, 15, 20].map(|r3| (r1, r2, r3))))
        .filter(|(r1, r2, r3)| r1 < &(r2 * r3) && r2 < &(r1 * r3))
        .count()
        * 16;
    assert_eq!((ga.num_configurations(), ga.num_trainings()), (ga_points, ga_points / 2));

    let la = paper_grid("la-satf", "paper", "");
    assert_eq!(la.num_configurations(), la_points([2, 5, 10, 15], [1, 2, 5, 10]));
    assert_eq!(
        la.num_trainings(),
        la.num_configurations() / 2,
        "both values of rescaled come of one training"
    );
    let long = paper_grid("la-satf", "paper-long", "max_len = 200");
    assert_eq!(long.num_configurations(), la_points([20, 40, 60, 80], [5, 10, 15, 20]));
    // In a history of 50, windows of 60 and 80 have no place and one of 40 has 11 starts: of the 15 triples of window and
    // ranks, three with a window of 20 and two with one of 40 are left.
    let short = paper_grid("la-satf", "paper-long", "max_len = 50");
    assert_eq!(short.num_configurations() * 15, long.num_configurations() * 5);
}

#[test]
fn ranks_beyond_the_log_are_excluded_before_counting() {
    let space = Space::named(&Registry::default().find("pure-svd").unwrap(), Some("paper")).unwrap();
    let entry = Registry::default().find("pure-svd").unwrap();
    let grid = |size| Grid::new(&entry, &Table::new(), &space, &diagonal(size), &());
    assert_eq!(grid(450).unwrap().num_configurations(), 4 * 6);
    let message = grid(50).err().unwrap().to_string();
    assert!(message.contains("no point of the space paper") && message.contains("rank = 100"), "{message}");
}

#[test]
fn what_a_space_cannot_mean_is_said() {
    let entry = Registry::default().find("la-satf").unwrap();
    for (space, parts) in [
        ("keys.user_rnak = [1]", vec!["user_rnak", "did you mean 'user_rank'"]),
        ("keys.user_rank = [1]\nconstraints = ['windw < 3']", vec!["unknown key 'windw'"]),
        ("keys.user_rank = ['x']", vec!["user_rank = \"x\""]),
        ("keys.scaling = [0.2]\nconstraints = ['start < 3']", vec!["no order"]),
        ("keys.scaling = [0.2]\nconstraints = ['user_rank < 3']", vec!["user_rank has no value"]),
        ("keys.scaling = [7.0]", vec!["no point", "scaling = 7"]),
        (
            "keys.user_rank = { from = 1, to = 2000, step = 1 }\nkeys.item_rank = { from = 1, to = 2000, step = 1 }",
            vec!["4,000,000 points", "coarser steps"],
        ),
    ] {
        let space = Space::from_table("mine", &space.parse().unwrap()).unwrap();
        let message = Grid::new(&entry, &Table::new(), &space, &diagonal(30), &()).err().unwrap().to_string();
        for part in parts {
            assert!(message.contains(part), "no '{part}' in: {message}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Trainings and what they serve are the valid points of the space, each once.
    #[test]
    fn trainings_serve_every_valid_point_once(
        ranks in proptest::collection::btree_set(1i64..40, 1..6),
        scalings in proptest::collection::btree_set(0i64..9, 1..5),
        both in any::<bool>(), limit in 1i64..60,
    ) {
        let numbers: Vec<f64> = scalings.iter().map(|&scaling| scaling as f64).collect();
        let space = format!(
            "keys.rank = {:?}\nkeys.scaling = {numbers:?}\nkeys.rescaled = {}\nconstraints = ['rank + 5 * scaling < {limit}']",
            Vec::from_iter(&ranks), if both { "[false, true]" } else { "[true]" },
        );
        let space = Space::from_table("mine", &space.parse().unwrap()).unwrap();
        let expected: BTreeSet<(i64, i64, bool)> = ranks.iter()
            .flat_map(|&rank| scalings.iter().map(move |&scaling| (rank, scaling)))
            .filter(|(rank, scaling)| rank + 5 * scaling < limit && *rank <= 30)
            .flat_map(|(rank, scaling)| [true, false].map(|rescaled| (rank, scaling, rescaled)))
            .filter(|point| both || point.2)
            .collect();
        let grid = Grid::new(&Registry::default().find("pure-svd").unwrap(), &Table::new(), &space, &diagonal(30), &());
        let Ok(grid) = grid else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        let mut points = Vec::new();
        for training in 0..grid.num_trainings() {
            let scaling = grid.keys(training)["scaling"].as_f64().unwrap() as i64;
            let trained = grid.configure(training).unwrap().configuration["rank"].as_i64().unwrap();
            let mut largest = 0;
            for variant in grid.variants(training) {
                prop_assert_eq!(variant.len(), 2);
                let rank = variant["rank"].as_integer().unwrap();
                largest = largest.max(rank);
                let rescaled = variant["rescaled"].as_bool().unwrap();
                points.push((rank, scaling, rescaled));
            }
            prop_assert_eq!(trained, largest);
        }
        prop_assert_eq!(points.len(), grid.num_configurations());
        prop_assert_eq!(points.into_iter().collect::<BTreeSet<_>>(), expected.clone());
        prop_assert_eq!(grid.num_configurations(), expected.len());
    }
}

/// A training without the core could serve no balance above 0.
#[test]
fn a_training_that_serves_balances_has_both_parts() {
    let keys = "[keys]\nbalance = [0.3, 0.1, 0.0]\nregularization = [0.1, 1.0]";
    let space = Space::from_table("mine", &keys.parse().unwrap()).unwrap();
    let grid =
        Grid::new(&Registry::default().find("d-satf").unwrap(), &Table::new(), &space, &diagonal(30), &())
            .unwrap();
    assert_eq!((grid.num_trainings(), grid.num_configurations()), (1, 6));
    assert!(grid.configure(0).unwrap().configuration["balance"].as_f64().unwrap() > 0.0);
}

fn parts() -> (Partition, Partition) {
    let log = shop(&ShopOptions { users: 250, ..ShopOptions::default() }).unwrap();
    let month = "1month".parse().unwrap();
    let scheme = SplitScheme::Calendar { valid: month, test: month };
    let split = Split::new(Timeline::new(&log, TiePolicy::Shuffle, 0), scheme).unwrap();
    (split.validation().unwrap(), split.test().unwrap())
}

fn metric() -> Metric {
    "NDCG@10".parse().unwrap()
}

struct Search {
    model: &'static str,
    space: &'static str,
    sampler: Sampler,
    limits: Limits,
}

impl Search {
    fn run(&self, validation: &Partition) -> (tempfile::TempDir, Study, Grid) {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::from_table("mine", &self.space.parse().unwrap()).unwrap();
        let entry = Registry::default().find(self.model).unwrap();
        let grid = Grid::new(&entry, &Table::new(), &space, &validation.train, &()).unwrap();
        let mut study = Study::open(folder.path(), &json!({ "model": self.model }), self.limits).unwrap();
        let scoring = Scoring { partition: validation, metric: metric(), patience: 2, seen: SeenPolicy::Own };
        let options =
            SearchOptions { grid: &grid, scoring, sampler: self.sampler, seed: 3, limits: self.limits };
        search(&options, &mut study, &(), &|_, _| ()).unwrap();
        (folder, study, grid)
    }
}

const ALL: Limits = Limits { trials: usize::MAX, time_budget_seconds: None, jobs: 1 };
const LA: &str = "keys.user_rank = [6, 9]\nkeys.item_rank = [5, 8]\nkeys.scaling = [0.2, 0.6]\nkeys.rescaled = [false, \
                  true]\nkeys.num_iters = 5";

/// One training gives the very scores that separate trainings with early stopping give.
#[test]
fn one_training_equals_many() {
    let (validation, _) = parts();
    let search = Search { model: "la-satf", space: LA, sampler: Sampler::Exhaustive, limits: ALL };
    let (_folder, study, _) = search.run(&validation);
    assert_eq!(study.trials().len(), 8);
    for trial in [&study.trials()[0], &study.trials()[7]] {
        let mut expected = Vec::new();
        for rescaled in [false, true] {
            let mut settings = Table::new();
            for (key, value) in &trial.keys {
                settings.insert(key.clone(), toml::Value::try_from(value).unwrap());
            }
            settings.insert("rescaled".to_owned(), rescaled.into());
            settings.insert("num_iters".to_owned(), 5.into());
            let learner = Registry::default().find("la-satf").unwrap().configure(&settings).unwrap().learner;
            let watched = Validation::new(&validation, metric(), 2);
            let curve = fit_with_validation(&*learner, &watched, &()).unwrap().curve;
            expected.extend(curve.into_iter().map(|(at, estimate)| (at as u64, rescaled, estimate.value)));
        }
        let mut found: Vec<(u64, bool, f64)> = trial
            .scores
            .iter()
            .map(|score| {
                let (at, rescaled) = (&score.keys["num_iters"], &score.keys["rescaled"]);
                (at.as_u64().unwrap(), rescaled.as_bool().unwrap(), score.value)
            })
            .collect();
        found.sort_by_key(|score| (score.1, score.0));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1));
            assert!((found.2 - expected.2).abs() < 1e-15, "{found:?} {expected:?}");
        }
    }
}

/// One SVD gives the scores that an SVD a rank gives.
#[test]
fn one_svd_equals_many() {
    let (validation, _) = parts();
    let space = "keys.rank = [3, 20, 7]\nkeys.scaling = [0.2, 1.0]\nkeys.rescaled = [false, true]";
    let search = Search { model: "pure-svd", space, sampler: Sampler::Random, limits: ALL };
    let (_folder, study, _) = search.run(&validation);
    assert_eq!(study.trials().len(), 2);
    for trial in study.trials() {
        assert_eq!(trial.scores.len(), 6);
        for score in &trial.scores {
            let mut settings = Table::new();
            for (key, value) in trial.keys.iter().chain(&score.keys) {
                settings.insert(key.clone(), toml::Value::try_from(value).unwrap());
            }
            let learner = Registry::default().find("pure-svd").unwrap().configure(&settings).unwrap().learner;
            let model = learner.fit(&validation.train, &()).unwrap();
            let options = EvaluateOptions::default();
            let items = validation.train.num_items();
            let outcome = evaluate(&*model, &validation.holdout, items, &options, &()).unwrap();
            let alone = outcome.estimate(metric()).value;
            // Scores differ by the tolerance of the SVD; a tie that it decides may move one event.
            assert!((score.value - alone).abs() < 2e-3, "{settings}: {} {alone}", score.value);
        }
    }
}

fn without_times(trials: &[Trial]) -> Vec<Trial> {
    let strip = |trial: &Trial| Trial { seconds: 0.0, elapsed_seconds: 0.0, ..trial.clone() };
    trials.iter().map(strip).collect()
}

#[test]
fn jobs_change_nothing_and_more_trials_only_add() {
    let (validation, _) = parts();
    let space =
        "keys.window = [1, 2, 3, 5]\nkeys.recency_decay = [0.5, 1.0, 2.0]\nkeys.target_power = [0.0, 0.3]";
    for sampler in [Sampler::Exhaustive, Sampler::Random, Sampler::Tpe] {
        let trials = |trials, jobs| {
            let limits = Limits { trials, time_budget_seconds: None, jobs };
            let (_folder, study, _) =
                Search { model: "transitions", space, sampler, limits }.run(&validation);
            without_times(study.trials())
        };
        let alone = trials(17, 1);
        assert_eq!(alone.len(), 17);
        assert_eq!(alone, trials(17, 3), "{sampler:?}");
        assert_eq!(alone, trials(24, 2)[..17], "{sampler:?}");
    }
}

#[test]
fn a_time_budget_ends_the_search_and_no_time_begins_nothing() {
    let (validation, test) = parts();
    let space = "keys.window = { from = 1, to = 200, step = 1 }";
    let limits = |seconds| Limits { trials: 200, time_budget_seconds: Some(seconds), jobs: 1 };
    let search = |limits| Search { model: "transitions", space, sampler: Sampler::Random, limits };
    let (_folder, study, _) = search(limits(1e-9)).run(&validation);
    assert!(study.trials().is_empty());
    let entry = Registry::default().find("transitions").unwrap();
    let outcome = refit(&entry, &Table::new(), &study, &test, &EvaluateOptions::default(), &());
    assert!(outcome.err().unwrap().to_string().contains("none was run"));
    let (_folder, study, _) = search(limits(0.05)).run(&validation);
    assert!((1..200).contains(&study.trials().len()), "{}", study.trials().len());
}

#[test]
fn failed_trials_are_kept_and_never_the_best() {
    let (validation, test) = parts();
    // Training within 400 kB is not possible for the larger ranks.
    let space = "keys.user_rank = [4, 60]\nkeys.item_rank = [4, 60]\nkeys.memory_bytes = [400000]";
    let search = Search { model: "la-satf", space, sampler: Sampler::Exhaustive, limits: ALL };
    let (_folder, study, _) = search.run(&validation);
    let failed: Vec<&Trial> = study.trials().iter().filter(|trial| trial.error.is_some()).collect();
    assert!(!failed.is_empty() && failed.len() < study.trials().len(), "{:?}", study.trials());
    assert!(failed.iter().all(|trial| trial.error.as_ref().unwrap().contains("memory_bytes")));
    let best = best_of(study.trials()).unwrap();
    assert!(failed.iter().all(|trial| trial.trial != best.trial));
    let entry = Registry::default().find("la-satf").unwrap();
    let outcome = refit(&entry, &Table::new(), &study, &test, &EvaluateOptions::default(), &());
    // The refit sees more rows; it either fits too or says why not.
    if let Err(error) = outcome {
        assert!(error.to_string().contains("memory_bytes"), "{error}");
    }
}
