//! From cells to findings.

use std::collections::BTreeSet;

use satf::evaluate::ResampleUnit;
use satf::models::Attention;
use satf::prepare::TiePolicy;
use serde_json::Value;

use super::cell::{Outcome, Scored, Task};
use super::findings::{DatasetFindings, Findings, MEASURES, Made, Published, Row, Scores};
use super::plan::{Found, Planned};
use super::standing::{Figure, Mark, Place, places};
use super::store::Cell;
use super::suite::{Model, Suite};

/// Gathers the cells that are done.
pub(super) fn gather(
    suite: &Suite,
    found: &[Found<'_>],
    cells: &[(Planned<'_>, Option<Cell<Outcome>>)],
    failed: Vec<String>,
    command: String,
    seeds: Vec<u64>,
    tuned: bool,
) -> Findings {
    let done = || cells.iter().filter_map(|(planned, cell)| Some((planned, cell.as_ref()?)));
    let threads: BTreeSet<usize> = done()
        .filter_map(|(_, cell)| match &cell.result {
            Outcome::Score(scored) => Some(scored.threads),
            Outcome::Time(timed) => Some(timed.threads),
            Outcome::Curve(_) => None,
        })
        .collect();
    let datasets = found.iter().enumerate().map(|(at, found)| {
        let rows = suite.models.iter().enumerate().filter_map(|(model_at, model)| {
            let own: Vec<(&Planned<'_>, &Cell<Outcome>)> =
                done().filter(|(planned, _)| (planned.dataset, planned.model) == (at, model_at)).collect();
            let published = suite.published(found.dataset, model);
            (!own.is_empty() || published.is_some()).then(|| row(model, found, &own, published))
        });
        let mut rows: Vec<Row> = rows.collect();
        place_rows(&mut rows);
        DatasetFindings {
            name: found.dataset.name.clone(),
            title: found.dataset.title().to_owned(),
            note: found.dataset.note.clone(),
            file: found.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            valid: found.dataset.valid.to_string(),
            test: found.dataset.test.to_string(),
            max_len: found.dataset.max_len,
            statistics: found.statistics.clone(),
            rows,
        }
    });
    let is_missing = |name: &str| !found.iter().any(|found| found.dataset.name == name);
    Findings {
        title: suite.title.clone(),
        published_by: suite.published_by.clone(),
        datasets: datasets.collect(),
        missing: suite
            .datasets
            .iter()
            .filter(|dataset| is_missing(&dataset.name))
            .map(|dataset| dataset.title().to_owned())
            .collect(),
        failed,
        made: Made {
            command,
            satf_version: env!("CARGO_PKG_VERSION"),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            threads: threads.into_iter().collect(),
            seeds,
            tuned,
            error_unit: ResampleUnit::default(),
            cells: done().count(),
            seconds: done().map(|(_, cell)| cell.seconds).sum(),
        },
    }
}

/// What was found of a model on a dataset.
fn row(
    model: &Model,
    found: &Found<'_>,
    own: &[(&Planned<'_>, &Cell<Outcome>)],
    published: Option<Published>,
) -> Row {
    let runs = |wanted: TiePolicy| {
        let runs =
            own.iter().filter_map(move |(planned, cell)| match (planned.question.task, &cell.result) {
                (Task::Score { ties, seed }, Outcome::Score(scored)) if ties == wanted => {
                    Some((seed, scored))
                }
                _ => None,
            });
        runs.collect::<Vec<(u64, &Scored)>>()
    };
    let (in_file_order, shuffled) = (runs(TiePolicy::File), runs(TiePolicy::Shuffle));
    let file = mean(&in_file_order);
    let marks = file.as_ref().zip(published).map(|(ours, theirs)| {
        let [ndcg, hr, cov] = ours.figures;
        [Mark::of(ndcg, theirs.ndcg[0]), Mark::of(hr, theirs.hr[0]), Mark::of(cov, theirs.cov)]
    });
    let times: Vec<f64> = in_file_order.iter().map(|(_, scored)| scored.train_seconds).collect();
    let first = own.iter().find(|(planned, _)| matches!(planned.question.task, Task::Score { .. }));
    let configuration = first.map(|(planned, _)| planned.question.choice.configured.configuration.clone());
    Row {
        model: model.name.clone(),
        note: model.note.clone(),
        extra: model.extra,
        command: first.map(|(planned, _)| command(planned, found)),
        file,
        shuffled: mean(&shuffled),
        published,
        published_places: Default::default(),
        marks,
        train_seconds: (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
        curve: own
            .iter()
            .find_map(|(_, cell)| match &cell.result {
                Outcome::Curve(curve) => Some(curve.clone()),
                _ => None,
            })
            .unwrap_or_default(),
        iterations: configuration.as_ref().and_then(|keys| keys["num_iters"].as_u64()),
        rank_seconds: own
            .iter()
            .filter_map(|(planned, cell)| match (planned.question.task, &cell.result) {
                (Task::Time { rank }, Outcome::Time(timed)) => Some((rank, timed.train_seconds)),
                _ => None,
            })
            .collect(),
        lag_weights: in_file_order.first().and_then(|(_, scored)| scored.lag_weights.clone()),
        attention: configuration.as_ref().and_then(attention),
        configuration,
    }
}

/// The mean of some runs; none without any.
fn mean(runs: &[(u64, &Scored)]) -> Option<Scores> {
    let figure = |name: &str| {
        let values: Vec<(f64, Option<f64>)> = runs
            .iter()
            .filter_map(|(_, scored)| scored.metrics.get(name).map(|found| (found.value, found.stderr)))
            .collect();
        Figure::mean(&values)
    };
    let [ndcg, hr, cov] = MEASURES;
    Some(Scores {
        figures: [figure(ndcg)?, figure(hr)?, figure(cov)?],
        places: Default::default(),
        seeds: runs.iter().map(|(seed, _)| *seed).collect(),
        events: runs.first()?.1.events,
    })
}

/// Best and second of every column. Further models have places of their own, so that the table of the paper's models is
/// marked as the paper's is.
fn place_rows(rows: &mut [Row]) {
    type Column<'a> = &'a dyn Fn(&Row) -> Option<Figure>;
    for at in 0..MEASURES.len() {
        let place = |rows: &mut [Row], column: Column<'_>, set: &dyn Fn(&mut Row, Place)| {
            for extra in [false, true] {
                let figures: Vec<Option<Figure>> =
                    rows.iter().map(|row| column(row).filter(|_| row.extra == extra)).collect();
                for (row, place) in
                    rows.iter_mut().zip(places(&figures)).filter(|(row, _)| row.extra == extra)
                {
                    set(row, place);
                }
            }
        };
        let of = |scores: &Option<Scores>| scores.as_ref().map(|scores| scores.figures[at]);
        place(rows, &|row| of(&row.file), &|row, place| {
            row.file.iter_mut().for_each(|scores| scores.places[at] = place);
        });
        place(rows, &|row| of(&row.shuffled), &|row, place| {
            row.shuffled.iter_mut().for_each(|scores| scores.places[at] = place);
        });
        place(rows, &|row| row.published.map(|published| published.figures()[at]), &|row, place| {
            row.published_places[at] = place;
        });
    }
}

/// The command that scores a cell alone.
fn command(planned: &Planned<'_>, found: &Found<'_>) -> String {
    let question = &planned.question;
    let entry = question.choice.entry;
    let mut words = vec!["satf evaluate".to_owned(), quoted(&found.path.to_string_lossy())];
    words.push(format!("--model {}", entry.name));
    let defaults = entry.defaults();
    for (key, value) in question.choice.configured.configuration.as_object().into_iter().flatten() {
        // Said by options of their own.
        if key != "seed" && key != "max_len" && defaults.get(key) != Some(value) {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            words.push(format!("--set {}", quoted(&format!("{key}={value}"))));
        }
    }
    let (valid, test) = (found.dataset.valid, found.dataset.test);
    words.push(format!("--valid {valid} --test {test} --ties file"));
    if entry.defaults().contains_key("max_len") {
        words.push(format!("--max-len {}", found.dataset.max_len));
    }
    if question.seen != satf::evaluate::SeenPolicy::Own {
        words.push(format!("--seen {}", serde_json::json!(question.seen).as_str().unwrap_or_default()));
    }
    if let Task::Score { seed, .. } = question.task
        && entry.defaults().contains_key("seed")
    {
        words.push(format!("--seed {seed}"));
    }
    words.join(" ")
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The attention weights a configuration stands for, over the window or over whole histories.
fn attention(configuration: &Value) -> Option<Vec<f64>> {
    let key = |name: &str| &configuration[name];
    let factor = key("attention_decay").as_f64()?;
    let positions = key("attention_window").as_u64().or(key("max_len").as_u64())?;
    let attention = Attention {
        decay: serde_json::from_value(key("attention_shape").clone()).ok()?,
        factor,
        span: key("attention_span").as_u64().map(|span| span as usize),
        cutoff: key("attention_cutoff").as_f64().unwrap_or(0.0),
        normalization: Default::default(),
        weights: serde_json::from_value(key("attention_weights").clone()).ok()?,
    };
    Some(attention.diagonal_weights(positions as usize))
}

#[cfg(test)]
mod tests {
    use satf::models::Registry;
    use toml::Table;

    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("../data/a.csv"), "../data/a.csv");
        assert_eq!(quoted("my log's.csv"), "'my log'\\''s.csv'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn attention_is_that_of_the_configuration() {
        let of = |model: &str, settings: &str| {
            let settings: Table = settings.parse().unwrap();
            attention(&Registry::default().find(model).unwrap().configure(&settings).unwrap().configuration)
        };
        let global = of("ga-satf", "attention_decay = 1.0\nmax_len = 4\nposition_rank = 2").unwrap();
        assert_eq!(global, [1.0, 0.5, 1.0 / 3.0, 0.25]);
        let local = of("la-satf", "attention_window = 3\nattention_weights = [2.0, 0.5]").unwrap();
        assert_eq!(local, [2.0, 0.5, 0.0]);
        assert_eq!(of("pure-svd", ""), None);
    }
}
