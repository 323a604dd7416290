//! The search for a model's best configuration.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use satf::evaluate::{EvaluateOptions, Metric};
use satf::experiment::{Protocol, SharedKeys};
use satf::interactions::Interactions;
use satf::tune::{Ending, Grid, Limits, Sampler, Scoring, SearchOptions, Space, Status, Study, search};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::log::Log;
use crate::model::registry;
use crate::plain::{from_json, parse, to_json, to_keys};
use crate::work::{Watch, Work, run};

/// Trials of a random search where nothing else limits it.
const USUAL_TRIALS: usize = 30;

/// What is searched, and how.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    model: String,
    /// The name of a space, or a table of `keys` and `constraints`.
    space: Option<Value>,
    sampler: Option<String>,
    metric: String,
    patience: usize,
    trials: Option<usize>,
    time_budget: Option<f64>,
    jobs: usize,
    memory: Option<u64>,
}

/// Searches, fits the best to all before the test set, and scores it there.
#[pyfunction]
#[pyo3(signature = (log, protocol, asked, keys, folder, work=None))]
pub(crate) fn tune(
    py: Python<'_>,
    log: &Log,
    protocol: &Bound<'_, PyDict>,
    asked: &Bound<'_, PyDict>,
    keys: &Bound<'_, PyDict>,
    folder: PathBuf,
    work: Option<&Work>,
) -> PyResult<Py<PyAny>> {
    let wrong = |error: serde_json::Error| Failure::new(Kind::Config, error.to_string());
    let protocol: Protocol = serde_json::from_value(to_json(protocol.as_any())?).map_err(wrong)?;
    let asked: Asked = serde_json::from_value(to_json(asked.as_any())?).map_err(wrong)?;
    let keys = to_keys(keys)?;
    let log = log.events()?;
    let report = run(py, work, |watch| searched(&log, &protocol, &asked, keys, &folder, watch))?;
    from_json(py, &report)
}

fn space_of(
    entry: &satf::models::ModelEntry,
    asked: Option<&Value>,
    watch: &Watch,
) -> Result<Space, Failure> {
    Ok(match asked {
        None => Space::named(entry, None)?,
        Some(Value::String(path)) if Path::new(path).extension().is_some_and(|ending| ending == "toml") => {
            Space::read(path.as_ref(), watch)?
        }
        Some(Value::String(name)) => Space::named(entry, Some(name))?,
        Some(table) => {
            let table = toml::Table::try_from(table)
                .map_err(|error| Failure::new(Kind::Config, format!("space: {error}")))?;
            Space::from_table("space", &table)?
        }
    })
}

fn searched(
    log: &Interactions,
    protocol: &Protocol,
    asked: &Asked,
    keys: toml::Table,
    folder: &Path,
    watch: &Watch,
) -> Result<Value, Failure> {
    let entry = registry().find(&asked.model)?;
    let metric: Metric = parse("metric", &asked.metric)?;
    let sampler = match &asked.sampler {
        Some(name) => parse::<Sampler>("sampler", name)?,
        None => Sampler::default(),
    };
    let mut space = space_of(&entry, asked.space.as_ref(), watch)?;
    for (key, value) in &keys {
        space.pin(key, value.clone());
    }
    let mut settings = keys;
    SharedKeys { memory_bytes: asked.memory, ..protocol.shared_keys() }.add_to(&mut settings, &entry)?;
    space.check(&entry)?;

    let cut = protocol.cut(log)?;
    let validation = cut.split.validation()?;
    let grid = Grid::new(&entry, &settings, &space, &validation.train, watch)?;
    let mut described = json!(cut.description);
    if let Some(described) = described.as_object_mut() {
        described.retain(|name, _| name != "scored_part" && name != "train");
    }
    // As the command line asks, so that either goes on with a study of the other.
    let request = json!({
        "model": entry.name, "settings": settings, "space": space.to_json(), "sampler": sampler, "seed": protocol.seed,
        "metric": metric, "patience": asked.patience, "trainings": grid.num_trainings(),
        "configurations": grid.num_configurations(), "protocol": described,
        "log": {
            "fingerprint": format!("{:016x}", log.fingerprint()), "users": log.users().len(), "items": log.items().len(),
            "rows": log.rows().len(),
        },
        "satf_version": env!("CARGO_PKG_VERSION"),
    });
    let is_unlimited = sampler == Sampler::Exhaustive || asked.time_budget.is_some();
    let usual = if is_unlimited { grid.num_trainings() } else { USUAL_TRIALS };
    let limits = Limits {
        trials: asked.trials.unwrap_or(usual).min(grid.num_trainings()),
        time_budget_seconds: asked.time_budget,
        jobs: asked.jobs.max(1),
    };
    let mut study = Study::open(folder, &request, limits)?;
    let scoring = Scoring { partition: &validation, metric, patience: asked.patience, seen: protocol.seen };
    let options = SearchOptions { grid: &grid, scoring, sampler, seed: protocol.seed, limits };
    search(&options, &mut study, watch, &|_, _| {})?;

    let evaluation =
        EvaluateOptions { cutoffs: vec![metric.cutoff], seen: protocol.seen, ..EvaluateOptions::default() };
    let (entry, settings, test) = (&entry, &settings, &cut.partition);
    let usage = Some(format!("satf evaluate LOG --model {} --config best.toml", entry.name));
    let ending = Ending { entry, settings, metric, test, evaluation, usage };
    let mut warnings = cut.warnings.clone();
    let result = ending.conclude(&study, watch, &mut warnings)?;
    drop(study);
    let status = Status::read(folder)?;
    let told: Vec<String> =
        warnings.iter().filter(|warning| !warning.is_minor()).map(ToString::to_string).collect();
    Ok(json!({
        "asked": request, "limits": limits, "trials": status.trials, "result": result, "warnings": told,
    }))
}
