//! Bars in groups, with whiskers.

use super::canvas::{Anchor, Canvas, Ink, Theme, Words};
use super::figure::{Captions, LETTERS, Plot, Sheet, picture};
use super::scale::{Axis, Scale, Wish, brief};
use super::text::{shorten, width, wrap};

/// A value and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its standard error, drawn as a whisker to both sides.
    pub stderr: Option<f64>,
}

/// Bars of one colour, one a group.
#[derive(Clone, Debug)]
pub struct BarSeries {
    /// The name in the legend.
    pub name: String,
    /// One a group; `None` leaves a gap.
    pub values: Vec<Option<Measured>>,
}

/// Groups of bars side by side.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// The title, also what screen readers say.
    pub title: String,
    /// What is to be seen, in a sentence or two, for those who do not see it.
    pub description: String,
    /// What the bars measure.
    pub y_label: String,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// The series.
    pub series: Vec<BarSeries>,
}

/// Labels of groups that do not fit below them are turned by this much.
const TURN: f64 = -38.0;
/// The longest a turned label gets.
const LONGEST_TURNED: f64 = 150.0;

impl BarChart {
    /// The chart as SVG.
    pub fn svg(&self, theme: Theme) -> String {
        let captions = Captions {
            title: &self.title,
            description: &self.description,
            series: self.series.iter().map(|series| series.name.as_str()).collect(),
            hatched: self.series.len(),
        };
        let key = |canvas: &mut Canvas, series: usize, (x, y): (f64, f64)| {
            canvas.bar(series, (x, y - 6.0), (26.0, 12.0), None);
        };
        picture(theme, &captions, &format!("{self:?}"), key, |canvas, sheet, top| {
            self.draw(canvas, sheet, top)
        })
    }

    /// The bars that can be drawn: series, group, value.
    fn bars(&self) -> impl Iterator<Item = (usize, usize, Measured)> + Clone {
        self.series.iter().enumerate().flat_map(move |(series, bars)| {
            let values = bars.values.iter().take(self.groups.len()).enumerate();
            values.filter_map(move |(group, bar)| {
                bar.filter(|bar| Scale::Linear.holds(bar.value)).map(|bar| {
                    let sure = |stderr: &f64| *stderr > 0.0 && Scale::Linear.holds(bar.value.abs() + stderr);
                    (series, group, Measured { stderr: bar.stderr.filter(sure), ..bar })
                })
            })
        })
    }

    fn draw(&self, canvas: &mut Canvas, sheet: Sheet, top: f64) -> f64 {
        let bars = self.bars();
        let ends = bars.clone().flat_map(|(_, _, bar)| {
            let stderr = bar.stderr.unwrap_or(0.0);
            [bar.value - stderr, bar.value + stderr]
        });
        let wish = Wish { scale: Scale::Linear, labels: 6, round_ends: true, from_zero: true };
        let axis = Axis::new(wish, &ends);
        let plot = Plot::new(sheet, top, &axis, self.room_for_first_label(sheet));
        plot.upright_axis(canvas, sheet, &axis, &self.y_label);
        let groups = self.groups.len().max(1) as f64;
        let band = plot.width / groups;
        let pitch = 0.76 * band / self.series.len().max(1) as f64;
        let thick = (0.88 * pitch).min(56.0);
        let foot = plot.y(&axis, axis.foot());
        for (series, group, bar) in bars.clone() {
            let offset = (series as f64 - 0.5 * (self.series.len() - 1) as f64) * pitch.min(64.0);
            let x = plot.left + (group as f64 + 0.5) * band + offset;
            let y = plot.y(&axis, bar.value);
            let said = self.said(series, group, bar);
            canvas.bar(series, (x - 0.5 * thick, y.min(foot)), (thick, (y - foot).abs()), Some(&said));
            if let Some(stderr) = bar.stderr {
                let (low, high) = (plot.y(&axis, bar.value - stderr), plot.y(&axis, bar.value + stderr));
                canvas.whisker(x, low, high, (0.28 * thick).min(5.0));
            }
        }
        plot.ground(canvas, foot);
        if bars.clone().next().is_none() {
            plot.no_data(canvas);
        }
        let mut y = self.label_groups(canvas, plot, band);
        if bars.clone().any(|(_, _, bar)| bar.stderr.is_some()) {
            y += 1.9 * LETTERS;
            let note = Words::new(
                "whiskers: one standard error to both sides",
                0.88 * LETTERS,
                Ink::Muted,
                Anchor::End,
            );
            canvas.words((plot.left + plot.width, y), &note);
        }
        y
    }

    fn said(&self, series: usize, group: usize, bar: Measured) -> String {
        let name = match self.series.len() {
            1 => String::new(),
            _ => format!(", {}", self.series[series].name),
        };
        let stderr = bar.stderr.map(|stderr| format!(" ± {}", brief(stderr))).unwrap_or_default();
        format!("{}{name}: {}{stderr}", self.groups[group], brief(bar.value))
    }

    /// Turned labels reach to the left of the first bar.
    fn room_for_first_label(&self, sheet: Sheet) -> f64 {
        let band = 0.88 * sheet.width / self.groups.len().max(1) as f64;
        if self.fits_upright(band) {
            return 0.0;
        }
        let longest = self.groups.iter().map(|group| width(group, LETTERS)).fold(0.0, f64::max);
        let reach = longest.min(LONGEST_TURNED) * TURN.to_radians().cos() - 0.5 * band + 8.0;
        reach.min(0.24 * sheet.width)
    }

    fn fits_upright(&self, band: f64) -> bool {
        self.groups.iter().all(|group| {
            group.split_whitespace().all(|word| width(word, LETTERS) <= band - 6.0)
                && width(group, LETTERS) <= 2.0 * (band - 6.0)
        })
    }

    /// Names below the groups; returns where they end.
    fn label_groups(&self, canvas: &mut Canvas, plot: Plot, band: f64) -> f64 {
        let top = plot.bottom() + 6.0;
        let middle = |group: usize| plot.left + (group as f64 + 0.5) * band;
        let mut bottom = top;
        if self.fits_upright(band) {
            for (group, name) in self.groups.iter().enumerate() {
                let mut y = top;
                for line in wrap(name, LETTERS, band - 4.0, 3) {
                    y += 1.2 * LETTERS;
                    canvas.words((middle(group), y), &Words::new(&line, LETTERS, Ink::Words, Anchor::Middle));
                }
                bottom = bottom.max(y);
            }
            return bottom;
        }
        let (sin, cos) = TURN.to_radians().sin_cos();
        let every = (1.3 * LETTERS / band).ceil().max(1.0) as usize;
        for (group, name) in self.groups.iter().enumerate().step_by(every) {
            let room = ((middle(group) - 2.0) / cos).min(LONGEST_TURNED);
            let name = shorten(name, LETTERS, room);
            let place = (middle(group) + 4.0, top + 0.6 * LETTERS);
            let words = Words { turned: TURN, ..Words::new(&name, LETTERS, Ink::Words, Anchor::End) };
            canvas.words(place, &words);
            bottom = bottom.max(place.1 - sin * width(&name, LETTERS));
        }
        bottom
    }
}
