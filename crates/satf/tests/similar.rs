//! What is alike is not what comes next: on the made-up shop, whose departments and journeys are known, every model that tells which
//! items are alike finds those of one department, and those that can stand in the same place before those that follow.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use satf::generate::{ShopOptions, shop};
use satf::interactions::{Id, ItemIndex, OwnedId};
use satf::models::{ModelEntry, Registry};
use satf::prepare::{Histories, TiePolicy, Timeline};
use satf::recommend::{Model, RecommendError, Request};
use toml::Table;

const CATALOG: &str = include_str!("../src/generate/catalog.txt");

/// Department of every product, and what it leads to.
struct Shelves {
    departments: HashMap<&'static str, &'static str>,
    leads_to: HashMap<&'static str, Vec<&'static str>>,
}

fn shelves() -> Shelves {
    let mut shelves = Shelves { departments: HashMap::new(), leads_to: HashMap::new() };
    let mut department = "";
    for line in CATALOG.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix("== ") {
            department = heading.rsplit_once(' ').unwrap().0;
            continue;
        }
        let (head, next) = line.split_once(": ").unwrap_or((line, ""));
        let name = head.split(" @").next().unwrap();
        shelves.departments.insert(name, department);
        shelves.leads_to.insert(name, next.split(", ").filter(|name| !name.is_empty()).collect());
    }
    shelves
}

fn shop_histories() -> Histories {
    Timeline::new(&shop(&ShopOptions::default()).unwrap(), TiePolicy::Shuffle, 0).histories()
}

fn train(entry: &ModelEntry, settings: &str, histories: &Histories) -> Model {
    let settings: Table = settings.parse().unwrap();
    Model::train(&entry.configure(&settings).unwrap(), histories, &()).unwrap()
}

fn name(model: &Model, item: ItemIndex) -> String {
    model.catalog().get(item.get()).to_string()
}

/// Means over all products: of the share of a list that is of the own department, and of the share that the product leads to.
fn measure(model: &Model, shelves: &Shelves, list: impl Fn(ItemIndex) -> Vec<OwnedId>) -> (f64, f64) {
    let (mut own, mut next, mut entries) = (0, 0, 0);
    for item in (0..model.num_items() as u32).map(ItemIndex) {
        let product = name(model, item);
        for other in list(item) {
            let other = other.as_id().to_string();
            entries += 1;
            own += usize::from(shelves.departments[&*product] == shelves.departments[&*other]);
            next += usize::from(shelves.leads_to[&*product].contains(&&*other));
        }
    }
    assert!(entries > model.num_items(), "{entries} entries");
    (f64::from(own as u32) / f64::from(entries as u32), f64::from(next as u32) / f64::from(entries as u32))
}

/// Five items like one.
fn alike(model: &Model, item: ItemIndex) -> Vec<OwnedId> {
    let similar = model.similar_items(model.catalog().get(item.get()), 5).unwrap();
    similar.items.into_iter().map(|other| other.item).collect()
}

#[test]
fn what_is_alike_is_of_one_kind_and_not_what_comes_next() {
    let (shelves, histories) = (shelves(), shop_histories());
    for (model, settings) in [("d-satf", ""), ("d-satf", "balance = 0.0"), ("transitions", "")] {
        let model = train(&Registry::default().find(model).unwrap(), settings, &histories);
        let alike = |item| alike(&model, item);
        let after = |item| -> Vec<OwnedId> {
            let answer = model.recommend(&[item], &Request::new(5)).unwrap();
            answer.items.into_iter().map(|next| next.item).collect()
        };
        let (of_kind, of_next) = measure(&model, &shelves, alike);
        let (_, after_next) = measure(&model, &shelves, after);
        let what = model.manifest().model.as_str();
        assert!(of_kind > 0.97, "{what}: {of_kind} of one department");
        assert!(of_next < 0.5 * after_next, "{what}: {of_next} lead on, {after_next} of what comes next");

        // The order of "a, then b" is not that of alike: a measure of both has no direction.
        let (tent, roof_tent) = (Id::Text("tent"), Id::Text("roof tent"));
        let of = |a, b| {
            let similar = model.similar_items(a, 400).unwrap();
            similar.items.iter().find(|other| other.item.as_id() == b).unwrap().similarity
        };
        assert!((of(tent, roof_tent) - of(roof_tent, tent)).abs() < 1e-5, "{what}");
    }
}

#[test]
fn every_model_tells_what_is_alike_or_that_it_cannot() {
    let (shelves, histories) = (shelves(), shop_histories());
    for entry in Registry::default().models() {
        let model = train(entry, "", &histories);
        if ["mp", "random"].contains(&entry.name) {
            let error = model.similar_items_indexed(ItemIndex(0), 5).unwrap_err();
            assert!(matches!(error, RecommendError::NoSimilarities { .. }), "{error}");
            assert!(error.to_string().contains(entry.name), "{error}");
            continue;
        }
        let similar = model.similar_items_indexed(ItemIndex(0), 400).unwrap();
        assert!(!similar.measure.is_empty(), "{}", entry.name);
        assert!(
            similar.items.iter().all(|other| other.item != ItemIndex(0) && other.similarity > 0.0),
            "{}",
            entry.name
        );
        // Far better than a choice at random, which finds a twelfth.
        let (of_kind, _) = measure(&model, &shelves, |item| alike(&model, item));
        assert!(of_kind > 0.5, "{}: {of_kind}", entry.name);
    }
}

#[test]
fn a_core_without_a_memory_tells_it_too() {
    let (shelves, histories) = (shelves(), shop_histories());
    let model = train(&Registry::default().find("d-satf").unwrap(), "balance = 1.0", &histories);
    let (of_kind, _) = measure(&model, &shelves, |item| alike(&model, item));
    assert!(of_kind > 0.9, "{of_kind}");
}
