//! What may be meant in two ways, or cannot be read for certain, is refused with its place.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::io::Read as _;

use satf_binary::{Outcome, satf, shop_log};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    log: String,
}

impl Place {
    /// A log and a model of it.
    fn new() -> Self {
        let (folder, log) = shop_log(60);
        let place = Place { folder, log };
        satf(&["train", &place.log, "--model", "mp", "-o", &place.at("m.satf")]).succeeds();
        place
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.at(name), content).unwrap();
        self.at(name)
    }

    fn recommend(&self, options: &[&str]) -> Outcome {
        satf(&[&["recommend", &self.at("m.satf")], options].concat())
    }
}

#[track_caller]
fn refused(outcome: &Outcome, code: i32, parts: &[&str]) {
    assert_eq!(outcome.code, code, "{}{}", outcome.stdout, outcome.stderr);
    for part in parts {
        assert!(outcome.stderr.contains(part), "no '{part}' in {}", outcome.stderr);
    }
}

#[test]
fn a_name_that_occurs_twice_is_refused() {
    let place = Place::new();
    for (name, content, parts) in [
        ("h.csv", "user_id,history,history\n1,tent,stove\n", &["called \"history\"", "--history-column"][..]),
        ("h.csv", "user_id,item_id,Item ID\n1,tent,stove\n", &["called \"item_id\"", "--item-column"]),
        (
            "h.jsonl",
            "{\"user_id\":1,\"history\":[\"tent\"],\"history\":[\"mug\"]}\n",
            &["called \"history\""],
        ),
        (
            "h.jsonl",
            "{\"user_id\":1,\"history\":[\"tent\"]}\n{\"user_id\":2,\"history\":[\"tent\"],\"history\":[]}\n",
            &["line 2", "history appears twice"],
        ),
    ] {
        let path = place.write(name, content);
        refused(&place.recommend(&["--histories", &path]), 1, parts);
    }
    let first = "{\"user\":1,\"item\":\"a\",\"time\":1500000000}\n";
    for (second, role) in [
        ("{\"user\":1,\"user\":2,\"item\":\"b\",\"time\":1500000000}\n", "the user appears twice"),
        ("{\"user\":1,\"item\":\"b\",\"item\":\"c\",\"time\":1500000000}\n", "appears twice"),
        ("{\"user\":1,\"item\":\"b\",\"time\":1500000000,\"time\":1}\n", "the time appears twice"),
    ] {
        let path = place.write("log.jsonl", format!("{first}{second}"));
        refused(&satf(&["stats", &path]), 1, &["line 2", role]);
        // It is one bad row.
        satf(&["stats", &path, "--skip-bad-rows", "1"]).succeeds();
    }
    let steam = "{u'username': u'ann', u'product_id': u'1', u'date': u'2017-12-17', u'product_id': u'2'}\n";
    let path = place.write("steam.json", steam);
    refused(&satf(&["stats", &path, "--format", "steam"]), 1, &["line 1", "appears twice"]);
    for (option, content) in [
        ("--titles", "item_id,title,title\ntent,A,B\n"),
        ("--titles", "item_id,title,item_id\ntent,A,mug\n"),
        ("--boost", "item,boost,Boost\ntent,1,2\n"),
    ] {
        let path = place.write("table.csv", content);
        let path = if option == "--boost" { format!("@{path}") } else { path };
        refused(&place.recommend(&["--history", "tent", option, &path]), 1, &["line 1", "one column called"]);
    }
    let outcome =
        satf(&["train", &place.log, "-m", "pure-svd", "--set", "rank=2", "--set", "rank=3", "-o", "x.satf"]);
    refused(&outcome, 2, &["--set rank: this key is set twice"]);
}

#[test]
#[cfg(feature = "serve")]
fn a_server_refuses_names_that_occur_twice() {
    let place = Place::new();
    let items = place.write("items.csv", "item_id,price,price\ntent,1,2\n");
    let outcome = satf(&["serve", &place.at("m.satf"), "--items", &items, "--check"]);
    refused(&outcome, 1, &["line 1", "several columns called \"price\""]);
    let items = place.write("items.csv", b"item_id,title\ntent,Zelt\nmug,Gl\xfchwein\n");
    let outcome = satf(&["serve", &place.at("m.satf"), "--items", &items, "--check"]);
    refused(&outcome, 1, &["line 3", "valid UTF-8", "\\xfc"]);
    let set = ["--set", "limits.n=5", "--set", "limits.n=6"];
    let outcome = satf(&[&["serve", &place.at("m.satf"), "--check"], &set[..]].concat());
    refused(&outcome, 2, &["--set limits.n: this key is set twice"]);
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_line() {
    let place = Place::new();
    let titles = place.write("titles.csv", b"item_id,title\ntent,Zelt\nmug,Gl\xfchweintasse\n");
    let outcome = place.recommend(&["--history", "tent", "--titles", &titles]);
    refused(&outcome, 1, &["titles.csv, line 3, column 2", "valid UTF-8", "\\xfc"]);
    let boosts = format!("@{}", place.write("boosts.csv", b"tent,1\nm\xfcg,2\n"));
    let outcome = place.recommend(&["--history", "tent", "--boost", &boosts]);
    refused(&outcome, 1, &["boosts.csv, line 2, column 1", "valid UTF-8"]);
    let list = format!("@{}", place.write("list.txt", b"tent\nm\xfcg\n"));
    for option in ["--only", "--exclude", "--allow-seen"] {
        let outcome = place.recommend(&["--history", "tent", option, &list]);
        refused(&outcome, 1, &["list.txt, line 2", "valid UTF-8"]);
    }
}

#[test]
fn empty_ids_are_refused() {
    let place = Place::new();
    for history in ["tent,,laptop", "tent++laptop", "tent,", ",tent", "tent+"] {
        let outcome = place.recommend(&["--history", history]);
        refused(&outcome, 2, &["--history", "an empty id at place"]);
    }
    for option in ["--only", "--exclude", "--allow-seen"] {
        let outcome = place.recommend(&["--history", "tent", option, "mug,,laptop"]);
        refused(&outcome, 2, &[option, "place 2 is empty"]);
    }
    let path = place.write("h.csv", "user_id;history\n1;tent\n2;tent,,laptop\n");
    refused(&place.recommend(&["--histories", &path]), 1, &["line 3", "an empty id at place 2"]);
    // A history may be empty as a whole.
    let path = place.write("h.csv", "user_id;history\n1;tent\n2;\n");
    place.recommend(&["--histories", &path]).succeeds();
}

#[test]
fn several_boosts_may_stand_between_commas() {
    let place = Place::new();
    let boosted = |boosts: &[&str]| {
        let options: Vec<&str> = boosts.iter().flat_map(|boost| ["--boost", boost]).collect();
        place.recommend(&[&["--history", "laptop", "--json", "-n", "3"], &options[..]].concat())
    };
    let both = boosted(&["tent=100000,laptop sleeve=*500"]);
    assert_eq!(both.stderr, "");
    assert_eq!(both.succeeds(), boosted(&["tent=100000", "laptop sleeve=*500"]).succeeds());
    for boosts in ["tent=much,stove=5", "tent=5,,stove=5", "tent=5,=5"] {
        refused(&boosted(&[boosts]), 2, &["--boost", "hint: ids with commas go in @FILE"]);
    }
}

#[test]
fn rows_that_were_skipped_are_told_of_where_none_are_left() {
    let place = Place::new();
    let path = place.write("log.csv", "user,item,time\n1,,5\n2,,6\n");
    let outcome = satf(&["stats", &path, "--skip-bad-rows", "9"]);
    refused(&outcome, 1, &["no rows: all 2 rows are bad and were skipped; the first:", "line 2"]);
    let empty = place.write("log.csv", "user_id,item_id,timestamp\n");
    refused(&satf(&["stats", &empty, "--skip-bad-rows", "9"]), 1, &["no rows"]);
}

#[test]
fn endless_files_are_refused() {
    let place = Place::new();
    let bomb = |name: &str, bytes: usize| {
        let content = zstd::encode_all(std::io::repeat(b'\n').take(bytes as u64), 1).unwrap();
        place.write(name, content)
    };
    let config = bomb("bomb.toml", 17 << 20);
    let large = "holds more than 16.0 MiB";
    refused(
        &satf(&["train", &place.log, "--config", &config, "-o", &place.at("x.satf")]),
        1,
        &["bomb.toml", large],
    );
    refused(&satf(&["tune", &place.log, "-m", "pure-svd", "--space", &config]), 1, &["bomb.toml", large]);
    let suite = ["reproduce", "--data", ".", "--out", &place.at("out"), "--suite", &config];
    refused(&satf(&suite), 1, &["bomb.toml", large]);
    let list = format!("@{}", bomb("list", 257 << 20));
    refused(&place.recommend(&["--history", "tent", "--only", &list]), 1, &["holds more than 256.0 MiB"]);
    if cfg!(target_os = "linux") {
        let zero = "/dev/zero";
        refused(
            &satf(&["train", &place.log, "--config", zero, "-o", &place.at("x.satf")]),
            1,
            &[zero, large],
        );
        if cfg!(feature = "serve") {
            refused(&satf(&["serve", "--config", zero, "--check"]), 1, &[zero, large]);
        }
    }
}

#[test]
fn keys_of_model_files_are_there_once() {
    let place = Place::new();
    let file = fs::read(place.at("m.satf")).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(file[8..8 + length].to_vec()).unwrap();
    let place_of = r#""item_counts":"#;
    let tensor = &header[header.find(place_of).unwrap()..];
    let tensor = &tensor[..=tensor.find('}').unwrap()];
    let repeated = header.trim_end().strip_suffix('}').unwrap().to_owned() + "," + tensor + "}";
    let twice = header.replacen(r#"\"configuration\":{"#, r#"\"configuration\":{\"x\":1,\"x\":2,"#, 1);
    for (header, part) in
        [(repeated, "the key 'item_counts' appears twice"), (twice, "the key 'x' appears twice")]
    {
        let mut header = header.into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut file = [&(header.len() as u64).to_le_bytes()[..], &header, &file[8 + length..]].concat();
        seal(&mut file);
        let path = place.write("twice.satf", file);
        refused(&satf(&["inspect", &path]), 1, &["twice.satf", part]);
    }
}

/// Writes the checksum of a model file into it.
fn seal(file: &mut [u8]) {
    let at = file.windows(10).position(|bytes| bytes == b"checksum\":").unwrap() + 11;
    file[at..at + 64].fill(b'0');
    let digits = blake3::hash(file).to_hex();
    file[at..at + 64].copy_from_slice(digits.as_bytes());
}
