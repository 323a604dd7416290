//! Are two evaluations really different? Of files of results, event by event.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use satf::evaluate::{CompareOptions, PerEvent, ResampleUnit, compare};
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::plain::from_json;
use crate::work::{Watch, Work, run};

/// Compares two files that `Run.write_per_event` or `satf evaluate --per-event` wrote: every metric that both have.
#[pyfunction]
#[pyo3(signature = (first, second, by_user, draws, seed, work=None))]
pub(crate) fn compare_files(
    py: Python<'_>,
    first: PathBuf,
    second: PathBuf,
    by_user: bool,
    draws: usize,
    seed: u64,
    work: Option<&Work>,
) -> PyResult<Py<PyAny>> {
    let unit = if by_user { ResampleUnit::User } else { ResampleUnit::Event };
    let options = CompareOptions { draws, seed };
    let report = run(py, work, |watch| compared(&first, &second, unit, options, watch))?;
    from_json(py, &report)
}

fn compared(
    first: &Path,
    second: &Path,
    unit: ResampleUnit,
    options: CompareOptions,
    watch: &Watch,
) -> Result<Value, Failure> {
    if options.draws == 0 {
        return Err(Failure::new(Kind::Config, "draws = 0: expected at least 1"));
    }
    let paired = PerEvent::read(first, watch)?.pair(&PerEvent::read(second, watch)?)?;
    let groups = match unit {
        ResampleUnit::User => paired.users.clone(),
        ResampleUnit::Event => (0..paired.users.len()).collect(),
    };
    let mut metrics = serde_json::Map::new();
    for (metric, first, second) in &paired.metrics {
        metrics.insert(metric.to_string(), json!(compare(first, second, &groups, &options, watch)?));
    }
    Ok(json!({ "events": paired.users.len(), "unpaired": paired.unpaired, "metrics": metrics }))
}
