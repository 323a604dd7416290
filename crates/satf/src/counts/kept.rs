//! Counts that are kept: events come and go, and what is left is what would have been counted of the rest.

use rayon::prelude::*;

use super::distance::{CLASSES, DistanceSums, class_of};
use super::kept_row::KeptRow;
use super::pair_rows::PairRows;
use super::row_counter::{BACK, FORTH, RowCounter};
use super::vocabulary::Vocabulary;
use super::{Counting, position_weights};
use crate::interactions::{
    AsId, Clock, Id, Ids, Interaction, Interactions, ItemIndex, OwnedId, Timestamp, UserIndex, event_hash,
};
use crate::prepare::Histories;

/// Most events that are counted together: their weights always fit the sums.
pub const MOST_EVENTS: usize = 1 << 32;

/// Why an event cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// The sums have no room for more.
    #[error("{MOST_EVENTS} events are counted already, which is all that the sums have room for")]
    TooManyEvents,
    /// Two parts that were not counted in the same way.
    #[error("counts made with {one} and counts made with {other} cannot be merged")]
    OtherOptions {
        /// How these were counted.
        one: String,
        /// How the others were.
        other: String,
    },
}

/// How events are counted. Counts made with different options have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountsOptions {
    /// How far apart two positions of one history may be to be a pair, at least 1 (default 50).
    pub window: usize,
    /// Exponent of the fall of a pair's weight with the position of its later item, at least 0 (default 0.1).
    pub user_power: f64,
    /// Seed of the order of one user's events with equal times (default 0).
    pub seed: u64,
    /// What times mean (default: the calendar).
    pub clock: Clock,
}

impl Default for CountsOptions {
    fn default() -> Self {
        CountsOptions { window: 50, user_power: 0.1, seed: 0, clock: Clock::Calendar }
    }
}

impl CountsOptions {
    pub(crate) fn counting(&self) -> Counting {
        Counting { window: self.window, user_power: self.user_power }
    }
}

/// What D-SATF counts of a log, kept so that it can be changed: events can be added in any order, taken away, and the counts of two logs
/// merged. Whatever the way, equal events give equal counts, to the bit, and so does the model made of them
/// ([`Model::of_counts`](crate::recommend::Model::of_counts)).
///
/// An event is placed where its time says. One user's events of the same time stand in the order of a seeded hash of the event itself, as
/// under [`TiePolicy::Shuffle`](crate::prepare::TiePolicy::Shuffle). Besides the sums, every user's events are kept: a late event, or
/// one that is forgotten, changes the distances of those around it.
///
/// ```
/// use satf::{Counts, Model, Timestamp};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut counts = Counts::default();
/// for (user, item, second) in [("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "stove", 4)] {
///     counts.add(user, item, Timestamp::from_seconds(second))?;
/// }
/// let model = Model::of_counts(&counts)?;
/// assert_eq!(model.items().len(), 2);
/// counts.forget_user("bob");
/// assert_eq!((counts.num_users(), counts.num_events()), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Counts {
    options: CountsOptions,
    items: Vocabulary,
    users: Vocabulary,
    /// By user: what happened, in order.
    histories: Vec<Vec<(Timestamp, u32)>>,
    /// By item: its pairs, and how often it occurs.
    rows: Vec<KeptRow>,
    popularity: Vec<u32>,
    squares: [u128; CLASSES],
    distances: DistanceSums,
    /// By position, as far as histories reach.
    weights: Vec<u64>,
    num_events: usize,
}

impl Default for Counts {
    fn default() -> Self {
        Counts::new(CountsOptions::default())
    }
}

impl Counts {
    /// No events yet.
    pub fn new(options: CountsOptions) -> Self {
        Counts {
            options,
            items: Vocabulary::default(),
            users: Vocabulary::default(),
            histories: Vec::new(),
            rows: Vec::new(),
            popularity: Vec::new(),
            squares: [0; CLASSES],
            distances: DistanceSums::new(options.window),
            weights: Vec::new(),
            num_events: 0,
        }
    }

    /// The counts of a whole log.
    pub fn of(log: &Interactions, options: CountsOptions) -> Result<Self, CountsError> {
        let mut counts = Counts::new(CountsOptions { clock: log.clock(), ..options });
        counts.users.are_texts = matches!(**log.users(), Ids::Texts(_));
        counts.items.are_texts = matches!(**log.items(), Ids::Texts(_));
        let mut rows: Vec<Interaction> = log.rows().to_vec();
        // By user and time: then nearly every event is the last of its history so far.
        rows.par_sort_unstable_by_key(|row| (row.user, row.time, row.item));
        for row in rows {
            counts.add(log.users().get(row.user.get()), log.items().get(row.item.get()), row.time)?;
        }
        Ok(counts)
    }

    /// How events are counted.
    pub fn options(&self) -> &CountsOptions {
        &self.options
    }

    /// Number of events.
    pub fn num_events(&self) -> usize {
        self.num_events
    }

    /// Number of users with at least one event.
    pub fn num_users(&self) -> usize {
        self.histories.iter().filter(|history| !history.is_empty()).count()
    }

    /// Number of items with at least one event.
    pub fn num_items(&self) -> usize {
        self.popularity.iter().filter(|&&count| count > 0).count()
    }

    /// Adds an event, wherever its time places it in the user's history.
    ///
    /// Costs as many steps as there are pairs with later events of the user, at most `window` for each of them, whatever else was
    /// counted.
    pub fn add(&mut self, user: impl AsId, item: impl AsId, time: Timestamp) -> Result<(), CountsError> {
        if self.num_events >= MOST_EVENTS {
            return Err(CountsError::TooManyEvents);
        }
        let (user, item) = (self.user(user.as_id()), self.item(item.as_id()));
        let at = self.place_of(user, item, time);
        self.count_pairs(user, at, Change::Subtract);
        self.histories[user as usize].insert(at, (time, item));
        let len = self.histories[user as usize].len();
        if len > self.weights.len() {
            self.weights = position_weights(self.options.user_power, len.next_power_of_two());
        }
        self.count_pairs(user, at, Change::Add);
        self.popularity[item as usize] += 1;
        self.num_events += 1;
        Ok(())
    }

    /// Takes one event away, as if it had never been. Says whether there was such an event.
    pub fn remove(&mut self, user: impl AsId, item: impl AsId, time: Timestamp) -> bool {
        let (Some(user), Some(item)) = (self.users.find(user.as_id()), self.items.find(item.as_id())) else {
            return false;
        };
        let history = &self.histories[user as usize];
        let start = history.partition_point(|event| event.0 < time);
        let Some(at) =
            history[start..].iter().take_while(|event| event.0 == time).position(|event| event.1 == item)
        else {
            return false;
        };
        self.remove_at(user, start + at);
        true
    }

    /// Takes all events of a user away, as if there had never been one. Says how many there were.
    pub fn forget_user(&mut self, user: impl AsId) -> usize {
        let Some(user) = self.users.find(user.as_id()) else { return 0 };
        self.count_pairs(user, 0, Change::Subtract);
        let events = std::mem::take(&mut self.histories[user as usize]);
        for (_, item) in &events {
            self.popularity[*item as usize] -= 1;
        }
        self.num_events -= events.len();
        events.len()
    }

    /// Takes all events of an item away, as if there had never been one. Says how many there were.
    pub fn forget_item(&mut self, item: impl AsId) -> usize {
        let Some(item) = self.items.find(item.as_id()) else { return 0 };
        let before = self.num_events;
        for user in 0..self.histories.len() as u32 {
            while let Some(at) = self.histories[user as usize].iter().rposition(|event| event.1 == item) {
                self.remove_at(user, at);
            }
        }
        before - self.num_events
    }

    /// Adds all events of other counts. A user may have events in both.
    pub fn merge(&mut self, other: &Counts) -> Result<(), CountsError> {
        if self.options != other.options {
            let [one, other] = [self.options, other.options].map(|options| format!("{options:?}"));
            return Err(CountsError::OtherOptions { one, other });
        }
        self.users.are_texts |= other.users.are_texts;
        self.items.are_texts |= other.items.are_texts;
        for (user, history) in other.histories.iter().enumerate() {
            for &(time, item) in history {
                self.add(other.users.id(user as u32), other.items.id(item), time)?;
            }
        }
        Ok(())
    }

    /// Items and times of a user's events, the oldest first.
    pub fn events_of(&self, user: impl AsId) -> impl Iterator<Item = (Id<'_>, Timestamp)> {
        let history = self.users.find(user.as_id()).map(|user| &self.histories[user as usize][..]);
        history.unwrap_or_default().iter().map(|&(time, item)| (self.items.id(item), time))
    }

    /// Every user with at least one event, in no particular order.
    pub fn users(&self) -> impl Iterator<Item = OwnedId> {
        let used = (0..self.histories.len() as u32).filter(|&user| !self.histories[user as usize].is_empty());
        used.map(|user| self.users.id(user).to_owned())
    }

    /// The events as a log: equal events give an equal log.
    pub fn to_log(&self) -> Interactions {
        let (histories, clock) = (self.histories(), self.options.clock);
        let rows = (0..histories.num_users() as u32).map(UserIndex).flat_map(|user| {
            let events = histories.items_of(user).iter().zip(histories.times_of(user));
            events.map(move |(&item, &time)| Interaction { user, item, time })
        });
        let rows = rows.collect();
        Interactions::from_indexed(histories.users().clone(), histories.catalog().clone(), rows, clock)
    }

    /// The events as histories, users and items in the order of their ids.
    pub fn histories(&self) -> Histories {
        let (users, user_numbers) = self.users.ranked(|user| !self.histories[user as usize].is_empty());
        let (items, ranks) = self.ranked_items();
        let rows = user_numbers.iter().enumerate().flat_map(|(rank, &number)| {
            let ranks = &ranks.of_number;
            let user = UserIndex(rank as u32);
            let history = &self.histories[number as usize];
            history.iter().map(move |&(time, item)| (user, ItemIndex(ranks[item as usize]), time))
        });
        Histories::from_ordered_rows(users.into(), items.into(), self.options.clock, rows)
    }

    /// The kept pairs in the order of item ids.
    pub(crate) fn ranked(&self) -> RankedCounts<'_> {
        RankedCounts { counts: self, ranks: self.ranked_items().1 }
    }

    fn ranked_items(&self) -> (Ids, Ranks) {
        let (ids, numbers) = self.items.ranked(|item| self.popularity[item as usize] > 0);
        let mut of_number = vec![u32::MAX; self.items.len()];
        for (rank, &number) in numbers.iter().enumerate() {
            of_number[number as usize] = rank as u32;
        }
        (ids, Ranks { numbers, of_number })
    }

    fn user(&mut self, id: Id<'_>) -> u32 {
        let user = self.users.number(id);
        if user as usize == self.histories.len() {
            self.histories.push(Vec::new());
        }
        user
    }

    fn item(&mut self, id: Id<'_>) -> u32 {
        let item = self.items.number(id);
        if item as usize == self.rows.len() {
            self.rows.push(KeptRow::default());
            self.popularity.push(0);
        }
        item
    }

    /// Where an event belongs in the history of a user.
    fn place_of(&self, user: u32, item: u32, time: Timestamp) -> usize {
        let history = &self.histories[user as usize];
        if history.last().is_none_or(|last| last.0 < time) {
            return history.len();
        }
        let hash = |item: u32| event_hash(self.options.seed, self.users.id(user), self.items.id(item), time);
        let own = hash(item);
        history.partition_point(|&(at, other)| at < time || (at == time && hash(other) < own))
    }

    fn remove_at(&mut self, user: u32, at: usize) {
        self.count_pairs(user, at, Change::Subtract);
        let (_, item) = self.histories[user as usize].remove(at);
        self.count_pairs(user, at, Change::Add);
        self.popularity[item as usize] -= 1;
        self.num_events -= 1;
    }

    /// Adds or takes away all pairs of a user whose later event stands at `from` or after it.
    fn count_pairs(&mut self, user: u32, from: usize, change: Change) {
        let Counts { histories, rows, squares, distances, weights, options, .. } = self;
        let history = &histories[user as usize];
        for (at, &(time, later)) in history.iter().enumerate().skip(from.max(1)) {
            let weight = weights[at];
            for (distance, &(before, earlier)) in (1..=options.window).zip(history[..at].iter().rev()) {
                let at_once = before == time;
                match change {
                    Change::Add => distances.add(at_once, distance, weight),
                    Change::Subtract => distances.subtract(at_once, distance, weight),
                }
                if earlier == later || weight == 0 {
                    continue;
                }
                let class = class_of(at_once, distance);
                let square = u128::from(weight) * u128::from(weight);
                let signed = match change {
                    Change::Add => {
                        squares[class] += square;
                        weight as i64
                    }
                    Change::Subtract => {
                        squares[class] -= square;
                        -(weight as i64)
                    }
                };
                rows[earlier as usize].change(later, 2 * class + FORTH, signed);
                rows[later as usize].change(earlier, 2 * class + BACK, signed);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Change {
    Add,
    Subtract,
}

/// Items in the order of their ids.
struct Ranks {
    /// By rank.
    numbers: Vec<u32>,
    /// By number; those without an event have none.
    of_number: Vec<u32>,
}

/// Kept counts, seen in the order of item ids.
pub(crate) struct RankedCounts<'a> {
    counts: &'a Counts,
    ranks: Ranks,
}

impl PairRows for RankedCounts<'_> {
    fn num_items(&self) -> usize {
        self.ranks.numbers.len()
    }

    fn count(&self, item: ItemIndex, row: &mut RowCounter) {
        let kept = &self.counts.rows[self.ranks.numbers[item.get()] as usize];
        for (target, place, weight) in kept.iter() {
            let rank = self.ranks.of_number[target as usize];
            // Pairs with an item that has no events left add up to nothing.
            if rank != u32::MAX {
                row.add(ItemIndex(rank), place, weight as u64);
            }
        }
    }

    fn count_higher(&self, item: ItemIndex, row: &mut RowCounter) {
        let kept = &self.counts.rows[self.ranks.numbers[item.get()] as usize];
        for (target, place, weight) in kept.iter() {
            let rank = self.ranks.of_number[target as usize];
            if rank != u32::MAX && rank > item.0 {
                row.add(ItemIndex(rank), place, weight as u64);
            }
        }
    }

    fn squares(&self) -> Option<[u128; CLASSES]> {
        Some(self.counts.squares)
    }

    fn distances(&self) -> DistanceSums {
        self.counts.distances.clone()
    }
}
