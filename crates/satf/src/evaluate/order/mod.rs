//! Does order matter on this log? Models on real histories against the same models on shuffled ones.
//!
//! A model that knows order is fitted to the training set and scored on the events of the test set, twice: with
//! histories as they are, and with every history in random order ([`Partition::disordered`]), in training and at
//! prediction alike. Only the order differs: users, items, counts and targets are the same, so the paired difference is
//! what order is worth to that model. A model that knows none stands beside them for comparison.
//!
//! Rows of one user with equal times have no order of their own. Their order is drawn again for every repetition; and if there are
//! such rows, everything is done once more in the order of the file, to show what that order seems to add.

mod verdict;

use super::compare::{CompareOptions, Difference, compare};
use super::metrics::{Measure, Metric, number_users};
use super::protocol::{EvaluateError, EvaluateOptions, evaluate};
use crate::interactions::{Interactions, UserIndex};
use crate::models::{
    LaSatfConfig, Learner, ModelError, PureSvdConfig, Recommender, TrainingMonitor, TransitionsConfig,
};
use crate::monitor::{Cancelled, Monitor};
use crate::prepare::{Partition, Split, SplitError, SplitScheme, TiePolicy, Timeline};

pub use verdict::Verdict;

/// What is measured.
const METRIC: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

/// Columns of the tensor model's large factors, at most: more would cost more and tell nothing else.
const RANK: usize = 200;

/// How the check is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderOptions {
    /// How the log is cut; what is before the test set trains.
    pub scheme: SplitScheme,
    /// How often histories are shuffled, and ties drawn: at least 1 (default 3). The result is the mean.
    pub repetitions: usize,
    /// Events scored at most a repetition, evenly spread over the test set (default 10,000).
    pub most_events: usize,
    /// Seed for everything random.
    pub seed: u64,
}

impl OrderOptions {
    /// The defaults, for a log that is cut this way.
    pub fn new(scheme: SplitScheme) -> Self {
        OrderOptions { scheme, repetitions: 3, most_events: 10_000, seed: 0 }
    }
}

/// Why order cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// Options that make no sense.
    #[error("{field} = {value}: expected at least 1")]
    Options {
        /// Which one.
        field: &'static str,
        /// Its value.
        value: usize,
    },
    /// The log cannot be cut.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// A model cannot be fitted.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A model cannot be scored.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// What order is worth to one model.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderEffect {
    /// The model.
    pub model: &'static str,
    /// Whether it can make use of order.
    pub knows_order: bool,
    /// Shuffled histories first, real ones second.
    pub effect: Difference,
}

impl OrderEffect {
    /// The difference as a share of the score on shuffled histories; `None` if that score is 0.
    pub fn gain(&self) -> Option<f64> {
        verdict::share(self.effect.difference, self.effect.first)
    }
}

/// What the order of rows in the file seems to add.
#[derive(Clone, Debug, PartialEq)]
pub struct FileOrder {
    /// Rows that share user and time with another, as a share of all.
    pub tied_share: f64,
    /// The models that know order, with ties in the order of the file.
    pub models: Vec<OrderEffect>,
}

/// The outcome of [`check_order`].
#[derive(Clone, Debug, PartialEq)]
pub struct OrderCheck {
    /// What was measured.
    pub metric: Metric,
    /// Events scored, each once a repetition.
    pub events: usize,
    /// Repetitions.
    pub repetitions: usize,
    /// The models, those that know order first, the best of them at the head.
    pub models: Vec<OrderEffect>,
    /// The model at the head, on real histories, against the one that knows no order: the latter first.
    pub against_blind: Difference,
    /// The same with ties in the order of the file; `None` if no rows are tied.
    pub file_order: Option<FileOrder>,
    /// What comes of it.
    pub verdict: Verdict,
}

impl OrderCheck {
    /// The model the verdict is about: of those that know order, the best on real histories.
    pub fn best(&self) -> &OrderEffect {
        &self.models[0]
    }
}

/// Checks whether order helps to predict what comes next. The same seed gives the same bits on any number of threads.
pub fn check_order(
    log: &Interactions,
    options: &OrderOptions,
    monitor: &dyn TrainingMonitor,
) -> Result<OrderCheck, OrderError> {
    for (field, value) in [("repetitions", options.repetitions), ("most_events", options.most_events)] {
        if value == 0 {
            return Err(OrderError::Options { field, value });
        }
    }
    let mut scores = Scores::new(log);
    let mut events = 0;
    let mut tied_rows = 0;
    for repetition in 0..options.repetitions as u64 {
        let seed = options.seed.wrapping_add(repetition);
        let timeline = Timeline::new(log, TiePolicy::Shuffle, seed);
        tied_rows = timeline.tied_rows;
        let partition = part(timeline, options)?;
        events = partition.holdout.events.len();
        scores.add(&partition, &learners(&partition, seed), seed, monitor)?;
        let blind = PureSvdConfig { seed, ..PureSvdConfig::default() };
        scores.add_blind(&partition, &blind, seed, monitor)?;
    }
    let compare_options = CompareOptions { seed: options.seed, ..CompareOptions::default() };
    let mut models = scores.effects(&compare_options, monitor)?;
    // The model without order was scored last.
    let blind_at = models.len() - 1;
    let best_at = (0..blind_at)
        .max_by(|&a, &b| models[a].effect.second.total_cmp(&models[b].effect.second).then(b.cmp(&a)))
        .unwrap_or(0);
    let against_blind = scores.against(blind_at, best_at, &compare_options, monitor)?;

    let file_order = if tied_rows > 0 {
        let partition = part(Timeline::new(log, TiePolicy::File, 0), options)?;
        let mut scores = Scores::new(log);
        scores.add(&partition, &learners(&partition, options.seed), options.seed, monitor)?;
        let mut models = scores.effects(&compare_options, monitor)?;
        models.swap(0, best_at);
        Some(FileOrder { tied_share: tied_rows as f64 / log.rows().len() as f64, models })
    } else {
        None
    };
    models.swap(0, best_at);
    let verdict = Verdict::of(&models);
    let repetitions = options.repetitions;
    Ok(OrderCheck { metric: METRIC, events, repetitions, models, against_blind, file_order, verdict })
}

/// The models that know order, at sizes that train in seconds.
fn learners(partition: &Partition, seed: u64) -> Vec<Box<dyn Learner>> {
    // A quarter of the items at most, as everywhere, but no fewer columns than the other ranks need.
    let rank = RANK.min(partition.train.num_items() / 4).min(partition.train.num_users()).max(2);
    let la_satf =
        LaSatfConfig { user_rank: Some(rank), item_rank: Some(rank), seed, ..LaSatfConfig::default() };
    vec![Box::new(TransitionsConfig::default()), Box::new(la_satf)]
}

/// The test set of a log, thinned to the events asked for.
fn part(timeline: Timeline<'_>, options: &OrderOptions) -> Result<Partition, OrderError> {
    let mut partition = Split::new(timeline, options.scheme)?.test()?;
    let events = &mut partition.holdout.events;
    let (all, most) = (events.len(), options.most_events);
    if all > most {
        *events = (0..most).map(|at| events[at * all / most]).collect();
    }
    Ok(partition)
}

/// Every event's score by every model, repetition after repetition.
struct Scores {
    models: Vec<ModelScores>,
    /// The user of every event.
    users: Vec<UserIndex>,
    num_users: usize,
}

struct ModelScores {
    model: &'static str,
    knows_order: bool,
    shuffled: Vec<f64>,
    real: Vec<f64>,
}

impl Scores {
    fn new(log: &Interactions) -> Self {
        Scores { models: Vec::new(), users: Vec::new(), num_users: log.users().len() }
    }

    /// Fits and scores models on real histories and on shuffled ones.
    fn add(
        &mut self,
        partition: &Partition,
        learners: &[Box<dyn Learner>],
        seed: u64,
        monitor: &dyn TrainingMonitor,
    ) -> Result<(), OrderError> {
        self.users.extend(partition.holdout.events.iter().map(|event| event.user));
        let disordered = partition.disordered(seed);
        for learner in learners {
            let name = learner.name();
            let real = scores(&*learner.fit(&partition.train, monitor)?, partition, monitor)?;
            let shuffled = scores(&*learner.fit(&disordered.train, monitor)?, &disordered, monitor)?;
            self.keep(name, true, shuffled, real);
        }
        Ok(())
    }

    /// The same for a model that learns only from which items each user has: one training serves both.
    fn add_blind(
        &mut self,
        partition: &Partition,
        learner: &dyn Learner,
        seed: u64,
        monitor: &dyn TrainingMonitor,
    ) -> Result<(), OrderError> {
        let model = learner.fit(&partition.train, monitor)?;
        let real = scores(&*model, partition, monitor)?;
        let shuffled = scores(&*model, &partition.disordered(seed), monitor)?;
        self.keep(learner.name(), false, shuffled, real);
        Ok(())
    }

    fn keep(&mut self, model: &'static str, knows_order: bool, shuffled: Vec<f64>, real: Vec<f64>) {
        match self.models.iter_mut().find(|known| known.model == model) {
            Some(known) => {
                known.shuffled.extend(shuffled);
                known.real.extend(real);
            }
            None => self.models.push(ModelScores { model, knows_order, shuffled, real }),
        }
    }

    fn effects(
        &self,
        options: &CompareOptions,
        monitor: &dyn Monitor,
    ) -> Result<Vec<OrderEffect>, Cancelled> {
        let groups = self.groups();
        let effect = |scores: &ModelScores| {
            Ok(OrderEffect {
                model: scores.model,
                knows_order: scores.knows_order,
                effect: compare(&scores.shuffled, &scores.real, &groups, options, monitor)?,
            })
        };
        self.models.iter().map(effect).collect()
    }

    /// Two models on real histories.
    fn against(
        &self,
        first: usize,
        second: usize,
        options: &CompareOptions,
        monitor: &dyn Monitor,
    ) -> Result<Difference, Cancelled> {
        compare(&self.models[first].real, &self.models[second].real, &self.groups(), options, monitor)
    }

    /// Numbers the users from 0: all repetitions of all events of one user stand or fall together.
    fn groups(&self) -> Vec<usize> {
        number_users(self.users.iter().copied(), self.num_users)
    }
}

/// The metric, event by event.
fn scores(
    model: &dyn Recommender,
    partition: &Partition,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>, EvaluateError> {
    let options = EvaluateOptions { cutoffs: vec![METRIC.cutoff], ..EvaluateOptions::default() };
    let evaluation = evaluate(model, &partition.holdout, partition.train.num_items(), &options, monitor)?;
    Ok(evaluation.ranks.iter().map(|&rank| METRIC.value(rank)).collect())
}
