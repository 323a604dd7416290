//! What a fitted model is made of: named arrays, on their way into a file and out of it.
//!
//! A model hands out its arrays as [`Tensor`]s and is built again from [`StoredTensors`]. Nothing that comes from a
//! file is trusted: every array is asked for with its type and its shape, floating-point values must be finite, and
//! indices must lie where they point to. All of that is checked where the values lie; large ones stay there ([`Array`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;

use bytemuck::Pod;
use half::f16;
use rayon::prelude::*;

use super::array::{Array, SharedBytes};
use crate::interactions::{ItemIndex, Timestamp};

/// The type of an array's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorType {
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Signed bytes.
    I8,
    /// Signed integers of eight bytes.
    I64,
    /// Bytes.
    U8,
    /// Unsigned integers of four bytes.
    U32,
    /// Unsigned integers of eight bytes.
    U64,
}

impl TensorType {
    /// Every type.
    pub const ALL: [TensorType; 8] = [
        TensorType::F16,
        TensorType::F32,
        TensorType::F64,
        TensorType::I8,
        TensorType::I64,
        TensorType::U8,
        TensorType::U32,
        TensorType::U64,
    ];

    /// The name safetensors files have for it.
    pub fn name(self) -> &'static str {
        match self {
            TensorType::F16 => "F16",
            TensorType::F32 => "F32",
            TensorType::F64 => "F64",
            TensorType::I8 => "I8",
            TensorType::I64 => "I64",
            TensorType::U8 => "U8",
            TensorType::U32 => "U32",
            TensorType::U64 => "U64",
        }
    }

    /// Bytes a value takes.
    pub fn size(self) -> usize {
        match self {
            TensorType::I8 | TensorType::U8 => 1,
            TensorType::F16 => 2,
            TensorType::F32 | TensorType::U32 => 4,
            TensorType::F64 | TensorType::I64 | TensorType::U64 => 8,
        }
    }
}

/// A value of an array: little-endian in files.
pub trait Element: Copy + Send + Sync + 'static {
    /// Its type.
    const TYPE: TensorType;
    /// The value of so many bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
    /// Appends its bytes.
    fn append_to(self, bytes: &mut Vec<u8>);
    /// Whether it is a number: integers always are.
    fn is_sound(self) -> bool;
}

macro_rules! element {
    ($type:ty, $name:ident, $sound:expr) => {
        impl Element for $type {
            const TYPE: TensorType = TensorType::$name;

            fn from_bytes(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                <$type>::from_le_bytes(own)
            }

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn is_sound(self) -> bool {
                let sound: fn($type) -> bool = $sound;
                sound(self)
            }
        }
    };
}

element!(f16, F16, f16::is_finite);
element!(f32, F32, f32::is_finite);
element!(f64, F64, f64::is_finite);
element!(i8, I8, |_| true);
element!(i64, I64, |_| true);
element!(u8, U8, |_| true);
element!(u32, U32, |_| true);
element!(u64, U64, |_| true);

/// An item is stored as its index.
impl Element for ItemIndex {
    const TYPE: TensorType = TensorType::U32;

    fn from_bytes(bytes: &[u8]) -> Self {
        ItemIndex(u32::from_bytes(bytes))
    }

    fn append_to(self, bytes: &mut Vec<u8>) {
        self.0.append_to(bytes);
    }

    fn is_sound(self) -> bool {
        true
    }
}

/// A time is stored as its microseconds.
impl Element for Timestamp {
    const TYPE: TensorType = TensorType::I64;

    fn from_bytes(bytes: &[u8]) -> Self {
        Timestamp(i64::from_bytes(bytes))
    }

    fn append_to(self, bytes: &mut Vec<u8>) {
        self.0.append_to(bytes);
    }

    fn is_sound(self) -> bool {
        true
    }
}

/// A named array of a fitted model, row after row.
pub struct Tensor<'a> {
    /// Its name within the model.
    pub name: &'static str,
    /// Its extents.
    pub shape: Vec<usize>,
    /// The type of its values.
    pub kind: TensorType,
    values: Box<dyn Content + 'a>,
}

/// Values that can be written, whatever their type.
trait Content {
    fn len(&self) -> usize;
    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>;
}

impl<T: Element> Content for Cow<'_, [T]> {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        const VALUES_AT_ONCE: usize = 16_384;
        let mut bytes = Vec::with_capacity(VALUES_AT_ONCE.min(self.as_ref().len()) * size_of::<T>());
        for values in self.chunks(VALUES_AT_ONCE) {
            bytes.clear();
            for value in values {
                value.append_to(&mut bytes);
            }
            sink(&bytes)?;
        }
        Ok(())
    }
}

/// Values as they lie in a file.
struct Stored<'a> {
    kind: TensorType,
    bytes: &'a [u8],
}

impl Content for Stored<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / self.kind.size()
    }

    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        sink(self.bytes)
    }
}

impl<T: Element + Pod> Content for &Array<T> {
    fn len(&self) -> usize {
        <[T]>::len(self)
    }

    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        const VALUES_AT_ONCE: usize = 1 << 18;
        if !self.is_spilled() {
            return Cow::Borrowed(&***self).write(sink);
        }
        let mut values = Vec::new();
        for start in (0..<[T]>::len(self)).step_by(VALUES_AT_ONCE) {
            self.read(start..<[T]>::len(self).min(start + VALUES_AT_ONCE), &mut values)?;
            Cow::Borrowed(&values[..]).write(sink)?;
        }
        Ok(())
    }
}

/// Values that somebody else writes.
struct Written<F> {
    len: usize,
    write: F,
}

impl<F: Fn(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>> Content for Written<F> {
    fn len(&self) -> usize {
        self.len
    }

    fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        (self.write)(sink)
    }
}

impl<'a> Tensor<'a> {
    /// An array as it lies in a file.
    pub(crate) fn stored(name: &'static str, tensor: StoredTensor<'a>) -> Self {
        let StoredTensor { kind, shape, bytes } = tensor;
        Tensor { name, shape, kind, values: Box::new(Stored { kind, bytes }) }
    }

    /// An array of this shape.
    ///
    /// # Panics
    /// If the shape does not hold as many values.
    pub fn new<T: Element>(name: &'static str, shape: &[usize], values: impl Into<Cow<'a, [T]>>) -> Self {
        let values: Cow<'a, [T]> = values.into();
        assert_eq!(shape.iter().product::<usize>(), values.len(), "values of tensor {name}");
        Tensor { name, shape: shape.to_vec(), kind: T::TYPE, values: Box::new(values) }
    }

    /// A list.
    pub fn list<T: Element>(name: &'static str, values: impl Into<Cow<'a, [T]>>) -> Self {
        let values: Cow<'a, [T]> = values.into();
        Tensor::new(name, &[values.len()], values)
    }

    /// The list of an array. What is in a temporary file is read from there piece by piece.
    pub(super) fn array<T: Element + Pod>(name: &'static str, values: &'a Array<T>) -> Self {
        Tensor { name, shape: vec![values.len()], kind: T::TYPE, values: Box::new(values) }
    }

    /// An array of this type and shape whose bytes, little-endian, `write` hands on piece by piece.
    pub(super) fn written(
        name: &'static str,
        shape: &[usize],
        kind: TensorType,
        write: impl Fn(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> + 'a,
    ) -> Self {
        let values = Written { len: shape.iter().product(), write };
        Tensor { name, shape: shape.to_vec(), kind, values: Box::new(values) }
    }

    /// Bytes of all values.
    pub fn num_bytes(&self) -> usize {
        self.values.len() * self.kind.size()
    }

    /// Hands the values to `sink`, little-endian, piece by piece.
    pub(crate) fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.values.write(sink)
    }
}

/// An array of a file that is not what the model needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tensor '{tensor}': expected {expected}, found {found}")]
pub struct TensorError {
    /// The array.
    pub tensor: String,
    /// What was found.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

impl TensorError {
    /// The error that `tensor` holds `found` where `expected` should be.
    pub fn new(tensor: &str, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        TensorError { tensor: tensor.to_owned(), found: found.to_string(), expected: expected.to_string() }
    }
}

/// An array as it lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor<'a> {
    /// The type of its values.
    pub kind: TensorType,
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its values, little-endian: as many bytes as type and shape say.
    pub bytes: &'a [u8],
}

/// The arrays of a file, by name, for a catalogue of known size.
#[derive(Clone, Default)]
pub struct StoredTensors<'a> {
    num_items: usize,
    tensors: BTreeMap<String, StoredTensor<'a>>,
    /// Where their bytes lie, if they may be used there.
    file: Option<&'a SharedBytes>,
}

impl<'a> StoredTensors<'a> {
    /// These arrays. Each must hold as many bytes as its type and shape say.
    ///
    /// # Panics
    /// If one does not.
    pub(crate) fn new(tensors: BTreeMap<String, StoredTensor<'a>>) -> Self {
        for (name, tensor) in &tensors {
            let len = tensor.shape.iter().product::<usize>();
            assert_eq!(len * tensor.kind.size(), tensor.bytes.len(), "bytes of tensor {name}");
        }
        StoredTensors { num_items: 0, tensors, file: None }
    }

    /// The same with all bytes in `file`, where large arrays stay.
    #[must_use]
    pub(crate) fn within(self, file: &'a SharedBytes) -> Self {
        StoredTensors { file: Some(file), ..self }
    }

    /// The same for a catalogue of `num_items`.
    #[must_use]
    pub(crate) fn with_num_items(self, num_items: usize) -> Self {
        StoredTensors { num_items, ..self }
    }

    /// Number of items in the catalogue.
    pub fn num_items(&self) -> usize {
        self.num_items
    }

    /// All arrays by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &StoredTensor<'a>)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The array called `name`, if there is one.
    pub fn find(&self, name: &str) -> Option<&StoredTensor<'a>> {
        self.tensors.get(name)
    }

    /// The values of an array of the type asked for and of this shape, where `None` stands for any extent. They are copied, which
    /// suits small arrays; [`StoredTensors::array`] is for large ones.
    pub fn values<T: Element>(&self, name: &str, shape: &[Option<usize>]) -> Result<Vec<T>, TensorError> {
        let values = copied(self.checked::<T>(name, shape)?.bytes);
        check_sound(name, &values)?;
        Ok(values)
    }

    /// The same without a copy, if the values can be used where they lie.
    pub fn array<T: Element + Pod>(
        &self,
        name: &str,
        shape: &[Option<usize>],
    ) -> Result<Array<T>, TensorError> {
        let bytes = self.checked::<T>(name, shape)?.bytes;
        let within = self.file.and_then(|file| Array::within(file, bytes));
        let values = within.unwrap_or_else(|| copied(bytes).into());
        check_sound(name, &values)?;
        Ok(values)
    }

    /// An array of the type asked for and of this shape.
    fn checked<T: Element>(
        &self,
        name: &str,
        shape: &[Option<usize>],
    ) -> Result<&StoredTensor<'a>, TensorError> {
        let expected = || {
            let extents = shape.iter().map(|extent| extent.map_or("any".to_owned(), |n| n.to_string()));
            format!("{} of shape [{}]", T::TYPE.name(), extents.collect::<Vec<_>>().join(", "))
        };
        let Some(tensor) = self.find(name) else {
            return Err(TensorError::new(name, "nothing", expected()));
        };
        let fits = tensor.shape.len() == shape.len()
            && tensor.shape.iter().zip(shape).all(|(&found, wanted)| wanted.is_none_or(|n| n == found));
        if tensor.kind != T::TYPE || !fits {
            let found = format!("{} of shape {:?}", tensor.kind.name(), tensor.shape);
            return Err(TensorError::new(name, found, expected()));
        }
        Ok(tensor)
    }

    /// A list of as many values as there are items.
    pub(crate) fn per_item<T: Element + Pod>(&self, name: &str) -> Result<Array<T>, TensorError> {
        self.array(name, &[Some(self.num_items)])
    }

    /// Ends of `num_rows` rows (any number if none is given) that share out `len` values: ascending from 0 to `len`.
    pub(crate) fn offsets(
        &self,
        name: &str,
        num_rows: Option<usize>,
        len: usize,
    ) -> Result<Array<u64>, TensorError> {
        let offsets: Array<u64> = self.array(name, &[num_rows.map(|rows| rows + 1)])?;
        let ends = (offsets.first(), offsets.last());
        if ends != (Some(&0), Some(&(len as u64))) {
            let found = format!("{} to {}", show(ends.0), show(ends.1));
            return Err(TensorError::new(name, found, format!("offsets from 0 to {len}")));
        }
        if let Some(at) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            let found = format!("{} before {} at place {at}", offsets[at], offsets[at + 1]);
            return Err(TensorError::new(name, found, "ascending offsets"));
        }
        Ok(offsets)
    }

    /// Rows of item indices, each strictly ascending and below the number of items.
    pub(crate) fn item_rows(
        &self,
        offsets_name: &str,
        items_name: &str,
        num_rows: Option<usize>,
    ) -> Result<(Array<u64>, Array<u32>), TensorError> {
        let items: Array<u32> = self.array(items_name, &[None])?;
        let offsets = self.offsets(offsets_name, num_rows, items.len())?;
        let values: &[u32] = &items;
        if let Some(at) = values.par_iter().position_first(|&item| item as usize >= self.num_items) {
            let expected = format!("items below {}", self.num_items);
            return Err(TensorError::new(items_name, format!("item {} at place {at}", values[at]), expected));
        }
        let is_ascending = |row: &[u64]| values[row[0] as usize..row[1] as usize].is_sorted_by(|a, b| a < b);
        match offsets.par_windows(2).position_first(|row| !is_ascending(row)) {
            Some(row) => Err(TensorError::new(
                items_name,
                format!("row {row} out of order"),
                "ascending items in every row",
            )),
            None => Ok((offsets, items)),
        }
    }
}

fn copied<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(T::from_bytes).collect()
}

fn check_sound<T: Element>(name: &str, values: &[T]) -> Result<(), TensorError> {
    match values.par_iter().position_first(|value| !value.is_sound()) {
        Some(at) => {
            let found = format!("NaN or an infinite value at place {at}");
            Err(TensorError::new(name, found, "finite numbers"))
        }
        None => Ok(()),
    }
}

fn show(value: Option<&u64>) -> String {
    value.map_or("nothing".to_owned(), ToString::to_string)
}

/// What each item of a history adds to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// One a place of the history, oldest first; 0 where the item does not count.
    pub of_history: Vec<f64>,
    /// What does not come from any item of the history.
    pub base: f64,
}

impl Shares {
    /// A score that does not depend on the history item by item.
    pub fn of_none(history: &[ItemIndex], score: f64) -> Self {
        Shares { of_history: vec![0.0; history.len()], base: score }
    }

    /// `share` of every distinct item, at its newest place.
    pub(crate) fn of_distinct(history: &[ItemIndex], share: impl Fn(ItemIndex) -> f64) -> Self {
        let is_newest = |at: usize| !history[at + 1..].contains(&history[at]);
        let share = |at: usize| if is_newest(at) { share(history[at]) } else { 0.0 };
        Shares { of_history: (0..history.len()).map(share).collect(), base: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(tensors: &[Tensor<'_>]) -> Vec<(String, TensorType, Vec<usize>, Vec<u8>)> {
        let bytes = |tensor: &Tensor<'_>| {
            let mut bytes = Vec::new();
            let outcome = tensor.write(&mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            outcome.map(|()| bytes).unwrap()
        };
        tensors.iter().map(|t| (t.name.to_owned(), t.kind, t.shape.clone(), bytes(t))).collect()
    }

    fn views(stored: &[(String, TensorType, Vec<usize>, Vec<u8>)]) -> StoredTensors<'_> {
        let view = |(name, kind, shape, bytes): &'_ (String, TensorType, Vec<usize>, Vec<u8>)| {
            (name.clone(), *kind, shape.clone(), bytes.clone())
        };
        let tensors = stored.iter().map(|tensor| {
            let (name, kind, shape, _) = view(tensor);
            (name, StoredTensor { kind, shape, bytes: &tensor.3 })
        });
        StoredTensors::new(tensors.collect()).with_num_items(3)
    }

    #[test]
    fn values_come_back_and_what_does_not_fit_is_named() {
        let numbers: Vec<f32> = (0..40_000).map(|at| at as f32 * 0.5 - 7.0).collect();
        let stored = stored(&[
            Tensor::list("numbers", &numbers),
            Tensor::new("pairs", &[3, 2], vec![1u32, 2, 3, 4, 5, 6]),
            Tensor::list("odd", vec![1.0f64, f64::NAN]),
        ]);
        let views = views(&stored);
        assert_eq!(views.values::<f32>("numbers", &[None]).unwrap(), numbers);
        assert_eq!(views.values::<u32>("pairs", &[Some(3), None]).unwrap(), [1, 2, 3, 4, 5, 6]);
        let message = |outcome: Result<Vec<f64>, TensorError>| outcome.unwrap_err().to_string();
        assert_eq!(
            message(views.values("pairs", &[Some(3), Some(2)])),
            "tensor 'pairs': expected F64 of shape [3, 2], found U32 of shape [3, 2]"
        );
        assert!(message(views.values("odd", &[None])).contains("NaN or an infinite value at place 1"));
        assert!(message(views.values("none", &[None])).contains("found nothing"));
    }

    #[test]
    fn rows_must_be_rows() {
        let rows = |offsets: &[u64], items: &[u32]| {
            let stored =
                stored(&[Tensor::list("ends", offsets.to_vec()), Tensor::list("items", items.to_vec())]);
            let rows = views(&stored).item_rows("ends", "items", Some(2));
            rows.map(|(ends, items)| (ends.to_vec(), items.to_vec())).map_err(|error| error.to_string())
        };
        assert_eq!(rows(&[0, 2, 3], &[0, 2, 1]).unwrap(), (vec![0, 2, 3], vec![0, 2, 1]));
        for (offsets, items, part) in [
            (&[0, 2, 3][..], &[0, 3, 1][..], "item 3 at place 1"),
            (&[0, 2, 2], &[0, 2, 1], "0 to 2"),
            (&[0, 4, 3], &[0, 2, 1], "4 before 3"),
            (&[0, 3], &[0, 1, 2], "shape [2]"),
            (&[0, 2, 3], &[2, 0, 1], "row 0 out of order"),
            (&[], &[], "shape [0]"),
        ] {
            let message = rows(offsets, items).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
