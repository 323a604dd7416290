//! How late the threads that answer are: the first sign that more comes in than they can read.
//!
//! A task of no other purpose sleeps for a moment, again and again, for as long as there are requests. What it wakes up late by is what a
//! request waits for that arrives now, before anything of it has been read. When that is too long, and there is a crowd, requests are
//! refused before their bodies are read, which costs little, until the rest is answered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Between two beats.
const BEAT: Duration = Duration::from_millis(4);
/// Requests between two beats that are a crowd. With fewer, threads are late because of something else, such as other programs, and
/// to refuse them would help nobody.
const CROWD: u64 = 100;

/// How late the threads that answer are.
#[derive(Default)]
pub(crate) struct Pulse {
    requests: AtomicU64,
    /// By how much the last beat was late, in microseconds; 0 if there was no crowd.
    late: AtomicU64,
    is_resting: AtomicBool,
    wake: Notify,
}

impl Pulse {
    /// A request has come. Whether it had to wait longer than this.
    pub(crate) fn is_later_than(&self, limit: Duration) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if self.is_resting.load(Ordering::Relaxed) {
            self.wake.notify_one();
        }
        u128::from(self.late.load(Ordering::Relaxed)) > limit.as_micros()
    }

    /// By how much the last beat was late, if there was a crowd.
    pub(crate) fn late(&self) -> Duration {
        Duration::from_micros(self.late.load(Ordering::Relaxed))
    }

    /// Beats for ever; rests while nobody asks.
    pub(crate) async fn run(&self) {
        loop {
            let before = self.requests.load(Ordering::Relaxed);
            let due = Instant::now() + BEAT;
            sleep_until(due).await;
            self.beat(due.elapsed(), self.requests.load(Ordering::Relaxed) - before);
            if self.requests.load(Ordering::Relaxed) == before {
                self.is_resting.store(true, Ordering::Relaxed);
                self.wake.notified().await;
                self.is_resting.store(false, Ordering::Relaxed);
            }
        }
    }

    fn beat(&self, late: Duration, requests: u64) {
        let late = if requests >= CROWD { u64::try_from(late.as_micros()).unwrap_or(u64::MAX) } else { 0 };
        self.late.store(late, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_crowd_that_waits_is_late() {
        let pulse = Pulse::default();
        let limit = Duration::from_millis(20);
        for (late, requests, is_late) in
            [(30, CROWD, true), (19, CROWD, false), (500, CROWD - 1, false), (0, 100_000, false)]
        {
            pulse.beat(Duration::from_millis(late), requests);
            assert_eq!(pulse.is_later_than(limit), is_late, "{late} ms, {requests} requests");
        }
    }

    #[test]
    fn a_thread_that_is_kept_busy_is_late_and_rests_afterwards() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pulse = std::rc::Rc::new(Pulse::default());
        runtime.block_on(tokio::task::LocalSet::new().run_until(async {
            let beating = std::rc::Rc::clone(&pulse);
            tokio::task::spawn_local(async move { beating.run().await });
            tokio::time::sleep(BEAT * 4).await;
            assert!(pulse.is_resting.load(Ordering::Relaxed), "nobody asks");
            for _ in 0..CROWD {
                pulse.is_later_than(BEAT);
            }
            while pulse.is_resting.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            // It sleeps until the next beat, and then the thread is not to be had.
            for _ in 0..CROWD {
                pulse.is_later_than(BEAT);
            }
            std::thread::sleep(BEAT * 10);
            tokio::time::sleep(BEAT).await;
            assert!(pulse.is_later_than(BEAT * 5), "{:?}", pulse.late());
            tokio::time::sleep(BEAT * 4).await;
            assert_eq!(pulse.late(), Duration::ZERO, "the crowd is gone");
        }));
    }
}
