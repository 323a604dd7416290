//! Ids as arrays.

use crate::interactions::Ids;
use crate::models::{Array, StoredTensors, Tensor, TensorError};

/// Names of the arrays of a catalogue: integers, or the bytes of texts and where each begins and ends.
pub(super) struct Names {
    pub(super) integers: &'static str,
    pub(super) bytes: &'static str,
    pub(super) offsets: &'static str,
}

/// The catalogue of items.
pub(super) const ITEMS: Names =
    Names { integers: "item_ids", bytes: "item_id_bytes", offsets: "item_id_offsets" };

/// The arrays of a catalogue.
pub(super) fn tensors<'a>(names: &Names, catalog: &'a Ids) -> Vec<Tensor<'a>> {
    match catalog {
        Ids::Integers(ids) => vec![Tensor::list(names.integers, ids)],
        Ids::Texts(ids) => {
            let mut bytes: Vec<u8> = Vec::new();
            let mut offsets = vec![0u64];
            for id in ids {
                bytes.extend_from_slice(id.as_bytes());
                offsets.push(bytes.len() as u64);
            }
            vec![Tensor::list(names.bytes, bytes), Tensor::list(names.offsets, offsets)]
        }
    }
}

/// The catalogue in these arrays: distinct ids, ascending.
pub(super) fn restore(names: &Names, tensors: &StoredTensors<'_>) -> Result<Ids, TensorError> {
    let out_of_order = |name: &str, at: usize| {
        TensorError::new(name, format!("id {} out of order", at + 1), "ascending, distinct ids")
    };
    if tensors.find(names.integers).is_some() {
        let ids: Vec<i64> = tensors.values(names.integers, &[None])?;
        return match ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(at) => Err(out_of_order(names.integers, at)),
            None => Ok(Ids::Integers(ids)),
        };
    }
    let bytes: Array<u8> = tensors.array(names.bytes, &[None])?;
    let offsets = tensors.offsets(names.offsets, None, bytes.len())?;
    let ids = offsets
        .windows(2)
        .enumerate()
        .map(|(at, ends)| {
            let text = std::str::from_utf8(&bytes[ends[0] as usize..ends[1] as usize]);
            text.map(Box::from)
                .map_err(|_| TensorError::new(names.bytes, format!("id {at} in another encoding"), "UTF-8"))
        })
        .collect::<Result<Vec<Box<str>>, _>>()?;
    match ids.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => Err(out_of_order(names.bytes, at)),
        None => Ok(Ids::Texts(ids)),
    }
}
