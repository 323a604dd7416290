//! Products with the tensor position by position, at the speed of dense products.
//!
//! With $X_k$ the slice of position $k$, everything HOOI needs beyond the small unfoldings is
//! $$B_k = L^T X_k R = \sum_{j} \Bigl( \sum_{u : (u,j) \text{ at } k} l_u \Bigr) r_j^T$$
//! for factors $L$ over users and $R$ over items. The inner sum gathers: what is left is one dense product whose
//! inner dimension is the number of *distinct* items at the position.

use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::rows::{Rows, add};
use crate::linalg::Real;
use crate::tensor::PositionalLog;

/// Runs gathered for one dense product.
pub(super) const RUNS_A_PRODUCT: usize = 512;

/// $B_k$ for all positions, one after the other: each is `columns.len()` x `items.width()`, row after row. Only the
/// given columns of `users` take part.
pub(super) fn position_products<T: Real>(
    log: &PositionalLog,
    users: &Rows<T>,
    columns: &std::ops::Range<usize>,
    items: &Rows<T>,
    products: &mut [T],
) {
    let (a, b) = (columns.len(), items.width());
    products.par_chunks_exact_mut(a * b).enumerate().with_max_len(1).for_each_init(
        || (Vec::new(), Vec::new()),
        |(sums, gathered), (position, product)| {
            let runs = log.runs_at(position);
            if runs.is_empty() {
                product.fill(T::default());
                return;
            }
            for (block, runs) in runs.chunks(RUNS_A_PRODUCT).enumerate() {
                let first = log.first_run(position) + block * RUNS_A_PRODUCT;
                sums.resize(runs.len() * a, T::default());
                gathered.resize(runs.len() * b, T::default());
                pulp::Arch::new().dispatch(|| {
                    for (at, run) in runs.iter().enumerate() {
                        let sum = &mut sums[at * a..(at + 1) * a];
                        sum_users(log, users, columns, first + at, sum);
                        gathered[at * b..(at + 1) * b].copy_from_slice(items.row(run.item as usize));
                    }
                });
                let accum = if block == 0 { Accum::Replace } else { Accum::Add };
                let product = MatMut::from_row_major_slice_mut(&mut *product, a, b);
                let left = MatRef::from_row_major_slice(sums.as_slice(), runs.len(), a).transpose();
                let right = MatRef::from_row_major_slice(gathered.as_slice(), runs.len(), b);
                faer::linalg::matmul::matmul(product, accum, left, right, T::of(1.0), Par::Seq);
            }
        },
    );
}

/// The sum of the rows of the users of a run, restricted to some columns.
#[inline(always)]
pub(super) fn sum_users<T: Real>(
    log: &PositionalLog,
    rows: &Rows<T>,
    columns: &std::ops::Range<usize>,
    run: usize,
    sum: &mut [T],
) {
    let users = log.users_of_run(run);
    sum.copy_from_slice(&rows.row(users[0] as usize)[columns.clone()]);
    for &user in &users[1..] {
        add(sum, &rows.row(user as usize)[columns.clone()]);
    }
}

/// Columns of $U$ whose products are held at once, for a number of bytes.
pub(super) fn slab_width(
    user_rank: usize,
    other: usize,
    num_positions: usize,
    size: usize,
    bytes: u64,
) -> usize {
    /// Wide enough for dense products at full speed.
    const WIDEST: usize = 384;
    let affordable = (bytes / (other * num_positions * size) as u64).max(16) as usize;
    let slabs = user_rank.div_ceil(WIDEST.min(affordable));
    user_rank.div_ceil(slabs)
}

/// Entries of products whose Gram matrix is summed in the precision of the data; the sum of such pieces is in double.
const PIECE: usize = 4096;

/// The Gram matrix over positions, $T_{kk'} = \langle B_k, B_{k'} \rangle$ with $L = U$ and $R = D V$: all that the
/// positional modes of Eq. 24 and 25 depend on. Computed for a slab of the columns of $U$ after another, so that
/// the $B_k$ never exist whole.
pub(super) fn position_gram<T: Real>(
    log: &PositionalLog,
    u: &Rows<T>,
    dv: &Rows<T>,
    slab: usize,
) -> Mat<f64> {
    let k = log.num_positions();
    let mut gram = Mat::<f64>::zeros(k, k);
    let mut products = vec![T::default(); slab * dv.width() * k];
    for first in (0..u.width()).step_by(slab) {
        let columns = first..(first + slab).min(u.width());
        let size = columns.len() * dv.width();
        let products = &mut products[..size * k];
        position_products(log, u, &columns, dv, products);
        let whole = MatRef::from_row_major_slice(&*products, k, size);
        let pieces: Vec<Mat<T>> = (0..size.div_ceil(PIECE))
            .into_par_iter()
            .map(|piece| {
                let start = piece * PIECE;
                let piece = whole.subcols(start, PIECE.min(size - start));
                let mut gram = Mat::zeros(k, k);
                let one = T::of(1.0);
                faer::linalg::matmul::matmul(
                    gram.as_mut(),
                    Accum::Replace,
                    piece,
                    piece.transpose(),
                    one,
                    Par::Seq,
                );
                gram
            })
            .collect();
        for piece in pieces {
            for (sum, piece) in gram.col_iter_mut().zip(piece.col_iter()) {
                sum.iter_mut().zip(piece.iter()).for_each(|(sum, piece)| *sum += piece.double());
            }
        }
    }
    super::gram_side::mirror(&mut gram);
    gram
}
