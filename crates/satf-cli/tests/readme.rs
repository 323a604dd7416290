//! The README's quick start does what it prints.

#![allow(clippy::unwrap_used)]

use std::process::Command;

/// The commands of the quick start, each with what it prints.
fn quick_start() -> Vec<(String, String)> {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let section = readme.split("\n## Quick start\n").nth(1).expect("a section 'Quick start'");
    let section = section.split("\n## ").next().unwrap();
    let block = section.split("```console\n").nth(1).unwrap().split("\n```").next().unwrap();
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.push_str(&format!("{line}\n")),
            (None, None) => panic!("output before a command: {line}"),
        }
    }
    commands
}

/// Words of a shell command, double quotes respected.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in command.chars() {
        match character {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn the_quick_start_runs_as_printed() {
    let folder = tempfile::tempdir().unwrap();
    let commands = quick_start();
    assert_eq!(commands.len(), 3, "three commands from a CSV to recommendations");
    for (command, printed) in commands {
        let words = words(command.split(" #").next().unwrap());
        assert_eq!(words[0], "satf", "{command}");
        let output =
            Command::new(env!("CARGO_BIN_EXE_satf")).args(&words[1..]).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let stdout = String::from_utf8(output.stdout).unwrap();
        let lines = |text: &str| text.lines().map(str::trim_end).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&stdout), lines(&printed), "{command}");
    }
}
