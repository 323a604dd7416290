use hashbrown::HashMap;

use super::*;

fn on_threads(threads: usize, options: &ShapeOptions) -> Interactions {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| like(options)).unwrap()
}

fn assert_shape(options: &ShapeOptions, log: &Interactions) {
    assert_eq!(log.users().len(), options.users);
    assert_eq!(log.items().len(), options.items);
    assert_eq!(log.rows().len(), options.rows);
    let mut users = vec![0usize; options.users];
    let mut items = vec![0usize; options.items];
    for row in log.rows() {
        users[row.user.get()] += 1;
        items[row.item.get()] += 1;
        let seconds = row.time.0 / 1_000_000 - OPENING;
        assert!((0..SPAN).contains(&seconds), "{seconds}");
    }
    assert!(users.iter().all(|&rows| rows >= 1), "a user without rows");
    assert!(items.iter().all(|&rows| rows >= 1), "an item without rows");
    assert!(log.rows().windows(2).all(|pair| pair[0].time <= pair[1].time));
    let mut pairs: Vec<_> = log.rows().iter().map(|row| (row.user, row.item)).collect();
    pairs.sort_unstable();
    assert!(pairs.windows(2).all(|pair| pair[0] != pair[1]), "a pair of a user and an item stands twice");
    let mut moments: Vec<_> = log.rows().iter().map(|row| (row.user, row.time)).collect();
    moments.sort_unstable();
    assert!(moments.windows(2).all(|pair| pair[0] != pair[1]), "a user has two rows at one time");
}

#[test]
fn every_shape_is_met_to_the_row() {
    for (users, items, rows) in [
        (10_000, 2_000, 120_000),
        (1, 1, 1),
        (50, 1, 50),
        (3, 2, 3),
        (7, 40, 70),
        (100, 3_000, 3_000),
        (3_000, 100, 3_001),
        (40, 100, 1_000),
        (200, 1_500, 30_000),
    ] {
        let options = ShapeOptions { users, items, rows, seed: 5 };
        assert_shape(&options, &like(&options).unwrap());
    }
}

#[test]
fn a_seed_gives_the_same_log_on_any_number_of_threads() {
    let options = ShapeOptions::default();
    let alone = on_threads(1, &options);
    assert_eq!(alone, on_threads(2, &options));
    assert_eq!(alone, on_threads(4, &options));
    assert_ne!(alone, like(&ShapeOptions { seed: 2, ..options }).unwrap());
}

#[test]
fn popularity_and_histories_are_skewed() {
    let options = ShapeOptions::default();
    let log = like(&options).unwrap();
    let (mut items, mut users) = (vec![0usize; options.items], vec![0usize; options.users]);
    for row in log.rows() {
        items[row.item.get()] += 1;
        users[row.user.get()] += 1;
    }
    items.sort_unstable_by(|a, b| b.cmp(a));
    users.sort_unstable();
    let top: usize = items[..options.items / 10].iter().sum();
    assert!(top * 3 > options.rows, "{top} of {}", options.rows);
    assert!(users[0] >= 5 && users[options.users / 2] < 12 && users[options.users - 1] > 40);
}

#[test]
fn order_carries_information() {
    let log = like(&ShapeOptions::default()).unwrap();
    let mut last = vec![None; log.users().len()];
    let mut steps: HashMap<(u32, u32), usize> = HashMap::new();
    for row in log.rows() {
        if let Some(from) = last[row.user.get()].replace(row.item.0) {
            *steps.entry((from, row.item.0)).or_default() += 1;
        }
    }
    // Of the pairs that are often taken one after the other, most go one way.
    let frequent: Vec<_> = steps.iter().filter(|&(_, &count)| count >= 20).collect();
    assert!(frequent.len() > 300, "{}", frequent.len());
    let back = |&(from, to): &(u32, u32)| steps.get(&(to, from)).copied().unwrap_or(0);
    let one_way = frequent.iter().filter(|&&(pair, &count)| count > 3 * back(pair)).count();
    assert!(one_way * 10 > frequent.len() * 9, "{one_way} of {}", frequent.len());
}

#[test]
fn impossible_shapes_are_refused_with_the_range() {
    let refused =
        |users, items, rows| like(&ShapeOptions { users, items, rows, seed: 1 }).unwrap_err().to_string();
    assert!(refused(0, 0, 10).contains("users = 0"));
    assert!(refused(0, 0, 10).contains("items = 0"));
    assert!(refused(100, 50, 99).contains("rows = 99: expected 100 to 1,250"));
    assert!(refused(100, 50, 1_251).contains("rows = 1251"));
    assert!(refused(1, 50, 50).contains("rows = 50"));
    assert!(refused(usize::MAX, 2, usize::MAX).contains("rows"));
}

/// Run with `--ignored --nocapture` in release mode to see the time.
#[test]
#[ignore = "three and a half million rows"]
fn a_log_as_large_as_steam_is_made_in_seconds() {
    let options = ShapeOptions { users: 281_205, items: 11_961, rows: 3_500_000, seed: 1 };
    let start = std::time::Instant::now();
    let log = like(&options).unwrap();
    println!("{:.2} s", start.elapsed().as_secs_f64());
    assert_shape(&options, &log);
}
