//! Plain values of Python as JSON, and back.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use satf::interactions::{Id, OwnedId};
use serde_json::{Map, Number, Value};

use crate::failure::{Failure, Kind};

/// A value as JSON. Numbers of NumPy are taken for what they are.
pub(crate) fn to_json(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value).ok_or_else(|| refused(value, "an integer of 64 bits"));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = Number::from_f64(number.value());
        return number.map(Value::Number).ok_or_else(|| refused(value, "a finite number"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((key.extract::<String>()?, to_json(&value)?))
        };
        return Ok(Value::Object(dict.iter().map(entry).collect::<PyResult<Map<_, _>>>()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let all = value.try_iter()?.map(|value| to_json(&value?));
        return Ok(Value::Array(all.collect::<PyResult<_>>()?));
    }
    if value.hasattr("item")? && value.hasattr("dtype")? {
        return to_json(&value.call_method0("item")?);
    }
    Err(refused(value, "None, a truth value, a number, a text, a list or a dict of them"))
}

fn integer(value: &Bound<'_, PyAny>) -> Option<Value> {
    let signed = value.extract::<i64>().map(Value::from);
    signed.or_else(|_| value.extract::<u64>().map(Value::from)).ok()
}

fn refused(value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = value.repr().map_or_else(|_| "a value".to_owned(), |shown| shown.to_string());
    let shown: String = shown.chars().take(80).collect();
    Failure::new(Kind::Config, format!("{shown}: expected {expected}")).into()
}

/// JSON as a value of Python.
pub(crate) fn from_json(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Null => Ok(py.None()),
        Value::Bool(truth) => truth.into_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_py_any(py),
            (None, Some(number)) => number.into_py_any(py),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into_py_any(py),
        },
        Value::String(text) => text.into_py_any(py),
        Value::Array(values) => {
            let values = values.iter().map(|value| from_json(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_py_any(py)
        }
        Value::Object(values) => {
            let dict = PyDict::new(py);
            for (key, value) in values {
                dict.set_item(key, from_json(py, value)?)?;
            }
            dict.into_py_any(py)
        }
    }
}

/// What can be serialized, as a value of Python.
pub(crate) fn to_python(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<Py<PyAny>> {
    let json = serde_json::to_value(value)
        .map_err(|error| Failure::new(Kind::Internal, format!("a report cannot be shown: {error}")))?;
    from_json(py, &json)
}

/// Keys of a model, from a dict.
pub(crate) fn to_keys(keys: &Bound<'_, PyDict>) -> PyResult<toml::Table> {
    let Value::Object(json) = to_json(keys.as_any())? else { return Ok(toml::Table::new()) };
    let mut table = toml::Table::new();
    // A key that is None is left to the model.
    for (key, value) in json.into_iter().filter(|(_, value)| !value.is_null()) {
        let converted = toml::Value::try_from(&value)
            .map_err(|error| Failure::new(Kind::Config, format!("{key} = {value}: {error}")))?;
        table.insert(key, converted);
    }
    Ok(table)
}

/// An id of Python: an integer of 64 bits or a string, also of NumPy.
pub(crate) fn to_id(value: &Bound<'_, PyAny>) -> PyResult<OwnedId> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(OwnedId::from(text.to_str()?));
    }
    if value.is_exact_instance_of::<PyInt>()
        && let Ok(number) = value.extract::<i64>()
    {
        return Ok(OwnedId::from(number));
    }
    // Integers of NumPy have an index, and floats have none. Truth values have one, and are no ids.
    let kind = value.get_type().name()?.to_string();
    if !kind.starts_with("bool")
        && let Ok(number) = value.call_method0("__index__").and_then(|index| index.extract::<i64>())
    {
        return Ok(OwnedId::from(number));
    }
    let shown = value.repr().map_or_else(|_| "a value".to_owned(), |shown| shown.to_string());
    let shown: String = shown.chars().take(80).collect();
    let message =
        format!("{shown} (of type {kind}) is not an id: expected an integer of 64 bits or a string");
    Err(Failure::new(Kind::Data, message).into())
}

/// Ids of any iterable.
pub(crate) fn to_ids(values: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedId>> {
    values.try_iter()?.map(|value| to_id(&value?)).collect()
}

/// An id as a value of Python.
pub(crate) fn from_id(py: Python<'_>, id: Id<'_>) -> PyResult<Py<PyAny>> {
    match id {
        Id::Integer(number) => number.into_py_any(py),
        Id::Text(text) => text.into_py_any(py),
    }
}

/// A name that stands for one of a few choices.
pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> Result<T, Failure> {
    text.parse::<T>().map_err(|error| Failure::new(Kind::Config, format!("{name}: {error}")))
}

pub(crate) fn whole_number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let json = to_json(value)?;
    let message = || format!("{name} = {json}: expected a whole number from 0 to 2^63 - 1");
    Ok(json
        .as_u64()
        .filter(|&number| i64::try_from(number).is_ok())
        .ok_or_else(|| Failure::new(Kind::Config, message()))?)
}
