//! The search itself: rounds of proposals, jobs that try them, a log that keeps them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::{Map, Value};
use toml::Table;

use super::conclusion::settings_with;
use super::sampler::{Observation, Proposals, Sampler};
use super::study::{elapsed, seconds_left};
use super::trial::{Failure, Scoring};
use super::{Best, Damage, Grid, Limits, Study, Trial, TuneError, best_of};
use crate::evaluate::{EvaluateOptions, Evaluation};
use crate::experiment::{Choice, Run, run_on};
use crate::models::{ModelEntry, TrainingMonitor};
use crate::monitor::Cancelled;
use crate::prepare::Partition;

/// What to search with.
pub struct SearchOptions<'a> {
    /// Which trainings there are.
    pub grid: &'a Grid,
    /// How they are scored.
    pub scoring: Scoring<'a>,
    /// How they are chosen.
    pub sampler: Sampler,
    /// Seed of the choice.
    pub seed: u64,
    /// How far to go.
    pub limits: Limits,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Trials done.
    pub done: usize,
    /// Trials asked for, at most as many as there are trainings.
    pub asked: usize,
    /// Wall-clock seconds left, at the rate so far.
    pub seconds_left: Option<f64>,
}

/// Tries one training after the other until enough are tried, all are, or the time is spent. Trials already in the study
/// are not done again. `notify` sees every new trial once it is safely kept.
///
/// The trials done and their scores depend on nothing but the request: not on the number of threads or jobs, nor on how
/// often the search was stopped on the way (a time budget aside).
pub fn search(
    options: &SearchOptions<'_>,
    study: &mut Study,
    monitor: &dyn TrainingMonitor,
    notify: &(dyn Fn(&Trial, Progress) + Sync),
) -> Result<(), TuneError> {
    let candidates = options.grid.candidates();
    let proposals = Proposals::new(options.sampler, options.seed, &candidates);
    let asked = options.limits.trials.min(candidates.len());
    let pools = thread_pools(options.limits.jobs)?;
    let desk = Desk {
        options,
        asked,
        began: Instant::now(),
        elapsed_before: elapsed(study.trials()),
        earlier_seconds: Mutex::new(0.0),
        shared: Mutex::new(Shared { study, error: None, out_of_time: false }),
        monitor,
        notify,
    };
    // A run that was killed may have left them.
    let trials_done: Vec<usize> = desk.shared().study.trials().iter().map(|trial| trial.trial).collect();
    for trial in trials_done {
        desk.shared().study.forget_checkpoints(&trial.to_string());
    }
    monitor.begin("trials", asked as u64);
    monitor.advance(desk.shared().study.trials().len() as u64);

    let mut observations: Vec<Observation> = Vec::new();
    while observations.len() < asked {
        let round = proposals.round(observations.len());
        let points = proposals.propose(&round, &observations);
        desk.run_round(&round, &points, &pools)?;
        match desk.observe(&round, &points)? {
            Some(more) => observations.extend(more),
            // The last round is not complete, for want of trials or time.
            None => break,
        }
    }
    Ok(())
}

/// Where jobs take their work and bring the results.
struct Desk<'a> {
    options: &'a SearchOptions<'a>,
    asked: usize,
    began: Instant,
    elapsed_before: f64,
    /// Seconds that an earlier run spent on trials it did not end.
    earlier_seconds: Mutex<f64>,
    shared: Mutex<Shared<'a>>,
    monitor: &'a dyn TrainingMonitor,
    notify: &'a (dyn Fn(&Trial, Progress) + Sync),
}

struct Shared<'a> {
    study: &'a mut Study,
    error: Option<TuneError>,
    out_of_time: bool,
}

impl<'a> Desk<'a> {
    fn shared(&self) -> MutexGuard<'_, Shared<'a>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> f64 {
        let earlier = *self.earlier_seconds.lock().unwrap_or_else(PoisonError::into_inner);
        self.elapsed_before + earlier + self.began.elapsed().as_secs_f64()
    }

    /// Does the trials of a round that are not done yet, as far as trials and time allow.
    fn run_round(
        &self,
        round: &Range<usize>,
        points: &[usize],
        pools: &[ThreadPool],
    ) -> Result<(), TuneError> {
        let missing: Vec<(usize, usize)> = {
            let shared = self.shared();
            let done =
                |trial: usize| shared.study.trials().binary_search_by_key(&trial, |done| done.trial).is_ok();
            round
                .clone()
                .zip(points.iter().copied())
                .filter(|&(trial, _)| trial < self.asked && !done(trial))
                .collect()
        };
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for pool in pools {
                scope.spawn(|| {
                    while let Some(&(trial, point)) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if !self.may_begin() {
                            break;
                        }
                        pool.install(|| self.run_trial(trial, point));
                    }
                });
            }
        });
        let mut shared = self.shared();
        if let Some(error) = shared.error.take() {
            return Err(error);
        }
        if self.monitor.is_cancelled() {
            return Err(TuneError::Stopped {
                done: shared.study.trials().len(),
                asked: self.asked,
                folder: shared.study.folder().to_owned(),
                source: Cancelled,
            });
        }
        Ok(())
    }

    /// Whether another trial may begin. One that would probably not end within the time budget does not.
    fn may_begin(&self) -> bool {
        let mut shared = self.shared();
        if shared.error.is_some() || shared.out_of_time || self.monitor.is_cancelled() {
            return false;
        }
        let trials = shared.study.trials();
        let usual = trials.iter().map(|trial| trial.seconds).sum::<f64>() / trials.len().max(1) as f64;
        if let Some(budget) = self.options.limits.time_budget_seconds
            && self.elapsed() + usual > budget
        {
            shared.out_of_time = true;
            return false;
        }
        true
    }

    fn run_trial(&self, trial: usize, point: usize) {
        let SearchOptions { grid, scoring, limits, .. } = self.options;
        let start = Instant::now();
        let checkpoints = self.shared().study.checkpoints(&trial.to_string());
        let mut earlier_seconds = 0.0;
        let (scores, error) = match scoring.run(grid, point, &checkpoints, self.monitor) {
            Ok((scores, earlier)) => {
                earlier_seconds = earlier;
                (scores, None)
            }
            Err(Failure::Failed(error)) => (Vec::new(), Some(error.to_string())),
            Err(Failure::Cancelled(_)) => return,
            Err(Failure::Broken(error)) => {
                self.shared().error = Some(error.into());
                return;
            }
        };
        *self.earlier_seconds.lock().unwrap_or_else(PoisonError::into_inner) += earlier_seconds;
        let trial = Trial {
            trial,
            keys: grid.keys(point),
            scores,
            error,
            seconds: earlier_seconds + start.elapsed().as_secs_f64(),
            elapsed_seconds: self.elapsed(),
        };
        let mut shared = self.shared();
        match shared.study.append(&trial) {
            Ok(trial) => {
                shared.study.forget_checkpoints(&trial.trial.to_string());
                let done = shared.study.trials().len();
                let seconds_left =
                    seconds_left(&Limits { trials: self.asked, ..*limits }, done, self.elapsed());
                self.monitor.advance(1);
                (self.notify)(&trial, Progress { done, asked: self.asked, seconds_left });
            }
            Err(error) => shared.error = Some(error),
        }
    }

    /// What a round showed, or none if a trial of it is missing.
    fn observe(&self, round: &Range<usize>, points: &[usize]) -> Result<Option<Vec<Observation>>, TuneError> {
        let shared = self.shared();
        let done: BTreeMap<usize, &Trial> =
            shared.study.trials().iter().map(|trial| (trial.trial, trial)).collect();
        let mut observations = Vec::new();
        let mut complete = true;
        for (trial, &point) in round.clone().zip(points) {
            let Some(kept) = done.get(&trial) else {
                complete = false;
                continue;
            };
            // Keys were parsed from text: compare them as such.
            let keys = self.options.grid.keys(point);
            if !same_keys(&kept.keys, &keys) {
                let (kept, asked) = (Value::Object(kept.keys.clone()), Value::Object(keys));
                let damage = Damage::OtherTrial { trial, kept, asked };
                return Err(TuneError::damaged(shared.study.folder(), damage));
            }
            observations.push(Observation { point, value: kept.best().map(|score| score.value) });
        }
        Ok(complete.then_some(observations))
    }
}

fn same_keys(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let same = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs().max(b.abs()),
        _ => a == b,
    };
    a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
}

/// One pool of threads a job; together they have as many threads as there are.
fn thread_pools(jobs: usize) -> Result<Vec<ThreadPool>, TuneError> {
    let threads = (rayon::current_num_threads() / jobs.max(1)).max(1);
    (0..jobs.max(1))
        .map(|_| ThreadPoolBuilder::new().num_threads(threads).build())
        .collect::<Result<_, _>>()
        .map_err(|error| TuneError::Threads { jobs, reason: error.to_string() })
}

/// The best configuration, fitted to training and validation sets and scored on the test set.
pub struct Refit {
    /// The best configuration that was found.
    pub best: Best,
    /// Every key with its value, defaults included.
    pub configuration: Value,
    /// Its scores on the test set.
    pub evaluation: Evaluation,
    /// Wall-clock seconds of training.
    pub train_seconds: f64,
    /// Wall-clock seconds of scoring.
    pub evaluate_seconds: f64,
}

/// Fits the best configuration of a study, its number of iterations included, to all before the test set, and scores it.
pub fn refit(
    entry: &ModelEntry,
    base: &Table,
    study: &Study,
    test: &Partition,
    evaluation: &EvaluateOptions,
    monitor: &dyn TrainingMonitor,
) -> Result<Refit, TuneError> {
    let trials = study.trials();
    let best = best_of(trials).ok_or_else(|| TuneError::AllFailed {
        trials: trials.len(),
        reason: trials
            .iter()
            .find_map(|trial| trial.error.clone())
            .unwrap_or_else(|| "none was run".to_owned()),
    })?;
    let (done, folder) = (trials.len(), study.folder());
    let stopped = || TuneError::Stopped { done, asked: done, folder: folder.to_owned(), source: Cancelled };
    let settings = settings_with(base, &best.keys, study)?;
    let choice = Choice::new(entry.name.to_owned(), *entry, settings)?;
    let run = run_on(&choice, test, evaluation, monitor).map_err(|error| match error {
        error if Cancelled::is_cause_of(&error) => stopped(),
        error => error.into(),
    })?;
    let Run { configuration, evaluation, train_seconds, evaluate_seconds, .. } = run;
    Ok(Refit { best, configuration, evaluation, train_seconds, evaluate_seconds })
}
