//! The report people look at: findings become a page, and the page becomes HTML, Markdown, JSON and charts.

mod contents;
mod html;
mod markdown;
mod page;
mod pictures;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use satf::data::write_atomically;

use crate::charts::{Theme, png};
use crate::reproduce::Findings;

/// Pixels of a PNG for every unit of its SVG.
const PNG_SCALE: f32 = 2.0;

/// The files of a report, in the order they are written; charts are in a folder of their own.
pub(crate) const REPORTS: [&str; 3] = ["report.json", "report.md", "report.html"];

/// Writes the report into a folder: `report.html`, `report.md`, `report.json`, and `charts` as SVG and PNG. Returns the path of the
/// page.
pub(crate) fn write(findings: &Findings, out: &Path) -> anyhow::Result<PathBuf> {
    let page = contents::page(findings);
    let charts = out.join("charts");
    fs::create_dir_all(&charts).with_context(|| format!("{}: cannot create the folder", charts.display()))?;
    for picture in page.pictures() {
        let svg = picture.chart.svg(Theme::Alone);
        let pixels = png(&svg, PNG_SCALE).with_context(|| format!("chart {}", picture.name))?;
        write_file(&charts.join(format!("{}.svg", picture.name)), svg.as_bytes())?;
        write_file(&charts.join(format!("{}.png", picture.name)), &pixels)?;
    }
    let [json, markdown, html] = REPORTS.map(|name| out.join(name));
    write_file(&json, (serde_json::to_string_pretty(findings)? + "\n").as_bytes())?;
    write_file(&markdown, markdown::markdown(&page).as_bytes())?;
    write_file(&html, html::html(&page).as_bytes())?;
    Ok(html)
}

fn write_file(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    write_atomically(path, |writer| writer.write_all(content)).with_context(|| {
        format!(
            "{}: cannot be written; hint: all cells are kept, the same command writes the report again",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests;
