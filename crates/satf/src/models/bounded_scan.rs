//! The best of many items by the products of their factors with one vector, found in eight bits and proven.
//!
//! A row $v$ of the factors is stored as whole numbers $q$ and a scale $s$, with its length and that of what the rounding lost,
//! $e = \lVert v - s q \rVert$. The vector $f$ becomes whole numbers $g$ and a scale $t$, and $d = \lVert f - t g \rVert$. Then
//!
//! $$ | v \cdot f - s t \, (q \cdot g) | \le e \, \lVert f \rVert + (\lVert v \rVert + e) \, d , $$
//!
//! and a product in single precision, summed in any order, is off by at most $\gamma \lVert v \rVert \lVert f \rVert$ with $\gamma = r u / (1 - r u)$
//! for $r$ columns and the unit roundoff $u = 2^{-24}$. So every score has a lower and an upper bound. Once $n$ items have lower bounds above the
//! upper bound of another, that one is not among the best $n$. Rows lie in the order of their lengths, the longest first: where
//! $\lVert v \rVert \lVert f \rVert$ is too little, all that follow are too short as well. The few items that are left are scored exactly,
//! by the product that scores a whole catalogue: the list is the same to the bit.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::interactions::ItemIndex;
use crate::ranking::{Scored, TopN};

/// Fewest items of a catalogue for which it is worth its memory (docs/results/speed.md).
const FEWEST_ITEMS: usize = 5_000;

/// Histories that are scored in full before the table is made: a program that asks once is done sooner without it.
const REQUESTS_BEFORE: usize = 8;

/// Rows whose products are made at once.
const BLOCK: usize = 128;

/// Columns of the table are a multiple of this: no rest is left to the vector units.
const LANES: usize = 32;

/// The largest whole numbers of rows and, where the sum allows it, of the vector.
const ROW_CODE: i32 = 127;
const VECTOR_CODE: i32 = 32_767;

/// Items per item asked for, and at least, that may wait for their exact scores. Beyond this the bounds do not separate them.
const WAITING: (usize, usize) = (32, 1024);

/// A table that is made once it is worth it, and belongs to one array of factors.
#[derive(Clone, Debug, Default)]
pub(super) struct LazyScan(Arc<(AtomicUsize, OnceLock<Option<BoundedScan>>)>);

impl LazyScan {
    /// The table, if this catalogue is to have one and has been asked often enough.
    pub(super) fn ask(&self, factors: &[f32], rank: usize) -> Option<&BoundedScan> {
        let (asked, table) = &*self.0;
        if table.get().is_none() && asked.fetch_add(1, atomic::Ordering::Relaxed) < REQUESTS_BEFORE {
            return None;
        }
        self.make(factors, rank)
    }

    /// The table, if this catalogue is to have one.
    pub(super) fn make(&self, factors: &[f32], rank: usize) -> Option<&BoundedScan> {
        if factors.len() / rank.max(1) < FEWEST_ITEMS {
            return None;
        }
        self.0.1.get_or_init(|| BoundedScan::new(factors, rank)).as_ref()
    }

    /// Bytes of the table, if it was made.
    pub(super) fn num_bytes(&self) -> usize {
        self.0.1.get().and_then(Option::as_ref).map_or(0, BoundedScan::num_bytes)
    }
}

/// The factors of all items in eight bits, the longest rows first.
#[derive(Debug)]
pub(super) struct BoundedScan {
    /// Columns, with those that are 0.
    width: usize,
    codes: Vec<i8>,
    rows: Vec<Row>,
    /// Where the row of each item is.
    places: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    item: ItemIndex,
    scale: f32,
    /// Its length, and that of what it lost in rounding: no less than they are.
    length: f32,
    lost: f32,
}

/// Room that is kept from one search to the next.
#[derive(Debug, Default)]
pub(super) struct ScanRoom {
    vector: Vec<i16>,
    known: Vec<(f64, ItemIndex)>,
}

/// What is added to the products: a sum per item, and the items where it is not 0.
#[derive(Clone, Copy)]
pub(super) struct Added<'a> {
    pub(super) sums: &'a [f64],
    pub(super) touched: &'a [u32],
}

impl BoundedScan {
    /// The table of factors row after row. `None` if there is nothing to gain: no columns, too many, or lengths that overflow.
    pub(super) fn new(factors: &[f32], rank: usize) -> Option<Self> {
        if rank == 0 || i32::MAX / ROW_CODE / i32::try_from(rank).ok()? < ROW_CODE {
            return None;
        }
        let mut rows: Vec<Row> = factors
            .par_chunks(rank)
            .enumerate()
            .map(|(item, row)| {
                let length = above(length(row.iter().map(|&value| f64::from(value))));
                Row { item: ItemIndex(item as u32), scale: 0.0, length, lost: 0.0 }
            })
            .collect();
        if !rows.iter().all(|row| row.length.is_finite()) {
            return None;
        }
        rows.par_sort_unstable_by(|a, b| b.length.total_cmp(&a.length).then(a.item.cmp(&b.item)));
        let width = rank.next_multiple_of(LANES);
        let mut codes = vec![0i8; rows.len() * width];
        codes.par_chunks_mut(width).zip(&mut rows).for_each(|(codes, row)| {
            row.round(&factors[row.item.get() * rank..][..rank], codes);
        });
        let mut places = vec![0u32; rows.len()];
        for (place, row) in rows.iter().enumerate() {
            places[row.item.get()] = place as u32;
        }
        Some(BoundedScan { width, codes, rows, places })
    }

    fn num_bytes(&self) -> usize {
        size_of_val(&*self.codes) + size_of_val(&*self.rows) + size_of_val(&*self.places)
    }

    /// The `n` best allowed items by the rule of [`TopN`], with the scores $(v \cdot f)$ that `exact` appends for a list of items, plus what is added.
    /// `None` if too many items may be among the best, or scores may overflow: then all have to be scored.
    pub(super) fn best(
        &self,
        vector: &[f32],
        added: Added<'_>,
        n: usize,
        is_allowed: &dyn Fn(ItemIndex) -> bool,
        room: &mut ScanRoom,
        exact: impl FnOnce(&[ItemIndex], &mut Vec<f32>),
    ) -> Option<Vec<Scored>> {
        let ScanRoom { vector: codes, known } = room;
        let vector = Vector::new(vector, self.width, codes)?;
        let largest = self.rows.first().map_or(0.0, |row| f64::from(row.length) * vector.reach());
        let mut search = Search::new(n, is_allowed);

        known.clear();
        known.extend(added.touched.iter().map(|&item| (added.sums[item as usize], ItemIndex(item))));
        known.retain(|(sum, _)| *sum != 0.0);
        // Whatever is not a number is not below either.
        let is_small = |sum: f64| sum.abs() + largest < f64::from(f32::MAX) / 2.0;
        if n == 0 || !is_small(0.0) || !known.iter().all(|(sum, _)| is_small(*sum)) {
            return None;
        }
        // Those with the largest sums come first: they are likely to be the best, and the bar is high for all others.
        let first = (4 * n).min(known.len());
        if first < known.len() {
            known.select_nth_unstable_by(first, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        for &(sum, item) in &*known {
            let place = self.places[item.get()] as usize;
            let row = &self.rows[place];
            if sum + f64::from(row.length) * vector.reach() + vector.least >= search.floor {
                let mut product = [0];
                vector.products(&self.codes[place * self.width..][..self.width], &mut product);
                search.consider(row.item, sum, vector.bounds(row, product[0]))?;
            }
        }

        let mut products = [0; BLOCK];
        for (rows, codes) in self.rows.chunks(BLOCK).zip(self.codes.chunks(BLOCK * self.width)) {
            if f64::from(rows[0].length) * vector.reach() + vector.least < search.floor {
                break;
            }
            let products = &mut products[..rows.len()];
            vector.products(codes, products);
            for (row, &product) in rows.iter().zip(&*products) {
                let bounds = vector.bounds(row, product);
                // What something was added to has been looked at.
                if bounds.1 >= search.floor && added.sums.get(row.item.get()).is_none_or(|sum| *sum == 0.0) {
                    search.consider(row.item, 0.0, bounds)?;
                }
            }
        }

        let items = search.into_items();
        let mut scores = Vec::with_capacity(items.len());
        exact(&items, &mut scores);
        let mut best = TopN::new(n);
        for (item, score) in items.into_iter().zip(scores) {
            let sum = added.sums.get(item.get()).copied().unwrap_or(0.0);
            let scored = Scored { item, score: (f64::from(score) + sum) as f32 };
            if best.takes(scored) {
                best.push(scored);
            }
        }
        Some(best.into_sorted())
    }
}

impl Row {
    fn round(&mut self, values: &[f32], codes: &mut [i8]) {
        let largest = values.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        let scale = largest / ROW_CODE as f32;
        if scale >= f32::MIN_POSITIVE {
            self.scale = scale;
            for (code, &value) in codes.iter_mut().zip(values) {
                let rounded = (f64::from(value) / f64::from(scale)).round();
                *code = rounded.clamp(f64::from(-ROW_CODE), f64::from(ROW_CODE)) as i8;
            }
        }
        let scale = f64::from(self.scale);
        let lost =
            values.iter().zip(codes).map(|(&value, &mut code)| f64::from(value) - scale * f64::from(code));
        self.lost = above(length(lost));
    }
}

/// The vector in whole numbers, and what its products may be off by.
struct Vector<'v> {
    codes: &'v [i16],
    scale: f64,
    /// Its length, and that of what it lost in rounding: no less than they are.
    length: f64,
    lost: f64,
    /// $\gamma$, and what rounding near 0 may add to it.
    rounding: f64,
    least: f64,
}

impl<'v> Vector<'v> {
    /// `None` if it is too long for bounds.
    fn new(values: &[f32], width: usize, codes: &'v mut Vec<i16>) -> Option<Self> {
        /// All roundings in double precision together are far less.
        const SLACK: f64 = 1.0 + 1e-6;
        let rank = values.len() as f64;
        let roundoff = (rank + 2.0) * f64::from(f32::EPSILON) / 2.0;
        let most = f64::from((i32::MAX / ROW_CODE / values.len().max(1) as i32).min(VECTOR_CODE));
        let largest = values.iter().fold(0f32, |largest, value| largest.max(value.abs()));
        let scale = f64::from(largest) / most;
        codes.clear();
        codes.resize(width, 0);
        if scale > 0.0 {
            for (code, &value) in codes.iter_mut().zip(values) {
                *code = (f64::from(value) / scale).round().clamp(-most, most) as i16;
            }
        }
        let lost =
            values.iter().zip(&*codes).map(|(&value, &code)| f64::from(value) - scale * f64::from(code));
        let vector = Vector {
            scale,
            length: length(values.iter().map(|&value| f64::from(value))) * SLACK,
            lost: length(lost) * SLACK,
            rounding: roundoff / (1.0 - roundoff) * SLACK,
            least: (rank + 1.0) * f64::from(f32::from_bits(2)),
            codes,
        };
        (vector.length.is_finite() && roundoff < 0.5).then_some(vector)
    }

    /// The most that the product with a row may be, per unit of its length.
    fn reach(&self) -> f64 {
        self.length * (1.0 + self.rounding)
    }

    /// The least and the most that the product with a row may be, of its codes' product.
    fn bounds(&self, row: &Row, product: i32) -> (f64, f64) {
        let middle = f64::from(row.scale) * self.scale * f64::from(product);
        let (length, lost) = (f64::from(row.length), f64::from(row.lost));
        let off = lost * self.length + (length + lost) * self.lost + self.rounding * length * self.length;
        // Doubles round by far less than this.
        let off = off + middle.abs() * 1e-12 + self.least;
        (middle - off, middle + off)
    }

    /// The products of the codes of rows with those of the vector.
    fn products(&self, rows: &[i8], into: &mut [i32]) {
        let (vector, width) = (self.codes, self.codes.len());
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                for (row, into) in rows.chunks_exact(width).zip(into) {
                    let mut sums = [0i32; LANES];
                    for (row, vector) in row.chunks_exact(LANES).zip(vector.chunks_exact(LANES)) {
                        for lane in 0..LANES {
                            sums[lane] += i32::from(row[lane]) * i32::from(vector[lane]);
                        }
                    }
                    *into = sums.iter().sum();
                }
            },
        );
    }
}

/// Items that may be among the best, by what is known of their scores.
struct Search<'a> {
    n: usize,
    is_allowed: &'a dyn Fn(ItemIndex) -> bool,
    /// The `n` highest lower bounds, the lowest of them on top.
    lowest: BinaryHeap<Lowest>,
    /// An item whose upper bound is below this is not among the best.
    floor: f64,
    /// Items with their upper bounds.
    waiting: Vec<(ItemIndex, f64)>,
}

impl<'a> Search<'a> {
    fn new(n: usize, is_allowed: &'a dyn Fn(ItemIndex) -> bool) -> Self {
        let floor = f64::NEG_INFINITY;
        Search { n, is_allowed, lowest: BinaryHeap::new(), floor, waiting: Vec::new() }
    }

    /// Takes an item whose score, without what is added, lies within bounds. `None` if too many items wait.
    fn consider(&mut self, item: ItemIndex, added: f64, bounds: (f64, f64)) -> Option<()> {
        let (low, high) = (added + bounds.0, added + bounds.1);
        if high < self.floor || !(self.is_allowed)(item) {
            return Some(());
        }
        let most = (WAITING.0 * self.n).max(WAITING.1);
        if self.waiting.len() >= most {
            let floor = self.floor;
            self.waiting.retain(|(_, high)| *high >= floor);
            if self.waiting.len() > most / 2 {
                return None;
            }
        }
        self.waiting.push((item, high));
        if self.lowest.len() == self.n {
            if self.lowest.peek().is_some_and(|lowest| lowest.0 >= low) {
                return Some(());
            }
            self.lowest.pop();
        }
        self.lowest.push(Lowest(low));
        if let (Some(Lowest(low)), true) = (self.lowest.peek(), self.lowest.len() == self.n) {
            // Scores are rounded to single precision in the end, either way.
            let rounding = low.abs() * f64::from(f32::EPSILON) * 2.0 + f64::from(f32::from_bits(8));
            self.floor = low - rounding;
        }
        Some(())
    }

    /// All items that may be among the best, ascending.
    fn into_items(self) -> Vec<ItemIndex> {
        let floor = self.floor;
        let waiting = self.waiting.into_iter().filter(|(_, high)| *high >= floor);
        let mut items: Vec<ItemIndex> = waiting.map(|(item, _)| item).collect();
        items.sort_unstable();
        items
    }
}

/// A lower bound, the lowest first.
struct Lowest(f64);

impl PartialEq for Lowest {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Lowest {}
impl PartialOrd for Lowest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Lowest {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

/// The next number in single precision: no less, whatever was rounded in double precision.
fn above(value: f64) -> f32 {
    (value as f32).next_up()
}
