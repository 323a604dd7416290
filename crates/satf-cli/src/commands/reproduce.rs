//! `satf reproduce`: every table and figure of the paper, by one command.

use anyhow::bail;
use satf::models::Registry;

use crate::args::ReproduceArguments;
use crate::report;
use crate::reproduce::{Findings, Request, reproduce};
use crate::terminal::Terminal;
use crate::{escape, table};

pub(crate) fn run(
    arguments: &ReproduceArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let words = std::env::args_os().skip(1).map(|word| crate::reproduce::quoted(&word.to_string_lossy()));
    let request = Request {
        registry,
        data: &arguments.data,
        out: &arguments.out,
        suite: arguments.suite.as_deref(),
        only: &arguments.only,
        with: &arguments.with,
        trials: arguments.tune.then_some(arguments.trials),
        seed: arguments.seed,
        command: std::iter::once("satf".to_owned()).chain(words).collect::<Vec<_>>().join(" "),
    };
    let findings = reproduce(&request, terminal)?;
    let page = report::write(&findings, &arguments.out)?;
    terminal.finish();
    if arguments.json {
        table::print_json(&serde_json::to_value(&findings)?)?;
    } else {
        table::print(&format!("{}\n\nReport: {}", describe(&findings), escape::path(&page)))?;
    }
    match findings.failed.len() {
        0 => Ok(()),
        failed => {
            bail!("{failed} cell(s) could not be filled, for the reasons above; the report is without them")
        }
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
