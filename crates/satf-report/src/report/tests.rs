use super::page::{Block, Chart, Column, Entry, Page, Picture, Section, Table};
use super::{html, markdown};
use crate::charts::{LineChart, LineSeries, Scale};
use crate::reproduce::{Mark, Place};

const EVIL: &str = "<script>alert(\"1\")</script> | *a* _b_ `c` & d";

fn page() -> Page {
    let entry = |text: &str, place, mark| Entry { text: text.to_owned(), place, mark };
    let table = Table {
        caption: format!("caption {EVIL}"),
        columns: [
            Column::named(&["model"]),
            Column::grouped("ours", &["NDCG", "HR"]),
            Column::grouped(EVIL, &["NDCG"]),
        ]
        .concat(),
        labels: 1,
        rows: vec![
            vec![
                EVIL.into(),
                entry("0.1", Place::Best, None),
                entry("0.2", Place::Second, None),
                entry("0.3", Place::Other, Some(Mark::Below)),
            ],
            vec!["MP".into(), "–".into(), "".into(), entry("0.4", Place::Best, Some(Mark::Within))],
        ],
    };
    let chart = LineChart {
        title: EVIL.to_owned(),
        description: EVIL.to_owned(),
        x_label: EVIL.to_owned(),
        y_label: EVIL.to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: vec![LineSeries { name: EVIL.to_owned(), points: vec![(1.0, 2.0), (2.0, 3.0)] }],
    };
    let blocks = vec![
        Block::Text(EVIL.to_owned()),
        Block::Heading(EVIL.to_owned()),
        Block::Table(table),
        Block::Pictures(vec![Picture { name: "a-chart".to_owned(), chart: Chart::Lines(chart) }]),
        Block::Terms(vec![("=".to_owned(), EVIL.to_owned())]),
        Block::Commands(vec![format!("satf {EVIL}")]),
    ];
    Page {
        title: EVIL.to_owned(),
        summary: vec![EVIL.to_owned()],
        sections: vec![Section { heading: EVIL.to_owned(), blocks }],
    }
}

#[test]
fn foreign_text_is_text_in_html() {
    let html = html::html(&page());
    assert!(!html.contains("<script") && !html.contains("alert(\"1\")"), "{html}");
    // Title, heading, section, summary, contents, text, caption, label of the region, group, row, terms, command, chart.
    assert!(html.matches("&lt;script&gt;").count() >= 13);
}

#[test]
fn tables_are_marked_up_for_those_who_cannot_see_them() {
    let html = html::html(&page());
    assert_eq!(html.matches("<caption>").count(), 1);
    assert_eq!(html.matches("scope=\"col\"").count(), 4);
    assert_eq!(html.matches("<th scope=\"colgroup\"").count(), 2);
    assert_eq!(html.matches("scope=\"row\"").count(), 2);
    // One row of groups leaves a gap above the names of models; six cells hold values.
    assert_eq!(html.matches("<td").count(), 1 + 6);
    assert!(html.contains("<strong>0.1</strong>") && html.contains("<u>0.2</u>"));
    // Marks are words too, and never a colour.
    assert!(
        html.contains("aria-label=\"below\">▼")
            && html.contains("aria-label=\"within two standard errors\">=")
    );
    assert!(html.contains("<svg") && html.contains("role=\"img\""));
}

#[test]
fn markdown_keeps_its_tables_and_its_text() {
    let markdown = markdown::markdown(&page());
    let table: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(table.len(), 4);
    for line in &table {
        assert_eq!(line.replace("\\|", "").matches('|').count(), 5, "{line}");
    }
    assert_eq!(table[1], "| --- | ---: | ---: | ---: |");
    assert!(table[2].ends_with("| **0.1** | <u>0.2</u> | 0.3 ▼ |"), "{}", table[2]);
    assert!(table[3].ends_with("| – |  | **0.4** = |"), "{}", table[3]);
    assert!(markdown.contains("](charts/a-chart.svg)"));
    // In a block of code text needs no care; outside of one it does.
    let outside: String = markdown.split("```").step_by(2).collect();
    assert!(!outside.contains("<script"), "{outside}");
    assert!(outside.contains("\\*a\\* \\_b\\_ \\`c\\` &amp; d"));
}
