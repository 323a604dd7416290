//! Counts that are kept: events come and go, and what is left is what would have been counted of the rest.

mod batch;
mod group;
mod ranked;

use super::distance::{CLASSES, DistanceSums, class_of};
use super::fixed_point::most_events;
use super::kept_row::KeptRow;
use super::row_counter::{BACK, FORTH};
use super::vocabulary::Vocabulary;
use super::{Counting, position_weights};
use crate::interactions::{
    AsId, Clock, Id, Interactions, ItemIndex, OwnedId, Timestamp, UserIndex, event_hash,
};
use crate::monitor::Cancelled;
use crate::numbers::Count;
use crate::prepare::Histories;

/// Why an event cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// The sums have no room for so many.
    #[error(
        "{} events are more than the sums of pairs have room for, which with a window of {window} is {}",
        Count::of(*events), Count::of(*most)
    )]
    TooManyEvents {
        /// How many there would be.
        events: usize,
        /// How far apart the items of a pair may be.
        window: usize,
        /// How many there may be.
        most: usize,
    },
    /// Two parts that were not counted in the same way.
    #[error("counts made with {one} and counts made with {other} have nothing to do with each other")]
    OtherOptions {
        /// How these were counted.
        one: String,
        /// How the others were.
        other: String,
    },
    /// Events that are to be taken away and were never counted.
    #[error("{missing} of the events to take away are not among those counted; nothing was taken away")]
    NotCounted {
        /// How many.
        missing: usize,
    },
    /// The caller asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// How events are counted. Counts made with different options have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountsOptions {
    /// How far apart two positions of one history may be to be a pair, at least 1 (default 50).
    pub window: usize,
    /// Exponent of the fall of a pair's weight with the position of its later item, at least 0 (default 0.1); what is below counts
    /// as 0.
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
/// merged or subtracted. Whatever the way, equal events give equal counts, to the bit, and so does the model made of them
/// ([`Model::of_counts`](crate::recommend::Model::of_counts)). A model that was trained with
/// [`FitOptions::with_statistics`](crate::recommend::FitOptions) keeps its events in its file, and gives them back as counts
/// ([`Model::counts`](crate::recommend::Model::counts)).
///
/// Sums are integers in units of $2^{-18}$. They have room for fewer than $2^{32}$ events with a window up to 8,192 ([`MOST_EVENTS`](super::MOST_EVENTS)), and for
/// $2^{45}$ divided by the window beyond that; more are refused.
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
/// assert_eq!(model.num_items(), 2);
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
    /// By item: its pairs, how often it occurs, and whose histories it may be in.
    rows: Vec<KeptRow>,
    popularity: Vec<u32>,
    takers: Vec<Vec<u32>>,
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
            takers: Vec::new(),
            squares: [0; CLASSES],
            distances: DistanceSums::new(options.window),
            weights: Vec::new(),
            num_events: 0,
        }
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

    /// Number of sums of pairs that are kept, each 16 bytes of memory. Some may wait to be added up.
    pub fn num_sums(&self) -> usize {
        self.rows.iter().map(KeptRow::len).sum()
    }

    /// Adds an event, wherever its time places it in the user's history.
    ///
    /// Costs as many steps as there are pairs with later events of the user, at most `window` for each of them, whatever else was
    /// counted.
    pub fn add(&mut self, user: impl AsId, item: impl AsId, time: Timestamp) -> Result<(), CountsError> {
        self.check_room(1)?;
        let (user, item) = (self.user(user.as_id()), self.item(item.as_id()));
        let at = self.place_of(user, item, time);
        self.count_pairs(user, at, Change::Subtract);
        self.histories[user as usize].insert(at, (time, item));
        self.reach(self.histories[user as usize].len());
        self.count_pairs(user, at, Change::Add);
        self.popularity[item as usize] += 1;
        self.num_events += 1;
        self.note_taker(user, item);
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
    ///
    /// Only the histories of users who took it are looked at.
    pub fn forget_item(&mut self, item: impl AsId) -> usize {
        let Some(item) = self.items.find(item.as_id()) else { return 0 };
        let mut users = std::mem::take(&mut self.takers[item as usize]);
        users.sort_unstable();
        users.dedup();
        let before = self.num_events;
        for user in users {
            let Some(first) = self.histories[user as usize].iter().position(|event| event.1 == item) else {
                continue;
            };
            self.count_pairs(user, first, Change::Subtract);
            let history = &mut self.histories[user as usize];
            let len = history.len();
            history.retain(|event| event.1 != item);
            self.num_events -= len - history.len();
            self.count_pairs(user, first, Change::Add);
        }
        self.popularity[item as usize] = 0;
        before - self.num_events
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
        self.histories().to_log()
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
            self.takers.push(Vec::new());
        }
        item
    }

    /// An error if so many more events are too many.
    fn check_room(&self, more: usize) -> Result<(), CountsError> {
        check_room(self.num_events.saturating_add(more), self.options.window)
    }

    /// Weights for histories of this length.
    fn reach(&mut self, len: usize) {
        if len > self.weights.len() {
            self.weights = position_weights(self.options.user_power, len.next_power_of_two());
        }
    }

    /// Remembers who took an item. Users whose events were taken away since are found out when there are too many of them.
    fn note_taker(&mut self, user: u32, item: u32) {
        let takers = &mut self.takers[item as usize];
        if takers.last() == Some(&user) {
            return;
        }
        takers.push(user);
        if takers.len() > 2 * self.popularity[item as usize] as usize + MOST_STALE {
            takers.sort_unstable();
            takers.dedup();
            takers.retain(|&user| self.histories[user as usize].iter().any(|event| event.1 == item));
        }
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

/// Users more than twice the events of an item that are remembered before those without one are found out.
const MOST_STALE: usize = 16;

/// An error if so many events are too many.
fn check_room(events: usize, window: usize) -> Result<(), CountsError> {
    let most = most_events(window);
    if events > most { Err(CountsError::TooManyEvents { events, window, most }) } else { Ok(()) }
}

#[derive(Clone, Copy)]
enum Change {
    Add,
    Subtract,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_events_than_sums_have_room_for_are_refused() {
        let mut counts = Counts::default();
        counts.add(1, 1, Timestamp(1)).unwrap();
        counts.num_events = super::super::MOST_EVENTS;
        let error = counts.add(1, 2, Timestamp(2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "4,294,967,296 events are more than the sums of pairs have room for, which with a window of 50 is 4,294,967,295"
        );
        let error =
            Counts::default().merge(&counts).and_then(|()| counts.clone().merge(&counts)).unwrap_err();
        assert!(matches!(error, CountsError::TooManyEvents { window: 50, .. }));
        // A wide window has pairs of more positions.
        assert_eq!(check_room(1 << 28, 1 << 17), Ok(()));
        assert!(check_room((1 << 28) + 1, 1 << 17).is_err());
    }

    #[test]
    fn those_who_took_an_item_are_remembered_as_long_as_they_did() {
        let mut counts = Counts::default();
        for at in 0..1000 {
            counts.add(at, 7, Timestamp(at)).unwrap();
            counts.add(1, 7, Timestamp(-at)).unwrap();
            if at != 1 {
                counts.forget_user(at);
            }
        }
        assert!(counts.takers[0].len() <= 2 * counts.popularity[0] as usize + MOST_STALE);
        assert_eq!(counts.forget_item(7), 1001);
        assert_eq!((counts.num_events(), counts.num_users(), counts.num_items()), (0, 0, 0));
        assert_eq!(counts, Counts::default());
    }
}
