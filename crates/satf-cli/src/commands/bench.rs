//! `satf bench serve`: how much load a server handles.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use satf::interactions::Interactions;
use satf_server::load::{Load, LoadReport, Quantiles, load, request};
use serde_json::json;

use super::files::Files;
use crate::args::{BenchArguments, BenchCommand, BenchServeArguments};
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &BenchArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let BenchCommand::Serve(arguments) = &arguments.command;
    Files::of_log(&arguments.log).keeping("--model", arguments.model.as_ref()).check_distinct()?;
    let (log, _) = super::read(&arguments.log, terminal)?;
    let bodies = bodies(&log, arguments)?;
    drop(log);
    terminal.finish();
    let started = arguments.model.as_ref().map(|_| Started::new(arguments)).transpose()?;
    let (address, process) = match (&started, arguments.address) {
        (Some(started), _) => (started.address, Some(started.child.id())),
        (None, Some(address)) => (address, arguments.pid),
        (None, None) => bail!("give --model or --address"),
    };
    let key = arguments
        .key_from
        .as_ref()
        .map(|name| std::env::var(name).with_context(|| format!("--key-from {name}")));
    let key = key.transpose()?;
    let host = address.to_string();
    let requests: Vec<Vec<u8>> =
        bodies.iter().map(|body| request(&host, "/v1/recommend", key.as_deref(), body)).collect();
    let at = |rate: f64, seconds: f64| {
        load(Load {
            address,
            rate,
            duration: Duration::from_secs_f64(seconds),
            connections: arguments.connections,
            requests: requests.clone(),
            process,
        })
        .with_context(|| format!("load on {address}"))
    };
    if let Some(rate) = arguments.rate.first().filter(|_| arguments.warm_up > 0.0) {
        at(*rate, arguments.warm_up)?;
    }
    let reports =
        arguments.rate.iter().map(|rate| at(*rate, arguments.seconds)).collect::<anyhow::Result<Vec<_>>>()?;
    drop(started);
    if arguments.json {
        return table::print_json(&json!({ "connections": arguments.connections, "rates": reports }));
    }
    table::print(&describe(&reports))
}

fn describe(reports: &[LoadReport]) -> String {
    let header = [
        "rate",
        "answered",
        "503",
        "errors",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p99.9 ms",
        "max ms",
        "503: p99 ms",
        "server cores",
        "server memory",
        "load cores",
    ];
    let mut shown = table::with_header(&header);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    for report in reports {
        let at = |of: fn(Quantiles) -> f64| number(report.latency_ms.map(of));
        shown.add_row([
            format!("{:.0}/s", report.rate),
            format!("{} ({:.0}/s)", table::count(report.answered as usize), report.answered_per_second),
            table::count(report.rejected as usize),
            table::count(report.errors as usize),
            at(|latency| latency.p50),
            at(|latency| latency.p90),
            at(|latency| latency.p99),
            at(|latency| latency.p999),
            at(|latency| latency.max),
            number(report.rejected_ms.map(|latency| latency.p99)),
            number(report.server_cores),
            report.server_memory.map_or_else(|| "-".to_owned(), |[_, after, _]| table::bytes(after)),
            number(report.load_cores),
        ]);
    }
    let errors =
        reports.iter().flat_map(|report| &report.first_errors).map(|error| format!("\nerror: {error}"));
    format!("{shown}{}", errors.collect::<String>())
}

/// Bodies of requests: histories of the log, each cut at a random place.
fn bodies(log: &Interactions, arguments: &BenchServeArguments) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut rows: Vec<_> = log.rows().iter().collect();
    rows.sort_by_key(|row| (row.user, row.time));
    let histories: Vec<&[_]> = rows.chunk_by(|a, b| a.user == b.user).collect();
    if histories.is_empty() {
        bail!("the log is empty: there is no history to ask for");
    }
    let mut state = arguments.seed;
    let mut draw = |below: usize| {
        // SplitMix64, which is enough to choose.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((u128::from(mixed ^ (mixed >> 31))) * below as u128) >> 64) as usize
    };
    (0..arguments.requests)
        .map(|_| {
            let history = histories[draw(histories.len())];
            let end = 1 + draw(history.len());
            let part = &history[end.saturating_sub(arguments.max_len)..end];
            let ids: Vec<_> = part.iter().map(|row| log.items().get(row.item.get())).collect();
            Ok(serde_json::to_vec(&json!({ "history": ids, "n": arguments.n }))?)
        })
        .collect()
}

/// A server of our own, which ends with us.
struct Started {
    child: Child,
    address: SocketAddr,
}

impl Started {
    fn new(arguments: &BenchServeArguments) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("the program itself")?;
        let mut command = Command::new(program);
        command.arg("serve").args(&arguments.model).args(["--listen", "127.0.0.1:0"]);
        for setting in &arguments.set {
            command.args(["--set", setting]);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("satf serve")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server's output")?;
        BufReader::new(stdout).read_line(&mut line).context("the server's output")?;
        let address = line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            bail!(
                "the server did not start; hint: satf serve {} --check",
                arguments.model.as_deref().unwrap_or("".as_ref()).display()
            );
        };
        Ok(Started { child, address })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
