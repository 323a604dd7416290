//! What README and guide show is what happens: every command in a `console` block runs, and prints what stands below it.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use satf_binary::SATF;

/// A line that stands for any number of lines and, within a line, for any text.
const ANYTHING: &str = "…";

/// A command of a page, with the lines shown below it.
struct Step {
    command: String,
    shown: Vec<String>,
}

/// The commands of all `console` blocks of a page, in order.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("\n```").next().unwrap();
        let mut is_first = true;
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push(Step { command: command.to_owned(), shown: Vec::new() }),
                None if is_first => panic!("output before a command: {line}"),
                None => steps.last_mut().unwrap().shown.push(line.trim_end().to_owned()),
            }
            is_first = false;
        }
    }
    steps
}

/// Whether these lines are those shown, in which one line may stand for any number of them.
fn is_as_shown(lines: &[String], shown: &[String]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == ANYTHING => {
            (0..=lines.len()).any(|skipped| is_as_shown(&lines[skipped..], rest))
        }
        Some((first, rest)) => {
            lines.first().is_some_and(|line| is_line_as_shown(line, first)) && is_as_shown(&lines[1..], rest)
        }
    }
}

/// Whether a line is the one shown, in which a part may stand for any text.
fn is_line_as_shown(line: &str, shown: &str) -> bool {
    match shown.split_once(ANYTHING) {
        None => line == shown,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| is_line_as_shown(&rest[at..], after))
        }),
    }
}

/// The address that pages call a server by; each run has one of its own.
const ADDRESS: &str = "127.0.0.1:8080";

/// An address that nobody listens on.
fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// What a page left running, such as a server, ends with it.
struct Groups(Vec<u32>);

impl Drop for Groups {
    fn drop(&mut self) {
        for group in &self.0 {
            let _ = Command::new("kill")
                .args(["-s", "KILL", "--", &format!("-{group}")])
                .stderr(Stdio::null())
                .status();
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the commands of a page one after the other in a new folder.
fn run(page: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut path = Path::new(SATF).parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let steps = steps(&fs::read_to_string(page).unwrap());
    let address = free_address();
    let mut groups = Groups(Vec::new());
    for Step { command, shown } in &steps {
        let child = Command::new("sh")
            .args(["-c", &command.replace(ADDRESS, &address)])
            .env("PATH", &path)
            .env("SATF_SERVE_LISTEN", &address)
            .current_dir(&folder)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        groups.0.push(child.id());
        let output = child.wait_with_output().unwrap();
        let place = format!("{}: {command}", page.display());
        assert!(output.status.success(), "{place}: {}", String::from_utf8_lossy(&output.stderr));
        let stdout = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<String> = stdout.lines().map(|line| line.trim_end().to_owned()).collect();
        assert!(
            is_as_shown(&lines, shown),
            "{place} prints\n{stdout}\nand the page shows\n{}",
            shown.join("\n")
        );
    }
    steps.len()
}

#[test]
fn the_start_in_the_readme_runs_as_printed() {
    assert_eq!(
        run(&root().join("README.md")),
        5,
        "three commands from a CSV to recommendations, two more to serve them"
    );
}

#[test]
fn every_page_of_the_guide_runs_as_printed() {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root().join("docs/guide")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    for page in pages {
        assert!(run(&page) > 0, "{} has no command that could be run", page.display());
    }
}

#[test]
fn pages_are_held_to_what_they_show() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(is_as_shown(&lines("a\nb\nc"), &lines("a\n…\nc")));
    assert!(is_as_shown(&lines("a"), &lines("a\n…")) && is_as_shown(&[], &lines("…")));
    assert!(!is_as_shown(&lines("a\nb"), &lines("a")) && !is_as_shown(&lines("a"), &lines("…\nb")));
    assert!(
        is_as_shown(&lines("a 1.25 b"), &lines("a 1.2… b"))
            && !is_as_shown(&lines("a 1.25 b"), &lines("a 1.3… b"))
    );
    assert_eq!(steps("```console\n$ one\nx\n$ two\n```\n```sh\n$ three\n```").len(), 2);
}

/// The targets of all links of a page to files of the project.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    local.map(|target| target.split('#').next().unwrap().to_owned()).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut pages =
        vec![root().join("README.md"), root().join("ARCHITECTURE.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/guide", "docs/method"] {
        let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    for page in pages {
        for target in links(&fs::read_to_string(&page).unwrap()) {
            let path = page.parent().unwrap().join(&target);
            assert!(path.exists(), "{} links to {target}, which is not there", page.display());
        }
    }
}
