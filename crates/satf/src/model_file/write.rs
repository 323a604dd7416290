//! Model files out.

use std::cmp::Reverse;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Map, json};

use super::{CHECKSUM_AT, CHECKSUM_DIGITS, FORMAT, FORMAT_VERSION, HEADER_START};
use super::{Events, Manifest, ModelFileError, catalog};
use crate::data::write_atomically;
use crate::interactions::Ids;
use crate::models::{Recommender, Tensor};

/// Writes a model, whole or not at all.
pub(crate) fn write(
    path: &Path,
    manifest: &Manifest,
    items: &Ids,
    item_counts: &[u32],
    model: &dyn Recommender,
    events: Option<&Events>,
) -> Result<(), ModelFileError> {
    let mut tensors = tensors(items, item_counts, model);
    let covered = tensors.len();
    tensors.extend(events.map(Events::tensors).unwrap_or_default());
    let written = write_atomically(path, |writer| write_to(writer, manifest, &tensors, covered));
    written.map_err(|source| ModelFileError::Write { path: path.to_owned(), source })
}

/// The bytes of a model file.
pub(crate) fn to_bytes(
    manifest: &Manifest,
    items: &Ids,
    item_counts: &[u32],
    model: &dyn Recommender,
    events: Option<&Events>,
) -> Result<Vec<u8>, ModelFileError> {
    let mut tensors = tensors(items, item_counts, model);
    let covered = tensors.len();
    tensors.extend(events.map(Events::tensors).unwrap_or_default());
    let mut bytes = Cursor::new(Vec::new());
    let written = write_to(&mut bytes, manifest, &tensors, covered);
    written.map_err(|source| ModelFileError::Write { path: "memory".into(), source })?;
    Ok(bytes.into_inner())
}

/// Writes a whole file; the checksum covers the first so many tensors.
fn write_to(
    writer: &mut (impl Write + Seek),
    manifest: &Manifest,
    tensors: &[Tensor<'_>],
    covered: usize,
) -> io::Result<()> {
    let header = header(manifest, tensors)?;
    let mut hasher = blake3::Hasher::new();
    let mut put = |bytes: &[u8]| -> io::Result<()> {
        hasher.update(bytes);
        writer.write_all(bytes)
    };
    put(&(header.len() as u64).to_le_bytes())?;
    put(&header)?;
    for tensor in &tensors[..covered] {
        tensor.write(&mut put)?;
    }
    // The manifest has their checksum.
    for tensor in &tensors[covered..] {
        tensor.write(&mut |bytes| writer.write_all(bytes))?;
    }
    writer.seek(SeekFrom::Start(CHECKSUM_AT as u64))?;
    writer.write_all(hasher.finalize().to_hex().as_bytes())
}

/// All arrays of a file but those of its events, in their order: wide values first, as safetensors has it, so that every array begins where its
/// values may lie.
pub(crate) fn tensors<'a>(
    items: &'a Ids,
    item_counts: &'a [u32],
    model: &'a dyn Recommender,
) -> Vec<Tensor<'a>> {
    let mut tensors = catalog::tensors(&catalog::ITEMS, items);
    tensors.push(Tensor::list("item_counts", item_counts));
    tensors.extend(model.tensors());
    tensors.sort_by_key(|tensor| (Reverse(tensor.kind.size()), tensor.name));
    tensors
}

/// The header, zeros in place of the checksum, padded with spaces to a multiple of eight bytes.
fn header(manifest: &Manifest, tensors: &[Tensor<'_>]) -> io::Result<Vec<u8>> {
    let metadata = json!({
        "checksum": "0".repeat(CHECKSUM_DIGITS),
        "format": FORMAT,
        "format_version": FORMAT_VERSION.to_string(),
        "manifest": serde_json::to_string(manifest)?,
    });
    let mut header = Map::new();
    header.insert("__metadata__".to_owned(), metadata);
    let mut end = 0;
    for tensor in tensors {
        let start = end;
        end += tensor.num_bytes();
        let place =
            json!({ "dtype": tensor.kind.name(), "shape": tensor.shape, "data_offsets": [start, end] });
        header.insert(tensor.name.to_owned(), place);
    }
    let mut header = serde_json::to_vec(&header)?;
    debug_assert!(header.starts_with(HEADER_START.as_bytes()));
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}
