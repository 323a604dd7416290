//! Item ids as arrays.

use crate::interactions::Ids;
use crate::models::{Array, StoredTensors, Tensor, TensorError};

const INTEGERS: &str = "item_ids";
const BYTES: &str = "item_id_bytes";
const OFFSETS: &str = "item_id_offsets";

/// The arrays of a catalogue.
pub(super) fn tensors(catalog: &Ids) -> Vec<Tensor<'_>> {
    match catalog {
        Ids::Integers(ids) => vec![Tensor::list(INTEGERS, ids)],
        Ids::Texts(ids) => {
            let mut bytes: Vec<u8> = Vec::new();
            let mut offsets = vec![0u64];
            for id in ids {
                bytes.extend_from_slice(id.as_bytes());
                offsets.push(bytes.len() as u64);
            }
            vec![Tensor::list(BYTES, bytes), Tensor::list(OFFSETS, offsets)]
        }
    }
}

/// The catalogue in these arrays: distinct ids, ascending.
pub(super) fn restore(tensors: &StoredTensors<'_>) -> Result<Ids, TensorError> {
    let out_of_order = |name: &str, at: usize| {
        TensorError::new(name, format!("id {} out of order", at + 1), "ascending, distinct ids")
    };
    if tensors.find(INTEGERS).is_some() {
        let ids: Vec<i64> = tensors.values(INTEGERS, &[None])?;
        return match ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(at) => Err(out_of_order(INTEGERS, at)),
            None => Ok(Ids::Integers(ids)),
        };
    }
    let bytes: Array<u8> = tensors.array(BYTES, &[None])?;
    let offsets = tensors.offsets(OFFSETS, None, bytes.len())?;
    let ids = offsets
        .windows(2)
        .enumerate()
        .map(|(at, ends)| {
            let text = std::str::from_utf8(&bytes[ends[0] as usize..ends[1] as usize]);
            text.map(Box::from)
                .map_err(|_| TensorError::new(BYTES, format!("id {at} in another encoding"), "UTF-8"))
        })
        .collect::<Result<Vec<Box<str>>, _>>()?;
    match ids.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => Err(out_of_order(BYTES, at)),
        None => Ok(Ids::Texts(ids)),
    }
}
