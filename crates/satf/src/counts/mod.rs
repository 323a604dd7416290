//! What is counted of a log: integers that add up.
//!
//! For every ordered pair of items and every class of distance the sum of weights of its occurrences, in fixed point. Integers can be added in any order and taken away again, so a log may be counted by any number of threads,
//! in any parts, event by event, and an event, a user or an item can be forgotten: what is left is, to the bit, what would have been
//! counted without it. Everything that a key decides, such as how fast evidence falls with distance, is applied to the sums afterwards.
//!
//! Whole histories are counted row by row, in memory that does not grow with the number of pairs. [`Counts`] are kept, and change with every event.

mod distance;
mod fixed_point;
mod kept;
mod kept_row;
mod pair_rows;
mod places;
mod row_counter;
mod vocabulary;

pub(crate) use distance::{AT_ONCE, CLASSES, DistanceSums};
pub use fixed_point::MOST_EVENTS;
pub use kept::{Counts, CountsError, CountsOptions};

pub(crate) use fixed_point::{UNIT, most_events, position_weights};
pub(crate) use pair_rows::PairRows;
pub(crate) use places::Places;
pub(crate) use row_counter::{PairCounter, RowCounter, Sums};

/// What counting needs to know beforehand; all other keys are applied to what was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counting {
    /// How far apart two positions of one history may be to be a pair.
    pub(crate) window: usize,
    /// Exponent $\kappa$ of the fall of a pair's weight with the position of its later item.
    pub(crate) user_power: f64,
}
