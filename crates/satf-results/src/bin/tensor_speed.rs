//! How many seconds an iteration of LA-SATF takes with the published configurations, mode by mode, against the rate of dense
//! products measured in the same run.
//!
//! ```sh
//! cargo run --release -p satf-results --bin tensor_speed                        # Beauty and ML-1M
//! cargo run --release -p satf-results --bin tensor_speed -- steam steam-double  # by name, here a generated log and one twice its users
//! cargo run --release -p satf-results --bin tensor_speed -- scaling             # users x1, x2, x4; ranks 100 to 1000
//! ```
//!
//! Real files are read from `$SATF_DATA`, or `../shared/data` beside the repository, if they are there; their training
//! and validation setss are learned from and the test set is scored after every iteration. Otherwise a log of the
//! same shape is generated.

// It reports to the terminal.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use satf::data::{ReadOptions, read_log};
use satf::evaluate::{EvaluateOptions, evaluate};
use satf::factorize::{ItemUpdate, Start};
use satf::generate::{ShapeOptions, like};
use satf::interactions::Interactions;
use satf::linalg::gemm_rate;
use satf::models::{Iteration, LaSatfConfig, Learner, Precision, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::{Histories, Holdout, Split, SplitScheme, TiePolicy, Timeline};

struct Case {
    name: &'static str,
    file: Option<&'static str>,
    offset: &'static str,
    shape: (usize, usize, usize),
    config: LaSatfConfig,
}

fn cases() -> Vec<Case> {
    let preset =
        |item_rank, user_rank, ranks: (usize, usize), attention_window, attention_decay| LaSatfConfig {
            item_rank: Some(item_rank),
            user_rank: Some(user_rank),
            attention_rank: ranks.0,
            sequences_rank: ranks.1,
            attention_window,
            attention_decay,
            num_iters: 3,
            ..LaSatfConfig::default()
        };
    let beauty = preset(600, 700, (1, 2), 2, 0.0);
    let ml_1m =
        LaSatfConfig { max_len: 200, rescaled: true, num_iters: 4, ..preset(200, 600, (20, 20), 40, 1.0) };
    let steam = LaSatfConfig { scaling: 0.0, num_iters: 2, ..preset(900, 500, (1, 2), 2, 1.0) };
    let case = |name, file, offset, shape, config| Case { name, file, offset, shape, config };
    vec![
        case("beauty", Some("amz-beauty.csv.gz"), "3weeks", (22_363, 12_101, 198_502), beauty),
        case("ml-1m", Some("ml-1m.ratings.dat.gz"), "4months", (6_040, 3_706, 1_000_209), ml_1m),
        case("steam", None, "", (281_205, 11_961, 3_500_000), steam.clone()),
        case("steam-double", None, "", (562_410, 11_961, 7_000_000), steam),
    ]
}

/// What is learned from and, for a real log, what is scored.
fn load(case: &Case) -> Result<(Histories, Option<Holdout>), Box<dyn Error>> {
    let folder = std::env::var_os("SATF_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    if let Some(path) = case.file.map(|file| folder.join(file)).filter(|path| path.exists()) {
        let (log, _) = read_log(&[path], &ReadOptions::default(), &())?;
        let offset = case.offset.parse()?;
        let scheme = SplitScheme::Calendar { valid: offset, test: offset };
        let partition = Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme)?.test()?;
        return Ok((partition.train, Some(partition.holdout)));
    }
    println!("{}: a generated log of its shape", case.name);
    let (users, items, rows) = case.shape;
    Ok((histories_of(&like(&ShapeOptions { users, items, rows, seed: 1 })?), None))
}

fn histories_of(log: &Interactions) -> Histories {
    let rows = log.rows().iter().map(|row| (row.user, row.item, row.time));
    Histories::from_ordered_rows(log.users().clone(), log.items().clone(), log.clock(), rows)
}

struct Watch<'a> {
    holdout: Option<&'a Holdout>,
    num_items: usize,
    gemm_gflops: f64,
}

impl Monitor for Watch<'_> {}

impl TrainingMonitor for Watch<'_> {
    fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
        let of =
            |name: &str| report.measures.iter().find(|measure| measure.0 == name).map_or(f64::NAN, |m| m.1);
        println!(
            "  iteration {}: {:6.2} s (users {:.2}, items {:.2}, positions {:.2}), core norm {:.4}, {:.0} GFLOP/s, {:.0} % of the rate",
            report.iteration,
            report.seconds,
            of("seconds_users"),
            of("seconds_items"),
            of("seconds_positions"),
            of("core_norm"),
            of("gflops"),
            100.0 * of("gflops") / self.gemm_gflops,
        );
        if let (Some(holdout), Ok(model)) = (self.holdout, snapshot.recommender()) {
            let start = Instant::now();
            if let Ok(evaluation) =
                evaluate(&*model, holdout, self.num_items, &EvaluateOptions::default(), &())
            {
                let metrics: Vec<String> = evaluation
                    .report()
                    .iter()
                    .map(|(name, value)| format!("{name} {:.4}", value.value))
                    .collect();
                println!("    {} in {:.2} s", metrics.join(", "), start.elapsed().as_secs_f64());
            }
        }
        ControlFlow::Continue(())
    }
}

/// Peak resident memory, where the system tells it.
fn peak_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.map_or(f64::NAN, |kibibytes| kibibytes / 1024.0)
}

/// Seconds of every iteration.
#[derive(Default)]
struct Clock(Mutex<Vec<f64>>);

impl Monitor for Clock {}

impl TrainingMonitor for Clock {
    fn iteration(&self, report: &Iteration, _: &dyn Snapshot) -> ControlFlow<()> {
        if let Ok(mut seconds) = self.0.lock() {
            seconds.push(report.seconds);
        }
        ControlFlow::Continue(())
    }
}

/// How time grows with the users and with the ranks of users and items, on made-up logs of Beauty's shape.
fn scaling() -> Result<(), Box<dyn Error>> {
    println!("scaling, LA-SATF on logs of Beauty's shape: seconds of the faster of two iterations");
    let run = |factor: usize, rank: usize| -> Result<(), Box<dyn Error>> {
        let shape = ShapeOptions { users: 22_363 * factor, items: 12_101, rows: 198_502 * factor, seed: 1 };
        let histories = histories_of(&like(&shape)?);
        let config = LaSatfConfig {
            user_rank: Some(rank),
            item_rank: Some(rank),
            num_iters: 2,
            ..LaSatfConfig::default()
        };
        let operations = config.plan(&histories)?.ok_or("no plan")?.operations;
        let rate = gemm_rate().single;
        let clock = Clock::default();
        config.fit(&histories, &clock)?;
        let seconds = clock.0.into_inner()?.into_iter().fold(f64::INFINITY, f64::min);
        println!(
            "  users x{factor}, ranks {rank:4}: {seconds:6.2} s, {operations:.2e} operations planned, {:.0} % of {rate:.0} GFLOP/s",
            operations / seconds / rate / 1e7
        );
        Ok(())
    };
    [1, 2, 4].iter().try_for_each(|&factor| run(factor, 300))?;
    (100..=1000).step_by(100).try_for_each(|rank| run(1, rank))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("scaling") {
        return scaling();
    }
    let names_one = cases().iter().any(|case| has(case.name));
    for mut case in cases() {
        let is_wanted = if names_one { has(case.name) } else { matches!(case.name, "beauty" | "ml-1m") };
        if !is_wanted {
            continue;
        }
        if has("double") {
            case.config.precision = Precision::Double;
        }
        if has("random") {
            case.config.start = Start::Random;
        }
        if has("unweighted") {
            case.config.item_update = ItemUpdate::Unweighted;
        }
        if has("1GiB") {
            case.config.memory_bytes = Some(1 << 30);
        }
        let (histories, holdout) = load(&case)?;
        let before = peak_mebibytes();
        let plan = case.config.plan(&histories)?.ok_or("no plan")?;
        let rate = gemm_rate();
        let gemm_gflops = if has("double") { rate.double } else { rate.single };
        println!(
            "{}: {} users, {} items, {} rows; dense products at {gemm_gflops:.0} GFLOP/s",
            case.name,
            histories.num_users(),
            histories.num_items(),
            histories.num_rows()
        );
        for mode in &plan.modes {
            println!(
                "  {:9} {:?}: {:.2e} operations, {} MiB",
                mode.mode,
                mode.way,
                mode.operations,
                mode.memory_bytes >> 20
            );
            for cost in &mode.considered {
                println!(
                    "            {:?}: {:.2e} operations, weighted {:.2e}, {} MiB",
                    cost.way,
                    cost.operations,
                    cost.weighted_operations,
                    cost.memory_bytes >> 20
                );
            }
        }
        println!(
            "  planned: {:.2e} operations, {:.2} s, {} MiB",
            plan.operations,
            plan.expected_seconds(gemm_gflops),
            plan.memory_bytes >> 20
        );
        let watch = Watch { holdout: holdout.as_ref(), num_items: histories.num_items(), gemm_gflops };
        let start = Instant::now();
        case.config.fit(&histories, &watch)?;
        println!(
            "  all: {:.2} s; peak memory {before:.0} MiB before, {:.0} MiB after; dense products at {:.0} GFLOP/s afterwards",
            start.elapsed().as_secs_f64(),
            peak_mebibytes(),
            gemm_rate().single
        );
    }
    Ok(())
}
