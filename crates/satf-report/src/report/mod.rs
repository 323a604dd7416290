//! The report people look at: findings become a page, and the page becomes HTML, Markdown, JSON and charts.

mod contents;
mod html;
mod markdown;
mod page;
mod pictures;

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

/// Writes the report into a folder: `report.html`, `report.md`, `report.json`, and [`CHARTS`] as SVG, as PNG too if this build
/// [has it](HAS_PNG). Returns the path of the page.
pub fn write(findings: &Findings, out: &Path) -> Result<PathBuf, ReportError> {
    let page = contents::page(findings);
    let charts = out.join(CHARTS);
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
    let [json, markdown, html] = REPORTS.map(|name| out.join(name));
    write_file(&json, (serde_json::to_string_pretty(findings)? + "\n").as_bytes())?;
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
