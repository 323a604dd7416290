//! One training after the other, each kept in a file once it is done.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use satf::data::{ReadOptions, read_log, write_atomically};
use satf::evaluate::{EarlyStopping, Estimate, EvaluateOptions, Measure, Metric, evaluate};
use satf::models::{Configured, Iteration, ModelEntry, Preset, Snapshot};
use satf::monitor::Monitor;
use satf::prepare::{Offset, Partition, Split, SplitScheme, TiePolicy, Timeline};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Dataset, Error, Request};

/// Early stopping bears so many epochs without growth.
const PATIENCE: usize = 5;
const NDCG: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

/// A candidate on the validation part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) settings: String,
    pub(crate) best_epoch: usize,
    pub(crate) epochs: usize,
    pub(crate) ndcg: Estimate,
    pub(crate) seconds: f64,
}

/// A configuration on the test part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tested {
    pub(crate) settings: String,
    pub(crate) epochs: usize,
    pub(crate) ndcg: Estimate,
    pub(crate) hit_rate: Estimate,
    pub(crate) coverage: f64,
    pub(crate) events: usize,
    /// Seconds of all epochs, over all runs if training was interrupted.
    pub(crate) seconds: f64,
}

/// The file of a cell.
pub(crate) fn path(work: &Path, dataset: &Dataset, ties: TiePolicy, what: &str) -> PathBuf {
    work.join(format!("{}.{}.{what}.json", dataset.name, name_of(ties)))
}

pub(crate) fn name_of(ties: TiePolicy) -> &'static str {
    match ties {
        TiePolicy::File => "file",
        TiePolicy::Shuffle => "shuffle",
        TiePolicy::Basket => "basket",
    }
}

/// A cell, if it is done.
pub(crate) fn read<C: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<C>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let cell = serde_json::from_str(&fs::read_to_string(path)?);
    Ok(Some(cell.map_err(|error| format!("{}: {error}; hint: remove it", path.display()))?))
}

/// The cell in a file; done first if it is not there.
fn keep<C: Serialize + for<'de> Deserialize<'de>>(
    path: &Path,
    compute: impl FnOnce() -> Result<C, Error>,
) -> Result<C, Error> {
    if let Some(cell) = read(path)? {
        return Ok(cell);
    }
    let cell = compute()?;
    let text = serde_json::to_string_pretty(&cell)?;
    write_atomically(path, |writer| std::io::Write::write_all(writer, text.as_bytes()))?;
    Ok(cell)
}

/// Everything asked for of one dataset in one order of ties.
pub(crate) fn compute(request: &Request, dataset: &Dataset, ties: TiePolicy) -> Result<(), Error> {
    let file = request.data.join(dataset.file);
    if !file.exists() {
        eprintln!("{} is not there: left out", file.display());
        return Ok(());
    }
    let (log, _) = read_log(&[file], &ReadOptions::default(), &())?;
    let preset = Preset::find(&format!("sasrec/{}", dataset.preset))?;
    let offset: Option<Offset> = dataset.offset.map(str::parse).transpose()?;
    let scheme = SplitScheme::Calendar {
        valid: offset.unwrap_or(preset.protocol.valid),
        test: offset.unwrap_or(preset.protocol.test),
    };
    let split = Split::new(Timeline::new(&log, ties, 0), scheme)?;
    let configure = |settings: &Table, epochs: i64| -> Result<Configured, Error> {
        let mut settings = settings.clone();
        settings.insert("max_len".to_owned(), Value::Integer(preset.protocol.max_len as i64));
        settings.insert("epochs".to_owned(), Value::Integer(epochs));
        Ok(ModelEntry::find("sasrec")?.configure(&settings)?)
    };
    let label = format!("{} {}", dataset.name, name_of(ties));
    let test = split.test()?;

    if request.losses.iter().any(|loss| loss == "ce") {
        let validation = split.validation()?;
        let mut best: Option<Candidate> = None;
        for (number, text) in dataset.candidates.iter().take(request.candidates).enumerate() {
            let path = path(&request.work, dataset, ties, &format!("candidate-{number}"));
            let candidate: Candidate = keep(&path, || {
                let watch = Watch { label: format!("{label} ce {text:?}"), folder: request.work.clone() };
                let configured = configure(&text.parse()?, request.epochs)?;
                validate(&configured, text, &validation, &watch)
            })?;
            if best.as_ref().is_none_or(|best| candidate.ndcg.value > best.ndcg.value) {
                best = Some(candidate);
            }
        }
        let best = best.ok_or("no candidates")?;
        // Named after what is tested: with more candidates another one may win.
        let number = dataset.candidates.iter().position(|text| *text == best.settings).unwrap_or_default();
        let path = path(&request.work, dataset, ties, &format!("ce-{number}"));
        let _: Tested = keep(&path, || {
            let watch = Watch { label: format!("{label} ce, refit"), folder: request.work.clone() };
            let configured = configure(&best.settings.parse()?, best.best_epoch as i64)?;
            score(&configured, &best.settings, &test, &watch)
        })?;
    }
    if request.losses.iter().any(|loss| loss == "bce") && dataset.paper.is_some() {
        let asked = preset.settings.get("epochs").and_then(Value::as_integer).unwrap_or(100);
        let epochs = asked.min(request.bce_epochs);
        let path = path(&request.work, dataset, ties, &format!("bce-{epochs}"));
        let _: Tested = keep(&path, || {
            let watch = Watch { label: format!("{label} bce"), folder: request.work.clone() };
            let mut settings = preset.settings.clone();
            settings.remove("epochs");
            score(&configure(&settings, epochs)?, &toml::to_string(&settings)?, &test, &watch)
        })?;
    }
    Ok(())
}

/// Trains on the training part alone until the validation part says that it is enough.
fn validate(
    configured: &Configured,
    settings: &str,
    partition: &Partition,
    watch: &Watch,
) -> Result<Candidate, Error> {
    let start = Instant::now();
    let items = partition.train.num_items();
    let stopping = EarlyStopping::new(&partition.holdout, items, NDCG, PATIENCE, watch);
    configured.learner.fit(&partition.train, &stopping)?;
    let outcome = stopping.outcome()?;
    let best = outcome.best.ok_or("no epoch was scored")?;
    Ok(Candidate {
        settings: settings.to_owned(),
        best_epoch: best.iteration,
        epochs: outcome.curve.last().map_or(0, |(epoch, _)| *epoch),
        ndcg: best.estimate,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Trains on all before the test part and scores that.
fn score(
    configured: &Configured,
    settings: &str,
    partition: &Partition,
    watch: &Watch,
) -> Result<Tested, Error> {
    let start = Instant::now();
    let model = configured.learner.fit(&partition.train, watch)?;
    let seconds = start.elapsed().as_secs_f64();
    let items = partition.train.num_items();
    let evaluation = evaluate(&*model, &partition.holdout, items, &EvaluateOptions::default(), &())?;
    Ok(Tested {
        settings: settings.to_owned(),
        epochs: configured.configuration["epochs"].as_u64().unwrap_or(0) as usize,
        ndcg: evaluation.estimate(NDCG),
        hit_rate: evaluation.estimate(Metric { measure: Measure::HitRate, cutoff: 10 }),
        coverage: evaluation.coverage(10),
        events: evaluation.counts.scored,
        seconds,
    })
}

/// Tells of every epoch on stderr and keeps unfinished training.
struct Watch {
    label: String,
    folder: PathBuf,
}

impl Monitor for Watch {
    fn checkpoints(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn progressed(&self, report: &Iteration) {
        let measures: Vec<String> =
            report.measures.iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
        eprintln!(
            "{}, epoch {}: {:.1} s, {}",
            self.label,
            report.iteration,
            report.seconds,
            measures.join(", ")
        );
    }

    fn iteration(&self, report: &Iteration, _: &dyn Snapshot) -> ControlFlow<()> {
        self.progressed(report);
        ControlFlow::Continue(())
    }
}
