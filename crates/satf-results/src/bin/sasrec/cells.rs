//! One training after the other, each kept in a file once it is done.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use satf::data::{ReadOptions, read_log, write_atomically};
use satf::evaluate::{Estimate, EvaluateOptions, Measure, Metric, evaluate};
use satf::experiment::{Validation, fit_with_validation};
use satf::model_file::content_hash;
use satf::models::{Checkpoints, Configured, Iteration, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::{Offset, Partition, Split, SplitScheme, TiePolicy, Timeline};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Dataset, Error, Request};

/// Early stopping ends after so many epochs without improvement.
const PATIENCE: usize = 10;
const NDCG: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

/// A finished cell: what was asked, and what came of it. A cell of another question is done again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cell<R> {
    pub(crate) asked: Question,
    pub(crate) result: R,
}

/// Everything a cell depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Keys of the model.
    pub(crate) settings: String,
    /// Most epochs.
    pub(crate) epochs: i64,
    /// Epochs without improvement after which early stopping ends a candidate.
    pub(crate) patience: Option<usize>,
    /// The hash of the training set.
    data: String,
}

/// A candidate on the validation set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) best_epoch: usize,
    pub(crate) epochs: usize,
    pub(crate) ndcg: Estimate,
}

/// A configuration on the test set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tested {
    pub(crate) ndcg: Estimate,
    pub(crate) hit_rate: Estimate,
    pub(crate) coverage: f64,
    pub(crate) events: usize,
    /// Seconds of the fastest epoch: others may have shared the machine.
    pub(crate) fastest_epoch: f64,
}

/// The file of a cell. Its name says how errors were made: cells with others are done again.
pub(crate) fn path(work: &Path, dataset: &Dataset, ties: TiePolicy, what: &str) -> PathBuf {
    work.join(format!("{}.{}.{what}.errors-by-user.json", dataset.name, name_of(ties)))
}

pub(crate) fn name_of(ties: TiePolicy) -> &'static str {
    match ties {
        TiePolicy::File => "file",
        TiePolicy::Shuffle => "shuffle",
        TiePolicy::Basket => "basket",
    }
}

/// A cell, if it is done.
pub(crate) fn read<R: DeserializeOwned>(path: &Path) -> Result<Option<Cell<R>>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let cell = serde_json::from_str(&fs::read_to_string(path)?);
    Ok(Some(cell.map_err(|error| format!("{}: {error}; hint: remove it", path.display()))?))
}

/// The cell in a file; done first if it is not there, or if it is the answer to another question.
fn keep<R: Serialize + DeserializeOwned>(
    path: &Path,
    asked: Question,
    compute: impl FnOnce() -> Result<R, Error>,
) -> Result<Cell<R>, Error> {
    if let Some(cell) = read(path)? {
        if cell.asked == asked {
            return Ok(cell);
        }
        let asked = serde_json::to_string(&asked)?;
        eprintln!("{}: done again, for what is asked now is {asked}", path.display());
    }
    let cell = Cell { asked, result: compute()? };
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
    let preset = satf_sasrec::registry().preset(&format!("sasrec/{}", dataset.preset))?;
    let offset: Option<Offset> = dataset.offset.map(str::parse).transpose()?;
    let scheme = SplitScheme::Calendar {
        valid: offset.unwrap_or(preset.protocol.valid),
        test: offset.unwrap_or(preset.protocol.test),
    };
    let split = Split::new(Timeline::new(&log, ties, 0), scheme)?;
    let max_len = preset.protocol.max_len as i64;
    let path = |what: &str| path(&request.work, dataset, ties, what);
    let watch = |what: &str| {
        let label = format!("{} {} {what}", dataset.name, name_of(ties));
        Watch { label, folder: request.work.clone(), fastest: Mutex::new(f64::INFINITY) }
    };
    let test = split.test()?;
    let data = content_hash(&test.train);

    if request.losses.iter().any(|loss| loss == "ce") {
        let validation = split.validation()?;
        let of_validation = content_hash(&validation.train);
        let mut best: Option<Cell<Candidate>> = None;
        for (number, settings) in dataset.candidates.iter().take(request.candidates).enumerate() {
            let asked = Question {
                settings: (*settings).to_owned(),
                epochs: request.epochs,
                patience: Some(PATIENCE),
                data: of_validation.clone(),
            };
            let candidate = keep(&path(&format!("candidate-{number}")), asked.clone(), || {
                validate(&configure(&asked, max_len)?, &validation, &watch(&format!("ce {settings:?}")))
            })?;
            if best.as_ref().is_none_or(|best| candidate.result.ndcg.value > best.result.ndcg.value) {
                best = Some(candidate);
            }
        }
        let best = best.ok_or("no candidates")?;
        let epochs = best.result.best_epoch as i64;
        let asked = Question { settings: best.asked.settings, epochs, patience: None, data: data.clone() };
        keep(&path("ce"), asked.clone(), || score(&configure(&asked, max_len)?, &test, watch("ce, refit")))?;
    }
    if request.losses.iter().any(|loss| loss == "bce") && dataset.paper.is_some() {
        let mut settings = preset.settings.clone();
        let of_paper = settings.remove("epochs").and_then(|epochs| epochs.as_integer()).unwrap_or(100);
        let epochs = of_paper.min(request.bce_epochs);
        let asked = Question { settings: toml::to_string(&settings)?, epochs, patience: None, data };
        keep(&path(&format!("bce-{epochs}")), asked.clone(), || {
            score(&configure(&asked, max_len)?, &test, watch("bce"))
        })?;
    }
    Ok(())
}

fn configure(asked: &Question, max_len: i64) -> Result<Configured, Error> {
    let mut settings: Table = asked.settings.parse()?;
    settings.insert("max_len".to_owned(), Value::Integer(max_len));
    settings.insert("epochs".to_owned(), Value::Integer(asked.epochs));
    Ok(satf_sasrec::registry().find("sasrec")?.configure(&settings)?)
}

/// Trains on the training set alone until the validation set says that it is enough.
fn validate(configured: &Configured, partition: &Partition, watch: &Watch) -> Result<Candidate, Error> {
    let validation = Validation::new(partition, NDCG, PATIENCE);
    let validated = fit_with_validation(&*configured.learner, &validation, watch)?;
    let (best_epoch, ndcg) = validated.best.ok_or("no epoch was scored")?;
    let epochs = validated.curve.last().map_or(0, |(epoch, _)| *epoch);
    Ok(Candidate { best_epoch, epochs, ndcg })
}

/// Trains on all before the test set and scores that.
fn score(configured: &Configured, partition: &Partition, watch: Watch) -> Result<Tested, Error> {
    let model = configured.learner.fit(&partition.train, &watch)?;
    let items = partition.train.num_items();
    let evaluation = evaluate(&*model, &partition.holdout, items, &EvaluateOptions::default(), &())?;
    Ok(Tested {
        ndcg: evaluation.estimate(NDCG),
        hit_rate: evaluation.estimate(Metric { measure: Measure::HitRate, cutoff: 10 }),
        coverage: evaluation.coverage(10),
        events: evaluation.counts.scored,
        fastest_epoch: watch.fastest.into_inner()?,
    })
}

/// Tells of every epoch on stderr and keeps unfinished training.
struct Watch {
    label: String,
    folder: PathBuf,
    /// Seconds of the fastest epoch.
    fastest: Mutex<f64>,
}

impl Watch {
    fn time(&self, seconds: f64) {
        if let Ok(mut fastest) = self.fastest.lock() {
            *fastest = fastest.min(seconds);
        }
    }
}

impl Monitor for Watch {}

impl TrainingMonitor for Watch {
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }

    fn progressed(&self, report: &Iteration) {
        self.time(report.seconds);
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

impl Checkpoints for Watch {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn resumed(&self, earlier: &[Iteration]) {
        for report in earlier {
            self.time(report.seconds);
        }
    }
}
