//! Values of a model that did not fit into memory: in files without names, which vanish with the process.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use memmap2::Mmap;

use super::array::Array;
use super::tensors::Element;
use crate::data::nameless_file;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// A finished file of values as they lie in memory. Single values are read where they lie; whoever goes through all of them reads piece by
/// piece, so that they never count as memory of the process.
pub(super) struct Spilled {
    file: Mutex<File>,
    map: Mmap,
}

impl Spilled {
    /// All bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Some values, read from the file.
    pub(super) fn read<T: Pod>(&self, range: Range<usize>, values: &mut [T]) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start((range.start * size_of::<T>()) as u64))?;
        file.read_exact(bytemuck::cast_slice_mut(values))
    }
}

/// Writes values to a new file.
pub(super) struct SpillWriter<T> {
    writer: BufWriter<File>,
    is_empty: bool,
    values: PhantomData<T>,
}

impl<T: Element + Pod> SpillWriter<T> {
    pub(super) fn new() -> io::Result<Self> {
        let writer = BufWriter::with_capacity(BUFFER, nameless_file()?);
        Ok(SpillWriter { writer, is_empty: true, values: PhantomData })
    }

    pub(super) fn extend(&mut self, values: &[T]) -> io::Result<()> {
        self.is_empty &= values.is_empty();
        self.writer.write_all(bytemuck::cast_slice(values))
    }

    /// All values. Nobody can change them any more.
    pub(super) fn finish(self) -> io::Result<Array<T>> {
        if self.is_empty {
            return Ok(Vec::new().into());
        }
        let file = self.writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        // SAFETY: the bytes must not change under the map. The file has no name and is open here alone, in a writer that ends with this
        // function; all that is done with it afterwards is reading. Any bytes are values of the types they are cast to.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Array::spilled(Arc::new(Spilled { file: Mutex::new(file), map })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_where_they_lie_and_piece_by_piece() {
        let mut writer = SpillWriter::<u32>::new().unwrap();
        writer.extend(&[1, 2, 3]).unwrap();
        writer.extend(&(4..100_000).collect::<Vec<u32>>()).unwrap();
        let array = writer.finish().unwrap();
        assert!(array.is_spilled() && array.is_same(&array.clone()));
        assert!(array.iter().copied().eq(1..100_000));
        let mut some = Vec::new();
        array.read(50_000..50_003, &mut some).unwrap();
        assert_eq!(some, [50_001, 50_002, 50_003]);
        let mut changed = array.clone();
        changed.make_mut()[0] = 7;
        assert_eq!((changed[0], array[0]), (7, 1));
        assert!(SpillWriter::<f32>::new().unwrap().finish().unwrap().is_empty());
    }
}
