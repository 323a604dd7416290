//! Record batches are read where they lie: a log of them takes the memory of the log, and not that of a column more.
//!
//! An allocator that counts stands in for the usual one, so everything is in one test: others at the same time would
//! be counted too.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, LargeStringArray, RecordBatch, StringArray, TimestampSecondArray,
};
use satf::LogBuilder;
use satf::interactions::Interaction;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_column_is_copied() {
    const ROWS: usize = 1 << 19;
    let numbers = || (0..ROWS).map(|row| (row % 100) as i32);
    let texts = || (0..ROWS).map(|row| format!("item number {}", row % 50));
    let narrow: ArrayRef = Arc::new(Int32Array::from_iter_values(numbers()));
    let few: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..100).map(|id| format!("user number {id}"))));
    let dictionary = DictionaryArray::<Int32Type>::new(Int32Array::from_iter_values(numbers()), few);
    let long: ArrayRef = Arc::new(LargeStringArray::from_iter_values(texts()));
    let short: ArrayRef = Arc::new(StringArray::from_iter_values(texts()));
    let times: ArrayRef = Arc::new(TimestampSecondArray::from_iter_values(0..ROWS as i64));
    for (users, items) in [(narrow, long), (Arc::new(dictionary) as ArrayRef, short)] {
        let columns = [("user", users), ("item", items), ("time", Arc::clone(&times))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let mut builder = LogBuilder::new();
        builder.add_batch(&batch).unwrap();
        let taken = PEAK.load(Ordering::Relaxed) - before;
        // The rows, and once more half of them when their room is doubled for the last time.
        let rows = ROWS * size_of::<Interaction>();
        assert!(taken < rows + rows / 2 + (64 << 10), "{taken} bytes for rows of {rows}");
        assert_eq!(builder.finish().unwrap().len(), ROWS);
    }
}
