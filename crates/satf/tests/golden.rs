//! Exact figures computed elsewhere: `golden/protocol_small.json` holds a made-up log with unique times, split
//! and partitioned by the paper's authors' functions. Their standard errors take events for independent.

#![allow(clippy::unwrap_used)]

use satf::evaluate::{EvaluateOptions, ResampleUnit, evaluate};
use satf::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use satf::models::{Learner, PopularityConfig};
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/protocol_small.json")).unwrap()
}

fn log(golden: &Value) -> Interactions {
    let rows = golden["log"].as_array().unwrap();
    let ids = |column: usize| {
        let mut ids: Vec<Box<str>> = rows.iter().map(|row| row[column].as_str().unwrap().into()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let (users, items) = (ids(0), ids(1));
    let rank = |ids: &[Box<str>], id: &Value| {
        ids.binary_search_by(|known| (**known).cmp(id.as_str().unwrap())).unwrap() as u32
    };
    let rows = rows
        .iter()
        .map(|row| Interaction {
            user: UserIndex(rank(&users, &row[0])),
            item: ItemIndex(rank(&items, &row[1])),
            time: Timestamp::from_seconds(row[2].as_i64().unwrap()),
        })
        .collect();
    Interactions::from_indexed(Ids::Texts(users), Ids::Texts(items), rows, Clock::Calendar)
}

fn assert_partition(partition: &Partition, expected: &Value, case: &str) {
    let counts = &partition.holdout.counts;
    let sizes = [
        ("train_rows", partition.train.num_rows()),
        ("train_users", partition.train.num_users()),
        ("train_items", partition.train.num_items()),
        ("holdout_rows", counts.rows),
        ("holdout_known_items", counts.known),
        ("unscored_first_events", counts.unscored_first),
    ];
    for (name, size) in sizes {
        assert_eq!(size as u64, expected[name].as_u64().unwrap(), "{case}: {name}");
    }

    let catalog = partition.train.catalog();
    let events: Vec<Value> = partition
        .holdout
        .events
        .iter()
        .map(|event| {
            let history = partition.holdout.history(event);
            serde_json::json!({
                "user": partition.holdout.users.get(event.user.get()).to_string(),
                "history": history.iter().map(|item| catalog.get(item.get()).to_string()).collect::<Vec<_>>(),
                "target": catalog.get(event.target.get()).to_string(),
            })
        })
        .collect();
    assert_eq!(&events, expected["events"].as_array().unwrap(), "{case}: events");

    let model = PopularityConfig::default().fit(&partition.train, &()).unwrap();
    let options =
        EvaluateOptions { cutoffs: vec![5], unit: ResampleUnit::Event, ..EvaluateOptions::default() };
    let outcome = evaluate(&*model, &partition.holdout, catalog.len(), &options, &()).unwrap();
    let expected = &expected["popularity_at_5"];
    for metric in outcome.metrics() {
        let name = metric.to_string();
        let estimate = outcome.estimate(metric);
        let expected = &expected[name.strip_suffix("@5").unwrap()];
        let close = |ours: f64, theirs: &Value| (ours - theirs.as_f64().unwrap()).abs() < 1e-12;
        assert!(close(estimate.value, &expected["value"]), "{case}: {name} {estimate:?} {expected}");
        assert!(
            close(estimate.stderr.unwrap(), &expected["stderr"]),
            "{case}: {name} {estimate:?} {expected}"
        );
    }
    assert!((outcome.coverage(5) - expected["COV"].as_f64().unwrap()).abs() < 1e-12, "{case}: COV");
}

#[test]
fn splits_events_and_popularity_metrics_match_the_reference() {
    let golden = golden();
    let log = log(&golden);
    let cases = golden["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let offset = |name: &str| case[name].as_str().unwrap().parse().unwrap();
        let scheme = SplitScheme::Calendar { valid: offset("valid"), test: offset("test") };
        let name = format!("valid {} test {}", case["valid"], case["test"]);
        for policy in [TiePolicy::File, TiePolicy::Shuffle, TiePolicy::Basket] {
            // All times are distinct: no policy may change anything.
            let split = Split::new(Timeline::new(&log, policy, 7), scheme).unwrap();
            let rows = ["train", "valid", "test"].map(|part| case["rows"][part].as_u64().unwrap() as usize);
            assert_eq!(split.rows(), rows, "{name}");
            assert_partition(
                &split.validation().unwrap(),
                &case["validation"],
                &format!("{name}, validation"),
            );
            assert_partition(&split.test().unwrap(), &case["final"], &format!("{name}, final"));
        }
    }
}
