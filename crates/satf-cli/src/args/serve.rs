//! The server, and load on it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use super::LogArguments;
use super::values::length;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  satf serve shop.satf                               on 127.0.0.1:8080, for this machine only
  satf serve models --items items.csv --rule \"in_stock = true\"
  satf serve shop.satf --listen 0.0.0.0:8080 --keys keys.txt --tls-certificate cert.pem --tls-key key.pem
  satf serve --config serve.toml --check             whether everything is right, without serving

  curl --json '{\"history\": [\"laptop\", \"laptop sleeve\"], \"n\": 5}' http://127.0.0.1:8080/v1/recommend

Everything can be set in a TOML file, over it by the environment (SATF_SERVE_LISTEN, SATF_SERVE_LIMITS__N), over that by options. Files
are read again when they change, on SIGHUP, and by POST /v1/admin/reload; SIGTERM and Ctrl-C finish what is under way.")]
pub(crate) struct ServeArguments {
    /// A model file, or a folder of them: every NAME.satf in it is a model
    #[arg(value_name = "MODELS")]
    pub(crate) models: Option<PathBuf>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// What is known of items: CSV or Parquet with item_id and any columns (title, category, price, ...)
    #[arg(long, value_name = "FILE")]
    pub(crate) items: Option<PathBuf>,
    /// A filter that every answer obeys, such as "in_stock = true"
    #[arg(long, value_name = "FILTER")]
    pub(crate) rule: Option<String>,
    /// A file with keys: lines of `read KEY` or `admin KEY`
    #[arg(long, value_name = "FILE", help_heading = "Security")]
    pub(crate) keys: Option<PathBuf>,
    /// The certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Security")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate", help_heading = "Security")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve an address that others can reach without keys
    #[arg(long, help_heading = "Security")]
    pub(crate) insecure: bool,
    /// Any other setting, such as limits.n=100 or split.new=0.1; may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append)]
    pub(crate) set: Vec<String>,
    /// Say whether everything is right, and do not serve
    #[arg(long)]
    pub(crate) check: bool,
    /// Stop when stdin ends: whoever started the server holds the other end, and takes it along however it ends
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  satf bench serve log.parquet --model shop.satf --rate 5000 --seconds 10")]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Send requests to a server at a fixed rate and say how long answers take
    Serve(BenchServeArguments),
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("server").required(true).args(["model", "address"]),
    after_help = "Examples:
  satf bench serve log.parquet --model shop.satf --rate 5000 --seconds 10
  satf bench serve log.parquet --address 127.0.0.1:8080 --rate 5000

Requests are due at a fixed rate whether or not earlier ones were answered, and a latency runs from the moment a request was due. The
histories are those of the log, each cut at a random place."
)]
pub(crate) struct BenchServeArguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    /// Start a server with this model file, or folder, and stop it at the end
    #[arg(long, value_name = "MODELS")]
    pub(crate) model: Option<PathBuf>,
    /// A server that runs already
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<SocketAddr>,
    /// The process of a server that runs already, to measure its processor time and memory
    #[arg(long, value_name = "PID", conflicts_with = "model")]
    pub(crate) pid: Option<u32>,
    /// A setting of the server that is started, such as log.requests=none; may be repeated
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append, conflicts_with = "address")]
    pub(crate) set: Vec<String>,
    /// Requests per second; several, separated by commas, are tried one after the other
    #[arg(long, value_name = "RATE", value_delimiter = ',', default_values_t = [1000.0], value_parser = parse_rate)]
    pub(crate) rate: Vec<f64>,
    /// Seconds for each rate
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = parse_rate)]
    pub(crate) seconds: f64,
    /// Seconds at the first rate before anything is measured
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = parse_warm_up)]
    pub(crate) warm_up: f64,
    /// Connections kept open
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub(crate) connections: usize,
    /// Items to ask for
    #[arg(short, long = "count", value_name = "N", default_value_t = 10, value_parser = length())]
    pub(crate) n: usize,
    /// Items of a history at most, the newest
    #[arg(long, value_name = "K", default_value_t = 50, value_parser = length())]
    pub(crate) max_len: usize,
    /// Distinct requests that are made of the log, and asked in turn
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub(crate) requests: usize,
    /// A key of the server, from this environment variable
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_from: Option<String>,
    /// Seed of the choice of histories
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if number > 0.0 && number <= 1e6 {
        Ok(number)
    } else {
        Err("expected a number above 0, at most 1000000".to_owned())
    }
}

fn parse_warm_up(text: &str) -> Result<f64, String> {
    if text.parse() == Ok(0.0) { Ok(0.0) } else { parse_rate(text) }
}
