//! The page as one HTML file that needs nothing else: style and charts are inside, there is no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::page::{Block, Entry, Page, Picture, Section, Table};
use crate::charts::{PAGE_STYLE, Theme};
use crate::reproduce::Place;

const STYLE: &str = include_str!("page.css");

pub(crate) fn html(page: &Page) -> String {
    let anchors: Vec<String> =
        page.sections.iter().enumerate().map(|(at, section)| anchor(at, section)).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // No icon: browsers would ask a server for one.
                link rel="icon" href="data:,";
                title { (page.title) }
                style { (PreEscaped(PAGE_STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (page.title) }
                    @for line in &page.summary { p.summary { (line) } }
                    nav aria-label="Contents" {
                        ul {
                            @for (section, anchor) in page.sections.iter().zip(&anchors) {
                                li { a href={ "#" (anchor) } { (section.heading) } }
                            }
                        }
                    }
                }
                main {
                    @for (section, anchor) in page.sections.iter().zip(&anchors) {
                        section id=(anchor) {
                            h2 { (section.heading) }
                            @for block in &section.blocks { (write(block)) }
                        }
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn anchor(at: usize, section: &Section) -> String {
    let words: String = section
        .heading
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    format!("{}-{}", at + 1, words.trim_matches('-'))
}

fn write(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Text(text) => { p { (text) } }
            Block::Heading(text) => { h3 { (text) } }
            Block::Table(table) => { (write_table(table)) }
            Block::Pictures(pictures) => { div.pictures { @for picture in pictures { (write_picture(picture)) } } }
            Block::Terms(terms) => {
                dl { @for (term, words) in terms { div { dt { (term) } dd { (words) } } } }
            }
            Block::Commands(lines) => {
                div.scroll tabindex="0" role="region" aria-label="Commands" {
                    pre { code { @for line in lines { (line) "\n" } } }
                }
            }
        }
    }
}

fn write_picture(picture: &Picture) -> Markup {
    html! {
        figure id=(picture.name) {
            (PreEscaped(picture.chart.svg(Theme::Page)))
            figcaption { (picture.chart.description()) }
        }
    }
}

fn write_table(table: &Table) -> Markup {
    let groups: Vec<(&str, usize)> = table
        .columns
        .chunk_by(|a, b| a.group == b.group)
        .map(|columns| (columns[0].group.as_str(), columns.len()))
        .collect();
    let starts_group = |at: usize| at > 0 && table.columns[at].group != table.columns[at - 1].group;
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.caption) {
            table {
                caption { span { (table.caption) } }
                thead {
                    @if groups.len() > 1 {
                        tr {
                            @for (at, (group, span)) in groups.iter().enumerate() {
                                @if group.is_empty() { td colspan=(span) {} }
                                @else { th scope="colgroup" colspan=(span) class=[(at > 0).then_some("first")] { (group) } }
                            }
                        }
                    }
                    tr {
                        @for (at, column) in table.columns.iter().enumerate() {
                            th scope="col" class=(class(at, table.labels, starts_group(at))) { (column.name) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, entry) in row.iter().enumerate() {
                                @if at < table.labels {
                                    th scope="row" class=(class(at, table.labels, false)) { (write_entry(entry)) }
                                } @else {
                                    td class=(class(at, table.labels, starts_group(at))) { (write_entry(entry)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(at: usize, labels: usize, starts_group: bool) -> &'static str {
    match (at < labels, starts_group) {
        (true, _) => "label",
        (false, true) => "number first",
        (false, false) => "number",
    }
}

fn write_entry(entry: &Entry) -> Markup {
    html! {
        @match entry.place {
            Place::Best => { strong { (entry.text) } }
            Place::Second => { u { (entry.text) } }
            Place::Other => { (entry.text) }
        }
        @if let Some(mark) = entry.mark {
            " " abbr.mark title=(mark.words()) aria-label=(mark.words()) { (mark.symbol()) }
        }
    }
}
