//! `satf reproduce`: every table and figure of a suite, cell by cell, each kept as soon as it is done.

mod cell;
mod findings;
mod pace;
mod plan;
mod standing;
mod store;
mod suite;
mod tuning;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use cell::TARGET;
pub(crate) use findings::{DatasetFindings, Findings, MEASURES, Row, Scores, quoted};
use satf::monitor::{Cancelled, Monitor};
use satf::prepare::{Partition, TiePolicy};
pub(crate) use standing::{Figure, Mark, Place};

use cell::Outcome;
use pace::Pace;
use plan::{Found, Planned};
use store::{Cell, Store};
use suite::Suite;
use tuning::Search;

use crate::table::duration;
use crate::terminal::Terminal;

/// What to reproduce, and how.
pub(crate) struct Request<'a> {
    pub(crate) data: &'a Path,
    pub(crate) out: &'a Path,
    pub(crate) suite: Option<&'a Path>,
    pub(crate) only: &'a [String],
    pub(crate) with: &'a [String],
    /// Trials of tuning; without it, the configurations of the suite are taken.
    pub(crate) trials: Option<usize>,
    pub(crate) seed: u64,
    /// The command that asked for it.
    pub(crate) command: String,
}

/// The work was stopped on request.
#[derive(Debug)]
pub(crate) struct Stopped {
    done: usize,
    of: usize,
    out: PathBuf,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "stopped on request; {} of {} cells are kept in {}, the same command goes on from there",
            self.done,
            self.of,
            self.out.display()
        )
    }
}

impl std::error::Error for Stopped {}

/// Fills every cell that is not done yet, and gathers them all.
pub(crate) fn reproduce(request: &Request<'_>, terminal: &Terminal) -> anyhow::Result<Findings> {
    let mut suite = Suite::read(request.suite)?;
    let selection = suite.select(request.only, request.with)?;
    let store = Store::open(request.out)?;
    let found = plan::find_datasets(&suite, request.data, terminal)?;
    let search =
        request.trials.map(|trials| Search { out: request.out, trials, seed: request.seed, terminal });
    let settings_of = |model: &suite::Model, found: &Found<'_>| match &search {
        Some(search) => search.settings(model, found),
        None => Ok((plan::given_settings(model, found.dataset)?, "")),
    };
    let planned = plan::cells(&suite, &selection, &found, request.seed, &settings_of)?;
    let cells = fill(planned, &store, request.out, terminal)?;
    let seeds = (0..suite.repeats as u64).map(|at| request.seed.saturating_add(at)).collect();
    Ok(Findings::new(&suite, &found, &cells, request.command.clone(), seeds, search.is_some()))
}

type Filled<'a> = Vec<(Planned<'a>, Option<Cell<Outcome>>)>;

/// Fills the cells, one after the other, so that times are those of one model alone.
fn fill<'a>(
    planned: Vec<Planned<'a>>,
    store: &Store,
    out: &Path,
    terminal: &Terminal,
) -> anyhow::Result<Filled<'a>> {
    let mut cells: Filled<'a> = Vec::new();
    for planned in planned {
        let kept = store.find(&planned.name, &planned.question.asked());
        cells.push((planned, kept));
    }
    let of = cells.iter().filter(|(planned, cell)| planned.wanted || cell.is_some()).count();
    let mut done = cells.iter().filter(|(_, cell)| cell.is_some()).count();
    if done > 0 {
        terminal.narrate(&format!("{done} of {of} cells are done already"));
    }
    let began = Instant::now();
    let pace = Pace::new(&cells)?;
    let mut cuts = Cuts::default();
    for at in 0..cells.len() {
        let (planned, cell) = &cells[at];
        if cell.is_some() || !planned.wanted {
            continue;
        }
        let (question, model) = (&planned.question, &planned.question.choice.label);
        let partition = cuts.of(planned)?;
        let start = Instant::now();
        let stopped = || Stopped { done, of, out: out.to_owned() };
        // A cell that takes long goes on where it was stopped.
        let keeping = terminal.keeping_checkpoints_in(store.checkpoints(&planned.name));
        let outcome = question.answer(partition, &keeping).map_err(|error| {
            if terminal.is_cancelled() || error.is::<Cancelled>() {
                return stopped().into();
            }
            let what = question.task.describe();
            error.context(format!("{model} on {}, {what}", question.dataset.title()))
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let cell = store.keep(&planned.name, &question.asked(), outcome, seconds)?;
        store.forget_checkpoints(&planned.name);
        done += 1;
        let line = format!(
            "[{done} of {of}] {}, {model}, {}: {}",
            question.dataset.title(),
            question.task.describe(),
            brief(&cell.result, seconds)
        );
        cells[at].1 = Some(cell);
        let left = pace.seconds_left(&cells);
        let left = if done < of { format!(", about {} left", duration(left)) } else { String::new() };
        terminal.narrate(&format!("{line}; {} so far{left}", duration(began.elapsed().as_secs_f64())));
    }
    Ok(cells)
}

/// The cuts of the dataset that is worked on: models share them.
#[derive(Default)]
struct Cuts {
    dataset: usize,
    known: Vec<((TiePolicy, u64, bool), Partition)>,
}

impl Cuts {
    fn of(&mut self, planned: &Planned<'_>) -> anyhow::Result<&Partition> {
        if self.dataset != planned.dataset {
            *self = Cuts { dataset: planned.dataset, known: Vec::new() };
        }
        let question = &planned.question;
        let wanted = question.cut();
        let known = self.known.iter().position(|(cut, _)| *cut == wanted);
        let at = known.unwrap_or(self.known.len());
        if known.is_none() {
            let (ties, seed, validation) = wanted;
            self.known.push((wanted, question.log.cut(question.dataset, ties, seed, validation)?));
        }
        Ok(&self.known[at].1)
    }
}

/// What came of a cell, in a few words.
fn brief(outcome: &Outcome, seconds: f64) -> String {
    match outcome {
        Outcome::Score(scored) => {
            let target = scored.metrics.get(&TARGET.to_string()).map_or(0.0, |found| found.value);
            format!("{TARGET} {target:.4} in {}", duration(seconds))
        }
        Outcome::Curve(curve) => format!("{} iterations in {}", curve.len(), duration(seconds)),
        Outcome::Time(timed) => duration(timed.train_seconds),
    }
}
