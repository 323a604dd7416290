//! Cross-entropy of a softmax, over the whole catalogue or a sample of it.
//!
//! For a hidden state $h$, candidates $C$ ($m \times d$) and the item that followed, with logit $z^+$:
//! $-z^+ + \ln \sum_j e^{z_j}$, $z = C h$. With $w$ one over the number of rows, $s$ the sums and $P = e^Z$ for rows $H$ the
//! gradients are
//!
//! $$ \partial / \partial H = \mathrm{diag}(w / s)\, P\, C - w\, e^+, \qquad
//!    \partial / \partial C = P^T \mathrm{diag}(w / s)\, H - w\, h \text{ at the item that followed:} $$
//!
//! three products of $2md$ operations per row, and one exponential per logit.
//!
//! Both sides are cut so small that rows, candidates and their logits stay in the cache of a core: a tile of rows goes through
//! all candidates, a block of them after the other. Logits become exponentials of differences to the largest logit *so far*;
//! when that grows, what was summed before is scaled down. So a block is multiplied back into the gradient of its rows while it
//! is still in the cache, and is read once more only, for the gradient of the candidates. It is never divided by its sums: these
//! factors go to the rows of $H$, of which there are $d$ values rather than $m$.

use std::collections::HashMap;

use faer::{Accum, MatMut, MatRef};
use rayon::prelude::*;

use super::{Gradients, Predictions, Workspace};
use crate::number::{Number, add_scaled, dot};
use crate::products::{Meter, rows, rows_mut};

/// Most rows of a tile: a multiple of what the kernel of a product takes at once.
const ROWS: usize = 144;
/// Candidates of a block.
const CANDIDATES: usize = 128;
/// Logits that are kept at once where rows can be cut so: 24 MiB of single precision, which the last cache may hold.
const MOST_LOGITS: usize = 6 << 20;
/// Tiles that are worked on at once, at least, so that all threads have some.
const TILES: usize = 4;

/// Logits that are kept at once, at most, and the sums and factors that go with them.
pub(super) fn most_logits(candidates: usize) -> u64 {
    let most = (MOST_LOGITS as u64).max((ROWS as u64).saturating_mul(candidates as u64));
    most.saturating_add(most / CANDIDATES as u64 + ROWS as u64)
}

/// The softmax over all items.
pub(super) fn over_all<T: Number>(
    predictions: Predictions<'_, T>,
    targets: &[u32],
    gradients: &mut Gradients<'_, T>,
    workspace: &mut Workspace<T>,
    meter: &Meter,
) -> f64 {
    let candidates = predictions.embeddings;
    let softmax = Softmax { predictions, targets, candidates, sample: None, meter };
    let outcomes = softmax.evaluate(gradients.hidden, gradients.embeddings, workspace);
    softmax.finish(&outcomes, gradients)
}

/// The softmax over the item that followed and the items drawn (with repetition).
///
/// The $k$ items stand for all $n$: each logit is raised by $\ln(n/k)$, so that the expected sum of exponentials is
/// that of the whole catalogue. Where the item that followed is among those drawn it does not count twice.
pub(super) fn over_sample<T: Number>(
    predictions: Predictions<'_, T>,
    targets: &[u32],
    drawn: &[u32],
    gradients: &mut Gradients<'_, T>,
    workspace: &mut Workspace<T>,
    meter: &Meter,
) -> f64 {
    let width = predictions.width;
    let items = predictions.embeddings.len() / width;
    let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
    for (place, &item) in drawn.iter().enumerate() {
        places.entry(item).or_default().push(place);
    }
    let raise = T::of((items as f64 / drawn.len() as f64).ln());
    let candidates: Vec<T> = drawn.iter().flat_map(|&item| predictions.embedding(item)).copied().collect();
    let sample = Some(Sample { raise, places });
    let softmax = Softmax { predictions, targets, candidates: &candidates, sample, meter };
    let mut of_candidates = vec![T::of(0.0); candidates.len()];
    let outcomes = softmax.evaluate(gradients.hidden, &mut of_candidates, workspace);
    for (&item, from) in drawn.iter().zip(of_candidates.chunks_exact(width)) {
        add_scaled(&mut gradients.embeddings[item as usize * width..][..width], from, T::of(1.0));
    }
    softmax.finish(&outcomes, gradients)
}

/// Candidates that are not the whole catalogue: the item that followed stands beside them.
struct Sample<T> {
    raise: T,
    /// Where an item stands among the candidates.
    places: HashMap<u32, Vec<usize>>,
}

struct Softmax<'a, T> {
    predictions: Predictions<'a, T>,
    targets: &'a [u32],
    candidates: &'a [T],
    sample: Option<Sample<T>>,
    meter: &'a Meter,
}

/// Loss of a row, and what the embedding of its target is multiplied with in the gradient of its hidden state.
#[derive(Clone, Copy, Default)]
struct Outcome {
    loss: f64,
    of_target: f64,
}

/// A tile of rows on its way through the candidates.
struct Tile<'a, T> {
    hidden: &'a [T],
    targets: &'a [u32],
    /// Exponentials: for every block its candidates, for every candidate one value per row.
    exponentials: &'a mut [T],
    /// What was subtracted from the logits of every block, row by row; in the end the factors of the rows for that block.
    factors: &'a mut [T],
    of_hidden: &'a mut [T],
    outcomes: &'a mut [Outcome],
}

impl<T: Number> Softmax<'_, T> {
    /// Everything but what the targets themselves add to the gradients.
    fn evaluate(
        &self,
        of_hidden: &mut [T],
        of_candidates: &mut [T],
        workspace: &mut Workspace<T>,
    ) -> Vec<Outcome> {
        let width = self.predictions.width;
        let count = self.candidates.len() / width;
        let blocks = count.div_ceil(CANDIDATES);
        let most = (MOST_LOGITS / count).max(ROWS);
        let in_tile = ROWS.min(most / TILES);
        let at_once = most / in_tile * in_tile;
        let mut outcomes = vec![Outcome::default(); self.targets.len()];
        for first in (0..self.targets.len()).step_by(at_once) {
            let now = at_once.min(self.targets.len() - first);
            let place = first * width..(first + now) * width;
            let hidden = &self.predictions.hidden[place.clone()];
            let (exponentials, factors) = workspace.take(now * count, now * blocks);
            outcomes[first..first + now]
                .par_chunks_mut(in_tile)
                .zip(exponentials.par_chunks_mut(in_tile * count))
                .zip(factors.par_chunks_mut(in_tile * blocks))
                .zip(of_hidden[place].par_chunks_mut(in_tile * width))
                .zip(hidden.par_chunks(in_tile * width))
                .zip(self.targets[first..first + now].par_chunks(in_tile))
                .for_each(|(((((outcomes, exponentials), factors), of_hidden), hidden), targets)| {
                    let mut tile = Tile { hidden, targets, exponentials, factors, of_hidden, outcomes };
                    self.through_candidates(&mut tile);
                });
            let (exponentials, factors) = (&*exponentials, &*factors);
            of_candidates.par_chunks_mut(CANDIDATES * width).enumerate().for_each_init(
                Vec::new,
                |scaled, (block, into)| {
                    let tiles = hidden
                        .chunks(in_tile * width)
                        .zip(exponentials.chunks(in_tile * count))
                        .zip(factors.chunks(in_tile * blocks));
                    for ((hidden, exponentials), factors) in tiles {
                        let in_tile = hidden.len() / width;
                        let exponentials =
                            &exponentials[block * CANDIDATES * in_tile..][..into.len() / width * in_tile];
                        scaled.clear();
                        for (row, &factor) in hidden.chunks_exact(width).zip(&factors[block * in_tile..]) {
                            scaled.extend(row.iter().map(|&value| value * factor));
                        }
                        let (lhs, rhs) = (rows(exponentials, in_tile), rows(scaled.as_slice(), width));
                        self.meter.product(rows_mut(into, width), Accum::Add, lhs, rhs, T::of(1.0));
                    }
                },
            );
        }
        outcomes
    }

    /// Logits, their exponentials, losses, and the gradient of the hidden states of a tile.
    fn through_candidates(&self, tile: &mut Tile<'_, T>) {
        let width = self.predictions.width;
        let in_tile = tile.targets.len();
        let weight = 1.0 / self.targets.len() as f64;
        let hidden = rows(tile.hidden, width);
        let (mut shifts, mut sums) = (vec![T::of(f64::NEG_INFINITY); in_tile], vec![0.0; in_tile]);
        let mut of_targets = vec![T::of(0.0); in_tile];
        let mut hidden_places = Vec::new();
        if let Some(sample) = &self.sample {
            for (row, &target) in tile.targets.iter().enumerate() {
                let hidden = &tile.hidden[row * width..][..width];
                of_targets[row] = dot(hidden, self.predictions.embedding(target));
                (shifts[row], sums[row]) = (of_targets[row], 1.0);
                let places = sample.places.get(&target).into_iter().flatten();
                hidden_places.extend(places.map(|&place| place * in_tile + row));
            }
        }
        let blocks = tile.exponentials.chunks_mut(CANDIDATES * in_tile);
        let candidates = self.candidates.chunks(CANDIDATES * width);
        let factors = tile.factors.chunks_exact_mut(in_tile);
        for (block, ((logits, candidates), factors)) in blocks.zip(candidates).zip(factors).enumerate() {
            let candidates: MatRef<'_, T> = rows(candidates, width);
            let into = MatMut::from_column_major_slice_mut(&mut *logits, in_tile, candidates.nrows());
            self.meter.product(into, Accum::Replace, hidden, candidates.transpose(), T::of(1.0));
            let here = block * CANDIDATES * in_tile..block * CANDIDATES * in_tile + logits.len();
            if let Some(sample) = &self.sample {
                for logit in logits.iter_mut() {
                    *logit += sample.raise;
                }
                for place in hidden_places.iter().filter(|place| here.contains(place)) {
                    logits[place - here.start] = T::of(f64::NEG_INFINITY);
                }
            } else {
                for (row, &target) in tile.targets.iter().enumerate() {
                    let place = target as usize * in_tile + row;
                    if here.contains(&place) {
                        of_targets[row] = logits[place - here.start];
                    }
                }
            }
            exponentials(logits, &mut shifts, &mut sums, tile.of_hidden, width);
            factors.copy_from_slice(&shifts);
            let lhs = MatRef::from_column_major_slice(&*logits, in_tile, candidates.nrows());
            self.meter.product(rows_mut(tile.of_hidden, width), Accum::Add, lhs, candidates, T::of(1.0));
        }
        let mut unused = vec![T::of(0.0); in_tile];
        for factors in tile.factors.chunks_exact_mut(in_tile) {
            T::exp_each(factors, &shifts, &mut unused);
            factors.iter_mut().zip(&sums).for_each(|(factor, sum)| *factor *= T::of(weight / sum));
        }
        for row in 0..in_tile {
            let above = (of_targets[row] - shifts[row]).double();
            let share = if self.sample.is_some() { above.exp() / sums[row] } else { 0.0 };
            tile.outcomes[row] = Outcome { loss: sums[row].ln() - above, of_target: weight * (share - 1.0) };
            let factor = T::of(weight / sums[row]);
            tile.of_hidden[row * width..][..width].iter_mut().for_each(|value| *value *= factor);
        }
    }

    /// Adds what the targets add to the gradients; the mean loss.
    fn finish(&self, outcomes: &[Outcome], gradients: &mut Gradients<'_, T>) -> f64 {
        let width = self.predictions.width;
        let mut sum = 0.0;
        for (row, (outcome, &target)) in outcomes.iter().zip(self.targets).enumerate() {
            sum += outcome.loss;
            let factor = T::of(outcome.of_target);
            let of_hidden = &mut gradients.hidden[row * width..][..width];
            add_scaled(of_hidden, self.predictions.embedding(target), factor);
            let of_target = &mut gradients.embeddings[target as usize * width..][..width];
            add_scaled(of_target, self.predictions.hidden(row), factor);
        }
        sum / outcomes.len() as f64
    }
}

/// Turns the logits of a block (for every candidate one value per row) into exponentials of their differences to the largest logit
/// of their row so far, and adds them to the sums. Where the largest logit grows, what was summed before is scaled down.
fn exponentials<T: Number>(
    logits: &mut [T],
    shifts: &mut [T],
    sums: &mut [f64],
    of_hidden: &mut [T],
    width: usize,
) {
    let in_tile = shifts.len();
    let mut smaller = shifts.to_vec();
    let mut of_block = vec![T::of(0.0); in_tile];
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for of_candidate in logits.chunks_exact(in_tile) {
                for (shift, &logit) in shifts.iter_mut().zip(of_candidate) {
                    *shift = if logit > *shift { logit } else { *shift };
                }
            }
        },
    );
    // What came before shrinks by e^(before - now).
    T::exp_each(&mut smaller, shifts, &mut of_block);
    of_block.fill(T::of(0.0));
    for of_candidate in logits.chunks_exact_mut(in_tile) {
        T::exp_each(of_candidate, shifts, &mut of_block);
    }
    for row in 0..in_tile {
        sums[row] = sums[row] * smaller[row].double() + of_block[row].double();
        if smaller[row] < T::of(1.0) {
            let of_hidden = &mut of_hidden[row * width..][..width];
            for value in of_hidden {
                *value *= smaller[row];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Noise;

    /// Loss and gradients as the formulas read.
    fn twin(
        width: usize,
        hidden: &[f64],
        items: &[f64],
        targets: &[u32],
        drawn: Option<&[u32]>,
    ) -> [Vec<f64>; 3] {
        let (mut of_hidden, mut of_items) = (vec![0.0; hidden.len()], vec![0.0; items.len()]);
        let mut sum_of_losses = 0.0;
        let count = items.len() / width;
        let weight = 1.0 / targets.len() as f64;
        for (row, &target) in targets.iter().enumerate() {
            let h = &hidden[row * width..][..width];
            let logit = |item: u32| -> f64 {
                h.iter().zip(&items[item as usize * width..][..width]).map(|(a, b)| a * b).sum()
            };
            let raise = |drawn: &[u32]| (count as f64 / drawn.len() as f64).ln();
            let terms: Vec<(u32, f64)> = match drawn {
                None => (0..count as u32).map(|item| (item, logit(item))).collect(),
                Some(drawn) => {
                    let others = drawn.iter().filter(|item| **item != target);
                    let others = others.map(|&item| (item, logit(item) + raise(drawn)));
                    others.chain([(target, logit(target))]).collect()
                }
            };
            let sum: f64 = terms.iter().map(|(_, logit)| logit.exp()).sum();
            sum_of_losses += sum.ln() - logit(target);
            let mut add = |item: u32, factor: f64| {
                for at in 0..width {
                    of_hidden[row * width + at] += factor * items[item as usize * width + at];
                    of_items[item as usize * width + at] += factor * h[at];
                }
            };
            for (item, logit) in &terms {
                add(*item, weight * logit.exp() / sum);
            }
            add(target, -weight);
        }
        [vec![sum_of_losses * weight], of_hidden, of_items]
    }

    #[test]
    fn tiles_and_blocks_equal_the_formulas_written_out() {
        // Many tiles and blocks, one of each, and a catalogue so large that rows are cut into several pieces.
        for (width, count, num_rows) in
            [(5, 700, 400), (3, 1, 4), (4, 128, 144), (4, 129, 145), (2, 60_000, 200)]
        {
            let draw = |seed: u64, len: usize, spread: f64| -> Vec<f64> {
                let noise = Noise::new(seed);
                let value = |index: u64| (noise.bits(index) >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
                (0..len as u64).map(|index| spread * value(index)).collect()
            };
            // Embeddings grow, so that the largest logit keeps growing from block to block.
            let mut items = draw(1, count * width, 3.0);
            items
                .iter_mut()
                .enumerate()
                .for_each(|(at, value)| *value *= 1.0 + at as f64 / (count * width) as f64);
            let hidden = draw(2, num_rows * width, 4.0);
            let targets: Vec<u32> =
                (0..num_rows as u64).map(|row| Noise::new(3).below(row, count as u32)).collect();
            let drawn: Vec<u32> = (0..300).map(|at| Noise::new(4).below(at, count as u32)).collect();
            for drawn in [None, Some(drawn.as_slice())] {
                let expected = twin(width, &hidden, &items, &targets, drawn);
                let predictions = Predictions { width, hidden: &hidden, embeddings: &items };
                let (mut of_hidden, mut of_items) = (vec![0.0; hidden.len()], vec![0.0; items.len()]);
                let gradients = &mut Gradients { hidden: &mut of_hidden, embeddings: &mut of_items };
                let (mut workspace, meter) = (Workspace::default(), Meter::default());
                let loss = match drawn {
                    None => over_all(predictions, &targets, gradients, &mut workspace, &meter),
                    Some(drawn) => {
                        over_sample(predictions, &targets, drawn, gradients, &mut workspace, &meter)
                    }
                };
                for (found, expected) in [vec![loss], of_hidden, of_items].iter().zip(&expected) {
                    let distance =
                        found.iter().zip(expected).fold(0f64, |most, (a, b)| most.max((a - b).abs()));
                    assert!(distance < 1e-10, "{count} items, {num_rows} rows, {drawn:?}: {distance}");
                }
            }
        }
    }

    #[test]
    fn a_sample_stands_for_the_catalogue() {
        let (items, hidden) = ([0.9, -0.4, 0.1, 1.7, -2.0, 0.6, 0.3], [1.0]);
        let loss = |drawn: Option<&[u32]>| {
            let predictions = Predictions { width: 1, hidden: &hidden, embeddings: &items };
            let gradients = &mut Gradients { hidden: &mut [0.0], embeddings: &mut [0.0; 7] };
            let (mut workspace, meter) = (Workspace::default(), Meter::default());
            match drawn {
                None => over_all(predictions, &[2], gradients, &mut workspace, &meter),
                Some(drawn) => over_sample(predictions, &[2], drawn, gradients, &mut workspace, &meter),
            }
        };
        // The loss is the logarithm of a sum of exponentials, of which the mean over samples is that over all items.
        let samples = 4000;
        let sum_of_sums: f64 = (0..samples)
            .map(|sample| {
                let drawn: Vec<u32> = (0..5).map(|at| Noise::new(sample).below(at, 7)).collect();
                loss(Some(&drawn)).exp()
            })
            .sum();
        let (found, expected) = (sum_of_sums / samples as f64, loss(None).exp());
        assert!((found / expected - 1.0).abs() < 0.03, "{found} instead of {expected}");
    }
}
