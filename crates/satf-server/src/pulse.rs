//! How late the threads that answer are: the first sign that more comes in than they can read.
//!
//! For as long as there are requests, a byte goes to a task of this program and back, through sockets as a request does, again and again.
//! How long it takes one way is what a request waits for that arrives now, before anything of it has been read. (A timer would not do:
//! whoever sleeps is woken out of turn.) When that is too long, and there is a crowd, requests are refused before their bodies are read,
//! which costs little, until the rest is answered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

/// Between two beats.
const BEAT: Duration = Duration::from_millis(2);
/// Requests between two beats that are a crowd. With fewer, threads are late because of something else, such as other programs, and
/// to refuse them would help nobody.
const CROWD: u64 = 200;

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

    /// Beats for ever; rests while nobody asks. An error if the system gives no sockets: then nothing is ever late.
    #[cfg(unix)]
    pub(crate) async fn run(&self) -> std::io::Result<()> {
        let (mut near, mut far) = tokio::net::UnixStream::pair()?;
        tokio::spawn(async move {
            let mut byte = [0];
            while far.read_exact(&mut byte).await.is_ok() && far.write_all(&byte).await.is_ok() {}
        });
        loop {
            let before = self.requests.load(Ordering::Relaxed);
            tokio::time::sleep(BEAT).await;
            let sent = Instant::now();
            near.write_all(&[0]).await?;
            near.read_exact(&mut [0]).await?;
            self.beat(sent.elapsed() / 2, self.requests.load(Ordering::Relaxed) - before);
            if self.requests.load(Ordering::Relaxed) == before {
                self.is_resting.store(true, Ordering::Relaxed);
                self.wake.notified().await;
                self.is_resting.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Other systems have no such sockets: nothing is ever late.
    #[cfg(not(unix))]
    pub(crate) async fn run(&self) -> std::io::Result<()> {
        std::future::pending().await
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

    #[cfg(unix)]
    #[test]
    fn a_thread_that_is_kept_busy_is_late_and_rests_afterwards() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pulse = std::sync::Arc::new(Pulse::default());
        runtime.block_on(async {
            let beating = std::sync::Arc::clone(&pulse);
            tokio::spawn(async move { beating.run().await });
            let rests = || pulse.is_resting.load(Ordering::Relaxed);
            while !rests() {
                tokio::time::sleep(BEAT).await;
            }
            // A crowd that keeps the thread from everybody else, for ten beats at a time.
            let mut most = Duration::ZERO;
            for _ in 0..10 {
                for _ in 0..CROWD {
                    pulse.is_later_than(BEAT);
                }
                std::thread::sleep(BEAT * 10);
                tokio::task::yield_now().await;
                most = most.max(pulse.late());
            }
            assert!(most >= BEAT * 4, "{most:?}");
            while !rests() {
                tokio::time::sleep(BEAT).await;
            }
            assert_eq!(pulse.late(), Duration::ZERO, "the crowd is gone");
        });
    }
}
