//! The report people look at: findings become a page, and the page becomes HTML, Markdown, JSON and charts.

mod contents;
mod html;
mod markdown;
mod page;
mod pictures;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use satf::data::write_atomically;

use crate::charts::{HAS_PNG, PngError, Theme, png};
use crate::reproduce::Findings;

/// Pixels of a PNG for every unit of its SVG.
const PNG_SCALE: f32 = 2.0;

/// The files of a report, in the order they are written; charts are in a folder of their own.
pub const REPORTS: [&str; 3] = ["report.json", "report.md", "report.html"];

/// The folder of charts, beside the files of a report.
pub const CHARTS: &str = "charts";

/// Why a report is not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder of charts cannot be made.
    #[error("{}: cannot create the folder", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written; what was there before is unchanged.
    #[error("{}: cannot be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is there that no report has written, and it would be lost.
    #[error(
        "{}: this file is not of a report that satf wrote, and would be lost; hint: move it, or choose another folder",
        .0.display()
    )]
    Foreign(PathBuf),
    /// A chart cannot be drawn.
    #[error("chart {name}")]
    Chart {
        /// Its name.
        name: String,
        /// Why not.
        source: PngError,
    },
    /// The findings do not become JSON.
    #[error("the findings cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// An error if a folder holds files in the place of a report that are somebody's own. What the findings are in tells: where they are,
/// they were written first, and the rest is theirs.
pub fn check_folder(out: &Path) -> Result<(), ReportError> {
    let [findings, ..] = REPORTS.map(|name| out.join(name));
    if fs::read(&findings).is_ok_and(|text| is_findings(&text)) {
        return Ok(());
    }
    let is_chart = |path: &PathBuf| {
        let ending = path.extension().and_then(OsStr::to_str);
        ending.is_some_and(|ending| ["svg", "png"].contains(&ending))
    };
    let charts = fs::read_dir(out.join(CHARTS)).into_iter().flatten().flatten();
    let charts = charts.map(|entry| entry.path()).filter(is_chart);
    let mut there = REPORTS.iter().map(|name| out.join(name)).filter(|path| path.exists()).chain(charts);
    there.next().map_or(Ok(()), |path| Err(ReportError::Foreign(path)))
}

/// Whether a text is that of [`Findings`].
fn is_findings(text: &[u8]) -> bool {
    let value = serde_json::from_slice::<serde_json::Value>(text);
    value.is_ok_and(|value| value.pointer("/made/satf_version").is_some_and(serde_json::Value::is_string))
}

/// Writes the report into a folder, over an earlier one but over nothing else: `report.html`, `report.md`, `report.json`, and [`CHARTS`] as SVG, as PNG too if this build
/// [has it](HAS_PNG). Returns the path of the page.
pub fn write(findings: &Findings, out: &Path) -> Result<PathBuf, ReportError> {
    check_folder(out)?;
    let page = contents::page(findings);
    let charts = out.join(CHARTS);
    let [json, markdown, html] = REPORTS.map(|name| out.join(name));
    // What the folder is known by comes first.
    write_file(&json, (serde_json::to_string_pretty(findings)? + "\n").as_bytes())?;
    fs::create_dir_all(&charts).map_err(|source| ReportError::Folder { path: charts.clone(), source })?;
    for picture in page.pictures() {
        let svg = picture.chart.svg(Theme::Alone);
        let pixels = charts.join(format!("{}.png", picture.name));
        if HAS_PNG {
            let drawn = png(&svg, PNG_SCALE)
                .map_err(|source| ReportError::Chart { name: picture.name.clone(), source })?;
            write_file(&pixels, &drawn)?;
        } else {
            remove_file(&pixels)?;
        }
        write_file(&charts.join(format!("{}.svg", picture.name)), svg.as_bytes())?;
    }
    write_file(&markdown, markdown::markdown(&page).as_bytes())?;
    write_file(&html, html::html(&page).as_bytes())?;
    Ok(html)
}

/// Removes a picture of an earlier report: it may show something else by now.
fn remove_file(path: &Path) -> Result<(), ReportError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ReportError::File { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    write_atomically(path, |writer| writer.write_all(content))
        .map_err(|source| ReportError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests;
