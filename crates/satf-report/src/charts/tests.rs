//! Every chart is well-formed, whatever it is given, and shows what it was given.

use roxmltree::{Document, Node};

use super::*;

/// Values with their standard errors.
type Values<'a> = &'a [Option<(f64, f64)>];

fn bars(groups: &[&str], series: &[(&str, Values<'_>)]) -> BarChart {
    BarChart {
        title: "NDCG@10 of six models".into(),
        description: "Ours beside the paper's.".into(),
        y_label: "NDCG@10".into(),
        groups: groups.iter().map(ToString::to_string).collect(),
        series: series
            .iter()
            .map(|(name, values)| BarSeries {
                name: (*name).to_owned(),
                values: values
                    .iter()
                    .map(|value| value.map(|(value, stderr)| Measured { value, stderr: Some(stderr) }))
                    .collect(),
            })
            .collect(),
    }
}

fn lines(x_scale: Scale, y_scale: Scale, series: &[(&str, &[(f64, f64)])]) -> LineChart {
    LineChart {
        title: "Time of training".into(),
        description: "Seconds against the item rank.".into(),
        x_label: "item rank".into(),
        y_label: "seconds".into(),
        x_scale,
        y_scale,
        series: series
            .iter()
            .map(|(name, points)| LineSeries { name: (*name).to_owned(), points: points.to_vec() })
            .collect(),
    }
}

fn named<'a>(document: &'a Document<'_>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(move |node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
}

/// Parses a chart and checks what holds for all of them.
fn check(svg: &str) -> Document<'_> {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id twice");
    for (attribute, element) in [("aria-labelledby", "title"), ("aria-describedby", "desc")] {
        let id = root.attribute(attribute).unwrap();
        let named = document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap();
        assert!(named.has_tag_name(element) || named.tag_name().name() == element);
    }
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{attribute:?}");
            if let Some(reference) = value.split("url(#").nth(1) {
                let id = reference.split(')').next().unwrap();
                assert!(ids.binary_search(&id).is_ok(), "nothing has the id {id}");
            }
        }
    }
    // What is drawn stays on the paper.
    for sheet in document.descendants().filter(|node| node.attribute("viewBox").is_some()) {
        let size: Vec<f64> =
            sheet.attribute("viewBox").unwrap().split(' ').map(|part| part.parse().unwrap()).collect();
        for node in sheet.descendants() {
            for (axis, limit) in [("x", size[2]), ("y", size[3]), ("cx", size[2]), ("cy", size[3])] {
                if let Some(at) = node.attribute(axis).and_then(|at| at.parse::<f64>().ok()) {
                    assert!((-1.0..=limit + 1.0).contains(&at), "{axis} {at} of {limit}: {node:?}");
                }
            }
        }
    }
    document
}

fn words(document: &Document<'_>) -> Vec<String> {
    named(document, "text").filter_map(|node| node.text().map(ToOwned::to_owned)).collect()
}

#[test]
fn bars_stand_for_their_values() {
    let chart = bars(
        &["MP", "LA-SATF"],
        &[("ours", &[Some((0.02, 0.001)), Some((0.06, 0.002))]), ("paper", &[None, Some((0.04, 0.002))])],
    );
    let svg = chart.svg(Theme::Alone);
    let document = check(&svg);
    let drawn: Vec<(f64, String)> = named(&document, "rect")
        .filter_map(|bar| {
            let said = bar.children().find_map(|child| child.text())?;
            Some((bar.attribute("height")?.parse().ok()?, said.to_owned()))
        })
        .collect();
    assert_eq!(drawn.len(), 3);
    assert!((drawn[1].0 / drawn[0].0 - 3.0).abs() < 0.01 && (drawn[2].0 / drawn[0].0 - 2.0).abs() < 0.01);
    assert_eq!(drawn[1].1, "LA-SATF, ours: 0.06000 ± 0.002000");
    let words = words(&document);
    for expected in ["NDCG@10 of six models", "ours", "paper", "MP", "LA-SATF", "0.06", "NDCG@10"] {
        assert!(words.iter().any(|word| word == expected), "{expected} in {words:?}");
    }
    // Two series differ without colours: one is hatched.
    assert_eq!(named(&document, "pattern").count(), 1);
}

#[test]
fn lines_stand_for_their_points() {
    let times: Vec<(f64, f64)> =
        [100.0, 200.0, 400.0, 800.0].into_iter().map(|rank: f64| (rank, rank.powi(2) / 1e4)).collect();
    let flat: Vec<(f64, f64)> = times.iter().map(|&(rank, _)| (rank, 2.0)).collect();
    let chart = lines(Scale::Log, Scale::Log, &[("LA-SATF", &times), ("PureSVD", &flat)]);
    let svg = chart.svg(Theme::Alone);
    let document = check(&svg);
    let curves: Vec<Vec<(f64, f64)>> = named(&document, "polyline")
        .map(|line| {
            let points = line.attribute("points").unwrap().split(' ');
            points
                .map(|point| {
                    let (x, y) = point.split_once(',').unwrap();
                    (x.parse().unwrap(), y.parse().unwrap())
                })
                .collect::<Vec<(f64, f64)>>()
        })
        .filter(|points| points.len() == 4)
        .collect();
    assert_eq!(curves.len(), 2);
    // A power law is straight on logarithmic axes.
    let steps: Vec<(f64, f64)> =
        curves[0].windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect();
    assert!(
        steps.iter().all(|step| (step.0 - steps[0].0).abs() < 0.05 && (step.1 - steps[0].1).abs() < 0.05)
    );
    assert!(steps[0].1 < 0.0, "larger values stand higher");
    let styles: Vec<&str> = named(&document, "polyline").filter_map(|line| line.attribute("style")).collect();
    assert!(styles.iter().any(|style| style.contains("dasharray")), "lines differ without colours");
}

#[test]
fn rubbish_values_are_left_out() {
    let nan = f64::NAN;
    let chart = bars(
        &["a", "b", "c", "d", "e"],
        &[
            (
                "one",
                &[Some((nan, 0.1)), Some((f64::INFINITY, 0.1)), Some((-2.0, nan)), Some((1.0, -1.0)), None],
            ),
            ("two", &[Some((1e308, 1e308)), Some((3.0, f64::INFINITY))]),
            ("three", &[Some((1.0, 0.1)); 9]),
        ],
    );
    for theme in [Theme::Page, Theme::Alone] {
        let svg = chart.svg(theme);
        let document = check(&svg);
        let sheets = if theme == Theme::Page { 2 } else { 1 };
        let drawn = named(&document, "rect").filter(Node::has_children).count();
        assert_eq!(drawn, 8 * sheets, "two of the first series, one of the second, five of the third");
    }
    for scale in [Scale::Linear, Scale::Log] {
        let points = [
            (1.0, 2.0),
            (2.0, nan),
            (nan, 1.0),
            (3.0, -4.0),
            (0.0, 3.0),
            (f64::NEG_INFINITY, 1.0),
            (4.0, 1e308),
            (5.0, 2.0),
        ];
        let svg = lines(scale, scale, &[("a", &points)]).svg(Theme::Alone);
        let document = check(&svg);
        let marks = named(&document, "circle").count();
        assert_eq!(marks, if scale == Scale::Log { 2 } else { 4 });
    }
}

#[test]
fn a_chart_without_data_says_so() {
    let nothing = [
        bars(&[], &[]).svg(Theme::Page),
        bars(&["a"], &[]).svg(Theme::Alone),
        bars(&[], &[("a", &[Some((1.0, 0.1))])]).svg(Theme::Alone),
        bars(&["a", "b"], &[("x", &[None, Some((f64::NAN, 0.0))])]).svg(Theme::Page),
        lines(Scale::Linear, Scale::Linear, &[]).svg(Theme::Alone),
        lines(Scale::Log, Scale::Log, &[("a", &[]), ("b", &[(0.0, 1.0)])]).svg(Theme::Page),
    ];
    for svg in &nothing {
        assert!(words(&check(svg)).iter().any(|word| word == "no data"), "{svg}");
    }
    let one = lines(Scale::Log, Scale::Linear, &[("a", &[(7.0, -3.0)])]).svg(Theme::Alone);
    let document = check(&one);
    assert!(
        named(&document, "circle").count() == 1 && !words(&document).iter().any(|word| word == "no data")
    );
    check(&bars(&["a"], &[("x", &[Some((0.0, 0.0))])]).svg(Theme::Alone));
    check(&bars(&["a"], &[("x", &[Some((-2.5, 0.5))])]).svg(Theme::Alone));
}

#[test]
fn names_cannot_break_out_of_the_picture() {
    let evil = "</text><script>alert('x')</script>&\"\u{0}";
    let mut chart = bars(&[evil], &[(evil, &[Some((1.0, 0.1))]), ("b", &[None])]);
    (chart.title, chart.description, chart.y_label) = (evil.into(), evil.into(), evil.into());
    let mut other = lines(Scale::Linear, Scale::Linear, &[(evil, &[(1.0, 1.0)]), ("b", &[])]);
    (other.title, other.x_label) = (evil.into(), evil.into());
    for svg in
        [chart.svg(Theme::Page), chart.svg(Theme::Alone), other.svg(Theme::Page), other.svg(Theme::Alone)]
    {
        let document = check(&svg);
        assert!(document.descendants().all(|node| node.tag_name().name() != "script"));
        assert!(words(&document).iter().any(|word| word.contains("<script>")));
    }
}

#[test]
fn charts_of_one_page_share_no_id() {
    let ids = |svg: &str| -> Vec<String> {
        let document = Document::parse(svg).unwrap();
        document.descendants().filter_map(|node| node.attribute("id").map(ToOwned::to_owned)).collect()
    };
    let values: Values<'_> = &[Some((1.0, 0.1))];
    let first = bars(&["a"], &[("x", values), ("y", values)]);
    let second = bars(&["b"], &[("x", values), ("y", values)]);
    let (first, again, second) =
        (ids(&first.svg(Theme::Page)), ids(&first.svg(Theme::Page)), ids(&second.svg(Theme::Page)));
    assert!(first.len() == 3 && first == again && first.iter().all(|id| !second.contains(id)));
}

#[test]
fn pages_choose_the_colours_and_pictures_have_their_own() {
    let chart = bars(&["a"], &[("x", &[Some((1.0, 0.1))]), ("y", &[Some((1.0, 0.1))])]);
    let (page, alone) = (chart.svg(Theme::Page), chart.svg(Theme::Alone));
    assert!(!alone.contains("var(") && alone.contains("fill:#ffffff"));
    for name in page.split("var(--").skip(1).filter_map(|rest| rest.split(',').next()) {
        // Once for light pages and once for dark ones.
        assert_eq!(PAGE_STYLE.matches(&format!("--{name}:")).count(), 2, "{name}");
    }
    let light = PAGE_STYLE.split("@media").next().unwrap();
    for (name, fallback) in
        page.split("var(--").skip(1).filter_map(|rest| rest.split(')').next()?.split_once(','))
    {
        assert!(light.contains(&format!("--{name}: {fallback};")), "{name} {fallback}");
    }
}

/// What somebody sees of a colour in linear light: everything, or without one kind of cone (Machado and others, 2009).
const VISIONS: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_82, 0.042_94, 0.968_881]],
    [
        [1.255_528, -0.076_749, -0.178_779],
        [-0.078_411, 0.930_809, 0.147_602],
        [0.004_733, 0.691_367, 0.303_9],
    ],
];

fn linear_light(color: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let part = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    })
}

fn luminance(light: [f64; 3]) -> f64 {
    0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
}

/// CIE L*a*b*, in which distances are about as large as they look.
fn lab(light: [f64; 3]) -> [f64; 3] {
    let [r, g, b] = light.map(|part| part.clamp(0.0, 1.0));
    let root = |t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let x = root((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
    let y = root(luminance([r, g, b]));
    let z = root((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

#[test]
fn colours_are_told_apart_with_any_colour_vision() {
    for style in PAGE_STYLE.split("prefers-color-scheme") {
        let value = |name: &str| {
            let rest = style.split(&format!("--chart-{name}: ")).nth(1).unwrap();
            linear_light(&rest[..7])
        };
        let paper = luminance(value("surface"));
        let colors: Vec<[f64; 3]> = (1..=8).map(|series| value(&series.to_string())).collect();
        for (at, &color) in colors.iter().enumerate() {
            let (dark, light) = (paper.min(luminance(color)), paper.max(luminance(color)));
            assert!((light + 0.05) / (dark + 0.05) >= 3.0, "colour {} is too faint", at + 1);
        }
        for (kind, vision) in VISIONS.iter().enumerate() {
            let seen: Vec<[f64; 3]> = colors
                .iter()
                .map(|color| lab(vision.map(|row| row.iter().zip(color).map(|(a, b)| a * b).sum())))
                .collect();
            for first in 0..8 {
                for second in 0..first {
                    let distance: f64 = seen[first]
                        .iter()
                        .zip(seen[second])
                        .map(|(a, b)| (a - b).powi(2))
                        .sum::<f64>()
                        .sqrt();
                    assert!(distance > 15.0, "vision {kind}: {} and {}: {distance}", second + 1, first + 1);
                }
            }
        }
    }
}

#[cfg(feature = "png")]
#[test]
fn pictures_have_letters_without_any_font_on_the_machine() {
    let chart = |title: &str| LineChart {
        title: title.into(),
        y_label: String::new(),
        ..lines(Scale::Log, Scale::Log, &[])
    };
    let pixels = |title: &str| {
        let picture = png(&chart(title).svg(Theme::Alone), 2.0).unwrap();
        resvg::tiny_skia::Pixmap::decode_png(&picture).unwrap()
    };
    let (with, without) = (pixels("Größe, μ ≤ Жизнь"), pixels(" "));
    assert_eq!(with.width(), 1360);
    // Nothing but the title is as high as this.
    let dark = |picture: &resvg::tiny_skia::Pixmap| {
        let rows = picture.pixels().iter().take(1360 * 70);
        rows.filter(|pixel| pixel.red() < 128).count()
    };
    assert!(dark(&with) > 800, "{}", dark(&with));
    assert_eq!(dark(&without), 0);
}

#[cfg(feature = "png")]
#[test]
fn pictures_of_impossible_sizes_are_refused() {
    let svg = lines(Scale::Linear, Scale::Linear, &[]).svg(Theme::Alone);
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
        let message = png(&svg, scale).unwrap_err().to_string();
        assert!(message.contains("pixels"), "{message}");
    }
    assert!(png("<svg", 1.0).is_err());
}

#[cfg(not(feature = "png"))]
#[test]
fn a_build_without_png_says_what_works() {
    let svg = lines(Scale::Linear, Scale::Linear, &[]).svg(Theme::Alone);
    let message = png(&svg, 1.0).unwrap_err().to_string();
    assert!(message.contains("feature 'png'") && message.contains("SVG"), "{message}");
}
