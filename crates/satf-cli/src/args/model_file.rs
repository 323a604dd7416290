//! Model files: made, asked, looked into.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PathBufValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use satf::models::Quantization;
use satf::prepare::{Offset, TiePolicy};

use super::LogArguments;
use super::log::ReadingArguments;
use super::values::{
    Listed, length, parse_boost, parse_listed, parse_model_file, parse_recommendations, parse_size, seed,
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf train log.parquet -o shop.satf
  satf train log.parquet --model transitions --set window=5 -o shop.satf
  satf train amz-beauty.csv.gz --preset la-satf/amz-b --validate 3weeks --quantize half -o beauty.satf
  satf train log.parquet --with-statistics -o shop.satf
  satf train --update shop.satf today.csv

The model learns from the whole log. --validate first trains without the newest part and scores the model on it; iterative
training stops at its best. Then the model learns from the whole log.

With --with-statistics the file also holds the log itself, ids of users included. Then --update adds a new log to it and
trains again with the same keys: the file is, byte for byte, what training on both logs gives. `satf forget` takes users and
items out in the same way.")]
pub(crate) struct TrainArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// The model file to write [default with --update: that model]
    #[arg(short, long, value_name = "FILE", required_unless_present = "update", value_parser = PathBufValueParser::new().try_map(parse_model_file))]
    pub(crate) output: Option<PathBuf>,
    /// Keep the log in the model file, so that the model can be updated and made to forget
    #[arg(long, conflicts_with = "leave_out")]
    pub(crate) with_statistics: bool,
    /// A model with statistics to which the log is added, trained again with its own keys
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["preset", "leave_out"])]
    pub(crate) update: Option<PathBuf>,
    /// The model [default: d-satf]
    #[arg(short, long, value_name = "MODEL", conflicts_with = "preset", help_heading = "Models")]
    pub(crate) model: Option<String>,
    /// A configuration of the paper, such as la-satf/amz-b
    #[arg(long, value_name = "PRESET", help_heading = "Models")]
    pub(crate) preset: Option<String>,
    /// A TOML file with the model's keys; options win over it
    #[arg(long, value_name = "FILE", help_heading = "Models")]
    pub(crate) config: Option<PathBuf>,
    /// A key of the model, such as rank=200; may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append, help_heading = "Models")]
    pub(crate) set: Vec<String>,
    /// Memory that training may use, such as 1GiB or 800MB, for models that plan for it
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Models")]
    pub(crate) memory: Option<u64>,
    /// Item factors in fewer bytes: half, or int8 [default: none, single precision]
    #[arg(long, value_name = "KIND", value_parser = str::parse::<Quantization>, help_heading = "Models")]
    pub(crate) quantize: Option<Quantization>,
    /// Measure the model on the newest part of the log first, such as 3weeks
    #[arg(long, value_name = "OFFSET", conflicts_with = "order_is_time")]
    pub(crate) validate: Option<Offset>,
    /// With --validate, stop after this many iterations without improvement [default: 3]
    #[arg(long, value_name = "N", requires = "validate", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) patience: Option<usize>,
    /// Save unfinished training in this folder and resume from it, for models that take long to train (sasrec)
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Leave out the newest part of the log: what `satf evaluate --test OFFSET` would score
    #[arg(long, value_name = "OFFSET", conflicts_with = "order_is_time")]
    pub(crate) leave_out: Option<Offset>,
    /// Order of one user's events with equal times: file, shuffle or basket [default: shuffle; presets: file]
    #[arg(long, value_name = "POLICY", value_parser = str::parse::<TiePolicy>)]
    pub(crate) ties: Option<TiePolicy>,
    /// Longest history that order-aware models look at
    #[arg(long, value_name = "K", value_parser = length())]
    pub(crate) max_len: Option<usize>,
    /// Seed for everything random [default: 0]
    #[arg(long, value_name = "SEED", value_parser = seed())]
    pub(crate) seed: Option<u64>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("forgotten").required(true).multiple(true).args(["user", "item"]),
    after_help = "Examples:
  satf forget shop.satf --user ann,bob
  satf forget shop.satf --user @deleted.txt --item \"gas canister\" -o clean.satf

The model is trained again, with its own keys, on the log that its file holds (`satf train --with-statistics`), without the
events of these users and items. The file is, byte for byte, what training without them gives. Ids are separated by commas,
a JSON list, or @FILE with one id per line.")]
pub(crate) struct ForgetArguments {
    /// A model file with statistics
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Users whose events are forgotten; may be repeated
    #[arg(long, value_name = "USERS", action = ArgAction::Append, value_parser = OsStringValueParser::new().try_map(parse_listed))]
    pub(crate) user: Vec<Listed>,
    /// Items whose events are forgotten; may be repeated
    #[arg(long, value_name = "ITEMS", action = ArgAction::Append, value_parser = OsStringValueParser::new().try_map(parse_listed))]
    pub(crate) item: Vec<Listed>,
    /// The model file to write [default: MODEL]
    #[arg(short, long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(parse_model_file))]
    pub(crate) output: Option<PathBuf>,
    /// Make ids that the model does not know an error instead of a warning
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("input").required(true).args(["history", "histories"]),
    after_help = "Examples:
  satf recommend shop.satf --history \"laptop,laptop sleeve\" -n 5 --explain
  satf recommend shop.satf --history \"tent,mug+stove\" --exclude \"gas canister\" --boost headlamp=0.5
  satf recommend shop.satf --histories histories.jsonl -o next.parquet
  satf recommend shop.satf --histories log.parquet --only @stock.txt --boost @boosts.csv --allow-seen @consumables.txt
  zcat big.jsonl.gz | satf recommend shop.satf --histories - > next.jsonl

A history is written with commas, and + between items of one basket; a JSON list can hold any id:
'[\"tent\", [\"mug\", \"stove\"]]'. Other lists of items are separated by commas, JSON lists, or @FILE with one id per line.

--histories reads whatever can be read as a log (rows of user, item and perhaps time, in any order), or whole histories:
JSON lines ({\"user_id\": \"ann\", \"history\": [\"tent\"]}), a JSON list of such objects or of lists, CSV or Parquet with a
column history. The output has the columns user_id, item_id, score and rank, in the order in which users first appear, then
title with --titles, fallback with --fallback, and shares, base and boost with --explain.")]
pub(crate) struct RecommendArguments {
    /// A model file, as `satf train` writes it
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// The items of one history, oldest first
    #[arg(long, value_name = "ITEMS", value_parser = OsStringValueParser::new().try_map(parse_listed))]
    pub(crate) history: Option<Listed>,
    /// A file with any number of histories, or - for stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) histories: Option<PathBuf>,
    /// Where recommendations go, by ending: .jsonl, .csv or .parquet [default: stdout]
    #[arg(short, long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(parse_recommendations))]
    pub(crate) output: Option<PathBuf>,
    /// How many items to recommend
    #[arg(short, long = "count", value_name = "N", default_value_t = 10, value_parser = length())]
    pub(crate) n: usize,
    /// Show what each item of the history, and each boost, adds to each score
    #[arg(long)]
    pub(crate) explain: bool,
    /// Items that may not be recommended
    #[arg(long, value_name = "ITEMS", value_parser = OsStringValueParser::new().try_map(parse_listed), help_heading = "Filters")]
    pub(crate) exclude: Option<Listed>,
    /// The only items that may be recommended; an error if the model knows none of them
    #[arg(long, value_name = "ITEMS", value_parser = OsStringValueParser::new().try_map(parse_listed), help_heading = "Filters")]
    pub(crate) only: Option<Listed>,
    /// Let items of the history be recommended again: all of them, or these only
    #[arg(long, value_name = "ITEMS", num_args = 0..=1, value_parser = OsStringValueParser::new().try_map(parse_listed), help_heading = "Filters")]
    #[allow(clippy::option_option, reason = "the option may stand alone, which is not an empty list")]
    pub(crate) allow_seen: Option<Option<Listed>>,
    /// Add a number to an item's score (tent=0.5) or multiply it (tent=*1.5); @FILE is a CSV with columns item and boost; may be
    /// repeated
    #[arg(long, value_name = "ITEM=NUMBER", action = ArgAction::Append, value_parser = OsStringValueParser::new().try_map(parse_boost), help_heading = "Filters")]
    pub(crate) boost: Vec<Listed>,
    /// Make items of --exclude, --only, --allow-seen and --boost that the model does not know an error instead of a warning
    #[arg(long, help_heading = "Filters")]
    pub(crate) strict: bool,
    /// What to recommend when no item of a history is known
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = FallbackArgument::None)]
    pub(crate) fallback: FallbackArgument,
    /// A CSV file with item titles to show (columns item_id and title)
    #[arg(long, value_name = "FILE")]
    pub(crate) titles: Option<PathBuf>,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Column of whole histories [default: by name, such as history]
    #[arg(long, value_name = "COLUMN", help_heading = "Reading", conflicts_with_all = ["item_column", "time_column", "time_unit", "order_is_time"])]
    pub(crate) history_column: Option<String>,
    /// Memory for rows of --histories that wait for others of their user; beyond it they are sorted in temporary files, unless the rows
    /// of each user are adjacent [default: 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Reading")]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf similar shop.satf \"laptop sleeve\" -n 5      what is similar to it
  satf recommend shop.satf --history \"laptop sleeve\"   what comes after it

Similar items could stand in the same place: they have the same neighbours in histories (d-satf, transitions), the same users
(vmis-knn, ease), or the same factors (pure-svd, ga-satf, la-satf, sasrec). The output says which. mp and random have
no notion of similarity.")]
pub(crate) struct SimilarArguments {
    /// A model file
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// The item
    #[arg(value_name = "ITEM")]
    pub(crate) item: String,
    /// How many items to show
    #[arg(short, long = "count", value_name = "N", default_value_t = 10, value_parser = length())]
    pub(crate) n: usize,
    /// A CSV file with item titles to show (columns item_id and title)
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
    /// Write the attention curve as PNG (needs a build with the feature png)
    #[arg(long, value_name = "FILE")]
    pub(crate) png: Option<PathBuf>,
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
