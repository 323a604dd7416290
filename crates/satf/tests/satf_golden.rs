//! Both tensor models against golden outputs: from the start given, after 1, 2, 3 and 30 iterations, the same core
//! norm, projectors, weights and scores.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use faer::Mat;
use satf::factorize::{
    Factors, HooiOptions, ItemUpdate, PositionFactors, PositionModes, Rows, Start, StartFactors, Way,
    factorize,
};
use satf::linalg::Real;
use satf::prepare::Histories;
use satf::tensor::{Attention, PositionalLog};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/satf_small.json")).unwrap()
}

fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(vector).collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

fn sequences(value: &Value) -> Vec<Vec<u32>> {
    let sequence = |value: &Value| vector(value).into_iter().map(|item| item as u32).collect();
    value.as_array().unwrap().iter().map(sequence).collect()
}

fn number(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn assert_near(found: &Mat<f64>, expected: &Mat<f64>, tolerance: f64, what: &str) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    let largest = (found - expected).norm_max();
    assert!(largest <= tolerance * (1.0 + expected.norm_max()), "{what}: off by {largest:e}");
}

fn projector(factor: &Mat<f64>) -> Mat<f64> {
    factor * factor.transpose()
}

struct Expected<'a> {
    after: &'a Value,
    item_weights: &'a [f64],
    probes: &'a [Vec<u32>],
    tolerance: f64,
    label: String,
}

impl Expected<'_> {
    fn check<T: Real>(&self, core_norm: f64, factors: &Factors<T>, modes: &PositionModes) {
        let Expected { after, tolerance, label, .. } = self;
        let expected = after["core_norm"].as_f64().unwrap();
        assert!(
            (core_norm - expected).abs() <= tolerance * expected,
            "{label}: core norm {core_norm}, {expected}"
        );
        let v = factors.items.to_mat();
        let items = projector(&v);
        if let Some(expected) = after.get("item_projector") {
            assert_near(&items, &matrix(expected), *tolerance, &format!("{label}: items"));
        }
        let positional = match &factors.positions {
            PositionFactors::Global { w } => vec![("position_projector", w)],
            PositionFactors::Local { window, start } => {
                vec![("window_projector", window), ("start_projector", start)]
            }
        };
        for (key, factor) in positional {
            assert_near(&projector(factor), &matrix(&after[key]), *tolerance, &format!("{label}: {key}"));
        }
        let g = modes.next_item_weights(&factors.positions);
        for (found, expected) in g.iter().zip(vector(&after["g"])) {
            assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{label}: g");
        }
        let k = modes.num_positions();
        let n = items.nrows();
        let mut plain = Mat::zeros(self.probes.len(), n);
        let mut rescaled = Mat::zeros(self.probes.len(), n);
        for (at, probe) in self.probes.iter().enumerate() {
            for (lag, &item) in probe.iter().rev().take(k - 1).enumerate() {
                let item = item as usize;
                for j in 0..n {
                    let share = g[k - 2 - lag] * items[(item, j)];
                    plain[(at, j)] += share;
                    rescaled[(at, j)] += share * self.item_weights[item] / self.item_weights[j];
                }
            }
        }
        assert_near(&plain, &matrix(&after["scores_plain"]), *tolerance, &format!("{label}: scores"));
        assert_near(&rescaled, &matrix(&after["scores_rescaled"]), *tolerance, &format!("{label}: rescaled"));
    }
}

fn check_every_case<T: Real>(tolerance: f64, way: Option<Way>) {
    let golden = golden();
    let histories = Histories::from_sequences(number(&golden["items"]), &sequences(&golden["sequences"]));
    let k = number(&golden["K"]);
    let log = PositionalLog::from_histories(&histories, k);
    let probes = sequences(&golden["probe_histories"]);
    for (at, case) in golden["cases"].as_array().unwrap().iter().enumerate() {
        let ranks = &case["ranks"];
        let attention = Attention::power(case["decay"].as_f64().unwrap());
        let start = &case["start"];
        let (modes, positions) = match case["model"].as_str().unwrap() {
            "LA-SATF" => (
                PositionModes::Local {
                    attention: attention.matrix(number(&case["window"])),
                    num_positions: k,
                    attention_rank: number(&ranks["attention"]),
                    sequences_rank: number(&ranks["sequences"]),
                },
                PositionFactors::Local { window: matrix(&start["W_L"]), start: matrix(&start["W_S"]) },
            ),
            _ => (
                PositionModes::Global { attention: attention.matrix(k), rank: number(&ranks["position"]) },
                PositionFactors::Global { w: matrix(&start["W"]) },
            ),
        };
        let item_weights = log.popularity_weights(case["scaling"].as_f64().unwrap());
        for (found, expected) in item_weights.iter().zip(vector(&case["popularity_weights"])) {
            assert!((found - expected).abs() < 1e-9);
        }
        let item_update = match case.get("item_update").and_then(Value::as_str) {
            Some("unweighted") => ItemUpdate::Unweighted,
            _ => ItemUpdate::Weighted,
        };
        let options = HooiOptions {
            user_rank: number(&ranks["user"]),
            item_rank: number(&ranks["item"]),
            num_iters: 30,
            growth_tolerance: 0.0,
            start: Start::Random,
            seed: 0,
            item_update,
            memory_bytes: None,
            way,
        };
        let start = StartFactors { items: Rows::<T>::from_mat(matrix(&start["V"]).as_ref()), positions };
        let mut checked = 0;
        let outcome =
            factorize(&log, &item_weights, &modes, &options, Some(start), &(), &mut |progress, factors| {
                for after in case["after"].as_array().unwrap() {
                    if number(&after["iterations"]) == progress.iteration {
                        let label = format!("case {at}, iteration {}, {way:?}", progress.iteration);
                        let expected = Expected {
                            after,
                            item_weights: &item_weights,
                            probes: &probes,
                            tolerance,
                            label,
                        };
                        expected.check(progress.core_norm, factors, &modes);
                        checked += 1;
                    }
                }
                ControlFlow::Continue(())
            });
        outcome.unwrap();
        assert_eq!(checked, 4, "case {at}");
    }
}

#[test]
fn double_precision_agrees_to_eight_digits() {
    check_every_case::<f64>(1e-8, None);
}

#[test]
fn single_precision_agrees_to_three_digits() {
    check_every_case::<f32>(1e-3, None);
}

#[test]
fn every_way_agrees() {
    for way in [Way::GramColumns, Way::GramRows, Way::Krylov] {
        check_every_case::<f64>(1e-8, Some(way));
        check_every_case::<f32>(1e-3, Some(way));
    }
}
