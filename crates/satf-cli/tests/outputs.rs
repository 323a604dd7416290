//! Files that commands write: nothing that is read is ever lost, links and permissions stay.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use satf_binary::{SATF, satf, shop_log};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    /// A log, a model of it and everything else that commands read.
    fn new() -> Self {
        let (folder, log) = shop_log(200);
        let place = Place { folder };
        satf(&["prepare", &log, "-o", &place.text("log.csv")]).succeeds();
        let model = place.text("shop.satf");
        satf(&["train", &log, "--model", "la-satf", "--set", "item_rank=8", "-o", &model]).succeeds();
        for (name, content) in [
            ("histories.jsonl", "{\"user_id\": 1, \"history\": [\"tent\"]}\n"),
            ("titles.csv", "item_id,title\ntent,A tent\n"),
            ("list.csv", "tent\n"),
            ("config.toml", "rank = 5\n"),
            ("space.toml", "keys.rank = [2, 4]\n"),
        ] {
            fs::write(place.path(name), content).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        names(self.folder.path())
    }

    /// Runs with the words of a line, in which `%` stands for the folder. It has to refuse, change nothing and leave nothing.
    fn refuses(&self, line: &str, precious: &str, parts: &[&str]) {
        let before = (fs::read(self.path(precious)).unwrap(), self.names());
        let words: Vec<String> =
            line.split(' ').map(|word| word.replace('%', self.folder.path().to_str().unwrap())).collect();
        let outcome = satf(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(outcome.code, 1, "{line}: {} {}", outcome.stdout, outcome.stderr);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{line}: no '{part}' in {}", outcome.stderr);
        }
        assert!(
            before == (fs::read(self.path(precious)).unwrap(), self.names()),
            "{line}: something changed"
        );
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn nothing_is_written_over_what_is_read() {
    let place = Place::new();
    symlink("log.csv", place.path("link.csv")).unwrap();
    fs::hard_link(place.path("log.csv"), place.path("hard.csv")).unwrap();
    symlink("shop.satf", place.path("model.csv")).unwrap();
    symlink("titles.csv", place.path("pictures.svg")).unwrap();
    let is_read = "also read";
    for (line, precious, option) in [
        ("prepare %/log.csv -o %/log.csv", "log.csv", "--output"),
        ("prepare %/log.csv -o %/./link.csv", "log.csv", "--output"),
        ("prepare %/shop.parquet %/hard.csv -o %/log.csv", "log.csv", "LOG"),
        ("train %/log.csv -o %/log.csv", "log.csv", "--output"),
        ("train %/link.csv -o %/hard.csv", "log.csv", "--output"),
        (
            "train %/log.csv --model pure-svd --config %/config.toml -o %/config.toml",
            "config.toml",
            "--config",
        ),
        ("evaluate %/log.csv --model mp --per-event %/log.csv", "log.csv", "--per-event"),
        (
            "evaluate %/log.csv --model pure-svd --config %/config.toml --per-event %/config.toml",
            "config.toml",
            "--config",
        ),
        (
            "recommend %/shop.satf --histories %/histories.jsonl -o %/histories.jsonl",
            "histories.jsonl",
            "--histories",
        ),
        ("recommend %/shop.satf --histories %/histories.jsonl -o %/model.csv", "shop.satf", "MODEL"),
        (
            "recommend %/shop.satf --histories %/histories.jsonl --titles %/titles.csv -o %/titles.csv",
            "titles.csv",
            "--titles",
        ),
        (
            "recommend %/shop.satf --histories %/histories.jsonl --only @%/list.csv -o %/list.csv",
            "list.csv",
            "--only",
        ),
        (
            "recommend %/shop.satf --histories %/histories.jsonl --exclude @%/list.csv -o %/list.csv",
            "list.csv",
            "--exclude",
        ),
        ("inspect %/shop.satf --svg %/shop.satf", "shop.satf", "--svg"),
        ("inspect %/shop.satf --png %/model.csv", "shop.satf", "--png"),
    ] {
        place.refuses(line, precious, &[is_read, option]);
    }
    // The files of a study are known by its folder.
    for (name, line) in [
        ("best.toml", "tune %/log.csv --model pure-svd --config %/study/best.toml --study %/study"),
        ("trials.jsonl", "tune %/study/trials.jsonl --model pure-svd --study %/study"),
        ("result.json", "tune %/log.csv --model pure-svd --space %/space-link.toml --study %/study"),
    ] {
        fs::create_dir(place.path("study")).unwrap();
        let content = match name {
            "best.toml" => "config.toml",
            "trials.jsonl" => "log.csv",
            _ => "space.toml",
        };
        fs::copy(place.path(content), place.path("study").join(name)).unwrap();
        let _ = symlink("study/result.json", place.path("space-link.toml"));
        place.refuses(line, &format!("study/{name}"), &[is_read, "--study"]);
        assert_eq!(names(&place.path("study")), [name]);
        fs::remove_dir_all(place.path("study")).unwrap();
    }
}

#[test]
fn no_two_outputs_are_one_file() {
    let place = Place::new();
    fs::create_dir(place.path("deep")).unwrap();
    symlink("../curve", place.path("deep/curve")).unwrap();
    place.refuses(
        "inspect %/shop.satf --svg %/curve --png %/deep/../curve",
        "shop.satf",
        &["twice", "--png"],
    );
    place.refuses("inspect %/shop.satf --svg %/deep/curve --png %/curve", "shop.satf", &["twice", "--svg"]);
    // The names that several models make of one name count.
    symlink("log.csv", place.path("scores.mp.csv")).unwrap();
    let line = "evaluate %/log.csv --model mp,random --per-event %/scores.csv";
    place.refuses(line, "log.csv", &["also read", "scores.mp.csv"]);
}

#[test]
fn a_report_is_not_written_over_its_data_or_suite() {
    let place = Place::new();
    let suite = "title = 't'\n[[datasets]]\nname = 'shop'\nfiles = ['FILE']\nvalid = '1month'\ntest = '1month'\n\
                 max_len = 20\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";
    fs::write(place.path("report.json"), suite.replace("FILE", "shop.parquet")).unwrap();
    place.refuses(
        "reproduce --data % --out % --suite %/report.json",
        "report.json",
        &["also read", "--suite"],
    );
    fs::rename(place.path("shop.parquet"), place.path("report.md")).unwrap();
    fs::write(place.path("suite.toml"), suite.replace("FILE", "report.md")).unwrap();
    place.refuses("reproduce --data % --out % --suite %/suite.toml", "report.md", &["also read", "--data"]);
    fs::create_dir(place.path("cells")).unwrap();
    fs::rename(place.path("report.md"), place.path("cells/shop.mp.file.1.json")).unwrap();
    fs::write(place.path("suite.toml"), suite.replace("FILE", "shop.mp.file.1.json")).unwrap();
    let line = "reproduce --data %/cells --out % --suite %/suite.toml";
    place.refuses(line, "cells/shop.mp.file.1.json", &["where results are written", "--data"]);
    // A link among the results that leads to the data.
    fs::rename(place.path("cells/shop.mp.file.1.json"), place.path("data.parquet")).unwrap();
    fs::write(place.path("suite.toml"), suite.replace("FILE", "data.parquet")).unwrap();
    for link in ["cells/shop.mp.file.1.json", "charts/shop-hr.svg"] {
        fs::create_dir_all(place.path(link).parent().unwrap()).unwrap();
        symlink("../data.parquet", place.path(link)).unwrap();
        let line = "reproduce --data % --out % --suite %/suite.toml";
        place.refuses(line, "data.parquet", &["also read", "--data"]);
        fs::remove_file(place.path(link)).unwrap();
    }
}

#[test]
fn a_report_is_not_written_over_files_of_others() {
    let place = Place::new();
    let suite = "title = 't'\n[[datasets]]\nname = 'shop'\nfiles = ['shop.parquet']\nvalid = '1month'\ntest = '1month'\n\
                 max_len = 20\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";
    fs::write(place.path("suite.toml"), suite).unwrap();
    let line = "reproduce --data % --out %/out --suite %/suite.toml";
    fs::create_dir_all(place.path("out/charts")).unwrap();
    for name in ["report.md", "report.json", "report.html", "charts/mine.png", "charts/shop-hr.svg"] {
        let name = format!("out/{name}");
        fs::write(place.path(&name), "{\"mine\": true}").unwrap();
        place.refuses(line, &name, &[&name, "not of a report that satf wrote", "hint: move it"]);
        fs::remove_file(place.path(&name)).unwrap();
    }
    fs::create_dir_all(place.path("out/cells")).unwrap();
    let name = "out/cells/shop.mp.file.1.json";
    fs::write(place.path(name), "{\"mine\": true}").unwrap();
    place.refuses(line, name, &[name, "not of a cell that satf wrote", "hint: move it"]);
    let left: Vec<_> = fs::read_dir(place.path("out/cells")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
    fs::remove_file(place.path(name)).unwrap();
    // Over a report of its own it writes again.
    let line = line.replace('%', place.folder.path().to_str().unwrap());
    for _ in 0..2 {
        satf(&line.split(' ').collect::<Vec<_>>()).succeeds();
        fs::remove_file(place.path("out/report.html")).unwrap();
    }
}

#[test]
fn standard_input_is_an_input_too() {
    let place = Place::new();
    let histories = place.text("histories.jsonl");
    let output = Command::new(SATF)
        .args(["recommend", &place.text("shop.satf"), "--histories", "-", "-o", &histories])
        .stdin(Stdio::from(fs::File::open(&histories).unwrap()))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("also read"), "{said}");
    assert!(fs::read_to_string(&histories).unwrap().starts_with("{\"user_id\""));
}

#[test]
fn links_and_permissions_stay_and_new_files_have_the_usual_ones() {
    let place = Place::new();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o7777;
    let set = |name: &str, mode: u32| {
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let (log, model) = (place.text("shop.parquet"), place.text("shop.satf"));
    let histories = place.text("histories.jsonl");
    fs::create_dir(place.path("deep")).unwrap();
    // What each command writes, through a link, over a file of one's own.
    let commands: [(&str, Vec<&str>); 6] = [
        ("out.csv", vec!["prepare", &log, "-o"]),
        ("out.parquet", vec!["generate", "--users", "50", "-o"]),
        ("out.satf", vec!["train", &log, "--model", "mp", "-o"]),
        ("scores.csv", vec!["evaluate", &log, "--model", "mp", "--per-event"]),
        ("curve.svg", vec!["inspect", &model, "--svg"]),
        ("next.csv", vec!["recommend", &model, "--histories", &histories, "-o"]),
    ];
    fs::write(place.path("usual"), "").unwrap();
    for (name, command) in commands {
        let target = format!("deep/{name}");
        symlink(&target, place.path(name)).unwrap();
        let path = place.text(name);
        let words = [&command[..], &[path.as_str()]].concat();
        satf(&words).succeeds();
        assert_eq!(mode(&target), mode("usual"), "{name}");
        fs::write(place.path(&target), "old").unwrap();
        set(&target, 0o640);
        satf(&words).succeeds();
        assert_eq!(mode(&target), 0o640, "{name}");
        assert_ne!(fs::read(place.path(&target)).unwrap(), b"old", "{name}");
        assert!(place.path(name).is_symlink() && !place.path(&target).is_symlink(), "{name}");
    }
    // The umask is that of whoever runs it.
    let private = place.text("private.csv");
    let script = "umask 077; exec \"$0\" generate --users 50 -o \"$1\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(SATF).arg(&private).stdout(Stdio::null());
    assert!(shell.status().unwrap().success());
    assert_eq!(mode("private.csv"), 0o600);
    assert!(names(&place.path("deep")).iter().chain(&place.names()).all(|name| !name.starts_with('.')));
}

#[test]
fn what_cannot_be_written_is_said_before_the_work() {
    let place = Place::new();
    for line in [
        // The log is not there either, but it is not looked for any more.
        "prepare %/none.csv -o %/nowhere/out.csv",
        "generate --users 5000000 -o %/nowhere/out.csv",
        "inspect %/none.satf --svg %/nowhere/curve.svg",
        "recommend %/none.satf --histories %/none.jsonl -o %/nowhere/next.csv",
    ] {
        place.refuses(line, "log.csv", &["cannot be written", "there is no folder"]);
    }
}

#[test]
fn standard_output_is_not_a_file_that_is_read() {
    let place = Place::new();
    satf(&["evaluate", &place.text("log.csv"), "--model", "mp", "--per-event", &place.text("scores.csv")])
        .succeeds();
    for (line, precious) in [
        ("recommend %/shop.satf --histories %/histories.jsonl", "histories.jsonl"),
        ("recommend %/shop.satf --histories -", "histories.jsonl"),
        ("recommend %/shop.satf --history tent --only @%/list.csv --json", "list.csv"),
        ("stats %/log.csv", "log.csv"),
        ("train %/log.csv --model mp -o %/new.satf", "log.csv"),
        ("compare %/scores.csv %/scores.csv --draws 100", "scores.csv"),
        ("inspect %/shop.satf", "shop.satf"),
        ("similar %/shop.satf tent", "shop.satf"),
        ("similar %/shop.satf tent --titles %/titles.csv", "titles.csv"),
    ] {
        let before = fs::read(place.path(precious)).unwrap();
        let words = line.split(' ').map(|word| word.replace('%', place.folder.path().to_str().unwrap()));
        let appended = fs::OpenOptions::new().append(true).open(place.path(precious)).unwrap();
        let output = Command::new(SATF)
            .args(words)
            .stdin(Stdio::from(fs::File::open(place.path("histories.jsonl")).unwrap()))
            .stdout(Stdio::from(appended))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("standard output is"), "{line}: {said}");
        assert!(fs::read(place.path(precious)).unwrap() == before, "{line}");
    }
}

#[test]
fn a_file_is_what_its_name_says() {
    let place = Place::new();
    let plain = fs::read(place.path("log.csv")).unwrap();
    for (name, magic) in [("packed.csv.gz", &[0x1F, 0x8B][..]), ("packed.csv.zst", &[0x28, 0xB5, 0x2F, 0xFD])]
    {
        satf(&["prepare", &place.text("log.csv"), "-o", &place.text(name)]).succeeds();
        assert!(fs::read(place.path(name)).unwrap().starts_with(magic), "{name}");
        satf(&["prepare", &place.text(name), "-o", &place.text("again.csv")]).succeeds();
        assert!(fs::read(place.path("again.csv")).unwrap() == plain, "{name}");
        satf(&["generate", "--users", "50", "-o", &place.text(name)]).succeeds();
        assert!(fs::read(place.path(name)).unwrap().starts_with(magic), "{name}");
    }
    for name in ["log.gz", "log.parquet.gz", "log.tsv", "log.jsonl"] {
        for command in [vec!["prepare", "LOG", "-o"], vec!["generate", "--users", "9", "-o"]] {
            let (log, path) = (place.text("log.csv"), place.text(name));
            let command = command.into_iter().map(|word| if word == "LOG" { &*log } else { word });
            let refused = satf(&command.chain([&*path]).collect::<Vec<_>>());
            assert!(refused.code == 2 && refused.stderr.contains(".csv.gz"), "{name}: {}", refused.stderr);
            assert!(!place.path(name).exists());
        }
    }
    let scores = place.text("scores.csv.gz");
    let refused = satf(&["evaluate", &place.text("log.csv"), "--model", "mp", "--per-event", &scores]);
    assert!(refused.code == 2 && refused.stderr.contains("it is not compressed"), "{}", refused.stderr);
}
