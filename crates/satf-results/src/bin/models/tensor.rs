//! GA-SATF and LA-SATF with the paper's configurations, beside the paper's figures; and what the two switches do that the
//! paper is silent about: the start of the iteration and the weights in the update of the item factor.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use satf::evaluate::{EvaluateOptions, evaluate};
use satf::models::{Iteration, Registry, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::{Partition, TiePolicy};
use toml::{Table, Value};

use super::{Error, Log, Scores, head, marked};

/// A dataset, the name its presets go by, and where it is cut.
struct Dataset {
    name: &'static str,
    file: &'static str,
    preset: &'static str,
    offset: &'static str,
    /// NDCG, HR and COV of the paper: GA-SATF, LA-SATF. The sample of Steam compares with nothing.
    paper: Option<[[f64; 3]; 2]>,
}

const DATASETS: [Dataset; 4] = [
    Dataset {
        name: "ML-1M",
        file: "ml-1m.ratings.dat.gz",
        preset: "ml-1m",
        offset: "4months",
        paper: Some([[0.061, 0.112, 0.288], [0.072, 0.132, 0.511]]),
    },
    Dataset {
        name: "AMZ-B (Beauty)",
        file: "amz-beauty.csv.gz",
        preset: "amz-b",
        offset: "3weeks",
        paper: Some([[0.043, 0.079, 0.182], [0.067, 0.114, 0.608]]),
    },
    Dataset {
        name: "AMZ-G (Toys and Games)",
        file: "amz-toys.csv.gz",
        preset: "amz-g",
        offset: "6weeks",
        paper: Some([[0.046, 0.074, 0.241], [0.052, 0.092, 0.426]]),
    },
    Dataset {
        name: "Steam, a sample (not the paper's data)",
        file: "steam-100k-sample.csv.gz",
        preset: "steam",
        offset: "1month",
        paper: None,
    },
];

/// Seeds whose mean is reported.
const SEEDS: [i64; 3] = [1, 2, 3];

/// What an iteration gave.
struct Step {
    core_norm: f64,
    scores: Scores,
}

/// Scores the test events after every iteration.
struct Watch<'a> {
    partition: &'a Partition,
    steps: Mutex<Vec<Step>>,
}

impl Monitor for Watch<'_> {}

impl TrainingMonitor for Watch<'_> {
    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        let measure = |name: &str| report.measures.iter().find(|m| m.0 == name).map_or(f64::NAN, |m| m.1);
        let options = EvaluateOptions::default();
        let items = self.partition.train.num_items();
        let outcome = snapshot
            .recommender()
            .map_err(Error::from)
            .and_then(|model| Ok(evaluate(&*model, &self.partition.holdout, items, &options, &())?));
        if let (Ok(outcome), Ok(mut steps)) = (outcome, self.steps.lock()) {
            steps.push(Step { core_norm: measure("core_norm"), scores: Scores::of(&outcome) });
        }
        ControlFlow::Continue(())
    }
}

/// The page.
pub(super) fn page(data: &Path) -> Result<String, Error> {
    let mut page = head(
        "GA-SATF and LA-SATF with the paper's configurations",
        "tensor",
        "Test split, refit on training + validation, ties in file order, all items ranked, n = 10: the mean of seeds 1-3 ± one \
         standard error, clustered by user, and the lowest and highest NDCG of the seeds. Rows in bold are the presets (random \
         start; GA-SATF with the unweighted item update, as the paper's column evidently was). The others change one switch: \
         `sketch` starts from the data, `weighted` and `unweighted` say whether the item factor is updated with the popularity \
         weights of the objective. The paper's figures carry a mark: = within two standard errors of ours, ▲ ours is above, ▼ \
         below. Core norms are those of seed 1, after each iteration.\n\n\
         A few iterations from a random start are far from their limit on the Amazon logs, and there the seed decides as much as \
         anything else: the paper's figures for LA-SATF lie within the range of three seeds, and the authors' own code gives \
         .0619/.1054/.616 on this very Beauty file. GA-SATF's figures on the Amazon logs are met by neither update nor start: \
         ours are above on Beauty and below on Toys. The start from the data needs an \
         iteration less for the same core norm, and its seeds agree: it is the default. How long all this takes is on the page \
         on [speed](speed.md).",
    );
    for dataset in &DATASETS {
        if let Some(log) = Log::read(&data.join(dataset.file), dataset.offset, dataset.offset)? {
            page.push_str(&section(dataset, &log.cut(TiePolicy::File, 0)?)?);
        }
    }
    Ok(page)
}

fn section(dataset: &Dataset, partition: &Partition) -> Result<String, Error> {
    let mut text = format!(
        "\n## {}\n\n{} valid and test, {} users, {} items, {} events scored\n\n\
         | model | NDCG | HR | COV | NDCG of the seeds | paper | core norms |\n\
         |---|---|---|---|---|---|---|\n",
        dataset.name,
        dataset.offset,
        partition.train.num_users(),
        partition.train.num_items(),
        partition.holdout.counts.scored,
    );
    for (family, at) in [("ga-satf", 0), ("la-satf", 1)] {
        let preset = Registry::default().preset(&format!("{family}/{}", dataset.preset))?;
        let other_update = if family == "ga-satf" { "weighted" } else { "unweighted" };
        let variants = [("", ""), ("start", "sketch"), ("item_update", other_update)];
        for (key, value) in variants {
            let mut settings = preset.settings.clone();
            settings.insert("max_len".into(), Value::Integer(i64::try_from(preset.protocol.max_len)?));
            if !key.is_empty() {
                settings.insert(key.into(), Value::String(value.into()));
            }
            let label = if key.is_empty() { format!("**{}**", preset.name) } else { format!("`{value}`") };
            let paper = dataset.paper.map(|columns| columns[at]).filter(|_| key.is_empty());
            text.push_str(&row(&label, &preset.model, &settings, partition, paper)?);
            eprintln!("{} {family} {value}", dataset.name);
        }
    }
    Ok(text)
}

fn row(
    label: &str,
    model: &str,
    settings: &Table,
    partition: &Partition,
    paper: Option<[f64; 3]>,
) -> Result<String, Error> {
    let runs = SEEDS
        .iter()
        .map(|&seed| {
            let mut settings = settings.clone();
            settings.insert("seed".into(), Value::Integer(seed));
            let watch = Watch { partition, steps: Mutex::default() };
            Registry::default().find(model)?.configure(&settings)?.learner.fit(&partition.train, &watch)?;
            Ok(watch.steps.into_inner()?)
        })
        .collect::<Result<Vec<Vec<Step>>, Error>>()?;
    let last: Vec<Scores> = runs.iter().filter_map(|steps| steps.last()).map(|step| step.scores).collect();
    let ndcg = || last.iter().map(|scores| scores.ndcg.0);
    let norms = runs[0].iter().map(|step| format!("{:.3}", step.core_norm)).collect::<Vec<_>>().join(", ");
    let mean = Scores::mean(&last);
    let mut text = String::new();
    writeln!(
        text,
        "| {label} | {} | {:.4}-{:.4} | {} | {norms} |",
        mean.cells(),
        ndcg().fold(f64::INFINITY, f64::min),
        ndcg().fold(0.0, f64::max),
        paper.map_or_else(String::new, |paper| marked(&mean, paper)),
    )?;
    Ok(text)
}
