//! Item factors in fewer bytes.
//!
//! * Half precision: every value rounded to the nearest of its kind.
//! * Eight bits: a row $v$ becomes whole numbers $q = \mathrm{round}(v / s)$ in -127..=127 and one scale
//!   $s = \max |v| / 127$, rounded up to 16 significant bits. The products $q s$ are then exact in single precision, so
//!   that rounding a second time changes nothing: a model gives the same scores before it is stored and after.

use std::str::FromStr;

use crate::choice::{UnknownChoice, choose};
use half::f16;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// In how many bytes item factors are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantization {
    /// Single precision, four bytes per value, as learned.
    #[default]
    None,
    /// Half precision, two bytes per value.
    Half,
    /// One byte per value and a scale per row.
    Int8,
}

impl Quantization {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Quantization::None => "none",
            Quantization::Half => "half",
            Quantization::Int8 => "int8",
        }
    }
}

impl FromStr for Quantization {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        let all = [Quantization::None, Quantization::Half, Quantization::Int8];
        choose(text, all.map(|kind| (kind.name(), kind)))
    }
}

/// Values in half precision.
pub(super) fn to_half(values: &[f32]) -> Vec<f16> {
    values.par_iter().map(|&value| f16::from_f32(value)).collect()
}

/// The values behind half-precision ones.
pub(super) fn from_half(values: &[f16]) -> Vec<f32> {
    values.par_iter().map(|value| value.to_f32()).collect()
}

/// Rows of `width` values as whole numbers, and a scale a row.
pub(super) fn to_int8(values: &[f32], width: usize) -> (Vec<i8>, Vec<f32>) {
    let mut codes = vec![0i8; values.len()];
    let scales = codes
        .par_chunks_mut(width.max(1))
        .zip(values.par_chunks(width.max(1)))
        .map(|(codes, row)| {
            let scale = scale_of(row);
            for (code, &value) in codes.iter_mut().zip(row) {
                let rounded = if scale > 0.0 { (f64::from(value) / f64::from(scale)).round() } else { 0.0 };
                *code = rounded.clamp(-127.0, 127.0) as i8;
            }
            scale
        })
        .collect();
    (codes, scales)
}

/// The values behind whole numbers and scales.
pub(super) fn from_int8(codes: &[i8], scales: &[f32]) -> Vec<f32> {
    let width = codes.len() / scales.len().max(1);
    let mut values = vec![0f32; codes.len()];
    values.par_chunks_mut(width.max(1)).zip(codes.par_chunks(width.max(1))).zip(scales).for_each(
        |((row, codes), &scale)| {
            row.iter_mut().zip(codes).for_each(|(value, &code)| *value = f32::from(code) * scale);
        },
    );
    values
}

/// $\max |v| / 127$, rounded up to 16 significant bits; 0 for a row so small that its products would lose bits.
fn scale_of(row: &[f32]) -> f32 {
    const DROPPED: u32 = 8;
    let largest = row.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    let scale = (f64::from(largest) / 127.0) as f32;
    if scale < f32::MIN_POSITIVE * 256.0 {
        return 0.0;
    }
    // Positive floats ascend with their bits: adding below the last bit kept rounds up.
    let mask = (1u32 << DROPPED) - 1;
    f32::from_bits((scale.to_bits() + mask) & !mask)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rounding_twice_is_rounding_once_and_stays_near(
            values in prop::collection::vec(prop_oneof![-4f32..4.0, -1e-3f32..1e-3, Just(0f32)], 12),
            exponent in -20i32..20,
        ) {
            let values: Vec<f32> = values.iter().map(|value| value * 2f32.powi(exponent)).collect();
            let (codes, scales) = to_int8(&values, 4);
            let rounded = from_int8(&codes, &scales);
            prop_assert_eq!(&to_int8(&rounded, 4), &(codes, scales.clone()));
            for ((row, rounded), scale) in values.chunks(4).zip(rounded.chunks(4)).zip(scales) {
                for (value, rounded) in row.iter().zip(rounded) {
                    prop_assert!((value - rounded).abs() <= 0.51 * scale, "{value} {rounded} {scale}");
                }
            }
            let halves = to_half(&values);
            prop_assert_eq!(to_half(&from_half(&halves)), halves);
        }
    }

    #[test]
    fn rows_without_size_become_zero() {
        let (codes, scales) = to_int8(&[0.0, 0.0, 1e-44, -1e-44, 1.0, -0.5], 2);
        assert_eq!(codes, [0, 0, 0, 0, 127, -63]);
        assert_eq!(from_int8(&codes, &scales)[..4], [0.0; 4]);
    }
}
