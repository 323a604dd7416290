//! The command line: what can be asked, and how it becomes objects of the library.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use satf::data::{Format, IdType, ReadOptions, TimeUnit};
use satf::evaluate::{Metric, ResampleUnit, SeenPolicy};
use satf::models::Quantization;
use satf::prepare::{Duplicates, Offset, TiePolicy};
use satf::tune::Sampler;

/// Next-item recommendation from ordered histories, on a CPU.
#[derive(Debug, Parser)]
#[command(
    name = "satf",
    version,
    arg_required_else_help = true,
    after_help = "Examples:
  satf demo                                          everything at once, on a made-up shop log
  satf stats ratings.csv                             what is in a log
  satf prepare reviews.json.gz --core 5 -o log.parquet
  satf evaluate log.parquet --model mp,pure-svd,transitions
  satf train log.parquet -o shop.satf
  satf recommend shop.satf --history \"laptop,laptop sleeve\"
  satf tune log.parquet --model la-satf --trials 30

Exit codes: 0 done, 1 it could not be done (stderr says why), 2 the command line is wrong, 130 interrupted."
)]
pub(crate) struct Arguments {
    /// Number of threads [default: all cores]. Results do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Option<usize>,
    /// No progress and no warnings on stderr.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Details of the work on stderr.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn raw logs into one compact file that every other command reads
    Prepare(PrepareArguments),
    /// Show size and shape of a log
    Stats(StatsArguments),
    /// Train models on the past of a log and score them on its future
    Evaluate(EvaluateArguments),
    /// Train a model on a whole log and keep it in a file
    Train(TrainArguments),
    /// Say what comes next, for one history or for millions
    Recommend(RecommendArguments),
    /// Show the items most like an item
    Similar(SimilarArguments),
    /// Show what is in a model file
    Inspect(InspectArguments),
    /// Search for a model's best configuration, in a study that survives interruptions
    Tune(Box<TuneArguments>),
    /// Say what training will cost before anything runs
    Plan(PlanArguments),
    /// Test whether two evaluations really differ, event by event
    Compare(CompareArguments),
    /// List the models with their keys and defaults
    Models(ModelsArguments),
    /// Make up a shop log in which order matters
    Generate(GenerateArguments),
    /// Generate, prepare, evaluate and recommend, in under a minute
    Demo(DemoArguments),
}

/// Where the log is and how to read it.
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// Files of the log (several are one log): plain, .gz or .zst
    #[arg(required = true, value_name = "LOG")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
struct ReadingArguments {
    /// Format of the files [default: by content]
    #[arg(long, value_name = "FORMAT", value_parser = str::parse::<Format>)]
    format: Option<Format>,
    /// Column of the user: a name, or a number from 1 in files without header
    #[arg(long, value_name = "COLUMN")]
    user_column: Option<String>,
    /// Column of the item
    #[arg(long, value_name = "COLUMN")]
    item_column: Option<String>,
    /// Column of the time
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// CSV and TSV: whether the first line holds names [default: guess]
    #[arg(long, value_name = "yes|no", value_parser = parse_yes_no)]
    header: Option<bool>,
    /// CSV: what separates the columns, one character or `tab` [default: guess]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Unit of numeric times
    #[arg(long, value_name = "UNIT", value_enum, default_value_t = TimeUnitArgument::Auto)]
    time_unit: TimeUnitArgument,
    /// The log has no times: the order of the rows is the order of time
    #[arg(long)]
    order_is_time: bool,
    /// Type of the user ids
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IdTypeArgument::Auto)]
    user_type: IdTypeArgument,
    /// Type of the item ids
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = IdTypeArgument::Auto)]
    item_type: IdTypeArgument,
    /// Skip and count up to N rows that cannot be read
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad_rows: u64,
}

impl LogArguments {
    pub(crate) fn read_options(&self) -> ReadOptions {
        let reading = &self.reading;
        ReadOptions {
            format: reading.format,
            user_column: reading.user_column.clone(),
            item_column: reading.item_column.clone(),
            time_column: reading.time_column.clone(),
            header: reading.header,
            delimiter: reading.delimiter,
            time_unit: reading.time_unit.into(),
            order_is_time: reading.order_is_time,
            user_type: reading.user_type.into(),
            item_type: reading.item_type.into(),
            skip_bad_rows: reading.skip_bad_rows,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf prepare ratings.dat.gz -o ml-1m.parquet
  satf prepare steam_reviews.json.gz --core 5 -o steam.parquet
  satf prepare day1.csv day2.csv --user-column customer --duplicates all -o log.csv")]
pub(crate) struct PrepareArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// The file to write; Parquet, or CSV if its name ends in .csv
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Which of the rows with the same user and item to keep: last, first or all
    #[arg(long, value_name = "WHICH", default_value = "last", value_parser = str::parse::<Duplicates>)]
    pub(crate) duplicates: Duplicates,
    /// Keep the P-core: users and items with at least P rows each, again and again until all have
    #[arg(long, value_name = "P", default_value_t = 1)]
    pub(crate) core: usize,
    /// Write the outcome as JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf stats ratings.dat.gz
  satf stats log.parquet --json")]
pub(crate) struct StatsArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf evaluate log.parquet --model mp,pure-svd,transitions
  satf evaluate amz-beauty.csv.gz --model pure-svd --set rank=2000 --set scaling=0.6 \\
      --valid 3weeks --test 3weeks --ties file --json
  satf evaluate log.parquet --model transitions --per-event transitions.parquet

`satf models` lists the models with their keys. Without offsets, the shortest usual ones that hold enough
events are taken, and said.")]
pub(crate) struct EvaluateArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) models: ModelArguments,
    #[command(flatten)]
    pub(crate) protocol: ProtocolArguments,
    /// Stop iterative models when this metric on the validation part no longer grows, then train again on training and
    /// validation part with the best number of iterations
    #[arg(long, value_name = "METRIC", num_args = 0..=1, default_missing_value = "NDCG@10")]
    pub(crate) early_stopping: Option<Metric>,
    /// Iterations without growth that early stopping bears
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) patience: usize,
    /// Keep unfinished training in this folder and go on from there, for models whose training takes long (sasrec)
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Lengths of the lists
    #[arg(long, value_name = "N", default_value = "10", value_delimiter = ',')]
    pub(crate) at: Vec<usize>,
    /// Write the rank and the metrics of every event (CSV if the name ends in .csv, else Parquet); with several
    /// models, their names are put before the ending
    #[arg(long, value_name = "FILE")]
    pub(crate) per_event: Option<PathBuf>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf train log.parquet -o shop.satf
  satf train log.parquet --model transitions --set window=5 -o shop.satf
  satf train amz-beauty.csv.gz --preset la-satf/amz-b --validate 3weeks --quantize half -o beauty.satf

The model learns from the whole log. --validate holds the newest part back at first: it says how good the model
is, ends iterative training at its best, and then the model learns from everything.")]
pub(crate) struct TrainArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// The model file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The model [default: la-satf]
    #[arg(short, long, value_name = "MODEL", conflicts_with = "preset", help_heading = "Models")]
    pub(crate) model: Option<String>,
    /// A configuration of the paper, such as la-satf/amz-b
    #[arg(long, value_name = "PRESET", help_heading = "Models")]
    pub(crate) preset: Option<String>,
    /// A TOML file with keys of the model
    #[arg(long, value_name = "FILE", help_heading = "Models")]
    pub(crate) config: Option<PathBuf>,
    /// A key of the model, such as item_rank=200; may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append, help_heading = "Models")]
    pub(crate) set: Vec<String>,
    /// Memory that training may take, such as 1GiB or 800MB, for models that plan for it
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Models")]
    pub(crate) memory: Option<u64>,
    /// Item factors in fewer bytes: half, or int8 [default: none, single precision]
    #[arg(long, value_name = "KIND", default_value = "none", hide_default_value = true, value_parser = str::parse::<Quantization>, help_heading = "Models")]
    pub(crate) quantize: Quantization,
    /// Measure the model on the newest part of the log first, such as 3weeks
    #[arg(long, value_name = "OFFSET")]
    pub(crate) validate: Option<Offset>,
    /// Iterations without growth that training bears when it is validated
    #[arg(long, value_name = "N", default_value_t = 3, requires = "validate", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) patience: usize,
    /// Keep unfinished training in this folder and go on from there, for models whose training takes long (sasrec)
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Do not learn from the newest part of the log: what `satf evaluate --test OFFSET` would score
    #[arg(long, value_name = "OFFSET")]
    pub(crate) leave_out: Option<Offset>,
    /// Order of one user's events with equal times: file, shuffle or basket [default: shuffle; presets: file]
    #[arg(long, value_name = "POLICY", value_parser = str::parse::<TiePolicy>)]
    pub(crate) ties: Option<TiePolicy>,
    /// Longest history that models of order look at
    #[arg(long, value_name = "K")]
    pub(crate) max_len: Option<usize>,
    /// Seed of everything random
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("input").required(true).args(["history", "histories"]),
    after_help = "Examples:
  satf recommend shop.satf --history \"laptop,laptop sleeve\" -n 5 --explain
  satf recommend shop.satf --history tent --exclude \"gas canister\" --boost headlamp=0.5
  satf recommend shop.satf --histories histories.jsonl -o next.parquet
  zcat big.jsonl.gz | satf recommend shop.satf --histories - > next.jsonl

Lists of items are separated by commas, or JSON lists, or @FILE with an id a line. Histories are JSON lines
({\"user_id\": \"ann\", \"history\": [\"tent\"]}), CSV or Parquet with a column history, or with columns user_id
and item_id where the rows of a user stand together, oldest first. What is written has the columns user_id, item_id,
score and rank.")]
pub(crate) struct RecommendArguments {
    /// A model file, as `satf train` writes it
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// The items of one history, oldest first
    #[arg(long, value_name = "ITEMS")]
    pub(crate) history: Option<String>,
    /// A file with any number of histories, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) histories: Option<PathBuf>,
    /// Where recommendations for --histories go, by ending: .jsonl, .csv or .parquet [default: JSON lines on stdout]
    #[arg(short, long, value_name = "FILE", requires = "histories")]
    pub(crate) output: Option<PathBuf>,
    /// How many items to recommend
    #[arg(short, long = "count", value_name = "N", default_value_t = 10)]
    pub(crate) n: usize,
    /// Show what each item of the history adds to each score
    #[arg(long, requires = "history")]
    pub(crate) explain: bool,
    /// Items that may not be recommended
    #[arg(long, value_name = "ITEMS", help_heading = "Filters")]
    pub(crate) exclude: Option<String>,
    /// The only items that may be recommended
    #[arg(long, value_name = "ITEMS", help_heading = "Filters")]
    pub(crate) only: Option<String>,
    /// Let items of the history be recommended again
    #[arg(long, help_heading = "Filters")]
    pub(crate) allow_seen: bool,
    /// Add a number to an item's score; may be repeated
    #[arg(long, value_name = "ITEM=NUMBER", action = ArgAction::Append, help_heading = "Filters")]
    pub(crate) boost: Vec<String>,
    /// What a history gets of which no item is known
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = FallbackArgument::None)]
    pub(crate) fallback: FallbackArgument,
    /// A CSV file with titles of items (columns item_id and title) to show
    #[arg(long, value_name = "FILE")]
    pub(crate) titles: Option<PathBuf>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  satf similar shop.satf \"laptop sleeve\" -n 5")]
pub(crate) struct SimilarArguments {
    /// A model file
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// The item
    #[arg(value_name = "ITEM")]
    pub(crate) item: String,
    /// How many items to show
    #[arg(short, long = "count", value_name = "N", default_value_t = 10)]
    pub(crate) n: usize,
    /// A CSV file with titles of items (columns item_id and title) to show
    #[arg(long, value_name = "FILE")]
    pub(crate) titles: Option<PathBuf>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf inspect shop.satf
  satf inspect shop.satf --svg attention.svg")]
pub(crate) struct InspectArguments {
    /// A model file
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Write the attention curve as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FallbackArgument {
    /// Nothing
    None,
    /// The most popular items
    Popular,
}

/// Which models, and how they are configured.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Models")]
pub(crate) struct ModelArguments {
    /// Models, separated by commas
    #[arg(short, long, value_name = "MODEL", required_unless_present = "preset", value_delimiter = ',')]
    pub(crate) model: Vec<String>,
    /// Configurations of the paper, such as la-satf/amz-b, separated by commas; they bring their protocol along
    #[arg(long, value_name = "PRESET", value_delimiter = ',')]
    pub(crate) preset: Vec<String>,
    /// A TOML file with keys of the model, or a table of them for each model
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A key of the model, such as rank=200 (with several models: pure-svd.rank=200); may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub(crate) set: Vec<String>,
    /// Memory that training may take, such as 1GiB or 800MB, for models that plan for it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    // The search is on the validation part, the end on the test part.
    mut_arg("on", |on| on.hide(true)),
    after_help = "Examples:
  satf tune log.parquet --model la-satf --trials 30
  satf tune log.parquet --model pure-svd --sampler exhaustive
  satf tune amz-beauty.csv.gz --model la-satf --space paper --trials 30 --seed 1 \\
      --valid 3weeks --test 3weeks --ties file --study beauty
  satf tune log.parquet --model ga-satf --sampler tpe --time-budget 30min --set max_len=100
  satf tune log.parquet --model transitions --space mine.toml
  satf tune status beauty

A trial is one training. It is scored on the validation part after every iteration and for every value of keys that
play no part in training (rescaled; rank of pure-svd), so it stands for many configurations. At the end the best of them
is trained on training and validation part, and scored once on the test part.

Every trial is on disk before the next begins. The same command again goes on where it was stopped, killed or ended by
a power cut, and ends with the same result; --trials, --time-budget and --jobs may change.

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
    /// What may be tried: the name of a space (paper, paper-long, small, default), or a TOML file [default: paper, or default
    /// for models that are not in the paper]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) space: Option<String>,
    /// How it is searched: random (without replacement), tpe or exhaustive
    #[arg(long, value_name = "SAMPLER", default_value = "random", value_parser = str::parse::<Sampler>)]
    pub(crate) sampler: Sampler,
    /// Most trials, that is trainings [default: 30; all with exhaustive or --time-budget]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) trials: Option<usize>,
    /// Time for trials, over all runs of the study: 90s, 30min, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub(crate) time_budget: Option<f64>,
    /// Trials run at once; they share threads and memory. Results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) jobs: usize,
    /// What is to be high on the validation part
    #[arg(long, value_name = "METRIC", default_value = "NDCG@10")]
    pub(crate) metric: Metric,
    /// Iterations without growth that early stopping bears
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) patience: usize,
    /// Folder of the study [default: satf-studies/LOG.MODEL.SPACE.HASH, by what is asked]
    #[arg(long, value_name = "DIR")]
    pub(crate) study: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
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
#[command(next_help_heading = "Protocol")]
pub(crate) struct ProtocolArguments {
    /// Length of the validation part, back from the test part: 3weeks, 4months, 1day
    #[arg(long, value_name = "OFFSET")]
    pub(crate) valid: Option<Offset>,
    /// Length of the test part, back from the newest time
    #[arg(long, value_name = "OFFSET")]
    pub(crate) test: Option<Offset>,
    /// How the log is cut; leave-one-out leaks the future and is there for comparison with older work
    #[arg(long, value_enum, default_value_t = SplitArgument::Calendar)]
    pub(crate) split: SplitArgument,
    /// What to score: the test part after training on all before it, or the validation part
    #[arg(long, value_enum, default_value_t = PartArgument::Test)]
    pub(crate) on: PartArgument,
    /// Order of one user's events with equal times: file, shuffle or basket [default: shuffle; presets: file]
    #[arg(long, value_name = "POLICY", value_parser = str::parse::<TiePolicy>)]
    pub(crate) ties: Option<TiePolicy>,
    /// Items left out of a ranking: the user's own, or those of all earlier events too (pooled: only for reproducing
    /// the paper's MP column)
    #[arg(long, value_name = "WHOSE", default_value = "own", value_parser = str::parse::<SeenPolicy>)]
    pub(crate) seen: SeenPolicy,
    /// Longest history that models of order look at (the baselines without positions use it whole)
    #[arg(long, value_name = "K")]
    pub(crate) max_len: Option<usize>,
    /// Seed of everything random
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf evaluate log.parquet --model transitions,pure-svd --per-event scores.parquet
  satf compare scores.pure-svd.parquet scores.transitions.parquet

Each file is compared with the first. A p-value below .01 says that the difference is hardly chance.")]
pub(crate) struct CompareArguments {
    /// Files written by `satf evaluate --per-event`: the first is what the others are compared with
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What is resampled as a whole: events of one user are alike, so users by default
    #[arg(long, value_enum, default_value_t = UnitArgument::User)]
    pub(crate) unit: UnitArgument,
    /// Draws of the bootstrap and of the permutation test
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(100..=10_000_000))]
    pub(crate) draws: usize,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write JSON to stdout
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
  satf generate --users 10000 --seed 7 -o shop.csv")]
pub(crate) struct GenerateArguments {
    /// The file to write; Parquet, or CSV if its name ends in .csv
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Number of users
    #[arg(long, default_value_t = satf::generate::ShopOptions::default().users)]
    pub(crate) users: usize,
    /// Days the log covers
    #[arg(long, default_value_t = satf::generate::ShopOptions::default().days)]
    pub(crate) days: u32,
    /// Seed
    #[arg(long, default_value_t = satf::generate::ShopOptions::default().seed)]
    pub(crate) seed: u64,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimeUnitArgument {
    Auto,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl From<TimeUnitArgument> for TimeUnit {
    fn from(unit: TimeUnitArgument) -> Self {
        match unit {
            TimeUnitArgument::Auto => TimeUnit::Auto,
            TimeUnitArgument::Seconds => TimeUnit::Seconds,
            TimeUnitArgument::Milliseconds => TimeUnit::Milliseconds,
            TimeUnitArgument::Microseconds => TimeUnit::Microseconds,
            TimeUnitArgument::Nanoseconds => TimeUnit::Nanoseconds,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum IdTypeArgument {
    Auto,
    Integer,
    String,
}

impl From<IdTypeArgument> for IdType {
    fn from(kind: IdTypeArgument) -> Self {
        match kind {
            IdTypeArgument::Auto => IdType::Auto,
            IdTypeArgument::Integer => IdType::Integer,
            IdTypeArgument::String => IdType::String,
        }
    }
}

/// `1GiB`, `800MB` or a plain number of bytes.
fn parse_size(text: &str) -> Result<u64, String> {
    let error = || format!("'{text}': expected a size such as 1GiB, 800MB or a number of bytes");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024.0 * 1024.0,
        "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(error()),
    };
    let bytes = number.trim().parse::<f64>().map_err(|_| error())? * scale;
    if (1.0..9e18).contains(&bytes) { Ok(bytes as u64) } else { Err(error()) }
}

/// `90s`, `30min`, `2h`, `1day`, as seconds.
fn parse_seconds(text: &str) -> Result<f64, String> {
    let error = || format!("'{text}': expected a time such as 90s, 30min or 2h");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(error)?;
    let (number, unit) = text.split_at(digits);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return Err(error()),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| error())? * scale;
    if seconds > 0.0 && seconds < 1e9 { Ok(seconds) } else { Err(error()) }
}

fn parse_yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("expected one ASCII character, or tab".to_owned()),
    }
}
