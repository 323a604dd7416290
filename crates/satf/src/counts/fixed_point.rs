//! Weights as integers.

/// The integer that stands for a weight of 1. A sum of 64 bits, one of them for the sign, has room for $2^{45}$ such weights, and no
/// weight is above 1.
pub(crate) const UNIT: u64 = 1 << 18;

/// Most events that are counted together with a window of up to 8,192: fewer than $2^{32}$, so that all sums have room for them. With a
/// wider window it is $2^{45}$ divided by the window.
pub const MOST_EVENTS: usize = (1 << 32) - 1;

/// Every event is the later one of at most `window` pairs, and all of them may be of one and the same two items.
pub(crate) fn most_events(window: usize) -> usize {
    MOST_EVENTS.min((1 << 45) / window.max(1))
}

/// What a pair weighs by the position of its later item, for `len` positions: $(t + 1)^{-\kappa}$ at position $t$ (from 0), rounded to
/// the nearest multiple of $1 / \text{UNIT}$.
///
/// The weight depends on what was known when the later item came, never on what came after it: a longer history leaves the weights of its
/// older pairs as they are. A user with a thousand items still does not outvote a hundred users with ten.
pub(crate) fn position_weights(power: f64, len: usize) -> Vec<u64> {
    let weight = |position: usize| (position as f64 + 1.0).powf(-power).min(1.0);
    (0..len).map(|position| (weight(position) * UNIT as f64).round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_fall_with_the_position() {
        assert_eq!(position_weights(0.0, 3), [UNIT; 3]);
        assert_eq!(position_weights(1.0, 4), [UNIT, UNIT / 2, UNIT / 3, UNIT / 4]);
        assert!(position_weights(0.25, 100_000).is_sorted_by(|one, next| one >= next));
        // Whatever the power, none is above 1.
        assert_eq!([position_weights(-2.0, 3), position_weights(f64::NAN, 3)], [[UNIT; 3]; 2]);
    }

    #[test]
    fn sums_have_room_for_as_many_events_as_are_taken() {
        for window in [1, 50, 8192, 8193, 100_000] {
            let pairs = most_events(window) as u128 * window as u128;
            assert!(pairs * u128::from(UNIT) <= 1 << 63, "{window}");
        }
        assert_eq!((most_events(8192), most_events(0)), (MOST_EVENTS, MOST_EVENTS));
    }
}
