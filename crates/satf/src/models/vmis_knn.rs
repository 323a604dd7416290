//! Session nearest neighbours over an index from items to recent sessions (VMIS-kNN: Kersbergen, Sprangers and
//! Schelter, "Serenade", SIGMOD 2022). Every training user is one session.
//!
//! A session is the set of its items; its age is the time of its newest event. Sessions are numbered by recency:
//! newest first, equal times by the lower user index. For a history, with `m = sample_size`, `k = neighbors`:
//!
//! 1. `x_0, x_1, ..., x_{L-1}` are its newest distinct items, newest first, at most `max_items` of them; the item
//!    at place `l` weighs `w(l)` = `1 - l/L` ([`PositionDecay::Linear`]) or `1/(l+1)`
//!    ([`PositionDecay::Reciprocal`]).
//! 2. The candidates are the `m` most recent sessions that hold any of them. An index that keeps `m` sessions an
//!    item is enough to find them exactly: no session beyond an item's `m` most recent can be among them.
//! 3. The similarity of session `n` is `r_n = sum of w(l) over the x_l it holds`. The `k` most similar candidates
//!    are the neighbours `N`; of equal ones the more recent is kept.
//! 4. `score_j = idf_j * sum over n in N that hold j of r_n * w(l_n)`, with `l_n` the place of the newest item the
//!    history shares with `n`, `idf_j = ln(H / h_j)`, `H` the number of sessions and `h_j` of those with `j`; or
//!    `idf_j = 1` without `idf`.
//!
//! The index takes memory linear in the log. Scoring costs at most `max_items * m` steps to find the neighbours
//! and the lengths of `k` sessions to sum, besides filling the row of scores.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::array::Array;
use super::batch::{check_history, score_each};
use super::incidence::Incidence;
use super::tensors::{Shares, StoredTensors, Tensor, TensorError};
use super::workspace::{Scores, SparseSums, Workspace};
use super::{Fault, Learner, ModelError, Recommender, Similarities, TrainingMonitor, UserData};
use crate::interactions::{ItemIndex, UserIndex};
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::{Histories, History};

/// How the weight of an item falls with its place in the history scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionDecay {
    /// `1 - l/L`, with `L` the number of items looked at.
    Linear,
    /// `1/(l+1)`.
    Reciprocal,
}

impl PositionDecay {
    /// The weight of place `l` of `len` (0 = newest): above 0, at most 1.
    fn weight(self, l: usize, len: usize) -> f64 {
        match self {
            PositionDecay::Linear => 1.0 - l as f64 / len as f64,
            PositionDecay::Reciprocal => 1.0 / (l as f64 + 1.0),
        }
    }
}

/// The model `vmis-knn`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VmisKnnConfig {
    /// Sessions that vote, `k`: at least 1 (default 1000). More than `sample_size` means all candidates.
    pub neighbors: usize,
    /// Most recent sessions among which neighbours are sought, `m`: at least 1 (default 5000).
    pub sample_size: usize,
    /// Newest distinct items of a history that are looked at: at least 1 (default 5).
    pub max_items: usize,
    /// How an item's weight falls with its place: `linear` or `reciprocal` (default).
    pub decay: PositionDecay,
    /// Whether votes for rare items weigh more (default true).
    pub idf: bool,
}

impl Default for VmisKnnConfig {
    fn default() -> Self {
        VmisKnnConfig {
            neighbors: 1000,
            sample_size: 5000,
            max_items: 5,
            decay: PositionDecay::Reciprocal,
            idf: true,
        }
    }
}

impl VmisKnnConfig {
    /// The model's name.
    pub const NAME: &'static str = "vmis-knn";
}

impl Learner for VmisKnnConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn never_quantized(&self) -> Option<&'static str> {
        Some(super::recommender::NO_ITEM_FACTORS)
    }

    fn check(&self) -> Result<(), ModelError> {
        let fields =
            [("neighbors", self.neighbors), ("sample_size", self.sample_size), ("max_items", self.max_items)];
        let faults = fields
            .into_iter()
            .filter(|&(_, value)| value == 0)
            .map(|(field, value)| Fault::new(field, value, "at least 1"))
            .collect();
        ModelError::from_faults(Self::NAME, faults)
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        Ok(Box::new(VmisKnn::fit(self, histories, monitor)?))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        let (offsets, items) = tensors.item_rows("session_offsets", "session_items", None)?;
        let sessions = Incidence::from_rows(offsets, items);
        Ok(Box::new(VmisKnn {
            config: self.clone(),
            recent: sessions.transposed(tensors.num_items(), self.sample_size),
            sessions,
            item_weights: tensors.per_item("item_weights")?,
        }))
    }
}

/// The index: sessions by recency, and every item's most recent sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct VmisKnn {
    config: VmisKnnConfig,
    /// Items of each session; session 0 is the most recent.
    sessions: Incidence,
    /// Most recent sessions of each item, most recent first.
    recent: Incidence,
    /// `idf_j`.
    item_weights: Array<f64>,
}

impl VmisKnn {
    /// Builds the index.
    pub fn fit(
        config: &VmisKnnConfig,
        histories: &Histories,
        monitor: &dyn Monitor,
    ) -> Result<Self, ModelError> {
        config.check()?;
        check_cancelled(monitor)?;
        let num_items = histories.num_items();
        let mut users: Vec<UserIndex> = (0..histories.num_users() as u32).map(UserIndex).collect();
        users.retain(|&user| !histories.items_of(user).is_empty());
        users.sort_unstable_by_key(|&user| (Reverse(histories.times_of(user).iter().max()), user));
        let sessions = Incidence::from_histories(users.iter().map(|&user| histories.items_of(user)));
        check_cancelled(monitor)?;
        let recent = sessions.transposed(num_items, config.sample_size);
        let item_weights = if config.idf {
            let total = users.len() as f64;
            let idf = |count: u32| if count == 0 { 0.0 } else { (total / f64::from(count)).ln() };
            sessions.column_counts(num_items).into_iter().map(idf).collect()
        } else {
            vec![1.0; num_items].into()
        };
        Ok(VmisKnn { config: config.clone(), sessions, recent, item_weights })
    }

    /// Steps 1 to 3 of the module's doc: fills `work.neighbours`, most similar first.
    fn find_neighbours(&self, work: &mut Found, history: &[ItemIndex]) {
        work.take_newest(history, self.config.max_items);
        let len = work.newest.len();
        work.neighbours.clear();
        for (l, &item) in work.newest.iter().enumerate() {
            let weight = self.config.decay.weight(l, len);
            for &session in self.recent.row(item as usize) {
                let votes = &mut work.votes[session as usize];
                if votes.similarity == 0.0 {
                    work.neighbours.push(session);
                    votes.newest_weight = weight;
                }
                votes.similarity += weight;
            }
        }
        if work.neighbours.len() > self.config.sample_size {
            work.neighbours.select_nth_unstable(self.config.sample_size);
            work.drop_neighbours_from(self.config.sample_size);
        }
        let votes = &work.votes;
        let by_similarity = |a: &u32, b: &u32| {
            let similarity = |session: &u32| votes[*session as usize].similarity;
            similarity(b).total_cmp(&similarity(a)).then(a.cmp(b))
        };
        if work.neighbours.len() > self.config.neighbors {
            work.neighbours.select_nth_unstable_by(self.config.neighbors, by_similarity);
            work.neighbours[..self.config.neighbors].sort_unstable_by(by_similarity);
            work.drop_neighbours_from(self.config.neighbors);
        } else {
            work.neighbours.sort_unstable_by(by_similarity);
        }
    }

    /// Step 4: adds what the neighbours hold, weighted. Leaves the index clean.
    fn sum_votes(&self, found: &mut Found, sums: &mut SparseSums) {
        for &session in &found.neighbours {
            let votes = std::mem::take(&mut found.votes[session as usize]);
            let weight = votes.similarity * votes.newest_weight;
            for &item in self.sessions.row(session as usize) {
                sums.add(ItemIndex(item), weight);
            }
        }
        sums.scale(|item| self.item_weights[item.get()]);
    }

    fn found(&self) -> Found {
        Found::new(self.sessions.num_rows(), self.num_items())
    }
}

impl Recommender for VmisKnn {
    fn num_items(&self) -> usize {
        self.item_weights.len()
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        score_each(self.num_items(), histories, scores, Workspace::new, |workspace, history, row| {
            self.score_one(history, workspace).write_to(row);
        });
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items(), history);
        let Workspace { sparse, own, .. } = workspace;
        let sizes = (self.sessions.num_rows(), self.num_items());
        let found = own.get(|found: &Found| found.sizes() == sizes, || self.found());
        sparse.begin(self.num_items());
        self.find_neighbours(found, &history);
        self.sum_votes(found, sparse);
        Scores::Sparse(sparse.scores())
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn memory_bytes(&self) -> usize {
        self.sessions.memory_bytes() + self.recent.memory_bytes() + size_of_val(&*self.item_weights)
    }

    /// The sessions themselves, without whose they are; the index over them is made anew.
    fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![
            Tensor::list("session_offsets", self.sessions.offsets()),
            Tensor::list("session_items", self.sessions.columns()),
            Tensor::list("item_weights", &*self.item_weights),
        ]
    }

    /// $r_n$ is a sum over the items shared with neighbour $n$, so a score is one too: the item at place $l$ adds
    /// $idf_j w(l)$ times the sum of $w(l_n)$ over the neighbours that hold both it and $j$.
    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let mut work = self.found();
        self.find_neighbours(&mut work, &history);
        let len = work.newest.len();
        let holds =
            |session: u32, item: u32| self.sessions.row(session as usize).binary_search(&item).is_ok();
        let voters: Vec<u32> =
            work.neighbours.iter().copied().filter(|&session| holds(session, item.0)).collect();
        Shares::of_distinct(&history, |past| {
            let Some(l) = work.newest.iter().position(|&newest| newest == past.0) else { return 0.0 };
            let both = voters.iter().filter(|&&session| holds(session, past.0));
            let weights: f64 = both.map(|&session| work.votes[session as usize].newest_weight).sum();
            self.config.decay.weight(l, len) * weights * self.item_weights[item.get()]
        })
    }

    /// With `h_a` sessions that hold `a` and `h_ab` that hold both, `h_ab / sqrt(h_a h_b)`, over all sessions.
    fn similarities(&self, item: ItemIndex) -> Option<Similarities> {
        let mut both = vec![0u32; self.num_items()];
        let sessions = (0..self.sessions.num_rows()).map(|session| self.sessions.row(session));
        for session in sessions.filter(|session| session.binary_search(&item.0).is_ok()) {
            for &other in session {
                both[other as usize] += 1;
            }
        }
        let own = f64::from(both[item.get()]);
        let counts = self.sessions.column_counts(self.num_items());
        let cosine = |(both, count): (u32, u32)| {
            if both > 0 { (f64::from(both) / (own * f64::from(count)).sqrt()) as f32 } else { 0.0 }
        };
        let values = both.into_iter().zip(counts).map(cosine).collect();
        Some(Similarities { measure: "cosine of the histories that hold them", values })
    }

    /// The sessions are there as they were, but for their order.
    fn user_data(&self) -> UserData {
        UserData::Histories { histories: self.sessions.num_rows() }
    }
}

/// What a session has in common with the history scored.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    /// `r_n`; 0 for sessions not touched.
    similarity: f64,
    /// `w(l_n)`.
    newest_weight: f64,
}

/// The sessions that a history finds. Votes are cleared only where they were touched: all zero between two histories.
struct Found {
    votes: Vec<Votes>,
    is_taken: Vec<bool>,
    newest: Vec<u32>,
    neighbours: Vec<u32>,
}

impl Found {
    fn new(num_sessions: usize, num_items: usize) -> Self {
        Found {
            votes: vec![Votes::default(); num_sessions],
            is_taken: vec![false; num_items],
            newest: Vec::new(),
            neighbours: Vec::new(),
        }
    }

    /// Sessions and items it has room for.
    fn sizes(&self) -> (usize, usize) {
        (self.votes.len(), self.is_taken.len())
    }

    /// The newest `limit` distinct items of a history, newest first.
    fn take_newest(&mut self, history: &[ItemIndex], limit: usize) {
        self.newest.clear();
        for item in history.iter().rev() {
            if self.newest.len() == limit {
                break;
            }
            if !std::mem::replace(&mut self.is_taken[item.get()], true) {
                self.newest.push(item.0);
            }
        }
        for &item in &self.newest {
            self.is_taken[item as usize] = false;
        }
    }

    /// Forgets all neighbours but the first `kept`.
    fn drop_neighbours_from(&mut self, kept: usize) {
        for session in self.neighbours.drain(kept..) {
            self.votes[session as usize] = Votes::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::interactions::{Clock, Ids, Timestamp};

    /// Histories whose newest events happen at `ends`.
    fn histories(num_items: usize, sequences: &[Vec<u32>], ends: &[i64]) -> Histories {
        let ids = |n: usize| Arc::new(Ids::Integers((0..n as i64).collect()));
        let rows = sequences.iter().zip(ends).enumerate().flat_map(|(user, (items, &end))| {
            items.iter().enumerate().map(move |(at, &item)| {
                let time = end - (items.len() - at) as i64;
                (UserIndex(user as u32), ItemIndex(item), Timestamp(time))
            })
        });
        Histories::from_ordered_rows(ids(sequences.len()), ids(num_items), Clock::Calendar, rows)
    }

    /// The module's doc word for word, over all sessions.
    fn scores_by_definition(
        config: &VmisKnnConfig,
        num_items: usize,
        sequences: &[Vec<u32>],
        ends: &[i64],
        history: &[u32],
    ) -> Vec<f64> {
        let mut newest: Vec<u32> = Vec::new();
        for &item in history.iter().rev() {
            if !newest.contains(&item) {
                newest.push(item);
            }
        }
        newest.truncate(config.max_items);
        let weight = |l: usize| match config.decay {
            PositionDecay::Linear => 1.0 - l as f64 / newest.len() as f64,
            PositionDecay::Reciprocal => 1.0 / (l + 1) as f64,
        };
        let sessions: Vec<BTreeSet<u32>> =
            sequences.iter().map(|items| items.iter().copied().collect()).collect();
        let mut candidates: Vec<usize> = (0..sessions.len())
            .filter(|&user| newest.iter().any(|item| sessions[user].contains(item)))
            .collect();
        candidates.sort_by_key(|&user| (-ends[user], user));
        candidates.truncate(config.sample_size);
        let shared = |user: usize| -> Vec<usize> {
            (0..newest.len()).filter(|&l| sessions[user].contains(&newest[l])).collect()
        };
        let similarity = |user: usize| -> f64 { shared(user).into_iter().map(weight).sum() };
        // Stable: equal similarities stay in the order of recency.
        candidates.sort_by(|&a, &b| similarity(b).total_cmp(&similarity(a)));
        candidates.truncate(config.neighbors);
        let total = sessions.iter().filter(|session| !session.is_empty()).count() as f64;
        (0..num_items as u32)
            .map(|item| {
                let holders = sessions.iter().filter(|session| session.contains(&item)).count() as f64;
                let idf = if config.idf && holders > 0.0 { (total / holders).ln() } else { 1.0 };
                let votes: f64 = candidates
                    .iter()
                    .filter(|&&user| sessions[user].contains(&item))
                    .map(|&user| similarity(user) * weight(shared(user)[0]))
                    .sum();
                votes * idf
            })
            .collect()
    }

    proptest! {
        #[test]
        fn scores_equal_the_definition(
            sequences in prop::collection::vec(prop::collection::vec(0u32..9, 0..8), 1..14),
            ends in prop::collection::vec(0i64..5, 14),
            queries in prop::collection::vec(prop::collection::vec(0u32..9, 0..10), 1..4),
            neighbors in 1usize..8,
            sample_size in 1usize..10,
            max_items in 1usize..6,
            linear: bool,
            idf: bool,
        ) {
            let decay = if linear { PositionDecay::Linear } else { PositionDecay::Reciprocal };
            let config = VmisKnnConfig { neighbors, sample_size, max_items, decay, idf };
            let model = VmisKnn::fit(&config, &histories(9, &sequences, &ends), &()).unwrap();
            // One workspace for all: what a history leaves behind would show in the next.
            let mut work = Workspace::new();
            for query in &queries {
                let items: Vec<ItemIndex> = query.iter().copied().map(ItemIndex).collect();
                let mut row = [f32::NAN; 9];
                model.score_one(History::new(&items), &mut work).write_to(&mut row);
                let expected = scores_by_definition(&config, 9, &sequences, &ends, query);
                for (score, expected) in row.iter().zip(expected) {
                    prop_assert!((f64::from(*score) - expected).abs() <= 1e-6 * (1.0 + expected));
                }
            }
        }
    }

    #[test]
    fn recency_and_then_the_lower_user_settle_ties() {
        let sequences = [vec![0, 1], vec![0, 2], vec![0, 3], vec![4]];
        let config = VmisKnnConfig { neighbors: 1, ..VmisKnnConfig::default() };
        for (ends, voted) in [([5, 7, 6, 9], 2), ([7, 7, 7, 9], 1)] {
            let model = VmisKnn::fit(&config, &histories(5, &sequences, &ends), &()).unwrap();
            let mut row = [0.0; 5];
            model.score_batch(&[History::new(&[ItemIndex(0)])], &mut row);
            let best: Vec<usize> = (1..5).filter(|&item| row[item] > 0.0).collect();
            assert_eq!(best, [voted]);
        }
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let config = VmisKnnConfig { neighbors: 0, sample_size: 0, max_items: 0, ..Default::default() };
        let Err(ModelError::Configuration { faults, .. }) = config.check() else { panic!("no fault found") };
        let fields: Vec<&str> = faults.iter().map(|fault| fault.field).collect();
        assert_eq!(fields, ["neighbors", "sample_size", "max_items"]);
    }

    #[test]
    fn a_configuration_reads_as_it_is_written() {
        let config = VmisKnnConfig { decay: PositionDecay::Linear, ..VmisKnnConfig::default() };
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("decay = \"linear\""));
        assert_eq!(toml::from_str::<VmisKnnConfig>(&text).unwrap(), config);
        assert_eq!(toml::from_str::<VmisKnnConfig>("").unwrap(), VmisKnnConfig::default());
        assert!(toml::from_str::<VmisKnnConfig>("neighbours = 3").is_err());
    }
}
