//! How figures stand to each other: ours to published ones, and models to models.

use serde::Serialize;

/// Half a unit of the third decimal, to which published figures are rounded.
const ROUNDING: f64 = 0.000_5;

/// A figure, how sure it is, and the lowest and highest of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The mean of the runs.
    pub value: f64,
    /// Standard error, ours clustered by user: that of one run, for all runs score the same events.
    pub stderr: Option<f64>,
    /// The lowest of the runs.
    pub lowest: f64,
    /// The highest of the runs.
    pub highest: f64,
}

impl Figure {
    /// The mean of several runs on the same events.
    pub fn mean(runs: &[(f64, Option<f64>)]) -> Option<Figure> {
        if runs.is_empty() {
            return None;
        }
        let count = runs.len() as f64;
        let values = || runs.iter().map(|run| run.0);
        let errors: Option<Vec<f64>> = runs.iter().map(|run| run.1).collect();
        Some(Figure {
            value: values().sum::<f64>() / count,
            stderr: errors.map(|errors| errors.iter().sum::<f64>() / count),
            lowest: values().fold(f64::INFINITY, f64::min),
            highest: values().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// A published figure.
    pub fn published(value: f64, stderr: Option<f64>) -> Figure {
        Figure { value, stderr, lowest: value, highest: value }
    }
}

/// How our figure stands to a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Within two standard errors.
    Within,
    /// Above by more than that, but the published figure is not below the lowest of our runs.
    AboveWithinRuns,
    /// Above.
    Above,
    /// Below by more than that, but the published figure is not above the highest of our runs.
    BelowWithinRuns,
    /// Below.
    Below,
}

impl Mark {
    /// All marks, in the order of a legend.
    pub const ALL: [Mark; 5] =
        [Mark::Within, Mark::Above, Mark::Below, Mark::AboveWithinRuns, Mark::BelowWithinRuns];

    /// Compares with a figure that was rounded to three decimals. COV has no standard error: it is within only if it
    /// agrees in those decimals.
    pub fn of(ours: Figure, published: f64) -> Mark {
        let difference = ours.value - published;
        let among_runs = (ours.lowest - ROUNDING..=ours.highest + ROUNDING).contains(&published);
        match (difference.abs() <= 2.0 * ours.stderr.unwrap_or(0.0) + ROUNDING, difference > 0.0, among_runs)
        {
            (true, ..) => Mark::Within,
            (_, true, true) => Mark::AboveWithinRuns,
            (_, true, false) => Mark::Above,
            (_, false, true) => Mark::BelowWithinRuns,
            (_, false, false) => Mark::Below,
        }
    }

    /// The sign that stands beside a figure.
    pub fn symbol(self) -> &'static str {
        match self {
            Mark::Within => "=",
            Mark::Above => "▲",
            Mark::Below => "▼",
            Mark::AboveWithinRuns => "△",
            Mark::BelowWithinRuns => "▽",
        }
    }

    /// In words, of our figure.
    pub fn words(self) -> &'static str {
        match self {
            Mark::Within => "within two standard errors",
            Mark::Above => "above",
            Mark::Below => "below",
            Mark::AboveWithinRuns => "above on average, within the range of our seeds",
            Mark::BelowWithinRuns => "below on average, within the range of our seeds",
        }
    }
}

/// A model's place in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The best, or one like it.
    Best,
    /// The best of the rest, or one like it.
    Second,
    /// Any other.
    #[default]
    Other,
}

/// The places of a column, by the paper's rule that figures within each other's interval are marked alike. Its table bears out
/// that each has to lie within one standard error of the other: intervals that merely overlap would make more of them alike
/// than it marks. The highest and those like it are best; of the rest, the highest and those like it are second.
pub fn places(column: &[Option<Figure>]) -> Vec<Place> {
    let mut places = vec![Place::Other; column.len()];
    for place in [Place::Best, Place::Second] {
        let free = |places: &[Place], at: usize| places[at] == Place::Other;
        let figures = || column.iter().enumerate().filter_map(|(at, figure)| Some((at, (*figure)?)));
        let leader = figures()
            .filter(|(at, _)| free(&places, *at))
            .reduce(|best, other| if other.1.value > best.1.value { other } else { best });
        let Some((_, leader)) = leader else { break };
        let alike: Vec<usize> = figures()
            .filter(|(at, figure)| free(&places, *at) && are_alike(leader, *figure))
            .map(|(at, _)| at)
            .collect();
        for at in alike {
            places[at] = place;
        }
    }
    places
}

fn are_alike(a: Figure, b: Figure) -> bool {
    // Decimals such as .055 + .003 fall short of .058 by a rounding error.
    let room = a.stderr.unwrap_or(0.0).min(b.stderr.unwrap_or(0.0)) + 1e-9;
    (a.value - b.value).abs() <= room
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure((value, stderr): (f64, f64)) -> Figure {
        Figure::published(value, Some(stderr))
    }

    #[test]
    fn places_are_those_the_paper_gives_its_own_figures() {
        use Place::{Best as B, Other as O, Second as S};
        // MP, PureSVD, PureSVD-N, GA-SATF, SASRec, LA-SATF
        for (column, expected) in [
            // NDCG: ML-1M, AMZ-B, AMZ-G, Steam
            (
                [
                    (0.000, 0.000),
                    (0.029, 0.002),
                    (0.030, 0.002),
                    (0.061, 0.002),
                    (0.069, 0.002),
                    (0.072, 0.003),
                ],
                [O, O, O, O, S, B],
            ),
            (
                [
                    (0.002, 0.000),
                    (0.046, 0.002),
                    (0.047, 0.002),
                    (0.043, 0.002),
                    (0.055, 0.003),
                    (0.067, 0.003),
                ],
                [O, O, O, O, S, B],
            ),
            (
                [
                    (0.002, 0.000),
                    (0.042, 0.002),
                    (0.058, 0.003),
                    (0.046, 0.003),
                    (0.055, 0.003),
                    (0.052, 0.003),
                ],
                [O, O, B, O, B, S],
            ),
            (
                [
                    (0.000, 0.000),
                    (0.020, 0.001),
                    (0.043, 0.002),
                    (0.007, 0.001),
                    (0.060, 0.002),
                    (0.047, 0.002),
                ],
                [O, O, O, O, B, S],
            ),
            // HR
            (
                [
                    (0.000, 0.000),
                    (0.060, 0.003),
                    (0.061, 0.003),
                    (0.112, 0.004),
                    (0.134, 0.004),
                    (0.132, 0.004),
                ],
                [O, O, O, O, B, B],
            ),
            (
                [
                    (0.004, 0.001),
                    (0.082, 0.004),
                    (0.087, 0.004),
                    (0.079, 0.004),
                    (0.100, 0.004),
                    (0.114, 0.005),
                ],
                [O, O, O, O, S, B],
            ),
            (
                [
                    (0.003, 0.001),
                    (0.070, 0.004),
                    (0.101, 0.004),
                    (0.074, 0.004),
                    (0.094, 0.004),
                    (0.092, 0.004),
                ],
                [O, O, B, O, S, S],
            ),
            (
                [
                    (0.000, 0.000),
                    (0.039, 0.002),
                    (0.084, 0.003),
                    (0.013, 0.001),
                    (0.115, 0.004),
                    (0.091, 0.003),
                ],
                [O, O, O, O, B, S],
            ),
        ] {
            let mut expected = expected.to_vec();
            // With two best, the paper leaves the second place of ML-1M's HR empty; the rule gives it to the next.
            if expected == [O, O, O, O, B, B] {
                expected[3] = S;
            }
            let figures: Vec<_> = column.iter().map(|&figures| Some(figure(figures))).collect();
            assert_eq!(places(&figures), expected, "{column:?}");
        }
    }

    #[test]
    fn coverage_has_one_best_and_one_second() {
        let column: Vec<_> = [0.038, 0.187, 0.275, 0.288, 0.503, 0.511]
            .map(|value| Some(Figure::published(value, None)))
            .to_vec();
        let places = places(&column);
        assert_eq!(places[4..], [Place::Second, Place::Best]);
        assert!(places[..4].iter().all(|&place| place == Place::Other));
    }

    #[test]
    fn empty_places_stay_empty() {
        assert_eq!(places(&[]), []);
        assert_eq!(
            places(&[None, Some(figure((0.1, 0.01))), None]),
            [Place::Other, Place::Best, Place::Other]
        );
    }

    #[test]
    fn marks_follow_two_standard_errors_and_the_range_of_runs() {
        let ours = |runs: &[f64], stderr: f64| {
            Figure::mean(&runs.iter().map(|&run| (run, Some(stderr))).collect::<Vec<_>>()).unwrap()
        };
        for (runs, stderr, published, expected) in [
            (vec![0.0719], 0.0025, 0.072, Mark::Within),
            (vec![0.050], 0.002, 0.0545, Mark::Within),
            (vec![0.050], 0.002, 0.0546, Mark::Below),
            (vec![0.050], 0.002, 0.0454, Mark::Above),
            (vec![0.0479, 0.0597, 0.0724], 0.0027, 0.067, Mark::BelowWithinRuns),
            (vec![0.048, 0.0612, 0.0693], 0.0029, 0.052, Mark::AboveWithinRuns),
            (vec![0.048, 0.0612, 0.0693], 0.0029, 0.071, Mark::Below),
        ] {
            assert_eq!(Mark::of(ours(&runs, stderr), published), expected, "{runs:?} {published}");
        }
        let coverage = |value| Figure::published(value, None);
        assert_eq!(Mark::of(coverage(0.2514), 0.251), Mark::Within);
        assert_eq!(Mark::of(coverage(0.254), 0.251), Mark::Above);
    }

    #[test]
    fn the_error_of_a_mean_is_that_of_a_run() {
        let mean = Figure::mean(&[(0.1, Some(0.01)), (0.2, Some(0.03))]).unwrap();
        assert!((mean.value - 0.15).abs() < 1e-15 && (mean.stderr.unwrap() - 0.02).abs() < 1e-15);
        assert_eq!((mean.lowest, mean.highest), (0.1, 0.2));
        assert_eq!(Figure::mean(&[]), None);
        assert_eq!(Figure::mean(&[(0.1, None)]).unwrap().stderr, None);
    }
}
