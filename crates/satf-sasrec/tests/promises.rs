//! SASRec is held to what every model promises.

#![allow(clippy::unwrap_used)]

#[path = "../../satf/tests/promises/mod.rs"]
mod promises;

use promises::{Case, promised_by};

/// A small network, with every loss.
fn every_loss() -> Vec<Case> {
    let small = "hidden = 8\nheads = 2\nbatch_size = 32\nepochs = 2\nmax_len = 12\nnegatives = 5";
    let losses = ["ce", "sampled-ce", "bce"];
    losses.map(|loss| Case::new(&satf_sasrec::entry(), &format!("{small}\nloss = '{loss}'"))).into()
}

promised_by!(every_loss());
