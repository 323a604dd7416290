//! What an iteration will cost, before it runs: the cheapest way for every mode that fits the memory allowed.

use serde::{Deserialize, Serialize};

use super::FactorizeError;
use super::gram_side::{GRAM_BLOCK, PRODUCT_BLOCK, components_a_block};
use super::krylov::{RUNS_HELD, block_width, first_check};
use super::per_position::{RUNS_A_PRODUCT, slab_width};
use super::unfolding::Side;
use crate::tensor::PositionalLog;

/// A way to the leading left singular vectors of an unfolding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Gram matrix over the columns, summed over blocks of rows.
    GramColumns,
    /// Gram matrix over the rows, summed over blocks of columns.
    GramRows,
    /// Block Lanczos iteration with dense products position by position.
    Krylov,
    /// Gram matrix over positions (the positional modes; there is no other way).
    GramPositions,
}

/// What one way costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The way.
    pub way: Way,
    /// Floating-point operations.
    pub operations: f64,
    /// Bytes held at the peak of the mode, log and factors not counted.
    pub memory_bytes: u64,
    /// Operations, those that run far below the rate of dense products counted more than once.
    pub weighted_operations: f64,
}

/// What is planned for one mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModePlan {
    /// `users`, `items` or `positions`.
    pub mode: &'static str,
    /// The way chosen.
    pub way: Way,
    /// Floating-point operations per iteration.
    pub operations: f64,
    /// Bytes held at the peak of the mode, everything counted.
    pub memory_bytes: u64,
    /// Every way considered, the one chosen included.
    pub considered: Vec<Cost>,
    /// Operations weighted by the rate they run at.
    #[serde(skip)]
    weighted_operations: f64,
}

/// What is planned for an iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// One entry a mode.
    pub modes: Vec<ModePlan>,
    /// Floating-point operations per iteration.
    pub operations: f64,
    /// Largest number of bytes held at once, histories included.
    pub memory_bytes: u64,
}

impl Plan {
    /// Expected seconds per iteration, at a rate of dense products in 10^9 operations per second.
    pub fn expected_seconds(&self, gemm_gflops: f64) -> f64 {
        self.modes.iter().map(|mode| mode.weighted_operations).sum::<f64>() / (gemm_gflops * 1e9)
    }
}

/// What costs depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// $M$.
    pub users: usize,
    /// $N$.
    pub items: usize,
    /// $K$.
    pub positions: usize,
    /// Triples.
    pub entries: usize,
    /// Distinct pairs of item and position.
    pub runs: usize,
    /// $r_1$.
    pub user_rank: usize,
    /// $r_2$.
    pub item_rank: usize,
    /// Columns of the reduced $H$.
    pub weights: usize,
    /// Bytes of a number in large factors: 4 or 8.
    pub size: usize,
    /// Bytes held throughout: log and histories.
    pub resident_bytes: u64,
}

/// What a block Lanczos iteration does.
pub(super) struct KrylovWork {
    pub(super) side: Side,
    pub(super) rows: usize,
    pub(super) rank: usize,
    /// Columns of the other factor.
    pub(super) other: usize,
    /// Columns of the Krylov space.
    pub(super) width: f64,
    /// Cubes of the sizes of all projected eigenproblems.
    pub(super) eigen_cubes: f64,
}

impl KrylovWork {
    /// Operations of gathers, dense products and eigenproblems.
    pub(super) fn operations(&self, entries: usize, runs: usize, positions: usize) -> (f64, f64, f64) {
        let (m, p, r, o) = (self.rows as f64, self.width, self.rank as f64, self.other as f64);
        let (entries, runs, k) = (entries as f64, runs as f64, positions as f64);
        let gathers = match self.side {
            // Columns of the block, there and back; or rows of U for every block, there and back.
            Side::Users => 2.0 * entries * p,
            Side::Items => 2.0 * entries * o * (p / block_width(self.rank) as f64).ceil(),
        };
        // The operator, then two projections out of the space so far and two more of the orthonormal block.
        let products = p * (4.0 * runs * o + 2.0 * k * k * o) + 8.0 * m * p * p + 2.0 * m * p * r;
        (gathers, products, EIGEN_OPERATIONS * self.eigen_cubes)
    }
}

/// Operations of a symmetric eigendecomposition of size $n$, as a multiple of $n^3$: 4/3 to reduce to tridiagonal
/// form, 4/3 to divide and conquer, 2 to transform back.
const EIGEN_OPERATIONS: f64 = 14.0 / 3.0;

/// Threads whose buffers are counted: a fixed number, so that a plan, and with it every bit of a result, does not depend on
/// how many there are.
const PLANNED_THREADS: f64 = 4.0;

/// How much longer they take than as many of a dense product: half of the reduction is bound by memory.
const EIGEN_WEIGHT: f64 = 3.0;

/// How much longer an addition of gathered rows takes than an operation of a dense product.
const GATHER_WEIGHT: f64 = 8.0;

/// Columns of a Krylov space relative to its width at the first check: some need a second.
const KRYLOV_GROWTH: f64 = 1.2;

impl Sizes {
    /// Sizes of a log with these ranks.
    pub fn of(log: &PositionalLog, user_rank: usize, item_rank: usize, weights: usize, size: usize) -> Self {
        let (users, items) = (log.num_users(), log.num_items());
        // Histories keep an item and a time per row, and an id per user and per item.
        let rows: u64 = log.popularity().iter().map(|&count| u64::from(count)).sum();
        let histories = 12 * rows + 16 * users as u64 + 8 * items as u64;
        Sizes {
            users,
            items,
            positions: log.num_positions(),
            entries: log.num_entries(),
            runs: log.num_runs(),
            user_rank,
            item_rank,
            weights: weights.min(log.num_positions()),
            size,
            resident_bytes: histories + log.memory_bytes() as u64,
        }
    }

    fn factor_bytes(&self) -> u64 {
        // U, V and D V.
        ((self.users * self.user_rank + 2 * self.items * self.item_rank) * self.size) as u64
    }

    /// Every way for one side, and its cost.
    pub(super) fn costs(&self, side: Side) -> [Cost; 3] {
        let (m, rank, other) = match side {
            Side::Users => (self.users, self.user_rank, self.item_rank),
            Side::Items => (self.items, self.item_rank, self.user_rank),
        };
        let columns = self.weights * other;
        let rank = rank.min(m).min(columns);
        let threads = PLANNED_THREADS;
        let size = self.size as f64;
        let (mf, n, r, o) = (m as f64, columns as f64, rank as f64, other as f64);
        let (entries, k) = (self.entries as f64, self.positions as f64);
        let form = 2.0 * entries * n;

        let eigen = EIGEN_OPERATIONS * n.powi(3);
        let correct = 2.0 * n * n * r + 2.0 * n * r * r;
        let products = mf * n * (n + 1.0) + 2.0 * mf * n * r + correct;
        // The reduction holds the Gram matrix, its rounded copy, the vectors twice and as much again to work in.
        let bytes = n * n * (8.0 + 4.0 * size) + n * r * 16.0;
        let blocks = (GRAM_BLOCK.min(m) as f64 * n * size).max(threads * PRODUCT_BLOCK as f64 * n * size);
        let gram_columns = Cost {
            way: Way::GramColumns,
            operations: 2.0 * form + products + eigen,
            memory_bytes: (bytes + blocks) as u64,
            weighted_operations: GATHER_WEIGHT * 2.0 * form + products + EIGEN_WEIGHT * eigen,
        };

        let eigen = EIGEN_OPERATIONS * mf.powi(3);
        let products = mf * (mf + 1.0) * n;
        let block = mf * (components_a_block(other).min(self.weights) * other) as f64 * size;
        let gram_rows = Cost {
            way: Way::GramRows,
            operations: form + products + eigen,
            memory_bytes: (mf * mf * (8.0 + 4.0 * size) + block) as u64,
            weighted_operations: GATHER_WEIGHT * form + products + EIGEN_WEIGHT * eigen,
        };

        let p = (KRYLOV_GROWTH * first_check(rank, m) as f64).min(mf);
        let b = block_width(rank) as f64;
        let work = KrylovWork { side, rows: m, rank, other, width: p, eigen_cubes: 1.5 * p.powi(3) };
        let (gathers, products, eigen) = work.operations(self.entries, self.runs, self.positions);
        let held = 2.0 * b * o * k
            + mf * (p + 2.0 * b + r)
            + RUNS_HELD as f64 * b
            + threads * RUNS_A_PRODUCT as f64 * (b + o);
        let krylov = Cost {
            way: Way::Krylov,
            operations: gathers + products + eigen,
            memory_bytes: (held * size + p * p * (8.0 + 4.0 * size) + 4.0 * entries) as u64,
            weighted_operations: GATHER_WEIGHT * gathers + products + EIGEN_WEIGHT * eigen,
        };
        [gram_columns, gram_rows, krylov]
    }

    fn choose(&self, side: Side, memory: Option<u64>) -> Result<ModePlan, FactorizeError> {
        let considered = self.costs(side);
        let held = self.resident_bytes + self.factor_bytes();
        let fits = |cost: &&Cost| memory.is_none_or(|memory| held + cost.memory_bytes <= memory);
        let by_cost = |a: &&Cost, b: &&Cost| a.weighted_operations.total_cmp(&b.weighted_operations);
        let best = considered.iter().filter(fits).min_by(by_cost).ok_or_else(|| FactorizeError::Memory {
            needed: held + considered.iter().map(|cost| cost.memory_bytes).min().unwrap_or(0),
            allowed: memory.unwrap_or(u64::MAX),
        })?;
        Ok(ModePlan {
            mode: if side == Side::Users { "users" } else { "items" },
            way: best.way,
            operations: best.operations,
            memory_bytes: held + best.memory_bytes,
            weighted_operations: best.weighted_operations,
            considered: considered.to_vec(),
        })
    }

    /// Columns of $U$ in a slab of the positional update.
    pub(super) fn slab(&self, memory: Option<u64>) -> usize {
        let held = self.resident_bytes + self.factor_bytes();
        let free = memory.map_or(u64::MAX, |memory| memory.saturating_sub(held) / 2);
        slab_width(self.user_rank, self.item_rank, self.positions, self.size, free)
    }

    fn position_cost(&self, memory: Option<u64>) -> Cost {
        let (a, b, k) = (self.user_rank as f64, self.item_rank as f64, self.positions as f64);
        let slab = self.slab(memory) as f64;
        let gathers = self.entries as f64 * a;
        let products = 2.0 * self.runs as f64 * a * b + 2.0 * a * b * k * k;
        let buffers = PLANNED_THREADS * RUNS_A_PRODUCT as f64 * (slab + b);
        let pieces = (slab * b / 4096.0).ceil() * k * k;
        Cost {
            way: Way::GramPositions,
            operations: gathers + products,
            memory_bytes: ((slab * b * k + buffers + pieces) * self.size as f64) as u64,
            weighted_operations: GATHER_WEIGHT * gathers + products,
        }
    }

    /// The plan of an iteration, or an error if no way fits the memory allowed.
    pub fn plan(&self, memory: Option<u64>) -> Result<Plan, FactorizeError> {
        let held = self.resident_bytes + self.factor_bytes();
        let positions = self.position_cost(memory);
        if let Some(allowed) = memory.filter(|&memory| held + positions.memory_bytes > memory) {
            return Err(FactorizeError::Memory { needed: held + positions.memory_bytes, allowed });
        }
        let modes = vec![
            self.choose(Side::Users, memory)?,
            self.choose(Side::Items, memory)?,
            ModePlan {
                mode: "positions",
                way: positions.way,
                operations: positions.operations,
                memory_bytes: held + positions.memory_bytes,
                weighted_operations: positions.weighted_operations,
                considered: vec![positions],
            },
        ];
        Ok(Plan {
            operations: modes.iter().map(|mode| mode.operations).sum(),
            memory_bytes: modes.iter().map(|mode| mode.memory_bytes).max().unwrap_or(0),
            modes,
        })
    }
}
