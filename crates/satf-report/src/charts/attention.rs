//! The attention curve: what an item counts by its lag, in the terminal and as a chart.

use super::{LineChart, LineSeries, Scale};

/// Lags drawn one by one in the terminal.
const LAGS_SHOWN: usize = 24;
/// Characters of the longest bar.
const WIDTH: usize = 40;

/// One bar a lag, as long as its weight; weights below zero are drawn lighter.
pub fn attention_bars(weights: &[f64]) -> String {
    let largest = largest(weights);
    let mut lines: Vec<String> = weights
        .iter()
        .take(LAGS_SHOWN)
        .enumerate()
        .map(|(lag, &weight)| {
            let length = (weight.abs() / largest * WIDTH as f64).round() as usize;
            let bar = if weight < 0.0 { "░" } else { "█" }.repeat(length);
            format!("{lag:>4} {weight:>11} {bar}", weight = short(weight)).trim_end().to_owned()
        })
        .collect();
    if let Some(rest) = weights.get(LAGS_SHOWN..).filter(|rest| !rest.is_empty()) {
        let largest = rest.iter().fold(0f64, |largest, weight| largest.max(weight.abs()));
        lines.push(format!(
            "  lags {LAGS_SHOWN} to {}: at most {} in size",
            weights.len() - 1,
            short(largest)
        ));
    }
    lines.join("\n")
}

/// The largest size of a weight; never 0.
fn largest(weights: &[f64]) -> f64 {
    let largest = weights.iter().fold(0f64, |largest, weight| largest.max(weight.abs()));
    if largest > 0.0 { largest } else { 1.0 }
}

fn short(weight: f64) -> String {
    if weight == 0.0 || weight.abs() >= 1e-3 { format!("{weight:.4}") } else { format!("{weight:.2e}") }
}

/// The same curve as a chart.
pub fn attention_curve(model: &str, weights: &[f64]) -> LineChart {
    let oldest = weights.len().saturating_sub(1);
    let description = match weights.first() {
        Some(&newest) => format!(
            "What {model} makes of an item by its lag: {} for the newest item, lag 0, {} for the oldest one, lag {oldest}.",
            short(newest),
            short(weights[oldest])
        ),
        None => format!("{model} has no weights."),
    };
    LineChart {
        title: format!("{model}: weight of an item by its lag"),
        description,
        x_label: "lag (0 = newest)".to_owned(),
        y_label: "weight".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: vec![LineSeries {
            name: model.to_owned(),
            points: weights.iter().enumerate().map(|(lag, &weight)| (lag as f64, weight)).collect(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_weights() {
        let weights: Vec<f64> =
            (0..30).map(|lag| if lag == 1 { -0.25 } else { 0.5 / f64::from(lag + 1) }).collect();
        let text = attention_bars(&weights);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), LAGS_SHOWN + 1);
        assert_eq!(lines[0].matches('█').count(), WIDTH);
        assert_eq!(lines[1].matches('░').count(), WIDTH / 2);
        assert!(lines[24].contains("lags 24 to 29: at most 0.0200"), "{}", lines[24]);
        assert_eq!(attention_bars(&[0.0, 0.0]).lines().count(), 2);
    }

    #[test]
    fn every_lag_is_a_point_of_the_curve() {
        let curve = attention_curve("la-satf", &[1.0, 0.5, -0.25]);
        assert_eq!(curve.series[0].points, [(0.0, 1.0), (1.0, 0.5), (2.0, -0.25)]);
        assert!(curve.description.contains("1.0000 for the newest"), "{}", curve.description);
        assert!(attention_curve("la-satf", &[]).description.contains("no weights"));
    }
}
