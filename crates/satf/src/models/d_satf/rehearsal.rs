//! Keys learned from the log: the model rehearses on its newest events.
//!
//! How fast do old items lose their weight? How much does popularity tell, how much does the trend? Logs differ, and the log itself
//! knows: a memory of all but the newest events is asked to predict these, one after the other, with candidates for one key at a
//! time, and the best one stays. What the memory then learns from is the whole log.
//!
//! Every candidate is judged by its NDCG@10 on the same events, at most [`MOST_EVENTS`], under the rules of the evaluation: the whole
//! catalogue is ranked, items already taken are left out, ties go to the lower index. It stays if it is better by more than
//! the standard error of the mean difference.

use rayon::prelude::*;

use super::memory;
use super::trend::Trend;
use super::{GivenParams, Keys};
use crate::interactions::{ItemIndex, Timestamp, UserIndex};
use crate::models::ModelError;
use crate::models::item_rows::ItemRows;
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};
use crate::prepare::Histories;
use crate::ranking::{ndcg, rank_of};

/// Most events that are predicted.
const MOST_EVENTS: usize = 4000;

/// Most sums that scoring all events once may take: on dense logs there are fewer events.
const MOST_SUMS: usize = 150_000_000;

/// With fewer events than this, nothing can be told from them.
const LEAST_EVENTS: usize = 200;

/// Share of the rows, the newest, from which the events are taken.
const NEWEST_SHARE: f64 = 0.05;

/// Length of the lists that are judged.
const CUTOFF: usize = 10;

/// What is tried for a key, and where it is kept.
struct Dimension {
    name: &'static str,
    values: &'static [f64],
    /// Whether it only matters where items are taken at one time.
    of_baskets: bool,
    key: fn(&mut Keys) -> &mut f64,
}

/// In the order in which they are learned; the first ones matter most.
const DIMENSIONS: [Dimension; 6] = [
    Dimension {
        name: "recency_decay",
        values: &[0.35, 0.5, 0.75, 1.0, 1.25],
        of_baskets: false,
        key: |keys| &mut keys.recency_decay,
    },
    Dimension {
        name: "basket_order",
        values: &[0.0, 0.5, 1.0],
        of_baskets: true,
        key: |keys| &mut keys.basket_order,
    },
    Dimension {
        name: "distance_decay",
        values: &[0.25, 0.5, 0.75, 1.0, 1.5],
        of_baskets: false,
        key: |keys| &mut keys.distance_decay,
    },
    Dimension {
        name: "target_power",
        values: &[0.1, 0.2, 0.3, 0.4],
        of_baskets: false,
        key: |keys| &mut keys.target_power,
    },
    Dimension {
        name: "trend",
        values: &[0.0, 0.15, 0.3, 0.45],
        of_baskets: false,
        key: |keys| &mut keys.trend,
    },
    Dimension {
        name: "together",
        values: &[1.0, 2.0, 4.0],
        of_baskets: true,
        key: |keys| &mut keys.together,
    },
];

/// Learns the keys that are not fixed, starting from `keys`. Comes with the number of events that were predicted for it: 0 if nothing
/// was to be learned, or nothing could be.
pub(super) fn rehearse(
    mut keys: Keys,
    is_fixed: impl Fn(&str) -> bool,
    given: &GivenParams,
    histories: &Histories,
    monitor: &dyn Monitor,
) -> Result<(Keys, usize), ModelError> {
    if DIMENSIONS.iter().all(|dimension| is_fixed(dimension.name)) {
        return Ok((keys, 0));
    }
    let Some(stage) = Stage::new(histories, given) else { return Ok((keys, 0)) };
    let has_baskets = stage.with_previous.contains(&true);
    let matters = |dimension: &&Dimension| has_baskets || !dimension.of_baskets;
    let learned = DIMENSIONS.iter().filter(|dimension| !is_fixed(dimension.name)).filter(matters);
    let tries = learned.clone().map(|dimension| dimension.values.len() as u64).sum();
    monitor.begin("rehearsing on the newest events", tries);
    let mut memory = stage.memory(&keys, monitor)?;
    let mut best = stage.gains(&keys, &memory);
    for dimension in learned {
        for &value in dimension.values {
            check_cancelled(monitor)?;
            monitor.advance(1);
            if (value - *(dimension.key)(&mut keys)).abs() < 1e-9 {
                continue;
            }
            let mut tried = keys;
            *(dimension.key)(&mut tried) = value;
            let rebuilt = if tried.counts_as(&keys) { None } else { Some(stage.memory(&tried, monitor)?) };
            let gains = stage.gains(&tried, rebuilt.as_ref().unwrap_or(&memory));
            tracing::debug!(key = dimension.name, value, ndcg = mean(&gains), "rehearsed");
            if is_better(&gains, &best) {
                best = gains;
                keys = tried;
                memory = rebuilt.unwrap_or(memory);
            }
        }
    }
    tracing::info!(?keys, ndcg = mean(&best), events = stage.events.len(), "learned by rehearsal");
    Ok((keys, stage.events.len()))
}

/// The log up to a point in time, and what came after it.
struct Stage<'a> {
    histories: &'a Histories,
    with_previous: Vec<bool>,
    past: Histories,
    popularity: Vec<u32>,
    trend: Trend,
    /// Users and the positions to predict.
    events: Vec<(UserIndex, usize)>,
    params: GivenParams,
}

impl<'a> Stage<'a> {
    /// `None` if there are too few events to tell anything.
    fn new(histories: &'a Histories, params: &GivenParams) -> Option<Self> {
        let cut = cut(histories)?;
        let past = histories.until(cut);
        let popularity = past.popularity();
        let mut events = Vec::new();
        let mut last_taken_by = vec![None; histories.num_items()];
        for user in (0..histories.num_users() as u32).map(UserIndex) {
            let first = past.items_of(user).len().max(1);
            for (position, target) in histories.items_of(user).iter().enumerate() {
                let is_new = last_taken_by[target.get()].replace(user) != Some(user);
                if is_new && position >= first && popularity[target.get()] > 0 {
                    events.push((user, position));
                }
            }
        }
        if events.len() < LEAST_EVENTS {
            return None;
        }
        let sums = sums_an_event(&past, &events, params);
        let affordable = (MOST_SUMS / sums.max(1)).clamp(LEAST_EVENTS, MOST_EVENTS);
        // Evenly spread over users if there are too many.
        let kept = affordable.min(events.len());
        let events = (0..kept).map(|at| events[at * events.len() / kept]).collect();
        let trend = Trend::new(&past, params.trend_days);
        Some(Stage {
            histories,
            with_previous: histories.with_previous(),
            past,
            popularity,
            trend,
            events,
            params: *params,
        })
    }

    /// The memory without the scale of targets, which scores apply.
    fn memory(&self, keys: &Keys, monitor: &dyn Monitor) -> Result<ItemRows, ModelError> {
        let unscaled = Keys { target_power: 0.0, ..*keys };
        Ok(memory::fit(&unscaled.memory_params(&self.params), &self.past, &OnlyCancels(monitor))?.0)
    }

    /// NDCG@10 of every event.
    fn gains(&self, keys: &Keys, memory: &ItemRows) -> Vec<f64> {
        let scale: Vec<f64> = self
            .trend
            .weights(keys.trend)
            .iter()
            .zip(&self.popularity)
            .map(|(trend, &count)| trend * f64::from(count.max(1)).powf(-keys.target_power))
            .collect();
        let lag_weights = keys.lag_weights(self.params.max_len);
        self.events
            .par_iter()
            .map_init(
                || vec![0f64; self.popularity.len()],
                |scores, &(user, position)| {
                    let history = self.histories.history_of(user, &self.with_previous);
                    let (past, target) = (history.up_to(position), history[position]);
                    memory.sum_into(lag_weights.weighted(past), scores);
                    gain(scores, &scale, &past, target)
                },
            )
            .collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Whether the gains are above others of the same events by more than the standard error of the difference: what may be
/// chance changes nothing.
///
/// The error takes events for independent, unlike those of [`crate::evaluate`], though a user may have several of them. It is a rule
/// for decisions, not a claim: how cautious it is was chosen by what the learned keys score. Clustered by user it would be larger,
/// keep more keys as they are, and change what every default model has learned.
fn is_better(gains: &[f64], others: &[f64]) -> bool {
    let differences: Vec<f64> = gains.iter().zip(others).map(|(gain, other)| gain - other).collect();
    let difference = mean(&differences);
    let squares: f64 = differences.iter().map(|value| (value - difference).powi(2)).sum();
    difference > squares.sqrt() / differences.len() as f64
}

/// What the target gains: the discount of its rank among all items but those seen, 0 beyond the cutoff.
/// Overwrites scores, which are not negative, of the items seen.
fn gain(scores: &mut [f64], scale: &[f64], seen: &[ItemIndex], target: ItemIndex) -> f64 {
    for item in seen {
        scores[item.get()] = -1.0;
    }
    let score = |item: ItemIndex| match scores[item.get()] {
        seen if seen < 0.0 => seen,
        score => score * scale[item.get()],
    };
    ndcg(rank_of(target, scores.len(), score), CUTOFF)
}

/// About how many steps the score of an event takes: items of its history, times their neighbours, and once through the catalogue.
fn sums_an_event(past: &Histories, events: &[(UserIndex, usize)], params: &GivenParams) -> usize {
    let mean_len =
        events.iter().map(|(_, position)| (*position).min(params.max_len)).sum::<usize>() / events.len();
    let neighbours = past.num_rows() / past.num_items().max(1) * 2 * params.window;
    mean_len * neighbours.min(past.num_items()) + past.num_items()
}

/// The time after which the newest rows lie.
fn cut(histories: &Histories) -> Option<Timestamp> {
    let mut times = histories.times().to_vec();
    let newest = ((times.len() as f64 * NEWEST_SHARE) as usize).clamp(1, times.len().max(1));
    let at = times.len().checked_sub(newest + 1)?;
    let (_, cut, _) = times.select_nth_unstable(at);
    Some(*cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_chance_is_better() {
        let others: Vec<f64> = (0..100).map(|event| f64::from(event % 7) / 7.0).collect();
        assert!(!is_better(&others, &others));
        let every: Vec<f64> = others.iter().map(|gain| gain + 0.01).collect();
        assert!(is_better(&every, &others) && !is_better(&others, &every));
        // Higher on the whole, but by two events that contradict each other.
        let mut two = others.clone();
        two[0] += 1.0;
        two[1] -= 0.5;
        assert!(!is_better(&two, &others));
    }

    #[test]
    fn items_seen_take_no_place_and_ties_go_to_the_lower_index() {
        for (seen, target, rank) in [(vec![0], 1, 0), (vec![0], 2, 1), (vec![0, 0, 1], 2, 0), (vec![], 3, 3)]
        {
            let seen: Vec<ItemIndex> = seen.into_iter().map(ItemIndex).collect();
            let gain = gain(&mut [3.0, 2.0, 2.0, 0.0], &[1.0; 4], &seen, ItemIndex(target));
            assert!((gain - 1.0 / (f64::from(rank) + 2.0).log2()).abs() < 1e-12, "{target}: {gain}");
        }
    }
}
