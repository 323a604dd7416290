//! Does order matter? It does in the made-up shop, and no longer once its histories are shuffled.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use satf::evaluate::{OrderCheck, OrderError, OrderOptions, Verdict, check_order};
use satf::generate::{ShopOptions, shop};
use satf::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use satf::prepare::{SplitError, SplitScheme};

fn shop_log(users: usize) -> Interactions {
    shop(&ShopOptions { users, ..ShopOptions::default() }).unwrap()
}

/// The same users and items with other rows.
fn with_rows(log: &Interactions, rows: Vec<Interaction>) -> Interactions {
    Interactions::from_indexed(Arc::clone(log.users()), Arc::clone(log.items()), rows, log.clock())
}

/// The same customers, products and times, but which product was bought when is drawn anew within each customer.
fn without_order(log: &Interactions, seed: u64) -> Interactions {
    let mut shuffled = log.rows().to_vec();
    let mut rows_of = vec![Vec::new(); log.users().len()];
    for (at, row) in log.rows().iter().enumerate() {
        rows_of[row.user.get()].push(at);
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for rows in rows_of {
        let mut items: Vec<ItemIndex> = rows.iter().map(|&row| log.rows()[row].item).collect();
        items.shuffle(&mut random);
        for (row, item) in rows.into_iter().zip(items) {
            shuffled[row].item = item;
        }
    }
    with_rows(log, shuffled)
}

fn options() -> OrderOptions {
    OrderOptions {
        repetitions: 2,
        ..OrderOptions::new(SplitScheme::Holdout { test: "1month".parse().unwrap() })
    }
}

fn check(log: &Interactions) -> OrderCheck {
    check_order(log, &options(), &()).unwrap()
}

#[test]
fn order_helps_in_the_shop() {
    let check = check(&shop_log(1500));
    assert_eq!(check.verdict, Verdict::HelpsClearly);
    assert_eq!((check.best().model, check.models.len()), ("transitions", 3));
    assert!(check.best().gain().unwrap() > 0.5 && check.best().effect.p_value < 0.001, "{check:?}");
    assert!(check.against_blind.difference > 0.0);
    assert_eq!(check.file_order, None, "no two purchases of a customer share a time");
    assert!(check.sentences()[0].starts_with("Order helps clearly: transitions"), "{:?}", check.sentences());
}

#[test]
fn a_model_without_order_is_not_moved_by_it() {
    let check = check(&shop_log(600));
    let blind = check.models.iter().find(|model| !model.knows_order).unwrap();
    assert!(blind.effect.difference.abs() < 1e-3 && blind.effect.p_value > 0.01, "{blind:?}");
}

#[test]
fn there_is_no_evidence_where_there_is_no_order() {
    let shop = shop_log(1500);
    for seed in 0..3 {
        let check = check(&without_order(&shop, seed));
        assert!(
            matches!(check.verdict, Verdict::CannotBeTold | Verdict::DoesNotHelp),
            "seed {seed}: {:?}",
            check.sentences()
        );
        assert!(check.sentences()[0].starts_with("No evidence that order helps"), "{:?}", check.sentences());
    }
}

#[test]
fn the_order_of_the_file_is_told_apart_from_that_of_events() {
    // Without an order of their own, the purchases of a day are written in the order of the catalogue.
    let log = without_order(&shop_log(1500), 7);
    let mut rows = log.rows().to_vec();
    for row in &mut rows {
        row.time.0 -= row.time.0.rem_euclid(90 * 86_400 * 1_000_000);
    }
    rows.sort_by_key(|row| (row.time, row.user, row.item));
    let log = with_rows(&log, rows);
    let check = check_order(
        &log,
        &OrderOptions { scheme: SplitScheme::Holdout { test: "2months".parse().unwrap() }, ..options() },
        &(),
    )
    .unwrap();
    let file = check.file_order.as_ref().unwrap();
    assert!(file.tied_share > 0.8, "{}", file.tied_share);
    let best = &file.models[0];
    assert!(
        best.model == check.best().model && best.effect.p_value < 0.001 && best.gain().unwrap() > 0.2,
        "{check:?}"
    );
    assert!(matches!(check.verdict, Verdict::CannotBeTold | Verdict::DoesNotHelp), "{:?}", check.sentences());
    assert!(
        check.sentences()[1].contains("of that comes from the order of rows in the file"),
        "{:?}",
        check.sentences()
    );
}

#[test]
fn a_seed_gives_the_same_bits_on_any_number_of_threads() {
    let log = shop_log(300);
    let of_threads = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check_order(&log, &OrderOptions { seed, ..options() }, &()).unwrap())
    };
    let one = of_threads(1, 5);
    assert_eq!(one, of_threads(2, 5));
    assert_eq!(one, of_threads(3, 5));
    assert_ne!(one, of_threads(2, 6));
}

#[test]
fn events_are_thinned_evenly() {
    let log = shop_log(600);
    let all = check(&log).events;
    let some = check_order(&log, &OrderOptions { most_events: 100, ..options() }, &()).unwrap();
    assert!(all > 300 && some.events == 100, "{all}");
}

#[test]
fn two_users_and_two_items_are_too_few_to_tell() {
    let day = |day: i64| Timestamp(day * 86_400 * 1_000_000);
    let row =
        |user, item, time| Interaction { user: UserIndex(user), item: ItemIndex(item), time: day(time) };
    let log = Interactions::from_indexed(
        Ids::Integers(vec![1, 2]),
        Ids::Integers(vec![7, 8]),
        vec![row(0, 0, 0), row(1, 0, 1), row(0, 1, 2), row(1, 1, 30), row(0, 0, 31)],
        Clock::Calendar,
    );
    for scheme in [SplitScheme::Holdout { test: "1week".parse().unwrap() }, SplitScheme::LeaveOneOut] {
        let check = check_order(&log, &OrderOptions::new(scheme), &()).unwrap();
        assert!(
            check.verdict != Verdict::HelpsClearly && check.verdict != Verdict::HelpsALittle,
            "{check:?}"
        );
    }
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let log = shop_log(50);
    let nothing = OrderOptions { repetitions: 0, ..options() };
    assert!(matches!(
        check_order(&log, &nothing, &()),
        Err(OrderError::Options { field: "repetitions", value: 0 })
    ));
    let long = OrderOptions::new(SplitScheme::Holdout { test: "9years".parse().unwrap() });
    let error = check_order(&log, &long, &()).unwrap_err();
    assert!(matches!(error, OrderError::Split(SplitError::OffsetTooLong { .. })), "{error}");
    let empty = with_rows(&log, Vec::new());
    assert!(matches!(check_order(&empty, &options(), &()), Err(OrderError::Split(_))));
}
