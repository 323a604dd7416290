//! How many positions a tensor model has: as many as its configuration says, and no more than the log can fill.

// Formulas are not code.
#![allow(clippy::doc_markdown)]

use crate::factorize::PositionModes;
use crate::interactions::ItemIndex;
use crate::prepare::Histories;
use crate::tensor::Attention;

/// The positional modes, before anything is allocated for them.
#[derive(Clone, Debug)]
pub(super) enum Positions {
    /// Attention over all positions.
    Global {
        attention: Attention,
        /// $K$.
        positions: usize,
        /// $r_3$.
        rank: usize,
    },
    /// Attention within a window.
    Local {
        attention: Attention,
        /// $K_L$.
        window: usize,
        /// $K_S$: where the window can start.
        starts: usize,
        /// $r_3$.
        attention_rank: usize,
        /// $r_4$.
        sequences_rank: usize,
    },
}

/// Positions that are taken as they are asked for, however short histories are.
///
/// A position that no history reaches is not without effect on global attention: an occupied one looks back on it, and $C = A A^T$
/// (Eq. 8) sums over it. So $K$ shapes a model even beyond the longest history, and up to here it does so as asked.
const FREE_POSITIONS: usize = 256;

/// The most positions that a model has for histories of up to so many items.
fn most_positions(longest: usize) -> usize {
    longest.saturating_add(1).max(FREE_POSITIONS)
}

/// The positions of a model that is asked for `max_len` of them, on these histories: one more than the longest history has, or 256, is as
/// many as any model gets.
pub fn positions_on(histories: &Histories, max_len: usize) -> usize {
    let longest = histories.iter().map(<[ItemIndex]>::len).max().unwrap_or(0);
    max_len.min(most_positions(longest))
}

/// Square matrices over positions that exist at once: attention, the Gram matrix, both products with attention, and what an
/// eigendecomposition takes.
const SQUARES: u64 = 8;

/// Copies of the position weights $H$: as they are, transposed for their square, and reduced.
const WEIGHTS: u64 = 3;

impl Positions {
    /// The same for a log whose longest history has so many items: one position more than that, so that all of it still counts
    /// when it has shifted by one, or [`FREE_POSITIONS`].
    ///
    /// A start of a window that reaches no occupied position has only zeros in the tensor, so with local attention nothing but the
    /// window itself can lose by it.
    #[must_use]
    pub(super) fn bounded(&self, longest: usize) -> Positions {
        let most = most_positions(longest);
        match self {
            Positions::Global { attention, positions, rank } => {
                let positions = (*positions).min(most);
                Positions::Global { attention: attention.clone(), positions, rank: (*rank).min(positions) }
            }
            Positions::Local { attention, window, starts, attention_rank, sequences_rank } => {
                let (window, starts) = ((*window).min(most), (*starts).min(most));
                Positions::Local {
                    attention: attention.clone(),
                    window,
                    starts,
                    attention_rank: (*attention_rank).min(window),
                    sequences_rank: (*sequences_rank).min(starts),
                }
            }
        }
    }

    /// $K$.
    pub(super) fn num_positions(&self) -> usize {
        match self {
            Positions::Global { positions, .. } => *positions,
            Positions::Local { window, starts, .. } => (window + starts).saturating_sub(1),
        }
    }

    /// Columns of $H$: $r_3$, or $r_3 r_4$.
    pub(super) fn num_weights(&self) -> usize {
        match self {
            Positions::Global { rank, .. } => *rank,
            Positions::Local { attention_rank, sequences_rank, .. } => {
                attention_rank.saturating_mul(*sequences_rank)
            }
        }
    }

    /// Bytes of all that grows with positions alone.
    pub(super) fn num_bytes(&self) -> u64 {
        let product = |a: u64, b: u64, c: u64| a.saturating_mul(b).saturating_mul(c);
        let k = self.num_positions() as u64;
        let squares = product(SQUARES, k, k);
        let weights = product(WEIGHTS, k, self.num_weights() as u64);
        squares.saturating_add(weights).saturating_mul(size_of::<f64>() as u64)
    }

    /// The modes themselves.
    pub(super) fn modes(&self) -> PositionModes {
        match self {
            Positions::Global { attention, positions, rank } => {
                PositionModes::Global { attention: attention.matrix(*positions), rank: *rank }
            }
            Positions::Local { attention, window, attention_rank, sequences_rank, .. } => {
                PositionModes::Local {
                    attention: attention.matrix(*window),
                    num_positions: self.num_positions(),
                    attention_rank: *attention_rank,
                    sequences_rank: *sequences_rank,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(positions: usize) -> Positions {
        Positions::Global { attention: Attention::power(1.0), positions, rank: 5 }
    }

    fn local(window: usize, max_len: usize) -> Positions {
        Positions::Local {
            attention: Attention::power(0.0),
            window,
            starts: max_len + 1 - window,
            attention_rank: 1,
            sequences_rank: 2,
        }
    }

    #[test]
    fn positions_stay_as_asked_for_up_to_what_the_longest_history_fills() {
        for longest in [0, 1, 10, 255] {
            assert_eq!(global(256).bounded(longest).num_positions(), 256);
            assert_eq!(global(1_000_000).bounded(longest).num_positions(), 256);
        }
        assert_eq!(global(1000).bounded(1000).num_positions(), 1000);
        assert_eq!(global(1001).bounded(1000).num_positions(), 1001);
        assert_eq!(global(1002).bounded(1000).num_positions(), 1001);
        assert_eq!(global(usize::MAX).bounded(usize::MAX).num_positions(), usize::MAX);
        assert_eq!(local(40, 200).bounded(3).num_positions(), 200);
        assert_eq!(local(40, 1000).bounded(1000).num_positions(), 1000);
        assert_eq!(local(2, 1_000_000_000).bounded(7).num_positions(), 257);
        assert_eq!(local(500_000, 1_000_000).bounded(7).num_positions(), 511);
    }

    #[test]
    fn ranks_follow_their_dimensions_down() {
        let asked = Positions::Local {
            attention: Attention::power(0.0),
            window: 5000,
            starts: 9000,
            attention_rank: 4000,
            sequences_rank: 7,
        };
        assert_eq!(asked.bounded(20).num_weights(), 256 * 7);
        let asked =
            Positions::Global { attention: Attention::power(1.0), positions: usize::MAX, rank: usize::MAX };
        assert_eq!(asked.bounded(20).num_weights(), 256);
        assert!(asked.num_bytes() == u64::MAX && asked.bounded(20).num_bytes() < 1 << 27);
    }
}
