//! Keys learned from the log: the model rehearses on its newest events.
//!
//! How fast do old items lose their weight? How much does popularity tell, how much does the trend? Logs differ, and the log itself
//! knows: a memory of all but the newest events is asked to predict these, one after the other, with candidates for one key at a
//! time, and the best one stays. What the memory then learns from is the whole log.
//!
//! Every candidate is judged by its NDCG@10 on the same events, at most [`MOST_EVENTS`], under the rules of the evaluation: items
//! already taken are left out, ties go to the lower index. From where a key begins, candidates are tried in either direction for as long as
//! they are better; the best of them stays if it is better than the beginning by more than the standard error of the mean difference.
//!
//! No key is inside the counts, so pairs are counted once, and only for the items that stand in the histories of the events. Where rows are long (a dense
//! log), the catalogue is a sample of its items, drawn by a hash of their ids: events with targets in it are ranked against
//! it, and a rank there stands for as many times the rank as items stand behind each of the sample.

use rayon::prelude::*;

use super::memory::{Evidence, Finisher, MemoryParams};
use super::trend::Trend;
use super::{Fitted, GivenParams, Keys};
use crate::counts::{PairCounter, PairRows, RowCounter};
use crate::interactions::{ItemIndex, Mixer, Timestamp, UserIndex};
use crate::models::{LagWeights, ModelError, Recommender};
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};
use crate::prepare::{Histories, History};
use crate::ranking::{ndcg, rank_of};

/// Most events that are predicted.
const MOST_EVENTS: usize = 4000;

/// Most sums that scoring all events once may take: where histories and rows are long there are fewer events.
const MOST_SUMS: usize = 200_000_000;

/// Most pairs that are kept to rehearse on: so many, or so many a row of the log if that is more.
const MOST_PAIRS: usize = 3_000_000;
const PAIRS_A_ROW: usize = 2;

/// The least share of the catalogue that is ranked: one in so many.
const LEAST_SAMPLE: usize = 8;

/// With fewer events than this, nothing can be told from them.
const LEAST_EVENTS: usize = 200;

/// Share of the rows, the newest, from which the events are taken.
const NEWEST_SHARE: f64 = 0.05;

/// Length of the lists that are judged.
const CUTOFF: usize = 10;

/// Most events that a model with a core predicts, and how many at once.
const MOST_EVENTS_OF_CORE: usize = 2000;
const EVENTS_AT_ONCE: usize = 64;

/// Most rows from which a core is learned that only shows what it is worth.
const MOST_ROWS_OF_CORE: usize = 1_200_000;

/// Shares of the core in a score that are tried.
const BALANCES: [f64; 1] = [0.25];

/// What is tried for a key, ascending, and where it is kept.
struct Dimension {
    name: &'static str,
    values: &'static [f64],
    /// Whether it only matters where items are taken at one time.
    of_baskets: bool,
    /// Whether the evidence of pairs depends on it.
    of_evidence: bool,
    key: fn(&mut Keys) -> &mut f64,
}

/// In the order in which they are learned; the first ones matter most.
const DIMENSIONS: [Dimension; 6] = [
    Dimension {
        name: "recency_decay",
        values: &[0.35, 0.5, 0.75, 1.0, 1.25],
        of_baskets: false,
        of_evidence: false,
        key: |keys| &mut keys.recency_decay,
    },
    Dimension {
        name: "basket_order",
        values: &[0.0, 0.5, 1.0],
        of_baskets: true,
        of_evidence: false,
        key: |keys| &mut keys.basket_order,
    },
    Dimension {
        name: "distance_decay",
        values: &[0.25, 0.5, 0.75, 1.0, 1.5],
        of_baskets: false,
        of_evidence: true,
        key: |keys| &mut keys.distance_decay,
    },
    Dimension {
        name: "target_power",
        values: &[0.1, 0.2, 0.3, 0.4],
        of_baskets: false,
        of_evidence: false,
        key: |keys| &mut keys.target_power,
    },
    Dimension {
        name: "trend",
        values: &[0.0, 0.15, 0.3, 0.45],
        of_baskets: false,
        of_evidence: false,
        key: |keys| &mut keys.trend,
    },
    Dimension {
        name: "together",
        values: &[1.0, 2.0, 4.0],
        of_baskets: true,
        of_evidence: true,
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
    let learned: Vec<&Dimension> =
        DIMENSIONS.iter().filter(|dimension| !is_fixed(dimension.name)).filter(matters).collect();
    monitor.begin("rehearsing on the newest events", 1 + learned.len() as u64);
    let counter = PairCounter::new(&given.counting, &stage.past, &stage.popularity);
    let evidence = Evidence::of(&counter, &OnlyCancels(monitor))?;
    let rows_with = |keys: &[Keys]| stage.rows(&counter, &evidence, keys, monitor);
    let mut rows = rows_with(&[keys])?;
    monitor.advance(1);
    let mut best = stage.gains(&keys, &rows, 0);
    for dimension in learned {
        let begin = *(dimension.key)(&mut keys);
        let candidates: Vec<Keys> = dimension
            .values
            .iter()
            .map(|&value| {
                let mut tried = keys;
                *(dimension.key)(&mut tried) = value;
                tried
            })
            .collect();
        // Counted once for all candidates.
        let of_candidates = dimension.of_evidence.then(|| rows_with(&candidates)).transpose()?;
        let mut found: Option<(usize, Vec<f64>)> = None;
        let above =
            dimension.values.iter().position(|&value| value > begin + 1e-9).unwrap_or(candidates.len());
        let below = dimension.values.iter().rposition(|&value| value < begin - 1e-9);
        let upwards = (above..candidates.len()).collect::<Vec<_>>();
        let downwards = below.map_or_else(Vec::new, |below| (0..=below).rev().collect());
        for way in [upwards, downwards] {
            let mut last = mean(&best);
            for at in way {
                check_cancelled(monitor)?;
                let gains = match &of_candidates {
                    Some(rows) => stage.gains(&candidates[at], rows, at),
                    None => stage.gains(&candidates[at], &rows, 0),
                };
                let value = mean(&gains);
                tracing::debug!(
                    key = dimension.name,
                    value = dimension.values[at],
                    ndcg = value,
                    "rehearsed"
                );
                if found.as_ref().is_none_or(|(_, found)| value > mean(found)) {
                    found = Some((at, gains));
                }
                if value < last {
                    break;
                }
                last = value;
            }
        }
        if let Some((at, gains)) = found.filter(|(_, gains)| is_better(gains, &best)) {
            (best, keys) = (gains, candidates[at]);
            if let Some(of_candidates) = of_candidates {
                rows = of_candidates.only(at);
            }
        }
        monitor.advance(1);
    }
    tracing::info!(
        ?keys,
        ndcg = mean(&best),
        events = stage.events.len(),
        sample = stage.sample,
        "learned by rehearsal"
    );
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
    /// Items whose rows are needed, and where they are; the others have none.
    sources: Vec<ItemIndex>,
    /// One in so many items is ranked, by [`is_in_sample`].
    sample: usize,
    params: GivenParams,
}

/// Whether an item is in a sample of one in `sample`, a power of two: larger samples contain smaller ones.
fn is_in_sample(histories: &Histories, item: ItemIndex, sample: usize) -> bool {
    let mut mixer = Mixer::new(0x7361_6d70_6c65);
    mixer.add_id(histories.catalog().get(item.get()));
    sample == 1 || mixer.finish() & (sample as u64 - 1) == 0
}

impl<'a> Stage<'a> {
    /// `None` if there are too few events to tell anything.
    fn new(histories: &'a Histories, params: &GivenParams) -> Option<Self> {
        let cut = cut(histories)?;
        let past = histories.until(cut);
        let popularity = past.popularity();
        let all = newest_events(histories, &past, &popularity);
        if all.len() < LEAST_EVENTS {
            return None;
        }
        // What an item meets in the past: at most the whole catalogue.
        let mut meetings = vec![0usize; histories.num_items()];
        for items in past.iter() {
            for (at, item) in items.iter().enumerate() {
                let window = params.counting.window;
                meetings[item.get()] += at.min(window) + (items.len() - 1 - at).min(window);
            }
        }
        let row_len = |item: ItemIndex| meetings[item.get()].min(histories.num_items());
        let mut row_lens = 0f64;
        let mut lags = 0;
        for &(user, position) in &all {
            let items = &histories.items_of(user)[position.saturating_sub(params.max_len)..position];
            row_lens += items.iter().map(|&item| row_len(item) as f64).sum::<f64>();
            lags += items.len();
        }
        let row_len_of_lag = row_lens / lags.max(1) as f64;
        let most_pairs = MOST_PAIRS.max(PAIRS_A_ROW * histories.num_rows());
        // Dense logs alone have rows of which a part is enough.
        let mut sample = 1;
        while sample < LEAST_SAMPLE
            && row_len_of_lag / sample as f64 > 500.0
            && row_len_of_lag * (histories.num_items() / sample) as f64 > most_pairs as f64
        {
            sample *= 2;
        }
        let of_sample = |&(user, position): &(UserIndex, usize)| {
            is_in_sample(histories, histories.items_of(user)[position], sample)
        };
        let events: Vec<(UserIndex, usize)> = all.into_iter().filter(of_sample).collect();
        if events.len() < LEAST_EVENTS {
            return None;
        }
        let sums_an_event =
            (row_lens / lags.max(1) as f64) * (lags as f64 / events.len().max(1) as f64) / sample as f64;
        let affordable =
            ((MOST_SUMS as f64 / sums_an_event.max(1.0)) as usize).clamp(LEAST_EVENTS, MOST_EVENTS);
        let mut kept = affordable.min(events.len());
        let (events, sources) = loop {
            // Evenly spread over users.
            let spread: Vec<_> = (0..kept).map(|at| events[at * events.len() / kept]).collect();
            let sources = sources_of(histories, &spread, params.max_len);
            let pairs: usize = sources.iter().map(|&item| row_len(item) / sample).sum();
            if pairs <= most_pairs || kept <= LEAST_EVENTS {
                break (spread, sources);
            }
            kept = (kept / 2).max(LEAST_EVENTS);
        };
        Some(Stage {
            histories,
            with_previous: histories.with_previous(),
            trend: Trend::new(&past, params.trend_days),
            popularity,
            past,
            events,
            sources,
            sample,
            params: *params,
        })
    }

    /// Evidence of the pairs of all sources, with each of these keys; popularity of targets and trend are applied to scores.
    fn rows(
        &self,
        counter: &PairCounter<'_>,
        evidence: &Evidence,
        keys: &[Keys],
        monitor: &dyn Monitor,
    ) -> Result<Rows, ModelError> {
        let params: Vec<MemoryParams> = keys.iter().map(|keys| keys.memory_params(&self.params)).collect();
        let finishers: Vec<Finisher> = params.iter().map(|params| Finisher::new(evidence, params)).collect();
        let items = self.histories.num_items();
        let chunks: Vec<RowsChunk> = self
            .sources
            .par_chunks(64)
            .map_init(
                || RowCounter::of_some(items, |item| is_in_sample(self.histories, item, self.sample)),
                |row, sources| {
                    check_cancelled(monitor)?;
                    let mut chunk = RowsChunk::new(finishers.len());
                    for &source in sources {
                        counter.count(source, row);
                        let scale =
                            f64::from(self.popularity[source.get()].max(1)).powf(-self.params.source_power);
                        row.drain(|target, sums| {
                            chunk.items.push(target);
                            for (weights, finisher) in chunk.weights.iter_mut().zip(&finishers) {
                                weights.push((finisher.evidence(sums) * scale) as f32);
                            }
                        });
                        chunk.ends.push(chunk.items.len());
                    }
                    Ok(chunk)
                },
            )
            .collect::<Result<_, ModelError>>()?;
        Ok(Rows::new(items, &self.sources, chunks, finishers.len()))
    }

    /// NDCG@10 of every event, with one of the weights of `rows`.
    fn gains(&self, keys: &Keys, rows: &Rows, which: usize) -> Vec<f64> {
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
                || Scores::new(scale.len()),
                |scores, &(user, position)| {
                    let history = self.histories.history_of(user, &self.with_previous);
                    let (past, target) = (history.up_to(position), history[position]);
                    scores.add(rows, which, &lag_weights, past);
                    ndcg(self.sample * scores.take_rank(&scale, &past, target), CUTOFF)
                },
            )
            .collect()
    }
}

/// Users and positions of what came after the past: items that it knows, from histories that are not empty, and none twice.
fn newest_events(histories: &Histories, past: &Histories, popularity: &[u32]) -> Vec<(UserIndex, usize)> {
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
    events
}

/// The items that stand in the histories of events, ascending.
fn sources_of(histories: &Histories, events: &[(UserIndex, usize)], max_len: usize) -> Vec<ItemIndex> {
    let mut is_needed = vec![false; histories.num_items()];
    for &(user, position) in events {
        for item in &histories.items_of(user)[position.saturating_sub(max_len)..position] {
            is_needed[item.get()] = true;
        }
    }
    (0..histories.num_items() as u32).map(ItemIndex).filter(|item| is_needed[item.get()]).collect()
}

/// Rows of some items, with several weights for each pair.
struct Rows {
    /// By item; empty for those without a row.
    ranges: Vec<(usize, usize)>,
    items: Vec<ItemIndex>,
    weights: Vec<Vec<f32>>,
}

struct RowsChunk {
    ends: Vec<usize>,
    items: Vec<ItemIndex>,
    weights: Vec<Vec<f32>>,
}

impl RowsChunk {
    fn new(weights: usize) -> Self {
        RowsChunk { ends: Vec::new(), items: Vec::new(), weights: vec![Vec::new(); weights] }
    }
}

impl Rows {
    fn new(num_items: usize, sources: &[ItemIndex], chunks: Vec<RowsChunk>, weights: usize) -> Self {
        let mut rows =
            Rows { ranges: vec![(0, 0); num_items], items: Vec::new(), weights: vec![Vec::new(); weights] };
        let mut sources = sources.iter();
        for chunk in chunks {
            let before = rows.items.len();
            let mut start = before;
            for (end, source) in chunk.ends.iter().zip(&mut sources) {
                rows.ranges[source.get()] = (start, before + end);
                start = before + end;
            }
            rows.items.extend_from_slice(&chunk.items);
            for (to, from) in rows.weights.iter_mut().zip(&chunk.weights) {
                to.extend_from_slice(from);
            }
        }
        rows
    }

    /// The same with one of the weights alone.
    fn only(mut self, which: usize) -> Self {
        self.weights = vec![self.weights.swap_remove(which)];
        self
    }

    fn row(&self, item: ItemIndex, which: usize) -> (&[ItemIndex], &[f32]) {
        let (start, end) = self.ranges[item.get()];
        (&self.items[start..end], &self.weights[which][start..end])
    }
}

/// Scores of one event: sums by item, and which of them are in use.
struct Scores {
    sums: Vec<f32>,
    touched: Vec<ItemIndex>,
}

/// What the sum of an item becomes that the user has already.
const SEEN: f32 = -1.0;

impl Scores {
    fn new(num_items: usize) -> Self {
        Scores { sums: vec![0.0; num_items], touched: Vec::new() }
    }

    fn add(&mut self, rows: &Rows, which: usize, lag_weights: &LagWeights, past: History<'_>) {
        for (item, weight) in lag_weights.weighted(past) {
            let (targets, weights) = rows.row(item, which);
            let weight = weight as f32;
            for (&target, &evidence) in targets.iter().zip(weights) {
                let sum = &mut self.sums[target.get()];
                if *sum == 0.0 {
                    self.touched.push(target);
                }
                *sum += weight * evidence;
            }
        }
    }

    /// The rank of the target among all items but those seen; as far down as can be if nothing speaks for it. Leaves all scores 0.
    fn take_rank(&mut self, scale: &[f64], seen: &[ItemIndex], target: ItemIndex) -> usize {
        for item in seen {
            self.sums[item.get()] = SEEN;
        }
        let score = |item: ItemIndex, sum: f32| f64::from(sum) * scale[item.get()];
        let of_target = score(target, self.sums[target.get()]);
        let mut rank = if of_target > 0.0 { 0 } else { CUTOFF };
        for item in self.touched.drain(..) {
            let of_item = score(item, std::mem::take(&mut self.sums[item.get()]));
            rank +=
                usize::from(of_item > of_target || (of_item == of_target && of_item > 0.0 && item < target));
        }
        for item in seen {
            self.sums[item.get()] = 0.0;
        }
        rank
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

/// The share of the core in a score that predicts best what a core and a memory of the past know of the newest events: 0 unless a core is
/// better than none by more than the standard error of the mean difference. `fit` learns both from a past.
///
/// A log of many rows is represented by some of its users, drawn by a hash of their ids.
pub(super) fn rehearse_balance(
    histories: &Histories,
    fit: impl Fn(&Histories) -> Result<Fitted, ModelError>,
    monitor: &dyn Monitor,
) -> Result<f64, ModelError> {
    let sampled = sample_of_users(histories);
    let histories = sampled.as_ref().unwrap_or(histories);
    let Some(past) = cut(histories).map(|cut| histories.until(cut)) else { return Ok(0.0) };
    let events = newest_events(histories, &past, &past.popularity());
    if events.len() < LEAST_EVENTS {
        return Ok(0.0);
    }
    let kept = events.len().min(MOST_EVENTS_OF_CORE);
    let events: Vec<_> = (0..kept).map(|at| events[at * events.len() / kept]).collect();
    let with_previous = histories.with_previous();
    let fitted = fit(&past)?;
    let gains = |balance: f64| -> Result<Vec<f64>, ModelError> {
        let model = fitted.with(balance, None)?;
        let mut gains = Vec::with_capacity(events.len());
        let mut scores = vec![0f32; EVENTS_AT_ONCE * model.num_items()];
        for events in events.chunks(EVENTS_AT_ONCE) {
            check_cancelled(monitor)?;
            let history = |&(user, position): &(UserIndex, usize)| {
                histories.history_of(user, &with_previous).up_to(position)
            };
            let pasts: Vec<History<'_>> = events.iter().map(history).collect();
            let scores = &mut scores[..events.len() * model.num_items()];
            model.score_batch(&pasts, scores);
            let of_event =
                |((scores, past), &(user, position)): ((&mut [f32], &History<'_>), &(UserIndex, usize))| {
                    past.iter().for_each(|item| scores[item.get()] = f32::NEG_INFINITY);
                    let target = histories.items_of(user)[position];
                    ndcg(rank_of(target, scores.len(), |item| f64::from(scores[item.get()])), CUTOFF)
                };
            gains.par_extend(scores.par_chunks_mut(model.num_items()).zip(&pasts).zip(events).map(of_event));
        }
        tracing::debug!(balance, ndcg = mean(&gains), events = gains.len(), "rehearsed");
        Ok(gains)
    };
    let without = gains(0.0)?;
    let mut best: Option<(f64, Vec<f64>)> = None;
    for balance in BALANCES {
        let gains = gains(balance)?;
        if best.as_ref().is_some_and(|(_, best)| mean(&gains) <= mean(best)) {
            break;
        }
        best = Some((balance, gains));
    }
    Ok(best.filter(|(_, gains)| is_better(gains, &without)).map_or(0.0, |(balance, _)| balance))
}

/// Some users of a log that has too many rows to learn a core of all of them twice.
fn sample_of_users(histories: &Histories) -> Option<Histories> {
    let parts = histories.num_rows().div_ceil(MOST_ROWS_OF_CORE) as u64;
    let is_drawn = |user: UserIndex| {
        let mut mixer = Mixer::new(0x7573_6572_7300);
        mixer.add_id(histories.users().get(user.get()));
        mixer.finish() % parts == 0
    };
    (parts > 1).then(|| histories.of_users(is_drawn))
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
        let mut scores = Scores::new(4);
        for (seen, target, rank) in [
            (vec![0], 1, 0),
            (vec![0], 2, 1),
            (vec![0, 0, 1], 2, 0),
            (vec![], 3, CUTOFF + 3),
            (vec![3], 2, 2),
        ] {
            let seen: Vec<ItemIndex> = seen.into_iter().map(ItemIndex).collect();
            scores.sums = vec![3.0, 2.0, 2.0, 0.0];
            scores.touched = (0..3).map(ItemIndex).collect();
            assert_eq!(scores.take_rank(&[1.0; 4], &seen, ItemIndex(target)), rank, "{target}");
            assert!(scores.sums == [0.0; 4] && scores.touched.is_empty());
        }
    }
}
