//! What all charts share: title, legend, axes with a grid, and the picture around them.

use super::canvas::{Anchor, Canvas, FONTS, Ink, Pen, Px, Theme, Words, hatchings};
use super::scale::Axis;
use super::text::{escape, shorten, width, wrap};

/// Size of most letters.
pub(super) const LETTERS: f64 = 12.5;
const TITLE_LETTERS: f64 = 15.5;
/// Space between a label and its axis.
const GAP: f64 = 8.0;

/// The paper a chart is drawn on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sheet {
    pub(super) width: f64,
    margin: f64,
    /// Height of the plot itself.
    pub(super) plot_height: f64,
}

const WIDE: Sheet = Sheet { width: 680.0, margin: 18.0, plot_height: 270.0 };
const NARROW: Sheet = Sheet { width: 372.0, margin: 6.0, plot_height: 230.0 };

/// A chart's words, the same on every sheet.
pub(super) struct Captions<'a> {
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    /// Names of the series; a single one needs no legend.
    pub(super) series: Vec<&'a str>,
    /// How many of them have hatched bars.
    pub(super) hatched: usize,
}

/// Draws a chart: `body` puts it on a canvas, below what the captions take, and returns where it ends.
pub(super) fn picture(
    theme: Theme,
    captions: &Captions<'_>,
    content: &str,
    key: impl Fn(&mut Canvas, usize, (f64, f64)),
    body: impl Fn(&mut Canvas, Sheet, f64) -> f64,
) -> String {
    let id = format!("chart-{:016x}", fingerprint(content));
    let draw = |sheet: Sheet| {
        let mut canvas = Canvas::new(theme, &id);
        let top = head(&mut canvas, sheet, captions, &key);
        let height = (body(&mut canvas, sheet, top) + sheet.margin).ceil();
        (canvas.into_elements(), height)
    };
    let accessible = format!(
        "<title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n{}",
        escape(captions.title),
        escape(captions.description),
        hatchings(theme, &id, captions.hatched)
    );
    let role = format!(
        "role=\"img\" aria-labelledby=\"{id}-title\" aria-describedby=\"{id}-desc\" font-family=\"{FONTS}\""
    );
    let (wide, height) = draw(WIDE);
    let (width, height) = (Px(WIDE.width), Px(height));
    match theme {
        Theme::Alone => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" {role}>\n{accessible}<rect width=\"{width}\" height=\"{height}\" style=\"fill:{}\"/>\n\
             {wide}</svg>\n",
            theme.color(Ink::Surface)
        ),
        Theme::Page => {
            let (narrow, narrow_height) = draw(NARROW);
            let (narrow_width, narrow_height) = (Px(NARROW.width), Px(narrow_height));
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" style=\"--chart-wide:{width}/{height};\
                 --chart-narrow:{narrow_width}/{narrow_height}\" {role}>\n{accessible}\
                 <svg class=\"wide\" viewBox=\"0 0 {width} {height}\">\n{wide}</svg>\n\
                 <svg class=\"narrow\" viewBox=\"0 0 {narrow_width} {narrow_height}\">\n{narrow}</svg>\n</svg>\n"
            )
        }
    }
}

/// Title and legend; returns where they end.
fn head(
    canvas: &mut Canvas,
    sheet: Sheet,
    captions: &Captions<'_>,
    key: &impl Fn(&mut Canvas, usize, (f64, f64)),
) -> f64 {
    let room = sheet.width - 2.0 * sheet.margin;
    let mut y = sheet.margin;
    // Letters of middling weight are wider.
    for line in wrap(captions.title, TITLE_LETTERS * 1.12, room, 3) {
        y += 1.25 * TITLE_LETTERS;
        let words = Words { bold: true, ..Words::new(&line, TITLE_LETTERS, Ink::Words, Anchor::Start) };
        canvas.words((sheet.margin, y), &words);
    }
    if captions.series.len() > 1 {
        let (key_width, row) = (26.0, 20.0);
        let mut x = sheet.margin;
        y += row + 4.0;
        for (at, name) in captions.series.iter().enumerate() {
            let name = shorten(name, LETTERS, room - key_width - 6.0);
            let taken = key_width + 6.0 + width(&name, LETTERS);
            if x > sheet.margin && x + taken > sheet.margin + room {
                x = sheet.margin;
                y += row;
            }
            key(canvas, at, (x, y - 0.35 * LETTERS));
            canvas.words((x + key_width + 6.0, y), &Words::new(&name, LETTERS, Ink::Words, Anchor::Start));
            x += taken + 14.0;
        }
    }
    y + 14.0
}

/// The rectangle that values are drawn in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Plot {
    /// The plot below `top`, right of the labels of the axis that stands upright.
    pub(super) fn new(sheet: Sheet, top: f64, upright: &Axis, least_left: f64) -> Self {
        let widest =
            upright.ticks.iter().map(|&tick| width(&upright.label(tick), LETTERS)).fold(0.0, f64::max);
        let left = (sheet.margin + widest + GAP).max(least_left);
        let top = top + 1.6 * LETTERS;
        Plot { left, top, width: sheet.width - sheet.margin - left, height: sheet.plot_height }
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom() - axis.place(value) * self.height
    }

    pub(super) fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.place(value) * self.width
    }

    /// Name, labels and grid of the axis that stands upright.
    pub(super) fn upright_axis(&self, canvas: &mut Canvas, sheet: Sheet, axis: &Axis, name: &str) {
        let name = shorten(name, LETTERS, sheet.width - 2.0 * sheet.margin);
        canvas.words(
            (sheet.margin, self.top - 0.9 * LETTERS),
            &Words::new(&name, LETTERS, Ink::Muted, Anchor::Start),
        );
        for &tick in &axis.ticks {
            let y = self.y(axis, tick);
            canvas.line((self.left, y), (self.left + self.width, y), Pen::new(Ink::Grid, 1.0));
            let label = axis.label(tick);
            canvas.words(
                (self.left - GAP, y + 0.35 * LETTERS),
                &Words::new(&label, LETTERS, Ink::Muted, Anchor::End),
            );
        }
    }

    /// The line that bars stand on, or that a plot ends with.
    pub(super) fn ground(&self, canvas: &mut Canvas, y: f64) {
        canvas.line((self.left, y), (self.left + self.width, y), Pen::new(Ink::Axis, 1.2));
    }

    /// Labels and grid of the axis that lies, without labels that would touch; returns where they end.
    pub(super) fn lying_axis(&self, canvas: &mut Canvas, axis: &Axis, name: &str) -> f64 {
        let y = self.bottom() + 5.0 + LETTERS;
        let mut free_from = f64::NEG_INFINITY;
        for &tick in &axis.ticks {
            let (x, label) = (self.x(axis, tick), axis.label(tick));
            let half = 0.5 * width(&label, LETTERS);
            canvas.line((x, self.top), (x, self.bottom() + 4.0), Pen::new(Ink::Grid, 1.0));
            if x - half > free_from {
                canvas.words((x, y), &Words::new(&label, LETTERS, Ink::Muted, Anchor::Middle));
                free_from = x + half + 7.0;
            }
        }
        if name.is_empty() {
            return y;
        }
        let (middle, name) = (self.left + 0.5 * self.width, shorten(name, LETTERS, self.width));
        canvas.words((middle, y + 1.7 * LETTERS), &Words::new(&name, LETTERS, Ink::Muted, Anchor::Middle));
        y + 1.7 * LETTERS
    }

    /// What stands where nothing can be drawn.
    pub(super) fn no_data(&self, canvas: &mut Canvas) {
        let middle = (self.left + 0.5 * self.width, self.top + 0.5 * self.height);
        canvas.words(middle, &Words::new("no data", 1.2 * LETTERS, Ink::Muted, Anchor::Middle));
    }
}

/// FNV-1a: ids of one chart are its own among all charts of a page, and the same in every run.
fn fingerprint(content: &str) -> u64 {
    content
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
