//! From values to places on an axis, and the round numbers written beside it.

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal ratios; only values above 0 have a place.
    Log,
}

/// Beyond these sizes differences of two values overflow, so such values have no place on any axis.
const LARGEST: f64 = 1e300;

impl Scale {
    /// Whether a value has a place on such an axis.
    pub(super) fn holds(self, value: f64) -> bool {
        value.abs() <= LARGEST && (self == Scale::Linear || value >= 1.0 / LARGEST)
    }

    /// The value as it is spaced along the axis.
    fn spaced(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        }
    }
}

/// An axis: what it shows, from where to where.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Labelled values, ascending.
    pub(super) ticks: Vec<f64>,
    /// Decimals that tell neighbouring ticks of a linear axis apart.
    decimals: usize,
}

/// What an axis has to show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// How it is divided.
    pub(super) scale: Scale,
    /// About as many labels as there is room for.
    pub(super) labels: usize,
    /// The axis ends at labels; else close to the data.
    pub(super) round_ends: bool,
    /// Zero is shown even if no value is near it.
    pub(super) from_zero: bool,
}

impl Axis {
    /// An axis for these values, all of which the scale [holds](Scale::holds). Without any it goes from 0 to 1, or from 1 to
    /// 10 if it is logarithmic.
    pub(super) fn new(wish: Wish, values: &(impl Iterator<Item = f64> + Clone)) -> Self {
        let Wish { scale, labels, round_ends, from_zero } = wish;
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let (low, high, whole) = match (low <= high, scale) {
            (true, _) => (low, high, values.clone().all(|value| value.fract() == 0.0)),
            (false, Scale::Linear) => (0.0, 1.0, false),
            (false, Scale::Log) => (1.0, 10.0, false),
        };
        match scale {
            Scale::Linear => linear(low, high, labels.max(2), whole, round_ends, from_zero),
            Scale::Log => logarithmic(low, high, labels.max(2)),
        }
    }

    /// Where a value stands, from 0 at the low end to 1 at the high one.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high) = (self.scale.spaced(self.low), self.scale.spaced(self.high));
        ((self.scale.spaced(value) - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Whether zero is inside the axis, not at its end.
    pub(super) fn crosses_zero(&self) -> bool {
        self.scale == Scale::Linear && self.low < 0.0 && self.high > 0.0
    }

    /// The end of the axis where bars stand: zero, or the end next to it.
    pub(super) fn foot(&self) -> f64 {
        0f64.clamp(self.low, self.high)
    }

    /// A tick in words.
    pub(super) fn label(&self, tick: f64) -> String {
        match self.scale {
            Scale::Linear => number(tick, self.decimals),
            Scale::Log => power(tick),
        }
    }
}

fn linear(low: f64, high: f64, labels: usize, whole: bool, round_ends: bool, from_zero: bool) -> Axis {
    let (mut low, mut high) = if from_zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
    // Values that cannot be told apart get some room around them.
    if high - low <= 1e-9 * low.abs().max(high.abs()).max(1e-290) {
        let room = if high == 0.0 { 1.0 } else { (0.1 * high.abs()).max(1e-280) };
        let room = if whole { room.max(1.0) } else { room };
        (low, high) = (
            low - if from_zero && low == 0.0 { 0.0 } else { room },
            high + if from_zero && high < 0.0 { 0.0 } else { room },
        );
    }
    let mut step = round_step((high - low) / (labels - 1) as f64);
    if whole {
        step = step.max(1.0);
    }
    if round_ends {
        low = (low / step + 1e-9).floor() * step;
        high = (high / step - 1e-9).ceil() * step;
    } else {
        let room = 0.02 * (high - low);
        (low, high) = (low - room, high + room);
    }
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).clamp(0.0, 1000.0) as usize;
    let ticks =
        (0..=count).map(|at| (first + at as f64) * step).map(|tick| if tick == 0.0 { 0.0 } else { tick });
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 300.0) as usize;
    Axis { scale: Scale::Linear, low, high, ticks: ticks.collect(), decimals }
}

/// The least of 1, 2, 5 times a power of ten that is no smaller.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|&step| step >= least * 0.999)
        .unwrap_or(10.0 * power)
}

fn logarithmic(low: f64, high: f64, labels: usize) -> Axis {
    let (low, high) = (low.log10(), high.log10());
    let room = (0.03 * (high - low)).max(0.02);
    let (low, high) = (low - room, high + room);
    let (first, last) = (low.floor() as i32, high.ceil() as i32);
    let inside = |value: &f64| (low..=high).contains(&value.log10());
    let decades = |every: usize, factors: &[f64]| -> Vec<f64> {
        (first..=last)
            .filter(|power| power.rem_euclid(every as i32) == 0)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(inside)
            .collect()
    };
    // From fine to coarse: the first that fits.
    let mut choices =
        vec![decades(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), decades(1, &[1.0, 2.0, 5.0])];
    choices.extend((1..=200).map(|every| decades(every, &[1.0])));
    let fitting = choices.into_iter().find(|ticks| ticks.len() <= labels);
    let (low, high) = (10f64.powf(low), 10f64.powf(high));
    let ticks = match fitting {
        Some(ticks) if ticks.len() >= 2 => ticks,
        // Less than a factor of about two: round numbers an equal distance apart.
        _ => linear(low, high, labels, false, false, false).ticks.into_iter().filter(inside).collect(),
    };
    Axis { scale: Scale::Log, low, high, ticks, decimals: 0 }
}

/// `1,500`, `0.02`; very large and very small ones as powers of ten.
fn number(value: f64, decimals: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if decimals > 6 || value.abs() >= 1e7 {
        return power(value);
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), crate::numbers::count);
    format!("{}{whole}{fraction}", if value < 0.0 { "−" } else { "" })
}

/// A value of a logarithmic axis: `0.02`, `1`, `1,000`, `2×10⁶`.
fn power(value: f64) -> String {
    let exponent = (value.abs().log10() + 1e-9).floor();
    if (-4.0..6.0).contains(&exponent) {
        let text = number(value, (2.0 - exponent).clamp(0.0, 8.0) as usize);
        return if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        };
    }
    let digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let raised: String = format!("{exponent:.0}")
        .chars()
        .map(|digit| digit.to_digit(10).and_then(|digit| digits.chars().nth(digit as usize)).unwrap_or('⁻'))
        .collect();
    let factor = value / 10f64.powf(exponent);
    let factor = format!("{factor:.2}").trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    if factor == "1" { format!("10{raised}") } else { format!("{factor}×10{raised}") }
}

/// A value with three digits that count, for those who point at a mark.
pub(super) fn brief(value: f64) -> String {
    let exponent = value.abs().log10().floor();
    if value == 0.0 || (-4.0..7.0).contains(&exponent) {
        number(value, (3.0 - exponent).clamp(0.0, 7.0) as usize)
    } else {
        power(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, labels: usize, values: &[f64]) -> Axis {
        Axis::new(Wish { scale, labels, round_ends: true, from_zero: false }, &values.iter().copied())
    }

    fn shown(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|&tick| axis.label(tick)).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_the_data() {
        let bars = Wish { scale: Scale::Linear, labels: 5, round_ends: true, from_zero: true };
        let axis = Axis::new(bars, &[0.0631, 0.021].into_iter());
        assert_eq!(shown(&axis), ["0", "0.02", "0.04", "0.06", "0.08"]);
        assert!((axis.place(0.04) - 0.5).abs() < 1e-12);
        let axis = Axis::new(bars, &[-3.0, 7.5].into_iter());
        assert_eq!(shown(&axis), ["−5", "0", "5", "10"]);
        assert!(axis.crosses_zero() && axis.foot() == 0.0);
        let axis = Axis::new(bars, &[-3.0, -7.5].into_iter());
        assert!(axis.foot() == 0.0);
    }

    #[test]
    fn ticks_between_whole_numbers_are_left_out() {
        assert_eq!(shown(&axis(Scale::Linear, 9, &[1.0, 2.0, 3.0])), ["1", "2", "3"]);
        assert_eq!(shown(&axis(Scale::Linear, 5, &[0.0, 1_200_000.0]))[1], "500,000");
    }

    #[test]
    fn logarithmic_ticks_are_powers_or_their_simple_multiples() {
        assert_eq!(shown(&axis(Scale::Log, 6, &[100.0, 900.0])), ["100", "200", "500"]);
        assert_eq!(shown(&axis(Scale::Log, 6, &[0.004, 30.0])), ["0.01", "0.1", "1", "10"]);
        assert_eq!(shown(&axis(Scale::Log, 5, &[1e-8, 1e8])), ["10⁻⁶", "0.001", "1", "1,000", "10⁶"]);
        let close = axis(Scale::Log, 6, &[310.0, 330.0]);
        assert!(close.ticks.len() >= 2, "{:?}", close.ticks);
    }

    #[test]
    fn logarithms_space_ratios_evenly() {
        let axis = axis(Scale::Log, 6, &[1.0, 100.0]);
        let (one, ten, hundred) = (axis.place(1.0), axis.place(10.0), axis.place(100.0));
        assert!((ten - one - (hundred - ten)).abs() < 1e-12 && one > 0.0 && hundred < 1.0);
    }

    #[test]
    fn every_axis_has_ticks_inside_it() {
        let cases: [&[f64]; 10] = [
            &[],
            &[0.0],
            &[5.0],
            &[-5.0],
            &[1e-300, 1e-299],
            &[1e300, -1e300],
            &[0.1, 0.1 + 1e-17],
            &[1e15, 1e15 + 1.0],
            &[3.0, 1e300],
            &[1e-12, 2e-12],
        ];
        for values in cases {
            for scale in [Scale::Linear, Scale::Log] {
                let held: Vec<f64> = values.iter().copied().filter(|&value| scale.holds(value)).collect();
                for (labels, from_zero) in [(2, false), (5, true), (12, false)] {
                    for round_ends in [false, true] {
                        let wish = Wish { scale, labels, round_ends, from_zero };
                        let axis = Axis::new(wish, &held.iter().copied());
                        assert!(
                            !axis.ticks.is_empty() && axis.ticks.len() < 30,
                            "{values:?}: {:?}",
                            axis.ticks
                        );
                        let all = held.iter().chain(&axis.ticks);
                        for place in all.map(|&value| axis.place(value)) {
                            assert!((0.0..=1.0).contains(&place), "{values:?}: {axis:?}");
                        }
                        assert!(shown(&axis).iter().all(|label| !label.contains("NaN") && label.len() < 30));
                    }
                }
            }
        }
    }

    #[test]
    fn values_are_brief() {
        assert_eq!(
            [0.0671, 12.0, 1234.6, 0.0, 3e-9].map(brief),
            ["0.06710", "12.00", "1,235", "0", "3×10⁻⁹"]
        );
    }
}
