//! Who wins where a key is given in several places: the command line over a file, whatever the command.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;

use satf_binary::{only_run, satf, shop_log};
use serde_json::Value;

/// Keys of these models that a file and options give.
const FILE: &str = "seed = 7\nmax_len = 9\nmemory_bytes = 2000000000\n";
const OPTIONS: [&str; 6] = ["--seed", "3", "--max-len", "20", "--memory", "1GB"];

fn configuration<'v>(report: &'v Value, pointer: &str) -> [&'v Value; 3] {
    let keys = report.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {report}"));
    ["seed", "max_len", "memory_bytes"].map(|key| &keys[key])
}

#[test]
fn options_win_over_a_configuration_file() {
    let (folder, log) = shop_log(120);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("keys.toml"), FILE).unwrap();
    let config = at("keys.toml");
    let both = [&["--config", &config][..], &OPTIONS].concat();
    let json = |line: &[&str]| -> Value { serde_json::from_str(&satf(line).succeeds()).unwrap() };

    let train = ["train", &log, "-m", "la-satf", "--set", "num_iters=1", "-o", &at("m.satf"), "--json"];
    let trained = json(&[&train[..], &both].concat());
    assert_eq!(configuration(&trained, "/manifest/configuration"), [3, 20, 1_000_000_000]);
    // The file says what no option says.
    let trained = json(&[&train[..], &["--config", &config, "--max-len", "20"]].concat());
    assert_eq!(configuration(&trained, "/manifest/configuration"), [7, 20, 2_000_000_000]);
    // One key for one model alone is more than an option for all.
    let own = [&train[..], &both, &["--set", "la-satf.max_len=11"]].concat();
    assert_eq!(configuration(&json(&own), "/manifest/configuration")[1], 11);

    let evaluate = ["evaluate", &log, "-m", "la-satf", "--set", "num_iters=1", "--test", "1month", "--json"];
    let run = only_run(&satf(&[&evaluate[..], &both].concat()).succeeds());
    assert_eq!(configuration(&run, "/configuration"), [3, 20, 1_000_000_000]);

    fs::write(at("several.toml"), "[la-satf]\nmax_len = 9\nnum_iters = 1\n[transitions]\nmax_len = 8\n")
        .unwrap();
    let several =
        ["evaluate", &log, "-m", "la-satf,transitions", "--config", &at("several.toml"), "--max-len", "20"];
    let runs = json(&[&several[..], &["--test", "1month", "--json"]].concat());
    for number in ["0", "1"] {
        assert_eq!(configuration(&runs, &format!("/runs/{number}/configuration"))[1], 20, "{number}");
    }

    fs::write(at("space.toml"), "keys.window = [2, 3]\nkeys.max_len = [5, 6]\n").unwrap();
    fs::write(at("window.toml"), "max_len = 9\n").unwrap();
    let (space, study, file) = (at("space.toml"), at("study"), at("window.toml"));
    let tune = ["tune", &log, "-m", "transitions", "--space", &space, "--study", &study, "--config", &file];
    let tuned =
        json(&[&tune[..], &["--max-len", "20", "--valid", "1month", "--test", "1month", "--json"]].concat());
    assert_eq!(tuned["asked"]["settings"]["max_len"], 20, "{tuned}");
    assert_eq!(tuned["asked"]["space"]["keys"]["max_len"], serde_json::json!([20]), "{tuned}");
}

#[cfg(feature = "serve")]
#[test]
fn options_of_a_server_win_over_its_file() {
    let (folder, log) = shop_log(60);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    satf(&["train", &log, "-m", "mp", "-o", &at("m.satf")]).succeeds();
    fs::write(at("serve.toml"), "models = \"nowhere.satf\"\nlisten = \"0.0.0.0:1\"\n[limits]\nn = 0\n")
        .unwrap();
    let line = ["serve", &at("m.satf"), "--config", &at("serve.toml"), "--check"];
    let options = ["--listen", "127.0.0.1:0", "--set", "limits.n=5"];
    satf(&[&line[..], &options].concat()).succeeds();
    assert_ne!(satf(&line).code, 0);
}
