//! `satf recommend`: what comes next, for one history or for any number.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, bail};
use satf::data::{
    DataError, HistoryOptions, ReadOptions, RecommendationColumns, RecommendationFormat,
    RecommendationWriter, UserHistories, UserHistory, write_atomically,
};
use satf::interactions::{OwnedHistory, OwnedId};
use satf::models::Registry;
use satf::models::Workspace;
use satf::recommend::{
    Answer, Fallback, Prepared, Recommendation, Request, Seen, StreamReport, recommend_stream,
};
use serde_json::{Value, json};

use super::items::{FilterItems, Items};
use crate::args::{FallbackArgument, Listed, RecommendArguments};
use crate::misuse::{OnCommandLine, misuse};
use crate::terminal::Terminal;
use crate::{escape, hints, table};

pub(crate) fn run(
    arguments: &RecommendArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let files = super::files::of_recommend(arguments);
    files.check_distinct()?;
    check(arguments)?;
    files.check()?;
    let model = super::load(&arguments.model, registry)?;
    let items = Items::new(&model, arguments.titles.as_deref())?;
    let prepared = model.prepare(&request(arguments, &items)?)?;
    match (&arguments.history, &arguments.histories, &arguments.output) {
        (Some(history), _, None) => {
            let history = items.history("--history", history)?;
            one(arguments, &items, &prepared, &history, terminal)
        }
        (Some(history), _, Some(_)) => {
            // The only history is the first of its kind.
            let history = items.history("--history", history)?;
            let history = UserHistory { user: OwnedId::Integer(1), history };
            let mut histories = std::iter::once(Ok(history));
            let report = write(arguments, &items, &prepared, &mut histories, terminal)?;
            tell(&report, arguments)
        }
        (None, Some(histories), _) => many(arguments, &items, &prepared, histories, terminal),
        (None, None, _) => bail!("give --history or --histories"),
    }
}

/// An error if options do not go together.
fn check(arguments: &RecommendArguments) -> anyhow::Result<()> {
    if arguments.history.is_some() {
        let given = arguments.reading.first_given();
        let given = given.or(arguments.history_column.is_some().then_some("--history-column"));
        if let Some(option) = given.or(arguments.memory.is_some().then_some("--memory")) {
            misuse!(
                "{option} says how --histories are read, and means nothing for --history; hint: leave it out"
            );
        }
    }
    if arguments.reading.has_item_type() {
        misuse!(
            "--item-type: the items of histories are those of the model, whatever their type; hint: leave it out"
        );
    }
    Ok(())
}

fn request(arguments: &RecommendArguments, items: &Items<'_>) -> anyhow::Result<Request> {
    let find = FilterItems { items, is_strict: arguments.strict };
    let list = |option: &str, list: Option<&Listed>| list.map(|list| find.find_all(option, list)).transpose();
    let only = arguments.only.as_ref().map(|only| find.find_some("--only", only)).transpose()?;
    // Alone the option stands for everything; an empty list stands for nothing.
    let (allows_all, repeatable) = match &arguments.allow_seen {
        Some(items) => (items.is_none(), items.as_ref()),
        None => (false, None),
    };
    let mut request = Request {
        n: arguments.n,
        exclude: list("--exclude", arguments.exclude.as_ref())?.unwrap_or_default(),
        only,
        seen: if allows_all { Seen::Allow } else { Seen::Exclude },
        repeatable: list("--allow-seen", repeatable)?.unwrap_or_default(),
        fallback: match arguments.fallback {
            FallbackArgument::None => Fallback::Empty,
            FallbackArgument::Popular => Fallback::Popular,
        },
        explain: arguments.explain,
        ..Request::default()
    };
    for boost in &arguments.boost {
        find.add_boosts("--boost", boost, &mut request)?;
    }
    Ok(request)
}

fn one(
    arguments: &RecommendArguments,
    items: &Items<'_>,
    prepared: &Prepared<'_>,
    history: &OwnedHistory,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let answer = prepared.answer(history, &mut Workspace::new())?;
    let falls_back = answer.is_fallback && prepared.fallback() == Fallback::Popular;
    terminal.finish();
    if answer.is_fallback {
        let hint = if falls_back { "these are the most popular ones" } else { "hint: --fallback popular" };
        tracing::warn!("no item of the history is known, so nothing can be recommended; {hint}");
    } else if answer.items.is_empty() {
        tracing::warn!("{}", nothing_left(arguments));
    }
    if arguments.json {
        return table::print_json(&json!({
            "history": history.items().iter().map(|&item| items.to_json(items.id(item))).collect::<Vec<_>>(),
            "unknown_items": answer.unknown_items,
            "fallback": if falls_back { Some("popular") } else { None },
            "recommendations": to_json(&answer.items, items),
        }));
    }
    let shown = describe(history, &answer, items);
    let note = if falls_back {
        "fallback: the most popular items, scored by how often they occur in the log\n"
    } else {
        ""
    };
    table::print(&format!("{note}{shown}"))
}

/// Why nothing can be recommended, by what was asked for.
fn nothing_left(arguments: &RecommendArguments) -> String {
    let mut reasons = Vec::new();
    // Alone the option lets everything of the history through.
    let allows_all = matches!(arguments.allow_seen, Some(None));
    reasons.extend((!allows_all).then_some("in the history"));
    reasons.extend(arguments.exclude.as_ref().map(|_| "in --exclude"));
    reasons.extend(arguments.only.as_ref().map(|_| "not in --only"));
    let hint = if arguments.allow_seen.is_none() { "; hint: --allow-seen" } else { "" };
    match reasons.as_slice() {
        [] => "nothing is left to recommend".to_owned(),
        reasons => format!("nothing is left to recommend: every item is {}{hint}", reasons.join(" or ")),
    }
}

fn to_json(list: &[Recommendation], items: &Items<'_>) -> Vec<Value> {
    (1..)
        .zip(list)
        .map(|(rank, recommendation)| {
            let mut entry = items.to_json(recommendation.item.as_id());
            entry["score"] = table::single(recommendation.score);
            entry["rank"] = json!(rank);
            if let Some(explanation) = &recommendation.explanation {
                let shares = explanation.shares.iter().map(|share| {
                    let mut entry = items.to_json(share.item.as_id());
                    entry["share"] = json!(share.share);
                    entry
                });
                entry["shares"] = shares.collect();
                entry["base"] = json!(explanation.base);
                entry["boost"] = json!(explanation.boost);
            }
            entry
        })
        .collect()
}

/// A table: items and scores and, if they are explained, the share of every item of the history and of what else there is.
fn describe(history: &OwnedHistory, answer: &Answer, items: &Items<'_>) -> String {
    let explanations =
        || answer.items.iter().filter_map(|recommendation| recommendation.explanation.as_ref());
    let has_base = explanations().any(|explanation| explanation.base != 0.0);
    let has_boost = explanations().any(|explanation| explanation.boost != 0.0);
    let past: Vec<String> = history.items().iter().map(|&item| items.show(items.id(item))).collect();
    let mut header = vec!["item", "score"];
    if explanations().next().is_some() {
        header.extend(past.iter().map(String::as_str));
        header.extend(has_base.then_some("of itself"));
        header.extend(has_boost.then_some("boost"));
    }
    let mut shown = table::with_header(&header);
    for recommendation in &answer.items {
        let mut row = vec![items.show(recommendation.item.as_id()), number(f64::from(recommendation.score))];
        if let Some(explanation) = &recommendation.explanation {
            row.extend(explanation.shares.iter().map(|share| number(share.share)));
            row.extend(has_base.then(|| number(explanation.base)));
            row.extend(has_boost.then(|| number(explanation.boost)));
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
    items: &Items<'_>,
    prepared: &Prepared<'_>,
    histories: &Path,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let usual = HistoryOptions::default();
    let reading = HistoryOptions {
        reading: arguments.reading.read_options(),
        history_column: arguments.history_column.clone(),
        memory: arguments.memory.unwrap_or(usual.memory),
    };
    // The ending decides before anything is read.
    output_format(arguments)?;
    if arguments.output.is_none() {
        terminal.give_way_to_output();
    }
    let mut histories = UserHistories::open(histories, prepared.model().catalog(), &reading, terminal)?;
    let checked = super::check_reading(&reading.reading, &[(histories.path(), histories.format())]);
    if reading.reading.format.is_some() {
        checked.on_command_line()?;
    } else {
        checked?;
    }
    // What the options of columns and times mean is known with the first history, before anything is written.
    let first = histories.next();
    check_columns(&reading, &histories)?;
    check_times(&reading.reading, &histories)?;
    let mut all = first.into_iter().chain(&mut histories);
    let report = write(arguments, items, prepared, &mut all, terminal)?;
    if histories.has_assumed_order() {
        super::note_assumed_order(&[histories.path()], terminal);
    }
    super::warn_of_dates(histories.path(), histories.doubtful_dates());
    if let Some(row) = histories.doubtful_first_row() {
        super::warn_of_first_row(histories.path(), row);
    }
    super::warn_of_finer_times(histories.finer_times());
    if histories.skipped_rows() > 0 {
        tracing::warn!(
            "skipped {}; the first: {}",
            table::counted(histories.skipped_rows() as usize, "bad row"),
            histories
                .skipped_messages()
                .first()
                .map(|message| hints::skipped_row(message))
                .unwrap_or_default()
        );
    }
    tell(&report, arguments)
}

/// An error if columns are named and nothing in the file has a name.
fn check_columns(options: &HistoryOptions, histories: &UserHistories<'_>) -> anyhow::Result<()> {
    let HistoryOptions { reading, history_column, .. } = options;
    let given = [
        ("--user-column", &reading.user_column),
        ("--item-column", &reading.item_column),
        ("--time-column", &reading.time_column),
        ("--history-column", history_column),
    ];
    let given = given.into_iter().find(|(_, column)| column.is_some());
    if let Some((option, _)) = given.filter(|_| histories.has_only_lists()) {
        bail!(
            "{option} means nothing for {}, whose histories are lists without names; hint: leave it out, or write objects such as \
             {{\"user_id\": \"ann\", \"history\": [\"tent\"]}}",
            escape::path(histories.path())
        );
    }
    Ok(())
}

/// An error if options say of times what the histories do not have.
fn check_times(options: &ReadOptions, histories: &UserHistories<'_>) -> anyhow::Result<()> {
    if histories.is_whole() && options.order_is_time {
        bail!(
            "--order-is-time means nothing for {}, whose rows are whole histories; hint: leave it out",
            escape::path(histories.path())
        );
    }
    super::check_time_unit(options.time_unit, &[(histories.path(), histories.times())])
}

/// What recommendations are written as.
fn output_format(arguments: &RecommendArguments) -> anyhow::Result<RecommendationFormat> {
    match &arguments.output {
        None => Ok(RecommendationFormat::JsonLines),
        Some(path) => RecommendationFormat::of(path).with_context(|| {
            format!("-o {}: expected a name that ends in .jsonl, .csv or .parquet", path.display())
        }),
    }
}

/// Recommends for all histories, into the file or to stdout.
fn write(
    arguments: &RecommendArguments,
    items: &Items<'_>,
    prepared: &Prepared<'_>,
    histories: &mut (dyn Iterator<Item = Result<UserHistory, DataError>> + Send),
    terminal: &Terminal,
) -> anyhow::Result<StreamReport> {
    let format = output_format(arguments)?;
    let columns = RecommendationColumns {
        titles: items.titles(),
        fallback: prepared.fallback() != Fallback::Empty,
        explanations: prepared.explains(),
    };
    let mut stream = |path: &Path, sink: &mut (dyn std::io::Write + Send)| -> anyhow::Result<StreamReport> {
        let mut writer = RecommendationWriter::new(format, path, sink, prepared.model().catalog(), columns)?;
        let report = recommend_stream(prepared, histories, &mut writer, terminal)?;
        writer.finish()?;
        Ok(report)
    };
    let report = match &arguments.output {
        Some(path) => write_atomically(path, |file| stream(path, file))
            .inspect(|_| terminal.wrote(path))
            .with_context(|| format!("nothing was written to {}", path.display()))?,
        None => stream(Path::new(table::STANDARD_OUTPUT), &mut BufWriter::new(std::io::stdout()))?,
    };
    terminal.finish();
    Ok(report)
}

/// What a reader of the output should know.
fn tell(report: &StreamReport, arguments: &RecommendArguments) -> anyhow::Result<()> {
    // One history has named its unknown items already.
    if report.unknown_items > 0 && arguments.histories.is_some() {
        let unknown = report.unknown_items as usize;
        tracing::warn!(
            "{} of histories {} unknown and skipped",
            table::counted(unknown, "item"),
            table::agreeing(unknown, "is", "are")
        );
    }
    if report.without_known_items > 0 {
        let got = match arguments.fallback {
            FallbackArgument::Popular => "the most popular items",
            FallbackArgument::None => "nothing; hint: --fallback popular",
        };
        let histories = report.without_known_items as usize;
        tracing::warn!(
            "{} {} no known item: {} got {got}",
            table::counted(histories, "history"),
            table::agreeing(histories, "has", "have"),
            table::agreeing(histories, "it", "they"),
        );
    }
    match &arguments.output {
        Some(_) if arguments.json => table::print_json(&json!(report)),
        Some(path) => table::print(&format!(
            "{}, {} written to {}",
            table::counted(report.histories as usize, "history"),
            table::counted(report.recommendations as usize, "recommendation"),
            path.display()
        )),
        None => Ok(()),
    }
}
