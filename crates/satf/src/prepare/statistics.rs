//! The figures of a log, as in the paper's table of datasets.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::duplicates::count_duplicates;
use super::histories::Histories;
use crate::data::time::to_iso;
use crate::interactions::{Clock, Interactions, ItemIndex, Timestamp, UserIndex};

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

impl Statistics {
    /// The same of a log that was turned into histories.
    pub fn of_histories(histories: &Histories) -> Self {
        let (users, items, rows) = (histories.num_users(), histories.num_items(), histories.num_rows());
        let (duplicates, tied_rows) = (0..users as u32)
            .into_par_iter()
            .with_min_len(1024)
            .map_init(Vec::new, |own: &mut Vec<ItemIndex>, user| {
                let user = UserIndex(user);
                own.clear();
                own.extend_from_slice(histories.items_of(user));
                own.sort_unstable();
                let duplicates = own.windows(2).filter(|two| two[0] == two[1]).count();
                let tied = histories.times_of(user).chunk_by(|one, next| one == next).map(<[_]>::len);
                (duplicates, tied.filter(|&len| len > 1).sum::<usize>())
            })
            .reduce(|| (0, 0), |one, other| (one.0 + other.0, one.1 + other.1));
        let times = histories.times().iter().copied();
        let show = |time: Option<Timestamp>| time.filter(|_| histories.clock() == Clock::Calendar).map(iso);
        Statistics {
            users,
            items,
            rows,
            average_history: ratio(rows as f64, users as f64),
            median_history: median_of(histories.lengths(), users as u64),
            density: ratio((rows - duplicates) as f64, users as f64 * items as f64),
            first_time: show(times.clone().min()),
            last_time: show(times.max()),
            duplicates,
            tied_rows,
        }
    }
}

/// The median of lengths, each with its number, of `count` in all.
fn median_of(lengths: &[(usize, u64)], count: u64) -> f64 {
    let at = |place: u64| {
        let mut passed = 0;
        let found = lengths.iter().find(|(_, number)| {
            passed += number;
            passed > place
        });
        found.map_or(0.0, |&(length, _)| length as f64)
    };
    match count {
        0 => 0.0,
        count if count % 2 == 1 => at(count / 2),
        count => f64::midpoint(at(count / 2 - 1), at(count / 2)),
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
    use crate::prepare::TiePolicy;
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
    fn histories_have_the_figures_of_their_log() {
        let rows: Vec<_> = (0..400i64).map(|at| (at * at % 37, at * 7 % 23, at * at % 11 * 86_400)).collect();
        for len in [1, 2, 5, 36, 200, 400] {
            let log = log(&rows[..len]);
            let (histories, tied_rows) = Histories::of_log(&log, TiePolicy::Shuffle, 1);
            let stats = Statistics::of(&log);
            assert_eq!(Statistics::of_histories(&histories), stats);
            assert_eq!(tied_rows, stats.tied_rows);
        }
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
