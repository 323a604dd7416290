//! The charts of the report.

use super::page::{Chart, Picture};
use crate::charts::{BarChart, BarSeries, LineChart, LineSeries, Measured, Scale};
use crate::reproduce::{DatasetFindings, Figure, Findings, MEASURES, Row};

/// Bars of NDCG and HR: ours in file order and shuffled, and what was published.
pub(super) fn metric_bars(dataset: &DatasetFindings, published_by: &str) -> Vec<Picture> {
    let rows: Vec<&Row> =
        dataset.rows.iter().filter(|row| row.file.is_some() || row.published.is_some()).collect();
    let bar = |figure: Figure| Measured { value: figure.value, stderr: figure.stderr };
    let series = |name: &str, of: &dyn Fn(&Row) -> Option<Figure>| {
        let values: Vec<Option<Measured>> = rows.iter().map(|row| of(row).map(bar)).collect();
        values.iter().any(Option::is_some).then(|| BarSeries { name: name.to_owned(), values })
    };
    // COV is in the tables; bars of it say little more.
    (0..2)
        .map(|at| {
            let measure = MEASURES[at];
            let all = [
                series("ours, ties in file order", &|row| Some(row.file.as_ref()?.figures[at])),
                series("ours, ties shuffled", &|row| Some(row.shuffled.as_ref()?.figures[at])),
                series(published_by, &|row| Some(row.published?.figures()[at])),
            ];
            Picture {
                name: format!("{}-{}", dataset.name, slug(measure)),
                chart: Chart::Bars(BarChart {
                    title: format!("{measure} on {}", dataset.title),
                    description: format!(
                        "{measure} on the test set of {}, by model; whiskers are one standard error, ours clustered by user.",
                        dataset.title
                    ),
                    y_label: measure.to_owned(),
                    groups: rows.iter().map(|row| row.model.clone()).collect(),
                    series: all.into_iter().flatten().collect(),
                }),
            }
        })
        .collect()
}

/// The target on the validation set after every iteration.
pub(super) fn validation_curve(dataset: &DatasetFindings) -> Option<Picture> {
    let series = |row: &Row| LineSeries {
        name: row.model.clone(),
        points: row.curve.iter().map(|step| (step.iteration as f64, step.value)).collect(),
    };
    let chosen: Vec<String> =
        with_curves(dataset).filter_map(|row| Some(format!("{} {}", row.model, row.iterations?))).collect();
    lines(LineChart {
        title: format!("{} on validation, {}", MEASURES[0], dataset.title),
        description: format!(
            "{} on the validation set of {} after every iteration of training, ties in file order. Iterations of the \
             configurations: {}.",
            MEASURES[0],
            dataset.title,
            chosen.join(", ")
        ),
        x_label: "iteration".to_owned(),
        y_label: MEASURES[0].to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: with_curves(dataset).map(series).collect(),
    })
    .map(|chart| Picture { name: format!("{}-validation", dataset.name), chart })
}

fn with_curves(dataset: &DatasetFindings) -> impl Iterator<Item = &Row> {
    dataset.rows.iter().filter(|row| !row.curve.is_empty())
}

/// What an item counts by its lag, over the largest weight; and the attention that was given.
pub(super) fn position_weights(dataset: &DatasetFindings) -> Vec<Picture> {
    // Lags from 1 on, for the logarithmic axis: 1 is the newest item.
    let curve = |row: &Row, weights: &[f64]| {
        let largest = weights.iter().fold(0f64, |largest, weight| largest.max(weight.abs()));
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let points = weights.iter().enumerate().map(|(lag, weight)| ((lag + 1) as f64, weight / largest));
        LineSeries { name: row.model.clone(), points: points.collect() }
    };
    let learned = dataset.rows.iter().filter_map(|row| Some(curve(row, row.lag_weights.as_deref()?)));
    let given = dataset.rows.iter().filter_map(|row| Some(curve(row, row.attention.as_deref()?)));
    let learned = LineChart {
        title: format!("Learned weights of positions, {}", dataset.title),
        description: format!(
            "What an item of a history counts for the next one on {} (the weights g), by how far back it is: 1 is the newest \
             item. Over the largest weight of each model; the first seed, ties in file order.",
            dataset.title
        ),
        x_label: "items back".to_owned(),
        y_label: "weight".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series: learned.collect(),
    };
    let given = LineChart {
        title: format!("Attention, {}", dataset.title),
        description: format!(
            "The attention that the configurations of {} give to positions by distance: 1 is the position itself. LA-SATF \
             looks within its window only.",
            dataset.title
        ),
        x_label: "distance".to_owned(),
        y_label: "attention".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series: given.collect(),
    };
    let named = [(learned, "weights"), (given, "attention")];
    named
        .into_iter()
        .filter_map(|(chart, name)| {
            Some(Picture { name: format!("{}-{name}", dataset.name), chart: lines(chart)? })
        })
        .collect()
}

/// Training time against the columns of the item factor.
pub(super) fn time_by_rank(dataset: &DatasetFindings) -> Option<Picture> {
    let timed = dataset.rows.iter().filter(|row| !row.rank_seconds.is_empty());
    let series = |row: &Row| LineSeries {
        name: row.model.clone(),
        points: row.rank_seconds.iter().map(|&(rank, seconds)| (rank as f64, seconds)).collect(),
    };
    lines(LineChart {
        title: format!("Training time against item rank, {}", dataset.title),
        description: format!(
            "Seconds of training on {} with more and more columns of the item factor, everything else as configured; both \
             axes are logarithmic.",
            dataset.title
        ),
        x_label: "item rank".to_owned(),
        y_label: "training time, s".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: timed.map(series).collect(),
    })
    .map(|chart| Picture { name: format!("{}-time-by-rank", dataset.name), chart })
}

/// Training time at the configurations of the tables. Models without keys have nothing to learn and are in the table alone.
pub(super) fn time_at_optimum(findings: &Findings) -> Option<Picture> {
    let datasets = &findings.datasets;
    let mut models: Vec<&str> = Vec::new();
    for row in datasets.iter().flat_map(|dataset| &dataset.rows) {
        let has_keys =
            row.configuration.as_ref().and_then(|keys| keys.as_object()).is_some_and(|keys| !keys.is_empty());
        if row.train_seconds.is_some() && has_keys && !row.extra && !models.contains(&row.model.as_str()) {
            models.push(&row.model);
        }
    }
    let seconds = |dataset: &DatasetFindings, model: &str| {
        let row = dataset.rows.iter().find(|row| row.model == model)?;
        row.train_seconds.map(|value| Measured { value, stderr: None })
    };
    let series: Vec<BarSeries> = models
        .iter()
        .map(|model| BarSeries {
            name: (*model).to_owned(),
            values: datasets.iter().map(|dataset| seconds(dataset, model)).collect(),
        })
        .collect();
    (!series.is_empty()).then(|| Picture {
        name: "time-at-configuration".to_owned(),
        chart: Chart::Bars(BarChart {
            title: "Training time at the configurations of the tables".to_owned(),
            description: "Seconds of training, the mean of the runs in file order, one after the other."
                .to_owned(),
            y_label: "training time, s".to_owned(),
            groups: datasets.iter().map(|dataset| dataset.title.clone()).collect(),
            series,
        }),
    })
}

fn lines(chart: LineChart) -> Option<Chart> {
    (!chart.series.is_empty()).then_some(Chart::Lines(chart))
}

fn slug(measure: &str) -> String {
    measure.split('@').next().unwrap_or(measure).to_lowercase()
}
