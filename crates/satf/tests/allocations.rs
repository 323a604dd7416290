//! One history after the other costs no memory of the catalogue's size: an allocator that counts watches every model.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use satf::interactions::ItemIndex;
use satf::models::{
    Configured, DSatfConfig, FoldIn, LagWeights, PopularityConfig, PureSvdConfig, RandomConfig,
    TransitionsConfig, VmisKnnConfig, Workspace,
};
use satf::prepare::Histories;
use satf::recommend::{Fallback, Model, Request};

/// The system's allocator, which counts the bytes it is asked for on each thread.
struct Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.with(|bytes| bytes.set(bytes.get() + size));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes allocated on this thread meanwhile.
fn allocated(work: impl FnOnce()) -> usize {
    let before = BYTES.with(Cell::get);
    work();
    BYTES.with(Cell::get) - before
}

const ITEMS: usize = 200_000;

/// A small log over a large catalogue.
fn histories() -> Histories {
    let sequences: Vec<Vec<u32>> =
        (0..400u32).map(|user| (0..20).map(|at| (user * 499 + at * 37) % ITEMS as u32).collect()).collect();
    Histories::from_sequences(ITEMS, &sequences)
}

fn models() -> Vec<Model> {
    let histories = histories();
    let pairs = DSatfConfig { balance: Some(0.0), ..Default::default() };
    let configured = [
        Configured::new(PopularityConfig::default()),
        Configured::new(RandomConfig::default()),
        Configured::new(TransitionsConfig::default()),
        Configured::new(VmisKnnConfig::default()),
        Configured::new(pairs),
    ];
    let mut models: Vec<Model> = configured
        .into_iter()
        .map(|configured| Model::train(&configured.unwrap(), &histories, &()).unwrap())
        .collect();
    let factor: Vec<f32> = (0..ITEMS * 32).map(|at| (at % 89) as f32 / 89.0 - 0.4).collect();
    let fold_in = FoldIn::new(ITEMS, factor.clone(), factor, LagWeights::Flat).unwrap();
    let factors = Configured::new(PureSvdConfig::default()).unwrap();
    models.push(Model::new(&factors, &histories, Box::new(fold_in)));
    models
}

#[test]
fn after_the_first_history_nothing_of_the_catalogues_size_is_allocated() {
    let known: Vec<ItemIndex> = (0..10).map(|at| ItemIndex(at * 37)).collect();
    for model in models() {
        let name = model.manifest().model.as_str();
        let mut workspace = Workspace::new();
        let mut workspace = |request: &Request| {
            allocated(|| {
                let prepared = model.prepare(request).unwrap();
                let answer = prepared.answer(&known, &mut workspace).unwrap();
                assert_eq!(answer.items.len(), request.n, "{name}");
            })
        };
        let request = Request {
            exclude: (0..50).map(Into::into).collect(),
            boosts: vec![(7000.into(), 0.5)],
            ..Request::new(10)
        };
        let first = workspace(&request);
        assert!(first >= 4 * ITEMS, "{name}: {first} bytes at first: nothing is measured");
        for n in [10, 20] {
            let later = workspace(&Request { n, ..request.clone() });
            assert!(later < ITEMS / 4, "{name}: {later} bytes for a list of {n}");
        }
        // The same through the workspaces that a model keeps, and for a history of which nothing is known.
        let fallback = Request { fallback: Fallback::Popular, ..request };
        for history in [&known[..], &[]] {
            model.recommend(history, &fallback).unwrap();
            let later = allocated(|| drop(model.recommend(history, &fallback).unwrap()));
            assert!(later < ITEMS / 4, "{name}: {later} bytes for a history of {}", history.len());
        }
    }
}
