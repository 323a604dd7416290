//! A table on its way to Python: Arrow, which every kind of frame takes.

use std::sync::Arc;

use arrow_array::builder::{LargeStringBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field};
use numpy::{PyArray1, ToPyArray};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};
use satf::interactions::Ids;

/// Rows of named columns.
#[pyclass(frozen, name = "Table", module = "satf._satf")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Table { batch }
    }

    /// A table of columns that are equally long.
    pub(crate) fn of(columns: Vec<(&str, ArrayRef)>) -> Self {
        let batch = RecordBatch::try_from_iter(columns).expect("invariant: as many values in every column");
        Table { batch }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column: numbers as a NumPy array, anything else as a list; times as integers.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let column = self.batch.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        values_of(py, column)
    }

    /// Whether a column holds times, in microseconds since 1970.
    fn is_time(&self, name: &str) -> bool {
        let column = self.batch.column_by_name(name);
        column.is_some_and(|column| matches!(column.data_type(), DataType::Timestamp(..)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = self.batch.schema();
        let field =
            Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone());
        let rows: ArrayRef = Arc::new(StructArray::from(self.batch.clone()));
        let stream = Box::new(ArrayIterator::new(vec![Ok(rows)], Arc::new(field)));
        Ok(to_stream_pycapsule(py, stream, requested_schema)?)
    }
}

fn numbers<'py, T>(py: Python<'py>, column: &ArrayRef) -> Bound<'py, PyArray1<T::Native>>
where
    T: ArrowPrimitiveType,
    T::Native: numpy::Element,
{
    column.as_primitive::<T>().values().to_pyarray(py)
}

fn values_of(py: Python<'_>, column: &ArrayRef) -> PyResult<Py<PyAny>> {
    if column.null_count() == 0 {
        match column.data_type() {
            DataType::Int64 => return numbers::<Int64Type>(py, column).into_py_any(py),
            DataType::UInt32 => return numbers::<UInt32Type>(py, column).into_py_any(py),
            DataType::Float32 => return numbers::<Float32Type>(py, column).into_py_any(py),
            DataType::Float64 => return numbers::<Float64Type>(py, column).into_py_any(py),
            DataType::Timestamp(..) => {
                return numbers::<TimestampMicrosecondType>(py, column).into_py_any(py);
            }
            _ => {}
        }
    }
    let values = (0..column.len()).map(|row| value_of(py, column, row)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, values)?.into_py_any(py)
}

fn value_of(py: Python<'_>, column: &ArrayRef, row: usize) -> PyResult<Py<PyAny>> {
    if column.is_null(row) {
        return Ok(py.None());
    }
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(row).into_py_any(py),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).into_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_py_any(py),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into_py_any(py),
        DataType::Timestamp(..) => {
            column.as_primitive::<TimestampMicrosecondType>().value(row).into_py_any(py)
        }
        DataType::List(_) => values_of(py, &column.as_list::<i32>().value(row)).and_then(|values| {
            let values = values.bind(py);
            values.try_iter()?.collect::<PyResult<Vec<_>>>()?.into_py_any(py)
        }),
        DataType::Struct(fields) => {
            let dict = PyDict::new(py);
            for (field, column) in fields.iter().zip(column.as_struct().columns()) {
                dict.set_item(field.name(), value_of(py, column, row)?)?;
            }
            dict.into_py_any(py)
        }
        other => format!("{other}").into_py_any(py),
    }
}

/// Ids at some places of a catalogue, as a column.
pub(crate) fn id_column(ids: &Ids, places: impl Iterator<Item = usize> + Clone) -> ArrayRef {
    match ids {
        Ids::Integers(ids) => Arc::new(Int64Array::from_iter_values(places.map(|at| ids[at]))),
        Ids::Texts(ids) => text_column(places.map(|at| &*ids[at])),
    }
}

/// Texts as a column; with wide offsets where two gigabytes of them do not fit into narrow ones.
pub(crate) fn text_column<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> ArrayRef {
    let (mut rows, mut bytes) = (0, 0);
    for text in texts.clone() {
        rows += 1;
        bytes += text.len();
    }
    if i32::try_from(bytes).is_err() {
        let mut column = LargeStringBuilder::with_capacity(rows, bytes);
        texts.for_each(|text| column.append_value(text));
        return Arc::new(column.finish());
    }
    let mut column = StringBuilder::with_capacity(rows, bytes);
    texts.for_each(|text| column.append_value(text));
    Arc::new(column.finish())
}
