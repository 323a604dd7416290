//! The last minutes, second by second, for people who watch.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::metrics::{Counts, Metrics};
use crate::state::State;
use crate::wire::{ModelStats, SecondStats, StatsResponse};

/// Seconds that are kept.
const KEPT: usize = 120;

/// The last seconds.
#[derive(Default)]
pub(crate) struct Seconds(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    seconds: VecDeque<SecondStats>,
    latency: Counts,
    client_errors: u64,
    server_errors: u64,
    rejected: u64,
}

impl Seconds {
    /// A second is over.
    pub(crate) fn tick(&self, metrics: &Metrics) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = metrics.answered();
        let (client_errors, server_errors) = (metrics.responses(4), metrics.responses(5));
        let rejected = metrics.rejected.load(Ordering::Relaxed);
        let last = latency.since(&ring.latency);
        let second = SecondStats {
            requests: last.total(),
            client_errors: client_errors.saturating_sub(ring.client_errors),
            server_errors: server_errors.saturating_sub(ring.server_errors),
            rejected: rejected.saturating_sub(ring.rejected),
            p50_ms: last.quantile(0.5),
            p90_ms: last.quantile(0.9),
            p99_ms: last.quantile(0.99),
        };
        ring.seconds.push_back(second);
        if ring.seconds.len() > KEPT {
            ring.seconds.pop_front();
        }
        (ring.latency, ring.rejected) = (latency, rejected);
        (ring.client_errors, ring.server_errors) = (client_errors, server_errors);
    }

    fn all(&self) -> Vec<SecondStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seconds.iter().cloned().collect()
    }
}

impl State {
    /// How much there is to do.
    pub(crate) fn stats(&self) -> StatsResponse {
        let models = self.models.load();
        StatsResponse {
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            in_flight: self.metrics.in_flight.load(Ordering::Relaxed),
            connections: self.metrics.connections.load(Ordering::Relaxed),
            sessions: self.sessions.len(),
            queue: self.scorer.waiting(),
            memory_bytes: resident_bytes("self"),
            seconds: self.seconds.all(),
            models: models
                .iter()
                .map(|served| ModelStats {
                    name: served.name.to_string(),
                    answers: served.metrics.answers.load(Ordering::Relaxed),
                    unknown_items: served.metrics.unknown_items.load(Ordering::Relaxed),
                    fallbacks: served.metrics.fallbacks.load(Ordering::Relaxed),
                })
                .collect(),
        }
    }
}

/// Resident memory of a process, where the system tells (Linux does).
pub(crate) fn resident_bytes(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
