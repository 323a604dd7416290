//! The pairs of one item at a time, counted from whole histories.

use rayon::prelude::*;

use super::distance::{CLASSES, DistanceSums, classes};
use super::pair_rows::PairRows;
use super::{Counting, Places, position_weights};
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
    order: Vec<u32>,
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
        }
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

    /// The sums of every pair, in the order in which they came.
    pub(crate) fn sums(&self) -> impl Iterator<Item = &Sums> {
        self.sums.iter()
    }

    /// How many sums are not 0.
    pub(super) fn num_sums(&self) -> usize {
        self.sums.iter().flatten().filter(|sum| **sum > 0).count()
    }

    /// How many other items there are.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    /// Leaves only the `limit` strongest pairs; equal ones go to the lower item. The strengths are workspace.
    pub(crate) fn keep_strongest(
        &mut self,
        limit: usize,
        strengths: &mut Vec<(f32, u32)>,
        strength: impl Fn(ItemIndex, &Sums) -> f32,
    ) {
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
        self.order.clear();
        self.order.extend(0..self.targets.len() as u32);
        self.order.sort_unstable_by_key(|&at| self.targets[at as usize]);
        for &at in &self.order {
            let target = self.targets[at as usize];
            self.slots[target as usize] = 0;
            let sums = &self.sums[at as usize];
            if *sums != NONE {
                take(ItemIndex(target), sums);
            }
        }
        self.targets.clear();
        self.sums.clear();
        self.squares = [0; CLASSES];
    }
}

/// Users whose distances are summed as one piece of parallel work.
const USERS_A_CHUNK: u32 = 4096;

/// Everything that is needed to count the pairs of an item.
pub(crate) struct PairCounter<'a> {
    histories: &'a Histories,
    places: Places,
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
            window: counting.window.min(longest),
            weights: position_weights(counting.user_power, longest),
        }
    }

    /// The users who took an item, ascending, as often as they did.
    pub(super) fn users_of(&self, item: ItemIndex) -> impl Iterator<Item = UserIndex> {
        self.places.of_item(item).iter().map(|(user, _)| *user)
    }

    /// All pairs of the item at position `at`. Events of one time stand side by side, so a class is a range of positions.
    fn add_neighbours(&self, row: &mut RowCounter, user: UserIndex, at: usize) {
        let (items, times) = (self.histories.items_of(user), self.histories.times_of(user));
        let (source, now) = (items[at], times[at]);
        let last = items.len().min(at + self.window + 1);
        let first = at.saturating_sub(self.window);
        // Where the events of another time begin, after and before.
        let later = at + 1 + times[at + 1..last].iter().take_while(|&&time| time == now).count();
        let earlier = at - times[first..at].iter().rev().take_while(|&&time| time == now).count();

        let mut forth = |class: usize, positions: std::ops::Range<usize>| {
            let place = 2 * class + FORTH;
            let mut squares = 0;
            for (&item, &weight) in items[positions.clone()].iter().zip(&self.weights[positions]) {
                if item != source && weight > 0 {
                    row.add(item, place, weight);
                    squares += weight * weight;
                }
            }
            row.squares[class] += u128::from(squares);
        };
        for (at_once, from, to) in [(true, at + 1, later), (false, later, last)] {
            for (class, distances) in classes(at_once, self.window) {
                let (start, end) = ((at + distances.start()).max(from), (at + distances.end() + 1).min(to));
                if start < end {
                    forth(class, start..end);
                }
            }
        }

        // The later item of all these pairs is this one.
        let weight = self.weights[at];
        if weight == 0 {
            return;
        }
        let mut back = |class: usize, positions: std::ops::Range<usize>| {
            let place = 2 * class + BACK;
            for &item in &items[positions] {
                if item != source {
                    row.add(item, place, weight);
                }
            }
        };
        for (at_once, from, to) in [(true, earlier, at), (false, first, earlier)] {
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
        for &(user, position) in self.places.of_item(item) {
            self.add_neighbours(row, user, position as usize);
        }
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
