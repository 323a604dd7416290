//! How many seconds an epoch of SASRec takes, the share of it that is matrix products, and the rate of those against that of large dense
//! products; beside it LA-SATF's whole training with the published configuration, all in one run.
//!
//! ```sh
//! cargo run --release -p satf-results --bin sasrec_speed                # Beauty and ML-1M
//! cargo run --release -p satf-results --bin sasrec_speed -- beauty bce  # one dataset, the paper's configuration of it
//! ```
//!
//! Files are read from `$SATF_DATA`, or `../shared/data` beside the repository; without them logs of the same shape are
//! generated.

// It reports to the terminal.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use satf::data::{ReadOptions, read_log};
use satf::generate::{ShapeOptions, like};
use satf::models::gemm_rate;
use satf::models::{Iteration, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::{Histories, Split, SplitScheme, TiePolicy, Timeline};
use toml::{Table, Value};

/// Epochs timed, after one that warms up.
const EPOCHS: usize = 2;

struct Case {
    name: &'static str,
    file: &'static str,
    preset: &'static str,
    shape: (usize, usize, usize),
    /// Keys of the full softmax.
    ce: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        name: "beauty",
        file: "amz-beauty.csv.gz",
        preset: "amz-b",
        shape: (22_363, 12_101, 198_502),
        ce: "hidden = 128\nblocks = 2\ndropout = 0.4\nbatch_size = 256",
    },
    Case {
        name: "ml-1m",
        file: "ml-1m.ratings.dat.gz",
        preset: "ml-1m",
        shape: (6_040, 3_706, 1_000_209),
        ce: "hidden = 128\nblocks = 2\ndropout = 0.2\nbatch_size = 128",
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = |name: &str, others: &[&str]| {
        asked.iter().any(|asked| asked == name) || !asked.iter().any(|asked| others.contains(&asked.as_str()))
    };
    let rate = gemm_rate();
    println!("{} threads, dense products at {:.0} GFLOP/s", rayon::current_num_threads(), rate.single);
    for case in CASES.iter().filter(|case| wanted(case.name, &["beauty", "ml-1m"])) {
        let histories = load(case)?;
        let preset = satf_sasrec::registry().preset(&format!("sasrec/{}", case.preset))?;
        let ce: Table = case.ce.parse()?;
        for (loss, settings) in [("ce", ce), ("bce", preset.settings)] {
            if wanted(loss, &["ce", "bce"]) {
                let what = format!("{} {loss}", case.name);
                epochs(&what, &settings, preset.protocol.max_len, &histories, rate.single)?;
            }
        }
        la_satf(case, &histories)?;
    }
    Ok(())
}

fn load(case: &Case) -> Result<Histories, Box<dyn Error>> {
    let folder = std::env::var_os("SATF_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let path = folder.join(case.file);
    let protocol = satf_sasrec::registry().preset(&format!("sasrec/{}", case.preset))?.protocol;
    if path.exists() {
        let (log, _) = read_log(&[path], &ReadOptions::default(), &())?;
        let scheme = SplitScheme::Calendar { valid: protocol.valid, test: protocol.test };
        return Ok(Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme)?.test()?.train);
    }
    println!("{}: a generated log of its shape", case.name);
    let (users, items, rows) = case.shape;
    let log = like(&ShapeOptions { users, items, rows, ..ShapeOptions::default() })?;
    Ok(Timeline::new(&log, TiePolicy::File, 0).histories())
}

/// Keeps the report of every epoch.
#[derive(Default)]
struct Reports(Mutex<Vec<Iteration>>);

impl Monitor for Reports {}

impl TrainingMonitor for Reports {
    fn progressed(&self, report: &Iteration) {
        if let Ok(mut reports) = self.0.lock() {
            reports.push(report.clone());
        }
    }

    fn iteration(&self, report: &Iteration, _: &dyn Snapshot) -> ControlFlow<()> {
        self.progressed(report);
        ControlFlow::Continue(())
    }
}

fn epochs(
    what: &str,
    settings: &Table,
    max_len: usize,
    histories: &Histories,
    rate: f64,
) -> Result<(), Box<dyn Error>> {
    let mut settings = settings.clone();
    settings.insert("max_len".to_owned(), Value::Integer(max_len as i64));
    settings.insert("epochs".to_owned(), Value::Integer(1 + EPOCHS as i64));
    let reports = Reports::default();
    satf_sasrec::registry().find("sasrec")?.configure(&settings)?.learner.fit(histories, &reports)?;
    let reports = reports.0.into_inner()?;
    for report in &reports[1..] {
        let measure =
            |name: &str| report.measures.iter().find(|measure| measure.0 == name).map_or(0.0, |m| m.1);
        println!(
            "{what:10} epoch {}: {:6.2} s, {:3.0} % of the time of all threads in products, {:.2} TFLOP, {:.0} GFLOP/s \
             in all ({:.0} % of dense products), loss {:.3}",
            report.iteration,
            report.seconds,
            100.0 * measure("product_share"),
            measure("operations") / 1e12,
            measure("gflops"),
            100.0 * measure("gflops") / rate,
            measure("loss"),
        );
    }
    Ok(())
}

fn la_satf(case: &Case, histories: &Histories) -> Result<(), Box<dyn Error>> {
    let preset = satf_sasrec::registry().preset(&format!("la-satf/{}", case.preset))?;
    let mut settings = preset.settings;
    settings.insert("max_len".to_owned(), Value::Integer(preset.protocol.max_len as i64));
    let configured = satf_sasrec::registry().find("la-satf")?.configure(&settings)?;
    let start = Instant::now();
    configured.learner.fit(histories, &())?;
    println!("{:10} la-satf, trained whole: {:6.2} s", case.name, start.elapsed().as_secs_f64());
    Ok(())
}
