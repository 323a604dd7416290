//! A large symmetric positive definite matrix, inverted where it stands.
//!
//! Only the lower triangle is stored, in square tiles, so that an inverse of order `n` takes `4 n^2` bytes in
//! double precision where a factorisation beside its inverse would take `16 n^2`. The sweep over block `k` with
//! `D = A[k,k]^-1` and all other blocks `i`, `j` is
//!
//! ```text
//! A[i,j] <- A[i,j] - A[i,k] D A[k,j]      A[i,k] <- A[i,k] D      A[k,k] <- -D
//! ```
//!
//! It keeps the matrix symmetric, and once every block was swept the matrix is `-A^-1`. The cost is `n^3`
//! floating-point operations, as much as Cholesky's factorisation with the inverse from it, but each sweep is
//! one set of independent tile products. Tiles have a fixed size and each product runs on one thread: the
//! result has the same bits for any number of threads.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt;
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Spec};
use rayon::prelude::*;

/// Order of a tile.
const TILE: usize = 256;

/// The lower triangle of a symmetric matrix in tiles.
pub(super) struct SymmetricTiles {
    order: usize,
    /// `rows[i][j]`, `j <= i`: block `(i, j)`, of order [`TILE`] except at the lower edge. Of the diagonal
    /// blocks only the lower triangle counts.
    rows: Vec<Vec<Mat<f64>>>,
    /// `A[i,k]` of the block being swept, as it was, and `A[i,k] D`. Kept from sweep to sweep: tiles allocated
    /// and freed by turns on several threads would leave holes half as large as the matrix.
    panel: Vec<Mat<f64>>,
    scaled: Vec<Mat<f64>>,
}

/// A pivot was not positive: the matrix is not positive definite in double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotPositiveDefinite;

impl SymmetricTiles {
    /// Bytes of a matrix of this order, and of what the sweep needs beside it.
    pub(super) fn bytes(order: u64) -> u64 {
        let tile = TILE as u64;
        let triangle = order.saturating_mul(order.saturating_add(tile)) / 2;
        let panels = order.saturating_mul(2 * tile);
        triangle.saturating_add(panels).saturating_mul(size_of::<f64>() as u64)
    }

    /// The matrix whose row `a` up to the diagonal is what `fill(a, row)` makes of `a + 1` zeros.
    pub(super) fn from_lower_rows(order: usize, fill: impl Fn(usize, &mut [f64]) + Sync) -> Self {
        let num_blocks = order.div_ceil(TILE);
        let rows = (0..num_blocks)
            .into_par_iter()
            .map(|i| {
                let height = block_len(order, i);
                let mut tiles: Vec<Mat<f64>> =
                    (0..=i).map(|j| Mat::zeros(height, block_len(order, j))).collect();
                let mut row = vec![0.0; order.min((i + 1) * TILE)];
                for r in 0..height {
                    let row = &mut row[..=i * TILE + r];
                    row.fill(0.0);
                    fill(i * TILE + r, row);
                    for (tile, part) in tiles.iter_mut().zip(row.chunks(TILE)) {
                        for (c, &value) in part.iter().enumerate() {
                            tile[(r, c)] = value;
                        }
                    }
                }
                tiles
            })
            .collect();
        let panel: Vec<Mat<f64>> =
            (0..num_blocks).map(|i| Mat::zeros(block_len(order, i), TILE.min(order))).collect();
        SymmetricTiles { order, rows, scaled: panel.clone(), panel }
    }

    /// Number of blocks along a side: how often [`SymmetricTiles::sweep`] is called for an inverse.
    pub(super) fn num_blocks(&self) -> usize {
        self.rows.len()
    }

    /// Sweeps block `k`. After an error the matrix is of no use.
    pub(super) fn sweep(&mut self, k: usize) -> Result<(), NotPositiveDefinite> {
        let pivot = inverse_of_lower(self.rows[k][k].as_ref())?;
        let width = pivot.ncols();
        let rows = &self.rows;
        self.panel.par_iter_mut().zip(&mut self.scaled).enumerate().filter(|(i, _)| *i != k).for_each(
            |(i, (block, scaled))| {
                let mut block = block.subcols_mut(0, width);
                if i < k {
                    // Above the diagonal the column of blocks is stored as row k, transposed.
                    block.copy_from(rows[k][i].transpose());
                } else {
                    block.copy_from(&rows[i][k]);
                }
                let scaled = scaled.subcols_mut(0, width);
                matmul(scaled, Accum::Replace, block.as_ref(), pivot.as_ref(), 1.0, Par::Seq);
            },
        );
        let (panel, scaled) = (&self.panel, &self.scaled);
        self.rows.par_iter_mut().enumerate().for_each(|(i, tiles)| {
            tiles.par_iter_mut().enumerate().for_each(|(j, tile)| match (i == k, j == k) {
                (false, false) => {
                    let (left, right) = (scaled[i].subcols(0, width), panel[j].subcols(0, width));
                    matmul(tile.as_mut(), Accum::Add, left, right.transpose(), -1.0, Par::Seq);
                }
                (false, true) => tile.copy_from(scaled[i].subcols(0, width)),
                (true, false) => tile.copy_from(scaled[j].subcols(0, width).transpose()),
                (true, true) => tile.copy_from(-&pivot),
            });
        });
        Ok(())
    }

    /// The diagonal entry of row `a`.
    pub(super) fn diagonal(&self, a: usize) -> f64 {
        self.rows[a / TILE][a / TILE][(a % TILE, a % TILE)]
    }

    /// Copies row `a` of the whole symmetric matrix.
    pub(super) fn copy_row(&self, a: usize, row: &mut [f64]) {
        let (i, r) = (a / TILE, a % TILE);
        for (j, part) in row[..self.order].chunks_mut(TILE).enumerate() {
            if j > i {
                part.copy_from_slice(self.rows[j][i].col_as_slice(r));
                continue;
            }
            let tile = &self.rows[i][j];
            for (c, value) in part.iter_mut().enumerate() {
                *value = if j == i && c > r { tile[(c, r)] } else { tile[(r, c)] };
            }
        }
    }
}

fn block_len(order: usize, block: usize) -> usize {
    TILE.min(order - block * TILE)
}

/// The whole inverse of a symmetric matrix of which the lower triangle is given.
fn inverse_of_lower(block: MatRef<'_, f64>) -> Result<Mat<f64>, NotPositiveDefinite> {
    let order = block.nrows();
    let mut memory = MemBuffer::new(StackReq::any_of(&[
        llt::factor::cholesky_in_place_scratch::<f64>(order, Par::Seq, Spec::default()),
        llt::inverse::inverse_scratch::<f64>(order, Par::Seq),
    ]));
    let stack = MemStack::new(&mut memory);
    let mut factor = block.to_owned();
    llt::factor::cholesky_in_place(
        factor.as_mut(),
        LltRegularization::default(),
        Par::Seq,
        stack,
        Spec::default(),
    )
    .map_err(|_| NotPositiveDefinite)?;
    let mut inverse = Mat::zeros(order, order);
    llt::inverse::inverse(inverse.as_mut(), factor.as_ref(), Par::Seq, stack);
    for c in 1..order {
        for r in 0..c {
            inverse[(r, c)] = inverse[(c, r)];
        }
    }
    Ok(inverse)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// `L L^T / order + I` for a random `L`, as dense rows.
    fn positive_definite(order: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let factor: Vec<Vec<f64>> =
            (0..order).map(|_| (0..order).map(|_| rng.random_range(-1.0..1.0)).collect()).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        (0..order)
            .map(|a| {
                (0..order)
                    .map(|b| dot(&factor[a], &factor[b]) / order as f64 + f64::from(u8::from(a == b)))
                    .collect()
            })
            .collect()
    }

    fn tiles_of(dense: &[Vec<f64>]) -> SymmetricTiles {
        SymmetricTiles::from_lower_rows(dense.len(), |a, row| row.copy_from_slice(&dense[a][..=a]))
    }

    #[test]
    fn sweeping_every_block_gives_minus_the_inverse() {
        for order in [1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE + 37] {
            let dense = positive_definite(order, order as u64);
            let mut tiles = tiles_of(&dense);
            for k in 0..tiles.num_blocks() {
                tiles.sweep(k).unwrap();
            }
            let matrix = Mat::from_fn(order, order, |r, c| dense[r][c]);
            let mut swept = Mat::zeros(order, order);
            let mut row = vec![0.0; order];
            for a in 0..order {
                tiles.copy_row(a, &mut row);
                for b in 0..order {
                    swept[(a, b)] = row[b];
                }
            }
            let product = &matrix * &swept;
            for a in 0..order {
                for b in 0..order {
                    let expected = if a == b { -1.0 } else { 0.0 };
                    assert!((product[(a, b)] - expected).abs() < 1e-12, "order {order} at ({a}, {b})");
                }
            }
        }
    }

    #[test]
    fn an_indefinite_matrix_is_refused() {
        let mut dense = positive_definite(TILE + 3, 5);
        dense[TILE + 1][TILE + 1] = -4.0;
        let mut tiles = tiles_of(&dense);
        assert_eq!(tiles.sweep(0), Ok(()));
        assert_eq!(tiles.sweep(1), Err(NotPositiveDefinite));
    }

    #[test]
    fn rows_come_back_as_they_went_in() {
        let dense = positive_definite(TILE + 9, 2);
        let tiles = tiles_of(&dense);
        let mut row = vec![0.0; dense.len()];
        for (a, expected) in dense.iter().enumerate() {
            tiles.copy_row(a, &mut row);
            assert!(row.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15));
        }
    }
}
