//! Models that are objects of Python.

use std::sync::{Mutex, PoisonError};

use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArrayMethods, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use satf::interactions::{History, ItemIndex};
use satf::models::{Recommender, Shares, Tensor, UserData};

use crate::failure::{Failure, Kind};
use crate::work::Watch;

/// An object that scores: `score_batch(histories)`, or `score(history)`. What it raises ends the work.
pub(crate) struct OwnModel<'w> {
    pub(crate) object: Py<PyAny>,
    pub(crate) label: String,
    pub(crate) num_items: usize,
    pub(crate) scores_batches: bool,
    pub(crate) watch: &'w Watch,
    pub(crate) raised: Mutex<Option<PyErr>>,
}

impl OwnModel<'_> {
    /// What it raised.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn score(&self, py: Python<'_>, histories: &[History<'_>], scores: &mut [f32]) -> PyResult<()> {
        let array = |history: &History<'_>| -> Bound<'_, PyArray1<i64>> {
            history.items().iter().map(|item| i64::from(item.0)).collect::<Vec<_>>().to_pyarray(py)
        };
        if self.scores_batches {
            let all = PyList::new(py, histories.iter().map(array))?;
            let given = self.object.bind(py).call_method1("score_batch", (all,))?;
            return self.take(&given, histories.len(), scores);
        }
        for (history, scores) in histories.iter().zip(scores.chunks_mut(self.num_items.max(1))) {
            let given = self.object.bind(py).call_method1("score", (array(history),))?;
            let given = py.import("numpy")?.call_method1("atleast_2d", (given,))?;
            self.take(&given, 1, scores)?;
        }
        Ok(())
    }

    /// Copies what it gave, after a look at it.
    fn take(&self, given: &Bound<'_, PyAny>, rows: usize, scores: &mut [f32]) -> PyResult<()> {
        let py = given.py();
        let options = PyDict::new(py);
        options.set_item("dtype", "float32")?;
        let numbers = py.import("numpy")?.call_method("ascontiguousarray", (given,), Some(&options))?;
        let wrong = |found: String| {
            let expected = format!("{rows} x {} scores, one per item of the training set", self.num_items);
            Failure::new(Kind::Experiment, format!("{}: expected {expected}, found {found}", self.label))
        };
        let numbers: PyReadonlyArray2<'_, f32> =
            numbers.extract().map_err(|_| {
                wrong(numbers.getattr("shape").map_or_else(
                    |_| "something else".to_owned(),
                    |shape| format!("an array of shape {shape}"),
                ))
            })?;
        if numbers.shape() != [rows, self.num_items] {
            return Err(wrong(format!("an array of shape {:?}", numbers.shape())).into());
        }
        for (score, &given) in scores.iter_mut().zip(numbers.as_slice()?) {
            if given.is_nan() {
                let message = format!(
                    "{}: a score is NaN; expected numbers (-inf for what is never recommended)",
                    self.label
                );
                return Err(Failure::new(Kind::Experiment, message).into());
            }
            *score = given.clamp(f32::MIN, f32::MAX);
        }
        Ok(())
    }
}

impl Recommender for OwnModel<'_> {
    fn num_items(&self) -> usize {
        self.num_items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        scores.fill(0.0);
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if raised.is_some() {
            return;
        }
        if let Err(error) = Python::attach(|py| self.score(py, histories, scores)) {
            *raised = Some(error);
            self.watch.cancel();
        }
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        Vec::new()
    }

    fn shares(&self, history: History<'_>, _item: ItemIndex) -> Shares {
        Shares::of_none(&history, 0.0)
    }

    fn has_shares(&self) -> bool {
        false
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}
