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
use satf::experiment::ExperimentError;
use satf::models::{ModelError, Registry};
use satf::monitor::{Cancelled, Monitor};
use satf::prepare::{Partition, TiePolicy};
pub(crate) use standing::{Figure, Mark, Place};

use cell::Outcome;
use pace::Pace;
use plan::{Found, Planned};
use store::{Cell, Store};
use suite::Suite;
use tuning::Search;

use crate::commands::files::Files;
use crate::misuse::OnCommandLine;
use crate::report::REPORTS;
use crate::table::duration;
use crate::terminal::Terminal;

/// What is written below the folder of the report, besides the report itself.
const FOLDERS: [&str; 3] = ["cells", "charts", "studies"];

/// What to reproduce, and how.
pub(crate) struct Request<'a> {
    /// The models there are.
    pub(crate) registry: &'a Registry,
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

impl std::error::Error for Stopped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&Cancelled)
    }
}

/// Fills every cell that is not done yet, and gathers them all.
pub(crate) fn reproduce(request: &Request<'_>, terminal: &Terminal) -> anyhow::Result<Findings> {
    let registry = request.registry;
    let mut suite = Suite::read(request.suite, registry)?;
    let selection = suite.select(request.only, request.with, registry);
    // The paper's suite is part of the program; that of a file is known only once it is read.
    let selection = if request.suite.is_none() { selection.on_command_line() } else { selection }?;
    check_files(&suite, request)?;
    let store = Store::open(request.out)?;
    let found = plan::find_datasets(&suite, request.data, terminal)?;
    let search = request.trials.map(|trials| Search {
        registry,
        out: request.out,
        trials,
        seed: request.seed,
        terminal,
    });
    let settings_of = |model: &suite::Model, found: &Found<'_>| match &search {
        Some(search) => search.settings(model, found),
        None => Ok((plan::given_settings(model, found.dataset, registry)?, "")),
    };
    let planned = plan::cells(&suite, registry, &selection, &found, request.seed, &settings_of)?;
    let (cells, failed) = fill(planned, &store, request.out, terminal)?;
    let seeds = (0..suite.repeats as u64).map(|at| request.seed.saturating_add(at)).collect();
    Ok(Findings::new(&suite, &found, &cells, failed, request.command.clone(), seeds, search.is_some()))
}

/// An error if the report would be written over something that is read.
fn check_files(suite: &Suite, request: &Request<'_>) -> anyhow::Result<()> {
    let datasets = suite.datasets.iter().filter_map(|dataset| plan::find_file(dataset, request.data));
    let files = datasets.fold(Files::default(), |files, path| files.reading("--data", Some(path)));
    let files = files.reading("--suite", request.suite);
    files.keep_out_of("--out", &FOLDERS.map(|name| request.out.join(name)))?;
    let written = REPORTS.iter().map(|name| request.out.join(name));
    written.fold(files, |files, path| files.writing("--out", Some(path))).check_distinct()
}

type Filled<'a> = Vec<(Planned<'a>, Option<Cell<Outcome>>)>;

/// Fills the cells, one after the other, so that times are those of one model alone. Comes with what is to be said of those that could
/// not be filled: a model that cannot be run on a log does not keep the others from it.
fn fill<'a>(
    planned: Vec<Planned<'a>>,
    store: &Store,
    out: &Path,
    terminal: &Terminal,
) -> anyhow::Result<(Filled<'a>, Vec<String>)> {
    let mut cells: Filled<'a> = Vec::new();
    for planned in planned {
        let kept = store.find(&planned.name, &planned.question.asked());
        cells.push((planned, kept));
    }
    let mut failed = Vec::new();
    let mut of = cells.iter().filter(|(planned, cell)| planned.wanted || cell.is_some()).count();
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
        let outcome = match question.answer(partition, &keeping) {
            Ok(outcome) => outcome,
            Err(error) if terminal.is_cancelled() || crate::is_cancelled(&error) => {
                return Err(stopped().into());
            }
            Err(error) => {
                let can_others = cannot_be_run(&error);
                let what = format!("{model} on {}, {}", question.dataset.title(), question.task.describe());
                let error = error.context(what);
                if !can_others {
                    return Err(error);
                }
                tracing::error!("left out: {}", crate::hints::chain(&error));
                failed.push(crate::hints::chain(&error));
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
        terminal.narrate(&format!("{line}; {} so far{left}", duration(began.elapsed().as_secs_f64())));
    }
    Ok((cells, failed))
}

/// Whether it is the model that cannot be run, and not something that keeps others from being run too.
fn cannot_be_run(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ExperimentError::Model(error)) if !matches!(error, ModelError::Checkpoint { .. }))
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
