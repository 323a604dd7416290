//! What is given twice, or for nobody: refused, for one of the two would be lost in silence.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;

use satf_binary::{satf, shop_log};

#[test]
fn a_setting_by_two_options_is_refused_if_they_differ() {
    let (folder, log) = shop_log(60);
    let output = folder.path().join("m.satf").to_str().unwrap().to_owned();
    let train = |options: &str| {
        let options: Vec<&str> = options.split(' ').collect();
        satf(&[&["train", &log, "-m", "ga-satf", "-o", &output][..], &options].concat())
    };
    for (options, option) in [
        ("--set max_len=5 --max-len 7", "--max-len says 7"),
        ("--set seed=4 --seed 5", "--seed says 5"),
        ("--set seed=4 --seed 0", "--seed says 0"),
        ("--set memory_bytes=5 --memory 1GB", "--memory says 1000000000"),
    ] {
        let outcome = train(options);
        assert_eq!(outcome.code, 2, "{options}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(option), "{options}: {}", outcome.stderr);
    }
    train("--set max_len=7 --max-len 7 --set ga-satf.seed=4 --seed 5").succeeds();
    for command in ["evaluate", "tune", "plan"] {
        let outcome = satf(&[command, &log, "-m", "ga-satf", "--set", "seed=4", "--seed", "5"]);
        assert_eq!(outcome.code, 2, "{command}: {}", outcome.stderr);
    }
}

#[test]
fn a_table_for_a_model_that_is_not_asked_for_is_refused() {
    let (folder, log) = shop_log(60);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for content in ["[pure-svd]\nrank = 3\n", "[pure-svd]\nnosuch = 3\n", "[mp]\n[pure-svd]\nrank = 3\n"] {
        fs::write(at("c.toml"), content).unwrap();
        for command in [&["train", &log, "-o", &at("m.satf")][..], &["evaluate", &log]] {
            let outcome = satf(&[command, &["-m", "mp", "--config", &at("c.toml")]].concat());
            assert_eq!(outcome.code, 1, "{content}: {}", outcome.stderr);
            let part = "[pure-svd] in the configuration file: pure-svd is not among the models";
            assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
        }
    }
}

#[test]
fn a_file_of_a_log_counts_once() {
    let (folder, log) = shop_log(60);
    let link = folder.path().join("again.parquet");
    fs::hard_link(&log, &link).unwrap();
    for other in [log.as_str(), link.to_str().unwrap()] {
        for command in ["stats", "evaluate"] {
            let outcome = satf(&[command, &log, other]);
            assert_eq!(outcome.code, 1, "{}", outcome.stdout);
            assert!(outcome.stderr.contains("this file is given twice"), "{}", outcome.stderr);
        }
    }
}

#[test]
fn an_item_with_two_titles_is_refused_by_all_who_read_them() {
    let (folder, log) = shop_log(60);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "-m", "mp", "-o", &at("m.satf")]).succeeds();
    fs::write(at("items.csv"), "item_id,title\ntent,Tent\nlaptop,Laptop\ntent,Zelt\n").unwrap();
    let mut commands = vec![vec!["recommend", "--history", "laptop", "--titles"]];
    if cfg!(feature = "serve") {
        commands.push(vec!["serve", "--check", "--items"]);
    }
    for command in commands {
        let outcome = satf(&[&command[..], &[&at("items.csv"), &at("m.satf")]].concat());
        assert_eq!(outcome.code, 1, "{}", outcome.stdout);
        for part in ["items.csv", "line 4", "\"Zelt\"", "\"Tent\"", "the item \"tent\""] {
            assert!(outcome.stderr.contains(part), "{command:?}: no '{part}' in {}", outcome.stderr);
        }
    }
}
