//! HR, MRR, NDCG and COV at any cut-offs, from the rank of every target.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::interactions::UserIndex;
use crate::ranking::discount;

/// Half-width of a 95 % interval in standard errors (normal approximation).
const Z_95: f64 = 1.959_963_984_540_054;

/// What is measured for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// `1 / log2(rank + 2)`, rank from 0; 0 outside the list.
    Ndcg,
    /// 1 inside the list, else 0.
    HitRate,
    /// `1 / (rank + 1)`, rank from 0; 0 outside the list.
    Mrr,
}

impl Measure {
    /// All of them, in the order of reports.
    pub const ALL: [Measure; 3] = [Measure::Ndcg, Measure::HitRate, Measure::Mrr];

    fn name(self) -> &'static str {
        match self {
            Measure::Ndcg => "NDCG",
            Measure::HitRate => "HR",
            Measure::Mrr => "MRR",
        }
    }
}

/// A measure at a cut-off, such as `NDCG@10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric {
    /// What is measured.
    pub measure: Measure,
    /// Length of the list.
    pub cutoff: usize,
}

impl Metric {
    /// The value for one event whose target stands at `rank` (from 0), or is not among the items looked at.
    pub fn value(self, rank: Option<u32>) -> f64 {
        match rank.filter(|&rank| (rank as usize) < self.cutoff) {
            None => 0.0,
            Some(rank) => match self.measure {
                Measure::Ndcg => discount(rank as usize),
                Measure::HitRate => 1.0,
                Measure::Mrr => 1.0 / f64::from(rank + 1),
            },
        }
    }
}

/// A text that is not a metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}': expected NDCG, HR or MRR, then @ and a cut-off, such as NDCG@10")]
pub struct UnknownMetric(pub String);

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.measure.name(), self.cutoff)
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let error = || UnknownMetric(text.to_owned());
        let (name, cutoff) = text.split_once('@').ok_or_else(error)?;
        let measure = Measure::ALL.into_iter().find(|m| m.name().eq_ignore_ascii_case(name));
        let cutoff = cutoff.parse().ok().filter(|&cutoff: &usize| cutoff > 0);
        Ok(Metric { measure: measure.ok_or_else(error)?, cutoff: cutoff.ok_or_else(error)? })
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What counts as one observation: in a standard error, in the draws of a bootstrap, in the flips of a permutation test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResampleUnit {
    /// All events of a user together: events of one user are not independent.
    #[default]
    User,
    /// Each event by itself, as if all were independent.
    Event,
}

/// A mean over events and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// The standard error of the mean; none for a single user (or event), or where it does not apply.
    pub stderr: Option<f64>,
    /// 95 % interval by that error, within [0, 1].
    pub interval: Option<[f64; 2]>,
    /// What the error takes for one observation. None where there is no error, and in files of releases that did not say
    /// it: there it was the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ResampleUnit>,
}

impl Estimate {
    /// The mean of the values $x_e$ of $n$ events and the standard error that takes each of them for independent:
    /// `sqrt(mean((x - mean)^2) / (n - 1))`. The sums run in the given order.
    pub fn by_event(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (count, mean) = count_and_mean(values.clone());
        let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let stderr = (count > 1.0).then(|| (variance / (count - 1.0)).sqrt());
        Estimate::new(mean, stderr, ResampleUnit::Event)
    }

    /// The mean of the values of $n$ events and the standard error that takes each of $G$ users for independent, not the events of
    /// one:
    ///
    /// ```text
    /// sqrt(G / (G - 1) * sum over users u of (sum over events e of u of (x_e - mean))^2) / n
    /// ```
    ///
    /// If every user has one event it is that of [`Estimate::by_event`]. `users` numbers the user of every event, from 0 without
    /// gaps. The sums run in the order of events, then of users.
    ///
    /// # Panics
    /// If there are not as many users as values.
    pub fn by_user(values: impl ExactSizeIterator<Item = f64> + Clone, users: &[usize]) -> Self {
        assert_eq!(values.len(), users.len(), "one user per value");
        let (count, mean) = count_and_mean(values.clone());
        let mut sums = vec![0f64; users.iter().max().map_or(0, |last| last + 1)];
        for (value, &user) in values.zip(users) {
            sums[user] += value - mean;
        }
        let groups = sums.len() as f64;
        let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
        let stderr = (groups > 1.0).then(|| (groups / (groups - 1.0) * squares).sqrt() / count);
        Estimate::new(mean, stderr, ResampleUnit::User)
    }

    fn new(value: f64, stderr: Option<f64>, unit: ResampleUnit) -> Self {
        let interval =
            stderr.map(|stderr| [(value - Z_95 * stderr).max(0.0), (value + Z_95 * stderr).min(1.0)]);
        Estimate { value, stderr, interval, unit: stderr.map(|_| unit) }
    }

    /// A value without a sampling error.
    pub fn exact(value: f64) -> Self {
        Estimate { value, stderr: None, interval: None, unit: None }
    }
}

fn count_and_mean(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count() as f64;
    (count, values.sum::<f64>() / count)
}

/// Numbers users from 0 without gaps, in the order in which they first come up; there are at most `num_users` of them.
pub(super) fn number_users(users: impl Iterator<Item = UserIndex>, num_users: usize) -> Vec<usize> {
    let mut numbers = vec![usize::MAX; num_users];
    let mut next = 0;
    let number = |user: UserIndex| {
        let number = &mut numbers[user.get()];
        if *number == usize::MAX {
            *number = next;
            next += 1;
        }
        *number
    };
    users.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_rank() {
        let at = |text: &str, rank| text.parse::<Metric>().unwrap().value(rank);
        assert!((at("NDCG@10", Some(0)) - 1.0).abs() < 1e-15);
        assert!((at("NDCG@10", Some(2)) - 0.5).abs() < 1e-15);
        assert!((at("MRR@10", Some(3)) - 0.25).abs() < 1e-15);
        assert!((at("HR@10", Some(9)) - 1.0).abs() < 1e-15);
        assert!(at("HR@10", Some(10)).abs() < 1e-15);
        assert!(at("HR@10", None).abs() < 1e-15);
    }

    #[test]
    fn names_read_back() {
        for name in ["NDCG@10", "HR@1", "MRR@100"] {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
        }
        for name in ["NDCG", "HR@0", "AUC@3", "@5", "HR@x"] {
            assert!(name.parse::<Metric>().is_err(), "{name}");
        }
    }

    #[test]
    fn standard_error_of_a_coin() {
        let coin = Estimate::by_event([0.0, 1.0, 1.0, 0.0, 1.0].into_iter());
        assert!((coin.value - 0.6).abs() < 1e-15);
        assert!((coin.stderr.unwrap() - (0.24f64 / 4.0).sqrt()).abs() < 1e-15);
        assert_eq!(Estimate::by_event([1.0].into_iter()).stderr, None);
    }

    #[test]
    fn users_are_numbered_as_they_come_up() {
        let users = [7, 2, 7, 0, 2].map(UserIndex);
        assert_eq!(number_users(users.into_iter(), 8), [0, 1, 0, 2, 1]);
    }
}
