//! Training takes no more memory than it says before it begins.

// Counting allocations takes an allocator.
#![allow(clippy::unwrap_used, unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::ThreadPoolBuilder;
use satf::models::{Checkpoints, Learner, ModelError, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::Histories;
use satf_sasrec::{Loss, SasRecConfig};

/// The system's allocator, with a count of the bytes in use and of the most that ever were.
///
/// Whole pages are not counted: matrix products reserve some once for every thread, twice the size of the last cache, and
/// write to a small part of them.
struct Counting;

const PAGE: usize = 4096;

fn counted(layout: Layout) -> usize {
    if layout.align() < PAGE { layout.size() } else { 0 }
}

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(counted(layout), Ordering::SeqCst) + counted(layout);
        MOST.fetch_max(now, Ordering::SeqCst);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(counted(layout), Ordering::SeqCst);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Keeps checkpoints in a folder.
struct Keeps<'a>(&'a Path);

impl Monitor for Keeps<'_> {}

impl TrainingMonitor for Keeps<'_> {
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

impl Checkpoints for Keeps<'_> {
    fn folder(&self) -> &Path {
        self.0
    }
}

#[test]
fn training_takes_no_more_than_it_says() {
    let sequences: Vec<Vec<u32>> =
        (0..600u32).map(|user| (0..2 + user % 90).map(|at| (user * 7 + at * at) % 400).collect()).collect();
    let log = Histories::from_sequences(400, &sequences);
    // As many threads as groups of sequences: all of them are on their way at once.
    let pool = ThreadPoolBuilder::new().num_threads(32).build().unwrap();
    for (hidden, blocks, dropout) in [(2, 1, 0.1), (64, 2, 0.0), (24, 5, 0.5)] {
        for loss in [Loss::Bce, Loss::Ce, Loss::SampledCe] {
            let config = SasRecConfig {
                loss,
                hidden,
                blocks,
                dropout,
                negatives: 50,
                batch_size: 150,
                epochs: 1,
                max_len: 80,
                memory_bytes: Some(1),
                ..Default::default()
            };
            let Err(ModelError::Memory { needed, .. }) = config.check_on(&log) else { panic!("no bound") };
            let config = SasRecConfig { memory_bytes: Some(needed), ..config };
            let folder = tempfile::tempdir().unwrap();
            let before = NOW.load(Ordering::SeqCst);
            MOST.store(before, Ordering::SeqCst);
            let model = pool.install(|| config.fit(&log, &Keeps(folder.path())).unwrap());
            let taken = MOST.load(Ordering::SeqCst) - before;
            drop(model);
            assert!(taken as u64 <= needed, "{config:?}: {taken} bytes instead of {needed}");
        }
    }
}
