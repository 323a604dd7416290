//! The split against its definition, on random logs.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use satf::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use satf::prepare::{Split, SplitError, SplitScheme, TiePolicy, Timeline};

const DAY: i64 = 86_400;

fn log(rows: &[(u32, u32, i64)], clock: Clock) -> Interactions {
    // Ids 0..n, then renumbered without gaps as every reader does.
    let all = |n: u32| Ids::Integers((0..i64::from(n)).collect());
    let rows = rows
        .iter()
        .map(|&(user, item, day)| Interaction {
            user: UserIndex(user),
            item: ItemIndex(item),
            time: Timestamp::from_seconds(day * DAY),
        })
        .collect();
    Interactions::from_indexed(all(20), all(20), rows, clock)
}

fn scheme(valid: &str, test: &str) -> SplitScheme {
    SplitScheme::Calendar { valid: valid.parse().unwrap(), test: test.parse().unwrap() }
}

/// The protocol word by word, on ids: `(user, history, target)` of every event scored, and the counts of
/// rows dropped and unscored.
#[allow(clippy::type_complexity)]
fn slow_events(
    ordered: &[(i64, i64, i64)],
    cut: i64,
    end: i64,
    basket: bool,
) -> (Vec<(i64, Vec<i64>, i64)>, usize, usize) {
    let catalog: BTreeSet<i64> = ordered.iter().filter(|row| row.2 <= cut).map(|row| row.1).collect();
    let mut histories: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for row in ordered.iter().filter(|row| row.2 <= cut) {
        histories.entry(row.0).or_default().push((row.1, row.2));
    }
    let (mut events, mut dropped, mut unscored) = (Vec::new(), 0, 0);
    for &(user, item, time) in ordered.iter().filter(|row| row.2 > cut && row.2 <= end) {
        if !catalog.contains(&item) {
            dropped += 1;
            continue;
        }
        let past = histories.entry(user).or_default();
        let usable: Vec<i64> =
            past.iter().filter(|(_, when)| !basket || *when < time).map(|(item, _)| *item).collect();
        if usable.is_empty() {
            unscored += 1;
        } else {
            events.push((user, usable, item));
        }
        past.push((item, time));
    }
    (events, dropped, unscored)
}

proptest! {
    #[test]
    fn events_are_what_the_protocol_says(
        rows in prop::collection::vec((0u32..8, 0u32..10, 0i64..40), 1..120),
        policy in prop::sample::select(vec![TiePolicy::File, TiePolicy::Shuffle, TiePolicy::Basket]),
        valid in 1i64..15,
        test in 1i64..15,
        seed in 0u64..4,
    ) {
        let log = log(&rows, Clock::Calendar);
        let timeline = Timeline::new(&log, policy, seed);
        prop_assert!(timeline.rows.windows(2).all(|two| two[0].time <= two[1].time));
        let id = |ids: &Ids, at: usize| match ids {
            Ids::Integers(ids) => ids[at],
            Ids::Texts(_) => unreachable!(),
        };
        let ordered: Vec<(i64, i64, i64)> = timeline.rows.iter()
            .map(|row| (id(log.users(), row.user.get()), id(log.items(), row.item.get()), row.time.0 / 1_000_000 / DAY))
            .collect();
        let newest = ordered.last().unwrap().2;
        let (test_from, valid_from) = (newest - test, newest - test - valid);

        let scheme = scheme(&format!("{valid}days"), &format!("{test}days"));
        let split = match Split::new(timeline, scheme) {
            Ok(split) => split,
            Err(error) => {
                let too_long = matches!(error, SplitError::OffsetTooLong { .. });
                prop_assert!(too_long && ordered[0].2 > valid_from, "{}", error);
                return Ok(());
            }
        };
        let parts = [(split.validation(), valid_from, test_from), (split.test(), test_from, newest)];
        for (partition, cut, end) in parts {
            let (events, dropped, unscored) = slow_events(&ordered, cut, end, policy == TiePolicy::Basket);
            match partition {
                Ok(partition) => {
                    let catalog = partition.train.catalog();
                    let ours: Vec<(i64, Vec<i64>, i64)> = partition.holdout.events.iter().map(|event| {
                        let history = partition.holdout.history(event);
                        let history = history.iter().map(|item| id(catalog, item.get())).collect();
                        (id(&partition.holdout.users, event.user.get()), history, id(catalog, event.target.get()))
                    }).collect();
                    prop_assert_eq!(ours, events);
                    let counts = partition.holdout.counts;
                    prop_assert_eq!(counts.dropped_unknown_items, dropped);
                    prop_assert_eq!(counts.unscored_first, unscored);
                    prop_assert_eq!(counts.scored + unscored + dropped, counts.rows);
                    prop_assert_eq!(partition.train.num_rows(), ordered.iter().filter(|row| row.2 <= cut).count());
                }
                Err(SplitError::TooSmall { .. }) => {
                    let train: Vec<_> = ordered.iter().filter(|row| row.2 <= cut).collect();
                    let users: BTreeSet<_> = train.iter().map(|row| row.0).collect();
                    let items: BTreeSet<_> = train.iter().map(|row| row.1).collect();
                    prop_assert!(users.len() < 2 || items.len() < 2);
                }
                Err(error) => prop_assert!(events.is_empty(), "{}", error),
            }
        }
    }

    #[test]
    fn leave_one_out_holds_the_newest_event_of_every_long_enough_user(
        rows in prop::collection::vec((0u32..8, 0u32..10, 0i64..40), 12..120),
    ) {
        let log = log(&rows, Clock::RowOrder);
        let timeline = Timeline::new(&log, TiePolicy::Shuffle, 1);
        let ordered = timeline.rows.clone();
        let Ok(split) = Split::new(timeline, SplitScheme::LeaveOneOut) else { return Ok(()) };
        let Ok(partition) = split.test() else { return Ok(()) };
        let counts = partition.holdout.counts;
        let lengths: Vec<usize> =
            (0..log.users().len()).map(|user| ordered.iter().filter(|row| row.user.get() == user).count()).collect();
        prop_assert_eq!(counts.rows, lengths.iter().filter(|&&len| len >= 3).count());
        for event in &partition.holdout.events {
            let newest = ordered.iter().rev().find(|row| row.user == event.user).unwrap();
            prop_assert_eq!(event.time, newest.time);
        }
    }
}

#[test]
fn the_parts_of_a_split_are_logs_that_make_the_whole() {
    let rows = [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 8), (0, 2, 9), (1, 2, 10)];
    let log = log(&rows, Clock::Calendar);
    let split = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme("1day", "1day")).unwrap();
    let parts = split.logs();
    assert_eq!(parts.each_ref().map(Interactions::len), split.rows());
    assert_eq!(split.rows(), [4, 1, 1]);
    let days: Vec<i64> =
        parts.iter().flat_map(Interactions::rows).map(|row| row.time.0 / 1_000_000 / DAY).collect();
    assert_eq!(days, [0, 1, 2, 8, 9, 10]);
    // The catalogue of a part is its own.
    assert_eq!((parts[0].items().len(), parts[2].users().len()), (2, 1));
}

#[test]
fn impossible_splits_say_why() {
    let rows = [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3), (0, 2, 10)];
    let calendar = log(&rows, Clock::Calendar);
    let split = |log: &Interactions, valid: &str, test: &str| {
        Split::new(Timeline::new(log, TiePolicy::File, 0), scheme(valid, test))?.test().map(|_| ())
    };
    let message = |result: Result<(), SplitError>| result.unwrap_err().to_string();
    assert!(
        message(split(&calendar, "3weeks", "3weeks")).contains("reach back past the first row at 1970-01-01")
    );
    assert!(message(split(&calendar, "1day", "1day")).contains("1 are of items unknown to the training set"));
    let ordered = log(&rows, Clock::RowOrder);
    assert!(message(split(&ordered, "1day", "1day")).contains("leave-one-out"));
    let lonely = log(&[(0, 0, 0), (0, 1, 1), (0, 2, 5), (0, 1, 9)], Clock::Calendar);
    assert!(message(split(&lonely, "1day", "1day")).contains("1 user:"));
    let single = log(&[(0, 0, 0), (1, 0, 1), (0, 0, 9)], Clock::Calendar);
    assert!(message(split(&single, "1day", "1day")).contains("1 item:"));
}
