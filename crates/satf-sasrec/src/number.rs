//! The two precisions the network is written for, and the loops over rows that have to be fast.
//!
//! Models are trained in single precision. Double precision is there for the tests: finite differences tell a right gradient
//! from a wrong one to seven digits in it.

// Code that is not inlined is not compiled for the vector registers that its caller was dispatched to.
#![allow(clippy::inline_always)]

use satf::linalg::Real;

/// Values a loop works on at once: enough for the widest registers, and the order of every sum.
const LANES: usize = 16;

/// `f32` or `f64`.
pub(crate) trait Number: Real {
    /// Replaces every value $x$ by $e^{x - \mathrm{shift}}$ and gives the sum. The shift is at least the largest value.
    fn exp_shifted(values: &mut [Self], shift: Self) -> Self;

    /// Replaces every value $x_i$ by $e^{x_i - \mathrm{shift}_i}$ and adds it to sum $i$. No value is above its shift.
    fn exp_each(values: &mut [Self], shifts: &[Self], sums: &mut [Self]);

    /// The square root.
    fn root(self) -> Self;
}

impl Number for f32 {
    fn exp_shifted(values: &mut [f32], shift: f32) -> f32 {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let mut sums = [0f32; LANES];
                let (chunks, rest) = values.as_chunks_mut::<LANES>();
                for chunk in chunks {
                    for (value, sum) in chunk.iter_mut().zip(&mut sums) {
                        *value = exp_of_negative(*value - shift);
                        *sum += *value;
                    }
                }
                for (value, sum) in rest.iter_mut().zip(&mut sums) {
                    *value = exp_of_negative(*value - shift);
                    *sum += *value;
                }
                sums.iter().sum()
            },
        )
    }

    fn exp_each(values: &mut [f32], shifts: &[f32], sums: &mut [f32]) {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for ((value, &shift), sum) in values.iter_mut().zip(shifts).zip(sums) {
                    *value = exp_of_negative(*value - shift);
                    *sum += *value;
                }
            },
        );
    }

    fn root(self) -> f32 {
        self.sqrt()
    }
}

impl Number for f64 {
    fn exp_shifted(values: &mut [f64], shift: f64) -> f64 {
        let mut sum = 0.0;
        for value in values {
            *value = (*value - shift).exp();
            sum += *value;
        }
        sum
    }

    fn exp_each(values: &mut [f64], shifts: &[f64], sums: &mut [f64]) {
        for ((value, &shift), sum) in values.iter_mut().zip(shifts).zip(sums) {
            *value = (*value - shift).exp();
            *sum += *value;
        }
    }

    fn root(self) -> f64 {
        self.sqrt()
    }
}

/// $e^x$ for $x \le 0$ with an error of at most two units in the last place; 0 below -87, where single precision ends.
///
/// $e^x = 2^k e^r$ with the whole number $k$ nearest to $x / \ln 2$ and $|r| \le \ln 2 / 2$, for which the series up to
/// $r^7$ is enough. There is no branch and no call in it: a loop over it runs in vector registers.
#[inline(always)]
fn exp_of_negative(x: f32) -> f32 {
    /// ln 2 in two parts: the first has so few digits that its product with $k$ is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    /// Added and taken away again, it rounds to a whole number, which stands in the low bits meanwhile.
    const ROUND: f32 = 12_582_912.0;

    let x = if x < -87.0 { -87.0 - 1.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut series = 1.0 / 5040.0;
    for term in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + term;
    }
    // 2^k by its bits; k is at least -127, which gives 0.
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    series * f32::from_bits(exponent << 23)
}

/// The largest value; negative infinity of none.
#[inline(always)]
pub(crate) fn largest<T: Number>(values: &[T]) -> T {
    let mut lanes = [T::of(f64::NEG_INFINITY); LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    let raise = |lane: &mut T, value: T| {
        if value > *lane {
            *lane = value;
        }
    };
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, &value)| raise(lane, value));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, &value)| raise(lane, value));
    let [mut most, others @ ..] = lanes;
    for value in others {
        raise(&mut most, value);
    }
    most
}

/// The sum of `term(i)` for all $i$ below `len`, in an order that suits vector registers and is always the same.
#[inline(always)]
pub(crate) fn sum_of<T: Number>(len: usize, term: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::of(0.0); LANES];
    let whole = len - len % LANES;
    for first in (0..whole).step_by(LANES) {
        for (at, lane) in lanes.iter_mut().enumerate() {
            *lane += term(first + at);
        }
    }
    for (at, lane) in (whole..len).zip(&mut lanes) {
        *lane += term(at);
    }
    lanes.into_iter().fold(T::of(0.0), |sum, lane| sum + lane)
}

/// The inner product of two rows.
#[inline(always)]
pub(crate) fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    sum_of(a.len().min(b.len()), |at| a[at] * b[at])
}

/// `to += factor * from`, value by value.
#[inline(always)]
pub(crate) fn add_scaled<T: Number>(to: &mut [T], from: &[T], factor: T) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from * factor);
}

/// Makes room for `len` values, and no more. Where there is too little, the values are lost: their memory goes before the larger one
/// comes, so that both are never there together.
pub(crate) fn make_room<T>(values: &mut Vec<T>, len: usize) {
    if values.capacity() < len {
        *values = Vec::new();
        values.reserve_exact(len);
    }
}

#[cfg(test)]
// Values are equal to the last bit or the test fails.
#[allow(clippy::float_cmp)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_the_last_digits() {
        let mut worst = 0f64;
        for at in 0..1_000_000 {
            let x = -87.0 * (at as f32 / 1_000_000.0);
            let right = f64::from(x).exp();
            worst = worst.max((f64::from(exp_of_negative(x)) - right).abs() / right);
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst}");
        assert_eq!(exp_of_negative(0.0), 1.0);
        for x in [-88.0, -1e4, -1e30, f32::NEG_INFINITY] {
            assert_eq!(exp_of_negative(x), 0.0, "{x}");
        }
        assert!(exp_of_negative(f32::NAN).is_nan());
    }

    #[test]
    fn loops_in_lanes_equal_the_obvious_ones() {
        for len in [0, 1, 15, 16, 17, 100] {
            let values: Vec<f64> = (0..len).map(|at| f64::from(at * 37 % 23) - 9.0).collect();
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(largest(&values), most);
            assert_eq!(sum_of(values.len(), |at| values[at]), values.iter().sum::<f64>());
            let single: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            let (mut fast, mut slow) = (single.clone(), values.clone());
            let sums = (f32::exp_shifted(&mut fast, most as f32), f64::exp_shifted(&mut slow, most));
            assert!((f64::from(sums.0) - sums.1).abs() <= 1e-6 * sums.1);
            assert!(fast.iter().zip(&slow).all(|(&fast, slow)| (f64::from(fast) - slow).abs() <= 1e-6));
        }
    }
}
