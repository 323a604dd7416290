//! Made-up logs: a shop to show and try things on, and logs of any size to measure with.
//!
//! [`shop`] plays the customers of a shop whose products have names, so that recommendations can be read.
//! [`like`] makes a log with as many users, items and rows as asked for, and [`write_like`] writes one that is larger than
//! memory. In both the order carries information: the next item follows, with gaps and noise, from the last ones.
//!
//! Every user draws from a random stream of its own, so a seed gives the same log on any number of threads.

mod catalog;
mod draw;
mod shape;
mod shop;

pub use catalog::showcase;
pub use shape::{ShapeOptions, like, write_like};
pub use shop::{ShopOptions, shop, shop_with};

use crate::data::DataError;
use crate::fault::{Fault, lines};
use crate::monitor::Cancelled;
use crate::numbers::counted;

/// Why a log cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Options with values outside their ranges: all of them.
    #[error("the options of the generated log have {}:{}", counted(faults.len(), "fault"), lines(faults))]
    Options {
        /// Every fault.
        faults: Vec<Fault>,
    },
    /// The caller asked to stop.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] DataError),
}

impl GenerateError {
    /// `Ok` if there are no faults, else all of them in one error.
    fn from_faults(faults: Vec<Fault>) -> Result<(), GenerateError> {
        if faults.is_empty() { Ok(()) } else { Err(GenerateError::Options { faults }) }
    }
}
