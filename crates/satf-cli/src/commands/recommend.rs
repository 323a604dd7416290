//! `satf recommend`: what comes next, for one history or for any number.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, bail};
use satf::data::{RecommendationFormat, RecommendationWriter, UserHistories, write_atomically};
use satf::evaluate::Scored;
use satf::interactions::ItemIndex;
use satf::recommend::{
    Explanation, Fallback, Filters, Model, Seen, StreamOptions, StreamReport, recommend_stream,
};
use serde_json::{Value, json};

use super::items::Items;
use crate::args::{FallbackArgument, RecommendArguments};
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &RecommendArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let model = Model::load(&arguments.model)?;
    let items = Items::new(&model, arguments.titles.as_deref())?;
    let filters = filters(arguments, &items)?;
    match (&arguments.history, &arguments.histories) {
        (Some(history), _) => one(arguments, &model, &items, &filters, history, terminal),
        (None, Some(histories)) => many(arguments, &model, filters, histories, terminal),
        (None, None) => bail!("give --history or --histories"),
    }
}

fn filters(arguments: &RecommendArguments, items: &Items<'_>) -> anyhow::Result<Filters> {
    let list = |option: &str, list: &Option<String>| {
        list.as_ref().map(|list| items.find_all(option, list)).transpose()
    };
    let boost = |text: &String| -> anyhow::Result<(ItemIndex, f32)> {
        let parsed = text.rsplit_once('=').and_then(|(item, boost)| Some((item, boost.trim().parse().ok()?)));
        let Some((item, boost)) = parsed else {
            bail!("--boost {text}: expected ITEM=NUMBER, such as tent=0.5");
        };
        Ok((items.find("--boost", item.trim())?, boost))
    };
    Ok(Filters {
        exclude: list("--exclude", &arguments.exclude)?.unwrap_or_default(),
        only: list("--only", &arguments.only)?,
        seen: if arguments.allow_seen { Seen::Allow } else { Seen::Exclude },
        boosts: arguments.boost.iter().map(boost).collect::<Result<_, _>>()?,
    })
}

fn one(
    arguments: &RecommendArguments,
    model: &Model,
    items: &Items<'_>,
    filters: &Filters,
    history: &str,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let (history, unknown) = items.history("--history", history)?;
    let falls_back = history.is_empty() && arguments.fallback == FallbackArgument::Popular;
    let list = match (history.is_empty(), falls_back) {
        (_, true) => model.popular(arguments.n, filters)?,
        (true, false) => Vec::new(),
        (false, false) => model.recommend(&history, arguments.n, filters)?,
    };
    let explanations = if arguments.explain && !falls_back {
        list.iter().map(|scored| model.explain(&history, scored.item)).collect::<Result<Vec<_>, _>>()?
    } else {
        Vec::new()
    };
    terminal.finish();
    if history.is_empty() {
        let hint = if falls_back { "these are the most popular ones" } else { "hint: --fallback popular" };
        terminal.say(&format!("no item of the history is known: nothing follows from it; {hint}"));
    }
    if arguments.json {
        return table::print_json(&json!({
            "history": history.iter().map(|&item| items.to_json(item)).collect::<Vec<_>>(),
            "unknown_items": unknown,
            "fallback": if falls_back { Some("popular") } else { None },
            "recommendations": to_json(&list, &explanations, items),
        }));
    }
    table::print(&describe(&history, &list, &explanations, items))
}

fn to_json(list: &[Scored], explanations: &[Explanation], items: &Items<'_>) -> Vec<Value> {
    (1..)
        .zip(list)
        .map(|(rank, scored)| {
            let mut entry = items.to_json(scored.item);
            entry["score"] = json!(scored.score);
            entry["rank"] = json!(rank);
            if let Some(explanation) = explanations.get(rank - 1) {
                let shares = explanation.shares.iter().map(|&(item, share)| {
                    let mut entry = items.to_json(item);
                    entry["share"] = json!(share);
                    entry
                });
                entry["shares"] = shares.collect();
                entry["base"] = json!(explanation.base);
            }
            entry
        })
        .collect()
}

/// A table: items and scores and, if they are explained, the share of every item of the history.
fn describe(
    history: &[ItemIndex],
    list: &[Scored],
    explanations: &[Explanation],
    items: &Items<'_>,
) -> String {
    let has_base = explanations.iter().any(|explanation| explanation.base != 0.0);
    let past: Vec<String> = history.iter().map(|&item| items.show(item)).collect();
    let mut header = vec!["item", "score"];
    if !explanations.is_empty() {
        header.extend(past.iter().map(String::as_str));
        header.extend(has_base.then_some("of itself"));
    }
    let mut shown = table::with_header(&header);
    for (at, scored) in list.iter().enumerate() {
        let mut row = vec![items.show(scored.item), number(f64::from(scored.score))];
        if let Some(explanation) = explanations.get(at) {
            row.extend(explanation.shares.iter().map(|&(_, share)| number(share)));
            row.extend(has_base.then(|| number(explanation.base)));
        }
        shown.add_row(row);
    }
    shown.to_string()
}

fn number(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1e-3 { format!("{value:.4}") } else { format!("{value:.2e}") }
}

fn many(
    arguments: &RecommendArguments,
    model: &Model,
    filters: Filters,
    histories: &Path,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let options = StreamOptions {
        n: arguments.n,
        filters,
        fallback: match arguments.fallback {
            FallbackArgument::None => Fallback::Empty,
            FallbackArgument::Popular => Fallback::Popular,
        },
    };
    // The ending decides before anything is read.
    let format = match &arguments.output {
        None => RecommendationFormat::JsonLines,
        Some(path) => RecommendationFormat::of(path).with_context(|| {
            format!("-o {}: expected a name that ends in .jsonl, .csv or .parquet", path.display())
        })?,
    };
    let mut histories = UserHistories::open(histories, model.catalog(), terminal)?;
    let mut stream = |path: &Path, sink: &mut (dyn std::io::Write + Send)| -> anyhow::Result<StreamReport> {
        let mut writer = RecommendationWriter::new(format, path, sink, model.catalog())?;
        let report = recommend_stream(model, &mut histories, &mut writer, &options, terminal)?;
        writer.finish()?;
        Ok(report)
    };
    let report = match &arguments.output {
        Some(path) => write_atomically(path, |file| stream(path, file))
            .with_context(|| format!("nothing was written to {}", path.display()))?,
        None => stream(Path::new("stdout"), &mut BufWriter::new(std::io::stdout()))?,
    };
    terminal.finish();
    say(&report, arguments, terminal);
    match &arguments.output {
        Some(_) if arguments.json => table::print_json(&json!(report)),
        Some(path) => table::print(&format!(
            "{} histories, {} recommendations written to {}",
            table::count(report.histories as usize),
            table::count(report.recommendations as usize),
            path.display()
        )),
        None => Ok(()),
    }
}

/// What a reader of the output should know.
fn say(report: &StreamReport, arguments: &RecommendArguments, terminal: &Terminal) {
    if report.unknown_items > 0 {
        tracing::warn!(
            "{} items of histories are unknown and skipped",
            table::count(report.unknown_items as usize)
        );
    }
    if report.without_known_items > 0 {
        let got = match arguments.fallback {
            FallbackArgument::Popular => "they got the most popular items",
            FallbackArgument::None => "they got nothing; hint: --fallback popular",
        };
        terminal.say(&format!(
            "{} histories have no known item: {got}",
            table::count(report.without_known_items as usize)
        ));
    }
}
