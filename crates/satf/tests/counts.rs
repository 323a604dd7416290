//! The counts of D-SATF form a group: whatever the order, the parts and the way events come and go, equal events give equal models, to the
//! bit of the file.

#![allow(clippy::unwrap_used)]

use std::fs;

use proptest::prelude::*;
use satf::counts::CountsError;
use satf::generate::{ShapeOptions, like};
use satf::models::UserData;
use satf::prepare::Histories;
use satf::{
    Counts, CountsOptions, FitError, FitOptions, Interactions, Model, Registry, StatisticsError, TiePolicy,
    Timestamp,
};

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
        let one_by_one = counts(&events);
        prop_assert_eq!(&of_counts(&one_by_one), &expected);
        let at_once = Counts::of(&log(&events), CountsOptions::default()).unwrap();
        prop_assert_eq!(&of_counts(&at_once), &expected);
        // Every sum, not only what a model shows of it.
        prop_assert_eq!(&at_once, &one_by_one);
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
            prop_assert_eq!(&whole, &counts(&events));
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
    fn what_is_subtracted_was_never_there(kept in events(), gone in events()) {
        let (all, part) = (counts(&[&kept[..], &gone].concat()), counts(&gone));
        let mut rest = all.clone();
        rest.subtract(&part).unwrap();
        prop_assert_eq!(&rest, &counts(&kept));
        prop_assert_eq!(&of_counts(&rest), &of_log(&kept));
        rest.subtract(&counts(&kept)).unwrap();
        prop_assert_eq!(&rest, &Counts::default());
        rest.merge(&all).unwrap();
        prop_assert_eq!(&rest, &all);
        // More than there is: nothing is taken away.
        let mut too_few = counts(&gone);
        let error = too_few.subtract(&all).unwrap_err();
        prop_assert_eq!(error, CountsError::NotCounted { missing: kept.len() });
        prop_assert_eq!(&too_few, &part);
    }

    #[test]
    fn events_go_through_files(first in events(), second in events(), user in 0u8..5, item in 0u8..9) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.satf");
        let options = FitOptions { with_statistics: true, ..options() };
        let fit = |events: &[Event]| bytes(&Model::fit_with(&log(events), &options, &()).unwrap());
        fs::write(&path, fit(&first)).unwrap();
        let model = Model::load(&path).unwrap();
        prop_assert_eq!(&model.counts().unwrap(), &counts(&first));
        prop_assert_eq!(&bytes(&model), &fs::read(&path).unwrap());
        let known = UserData::Events { users: counts(&first).num_users(), events: first.len() };
        prop_assert_eq!(model.user_data(), known);

        // What comes later is added, by its log or event by event.
        let all = [&first[..], &second].concat();
        let joined = model.log().unwrap().joined(&log(&second)).unwrap();
        prop_assert_eq!(&bytes(&Model::fit_with(&joined, &options, &()).unwrap()), &fit(&all));
        let mut counted = model.counts().unwrap();
        add(&mut counted, &second);
        prop_assert_eq!(&bytes(&Model::of_counts_with(&counted, &options, &()).unwrap()), &fit(&all));

        // What is forgotten leaves nothing.
        let left: Vec<Event> = all.iter().copied().filter(|event| event.0 != user && event.1 != item).collect();
        if !left.is_empty() {
            let (users, items) = (joined.users().clone(), joined.items().clone());
            let gone = joined.without(|row| {
                users.get(row.user.get()).to_string() == format!("u{user}")
                    || items.get(row.item.get()).to_string() == item.to_string()
            });
            prop_assert_eq!(&bytes(&Model::fit_with(&gone, &options, &()).unwrap()), &fit(&left));
            counted.forget_user(format!("u{user}"));
            counted.forget_item(i64::from(item));
            prop_assert_eq!(&bytes(&Model::of_counts_with(&counted, &options, &()).unwrap()), &fit(&left));
        }
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
            assert!(Counts::of(&log, CountsOptions::default()).unwrap() == counts, "{threads} threads, sums");
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

#[test]
fn a_file_without_events_is_the_same_as_ever_and_one_with_them_only_longer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    let events: Vec<Event> = (0..200).map(|at| ((at % 5) as u8, (at * at % 9) as u8, at / 40)).collect();
    for model in ["d-satf", "transitions", "vmis-knn"] {
        let plain = FitOptions::new(model);
        let keeping = FitOptions { with_statistics: true, ..FitOptions::new(model) };
        let without = Model::fit_with(&log(&events), &plain, &()).unwrap();
        assert!(!without.has_statistics() && matches!(without.log(), Err(StatisticsError::None)));
        let with = Model::fit_with(&log(&events), &keeping, &()).unwrap();
        with.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded.manifest(), with.manifest());
        assert_eq!(loaded.tensors().len(), without.tensors().len() + 5);
        let counted = loaded.counts().unwrap();
        assert_eq!(bytes(&Model::of_counts_with(&counted, &plain, &()).unwrap()), bytes(&without));

        // Who reads a model into memory leaves the events where they are, and saves none.
        let limit = fs::metadata(&path).unwrap().len() - 12 * events.len() as u64;
        let copied = Model::load_copied(&path, &Registry::default(), limit).unwrap();
        assert!(copied.has_statistics() && matches!(copied.counts(), Err(StatisticsError::NotLoaded)));
        assert_eq!(bytes(&copied), bytes(&without));
    }
}

#[test]
fn ties_in_the_order_of_a_file_cannot_be_kept() {
    let options = FitOptions { with_statistics: true, ties: TiePolicy::File, ..FitOptions::default() };
    let error = Model::fit_with(&log(&[(1, 2, 3)]), &options, &()).err().unwrap();
    assert!(matches!(error, FitError::TiesOfFile) && error.to_string().contains("hint:"), "{error}");
}

#[test]
fn an_order_without_times_is_kept_as_one() {
    let options = FitOptions { with_statistics: true, ..FitOptions::default() };
    let ordered = |items: &[i64]| {
        let mut builder = satf::LogBuilder::new();
        for (at, item) in items.iter().enumerate() {
            builder.push_in_order((at % 3) as i64, *item).unwrap();
        }
        builder.finish().unwrap()
    };
    let model = Model::fit_with(&ordered(&[1, 2, 3, 1, 2, 3]), &options, &()).unwrap();
    let joined = model.log().unwrap().joined(&ordered(&[3, 2, 1])).unwrap();
    let expected = Model::fit_with(&ordered(&[1, 2, 3, 1, 2, 3, 3, 2, 1]), &options, &()).unwrap();
    assert!(bytes(&Model::fit_with(&joined, &options, &()).unwrap()) == bytes(&expected));
    assert!(model.log().unwrap().joined(&log(&[(1, 2, 3)])).is_err());
}

/// An array, the value that takes the place of its first one, and what is said of it.
type Change<'a> = (&'a str, &'a [u8], &'a str);

/// Files that were changed under checksums that fit: what is not as it should be is refused when the events are asked for, and nothing
/// panics.
#[test]
fn events_of_hostile_files_are_checked_before_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    let events: Vec<Event> = (0..60).map(|at| ((at % 4) as u8, (at * 7 % 9) as u8, at / 20)).collect();
    let options = FitOptions { with_statistics: true, ..options() };
    let whole = bytes(&Model::fit_with(&log(&events), &options, &()).unwrap());
    let header_length = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&whole[8..8 + header_length]).unwrap();
    let start = header["event_offsets"]["data_offsets"][0].as_u64().unwrap() as usize;
    let events_at = 8 + header_length + start;
    // Without checksums that fit, the model is whole and its events are not; a changed model is refused at once.
    for at in [events_at, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        let model = Model::load(&path).unwrap();
        assert!(matches!(model.counts(), Err(StatisticsError::Checksum)));
    }
    let mut changed = whole.clone();
    changed[events_at - 1] ^= 1;
    fs::write(&path, &changed).unwrap();
    assert!(Model::load(&path).is_err());
    for length in [events_at - 1, events_at, events_at + 8, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(
            Model::load(&path).is_err() && Model::load_copied(&path, &Registry::default(), 1 << 30).is_err()
        );
    }

    let old = blake3_of(&whole[events_at..]);
    let resealed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        let new = blake3_of(&bytes[events_at..]);
        let text = String::from_utf8_lossy(&bytes[..8 + header_length]).into_owned();
        let at = text.find(&old).unwrap();
        bytes[at..at + 64].copy_from_slice(new.as_bytes());
        bytes[37..101].fill(b'0');
        let checksum = blake3_of(&bytes[..events_at]);
        bytes[37..101].copy_from_slice(checksum.as_bytes());
        fs::write(&path, &bytes).unwrap();
        Model::load(&path).unwrap().counts().map(drop).map_err(|error| error.to_string())
    };
    let place = |name: &str| 8 + header_length + header[name]["data_offsets"][0].as_u64().unwrap() as usize;
    assert_eq!(resealed(&|_| ()), Ok(()));
    let changes: [Change<'_>; 6] = [
        ("event_items", &u32::MAX.to_le_bytes(), "tensor 'event_items': expected items below 9"),
        ("event_times", &i64::MAX.to_le_bytes(), "times that a log may have"),
        ("event_times", &1_000_000_000i64.to_le_bytes(), "the oldest event of each user first"),
        ("event_offsets", &1u64.to_le_bytes(), "offsets from 0 to 60"),
        ("event_user_id_offsets", &9u64.to_le_bytes(), "tensor 'event_user_id_offsets'"),
        ("event_user_id_bytes", b"z", "ascending, distinct ids"),
    ];
    for (name, value, expected) in changes {
        let at = place(name);
        let error =
            resealed(&|bytes: &mut Vec<u8>| bytes[at..at + value.len()].copy_from_slice(value)).unwrap_err();
        assert!(error.contains(expected) && error.contains("hint: train again"), "{error}");
    }
    // Some single bits: many still are a log, none makes a panic.
    for at in (0..8 * (whole.len() - events_at)).step_by(29) {
        let _ = resealed(&|bytes: &mut Vec<u8>| bytes[events_at + at / 8] ^= 1 << (at % 8));
    }
}

fn blake3_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
