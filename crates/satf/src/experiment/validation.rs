//! Training that is watched on a validation set: every iteration, and every variant that a training serves, is scored there.
//!
//! It is how early stopping, the validation of a model before it is kept, and the search for configurations learn what is best; each of
//! them then fits the best again to all there is.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use toml::Table;

use super::ExperimentError;
use crate::evaluate::{
    Estimate, EvaluateError, EvaluateOptions, Evaluation, Metric, ResampleUnit, SeenPolicy, evaluate,
};
use crate::models::{
    Checkpoints, Iteration, Learner, Memory, RecallError, Recommender, Snapshot, TrainingMonitor,
};
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};
use crate::prepare::Partition;

/// The metric's name among what is measured of an iteration.
const MEASURE: &str = "validation";

/// How training is watched.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    /// What is learned from, and what it is scored on.
    pub partition: &'a Partition,
    /// What is to be high.
    pub metric: Metric,
    /// Training ends when the metric has not grown for so many scores, which are as many iterations for a model that reports every one.
    pub patience: usize,
    /// Which items are left out of a ranking.
    pub seen: SeenPolicy,
    /// What standard errors take for one observation.
    pub unit: ResampleUnit,
}

/// The score of a variant after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationScore {
    /// Which variant, as a place among those asked for.
    pub variant: usize,
    /// The iteration, counted from 1; none for a model that does not learn iteratively.
    pub iteration: Option<usize>,
    /// The metric.
    pub estimate: Estimate,
}

/// What a watched training came to.
pub struct Validated {
    /// The metric after every iteration; empty for a model that does not learn iteratively.
    pub curve: Vec<(usize, Estimate)>,
    /// The best iteration and its metric; of equal ones the first. None for a model that does not learn iteratively.
    pub best: Option<(usize, Estimate)>,
    /// The model as it was then.
    pub model: Box<dyn Recommender>,
    /// All of its scores on the validation set.
    pub evaluation: Evaluation,
}

/// Fits a model and scores every iteration of it on the validation set; keeps the best one.
pub fn fit_with_validation(
    learner: &dyn Learner,
    validation: &Validation<'_>,
    monitor: &dyn TrainingMonitor,
) -> Result<Validated, ExperimentError> {
    let (last, seen) = watch(learner, validation, Watched::Best, monitor)?;
    let curve =
        seen.scores.iter().filter_map(|score| Some((score.iteration?, score.estimate))).collect::<Vec<_>>();
    let best = seen.best.as_ref().map(|best| (best.iteration, best.estimate));
    let (model, evaluation) = match seen.best {
        Some(Best { model, evaluation, .. }) => (model, evaluation),
        None => (last, None),
    };
    let evaluation = match evaluation {
        Some(evaluation) => evaluation,
        None => validation.evaluate(&*model, monitor)?,
    };
    Ok(Validated { curve, best, model, evaluation })
}

/// Fits a model once and scores every variant that this training serves ([`Learner::variant_keys`]), after every iteration: each has its own early stopping, as if it
/// were trained alone, and training ends when all have stopped. A model that has no variants is scored as it is.
pub fn score_variants(
    learner: &dyn Learner,
    variants: &[Table],
    validation: &Validation<'_>,
    monitor: &dyn TrainingMonitor,
) -> Result<Vec<ValidationScore>, ExperimentError> {
    let (last, seen) = watch(learner, validation, Watched::Variants(variants), monitor)?;
    if !seen.scores.is_empty() {
        return Ok(seen.scores);
    }
    let evaluation = validation.evaluate(&*last, &OnlyCancels(monitor))?;
    let estimate = evaluation.estimate(validation.metric);
    Ok(vec![ValidationScore { variant: 0, iteration: None, estimate }])
}

/// The one training behind both: the model as it is at the end, and what was seen on the way.
fn watch(
    learner: &dyn Learner,
    validation: &Validation<'_>,
    watched: Watched<'_>,
    monitor: &dyn TrainingMonitor,
) -> Result<(Box<dyn Recommender>, Seen), ExperimentError> {
    let watch = Watch { validation: *validation, watched, monitor, seen: Mutex::default() };
    let last = learner.fit(&validation.partition.train, &watch)?;
    check_cancelled(monitor)?;
    let seen = watch.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    match seen.failure {
        Some(failure) => Err(failure),
        None => Ok((last, seen)),
    }
}

impl<'a> Validation<'a> {
    /// Watches a metric on the validation set of a partition, with everything else by default.
    pub fn new(partition: &'a Partition, metric: Metric, patience: usize) -> Self {
        let (seen, unit) = (SeenPolicy::default(), ResampleUnit::default());
        Validation { partition, metric, patience, seen, unit }
    }

    fn evaluate(&self, model: &dyn Recommender, monitor: &dyn Monitor) -> Result<Evaluation, EvaluateError> {
        let cutoffs = vec![self.metric.cutoff];
        let options = EvaluateOptions { cutoffs, batch: None, seen: self.seen, unit: self.unit };
        let Partition { train, holdout } = self.partition;
        evaluate(model, holdout, train.num_items(), &options, monitor)
    }
}

/// What is scored of a training.
#[derive(Clone, Copy)]
enum Watched<'a> {
    /// The model as it is configured; its best iteration is kept.
    Best,
    /// These variants of it; only scores are kept.
    Variants(&'a [Table]),
}

impl Watched<'_> {
    fn len(self) -> usize {
        match self {
            Watched::Best => 1,
            Watched::Variants(variants) => variants.len(),
        }
    }
}

/// Scores a training while it runs. Everything else is passed on to the monitor inside.
struct Watch<'a> {
    validation: Validation<'a>,
    watched: Watched<'a>,
    monitor: &'a dyn TrainingMonitor,
    seen: Mutex<Seen>,
}

/// What was seen of a training.
#[derive(Default)]
struct Seen {
    scores: Vec<ValidationScore>,
    best: Option<Best>,
    failure: Option<ExperimentError>,
}

/// The best iteration.
struct Best {
    iteration: usize,
    estimate: Estimate,
    model: Box<dyn Recommender>,
    /// Not known of an iteration of an earlier run.
    evaluation: Option<Evaluation>,
}

impl Seen {
    /// The metric of a variant, iteration by iteration.
    fn curve(&self, variant: usize) -> Vec<(usize, f64)> {
        let scores = self.scores.iter().filter(|score| score.variant == variant);
        scores.filter_map(|score| Some((score.iteration?, score.estimate.value))).collect()
    }
}

impl Watch<'_> {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_stopped(&self, seen: &Seen, variant: usize) -> bool {
        since_best(&seen.curve(variant)) >= self.validation.patience
    }

    fn have_all_stopped(&self, seen: &Seen) -> bool {
        (0..self.watched.len()).all(|variant| self.has_stopped(seen, variant))
    }

    /// Scores a snapshot; whether there is nothing more to learn from this training.
    fn look(&self, snapshot: &dyn Snapshot, iteration: Option<usize>) -> bool {
        let mut seen = self.seen();
        if let Err(failure) = self.score(&mut seen, snapshot, iteration) {
            seen.failure = Some(failure);
            return true;
        }
        self.have_all_stopped(&seen)
    }

    fn score(
        &self,
        seen: &mut Seen,
        snapshot: &dyn Snapshot,
        iteration: Option<usize>,
    ) -> Result<(), ExperimentError> {
        for variant in 0..self.watched.len() {
            if self.has_stopped(seen, variant) {
                continue;
            }
            check_cancelled(self.monitor)?;
            let model = match self.watched {
                Watched::Best => snapshot.recommender()?,
                Watched::Variants(variants) => snapshot.variant(&variants[variant])?,
            };
            // Progress stays with the iterations: the scoring in between has none of its own.
            let evaluation = self.validation.evaluate(&*model, &OnlyCancels(self.monitor))?;
            let estimate = evaluation.estimate(self.validation.metric);
            seen.scores.push(ValidationScore { variant, iteration, estimate });
            let is_best = seen.best.as_ref().is_none_or(|best| estimate.value > best.estimate.value);
            if let (Watched::Best, Some(iteration), true) = (self.watched, iteration, is_best) {
                seen.best = Some(Best { iteration, estimate, model, evaluation: Some(evaluation) });
            }
        }
        Ok(())
    }

    fn checkpoints_inside(&self) -> &dyn Checkpoints {
        self.monitor.checkpoints().expect("invariant: given out only where the monitor inside has some")
    }
}

impl Monitor for Watch<'_> {
    fn begin(&self, stage: &str, total: u64) {
        self.monitor.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.monitor.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.monitor.is_cancelled()
    }
}

impl TrainingMonitor for Watch<'_> {
    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        let is_over = self.look(snapshot, Some(report.iteration));
        let mut report = report.clone();
        let last = self.seen().scores.last().map(|score| score.estimate.value);
        report.measures.extend(last.map(|value| (MEASURE, value)));
        self.monitor.iteration(&report, snapshot)?;
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn progressed(&self, report: &Iteration) {
        self.monitor.progressed(report);
    }

    fn trained(&self, snapshot: &dyn Snapshot) {
        if let Watched::Variants(_) = self.watched {
            self.look(snapshot, None);
        }
        self.monitor.trained(snapshot);
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        self.monitor.checkpoints().is_some().then_some(self as &dyn Checkpoints)
    }
}

impl Checkpoints for Watch<'_> {
    fn folder(&self) -> &Path {
        self.checkpoints_inside().folder()
    }

    fn memory(&self) -> Option<Memory> {
        let seen = self.seen();
        let remembered = Remembered {
            metric: self.validation.metric,
            events: self.validation.partition.holdout.events.len(),
            scores: seen.scores.iter().map(RememberedScore::of).collect(),
        };
        let text = serde_json::to_string(&remembered).ok()?;
        Some(Memory { text, best: seen.best.as_ref().map(|best| best.iteration) })
    }

    fn resumed(&self, earlier: &[Iteration]) {
        let mut earlier = earlier.to_vec();
        {
            let seen = self.seen();
            for report in &mut earlier {
                let scored = seen.scores.iter().rev().find(|score| score.iteration == Some(report.iteration));
                report.measures.extend(scored.map(|score| (MEASURE, score.estimate.value)));
            }
        }
        self.checkpoints_inside().resumed(&earlier);
    }

    fn recall(&self, memory: &Memory, best: Option<&dyn Snapshot>) -> Result<ControlFlow<()>, RecallError> {
        let remembered: Remembered =
            serde_json::from_str(&memory.text).map_err(|error| RecallError::Unreadable(error.to_string()))?;
        let (metric, events) = (self.validation.metric, self.validation.partition.holdout.events.len());
        if remembered.metric != metric || remembered.events != events {
            return Err(RecallError::OtherValidation {
                then: (remembered.metric.to_string(), remembered.events),
                now: (metric.to_string(), events),
            });
        }
        let scores = remembered.scores.iter().map(RememberedScore::score).collect();
        let mut seen = Seen { scores, best: None, failure: None };
        for variant in 0..self.watched.len() {
            // It may have been watched with another patience.
            let (curve, patience) = (seen.curve(variant), self.validation.patience);
            let end = (1..=curve.len()).find(|&scores| since_best(&curve[..scores]) >= patience);
            if let Some(end) = end.filter(|end| *end < curve.len()) {
                let (reached, end) = (curve[curve.len() - 1].0, curve[end - 1].0);
                return Err(RecallError::TooFar { reached, patience, end });
            }
        }
        if let (Watched::Best, Some(iteration)) = (self.watched, memory.best) {
            let on_curve = seen.scores.iter().find(|score| score.iteration == Some(iteration));
            let estimate = on_curve.ok_or(RecallError::NoBest(iteration))?.estimate;
            let model = best.ok_or(RecallError::NoBest(iteration))?.recommender()?;
            seen.best = Some(Best { iteration, estimate, model, evaluation: None });
        }
        let is_over = !seen.scores.is_empty() && self.have_all_stopped(&seen);
        *self.seen() = seen;
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Scores after the best one; of equal ones the first is best.
fn since_best(curve: &[(usize, f64)]) -> usize {
    let values = curve.iter().map(|&(_, value)| value).enumerate();
    let best = values.reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(0, |(at, _)| curve.len() - 1 - at)
}

/// What is kept in a checkpoint.
#[derive(Serialize, Deserialize)]
struct Remembered {
    metric: Metric,
    events: usize,
    scores: Vec<RememberedScore>,
}

/// A score to the last bit, which decimals in JSON need not be.
#[derive(Serialize, Deserialize)]
struct RememberedScore {
    variant: usize,
    iteration: Option<usize>,
    value: u64,
    stderr: Option<u64>,
    interval: Option<[u64; 2]>,
    unit: Option<ResampleUnit>,
}

impl RememberedScore {
    fn of(score: &ValidationScore) -> Self {
        let &ValidationScore { variant, iteration, estimate } = score;
        RememberedScore {
            variant,
            iteration,
            value: estimate.value.to_bits(),
            stderr: estimate.stderr.map(f64::to_bits),
            interval: estimate.interval.map(|interval| interval.map(f64::to_bits)),
            unit: estimate.unit,
        }
    }

    fn score(&self) -> ValidationScore {
        let estimate = Estimate {
            value: f64::from_bits(self.value),
            stderr: self.stderr.map(f64::from_bits),
            interval: self.interval.map(|interval| interval.map(f64::from_bits)),
            unit: self.unit,
        };
        ValidationScore { variant: self.variant, iteration: self.iteration, estimate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;
    use crate::models::{ModelError, Shares, Tensor, UserData};
    use crate::prepare::testing::log;
    use crate::prepare::{History, Holdout, Split, SplitScheme, TiePolicy, Timeline};

    /// Puts the right answers at the top in iteration `self.good` only.
    struct Oracle<'a> {
        holdout: &'a Holdout,
        items: usize,
        right: bool,
    }

    struct Answers(Vec<(Vec<ItemIndex>, ItemIndex)>, usize, bool);

    impl Recommender for Answers {
        fn num_items(&self) -> usize {
            self.1
        }

        fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
            scores.fill(0.0);
            for (history, row) in histories.iter().zip(scores.chunks_mut(self.1)) {
                if let Some((_, target)) =
                    self.0.iter().find(|(known, _)| known.as_slice() == history.items())
                {
                    row[target.get()] = if self.2 { 1.0 } else { -1.0 };
                }
            }
        }

        fn memory_bytes(&self) -> usize {
            0
        }

        fn tensors(&self) -> Vec<Tensor<'_>> {
            Vec::new()
        }

        fn shares(&self, history: History<'_>, _item: ItemIndex) -> Shares {
            Shares::of_none(&history, 0.0)
        }

        fn user_data(&self) -> UserData {
            UserData::None
        }
    }

    impl Snapshot for Oracle<'_> {
        fn variant(&self, _: &Table) -> Result<Box<dyn Recommender>, ModelError> {
            let answers =
                self.holdout.events.iter().map(|event| (self.holdout.history(event).to_vec(), event.target));
            Ok(Box::new(Answers(answers.collect(), self.items, self.right)))
        }
    }

    fn partition() -> Partition {
        let rows: Vec<(i64, i64, i64)> =
            (0..300).map(|at| (at % 7, (at * at + at / 3) % 23, at * 3600)).collect();
        let log = log(&rows);
        let scheme =
            SplitScheme::Calendar { valid: "2days".parse().unwrap(), test: "3days".parse().unwrap() };
        Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).unwrap().test().unwrap()
    }

    /// Reports these iterations until training is ended; right answers come in iteration `right` only. The last one reported.
    fn report(watch: &Watch<'_>, iterations: impl Iterator<Item = usize>, right: usize) -> usize {
        let mut last = 0;
        for iteration in iterations {
            last = iteration;
            let snapshot = oracle(watch.validation.partition, iteration == right);
            let report = Iteration { iteration, seconds: 0.0, measures: Vec::new() };
            if watch.iteration(&report, &snapshot).is_break() {
                break;
            }
        }
        last
    }

    fn oracle(partition: &Partition, right: bool) -> Oracle<'_> {
        Oracle { holdout: &partition.holdout, items: partition.train.num_items(), right }
    }

    fn watch<'a>(partition: &'a Partition, metric: &str) -> Watch<'a> {
        let validation = Validation::new(partition, metric.parse().unwrap(), 2);
        Watch { validation, watched: Watched::Best, monitor: &(), seen: Mutex::default() }
    }

    fn seen(watch: Watch<'_>) -> Seen {
        watch.seen.into_inner().unwrap()
    }

    #[test]
    fn the_best_iteration_is_kept_and_patience_ends_training() {
        let partition = partition();
        let watch = watch(&partition, "NDCG@3");
        let ran = report(&watch, 1..=10, 3);
        let seen = seen(watch);
        let best = seen.best.unwrap();
        assert_eq!((ran, best.iteration, seen.scores.len()), (5, 3, 5));
        assert!(best.estimate.value > seen.scores[0].estimate.value);
    }

    #[test]
    fn patience_counts_scores_where_iterations_are_left_out() {
        let partition = partition();
        let watch = watch(&partition, "NDCG@3");
        let ran = report(&watch, (20..=200).step_by(20), 60);
        let seen = seen(watch);
        assert_eq!((ran, seen.best.unwrap().iteration, seen.scores.len()), (100, 60, 5));
    }

    #[test]
    fn what_it_remembers_is_enough_to_go_on() {
        let partition = partition();
        let unbroken = watch(&partition, "NDCG@3");
        report(&unbroken, 1..=10, 3);

        let first = watch(&partition, "NDCG@3");
        report(&first, 1..=4, 3);
        let memory = first.memory().unwrap();
        assert_eq!(memory.best, Some(3));
        let best = oracle(&partition, true);
        let second = watch(&partition, "NDCG@3");
        assert_eq!(second.recall(&memory, Some(&best)).unwrap(), ControlFlow::Continue(()));
        report(&second, 5..=10, 3);
        let resumed = seen(second);
        assert_eq!(resumed.scores, seen(unbroken).scores);
        assert_eq!(resumed.best.unwrap().iteration, 3);

        // Another patience judges the same curve anew: it goes on, ends here, or should have ended before.
        let ended = watch(&partition, "NDCG@3");
        report(&ended, 1..=10, 3);
        let ended = ended.memory().unwrap();
        let with_patience = |patience: usize| {
            let mut watch = watch(&partition, "NDCG@3");
            watch.validation.patience = patience;
            watch.recall(&ended, Some(&best))
        };
        assert_eq!(with_patience(3).unwrap(), ControlFlow::Continue(()));
        assert_eq!(with_patience(2).unwrap(), ControlFlow::Break(()));
        assert!(matches!(with_patience(1), Err(RecallError::TooFar { reached: 5, patience: 1, end: 2 })));

        let refused = |metric: &str, memory: &Memory, best: Option<&dyn Snapshot>| {
            watch(&partition, metric).recall(memory, best).unwrap_err().to_string()
        };
        assert!(refused("HR@3", &memory, Some(&best)).contains("NDCG@3"));
        assert!(refused("NDCG@3", &memory, None).contains("missing"));
        let rubbish = Memory { text: "no".to_owned(), best: None };
        assert!(refused("NDCG@3", &rubbish, None).contains("no validation curve"));
    }
}
