//! `--ties basket` against the protocol, written down once more without any of the library's parts but the order of ties.
//!
//! Events of one user and time are a basket. Each of them is predicted from strictly earlier events only: the others of its basket
//! are not in its history, and as they are not seen yet they may be recommended. What trains, and what histories hold of
//! earlier baskets, stands in the seeded random order.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use satf::History;
use satf::evaluate::{EvaluateOptions, evaluate};
use satf::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use satf::models::{Recommender, Registry};
use satf::prepare::{Event, Histories, Partition, Split, SplitScheme, TiePolicy, Timeline};

const DAY: i64 = 86_400;

/// A log of `(user, item, day)`.
fn log(rows: &[(u32, u32, i64)]) -> Interactions {
    let all = |n: u32| Arc::new(Ids::Integers((0..i64::from(n)).collect()));
    let count = |of: fn(&(u32, u32, i64)) -> u32| rows.iter().map(of).max().unwrap() + 1;
    let (users, items) = (all(count(|row| row.0)), all(count(|row| row.1)));
    let rows = rows.iter().map(|&(user, item, day)| Interaction {
        user: UserIndex(user),
        item: ItemIndex(item),
        time: Timestamp::from_seconds(day * DAY),
    });
    Interactions::from_indexed(users, items, rows.collect(), Clock::Calendar)
}

/// 40 users, baskets of one to four items over 60 days, repeats within baskets and across them; the last five users and the
/// last three items turn up late.
fn baskets() -> Interactions {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut rows = Vec::new();
    for user in 0..40u32 {
        let first_day: u64 = if user < 35 { 0 } else { 52 };
        for _ in 0..8 {
            let day = (first_day + draw(61 - first_day)) as i64;
            for _ in 0..=draw(4) {
                let items = if day > 50 { 25 } else { 22 };
                rows.push((user, draw(items) as u32, day));
            }
        }
    }
    log(&rows)
}

fn split(log: &Interactions, ties: TiePolicy, seed: u64) -> Partition {
    let scheme = SplitScheme::Holdout { test: "10days".parse().unwrap() };
    Split::new(Timeline::new(log, ties, seed), scheme).unwrap().test().unwrap()
}

/// An event, what is known when it happens, and which of that was taken together with the one before.
struct Prediction {
    history: Vec<usize>,
    with_previous: Vec<bool>,
    target: usize,
}

/// What the protocol asks: the training set, user by user with times, and every prediction. Items are ranks of the ids that
/// training knows.
struct Asked {
    items: Vec<i64>,
    train: BTreeMap<i64, Vec<(usize, i64)>>,
    predictions: Vec<Prediction>,
    unscored: usize,
}

/// The protocol, row by row, on rows `(user, item, day)` in the order in which ties were drawn.
fn ask(rows: &[(i64, i64, i64)], days: i64) -> Asked {
    let cut = rows.last().unwrap().2 - days;
    let items: BTreeSet<i64> = rows.iter().filter(|row| row.2 <= cut).map(|row| row.1).collect();
    let items: Vec<i64> = items.into_iter().collect();
    let mut train: BTreeMap<i64, Vec<(usize, i64)>> = BTreeMap::new();
    let mut past = train.clone();
    let (mut predictions, mut unscored) = (Vec::new(), 0);
    for &(user, item, day) in rows {
        let Ok(item) = items.binary_search(&item) else { continue };
        let taken = past.entry(user).or_default();
        if day <= cut {
            train.entry(user).or_default().push((item, day));
        } else {
            let earlier: Vec<(usize, i64)> = taken.iter().copied().filter(|(_, when)| *when < day).collect();
            if earlier.is_empty() {
                unscored += 1;
            } else {
                let with_previous =
                    (0..earlier.len()).map(|at| at > 0 && earlier[at].1 == earlier[at - 1].1).collect();
                let history = earlier.iter().map(|(item, _)| *item).collect();
                predictions.push(Prediction { history, with_previous, target: item });
            }
        }
        taken.push((item, day));
    }
    Asked { items, train, predictions, unscored }
}

/// The weights of `transitions` with its defaults, from their definition; rounded as they are kept, so that equal scores are equal here too.
fn transitions(asked: &Asked) -> Vec<Vec<f64>> {
    let num_items = asked.items.len();
    let mut pairs = vec![vec![0.0; num_items]; num_items];
    let mut counts = vec![0.0f64; num_items];
    for taken in asked.train.values() {
        for (at, &(a, _)) in taken.iter().enumerate() {
            counts[a] += 1.0;
            for (distance, &(b, _)) in (1..=10).zip(&taken[at + 1..]) {
                if a != b {
                    pairs[a][b] += 1.0 / f64::from(distance);
                }
            }
        }
    }
    for (a, row) in pairs.iter_mut().enumerate() {
        for (b, weight) in row.iter_mut().enumerate() {
            *weight = f64::from((*weight * (counts[a].powf(-0.5) * counts[b].powf(-0.3))) as f32);
        }
    }
    pairs
}

/// The scores of a history: every item counts one over its place from the end.
fn scores(weights: &[Vec<f64>], history: &[usize]) -> Vec<f64> {
    let mut scores = vec![0.0; weights.len()];
    for (lag, &a) in history.iter().rev().enumerate() {
        for (score, weight) in scores.iter_mut().zip(&weights[a]) {
            *score += (lag as f64 + 1.0).powf(-1.0) * weight;
        }
    }
    scores
}

/// Scores of a model of the library that learned from the training set as it was asked.
fn of_library(model: &dyn Recommender, prediction: &Prediction) -> Vec<f64> {
    let items: Vec<ItemIndex> = prediction.history.iter().map(|&item| ItemIndex(item as u32)).collect();
    let mut scores = vec![0f32; model.num_items()];
    model.score_batch(&[History::with_baskets(&items, &prediction.with_previous)], &mut scores);
    scores.into_iter().map(f64::from).collect()
}

/// NDCG@10 of a prediction: everything but the history is ranked, ties go to the lower item.
fn gain(scores: &[f64], prediction: &Prediction) -> f64 {
    let target = prediction.target;
    if prediction.history.contains(&target) {
        return 0.0;
    }
    let is_before = |item: &usize| {
        let (score, own) = (scores[*item] as f32, scores[target] as f32);
        let order = own.total_cmp(&score).then(item.cmp(&target));
        !prediction.history.contains(item) && order.is_lt()
    };
    let before = (0..scores.len()).filter(is_before).count();
    if before < 10 { 1.0 / (before as f64 + 2.0).log2() } else { 0.0 }
}

fn ordered(log: &Interactions, seed: u64) -> Vec<(i64, i64, i64)> {
    let id = |ids: &Ids, at: usize| match ids {
        Ids::Integers(ids) => ids[at],
        Ids::Texts(_) => unreachable!(),
    };
    let row = |row: &Interaction| {
        let (user, item) = (id(log.users(), row.user.get()), id(log.items(), row.item.get()));
        (user, item, row.time.0 / 1_000_000 / DAY)
    };
    Timeline::new(log, TiePolicy::Basket, seed).rows.iter().map(row).collect()
}

/// NDCG@10 of a model under `basket`, by the library.
fn library_ndcg(partition: &Partition, model: &str) -> f64 {
    let configured = Registry::default().find(model).unwrap().configure(&toml::Table::new()).unwrap();
    let fitted = configured.learner.fit(&partition.train, &()).unwrap();
    let items = partition.train.num_items();
    let outcome = evaluate(&*fitted, &partition.holdout, items, &EvaluateOptions::default(), &()).unwrap();
    outcome.estimate("NDCG@10".parse().unwrap()).value
}

#[test]
fn baskets_score_as_the_protocol_says() {
    let log = baskets();
    for seed in 0..3 {
        let partition = split(&log, TiePolicy::Basket, seed);
        let asked = ask(&ordered(&log, seed), 10);
        let counts = partition.holdout.counts;
        assert_eq!((counts.scored, counts.unscored_first), (asked.predictions.len(), asked.unscored));
        assert!(counts.repeats > 0 && counts.dropped_unknown_items > 0 && counts.unscored_first > 5);
        let mean = |gains: Vec<f64>| gains.iter().sum::<f64>() / gains.len() as f64;

        let weights = transitions(&asked);
        let slow = asked.predictions.iter().map(|one| gain(&scores(&weights, &one.history), one));
        let slow = mean(slow.collect());
        assert!((slow - library_ndcg(&partition, "transitions")).abs() < 1e-9, "seed {seed}: {slow}");

        // The model with baskets of its own, taught by hand.
        let ids = |n: usize| Arc::new(Ids::Integers((0..n as i64).collect()));
        let rows = asked.train.values().enumerate().flat_map(|(user, taken)| {
            let user = UserIndex(user as u32);
            taken
                .iter()
                .map(move |&(item, day)| (user, ItemIndex(item as u32), Timestamp::from_seconds(day * DAY)))
        });
        let (users, items) = (ids(asked.train.len()), ids(asked.items.len()));
        let train = Histories::from_ordered_rows(users, items, Clock::Calendar, rows);
        let configured = Registry::default().find("d-satf").unwrap().configure(&toml::Table::new()).unwrap();
        let model = configured.learner.fit(&train, &()).unwrap();
        let slow = asked.predictions.iter().map(|one| gain(&of_library(&*model, one), one));
        let slow = mean(slow.collect());
        assert!((slow - library_ndcg(&partition, "d-satf")).abs() < 1e-9, "seed {seed}: {slow}");
    }
}

#[test]
fn the_others_of_a_basket_are_unknown_and_may_be_recommended() {
    // Items by popularity: 0, 1, 2, 3. The last user takes 0 and 1 at once, after 3.
    let mut rows = vec![(9, 3, 0), (9, 0, 20), (9, 1, 20)];
    for (item, takers) in [(0, 5), (1, 4), (2, 3), (3, 2)] {
        rows.extend((0..takers).map(|user| (user, item, 1)));
    }
    // Newcomers' first baskets, of any size, have nothing to be predicted from.
    rows.extend([(7, 0, 20), (7, 2, 20), (7, 1, 21)]);
    let log = log(&rows);
    let partition = split(&log, TiePolicy::Basket, 3);
    assert_eq!(partition.holdout.counts.unscored_first, 2);
    let lengths: Vec<usize> = partition.holdout.events.iter().map(Event::history_len).collect();
    assert_eq!(lengths, [1, 1, 2], "nothing of the own basket is known");

    let configured = Registry::default().find("mp").unwrap().configure(&toml::Table::new()).unwrap();
    let model = configured.learner.fit(&partition.train, &()).unwrap();
    let ranks = |partition: &Partition| {
        let outcome = evaluate(&*model, &partition.holdout, 4, &EvaluateOptions::default(), &()).unwrap();
        let users = &partition.holdout.users;
        let mut ranks: Vec<(u32, u32)> = partition
            .holdout
            .events
            .iter()
            .zip(outcome.ranks)
            .filter(|(event, _)| users.get(event.user.get()).to_string() == "9")
            .map(|(event, rank)| (event.target.0, rank.unwrap()))
            .collect();
        ranks.sort_unstable();
        ranks
    };
    // 0 stands before 1 in both rankings: it was taken with 1, not before it.
    assert_eq!(ranks(&partition), [(0, 0), (1, 1)]);
    // With ties shuffled one of the two is seen when the other is predicted.
    let shuffled = ranks(&split(&log, TiePolicy::Shuffle, 3));
    assert!(shuffled == [(0, 0), (1, 0)] || shuffled == [(0, 0), (1, 1)], "{shuffled:?}");
}
