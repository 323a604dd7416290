//! The command line: what can be asked, and how it becomes objects of the library.

mod evaluation;
mod log;
mod model_file;
mod search;
#[cfg(feature = "serve")]
mod serve;
mod values;

use clap::{Parser, Subcommand};

pub(crate) use evaluation::{
    CompareArguments, DemoArguments, EvaluateArguments, ModelArguments, ModelsArguments, PartArgument,
    PlanArguments, ProtocolArguments, ReproduceArguments, SplitArgument,
};
pub(crate) use log::{GenerateArguments, LogArguments, OrderArguments, PrepareArguments, StatsArguments};
pub(crate) use model_file::{
    FallbackArgument, ForgetArguments, InspectArguments, RecommendArguments, SimilarArguments, TrainArguments,
};
pub(crate) use search::{SearchArguments, TuneArguments, TuneCommand};
#[cfg(feature = "serve")]
pub(crate) use serve::{BenchArguments, BenchCommand, BenchServeArguments, ServeArguments};
pub(crate) use values::{Listed, NamedFile};

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
  satf serve shop.satf                               recommendations over HTTP
  satf tune log.parquet --model d-satf --trials 30
  satf reproduce --data data --out reproduction      the paper's tables and figures, as a report

Exit codes: 0 success, 1 failure (stderr says why), 2 wrong command line, 3 worse (compare --fail-if-worse); 130, 143 and 129: stopped by Ctrl-C, SIGTERM and
SIGHUP."
)]
pub(crate) struct Arguments {
    /// Number of threads [default: all cores]. Results do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) threads: Option<usize>,
    /// Print no progress and no warnings on stderr.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print details of the work on stderr.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn raw logs into one compact file that every other command reads
    Prepare(PrepareArguments),
    /// Show the size and shape of a log
    Stats(StatsArguments),
    /// Train models on the past of a log and score them on its future
    Evaluate(EvaluateArguments),
    /// Train a model on a whole log and save it to a file
    Train(TrainArguments),
    /// Take users and items out of a model, as if they had never been in its log
    Forget(ForgetArguments),
    /// Recommend what comes next, for one history or for millions
    Recommend(RecommendArguments),
    /// Show the items most similar to an item (`recommend` shows what comes after it)
    Similar(SimilarArguments),
    /// Show what is in a model file
    Inspect(InspectArguments),
    /// Answer over HTTP, with a page to look at
    #[cfg(feature = "serve")]
    Serve(ServeArguments),
    /// Measure what a server bears
    #[cfg(feature = "serve")]
    Bench(BenchArguments),
    /// Search for a model's best configuration, in a study that survives interruptions
    Tune(Box<TuneArguments>),
    /// Make every table and figure of the paper, or of a suite of your own, with a report
    Reproduce(ReproduceArguments),
    /// Estimate what training will cost before anything runs
    Plan(PlanArguments),
    /// Test whether two evaluations really differ, event by event
    Compare(CompareArguments),
    /// List the models with their keys and defaults
    Models(ModelsArguments),
    /// Make up a shop log in which order matters
    Generate(GenerateArguments),
    /// Generate, prepare, evaluate and recommend, in under a minute
    Demo(DemoArguments),
    /// Measure the memory of a thread, for internal use
    #[command(name = crate::threads::MEASURE, hide = true)]
    MeasureThread,
}
