//! What a core is worth.

use rayon::prelude::*;

use super::MOST_ITEMS;
use super::gains::{CUTOFF, ITEMS_A_LOOK, is_better, mean};
use super::stage::Stage;
use crate::interactions::{ItemIndex, Mixer, UserIndex};
use crate::models::ModelError;
use crate::models::Recommender;
use crate::models::d_satf::Fitted;
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::{Histories, History};
use crate::ranking::ndcg;

/// Most events that a model with a core predicts, most sums and scores that this may take, and how many events at once.
const MOST_EVENTS: usize = 4000;
const MOST_SUMS: usize = 400_000_000;
const EVENTS_AT_ONCE: usize = 64;

/// Most pairs of positions, and most rows, from which a core is learned that only shows what it is worth.
const MOST_PAIRS: u64 = 6_000_000;
const MOST_ROWS: usize = 400_000;

/// Most rows of a sample, and most pairs of it, both ways: some users have more rows than others.
pub(in super::super) const MOST_SAMPLED_ROWS: usize = MOST_ROWS / 4 * 5;
pub(in super::super) const MOST_SAMPLED_PAIRS: u64 = MOST_PAIRS / 4 * 5 * 2;

/// Shares of the core in a score that are tried.
const BALANCES: [f64; 5] = [0.0, 0.1, 0.25, 0.4, 0.5];

/// None, and where learning begins.
const NO_CORE: usize = 0;
const FIRST: usize = 2;

/// In a larger catalogue a core makes a recommendation several times as costly, and has to show that it is worth it. In a smaller one it
/// was worth it on every log tried, by more than some thousand events of a single log can tell.
pub(in super::super) const LARGE_CATALOGUE: usize = 20_000;

/// The share of the core in a score. In a large catalogue a core and a memory of the past, which `fit` learns, predict the newest events:
/// the core is left out unless it is better than none by more than the standard error of the mean difference, and another share takes
/// the place of the usual one if it is better by more than that error.
///
/// A log of many rows is represented by some of its users, drawn by a hash of their ids. A memory of some users knows less than it will, so a
/// sample tells only whether there is a core, not how large its share is.
pub(in super::super) fn rehearse_balance(
    histories: &Histories,
    window: usize,
    fit: impl Fn(&Histories) -> Result<Fitted, ModelError>,
    monitor: &dyn Monitor,
) -> Result<f64, ModelError> {
    if histories.num_items() <= LARGE_CATALOGUE {
        return Ok(BALANCES[FIRST]);
    }
    let sampled = sample_of_users(histories, window);
    let Some(stage) = Stage::new(sampled.as_ref().unwrap_or(histories)) else { return Ok(0.0) };
    let fitted = fit(&stage.past)?;
    let (memory, core) = (fitted.with(0.0, None)?, fitted.with(1.0, None)?);
    let num_items = memory.num_items();
    let sums_an_event = MOST_ITEMS * fitted.memory.num_pairs() / num_items.max(1) + num_items;
    let events: Vec<_> = stage.spread(MOST_EVENTS.min(MOST_SUMS / sums_an_event.max(1))).collect();
    let mut by_event: Vec<[f64; BALANCES.len()]> = Vec::with_capacity(events.len());
    let (mut by_memory, mut by_core) =
        (vec![0f32; EVENTS_AT_ONCE * num_items], vec![0f32; EVENTS_AT_ONCE * num_items]);
    for events in events.chunks(EVENTS_AT_ONCE) {
        check_cancelled(monitor)?;
        let pasts: Vec<History<'_>> =
            events.iter().map(|&event| stage.event(event).0.newest(MOST_ITEMS)).collect();
        let by_memory = &mut by_memory[..events.len() * num_items];
        let by_core = &mut by_core[..events.len() * num_items];
        memory.score_batch(&pasts, by_memory);
        core.score_batch(&pasts, by_core);
        let rows = by_memory.par_chunks_mut(num_items).zip(by_core.par_chunks(num_items));
        by_event.par_extend(rows.zip(events).map(|((by_memory, by_core), &event)| {
            let (past, target) = stage.event(event);
            past.items().iter().for_each(|item| by_memory[item.get()] = f32::NEG_INFINITY);
            ranks(by_memory, by_core, target).map(|rank| ndcg(rank, CUTOFF))
        }));
    }
    let gains: [Vec<f64>; BALANCES.len()] =
        std::array::from_fn(|at| by_event.iter().map(|gains| gains[at]).collect());
    for (balance, gains) in BALANCES.into_iter().zip(&gains) {
        tracing::debug!(balance, ndcg = mean(gains), events = gains.len(), "rehearsed");
    }
    let found = best_balance(&events, &gains, sampled.is_some());
    tracing::info!(balance = BALANCES[found], "learned by rehearsal");
    Ok(BALANCES[found])
}

/// The ranks of a target with every balance, among all items but those whose score by memory is not finite. A rank beyond the cutoff may
/// be too low.
fn ranks(by_memory: &[f32], by_core: &[f32], target: ItemIndex) -> [usize; BALANCES.len()] {
    let scores = |at: usize| {
        let (by_memory, by_core) = (f64::from(by_memory[at]), f64::from(by_core[at]));
        BALANCES.map(|balance| (1.0 - balance) * by_memory + balance * by_core)
    };
    let of_target = scores(target.get());
    let mut ranks = [0; BALANCES.len()];
    for first in (0..by_memory.len()).step_by(ITEMS_A_LOOK) {
        for at in first..by_memory.len().min(first + ITEMS_A_LOOK) {
            for ((rank, score), target_score) in ranks.iter_mut().zip(scores(at)).zip(of_target) {
                let is_before = if at < target.get() { score >= target_score } else { score > target_score };
                *rank += usize::from(is_before);
            }
        }
        if ranks.iter().all(|&rank| rank >= CUTOFF) {
            break;
        }
    }
    ranks
}

/// Which of the balances to take, by what each of the events gains with them.
fn best_balance(events: &[(UserIndex, usize)], gains: &[Vec<f64>; BALANCES.len()], is_sample: bool) -> usize {
    let is_above = |one: usize, other: usize| mean(&gains[one]) > mean(&gains[other]);
    let best = (0..BALANCES.len()).fold(FIRST, |best, at| if is_above(at, best) { at } else { best });
    let found = if !is_sample && is_better(events, &gains[best], &gains[FIRST]) { best } else { FIRST };
    if is_better(events, &gains[found], &gains[NO_CORE]) { found } else { NO_CORE }
}

/// Some users of a log that has too many pairs or rows to learn a core of all of them twice.
fn sample_of_users(histories: &Histories, window: usize) -> Option<Histories> {
    let pairs_of = |&(len, count): &(usize, u64)| (len * len.min(window)) as u64 * count;
    let pairs: u64 = histories.lengths().iter().map(pairs_of).sum();
    let parts = (histories.num_rows().div_ceil(MOST_ROWS) as u64).max(pairs.div_ceil(MOST_PAIRS));
    let is_drawn = |user: UserIndex| {
        let mut mixer = Mixer::new(0x7573_6572_7300);
        mixer.add_id(histories.users().get(user.get()));
        mixer.finish().is_multiple_of(parts)
    };
    (parts > 1).then(|| histories.of_users(is_drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_every_balance() {
        let (by_memory, by_core) = ([3.0, 2.0, f32::NEG_INFINITY, 1.0], [0.0, 1.0, 9.0, 8.0]);
        assert_eq!(ranks(&by_memory, &by_core, ItemIndex(1)), [1, 1, 2, 2, 2]);
        assert_eq!(ranks(&[1.0; 3], &[0.0; 3], ItemIndex(2)), [2; 5]);
    }

    /// The percentage of the core, with balances whose gains are a constant above a wave.
    fn found(above: [f64; BALANCES.len()], is_sample: bool) -> i32 {
        let events: Vec<(UserIndex, usize)> = (0..100).map(|user| (UserIndex(user), 1)).collect();
        let wave = |at: usize, above: f64| {
            (0..100).map(|event| f64::from((event * (at as u32 + 3)) % 7) / 70.0 + above).collect()
        };
        let gains = std::array::from_fn(|at| wave(at, above[at]));
        (100.0 * BALANCES[best_balance(&events, &gains, is_sample)]) as i32
    }

    #[test]
    fn a_core_is_left_out_unless_it_is_better_by_more_than_chance() {
        assert_eq!(found([0.0, 0.0, 0.2, 0.0, 0.0], false), 25);
        assert_eq!(found([0.0, 0.0, 0.002, 0.0, 0.0], false), 0);
        assert_eq!(found([0.002, 0.0, 0.0, 0.0, 0.0], false), 0);
        // So does another share.
        assert_eq!(found([0.0, 0.0, 0.2, 0.201, 0.0], false), 25);
        assert_eq!(found([0.0, 0.0, 0.2, 0.4, 0.0], false), 40);
        assert_eq!(found([0.0, 0.0, 0.2, 0.4, 0.0], true), 25);
    }
}
