//! A model file that is loaded takes little more memory than its own size, the first recommendation included.
//!
//! The peak of a process is the system's own figure (`VmHWM` of `/proc/self/status`), so every case runs in a process of its own: this
//! test program, started again with the path of a model in its environment.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

use satf::interactions::ItemIndex;
use satf::models::{Configured, FoldIn, LagWeights, PureSvdConfig, TransitionsConfig};
use satf::prepare::Histories;
use satf::recommend::{Model, Request};

const MODEL: &str = "SATF_TEST_MODEL";

/// The most memory this process ever had resident, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// What [`growth`] starts: loads the model and recommends once, and says by how much the peak grew.
#[test]
fn in_a_process_of_its_own() {
    let Some(path) = std::env::var_os(MODEL) else { return };
    // Threads and their stacks are there anyway.
    rayon::broadcast(|_| ());
    let before = peak();
    let model = Model::load(&path).unwrap();
    let answer = model.recommend(&[ItemIndex(3), ItemIndex(5)], &Request::new(10)).unwrap();
    assert_eq!(answer.items.len(), 10);
    println!("grew by {} bytes", peak() - before);
}

/// By how much loading a model and recommending once raises the peak of a process.
fn growth(path: &Path) -> u64 {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "in_a_process_of_its_own", "--nocapture", "--test-threads=1"];
    let output = Command::new(program).args(arguments).env(MODEL, path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (_, number) = said.split_once("grew by ").unwrap();
    number.split_once(" bytes").unwrap().0.parse().unwrap()
}

fn check(model: &Model, least_bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    model.save(&path).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size >= least_bytes, "{size} bytes are too few for a test");
    let growth = growth(&path);
    let share = growth as f64 / size as f64;
    println!("a file of {:.1} MiB: {:.1} MiB, {share:.3} of its size", mebibytes(size), mebibytes(growth));
    assert!(share <= 1.15, "{growth} bytes for a file of {size}");
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Factors of so many items, made by hand.
fn factors(num_items: usize, rank: usize) -> Model {
    let factor: Vec<f32> = (0..num_items * rank).map(|at| (at % 97) as f32 / 97.0 - 0.5).collect();
    let factors = satf::models::Array::from(factor);
    let fold_in = FoldIn::new(num_items, factors.clone(), factors, LagWeights::Flat).unwrap();
    let configured = Configured::new(PureSvdConfig::default()).unwrap();
    Model::new(&configured, &Histories::from_sequences(num_items, &[]), Box::new(fold_in))
}

/// Pairs of items from histories without any order.
fn pairs(num_items: u32, users: u32, len: u32) -> Model {
    let scattered = |place: u32| {
        let mixed = (place ^ place >> 15).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ mixed >> 12).wrapping_mul(0x297a_2d39) % num_items
    };
    let sequence = |user: u32| -> Vec<u32> { (0..len).map(|at| scattered(user * len + at)).collect() };
    let sequences: Vec<Vec<u32>> = (0..users).map(sequence).collect();
    let configured = Configured::new(TransitionsConfig::default()).unwrap();
    Model::train(&configured, &Histories::from_sequences(num_items as usize, &sequences), &()).unwrap()
}

#[test]
fn factors_stay_in_their_file() {
    check(&factors(100_000, 256), 97 << 20);
}

#[test]
fn sparse_rows_stay_in_their_file() {
    check(&pairs(40_000, 8_000, 100), 50 << 20);
}

/// Who recommends does not need the events: neither for the checksum nor for anything else are they read.
#[test]
fn events_stay_in_their_file_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    let sequences: Vec<Vec<u32>> =
        (0..100_000u32).map(|user| (0..40).map(|at| (user * 31 + at * at) % 500).collect()).collect();
    let histories = Histories::from_sequences(500, &sequences);
    let configured = Configured::new(TransitionsConfig::default()).unwrap();
    let mut model = Model::train(&configured, &histories, &()).unwrap();
    model.save(&path).unwrap();
    let (plain, taken) = (std::fs::metadata(&path).unwrap().len(), growth(&path));
    model.keep_statistics(histories);
    model.save(&path).unwrap();
    let (size, with_events) = (std::fs::metadata(&path).unwrap().len(), growth(&path));
    assert!(size > plain + (45 << 20), "{size} bytes are too few for a test");
    println!(
        "{:.1} MiB of {:.1}, without events {:.1} of {:.1}",
        mebibytes(with_events),
        mebibytes(size),
        mebibytes(taken),
        mebibytes(plain)
    );
    assert!(with_events <= taken + (2 << 20), "{with_events} bytes, {taken} without events");
}

#[test]
#[ignore = "files of 1 GiB, and the memory to make them"]
fn a_file_of_a_gibibyte() {
    check(&factors(1 << 20, 256), 1 << 30);
    check(&pairs(500_000, 145_000, 100), 1 << 30);
}
