//! Damaged model files are refused with a reason: no panic, and never more memory than the file has bytes for.
//!
//! An allocator that counts stands in for the usual one, so everything is in one test: others at the same time would
//! be counted too.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use satf::models::Registry;
use satf::prepare::Histories;
use satf::recommend::{Filters, Model};
use serde_json::{Value, json};

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

const CHECKSUM: std::ops::Range<usize> = 37..101;

/// The same content under a checksum that fits.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[CHECKSUM].fill(b'0');
    let checksum = blake3::hash(&bytes).to_hex();
    bytes[CHECKSUM].copy_from_slice(checksum.as_bytes());
    bytes
}

struct Trial {
    path: PathBuf,
}

impl Trial {
    /// Why `bytes` are refused, if they are; memory is watched.
    fn load(&self, bytes: &[u8]) -> Option<String> {
        std::fs::write(&self.path, bytes).unwrap();
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let outcome = Model::load(&self.path);
        let taken = PEAK.load(Ordering::Relaxed) - before;
        let allowed = 16 * bytes.len() + (256 << 10);
        assert!(taken <= allowed, "{taken} bytes were taken for a file of {}", bytes.len());
        match outcome {
            Err(error) => {
                let reason = error.to_string();
                assert!(reason.contains("model.satf") && reason.contains("hint:"), "{reason}");
                Some(reason)
            }
            Ok(model) => {
                // What was taken for a model must work as one.
                model.prepare_filters(3, &Filters::default()).unwrap().rank_batch(&[&[][..]]).unwrap();
                None
            }
        }
    }

    fn refuses(&self, bytes: &[u8]) -> String {
        self.load(bytes).expect("a damaged model was loaded")
    }
}

fn write_model(path: &Path, name: &str, settings: &str) -> Vec<u8> {
    let sequences: Vec<Vec<u32>> =
        (0..12u32).map(|user| (0..6).map(|at| (user + at * (1 + user % 2)) % 9).collect()).collect();
    let configured = Registry::default().find(name).unwrap().configure(&settings.parse().unwrap()).unwrap();
    let model = Model::train(&configured, &Histories::from_sequences(9, &sequences), &()).unwrap();
    model.save(path).unwrap();
    std::fs::read(path).unwrap()
}

/// The header as JSON, and what follows it.
fn parts(bytes: &[u8]) -> (Value, &[u8]) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[8..8 + length]).unwrap(), &bytes[8 + length..])
}

/// A file with this header, sealed.
fn assembled(header: &Value, data: &[u8]) -> Vec<u8> {
    let header = serde_json::to_vec(header).unwrap();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend(data);
    sealed(bytes)
}

#[test]
fn damage_is_refused_with_a_reason_and_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let trial = Trial { path: folder.path().join("model.satf") };
    let la_satf = "item_rank = 4\nuser_rank = 5\nmax_len = 5\nrescaled = true";
    let whole = write_model(&trial.path, "la-satf", la_satf);
    assert!(sealed(whole.clone()) == whole, "the checksum is not where it should be");
    assert_eq!(trial.load(&whole), None);

    // Every length.
    for length in 0..whole.len() {
        trial.refuses(&whole[..length]);
    }
    let longer: Vec<u8> = whole.iter().copied().chain([0]).collect();
    trial.refuses(&longer);

    // Single bits.
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..10_000 {
        let mut flipped = whole.clone();
        let at = random.random_range(0..8 * whole.len());
        flipped[at / 8] ^= 1 << (at % 8);
        trial.refuses(&flipped);
    }

    // Single bits under a checksum that fits, in every kind of model: most still load, none may panic.
    for (name, settings) in [
        ("la-satf", la_satf),
        ("mp", ""),
        ("random", ""),
        ("ease", ""),
        ("vmis-knn", ""),
        ("transitions", ""),
        ("pure-svd", "rank = 3"),
    ] {
        let whole = write_model(&trial.path, name, settings);
        for _ in 0..3_000 {
            let mut flipped = whole.clone();
            let at = random.random_range(0..8 * whole.len());
            flipped[at / 8] ^= 1 << (at % 8);
            if flipped[8..37] == whole[8..37] {
                trial.load(&sealed(flipped));
            }
        }
    }

    // Lengths that no file has.
    let mut long_header = whole.clone();
    long_header[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(trial.refuses(&long_header).contains("16.0 EiB"));
    let (header, data) = parts(&whole);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut header = header.clone();
        change(&mut header);
        trial.refuses(&assembled(&header, data))
    };
    let huge = 1u64 << 62;
    let reason = changed(&|header| header["item_factors"]["shape"] = json!([huge, huge]));
    assert!(reason.contains("an invalid model file"), "{reason}");
    let reason = changed(&|header| {
        header["item_factors"] = json!({ "dtype": "F32", "shape": [9, huge], "data_offsets": [0, u64::MAX] });
    });
    assert!(reason.contains("'item_factors' would end at byte 18446744073709551615"), "{reason}");
    changed(&|header| header["extra"] = json!({ "dtype": "F32", "shape": [huge], "data_offsets": [0, 4] }));
    changed(&|header| header["item_factors"]["shape"] = json!([36]));
    changed(&|header| header["item_factors"]["dtype"] = json!("I32"));

    // Content that contradicts itself.
    let metadata = |key: &str, value: &str| changed(&|header| header["__metadata__"][key] = json!(value));
    assert!(metadata("format_version", "2").contains("format version 2"));
    assert!(metadata("format", "other").contains("another format"));
    assert!(metadata("manifest", "{}").contains("its manifest"));
    let manifest = header["__metadata__"]["manifest"].as_str().unwrap();
    assert!(
        metadata("manifest", &manifest.replace("la-satf", "la-satg")).contains("did you mean 'la-satf'?")
    );
    let reason = metadata("manifest", &manifest.replace("\"user_rank\":5", "\"user_rank\":0"));
    assert!(reason.contains("user_rank = 0"), "{reason}");

    // Numbers that are none.
    let factors = header["item_factors"]["data_offsets"][0].as_u64().unwrap() as usize;
    for value in [f32::NAN, f32::INFINITY] {
        let mut data = data.to_vec();
        data[factors..factors + 4].copy_from_slice(&value.to_le_bytes());
        let reason = trial.refuses(&assembled(&header, &data));
        assert!(reason.contains("tensor 'item_factors'") && reason.contains("place 0"), "{reason}");
    }
    let ids = header["item_ids"]["data_offsets"][0].as_u64().unwrap() as usize;
    let mut data = data.to_vec();
    data[ids..ids + 8].copy_from_slice(&7i64.to_le_bytes());
    assert!(trial.refuses(&assembled(&header, &data)).contains("ascending, distinct ids"));
}
