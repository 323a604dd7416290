//! Chebyshev-filtered subspace iteration with locking.
//!
//! Let $\lambda_k = \sigma_k^2$ be the eigenvalues of $A^T A$. Sparse products are cheap and dense algebra on many long
//! columns is not, so polynomials of a high degree are applied between few projections; and because such a polynomial
//! blows up what lies far above its cut, the spectrum is taken in *windows* from the top, each spanning a modest ratio
//! of eigenvalues, everything above it found already and *locked*:
//!
//! 1. estimate the spectral density: what is $\lambda_k$, about, for every $k$?
//! 2. choose a window: the next eigenvalues down to a ratio of at most [`WINDOW_RATIO`], and guards below, down to another
//!    [`GUARD_RATIO`]. Active block $Y$: what the last window left over, filled up with random columns
//! 3. filter, $Y \leftarrow T_d(\tfrac{2}{c} A^T A - I) Y$ with the cut $c$ below the guards, in passes between which $Y$
//!    is kept orthogonal to the locked $V$ and well-conditioned
//! 4. project, $Y \leftarrow (I - V V^T) Y$
//! 5. Rayleigh–Ritz on $Y$, and residuals
//! 6. lock the leading converged pairs; back to 3 until the window is done, to 2 until $V$ has $r$ columns
//!
//! With the guards in place one filter of degree twenty or so brings a window from random columns to $10^{-6}$, and most
//! windows are done after a single round of steps 3 to 6.

use faer::prelude::*;
use faer::{Accum, Mat, MatMut, MatRef};
use faer::{ColMut, ColRef};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::block::Block;
use super::filter::{Filter, TRACE_BUDGET, growth, pass_degree};
use super::ritz::{orthonormalize_filtered, residuals, ritz_coefficients};
use super::{Error, Info, Params, Plan, TruncatedSvd};
use crate::linalg::LinearOperator;
use crate::linalg::dense::{matmul, normalize_columns};
use crate::linalg::density::SpectralDensity;
use crate::monitor::{Monitor, check_cancelled};

/// Largest ratio of the eigenvalue above a window to its smallest wanted one.
const WINDOW_RATIO: f64 = 1.65;

/// Fewest wanted eigenvalues in a window.
const WINDOW_LEAST: usize = 64;

/// Ratio of the smallest wanted eigenvalue to the cut of the filter below the guards.
const GUARD_RATIO: f64 = 1.17;

/// Residuals are driven this far below the tolerance: what a locked vector lacks, later ones inherit.
const MARGIN: f64 = 0.5;

/// Most passes of a filter between two projections on Ritz vectors.
const MOST_PASSES: usize = 12;

/// Lanczos steps of the density estimate.
const LANCZOS_STEPS: usize = 64;

pub(super) fn solve<A: LinearOperator>(
    operator: &A,
    rank: usize,
    params: &Params,
    plan: Plan,
    monitor: &dyn Monitor,
) -> Result<TruncatedSvd, Error> {
    let density = SpectralDensity::estimate(operator, LANCZOS_STEPS, params.seed)?;
    if !density.largest().is_finite() {
        return Err(Error::NotFinite);
    }
    let n = operator.ncols();
    let info = Info {
        plan,
        rank,
        converged: true,
        residual: 0.0,
        iterations: 0,
        products: 0,
        flops: 0.0,
        seconds: 0.0,
    };
    let mut iteration = Iteration {
        operator,
        params,
        density,
        rank,
        n,
        vectors: Mat::zeros(n, rank),
        eigenvalues: Vec::with_capacity(rank),
        drawn: 1,
        info,
    };
    if iteration.density.largest() <= 0.0 {
        return Ok(iteration.finish());
    }
    let mut active = Block::empty(n);
    let mut more = true;
    while more {
        let before = iteration.eigenvalues.len();
        more = iteration.window(&mut active, monitor)?;
        monitor.advance((iteration.eigenvalues.len() - before) as u64);
    }
    Ok(iteration.finish())
}

struct Iteration<'a, A> {
    operator: &'a A,
    params: &'a Params,
    density: SpectralDensity,
    rank: usize,
    n: usize,
    /// Locked vectors in the leading columns.
    vectors: Mat<f64>,
    /// Eigenvalues of the locked vectors.
    eigenvalues: Vec<f64>,
    /// Random columns drawn so far.
    drawn: u64,
    info: Info,
}

/// The part of the spectrum an active block works on.
#[derive(Clone, Copy)]
struct Window {
    /// How many vectors are locked when it is done.
    end: usize,
    /// The filter suppresses eigenvalues up to here.
    cut: f64,
    /// The smallest eigenvalue wanted.
    wanted: f64,
    /// Nothing above this is left unlocked.
    highest: f64,
}

/// How far the columns of an active block are from being independent, as a model: what the filter multiplies, rounding
/// replenishes and orthonormalisation removes.
#[derive(Clone, Copy)]
struct Strain {
    /// Sine of the angle between the window's top directions and the columns that should hold them.
    impurity: f64,
    /// Amplitude of the window's top directions in the columns of the guards: about the condition number, if above one.
    contamination: f64,
}

impl Strain {
    /// Of random columns.
    const RANDOM: Strain = Strain { impurity: 1.0, contamination: 1.0 };

    /// After a filter that multiplies the window's top by `factor`.
    fn filtered(self, factor: f64) -> Self {
        Strain { impurity: self.impurity / factor, contamination: self.contamination * factor }
    }

    /// After an orthonormalisation.
    fn orthonormalized(self) -> Self {
        // Nothing keeps the last columns of a random start as far from the top as the others.
        let impurity = (30.0 * self.impurity).max(1e-15 * self.contamination.max(1.0)).min(1.0);
        Strain { impurity, contamination: impurity }
    }

    /// Largest contamination: a Gram matrix squares it, and must stay well above rounding.
    const LIMIT: f64 = 2e7;
}

impl<A: LinearOperator> Iteration<'_, A> {
    /// Works on the next window until it is locked. Takes what the last window left over in `active` and leaves there what
    /// it does not need itself; `false` if nothing more is wanted, or all that is left is numerically zero.
    fn window(&mut self, active: &mut Block, monitor: &dyn Monitor) -> Result<bool, Error> {
        let (mut window, width) = self.choose_window();
        self.fill_up(active, width);
        let mut strain = Strain::RANDOM;
        // How far the wanted space is from random columns: the ratio of the extreme singular values of Gaussian matrices.
        let (rows, columns) = ((self.n as f64).sqrt(), (width as f64).sqrt());
        let spread =
            (rows + columns) / (columns - ((window.end - self.eigenvalues.len()) as f64).sqrt()).max(0.5);
        let outside = spread * 0.5 * window.wanted;
        let largest = self.density.largest();
        let mut lacking = outside / (self.params.tolerance * (largest * window.wanted).sqrt());
        for stage in 1..=self.params.max_stages {
            let degree = (2.0 * lacking / MARGIN).ln() / growth(window.wanted, window.cut);
            self.filter(active, &window, strain, degree, monitor)?;
            // 5. Rayleigh-Ritz; of the guards' Ritz vectors later, if they are needed
            let coefficients = ritz_coefficients(self.operator, active)?;
            let locked = self.eigenvalues.len();
            let missing = (window.end - locked).min(active.ncols());
            if missing == 0 {
                return Ok(false);
            }
            // In their place already: what is not locked yet will be overwritten.
            let ritz = self.vectors.as_mut().subcols_mut(locked, missing);
            matmul(ritz, Accum::Replace, active.as_ref(), coefficients.get(.., ..missing), 1.0);
            let ritz = self.vectors.subcols(locked, missing);
            let pairs = residuals(self.operator, ritz);
            self.count_ritz(active.ncols(), missing);

            // 6. lock the leading pairs that are converged
            let largest = self.eigenvalues.first().copied().unwrap_or(pairs[0].0);
            let lacks: Vec<f64> = pairs
                .iter()
                .map(|&(theta, residual)| {
                    residual / (self.params.tolerance * (largest * theta).sqrt()).max(f64::MIN_POSITIVE)
                })
                .collect();
            let zero = pairs.iter().position(|&(theta, _)| theta <= self.params.tolerance.powi(2) * largest);
            let last_chance = stage == self.params.max_stages;
            let found = zero.unwrap_or(missing);
            let done = lacks[..found].iter().take_while(|&&lack| last_chance || lack <= 1.0).count();
            tracing::debug!(
                stage,
                width = active.ncols(),
                degree,
                locked = locked + done,
                of = window.end,
                "window filtered"
            );
            self.lock(&pairs[..done], &lacks[..done]);
            if (done == found && zero.is_some()) || self.eigenvalues.len() == self.rank {
                return Ok(false);
            }
            // What is left: Ritz vectors that are not converged yet, and the guards'.
            let unconverged = self.vectors.subcols(locked + done, missing - done);
            let guards = coefficients.get(.., missing..);
            active.replace(unconverged.ncols() + guards.ncols(), |y, left_over| {
                let (mut first, rest) = left_over.split_at_col_mut(unconverged.ncols());
                first.copy_from(unconverged);
                matmul(rest, Accum::Replace, y, guards, 1.0);
            });
            if done == missing {
                return Ok(true);
            }
            // Ritz values and residuals are known now, better than estimated.
            lacking = lacks[done..found].iter().copied().fold(1.0, f64::max);
            window.highest = pairs[done].0;
            window.wanted = pairs[found - 1].0.max(1.01 * window.cut);
            let angle = pairs[done].1 / (window.highest - window.cut).max(1e-3 * window.highest);
            strain.impurity = angle.clamp(1e-15, 1.0);
            strain.contamination = strain.impurity;
        }
        Ok(true)
    }

    /// Step 2: the next window, and how many columns it works on, guards included.
    fn choose_window(&self) -> (Window, usize) {
        let locked = self.eigenvalues.len();
        let largest = self.density.largest();
        let highest = self.eigenvalues.last().copied().unwrap_or(largest);
        // First count in `from..to` whose eigenvalue is below a limit, by the estimate.
        let below = |limit: f64, from: usize, to: usize| {
            let (mut low, mut high) = (from, to);
            while low < high {
                let middle = low.midpoint(high);
                if self.density.eigenvalue(middle) >= limit { low = middle + 1 } else { high = middle }
            }
            low
        };
        // Windows of one ratio, as many as it takes.
        let ratio = (highest / self.density.eigenvalue(self.rank).max(1e-12 * largest)).max(1.0);
        let windows = (ratio.ln() / WINDOW_RATIO.ln()).ceil().max(1.0);
        let mut end = below(highest / ratio.powf(1.0 / windows), locked, self.rank);
        end = end.max(locked + WINDOW_LEAST).min(self.rank);
        // A small remainder is cheaper here than in a window of its own.
        if self.rank - end < (end - locked) / 3 {
            end = self.rank;
        }
        let most = self.n.min(end + end / 3 + 32);
        let guards = below(self.density.eigenvalue(end) / GUARD_RATIO, end, most).max((end + 16).min(self.n));
        let cut = self.density.eigenvalue(guards).max(1e-10 * largest).max(f64::MIN_POSITIVE);
        let wanted = self.density.eigenvalue(end).max(1.01 * cut);
        (Window { end, cut, wanted, highest: highest.max(wanted) }, guards - locked)
    }

    /// Fills the left-over columns up to `width` with random ones orthogonal to everything locked.
    fn fill_up(&mut self, active: &mut Block, width: usize) {
        let kept = active.ncols().min(width);
        // A stream of its own for every column: the same numbers whoever draws them.
        let drawn: Vec<Signs> = (self.drawn..)
            .take(width - kept)
            .map(|stream| Signs::draw(self.n, self.params.seed, stream))
            .collect();
        self.drawn += drawn.len() as u64;
        let locked = self.vectors.get(.., ..self.eigenvalues.len());
        active.replace(width, |left_over, filled| {
            let (mut first, mut fresh) = filled.split_at_col_mut(kept);
            first.copy_from(left_over.subcols(0, kept));
            // I - V V^T on sparse columns: the components gathered, the rest a product.
            let mut components = Mat::zeros(drawn.len(), locked.ncols());
            components.as_mut().par_col_iter_mut().zip(locked.par_col_iter()).for_each(|(components, v)| {
                components.iter_mut().zip(&drawn).for_each(|(component, signs)| *component = signs.dot(v));
            });
            matmul(fresh.rb_mut(), Accum::Replace, locked, components.transpose(), -1.0);
            fresh.rb_mut().par_col_iter_mut().zip(&drawn).for_each(|(column, signs)| signs.add_to(column));
            normalize_columns(fresh);
        });
    }

    /// Steps 3 and 4: a filter of the given degree in passes as long as conditioning and the locked directions bear.
    fn filter(
        &mut self,
        active: &mut Block,
        window: &Window,
        mut strain: Strain,
        degree: f64,
        monitor: &dyn Monitor,
    ) -> Result<(), Error> {
        let top_growth = growth(window.highest, window.cut).max(1e-3);
        let growths: Vec<f64> = self.eigenvalues.iter().map(|&value| growth(value, window.cut)).collect();
        let bearable = (2.0 * Strain::LIMIT / strain.contamination).ln() / top_growth;
        let most = pass_degree(window.cut, bearable.min(degree.ceil()) as usize, &self.eigenvalues);
        // A shortfall of a tenth of a pass is within the margin.
        let passes = (degree / most as f64 - 0.1).ceil().clamp(1.0, MOST_PASSES as f64) as usize;
        let pass_degree = most.min((degree / passes as f64).ceil() as usize).max(1);
        let factor = (pass_degree as f64 * top_growth).exp() / 2.0;
        // Logarithm of what the trace of every locked direction has grown by since it was last projected out.
        let mut traces = vec![0.0; growths.len()];
        for pass in 0..passes {
            check_cancelled(monitor)?;
            let filter = Filter::new(window.cut, pass_degree, pass, passes, &self.eigenvalues);
            filter.apply(self.operator, self.vectors.get(.., ..growths.len()), active.as_mut());
            normalize_columns(active.as_mut());
            strain = strain.filtered(factor);
            traces.iter_mut().zip(&growths).for_each(|(trace, growth)| *trace += growth * pass_degree as f64);

            let last = pass + 1 == passes;
            let overdue = |i: &usize| traces[*i] + growths[*i] * pass_degree as f64 > TRACE_BUDGET;
            let prefix = if last {
                growths.len()
            } else {
                (0..growths.len()).rev().find(overdue).map_or(0, |i| i + 1)
            };
            project(self.vectors.get(.., ..prefix), active.as_mut());
            traces[..prefix].fill(0.0);
            // Rayleigh-Ritz, at the end, wants better conditioning than the next pass would.
            let limit = if pass + 2 == passes { 1e5 } else { Strain::LIMIT };
            let orthonormalize = !last && strain.contamination * factor > limit;
            if orthonormalize {
                orthonormalize_filtered(active)?;
                strain = strain.orthonormalized();
            }
            self.count(&filter, active.ncols(), prefix, orthonormalize);
            tracing::trace!(pass, passes, pass_degree, projected = prefix, orthonormalize, "pass");
        }
        Ok(())
    }

    /// Locks the next columns, one for every pair.
    fn lock(&mut self, pairs: &[(f64, f64)], lacks: &[f64]) {
        self.eigenvalues.extend(pairs.iter().map(|&(theta, _)| theta));
        let worst = lacks.iter().copied().fold(0.0, f64::max);
        self.info.residual = self.info.residual.max(worst * self.params.tolerance);
        self.info.converged &= worst <= 1.0;
    }

    fn count_ritz(&mut self, width: usize, rotated: usize) {
        let (n, a) = (self.n as f64, width as f64);
        self.info.iterations += 1;
        self.info.products += (width + rotated) as u64;
        self.info.flops += (a + rotated as f64) * self.operator.flops_per_column()
            + 2.0 * n * a * (a + rotated as f64)
            + 12.0 * a * a * a;
    }

    fn count(&mut self, filter: &Filter, width: usize, projected: usize, orthonormalized: bool) {
        let (n, a) = (self.n as f64, width as f64);
        let product = self.operator.flops_per_column();
        self.info.products += (filter.degree() * width) as u64;
        self.info.flops += a * filter.flops_per_column(product, self.n) + 4.0 * n * a * projected as f64;
        if orthonormalized {
            self.info.flops += 2.0 * n * a * a;
        }
    }

    fn finish(mut self) -> TruncatedSvd {
        let found = self.eigenvalues.len();
        self.info.rank = found;
        // Windows are in order; within rounding of their borders pairs may not be.
        let mut order: Vec<usize> = (0..found).collect();
        order.sort_by(|&a, &b| self.eigenvalues[b].total_cmp(&self.eigenvalues[a]));
        let right = if found == self.rank && order.is_sorted() {
            self.vectors
        } else {
            let mut right = Mat::zeros(self.n, found);
            for (to, &from) in order.iter().enumerate() {
                right.as_mut().col_mut(to).copy_from(self.vectors.col(from));
            }
            right
        };
        let singular_values = order.iter().map(|&at| self.eigenvalues[at].max(0.0).sqrt()).collect();
        TruncatedSvd { singular_values, right, info: self.info }
    }
}

/// A random start: signs in a few rows, all other rows zero.
struct Signs(Vec<(usize, f64)>);

impl Signs {
    /// Rows a column has signs in: with hundreds of columns, every row has many.
    const ROWS: usize = 96;

    fn draw(n: usize, seed: u64, stream: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        let sign = |random: &mut ChaCha8Rng| if random.random::<bool>() { 1.0 } else { -1.0 };
        Signs(if n <= Self::ROWS {
            (0..n).map(|row| (row, random.random::<f64>() - 0.5)).collect()
        } else {
            (0..Self::ROWS).map(|_| (random.random_range(0..n), sign(&mut random))).collect()
        })
    }

    fn add_to(&self, mut column: ColMut<'_, f64>) {
        self.0.iter().for_each(|&(row, sign)| column[row] += sign);
    }

    fn dot(&self, column: ColRef<'_, f64>) -> f64 {
        self.0.iter().map(|&(row, sign)| sign * column[row]).sum()
    }
}

/// $Y \leftarrow Y - V V^T Y$ for columns of length one. Those of which so much cancels that rounding would be left are
/// projected again.
fn project(vectors: MatRef<'_, f64>, mut block: MatMut<'_, f64>) {
    // What the locked vectors lack of being orthonormal stays in the projection; divided by this, it is passed on to the
    // next window.
    const LOST: f64 = 3e-2;
    project_once(vectors, block.rb_mut());
    for _ in 0..2 {
        let columns = block.as_ref().par_col_iter().enumerate();
        let lost: Vec<usize> = columns.filter(|(_, y)| y.norm_l2() < LOST).map(|(k, _)| k).collect();
        if lost.is_empty() {
            return;
        }
        let mut again = Mat::zeros(block.nrows(), lost.len());
        lost.iter().enumerate().for_each(|(to, &k)| again.col_mut(to).copy_from(block.as_ref().col(k)));
        normalize_columns(again.as_mut());
        project_once(vectors, again.as_mut());
        lost.iter().enumerate().for_each(|(from, &k)| block.rb_mut().col_mut(k).copy_from(again.col(from)));
    }
}

fn project_once(vectors: MatRef<'_, f64>, block: MatMut<'_, f64>) {
    if vectors.ncols() == 0 || block.ncols() == 0 {
        return;
    }
    let mut components = Mat::zeros(vectors.ncols(), block.ncols());
    matmul(components.as_mut(), Accum::Replace, vectors.transpose(), block.as_ref(), 1.0);
    matmul(block, Accum::Add, vectors, components.as_ref(), -1.0);
}
