//! Stops training when a metric on the validation part no longer grows, and keeps the best iteration.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use super::metrics::{Estimate, Metric};
use super::protocol::{EvaluateOptions, evaluate};
use crate::models::{Iteration, Recommender, Snapshot};
use crate::monitor::Monitor;
use crate::prepare::Holdout;

/// A monitor that scores every iteration on a holdout.
///
/// Everything else is passed on to the monitor inside. Training ends when the metric has not grown for `patience`
/// iterations; [`EarlyStopping::outcome`] has the curve and the best model.
pub struct EarlyStopping<'a> {
    holdout: &'a Holdout,
    num_items: usize,
    metric: Metric,
    patience: usize,
    inner: &'a dyn Monitor,
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
        inner: &'a dyn Monitor,
    ) -> Self {
        EarlyStopping { holdout, num_items, metric, patience, inner, state: Mutex::default() }
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
        let options = EvaluateOptions { cutoffs: vec![self.metric.cutoff], ..EvaluateOptions::default() };
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

    fn trained(&self, snapshot: &dyn Snapshot) {
        self.inner.trained(snapshot);
    }

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
        if state.best.as_ref().is_none_or(|best| estimate.value > best.estimate.value) {
            state.best = Some(Best { iteration: report.iteration, estimate, model });
        }
        let best = state.best.as_ref().map_or(0, |best| best.iteration);
        self.inner.iteration(report, snapshot)?;
        if report.iteration - best >= self.patience {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;
    use crate::models::{ModelError, Shares, Tensor};
    use crate::prepare::testing::log;
    use crate::prepare::{Split, SplitScheme, TiePolicy, Timeline};

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

        fn score_batch(&self, histories: &[&[ItemIndex]], scores: &mut [f32]) {
            scores.fill(0.0);
            for (history, row) in histories.iter().zip(scores.chunks_mut(self.1)) {
                if let Some((_, target)) = self.0.iter().find(|(known, _)| known == history) {
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

        fn shares(&self, history: &[ItemIndex], _item: ItemIndex) -> Shares {
            Shares::of_none(history, 0.0)
        }
    }

    impl Snapshot for Oracle<'_> {
        fn recommender(&self) -> Result<Box<dyn Recommender>, ModelError> {
            let answers =
                self.holdout.events.iter().map(|event| (self.holdout.history(event).to_vec(), event.target));
            Ok(Box::new(Answers(answers.collect(), self.items, self.right)))
        }
    }

    #[test]
    fn the_best_iteration_is_kept_and_patience_ends_training() {
        let rows: Vec<(i64, i64, i64)> =
            (0..300).map(|at| (at % 7, (at * at + at / 3) % 23, at * 3600)).collect();
        let log = log(&rows);
        let scheme =
            SplitScheme::Calendar { valid: "2days".parse().unwrap(), test: "3days".parse().unwrap() };
        let partition = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).unwrap().test().unwrap();
        let items = partition.train.num_items();
        let stopping = EarlyStopping::new(&partition.holdout, items, "NDCG@3".parse().unwrap(), 2, &());
        let mut ran = 0;
        for iteration in 1..=10 {
            ran = iteration;
            let snapshot = Oracle { holdout: &partition.holdout, items, right: iteration == 3 };
            let report = Iteration { iteration, seconds: 0.0, measures: Vec::new() };
            if stopping.iteration(&report, &snapshot).is_break() {
                break;
            }
        }
        let outcome = stopping.outcome().unwrap();
        let best = outcome.best.unwrap();
        assert_eq!((ran, best.iteration, outcome.curve.len()), (5, 3, 5));
        assert!(best.estimate.value > outcome.curve[0].1.value);
    }
}
