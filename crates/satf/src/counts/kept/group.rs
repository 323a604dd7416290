//! Counts of two logs: added, taken away, compared.

use super::{Change, Counts, CountsError};
use crate::interactions::{Timestamp, event_hash};

/// What cannot be an item's number.
const UNKNOWN: u32 = u32::MAX;

impl Counts {
    /// Adds all events of other counts. A user may have events in both.
    pub fn merge(&mut self, other: &Counts) -> Result<(), CountsError> {
        self.check_options(other)?;
        self.check_room(other.num_events)?;
        self.users.are_texts |= other.users.are_texts;
        self.items.are_texts |= other.items.are_texts;
        let mut numbers = vec![UNKNOWN; other.items.len()];
        for (user, history) in other.histories.iter().enumerate().filter(|(_, history)| !history.is_empty()) {
            for &(_, item) in history {
                let number = &mut numbers[item as usize];
                if *number == UNKNOWN {
                    *number = self.item(other.items.id(item));
                }
                self.popularity[*number as usize] += 1;
            }
            let user = self.user(other.users.id(user as u32));
            self.insert_all(user, history.iter().map(|&(time, item)| (time, numbers[item as usize])));
            for &(_, item) in history {
                self.note_taker(user, numbers[item as usize]);
            }
            self.num_events += history.len();
        }
        Ok(())
    }

    /// Takes all events of other counts away, as if they had never been. An error, and nothing is taken away, if some of them were not
    /// counted here.
    pub fn subtract(&mut self, other: &Counts) -> Result<(), CountsError> {
        self.check_options(other)?;
        let numbers: Vec<u32> = (0..other.items.len() as u32)
            .map(|item| self.items.find(other.items.id(item)).unwrap_or(UNKNOWN))
            .collect();
        let mut changes = Vec::new();
        let mut missing = 0;
        for (user, history) in other.histories.iter().enumerate().filter(|(_, history)| !history.is_empty()) {
            let Some(user) = self.users.find(other.users.id(user as u32)) else {
                missing += history.len();
                continue;
            };
            let gone: Vec<(Timestamp, u32)> =
                history.iter().map(|&(time, item)| (time, numbers[item as usize])).collect();
            let (places, unknown) = places_of(&self.histories[user as usize], gone);
            missing += unknown;
            changes.push((user, places));
        }
        if missing > 0 {
            return Err(CountsError::NotCounted { missing });
        }
        for (user, places) in changes {
            self.remove_all(user, &places);
        }
        Ok(())
    }

    fn check_options(&self, other: &Counts) -> Result<(), CountsError> {
        if self.options == other.options {
            return Ok(());
        }
        let [one, other] = [self.options, other.options].map(|options| format!("{options:?}"));
        Err(CountsError::OtherOptions { one, other })
    }

    /// Puts events into a history, each where it belongs, and counts their pairs.
    fn insert_all(&mut self, user: u32, events: impl Iterator<Item = (Timestamp, u32)> + Clone) {
        let Some(earliest) = events.clone().map(|(time, _)| time).min() else { return };
        let from = self.histories[user as usize].partition_point(|event| event.0 < earliest);
        self.count_pairs(user, from, Change::Subtract);
        let mut history = std::mem::take(&mut self.histories[user as usize]);
        history.extend(events);
        let hash =
            |time, item: u32| event_hash(self.options.seed, self.users.id(user), self.items.id(item), time);
        history[from..].sort_by_cached_key(|&(time, item)| (time, hash(time, item)));
        self.reach(history.len());
        self.histories[user as usize] = history;
        self.count_pairs(user, from, Change::Add);
    }

    /// Takes the events at these places, ascending, out of a history.
    fn remove_all(&mut self, user: u32, places: &[usize]) {
        let Some(&from) = places.first() else { return };
        self.count_pairs(user, from, Change::Subtract);
        let mut history = std::mem::take(&mut self.histories[user as usize]);
        for &at in places {
            self.popularity[history[at].1 as usize] -= 1;
        }
        self.num_events -= places.len();
        let (mut at, mut gone) = (0, places.iter().peekable());
        history.retain(|_| {
            let is_gone = gone.next_if(|&&place| place == at).is_some();
            at += 1;
            !is_gone
        });
        self.histories[user as usize] = history;
        self.count_pairs(user, from, Change::Add);
    }
}

/// Where these events stand in a history, ascending, and how many do not.
fn places_of(history: &[(Timestamp, u32)], mut events: Vec<(Timestamp, u32)>) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..history.len()).collect();
    order.sort_by_key(|&at| history[at]);
    events.sort_unstable();
    let mut places = Vec::with_capacity(events.len());
    let mut order = order.into_iter().peekable();
    let mut missing = 0;
    for event in events {
        while order.next_if(|&at| history[at] < event).is_some() {}
        match order.next_if(|&at| history[at] == event) {
            Some(at) => places.push(at),
            None => missing += 1,
        }
    }
    places.sort_unstable();
    (places, missing)
}

/// Equal events, counted in the same way, whatever became of others: and with them every sum.
impl PartialEq for Counts {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
            && self.num_events == other.num_events
            && self.squares == other.squares
            && self.distances == other.distances
            && self.histories() == other.histories()
            && self.ranked_sums() == other.ranked_sums()
    }
}

impl Counts {
    /// The sums that are not 0 by item, other item and place, items in the order of their ids.
    fn ranked_sums(&self) -> Vec<Vec<(u32, usize, i64)>> {
        let (_, ranks) = self.ranked_items();
        let of_row = |&number: &u32| {
            let mut row = self.rows[number as usize].clone();
            row.settle();
            let ranked = row.iter().map(|(item, place, sum)| (ranks.of_number[item as usize], place, sum));
            let mut sums: Vec<_> = ranked.collect();
            sums.sort_unstable();
            sums
        };
        ranks.numbers.iter().map(of_row).collect()
    }
}
