//! Absurd sizes and little room, through the real binary: a result or a message, never a crash.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use satf_binary::{SATF, satf, shop_log};
use serde_json::Value;

/// Runs `satf` with so many kilobytes of address space, and no longer than a minute; returns its exit code and what it said.
fn within(kilobytes: u64, arguments: &[&str]) -> (i32, String) {
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut process = Command::new("sh")
        .args(["-c", &format!("ulimit -v {kilobytes} && exec \"$@\""), "sh"])
        .arg(SATF)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(said.reopen().unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            process.kill().unwrap();
            panic!("{arguments:?} goes on and on");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = fs::read_to_string(said.path()).unwrap();
    let code = status.code().unwrap_or_else(|| panic!("{arguments:?} with {kilobytes} KB: {status}: {said}"));
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    (code, said)
}

const GIB: u64 = 1 << 20;

#[test]
fn absurd_sizes_of_any_model_give_a_result_or_a_message() {
    let (folder, log) = shop_log(60);
    let model = folder.path().join("model.satf").to_str().unwrap().to_owned();
    let models: Value = serde_json::from_str(&satf(&["models", "--json"]).succeeds()).unwrap();
    for (name, entry) in models.as_object().unwrap() {
        for (key, default) in entry["defaults"].as_object().unwrap() {
            if !(default.is_u64() || default.is_null()) {
                continue;
            }
            for value in ["1000000", "1000000000000", "9223372036854775807"] {
                // As many passes as anybody waits for are no memory.
                if ["num_iters", "epochs"].contains(&&**key) && value == "1000000" {
                    continue;
                }
                let setting = format!("{key}={value}");
                let threads = ["--threads", "2", "--quiet"];
                let arguments = ["train", &log, "--model", name, "--set", &setting, "-o", &model];
                let (code, said) = within(4 * GIB, &[&threads[..], &arguments].concat());
                assert!(
                    code == 0 || (matches!(code, 1 | 2) && said.contains(&**name)),
                    "{name} {setting}: {code} {said}"
                );
            }
        }
    }
}

#[test]
fn histories_of_any_length_can_be_asked_for() {
    let (folder, log) = shop_log(60);
    let model = folder.path().join("model.satf").to_str().unwrap().to_owned();
    for name in ["ga-satf", "la-satf", "transitions", "sasrec"] {
        for max_len in ["20000", "1000000", "1000000000"] {
            let evaluate = ["evaluate", &log, "--model", name, "--max-len", max_len, "--test", "1month"];
            let epochs = ["--set", "epochs=1"].iter().filter(|_| name == "sasrec");
            let words = ["--threads", "2"].iter().chain(&evaluate).chain(epochs).copied();
            let (code, said) = within(2 * GIB, &words.collect::<Vec<_>>());
            assert_eq!(code, 0, "{name} {max_len}: {said}");
        }
    }
    let train = ["train", &log, "--model", "ga-satf", "--set", "max_len=1000000", "-o", &model];
    assert_eq!(within(2 * GIB, &train).0, 0);
    // A file that is as small as the log lets it be, and takes histories longer than any in it.
    assert!(fs::metadata(&model).unwrap().len() < 1 << 20);
    let long = vec!["tent"; 2000].join(",");
    let list = satf(&["recommend", &model, "--history", &long, "--json"]).succeeds();
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["recommendations"].as_array().unwrap().len(), 10);
    let train = ["train", &log, "--model", "sasrec", "--set", "epochs=1", "--set", "hidden=16", "-o", &model];
    assert_eq!(within(2 * GIB, &[&train[..], &["--set", "max_len=100000"]].concat()).0, 0);
    assert!(fs::metadata(&model).unwrap().len() < 1 << 20);
    satf(&["recommend", &model, "--history", &long]).succeeds();
    let (code, said) = within(4 * GIB, &["evaluate", &log, "--model", "d-satf", "--max-len", "1000000000"]);
    assert!(code == 2 && said.contains("max_len = 1000000000: expected 1 to 100000"), "{said}");
}

#[test]
fn a_limit_of_address_space_costs_threads_and_nothing_else() {
    let (folder, log) = shop_log(300);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (free, limited) = (file("free.satf"), file("limited.satf"));
    satf(&["train", &log, "-o", &free]).succeeds();
    let mut has_lost_threads = false;
    for kilobytes in
        [100_000, 150_000, 200_000, 300_000, 500_000, 700_000, 1_000_000, 1_500_000, 4_000_000, 16_000_000]
    {
        for threads in ["1", "2", "8", "64"] {
            let _ = fs::remove_file(&limited);
            let arguments = ["train", &log, "-o", &limited, "--threads", threads];
            let (code, said) = within(kilobytes, &arguments);
            match code {
                0 => {
                    assert!(fs::read(&limited).unwrap() == fs::read(&free).unwrap(), "{kilobytes} {threads}");
                }
                1 => assert!(said.contains("no room for dense products") && said.contains("hint:"), "{said}"),
                _ => panic!("{kilobytes} KB, {threads} threads: {code} {said}"),
            }
            has_lost_threads |= code == 0 && said.contains("there is room for");
            assert!(code == 0 || kilobytes < 16_000_000, "{said}");
        }
    }
    assert!(has_lost_threads);
    // What needs no products needs no room for them.
    let (code, said) = within(150_000, &["stats", &log]);
    assert_eq!(code, 0, "{said}");
}

/// The most memory that a training had resident, in MiB, as far as looks at short intervals tell.
#[cfg(target_os = "linux")]
fn peak(arguments: &[&str]) -> f64 {
    let mut child =
        Command::new(SATF).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = found.and_then(|number| number.parse::<f64>().ok()).map_or(peak, |number| number / 1024.0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn training_takes_no_more_memory_than_it_says() {
    let (folder, shop) = shop_log(4000);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (wide, model) = (at("wide.parquet"), at("model.satf"));
    satf(&["generate", "--users", "9000", "--items", "4000", "--rows", "120000", "-o", &wide]).succeeds();
    let given = ["distance_decay", "together", "target_power", "recency_decay", "basket_order", "trend"];
    let given = given.map(|key| format!("{key}=0.5"));
    for log in [&shop, &wide] {
        for keys in [&[][..], &given, &[&given[..], &["balance=0".to_owned()]].concat()] {
            for threads in ["1", "8"] {
                let mut arguments = vec!["train", log, "-o", &model, "--threads", threads];
                arguments.extend(keys.iter().flat_map(|key| ["--set", key]));
                let refused = satf(&[&arguments[..], &["--memory", "1KB"]].concat());
                let words = refused.stderr.split_once("needs ").unwrap().1;
                let said: f64 = words.split_once(" MiB").unwrap().0.parse().unwrap();
                let memory = format!("{}MiB", said + 0.1);
                let peak = peak(&[&arguments[..], &["--memory", &memory]].concat());
                assert!(peak > 5.0 && peak <= said, "{arguments:?}: {peak:.1} MiB of {said} MiB");
            }
        }
    }
}

#[test]
fn a_small_log_needs_little_memory() {
    let (folder, log) = shop_log(4000);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tiny, model, free) = (at("tiny.csv"), at("model.satf"), at("free.satf"));
    fs::write(&tiny, "user,item,time\na,x,1\na,y,2\nb,x,3\nb,z,4\n").unwrap();
    for (log, allowed) in [(&tiny, "64MB"), (&log, "200MB"), (&log, "800MB")] {
        satf(&["train", log, "-o", &free]).succeeds();
        satf(&["train", log, "--memory", allowed, "-o", &model]).succeeds();
        let file = |path: &str| fs::metadata(path).unwrap().len();
        assert!(file(&free).abs_diff(file(&model)) < 200, "the same but for the bound");
    }
    // What would not help is not proposed.
    let refused = satf(&["train", &tiny, "--memory", "1KB", "-o", &model]);
    assert!(refused.code == 1 && refused.stderr.contains("raise memory_bytes"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("lower rank"), "{}", refused.stderr);
}

#[test]
fn counting_that_stopped_says_at_least() {
    let (folder, log) = shop_log(100);
    let model = folder.path().join("model.satf").to_str().unwrap().to_owned();
    let outcome = satf(&["train", &log, "--model", "transitions", "--memory", "10KB", "-o", &model]);
    assert!(outcome.code == 1 && outcome.stderr.contains("needs at least 9.78 KiB"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("more than the 9.77 KiB"), "{}", outcome.stderr);
}

#[test]
fn a_log_larger_than_memory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv").to_str().unwrap().to_owned();
    let mut rows = String::from("user_id,item_id,timestamp\n");
    for row in 0..3_000_000 {
        rows.push_str(&format!("{row},{},{row}\n", row % 1000));
    }
    fs::write(&log, rows).unwrap();
    let (code, said) = within(90_000, &["--threads", "1", "stats", &log]);
    assert!(code == 1 && said.contains("the log does not fit into memory"), "{code}: {said}");
}

/// Temporary files in a folder.
fn left_in(folder: &std::path::Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".satf-")).collect()
}

#[test]
fn memory_that_runs_out_anywhere_is_an_error_and_leaves_nothing() {
    let (folder, _) = shop_log(10);
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, raw, model) = (file("log.parquet"), file("raw.csv"), file("model.satf"));
    satf(&["generate", "--users", "25000", "-o", &raw]).succeeds();
    satf(&["generate", "--users", "4000", "-o", &log]).succeeds();
    satf(&["train", &log, "--model", "transitions", "-o", &model]).succeeds();
    let long = file("history.txt");
    fs::write(&long, "tent\n".repeat(30_000)).unwrap();
    let long = format!("@{long}");
    let (made, packed, next) = (file("made.parquet"), file("made.csv.zst"), file("next.parquet"));
    let (again, per_event, curve) = (file("again.satf"), file("events.parquet"), file("curve.svg"));
    let commands: [&[&str]; 8] = [
        &["prepare", &raw, "-o", &made],
        &["prepare", &raw, "-o", &packed],
        &["generate", "--users", "20000", "-o", &made],
        &["train", &log, "-o", &again],
        &["evaluate", &log, "--model", "transitions", "--test", "1month", "--per-event", &per_event],
        &["recommend", &model, "--histories", &log, "-o", &next],
        &["recommend", &model, "--history", &long, "--explain", "--allow-seen", "--json"],
        &["inspect", &model, "--json", "--svg", &curve],
    ];
    let mut ran_out = 0;
    for arguments in commands {
        for kilobytes in [32_000, 40_000, 50_000, 60_000, 70_000, 80_000, 90_000, 110_000, 150_000, 190_000] {
            let (code, said) = within(kilobytes, arguments);
            assert!(matches!(code, 0 | 1), "{arguments:?} with {kilobytes} KB: {code} {said}");
            assert!(code == 0 || said.contains("error: "), "{arguments:?} with {kilobytes} KB: {said}");
            ran_out += usize::from(said.contains("error: memory ran out"));
            assert_eq!(left_in(folder.path()), [""; 0], "{arguments:?} with {kilobytes} KB: {said}");
        }
    }
    assert!(ran_out > 0, "no limit was as low as that");
}

#[test]
fn conditions_of_any_depth_and_suites_of_any_size_are_read_or_refused() {
    let (folder, log) = shop_log(50);
    let path = folder.path().join("asked.toml");
    let file = path.to_str().unwrap();
    let nested = |depth: usize| format!("{}rank < 5{}", "(".repeat(depth), ")".repeat(depth));
    for (condition, part) in [
        (nested(300), "parentheses are too deep"),
        (nested(10_000), "too"),
        (nested(300_000), "too"),
        ("(".repeat(300_000), "too"),
        (format!("rank < 5{}", " + 1".repeat(300_000)), "too long"),
        (format!("rank < 5{}", " and rank < 5".repeat(300_000)), "too long"),
    ] {
        fs::write(&path, format!("keys.rank = [2, 4]\nconstraints = ['{condition}']\n")).unwrap();
        let outcome = satf(&["tune", &log, "--model", "pure-svd", "--space", file]);
        assert!(outcome.code == 1 && outcome.stderr.contains(part), "{}: {}", outcome.code, outcome.stderr);
    }
    for (key, value) in
        [("repeats", "99999999999"), ("repeats", "1001"), ("curve_iterations", "9223372036854775807")]
    {
        let dataset = "name = 'a'\nfiles = ['shop.parquet']\nvalid = '1month'\ntest = '1month'\nmax_len = 5";
        let models = "[[models]]\nname = 'MP'\nmodel = 'mp'";
        fs::write(&path, format!("title = 't'\n{key} = {value}\n[[datasets]]\n{dataset}\n{models}\n"))
            .unwrap();
        let data = folder.path().to_str().unwrap();
        let out = folder.path().join("out");
        let outcome = satf(&["reproduce", "--data", data, "--suite", file, "--out", out.to_str().unwrap()]);
        assert_eq!(outcome.code, 1, "{key}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("{key} = {value}: expected")), "{}", outcome.stderr);
    }
}
