//! SASRec, the neural baseline: self-attentive sequential recommendation (Kang and McAuley, 2018), trained on a CPU and judged
//! by the same protocol as every model of [`satf`].
//!
//! It comes in two forms: as in the paper that the project compares with (binary cross-entropy with one sampled negative a
//! position, [`Loss::Bce`]), and as it is trained today (softmax cross-entropy over the catalogue, [`Loss::Ce`], or over a
//! sample of it, [`Loss::SampledCe`]), which is much stronger.
//!
//! In a [`Registry`] that has its [`entry`], as [`registry`] does, `sasrec` is a model like any other: found by name, in presets, in
//! spaces for tuning and in model files ([`Model::load_with`](satf::recommend::Model::load_with)).
//!
//! ```
//! use satf::interactions::ItemIndex;
//! use satf::{Histories, History};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = "hidden = 16\nepochs = 2\nmax_len = 5".parse()?;
//! let configured = satf_sasrec::registry().find("sasrec")?.configure(&settings)?;
//! let log = Histories::from_sequences(4, &[vec![0, 1, 2], vec![1, 2, 3], vec![0, 1, 3]]);
//! let model = configured.learner.fit(&log, &())?;
//! let mut scores = [0.0; 4];
//! model.score_batch(&[History::new(&[ItemIndex(0), ItemIndex(1)])], &mut scores);
//! # Ok(())
//! # }
//! ```
//!
//! The modules, from the numbers up to the model:
//!
//! | module | what |
//! |---|---|
//! | `number`, `noise`, `products` | precisions and fast loops over rows; random numbers without a state; matrix products, timed |
//! | `ops` | operations on packed rows, with their gradients |
//! | `parameters`, `network` | what is learned; from embedded items to hidden states |
//! | `batch`, `loss`, `gradient`, `adam` | sequences without padding; losses; the gradient of a batch; a step |
//! | `training`, `checkpoint` | epochs, early stopping, and going on after an interruption |
//! | `model`, `config`, `memory` | scores; the configuration; the memory that training takes |
//!
//! Nothing depends on the number of threads: work is cut by the data, every matrix product is one sequential kernel, and sums
//! run in a fixed order.

mod adam;
mod batch;
mod checkpoint;
mod config;
mod gradient;
mod loss;
mod memory;
mod model;
mod network;
mod noise;
mod number;
mod ops;
mod parameters;
mod products;
mod training;

#[cfg(test)]
mod tests;

use satf::models::{ModelEntry, Registry};

pub use config::SasRecConfig;
pub use loss::Loss;
pub use model::SasRec;

/// The entry of `sasrec` for a registry, with its presets and spaces.
pub const fn entry() -> ModelEntry {
    ModelEntry::new::<SasRecConfig>(
        SasRecConfig::NAME,
        "self-attention over the history, the neural baseline",
    )
    .with(include_str!("presets.toml"), include_str!("spaces.toml"))
}

/// The models of [`satf`] and `sasrec`.
pub fn registry() -> Registry {
    Registry::default().with(entry())
}
