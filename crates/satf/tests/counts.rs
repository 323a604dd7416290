//! The counts of D-SATF form a group: whatever the order, the parts and the way events come and go, equal events give equal models, to the
//! bit of the file.

#![allow(clippy::unwrap_used)]

use std::fs;

use proptest::prelude::*;
use satf::counts::CountsError;
use satf::generate::{ShapeOptions, like};
use satf::prepare::Histories;
use satf::{Counts, CountsOptions, FitOptions, Interactions, Model, TiePolicy, Timestamp};

type Event = (u8, u8, i64);

/// Users, items and days, with many events at one time and some that repeat an item.
fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0u8..5, 0u8..9, 0i64..6), 1..60)
}

fn time(day: i64) -> Timestamp {
    Timestamp::from_seconds(day * 86_400)
}

fn add(counts: &mut Counts, events: &[Event]) {
    for &(user, item, day) in events {
        counts.add(format!("u{user}"), i64::from(item), time(day)).unwrap();
    }
}

fn counts(events: &[Event]) -> Counts {
    let mut counts = Counts::default();
    add(&mut counts, events);
    counts
}

fn log(events: &[Event]) -> Interactions {
    let row = |&(user, item, day): &Event| (format!("u{user}"), i64::from(item), day * 86_400);
    Interactions::from_events(events.iter().map(row)).unwrap()
}

/// The bytes of a model's file.
fn bytes(model: &Model) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    model.save(&path).unwrap();
    fs::read(path).unwrap()
}

/// The same with pairs for memory alone, so that nothing but the counts decides.
fn options() -> FitOptions {
    FitOptions::default().set("balance", 0.0)
}

fn of_counts(counts: &Counts) -> Vec<u8> {
    bytes(&Model::of_counts_with(counts, &options(), &()).unwrap())
}

fn of_log(events: &[Event]) -> Vec<u8> {
    bytes(&Model::fit_with(&log(events), &options(), &()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn event_by_event_in_any_order_is_the_whole_log(events in events(), shift in 0usize..60) {
        let expected = of_log(&events);
        prop_assert_eq!(&of_counts(&counts(&events)), &expected);
        prop_assert_eq!(&of_counts(&Counts::of(&log(&events), CountsOptions::default()).unwrap()), &expected);
        let mut others = events.clone();
        others.reverse();
        others.rotate_left(shift % events.len());
        prop_assert_eq!(&of_counts(&counts(&others)), &expected);
        // The order of the file plays no part either.
        prop_assert_eq!(&of_log(&others), &expected);
    }

    #[test]
    fn any_parts_in_any_order_merge_to_the_whole(events in events(), parts in prop::collection::vec(0usize..3, 60)) {
        let mut cut = vec![Vec::new(); 3];
        for (event, part) in events.iter().zip(parts) {
            cut[part].push(*event);
        }
        let expected = of_log(&events);
        for order in [[0, 1, 2], [2, 0, 1]] {
            let mut whole = Counts::default();
            for part in order {
                whole.merge(&counts(&cut[part])).unwrap();
            }
            prop_assert_eq!(&of_counts(&whole), &expected);
        }
    }

    #[test]
    fn what_comes_and_goes_was_never_there(kept in events(), gone in events()) {
        let mut all = counts(&kept);
        add(&mut all, &gone);
        for &(user, item, day) in &gone {
            let removed = all.remove(format!("u{user}"), i64::from(item), time(day));
            prop_assert!(removed);
        }
        prop_assert_eq!(all.num_events(), kept.len());
        prop_assert_eq!(&of_counts(&all), &of_log(&kept));
    }

    #[test]
    fn forgetting_is_never_having_seen(events in events(), user in 0u8..5, item in 0u8..9) {
        let without_user: Vec<Event> = events.iter().copied().filter(|event| event.0 != user).collect();
        let mut all = counts(&events);
        prop_assert_eq!(all.forget_user(format!("u{user}")), events.len() - without_user.len());
        if !without_user.is_empty() {
            prop_assert_eq!(&of_counts(&all), &of_log(&without_user));
        }
        let rest: Vec<Event> = without_user.iter().copied().filter(|event| event.1 != item).collect();
        prop_assert_eq!(all.forget_item(i64::from(item)), without_user.len() - rest.len());
        if !rest.is_empty() {
            prop_assert_eq!(&of_counts(&all), &of_log(&rest));
        }
    }
}

/// A log that is large enough for a rehearsal and a core, with everything learned, on several numbers of threads.
#[test]
fn models_with_everything_learned_are_the_same_on_any_number_of_threads() {
    let log = like(&ShapeOptions { users: 1500, items: 120, rows: 15_000, seed: 3 }).unwrap();
    let expected = bytes(&Model::fit(&log).unwrap());
    let counts = Counts::of(&log, CountsOptions::default()).unwrap();
    assert_eq!(counts.num_events(), 15_000);
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            assert!(bytes(&Model::fit(&log).unwrap()) == expected, "{threads} threads");
            assert!(bytes(&Model::of_counts(&counts).unwrap()) == expected, "{threads} threads, counted");
        });
    }
    // The events are kept as they came.
    let (histories, _) = Histories::of_log(&log, TiePolicy::Shuffle, 0);
    assert_eq!(counts.histories(), histories);
}

#[test]
fn a_model_without_counts_learns_from_the_events() {
    let events: Vec<Event> = (0..50).map(|at| ((at % 5) as u8, (at * at % 9) as u8, at / 5)).collect();
    let options = FitOptions::new("transitions");
    let expected = Model::fit_with(&log(&events), &options, &()).unwrap();
    let counted = Model::of_counts_with(&counts(&events), &options, &()).unwrap();
    assert!(bytes(&counted) == bytes(&expected));
}

#[test]
fn counts_of_different_kinds_are_not_merged() {
    let mut one = Counts::default();
    let other = Counts::new(CountsOptions { window: 3, ..CountsOptions::default() });
    let error = one.merge(&other).unwrap_err();
    assert!(matches!(error, CountsError::OtherOptions { .. }));
    assert!(error.to_string().contains("window: 50") && error.to_string().contains("window: 3"), "{error}");
}

#[test]
fn what_is_known_of_a_user_can_be_told() {
    let events = [(1, 4, 2), (1, 3, 1), (2, 4, 1)];
    let mut counts = counts(&events);
    let known = |counts: &Counts, user: &str| {
        counts
            .events_of(user)
            .map(|(item, time)| (item.to_string(), time.0 / 86_400_000_000))
            .collect::<Vec<_>>()
    };
    assert_eq!(known(&counts, "u1"), [("3".to_owned(), 1), ("4".to_owned(), 2)]);
    assert!(known(&counts, "nobody").is_empty());
    assert_eq!((counts.forget_user("nobody"), counts.forget_item("nothing")), (0, 0));
    assert!(!counts.remove("u1", 4, time(9)));
    counts.forget_user("u1");
    assert!(known(&counts, "u1").is_empty());
    assert_eq!(counts.users().map(|user| user.to_string()).collect::<Vec<_>>(), ["u2"]);
}
