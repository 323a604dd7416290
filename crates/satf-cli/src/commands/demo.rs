//! `satf demo`: the whole way on a made-up shop log.

use anyhow::Context;
use satf::History;
use satf::evaluate::EvaluateOptions;
use satf::experiment::{Choice, Run, SharedKeys, run_on};
use satf::generate::{ShopOptions, shop, showcase};
use satf::interactions::{Ids, OwnedHistory};
use satf::models::{Recommender, Registry};
use satf::prepare::{
    Duplicates, Split, SplitScheme, Statistics, TiePolicy, Timeline, p_core, resolve_duplicates,
};
use satf::ranking::rank_unseen;
use serde_json::{Value, json};

use super::experiment::{describe, to_json};
use crate::args::DemoArguments;
use crate::table;
use crate::terminal::Terminal;

/// Rows a user and an item must have to stay in the demo's log.
const CORE: usize = 5;
/// Items recommended for each history shown.
const SHOWN: usize = 5;

pub(crate) fn run(arguments: &DemoArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let raw = shop(&ShopOptions { seed: arguments.seed, ..ShopOptions::default() })?;
    let log = p_core(&resolve_duplicates(&raw, Duplicates::Last), CORE);
    let statistics = Statistics::of(&log);
    let month = "1month".parse()?;
    let scheme = SplitScheme::Calendar { valid: month, test: month };
    let partition = Split::new(Timeline::new(&log, TiePolicy::Shuffle, arguments.seed), scheme)?.test()?;

    let shared = SharedKeys { seed: arguments.seed, ..SharedKeys::default() };
    let mut runs = Vec::new();
    for entry in Registry::default().models() {
        let choice = Choice::with_defaults(*entry, &shared)?;
        runs.push(run_on(&choice, &partition, &EvaluateOptions::default(), terminal)?);
    }
    terminal.finish();

    let ndcg = |run: &Run| run.evaluation.report().first().map_or(0.0, |(_, estimate)| estimate.value);
    let best = runs.iter().max_by(|a, b| ndcg(a).total_cmp(&ndcg(b))).context("no model ran")?;
    let stories = showcase()
        .into_iter()
        .filter_map(|history| {
            let list = recommend(&*best.model, partition.train.catalog(), &history)?;
            Some((history, list))
        })
        .collect::<Vec<_>>();

    if arguments.json {
        let runs: Vec<Value> = runs.iter().map(|run| Value::Object(to_json(run))).collect();
        let stories: Vec<Value> = stories
            .iter()
            .map(|(history, list)| json!({ "history": history, "recommended": list }))
            .collect();
        return table::print_json(&json!({
            "statistics": statistics, "runs": runs, "best": best.label, "recommendations": stories,
        }));
    }
    let mut text = format!(
        "A made-up shop: {} customers, {} products, {} purchases over a year.\n\
         Models learn from all but the last month and predict each purchase in it, one by one.\n\n{}\n{}\n\n\
         What comes next, says the best of them, {}:\n",
        table::count(statistics.users),
        table::count(statistics.items),
        table::count(statistics.rows),
        describe(runs.iter().map(Ok)),
        table::error_note(best.evaluation.report().iter().map(|(_, estimate)| estimate)).unwrap_or_default(),
        best.label,
    );
    for (history, list) in &stories {
        text.push_str(&format!("\n  after  {}\n  next   {}\n", history.join(", then "), list.join(" · ")));
    }
    text.push_str(
        "\nThe same by hand, step by step, or with a log of your own:\n\
         \n  satf generate -o raw.csv\
         \n  satf prepare raw.csv --core 5 -o shop.parquet\
         \n  satf evaluate shop.parquet --model mp,pure-svd,transitions --valid 1month --test 1month\
         \n  satf train shop.parquet -o shop.satf\
         \n  satf recommend shop.satf --history \"laptop,laptop sleeve\"",
    );
    table::print(&text)
}

/// The names of the best items for a history of names; none if no item of it is known.
fn recommend(model: &dyn Recommender, catalog: &Ids, history: &[&str]) -> Option<Vec<String>> {
    let known = OwnedHistory::from_ids(catalog, history);
    if known.is_empty() {
        return None;
    }
    let mut scores = vec![0f32; model.num_items()];
    model.score_batch(&[History::from(&known)], &mut scores);
    let list = rank_unseen(&mut scores, known.items(), SHOWN);
    Some(list.iter().map(|scored| catalog.get(scored.item.get()).to_string()).collect())
}
