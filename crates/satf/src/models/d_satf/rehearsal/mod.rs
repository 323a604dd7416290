//! Keys learned from the log: the model rehearses on its newest events.
//!
//! How fast do old items lose their weight? How much does popularity tell, how much does the trend? Logs differ, and the log itself
//! knows: a memory of all but the newest events ([`stage`]) is asked to predict these, one after the other, with candidates for some
//! keys at a time, and the best one stays. What the memory then learns from is the whole log.
//!
//! Every candidate is judged by its NDCG@10 on the same events, at most [`MOST_EVENTS`], under the rules of the evaluation: the whole
//! catalogue is ranked, items already taken are left out, ties go to the lower index. The best of them stays if it is better by more than
//! the standard error of the mean difference.
//!
//! No key is inside the counts, so pairs are counted once, and only for the items that stand in the histories of the events
//! ([`pair_table`]). Candidates are scored eight at a time ([`gains`]): a pass over the rows of a history costs hardly more for eight sums beside
//! each other than for one.

mod balance;
mod gains;
mod pair_table;
mod stage;

use self::gains::{Weighted, gains, is_better, mean};
use self::pair_table::PairTable;
use self::stage::Stage;
use super::memory::{Evidence, Finisher};
use super::trend::Trend;
use super::{GivenParams, Keys};
use crate::counts::{PairCounter, PairRows};
use crate::interactions::{ItemIndex, UserIndex};
use crate::models::{LagWeights, ModelError};
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};
use crate::prepare::{Histories, History};

pub(super) use balance::{LARGE_CATALOGUE, MOST_SAMPLED_PAIRS, MOST_SAMPLED_ROWS, rehearse_balance};

/// Most events that are predicted.
const MOST_EVENTS: usize = 8000;

/// Newest items of a history that are looked at: what is older counts little, and would cost most of the time where histories are long.
const MOST_ITEMS: usize = 30;

/// Most sums that scoring all events once may take: where histories and rows are long there are fewer events.
const MOST_SUMS: usize = 50_000_000;

/// Most pairs that are kept to rehearse on.
const MOST_PAIRS: usize = 6_000_000;

/// Most pairs of an item that are kept to rehearse on, the strongest.
pub(super) const MOST_PAIRS_A_ROW: usize = 200;

/// Most items whose pairs are kept to rehearse on.
pub(super) const MOST_SOURCES: usize = MOST_EVENTS * MOST_ITEMS;

/// Candidates that are scored at a time.
const LANES: usize = 8;

/// What a key changes, and so what has to be computed anew for it.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// What the items of a history count.
    History,
    /// The evidence of pairs.
    Pairs,
    /// What the score of an item is multiplied with.
    Targets,
}

/// What is tried for a key, and where it is kept.
struct Dimension {
    name: &'static str,
    part: Part,
    values: &'static [f64],
    /// Whether it only matters where items are taken at one time.
    of_baskets: bool,
    key: fn(&mut Keys) -> &mut f64,
}

/// In the order in which they are learned; the first ones matter most. Those that scale targets are learned together.
const DIMENSIONS: [Dimension; 6] = [
    Dimension {
        name: "distance_decay",
        part: Part::Pairs,
        values: &[0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0],
        of_baskets: false,
        key: |keys| &mut keys.distance_decay,
    },
    Dimension {
        name: "recency_decay",
        part: Part::History,
        values: &[0.25, 0.35, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0],
        of_baskets: false,
        key: |keys| &mut keys.recency_decay,
    },
    Dimension {
        name: "basket_order",
        part: Part::History,
        values: &[0.0, 0.25, 0.5, 1.0],
        of_baskets: true,
        key: |keys| &mut keys.basket_order,
    },
    Dimension {
        name: "target_power",
        part: Part::Targets,
        values: &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
        of_baskets: false,
        key: |keys| &mut keys.target_power,
    },
    Dimension {
        name: "trend",
        part: Part::Targets,
        values: &[0.0, 0.15, 0.3, 0.45, 0.6],
        of_baskets: false,
        key: |keys| &mut keys.trend,
    },
    Dimension {
        name: "together",
        part: Part::Pairs,
        values: &[0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0],
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
    let Some(stage) = Stage::new(histories) else { return Ok((keys, 0)) };
    let matters = |dimension: &&Dimension| stage.has_baskets() || !dimension.of_baskets;
    let open: Vec<&Dimension> =
        DIMENSIONS.iter().filter(|dimension| !is_fixed(dimension.name)).filter(matters).collect();
    let steps = steps(&open);
    monitor.begin("rehearsing on the newest events", 1 + steps.len() as u64);
    let rehearsal = Rehearsal::new(&stage, &keys, given, &OnlyCancels(monitor))?;
    monitor.advance(1);
    let mut best = rehearsal.gains(&[keys], Part::Targets).remove(0);
    tracing::debug!(ndcg = mean(&best), events = best.len(), "rehearsed");
    for step in &steps {
        check_cancelled(monitor)?;
        let candidates = step.candidates(&keys);
        let mut all = rehearsal.gains(&candidates, step.part);
        for (candidate, gains) in candidates.iter().zip(&all) {
            tracing::debug!(?candidate, ndcg = mean(gains), "rehearsed");
        }
        let means: Vec<f64> = all.iter().map(|gains| mean(gains)).collect();
        let found = (0..all.len()).reduce(|one, other| if means[other] > means[one] { other } else { one });
        if let Some(found) = found.filter(|&found| rehearsal.is_better(&all[found], &best)) {
            (best, keys) = (all.swap_remove(found), candidates[found]);
        }
        monitor.advance(1);
    }
    tracing::info!(?keys, ndcg = mean(&best), events = best.len(), "learned by rehearsal");
    Ok((keys, best.len()))
}

/// Keys that are learned together.
struct Step<'a> {
    part: Part,
    dimensions: Vec<&'a Dimension>,
}

fn steps<'a>(open: &[&'a Dimension]) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    for &dimension in open {
        match steps.iter_mut().find(|step| step.part == Part::Targets && dimension.part == Part::Targets) {
            Some(step) => step.dimensions.push(dimension),
            None => steps.push(Step { part: dimension.part, dimensions: vec![dimension] }),
        }
    }
    steps
}

impl Step<'_> {
    /// Every combination of values.
    fn candidates(&self, keys: &Keys) -> Vec<Keys> {
        let mut candidates = vec![*keys];
        for dimension in &self.dimensions {
            let with = |keys: Keys| {
                dimension.values.iter().map(move |&value| {
                    let mut keys = keys;
                    *(dimension.key)(&mut keys) = value;
                    keys
                })
            };
            candidates = candidates.into_iter().flat_map(with).collect();
        }
        candidates
    }
}

/// Everything that scoring the events with any keys needs.
struct Rehearsal<'a> {
    stage: &'a Stage<'a>,
    events: Vec<(UserIndex, usize)>,
    evidence: Evidence,
    table: PairTable,
    trend: Trend,
    given: GivenParams,
}

impl<'a> Rehearsal<'a> {
    fn new(
        stage: &'a Stage<'a>,
        keys: &Keys,
        given: &GivenParams,
        monitor: &dyn Monitor,
    ) -> Result<Self, ModelError> {
        let (events, sources) = affordable_events(stage, given);
        let counter = PairCounter::new(&given.counting, &stage.past, &stage.popularity);
        // Which pairs of a row are the strongest is told well enough without their directions.
        let finisher =
            Finisher::new(&Evidence::of_distances(counter.distances()), &keys.memory_params(given));
        let trend = Trend::new(&stage.past, given.trend_days);
        let scale = target_scale(stage, &trend, keys);
        let (table, evidence) = PairTable::new(
            &counter,
            &sources,
            &finisher,
            &scale,
            given.row_limit.min(MOST_PAIRS_A_ROW),
            monitor,
        )?;
        Ok(Rehearsal { stage, events, evidence, table, trend, given: *given })
    }

    /// NDCG@10 of every event for each of the candidates, which differ in one part alone.
    fn gains(&self, candidates: &[Keys], part: Part) -> Vec<Vec<f64>> {
        let Some(first) = candidates.first() else { return Vec::new() };
        match part {
            Part::Targets => {
                let evidence = self.table.evidence(&[self.finisher(first)]);
                let scales: Vec<Vec<f32>> =
                    candidates.iter().map(|keys| target_scale(self.stage, &self.trend, keys)).collect();
                let weighting = Weighting::new(self, std::array::from_ref(first));
                self.predict(&evidence, &weighting, &scales)
            }
            Part::History => by_lanes(candidates, |lanes| {
                let evidence = self.table.evidence(&[self.finisher(first)]);
                self.predict(
                    &evidence,
                    &Weighting::new(self, lanes),
                    &[target_scale(self.stage, &self.trend, first)],
                )
            }),
            Part::Pairs => by_lanes(candidates, |lanes| {
                let evidence = self.table.evidence(&lanes.map(|keys| self.finisher(&keys)));
                self.predict(
                    &evidence,
                    &Weighting::new(self, lanes),
                    &[target_scale(self.stage, &self.trend, first)],
                )
            }),
        }
    }

    fn predict<const N: usize, const M: usize>(
        &self,
        evidence: &[[f32; M]],
        weighting: &Weighting<N>,
        scales: &[Vec<f32>],
    ) -> Vec<Vec<f64>> {
        gains(self.stage, &self.events, &self.table, evidence, |past| weighting.of(past), scales)
    }

    fn is_better(&self, gains: &[f64], others: &[f64]) -> bool {
        is_better(&self.events, gains, others)
    }

    fn finisher(&self, keys: &Keys) -> Finisher {
        Finisher::new(&self.evidence, &keys.memory_params(&self.given))
    }
}

impl GivenParams {
    /// How many of the newest items of a history count in a rehearsal.
    fn rehearsed_len(&self) -> usize {
        self.max_len.min(MOST_ITEMS)
    }
}

/// All candidates, so many at a time that they fill the lanes.
fn by_lanes(candidates: &[Keys], gains: impl Fn(&[Keys; LANES]) -> Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut all = Vec::with_capacity(candidates.len());
    for some in candidates.chunks(LANES) {
        let lanes = std::array::from_fn(|lane| some[lane.min(some.len() - 1)]);
        all.extend(gains(&lanes).into_iter().take(some.len()));
    }
    all
}

/// What items of a history count by their lag and popularity, lane by lane.
struct Weighting<const N: usize> {
    lag_weights: [LagWeights; N],
    /// By item.
    source_scales: Vec<f32>,
}

impl<const N: usize> Weighting<N> {
    fn new(rehearsal: &Rehearsal<'_>, keys: &[Keys; N]) -> Self {
        let scale = |&count: &u32| f64::from(count.max(1)).powf(-rehearsal.given.source_power) as f32;
        Weighting {
            lag_weights: keys.map(|keys| keys.lag_weights(rehearsal.given.rehearsed_len())),
            source_scales: rehearsal.stage.popularity.iter().map(scale).collect(),
        }
    }

    fn of(&self, past: History<'_>) -> Weighted<N> {
        let lanes = self.lag_weights.each_ref().map(|weights| weights.of(past).unwrap_or_default());
        let newest_first = past.items().iter().rev().take(lanes[0].len());
        let weighted = newest_first.enumerate().map(|(lag, &item)| {
            let scale = self.source_scales[item.get()];
            (item, std::array::from_fn(|lane| lanes[lane][lag] as f32 * scale))
        });
        weighted.collect()
    }
}

/// What the score of every item is multiplied with.
fn target_scale(stage: &Stage<'_>, trend: &Trend, keys: &Keys) -> Vec<f32> {
    let trend = trend.weights(keys.trend);
    let scale =
        |(trend, &count): (f64, &u32)| (trend * f64::from(count.max(1)).powf(-keys.target_power)) as f32;
    trend.into_iter().zip(&stage.popularity).map(scale).collect()
}

/// As many events as can be scored and remembered, and the items in their histories, ascending.
fn affordable_events(stage: &Stage<'_>, given: &GivenParams) -> (Vec<(UserIndex, usize)>, Vec<ItemIndex>) {
    let past = &stage.past;
    let mean_len = past.num_rows() / past.num_users().max(1) + 1;
    let longest = given.row_limit.min(MOST_PAIRS_A_ROW).min(past.num_items());
    let row_len = |item: ItemIndex| {
        let near = 2 * given.counting.window.min(mean_len) * stage.popularity[item.get()] as usize;
        near.min(longest)
    };
    let mut kept = stage.num_events().min(MOST_EVENTS);
    loop {
        let events: Vec<_> = stage.spread(kept).collect();
        let mut is_source = vec![false; past.num_items()];
        let (mut sums, mut pairs) = (0, 0);
        for &event in &events {
            let (history, _) = stage.event(event);
            for item in &history.items()[history.len().saturating_sub(given.rehearsed_len())..] {
                let len = row_len(*item);
                sums += len;
                if !std::mem::replace(&mut is_source[item.get()], true) {
                    pairs += len;
                }
            }
        }
        let too_many = (sums / MOST_SUMS).max(pairs / MOST_PAIRS);
        if too_many == 0 || events.len() > kept || events.len() <= stage::LEAST_EVENTS {
            let sources = (0..past.num_items() as u32).map(ItemIndex).filter(|item| is_source[item.get()]);
            return (events, sources.collect());
        }
        kept = (kept / 2).min(kept / too_many);
    }
}
