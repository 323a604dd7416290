//! Lines with marks.

use super::canvas::{Canvas, Theme};
use super::figure::{Captions, Plot, Sheet, picture};
use super::scale::{Axis, Scale, Wish, brief};

/// One line.
#[derive(Clone, Debug)]
pub struct LineSeries {
    /// The name in the legend.
    pub name: String,
    /// What the line goes through, in this order.
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common axis.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// The title, also what screen readers say.
    pub title: String,
    /// What is to be seen, in a sentence or two, for those who do not see it.
    pub description: String,
    /// What the lying axis measures.
    pub x_label: String,
    /// What the upright axis measures.
    pub y_label: String,
    /// How the lying axis is divided.
    pub x_scale: Scale,
    /// How the upright axis is divided.
    pub y_scale: Scale,
    /// The lines.
    pub series: Vec<LineSeries>,
}

/// Marks of one line are at least this far apart, on average.
const MARK_ROOM: f64 = 12.0;
/// Data whose least value is below this share of the largest is shown from zero on.
const NEAR_ZERO: f64 = 0.5;

impl LineChart {
    /// The chart as SVG.
    pub fn svg(&self, theme: Theme) -> String {
        let captions = Captions {
            title: &self.title,
            description: &self.description,
            series: self.series.iter().map(|series| series.name.as_str()).collect(),
            hatched: 0,
        };
        let key = |canvas: &mut Canvas, series: usize, (x, y): (f64, f64)| {
            canvas.polyline(series, &[(x, y), (x + 26.0, y)]);
            canvas.mark(series, (x + 13.0, y), None);
        };
        picture(theme, &captions, &format!("{self:?}"), key, |canvas, sheet, top| {
            self.draw(canvas, sheet, top)
        })
    }

    fn holds(&self, (x, y): (f64, f64)) -> bool {
        self.x_scale.holds(x) && self.y_scale.holds(y)
    }

    fn draw(&self, canvas: &mut Canvas, sheet: Sheet, top: f64) -> f64 {
        let points = || {
            let all = self.series.iter().flat_map(|series| &series.points);
            all.copied().filter(|&point| self.holds(point))
        };
        let (least, largest) =
            points().fold((f64::INFINITY, 0f64), |(least, largest), (_, y)| (least.min(y), largest.max(y)));
        let from_zero = least >= 0.0 && least < NEAR_ZERO * largest;
        let y_axis = Axis::new(
            Wish { scale: self.y_scale, labels: 6, round_ends: true, from_zero },
            &points().map(|(_, y)| y),
        );
        let plot = Plot::new(sheet, top, &y_axis, 0.0);
        let labels = (plot.width / 58.0) as usize;
        let x_axis = Axis::new(
            Wish { scale: self.x_scale, labels, round_ends: false, from_zero: false },
            &points().map(|(x, _)| x),
        );
        plot.upright_axis(canvas, sheet, &y_axis, &self.y_label);
        let bottom = plot.lying_axis(canvas, &x_axis, &self.x_label);
        plot.ground(canvas, plot.bottom());
        if y_axis.crosses_zero() {
            plot.ground(canvas, plot.y(&y_axis, 0.0));
        }
        let place = |(x, y): (f64, f64)| (plot.x(&x_axis, x), plot.y(&y_axis, y));
        for (at, series) in self.series.iter().enumerate() {
            // A point that cannot be drawn is a gap in the line.
            for stretch in
                series.points.split(|&point| !self.holds(point)).filter(|stretch| stretch.len() > 1)
            {
                canvas.polyline(at, &stretch.iter().map(|&point| place(point)).collect::<Vec<_>>());
            }
        }
        for (at, series) in self.series.iter().enumerate() {
            let shown: Vec<(f64, f64)> =
                series.points.iter().copied().filter(|&point| self.holds(point)).collect();
            let every = (shown.len() as f64 * MARK_ROOM / plot.width).ceil().max(1.0) as usize;
            // Where not every point has its mark, those of several lines take turns.
            let first = at * every / self.series.len();
            for &(x, y) in shown.iter().skip(first).step_by(every) {
                let said = format!("{}: {} at {}", series.name, brief(y), brief(x));
                canvas.mark(at, place((x, y)), Some(&said));
            }
        }
        if points().next().is_none() {
            plot.no_data(canvas);
        }
        bottom
    }
}
