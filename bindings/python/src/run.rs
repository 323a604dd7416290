//! The scores of one model.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use satf::evaluate::{CompareOptions, Evaluation, Metric, per_event_table, write_per_event};
use satf::prepare::Partition;
use serde_json::Value;

use crate::plain::{from_json, parse, to_python};
use crate::table::Table;
use crate::work::{Work, run};

/// The scores of one model, event by event.
#[pyclass(frozen, name = "Run", module = "satf._satf")]
pub(crate) struct Run {
    pub(crate) label: String,
    pub(crate) partition: Arc<Partition>,
    pub(crate) evaluation: Evaluation,
    pub(crate) report: Value,
    pub(crate) warnings: Vec<String>,
}

#[pymethods]
impl Run {
    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Everything but the single events.
    fn report(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        from_json(py, &self.report)
    }

    /// Names of the metrics, coverage aside.
    fn metrics(&self) -> Vec<String> {
        self.evaluation.metrics().map(|metric| metric.to_string()).collect()
    }

    /// The results event by event.
    fn per_event(&self) -> Table {
        Table::new(per_event_table(&self.partition, &self.evaluation))
    }

    /// Writes them, as `satf evaluate --per-event` does.
    fn write_per_event(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run(py, None, |_| Ok(write_per_event(&path, &self.partition, &self.evaluation)?))
    }

    /// How a metric of this run differs from that of `first`.
    #[pyo3(signature = (first, metric, draws, seed, work=None))]
    fn difference_from(
        &self,
        py: Python<'_>,
        first: &Run,
        metric: &str,
        draws: usize,
        seed: u64,
        work: Option<&Work>,
    ) -> PyResult<Py<PyAny>> {
        let metric = parse::<Metric>("metric", metric)?;
        let options = CompareOptions { draws, seed };
        let difference = run(py, work, |watch| {
            Ok(self.evaluation.difference_from(&first.evaluation, metric, &options, watch)?)
        })?;
        to_python(py, &difference)
    }
}
