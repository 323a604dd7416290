//! The two precisions everything here is written for.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// `f32` or `f64`.
pub trait Real:
    faer::traits::RealField
    + Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// Largest relative error of one rounding.
    const UNIT_ROUNDOFF: f64;

    /// The nearest value.
    fn of(value: f64) -> Self;

    /// The value in double precision, exactly.
    fn double(self) -> f64;
}

impl Real for f32 {
    const UNIT_ROUNDOFF: f64 = f32::EPSILON as f64 / 2.0;

    fn of(value: f64) -> Self {
        value as f32
    }

    fn double(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

    fn of(value: f64) -> Self {
        value
    }

    fn double(self) -> f64 {
        self
    }
}
