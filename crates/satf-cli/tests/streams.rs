//! Standard output and standard error: they never go into files that matter, and a terminal shows no leftovers.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use satf_binary::{SATF, satf, shop_log};

/// Runs a line, in which `%` stands for the folder, with a stream appended to a file of the folder. It has to refuse and change nothing.
fn refuses(folder: &Path, line: &str, precious: &str, is_error: bool) {
    let path = folder.join(precious);
    let before = fs::read(&path).unwrap();
    let words = line.split(' ').map(|word| word.replace('%', folder.to_str().unwrap()));
    let appended = OpenOptions::new().append(true).open(&path).unwrap();
    let mut command = Command::new(SATF);
    command.args(words).stdin(Stdio::null());
    if is_error {
        command.stderr(appended)
    } else {
        command.stdout(appended)
    };
    let output = command.output().unwrap();
    let (said, name) =
        if is_error { (output.stdout, "standard error") } else { (output.stderr, "standard output") };
    let said = String::from_utf8(said).unwrap();
    assert!(
        output.status.code() == Some(1) && said.contains(name) && said.contains("is a file that is also"),
        "{line} >> {precious}: {said}"
    );
    assert!(fs::read(&path).unwrap() == before, "{line}: {precious} changed");
}

#[test]
fn nothing_is_printed_into_files_that_are_read_or_kept() {
    let (folder, log) = shop_log(120);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("space.toml"), "keys.rank = [2, 4]\n").unwrap();
    fs::write(at("config.toml"), "item_rank = 3\n").unwrap();
    fs::write(at("serve.toml"), "").unwrap();
    fs::write(at("out.csv"), "x\n").unwrap();
    let suite = "title = 't'\n[[datasets]]\nname = 'shop'\nfiles = ['shop.parquet']\nvalid = '1month'\ntest = '1month'\n\
                 max_len = 20\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";
    fs::write(at("suite.toml"), suite).unwrap();
    satf(&["train", &log, "-m", "mp", "-o", &at("m.satf")]).succeeds();
    let tune = "tune %/shop.parquet -m pure-svd --space %/space.toml --study %/st --trials 2";
    let reproduce = "reproduce --data % --out %/out --suite %/suite.toml";
    for line in [tune, reproduce] {
        let words: Vec<String> =
            line.split(' ').map(|word| word.replace('%', folder.path().to_str().unwrap())).collect();
        satf(&words.iter().map(String::as_str).collect::<Vec<_>>()).succeeds();
    }
    let cells = fs::read_dir(at("out/cells")).unwrap().flatten();
    let cell = cells.map(|cell| cell.file_name().into_string().unwrap()).find(|name| !name.starts_with('.'));
    let cell = format!("out/cells/{}", cell.unwrap());
    for is_error in [false, true] {
        for (line, precious) in [
            (tune, "st/trials.jsonl"),
            (tune, "st/study.json"),
            (tune, "st/best.toml"),
            (tune, "space.toml"),
            ("tune status %/st", "st/study.json"),
            ("tune status %/st --json", "st/trials.jsonl"),
            (reproduce, "suite.toml"),
            (reproduce, "out/report.md"),
            (reproduce, &cell),
            ("plan %/shop.parquet -m la-satf --config %/config.toml", "config.toml"),
            ("stats %/shop.parquet", "shop.parquet"),
            ("prepare %/shop.parquet -o %/out.csv", "out.csv"),
            ("generate --users 50 -o %/out.csv", "out.csv"),
            ("serve --config %/serve.toml --check", "serve.toml"),
            ("serve %/m.satf --check", "m.satf"),
        ] {
            if cfg!(feature = "serve") || !line.starts_with("serve") {
                refuses(folder.path(), line, precious, is_error);
            }
        }
    }
    // Beside them it may be.
    let beside = File::create(at("st/status.txt")).unwrap();
    let status = Command::new(SATF).args(["tune", "status", &at("st")]).stdout(beside).status().unwrap();
    assert!(status.success());
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_is_a_failure() {
    for line in [&["--help"][..], &["--version"], &["stats", "--help"], &["help", "tune"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(SATF).args(line).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("standard output:"), "{line:?}: {said}");
        satf(line).succeeds();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_space_may_come_through_a_pipe() {
    let (folder, log) = shop_log(120);
    let study = folder.path().join("st");
    let script = "echo 'keys.rank = [2, 4]' | \"$0\" tune \"$1\" -m pure-svd --space /dev/fd/0 --study \"$2\" --trials 2 --json";
    let run = || {
        let output = Command::new("sh").args(["-c", script, SATF, &log]).arg(&study).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["asked"]["space"]["keys"]["rank"], serde_json::json!([2, 4]));
        report["result"].clone()
    };
    assert_eq!(run()["test"], run()["test"]);
}

/// What a terminal of this kind gets of a command, if there is a program that makes one.
#[cfg(target_os = "linux")]
fn on_a_terminal(term: &str, line: &str) -> Option<String> {
    let mut script = Command::new("script");
    script.args(["-qec", line, "/dev/null"]).env("TERM", term).stdin(Stdio::null());
    let output = script.output().ok()?;
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stdout));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn records_on_a_terminal_stand_alone() {
    let (folder, log) = shop_log(3000);
    let model = folder.path().join("m.satf").to_str().unwrap().to_owned();
    satf(&["train", &log, "-m", "mp", "-o", &model]).succeeds();
    let recommend = format!("{SATF} recommend {model} --histories {log}");
    let Some(shown) = on_a_terminal("xterm", &recommend) else { return };
    let records = shown.split("\r\n").filter(|line| line.contains("\"user_id\"")).count();
    assert!(records >= 3000, "{records}");
    for line in shown.split("\r\n").filter(|line| line.contains("\"user_id\"")) {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line:?}");
    }
    // Escapes are for terminals that know them.
    let prepare = format!("{SATF} prepare {log} -o {}", folder.path().join("again.csv").display());
    let (able, dumb) = (on_a_terminal("xterm", &prepare), on_a_terminal("dumb", &prepare));
    assert!(able.unwrap().contains("\u{1b}[K") && !dumb.unwrap().contains('\u{1b}'));
}
