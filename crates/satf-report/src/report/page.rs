//! A page before it has a format: sections of text, tables and pictures. HTML and Markdown are two ways to write the same
//! page, so they say the same.

use crate::charts::{BarChart, LineChart, Theme};
use crate::reproduce::{Mark, Place};

/// A whole page.
pub(crate) struct Page {
    pub(crate) title: String,
    /// What it says in a sentence or two.
    pub(crate) summary: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

/// A part with a heading.
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) blocks: Vec<Block>,
}

/// What sections are made of.
pub(crate) enum Block {
    Text(String),
    Heading(String),
    Table(Table),
    Pictures(Vec<Picture>),
    /// Symbols or words, and what they mean.
    Terms(Vec<(String, String)>),
    /// A line of a terminal.
    Commands(Vec<String>),
}

/// A table whose first columns name its rows.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) caption: String,
    /// Names of the columns; a group spans the columns next to each other that share it.
    pub(crate) columns: Vec<Column>,
    /// How many columns name the row.
    pub(crate) labels: usize,
    pub(crate) rows: Vec<Vec<Entry>>,
}

/// The head of a column.
#[derive(Clone, Default)]
pub(crate) struct Column {
    pub(crate) group: String,
    pub(crate) name: String,
}

impl Column {
    pub(crate) fn named(names: &[&str]) -> Vec<Column> {
        names.iter().map(|name| Column { group: String::new(), name: (*name).to_owned() }).collect()
    }

    pub(crate) fn grouped(group: &str, names: &[&str]) -> Vec<Column> {
        names.iter().map(|name| Column { group: group.to_owned(), name: (*name).to_owned() }).collect()
    }
}

/// What stands in a cell of a table.
#[derive(Clone, Default)]
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) place: Place,
    pub(crate) mark: Option<Mark>,
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Entry { text, ..Entry::default() }
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A chart with the name of its files.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) chart: Chart,
}

pub(crate) enum Chart {
    Bars(BarChart),
    Lines(LineChart),
}

impl Chart {
    pub(crate) fn svg(&self, theme: Theme) -> String {
        match self {
            Chart::Bars(chart) => chart.svg(theme),
            Chart::Lines(chart) => chart.svg(theme),
        }
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Chart::Bars(chart) => &chart.title,
            Chart::Lines(chart) => &chart.title,
        }
    }

    pub(crate) fn description(&self) -> &str {
        match self {
            Chart::Bars(chart) => &chart.description,
            Chart::Lines(chart) => &chart.description,
        }
    }
}

impl Page {
    pub(crate) fn pictures(&self) -> impl Iterator<Item = &Picture> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.flat_map(|block| match block {
            Block::Pictures(pictures) => pictures.as_slice(),
            _ => &[],
        })
    }
}
