//! Exit codes mean what they say: 2 for what the command line alone gets wrong, 1 for what cannot be done. And what is wrong with a
//! file is said in words of its own.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use satf_binary::{satf, shop_log};

/// The words of a line, those in double quotes as one.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (at, part) in line.split('"').enumerate() {
        if at % 2 == 1 {
            words.push(part);
        } else {
            words.extend(part.split_whitespace());
        }
    }
    words
}

#[test]
fn what_the_command_line_alone_gets_wrong_exits_with_2() {
    // No file is there: none is needed to tell.
    for (line, part) in [
        ("evaluate x.csv --model nosuch", "unknown model 'nosuch'"),
        ("evaluate x.csv --model pur-svd", "did you mean 'pure-svd'"),
        ("evaluate x.csv --model pure-svd --set rank", "expected KEY=VALUE"),
        ("evaluate x.csv --model pure-svd --set nosuch=1", "unknown key 'nosuch'"),
        ("evaluate x.csv --model pure-svd --set rank=0", "rank = 0"),
        ("evaluate x.csv --model pure-svd --set rank=many", "rank"),
        ("evaluate x.csv --model mp,random --set seed=1", "say which one"),
        ("evaluate x.csv --model mp --set ease.x=1", "not among the models"),
        ("evaluate x.csv --preset nosuch/preset", "unknown preset"),
        ("evaluate x.csv --preset la-satf/amz-b,la-satf/ml-1m", "different protocols"),
        ("evaluate x.csv --model mp --at 0", "--at"),
        ("evaluate x.csv --model mp --at 10,0", "--at"),
        ("evaluate x.csv --model mp --at ten", "--at"),
        ("evaluate x.csv --model pure-svd --seed 9223372036854775808", "--seed"),
        ("evaluate x.csv --model mp --test soon", "such as 3weeks"),
        ("evaluate x.csv --model mp --early-stopping GOOD@10", "GOOD@10"),
        ("plan x.csv --model nosuch", "unknown model"),
        ("plan x.csv --model la-satf --set nosuch=1", "unknown key"),
        ("train x.csv -o m.satf --model nosuch", "unknown model"),
        ("train x.csv -o m.satf --preset nosuch", "unknown preset"),
        ("train x.csv -o m.satf --set nosuch=1", "unknown key"),
        ("train x.csv -o m.satf --model mp --quantize half", "cannot be quantized"),
        ("train x.csv -o m.satf --memory much", "--memory"),
        ("recommend m.satf --histories h.jsonl -o x.txt", ".jsonl, .csv or .parquet"),
        ("recommend m.satf --histories h.jsonl -o x", ".jsonl, .csv or .parquet"),
        ("recommend m.satf --history tent --boost tent", "ITEM=NUMBER"),
        ("recommend m.satf --history tent --boost tent=much", "ITEM=NUMBER"),
        ("recommend m.satf", "--history"),
        ("forget m.satf --user \"\"", "--user: the list is empty"),
        ("forget m.satf --user ann --user []", "--user: the list is empty"),
        ("forget m.satf --item \"\"", "--item: the list is empty"),
        ("forget m.satf --user ann,,bob", "place 2 is empty"),
        ("forget m.satf --user ann -o -", "not written to standard output"),
        ("train x.csv -o -", "not written to standard output"),
        ("train --update m.satf x.csv --model nosuch", "unknown model"),
        ("tune x.csv --model nosuch", "unknown model"),
        ("tune x.csv --model pure-svd --set nosuch=1", "unknown key"),
        ("tune x.csv --model pure-svd --set rank", "expected KEY=VALUE"),
        ("tune x.csv --model pure-svd,ease", "expected one model"),
        ("tune x.csv --model pure-svd --space nosuch", "has no space 'nosuch'"),
        ("tune x.csv --model mp", "mp has no space"),
        ("tune x.csv --model pure-svd --on validation", "--on validation"),
        ("tune x.csv --model pure-svd --trials 0", "--trials"),
        ("reproduce --data d --out o --only nosuch", "neither a dataset nor a model"),
        ("reproduce --data d --out o --with nosuch", "neither a dataset nor a model"),
        ("generate -o x.csv --users 0", "users = 0"),
        ("generate -o x.csv --days 3", "days = 3"),
        ("compare one.csv", "FILE"),
        ("compare one.csv two.csv --draws 3", "--draws"),
        ("stats x.csv --format xml", "xml"),
        ("prepare x.csv -o y.csv --duplicates none", "none"),
        ("nosuch", "nosuch"),
    ] {
        let outcome = satf(&words(line));
        assert_eq!(outcome.code, 2, "{line}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(part), "{line}: no '{part}' in {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("error: ") && outcome.stdout.is_empty(),
            "{line}: {}",
            outcome.stderr
        );
    }
    assert!(!Path::new("x.csv").exists() && !Path::new("o").exists());
}

#[test]
fn what_only_files_tell_exits_with_1() {
    let (folder, log) = shop_log(100);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (config, model) = (path("config.toml"), path("shop.satf"));
    satf(&["train", &log, "--model", "transitions", "-o", &model]).succeeds();
    let code = |line: &str| {
        let line = line.replace("LOG", &log).replace("CONFIG", &config).replace("MODEL", &model);
        let outcome = satf(&words(&line));
        (outcome.code, outcome.stderr)
    };
    // The file is to blame, the line is, or both are: then the line is.
    fs::write(&config, "rnak = 3\n").unwrap();
    let (found, said) = code("evaluate LOG --model pure-svd --config CONFIG");
    assert!(found == 1 && said.contains("did you mean 'rank'"), "{said}");
    assert_eq!(code("tune LOG --model pure-svd --config CONFIG").0, 1);
    assert_eq!(code("evaluate LOG --model pure-svd --config CONFIG --set scaling=much").0, 2);
    assert_eq!(code("tune LOG --model pure-svd --config CONFIG --set nosuch=1").0, 2);
    fs::write(&config, "rank = 3\n").unwrap();
    assert_eq!(code("evaluate LOG --model pure-svd --config CONFIG --set scaling=-1e9").0, 2);
    assert_eq!(code("evaluate LOG --model pure-svd --config CONFIG.missing").0, 1);
    assert_eq!(code("tune LOG --model pure-svd --space missing.toml").0, 1);
    assert_eq!(code("stats missing.csv").0, 1);
    assert_eq!(code("recommend MODEL --history tent --exclude nosuch --strict").0, 1);
    assert_eq!(code("recommend MODEL --history tent --exclude @missing").0, 1);
    assert_eq!(code("recommend MODEL --history [1.5,{}]").0, 2);
    assert_eq!(code("recommend MODEL --history tent --only [").0, 2);
    assert_eq!(code("recommend MODEL --history tent --only []").0, 2);
    let empty = satf(&["recommend", &model, "--history", "tent", "--only", ""]);
    assert!(empty.code == 2 && empty.stderr.contains("--only: the list is empty"), "{}", empty.stderr);
    for option in ["--only", "--exclude", "--history"] {
        let (found, said) = code(&format!("recommend MODEL {option} @"));
        assert!(found == 2 && said.contains("the name of a file after @"), "{said}");
    }
    for delimiter in ["\"", "\n", "\u{1b}", "ab", "é"] {
        let outcome = satf(&["stats", &log, "--delimiter", delimiter]);
        assert!(outcome.code == 2 && outcome.stderr.contains("--delimiter"), "{}", outcome.stderr);
    }
}

fn refused(folder: &Path, command: &[&str], name: &str, content: &[u8], parts: &[&str]) {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap();
    let mut arguments = vec![command[0], path];
    arguments.extend(&command[1..]);
    if command[0] == "compare" {
        arguments.push(path);
    }
    let outcome = satf(&arguments);
    assert_eq!(outcome.code, 1, "{name}: {}", outcome.stderr);
    for part in parts {
        assert!(outcome.stderr.contains(part), "{name}: no '{part}' in {}", outcome.stderr);
    }
}

#[test]
fn files_that_are_not_models_are_said_to_be_what_they_look_like() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long_csv = "userid,itemid,timestamp\n".to_owned() + &"1,2,3\n".repeat(100);
    let long_json = format!("{{\"user\": \"{}\"}}", "x".repeat(200));
    let (_shop, log) = shop_log(30);
    for (name, content, looks) in [
        ("empty.satf", &b""[..], "it is empty"),
        (
            "log.csv",
            long_csv.as_bytes(),
            "it looks like text, perhaps a log; it begins with userid,itemid,timestamp",
        ),
        ("short.csv", b"a,b\n", "it looks like text"),
        ("log.jsonl", long_json.as_bytes(), "it looks like JSON"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "it looks like a PNG picture"),
        ("log.parquet", &fs::read(&log).unwrap(), "it looks like a Parquet file"),
        ("noise.bin", &[0x9f, 0x00, 0xff, 0x80].repeat(100), "it looks like binary data"),
    ] {
        for command in [&["recommend", "--history", "x"][..], &["inspect"], &["similar", "x"]] {
            let parts = [name, "not a satf model file", looks, "hint: satf train"];
            refused(folder, command, name, content, &parts);
        }
    }
    let outcome = satf(&["inspect", folder.to_str().unwrap()]);
    assert!(outcome.code == 1 && outcome.stderr.contains("it is a folder"), "{}", outcome.stderr);
}

#[test]
fn files_of_scores_without_scores_are_said_to_be_empty() {
    let (place, log) = shop_log(100);
    let folder = place.path();
    refused(folder, &["compare"], "empty.csv", b"", &["empty.csv", "it is empty", "--per-event"]);
    let header = b"user_id,item_id,timestamp,history_length,rank,HR@10\n";
    refused(folder, &["compare"], "header.csv", header, &["header.csv", "it holds no events"]);
    // The same as Parquet: what is written for a log is a table without the columns of scores.
    let outcome = satf(&["compare", &log, &log]);
    assert!(outcome.code == 1 && outcome.stderr.contains("not per-event results"), "{}", outcome.stderr);
}

const TEXT: &[u8] = b"userid,itemid,timestamp\n1,2,1500000000\n1,3,1500000001\n2,2,1500000002\n";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn rows(folder: &Path, name: &str, content: &[u8]) -> u64 {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    let report = satf(&["stats", path.to_str().unwrap(), "--json"]).succeeds();
    serde_json::from_str::<serde_json::Value>(&report).unwrap()["rows"].as_u64().unwrap()
}

#[test]
fn what_follows_packed_data_is_told_from_damage() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let halves = [gzip(&TEXT[..30]), gzip(b""), gzip(&TEXT[30..])].concat();
    assert_eq!(rows(folder, "halves.csv.gz", &halves), 3);
    assert_eq!(rows(folder, "padded.csv.gz", &[&halves[..], &[0; 512]].concat()), 3);
    let appended = [&gzip(TEXT)[..], b"3,2,1500000003\n"].concat();
    let parts = ["appended.csv.gz", "not gzip", "after line 4", "3,2,1500000003", "hint:"];
    refused(folder, &["stats"], "appended.csv.gz", &appended, &parts);

    let frame = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    // A frame that other programs leave their notes in, of each of the sixteen kinds.
    for kind in 0x50..=0x5f {
        let note = [&[kind, 0x2A, 0x4D, 0x18, 5, 0, 0, 0][..], b"notes"].concat();
        let file = [&note[..], &frame(&TEXT[..30]), &note, &frame(&TEXT[30..]), &note].concat();
        assert_eq!(rows(folder, "notes.csv.zst", &file), 3, "{kind:x}");
    }
    let appended = [&frame(TEXT)[..], b"3,2,1500000003\n"].concat();
    let parts = ["appended.csv.zst", "not zstd", "after line 4", "hint:"];
    refused(folder, &["stats"], "appended.csv.zst", &appended, &parts);
    // A window of 2 GiB, which nobody has filled.
    let wide = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xA8, 0x01, 0x00, 0x00];
    let wide_parts = ["wide.csv.zst", "more than 128.0 MiB", "hint: decompress it"];
    refused(folder, &["stats"], "wide.csv.zst", &wide, &wide_parts);
    let only_notes = [&[0x50, 0x2A, 0x4D, 0x18, 5, 0, 0, 0][..], b"notes"].concat();
    refused(folder, &["stats"], "notes.zst", &only_notes, &["the file is empty"]);
}

#[test]
fn numbers_that_are_too_large_are_named_with_their_option_and_range() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("x.satf").to_str().unwrap().to_owned();
    for command in [&["evaluate", "log.csv"][..], &["train", "log.csv", "-o", &output], &["tune", "log.csv"]]
    {
        for option in ["--max-len", "--seed"] {
            let outcome = satf(&[command, &["--model", "ga-satf", option, "18446744073709551615"]].concat());
            assert_eq!(outcome.code, 2, "{}", outcome.stderr);
            for part in [option, "18446744073709551615", "9223372036854775807"] {
                assert!(outcome.stderr.contains(part), "{command:?}: no '{part}' in {}", outcome.stderr);
            }
        }
    }
}

#[test]
fn scores_may_be_packed() {
    let (place, log) = shop_log(100);
    let path = |name: &str| place.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    satf(&["evaluate", &log, "--model", "mp,random", "--per-event", &text("s.csv")]).succeeds();
    let compare = |mp: &str, random: &str| {
        satf(&["compare", &text(mp), &text(random), "--draws", "100", "--json"]).succeeds()
    };
    let plain = compare("s.mp.csv", "s.random.csv");
    fs::write(path("p.mp.csv.gz"), gzip(&fs::read(path("s.mp.csv")).unwrap())).unwrap();
    fs::write(
        path("p.random.csv.zst"),
        zstd::encode_all(&fs::read(path("s.random.csv")).unwrap()[..], 1).unwrap(),
    )
    .unwrap();
    let packed = compare("p.mp.csv.gz", "p.random.csv.zst");
    let metrics = |report: &str| {
        serde_json::from_str::<serde_json::Value>(report).unwrap()["comparisons"][0]["metrics"].clone()
    };
    assert_eq!(metrics(&packed), metrics(&plain));
}
