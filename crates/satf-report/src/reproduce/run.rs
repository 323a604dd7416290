//! Filling the cells of a suite, one after the other.

use std::path::Path;
use std::time::Instant;

use satf::models::Registry;
use satf::monitor::Cancelled;
use satf::prepare::{Partition, TiePolicy};

use super::cell::{Outcome, TARGET};
use super::findings::Findings;
use super::pace::Pace;
use super::plan::{self, Found, Planned};
use super::store::{Cell, Store};
use super::suite::{Model, Selection, Suite};
use super::tuning::Search;
use super::watcher::{Keeping, Watcher};
use super::{ReproduceError, gathering};
use crate::numbers::duration;
use crate::report::CHARTS;

/// The folders that are written below the folder of the report, besides the report itself.
pub const FOLDERS: [&str; 3] = ["cells", CHARTS, "studies"];

/// What to reproduce, and how.
#[derive(Clone)]
pub struct Request<'a> {
    /// What there is to be measured.
    pub suite: &'a Suite,
    /// Which of its models are run.
    pub selection: &'a Selection,
    /// The models there are.
    pub registry: &'a Registry,
    /// The folder with the datasets.
    pub data: &'a Path,
    /// The folder that keeps cells and studies.
    pub out: &'a Path,
    /// Trials of a search for configurations; without it, those of the suite are used.
    pub trials: Option<usize>,
    /// The first seed; others follow it.
    pub seed: u64,
    /// The command that asks for it, for the report.
    pub command: String,
}

impl<'a> Request<'a> {
    /// The models of a selection with the configurations of their suite, from seed 1 on.
    pub fn new(
        suite: &'a Suite,
        selection: &'a Selection,
        registry: &'a Registry,
        data: &'a Path,
        out: &'a Path,
    ) -> Self {
        Request { suite, selection, registry, data, out, trials: None, seed: 1, command: String::new() }
    }
}

/// Fills every cell that is not done yet, and gathers them all.
pub fn reproduce(request: &Request<'_>, watcher: &dyn Watcher) -> Result<Findings, ReproduceError> {
    let Request { suite, data, out, .. } = *request;
    let found = plan::find_datasets(suite, data, watcher)?;
    let store = Store::open(out)?;
    let findings = fill_and_gather(request, &found, &store, watcher);
    if findings.is_err() {
        store.leave();
    }
    findings
}

fn fill_and_gather(
    request: &Request<'_>,
    found: &[Found<'_>],
    store: &Store,
    watcher: &dyn Watcher,
) -> Result<Findings, ReproduceError> {
    let Request { suite, selection, registry, out, trials, seed, .. } = *request;
    let search = trials.map(|trials| Search { registry, out, trials, seed, watcher });
    let settings_of = |model: &Model, found: &Found<'_>| match &search {
        Some(search) => search.settings(model, found),
        None => Ok((plan::given_settings(model, found.dataset, registry)?, "")),
    };
    let planned = plan::cells(suite, registry, selection, found, seed, &settings_of)?;
    let (cells, failed) = fill(planned, store, out, watcher)?;
    let seeds = (0..suite.repeats as u64).map(|at| seed.saturating_add(at)).collect();
    Ok(gathering::gather(suite, found, &cells, failed, request.command.clone(), seeds, search.is_some()))
}

/// Cells, and what they hold if they are done.
pub(super) type Filled<'a> = Vec<(Planned<'a>, Option<Cell<Outcome>>)>;

/// Fills the cells, one after the other, so that times are those of one model alone. Comes with what is to be said of those that could
/// not be filled: a model that cannot be run on a log does not keep the others from it.
fn fill<'a>(
    planned: Vec<Planned<'a>>,
    store: &Store,
    out: &Path,
    watcher: &dyn Watcher,
) -> Result<(Filled<'a>, Vec<String>), ReproduceError> {
    let mut cells: Filled<'a> = Vec::new();
    for planned in planned {
        let kept = store.find(&planned.name, &planned.question.asked())?;
        cells.push((planned, kept));
    }
    let mut failed = Vec::new();
    let mut of = cells.iter().filter(|(planned, cell)| planned.wanted || cell.is_some()).count();
    let mut done = cells.iter().filter(|(_, cell)| cell.is_some()).count();
    if done > 0 {
        watcher.narrate(&format!("{done} of {of} cells are done already"));
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
        let keeping = Keeping { watcher, folder: store.checkpoints(&planned.name) };
        let outcome = match question.answer(partition, &keeping) {
            Ok(outcome) => outcome,
            Err(error) if watcher.is_cancelled() || Cancelled::is_cause_of(&error) => {
                return Err(ReproduceError::Stopped { done, of, out: out.to_owned(), source: Cancelled });
            }
            Err(error) => {
                let can_others = error.is_of_one_model();
                let what = format!("{model} on {}, {}", question.dataset.title(), question.task.describe());
                let error = ReproduceError::Cell { what, source: Box::new(error) };
                if !can_others {
                    return Err(error);
                }
                let words = watcher.word(&error);
                tracing::error!("left out: {words}");
                failed.push(words);
                of -= 1;
                continue;
            }
        };
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
        watcher.narrate(&format!("{line}; {} so far{left}", duration(began.elapsed().as_secs_f64())));
    }
    Ok((cells, failed))
}

/// The cuts of the dataset that is worked on: models share them.
#[derive(Default)]
struct Cuts {
    dataset: usize,
    known: Vec<((TiePolicy, u64, bool), Partition)>,
}

impl Cuts {
    fn of(&mut self, planned: &Planned<'_>) -> Result<&Partition, ReproduceError> {
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
