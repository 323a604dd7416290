//! What all cells together say: the content of the report, before any page is made of it.

use satf::evaluate::ResampleUnit;
use satf::prepare::Statistics;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::standing::{Figure, Mark, Place};

/// The measures of the tables, as columns.
pub const MEASURES: [&str; 3] = ["NDCG@10", "HR@10", "COV@10"];

/// Everything the report says.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The heading of the report.
    pub title: String,
    /// What published figures are called, such as `paper`.
    pub published_by: String,
    /// How it was made.
    pub made: Made,
    /// What was found on each dataset.
    pub datasets: Vec<DatasetFindings>,
    /// Titles of datasets whose files were not there.
    pub missing: Vec<String>,
    /// Cells that could not be filled, each with the reason.
    pub failed: Vec<String>,
}

/// How it was made.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    /// The command that asked for it.
    pub command: String,
    /// The release that wrote it.
    pub satf_version: &'static str,
    /// Operating system and architecture.
    pub system: String,
    /// The numbers of threads that cells ran on.
    pub threads: Vec<usize>,
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
    /// Whether configurations were searched for.
    pub tuned: bool,
    /// What standard errors take for one observation.
    pub error_unit: ResampleUnit,
    /// How many cells are done.
    pub cells: usize,
    /// Wall-clock seconds of all cells together.
    pub seconds: f64,
}

/// One dataset.
#[derive(Clone, Debug, Serialize)]
pub struct DatasetFindings {
    /// Its short name, as in names of files.
    pub name: String,
    /// Its name in the report.
    pub title: String,
    /// What a reader should know of it.
    pub note: Option<String>,
    /// The name of its file.
    pub file: String,
    /// The length of the validation set.
    pub valid: String,
    /// The length of the test set.
    pub test: String,
    /// The longest history that models of order look at.
    pub max_len: usize,
    /// Its size.
    pub statistics: Statistics,
    /// A row per model.
    pub rows: Vec<Row>,
}

/// A model on a dataset.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name in the report.
    pub model: String,
    /// What a reader should know of it.
    pub note: Option<String>,
    /// Whether it stands in the table of further models.
    pub extra: bool,
    /// The command that scores it alone; none if it was not run.
    pub command: Option<String>,
    /// All its keys.
    pub configuration: Option<Value>,
    /// Scores with ties as in the file.
    pub file: Option<Scores>,
    /// Scores with ties shuffled.
    pub shuffled: Option<Scores>,
    /// What others published of it.
    pub published: Option<Published>,
    /// The places of what was published.
    pub published_places: [Place; 3],
    /// How ours in file order stand to what was published.
    pub marks: Option<[Mark; 3]>,
    /// Seconds of training, the mean of the runs in file order.
    pub train_seconds: Option<f64>,
    /// The target on the validation set, iteration by iteration.
    pub curve: Vec<Step>,
    /// Iterations that were configured.
    pub iterations: Option<u64>,
    /// Training time by rank.
    pub rank_seconds: Vec<(usize, f64)>,
    /// What an item counts by its lag.
    pub lag_weights: Option<Vec<f64>>,
    /// Attention that was given, by distance from 1 on.
    pub attention: Option<Vec<f64>>,
}

/// The mean of some runs.
#[derive(Clone, Debug, Serialize)]
pub struct Scores {
    /// The figures in the order of [`MEASURES`].
    pub figures: [Figure; 3],
    /// Their places among the models.
    pub places: [Place; 3],
    /// The seeds of the runs.
    pub seeds: Vec<u64>,
    /// How many events were scored.
    pub events: usize,
}

/// The target after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The iteration, from 1 on.
    pub iteration: usize,
    /// The target.
    pub value: f64,
    /// Its standard error.
    pub stderr: Option<f64>,
}

/// NDCG and HR at 10 with their standard errors, and COV, as they were published.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// NDCG and its standard error.
    pub ndcg: [f64; 2],
    /// HR and its standard error.
    pub hr: [f64; 2],
    /// COV, which has no error.
    pub cov: f64,
}

impl Findings {
    /// How many published figures ours stand how to.
    pub fn tally(&self) -> Vec<(Mark, usize)> {
        let marks =
            || self.datasets.iter().flat_map(|dataset| &dataset.rows).filter_map(|row| row.marks).flatten();
        Mark::ALL.map(|mark| (mark, marks().filter(|&other| other == mark).count())).to_vec()
    }
}

impl Published {
    /// The figures in the order of [`MEASURES`].
    pub fn figures(&self) -> [Figure; 3] {
        let with_error = |[value, stderr]: [f64; 2]| Figure::published(value, Some(stderr));
        [with_error(self.ndcg), with_error(self.hr), Figure::published(self.cov, None)]
    }

    /// What no such figure can be: all of them are shares, and so are their errors.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        let [ndcg, hr] = [self.ndcg, self.hr];
        let figures = [("ndcg", ndcg[0]), ("ndcg", ndcg[1]), ("hr", hr[0]), ("hr", hr[1]), ("cov", self.cov)];
        let wrong = figures.into_iter().filter(|(_, figure)| !(0.0..=1.0).contains(figure));
        wrong.map(|(name, figure)| format!("{name} = {figure:?}: expected numbers from 0 to 1"))
    }
}
