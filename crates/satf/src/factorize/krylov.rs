//! Leading left singular vectors of an unfolding $Y$ by block Lanczos iteration, for unfoldings whose sides are both
//! too large for a Gram matrix.
//!
//! $Y Y^T$ is applied to a block $Q$ position by position: for users
//! $$Y_1 Y_1^T Q = \sum_k X_k D V \Bigl( \sum_{k'} (H H^T)_{kk'} B_{k'} \Bigr)^T, \qquad B_k = Q^T X_k D V$$
//! and for items with the roles exchanged. The blocks span a Krylov space that grows, orthonormal throughout, until
//! the Ritz vectors of the projected matrix miss no more than a share [`tolerance`] of the energy, estimated by their
//! residuals: $\sum_i \rho_i^2 / \theta_i \le \varepsilon \sum_i \theta_i$ over the vectors wanted.

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::FactorizeError;
use super::gram_side::{Leading, leading_eigenpairs};
use super::per_position::{RUNS_A_PRODUCT, position_products, sum_users};
use super::plan::KrylovWork;
use super::rows::{Rows, add, scale_row};
use super::unfolding::{Side, Unfolding};
use crate::linalg::{Real, dense};
use crate::monitor::{Monitor, check_cancelled};

/// Columns of a block, for a rank: what converges is the degree of the polynomial, so the space must be many blocks
/// wide; but dense products want wide blocks.
pub(super) fn block_width(rank: usize) -> usize {
    (rank / 4).next_multiple_of(16).clamp(32, 128)
}

/// Rows one task works on when blocks are combined.
const ROWS_A_TASK: usize = 256;

/// Items one task works on when products are taken back to items.
const ITEMS_A_TASK: usize = 128;

/// Share of the energy the vectors found may miss.
pub(super) fn tolerance<T: Real>() -> f64 {
    if T::UNIT_ROUNDOFF > 1e-10 { 1e-5 } else { 1e-13 }
}

/// Width of the Krylov space at which convergence is looked at for the first time.
pub(super) fn first_check(rank: usize, nrows: usize) -> usize {
    (2 * rank + block_width(rank)).min(nrows)
}

/// What the iteration starts from.
pub(super) struct Warmth<'a, T> {
    /// The vectors of the last time, if any.
    pub(super) previous: Option<&'a Rows<T>>,
    /// Energy the vectors must hold at least: what those of the last time hold.
    pub(super) floor: f64,
    /// Seed of what is random.
    pub(super) seed: u64,
}

/// The `rank` leading vectors, or fewer if the rest is numerically zero.
pub(super) fn solve<T: Real>(
    y: &Unfolding<'_, T>,
    rank: usize,
    warmth: &Warmth<'_, T>,
    monitor: &dyn Monitor,
) -> Result<Leading<T>, FactorizeError> {
    let m = y.nrows();
    let mut operator = Squared::new(y);
    let mut random = ChaCha8Rng::seed_from_u64(warmth.seed);
    let block = block_width(rank).min(m);
    let mut basis = vec![first_block(m, block, warmth.previous, &mut random)];
    let mut projected = Mat::<f64>::zeros(0, 0);
    let mut next_check = first_check(rank, m);
    let mut last_exhausted = None;
    let mut eigen_cubes = 0.0;
    loop {
        check_cancelled(monitor)?;
        let mut image = operator.apply(&basis[basis.len() - 1]);
        let before = frobenius(&image);
        let components = project(&basis, &mut image);
        grow(&mut projected, &components, basis[basis.len() - 1].width());
        let p = projected.nrows();
        project(&basis, &mut image);
        let rest = frobenius(&image);
        let exhausted = rest <= 64.0 * T::UNIT_ROUNDOFF * before || before == 0.0;
        if p >= next_check || p == m || (exhausted && p >= rank.min(m)) {
            let (values, vectors) = leading_eigenpairs::<T>(projected.as_ref(), rank)?;
            eigen_cubes += (p as f64).powi(3);
            let energy: f64 = values.iter().sum();
            let missed = missed_energy(&image, &values, vectors.as_ref());
            let holds_enough = energy >= warmth.floor * (1.0 - 1e-3 * tolerance::<T>());
            // Directions a random block does not meet show up with the next one, if there are any.
            let is_stable = last_exhausted.is_some_and(|last: f64| energy <= last * (1.0 + tolerance::<T>()));
            let converged = !exhausted && missed <= tolerance::<T>() * energy && holds_enough;
            tracing::debug!(width = p, rank, missed = missed / energy, exhausted, "Krylov space grown");
            if converged || p == m || (exhausted && is_stable) {
                let vectors = combine(&basis, vectors.as_ref());
                let other = y.other.width();
                let work = KrylovWork { side: y.side, rows: m, rank, other, width: p as f64, eigen_cubes };
                let (gathers, products, eigen) =
                    work.operations(y.log.num_entries(), y.log.num_runs(), y.log.num_positions());
                return Ok(Leading { vectors, energy, operations: Some(gathers + products + eigen) });
            }
            if exhausted {
                last_exhausted = Some(energy);
            }
            next_check = p + columns_lacking(p, missed / energy, tolerance::<T>()).max(block);
        }
        let width = block.min(m - p);
        if exhausted || width < image.width() {
            tracing::debug!(width = p, "a fresh block joins the Krylov space");
            image = random_rows(m, width, &mut random);
            project(&basis, &mut image);
        }
        // What rounding leaves of the old blocks in the new one is largest where the new one was small.
        for _ in 0..2 {
            dense::orthonormalize(image.as_mat_mut());
            project(&basis, &mut image);
        }
        dense::orthonormalize(image.as_mat_mut());
        basis.push(image);
    }
}

/// How many more columns a space of `p` needs, if what it misses falls as it has fallen so far, and somewhat faster:
/// convergence speeds up.
fn columns_lacking(p: usize, missed: f64, tolerance: f64) -> usize {
    const SPEED_UP: f64 = 0.6;
    let growth = tolerance.ln() / missed.clamp(tolerance, 0.5).ln() - 1.0;
    ((SPEED_UP * growth).clamp(0.0, 1.0) * p as f64) as usize
}

fn first_block<T: Real>(
    m: usize,
    width: usize,
    previous: Option<&Rows<T>>,
    random: &mut ChaCha8Rng,
) -> Rows<T> {
    let mut block = match previous.filter(|previous| previous.width() >= width) {
        None => random_rows(m, width, random),
        Some(previous) => {
            let mix: Rows<T> = random_rows(previous.width(), width, random);
            let mut block = Rows::zeros(m, width);
            dense::matmul(block.as_mat_mut(), Accum::Replace, previous.as_mat(), mix.as_mat(), T::of(1.0));
            block
        }
    };
    dense::orthonormalize(block.as_mat_mut());
    block
}

/// Uniform in [-1/2, 1/2).
pub(super) fn random_rows<T: Real>(nrows: usize, width: usize, random: &mut ChaCha8Rng) -> Rows<T> {
    let mut rows = Rows::zeros(nrows, width);
    rows.values_mut().iter_mut().for_each(|value| *value = T::of(random.random::<f64>() - 0.5));
    rows
}

fn frobenius<T: Real>(rows: &Rows<T>) -> f64 {
    let squares = |chunk: &[T]| chunk.iter().map(|value| value.double() * value.double()).sum::<f64>();
    let sums: Vec<f64> = rows.values().par_chunks(1 << 14).map(squares).collect();
    sums.iter().sum::<f64>().sqrt()
}

/// Takes the span of the basis out of a block; returns the components, one matrix a block of the basis.
fn project<T: Real>(basis: &[Rows<T>], block: &mut Rows<T>) -> Vec<Mat<f64>> {
    let width = block.width();
    let image = block.as_mat();
    let components: Vec<Mat<f64>> =
        basis.par_iter().with_max_len(1).map(|q| cross(q.as_mat(), image)).collect();
    let rounded: Vec<Mat<T>> =
        components.iter().map(|c| Mat::from_fn(c.nrows(), c.ncols(), |i, j| T::of(c[(i, j)]))).collect();
    block.values_mut().par_chunks_mut(ROWS_A_TASK * width).enumerate().for_each(|(task, rows)| {
        let count = rows.len() / width;
        let mut rows = MatMut::from_row_major_slice_mut(rows, count, width);
        for (q, c) in basis.iter().zip(&rounded) {
            let q = q.as_mat().subrows(task * ROWS_A_TASK, count);
            faer::linalg::matmul::matmul(rows.rb_mut(), Accum::Add, q, c.as_ref(), T::of(-1.0), Par::Seq);
        }
    });
    components
}

/// `left^T right`: pieces in the precision of the data, their sum in double.
fn cross<T: Real>(left: MatRef<'_, T>, right: MatRef<'_, T>) -> Mat<f64> {
    const PIECE: usize = 2048;
    let m = left.nrows();
    let mut sum = Mat::<f64>::zeros(left.ncols(), right.ncols());
    let mut piece = Mat::<T>::zeros(left.ncols(), right.ncols());
    for first in (0..m).step_by(PIECE) {
        let rows = PIECE.min(m - first);
        let (left, right) = (left.subrows(first, rows), right.subrows(first, rows));
        faer::linalg::matmul::matmul(
            piece.as_mut(),
            Accum::Replace,
            left.transpose(),
            right,
            T::of(1.0),
            Par::Seq,
        );
        for (sum, piece) in sum.col_iter_mut().zip(piece.col_iter()) {
            sum.iter_mut().zip(piece.iter()).for_each(|(sum, piece)| *sum += piece.double());
        }
    }
    sum
}

/// Adds the columns of one more block to the projected matrix.
fn grow(projected: &mut Mat<f64>, components: &[Mat<f64>], width: usize) {
    let old = projected.nrows();
    let new = old + width;
    let mut grown = Mat::<f64>::zeros(new, new);
    grown.get_mut(..old, ..old).copy_from(projected.as_ref());
    let mut first = 0;
    for part in components {
        for i in 0..part.nrows() {
            for j in 0..width {
                let (row, column) = (first + i, old + j);
                if row < old {
                    grown[(row, column)] = part[(i, j)];
                    grown[(column, row)] = part[(i, j)];
                } else {
                    grown[(row, column)] = f64::midpoint(part[(i, j)], part[(j, i)]);
                }
            }
        }
        first += part.nrows();
    }
    *projected = grown;
}

/// $\sum_i \rho_i^2 / \theta_i$: only the last block of the basis leads out of the space, by `rest`.
fn missed_energy<T: Real>(rest: &Rows<T>, values: &[f64], vectors: MatRef<'_, T>) -> f64 {
    let square = cross(rest.as_mat(), rest.as_mat());
    let first = vectors.nrows() - rest.width();
    let last = Mat::from_fn(rest.width(), values.len(), |i, j| vectors[(first + i, j)].double());
    let image = &square * &last;
    let residual =
        |j: usize| last.col(j).iter().zip(image.col(j).iter()).map(|(a, b)| a * b).sum::<f64>().max(0.0);
    values.iter().enumerate().map(|(j, value)| residual(j) / value).sum()
}

/// The vectors whose components in the basis are given.
fn combine<T: Real>(basis: &[Rows<T>], components: MatRef<'_, T>) -> Rows<T> {
    let width = components.ncols();
    let mut vectors = Rows::zeros(basis[0].nrows(), width);
    vectors.values_mut().par_chunks_mut(ROWS_A_TASK * width).enumerate().for_each(|(task, rows)| {
        let count = rows.len() / width;
        let mut rows = MatMut::from_row_major_slice_mut(rows, count, width);
        let mut first = 0;
        for q in basis {
            let part = components.subrows(first, q.width());
            let q_rows = q.as_mat().subrows(task * ROWS_A_TASK, count);
            faer::linalg::matmul::matmul(rows.rb_mut(), Accum::Add, q_rows, part, T::of(1.0), Par::Seq);
            first += q.width();
        }
    });
    vectors
}

/// $Y Y^T$ as an operator on blocks.
struct Squared<'a, T> {
    y: &'a Unfolding<'a, T>,
    /// $H H^T$.
    mixing: Mat<T>,
    /// Users' side: the run of every triple.
    runs_by_user: Vec<u32>,
    products: Vec<T>,
    mixed: Vec<T>,
}

/// Runs whose images are held at once on the way back to users.
pub(super) const RUNS_HELD: usize = 1 << 14;

impl<'a, T: Real> Squared<'a, T> {
    fn new(y: &'a Unfolding<'a, T>) -> Self {
        let weights = y.weights.to_mat();
        let mixing = &weights * weights.transpose();
        let runs_by_user = if y.side == Side::Users { y.log.runs_by_user() } else { Vec::new() };
        Squared {
            y,
            mixing: super::gram_side::rounded(mixing.as_ref()),
            runs_by_user,
            products: Vec::new(),
            mixed: Vec::new(),
        }
    }

    fn apply(&mut self, q: &Rows<T>) -> Rows<T> {
        let (log, other, b) = (self.y.log, self.y.other, q.width());
        let positions = log.num_positions();
        let size = b * other.width();
        self.products.resize(size * positions, T::default());
        self.mixed.resize(size * positions, T::default());
        match self.y.side {
            Side::Users => position_products(log, q, &(0..b), other, &mut self.products),
            Side::Items => {
                let scaled = self.y.row_scale.map(|scale| q.scaled(scale));
                let items = scaled.as_ref().unwrap_or(q);
                position_products(log, other, &(0..other.width()), items, &mut self.products);
            }
        }
        let products = MatRef::from_row_major_slice(self.products.as_slice(), positions, size);
        let mixed = MatMut::from_row_major_slice_mut(self.mixed.as_mut_slice(), positions, size);
        dense::matmul(mixed, Accum::Replace, self.mixing.as_ref(), products, T::of(1.0));
        match self.y.side {
            Side::Users => self.back_to_users(b),
            Side::Items => self.back_to_items(b),
        }
    }

    /// $\sum_k Z_k v_{j(u,k)}$: first for the distinct items of some positions, then gathered by users.
    fn back_to_users(&self, b: usize) -> Rows<T> {
        let (log, other) = (self.y.log, self.y.other);
        let r = other.width();
        let positions = log.num_positions();
        let mut out = Rows::zeros(log.num_users(), b);
        let mut images: Vec<T> = Vec::new();
        let mut first = 0;
        while first < positions {
            let mut end = first + 1;
            while end < positions
                && log.first_run(end) + log.runs_at(end).len() <= log.first_run(first) + RUNS_HELD
            {
                end += 1;
            }
            let origin = log.first_run(first);
            let count = log.first_run(end - 1) + log.runs_at(end - 1).len() - origin;
            images.resize(count * b, T::default());
            let mut rest = images.as_mut_slice();
            let mut tasks = Vec::new();
            for position in first..end {
                for (block, runs) in log.runs_at(position).chunks(RUNS_A_PRODUCT / 2).enumerate() {
                    let (images, others) = rest.split_at_mut(runs.len() * b);
                    rest = others;
                    tasks.push((position, block, runs, images));
                }
            }
            tasks.into_par_iter().with_max_len(1).for_each_init(
                Vec::new,
                |gathered, (position, _, runs, images)| {
                    gathered.clear();
                    for run in runs {
                        gathered.extend_from_slice(other.row(run.item as usize));
                    }
                    let z = MatRef::from_row_major_slice(
                        &self.mixed[position * b * r..(position + 1) * b * r],
                        b,
                        r,
                    );
                    let gathered = MatRef::from_row_major_slice(gathered.as_slice(), runs.len(), r);
                    let images = MatMut::from_row_major_slice_mut(images, runs.len(), b);
                    faer::linalg::matmul::matmul(
                        images,
                        Accum::Replace,
                        gathered,
                        z.transpose(),
                        T::of(1.0),
                        Par::Seq,
                    );
                },
            );
            let images = images.as_slice();
            out.values_mut().par_chunks_mut(64 * b).enumerate().for_each(|(task, rows)| {
                pulp::Arch::new().dispatch(|| {
                    for (at, row) in rows.chunks_exact_mut(b).enumerate() {
                        let user = task * 64 + at;
                        let start = positions - log.user(user).1.len();
                        for position in start.max(first)..end.max(start) {
                            let entry = log.first_entry(user) + position - start;
                            let run = self.runs_by_user[entry] as usize - origin;
                            add(row, &images[run * b..(run + 1) * b]);
                        }
                    }
                });
            });
            first = end;
        }
        out
    }

    /// $d_j \sum_k Z_k^T \sum_{u \text{ at } (j,k)} u_u$, a block of items at a time.
    fn back_to_items(&self, b: usize) -> Rows<T> {
        let (log, other) = (self.y.log, self.y.other);
        let r = other.width();
        let mut out = Rows::zeros(log.num_items(), b);
        out.values_mut().par_chunks_mut(ITEMS_A_TASK * b).enumerate().with_max_len(1).for_each_init(
            || (Vec::new(), Vec::new()),
            |(sums, images), (task, rows)| {
                let first_item = task * ITEMS_A_TASK;
                let end_item = first_item + rows.len() / b;
                for position in 0..log.num_positions() {
                    let runs = log.runs_at(position);
                    let from = runs.partition_point(|run| (run.item as usize) < first_item);
                    let to = runs.partition_point(|run| (run.item as usize) < end_item);
                    if from == to {
                        continue;
                    }
                    sums.resize((to - from) * r, T::default());
                    images.resize((to - from) * b, T::default());
                    pulp::Arch::new().dispatch(|| {
                        for (run, sum) in (from..to).zip(sums.chunks_exact_mut(r)) {
                            sum_users(log, other, &(0..r), log.first_run(position) + run, sum);
                        }
                    });
                    let z = MatRef::from_row_major_slice(
                        &self.mixed[position * r * b..(position + 1) * r * b],
                        r,
                        b,
                    );
                    let left = MatRef::from_row_major_slice(sums.as_slice(), to - from, r);
                    let image = MatMut::from_row_major_slice_mut(images.as_mut_slice(), to - from, b);
                    faer::linalg::matmul::matmul(image, Accum::Replace, left, z, T::of(1.0), Par::Seq);
                    for (run, image) in runs[from..to].iter().zip(images.chunks_exact(b)) {
                        let at = (run.item as usize - first_item) * b;
                        add(&mut rows[at..at + b], image);
                    }
                }
                if let Some(scale) = self.y.row_scale {
                    for (row, &scale) in rows.chunks_exact_mut(b).zip(&scale[first_item..end_item]) {
                        scale_row(row, scale);
                    }
                }
            },
        );
        out
    }
}
