//! How a model is fitted.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use satf::interactions::Interactions;
use satf::models::Quantization;
use satf::monitor::{Monitor, check_cancelled};
use satf::prepare::{self, TiePolicy};
use satf::recommend::FitOptions;

use crate::failure::{Failure, Kind};
use crate::histories::KeptHistories;
use crate::log::Log;
use crate::model::{Model, registry};
use crate::plain::{parse, to_keys, whole_number};
use crate::work::{Watch, Work, run};

/// How a model is fitted, as Python says it.
pub(crate) struct Fitting {
    options: FitOptions,
    quantize: Quantization,
}

impl Fitting {
    fn of(model: &str, options: &Bound<'_, PyDict>, keys: &Bound<'_, PyDict>) -> PyResult<Self> {
        let text = |name: &str| -> PyResult<Option<String>> {
            options.get_item(name)?.filter(|value| !value.is_none()).map(|value| value.extract()).transpose()
        };
        let ties = match text("ties")? {
            Some(ties) => parse::<TiePolicy>("ties", &ties)?,
            None => TiePolicy::default(),
        };
        let quantize = match text("quantize")? {
            Some(name) => parse::<Quantization>("quantize", &name)?,
            None => Quantization::None,
        };
        let seed = options.get_item("seed")?.map_or(Ok(0), |seed| whole_number("seed", &seed))?;
        let statistics = options.get_item("with_statistics")?.map_or(Ok(false), |with| with.extract())?;
        let mut keys = to_keys(keys)?;
        let registry = registry();
        if let Some(memory) = options.get_item("memory")?.filter(|memory| !memory.is_none()) {
            let memory = whole_number("memory", &memory)? as i64;
            if registry.find(model).is_ok_and(|entry| entry.defaults().contains_key("memory_bytes")) {
                keys.insert("memory_bytes".to_owned(), toml::Value::Integer(memory));
            }
        }
        let model = model.to_owned();
        let options = FitOptions { model, keys, ties, seed, registry, with_statistics: statistics };
        Ok(Fitting { options, quantize })
    }

    /// The same as a model was fitted, which keeps its statistics.
    pub(crate) fn again(model: &satf::Model) -> Result<Self, Failure> {
        let manifest = model.manifest();
        let mut keys = toml::Table::new();
        // Keys that are left to training have no value.
        for (key, value) in
            manifest.configuration.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
        {
            let value = toml::Value::try_from(value);
            keys.insert(
                key.clone(),
                value.map_err(|error| Failure::new(Kind::Config, format!("{key}: {error}")))?,
            );
        }
        let options = FitOptions {
            model: manifest.model.clone(),
            keys,
            ties: manifest.dataset.ties.unwrap_or_default(),
            seed: manifest.seed.unwrap_or_default(),
            registry: registry(),
            with_statistics: true,
        };
        Ok(Fitting { options, quantize: manifest.quantization })
    }

    /// The model, with the histories it learned from if they are to be kept.
    pub(crate) fn fit(&self, log: Arc<Interactions>, keeps: bool, watch: &Watch) -> Result<Model, Failure> {
        self.options.configure()?;
        watch.begin(&self.options.model, 0);
        let FitOptions { ties, seed, .. } = self.options;
        let (histories, _) = match Arc::try_unwrap(log) {
            Ok(log) => prepare::Histories::of_whole_log(log, ties, seed),
            Err(log) => prepare::Histories::of_log(&log, ties, seed),
        };
        let mut model = satf::Model::fit_histories(&histories, &self.options, watch)?;
        check_cancelled(watch)?;
        if self.quantize != Quantization::None {
            model.quantize(self.quantize)?;
        }
        let kept = keeps.then(|| Arc::new(KeptHistories::new(histories)));
        Ok(Model::new(model, kept))
    }
}

/// Fits a model to a log. The log is given away if nobody else has it and `consume` says so.
#[pyfunction]
#[pyo3(signature = (log, model, options, keys, consume=false, work=None))]
pub(crate) fn fit(
    py: Python<'_>,
    log: &Log,
    model: &str,
    options: &Bound<'_, PyDict>,
    keys: &Bound<'_, PyDict>,
    consume: bool,
    work: Option<&Work>,
) -> PyResult<Model> {
    let fitting = Fitting::of(model, options, keys)?;
    let keeps = options.get_item("keep_histories")?.map_or(Ok(true), |keeps| keeps.extract())?;
    fitting.options.configure().map_err(Failure::from)?;
    let events = if consume { log.take()? } else { log.events()? };
    run(py, work, |watch| fitting.fit(events, keeps, watch))
}
