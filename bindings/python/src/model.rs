//! A fitted model.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, UInt32Array};
use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyArray2, PyArrayMethods, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use satf::data::{HistoryOptions, IdType};
use satf::interactions::{History, Ids, ItemIndex, OwnedId};
use satf::models::{DEFAULT_MODEL, Registry};
use satf::monitor::check_cancelled;
use satf::prepare;
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::fitting::Fitting;
use crate::histories::{Histories, KeptHistories, history_of};
use crate::log::{Log, read_options};
use crate::plain::{from_id, from_json, to_id, to_ids, to_python};
use crate::recommending::{answer_few, answer_many, request_of};
use crate::table::{Table, id_column};
use crate::work::{Work, run, run_short};

/// So few histories are answered at once, on the thread that a pool has for them.
const FEW: usize = 8;

/// The models of the package.
pub(crate) fn registry() -> Registry {
    satf_sasrec::registry()
}

/// The model used if none is named.
#[pyfunction]
pub(crate) fn default_model() -> &'static str {
    DEFAULT_MODEL
}

/// Every model: name, summary, keys with their defaults.
#[pyfunction]
pub(crate) fn models(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let registry = registry();
    let entry = |entry: &satf::models::ModelEntry| json!({ "name": entry.name, "summary": entry.summary, "keys": entry.defaults() });
    from_json(py, &Value::Array(registry.models().iter().map(entry).collect()))
}

/// An id of a request that a model does not know, and the list it stands in.
type UnknownId = (String, Py<PyAny>);

/// A fitted model with its catalogue.
#[pyclass(frozen, name = "Model", module = "satf._satf")]
pub(crate) struct Model {
    pub(crate) model: Arc<satf::Model>,
    /// What it learned from, if it is kept.
    kept: Option<Arc<KeptHistories>>,
}

impl Model {
    pub(crate) fn new(model: satf::Model, kept: Option<Arc<KeptHistories>>) -> Self {
        Model { model: Arc::new(model), kept }
    }

    fn catalog(&self) -> &Ids {
        self.model.catalog()
    }

    /// What it learned from, for questions by user: kept in memory, or among its statistics.
    fn kept(&self) -> Result<Arc<KeptHistories>, Failure> {
        if let Some(kept) = &self.kept {
            return Ok(Arc::clone(kept));
        }
        if self.model.has_statistics() {
            let log = self.model.log()?;
            let manifest = self.model.manifest();
            let ties = manifest.dataset.ties.unwrap_or_default();
            let (histories, _) =
                prepare::Histories::of_whole_log(log, ties, manifest.seed.unwrap_or_default());
            return Ok(Arc::new(KeptHistories::new(histories)));
        }
        Err(Failure::new(
            Kind::Recommend,
            "the model does not have the histories it learned from; hint: give histories instead of users, or log= with the events of \
             these users",
        ))
    }
}

#[pymethods]
impl Model {
    /// Reads a model file. A copied model does not depend on the file any more.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, copy: bool) -> PyResult<Self> {
        let model = run_short(py, || {
            let registry = registry();
            Ok(if copy {
                satf::Model::load_copied(&path, &registry, u64::MAX)?
            } else {
                satf::Model::load_with(&path, &registry)?
            })
        })?;
        Ok(Model { model: Arc::new(model), kept: None })
    }

    /// A model from the bytes of its file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<Self> {
        let bytes = bytes.as_bytes().to_vec();
        let model = run_short(py, || Ok(satf::Model::from_bytes("pickled model", bytes, &registry())?))?;
        Ok(Model { model: Arc::new(model), kept: None })
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run_short(py, || Ok(self.model.to_bytes()?))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes its file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        run_short(py, || Ok(self.model.save(&path)?))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.model.manifest().model
    }

    #[getter]
    fn num_items(&self) -> usize {
        self.model.num_items()
    }

    #[getter]
    fn has_statistics(&self) -> bool {
        self.model.has_statistics()
    }

    /// Whether users it learned from can be asked for.
    #[getter]
    fn knows_users(&self) -> bool {
        self.kept.is_some() || self.model.has_statistics()
    }

    #[getter]
    fn checksum(&self) -> Option<String> {
        self.model.checksum().map(str::to_owned)
    }

    /// Ids of the items, in the order of their indices, and how often each occurred.
    fn items(&self) -> Table {
        let counts: ArrayRef =
            Arc::new(UInt32Array::from_iter_values(self.model.item_counts().iter().copied()));
        Table::of(vec![("item_id", id_column(self.catalog(), 0..self.catalog().len())), ("count", counts)])
    }

    /// The index of an item, if it is known.
    fn index_of(&self, item: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        Ok(self.catalog().find(to_id(item)?.as_id()))
    }

    /// What it is, what it learned from, what it found: `inspect` without its arrays.
    fn describe(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(
            py,
            &json!({
                "manifest": self.model.manifest(), "learned": self.model.learned(), "user_data": self.model.user_data(),
                "memory_bytes": self.model.recommender().memory_bytes(),
            }),
        )
    }

    /// What `satf inspect` shows.
    fn inspect(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let tensors: Vec<Value> = self
            .model
            .tensors()
            .iter()
            .map(|tensor| {
                json!({
                    "name": tensor.name, "type": tensor.kind.name(), "shape": tensor.shape, "bytes": tensor.num_bytes(),
                })
            })
            .collect();
        to_python(
            py,
            &json!({
                "manifest": self.model.manifest(), "tensors": tensors, "lag_weights": self.model.recommender().lag_weights(),
                "learned": self.model.learned(), "user_data": self.model.user_data(),
                "memory_bytes": self.model.recommender().memory_bytes(),
            }),
        )
    }

    /// What an item counts by its lag, if the model learns that.
    fn lag_weights<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.model.recommender().lag_weights().map(|weights| weights.to_pyarray(py))
    }

    /// Item factors where they lie, one row per item; read-only.
    #[allow(unsafe_code, reason = "NumPy has no other way to show memory of others")]
    fn item_factors(slf: Bound<'_, Self>) -> Option<Bound<'_, PyArray2<f32>>> {
        let model = &slf.get().model;
        let (values, columns) = model.recommender().item_factors()?;
        let view = ArrayView2::from_shape((model.num_items(), columns), values).ok()?;
        // SAFETY: the values belong to the model, which never changes and lives for as long as the array, whose owner it is.
        let array = unsafe { PyArray2::borrow_from_array(&view, slf.clone().into_any()) };
        array.readwrite().make_nonwriteable();
        Some(array)
    }

    /// Histories from lists of ids.
    #[pyo3(signature = (lists, users=None))]
    fn histories_of_lists(
        &self,
        lists: &Bound<'_, PyAny>,
        users: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Histories> {
        Histories::of_lists(self.catalog(), lists, users)
    }

    /// Histories from the events of a log.
    fn histories_of_log(&self, py: Python<'_>, log: &Log) -> PyResult<Histories> {
        let events = log.events()?;
        run(py, None, |_| Ok(Histories::of_log(self.catalog(), &events)))
    }

    /// Histories of users that it learned from; of all if none are named.
    #[pyo3(signature = (users=None))]
    fn histories_of_users(&self, py: Python<'_>, users: Option<&Bound<'_, PyAny>>) -> PyResult<Histories> {
        let ids = users.map(to_ids).transpose()?;
        run(py, None, |_| Histories::of_users(&*self.kept()?, ids))
    }

    /// Histories from a file, as the command line reads them.
    #[pyo3(signature = (path, options=None, work=None))]
    fn histories_of_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyDict>>,
        work: Option<&Work>,
    ) -> PyResult<Histories> {
        let reading = HistoryOptions { reading: read_options(options)?, ..HistoryOptions::default() };
        run(py, work, |watch| Histories::of_file(self.catalog(), &path, &reading, watch))
    }

    /// Recommends for histories. Gives the rows, and the ids of the request that are not known.
    #[pyo3(signature = (histories, request, work=None))]
    fn recommend(
        &self,
        py: Python<'_>,
        histories: &Histories,
        request: &Bound<'_, PyDict>,
        work: Option<&Work>,
    ) -> PyResult<(Table, Vec<UnknownId>)> {
        let request = request_of(request)?;
        let prepared = self.model.prepare(&request).map_err(Failure::from)?;
        let unknown = prepared.unknown().iter().map(|unknown| {
            let place = json!(unknown.place).as_str().unwrap_or_default().to_owned();
            Ok((place, from_id(py, unknown.item.as_id())?))
        });
        let unknown = unknown.collect::<PyResult<Vec<_>>>()?;
        let table = if histories.histories.len() <= FEW {
            run_short(py, || answer_few(&prepared, histories))?
        } else {
            run(py, work, |watch| answer_many(&prepared, histories, watch))?
        };
        Ok((table, unknown))
    }

    /// Scores of the whole catalogue, one row per history.
    #[pyo3(signature = (histories, work=None))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        histories: &Histories,
        work: Option<&Work>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let num_items = self.model.num_items();
        let scores = run(py, work, |watch| {
            let views: Vec<History<'_>> = histories.histories.iter().map(Into::into).collect();
            let mut scores = vec![0f32; views.len() * num_items];
            for (views, scores) in views.chunks(1024).zip(scores.chunks_mut(1024 * num_items.max(1))) {
                check_cancelled(watch)?;
                self.model.recommender().score_batch(views, scores);
            }
            Ok(scores)
        })?;
        let rows = histories.histories.len();
        let array = numpy::ndarray::Array2::from_shape_vec((rows, num_items), scores)
            .map_err(|error| Failure::new(Kind::Internal, error.to_string()))?;
        Ok(PyArray2::from_owned_array(py, array))
    }

    /// Items most similar to each of some items.
    #[pyo3(signature = (items, k, work=None))]
    fn similar(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        k: usize,
        work: Option<&Work>,
    ) -> PyResult<(Table, String)> {
        let ids = to_ids(items)?;
        run(py, work, |watch| {
            let (mut targets, mut found, mut values, mut ranks) =
                (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            let mut measure = "";
            for id in &ids {
                check_cancelled(watch)?;
                let item = self.catalog().find(id.as_id());
                let item = item.ok_or_else(|| unknown_item(id))?;
                let similar = self.model.similar_items_indexed(ItemIndex(item as u32), k)?;
                measure = similar.measure;
                for (rank, other) in (1..).zip(&similar.items) {
                    targets.push(item);
                    found.push(other.item.get());
                    values.push(other.similarity);
                    ranks.push(rank);
                }
            }
            let table = Table::of(vec![
                ("target_item_id", id_column(self.catalog(), targets.into_iter())),
                ("item_id", id_column(self.catalog(), found.into_iter())),
                ("similarity", Arc::new(Float32Array::from(values))),
                ("rank", Arc::new(UInt32Array::from(ranks))),
            ]);
            Ok((table, measure.to_owned()))
        })
    }

    /// What every item of a history adds to the scores of some items.
    fn explain(
        &self,
        py: Python<'_>,
        history: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
    ) -> PyResult<Table> {
        let history = history_of(self.catalog(), history)?;
        let ids = to_ids(items)?;
        run_short(py, || {
            let (mut targets, mut scores, mut bases) = (Vec::new(), Vec::new(), Vec::new());
            let (mut places, mut past, mut shares) = (Vec::new(), Vec::new(), Vec::new());
            for id in &ids {
                let item = self.catalog().find(id.as_id()).ok_or_else(|| unknown_item(id))?;
                let explanation = self.model.explain_indexed((&history).into(), ItemIndex(item as u32))?;
                for (place, share) in (0u32..).zip(&explanation.shares) {
                    targets.push(item);
                    scores.push(explanation.score);
                    bases.push(explanation.base);
                    places.push(place);
                    past.push(share.item.get());
                    shares.push(share.share);
                }
            }
            Ok(Table::of(vec![
                ("item_id", id_column(self.catalog(), targets.into_iter())),
                ("score", Arc::new(Float32Array::from(scores))),
                ("base", Arc::new(Float64Array::from(bases))),
                ("position", Arc::new(UInt32Array::from(places))),
                ("history_item_id", id_column(self.catalog(), past.into_iter())),
                ("share", Arc::new(Float64Array::from(shares))),
            ]))
        })
    }

    /// The events that it learned from, if it keeps them.
    fn log(&self, py: Python<'_>) -> PyResult<Log> {
        run(py, None, |_| Ok(Log::new(self.model.log()?, Vec::new())))
    }

    /// How a log is to be read that is added to this model: with ids of the same types.
    fn id_types(&self) -> PyResult<(&'static str, &'static str)> {
        let log = self.model.log().map_err(Failure::from)?;
        let name = |ids: &Ids| match ids {
            Ids::Integers(_) => IdType::Integer.name(),
            Ids::Texts(_) => IdType::String.name(),
        };
        Ok((name(log.users()), name(log.items())))
    }

    /// The model as if these events had been in its log from the beginning.
    #[pyo3(signature = (log, work=None))]
    fn added(&self, py: Python<'_>, log: &Log, work: Option<&Work>) -> PyResult<Model> {
        let new = log.events()?;
        run(py, work, |watch| {
            let before = self.model.log()?;
            let both = before.joined(&new).map_err(|_| {
                Failure::new(
                    Kind::Data,
                    "the model learned from a log with times and the new events have none, or the other way round; one log needs one clock",
                )
            })?;
            drop(before);
            Fitting::again(&self.model)?.fit(Arc::new(both), self.kept.is_some(), watch)
        })
    }

    /// The model as if these users and items had never been in its log, how many events that takes out, and ids that it does not know.
    #[pyo3(signature = (users, items, work=None))]
    fn without(
        &self,
        py: Python<'_>,
        users: &Bound<'_, PyAny>,
        items: &Bound<'_, PyAny>,
        work: Option<&Work>,
    ) -> PyResult<(Model, usize, Vec<String>)> {
        let (users, items) = (to_ids(users)?, to_ids(items)?);
        run(py, work, |watch| {
            let log = self.model.log()?;
            let mut unknown = Vec::new();
            let mut marks = |ids: &[OwnedId], known: &Ids| {
                let mut marks = vec![false; known.len()];
                for id in ids {
                    match known.find(id.as_id()) {
                        Some(index) => marks[index] = true,
                        None => unknown.push(id.to_string()),
                    }
                }
                marks
            };
            let (gone_users, gone_items) = (marks(&users, log.users()), marks(&items, log.items()));
            let left = log.without(|row| gone_users[row.user.get()] || gone_items[row.item.get()]);
            let events = log.len() - left.len();
            if left.is_empty() {
                return Err(Failure::new(
                    Kind::Fit,
                    "nothing would be left to learn from; hint: fit another model",
                ));
            }
            drop(log);
            let model = Fitting::again(&self.model)?.fit(Arc::new(left), self.kept.is_some(), watch)?;
            Ok((model, events, unknown))
        })
    }

    /// The same model without the histories it learned from.
    fn bare(&self) -> Model {
        Model { model: Arc::clone(&self.model), kept: None }
    }
}

fn unknown_item(id: &OwnedId) -> Failure {
    Failure::new(Kind::UnknownItem, format!("the model does not know the item '{id}'"))
}
