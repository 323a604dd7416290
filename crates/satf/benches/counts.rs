//! Counts that are kept, of made-up logs of 1 and 10 million rows: one more event, a user of 100 events forgotten, and a whole log
//! counted at once and event by event.
//!
//! `cargo bench -p satf --bench counts`. `read_sums` is the least that it would take to read the sums of pairs from a file instead of
//! counting them: the bytes, their checksum, and rows made of them.

use std::cell::RefCell;
use std::io::Write;
use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use satf::generate::{ShapeOptions, like};
use satf::{Counts, CountsOptions, Interactions, Timestamp};

fn main() {
    divan::main();
}

static LOG_1_000_000: LazyLock<Interactions> = LazyLock::new(|| log(100_000, 50_000));
static LOG_10_000_000: LazyLock<Interactions> = LazyLock::new(|| log(1_000_000, 200_000));

/// Ten events per user.
fn log(users: usize, items: usize) -> Interactions {
    let shape = ShapeOptions { users, items, rows: 10 * users, ..ShapeOptions::default() };
    like(&shape).expect("a possible shape")
}

fn counts(log: &Interactions) -> Counts {
    Counts::of(log, CountsOptions::default()).expect("few enough events")
}

thread_local! {
    /// Counted once, and changed by all who measure.
    static COUNTS: RefCell<Counts> = RefCell::new(counts(&LOG_10_000_000));
}

/// Items as popular as they are, one after the other.
fn item(log: &Interactions, at: usize) -> u32 {
    log.rows()[at.wrapping_mul(7_919) % log.len()].item.0
}

const AFTER_ALL: i64 = 2_000_000_000;

/// A new event of a user who has some ten, after all of them.
#[divan::bench(sample_count = 200, sample_size = 50)]
fn add_one_event_to_10_000_000_rows(bencher: Bencher) {
    let log = &*LOG_10_000_000;
    COUNTS.with_borrow_mut(|counts| {
        let mut at = 0usize;
        bencher.bench_local(|| {
            at += 1;
            let user = (at.wrapping_mul(104_729) % log.users().len()) as u32;
            let time = Timestamp::from_seconds(AFTER_ALL + at as i64);
            counts.add(log.users().get(user as usize), log.items().get(item(log, at) as usize), time)
        });
    });
}

/// A user with 100 events, who is made outside the timer.
#[divan::bench(sample_count = 100, sample_size = 1)]
fn forget_user_of_100_events_among_10_000_000_rows(bencher: Bencher) {
    let log = &*LOG_10_000_000;
    COUNTS.with_borrow_mut(|counts| {
        let counts = RefCell::new(counts);
        let at = RefCell::new(0usize);
        let make = || {
            for _ in 0..100 {
                let mut at = at.borrow_mut();
                *at += 1;
                let time = Timestamp::from_seconds(*at as i64 * 1000);
                let item = log.items().get(item(log, *at) as usize);
                counts.borrow_mut().add(-1, item, time).expect("few enough events");
            }
        };
        bencher.with_inputs(make).bench_local_values(|()| {
            let forgotten = counts.borrow_mut().forget_user(-1);
            assert_eq!(forgotten, 100);
        });
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn of_log_of_1_000_000_rows(bencher: Bencher) {
    let log = &*LOG_1_000_000;
    bencher.bench_local(|| counts(log));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn event_by_event_1_000_000_rows(bencher: Bencher) {
    let log = &*LOG_1_000_000;
    bencher.bench_local(|| {
        let mut counts = Counts::default();
        for row in log.rows() {
            let (user, item) = (log.users().get(row.user.get()), log.items().get(row.item.get()));
            counts.add(user, item, row.time).expect("few enough events");
        }
        counts
    });
}

/// As many sums as the log has, eight bytes for what a sum is of and eight for the sum.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn read_sums_of_1_000_000_rows(bencher: Bencher) {
    let log = &*LOG_1_000_000;
    let sums = counts(log).num_sums();
    let mut file = tempfile::NamedTempFile::new().expect("a folder for temporary files");
    for at in 0..sums as u64 {
        file.write_all(&[at.to_le_bytes(), 1i64.to_le_bytes()].concat()).expect("room for the sums");
    }
    let row_len = sums.div_ceil(log.items().len());
    bencher.counter(BytesCount::new(16 * sums)).bench_local(|| {
        let bytes = std::fs::read(file.path()).expect("what was written");
        let checksum = blake3::Hasher::new().update_rayon(&bytes).finalize();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let sum = |bytes: &[u8]| (number(&bytes[..8]), number(&bytes[8..]) as i64);
        let row = |bytes: &[u8]| bytes.chunks_exact(16).map(sum).collect::<Vec<_>>();
        let rows: Vec<Vec<(u64, i64)>> = bytes.chunks(16 * row_len).map(row).collect();
        black_box((checksum, rows))
    });
}
