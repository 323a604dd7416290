//! The attention curve: what an item counts by its lag, in the terminal and as SVG.

/// Lags drawn one by one in the terminal.
const LAGS_SHOWN: usize = 24;
/// Characters of the longest bar.
const WIDTH: usize = 40;

/// One bar a lag, as long as its weight; weights below zero are drawn lighter.
pub(crate) fn bars(weights: &[f64]) -> String {
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

/// The same curve as a picture: weights over lags, with both axes.
pub(crate) fn svg(title: &str, weights: &[f64]) -> String {
    let (left, top, width, height) = (80.0, 50.0, 640.0, 300.0);
    let highest = weights.iter().fold(0f64, |highest, &weight| highest.max(weight));
    let lowest = weights.iter().fold(0f64, |lowest, &weight| lowest.min(weight));
    let span = if highest > lowest { highest - lowest } else { 1.0 };
    let last = weights.len().saturating_sub(1).max(1) as f64;
    let x = |lag: f64| left + lag / last * width;
    let y = |weight: f64| top + (highest - weight) / span * height;
    let text = |x: f64, y: f64, anchor: &str, words: &str| {
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escaped(words))
    };
    let line = |from: (f64, f64), to: (f64, f64), color: &str| {
        let ((x1, y1), (x2, y2)) = (from, to);
        format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{color}\"/>\n")
    };

    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        left + width + 30.0,
        top + height + 60.0
    );
    picture.push_str(&text(left + width / 2.0, 25.0, "middle", title));
    for step in 0..=4 {
        let weight = lowest + span * f64::from(step) / 4.0;
        picture.push_str(&line((left, y(weight)), (left + width, y(weight)), "#dddddd"));
        picture.push_str(&text(left - 8.0, y(weight) + 4.0, "end", &short(weight)));
    }
    let every = (weights.len() / 10).max(1);
    for lag in (0..weights.len()).step_by(every) {
        picture.push_str(&text(x(lag as f64), top + height + 20.0, "middle", &lag.to_string()));
    }
    picture.push_str(&text(left + width / 2.0, top + height + 45.0, "middle", "lag (0 = newest)"));
    picture.push_str(&line((left, y(0.0)), (left + width, y(0.0)), "#888888"));
    let points: Vec<String> = weights
        .iter()
        .enumerate()
        .map(|(lag, &weight)| format!("{:.1},{:.1}", x(lag as f64), y(weight)))
        .collect();
    picture.push_str(&format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1f6fb4\" stroke-width=\"2\"/>\n</svg>\n",
        points.join(" ")
    ));
    picture
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_weights() {
        let weights: Vec<f64> =
            (0..30).map(|lag| if lag == 1 { -0.25 } else { 0.5 / f64::from(lag + 1) }).collect();
        let text = bars(&weights);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), LAGS_SHOWN + 1);
        assert_eq!(lines[0].matches('█').count(), WIDTH);
        assert_eq!(lines[1].matches('░').count(), WIDTH / 2);
        assert!(lines[24].contains("lags 24 to 29: at most 0.0200"), "{}", lines[24]);
        assert_eq!(bars(&[0.0, 0.0]).lines().count(), 2);
    }

    #[test]
    fn every_lag_is_a_point_of_the_picture() {
        let picture = svg("a < b", &[1.0, 0.5, -0.25]);
        assert!(picture.contains("a &lt; b") && picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        let points = picture.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(points.split(' ').count(), 3, "{points}");
        assert!(points.starts_with("80.0,50.0 ") && points.ends_with("720.0,350.0"), "{points}");
        assert!(!svg("empty", &[]).contains("NaN") && !svg("one", &[0.0]).contains("NaN"));
    }
}
