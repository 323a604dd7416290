//! Talk on stderr: progress when it is a terminal, and warnings.

use std::borrow::Cow;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use satf::data::NewFolder;
use satf::models::{Checkpoints, Iteration, Snapshot, TrainingMonitor};
use satf::monitor::{Cancelled, Monitor};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::progress::Progress;
use crate::{escape, signals};

/// Whether nothing may be said: stderr goes to a file that must not change.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Nothing is said from now on.
pub(crate) fn silence() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// Whether the terminal knows no escapes, with which a line of progress is cleared.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// What commands talk through.
#[derive(Clone)]
pub(crate) struct Terminal {
    bar: Arc<Progress>,
    quiet: bool,
    last_line: Arc<Mutex<Instant>>,
    kept: Option<Arc<Kept>>,
    written: Arc<Mutex<Vec<PathBuf>>>,
}

/// A folder for unfinished training, and whom to tell when training goes on from there.
struct Kept {
    folder: PathBuf,
    /// The folders that were made for it, if it was to be there at once.
    made: Option<NewFolder>,
    terminal: Terminal,
}

/// Work that shows no bar tells of itself after so long.
const SILENCE: Duration = Duration::from_secs(30);
/// The most bytes of a line that is said.
const LONGEST_LINE: usize = 4_000;
/// What only those want to know who look for speed: in JSON and nowhere else.
const UNSAID: [&str; 3] = ["product_share", "operations", "gflops"];

impl Terminal {
    /// Sets up progress, warnings and, if `stops`, requests to stop for the whole process.
    pub(crate) fn install(quiet: bool, verbose: bool, stops: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal() && !is_dumb();
        let bar = Arc::new(Progress::new(shown));
        let last_line = Arc::new(Mutex::new(Instant::now()));
        let terminal = Terminal { bar, quiet, last_line, kept: None, written: Arc::default() };
        let level = match (quiet, verbose) {
            (true, _) => Level::ERROR,
            (_, true) => Level::DEBUG,
            _ => Level::WARN,
        };
        // It fails only where something talks already, and then it is heard.
        let _ = tracing::subscriber::set_global_default(Talk { terminal: terminal.clone(), level });
        // Without it the process just ends, and the next one removes what it left.
        if let Some(Err(error)) = stops.then(signals::watch) {
            terminal.say(&format!("warning: Ctrl-C ends the process at once ({error})"));
        }
        terminal
    }

    /// The same, with a folder for unfinished training if one was asked for. The folder is made if it is not there.
    pub(crate) fn with_checkpoints(&self, folder: Option<&Path>) -> anyhow::Result<Self> {
        let Some(folder) = folder else { return Ok(self.clone()) };
        let made = NewFolder::make(folder)
            .with_context(|| format!("--checkpoints {}: cannot make the folder", folder.display()))?;
        Ok(self.keeping(folder.to_owned(), Some(made)))
    }

    /// The same, with a folder for unfinished training that is made when it is needed.
    pub(crate) fn keeping_checkpoints_in(&self, folder: PathBuf) -> Self {
        self.keeping(folder, None)
    }

    fn keeping(&self, folder: PathBuf, made: Option<NewFolder>) -> Self {
        let terminal = Terminal { kept: None, ..self.clone() };
        Terminal { kept: Some(Arc::new(Kept { folder, made, terminal })), ..self.clone() }
    }

    /// A file is written: an error that comes after it says so.
    pub(crate) fn wrote(&self, path: &Path) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }

    /// What was written so far.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A message on stderr, above the progress.
    pub(crate) fn say(&self, line: &str) {
        if IS_SILENT.load(Ordering::Relaxed) {
            return;
        }
        let line = shortened(line);
        let line = escape::message(&line);
        self.bar.suspend(|| {
            // Nothing is left to tell it to if stderr is gone.
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }

    /// Something that is good to know, and no reason to worry.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            self.say(&format!("note: {line}"));
        }
    }

    /// A line about work in progress: shown above the progress, or else only with `--verbose`.
    pub(crate) fn narrate(&self, line: &str) {
        if self.bar.is_hidden() {
            tracing::debug!("{line}");
        } else {
            self.say(line);
        }
    }

    /// What is printed next goes to this very terminal, so no progress is shown beside it.
    pub(crate) fn give_way_to_output(&self) {
        if std::io::stdout().is_terminal() {
            self.bar.hide();
        }
    }

    /// The progress is no longer needed.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }

    /// A line about an iteration: like [`Terminal::narrate`], but where no bar is shown one is told of every so often all the same.
    fn narrate_iteration(&self, line: &str) {
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.elapsed() >= SILENCE;
        if self.bar.is_hidden() && !self.quiet && is_due {
            self.say(line);
        } else {
            self.narrate(line);
        }
        if is_due || !self.bar.is_hidden() {
            *last = Instant::now();
        }
    }

    /// An error, unless the work was stopped on request and goes on from its checkpoint: then that is said. A folder in which nothing
    /// is kept goes again.
    pub(crate) fn explain_stop(&self, error: anyhow::Error) -> anyhow::Error {
        if let Some(made) = self.kept.as_ref().and_then(|kept| kept.made.as_ref()) {
            made.remove_if_empty();
        }
        match &self.kept {
            Some(kept)
                if self.is_cancelled() && crate::is_cancelled(&error) && holds_a_checkpoint(&kept.folder) =>
            {
                Stopped(kept.folder.clone()).into()
            }
            _ => error,
        }
    }
}

impl Monitor for Terminal {
    fn begin(&self, stage: &str, total: u64) {
        self.bar.begin(escape::value(stage).into_owned(), total);
    }

    fn advance(&self, steps: u64) {
        self.bar.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        signals::is_stop_requested()
    }
}

impl TrainingMonitor for Terminal {
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(&**self.kept.as_ref()?)
    }

    fn progressed(&self, report: &Iteration) {
        let said = report.measures.iter().filter(|(name, _)| !UNSAID.contains(name));
        let measures: Vec<String> = said.map(|(name, value)| format!("{name} {}", brief(*value))).collect();
        let line =
            format!("iteration {}: {:.2} s, {}", report.iteration, report.seconds, measures.join(", "));
        self.narrate_iteration(&line);
    }

    fn iteration(&self, report: &Iteration, _snapshot: &dyn Snapshot) -> ControlFlow<()> {
        self.progressed(report);
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Checkpoints for Kept {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn resumed(&self, earlier: &[Iteration]) {
        if let Some(last) = earlier.last() {
            self.terminal.narrate(&format!("training resumes after iteration {}", last.iteration));
        }
    }
}

fn holds_a_checkpoint(folder: &Path) -> bool {
    let mut files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.any(|file| file.path().extension().is_some_and(|ending| ending == "safetensors"))
}

/// The work was stopped on request, and what was learned is kept.
#[derive(Debug)]
pub(crate) struct Stopped(PathBuf);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.0.display();
        write!(
            f,
            "stopped on request; finished epochs are kept in {folder}, the same command continues from there"
        )
    }
}

impl std::error::Error for Stopped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&Cancelled)
    }
}

/// A message whose lines are no longer than anybody reads: values of any length may be part of them.
fn shortened(message: &str) -> Cow<'_, str> {
    let is_short = |line: &str| line.len() <= LONGEST_LINE;
    if message.split('\n').all(is_short) {
        return Cow::Borrowed(message);
    }
    let lines = message.split('\n').map(|line| {
        if is_short(line) {
            return Cow::Borrowed(line);
        }
        // What was wrong stands at the end.
        let boundary =
            |at: usize| (at..line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(line.len());
        let (begin, end) = (boundary(LONGEST_LINE / 2), boundary(line.len() - LONGEST_LINE / 4));
        Cow::Owned(format!("{} … ({} bytes) … {}", &line[..begin], end - begin, &line[end..]))
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// Three decimals, or an exponent where they would not do.
fn brief(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        format!("{value:.3}")
    } else {
        format!("{value:.2e}")
    }
}

/// The library's events as lines of talk: `warning: …`. Spans are for those who look for speed, and nobody here does.
struct Talk {
    terminal: Terminal,
    level: Level,
}

impl Subscriber for Talk {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level && metadata.target().starts_with("satf")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level))
    }

    fn event(&self, event: &Event<'_>) {
        let level = *event.metadata().level();
        let mut line = Line(match level {
            Level::ERROR => "error: ".to_owned(),
            Level::WARN => "warning: ".to_owned(),
            _ => String::new(),
        });
        event.record(&mut line);
        self.terminal.say(&line.0);
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The message first, then the other fields.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        use fmt::Write as _;
        let outcome = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
        debug_assert!(outcome.is_ok(), "writing to a string does not fail");
    }
}
