//! One path for everything that is recommended: alone, prepared, in a batch, as a stream; by touched items or by the whole catalogue;
//! with filters, factors, boosts, fallbacks and explanations. The same ids, to the bit the same scores.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use satf::History;
use satf::data::{RecommendationColumns, RecommendationFormat, RecommendationWriter, UserHistory};
use satf::interactions::{Clock, Id, Ids, ItemIndex, OwnedHistory, OwnedId, Timestamp, UserIndex};
use satf::models::{
    Configured, Recommender, Registry, Scores, Shares, Similarities, Tensor, TransitionsConfig, UserData,
    Workspace,
};
use satf::prepare::Histories;
use satf::recommend::{
    Answer, Fallback, Filters, Model, Place, Prepared, RecommendError, Request, Seen, recommend_stream,
};
use serde_json::Value;

const ITEMS: u32 = 40;

/// A log in which items follow their neighbours; ids are strings whose order is that of the indices.
fn histories() -> Histories {
    let rows: Vec<(UserIndex, ItemIndex, Timestamp)> = (0..70u32)
        .flat_map(|user| {
            (0..3 + user % 7).map(move |at| {
                let item = (user * 11 + at * (1 + user % 3) + (user * at) % 5) % (ITEMS - 3);
                (UserIndex(user), ItemIndex(item), Timestamp(i64::from(user * 100 + at)))
            })
        })
        .collect();
    let users = Arc::new(Ids::Integers((0..70).collect()));
    let catalog = Ids::Texts((0..ITEMS).map(|item| id(item).into()).collect());
    Histories::from_ordered_rows(users, Arc::new(catalog), Clock::Calendar, rows.into_iter())
}

fn id(item: u32) -> String {
    format!("item {item:02}")
}

fn text(item: u32) -> OwnedId {
    OwnedId::Text(id(item).into())
}

/// Histories by ids: empty ones, unknown ones, some with unknown items, some with baskets.
fn queries(model: &Model) -> Vec<OwnedHistory> {
    let mut queries = vec![OwnedHistory::new(), model.history([Id::Text("unheard of")])];
    for at in 0..30u32 {
        let mut history = OwnedHistory::new();
        for place in 0..=(at % 9) {
            let item = id((at * 13 + place * (at % 4 + 1)) % (ITEMS + 2));
            history.push_id(model.catalog(), Id::Text(&item), place % 3 == 2);
        }
        queries.push(history);
    }
    queries
}

fn requests(explain: bool) -> Vec<Request> {
    let plain = Request { explain, ..Request::new(7) };
    vec![
        plain.clone(),
        Request { fallback: Fallback::Popular, seen: Seen::Allow, ..plain.clone() },
        Request {
            exclude: (0..10).map(text).collect(),
            repeatable: vec![text(14), text(20)],
            fallback: Fallback::Popular,
            ..plain.clone()
        },
        Request {
            only: Some((3..ITEMS).step_by(3).map(text).collect()),
            factors: vec![(text(6), 3.0), (text(9), 0.5), (text(6), 2.0)],
            boosts: vec![(text(12), 0.25), (text(39), 1e-3), (text(30), -0.5)],
            fallback: Fallback::Popular,
            ..plain.clone()
        },
        Request { n: 1000, ..plain },
    ]
}

/// What a stream of the same histories writes, as answers without their explanations.
fn streamed(prepared: &Prepared<'_>, queries: &[OwnedHistory]) -> Vec<Vec<(String, u32)>> {
    let mut histories = queries.iter().enumerate().map(|(user, history)| {
        Ok(UserHistory { user: OwnedId::Integer(user as i64), history: history.clone() })
    });
    let mut bytes = Vec::new();
    let columns = RecommendationColumns { explanations: prepared.explains(), ..Default::default() };
    let catalog = prepared.model().catalog();
    let mut writer = RecommendationWriter::new(
        RecommendationFormat::JsonLines,
        Path::new("x"),
        &mut bytes,
        catalog,
        columns,
    )
    .unwrap();
    recommend_stream(prepared, &mut histories, &mut writer, &()).unwrap();
    writer.finish().unwrap();
    let mut lists = vec![Vec::new(); queries.len()];
    for line in std::str::from_utf8(&bytes).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let score: f32 = serde_json::from_value(row["score"].clone()).unwrap();
        let item = row["item_id"].as_str().unwrap().to_owned();
        lists[row["user_id"].as_u64().unwrap() as usize].push((item, score.to_bits()));
    }
    lists
}

fn list(answer: &Answer) -> Vec<(String, u32)> {
    answer.items.iter().map(|next| (next.item.as_id().to_string(), next.score.to_bits())).collect()
}

#[test]
fn alone_prepared_batch_and_stream_are_one() {
    let histories = histories();
    for entry in Registry::default().models() {
        let configured = entry.configure(&toml::Table::new()).unwrap();
        let model = Model::train(&configured, &histories, &()).unwrap();
        let queries = queries(&model);
        let mut workspace = Workspace::new();
        for (number, request) in requests(model.recommender().has_shares()).iter().enumerate() {
            let case = format!("{}, request {number}", entry.name);
            let prepared = model.prepare(request).unwrap();
            let batch = model.recommend_batch(&queries, request).unwrap();
            let lines = streamed(&prepared, &queries);
            for ((query, expected), line) in queries.iter().zip(&batch).zip(&lines) {
                assert_eq!(&model.recommend(query, request).unwrap(), expected, "{case}");
                assert_eq!(&prepared.answer(query, &mut workspace).unwrap(), expected, "{case}");
                assert_eq!(&list(expected), line, "{case}");
                assert_eq!(expected.unknown_items, query.unknown(), "{case}");
                assert_eq!(expected.is_fallback, query.is_empty(), "{case}");
                for next in &expected.items {
                    let Some(explanation) = &next.explanation else { continue };
                    let sum: f64 = explanation.shares.iter().map(|share| share.share).sum();
                    let whole = sum + explanation.base + explanation.boost;
                    assert!((whole - f64::from(next.score)).abs() <= 1e-4 * whole.abs().max(1.0), "{case}");
                }
                let text = serde_json::to_string(expected).unwrap();
                assert_eq!(&serde_json::from_str::<Answer>(&text).unwrap(), expected, "{case}");
            }
        }
    }
}

#[test]
fn unknown_ids_are_the_callers_to_judge() {
    let configured = Configured::new(TransitionsConfig::default()).unwrap();
    let model = Model::train(&configured, &histories(), &()).unwrap();
    let history = model.history([Id::Text("item 03"), Id::Text("unheard of")]);
    let request = Request {
        exclude: vec![text(4), OwnedId::Text("gone".into())],
        only: Some(vec![OwnedId::Integer(5)]),
        ..Request::new(3)
    };
    let prepared = model.prepare(&request).unwrap();
    let places: Vec<Place> = prepared.unknown().iter().map(|unknown| unknown.place).collect();
    assert_eq!(places, [Place::Exclude, Place::Only]);
    assert_eq!(prepared.unknown()[1].item, OwnedId::Integer(5));
    // No item is known of those that alone may be recommended: none is.
    let answer = prepared.answer(&history, &mut Workspace::new()).unwrap();
    assert_eq!((answer.items.len(), answer.is_fallback, answer.unknown_items), (0, false, 1));

    let error = model.explain(&history, Id::Text("nothing")).unwrap_err();
    assert_eq!(error.to_string(), "the model does not know the item 'nothing'");
    assert!(matches!(model.similar_items(Id::Integer(3), 4), Err(RecommendError::UnknownId { .. })));
    let answer = model.recommend(&history, &Request::new(1)).unwrap();
    let explained = model.explain(&history, answer.items[0].item.as_id()).unwrap();
    assert_eq!(explained.score.to_bits(), answer.items[0].score.to_bits());
    assert_eq!(explained.shares[0].item, text(3));
    let alike = model.similar_items(Id::Text("item 03"), 4).unwrap();
    assert!(alike.items.len() == 4 && alike.items.iter().all(|other| other.item != text(3)));
    for (field, wrong) in [("factor", f32::NAN), ("factor", 0.0), ("boost", f32::INFINITY)] {
        let pair = vec![(text(1), wrong)];
        let request = match field {
            "factor" => Request { factors: pair, ..Request::default() },
            _ => Request { boosts: pair, ..Request::default() },
        };
        let message = model.prepare(&request).err().unwrap().to_string();
        assert!(message.contains(field) && message.contains("item 01"), "{message}");
    }
}

/// Weights of either sign from items to items, scored by touched items or by the whole catalogue.
struct Signed {
    rows: Vec<Vec<(u32, f32)>>,
    is_sparse: bool,
}

impl Signed {
    fn model(rows: &[Vec<(u32, f32)>], is_sparse: bool) -> Model {
        let configured = Configured::new(TransitionsConfig::default()).unwrap();
        let histories = Histories::from_sequences(rows.len(), &[]);
        Model::new(&configured, &histories, Box::new(Signed { rows: rows.to_vec(), is_sparse }))
    }
}

impl Recommender for Signed {
    fn num_items(&self) -> usize {
        self.rows.len()
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        for (history, row) in histories.iter().zip(scores.chunks_mut(self.rows.len())) {
            let mut sums = vec![0f64; self.rows.len()];
            for item in history.iter() {
                self.rows[item.get()].iter().for_each(|&(to, weight)| sums[to as usize] += f64::from(weight));
            }
            row.iter_mut().zip(sums).for_each(|(score, sum)| *score = sum as f32);
        }
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        if !self.is_sparse {
            let scores = workspace.dense(self.rows.len());
            self.score_batch(&[history], scores);
            return Scores::Dense(scores);
        }
        let sums = workspace.sparse(self.rows.len());
        for item in history.iter() {
            for &(to, weight) in &self.rows[item.get()] {
                sums.add(ItemIndex(to), f64::from(weight));
            }
        }
        Scores::Sparse(sums.scores())
    }

    fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        Vec::new()
    }

    fn shares(&self, history: History<'_>, _item: ItemIndex) -> Shares {
        Shares::of_none(&history, 0.0)
    }

    fn similarities(&self, _item: ItemIndex) -> Option<Similarities> {
        None
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}

const SIGNED: u32 = 24;

fn items() -> impl Strategy<Value = Vec<ItemIndex>> {
    prop::collection::vec((0..SIGNED).prop_map(ItemIndex), 0..14)
}

fn filters() -> impl Strategy<Value = Filters> {
    let factor = prop::sample::select(vec![0.25f32, 1.0, 3.0]);
    let boost = prop::sample::select(vec![-2.0f32, -0.0, 0.5, f32::MAX]);
    let pairs =
        |value: BoxedStrategy<f32>| prop::collection::vec(((0..SIGNED).prop_map(ItemIndex), value), 0..5);
    (items(), prop::option::of(items()), any::<bool>(), items(), pairs(factor.boxed()), pairs(boost.boxed()))
        .prop_map(|(exclude, only, seen, repeatable, factors, boosts)| Filters {
            exclude,
            only,
            seen: if seen { Seen::Allow } else { Seen::Exclude },
            repeatable,
            factors,
            boosts,
        })
}

/// What the filters say, word by word, on scores of the whole catalogue.
fn by_definition(scores: &[f32], history: &[ItemIndex], filters: &Filters, n: usize) -> Vec<(u32, u32)> {
    let mut scores = scores.to_vec();
    for &(item, factor) in &filters.factors {
        let score = scores[item.get()];
        scores[item.get()] = if score < 0.0 { score / factor } else { score * factor };
    }
    for &(item, boost) in &filters.boosts {
        scores[item.get()] = (scores[item.get()] + boost).clamp(f32::MIN, f32::MAX);
    }
    let excluded: BTreeSet<ItemIndex> = filters.exclude.iter().copied().collect();
    let is_allowed = |item: ItemIndex| {
        let is_seen = filters.seen == Seen::Exclude && history.contains(&item);
        !excluded.contains(&item)
            && filters.only.as_ref().is_none_or(|only| only.contains(&item))
            && (!is_seen || filters.repeatable.contains(&item))
    };
    let mut list: Vec<(ItemIndex, f32)> = (0..SIGNED)
        .map(ItemIndex)
        .filter(|&item| is_allowed(item))
        .map(|item| (item, scores[item.get()]))
        .collect();
    list.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
    list.iter().take(n).map(|(item, score)| (item.0, score.to_bits())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn touched_items_give_the_lists_of_the_whole_catalogue(
        rows in prop::collection::vec(
            prop::collection::vec(
                (0..SIGNED, prop::sample::select(vec![-1.0f32, -0.5, -1e-30, 0.0, 1e-30, 0.5, 0.5, 1.0])),
                0..6,
            ),
            SIGNED as usize,
        ),
        histories in prop::collection::vec(prop::collection::vec(0..SIGNED, 0..9), 1..6),
        filters in filters(),
        n in prop::sample::select(vec![0usize, 1, 3, 10, 40]),
    ) {
        let (sparse, dense) = (Signed::model(&rows, true), Signed::model(&rows, false));
        let (sparse, dense) =
            (sparse.prepare_filters(n, &filters).unwrap(), dense.prepare_filters(n, &filters).unwrap());
        // One workspace for all: what a history leaves behind would show in the next.
        let mut workspace = Workspace::new();
        for history in &histories {
            let items: Vec<ItemIndex> = history.iter().copied().map(ItemIndex).collect();
            let mut scores = vec![0f32; SIGNED as usize];
            sparse.model().recommender().score_batch(&[History::new(&items)], &mut scores);
            let expected = by_definition(&scores, &items, &filters, n);
            let bits = |list: Vec<satf::ranking::Scored>| -> Vec<(u32, u32)> {
                list.iter().map(|scored| (scored.item.0, scored.score.to_bits())).collect()
            };
            prop_assert_eq!(bits(sparse.rank(&items, &mut workspace).unwrap()), expected.clone());
            prop_assert_eq!(bits(dense.rank(&items, &mut workspace).unwrap()), expected.clone());
            let boosted: Vec<_> = [&sparse, &dense]
                .map(|prepared| prepared.answer_indexed(&items, &mut workspace).unwrap().items)
                .into();
            prop_assert_eq!(&boosted[0], &boosted[1]);
        }
    }
}
