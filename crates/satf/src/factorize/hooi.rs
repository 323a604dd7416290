//! The loop of Algorithms 1 and 2.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::FactorizeError;
use super::gram_side::{self, Leading};
use super::krylov::{self, Warmth};
use super::per_position::position_gram;
use super::plan::{Plan, Sizes, Way};
use super::position_modes::{PositionFactors, PositionModes};
use super::rows::Rows;
use super::start::{Start, StartFactors};
use super::unfolding::{Side, Unfolding, reduce_weights};
use crate::linalg::Real;
use crate::monitor::{Monitor, check_cancelled};
use crate::tensor::PositionalLog;

/// Whether the update of $V$ sees the popularity weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemUpdate {
    /// With $D$: the tensor of the objective. The core norm never falls.
    #[default]
    Weighted,
    /// Without $D$, though all other updates have it: what the figures published for GA-SATF come from. The core norm
    /// may fall.
    Unweighted,
}

/// How to iterate.
#[derive(Clone, Debug)]
pub struct HooiOptions {
    /// $r_1$.
    pub user_rank: usize,
    /// $r_2$.
    pub item_rank: usize,
    /// Iterations at most.
    pub num_iters: usize,
    /// Ends when the core norm grows by no more than this share; 0 never does.
    pub growth_tolerance: f64,
    /// First factors.
    pub start: Start,
    /// Seed for everything random.
    pub seed: u64,
    /// The update of $V$.
    pub item_update: ItemUpdate,
    /// Bytes that may be held at once, histories included.
    pub memory_bytes: Option<u64>,
    /// The way for users and items, whatever the plan says: for comparisons.
    pub way: Option<Way>,
}

/// Factors after an iteration.
#[derive(Clone, Debug)]
pub struct Factors<T> {
    /// $U$: one row per user. Needed during training only.
    pub users: Rows<T>,
    /// $V$: one row per item.
    pub items: Rows<T>,
    /// $W$, or $W_L$ and $W_S$.
    pub positions: PositionFactors,
}

/// How an iteration went.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// Counted from 1.
    pub iteration: usize,
    /// Norm of the core tensor.
    pub core_norm: f64,
    /// Seconds for users, items and positions.
    pub seconds: [f64; 3],
    /// Floating-point operations: as planned for the shapes met, and as counted where a way ends by itself.
    pub operations: f64,
}

/// Decomposes the tensor of a log.
///
/// `item_weights` is the diagonal of $D$. `start` overrides [`HooiOptions::start`]. `watch` sees every iteration and
/// may end the work. Ranks that the data does not have are lowered: the factors tell.
///
/// # Panics
/// If a rank is 0, or the log has other numbers of items or positions than the weights and modes.
pub fn factorize<T: Real>(
    log: &PositionalLog,
    item_weights: &[f64],
    modes: &PositionModes,
    options: &HooiOptions,
    start: Option<StartFactors<T>>,
    monitor: &dyn Monitor,
    watch: &mut dyn FnMut(&Progress, &Factors<T>) -> ControlFlow<()>,
) -> Result<Factors<T>, FactorizeError> {
    assert_eq!(log.num_items(), item_weights.len(), "one weight per item");
    assert_eq!(log.num_positions(), modes.num_positions(), "positions of the log and of the modes");
    assert!(options.user_rank > 0 && options.item_rank > 0, "ranks of at least 1");
    if log.num_entries() == 0 {
        return Err(FactorizeError::Empty);
    }
    let item_weights: Vec<T> = item_weights.iter().map(|&weight| T::of(weight)).collect();
    let start = start.unwrap_or_else(|| {
        let item_rank = options.item_rank.min(log.num_items());
        options.start.factors(log, &item_weights, item_rank, modes, options.seed)
    });
    let mut hooi = Hooi {
        log,
        modes,
        options,
        monitor,
        weighted_items: start.items.scaled(&item_weights),
        item_weights,
        users: None,
        items: start.items,
        positions: start.positions,
        core_energy: 0.0,
    };
    let mut last_norm = 0.0;
    for iteration in 1..=options.num_iters.max(1) {
        let progress = hooi.iterate(iteration)?;
        let factors = hooi.factors();
        let stop = watch(&progress, &factors).is_break();
        hooi.take_back(factors);
        let growth = progress.core_norm - last_norm;
        if stop || (options.growth_tolerance > 0.0 && growth <= options.growth_tolerance * last_norm) {
            break;
        }
        last_norm = progress.core_norm;
    }
    Ok(hooi.factors())
}

struct Hooi<'a, T> {
    log: &'a PositionalLog,
    modes: &'a PositionModes,
    options: &'a HooiOptions,
    monitor: &'a dyn Monitor,
    item_weights: Vec<T>,
    users: Option<Rows<T>>,
    items: Rows<T>,
    /// $D V$.
    weighted_items: Rows<T>,
    positions: PositionFactors,
    /// Square of the core norm.
    core_energy: f64,
}

impl<T: Real> Hooi<'_, T> {
    /// One pass of Algorithm 1 (third order) or 2 (fourth order).
    fn iterate(&mut self, iteration: usize) -> Result<Progress, FactorizeError> {
        let span = tracing::info_span!("hooi", iteration);
        let _entered = span.enter();
        let begin = Instant::now();
        // W_A = A W, over both virtual modes at the fourth order, reduced to its numerical rank.
        let weights = reduce_weights::<T>(&self.modes.weights(&self.positions))?;
        let plan = self.plan(weights.width())?;

        // U <- r1 leading left singular vectors of X(1) (W_A x V), or X(1) (W_S x W_A x V)
        let user_operations = self.update_users(&weights, &plan, iteration)?;
        let users_done = Instant::now();

        // V <- r2 leading left singular vectors of X(2) (W_A x U), or X(2) (W_S x W_A x U)
        let item_operations = self.update_items(&weights, &plan, iteration)?;
        let items_done = Instant::now();

        // W, or W_L and then W_S <- r3, r4 leading left singular vectors of what is left
        self.update_positions()?;
        let seconds = [
            (users_done - begin).as_secs_f64(),
            (items_done - users_done).as_secs_f64(),
            items_done.elapsed().as_secs_f64(),
        ];
        let core_norm = self.core_energy.sqrt();
        if !core_norm.is_finite() {
            return Err(FactorizeError::NotFinite);
        }
        tracing::debug!(core_norm, ?seconds, "iteration done");
        let operations = user_operations + item_operations + plan.modes[2].operations;
        Ok(Progress { iteration, core_norm, seconds, operations })
    }

    fn plan(&self, weights: usize) -> Result<Plan, FactorizeError> {
        self.sizes(weights).plan(self.options.memory_bytes)
    }

    fn sizes(&self, weights: usize) -> Sizes {
        let (user_rank, item_rank) = (self.options.user_rank, self.items.width().max(self.options.item_rank));
        let user_rank = user_rank.min(self.log.num_users());
        Sizes::of(self.log, user_rank, item_rank.min(self.log.num_items()), weights, size_of::<T>())
    }

    fn update_users(
        &mut self,
        weights: &Rows<T>,
        plan: &Plan,
        iteration: usize,
    ) -> Result<f64, FactorizeError> {
        let span = tracing::info_span!("users");
        let _entered = span.enter();
        let way = self.options.way.unwrap_or(plan.modes[0].way);
        // Only an iteration that starts from it has a use for the last U.
        let previous = self.users.take().filter(|_| way == Way::Krylov);
        let unfolding = Unfolding {
            log: self.log,
            side: Side::Users,
            other: &self.weighted_items,
            row_scale: None,
            weights,
        };
        let warmth = Warmth {
            previous: previous.as_ref(),
            floor: self.core_energy,
            seed: self.options.seed ^ (iteration as u64) << 32,
        };
        let leading = self.leading(&unfolding, self.options.user_rank, way, &warmth)?;
        self.users = Some(leading.vectors);
        Ok(leading.operations.unwrap_or(plan.modes[0].operations))
    }

    fn update_items(
        &mut self,
        weights: &Rows<T>,
        plan: &Plan,
        iteration: usize,
    ) -> Result<f64, FactorizeError> {
        let span = tracing::info_span!("items");
        let _entered = span.enter();
        let is_weighted = self.options.item_update == ItemUpdate::Weighted;
        let users = self.users.as_ref().expect("invariant: users are updated before items");
        let unfolding = Unfolding {
            log: self.log,
            side: Side::Items,
            other: users,
            row_scale: is_weighted.then_some(self.item_weights.as_slice()),
            weights,
        };
        let way = self.options.way.unwrap_or(plan.modes[1].way);
        let warmth = Warmth {
            previous: (iteration > 1).then_some(&self.items),
            floor: if is_weighted { self.core_energy } else { 0.0 },
            seed: self.options.seed ^ (iteration as u64) << 32 ^ 1 << 31,
        };
        let leading = self.leading(&unfolding, self.options.item_rank, way, &warmth)?;
        self.items = leading.vectors;
        self.weighted_items = self.items.scaled(&self.item_weights);
        Ok(leading.operations.unwrap_or(plan.modes[1].operations))
    }

    fn update_positions(&mut self) -> Result<(), FactorizeError> {
        let span = tracing::info_span!("positions");
        let _entered = span.enter();
        check_cancelled(self.monitor)?;
        let users = self.users.as_ref().expect("invariant: users are updated before positions");
        let slab = self.sizes(1).slab(self.options.memory_bytes).min(users.width());
        let gram = position_gram(self.log, users, &self.weighted_items, slab);
        self.core_energy = self.modes.update::<T>(&mut self.positions, gram.as_ref())?;
        Ok(())
    }

    fn leading(
        &self,
        unfolding: &Unfolding<'_, T>,
        rank: usize,
        way: Way,
        warmth: &Warmth<'_, T>,
    ) -> Result<Leading<T>, FactorizeError> {
        let rank = rank.min(unfolding.nrows()).min(unfolding.ncols());
        let leading = match way {
            Way::GramRows => gram_side::by_rows(unfolding, rank, self.monitor),
            Way::Krylov => krylov::solve(unfolding, rank, warmth, self.monitor),
            Way::GramColumns | Way::GramPositions => gram_side::by_columns(unfolding, rank, self.monitor),
        }?;
        tracing::debug!(
            ?way,
            rank = leading.vectors.width(),
            energy = leading.energy,
            "singular vectors found"
        );
        Ok(leading)
    }

    /// Hands the factors out; [`Hooi::take_back`] returns them.
    fn factors(&mut self) -> Factors<T> {
        let empty = || Rows::zeros(0, 1);
        Factors {
            users: self.users.take().unwrap_or_else(empty),
            items: std::mem::replace(&mut self.items, empty()),
            positions: self.positions.clone(),
        }
    }

    fn take_back(&mut self, factors: Factors<T>) {
        self.users = Some(factors.users);
        self.items = factors.items;
    }
}
