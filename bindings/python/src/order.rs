//! Whether order matters on a log.

use pyo3::prelude::*;
use satf::evaluate::{OrderEffect, OrderOptions, check_order};
use satf::experiment::{SplitKind, holdout_scheme};
use satf::prepare::Offset;
use serde_json::{Value, json};

use crate::log::Log;
use crate::plain::{from_json, parse};
use crate::work::{Work, run};

/// Whether order helps to predict on this log.
#[pyfunction]
#[pyo3(signature = (log, test, repetitions, most_events, seed, leave_one_out, work=None))]
pub(crate) fn order_matters(
    py: Python<'_>,
    log: &Log,
    test: Option<String>,
    repetitions: usize,
    most_events: usize,
    seed: u64,
    leave_one_out: bool,
    work: Option<&Work>,
) -> PyResult<Py<PyAny>> {
    let test = test.map(|test| parse::<Offset>("test", &test)).transpose()?;
    let log = log.events()?;
    let split = leave_one_out.then_some(SplitKind::LeaveOneOut);
    let report = run(py, work, |watch| {
        let mut warnings = Vec::new();
        let scheme = holdout_scheme(&log, split, test, &mut warnings)?;
        let options = OrderOptions { repetitions, most_events, seed, ..OrderOptions::new(scheme) };
        let check = check_order(&log, &options, watch)?;
        let effects = |effects: &[OrderEffect]| -> Vec<Value> {
            let effect = |effect: &OrderEffect| {
                json!({
                    "model": effect.model, "knows_order": effect.knows_order, "shuffled": effect.effect.first,
                    "real": effect.effect.second, "difference": effect.effect.difference,
                    "interval": effect.effect.interval, "p_value": effect.effect.p_value, "gain": effect.gain(),
                })
            };
            effects.iter().map(effect).collect()
        };
        Ok(json!({
            "verdict": check.verdict, "sentences": check.sentences(), "metric": check.metric, "events": check.events,
            "repetitions": check.repetitions, "models": effects(&check.models), "against_blind": check.against_blind,
            "file_order": check.file_order.as_ref().map(|file| json!({
                "tied_share": file.tied_share, "models": effects(&file.models),
            })),
            "warnings": warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))
    })?;
    from_json(py, &report)
}
