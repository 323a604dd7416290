//! The truncated SVD against a dense one, both ways.

use faer::Mat;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::linalg::SparseMatrix;

/// A sparse matrix with popular and rare columns, and the same as a dense one.
fn sample(m: usize, n: usize, per_row: usize, seed: u64) -> (SparseMatrix, Mat<f64>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut dense = Mat::<f64>::zeros(m, n);
    for i in 0..m {
        for _ in 0..per_row {
            let skewed = random.random::<f64>().powi(2);
            dense[(i, ((skewed * n as f64) as usize).min(n - 1))] = 0.5 + random.random::<f64>();
        }
    }
    (sparse(&dense), dense)
}

fn sparse(dense: &Mat<f64>) -> SparseMatrix {
    let row = |i: usize| {
        (0..dense.ncols()).filter(move |&j| dense[(i, j)] != 0.0).map(move |j| (j as u32, dense[(i, j)]))
    };
    SparseMatrix::from_rows(dense.ncols(), (0..dense.nrows()).map(row))
}

fn params(way: Way) -> Params {
    Params { way: Some(way), seed: 3, ..Params::default() }
}

/// Checks everything a user relies on against the dense decomposition.
fn check(dense: &Mat<f64>, svd: &TruncatedSvd, asked: usize) {
    let reference = dense.thin_svd().unwrap();
    let sigma = |k: usize| reference.S().column_vector()[k];
    let (found, v) = (svd.info.rank, &svd.right);
    assert_eq!((v.nrows(), v.ncols(), svd.singular_values.len()), (dense.ncols(), found, found));
    assert!(found <= asked && svd.info.converged, "{:?}", svd.info);
    // Orthonormal.
    let off = (v.transpose() * v - Mat::<f64>::identity(found, found)).norm_max();
    assert!(off < 1e-10, "not orthonormal: {off}, {:?}", svd.info);
    // Singular values, in order; the residual bounds their error where they are separated and where they are not.
    assert!(svd.singular_values.is_sorted_by(|a, b| a >= b));
    for (k, value) in svd.singular_values.iter().enumerate() {
        assert!((value - sigma(k)).abs() < 1e-6 * sigma(0), "singular value {k}: {value} for {}", sigma(k));
    }
    // Nothing above the threshold is missing.
    if found < asked {
        assert!(sigma(found) <= 1.1e-6 * sigma(0), "rank {found} of {asked}, next {}", sigma(found));
    }
    // Residuals as promised.
    for (k, value) in svd.singular_values.iter().enumerate() {
        let image = dense.transpose() * (dense * v.col(k));
        let residual = (image - v.col(k) * Scale(value * value)).norm_l2();
        assert!(residual <= 1.01e-6 * sigma(0) * value, "residual {k}: {residual}");
    }
    // The projector, where a gap separates the kept from the others.
    let next = if found < dense.nrows().min(dense.ncols()) { sigma(found) } else { 0.0 };
    let gap = (sigma(found - 1).powi(2) - next.powi(2)) / sigma(0).powi(2);
    if gap > 0.05 {
        let w = reference.V().subcols(0, found);
        let difference = v * v.transpose() - w * w.transpose();
        assert!(difference.norm_l2() < 2e-6 / gap, "projector: {} at gap {gap}", difference.norm_l2());
    }
}

use faer::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn both_ways_agree_with_a_dense_decomposition(
        m in 1usize..90, n in 1usize..90, per_row in 1usize..8, rank in 1usize..90, seed in 0u64..999,
    ) {
        let (matrix, dense) = sample(m, n, per_row, seed);
        let rank = rank.min(m).min(n);
        // The filtered way is for a part of the spectrum.
        for (way, rank) in [(Way::Dense, rank), (Way::Filtered, rank.min(m.min(n).div_ceil(2)))] {
            check(&dense, &truncated_svd(&matrix, rank, &params(way), &()).unwrap(), rank);
        }
    }
}

#[test]
fn windows_of_a_larger_matrix_agree_with_a_dense_decomposition() {
    let (matrix, dense) = sample(900, 600, 9, 1);
    for rank in [1, 10, 150, 400] {
        let svd = truncated_svd(&matrix, rank, &params(Way::Filtered), &()).unwrap();
        check(&dense, &svd, rank);
    }
}

#[test]
fn projectors_agree_across_a_gap() {
    // Ten strong directions above a noisy floor.
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut gaussian = |m, n| Mat::from_fn(m, n, |_, _| random.random::<f64>() - 0.5);
    let (u, w, noise) = (gaussian(300, 10), gaussian(200, 10), gaussian(300, 200));
    let dense = u * w.transpose() + Scale(0.1) * noise;
    for way in [Way::Dense, Way::Filtered] {
        let svd = truncated_svd(&sparse(&dense), 10, &params(way), &()).unwrap();
        check(&dense, &svd, 10);
        let reference = dense.thin_svd().unwrap();
        let v = reference.V().subcols(0, 10);
        let difference = &svd.right * svd.right.transpose() - v * v.transpose();
        assert!(difference.norm_l2() < 1e-6, "{way:?}: {}", difference.norm_l2());
    }
}

#[test]
fn degenerate_matrices_give_what_rank_they_have() {
    let cases: Vec<(Mat<f64>, usize)> = vec![
        (Mat::from_fn(1, 1, |_, _| 3.0), 1),
        (Mat::from_fn(1, 7, |_, j| f64::from(j % 2 == 0)), 1),
        (Mat::from_fn(7, 1, |_, _| 1.0), 1),
        // The same row over and over.
        (Mat::from_fn(60, 40, |_, j| f64::from(j % 3 == 0)), 1),
        // Three distinct rows, and columns of zeros.
        (Mat::from_fn(90, 80, |i, j| f64::from(j < 40 && (i % 3) * 11 == j % 33)), 3),
        (Mat::identity(50, 50), 50),
        (Mat::zeros(5, 4), 0),
    ];
    for (dense, expected) in &cases {
        for way in [Way::Dense, Way::Filtered] {
            let full = dense.nrows().min(dense.ncols());
            let svd = truncated_svd(&sparse(dense), full, &params(way), &()).unwrap();
            assert_eq!(svd.info.rank, *expected, "{way:?} of {} x {}", dense.nrows(), dense.ncols());
            if *expected > 0 {
                check(dense, &svd, full);
            }
        }
    }
}

#[test]
fn impossible_ranks_and_values_are_refused() {
    let (matrix, _) = sample(20, 30, 3, 1);
    for rank in [0, 21] {
        let error = truncated_svd(&matrix, rank, &Params::default(), &()).unwrap_err();
        assert_eq!(error, Error::Rank { rank, nrows: 20, ncols: 30 });
    }
    let bad = SparseMatrix::from_rows(30, (0..40).map(|i| [(i % 30, f64::NAN)]));
    for way in [Way::Dense, Way::Filtered] {
        assert_eq!(truncated_svd(&bad, 3, &params(way), &()).unwrap_err(), Error::NotFinite);
    }
}

#[test]
fn results_are_the_same_bits_on_any_number_of_threads() {
    let (matrix, _) = sample(800, 500, 7, 4);
    for way in [Way::Dense, Way::Filtered] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| truncated_svd(&matrix, 120, &params(way), &()).unwrap())
        };
        let one = run(1);
        for threads in [2, 4] {
            let other = run(threads);
            assert!(
                other.right == one.right && other.singular_values == one.singular_values,
                "{way:?}, {threads}"
            );
        }
    }
}

#[test]
fn the_plan_takes_the_cheaper_way() {
    let way = |m, n, r, entries: f64| Plan::choose(m, n, r, 4.0 * entries, None).way;
    // Small matrices, and nearly all vectors of middling ones: dense.
    assert_eq!(way(100, 80, 10, 800.0), Way::Dense);
    assert_eq!(way(6000, 1500, 1400, 1e5), Way::Dense);
    // Some vectors of large ones: filtered.
    assert_eq!(way(22_363, 12_101, 2000, 2e5), Way::Filtered);
    assert_eq!(way(6040, 3706, 100, 1e6), Way::Filtered);
    assert_eq!(way(6040, 3706, 800, 1e6), Way::Filtered);
    // More of everything costs more.
    let flops = |m, n, r| Plan::choose(m, n, r, 1e5, Some(Way::Filtered)).flops;
    assert!(
        flops(5000, 4000, 100) < flops(5000, 4000, 200) && flops(5000, 4000, 200) < flops(9000, 8000, 200)
    );
}

/// How much of what the leading singular vectors hold of a matrix is in the span of these columns.
fn share_held(dense: &Mat<f64>, space: &Mat<f64>) -> f64 {
    let reference = dense.thin_svd().unwrap();
    let most: f64 = (0..space.ncols()).map(|k| reference.S().column_vector()[k].powi(2)).sum();
    (dense * space).norm_l2().powi(2) / most
}

#[test]
fn a_rough_space_is_orthonormal_and_holds_most_of_the_matrix() {
    let (matrix, dense) = sample(300, 120, 8, 5);
    let mut before = 0.0;
    for (rounds, least) in [(1, 0.9), (3, 0.98), (30, 0.999_99)] {
        let space = leading_space(&matrix, 20, rounds, 1, &()).unwrap();
        assert_eq!((space.nrows(), space.ncols()), (120, 20));
        let off = (space.transpose() * &space - Mat::<f64>::identity(20, 20)).norm_max();
        assert!(off < 1e-9, "not orthonormal: {off}");
        let share = share_held(&dense, &space);
        assert!(share > least && share > before && share < 1.0 + 1e-9, "{rounds} rounds: {share}");
        before = share;
    }
}

#[test]
fn a_rough_space_has_no_more_columns_than_the_matrix_has_rank() {
    let (_, tall) = sample(60, 4, 3, 2);
    let (_, wide) = sample(4, 50, 20, 3);
    let low = &tall * &wide;
    let space = leading_space(&sparse(&low), 10, 3, 0, &()).unwrap();
    assert!(space.ncols() <= 5, "{} columns of a matrix of rank 4", space.ncols());
    assert!(share_held(&low, &space.subcols(0, 4).to_owned()) > 1.0 - 1e-9);
    assert!(matches!(leading_space(&sparse(&low), 51, 3, 0, &()), Err(Error::Rank { rank: 51, .. })));
    assert!(matches!(leading_space(&sparse(&low), 0, 3, 0, &()), Err(Error::Rank { rank: 0, .. })));
}

#[test]
fn a_rough_space_has_the_same_bits_on_any_number_of_threads() {
    let (matrix, _) = sample(500, 200, 6, 7);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| leading_space(&matrix, 40, 3, 1, &()).unwrap())
    };
    let (one, three) = (on(1), on(3));
    assert!((0..40).all(|k| one.col(k).iter().eq(three.col(k).iter())));
}
