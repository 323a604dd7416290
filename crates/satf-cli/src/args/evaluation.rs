//! What is compared, under which protocol.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PathBufValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use satf::evaluate::{Metric, ResampleUnit, SeenPolicy};
use satf::prepare::{Offset, TiePolicy};

use super::LogArguments;
use super::values::{NamedFile, length, parse_level, parse_named_file, parse_size, parse_unpacked, seed};

/// Which models, and how they are configured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Models")]
pub(crate) struct ModelArguments {
    /// Models, separated by commas
    #[arg(short, long, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Configurations of the paper, such as la-satf/amz-b, separated by commas; each includes its protocol
    #[arg(long, value_name = "PRESET", value_delimiter = ',')]
    pub(crate) preset: Vec<String>,
    /// A TOML file with the model's keys, or with one table per model; options win over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A key of the model, such as rank=200 (with several models: pure-svd.rank=200); may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub(crate) set: Vec<String>,
    /// Memory that training may use, such as 1GiB or 800MB, for models that plan for it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Protocol")]
pub(crate) struct ProtocolArguments {
    /// Length of the validation set, counted back from the test set: 3weeks, 4months, 1day
    #[arg(long, value_name = "OFFSET", conflicts_with = "order_is_time")]
    pub(crate) valid: Option<Offset>,
    /// Length of the test set, counted back from the newest time
    #[arg(long, value_name = "OFFSET", conflicts_with = "order_is_time")]
    pub(crate) test: Option<Offset>,
    /// How the log is cut; leave-one-out leaks the future and exists for comparison with older work
    #[arg(long, value_enum, default_value_t = SplitArgument::Calendar)]
    pub(crate) split: SplitArgument,
    /// What to score: the test set, after training on everything before it, or the validation set
    #[arg(long, value_enum, default_value_t = PartArgument::Test)]
    pub(crate) on: PartArgument,
    /// Order of one user's events with equal times: file, shuffle (drawn by the seed) or basket (drawn too, but events of one
    /// time are predicted from strictly earlier ones only) [default: shuffle; presets: file]
    #[arg(long, value_name = "POLICY", value_parser = str::parse::<TiePolicy>)]
    pub(crate) ties: Option<TiePolicy>,
    /// Items left out of a ranking: the user's own, or those of all earlier events too (pooled: only for reproducing
    /// the paper's MP column)
    #[arg(long, value_name = "WHOSE", default_value = "own", value_parser = str::parse::<SeenPolicy>)]
    pub(crate) seen: SeenPolicy,
    /// Longest history that order-aware models look at (baselines without positions use all of it)
    #[arg(long, value_name = "K", value_parser = length())]
    pub(crate) max_len: Option<usize>,
    /// Seed for everything random [default: 0]
    #[arg(long, value_name = "SEED", value_parser = seed())]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(mut_arg("model", |model| model.help("Models, separated by commas: names, or model files (.satf, or a path), which are scored as they are [default: d-satf]")), after_help = "Examples:
  satf evaluate log.parquet
  satf evaluate log.parquet --model mp,pure-svd,transitions
  satf evaluate amz-beauty.csv.gz --model pure-svd --set rank=2000 --set scaling=0.6 \\
      --valid 3weeks --test 3weeks --ties file --json
  satf evaluate log.parquet --model transitions --per-event transitions.parquet
  satf evaluate log.parquet --model d-satf,today.satf
  satf evaluate log.parquet --test 3weeks --export cut
  satf evaluate log.parquet --test 3weeks --model d-satf --lists other.csv --lists old=lists.jsonl

`satf models` lists the models with their keys. Without offsets, the shortest usual ones that hold enough
events are used, or else those that leave a tenth of the rows to each set; a warning says which. A model that cannot run
on the log is reported and left out; the exit code is then 1.

--lists reads CSV or TSV with a header, JSON lines or Parquet. Columns: user_id (one list for all events of the user), or user_id
and timestamp (of the event), or event_id (as --export has it); item_id with rank or score, or items (whole lists, best first).
Items that the user already has are taken out, as for models; an event without a list is a miss.")]
pub(crate) struct EvaluateArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) models: ModelArguments,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArguments,
    /// Stop iterative models when this metric on the validation set no longer improves, then train again on the training
    /// and validation sets with the best number of iterations
    #[arg(long, value_name = "METRIC", num_args = 0..=1, default_missing_value = "NDCG@10")]
    pub(crate) early_stopping: Option<Metric>,
    /// With --early-stopping, stop after this many iterations without improvement
    #[arg(long, value_name = "N", default_value_t = 3, requires = "early_stopping", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) patience: usize,
    /// Save unfinished training in this folder and resume from it, for models that take long to train (sasrec)
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Lists of recommendations that any tool made, to be scored like models; may be repeated
    #[arg(long, value_name = "[NAME=]FILE", action = ArgAction::Append, value_parser = OsStringValueParser::new().try_map(parse_named_file))]
    pub(crate) lists: Vec<NamedFile>,
    /// Write what models learn from (train.csv) and the histories of the events to predict (events.jsonl) to this folder, for
    /// other tools; without --model and --lists, nothing is scored
    #[arg(long, value_name = "DIR")]
    pub(crate) export: Option<PathBuf>,
    /// Lengths of the lists that are scored: the cut-offs of the metrics
    #[arg(long, value_name = "N", default_value = "10", value_delimiter = ',', value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) at: Vec<usize>,
    /// Write the rank and the metrics of every event (CSV if the name ends in .csv, else Parquet); with several
    /// models, each model's name is inserted before the ending
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(parse_unpacked))]
    pub(crate) per_event: Option<PathBuf>,
    /// What standard errors (±) treat as independent: users by default, because events of one user are alike
    #[arg(long, value_enum, default_value_t = UnitArgument::User)]
    pub(crate) unit: UnitArgument,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf evaluate log.parquet --model transitions,pure-svd --per-event scores.parquet
  satf compare scores.pure-svd.parquet scores.transitions.parquet
  satf compare yesterday.parquet today.parquet --fail-if-worse --level .01

Each file is compared with the first. A p-value below .01 means that the difference is unlikely to be chance.

With --fail-if-worse the exit code is 3 if a file is worse than the first: its metric is lower, and the p-value of the difference
is below --level, divided by the number of files that are compared with the first.")]
pub(crate) struct CompareArguments {
    /// Files written by `satf evaluate --per-event`; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What is resampled as a whole: users by default, because events of one user are alike
    #[arg(long, value_enum, default_value_t = UnitArgument::User)]
    pub(crate) unit: UnitArgument,
    /// Number of draws of the bootstrap and of the permutation test
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(100..=10_000_000))]
    pub(crate) draws: usize,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// End with exit code 3 if a file is worse than the first in this metric [default: the first metric of the files]
    #[arg(long, value_name = "METRIC", num_args = 0..=1, require_equals = true)]
    #[allow(
        clippy::option_option,
        reason = "the option may stand alone, and then the files say which metric"
    )]
    pub(crate) fail_if_worse: Option<Option<Metric>>,
    /// With --fail-if-worse, the p-value below which a difference counts
    #[arg(long, value_name = "P", default_value_t = 0.05, requires = "fail_if_worse", value_parser = parse_level)]
    pub(crate) level: f64,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    mut_arg("model", |model| model.required_unless_present("preset")),
    // Nothing is ranked.
    mut_arg("seen", |seen| seen.hide(true)),
    after_help = "Examples:
  satf plan log.parquet --model la-satf
  satf plan amz-beauty.csv.gz --preset la-satf/amz-b --memory 1GiB")]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) models: ModelArguments,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArguments,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf reproduce --data data --out reproduction
  satf reproduce --data data --out reproduction --only amz-b,la-satf,pure-svd
  satf reproduce --data data --out tuned --tune --trials 200
  satf reproduce --data . --out shop --suite shop.toml

Datasets are looked for in the data folder by their usual names (ml-1m.ratings.dat.gz, amz-beauty.csv.gz,
reviews_Beauty_5.json.gz, …); those that are not there are left out. Every cell of the tables is kept in OUT/cells as soon
as it is done. After a stop or a kill, run the same command again: it continues, and computes again only what was made
from other data, settings or seeds. The report is OUT/report.html (one file that needs no network), .md and .json; its charts are
in OUT/charts as SVG (and as PNG, if satf was built with the feature png).

A suite of your own:
  title = \"Our shop\"
  [[datasets]]
  name = \"shop\"
  files = [\"shop.parquet\"]
  valid = \"1month\"
  test = \"1month\"
  max_len = 50
  [[models]]
  name = \"PureSVD\"
  model = \"pure-svd\"
  settings = { rank = 50 }
  on.shop = { scaling = 0.4 }
Models may also have: seen, random_start (repeat it in file order too), extra (a table of its own), tune. Figures that
others published go under [published.shop]: PureSVD = { ndcg = [0.046, 0.002], hr = [0.082, 0.004], cov = 0.251 }.")]
pub(crate) struct ReproduceArguments {
    /// Folder with the datasets
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Folder of the report and of everything done so far
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// What to run, as TOML [default: the paper's datasets and models]
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Only these datasets and models, by name, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Also run these models, which the suite leaves out by default, such as SASRec
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub(crate) with: Vec<String>,
    /// Search for configurations on the validation set instead of using the suite's
    #[arg(long)]
    pub(crate) tune: bool,
    /// Trials of the search, for each model and dataset
    #[arg(long, value_name = "N", default_value_t = 30, requires = "tune", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) trials: usize,
    /// The first seed; others follow it
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = seed())]
    pub(crate) seed: u64,
    /// Write the figures as JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  satf models")]
pub(crate) struct ModelsArguments {
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  satf demo")]
pub(crate) struct DemoArguments {
    /// Seed of the made-up log
    #[arg(long, default_value_t = satf::generate::ShopOptions::default().seed)]
    pub(crate) seed: u64,
    /// Write the figures as JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitArgument {
    Calendar,
    LeaveOneOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartArgument {
    Test,
    Validation,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnitArgument {
    User,
    Event,
}

impl From<UnitArgument> for ResampleUnit {
    fn from(unit: UnitArgument) -> Self {
        match unit {
            UnitArgument::User => ResampleUnit::User,
            UnitArgument::Event => ResampleUnit::Event,
        }
    }
}
