//! What GA-SATF and LA-SATF share: configuration checks, fitting, snapshots, scoring.

// Formulas are not code.
#![allow(clippy::doc_markdown)]

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use toml::Table;

use super::fold_in::FoldIn;
use super::lag_weights::LagWeights;
use super::memory::{DEFAULT_MEMORY_BYTES, check_memory};
use super::positions::Positions;
use super::pure_svd::warn_of_rank;
use super::{Fault, Iteration, ModelError, Recommender, Snapshot, TrainingMonitor, variant};
use crate::factorize::{
    FactorizeError, Factors, HooiOptions, Plan, PositionModes, Progress, Sizes, factorize,
};
use crate::interactions::ItemIndex;
use crate::linalg::Real;
use crate::monitor::check_cancelled;
use crate::prepare::Histories;
use crate::tensor::{Attention, Normalization, PositionalLog};

/// Precision of large factors and products. Sums and small problems are in double always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Four bytes a number: enough, and twice as fast.
    #[default]
    Single,
    /// Eight bytes a number.
    Double,
}

/// Columns of the user and the item factor if none are asked for, where the log is large enough.
pub(super) const DEFAULT_RANK: usize = 500;

/// Items a column of the item factor, at least, if no rank is asked for. An item space as large as the catalogue is the
/// identity and knows nothing; on small catalogues quality falls well before that.
const ITEMS_A_COLUMN: usize = 4;

/// Iterations that can be asked for. No factorization needs a thousand.
const MOST_ITERATIONS: usize = 1_000_000;

/// The ranks to check before the data is known: those asked for, else defaults that go with the other ranks.
pub(super) fn given_ranks(user: Option<usize>, item: Option<usize>, small: usize) -> (usize, usize) {
    let beside =
        |other: Option<usize>| DEFAULT_RANK.min(other.unwrap_or(DEFAULT_RANK).saturating_mul(small)).max(1);
    (user.unwrap_or(beside(item)), item.unwrap_or(beside(user)))
}

/// The ranks, by name, that are not the usual ones, which are given beside them: somebody asked for these.
pub(super) fn asked_for<const N: usize>(
    ranks: [(&'static str, usize, usize); N],
) -> Vec<(&'static str, usize)> {
    let asked = ranks.into_iter().filter(|(_, rank, usual)| rank != usual);
    asked.map(|(name, rank, _)| (name, rank)).collect()
}

/// A tensor model, ready to be fitted.
pub(super) struct TensorModel {
    pub(super) name: &'static str,
    pub(super) positions: Positions,
    pub(super) scaling: f64,
    pub(super) rescaled: bool,
    pub(super) precision: Precision,
    pub(super) user_rank: Option<usize>,
    pub(super) item_rank: Option<usize>,
    /// Ranks of positions that were asked for, by name: those that are not the usual ones.
    pub(super) position_ranks: Vec<(&'static str, usize)>,
    /// Everything else; its ranks are replaced by those above.
    pub(super) options: HooiOptions,
}

/// Everything that is settled before the first iteration.
struct Prepared {
    log: PositionalLog,
    positions: Positions,
    options: HooiOptions,
    plan: Plan,
}

impl TensorModel {
    pub(super) fn plan(&self, histories: &Histories) -> Result<Plan, ModelError> {
        Ok(self.prepare(histories)?.plan)
    }

    /// As many positions as these histories can use, or an error if matrices over them take more memory than allowed.
    pub(super) fn positions_on(&self, histories: &Histories) -> Result<Positions, ModelError> {
        let longest = histories.iter().map(<[ItemIndex]>::len).max().unwrap_or(0);
        let positions = self.positions.bounded(longest);
        let hint = "shorten max_len, lower the ranks of positions, or raise memory_bytes";
        let what = || format!("matrices over {} positions", positions.num_positions());
        check_memory(self.name, what, positions.num_bytes(), self.options.memory_bytes, hint)?;
        Ok(positions)
    }

    /// The log with as many positions as it can use, and how an iteration on it will be done.
    fn prepare(&self, histories: &Histories) -> Result<Prepared, ModelError> {
        let positions = self.positions_on(histories)?;
        let (asked, num_positions) = (self.positions.num_positions(), positions.num_positions());
        if num_positions < asked {
            tracing::info!(asked, num_positions, "no history reaches further than this");
        }
        let log = PositionalLog::from_histories(histories, num_positions);
        if log.num_entries() == 0 {
            return Err(self.error(FactorizeError::Empty));
        }
        let mut options = self.options_for(&log, positions.num_weights());
        let plan = self.plan_for(&log, &positions, &mut options)?;
        Ok(Prepared { log, positions, options, plan })
    }

    /// The options with ranks that suit the log where none were asked for.
    fn options_for(&self, log: &PositionalLog, weights: usize) -> HooiOptions {
        let item_rank = self.item_rank.unwrap_or_else(|| {
            let users = self.user_rank.unwrap_or(log.num_users());
            DEFAULT_RANK.min(log.num_items() / ITEMS_A_COLUMN).min(users.saturating_mul(weights)).max(1)
        });
        let user_rank = self.user_rank.unwrap_or_else(|| {
            DEFAULT_RANK.min(log.num_users()).min(item_rank.saturating_mul(weights)).max(1)
        });
        HooiOptions { user_rank, item_rank, ..self.options.clone() }
    }

    /// The cheapest plan within the memory allowed. If no limit was given, the usual one counts only where the plan without any
    /// would exceed it: other plans round otherwise.
    fn plan_for(
        &self,
        log: &PositionalLog,
        positions: &Positions,
        options: &mut HooiOptions,
    ) -> Result<Plan, ModelError> {
        let size = match self.precision {
            Precision::Single => 4,
            Precision::Double => 8,
        };
        let user_rank = options.user_rank.min(log.num_users()).max(1);
        let item_rank = options.item_rank.min(log.num_items()).max(1);
        let sizes = Sizes::of(log, user_rank, item_rank, positions.num_weights(), size);
        let unbounded = sizes.plan(options.memory_bytes).map_err(|error| self.error(error))?;
        let needed = unbounded.memory_bytes.saturating_add(positions.num_bytes());
        if options.memory_bytes.is_some() || needed <= DEFAULT_MEMORY_BYTES {
            return Ok(unbounded);
        }
        options.memory_bytes = Some(DEFAULT_MEMORY_BYTES);
        sizes.plan(options.memory_bytes).map_err(|error| self.error(error))
    }

    pub(super) fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        check_cancelled(monitor)?;
        let prepared = self.prepare(histories)?;
        match self.precision {
            Precision::Single => self.fit_in::<f32>(&prepared, monitor),
            Precision::Double => self.fit_in::<f64>(&prepared, monitor),
        }
    }

    fn fit_in<T: Real>(
        &self,
        prepared: &Prepared,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        let Prepared { log, positions, options, .. } = prepared;
        let item_weights = log.popularity_weights(self.scaling);
        let modes = positions.modes();
        let fixed = Fixed { model: self, modes: &modes, item_weights: &item_weights };
        monitor.begin("iterations", options.num_iters as u64);
        let mut iterations = 0;
        let mut watch = |progress: &Progress, factors: &Factors<T>| -> ControlFlow<()> {
            monitor.advance(1);
            iterations = progress.iteration;
            monitor.iteration(&report(progress), &State { fixed, factors, iterations })
        };
        let factors = factorize(log, &item_weights, &modes, options, None, monitor, &mut watch)
            .map_err(|error| self.error(error))?;
        self.warn_of_ranks(&factors);
        State { fixed, factors: &factors, iterations }.recommender()
    }

    /// Says which of the ranks that were asked for the log does not have. Nobody asked for the others.
    fn warn_of_ranks<T: Real>(&self, factors: &Factors<T>) {
        let asked = [("user_rank", self.user_rank), ("item_rank", self.item_rank)];
        let asked = asked.into_iter().filter_map(|(name, rank)| Some((name, rank?)));
        let found = ranks(factors);
        for (name, rank) in asked.chain(self.position_ranks.iter().copied()) {
            let found = found.iter().find(|(known, _)| *known == name).map_or(rank, |&(_, found)| found);
            warn_of_rank(self.name, name, rank, found);
        }
    }

    fn error(&self, error: FactorizeError) -> ModelError {
        let model = self.name;
        match error {
            FactorizeError::Cancelled(cancelled) => cancelled.into(),
            FactorizeError::Empty => ModelError::Data { model, reason: error.to_string() },
            FactorizeError::Memory { needed, allowed } => ModelError::Memory {
                model,
                what: "an iteration in the leanest way".to_owned(),
                needed,
                allowed,
                hint: "raise memory_bytes, lower user_rank, or shorten max_len",
            },
            _ => ModelError::Numerics { model, reason: error.to_string() },
        }
    }
}

/// The ranks of factors, as the data had them.
fn ranks<T: Real>(factors: &Factors<T>) -> Vec<(&'static str, usize)> {
    let Factors { users, items, positions } = factors;
    let large = [("user_rank", users.width()), ("item_rank", items.width())];
    large.into_iter().chain(PositionModes::ranks(positions)).collect()
}

fn report(progress: &Progress) -> Iteration {
    let seconds: f64 = progress.seconds.iter().sum();
    let [users, items, positions] = progress.seconds;
    Iteration {
        iteration: progress.iteration,
        seconds,
        measures: vec![
            ("core_norm", progress.core_norm),
            ("seconds_users", users),
            ("seconds_items", items),
            ("seconds_positions", positions),
            ("operations", progress.operations),
            ("gflops", progress.operations / seconds / 1e9),
        ],
    }
}

/// What no iteration changes.
#[derive(Clone, Copy)]
struct Fixed<'a> {
    model: &'a TensorModel,
    modes: &'a PositionModes,
    item_weights: &'a [f64],
}

/// Factors after so many iterations.
struct State<'a, T> {
    fixed: Fixed<'a>,
    factors: &'a Factors<T>,
    iterations: usize,
}

impl<T: Real> State<'_, T> {
    /// Iterations made, and ranks as the data had them.
    fn learned(&self) -> Vec<(&'static str, f64)> {
        let all = [("num_iters", self.iterations)].into_iter().chain(ranks(self.factors));
        all.map(|(name, value)| (name, value as f64)).collect()
    }
}

/// The keys that play no part in training.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Variant {
    rescaled: Option<bool>,
}

impl<T: Real> Snapshot for State<'_, T> {
    /// Next items by Eq. 15 (global attention) or Eq. 20 (local), with the projector $V V^T$ of Eq. 27, or
    /// $D^{-1} V V^T D$ of Eq. 28 if rescaled. The history shifts by one: lag $l$ gets $g_{K-2-l}$.
    fn variant(&self, keys: &Table) -> Result<Box<dyn Recommender>, ModelError> {
        let Fixed { model, modes, item_weights } = self.fixed;
        let variant: Variant = variant::read(model.name, keys)?;
        let g = modes.next_item_weights(&self.factors.positions);
        let weights = LagWeights::ByLag(g[..g.len() - 1].iter().rev().copied().collect());
        let items = &self.factors.items;
        let row = |item: usize, into: &mut [f64]| {
            into.iter_mut().zip(items.row(item)).for_each(|(to, from)| *to = from.double());
        };
        let rescaled = variant.rescaled.unwrap_or(model.rescaled);
        let debias = rescaled.then_some(item_weights);
        let fold_in = FoldIn::from_item_space(items.nrows(), items.width(), row, debias, weights);
        let fold_in = fold_in.map(|fold_in| fold_in.with_learned(self.learned()));
        fold_in.map(|fold_in| Box::new(fold_in) as Box<dyn Recommender>).ok_or_else(|| ModelError::Numerics {
            model: model.name,
            reason: "the item factors are not finite".to_owned(),
        })
    }
}

/// Faults of the fields both models have.
pub(super) struct CommonFields<'a> {
    pub(super) attention: &'a Attention,
    pub(super) scaling: f64,
    pub(super) num_iters: usize,
    pub(super) growth_tolerance: f64,
    pub(super) max_len: usize,
    /// Field, rank and, where the configuration alone tells it, the dimension.
    pub(super) ranks: &'a [(&'static str, usize, Option<usize>)],
}

impl CommonFields<'_> {
    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.max_len < 2 {
            faults.push(Fault::new("max_len", self.max_len, "at least 2: an item and the one before it"));
        }
        let product = |skipped: usize| {
            let others = self.ranks.iter().enumerate().filter(|(at, _)| *at != skipped);
            others.fold(1usize, |product, (_, rank)| product.saturating_mul(rank.1))
        };
        let has_zero = self.ranks.iter().any(|rank| rank.1 == 0);
        for (at, &(field, rank, dimension)) in self.ranks.iter().enumerate() {
            if rank == 0 {
                faults.push(Fault::new(field, rank, "at least 1"));
            } else if let Some(dimension) = dimension.filter(|&dimension| rank > dimension) {
                faults.push(Fault::new(
                    field,
                    rank,
                    format!("at most {dimension}, the size of its dimension"),
                ));
            } else if !has_zero && rank > product(at) {
                let expected = format!("at most {}, the product of the other ranks", product(at));
                faults.push(Fault::new(field, rank, expected));
            }
        }
        if !(-1.0..=2.0).contains(&self.scaling) {
            faults.push(Fault::new("scaling", self.scaling, "-1 to 2"));
        }
        if !(1..=MOST_ITERATIONS).contains(&self.num_iters) {
            faults.push(Fault::new("num_iters", self.num_iters, format!("1 to {MOST_ITERATIONS}")));
        }
        if !(0.0..1.0).contains(&self.growth_tolerance) {
            faults.push(Fault::new("growth_tolerance", self.growth_tolerance, "0 (never) up to below 1"));
        }
        self.attention_faults(&mut faults);
        faults
    }

    fn attention_faults(&self, faults: &mut Vec<Fault>) {
        let Attention { factor, span, cutoff, normalization, weights, .. } = self.attention;
        if !(0.0..=100.0).contains(factor) {
            faults.push(Fault::new("attention_decay", factor, "0 to 100"));
        }
        if *span == Some(0) {
            faults.push(Fault::new("attention_span", 0, "at least 1, or nothing for all diagonals"));
        }
        if !(cutoff.is_finite() && *cutoff >= 0.0) {
            faults.push(Fault::new("attention_cutoff", cutoff, "at least 0"));
        }
        let Some(weights) = weights else { return };
        let shown = format!("{weights:?}");
        if weights.iter().any(|weight| !weight.is_finite() || weight.abs() > 1e6)
            || weights.first().is_none_or(|a| a.abs() < 1e-6)
        {
            let expected = "numbers of at most 1e6, the first of them not 0";
            faults.push(Fault::new("attention_weights", shown, expected));
        } else if *normalization != Normalization::None
            && (weights[0] < 0.0 || weights.iter().any(|weight| *weight < 0.0))
        {
            faults.push(Fault::new(
                "attention_weights",
                shown,
                "none below 0 where rows or columns are normalized",
            ));
        }
    }
}
