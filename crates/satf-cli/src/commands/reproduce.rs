//! `satf reproduce`: every table and figure of the paper, by one command.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use satf::models::Registry;
use satf_report::report::{self, REPORTS};
use satf_report::reproduce::{FOLDERS, Findings, Request, Suite, Watcher, quoted, reproduce};

use super::files::Files;
use crate::args::ReproduceArguments;
use crate::misuse::OnCommandLine;
use crate::signals::StopRequests;
use crate::terminal::Terminal;
use crate::{escape, hints, table};

pub(crate) fn run(
    arguments: &ReproduceArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let ReproduceArguments { data, out, .. } = arguments;
    Files::default().reading("--suite", arguments.suite.as_ref()).check_distinct()?;
    let mut suite = match &arguments.suite {
        Some(path) => Suite::read(path, registry, &StopRequests)?,
        None => Suite::of_paper(registry),
    };
    let selection = suite.select(&arguments.only, &arguments.with, registry);
    // The paper's suite is part of the program; that of a file is known only once it is read.
    let selection = if arguments.suite.is_none() { selection.on_command_line()? } else { selection? };
    check_files(&suite, arguments)?;
    report::check_folder(out)?;
    let words = crate::program::arguments().iter().map(|word| quoted(&word.to_string_lossy()));
    let request = Request {
        trials: arguments.tune.then_some(arguments.trials),
        seed: arguments.seed,
        command: std::iter::once("satf".to_owned()).chain(words).collect::<Vec<_>>().join(" "),
        ..Request::new(&suite, &selection, registry, data, out)
    };
    let findings = reproduce(&request, terminal)?;
    let page = report::write(&findings, out).context(
        "the report is not written; hint: all cells are kept, the same command writes the report again",
    )?;
    terminal.wrote(&page);
    terminal.finish();
    if arguments.json {
        table::print_json(&serde_json::to_value(&findings)?)?;
    } else {
        table::print(&format!("{}\n\nReport: {}", describe(&findings), escape::path(&page)))?;
    }
    match findings.failed.len() {
        0 => Ok(()),
        failed => {
            bail!(
                "{} could not be filled, for the reasons above; the report is without what is missing",
                table::counted(failed, "cell")
            )
        }
    }
}

/// An error if the report would be written over something that is read.
fn check_files(suite: &Suite, arguments: &ReproduceArguments) -> anyhow::Result<()> {
    let ReproduceArguments { data, out, .. } = arguments;
    let read = suite.files(data).into_iter();
    let files = read.fold(Files::default(), |files, path| files.reading("--data", Some(path)));
    let files = files.reading("--suite", arguments.suite.as_ref());
    let folders = FOLDERS.map(|name| out.join(name));
    files.keep_out_of("--out", &folders)?;
    let files = folders.iter().fold(files, |files, folder| files.keeping("--out", Some(folder)));
    let written =
        REPORTS.iter().map(|name| out.join(name)).chain(folders.iter().flat_map(|folder| links(folder)));
    written.fold(files, |files, path| files.writing("--out", Some(path))).check_distinct()
}

/// The links in a folder that may lead to files elsewhere.
fn links(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_symlink()).collect()
}

impl Watcher for Terminal {
    fn narrate(&self, line: &str) {
        Terminal::narrate(self, line);
    }

    fn word(&self, error: &(dyn std::error::Error + 'static)) -> String {
        hints::chain_of(error)
    }
}

/// The main results, and how they stand to what was published.
fn describe(findings: &Findings) -> String {
    let by = format!("{} NDCG, HR, COV", findings.published_by);
    let mut shown =
        table::with_header(&["dataset", "model", "NDCG@10", "HR@10", "COV@10", "NDCG@10 shuffled", &by]);
    for dataset in &findings.datasets {
        for row in &dataset.rows {
            let figure = |at: usize| {
                let figure = row.file.as_ref().map(|scores| scores.figures[at]);
                figure.map_or_else(String::new, |figure| match figure.stderr {
                    Some(stderr) => format!("{:.4} ± {stderr:.4}", figure.value),
                    None => format!("{:.3}", figure.value),
                })
            };
            let shuffled = row.shuffled.as_ref().map(|scores| format!("{:.4}", scores.figures[0].value));
            let published = row.published.map(|published| {
                let figures = published.figures().into_iter().enumerate();
                let mark =
                    |at: usize| row.marks.map(|marks| format!(" {}", marks[at].symbol())).unwrap_or_default();
                figures
                    .map(|(at, figure)| format!("{:.3}{}", figure.value, mark(at)))
                    .collect::<Vec<_>>()
                    .join(", ")
            });
            shown.add_row([
                dataset.title.clone(),
                row.model.clone(),
                figure(0),
                figure(1),
                figure(2),
                shuffled.unwrap_or_default(),
                published.unwrap_or_default(),
            ]);
        }
    }
    let tally: Vec<String> = findings
        .tally()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(mark, count)| format!("{} {} ({count})", mark.symbol(), mark.words()))
        .collect();
    let errors = format!("± is one standard error, {}", table::unit_words(Some(findings.made.error_unit)));
    let tally = if tally.is_empty() { String::new() } else { format!("\n{}", tally.join(", ")) };
    format!("{shown}{tally}\n{errors}")
}
