//! The page, from the cells that are done.

use std::fmt::Write as _;
use std::path::Path;

use satf::evaluate::Estimate;
use satf::prepare::TiePolicy;

use super::cells::{Candidate, Cell, Question, Tested, name_of, path, read};
use super::{DATASETS, Dataset, Error};

const NOTES: &str = "\
Test split, refit on training + validation, all items ranked, n = 10, ± one standard error, clustered by user, one seed of the model and \
of the order of ties. `ce` is the softmax over the whole catalogue; its configuration is the best of the candidates below on the \
validation set (NDCG@10 after every epoch; training ends after ten epochs without growth, or where it was cut off), its number of \
epochs the best one there. `bce` is the paper's configuration: one sampled negative a position, one head, the paper's width, blocks, \
dropout, step size and batch. Where fewer epochs were run than the paper's the row says so. The paper's figures carry a mark: = within \
two standard errors of ours, ▲ ours is above, ▼ below; they stand beside both orders of ties, for it is not known which one its \
SASRec saw. Seconds are those of the fastest epoch: others may have shared the machine.";

pub(crate) fn page(work: &Path) -> Result<String, Error> {
    let mut text = format!(
        "# SASRec, the neural baseline\n\nMade by `cargo run --release -p satf-results --bin sasrec -- DATA OUTPUT` with satf \
         {}, on {} cores.\n\n{NOTES}\n",
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads(),
    );
    for dataset in &DATASETS {
        write!(text, "\n## {}\n\n", dataset.title)?;
        text.push_str("| loss | ties | NDCG | HR | COV | epochs | seconds per epoch | paper |\n|---|---|---|---|---|---|---|---|\n");
        text.push_str(&rows(work, dataset)?);
        text.push_str(&candidates(work, dataset)?);
    }
    Ok(text)
}

const ORDERS: [TiePolicy; 2] = [TiePolicy::File, TiePolicy::Shuffle];

fn rows(work: &Path, dataset: &Dataset) -> Result<String, Error> {
    let mut text = String::new();
    for ties in ORDERS {
        let Some(best) = best(work, dataset, ties)? else {
            text.push_str(&not_run("**ce**", ties));
            continue;
        };
        // A score of another candidate, or of another number of epochs, says nothing about this one.
        let epochs = best.result.best_epoch as i64;
        let cell: Option<Cell<Tested>> = read(&path(work, dataset, ties, "ce"))?;
        match cell.filter(|cell| cell.asked.settings == best.asked.settings && cell.asked.epochs == epochs) {
            Some(cell) => text.push_str(&row("**ce**", ties, &cell.result, &epochs.to_string(), None)),
            None => text.push_str(&not_run("**ce**", ties)),
        }
    }
    if dataset.paper.is_none() {
        return Ok(text);
    }
    let preset = satf_sasrec::registry().preset(&format!("sasrec/{}", dataset.preset))?;
    let asked = preset.settings.get("epochs").and_then(toml::Value::as_integer).unwrap_or(100) as usize;
    for ties in ORDERS {
        // The largest budget that ran.
        let budgets = (1..=asked).rev().map(|epochs| path(work, dataset, ties, &format!("bce-{epochs}")));
        let Some(largest) = budgets.into_iter().find(|path| path.exists()) else {
            text.push_str(&not_run("bce", ties));
            continue;
        };
        let cell: Option<Cell<Tested>> = read(&largest)?;
        if let Some(Cell { asked: Question { epochs, .. }, result }) = cell {
            let is_whole = epochs == asked as i64;
            let epochs =
                if is_whole { epochs.to_string() } else { format!("{epochs} of the paper's {asked}") };
            text.push_str(&row("bce", ties, &result, &epochs, dataset.paper));
        }
    }
    Ok(text)
}

fn not_run(loss: &str, ties: TiePolicy) -> String {
    format!("| {loss} | {} | not run | | | | | |\n", name_of(ties))
}

fn row(loss: &str, ties: TiePolicy, tested: &Tested, epochs: &str, paper: Option<[f64; 2]>) -> String {
    let paper = paper.map_or_else(String::new, |[ndcg, hit_rate]| {
        let ndcg = marked(ndcg, &tested.ndcg);
        format!("{ndcg}, {}", marked(hit_rate, &tested.hit_rate))
    });
    format!(
        "| {loss} | {} | {} | {} | {:.3} | {epochs} | {:.1} | {paper} |\n",
        name_of(ties),
        shown(&tested.ndcg),
        shown(&tested.hit_rate),
        tested.coverage,
        tested.fastest_epoch,
    )
}

fn shown(estimate: &Estimate) -> String {
    format!("{:.4} ± {:.4}", estimate.value, estimate.stderr.unwrap_or(0.0))
}

/// A figure of the paper, which is rounded to three digits, and how ours compares.
fn marked(paper: f64, ours: &Estimate) -> String {
    let mark = match ours.value - paper {
        difference if difference.abs() <= 2.0 * ours.stderr.unwrap_or(0.0) + 0.0005 => '=',
        difference if difference > 0.0 => '▲',
        _ => '▼',
    };
    format!("{paper:.3} {mark}")
}

/// The candidate that is best on the validation set.
fn best(work: &Path, dataset: &Dataset, ties: TiePolicy) -> Result<Option<Cell<Candidate>>, Error> {
    let tried = tried(work, dataset, ties)?.into_iter();
    Ok(tried.reduce(|best, next| if next.result.ndcg.value > best.result.ndcg.value { next } else { best }))
}

fn tried(work: &Path, dataset: &Dataset, ties: TiePolicy) -> Result<Vec<Cell<Candidate>>, Error> {
    let cell = |number: usize| read(&path(work, dataset, ties, &format!("candidate-{number}"))).transpose();
    (0..dataset.candidates.len()).filter_map(cell).collect()
}

fn candidates(work: &Path, dataset: &Dataset) -> Result<String, Error> {
    let mut text = String::new();
    for ties in ORDERS {
        for Cell { asked, result: Candidate { best_epoch, epochs, ndcg } } in tried(work, dataset, ties)? {
            let was_cut = epochs as i64 == asked.epochs && epochs - best_epoch < asked.patience.unwrap_or(0);
            let end = if was_cut { ", where it was cut off" } else { "" };
            writeln!(
                text,
                "| {} | {} | {} | {best_epoch} of {epochs}{end} |",
                asked.settings.replace('\n', ", "),
                name_of(ties),
                shown(&ndcg),
            )?;
        }
    }
    if !text.is_empty() {
        let head = "\nCandidates of `ce` on the validation set:\n\n| keys | ties | NDCG | best epoch |\n|---|---|---|---|\n";
        text.insert_str(0, head);
    }
    Ok(text)
}
