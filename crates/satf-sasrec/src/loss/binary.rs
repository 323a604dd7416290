//! Binary cross-entropy with one negative a row.

use rayon::prelude::*;

use super::{Gradients, Predictions};
use crate::number::{Number, add_scaled, dot};

/// Rows of one piece of parallel work.
const ROWS: usize = 128;

/// The mean over rows of $-\ln \sigma(\langle h, e^+ \rangle) - \ln(1 - \sigma(\langle h, e^- \rangle))$, where $e^+$ is the
/// item that followed and $e^-$ a negative; the second term is missing where there is no negative.
///
/// Gradients: $(\sigma(s^+) - 1) e^+ + \sigma(s^-) e^-$ for $h$, and the same factors times $h$ for the embeddings.
pub(super) fn evaluate<T: Number>(
    predictions: Predictions<'_, T>,
    targets: &[u32],
    negatives: &[Option<u32>],
    gradients: &mut Gradients<'_, T>,
) -> f64 {
    let (width, rows) = (predictions.width, targets.len());
    let weight = 1.0 / rows as f64;
    // Loss and the two factors of every row.
    let mut outcomes = vec![(0.0, 0.0, 0.0); rows];
    let chunks = outcomes.par_chunks_mut(ROWS).zip(gradients.hidden.par_chunks_mut(ROWS * width));
    chunks.enumerate().for_each(|(chunk, (outcomes, of_hidden))| {
        for (at, (outcome, of_hidden)) in
            outcomes.iter_mut().zip(of_hidden.chunks_exact_mut(width)).enumerate()
        {
            let row = chunk * ROWS + at;
            let hidden = predictions.hidden(row);
            let mut term = |item: u32, sign: f64| {
                let embedding = predictions.embedding(item);
                let score = dot(hidden, embedding).double();
                // ln(1 + e^-x) for x = sign * score, without overflow.
                let x = sign * score;
                let factor = -sign * weight / (1.0 + x.exp());
                add_scaled(of_hidden, embedding, T::of(factor));
                ((-x.abs()).exp().ln_1p() + (-x).max(0.0), factor)
            };
            let (loss, positive) = term(targets[row], 1.0);
            let (other, negative) = negatives[row].map_or((0.0, 0.0), |item| term(item, -1.0));
            *outcome = (loss + other, positive, negative);
        }
    });
    let mut add = |item: u32, row: usize, factor: f64| {
        let into = &mut gradients.embeddings[item as usize * width..][..width];
        add_scaled(into, predictions.hidden(row), T::of(factor));
    };
    let mut sum = 0.0;
    for (row, (loss, positive, negative)) in outcomes.into_iter().enumerate() {
        sum += loss;
        add(targets[row], row, positive);
        if let Some(item) = negatives[row] {
            add(item, row, negative);
        }
    }
    sum * weight
}
