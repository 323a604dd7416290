//! SVG, element by element: colours, hatching, marks, words.

use std::fmt::{self, Display};

use super::text::escape;

/// Where a chart is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Theme {
    /// Inside a page that holds [`PAGE_STYLE`](super::PAGE_STYLE).
    Page,
    /// As a file of its own, on white.
    Alone,
}

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Surface,
    Words,
    Muted,
    Grid,
    Axis,
    Series(usize),
}

/// Colours of the series, told apart with any kind of colour vision: those of the style sheet's light page.
const SERIES: [&str; 8] =
    ["#004fac", "#cf8110", "#049156", "#853e71", "#48430e", "#3399ec", "#160b58", "#ad8697"];

/// Fonts to be had nearly everywhere; the last but one is what PNG charts bring along.
pub(super) const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

impl Theme {
    /// The colour, as CSS.
    pub(super) fn color(self, ink: Ink) -> String {
        let (name, light) = match ink {
            Ink::Surface => ("surface".to_owned(), "#ffffff"),
            Ink::Words => ("ink".to_owned(), "#1c2530"),
            Ink::Muted => ("muted".to_owned(), "#5a6673"),
            Ink::Grid => ("grid".to_owned(), "#e3e7ec"),
            Ink::Axis => ("axis".to_owned(), "#9aa5b1"),
            Ink::Series(series) => {
                let at = series % SERIES.len();
                ((at + 1).to_string(), SERIES[at])
            }
        };
        match self {
            Theme::Alone => light.to_owned(),
            Theme::Page => format!("var(--chart-{name},{light})"),
        }
    }
}

/// A place or a length: two decimals at most.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        formatter.write_str(if text == "-0" { "0" } else { text })
    }
}

/// Where words stand with respect to their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Words and how they look.
pub(super) struct Words<'a> {
    pub(super) text: &'a str,
    pub(super) size: f64,
    pub(super) ink: Ink,
    pub(super) anchor: Anchor,
    pub(super) bold: bool,
    /// Degrees, clockwise, around the place.
    pub(super) turned: f64,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str, size: f64, ink: Ink, anchor: Anchor) -> Self {
        Words { text, size, ink, anchor, bold: false, turned: 0.0 }
    }
}

/// A line's looks.
#[derive(Clone, Copy)]
pub(super) struct Pen {
    pub(super) ink: Ink,
    pub(super) width: f64,
    pub(super) opacity: f64,
}

impl Pen {
    pub(super) fn new(ink: Ink, width: f64) -> Self {
        Pen { ink, width, opacity: 1.0 }
    }

    fn style(self, theme: Theme) -> String {
        let opacity =
            if self.opacity < 1.0 { format!(";opacity:{}", Px(self.opacity)) } else { String::new() };
        format!("stroke:{};stroke-width:{}{opacity}", theme.color(self.ink), Px(self.width))
    }
}

/// A piece of SVG under construction.
pub(super) struct Canvas {
    pub(super) theme: Theme,
    /// Begins every id of this chart.
    id: String,
    elements: String,
}

impl Canvas {
    pub(super) fn new(theme: Theme, id: &str) -> Self {
        Canvas { theme, id: id.to_owned(), elements: String::new() }
    }

    pub(super) fn into_elements(self) -> String {
        self.elements
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), pen: Pen) {
        let style = pen.style(self.theme);
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Px);
        self.push(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" style=\"{style}\"/>"));
    }

    pub(super) fn words(&mut self, (x, y): (f64, f64), words: &Words<'_>) {
        let anchor = match words.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (Px(x), Px(y));
        let turned = match words.turned {
            0.0 => String::new(),
            degrees => format!(" transform=\"rotate({} {x} {y})\"", Px(degrees)),
        };
        let bold = if words.bold { " font-weight=\"600\"" } else { "" };
        self.push(&format!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\"{anchor}{bold}{turned} style=\"fill:{}\">{}</text>",
            Px(words.size),
            self.theme.color(words.ink),
            escape(words.text)
        ));
    }

    /// A bar of a series, with what is said to those who point at it.
    pub(super) fn bar(
        &mut self,
        series: usize,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        said: Option<&str>,
    ) {
        let color = self.theme.color(Ink::Series(series));
        let fill = match hatch(series) {
            Hatch::Full => color.clone(),
            _ => format!("url(#{}-{series})", self.id),
        };
        let (x, y, width, height) = (Px(x), Px(y), Px(width), Px(height));
        let shape = format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" style=\"fill:{fill};stroke:{color}\""
        );
        match said {
            Some(said) => self.push(&format!("{shape}><title>{}</title></rect>", escape(said))),
            None => self.push(&format!("{shape}/>")),
        }
    }

    /// A value's whisker: from one standard error below to one above.
    pub(super) fn whisker(&mut self, x: f64, low: f64, high: f64, cap: f64) {
        let path = format!(
            "M{0} {2}V{3}M{1} {2}H{4}M{1} {3}H{4}",
            Px(x),
            Px(x - cap),
            Px(low),
            Px(high),
            Px(x + cap)
        );
        // A rim in the colour of the paper keeps it apart from the bar behind.
        for pen in [Pen { ink: Ink::Surface, width: 3.5, opacity: 0.75 }, Pen::new(Ink::Words, 1.25)] {
            let style = pen.style(self.theme);
            self.push(&format!("<path d=\"{path}\" style=\"fill:none;{style}\"/>"));
        }
    }

    /// A series' line through points.
    pub(super) fn polyline(&mut self, series: usize, points: &[(f64, f64)]) {
        let places: Vec<String> = points.iter().map(|&(x, y)| format!("{},{}", Px(x), Px(y))).collect();
        let dashes = match DASHES[series % DASHES.len()] {
            "" => String::new(),
            dashes => format!(";stroke-dasharray:{dashes}"),
        };
        self.push(&format!(
            "<polyline points=\"{}\" style=\"fill:none;{}{dashes};stroke-linejoin:round;stroke-linecap:round\"/>",
            places.join(" "),
            Pen::new(Ink::Series(series), 2.0).style(self.theme)
        ));
    }

    /// A series' mark, with what is said to those who point at it.
    pub(super) fn mark(&mut self, series: usize, (x, y): (f64, f64), said: Option<&str>) {
        let style = format!(
            "fill:{};stroke:{};stroke-width:1.2",
            self.theme.color(Ink::Series(series)),
            self.theme.color(Ink::Surface)
        );
        // Every round of colours begins the shapes one later, so that no two series share both.
        let shape = MARKS[(series + series / SERIES.len()) % MARKS.len()];
        let element = if shape.is_empty() {
            format!("circle cx=\"{}\" cy=\"{}\" r=\"4\" style=\"{style}\"", Px(x), Px(y))
        } else {
            let points: Vec<String> =
                shape.iter().map(|(dx, dy)| format!("{},{}", Px(x + dx), Px(y + dy))).collect();
            format!("polygon points=\"{}\" style=\"{style}\"", points.join(" "))
        };
        match said {
            Some(said) => {
                let name = element.split(' ').next().unwrap_or_default();
                self.push(&format!("<{element}><title>{}</title></{name}>", escape(said)));
            }
            None => self.push(&format!("<{element}/>")),
        }
    }

    fn push(&mut self, element: &str) {
        self.elements.push_str(element);
        self.elements.push('\n');
    }
}

/// Lines of the series, dash and gap; the first is solid.
const DASHES: [&str; 5] = ["", "7 4", "2 4", "9 4 2 4", "4 3"];

/// Corners of the marks around their place; a circle has none.
const MARKS: [&[(f64, f64)]; 8] = [
    &[],
    &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
    &[(0.0, -4.8), (4.6, 3.4), (-4.6, 3.4)],
    &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)],
    &[(0.0, 4.8), (4.6, -3.4), (-4.6, -3.4)],
    &[
        (-1.5, -4.8),
        (1.5, -4.8),
        (1.5, -1.5),
        (4.8, -1.5),
        (4.8, 1.5),
        (1.5, 1.5),
        (1.5, 4.8),
        (-1.5, 4.8),
        (-1.5, 1.5),
        (-4.8, 1.5),
        (-4.8, -1.5),
        (-1.5, -1.5),
    ],
    &[(-2.3, -4.2), (2.3, -4.2), (4.8, 0.0), (2.3, 4.2), (-2.3, 4.2), (-4.8, 0.0)],
    &[(-2.6, -4.6), (2.6, -4.6), (2.6, 4.6), (-2.6, 4.6)],
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hatch {
    Full,
    Rising,
    Dots,
    Falling,
    Pale,
    Crossed,
    Level,
    Upright,
}

/// The hatching of a series' bars; like the marks, every round of colours begins one later.
fn hatch(series: usize) -> Hatch {
    let all = [
        Hatch::Full,
        Hatch::Rising,
        Hatch::Pale,
        Hatch::Falling,
        Hatch::Dots,
        Hatch::Crossed,
        Hatch::Level,
        Hatch::Upright,
    ];
    all[(series + series / SERIES.len()) % all.len()]
}

/// The hatchings of this many series of bars.
pub(super) fn hatchings(theme: Theme, id: &str, series: usize) -> String {
    let mut definitions = String::new();
    for at in 0..series {
        let color = theme.color(Ink::Series(at));
        let (turned, drawn) = match hatch(at) {
            Hatch::Full => continue,
            Hatch::Pale => (0, String::new()),
            Hatch::Dots => (45, format!("<circle cx=\"3\" cy=\"3\" r=\"1.3\" style=\"fill:{color}\"/>")),
            Hatch::Crossed => (45, stroke("M0 3H6M3 0V6", &color)),
            Hatch::Rising => (45, stroke("M3 0V6", &color)),
            Hatch::Falling => (-45, stroke("M3 0V6", &color)),
            Hatch::Level => (0, stroke("M0 3H6", &color)),
            Hatch::Upright => (0, stroke("M3 0V6", &color)),
        };
        definitions.push_str(&format!(
            "<pattern id=\"{id}-{at}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate({turned})\"><rect width=\"6\" height=\"6\" style=\"fill:{}\"/>\
             <rect width=\"6\" height=\"6\" style=\"fill:{color};fill-opacity:.22\"/>{drawn}</pattern>\n",
            theme.color(Ink::Surface)
        ));
    }
    if definitions.is_empty() { definitions } else { format!("<defs>\n{definitions}</defs>\n") }
}

fn stroke(path: &str, color: &str) -> String {
    format!("<path d=\"{path}\" style=\"stroke:{color};stroke-width:1.8\"/>")
}
