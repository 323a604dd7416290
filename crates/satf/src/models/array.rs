//! Values of a model, in memory of its own or where they lie in the file it came from.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;

use super::spilled::Spilled;
use super::tensors::Element;

/// The bytes of a file, for as long as anything refers to them.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A list of numbers that a model is made of: used as a slice, cheap to clone, never changed once it is shared.
///
/// What a model learned is in memory of its own. What comes from a file stays there ([`SharedBytes`]), and the system reads the pages
/// that are needed; only where values are not aligned, or the machine is big-endian, they are copied. What training had no memory for is in
/// a temporary file.
#[derive(Clone)]
pub struct Array<T>(Values<T>);

#[derive(Clone)]
enum Values<T> {
    Owned(Arc<Vec<T>>),
    /// Bytes of a file that can be cast, which was tried.
    Shared(SharedBytes, Range<usize>, PhantomData<T>),
    /// A temporary file.
    Spilled(Arc<Spilled>, PhantomData<T>),
}

impl<T: Element + Pod> Array<T> {
    /// The values in `bytes`, which are part of `file`, where they lie. `None` if they cannot be used there.
    pub(super) fn within(file: &SharedBytes, bytes: &[u8]) -> Option<Self> {
        if cfg!(target_endian = "big") || bytemuck::try_cast_slice::<u8, T>(bytes).is_err() {
            return None;
        }
        let whole = (**file).as_ref();
        let start = bytes.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        let range = start..start.checked_add(bytes.len())?;
        let is_part = whole.get(range.clone()).is_some_and(|part| std::ptr::eq(part, bytes));
        is_part.then_some(Array(Values::Shared(Arc::clone(file), range, PhantomData)))
    }

    /// The values, to be changed: in memory of their own and not shared from now on.
    pub(super) fn make_mut(&mut self) -> &mut [T] {
        if let Values::Shared(..) | Values::Spilled(..) = self.0 {
            self.0 = Values::Owned(Arc::new(self.to_vec()));
        }
        match &mut self.0 {
            Values::Owned(values) => Arc::make_mut(values).as_mut_slice(),
            _ => unreachable!("invariant: owned by now"),
        }
    }

    /// Copies some values. Those in a temporary file are read from it.
    pub(super) fn read(&self, range: Range<usize>, values: &mut Vec<T>) -> io::Result<()> {
        values.clear();
        if let Values::Spilled(file, _) = &self.0 {
            values.resize(range.len(), T::zeroed());
            return file.read(range, values);
        }
        values.extend_from_slice(&self[range]);
        Ok(())
    }
}

impl<T> Array<T> {
    /// The values in a temporary file.
    pub(super) fn spilled(file: Arc<Spilled>) -> Self {
        Array(Values::Spilled(file, PhantomData))
    }

    /// Whether the values are in a temporary file.
    pub(super) fn is_spilled(&self) -> bool {
        matches!(self.0, Values::Spilled(..))
    }

    /// Whether both are one and the same array, not only equal ones.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Values::Owned(a), Values::Owned(b)) => Arc::ptr_eq(a, b),
            (Values::Shared(a, a_range, _), Values::Shared(b, b_range, _)) => {
                Arc::ptr_eq(a, b) && a_range == b_range
            }
            (Values::Spilled(a, _), Values::Spilled(b, _)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<T: Element + Pod> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Values::Owned(values) => values,
            Values::Shared(file, range, _) => bytemuck::cast_slice(&(**file).as_ref()[range.clone()]),
            Values::Spilled(file, _) => bytemuck::cast_slice(file.bytes()),
        }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        Array(Values::Owned(Arc::new(values)))
    }
}

impl<T: Element + Pod> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        values.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: Element + Pod + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T> fmt::Debug for Array<T>
where
    T: Element + Pod + fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as a file has them, after `gap` other bytes.
    fn file(gap: usize, numbers: &[u32]) -> SharedBytes {
        // Values of eight bytes are aligned for those of four.
        let words = vec![0u64; (gap + 4 * numbers.len()).div_ceil(8)];
        let mut bytes = bytemuck::cast_slice::<u64, u8>(&words).to_vec();
        for (at, number) in numbers.iter().enumerate() {
            bytes[gap + 4 * at..][..4].copy_from_slice(&number.to_le_bytes());
        }
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        Arc::new(Aligned(words))
    }

    struct Aligned(Vec<u64>);

    impl AsRef<[u8]> for Aligned {
        fn as_ref(&self) -> &[u8] {
            bytemuck::cast_slice(&self.0)
        }
    }

    fn within(file: &SharedBytes, gap: usize, len: usize) -> Option<Array<u32>> {
        Array::within(file, &(**file).as_ref()[gap..gap + 4 * len])
    }

    #[test]
    fn aligned_values_are_used_where_they_lie_and_others_are_not() {
        let numbers = [7, 8, 9];
        for gap in 0..9 {
            let file = file(gap, &numbers);
            let array = within(&file, gap, 3);
            assert_eq!(array.is_some(), gap % 4 == 0 && cfg!(target_endian = "little"), "gap {gap}");
            let Some(array) = array else { continue };
            assert_eq!(&*array, numbers);
            assert!(std::ptr::addr_eq(array.as_ptr(), (*file).as_ref()[gap..].as_ptr()));
            // The file stays for as long as the array does.
            drop(file);
            assert_eq!(&*array, numbers);
        }
        let odd = [0u8; 10];
        assert!(Array::<u32>::within(&file(0, &numbers), &odd[..8]).is_none(), "of another file");
        assert!(within(&file(0, &numbers), 0, 1).is_none_or(|array| array.len() == 1));
    }

    #[test]
    fn a_change_is_made_in_memory_of_its_own() {
        let file = file(0, &[1, 2]);
        let shared = within(&file, 0, 2).unwrap_or_else(|| vec![1, 2].into());
        let mut changed = shared.clone();
        assert!(changed.is_same(&shared));
        changed.make_mut()[0] = 5;
        assert_eq!((&*changed, &*shared), (&[5, 2][..], &[1, 2][..]));
        assert!(!changed.is_same(&shared) && changed != shared);
        let owned: Array<u32> = vec![5, 2].into();
        assert!(owned == changed && !owned.is_same(&changed) && owned.is_same(&owned.clone()));
    }
}
