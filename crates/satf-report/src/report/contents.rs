//! What the report says, section by section.

use super::page::{Block, Column, Entry, Page, Section, Table};
use super::pictures;
use crate::charts::HAS_PNG;
use crate::numbers::{count, duration};
use crate::reproduce::{DatasetFindings, Findings, MEASURES, Mark, Row, Scores};

pub(super) fn page(findings: &Findings) -> Page {
    let mut sections = vec![datasets(findings)];
    sections.extend(results(findings));
    sections.extend(further(findings));
    sections.extend(times(findings));
    sections.extend(learned(findings));
    sections.push(made(findings));
    Page { title: findings.title.clone(), summary: summary(findings), sections }
}

/// The tally of marks, in words.
fn summary(findings: &Findings) -> Vec<String> {
    let titles: Vec<&str> = findings.datasets.iter().map(|dataset| dataset.title.as_str()).collect();
    let models = findings.datasets.iter().flat_map(|dataset| &dataset.rows).filter(|row| row.file.is_some());
    let models: std::collections::BTreeSet<&str> = models.map(|row| row.model.as_str()).collect();
    let mut lines = vec![format!(
        "{} on {}: scores on the test set after training on all before it, every item of the catalogue ranked.",
        counted(models.len(), "model", "models"),
        listed(&titles)
    )];
    let tally = findings.tally();
    let of: usize = tally.iter().map(|(_, count)| count).sum();
    if of > 0 {
        let parts: Vec<String> = tally
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(mark, count)| format!("{count} {}", mark.words()))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        lines.push(format!(
            "Of {of} figures that the {} has and we have too: {}.",
            findings.published_by,
            listed(&parts)
        ));
    }
    if !findings.failed.is_empty() {
        lines.push(format!("Left out because they could not be run: {}.", findings.failed.join("; ")));
    }
    if !findings.missing.is_empty() {
        let missing: Vec<&str> = findings.missing.iter().map(String::as_str).collect();
        lines.push(format!("Left out because their files were missing: {}.", listed(&missing)));
    }
    lines
}

fn datasets(findings: &Findings) -> Section {
    let rows = findings.datasets.iter().map(|dataset| {
        let statistics = &dataset.statistics;
        let tied = 100.0 * statistics.tied_rows as f64 / statistics.rows.max(1) as f64;
        let events = dataset.rows.iter().find_map(|row| Some(row.file.as_ref()?.events));
        [
            dataset.title.clone(),
            count(statistics.users),
            count(statistics.items),
            count(statistics.rows),
            format!("{:.1}", statistics.average_history),
            format!("{}", statistics.median_history),
            format!("{:.2} %", 100.0 * statistics.density),
            format!("{tied:.0} %"),
            dataset.valid.clone(),
            dataset.test.clone(),
            events.map(count).unwrap_or_default(),
            dataset.max_len.to_string(),
        ]
        .map(Entry::from)
        .to_vec()
    });
    let table = Table {
        caption: "The datasets: users, items and rows; length of histories; pairs of user and item that occur; rows that share \
                  user and time with another; how they are cut, how many events are scored, and the longest history that order-aware models look at."
            .to_owned(),
        columns: [
            Column::named(&["dataset", "users", "items", "rows"]),
            Column::grouped("history", &["average", "median"]),
            Column::named(&["density", "ties"]),
            Column::grouped("protocol", &["validation", "test", "events", "longest"]),
        ]
        .concat(),
        labels: 1,
        rows: rows.collect(),
    };
    let notes = findings
        .datasets
        .iter()
        .filter_map(|dataset| Some(Block::Text(format!("{}: {}", dataset.title, dataset.note.as_ref()?))));
    let blocks = std::iter::once(Block::Table(table)).chain(notes).collect();
    Section { heading: "Datasets".to_owned(), blocks }
}

fn results(findings: &Findings) -> Option<Section> {
    let by = &findings.published_by;
    let repeats = findings.made.seeds.len();
    let mut blocks = vec![
        Block::Text(format!(
            "Rows of one user with the same time have no order of their own. The order of the file, which the {by} used, is often \
             that of a catalogue, and models of order learn it: so every score stands beside the one with such ties shuffled, \
             the mean of {repeats} seeds. Models with a random start are the mean of {repeats} seeds in file order too. ± is one \
             standard error, clustered by user."
        )),
        Block::Terms(legend(findings)),
    ];
    let before = blocks.len();
    let mut notes: Vec<(&str, &str)> = Vec::new();
    for row in findings.datasets.iter().flat_map(|dataset| &dataset.rows) {
        let note = row.note.as_deref().map(|note| (row.model.as_str(), note));
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    for dataset in &findings.datasets {
        let rows: Vec<&Row> = dataset.rows.iter().filter(|row| !row.extra).collect();
        if rows.is_empty() {
            continue;
        }
        blocks.push(Block::Heading(dataset.title.clone()));
        blocks.push(Block::Table(results_table(dataset, &rows, by)));
        blocks.push(Block::Pictures(pictures::metric_bars(dataset, by)));
    }
    let found = blocks.len() > before;
    let notes = notes.into_iter().map(|(model, note)| Block::Text(format!("{model}: {note}")));
    blocks.splice(before..before, notes);
    found.then(|| Section { heading: "Results".to_owned(), blocks })
}

fn legend(findings: &Findings) -> Vec<(String, String)> {
    let by = &findings.published_by;
    let mut terms = vec![
        (
            "bold".to_owned(),
            "the best of a column, and all that lie within its interval as it lies within theirs".to_owned(),
        ),
        ("underlined".to_owned(), "the second, by the same rule".to_owned()),
    ];
    if findings.tally().iter().any(|(_, count)| *count > 0) {
        terms.extend(Mark::ALL.map(|mark| {
            let words = match mark {
                Mark::Within => format!("ours in file order is within two standard errors of the {by}'s figure (COV has no error: the same three decimals)"),
                Mark::Above => format!("ours is above the {by}'s by more"),
                Mark::Below => format!("ours is below the {by}'s by more"),
                Mark::AboveWithinRuns => format!("ours is above on average, but the {by}'s figure is within the range of our seeds"),
                Mark::BelowWithinRuns => format!("ours is below on average, but the {by}'s figure is within the range of our seeds"),
            };
            (mark.symbol().to_owned(), words)
        }));
    }
    terms
}

/// Models as rows; measures in file order, as published, and shuffled as columns.
fn results_table(dataset: &DatasetFindings, rows: &[&Row], by: &str) -> Table {
    let names = MEASURES.map(|measure| measure.split('@').next().unwrap_or(measure));
    let has_published = rows.iter().any(|row| row.published.is_some());
    let mut columns = Column::named(&["model"]);
    columns.extend(Column::grouped("ours, ties in file order", &names));
    if has_published {
        columns.extend(Column::grouped(by, &names));
    }
    columns.extend(Column::grouped("ours, ties shuffled", &names));
    let rows = rows.iter().map(|row| {
        let mut entries: Vec<Entry> = vec![row.model.as_str().into()];
        entries.extend(score_entries(row.file.as_ref()));
        if has_published {
            entries.extend(published_entries(row));
        }
        entries.extend(score_entries(row.shuffled.as_ref()));
        entries
    });
    Table {
        caption: format!("{}: NDCG, HR and COV of the first ten recommendations", dataset.title),
        columns,
        labels: 1,
        rows: rows.collect(),
    }
}

/// Three cells: NDCG and HR with their errors, COV.
fn score_entries(scores: Option<&Scores>) -> [Entry; 3] {
    let Some(scores) = scores else { return ["–", "–", "–"].map(Entry::from) };
    std::array::from_fn(|at| {
        let figure = scores.figures[at];
        let text = match figure.stderr {
            Some(stderr) => format!("{:.4} ± {stderr:.4}", figure.value),
            None => format!("{:.3}", figure.value),
        };
        Entry { text, place: scores.places[at], mark: None }
    })
}

fn published_entries(row: &Row) -> [Entry; 3] {
    let Some(published) = row.published else { return ["–", "–", "–"].map(Entry::from) };
    let figures = published.figures();
    std::array::from_fn(|at| Entry {
        text: format!("{:.3}", figures[at].value),
        place: row.published_places[at],
        mark: row.marks.map(|marks| marks[at]),
    })
}

fn further(findings: &Findings) -> Option<Section> {
    let names = MEASURES.map(|measure| measure.split('@').next().unwrap_or(measure));
    let mut table = Table {
        caption: "Models with their default configurations".to_owned(),
        columns: [
            Column::named(&["dataset", "model"]),
            Column::grouped("ours, ties in file order", &names),
            Column::grouped("ours, ties shuffled", &names),
        ]
        .concat(),
        labels: 2,
        rows: Vec::new(),
    };
    for dataset in &findings.datasets {
        for row in dataset.rows.iter().filter(|row| row.extra) {
            let mut entries: Vec<Entry> = vec![dataset.title.as_str().into(), row.model.as_str().into()];
            entries.extend(score_entries(row.file.as_ref()));
            entries.extend(score_entries(row.shuffled.as_ref()));
            table.rows.push(entries);
        }
    }
    let text = format!(
        "What the {} does not compare with. Best and second are among these alone.",
        findings.published_by
    );
    (!table.rows.is_empty()).then(|| Section {
        heading: format!("Models that the {} lacks", findings.published_by),
        blocks: vec![Block::Text(text), Block::Table(table)],
    })
}

fn times(findings: &Findings) -> Option<Section> {
    let mut columns = Column::named(&["model"]);
    columns.extend(
        findings.datasets.iter().map(|dataset| Column { name: dataset.title.clone(), ..Column::default() }),
    );
    let mut models: Vec<&str> = Vec::new();
    for row in findings.datasets.iter().flat_map(|dataset| &dataset.rows) {
        if row.train_seconds.is_some() && !models.contains(&row.model.as_str()) {
            models.push(&row.model);
        }
    }
    let rows = models.iter().map(|model| {
        let mut entries: Vec<Entry> = vec![(*model).into()];
        entries.extend(findings.datasets.iter().map(|dataset| {
            let row = dataset.rows.iter().find(|row| row.model == *model);
            let seconds = row.and_then(|row| row.train_seconds);
            Entry::from(seconds.map_or_else(|| "–".to_owned(), |seconds| format!("{seconds:.2}")))
        }));
        entries
    });
    let table = Table {
        caption:
            "Seconds of training at the configurations of the tables, the mean of the runs in file order"
                .to_owned(),
        columns,
        labels: 1,
        rows: rows.collect(),
    };
    if table.rows.is_empty() {
        return None;
    }
    let mut charts: Vec<_> = pictures::time_at_optimum(findings).into_iter().collect();
    charts.extend(findings.datasets.iter().filter_map(pictures::time_by_rank));
    let text = format!(
        "Runs were timed one after the other, on {}. Whatever else the machine did meanwhile is in these times.",
        counted_threads(&findings.made.threads)
    );
    let mut blocks = vec![Block::Text(text), Block::Table(table), Block::Pictures(charts)];
    blocks.extend(findings.datasets.iter().filter_map(rank_table).map(Block::Table));
    Some(Section { heading: "Training time".to_owned(), blocks })
}

/// The figure of time against rank, in numbers.
fn rank_table(dataset: &DatasetFindings) -> Option<Table> {
    let timed: Vec<&Row> = dataset.rows.iter().filter(|row| !row.rank_seconds.is_empty()).collect();
    let mut ranks: Vec<usize> =
        timed.iter().flat_map(|row| row.rank_seconds.iter().map(|(rank, _)| *rank)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let rows = timed.iter().map(|row| {
        let mut entries: Vec<Entry> = vec![row.model.as_str().into()];
        entries.extend(ranks.iter().map(|rank| {
            let seconds = row.rank_seconds.iter().find(|(other, _)| other == rank);
            Entry::from(seconds.map_or_else(|| "–".to_owned(), |(_, seconds)| format!("{seconds:.2}")))
        }));
        entries
    });
    let mut columns = Column::named(&["model"]);
    columns.extend(ranks.iter().map(|rank| Column { group: "item rank".to_owned(), name: rank.to_string() }));
    (!timed.is_empty()).then(|| Table {
        caption: format!("Seconds of training on {} by item rank", dataset.title),
        columns,
        labels: 1,
        rows: rows.collect(),
    })
}

fn learned(findings: &Findings) -> Option<Section> {
    let mut blocks = Vec::new();
    for dataset in &findings.datasets {
        let mut charts: Vec<_> = pictures::validation_curve(dataset).into_iter().collect();
        charts.extend(pictures::position_weights(dataset));
        if !charts.is_empty() {
            blocks.push(Block::Heading(dataset.title.clone()));
            blocks.push(Block::Pictures(charts));
        }
    }
    (!blocks.is_empty()).then(|| Section { heading: "What was learned".to_owned(), blocks })
}

fn made(findings: &Findings) -> Section {
    let made = &findings.made;
    let seeds: Vec<String> = made.seeds.iter().map(ToString::to_string).collect();
    let configurations = if made.tuned {
        "Configurations were found by a search on the validation set"
    } else {
        "Configurations are those of the suite"
    };
    let text = format!(
        "satf {} on {}, {}; seeds {}. {configurations}. {} cells took {} together. Charts are beside this page as {}, \
         the figures as JSON.",
        made.satf_version,
        made.system,
        counted_threads(&made.threads),
        seeds.join(", "),
        count(made.cells),
        duration(made.seconds),
        if HAS_PNG { "SVG and PNG" } else { "SVG" },
    );
    let mut blocks = vec![Block::Text(text), Block::Commands(vec![made.command.clone()])];
    for dataset in &findings.datasets {
        let commands: Vec<String> = dataset.rows.iter().filter_map(|row| row.command.clone()).collect();
        if !commands.is_empty() {
            blocks.push(Block::Heading(format!("{}, model by model", dataset.title)));
            blocks.push(Block::Commands(commands));
        }
    }
    Section { heading: "How this was made".to_owned(), blocks }
}

fn counted_threads(threads: &[usize]) -> String {
    match threads {
        [threads] => counted(*threads, "thread", "threads"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("{} threads", several.join(" or "))
        }
    }
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `a, b and c`
fn listed(parts: &[&str]) -> String {
    match parts {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
