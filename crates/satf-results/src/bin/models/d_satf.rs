//! D-SATF on the real datasets: a configuration found on the validation part, the test part, other models beside it, and what each
//! piece of the model is worth.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use satf::data::write_atomically;
use satf::evaluate::{CompareOptions, EvaluateOptions, Evaluation, Measure, Metric, compare, evaluate};
use satf::models::{Recommender, Registry};
use satf::prepare::{Partition, TiePolicy};
use toml::{Table, Value};

use super::{Error, Log, Scores, head};

struct Dataset {
    title: &'static str,
    name: &'static str,
    file: &'static str,
    offset: &'static str,
    preset: &'static str,
    /// What is tried for the rank of the core: the lower, the smaller the catalogue.
    ranks: [i64; 2],
    /// Whether other models and pieces are measured too.
    in_full: bool,
}

const DATASETS: [Dataset; 5] = [
    Dataset {
        title: "ML-1M",
        name: "ml-1m",
        file: "ml-1m.ratings.dat.gz",
        offset: "4months",
        preset: "ml-1m",
        ranks: [64, 250],
        in_full: true,
    },
    Dataset {
        title: "AMZ-B (Beauty)",
        name: "beauty",
        file: "amz-beauty.csv.gz",
        offset: "3weeks",
        preset: "amz-b",
        ranks: [128, 500],
        in_full: true,
    },
    Dataset {
        title: "AMZ-G (Toys and Games)",
        name: "toys",
        file: "amz-toys.csv.gz",
        offset: "6weeks",
        preset: "amz-g",
        ranks: [128, 500],
        in_full: true,
    },
    Dataset {
        title: "Steam, a sample (not the paper's data)",
        name: "steam",
        file: "steam-100k-sample.csv.gz",
        offset: "1month",
        preset: "steam",
        ranks: [64, 250],
        in_full: true,
    },
    Dataset {
        title: "ML-100K (not looked at while the defaults were chosen)",
        name: "ml-100k",
        file: "ml-100k.csv.gz",
        offset: "2weeks",
        preset: "ml-1m",
        ranks: [64, 250],
        in_full: false,
    },
];

/// Seeds of the shuffled tie order whose mean is reported. The search sees the first one.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Where the search begins: the exponents at which rehearsals begin, memory alone.
const START: &str = "recency_decay = 1.0\nbasket_order = 0.0\ndistance_decay = 0.5\ntogether = 2.0\ntarget_power = 0.2\nsource_power = 0.25\n\
                     user_power = 0.1\nsaturation = 30.0\ntrend = 0.3\nbalance = 0.0";

/// What is tried for the memory, one key at a time.
const MEMORY: [(&str, &[f64]); 9] = [
    ("source_power", &[0.15, 0.25, 0.4, 0.6, 0.8]),
    ("target_power", &[0.1, 0.15, 0.2, 0.25, 0.3, 0.4]),
    ("saturation", &[5.0, 15.0, 30.0, 100.0]),
    ("distance_decay", &[0.25, 0.5, 0.75, 1.0]),
    ("trend", &[0.0, 0.15, 0.3, 0.45]),
    ("together", &[1.0, 2.0, 4.0]),
    ("basket_order", &[0.0, 1.0]),
    ("user_power", &[0.0, 0.1, 0.25, 0.5]),
    ("recency_decay", &[0.6, 0.8, 1.0, 1.2]),
];

/// What is tried for the core, all together.
const BALANCES: [f64; 4] = [0.0, 0.1, 0.25, 0.4];
const RIDGES: [f64; 2] = [0.1, 1.0];

/// How often the memory is searched, each time with the core that was best then.
const ROUNDS: usize = 3;

/// What is left out, one at a time.
const PIECES: [(&str, &str); 7] = [
    ("without core", "balance = 0.0"),
    ("core alone", "balance = 1.0"),
    ("without saturation", "saturation = 1e12"),
    ("without trend", "trend = 0.0"),
    ("order of baskets kept", "basket_order = 1.0"),
    ("without attention", "recency_decay = 0.0"),
    ("all distances alike", "distance_decay = 0.0"),
];

/// The page: sections of all datasets that were ever made in the folder of work, those asked for first made.
pub(super) fn page(data: &Path, work: &Path, only: Option<&str>) -> Result<String, Error> {
    fs::create_dir_all(work)?;
    for dataset in DATASETS.iter().filter(|dataset| only.is_none_or(|only| only == dataset.name)) {
        let path = section_path(work, dataset);
        if path.exists() {
            continue;
        }
        if let Some(log) = Log::read(&data.join(dataset.file), dataset.offset, dataset.offset)? {
            let text = section(dataset, &log, work)?;
            write_atomically(&path, |writer| std::io::Write::write_all(writer, text.as_bytes()))?;
        }
    }
    let mut page = head("D-SATF on the real datasets", "d-satf", NOTES);
    for dataset in &DATASETS {
        let path = section_path(work, dataset);
        if path.exists() {
            page.push_str(&fs::read_to_string(path)?);
        }
    }
    Ok(page)
}

/// Where a section is kept. The name says how its errors were made: sections with others are made again.
fn section_path(work: &Path, dataset: &Dataset) -> PathBuf {
    work.join(format!("{}.errors-by-user.md", dataset.name))
}

const NOTES: &str = "\
The configuration is found on the validation part, for each tie order by itself (of the shuffled ones the first seed's): one key of the \
memory at a time, then rank, ridge and balance of the core, three times around as long as something is gained, then the model without any \
key, by NDCG@10 alone. Then the model is refitted on training + validation and the test part is scored once: all \
items ranked, n = 10, ± one standard error, clustered by user; `shuffle` is the mean of seeds 1-3. `p` is of a paired permutation test against the tuned D-SATF, users \
drawn as a whole; with ties shuffled the largest of three. `defaults` is the model without any key given. The other models run with the \
paper's configurations (LA-SATF, PureSVD-N) or their defaults. Below the line one piece of the tuned model is left out at a time (with ties shuffled: \
seed 1). Seconds are of training, all in one run.";

fn section(dataset: &Dataset, log: &Log, work: &Path) -> Result<String, Error> {
    let mut text = format!("\n## {}\n", dataset.title);
    for ties in [TiePolicy::File, TiePolicy::Shuffle] {
        let name = if ties == TiePolicy::File { "file" } else { "shuffle" };
        let label = format!("{} {name}", dataset.name);
        let path = work.join(format!("{}.{name}.toml", dataset.name));
        let seeds = if ties == TiePolicy::File { &SEEDS[..1] } else { &SEEDS[..] };
        if !path.exists() {
            let validation = log.split(ties, SEEDS[0])?.validation()?;
            let found = search(dataset, validation, &label)?;
            let found = toml::to_string(&found)?;
            write_atomically(&path, |writer| std::io::Write::write_all(writer, found.as_bytes()))?;
        }
        let found: Table = fs::read_to_string(&path)?.parse()?;
        let parts = seeds.iter().map(|&seed| log.cut(ties, seed)).collect::<Result<Vec<_>, _>>()?;
        let mut keys: Vec<String> = found.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if keys.is_empty() {
            keys.push("nothing that was tried is better than the defaults".to_owned());
        }
        write!(
            text,
            "\nTies `{name}`: {}\n\n| | NDCG | HR | COV | p | train s |\n|---|---|---|---|---|---|\n",
            keys.join(", ")
        )?;

        let tuned = Run::new("**D-SATF**", "d-satf", &found, &parts)?;
        text.push_str(&tuned.row(None));
        let mut others = vec![("D-SATF, defaults", "d-satf".to_owned(), Table::new())];
        if dataset.in_full {
            for (label, model) in [("LA-SATF", "la-satf"), ("PureSVD-N", "pure-svd-n")] {
                let preset = Registry::default().preset(&format!("{model}/{}", dataset.preset))?;
                let mut settings = preset.settings;
                if Registry::default().find(&preset.model)?.defaults().contains_key("max_len") {
                    settings.insert("max_len".to_owned(), Value::Integer(preset.protocol.max_len as i64));
                }
                others.push((label, preset.model, settings));
            }
            for (label, model) in [("EASE", "ease"), ("VMIS-kNN", "vmis-knn"), ("transitions", "transitions")]
            {
                others.push((label, model.to_owned(), Table::new()));
            }
        }
        for (label, model, settings) in &others {
            eprintln!("{} {name}: {label}", dataset.name);
            text.push_str(&Run::new(label, model, settings, &parts)?.row(Some(&tuned)));
        }
        if dataset.in_full {
            text.push_str("| | | | | | |\n");
            for (label, change) in PIECES {
                let changed: Table = change.parse()?;
                let (key, value) = changed.iter().next().ok_or("a piece without a key")?;
                if found.get(key).and_then(Value::as_float) == value.as_float() {
                    continue;
                }
                let settings = with(&found, key, value.clone());
                eprintln!("{} {name}: {label}", dataset.name);
                let run = Run::new(label, "d-satf", &settings, &parts[..1])?;
                text.push_str(&run.row(Some(&tuned)));
            }
        }
    }
    Ok(text)
}

fn with(settings: &Table, key: &str, value: Value) -> Table {
    let mut settings = settings.clone();
    settings.insert(key.to_owned(), value);
    settings
}

/// The best configuration on the validation part; empty if what the model learns by itself is better
/// than all that was tried.
fn search(dataset: &Dataset, part: Partition, label: &str) -> Result<Table, Error> {
    let mut search =
        Search { ranks: dataset.ranks, part, best: START.parse()?, value: f64::NEG_INFINITY, tried: 0 };
    search.attempt(search.best.clone())?;
    for _ in 0..ROUNDS {
        let before = search.value;
        for (key, values) in MEMORY {
            for &value in values {
                if search.best.get(key).and_then(Value::as_float) != Some(value) {
                    search.attempt(with(&search.best, key, Value::Float(value)))?;
                }
            }
        }
        eprintln!("{label}: {:.4} with {:?}", search.value, search.best);
        if search.value <= before {
            break;
        }
        search.cores()?;
    }
    search.attempt(Table::new())?;
    eprintln!("{label}: {:.4} after {} configurations with {:?}", search.value, search.tried, search.best);
    Ok(search.best)
}

struct Search {
    ranks: [i64; 2],
    part: Partition,
    best: Table,
    value: f64,
    tried: usize,
}

impl Search {
    /// Keeps a configuration that is better than the best so far.
    fn attempt(&mut self, settings: Table) -> Result<(), Error> {
        let value = Run::new("", "d-satf", &settings, std::slice::from_ref(&self.part))?.scores.ndcg.0;
        self.tried += 1;
        if value > self.value {
            (self.best, self.value) = (settings, value);
        }
        Ok(())
    }

    fn cores(&mut self) -> Result<(), Error> {
        let memory = self.best.clone();
        for balance in BALANCES {
            let settings = with(&memory, "balance", Value::Float(balance));
            if balance == 0.0 {
                self.attempt(settings)?;
                continue;
            }
            for rank in self.ranks {
                for ridge in RIDGES {
                    let settings = with(&settings, "rank", Value::Integer(rank));
                    self.attempt(with(&settings, "regularization", Value::Float(ridge)))?;
                }
            }
        }
        Ok(())
    }
}

/// A model on one part, or on the same part with ties in several orders.
struct Run {
    label: String,
    scores: Scores,
    evaluations: Vec<Evaluation>,
    /// Of the first training.
    seconds: f64,
}

const NDCG: Metric = Metric { measure: Measure::Ndcg, cutoff: 10 };

impl Run {
    fn new(label: &str, model: &str, settings: &Table, parts: &[Partition]) -> Result<Self, Error> {
        let learner = Registry::default().find(model)?.configure(settings)?.learner;
        let reads_order = !matches!(model, "ease" | "pure-svd");
        let mut fitted: Option<Box<dyn Recommender>> = None;
        let (mut evaluations, mut seconds) = (Vec::new(), None);
        for part in parts {
            let model = match fitted.take() {
                Some(model) if !reads_order => model,
                _ => {
                    let start = Instant::now();
                    let model = learner.fit(&part.train, &())?;
                    seconds.get_or_insert(start.elapsed().as_secs_f64());
                    model
                }
            };
            let items = part.train.num_items();
            evaluations.push(evaluate(&*model, &part.holdout, items, &EvaluateOptions::default(), &())?);
            fitted = Some(model);
        }
        let scores: Vec<Scores> = evaluations.iter().map(Scores::of).collect();
        Ok(Run {
            label: label.to_owned(),
            scores: Scores::mean(&scores),
            evaluations,
            seconds: seconds.unwrap_or(0.0),
        })
    }

    fn row(&self, against: Option<&Run>) -> String {
        let p_value = against.map(|other| {
            let pairs = self.evaluations.iter().zip(&other.evaluations);
            pairs.map(|(one, other)| p_value(one, other)).fold(0.0, f64::max)
        });
        let shown = match p_value {
            None => String::new(),
            Some(p) if p < 0.001 => "< .001".to_owned(),
            Some(p) => format!("{p:.3}"),
        };
        format!("| {} | {} | {shown} | {:.2} |\n", self.label, self.scores.cells(), self.seconds)
    }
}

/// Two-sided, users as a whole.
fn p_value(one: &Evaluation, other: &Evaluation) -> f64 {
    let values = |evaluation: &Evaluation| -> Vec<f64> {
        evaluation.ranks.iter().map(|rank| NDCG.value(*rank)).collect()
    };
    let compared = compare(&values(one), &values(other), &one.users, &CompareOptions::default(), &());
    compared.expect("nobody stops it").p_value
}
