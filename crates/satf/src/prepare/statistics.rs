//! The figures of a log, as in the paper's table of datasets.

use serde::{Deserialize, Serialize};

use super::duplicates::count_duplicates;
use crate::data::time::to_iso;
use crate::interactions::{Clock, Interactions, Timestamp};

/// Size and shape of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Distinct users.
    pub users: usize,
    /// Distinct items.
    pub items: usize,
    /// Rows.
    pub rows: usize,
    /// Rows a user, on average.
    pub average_history: f64,
    /// Rows a user, the median.
    pub median_history: f64,
    /// Distinct (user, item) pairs over all possible ones.
    pub density: f64,
    /// The oldest time (ISO 8601, UTC); none for a log without times.
    pub first_time: Option<String>,
    /// The newest time.
    pub last_time: Option<String>,
    /// Rows that repeat a (user, item) pair another row has.
    pub duplicates: usize,
    /// Rows that share user and time with another row: their order is not known.
    pub tied_rows: usize,
}

impl Statistics {
    /// The statistics of `log`.
    pub fn of(log: &Interactions) -> Self {
        let mut lengths = vec![0usize; log.users().len()];
        for row in log.rows() {
            lengths[row.user.get()] += 1;
        }
        lengths.sort_unstable();
        let duplicates = count_duplicates(log);
        let pairs = log.users().len() as f64 * log.items().len() as f64;
        let times = log.rows().iter().map(|row| row.time);
        let show = |time: Option<Timestamp>| time.filter(|_| log.clock() == Clock::Calendar).map(iso);
        Statistics {
            users: log.users().len(),
            items: log.items().len(),
            rows: log.rows().len(),
            average_history: ratio(log.rows().len() as f64, log.users().len() as f64),
            median_history: median(&lengths),
            density: ratio((log.rows().len() - duplicates) as f64, pairs),
            first_time: show(times.clone().min()),
            last_time: show(times.max()),
            duplicates,
            tied_rows: count_tied_rows(log),
        }
    }
}

/// Rows that share user and time with another row.
pub fn count_tied_rows(log: &Interactions) -> usize {
    let mut keys: Vec<_> = log.rows().iter().map(|row| (row.user, row.time)).collect();
    keys.sort_unstable();
    keys.chunk_by(|a, b| a == b).map(<[_]>::len).filter(|&len| len > 1).sum()
}

/// A time in ISO 8601, UTC.
pub fn iso(time: Timestamp) -> String {
    to_iso(time.0).unwrap_or_else(|| format!("{} microseconds", time.0))
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn median(sorted: &[usize]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[len / 2] as f64,
        len => (sorted[len / 2 - 1] + sorted[len / 2]) as f64 / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::testing::log;

    #[test]
    fn figures_of_a_small_log() {
        let log = log(&[(1, 7, 0), (1, 8, 0), (1, 7, 86_400), (2, 9, 5), (3, 9, 6), (3, 7, 7)]);
        let stats = Statistics::of(&log);
        assert_eq!((stats.users, stats.items, stats.rows), (3, 3, 6));
        assert_eq!((stats.average_history, stats.median_history), (2.0, 2.0));
        assert_eq!((stats.duplicates, stats.tied_rows), (1, 2));
        assert!((stats.density - 5.0 / 9.0).abs() < 1e-15);
        assert_eq!(stats.first_time.as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(stats.last_time.as_deref(), Some("1970-01-02T00:00:00Z"));
    }

    #[test]
    fn every_time_that_a_log_may_have_is_a_date() {
        let shown = |seconds: i64| iso(Timestamp(seconds * 1_000_000));
        assert_eq!(shown(253_402_300_799), "9999-12-31T23:59:59Z");
        assert_eq!(shown(-62_167_219_200), "0000-01-01T00:00:00Z");
    }

    #[test]
    fn median_of_an_even_number_is_the_middle() {
        assert!((median(&[1, 2, 4, 9]) - 3.0).abs() < 1e-15);
        assert!(median(&[]).abs() < 1e-15);
    }
}
