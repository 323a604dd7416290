//! Tucker decomposition of the positional tensor by higher-order orthogonal iteration (HOOI).
//!
//! The decomposition of Eq. 4 minimises Eq. 3; with attention the tensor decomposed is that of Eq. 10 (third order)
//! or Eq. 18 (fourth order). [`factorize`] is the loop of Algorithms 1 and 2, one engine for both: they differ only
//! in their [`PositionModes`]. Each step takes the leading left singular vectors of a compressed unfolding (Eq. 11),
//! exactly and with dense products for nearly all of the work:
//!
//! * users and items: the unfoldings of Eq. 22 and 23, by a Gram matrix on either side or by block Lanczos iteration,
//!   whichever [`Sizes::plan`] finds the cheapest
//! * positions: Eq. 24 and 25 depend on the data only through a $K \times K$ Gram matrix
//!
//! Large factors are in single or double precision; Gram matrices are summed, and small problems solved, in double.

// Formulas are not code.
#![allow(clippy::doc_markdown)]
// Loops over rows have to be inlined into the function that is compiled for the machine's vector unit.
#![allow(clippy::inline_always)]

mod gram_side;
mod hooi;
mod krylov;
mod per_position;
mod plan;
mod position_modes;
mod rows;
mod start;
mod unfolding;

pub use hooi::{Factors, HooiOptions, ItemUpdate, Progress, factorize};
pub use plan::{Cost, ModePlan, Plan, Sizes, Way};
pub use position_modes::{PositionFactors, PositionModes};
pub use rows::Rows;
pub use start::{Start, StartFactors};

use crate::byte_size::ByteSize;
use crate::monitor::Cancelled;

/// Why there is no decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactorizeError {
    /// Nothing to decompose.
    #[error("there are no interactions")]
    Empty,
    /// An unfolding is zero.
    #[error("a compressed tensor is zero to working precision")]
    Zero,
    /// A number overflowed.
    #[error("a value is not finite")]
    NotFinite,
    /// An eigendecomposition did not converge.
    #[error("an eigendecomposition did not converge")]
    Eigen,
    /// No way fits the memory allowed.
    #[error("{} of memory are needed, {} allowed",
        ByteSize(*needed).beside(ByteSize(*allowed)), ByteSize(*allowed).beside(ByteSize(*needed)))]
    Memory {
        /// Bytes the leanest way needs.
        needed: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

impl From<faer::linalg::evd::EvdError> for FactorizeError {
    fn from(_: faer::linalg::evd::EvdError) -> Self {
        FactorizeError::Eigen
    }
}
