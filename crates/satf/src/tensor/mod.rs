//! Histories as a tensor of users, items and positions that is never stored.
//!
//! With $M$ users, $N$ items and $K$ positions, a history of $n$ items stands at positions $K-n, \dots, K-1$: the
//! newest item is always at $K-1$. The binary tensor $\mathcal{X}$ of Eq. 2 has $x_{ujk} = 1$ where user $u$ has
//! item $j$ at position $k$, and relevance (Eq. 1) is a function of the three. All that exists of it is a log of
//! triples, ordered three ways ([`PositionalLog`]).
//!
//! * [`PositionalLog`]: the triples by user, by item and by position, histories cut to the newest $K$
//! * [`Attention`]: the lower triangular matrix $A$ of Eq. 7 to 9
//! * [`hankel`]: the two virtual dimensions of Eq. 16 and 17
//!
//! The equations carry the numbers they have in the paper, counted in order of appearance.

// Formulas are not code.
#![allow(clippy::doc_markdown)]

mod attention;
pub mod hankel;
mod positional_log;

pub use attention::{Attention, Decay, Normalization, last_restored_row};
pub use positional_log::{ItemEntry, PositionalLog, Run};
