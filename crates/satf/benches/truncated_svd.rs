//! PureSVD-N of rank 2000 on a log of Amazon Beauty's shape: 22,363 users, 12,101 items, 198,502 rows.

use satf::linalg::{SparseMatrix, gemm_rate, truncated_svd};
use satf::linalg::truncated_svd::Params;
use std::io::Read;

fn main() {
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).without_time().with_target(false).with_ansi(false).init();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/");
    let file = std::env::var("F").unwrap_or("amz-beauty.csv.gz".into());
    let weeks: i64 = std::env::var("W").map(|x| x.parse().unwrap()).unwrap_or(3);
    let rank: usize = std::env::var("R").map(|x| x.parse().unwrap()).unwrap_or(2000);
    let s: f64 = std::env::var("S").map(|x| x.parse().unwrap()).unwrap_or(0.6);
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(format!("{path}{file}")).unwrap()).read_to_string(&mut text).unwrap();
    let rows: Vec<(i64, i64, i64)> = text
        .lines()
        .filter_map(|l| {
            let v: Vec<&str> = if l.contains("::") { l.split("::").collect() } else { l.split(',').collect() };
            Some((v[0].parse().ok()?, v[1].parse().ok()?, v[v.len() - 1].parse().ok()?))
        })
        .collect();
    let cut = rows.iter().map(|r| r.2).max().unwrap() - weeks * 7 * 86400;
    let mut users = std::collections::BTreeMap::<i64, Vec<i64>>::new();
    let mut items = std::collections::BTreeMap::<i64, u32>::new();
    for r in rows.iter().filter(|r| r.2 <= cut) {
        users.entry(r.0).or_default().push(r.1);
        *items.entry(r.1).or_default() += 1;
    }
    let index: std::collections::HashMap<i64, u32> = items.keys().enumerate().map(|(a, &b)| (b, a as u32)).collect();
    let a = SparseMatrix::from_rows(
        items.len(),
        users.values().map(|v| {
            let mut v = v.clone();
            v.sort();
            v.dedup();
            v.iter().map(|i| (index[i], (items[i] as f64).powf((s - 1.0) / 2.0))).collect::<Vec<_>>()
        }),
    );
    println!("{} x {} : {}", users.len(), items.len(), a.num_entries());
    println!("{:?}", gemm_rate());
    {
        use satf::linalg::*;
        let m = users.len(); let n = items.len();
        let x = vec![[0.5f32; PANEL]; n]; let mut y = vec![[0.0f32; PANEL]; m]; let mut z = x.clone();
        for _ in 0..3 { let t = std::time::Instant::now();
        for _ in 0..5 { a.apply(&x, &mut y); a.apply_transpose(&y, &mut z); }
        println!("panel f32 {PANEL}: {:.1} us/col", t.elapsed().as_secs_f64() / 5.0 / PANEL as f64 * 1e6); }
        let x = vec![[0.5f64; PANEL]; n]; let mut y = vec![[0.0f64; PANEL]; m]; let mut z = x.clone();
        let t = std::time::Instant::now();
        for _ in 0..5 { a.apply(&x, &mut y); a.apply_transpose(&y, &mut z); }
        println!("panel f64 {PANEL}: {:.1} us/col", t.elapsed().as_secs_f64() / 5.0 / PANEL as f64 * 1e6);
        if std::env::var("MICRO").is_ok() { return; }
    }
    let x = truncated_svd(&a, rank, &Params::default(), &()).unwrap();
        let g = satf::linalg::dense::gram(x.right.as_ref());
        let mut off: f64 = 0.0;
        let mut fro = 0.0;
        for i in 0..g.nrows() { for j in 0..g.nrows() { let e = (g[(i, j)] - if i == j { 1.0 } else { 0.0 }) as f64; off = off.max(e.abs()); fro += e * e; } }
        println!("orth max {off:.2e} fro {:.2e}", fro.sqrt());
    let svd = (x.singular_values, x.info);
    println!("{:?}", svd.1);
    let v = &svd.0;
    for k in [0, 1, 10, 100, 500, 1000, 1500, 1999] { if k < v.len() { println!("{k} {:.9}", v[k] * v[k]); } }
    println!("{:?}", gemm_rate());
}
