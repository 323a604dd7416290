//! Stops training when a metric on the validation part no longer grows, and keeps the best iteration.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::metrics::{Estimate, Metric, ResampleUnit};
use super::protocol::{EvaluateOptions, evaluate};
use crate::models::{Checkpoints, Iteration, Memory, Recommender, Snapshot, TrainingMonitor};
use crate::monitor::Monitor;
use crate::prepare::Holdout;

/// The metric's name among what is measured of an iteration.
const MEASURE: &str = "validation";

/// A monitor that scores every iteration on a holdout.
///
/// Everything else is passed on to the monitor inside. Training ends when the metric has not grown for `patience`
/// scores, which is as many iterations for a model that reports every one; [`EarlyStopping::outcome`] has the curve and the
/// best model.
pub struct EarlyStopping<'a> {
    holdout: &'a Holdout,
    num_items: usize,
    metric: Metric,
    patience: usize,
    unit: ResampleUnit,
    inner: &'a dyn TrainingMonitor,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    curve: Vec<(usize, Estimate)>,
    best: Option<Best>,
    failure: Option<String>,
}

/// The best iteration.
pub struct Best {
    /// Counted from 1.
    pub iteration: usize,
    /// Its value of the metric.
    pub estimate: Estimate,
    /// The model as it was then.
    pub model: Box<dyn Recommender>,
}

/// What early stopping saw.
pub struct EarlyStoppingOutcome {
    /// The metric after every iteration.
    pub curve: Vec<(usize, Estimate)>,
    /// The best iteration; none if the model does not learn iteratively.
    pub best: Option<Best>,
}

impl<'a> EarlyStopping<'a> {
    /// Watches `metric` on `holdout`, whose training part has `num_items` items.
    pub fn new(
        holdout: &'a Holdout,
        num_items: usize,
        metric: Metric,
        patience: usize,
        inner: &'a dyn TrainingMonitor,
    ) -> Self {
        let unit = ResampleUnit::default();
        EarlyStopping { holdout, num_items, metric, patience, unit, inner, state: Mutex::default() }
    }

    /// The same, with standard errors that take this for one observation (default: the events of a user together).
    #[must_use]
    pub fn with_unit(self, unit: ResampleUnit) -> Self {
        EarlyStopping { unit, ..self }
    }

    /// The curve and the best iteration, or why an iteration could not be scored.
    pub fn outcome(self) -> Result<EarlyStoppingOutcome, String> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.failure {
            Some(failure) => Err(failure),
            None => Ok(EarlyStoppingOutcome { curve: state.curve, best: state.best }),
        }
    }

    fn score(&self, snapshot: &dyn Snapshot) -> Result<(Estimate, Box<dyn Recommender>), String> {
        let model = snapshot.recommender().map_err(|error| error.to_string())?;
        let cutoffs = vec![self.metric.cutoff];
        let options = EvaluateOptions { cutoffs, unit: self.unit, ..EvaluateOptions::default() };
        // Progress stays with the iterations: the scoring in between has none of its own.
        let outcome = evaluate(&*model, self.holdout, self.num_items, &options, &())
            .map_err(|error| error.to_string())?;
        Ok((outcome.estimate(self.metric), model))
    }
}

impl Monitor for EarlyStopping<'_> {
    fn begin(&self, stage: &str, total: u64) {
        self.inner.begin(stage, total);
    }

    fn advance(&self, steps: u64) {
        self.inner.advance(steps);
    }

    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }
}

impl TrainingMonitor for EarlyStopping<'_> {
    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (estimate, model) = match self.score(snapshot) {
            Ok(scored) => scored,
            Err(failure) => {
                state.failure = Some(failure);
                return ControlFlow::Break(());
            }
        };
        state.curve.push((report.iteration, estimate));
        let mut report = report.clone();
        report.measures.push((MEASURE, estimate.value));
        if state.best.as_ref().is_none_or(|best| estimate.value > best.estimate.value) {
            state.best = Some(Best { iteration: report.iteration, estimate, model });
        }
        self.inner.iteration(&report, snapshot)?;
        if since_best(&state.curve) >= self.patience {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn trained(&self, snapshot: &dyn Snapshot) {
        self.inner.trained(snapshot);
    }

    fn progressed(&self, report: &Iteration) {
        self.inner.progressed(report);
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        self.inner.checkpoints().is_some().then_some(self as &dyn Checkpoints)
    }
}

impl Checkpoints for EarlyStopping<'_> {
    fn folder(&self) -> &Path {
        let inside = self.inner.checkpoints();
        inside.expect("invariant: given out only where the monitor inside has a folder").folder()
    }

    fn memory(&self) -> Option<Memory> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = Remembered {
            metric: self.metric.to_string(),
            events: self.holdout.events.len(),
            curve: state.curve.iter().map(|(iteration, estimate)| (*iteration, Bits::of(estimate))).collect(),
        };
        let text = serde_json::to_string(&remembered).ok()?;
        Some(Memory { text, best: state.best.as_ref().map(|best| best.iteration) })
    }

    fn resumed(&self, earlier: &[Iteration]) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut earlier = earlier.to_vec();
        for report in &mut earlier {
            let scored = state.curve.iter().find(|(iteration, _)| *iteration == report.iteration);
            report.measures.extend(scored.map(|(_, estimate)| (MEASURE, estimate.value)));
        }
        if let Some(checkpoints) = self.inner.checkpoints() {
            checkpoints.resumed(&earlier);
        }
    }

    fn recall(&self, memory: &Memory, best: Option<&dyn Snapshot>) -> Result<ControlFlow<()>, String> {
        let remembered: Remembered = serde_json::from_str(&memory.text)
            .map_err(|error| format!("no curve of early stopping: {error}"))?;
        let (metric, events) = (self.metric.to_string(), self.holdout.events.len());
        if remembered.metric != metric || remembered.events != events {
            return Err(format!(
                "it watched {} on {} events, this training watches {metric} on {events}",
                remembered.metric, remembered.events
            ));
        }
        let curve: Vec<(usize, Estimate)> =
            remembered.curve.iter().map(|(iteration, bits)| (*iteration, bits.estimate())).collect();
        // It may have been watched with another patience.
        let end = (1..=curve.len()).find(|&scores| since_best(&curve[..scores]) >= self.patience);
        if let Some(end) = end.filter(|end| *end < curve.len()) {
            return Err(format!(
                "it went on to iteration {}, which a patience of {} ends after iteration {}",
                curve[curve.len() - 1].0,
                self.patience,
                curve[end - 1].0
            ));
        }
        let best = match (memory.best, best) {
            (None, _) => None,
            (Some(iteration), Some(snapshot)) => {
                let on_curve = curve.iter().find(|(at, _)| *at == iteration);
                let estimate = on_curve.ok_or("its best iteration is not on its curve")?.1;
                let model = snapshot.recommender().map_err(|error| error.to_string())?;
                Some(Best { iteration, estimate, model })
            }
            (Some(iteration), None) => {
                return Err(format!("the model of its best iteration {iteration} is missing"));
            }
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { curve, best, failure: None };
        Ok(if end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Scores after the best one; of equal ones the first is best.
fn since_best(curve: &[(usize, Estimate)]) -> usize {
    let values = curve.iter().map(|(_, estimate)| estimate.value).enumerate();
    let best = values.reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(0, |(at, _)| curve.len() - 1 - at)
}

/// What early stopping keeps in a checkpoint.
#[derive(Serialize, Deserialize)]
struct Remembered {
    metric: String,
    events: usize,
    curve: Vec<(usize, Bits)>,
}

/// An estimate to the last bit, which decimals in JSON are not.
#[derive(Serialize, Deserialize)]
struct Bits {
    value: u64,
    stderr: Option<u64>,
    interval: Option<[u64; 2]>,
    #[serde(default)]
    unit: Option<ResampleUnit>,
}

impl Bits {
    fn of(estimate: &Estimate) -> Self {
        Bits {
            value: estimate.value.to_bits(),
            stderr: estimate.stderr.map(f64::to_bits),
            interval: estimate.interval.map(|interval| interval.map(f64::to_bits)),
            unit: estimate.unit,
        }
    }

    fn estimate(&self) -> Estimate {
        Estimate {
            value: f64::from_bits(self.value),
            stderr: self.stderr.map(f64::from_bits),
            interval: self.interval.map(|interval| interval.map(f64::from_bits)),
            unit: self.unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;
    use crate::models::{ModelError, Shares, Tensor, UserData};
    use crate::prepare::testing::log;
    use crate::prepare::{History, Partition, Split, SplitScheme, TiePolicy, Timeline};

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
        fn variant(&self, _: &toml::Table) -> Result<Box<dyn Recommender>, ModelError> {
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
    fn report(stopping: &EarlyStopping<'_>, iterations: impl Iterator<Item = usize>, right: usize) -> usize {
        let mut last = 0;
        for iteration in iterations {
            last = iteration;
            let (holdout, items) = (stopping.holdout, stopping.num_items);
            let snapshot = Oracle { holdout, items, right: iteration == right };
            let report = Iteration { iteration, seconds: 0.0, measures: Vec::new() };
            if stopping.iteration(&report, &snapshot).is_break() {
                break;
            }
        }
        last
    }

    fn watch<'a>(partition: &'a Partition, metric: &str) -> EarlyStopping<'a> {
        let items = partition.train.num_items();
        EarlyStopping::new(&partition.holdout, items, metric.parse().unwrap(), 2, &())
    }

    #[test]
    fn the_best_iteration_is_kept_and_patience_ends_training() {
        let partition = partition();
        let stopping = watch(&partition, "NDCG@3");
        let ran = report(&stopping, 1..=10, 3);
        let outcome = stopping.outcome().unwrap();
        let best = outcome.best.unwrap();
        assert_eq!((ran, best.iteration, outcome.curve.len()), (5, 3, 5));
        assert!(best.estimate.value > outcome.curve[0].1.value);
    }

    #[test]
    fn patience_counts_scores_where_iterations_are_left_out() {
        let partition = partition();
        let stopping = watch(&partition, "NDCG@3");
        let ran = report(&stopping, (20..=200).step_by(20), 60);
        let outcome = stopping.outcome().unwrap();
        assert_eq!((ran, outcome.best.unwrap().iteration, outcome.curve.len()), (100, 60, 5));
    }

    #[test]
    fn what_it_remembers_is_enough_to_go_on() {
        let partition = partition();
        let unbroken = watch(&partition, "NDCG@3");
        report(&unbroken, 1..=10, 3);
        let unbroken = unbroken.outcome().unwrap();

        let first = watch(&partition, "NDCG@3");
        report(&first, 1..=4, 3);
        let memory = first.memory().unwrap();
        assert_eq!(memory.best, Some(3));
        let best = Oracle { holdout: &partition.holdout, items: first.num_items, right: true };
        let second = watch(&partition, "NDCG@3");
        assert_eq!(second.recall(&memory, Some(&best)), Ok(ControlFlow::Continue(())));
        report(&second, 5..=10, 3);
        let resumed = second.outcome().unwrap();
        assert_eq!(resumed.curve, unbroken.curve);
        assert_eq!(resumed.best.unwrap().iteration, 3);

        // Another patience judges the same curve anew: it goes on, ends here, or should have ended before.
        let ended = watch(&partition, "NDCG@3");
        report(&ended, 1..=10, 3);
        let ended = ended.memory().unwrap();
        let with_patience = |patience: usize| {
            let stopping = EarlyStopping { patience, ..watch(&partition, "NDCG@3") };
            stopping.recall(&ended, Some(&best))
        };
        assert_eq!(with_patience(3), Ok(ControlFlow::Continue(())));
        assert_eq!(with_patience(2), Ok(ControlFlow::Break(())));
        assert!(with_patience(1).unwrap_err().contains("ends after iteration 2"));

        let refused = |stopping: EarlyStopping<'_>, memory: &Memory, best: Option<&dyn Snapshot>| {
            stopping.recall(memory, best).unwrap_err()
        };
        assert!(refused(watch(&partition, "HR@3"), &memory, Some(&best)).contains("NDCG@3"));
        assert!(refused(watch(&partition, "NDCG@3"), &memory, None).contains("missing"));
        let rubbish = Memory { text: "no".to_owned(), best: None };
        assert!(refused(watch(&partition, "NDCG@3"), &rubbish, None).contains("no curve"));
    }
}
