//! The pairs of one item at a time, counted from whole histories.

use rayon::prelude::*;

use super::distance::{CLASSES, DistanceSums, classes};
use super::pair_rows::PairRows;
use super::{Counting, Places, UNIT, position_weights};
use crate::interactions::{ItemIndex, UserIndex};
use crate::prepare::Histories;

/// What was counted of a pair: for every class of distance what speaks for "this item, then the other" and for the other way.
pub(crate) type Sums = [u64; 2 * CLASSES];

/// Where a sum stands in [`Sums`].
pub(crate) const FORTH: usize = 0;
pub(crate) const BACK: usize = 1;

const NONE: Sums = [0; 2 * CLASSES];

/// The pairs of one item, under construction: sums of those other items that it meets, and where they stand.
pub(crate) struct RowCounter {
    /// One more than the place of an item's sums; 0 if it has none.
    slots: Vec<u32>,
    targets: Vec<u32>,
    sums: Vec<Sums>,
    /// Sums of squared weights of what was counted forth, by class.
    squares: [u128; CLASSES],
    /// Items and the places of their sums.
    order: Vec<u64>,
    /// Single weights that are not in the sums yet, each with its item and place.
    listed: Vec<u64>,
    /// So many of them are put into the sums together.
    most_listed: usize,
}

/// Up to so many items, sums are looked up at once: the table of items fits into the cache. Beyond it weights are listed and sorted, which
/// goes through memory in order.
const FEW_ITEMS: usize = 8192;

/// Weights that are listed before they are put into sums.
const MOST_LISTED: usize = 1 << 16;

/// Bits of a weight in a list, and of a weight with its place.
const WEIGHT_BITS: u32 = 19;
const ENTRY_BITS: u32 = WEIGHT_BITS + 5;
const _: () = assert!(UNIT < 1 << WEIGHT_BITS && 2 * CLASSES <= 1 << (ENTRY_BITS - WEIGHT_BITS));

/// The item of a listed weight, its place among the item's sums, and the weight.
fn listed(entry: u64) -> (u32, usize, u64) {
    let place = entry >> WEIGHT_BITS & ((1 << (ENTRY_BITS - WEIGHT_BITS)) - 1);
    ((entry >> ENTRY_BITS) as u32, place as usize, entry & ((1 << WEIGHT_BITS) - 1))
}

impl RowCounter {
    /// Room for the pairs of one item among so many.
    pub(crate) fn new(num_items: usize) -> Self {
        RowCounter {
            slots: vec![0; num_items],
            targets: Vec::new(),
            sums: Vec::new(),
            squares: [0; CLASSES],
            order: Vec::new(),
            listed: Vec::new(),
            most_listed: if num_items <= FEW_ITEMS { 0 } else { MOST_LISTED },
        }
    }

    /// Adds the weight of a single pair, at most [`UNIT`].
    fn add_single(&mut self, item: ItemIndex, place: usize, weight: u64) {
        if self.most_listed == 0 {
            return self.add(item, place, weight);
        }
        debug_assert!(weight <= UNIT, "the weight of one pair");
        self.listed.push(u64::from(item.0) << ENTRY_BITS | (place as u64) << WEIGHT_BITS | weight);
        if self.listed.len() >= self.most_listed {
            self.settle();
        }
    }

    /// Puts listed weights into the sums, in the order of items.
    fn settle(&mut self) {
        let mut entries = std::mem::take(&mut self.listed);
        entries.sort_unstable();
        for same in entries.chunk_by(|one, next| one >> WEIGHT_BITS == next >> WEIGHT_BITS) {
            let (item, place, _) = listed(same[0]);
            self.add(ItemIndex(item), place, same.iter().map(|&entry| listed(entry).2).sum());
        }
        entries.clear();
        self.listed = entries;
    }

    /// Adds to a sum of the pair with an item.
    pub(super) fn add(&mut self, item: ItemIndex, place: usize, weight: u64) {
        let slot = &mut self.slots[item.get()];
        if *slot == 0 {
            self.targets.push(item.0);
            self.sums.push(NONE);
            *slot = self.targets.len() as u32;
        }
        // What is taken away wraps around, and so do sums with it: they come out right.
        let sum = &mut self.sums[*slot as usize - 1][place];
        *sum = sum.wrapping_add(weight);
    }

    /// Sums of squared weights of what was counted forth, by class.
    pub(crate) fn squares(&self) -> [u128; CLASSES] {
        self.squares
    }

    /// Looks at the sums of every pair, in an order that depends on where they come from.
    pub(crate) fn each(&mut self, look: impl FnMut(&Sums)) {
        self.settle();
        self.sums.iter().for_each(look);
    }

    /// How many sums are not 0.
    pub(super) fn num_sums(&mut self) -> usize {
        self.settle();
        self.sums.iter().flatten().filter(|sum| **sum > 0).count()
    }

    /// How many other items there are.
    pub(crate) fn len(&mut self) -> usize {
        self.settle();
        self.targets.len()
    }

    /// Leaves only the `limit` strongest pairs; equal ones go to the lower item. The strengths are workspace.
    pub(crate) fn keep_strongest(
        &mut self,
        limit: usize,
        strengths: &mut Vec<(f32, u32)>,
        strength: impl Fn(ItemIndex, &Sums) -> f32,
    ) {
        self.settle();
        strengths.clear();
        let pairs = self.targets.iter().zip(&self.sums);
        strengths.extend(pairs.map(|(&item, sums)| (strength(ItemIndex(item), sums), item)));
        if limit >= strengths.len() {
            return;
        }
        strengths
            .select_nth_unstable_by(limit, |one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        for &(_, item) in &strengths[limit..] {
            self.sums[self.slots[item as usize] as usize - 1] = NONE;
        }
    }

    /// Takes all pairs out, the other items ascending.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(ItemIndex, &Sums)) {
        self.settle();
        self.order.clear();
        self.order.extend((0..).zip(&self.targets).map(|(at, &target)| u64::from(target) << 32 | at));
        self.order.sort_unstable();
        for &key in &self.order {
            let sums = &self.sums[(key & u64::from(u32::MAX)) as usize];
            if *sums != NONE {
                take(ItemIndex((key >> 32) as u32), sums);
            }
        }
        self.clear();
    }

    /// Takes all pairs out, in an order that depends on where they come from.
    pub(crate) fn drain_unordered(&mut self, mut take: impl FnMut(ItemIndex, &Sums)) {
        if self.targets.is_empty() {
            self.drain_listed(take);
            self.squares = [0; CLASSES];
            return;
        }
        self.settle();
        for (&target, sums) in self.targets.iter().zip(&self.sums) {
            if *sums != NONE {
                take(ItemIndex(target), sums);
            }
        }
        self.clear();
    }

    /// Takes pairs out all of whose weights are listed.
    fn drain_listed(&mut self, mut take: impl FnMut(ItemIndex, &Sums)) {
        self.listed.sort_unstable();
        for same in self.listed.chunk_by(|one, next| one >> ENTRY_BITS == next >> ENTRY_BITS) {
            let mut sums = NONE;
            for &entry in same {
                let (_, place, weight) = listed(entry);
                sums[place] += weight;
            }
            take(ItemIndex((same[0] >> ENTRY_BITS) as u32), &sums);
        }
        self.listed.clear();
    }

    fn clear(&mut self) {
        for &target in &self.targets {
            self.slots[target as usize] = 0;
        }
        self.targets.clear();
        self.sums.clear();
        self.squares = [0; CLASSES];
    }

    /// Bytes for the pairs of one item among so many, at most.
    pub(crate) fn num_bytes(items: u64) -> u64 {
        items * (4 + 4 + size_of::<Sums>() as u64 + 8) + 2 * 8 * MOST_LISTED as u64
    }
}

/// Rows whose histories are looked up together.
const ROWS_AT_ONCE: usize = 16;

/// Users whose distances are summed as one piece of parallel work.
const USERS_A_CHUNK: u32 = 4096;

/// For every row, a bit that says whether it has user and time of the row before it.
fn with_previous(histories: &Histories) -> Vec<u64> {
    let times = histories.times();
    let mut bits: Vec<u64> = times
        .par_chunks(64)
        .enumerate()
        .map(|(block, own)| {
            let mut bits = 0;
            for (at, &time) in own.iter().enumerate() {
                let row = 64 * block + at;
                bits |= u64::from(row > 0 && times[row - 1] == time) << at;
            }
            bits
        })
        .collect();
    for &start in histories.offsets().iter().filter(|&&start| start < times.len()) {
        bits[start / 64] &= !(1 << (start % 64));
    }
    bits
}

/// Everything that is needed to count the pairs of an item.
pub(crate) struct PairCounter<'a> {
    histories: &'a Histories,
    places: Places<'a>,
    /// For every row, a bit that says whether it has user and time of the row before it.
    with_previous: Vec<u64>,
    window: usize,
    /// By position.
    weights: Vec<u64>,
}

impl<'a> PairCounter<'a> {
    /// A counter of these histories, whose items occur so often.
    pub(crate) fn new(counting: &Counting, histories: &'a Histories, popularity: &[u32]) -> Self {
        let longest = histories.iter().map(<[ItemIndex]>::len).max().unwrap_or(0);
        PairCounter {
            histories,
            places: Places::of(histories, popularity),
            with_previous: with_previous(histories),
            window: counting.window.min(longest),
            weights: position_weights(counting.user_power, longest),
        }
    }

    /// The users who took an item, ascending, as often as they did.
    pub(super) fn users_of(&self, item: ItemIndex) -> impl Iterator<Item = UserIndex> {
        self.places.rows_of_item(item).iter().map(|&row| self.places.history_around(row).0)
    }

    /// Bytes for so many rows and items, besides the histories.
    pub(crate) fn num_bytes(rows: u64, items: u64) -> u64 {
        Places::num_bytes(rows, items) + rows / 8
    }

    fn is_with_previous(&self, row: usize) -> bool {
        self.with_previous[row / 64] >> (row % 64) & 1 == 1
    }

    /// All pairs of an item; only those with a higher one if `HIGHER`. Where several histories lie is looked up before the first is read, so
    /// that memory answers many questions at a time.
    fn count_rows<const HIGHER: bool>(&self, item: ItemIndex, row: &mut RowCounter) {
        let mut spans = [(0, 0); ROWS_AT_ONCE];
        for rows in self.places.rows_of_item(item).chunks(ROWS_AT_ONCE) {
            let mut first_items = 0;
            for (span, &at) in spans.iter_mut().zip(rows) {
                let (_, begin, end) = self.places.history_around(at);
                *span = (begin, end);
            }
            for (span, _) in spans.iter().zip(rows) {
                first_items ^= self.histories.items()[span.0].0;
            }
            std::hint::black_box(first_items);
            for (&span, &at) in spans.iter().zip(rows) {
                self.add_neighbours::<HIGHER>(row, item, at as usize, span);
            }
        }
    }

    /// All pairs of the item in a row; only those with a higher item if `HIGHER`. Events of one time stand side by side, so a
    /// class is a range of positions.
    fn add_neighbours<const HIGHER: bool>(
        &self,
        row: &mut RowCounter,
        source: ItemIndex,
        at: usize,
        (begin, end): (usize, usize),
    ) {
        let items = self.histories.items();
        let last = end.min(at + self.window + 1);
        let first = begin.max(at.saturating_sub(self.window));
        let is_counted = |item: ItemIndex| if HIGHER { item > source } else { item != source };
        // Where the events of another time begin, after and before.
        let later = at + 1 + (at + 1..last).take_while(|&row| self.is_with_previous(row)).count();
        let earlier = at - (first + 1..=at).rev().take_while(|&row| self.is_with_previous(row)).count();

        let mut forth = |class: usize, rows: std::ops::Range<usize>| {
            let place = 2 * class + FORTH;
            let mut squares = 0;
            let weights = &self.weights[rows.start - begin..rows.end - begin];
            for (&item, &weight) in items[rows].iter().zip(weights) {
                if item != source && weight > 0 {
                    squares += weight * weight;
                    if is_counted(item) {
                        row.add_single(item, place, weight);
                    }
                }
            }
            row.squares[class] += u128::from(squares);
        };
        for (at_once, from, to) in [(true, at + 1, later), (false, later, last)] {
            if from >= to {
                continue;
            }
            for (class, distances) in classes(at_once, self.window) {
                let (start, end) = ((at + distances.start()).max(from), (at + distances.end() + 1).min(to));
                if start < end {
                    forth(class, start..end);
                }
            }
        }

        // The later item of all these pairs is this one.
        let weight = self.weights[at - begin];
        if weight == 0 {
            return;
        }
        let mut back = |class: usize, rows: std::ops::Range<usize>| {
            let place = 2 * class + BACK;
            for &item in items[rows].iter().filter(|item| is_counted(**item)) {
                row.add_single(item, place, weight);
            }
        };
        for (at_once, from, to) in [(true, earlier, at), (false, first, earlier)] {
            if from >= to {
                continue;
            }
            for (class, distances) in classes(at_once, self.window) {
                let start = at.saturating_sub(*distances.end()).max(from);
                let end = (at + 1).saturating_sub(*distances.start()).min(to);
                if start < end {
                    back(class, start..end);
                }
            }
        }
    }

    /// Sums of the weights of all pairs by distance, repeated items included.
    fn distances_of(&self, users: std::ops::Range<u32>) -> DistanceSums {
        let mut sums = DistanceSums::new(self.window);
        for user in users.map(UserIndex) {
            let times = self.histories.times_of(user);
            for (at, &now) in times.iter().enumerate() {
                for distance in 1..=self.window.min(at) {
                    sums.add(times[at - distance] == now, distance, self.weights[at]);
                }
            }
        }
        sums
    }
}

impl PairRows for PairCounter<'_> {
    fn num_items(&self) -> usize {
        self.histories.num_items()
    }

    fn count(&self, item: ItemIndex, row: &mut RowCounter) {
        self.count_rows::<false>(item, row);
    }

    fn count_higher(&self, item: ItemIndex, row: &mut RowCounter) {
        self.count_rows::<true>(item, row);
    }

    fn squares(&self) -> Option<[u128; CLASSES]> {
        None
    }

    fn distances(&self) -> DistanceSums {
        let users = self.histories.num_users() as u32;
        let starts: Vec<u32> = (0..users).step_by(USERS_A_CHUNK as usize).collect();
        let of_chunk = |start: u32| self.distances_of(start..users.min(start + USERS_A_CHUNK));
        let none = || DistanceSums::new(self.window);
        starts.into_par_iter().map(of_chunk).reduce(none, |sums, others| sums.merge(&others))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Weights = Vec<(u32, usize, u64)>;

    /// Everything a row comes to, in both ways of taking it out.
    fn sums_of(weights: &Weights, most_listed: usize) -> [Vec<(u32, Sums)>; 2] {
        let add = |row: &mut RowCounter| {
            for &(item, place, weight) in weights {
                row.add_single(ItemIndex(item), place, weight);
            }
        };
        let mut row = RowCounter { most_listed, ..RowCounter::new(50) };
        let [mut in_order, mut in_any] = [Vec::new(), Vec::new()];
        // Twice: a row is left as it was found.
        for _ in 0..2 {
            in_order.clear();
            in_any.clear();
            add(&mut row);
            row.drain(|item, sums| in_order.push((item.0, *sums)));
            add(&mut row);
            row.drain_unordered(|item, sums| in_any.push((item.0, *sums)));
        }
        in_any.sort_unstable();
        [in_order, in_any]
    }

    proptest! {
        #[test]
        fn listed_weights_come_to_the_same_sums(
            weights in prop::collection::vec((0u32..50, 0..2 * CLASSES, 1..=UNIT), 0..200),
        ) {
            let [expected, in_any] = sums_of(&weights, 0);
            prop_assert_eq!(&expected, &in_any);
            let total = expected.iter().flat_map(|(_, sums)| sums).sum::<u64>();
            prop_assert_eq!(total, weights.iter().map(|weight| weight.2).sum::<u64>());
            for most_listed in [1, 7, 1000] {
                let [in_order, in_any] = sums_of(&weights, most_listed);
                prop_assert_eq!(&in_order, &expected);
                prop_assert_eq!(&in_any, &expected);
            }
        }
    }
}
