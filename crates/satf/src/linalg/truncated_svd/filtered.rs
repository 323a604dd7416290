//! Chebyshev-filtered subspace iteration with locking.
//!
//! Let $\lambda_k = \sigma_k^2$ be the eigenvalues of $A^T A$. Sparse products are cheap and dense algebra on many long
//! columns is not, so polynomials of a high degree are applied between few projections; and because such a polynomial
//! blows up what lies far above its cut, the spectrum is taken in *windows* from the top, each spanning a modest ratio
//! of eigenvalues, everything above it found already and *locked*:
//!
//! 1. estimate the spectral density: what is $\lambda_k$, about, for every $k$?
//! 2. choose a window: the next eigenvalues down to a ratio [`WINDOW_RATIO`], and guards below, down to another
//!    [`GUARD_RATIO`]. Active block $Y$: what the last window left over, filled up with random columns
//! 3. filter, $Y \leftarrow T_d(\tfrac{2}{c} A^T A - I) Y$ with the cut $c$ below the guards
//! 4. project, $Y \leftarrow (I - V V^T) Y$ with the locked $V$
//! 5. Rayleigh–Ritz on $Y$, and residuals
//! 6. lock the leading converged pairs; back to 3 until the window is done, to 2 until $V$ has $r$ columns
//!
//! The degree $d$ in step 3 is what convergence still needs, bounded by what the conditioning of the filtered block
//! bears ([`GROWTH_LIMIT`]).

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::filter::{Filter, growth};
use super::ritz::{normalize_columns, rayleigh_ritz, residuals};
use super::{Error, Info, Params, Plan, TruncatedSvd};
use crate::linalg::dense::matmul;
use crate::linalg::density::SpectralDensity;
use crate::linalg::{LinearOperator, Real};
use crate::monitor::{Monitor, check_cancelled};

/// Ratio of the largest eigenvalue of a window to its smallest wanted one.
const WINDOW_RATIO: f64 = 1.5;

/// Fewest wanted eigenvalues in a window.
const WINDOW_LEAST: usize = 64;

/// Ratio of the smallest wanted eigenvalue to the cut of the filter below the guards.
const GUARD_RATIO: f64 = 1.12;

/// Largest condition number a filter may give the active block.
const GROWTH_LIMIT: f64 = 1e6;

/// Lanczos steps of the density estimate.
const LANCZOS_STEPS: usize = 60;

pub(super) fn solve<T: Real, A>(
    operator: &A,
    rank: usize,
    params: &Params,
    plan: Plan,
    monitor: &dyn Monitor,
) -> Result<TruncatedSvd<T>, Error>
where
    A: LinearOperator<T> + LinearOperator<f64>,
{
    let density = SpectralDensity::estimate(operator, LANCZOS_STEPS, params.seed)?;
    if !density.largest().is_finite() {
        return Err(Error::NotFinite);
    }
    let n = LinearOperator::<f64>::ncols(operator);
    let mut iteration = Iteration {
        operator,
        params,
        density,
        rank,
        n,
        vectors: Mat::zeros(n, rank),
        eigenvalues: Vec::with_capacity(rank),
        random: ChaCha8Rng::seed_from_u64(params.seed ^ 0x5eed),
        info: Info {
            plan,
            rank,
            converged: true,
            residual: 0.0,
            iterations: 0,
            products: 0,
            flops: 0.0,
            seconds: 0.0,
        },
    };
    let mut active = Mat::zeros(n, 0);
    while iteration.eigenvalues.len() < rank {
        let before = iteration.eigenvalues.len();
        match iteration.window(active, monitor)? {
            Some(rest) => active = rest,
            None => break,
        }
        monitor.advance((iteration.eigenvalues.len() - before) as u64);
    }
    Ok(iteration.finish())
}

struct Iteration<'a, T, A> {
    operator: &'a A,
    params: &'a Params,
    density: SpectralDensity,
    rank: usize,
    n: usize,
    /// Locked vectors in the leading columns.
    vectors: Mat<T>,
    /// Eigenvalues of the locked vectors.
    eigenvalues: Vec<f64>,
    random: ChaCha8Rng,
    info: Info,
}

impl<T: Real, A> Iteration<'_, T, A>
where
    A: LinearOperator<T> + LinearOperator<f64>,
{
    /// Works on the next window until it is locked. Takes what the last window left over and returns what this one
    /// leaves; `None` if all that is left is numerically zero.
    fn window(&mut self, left_over: Mat<T>, monitor: &dyn Monitor) -> Result<Option<Mat<T>>, Error> {
        let locked = self.eigenvalues.len();
        let top = self.eigenvalues.last().copied().unwrap_or(self.density.largest());
        let (end, width) = self.choose_window(locked, top);
        let mut cut = self.cut(locked + width);
        let mut wanted = self.density.eigenvalue(end).max(cut * 1.01);
        let mut active = self.fill_up(left_over, width);
        // Components of the top direction in the other columns, and what the worst wanted pair still lacks.
        let (mut contamination, mut lacking) = (1.0, 1.0 / self.params.tolerance);
        let mut highest = top;
        for stage in 1..=self.params.max_stages {
            check_cancelled(monitor)?;
            let t0 = std::time::Instant::now();
            // 3. the degree convergence needs, as far as conditioning bears it
            let bearable = (2.0 * GROWTH_LIMIT / contamination).ln() / growth(highest, cut).max(1e-3);
            let needed = (2.0 * lacking).ln() / growth(wanted, cut).max(1e-3) + 1.0;
            let degree = (bearable.min(needed) as usize).clamp(1, 60);
            let filter = Filter::new::<T>(cut, degree, wanted, &self.eigenvalues);
            let locked = self.eigenvalues.len();
            filter.apply(self.operator, self.vectors.get(.., ..locked), active.as_mut());
            self.count(&filter, active.ncols());
            let t1 = std::time::Instant::now();
            // 4. project against everything locked
            normalize_columns(active.as_mut());
            project(self.vectors.get(.., ..locked), active.as_mut());
            let t2 = std::time::Instant::now();
            // 5. Rayleigh-Ritz and residuals
            rayleigh_ritz(self.operator, &mut active)?;
            let t3 = std::time::Instant::now();
            let pairs = residuals(self.operator, active.as_ref());
            self.info.iterations += 1;
            // 6. lock
            let largest = self.eigenvalues.first().copied().unwrap_or(pairs[0].0);
            let bound = |theta: f64| self.params.tolerance * (largest * theta.max(0.0)).sqrt();
            let missing = end - locked;
            let zero = pairs.iter().position(|&(theta, _)| theta <= self.params.tolerance.powi(2) * largest);
            let last_chance = stage == self.params.max_stages;
            let mut done = pairs
                .iter()
                .take(missing)
                .take_while(|&&(theta, r)| last_chance || r <= bound(theta))
                .count();
            let exhausted = zero.is_some_and(|zero| done >= zero);
            done = done.min(zero.unwrap_or(done));
            lacking = pairs[done.min(missing - 1)..missing]
                .iter()
                .map(|&(theta, r)| r / bound(theta).max(f64::MIN_POSITIVE))
                .fold(2.0, f64::max);
            let t4 = std::time::Instant::now();
            eprintln!(
                "stage {stage} end {end} width {} deg {degree} locked {} cut {cut:.3} wanted {wanted:.3} highest {highest:.2} lacking {lacking:.2e} contam {contamination:.1e} clean {:?} | filter {:.3} proj {:.3} rr {:.3} res {:.3}",
                active.ncols(),
                locked + done,
                filter.clean,
                (t1 - t0).as_secs_f64(),
                (t2 - t1).as_secs_f64(),
                (t3 - t2).as_secs_f64(),
                (t4 - t3).as_secs_f64()
            );
            tracing::debug!(
                stage,
                end,
                width = active.ncols(),
                degree,
                locked = locked + done,
                cut,
                lacking,
                "filtered and projected"
            );
            active = self.lock(active, &pairs, done, &bound_of(self.params.tolerance, largest));
            if exhausted {
                return Ok(None);
            }
            if self.eigenvalues.len() >= end {
                return Ok(Some(active));
            }
            let rest = &pairs[done..];
            highest = rest[0].0;
            contamination =
                (rest[0].1 / (highest - cut).max(1e-3 * highest)).clamp(10.0 * T::UNIT_ROUNDOFF, 1.0);
            // Ritz values are known now, better than estimated.
            wanted = rest[missing - done - 1].0;
            cut = cut.min(rest[rest.len() - 1].0.max(cut * 0.9)).min(wanted / 1.01).max(f64::MIN_POSITIVE);
        }
        Ok(Some(active))
    }

    /// Where the window ends, and how many columns it works on, guards included.
    fn choose_window(&self, locked: usize, top: f64) -> (usize, usize) {
        let below = |limit: f64, from: usize, to: usize| {
            let (mut low, mut high) = (from, to);
            while low < high {
                let middle = low.midpoint(high);
                if self.density.eigenvalue(middle) >= limit { low = middle + 1 } else { high = middle }
            }
            low
        };
        let mut end = below(top / WINDOW_RATIO, locked, self.rank).max(locked + WINDOW_LEAST).min(self.rank);
        // A small remainder is cheaper here than in a window of its own.
        if self.rank - end < (end - locked) / 3 {
            end = self.rank;
        }
        let most = self.n.min(end + end / 3 + 32);
        let guards = below(self.density.eigenvalue(end) / GUARD_RATIO, end, most).max((end + 16).min(self.n));
        (end, guards - locked)
    }

    fn cut(&self, count: usize) -> f64 {
        self.density.eigenvalue(count.min(self.n)).max(1e-10 * self.density.largest()).max(f64::MIN_POSITIVE)
    }

    /// The left-over columns, filled up to `width` with random ones orthogonal to everything locked.
    fn fill_up(&mut self, left_over: Mat<T>, width: usize) -> Mat<T> {
        let kept = left_over.ncols().min(width);
        let mut active = Mat::zeros(self.n, width);
        active.as_mut().subcols_mut(0, kept).copy_from(left_over.subcols(0, kept));
        let mut fresh = active.as_mut().subcols_mut(kept, width - kept);
        for column in fresh.rb_mut().col_iter_mut() {
            column.iter_mut().for_each(|x| *x = T::of(f64::from(self.random.random::<f32>()) - 0.5));
        }
        normalize_columns(fresh.rb_mut());
        project(self.vectors.get(.., ..self.eigenvalues.len()), fresh);
        active
    }

    /// Moves the leading `done` columns to the locked ones.
    fn lock(
        &mut self,
        active: Mat<T>,
        pairs: &[(f64, f64)],
        done: usize,
        bound: &dyn Fn(f64) -> f64,
    ) -> Mat<T> {
        let locked = self.eigenvalues.len();
        self.vectors.as_mut().subcols_mut(locked, done).copy_from(active.subcols(0, done));
        for &(theta, residual) in &pairs[..done] {
            let relative = residual / bound(theta).max(f64::MIN_POSITIVE);
            self.info.residual = self.info.residual.max(relative * self.params.tolerance);
            self.info.converged &= relative <= 1.0;
            self.eigenvalues.push(theta);
        }
        active.subcols(done, active.ncols() - done).to_owned()
    }

    fn count(&mut self, filter: &Filter, width: usize) {
        let (n, a, locked) = (self.n as f64, width as f64, self.eigenvalues.len() as f64);
        let product = LinearOperator::<f64>::flops_per_column(self.operator);
        self.info.products += (filter.clean.len() as u64 + 2) * width as u64;
        self.info.flops += a * (filter.flops_per_column(product, self.n) + 2.0 * product)
            + 4.0 * n * locked * a
            + 4.0 * n * a * a
            + 13.0 * a * a * a;
    }

    fn finish(mut self) -> TruncatedSvd<T> {
        let found = self.eigenvalues.len();
        self.info.rank = found;
        // Windows are in order; within rounding of their borders pairs may not be.
        let mut order: Vec<usize> = (0..found).collect();
        order.sort_by(|&a, &b| self.eigenvalues[b].total_cmp(&self.eigenvalues[a]));
        let mut right = Mat::zeros(self.n, found);
        for (to, &from) in order.iter().enumerate() {
            right.as_mut().col_mut(to).copy_from(self.vectors.col(from));
        }
        let singular_values = order.iter().map(|&at| self.eigenvalues[at].max(0.0).sqrt()).collect();
        TruncatedSvd { singular_values, right, info: self.info }
    }
}

fn bound_of(tolerance: f64, largest: f64) -> impl Fn(f64) -> f64 {
    move |theta| tolerance * (largest * theta.max(0.0)).sqrt()
}

/// $Y \leftarrow Y - V V^T Y$.
fn project<T: Real>(vectors: MatRef<'_, T>, mut block: MatMut<'_, T>) {
    if vectors.ncols() == 0 {
        return;
    }
    let mut components = Mat::zeros(vectors.ncols(), block.ncols());
    matmul(components.as_mut(), Accum::Replace, vectors.transpose(), block.as_ref(), T::of(1.0));
    matmul(block.rb_mut(), Accum::Add, vectors, components.as_ref(), T::of(-1.0));
}
