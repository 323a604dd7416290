//! What a core is worth.

use rayon::prelude::*;

use super::gains::{CUTOFF, is_better, mean};
use super::stage::Stage;
use crate::interactions::{Mixer, UserIndex};
use crate::models::ModelError;
use crate::models::Recommender;
use crate::models::d_satf::Fitted;
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::{Histories, History};
use crate::ranking::{ndcg, rank_of};

/// Most events that a model with a core predicts, and how many at once.
const MOST_EVENTS: usize = 4000;
const EVENTS_AT_ONCE: usize = 64;

/// Most rows from which a core is learned that only shows what it is worth.
const MOST_ROWS: usize = 1_200_000;

/// Shares of the core in a score that are tried.
const BALANCES: [f64; 5] = [0.0, 0.1, 0.25, 0.4, 0.5];

/// Where learning begins.
const FIRST: usize = 2;

/// The share of the core in a score that predicts best what a core and a memory of the past know of the newest events: 0 unless a core is
/// better than none by more than the standard error of the mean difference. `fit` learns both from a past.
///
/// A log of many rows is represented by some of its users, drawn by a hash of their ids.
pub(in super::super) fn rehearse_balance(
    histories: &Histories,
    fit: impl Fn(&Histories) -> Result<Fitted, ModelError>,
    monitor: &dyn Monitor,
) -> Result<f64, ModelError> {
    let sampled = sample_of_users(histories);
    let Some(stage) = Stage::new(sampled.as_ref().unwrap_or(histories)) else { return Ok(0.0) };
    let fitted = fit(&stage.past)?;
    let (memory, core) = (fitted.with(0.0, None)?, fitted.with(1.0, None)?);
    let num_items = memory.num_items();
    let events: Vec<_> = stage.spread(MOST_EVENTS).collect();
    let mut by_event: Vec<[f64; BALANCES.len()]> = Vec::with_capacity(events.len());
    let (mut by_memory, mut by_core) =
        (vec![0f32; EVENTS_AT_ONCE * num_items], vec![0f32; EVENTS_AT_ONCE * num_items]);
    for events in events.chunks(EVENTS_AT_ONCE) {
        check_cancelled(monitor)?;
        let pasts: Vec<History<'_>> = events.iter().map(|&event| stage.event(event).0).collect();
        let by_memory = &mut by_memory[..events.len() * num_items];
        let by_core = &mut by_core[..events.len() * num_items];
        memory.score_batch(&pasts, by_memory);
        core.score_batch(&pasts, by_core);
        let rows = by_memory.par_chunks_mut(num_items).zip(by_core.par_chunks(num_items));
        by_event.par_extend(rows.zip(events).map(|((by_memory, by_core), &event)| {
            let (past, target) = stage.event(event);
            past.items().iter().for_each(|item| by_memory[item.get()] = f32::NEG_INFINITY);
            BALANCES.map(|balance| {
                let score =
                    |at: usize| (1.0 - balance) * f64::from(by_memory[at]) + balance * f64::from(by_core[at]);
                ndcg(rank_of(target, num_items, |item| score(item.get())), CUTOFF)
            })
        }));
    }
    let gains = |at: usize| -> Vec<f64> { by_event.iter().map(|gains| gains[at]).collect() };
    let (first, mut best) = (gains(FIRST), FIRST);
    for (at, balance) in BALANCES.into_iter().enumerate() {
        let gains_at = gains(at);
        tracing::debug!(balance, ndcg = mean(&gains_at), events = gains_at.len(), "rehearsed");
        if mean(&gains_at) > mean(&gains(best)) {
            best = at;
        }
    }
    let found = if is_better(&events, &gains(best), &first) { best } else { FIRST };
    tracing::info!(balance = BALANCES[found], "learned by rehearsal");
    Ok(BALANCES[found])
}

/// Some users of a log that has too many rows to learn a core of all of them twice.
fn sample_of_users(histories: &Histories) -> Option<Histories> {
    let parts = histories.num_rows().div_ceil(MOST_ROWS) as u64;
    let is_drawn = |user: UserIndex| {
        let mut mixer = Mixer::new(0x7573_6572_7300);
        mixer.add_id(histories.users().get(user.get()));
        mixer.finish() % parts == 0
    };
    (parts > 1).then(|| histories.of_users(is_drawn))
}
