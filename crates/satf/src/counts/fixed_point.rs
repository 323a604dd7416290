//! Weights as integers.

/// The integer that stands for a weight of 1. A sum of 64 bits has room for $2^{45}$ such weights.
pub(crate) const UNIT: u64 = 1 << 18;

/// What a pair weighs by the position of its later item, for `len` positions: $(t + 1)^{-\kappa}$ at position $t$ (from 0), rounded to
/// the nearest multiple of $1 / \text{UNIT}$.
///
/// The weight depends on what was known when the later item came, never on what came after it: a longer history leaves the weights of its
/// older pairs as they are. A user with a thousand items still does not outvote a hundred users with ten.
pub(crate) fn position_weights(power: f64, len: usize) -> Vec<u64> {
    (0..len).map(|position| ((position as f64 + 1.0).powf(-power) * UNIT as f64).round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_fall_with_the_position() {
        assert_eq!(position_weights(0.0, 3), [UNIT; 3]);
        assert_eq!(position_weights(1.0, 4), [UNIT, UNIT / 2, UNIT / 3, UNIT / 4]);
        assert!(position_weights(0.25, 100_000).is_sorted_by(|one, next| one >= next));
    }
}
