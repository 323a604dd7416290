//! The search for configurations.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use satf::evaluate::Metric;
use satf::tune::Sampler;

use super::values::parse_seconds;
use super::{LogArguments, ModelArguments, ProtocolArguments};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    // The search is on the validation set, the end on the test set.
    mut_arg("on", |on| on.hide(true)),
    mut_arg("model", |model| model.required_unless_present("preset")),
    after_help = "Examples:
  satf tune log.parquet --model d-satf --trials 30
  satf tune log.parquet --model pure-svd --sampler exhaustive
  satf tune amz-beauty.csv.gz --model la-satf --space paper --trials 30 --seed 1 \\
      --valid 3weeks --test 3weeks --ties file --study beauty
  satf tune log.parquet --model ga-satf --sampler tpe --time-budget 30min --set max_len=100
  satf tune log.parquet --model transitions --space mine.toml
  satf tune status beauty

A trial is one training. It is scored on the validation set after every iteration and for every value of keys that
play no part in training (rescaled; rank of pure-svd; balance and regularization of d-satf), so it stands for many
configurations. At the end the best of them is trained on the training and validation sets, and scored once on the test set.

Every trial is on disk before the next one begins. After a stop, a kill or a power cut, run the same command
again: it continues and ends with the same result. --trials, --time-budget and --jobs may change.

A space of your own:
  keys.rank = [{ from = 100, to = 900, step = 100 }, 1500]
  keys.scaling = { from = 0.0, to = 1.0, step = 0.2 }
  constraints = [\"rank < 1000 or scaling <= 0.6\"]
Ranges have a step, or `log` = how many values, evenly spaced in the logarithm. Keys given with --set are held fixed."
)]
pub(crate) struct TuneArguments {
    #[command(subcommand)]
    pub(crate) command: Option<TuneCommand>,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) models: ModelArguments,
    #[command(flatten)]
    pub(crate) search: SearchArguments,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArguments,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TuneCommand {
    /// Show how far a study has come, the best so far and the time left
    #[command(after_help = "Example:
  satf tune status beauty")]
    Status {
        /// The folder of the study
        #[arg(value_name = "DIR")]
        study: PathBuf,
        /// Write JSON to stdout
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArguments {
    /// The search space: its name (paper, paper-long, small, default), or a TOML file, whose name ends in .toml or has a / in it
    /// [default: paper, or default for models that are not in the paper]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) space: Option<PathBuf>,
    /// How it is searched: random (without replacement), tpe or exhaustive
    #[arg(long, value_name = "SAMPLER", default_value = "random", value_parser = str::parse::<Sampler>)]
    pub(crate) sampler: Sampler,
    /// Maximum number of trials (trainings) [default: 30; all with exhaustive or --time-budget]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) trials: Option<usize>,
    /// Time for trials, over all runs of the study: 90s, 30min, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) time_budget: Option<f64>,
    /// Trials run at once; they share threads and memory. Results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) jobs: usize,
    /// The metric to maximise on the validation set
    #[arg(long, value_name = "METRIC", default_value = "NDCG@10")]
    pub(crate) metric: Metric,
    /// Stop iterative models after this many iterations without improvement [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) patience: Option<usize>,
    /// Folder of the study [default: satf-studies/LOG.MODEL.SPACE.HASH, by what is asked]
    #[arg(long, value_name = "DIR")]
    pub(crate) study: Option<PathBuf>,
}
