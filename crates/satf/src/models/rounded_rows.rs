//! Weights of pairs in fewer bytes: half precision, or eight bits and a scale a row ([`super::quantization`]).
//!
//! Rows are rounded, written and read one by one, so that rows in temporary files take no more memory than those that are not.

use std::io;

use half::f16;

use super::array::Array;
use super::item_rows::ItemRows;
use super::quantization::{Quantization, from_half, from_int8, to_half, to_int8};
use super::spilled::SpillWriter;
use super::tensors::{Element, StoredTensors, Tensor, TensorError, TensorType};

/// Names of the weights in a file, and of the scales of rows.
pub(super) type WeightNames = [&'static str; 2];

/// Bytes that are handed on at once.
const BYTES_AT_ONCE: usize = 1 << 18;

/// A row as it is once it was stored.
fn round(quantization: Quantization, row: &mut [f32]) {
    let rounded = match quantization {
        Quantization::None => return,
        Quantization::Half => from_half(&to_half(row)),
        Quantization::Int8 => {
            let (codes, scales) = to_int8(row, row.len());
            from_int8(&codes, &scales)
        }
    };
    row.copy_from_slice(&rounded);
}

/// Rounded weights, or why there are none.
pub(super) fn rounded(rows: &ItemRows, quantization: Quantization) -> Result<Array<f32>, &'static str> {
    let mut is_finite = true;
    let mut round = |row: &mut [f32]| {
        round(quantization, row);
        is_finite &= row.iter().all(|weight| weight.is_finite());
    };
    let weights = if rows.weights().is_spilled() {
        let mut spilled = || -> io::Result<Array<f32>> {
            let mut weights = SpillWriter::new()?;
            rows.each_row(|row| {
                round(row);
                weights.extend(row)
            })?;
            weights.finish()
        };
        spilled().map_err(|_| "there is no room for it among the temporary files")?
    } else {
        let mut weights = Vec::with_capacity(rows.num_pairs());
        // What is in memory can be read.
        let _ = rows.each_row(|row| {
            round(row);
            weights.extend_from_slice(row);
            Ok(())
        });
        weights.into()
    };
    if is_finite {
        Ok(weights)
    } else {
        Err("its weights are too large for half precision; int8 has no such limit")
    }
}

/// The weights as they are stored.
pub(super) fn tensors(rows: &ItemRows, quantization: Quantization, names: WeightNames) -> Vec<Tensor<'_>> {
    let [name, scales_name] = names;
    let shape = [rows.num_pairs()];
    match quantization {
        Quantization::None => vec![Tensor::array(name, rows.weights())],
        Quantization::Half => {
            let write = |sink: &mut dyn FnMut(&[u8]) -> io::Result<()>| write_rows(rows, to_half, sink);
            vec![Tensor::written(name, &shape, TensorType::F16, write)]
        }
        Quantization::Int8 => {
            let codes = |row: &[f32]| to_int8(row, row.len()).0;
            let scales = |row: &[f32]| vec![to_int8(row, row.len()).1.first().copied().unwrap_or(0.0)];
            let write_codes =
                move |sink: &mut dyn FnMut(&[u8]) -> io::Result<()>| write_rows(rows, codes, sink);
            let write_scales =
                move |sink: &mut dyn FnMut(&[u8]) -> io::Result<()>| write_rows(rows, scales, sink);
            vec![
                Tensor::written(name, &shape, TensorType::I8, write_codes),
                Tensor::written(scales_name, &[rows.num_items()], TensorType::F32, write_scales),
            ]
        }
    }
}

/// Hands on what `values` makes of every row.
fn write_rows<T: Element>(
    rows: &ItemRows,
    values: impl Fn(&[f32]) -> Vec<T>,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(2 * BYTES_AT_ONCE);
    rows.each_row(|row| {
        for value in values(row) {
            value.append_to(&mut bytes);
        }
        if bytes.len() >= BYTES_AT_ONCE {
            sink(&bytes)?;
            bytes.clear();
        }
        Ok(())
    })?;
    sink(&bytes)
}

/// Weights from a file in single precision, and how they were stored, for rows that end there.
pub(super) fn stored(
    tensors: &StoredTensors<'_>,
    offsets: &[u64],
    names: WeightNames,
) -> Result<(Array<f32>, Quantization), TensorError> {
    let [name, scales_name] = names;
    let shape = [offsets.last().map(|&end| end as usize)];
    match tensors.find(name).map(|tensor| tensor.kind) {
        Some(TensorType::F16) => {
            let halves: Vec<f16> = tensors.values(name, &shape)?;
            Ok((from_half(&halves).into(), Quantization::Half))
        }
        Some(TensorType::I8) => {
            let codes: Array<i8> = tensors.array(name, &shape)?;
            let scales: Array<f32> = tensors.per_item(scales_name)?;
            let mut weights = Vec::with_capacity(codes.len());
            for (ends, &scale) in offsets.windows(2).zip(scales.iter()) {
                let codes = &codes[ends[0] as usize..ends[1] as usize];
                weights.extend(codes.iter().map(|&code| f32::from(code) * scale));
            }
            if weights.iter().any(|weight| !weight.is_finite()) {
                return Err(TensorError::new(scales_name, "values that overflow", "finite numbers"));
            }
            Ok((weights.into(), Quantization::Int8))
        }
        _ => Ok((tensors.array(name, &shape)?, Quantization::None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;
    use crate::models::item_rows::{RowChunk, RowWriter};

    /// Rows of different lengths, some of them empty.
    fn rows(is_spilled: bool, largest: f32) -> ItemRows {
        let mut chunk = RowChunk::default();
        for row in 0..50u32 {
            for item in 0..row * 7 % 11 {
                chunk.push(ItemIndex(item), largest / (row as f32 + item as f32 + 1.3));
            }
            chunk.end_row();
        }
        let mut writer = RowWriter::new(50, chunk.len(), is_spilled).unwrap();
        writer.push(&chunk).unwrap();
        writer.finish().unwrap().0
    }

    #[test]
    fn rounding_is_near_and_the_same_wherever_weights_are() {
        for quantization in [Quantization::Half, Quantization::Int8] {
            let exact = rows(false, 3.0);
            let [kept, spilled] =
                [false, true].map(|is_spilled| rows(is_spilled, 3.0).rounded(quantization).unwrap());
            assert!(kept == spilled && kept.weights() != exact.weights());
            assert!(spilled.weights().is_spilled());
            assert_eq!(kept.rounded(quantization).unwrap(), kept);
            for row in (0..50).map(ItemIndex) {
                let ((_, exact), (_, rounded)) = (exact.row(row), kept.row(row));
                let largest = exact.iter().copied().fold(0f32, f32::max);
                for (exact, rounded) in exact.iter().zip(rounded) {
                    assert!((exact - rounded).abs() <= largest / 200.0, "{exact} {rounded}");
                }
            }
        }
        assert!(rows(false, 1e6).rounded(Quantization::Half).is_err());
        assert!(rows(false, 1e6).rounded(Quantization::Int8).is_ok());
    }
}
