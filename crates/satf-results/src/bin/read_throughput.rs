//! How fast a million reviews in Steam's raw format are read, and in how much memory; or files of one's own.
//!
//! ```sh
//! cargo build --release -p satf-results --bin read_throughput
//! taskset -c 0 target/release/read_throughput [rows | files...]
//! ```

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use satf::data::{ReadOptions, read_log};

const WORDS: [&str; 16] = [
    "the",
    "game",
    "is",
    "good",
    "but",
    "I don\\'t",
    "like",
    "how",
    "it",
    "crashes",
    "\\u2665",
    "after",
    "ten",
    "hours",
    "of\\n",
    "10/10",
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = match arguments.as_slice() {
        [] => 1_000_000,
        [rows] if rows.parse::<usize>().is_ok() => rows.parse()?,
        files => return measure(&files.iter().map(PathBuf::from).collect::<Vec<_>>()),
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("steam_reviews.json");
    write_reviews(&path, rows)?;
    measure(&[path])
}

fn measure(paths: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    println!("peak memory before reading {}", peak_memory());
    for _ in 0..3 {
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        let (log, report) = read_log(paths, &ReadOptions::default(), &())?;
        let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu_start);
        let megabytes = report.text_bytes as f64 / 1e6;
        println!(
            "{megabytes:.0} MB in {seconds:.2} s ({cpu:.2} s on the processor): {:.0} MB/s ({:.0}); \
             {} users, {} items, {} rows; peak memory {}",
            megabytes / seconds,
            megabytes / cpu,
            log.users().len(),
            log.items().len(),
            log.rows().len(),
            peak_memory(),
        );
    }
    Ok(())
}

/// Reviews with the keys of the original, a text of some hundred bytes, a third as many users as rows.
fn write_reviews(path: &Path, rows: usize) -> std::io::Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut file = BufWriter::new(File::create(path)?);
    let num_users = (rows / 3).max(1);
    for _ in 0..rows {
        // The product of two uniform numbers leans to the low end, as popularity does.
        let user = (random.random::<f64>() * random.random::<f64>() * num_users as f64) as usize;
        let item = (random.random::<f64>() * random.random::<f64>() * 15_000.0) as usize * 10 + 10;
        let (year, month, day) =
            (random.random_range(2010..2018), random.random_range(1..13), random.random_range(1..29));
        write!(
            file,
            "{{u'username': u'player \\xe9 {user}', u'hours': {:.1}, u'products': {}, u'product_id': u'{item}', \
             u'page_order': {}, u'date': u'{year}-{month:02}-{day:02}', u'text': u'",
            random.random_range(0.0..900.0),
            random.random_range(1..400),
            random.random_range(0..10),
        )?;
        for _ in 0..random.random_range(4..110) {
            write!(file, "{} ", WORDS[random.random_range(0..WORDS.len())])?;
        }
        writeln!(file, "', u'early_access': False, u'page': {}}}", random.random_range(1..300))?;
    }
    file.flush()
}

/// The most memory this process ever had, where the system tells.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.map_or_else(|| "unknown".to_owned(), |peak| peak.trim().to_owned())
}

/// Time on the processor so far: on a busy machine the clock on the wall counts others' work too.
fn cpu_seconds() -> f64 {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}
