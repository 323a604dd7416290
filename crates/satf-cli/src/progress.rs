//! A line of progress at the bottom of a terminal: `    training [=======>           ]  40% 12 s`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use terminal_size::{Width, terminal_size_of};

use crate::table::duration;

/// Characters between the brackets.
const LENGTH: usize = 30;
/// Shown in turn where nobody knows how much there is to do.
const SPINNER: [char; 4] = ['-', '\\', '|', '/'];
/// Drawn at most so often.
const PAUSE: Duration = Duration::from_millis(100);
/// Back to the first column, and the rest of the line is empty.
const CLEAR: &str = "\r\x1b[K";

/// What is shown of the stage that the work is in.
pub(crate) struct Progress {
    is_shown: AtomicBool,
    /// Steps done. Threads count here and meet nowhere else.
    done: AtomicU64,
    /// Milliseconds after `started` at which it was drawn last.
    drawn: AtomicU64,
    started: Instant,
    stage: Mutex<Stage>,
}

/// A stage, and whether its line stands on the terminal.
struct Stage {
    name: String,
    total: u64,
    began: Instant,
    turns: usize,
    is_drawn: bool,
}

impl Progress {
    /// Progress that is shown on stderr, or not at all.
    pub(crate) fn new(is_shown: bool) -> Self {
        let began = Instant::now();
        let stage = Stage { name: String::new(), total: 0, began, turns: 0, is_drawn: false };
        Progress {
            is_shown: AtomicBool::new(is_shown),
            done: AtomicU64::new(0),
            drawn: AtomicU64::new(0),
            started: began,
            stage: Mutex::new(stage),
        }
    }

    pub(crate) fn is_hidden(&self) -> bool {
        !self.is_shown.load(Ordering::Relaxed)
    }

    /// The line goes for good.
    pub(crate) fn hide(&self) {
        self.is_shown.store(false, Ordering::Relaxed);
        self.finish();
    }

    /// Another stage begins, of so many steps; 0 if nobody knows.
    pub(crate) fn begin(&self, name: String, total: u64) {
        let mut stage = self.lock();
        *stage = Stage { name, total, began: Instant::now(), turns: 0, is_drawn: stage.is_drawn };
        self.done.store(0, Ordering::Relaxed);
        self.draw(&mut stage);
    }

    /// So many more steps are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
        if self.is_hidden() || self.since_start().saturating_sub(self.drawn.load(Ordering::Relaxed)) < 100 {
            return;
        }
        // Whoever finds another one drawing need not wait.
        if let Ok(mut stage) = self.stage.try_lock() {
            self.draw(&mut stage);
        }
    }

    /// Something is written while the line is away.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        let mut stage = self.lock();
        let was_drawn = stage.is_drawn;
        clear(&mut stage);
        write();
        if was_drawn {
            self.draw(&mut stage);
        }
    }

    /// The line goes; the next stage brings it back.
    pub(crate) fn finish(&self) {
        clear(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since_start(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn draw(&self, stage: &mut Stage) {
        if self.is_hidden() {
            return;
        }
        self.drawn.store(self.since_start(), Ordering::Relaxed);
        let width = terminal_size_of(std::io::stderr()).map_or(80, |(Width(width), _)| usize::from(width));
        let line = stage.line(self.done.load(Ordering::Relaxed), stage.began.elapsed(), width);
        stage.turns += 1;
        stage.is_drawn = true;
        // Nothing is left to show it on if stderr is gone.
        let _ = std::io::stderr().write_all(format!("{CLEAR}{line}").as_bytes());
    }
}

fn clear(stage: &mut Stage) {
    if std::mem::take(&mut stage.is_drawn) {
        let _ = std::io::stderr().write_all(CLEAR.as_bytes());
    }
}

impl Stage {
    /// The line after so many steps, not wider than the terminal.
    fn line(&self, done: u64, elapsed: Duration, width: usize) -> String {
        let mut line = format!("{:>12} ", self.name);
        if self.total == 0 {
            line.push(SPINNER[self.turns % SPINNER.len()]);
        } else {
            let share = (done as f64 / self.total as f64).min(1.0);
            let filled = (share * LENGTH as f64) as usize;
            let bar: String = (0..LENGTH)
                .map(|at| match at.cmp(&filled) {
                    std::cmp::Ordering::Less => '=',
                    std::cmp::Ordering::Equal => '>',
                    std::cmp::Ordering::Greater => ' ',
                })
                .collect();
            let _ = write!(line, "[{bar}] {:>3.0}%", (100.0 * share).floor());
            if share > 0.0 && elapsed > PAUSE {
                let left = elapsed.as_secs_f64() * (1.0 - share) / share;
                let _ = write!(line, " {}", duration(left));
            }
        }
        // The last column stays free, for some terminals begin a new line after it.
        line.chars().take(width.saturating_sub(1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(total: u64) -> Stage {
        Stage { name: "reading".to_owned(), total, began: Instant::now(), turns: 1, is_drawn: false }
    }

    #[test]
    fn a_line_shows_how_far_the_work_is() {
        let after = |done| stage(200).line(done, Duration::from_secs(30), 80);
        assert_eq!(after(0), format!("     reading [>{}]   0%", " ".repeat(29)));
        assert_eq!(
            after(100),
            format!("     reading [{}>{}]  50% {}", "=".repeat(15), " ".repeat(14), duration(30.0))
        );
        assert!(after(200).starts_with(&format!("     reading [{}] 100%", "=".repeat(30))));
        // A file that grows while it is read has more than was announced.
        assert!(after(900).starts_with(&format!("     reading [{}] 100%", "=".repeat(30))));
        assert_eq!(stage(0).line(7, Duration::ZERO, 80), "     reading \\");
        assert_eq!(stage(200).line(100, Duration::ZERO, 20), "     reading [=====");
    }

    #[test]
    fn what_is_hidden_is_never_drawn() {
        let hidden = Progress::new(false);
        hidden.begin("reading".to_owned(), 10);
        hidden.advance(5);
        assert!(hidden.is_hidden() && !hidden.lock().is_drawn);
        let mut is_written = false;
        hidden.suspend(|| is_written = true);
        assert!(is_written);
        let shown = Progress::new(true);
        shown.lock().is_drawn = true;
        shown.hide();
        shown.begin("reading".to_owned(), 10);
        assert!(shown.is_hidden() && !shown.lock().is_drawn);
    }
}
