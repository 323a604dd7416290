//! Lists of recommendations: read from anywhere to the same lists, and judged by the rules of models.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use satf::data::arrow_array::builder::{Int64Builder, ListBuilder};
use satf::data::arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use satf::data::{Lists, ListsBuilder, ReadOptions};
use satf::evaluate::{
    EvaluateOptions, ListsError, SeenPolicy, evaluate, evaluate_lists, evaluate_with_catalog,
};
use satf::interactions::{ItemIndex, OwnedId};
use satf::models::{Learner, PopularityConfig, TransitionsConfig};
use satf::prepare::{EventIds, Partition, Split, SplitScheme, TiePolicy, Timeline};
use satf::ranking::{rank_unseen, top_n};
use satf::{Interactions, Timestamp};

/// Three weeks of a small shop; the last is predicted.
fn partition() -> Partition {
    let rows = (0..420i64).map(|at| {
        let (user, item) = (at * 7 % 19, (at * at / 3 + at * 5) % 23);
        (user, item, Timestamp::from_seconds(1_600_000_000 + at / 2 * 8_640))
    });
    let log = Interactions::from_events(rows).unwrap();
    let timeline = Timeline::new(&log, TiePolicy::Shuffle, 0);
    let split = Split::new(timeline, SplitScheme::Holdout { test: "7days".parse().unwrap() }).unwrap();
    split.test().unwrap()
}

fn options() -> EvaluateOptions {
    EvaluateOptions { cutoffs: vec![3, 8], ..EvaluateOptions::default() }
}

/// The best items of a model for every event, in the caller's ids.
fn lists_of(model: &dyn satf::models::Recommender, partition: &Partition, n: usize) -> Vec<Vec<OwnedId>> {
    let Partition { train, holdout } = partition;
    let list = |event| {
        let history = holdout.history(event);
        let mut scores = vec![0.0; train.num_items()];
        model.score_batch(&[history], &mut scores);
        let best = rank_unseen(&mut scores, history.items(), n);
        best.iter().map(|scored| train.catalog().get(scored.item.get()).to_owned()).collect()
    };
    holdout.events.iter().map(list).collect()
}

#[test]
fn lists_by_event_have_the_scores_of_the_model_that_made_them() {
    let partition = partition();
    let model = TransitionsConfig::default().fit(&partition.train, &()).unwrap();
    let mut builder = ListsBuilder::new();
    for (place, list) in lists_of(&*model, &partition, 8).iter().enumerate() {
        builder.push_for_event(place, list).unwrap();
    }
    let judged = evaluate_lists(&builder.finish().unwrap(), &partition, &options(), &()).unwrap();
    let own = evaluate(&*model, &partition.holdout, partition.train.num_items(), &options(), &()).unwrap();
    assert_eq!(judged.evaluation, own);
    assert!(own.ranks.iter().any(Option::is_some));
}

#[test]
fn one_list_for_all_has_the_scores_of_popularity_under_every_rule_of_seen_items() {
    let partition = partition();
    let model = PopularityConfig::default().fit(&partition.train, &()).unwrap();
    let mut scores = vec![0.0; partition.train.num_items()];
    model.score_batch(&[(&[] as &[ItemIndex]).into()], &mut scores);
    let all = top_n(&scores, scores.len());
    let all: Vec<OwnedId> =
        all.iter().map(|scored| partition.train.catalog().get(scored.item.get()).to_owned()).collect();
    let mut builder = ListsBuilder::new();
    for user in partition.holdout.users.iter() {
        builder.push_for_user(user, &all).unwrap();
    }
    let lists = builder.finish().unwrap();
    for seen in [SeenPolicy::Own, SeenPolicy::Pooled] {
        let options = EvaluateOptions { seen, ..options() };
        let own = evaluate(&*model, &partition.holdout, partition.train.num_items(), &options, &()).unwrap();
        let judged = evaluate_lists(&lists, &partition, &options, &()).unwrap();
        assert_eq!(judged.evaluation, own, "{seen}");
        let catalog = partition.train.catalog();
        let (saved, report) = evaluate_with_catalog(&*model, catalog, &partition, &options, &()).unwrap();
        assert_eq!(saved, own, "{seen}");
        assert_eq!((report.missing_items, report.other_items, report.unknown_histories), (0, 0, 0));
    }
}

/// The ranks of all targets.
fn ranks(lists: &Lists, partition: &Partition) -> Vec<Option<u32>> {
    evaluate_lists(lists, partition, &options(), &()).unwrap().evaluation.ranks
}

#[test]
fn every_format_and_order_of_rows_gives_the_same_lists() {
    let partition = partition();
    let model = TransitionsConfig::default().fit(&partition.train, &()).unwrap();
    let ids = EventIds::of(&partition);
    let wanted = lists_of(&*model, &partition, 8);
    let mut rows: Vec<(String, i64, usize)> = Vec::new();
    for (place, list) in wanted.iter().enumerate() {
        for (rank, item) in list.iter().enumerate() {
            rows.push((ids.id(place), item.to_string().parse().unwrap(), rank + 1));
        }
    }
    let mut builder = ListsBuilder::new();
    for (place, list) in wanted.iter().enumerate() {
        builder.push_for_event(place, list).unwrap();
    }
    let expected = ranks(&builder.finish().unwrap(), &partition);

    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        Lists::read(&path, &ReadOptions::default(), &()).unwrap()
    };
    let text = |header: &str, line: &dyn Fn(&(String, i64, usize)) -> String| {
        // Not in the order of the lists.
        let lines: Vec<String> = rows.iter().rev().map(line).collect();
        format!("{header}{}", lines.concat())
    };
    let by_rank = text("event_id,rank,item_id\n", &|(id, item, rank)| format!("{id},{rank},{item}\n"));
    assert_eq!(ranks(&read("a.csv", &by_rank), &partition), expected);
    let by_score = text("user_id\titem\tscore\n", &|(id, item, rank)| {
        format!("{id}\t{item}\t{}\n", -1.5 * *rank as f64)
    });
    assert_eq!(ranks(&read("b.tsv", &by_score), &partition), expected);
    let json = text("", &|(id, item, rank)| {
        format!("{{\"event_id\": \"{id}\", \"item_id\": {item}, \"rank\": {rank}, \"score\": 0}}\n")
    });
    assert_eq!(ranks(&read("c.jsonl", &json), &partition), expected);
    let whole: Vec<String> = wanted
        .iter()
        .enumerate()
        .map(|(place, list)| {
            format!(
                "{{\"event_id\": \"{}\", \"items\": {}}}\n",
                ids.id(place),
                serde_json::to_string(list).unwrap()
            )
        })
        .collect();
    assert_eq!(ranks(&read("d.jsonl", &whole.concat()), &partition), expected);
    assert_eq!(ranks(&in_batches(&rows), &partition), expected);
    assert_eq!(ranks(&in_whole_batches(&ids, &wanted), &partition), expected);
}

/// The rows as Arrow batches, several of them.
fn in_batches(rows: &[(String, i64, usize)]) -> Lists {
    let mut builder = ListsBuilder::new();
    for rows in rows.chunks(50) {
        let events: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0)));
        let items: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
        let scores: ArrayRef =
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| 1.0 / row.2 as f64)));
        let batch = RecordBatch::try_from_iter([("event_id", events), ("item_id", items), ("score", scores)]);
        builder.add_batch(&batch.unwrap()).unwrap();
    }
    builder.finish().unwrap()
}

/// The same with one row per list.
fn in_whole_batches(ids: &EventIds, wanted: &[Vec<OwnedId>]) -> Lists {
    let events: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..wanted.len()).map(|place| ids.id(place))));
    let mut lists = ListBuilder::new(Int64Builder::new());
    for list in wanted {
        for item in list {
            lists.values().append_value(item.to_string().parse().unwrap());
        }
        lists.append(true);
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let mut builder = ListsBuilder::new();
    builder
        .add_batch(&RecordBatch::try_from_iter([("event_id", events), ("items", lists)]).unwrap())
        .unwrap();
    builder.finish().unwrap()
}

#[test]
fn equal_scores_are_in_the_order_of_ids_as_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lists.csv");
    let partition = partition();
    let event = &partition.holdout.events[0];
    let user = partition.holdout.users.get(event.user.get());
    let judged = |text: String| {
        fs::write(&path, text).unwrap();
        ranks(&Lists::read(&path, &ReadOptions::default(), &()).unwrap(), &partition)
    };
    let seen: Vec<i64> = (0..23).filter(|id| is_seen(&partition, *id)).collect();
    let free: Vec<i64> = (0..23).filter(|id| !seen.contains(id)).collect();
    let rows: Vec<String> = free.iter().rev().map(|id| format!("{user},{id},0\n")).collect();
    let listed: Vec<String> = free.iter().map(|id| format!("{user},{id}\n")).collect();
    let by_score = judged(format!("user_id,item_id,score\n{}", rows.concat()));
    assert_eq!(by_score, judged(format!("user_id,item_id\n{}", listed.concat())));
}

/// Whether the history of the first event holds an item.
fn is_seen(partition: &Partition, id: i64) -> bool {
    let history = partition.holdout.history(&partition.holdout.events[0]);
    history.items().iter().any(|item| partition.train.catalog().get(item.get()) == id.into())
}

#[test]
fn a_list_for_an_event_counts_more_than_one_for_its_user() {
    let partition = partition();
    let event = partition.holdout.events[0];
    let user = partition.holdout.users.get(event.user.get());
    let target = partition.train.catalog().get(event.target.get());
    let mut builder = ListsBuilder::new();
    builder.push_for_event(0, [target]).unwrap();
    builder.push_for_user(user, ["nosuch"]).unwrap();
    builder.push_for_user("nobody", [target]).unwrap();
    let judged = evaluate_lists(&builder.finish().unwrap(), &partition, &options(), &()).unwrap();
    let expected = (!is_seen(&partition, target.to_string().parse().unwrap())).then_some(0);
    assert_eq!(judged.evaluation.ranks[0], expected);
    assert_eq!((judged.report.lists, judged.report.unused_lists, judged.report.unknown_items), (3, 1, 1));
}

#[test]
fn what_cannot_be_judged_is_an_error() {
    let partition = partition();
    let events = partition.holdout.events.len();
    let judged = |make: &dyn Fn(&mut ListsBuilder)| {
        let mut builder = ListsBuilder::new();
        make(&mut builder);
        evaluate_lists(&builder.finish().unwrap(), &partition, &options(), &()).unwrap_err()
    };
    let beyond = judged(&|lists| lists.push_for_event(events, [1]).unwrap());
    assert!(matches!(beyond, ListsError::Evaluate(_)), "{beyond}");
    let twice = judged(&|lists| {
        lists.push_for_event(0, [1]).unwrap();
        lists.push_for_event(0, [2]).unwrap();
    });
    assert!(matches!(twice, ListsError::HowMany { lists: 2, events: 1, .. }), "{twice}");
    let late = judged(&|lists| lists.push_for_time(0, "2031-01-01", [1]).unwrap());
    assert!(matches!(late, ListsError::NoEvent { by_time: true, .. }), "{late}");
    let strange = judged(&|lists| lists.push_for_event(0, ["tent"]).unwrap());
    assert!(matches!(strange, ListsError::NoItem { .. }), "{strange}");
    assert!(Lists::read(Path::new("nosuch.csv"), &ReadOptions::default(), &()).is_err());
}
