use hashbrown::{HashMap, HashSet};

use super::*;
use crate::interactions::Id;

/// Every user's items, oldest first.
fn sequences(log: &Interactions) -> Vec<Vec<u32>> {
    let mut sequences = vec![Vec::new(); log.users().len()];
    for row in log.rows() {
        sequences[row.user.get()].push(row.item.0);
    }
    sequences
}

fn on_threads(threads: usize, options: &ShopOptions) -> Interactions {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| shop(options)).unwrap()
}

#[test]
fn a_seed_gives_the_same_log_on_any_number_of_threads() {
    let options = ShopOptions { users: 500, ..ShopOptions::default() };
    let alone = on_threads(1, &options);
    assert_eq!(alone, on_threads(2, &options));
    assert_eq!(alone, on_threads(4, &options));
    assert_ne!(alone, shop(&ShopOptions { seed: 2, ..options }).unwrap());
}

#[test]
fn the_log_has_the_shape_promised() {
    let options = ShopOptions::default();
    let log = shop(&options).unwrap();
    assert_eq!(log.users().len(), 4000);
    assert_eq!(log.users().get(41), Id::Text("user-00042"));
    assert_eq!(log.items().len(), Catalog::get().products.len());
    let Ids::Texts(names) = &**log.items() else { panic!("names are texts") };
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));

    let mut lengths: Vec<_> = sequences(&log).iter().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths[0], 5);
    assert!(lengths[lengths.len() - 1] <= 60 && lengths[lengths.len() - 1] > 40);
    assert!((9..=11).contains(&lengths[lengths.len() / 2]), "median {}", lengths[lengths.len() / 2]);

    let pairs: HashSet<_> = log.rows().iter().map(|row| (row.user, row.item)).collect();
    assert_eq!(pairs.len(), log.rows().len(), "somebody took a product twice");
}

#[test]
fn times_ascend_through_the_days_asked_for() {
    for (users, days) in [(4000, 365), (300, 7), (300, 30), (1, 7)] {
        let log = shop(&ShopOptions { users, days, ..ShopOptions::default() }).unwrap();
        assert!(log.rows().windows(2).all(|pair| pair[0].time <= pair[1].time));
        let (first, last) = (log.rows()[0].time, log.rows()[log.rows().len() - 1].time);
        assert!(first >= Timestamp::from_seconds(OPENING));
        assert!(last < Timestamp::from_seconds(OPENING + i64::from(days) * DAY));
        assert!(sequences(&log).iter().all(|items| (5..=60).contains(&items.len())));
        let mut moments: Vec<_> = log.rows().iter().map(|row| (row.user, row.time)).collect();
        moments.sort_unstable();
        assert!(moments.windows(2).all(|pair| pair[0] != pair[1]), "a user has two rows at one time");
    }
}

#[test]
fn users_join_over_time_and_the_shop_stays_busy() {
    let log = shop(&ShopOptions::default()).unwrap();
    let month = |time: Timestamp| ((time.0 / 1_000_000 - OPENING) / (DAY * 365 / 12)).min(11) as usize;
    let (mut joined, mut rows) = ([0; 12], [0; 12]);
    let mut known = HashSet::new();
    for row in log.rows() {
        rows[month(row.time)] += 1;
        joined[month(row.time)] += usize::from(known.insert(row.user));
    }
    assert!(joined.iter().all(|&users| users > 100), "{joined:?}");
    assert!(rows.iter().all(|&rows| rows > 1000), "{rows:?}");
}

#[test]
fn new_products_are_not_sold_before_their_launch() {
    let options = ShopOptions::default();
    let log = shop(&options).unwrap();
    let launches: HashMap<_, _> = Catalog::get().products.iter().map(|p| (p.name, p.launch)).collect();
    for row in log.rows() {
        let Id::Text(name) = log.items().get(row.item.get()) else { panic!("names are texts") };
        let days = (row.time.0 / 1_000_000 - OPENING) as f64 / DAY as f64;
        assert!(days >= launches[name] * 365.0, "{name} sold on day {days}");
    }
}

#[test]
fn popularity_is_skewed() {
    let log = shop(&ShopOptions::default()).unwrap();
    let mut counts = vec![0usize; log.items().len()];
    log.rows().iter().for_each(|row| counts[row.item.get()] += 1);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top: usize = counts[..counts.len() / 10].iter().sum();
    assert!(top * 3 > log.rows().len(), "{top} of {}", log.rows().len());
}

#[test]
fn journeys_go_forward_far_more_often_than_back() {
    let log = shop(&ShopOptions::default()).unwrap();
    let mut steps: HashMap<(u32, u32), usize> = HashMap::new();
    for items in sequences(&log) {
        for at in 1..items.len() {
            for lag in 1..=3.min(at) {
                *steps.entry((items[at - lag], items[at])).or_default() += 1;
            }
        }
    }
    let catalog = Catalog::get();
    let index = |product: usize| log.items().find(Id::Text(catalog.products[product].name)).unwrap() as u32;
    let (mut forward, mut back, mut pairs, mut mostly_forward) = (0, 0, 0, 0);
    for (at, product) in catalog.products.iter().enumerate() {
        for &next in &product.leads_to {
            let there = steps.get(&(index(at), index(next))).copied().unwrap_or(0);
            let here = steps.get(&(index(next), index(at))).copied().unwrap_or(0);
            forward += there;
            back += here;
            pairs += 1;
            mostly_forward += usize::from(there > 3 * here);
        }
    }
    assert!(forward > 10 * back, "{forward} forward, {back} back");
    assert!(mostly_forward * 10 > pairs * 9, "{mostly_forward} of {pairs}");
}

#[test]
fn the_last_product_tells_more_than_popularity_or_company() {
    let log = shop(&ShopOptions::default()).unwrap();
    let sequences = sequences(&log);
    let items = log.items().len();
    let mut popularity = vec![0.0; items];
    let mut after = vec![0.0; items * items];
    let mut beside = vec![0.0; items * items];
    let (train, test) = sequences.split_at(3000);
    for items_of in train {
        for (at, &item) in items_of.iter().enumerate() {
            popularity[item as usize] += 1.0;
            if at > 0 {
                after[items_of[at - 1] as usize * items + item as usize] += 1.0;
            }
            for &other in items_of.iter().filter(|&&other| other != item) {
                beside[other as usize * items + item as usize] += 1.0;
            }
        }
    }
    let mut hits = [0.0; 3];
    let mut events = 0.0;
    for items_of in test {
        for at in 1..items_of.len() {
            let last = items_of[at - 1] as usize * items;
            let rows = [&popularity[..], &after[last..last + items], &beside[last..last + items]];
            events += 1.0;
            for (hits, scores) in hits.iter_mut().zip(rows) {
                let target = items_of[at] as usize;
                let before = |item: usize| (scores[item], target) > (scores[target], item);
                let better = (0..items)
                    .filter(|&item| before(item) && !items_of[..at].contains(&(item as u32)))
                    .count();
                *hits += if better < 10 { 1.0 } else { 0.0 };
            }
        }
    }
    let [popular, directed, company] = hits.map(|hits| hits / events);
    let seen = format!("HR@10: popularity {popular:.3}, directed {directed:.3}, company {company:.3}");
    assert!((0.35..0.65).contains(&directed), "{seen}");
    assert!(popular < 0.15 && directed > company + 0.08, "{seen}");
}

#[test]
fn wrong_options_are_all_named_at_once() {
    let options = ShopOptions { users: 0, seed: 1, days: 100_000, exploration: f64::NAN };
    let message = shop(&options).unwrap_err().to_string();
    for field in ["users = 0", "days = 100000", "exploration = NaN"] {
        assert!(message.contains(field), "{message}");
    }
    assert!(serde_json::from_str::<ShopOptions>("{\"user\": 3}").is_err());
    let read: ShopOptions = serde_json::from_str("{\"users\": 3}").unwrap();
    assert_eq!(read, ShopOptions { users: 3, ..ShopOptions::default() });
}
