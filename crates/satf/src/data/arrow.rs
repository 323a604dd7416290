//! Columns of Arrow arrays, read where they lie: no array is cast or copied.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, BinaryType, BinaryViewType, ByteArrayType, ByteViewType,
    Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    LargeBinaryType, LargeUtf8Type, StringViewType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, GenericByteArray, GenericByteViewArray, PrimitiveArray, RecordBatch,
};
use arrow_schema::{DataType, Schema, TimeUnit};

use super::DataError;
use super::columns::{self, Chosen, Columns, Role, Wanted};
use super::field::Field;
use super::write::{CLOCK_KEY, CLOCK_ROW_ORDER, VERSION, VERSION_KEY};
use crate::interactions::Clock;

/// What a null is in a row.
pub(super) const NULL: Field<'static> = Field::Other("null");

/// The values of one column, row by row.
pub(super) struct Column(Box<dyn Cells>);

trait Cells: Send {
    fn get(&self, row: usize) -> Field<'_>;
}

impl Column {
    /// The column of an array of ids or times; none for an array of anything else.
    pub(super) fn new(array: &ArrayRef) -> Option<Self> {
        const DAY: i64 = 86_400_000_000;
        Some(Column(match array.data_type() {
            DataType::Null => Box::new(Nulls),
            DataType::Int8 => Box::new(Integers(primitive::<Int8Type>(array))),
            DataType::Int16 => Box::new(Integers(primitive::<Int16Type>(array))),
            DataType::Int32 => Box::new(Integers(primitive::<Int32Type>(array))),
            DataType::Int64 => Box::new(Integers(primitive::<Int64Type>(array))),
            DataType::UInt8 => Box::new(Integers(primitive::<UInt8Type>(array))),
            DataType::UInt16 => Box::new(Integers(primitive::<UInt16Type>(array))),
            DataType::UInt32 => Box::new(Integers(primitive::<UInt32Type>(array))),
            DataType::UInt64 => Box::new(Unsigned(primitive(array))),
            DataType::Float16 => Box::new(Floats(primitive::<Float16Type>(array))),
            DataType::Float32 => Box::new(Floats(primitive::<Float32Type>(array))),
            DataType::Float64 => Box::new(Floats(primitive::<Float64Type>(array))),
            DataType::Utf8 => Box::new(Texts(array.as_bytes::<Utf8Type>().clone())),
            DataType::LargeUtf8 => Box::new(Texts(array.as_bytes::<LargeUtf8Type>().clone())),
            DataType::Utf8View => Box::new(Views(array.as_byte_view::<StringViewType>().clone())),
            // Strings of a file that does not say that they are: checked like those of a text file.
            DataType::Binary => Box::new(Texts(array.as_bytes::<BinaryType>().clone())),
            DataType::LargeBinary => Box::new(Texts(array.as_bytes::<LargeBinaryType>().clone())),
            DataType::BinaryView => Box::new(Views(array.as_byte_view::<BinaryViewType>().clone())),
            DataType::Date32 => Box::new(Times(primitive::<Date32Type>(array), DAY)),
            DataType::Date64 => Box::new(Times(primitive::<Date64Type>(array), 1_000)),
            DataType::Timestamp(unit, _) => match unit {
                TimeUnit::Second => Box::new(Times(primitive::<TimestampSecondType>(array), 1_000_000)),
                TimeUnit::Millisecond => Box::new(Times(primitive::<TimestampMillisecondType>(array), 1_000)),
                TimeUnit::Microsecond => Box::new(Times(primitive::<TimestampMicrosecondType>(array), 1)),
                TimeUnit::Nanosecond => Box::new(Nanoseconds(primitive(array))),
            },
            DataType::Dictionary(key, _) => match **key {
                DataType::Int8 => dictionary::<Int8Type>(array)?,
                DataType::Int16 => dictionary::<Int16Type>(array)?,
                DataType::Int32 => dictionary::<Int32Type>(array)?,
                DataType::Int64 => dictionary::<Int64Type>(array)?,
                DataType::UInt8 => dictionary::<UInt8Type>(array)?,
                DataType::UInt16 => dictionary::<UInt16Type>(array)?,
                DataType::UInt32 => dictionary::<UInt32Type>(array)?,
                _ => dictionary::<UInt64Type>(array)?,
            },
            _ => return None,
        }))
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> Field<'_> {
        self.0.get(row)
    }
}

/// The columns to take from a table, by the names and types of all it has. A prepared log says what its times mean, any other table
/// has times of the calendar.
pub(super) fn choose(
    path: &Path,
    schema: &Schema,
    wanted: &Wanted<'_>,
) -> Result<(Chosen, Columns), DataError> {
    let fields = schema.fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    let chosen = columns::choose(path, &names, wanted)?;
    for (role, at) in chosen.by_role() {
        if let Some(expected) = misfit(role, fields[at].data_type()) {
            return Err(DataError::ColumnType {
                path: path.to_owned(),
                column: names[at].as_str().into(),
                found: fields[at].data_type().to_string().into(),
                expected,
            });
        }
    }
    let mut columns = Columns::named(chosen, &names);
    let value = |key: &str| schema.metadata().get(key).map(String::as_str);
    if let Some(version) = value(VERSION_KEY).filter(|&version| version != VERSION && chosen.time.is_some()) {
        return Err(DataError::Version { path: path.to_owned(), version: version.into() });
    }
    if value(CLOCK_KEY) == Some(CLOCK_ROW_ORDER) {
        columns.clock = Clock::RowOrder;
    }
    Ok((chosen, columns))
}

/// A column of a batch.
pub(super) fn column(path: &Path, batch: &RecordBatch, at: usize) -> Result<Column, DataError> {
    Column::new(batch.column(at)).ok_or_else(|| DataError::ColumnType {
        path: path.to_owned(),
        column: batch.schema_ref().field(at).name().as_str().into(),
        found: batch.column(at).data_type().to_string().into(),
        expected: "ids or times",
    })
}

/// A column of timestamps or dates in microseconds since 1970, whatever their unit and zone; nulls stay none. `None` for a column
/// of anything else.
pub(crate) fn moments(array: &ArrayRef) -> Option<Vec<Option<i64>>> {
    if !is_moment(plain(array.data_type())) {
        return None;
    }
    let column = Column::new(array)?;
    let moment = |row| match column.get(row) {
        Field::Micros(micros) => Some(micros),
        Field::Nanos(nanos) => Some(nanos.div_euclid(1_000)),
        _ => None,
    };
    Some((0..array.len()).map(moment).collect())
}

/// Every value of a column as text, floating-point numbers in their shortest exact form; nulls stay none. `None` for a column of
/// anything but numbers, strings and truth values.
pub(crate) fn texts(array: &ArrayRef) -> Option<Vec<Option<String>>> {
    if let Some(flags) = array.as_boolean_opt() {
        return Some(flags.iter().map(|flag| Some(flag?.to_string())).collect());
    }
    // Their own shortest form: as wider numbers they would have more digits.
    if let Some(singles) = array.as_primitive_opt::<Float32Type>() {
        return Some(singles.iter().map(|number| Some(shortest(number?))).collect());
    }
    if is_moment(plain(array.data_type())) {
        return None;
    }
    let column = Column::new(array)?;
    let text = |row| match column.get(row) {
        Field::Integer(number) => Some(number.to_string()),
        Field::Unsigned(number) => Some(number.to_string()),
        Field::Float(number) => Some(shortest(number)),
        Field::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    Some((0..array.len()).map(text).collect())
}

fn shortest(number: impl ryu::Float) -> String {
    ryu::Buffer::new().format(number).to_owned()
}

/// What a column of a role must hold, if it is not what this type holds.
pub(super) fn misfit(role: Role, data_type: &DataType) -> Option<&'static str> {
    let plain = plain(data_type);
    let (is_fit, expected) = match role {
        Role::Time => (
            is_id_type(data_type) || plain.is_floating() || is_moment(plain),
            "numbers, strings, dates or timestamps",
        ),
        Role::User | Role::Item => (is_id_type(data_type), "integers or strings"),
        Role::History => {
            (is_history_type(data_type), "lists of integers or strings, or lists of such lists (baskets)")
        }
        Role::Rank => (is_id_type(data_type) || plain.is_floating(), "numbers"),
    };
    (!is_fit).then_some(expected)
}

/// The type of the values, whether they stand in a dictionary or not.
fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        plain => plain,
    }
}

fn is_moment(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

fn is_id_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_id_type(values),
        plain => plain.is_integer() || plain.is_string() || is_binary(plain) || plain.is_null(),
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Whether a column can hold histories: lists of ids or of baskets, or text.
fn is_history_type(data_type: &DataType) -> bool {
    match element(data_type) {
        Some(inner) => is_id_type(element(inner).unwrap_or(inner)),
        None => is_id_type(data_type) && !data_type.is_integer(),
    }
}

/// The type of the elements of a list.
pub(super) fn element(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type())
        }
        _ => None,
    }
}

/// Another handle on the same values.
fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> PrimitiveArray<T> {
    array.as_primitive::<T>().clone()
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &ArrayRef) -> Option<Box<dyn Cells>> {
    let array = array.as_dictionary::<K>();
    Some(Box::new(Dictionary { values: Column::new(array.values())?, array: array.clone() }))
}

struct Nulls;

impl Cells for Nulls {
    fn get(&self, _: usize) -> Field<'_> {
        NULL
    }
}

struct Integers<T: ArrowPrimitiveType>(PrimitiveArray<T>);

impl<T: ArrowPrimitiveType<Native: Into<i64>>> Cells for Integers<T> {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_valid(row) { Field::Integer(self.0.value(row).into()) } else { NULL }
    }
}

struct Unsigned(PrimitiveArray<UInt64Type>);

impl Cells for Unsigned {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_null(row) {
            return NULL;
        }
        let value = self.0.value(row);
        i64::try_from(value).map_or(Field::Unsigned(value), Field::Integer)
    }
}

struct Floats<T: ArrowPrimitiveType>(PrimitiveArray<T>);

impl<T: ArrowPrimitiveType<Native: Into<f64>>> Cells for Floats<T> {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_valid(row) { Field::Float(self.0.value(row).into()) } else { NULL }
    }
}

struct Texts<T: ByteArrayType>(GenericByteArray<T>);

impl<T: ByteArrayType> Cells for Texts<T> {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_valid(row) { Field::Text(self.0.value(row).as_ref()) } else { NULL }
    }
}

struct Views<T: ByteViewType>(GenericByteViewArray<T>);

impl<T: ByteViewType> Cells for Views<T> {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_valid(row) { Field::Text(self.0.value(row).as_ref()) } else { NULL }
    }
}

/// Times, and how many microseconds one step is.
struct Times<T: ArrowPrimitiveType>(PrimitiveArray<T>, i64);

impl<T: ArrowPrimitiveType<Native: Into<i64>>> Cells for Times<T> {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_null(row) {
            return NULL;
        }
        // What does not fit is out of the range of years in any case.
        Field::Micros(self.0.value(row).into().saturating_mul(self.1))
    }
}

struct Nanoseconds(PrimitiveArray<TimestampNanosecondType>);

impl Cells for Nanoseconds {
    fn get(&self, row: usize) -> Field<'_> {
        if self.0.is_valid(row) { Field::Nanos(self.0.value(row)) } else { NULL }
    }
}

/// Values that occur again and again, each held once.
struct Dictionary<K: ArrowDictionaryKeyType> {
    array: DictionaryArray<K>,
    values: Column,
}

impl<K: ArrowDictionaryKeyType> Cells for Dictionary<K> {
    fn get(&self, row: usize) -> Field<'_> {
        self.array.key(row).map_or(NULL, |key| self.values.get(key))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        BinaryArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array, Int64Array, NullArray,
        StringArray, StringViewArray, UInt64Array,
    };

    use super::*;

    #[test]
    fn numbers_strings_and_truth_values_have_a_text() {
        let words = StringArray::from(vec!["a", ""]);
        let dictionary = DictionaryArray::<Int8Type>::new(
            Int8Array::from(vec![Some(1), None, Some(0)]),
            Arc::new(words.clone()),
        );
        let cases: Vec<(ArrayRef, Vec<Option<&str>>)> = vec![
            (Arc::new(Int64Array::from(vec![Some(-7), None])), vec![Some("-7"), None]),
            (Arc::new(UInt64Array::from(vec![u64::MAX])), vec![Some("18446744073709551615")]),
            (
                Arc::new(Float64Array::from(vec![1.0, 0.1 + 0.2, 1e-7, 2e16])),
                vec![Some("1.0"), Some("0.30000000000000004"), Some("1e-7"), Some("2e16")],
            ),
            (
                Arc::new(Float32Array::from(vec![Some(0.1), None, Some(f32::NAN)])),
                vec![Some("0.1"), None, Some("NaN")],
            ),
            (Arc::new(words), vec![Some("a"), Some("")]),
            (Arc::new(StringViewArray::from(vec![Some("a"), None])), vec![Some("a"), None]),
            (Arc::new(BinaryArray::from(vec![&b"ab"[..]])), vec![Some("ab")]),
            (Arc::new(dictionary), vec![Some(""), None, Some("a")]),
            (Arc::new(BooleanArray::from(vec![Some(true), None])), vec![Some("true"), None]),
            (Arc::new(NullArray::new(2)), vec![None, None]),
        ];
        for (array, expected) in cases {
            let found = texts(&array).unwrap();
            assert!(found.iter().map(Option::as_deref).eq(expected), "{}: {found:?}", array.data_type());
        }
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![1]));
        assert_eq!(texts(&dates), None);
    }
}
