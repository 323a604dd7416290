//! Bad input gets a clear message and a non-zero exit, never a panic.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use satf_binary::satf;

fn write(folder: &Path, name: &str, content: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// `command` on a file with `content` fails with all of `parts` in its message.
fn refused(command: &[&str], name: &str, content: &[u8], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), name, content);
    let mut arguments = vec![command[0], path.as_str()];
    arguments.extend(&command[1..]);
    let outcome = satf(&arguments);
    assert_eq!(outcome.code, 1, "{name}: {} {}", outcome.stdout, outcome.stderr);
    for part in parts {
        assert!(outcome.stderr.contains(part), "{name}: no '{part}' in: {}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("error: "), "{name}: {}", outcome.stderr);
    assert!(outcome.stderr.len() < 2000, "{name}: a message this long helps nobody");
}

const EVALUATE: [&str; 7] = ["evaluate", "--model", "pure-svd", "--valid", "1day", "--test", "1day"];

#[test]
fn files_that_hold_no_log() {
    refused(&["stats"], "empty.csv", b"", &["empty.csv", "empty"]);
    refused(&["stats"], "header.csv", b"userid,itemid,timestamp\n", &["header.csv", "no rows"]);
    refused(&["stats"], "nul.csv", b"userid,itemid,timestamp\n1,2,3\n1,\0,4\n", &["nul.csv", "line 3"]);
    refused(&["stats"], "noise.bin", &[0x9f, 0x00, 0xff, 0x80, 0x13, 0x37].repeat(500), &["noise.bin"]);
    let missing = satf(&["stats", "/nowhere/log.csv"]);
    assert!(missing.code == 1 && missing.stderr.contains("/nowhere/log.csv"), "{}", missing.stderr);
    let folder = tempfile::tempdir().unwrap();
    assert!(satf(&["stats", folder.path().to_str().unwrap()]).stderr.contains("folder"));
}

#[test]
fn compressed_files_cut_short() {
    let mut text = Vec::from(&b"userid,itemid,timestamp\n"[..]);
    for row in 0..20_000u64 {
        writeln!(text, "{},{},{}", row % 977, row * 7919 % 1009, 1_400_000_000 + row * 60).unwrap();
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    refused(&["stats"], "log.csv.gz", &gzip[..gzip.len() / 2], &["log.csv.gz", "truncated"]);
    let zstd = zstd::encode_all(&text[..], 3).unwrap();
    refused(&["stats"], "log.csv.zst", &zstd[..zstd.len() / 2], &["log.csv.zst", "truncated"]);
}

#[test]
fn damaged_parquet_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = Vec::from(&b"userid,itemid,timestamp\n"[..]);
    for row in 0..300 {
        writeln!(text, "{},{},{}", row % 17, row % 23, 1_400_000_000 + row).unwrap();
    }
    let csv = write(folder.path(), "log.csv", &text);
    let log = folder.path().join("log.parquet");
    assert_eq!(satf(&["prepare", &csv, "-o", log.to_str().unwrap()]).code, 0);
    let whole = fs::read(&log).unwrap();
    let mut refusals = 0;
    for at in (0..whole.len()).step_by(whole.len() / 150) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xa5;
        let outcome = satf(&["stats", &write(folder.path(), "damaged.parquet", &damaged)]);
        assert!([0, 1].contains(&outcome.code), "byte {at}: exit {}, {}", outcome.code, outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "byte {at}: {}", outcome.stderr);
        refusals += outcome.code;
    }
    assert!(refusals > 50, "{refusals} damages noticed");
}

#[test]
fn a_decoder_that_panics_is_not_heard() {
    // Pages of version 2, one of whose lengths is wrong: the crate that panics is none of the decoder's own.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/damaged_page_v2.parquet");
    let outcome = satf(&["stats", path.to_str().unwrap()]);
    assert_eq!((outcome.code, outcome.stderr.lines().count()), (1, 1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("damaged_page_v2.parquet"), "{}", outcome.stderr);
    if cfg!(feature = "serve") {
        let items = satf(&["serve", "nowhere.satf", "--check", "--items", path.to_str().unwrap()]);
        assert!(items.code == 1 && items.stderr.contains("damaged_page_v2.parquet"), "{}", items.stderr);
    }
}

#[test]
fn a_line_of_a_hundred_megabytes() {
    let mut text = Vec::from(&b"userid,itemid,timestamp\n1,"[..]);
    text.resize(100_000_000, b'7');
    refused(&["stats"], "long.csv", &text, &["long.csv", "line 2", "longer than"]);
}

#[test]
fn rows_that_do_not_fit() {
    let log = |row: &str| format!("userid,itemid,timestamp\n1,10,1500000000\n{row}\n").into_bytes();
    refused(
        &["stats"],
        "user.csv",
        &log("x7,10,1500000001"),
        &["line 3", "userid", "x7", "--user-type string"],
    );
    refused(&["stats"], "time.csv", &log("1,11,1e30"), &["line 3", "timestamp", "1e30"]);
    refused(&["stats"], "nan.csv", &log("1,11,NaN"), &["line 3", "timestamp", "NaN"]);
    refused(&["stats"], "word.csv", &log("1,11,yesterday"), &["line 3", "timestamp", "yesterday"]);
    refused(&["stats"], "short.csv", &log("1,11"), &["line 3"]);
    let json = b"{\"user\": 1, \"item\": 2, \"time\": 3}\n{\"user\": \"x\", \"item\": 2, \"time\": 4}\n";
    refused(&["stats"], "mixed.jsonl", json, &["line 2", "user"]);
    let unknown = ["stats", "--user-column", "usrid"];
    refused(&unknown, "columns.csv", &log("1,11,1500000001"), &["usrid", "userid"]);
}

#[test]
fn bad_rows_are_tolerated_up_to_the_number_given() {
    let folder = tempfile::tempdir().unwrap();
    let content = b"userid,itemid,timestamp\n1,10,5\n1,11,x\n2,10,6\n2,,7\n";
    let path = write(folder.path(), "log.csv", content);
    let outcome = satf(&["stats", &path, "--skip-bad-rows", "2", "--json"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("skipped 2 bad rows"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("\"rows\": 2"), "{}", outcome.stdout);
    let outcome = satf(&["stats", &path, "--skip-bad-rows", "1"]);
    assert!(outcome.code == 1 && outcome.stderr.contains("more than 1 bad row,"), "{}", outcome.stderr);
}

#[test]
fn logs_that_cannot_be_evaluated() {
    let rows = |rows: &[(u32, u32, u32)]| {
        let mut text = String::from("userid,itemid,timestamp\n");
        for (user, item, day) in rows {
            text.push_str(&format!("{user},{item},{}\n", 1_500_000_000 + u64::from(*day) * 86_400));
        }
        text.into_bytes()
    };
    let one_user: Vec<_> = (0..20).map(|day| (1, day, day)).collect();
    refused(&EVALUATE, "one-user.csv", &rows(&one_user), &["1 user:", "at least 2"]);
    let one_item: Vec<_> = (0..20).map(|day| (day % 5, 1, day)).collect();
    refused(&EVALUATE, "one-item.csv", &rows(&one_item), &["1 item:", "at least 2"]);
    let mut unknown: Vec<_> = (0..20).map(|day| (day % 5, day % 4, day)).collect();
    unknown.extend([(1, 77, 22), (2, 78, 22)]);
    refused(
        &EVALUATE,
        "unknown.csv",
        &rows(&unknown),
        &["no event of the test set can be scored", "2 are of items"],
    );
    let order = ["stats", "--order-matters", "--test", "1day"];
    refused(&order, "order-one-user.csv", &rows(&one_user), &["1 user:", "at least 2"]);
    refused(&order, "order-one-item.csv", &rows(&one_item), &["1 item:", "at least 2"]);
    let one_day: Vec<_> = (0..20).map(|row| (row % 5, row % 4, 0)).collect();
    refused(&order[..2], "order-one-day.csv", &rows(&one_day), &["no usual offset", "--test 3weeks"]);
    let fine: Vec<_> = (0..20).map(|day| (day % 5, day % 4, day)).collect();
    let long = ["evaluate", "--model", "mp", "--valid", "3months", "--test", "1year"];
    refused(&long, "long.csv", &rows(&fine), &["no row is left for training", "2017-07-14"]);
    let gap = [(1, 1, 0), (2, 2, 1), (1, 2, 2), (1, 1, 60), (2, 1, 60)];
    let on_validation =
        ["evaluate", "--model", "mp", "--valid", "1day", "--test", "1day", "--on", "validation"];
    refused(&on_validation, "gap.csv", &rows(&gap), &["the validation set has no rows"]);
    refused(&EVALUATE, "order.txt", b"1 5\n1 6\n2 5\n2 7\n3 6\n3 7\n", &["no times", "leave-one-out"]);
}
