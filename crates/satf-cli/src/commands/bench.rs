//! `satf bench serve`: how much load a server handles.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use satf::interactions::Interactions;
use satf::monitor::{Monitor, check_cancelled};
use satf_server::load::{Load, LoadReport, Quantiles, request};
use serde_json::json;

use super::files::Files;
use crate::args::{BenchArguments, BenchCommand, BenchServeArguments};
use crate::signals::StopRequests;
use crate::terminal::Terminal;
use crate::{escape, table};

/// Requests made between two questions whether to stop.
const REQUESTS_A_CHECK: usize = 1024;
/// Between two questions whether to stop, while the server starts, and whether it is still there.
const PATIENCE: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &BenchArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let BenchCommand::Serve(arguments) = &arguments.command;
    Files::of_log(&arguments.log).keeping("--model", arguments.model.as_ref()).check_distinct()?;
    let (log, _) = super::read(&arguments.log, terminal)?;
    let bodies = bodies(&log, arguments)?;
    drop(log);
    terminal.finish();
    let started = arguments.model.as_ref().map(|_| Started::new(arguments)).transpose()?;
    let (address, process) = match (&started, arguments.address) {
        (Some(started), _) => (started.address, Some(started.server.child().id())),
        (None, Some(address)) => (address, arguments.pid),
        (None, None) => bail!("give --model or --address"),
    };
    let key = arguments
        .key_from
        .as_ref()
        .map(|name| std::env::var(name).with_context(|| format!("--key-from {name}")));
    let key = key.transpose()?;
    let host = address.to_string();
    let whole = |body: &Vec<u8>| request(&host, "/v1/recommend", key.as_deref(), body);
    let requests: Arc<[Vec<u8>]> = bodies.iter().map(whole).collect();
    drop(bodies);
    let watch = Watch::new(started.as_ref().map(|started| &started.server));
    let at = |rate: f64, seconds: f64| {
        let load = Load {
            address,
            rate,
            duration: Duration::from_secs_f64(seconds),
            connections: arguments.connections,
            requests: Arc::clone(&requests),
            process,
        };
        let report = satf_server::load::load(load, &watch);
        watch.check(rate)?;
        let report = report.with_context(|| format!("load on {address}"))?;
        check_answers(&report, address)?;
        check_presence(&report, address)?;
        Ok(report)
    };
    if let Some(rate) = arguments.rate.first().filter(|_| arguments.warm_up > 0.0) {
        at(*rate, arguments.warm_up)?;
    }
    let reports =
        arguments.rate.iter().map(|rate| at(*rate, arguments.seconds)).collect::<anyhow::Result<Vec<_>>>()?;
    drop(started);
    for report in &reports {
        for error in &report.first_errors {
            tracing::warn!("at {:.0}/s: {error}", report.rate);
        }
    }
    if arguments.json {
        return table::print_json(&json!({ "connections": arguments.connections, "rates": reports }));
    }
    table::print(&describe(&reports))
}

/// Stops the load when we are to stop, and when the server that we started is gone.
struct Watch<'s> {
    server: Option<&'s Server>,
    last: Mutex<Instant>,
}

impl<'s> Watch<'s> {
    fn new(server: Option<&'s Server>) -> Self {
        Watch { server, last: Mutex::new(Instant::now()) }
    }

    /// An error if the server is gone.
    fn check(&self, rate: f64) -> anyhow::Result<()> {
        if let Some(status) = self.server.and_then(Server::ended)
            && !StopRequests.is_cancelled()
        {
            bail!(
                "the server that was started for it ended while it was measured at {rate:.0}/s ({status}), so there is nothing to report; \
                 hint: satf serve with the same model and settings, in a terminal of its own, shows why, and --address measures it there"
            );
        }
        Ok(())
    }
}

impl Monitor for Watch<'_> {
    fn is_cancelled(&self) -> bool {
        if StopRequests.is_cancelled() {
            return true;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if self.server.is_none() || last.elapsed() < PATIENCE {
            return false;
        }
        *last = Instant::now();
        self.server.and_then(Server::ended).is_some()
    }
}

/// An error if a server that others started is gone by now.
fn check_presence(report: &LoadReport, address: SocketAddr) -> anyhow::Result<()> {
    let is_gone = || {
        let tried = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    if report.errors == 0 || !is_gone() {
        return Ok(());
    }
    bail!(
        "{address}: the server went away while it was measured at {:.0}/s: {} of {} had an answer; hint: its own log may say why; start it \
         and measure again",
        report.rate,
        table::count((report.answered + report.rejected) as usize),
        table::counted(report.due as usize, "request")
    );
}

/// An error if there is nothing to measure.
fn check_answers(report: &LoadReport, address: SocketAddr) -> anyhow::Result<()> {
    if report.has_answers() || report.due == 0 {
        return Ok(());
    }
    let first = report.first_errors.first().map_or("no answer came in time", String::as_str);
    bail!(
        "{address}: none of {} was answered: {}; hint: satf serve --check says whether a server can start, and the server's own \
         log what it refuses",
        table::counted(report.due as usize, "request"),
        escape::value(first)
    );
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
    shown.to_string()
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
        .map(|number| {
            if number % REQUESTS_A_CHECK == 0 {
                check_cancelled(&StopRequests)?;
            }
            let history = histories[draw(histories.len())];
            let end = 1 + draw(history.len());
            let part = &history[end.saturating_sub(arguments.max_len)..end];
            let ids: Vec<_> = part.iter().map(|row| log.items().get(row.item.get())).collect();
            Ok(serde_json::to_vec(&json!({ "history": ids, "n": arguments.n }))?)
        })
        .collect()
}

/// A server of our own, and where it listens.
struct Started {
    server: Server,
    address: SocketAddr,
}

/// It ends with us, however we end: it holds one end of a pipe, and stops when the other one is gone.
struct Server(Mutex<Child>);

impl Server {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it did.
    fn ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Started {
    fn new(arguments: &BenchServeArguments) -> anyhow::Result<Self> {
        let mut command = serve_command(arguments)?;
        command.args(["--listen", "127.0.0.1:0", "--until-stdin-ends"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let server = Server(Mutex::new(command.spawn().context("satf serve")?));
        let stdout = server.child().stdout.take().context("the server's output")?;
        let line = first_line(stdout)?;
        let address = line.trim().strip_prefix("listening on ").and_then(|address| address.parse().ok());
        let Some(address) = address else {
            bail!("the server did not start: {}", why_not(arguments)?);
        };
        Ok(Started { server, address })
    }
}

/// The command that starts a server.
fn serve_command(arguments: &BenchServeArguments) -> anyhow::Result<Command> {
    let mut command = crate::program::again().context("it is not known how to start satf")?;
    command.arg("serve").args(&arguments.model);
    for setting in &arguments.set {
        command.args(["--set", setting]);
    }
    Ok(command)
}

/// What a server says that does not start. The one that was tried kept silent: what a server says under load is nobody's business here.
fn why_not(arguments: &BenchServeArguments) -> anyhow::Result<String> {
    let checked = serve_command(arguments)?.arg("--check").stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&checked.stderr);
    let error = said.lines().find_map(|line| line.strip_prefix("error: "));
    let model = arguments.model.as_deref().unwrap_or("".as_ref());
    // Whatever comes from there was made harmless there.
    Ok(error.map_or_else(|| format!("hint: satf serve {} says why", escape::path(model)), str::to_owned))
}

/// The first line of a server that may take long to start, or an error if we are to stop meanwhile.
fn first_line(stdout: ChildStdout) -> anyhow::Result<String> {
    let (sender, receiver) = channel();
    thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line).map(|_| line);
        // Nobody waits for it any more if we are to stop.
        let _ = sender.send(read);
    })?;
    loop {
        check_cancelled(&StopRequests)?;
        match receiver.recv_timeout(PATIENCE) {
            Ok(line) => return line.context("the server's output"),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("the server's output: it ended"),
        }
    }
}
