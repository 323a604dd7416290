//! NumPy arrays and lists of Python as Arrow columns. Numbers of an array are used where they lie.

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::failure::{Failure, Kind};

/// How NumPy marks a time that is none.
const NOT_A_TIME: i64 = i64::MIN;

/// Columns by name as one batch: each a list, or a NumPy array of one dimension whose numbers lie one after the other. Times of NumPy
/// come as a pair of their integers and their unit.
pub(crate) fn batch_of(columns: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
    let mut all: Vec<(String, ArrayRef)> = Vec::new();
    for (name, values) in columns {
        let name: String = name.extract()?;
        let column = match values.extract::<(Bound<'_, PyAny>, String)>() {
            Ok((numbers, unit)) => times_of(&numbers, &unit)?,
            Err(_) => column_of(&name, &values)?,
        };
        all.push((name, column));
    }
    if let [(first_name, first), rest @ ..] = &all[..]
        && let Some((name, column)) = rest.iter().find(|(_, column)| column.len() != first.len())
    {
        let message = format!(
            "the column {first_name} has {} values and {name} has {}: expected as many in each",
            first.len(),
            column.len()
        );
        return Err(Failure::new(Kind::Data, message).into());
    }
    let batch =
        RecordBatch::try_from_iter_with_nullable(all.into_iter().map(|(name, column)| (name, column, true)));
    Ok(batch.map_err(|error| Failure::new(Kind::Data, error.to_string()))?)
}

fn column_of(name: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if let Ok(list) = values.cast::<PyList>() {
        return list_of(name, list);
    }
    macro_rules! numbers {
        ($($type:ty),*) => {$(
            if let Some(column) = shared::<$type>(values) {
                return Ok(Arc::new(column));
            }
        )*};
    }
    numbers!(
        Int64Type,
        Int32Type,
        Int16Type,
        Int8Type,
        UInt64Type,
        UInt32Type,
        UInt16Type,
        UInt8Type,
        Float64Type,
        Float32Type
    );
    let kind = values.get_type().name()?;
    let message =
        format!("the column {name} is of type {kind}: expected a list or an array of numbers or strings");
    Err(Failure::new(Kind::Data, message).into())
}

/// The numbers of an array where they lie, if they are of this type. The array lives for as long as they are used.
#[allow(unsafe_code, reason = "Arrow has no other way to use memory of others")]
fn shared<T: ArrowPrimitiveType<Native: Element>>(values: &Bound<'_, PyAny>) -> Option<PrimitiveArray<T>> {
    let array = values.cast::<PyArray1<T::Native>>().ok()?;
    if !array.is_c_contiguous() {
        return None;
    }
    let (length, owner) = (array.len(), array.clone().into_any().unbind());
    let start = NonNull::new(array.data().cast::<u8>())?;
    let bytes = length * size_of::<T::Native>();
    // SAFETY: the array holds so many bytes from there on, one number after the other, and `owner` keeps it. Whoever changes it from
    // another thread meanwhile changes numbers, which are numbers whatever their bits.
    let buffer = unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(AssertUnwindSafe(owner))) };
    if buffer.as_ptr().align_offset(align_of::<T::Native>()) != 0 {
        return None;
    }
    Some(PrimitiveArray::new(ScalarBuffer::new(buffer, 0, length), None))
}

/// Times of NumPy in a unit of Arrow.
fn times_of(numbers: &Bound<'_, PyAny>, unit: &str) -> PyResult<ArrayRef> {
    fn typed<T: ArrowPrimitiveType<Native = i64>>(numbers: &Bound<'_, PyAny>) -> Option<ArrayRef> {
        let (_, values, _) = shared::<Int64Type>(numbers)?.into_parts();
        let nulls = values
            .contains(&NOT_A_TIME)
            .then(|| values.iter().map(|&value| value != NOT_A_TIME).collect::<NullBuffer>());
        Some(Arc::new(PrimitiveArray::<T>::new(values, nulls)))
    }
    let column = match unit {
        "s" => typed::<TimestampSecondType>(numbers),
        "ms" => typed::<TimestampMillisecondType>(numbers),
        "us" => typed::<TimestampMicrosecondType>(numbers),
        "ns" => typed::<TimestampNanosecondType>(numbers),
        _ => None,
    };
    column.ok_or_else(|| {
        Failure::new(Kind::Data, format!("times in units of {unit}: expected s, ms, us or ns")).into()
    })
}

/// A list of integers, floats or strings; None is a null.
fn list_of(name: &str, list: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let first = list.iter().find(|value| !value.is_none());
    let Some(first) = first else {
        return Ok(Arc::new(arrow_array::NullArray::new(list.len())));
    };
    if first.is_instance_of::<PyString>() {
        let mut texts = StringBuilder::new();
        for (at, value) in list.iter().enumerate() {
            match value.cast::<PyString>() {
                Ok(text) => texts.append_value(text.to_str()?),
                Err(_) if value.is_none() => texts.append_null(),
                Err(_) => return Err(mixed(name, at, &value, "a string, as the first")),
            }
        }
        return Ok(Arc::new(texts.finish()));
    }
    let is_number = |value: &Bound<'_, PyAny>| {
        !value.is_instance_of::<PyBool>()
            && (value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>())
    };
    let has_fractions = list.iter().any(|value| value.is_instance_of::<PyFloat>());
    let (mut integers, mut floats) = (Int64Builder::new(), Float64Builder::new());
    for (at, value) in list.iter().enumerate() {
        let is_null = value.is_none();
        if !is_null && !is_number(&value) {
            return Err(mixed(name, at, &value, "an integer or a string, all of one type"));
        }
        if has_fractions {
            floats.append_option(if is_null { None } else { Some(value.extract::<f64>()?) });
        } else {
            let number = if is_null { None } else { Some(value.extract::<i64>()) };
            let number = number.transpose().map_err(|_| mixed(name, at, &value, "an integer of 64 bits"))?;
            integers.append_option(number);
        }
    }
    Ok(if has_fractions { Arc::new(floats.finish()) } else { Arc::new(integers.finish()) })
}

fn mixed(name: &str, at: usize, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = value.repr().map_or_else(|_| "a value".to_owned(), |shown| shown.to_string());
    let shown: String = shown.chars().take(80).collect();
    Failure::new(Kind::Data, format!("row {}, column \"{name}\": expected {expected}, found {shown}", at + 1))
        .into()
}
