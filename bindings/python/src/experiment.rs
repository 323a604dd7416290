//! Experiments: a log is cut, models are fitted to one part and scored on the other.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use satf::evaluate::{EvaluateOptions, Evaluation, evaluate};
use satf::experiment::{
    self, Choice, CutDescription, Part, PartRows, Protocol, RunOptions, TrainingSize, Warning,
    holdout_scheme, run_on,
};
use satf::interactions::Interactions;
use satf::models::Recommender;
use satf::monitor::Monitor;
use satf::prepare::{Partition, Split, SplitScheme, Timeline};
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::log::Log;
use crate::model::{Model, registry};
use crate::own_model::OwnModel;
use crate::plain::{to_json, to_keys, to_python};
use crate::run::Run;
use crate::table::Table;
use crate::training_set::{TrainingSet, events_of, histories_of_events};
use crate::work::{Watch, Work, run};

/// A log that was cut.
#[pyclass(frozen, name = "Cut", module = "satf._satf")]
pub(crate) struct Cut {
    log: Arc<Interactions>,
    scheme: SplitScheme,
    partition: Arc<Partition>,
    description: CutDescription,
    protocol: Protocol,
    warnings: Vec<String>,
}

/// Cuts a log. Without a validation set, all before the test set is one part.
#[pyfunction]
#[pyo3(signature = (log, protocol, with_validation, work=None))]
pub(crate) fn cut(
    py: Python<'_>,
    log: &Log,
    protocol: &Bound<'_, PyDict>,
    with_validation: bool,
    work: Option<&Work>,
) -> PyResult<Cut> {
    let protocol: Protocol = serde_json::from_value(to_json(protocol.as_any())?)
        .map_err(|error| Failure::new(Kind::Config, error.to_string()))?;
    let log = log.events()?;
    run(py, work, |watch| {
        watch.begin("splitting", 0);
        let mut warnings = Vec::new();
        let (scheme, partition, description) = if with_validation {
            let cut = protocol.cut_telling(&log, &mut warnings)?;
            (scheme_of(&cut.description), cut.partition, cut.description)
        } else {
            without_validation(&log, &protocol, &mut warnings)?
        };
        let told = warnings.iter().filter(|warning| !warning.is_minor()).map(ToString::to_string).collect();
        Ok(Cut {
            log: Arc::clone(&log),
            scheme,
            partition: Arc::new(partition),
            description,
            protocol,
            warnings: told,
        })
    })
}

fn scheme_of(description: &CutDescription) -> SplitScheme {
    match (description.valid, description.test) {
        (Some(valid), Some(test)) => SplitScheme::Calendar { valid, test },
        _ => SplitScheme::LeaveOneOut,
    }
}

fn without_validation(
    log: &Interactions,
    protocol: &Protocol,
    warnings: &mut Vec<Warning>,
) -> Result<(SplitScheme, Partition, CutDescription), Failure> {
    let scheme = holdout_scheme(log, Some(protocol.split), protocol.test, warnings)?;
    let timeline = Timeline::new(log, protocol.ties, protocol.seed);
    warnings.extend(Warning::of_ties(&timeline));
    let (ties, tied_rows) = (timeline.policy, timeline.tied_rows);
    let split = Split::new(timeline, scheme)?;
    let [train, valid, test] = split.rows();
    let partition = split.test()?;
    let counts = partition.holdout.counts;
    if counts.repeats > 0 {
        warnings.push(Warning::Repeats { repeats: counts.repeats, scored: counts.scored });
    }
    let description = CutDescription {
        split: protocol.split,
        leaks_future: scheme == SplitScheme::LeaveOneOut,
        valid: None,
        test: match scheme {
            SplitScheme::Holdout { test } => Some(test),
            _ => None,
        },
        rows: PartRows { train, valid, test },
        scored_part: Part::Test,
        train: TrainingSize {
            users: partition.train.num_users(),
            items: partition.train.num_items(),
            rows: partition.train.num_rows(),
        },
        ties,
        tied_rows,
        seen: protocol.seen,
        max_len: protocol.max_len,
        seed: protocol.seed,
    };
    Ok((scheme, partition, description))
}

/// What is measured, and how long models learn.
struct Measuring {
    cutoffs: Vec<usize>,
    options: RunOptions,
}

impl Measuring {
    fn of(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let json = to_json(options.as_any())?;
        let options: RunOptions =
            serde_json::from_value(json).map_err(|error| Failure::new(Kind::Config, error.to_string()))?;
        Ok(Measuring { cutoffs: options.cutoffs.clone(), options })
    }

    fn evaluation(&self, cut: &Cut) -> EvaluateOptions {
        EvaluateOptions {
            cutoffs: self.cutoffs.clone(),
            batch: None,
            seen: cut.description.seen,
            unit: self.options.unit,
        }
    }
}

impl Cut {
    fn split(&self) -> Result<Split<'_>, Failure> {
        Ok(Split::new(Timeline::new(&self.log, self.protocol.ties, self.protocol.seed), self.scheme)?)
    }

    fn score(
        &self,
        model: &dyn Recommender,
        measuring: &Measuring,
        watch: &Watch,
    ) -> Result<(Evaluation, f64), Failure> {
        let start = Instant::now();
        let Partition { train, holdout } = &*self.partition;
        let evaluation = evaluate(model, holdout, train.num_items(), &measuring.evaluation(self), watch)?;
        Ok((evaluation, start.elapsed().as_secs_f64()))
    }

    fn run_of(&self, label: &str, evaluation: Evaluation, report: Value, warnings: Vec<String>) -> Run {
        let partition = Arc::clone(&self.partition);
        Run { label: label.to_owned(), partition, evaluation, report, warnings }
    }
}

#[pymethods]
impl Cut {
    /// What was done.
    fn description(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.description)
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Training, validation and test set as logs; None for one without rows.
    fn logs(&self, py: Python<'_>) -> PyResult<(Option<Log>, Option<Log>, Option<Log>)> {
        let [train, valid, test] = run(py, None, |_| {
            let logs = self.split()?.logs();
            Ok(logs.map(|log| (!log.is_empty()).then(|| Log::new(log, Vec::new()))))
        })?;
        Ok((train, valid, test))
    }

    /// What models learn from.
    fn training_set(&self) -> TrainingSet {
        TrainingSet { partition: Arc::clone(&self.partition) }
    }

    /// The events to predict.
    fn events(&self) -> Table {
        events_of(&self.partition)
    }

    /// What they are predicted from.
    fn histories(&self) -> Table {
        histories_of_events(&self.partition)
    }

    /// Counts of the events.
    fn counts(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.partition.holdout.counts)
    }

    /// Fits a model by its name, or a preset by its own, and scores it.
    #[pyo3(signature = (name, keys, label, options, memory=None, work=None))]
    fn run_named(
        &self,
        py: Python<'_>,
        name: &str,
        keys: &Bound<'_, PyDict>,
        label: Option<String>,
        options: &Bound<'_, PyDict>,
        memory: Option<u64>,
        work: Option<&Work>,
    ) -> PyResult<Run> {
        let measuring = Measuring::of(options)?;
        let choice = self.choice(name, to_keys(keys)?, label, memory)?;
        run(py, work, |watch| {
            let outcome = if measuring.options.early_stopping.is_some() {
                let partition = Partition::clone(&self.partition);
                let description = self.description.clone();
                let cut =
                    experiment::Cut { split: self.split()?, partition, description, warnings: Vec::new() };
                experiment::run(&choice, &cut, &measuring.options, watch)?
            } else {
                run_on(&choice, &self.partition, &measuring.evaluation(self), watch)?
            };
            let warnings = outcome.warnings.iter().map(ToString::to_string).collect();
            let report = json!(outcome.report());
            Ok(self.run_of(&choice.label, outcome.evaluation, report, warnings))
        })
    }

    /// Scores a model that was fitted before.
    #[pyo3(signature = (model, label, options, work=None))]
    fn run_fitted(
        &self,
        py: Python<'_>,
        model: &Model,
        label: &str,
        options: &Bound<'_, PyDict>,
        work: Option<&Work>,
    ) -> PyResult<Run> {
        let measuring = Measuring::of(options)?;
        run(py, work, |watch| {
            watch.begin(label, 0);
            let model = &model.model;
            let start = Instant::now();
            let judged = model.evaluate(&self.partition, &measuring.evaluation(self), watch)?;
            let seconds = start.elapsed().as_secs_f64();
            let mut warnings: Vec<String> =
                judged.exposure.warning(label).iter().map(ToString::to_string).collect();
            let (unknown, all) = (judged.catalog.missing_items, self.partition.train.num_items());
            if unknown > 0 {
                warnings.push(format!(
                    "{label} does not know {unknown} of the {all} items of the training set: it never recommends them"
                ));
            }
            let evaluation = judged.evaluation;
            let report = json!({
                "model": model.manifest().model, "configuration": model.manifest().configuration,
                "metrics": metrics_of(&evaluation), "events": evaluation.counts, "train_seconds": null,
                "evaluate_seconds": seconds, "model_bytes": model.recommender().memory_bytes(),
            });
            Ok(self.run_of(label, evaluation, report, warnings))
        })
    }

    /// Scores an object of Python that was fitted, or needs no fitting.
    #[pyo3(signature = (object, label, train_seconds, options, work=None))]
    fn run_own(
        &self,
        py: Python<'_>,
        object: Bound<'_, PyAny>,
        label: &str,
        train_seconds: Option<f64>,
        options: &Bound<'_, PyDict>,
        work: Option<&Work>,
    ) -> PyResult<Run> {
        let measuring = Measuring::of(options)?;
        let scores_batches = object.hasattr("score_batch")?;
        let name = object.get_type().name()?.to_string();
        let object = object.unbind();
        run(py, work, |watch| {
            let own = OwnModel {
                object,
                label: label.to_owned(),
                num_items: self.partition.train.num_items(),
                scores_batches,
                watch,
                raised: Mutex::new(None),
            };
            let outcome = self.score(&own, &measuring, watch);
            if let Some(error) = own.raised() {
                return Err(Failure::Python(error));
            }
            let (evaluation, seconds) = outcome?;
            let report = json!({
                "model": name, "configuration": {}, "metrics": metrics_of(&evaluation), "events": evaluation.counts,
                "train_seconds": train_seconds, "evaluate_seconds": seconds, "model_bytes": null,
            });
            Ok(self.run_of(label, evaluation, report, Vec::new()))
        })
    }
}

impl Cut {
    fn choice(
        &self,
        name: &str,
        keys: toml::Table,
        label: Option<String>,
        memory: Option<u64>,
    ) -> Result<Choice, Failure> {
        let registry = registry();
        let (own_label, entry, mut settings) = if name.contains('/') {
            let preset =
                registry.preset(name).map_err(|error| Failure::new(Kind::Config, error.to_string()))?;
            (preset.name, registry.find(&preset.model)?, preset.settings)
        } else {
            let entry = registry.find(name)?;
            (entry.name.to_owned(), entry, toml::Table::new())
        };
        settings.extend(keys);
        let shared = experiment::SharedKeys { memory_bytes: memory, ..self.protocol.shared_keys() };
        shared.add_to(&mut settings, &entry)?;
        Ok(Choice::new(label.unwrap_or(own_label), entry, settings)?)
    }
}

fn metrics_of(evaluation: &Evaluation) -> Value {
    evaluation.report().into_iter().map(|(name, estimate)| (name, json!(estimate))).collect()
}
