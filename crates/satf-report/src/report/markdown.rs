//! The page as Markdown, as it is shown on code-hosting sites.

use super::page::{Block, Entry, Page, Table};
use crate::reproduce::Place;

pub(crate) fn markdown(page: &Page) -> String {
    let mut text = format!("# {}\n\n", escaped(&page.title));
    for line in &page.summary {
        text.push_str(&format!("{}\n\n", escaped(line)));
    }
    for section in &page.sections {
        text.push_str(&format!("## {}\n\n", escaped(&section.heading)));
        for block in &section.blocks {
            text.push_str(&write(block));
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn write(block: &Block) -> String {
    match block {
        Block::Text(text) => format!("{}\n", escaped(text)),
        Block::Heading(text) => format!("### {}\n", escaped(text)),
        Block::Table(table) => write_table(table),
        Block::Pictures(pictures) => pictures
            .iter()
            .map(|picture| format!("![{}](charts/{}.svg)\n", escaped(picture.chart.title()), picture.name))
            .collect::<Vec<_>>()
            .join("\n"),
        Block::Terms(terms) => {
            let line =
                |(term, words): &(String, String)| format!("* **{}** {}", escaped(term), escaped(words));
            terms.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
        }
        Block::Commands(lines) => format!("```sh\n{}\n```\n", lines.join("\n")),
    }
}

fn write_table(table: &Table) -> String {
    let names = table.columns.iter().map(|column| match (column.group.as_str(), column.name.as_str()) {
        ("", name) => escaped(name),
        (group, name) => format!("{}, {}", escaped(name), escaped(group)),
    });
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("{}\n\n", escaped(&table.caption));
    text.push_str(&line(names.collect()));
    let rule = |at: usize| if at < table.labels { "---" } else { "---:" };
    text.push_str(&line((0..table.columns.len()).map(|at| rule(at).to_owned()).collect()));
    for row in &table.rows {
        text.push_str(&line(row.iter().map(write_entry).collect()));
    }
    text
}

fn write_entry(entry: &Entry) -> String {
    let text = escaped(&entry.text);
    let text = match entry.place {
        _ if text.is_empty() => text,
        Place::Best => format!("**{text}**"),
        Place::Second => format!("<u>{text}</u>"),
        Place::Other => text,
    };
    match entry.mark {
        Some(mark) => format!("{text} {}", mark.symbol()),
        None => text,
    }
}

/// Text that stays what it is.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '\n' | '\r' => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
