//! Sizes that no log can fill: every whole number of every model's configuration, set to far too much, ends in a model or in a
//! message. Nothing panics, nothing takes memory that the log does not call for, and nothing goes on for ever.
//!
//! An allocator that counts stands in for the usual one, so everything is in one test: others at the same time would
//! be counted too.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use satf::History;
use satf::interactions::ItemIndex;
use satf::models::{Iteration, ModelEntry, Registry, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::Histories;
use satf::recommend::{Model, Request};
use toml::{Table, Value};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Buffers of the kernel of dense products are as large as a cache and reserved once per thread: they are not the model's.
const PAGE: usize = 4096;

// SAFETY: everything is passed on to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() < PAGE {
            let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            PEAK.fetch_max(live, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if layout.align() < PAGE {
            LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Stops training that would go on after a few iterations.
struct Brief;

impl Monitor for Brief {}

impl TrainingMonitor for Brief {
    fn iteration(&self, iteration: &Iteration, _: &dyn Snapshot) -> ControlFlow<()> {
        if iteration.iteration < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// What a fit of a small log may take, with one key far too large and with many.
const MOST_BYTES: usize = 96 << 20;
const MOST_BYTES_OF_MANY: usize = 400 << 20;
const MOST_SECONDS: f64 = 120.0;

/// Forty users with four to twelve items of twenty.
fn small_log() -> Histories {
    let sequences: Vec<Vec<u32>> = (0..40u32)
        .map(|user| (0..4 + user % 9).map(|at| (user * 7 + at * (1 + user % 3)) % 20).collect())
        .collect();
    Histories::from_sequences(20, &sequences)
}

/// The keys that are whole numbers, those that are not set included.
fn whole_numbers(entry: &ModelEntry) -> Vec<String> {
    let accepts = |key: &str| {
        let alone = Table::from_iter([(key.to_owned(), Value::Integer(3))]);
        let fraction = Table::from_iter([(key.to_owned(), Value::Float(3.5))]);
        let is_of_type = |table: &Table| match entry.configure(table) {
            Ok(_) => true,
            Err(error) => !error.to_string().contains("invalid type"),
        };
        is_of_type(&alone) && !is_of_type(&fraction)
    };
    entry.defaults().keys().filter(|key| accepts(key)).cloned().collect()
}

/// Fits with these settings: a model that recommends, or a message that names what is wrong.
fn outcome(entry: &ModelEntry, settings: &Table, histories: &Histories) -> Result<Model, String> {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let start = Instant::now();
    let configured = entry.configure(settings).map_err(|error| error.to_string());
    let outcome =
        configured.and_then(|it| Model::train(&it, histories, &Brief).map_err(|error| error.to_string()));
    let taken = PEAK.load(Ordering::Relaxed) - before;
    let what = format!("{} with {settings:?}", entry.name);
    let most = if settings.len() == 1 { MOST_BYTES } else { MOST_BYTES_OF_MANY };
    assert!(taken < most, "{what} took {taken} bytes");
    assert!(start.elapsed().as_secs_f64() < MOST_SECONDS, "{what} took {:?}", start.elapsed());
    if let Err(message) = &outcome {
        assert!(message.contains(entry.name), "{what}: {message}");
    }
    outcome
}

#[test]
fn any_whole_number_gives_a_model_or_a_message() {
    let histories = small_log();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    let mut tried = 0;
    for entry in Registry::default().models() {
        for key in whole_numbers(entry) {
            for value in [65_537, 1_000_000, 1_000_000_000, 1 << 40, i64::MAX] {
                let settings = Table::from_iter([(key.clone(), Value::Integer(value))]);
                tried += 1;
                let Ok(model) = outcome(entry, &settings, &histories) else { continue };
                // A history longer than any that was learned from, and the file it goes into.
                let long: Vec<ItemIndex> = (0..3000).map(|at| ItemIndex(at % 20)).collect();
                let answer = model.recommend(History::new(&long[..19]), &Request::new(5)).unwrap();
                assert_eq!(answer.items.len(), 1, "{}: {key} = {value}", entry.name);
                assert!(model.recommend(&long, &Request::new(5)).unwrap().items.is_empty());
                model.save(&path).unwrap();
                assert!(std::fs::metadata(&path).unwrap().len() < 4 << 20, "{}: {key} = {value}", entry.name);
                Model::load(&path).unwrap();
            }
        }
    }
    assert!(tried > 100, "{tried} settings");

    // Several at once: each alone is cut to the log, together they must be too.
    for (name, settings) in [
        ("ga-satf", "max_len = 1000000\nposition_rank = 900000\nuser_rank = 100000\nitem_rank = 100000"),
        (
            "la-satf",
            "max_len = 1000000\nattention_window = 500000\nattention_rank = 1000\nsequences_rank = 500",
        ),
        ("la-satf", "max_len = 1000000\nattention_window = 1000000\nsequences_rank = 1"),
        ("d-satf", "max_len = 100000\nwindow = 100000\nrank = 20"),
        ("vmis-knn", "neighbors = 1000000000\nsample_size = 1000000000\nmax_items = 1000000000"),
    ] {
        let model = outcome(&Registry::default().find(name).unwrap(), &settings.parse().unwrap(), &histories)
            .unwrap();
        let answer = model.recommend(&[ItemIndex(3)], &Request::new(5)).unwrap();
        assert!(!answer.items.is_empty(), "{name}");
    }

    // A log that could fill them: what it would take is said, with what is allowed.
    let long = Histories::from_sequences(9, &[(0..60_000).map(|at| at % 9).collect(), vec![1, 2, 3]]);
    for (name, settings) in [
        ("ga-satf", "max_len = 60000"),
        ("la-satf", "max_len = 60000\nattention_window = 30000"),
        ("ga-satf", "max_len = 100\nmemory_bytes = 1000"),
        ("pure-svd", "memory_bytes = 100"),
        ("transitions", "memory_bytes = 100"),
        ("d-satf", "memory_bytes = 100"),
        ("ease", "memory_bytes = 100"),
    ] {
        let entry = Registry::default().find(name).unwrap();
        let message = outcome(&entry, &settings.parse().unwrap(), &long).err().unwrap();
        assert!(message.contains("bytes") && message.contains("allowed"), "{name}: {message}");
    }
}
