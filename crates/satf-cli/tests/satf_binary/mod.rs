//! Runs the binary under test.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub(crate) const SATF: &str = env!("CARGO_BIN_EXE_satf");

/// What a run of the binary left.
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Outcome {
    /// The output of a run that must have gone well.
    pub(crate) fn succeeds(self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout
    }
}

/// Runs `satf` with arguments. A panic fails the test, whatever it expects.
pub(crate) fn satf(arguments: &[&str]) -> Outcome {
    let output = Command::new(SATF).args(arguments).output().unwrap();
    let outcome = Outcome {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().expect("satf was not killed"),
    };
    assert!(!outcome.stderr.contains("panicked"), "{arguments:?}: {}", outcome.stderr);
    outcome
}

/// `satf` as it hears signals: tests may themselves run where some are ignored, and what is ignored stays so.
#[allow(dead_code)]
pub(crate) fn satf_that_hears() -> Command {
    if !cfg!(target_os = "linux") {
        return Command::new(SATF);
    }
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM").arg(SATF);
    command
}

/// A prepared shop log of so many users, and its path.
#[allow(dead_code)]
pub(crate) fn shop_log(users: usize) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.parquet").to_str().unwrap().to_owned();
    satf(&["generate", "--users", &users.to_string(), "-o", &path]).succeeds();
    (folder, path)
}

/// The only run of what `satf evaluate --json` printed.
#[allow(dead_code)]
pub(crate) fn only_run(printed: &str) -> Value {
    let mut report: Value = serde_json::from_str(printed).unwrap();
    let runs = report["runs"].as_array_mut().unwrap();
    assert_eq!(runs.len(), 1, "{printed}");
    runs.remove(0)
}

/// A report without what depends on the clock.
#[allow(dead_code)]
pub(crate) fn without_timings(mut report: Value) -> Value {
    strip(&mut report);
    report
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.contains("seconds") && !name.contains("gflops"));
            fields.values_mut().for_each(strip);
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        _ => {}
    }
}
