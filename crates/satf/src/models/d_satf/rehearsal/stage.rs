//! The log up to a point in time, and the events after it that are to be predicted.

use crate::interactions::{ItemIndex, Timestamp, UserIndex};
use crate::prepare::{Histories, History};

/// Share of the rows, the newest, from which the events are taken.
const NEWEST_SHARE: f64 = 0.1;

/// With fewer events than this, nothing can be told from them.
pub(super) const LEAST_EVENTS: usize = 200;

/// The past of a log, and its newest events.
pub(super) struct Stage<'a> {
    histories: &'a Histories,
    with_previous: Vec<bool>,
    pub(super) past: Histories,
    /// How often every item occurs in the past.
    pub(super) popularity: Vec<u32>,
    /// Users and the positions to predict, by user.
    events: Vec<(UserIndex, usize)>,
}

impl<'a> Stage<'a> {
    /// `None` if there are too few events to tell anything.
    pub(super) fn new(histories: &'a Histories) -> Option<Self> {
        let past = histories.until(cut(histories)?);
        let popularity = past.popularity();
        let events = newest_events(histories, &past, &popularity);
        let with_previous = histories.with_previous();
        (events.len() >= LEAST_EVENTS).then_some(Stage { histories, with_previous, past, popularity, events })
    }

    /// How many events there are.
    pub(super) fn num_events(&self) -> usize {
        self.events.len()
    }

    /// Whether some items are taken at one time.
    pub(super) fn has_baskets(&self) -> bool {
        self.with_previous.contains(&true)
    }

    /// At most so many events, evenly spread over users.
    pub(super) fn spread(&self, most: usize) -> impl Iterator<Item = (UserIndex, usize)> + Clone {
        let kept = self.events.len().min(most.max(LEAST_EVENTS));
        (0..kept).map(move |at| self.events[at * self.events.len() / kept])
    }

    /// What was known when an event came, and the item that came.
    pub(super) fn event(&self, (user, position): (UserIndex, usize)) -> (History<'_>, ItemIndex) {
        let history = self.histories.history_of(user, &self.with_previous);
        (history.up_to(position), history[position])
    }
}

/// Users and positions of what came after the past: items that it knows, from histories that are not empty, and none twice.
fn newest_events(histories: &Histories, past: &Histories, popularity: &[u32]) -> Vec<(UserIndex, usize)> {
    let mut events = Vec::new();
    let mut last_taken_by = vec![None; histories.num_items()];
    for user in (0..histories.num_users() as u32).map(UserIndex) {
        let first = past.items_of(user).len().max(1);
        if first >= histories.items_of(user).len() {
            continue;
        }
        for (position, target) in histories.items_of(user).iter().enumerate() {
            let is_new = last_taken_by[target.get()].replace(user) != Some(user);
            if is_new && position >= first && popularity[target.get()] > 0 {
                events.push((user, position));
            }
        }
    }
    events
}

/// The time after which the newest rows lie.
fn cut(histories: &Histories) -> Option<Timestamp> {
    let mut times = histories.times().to_vec();
    let newest = ((times.len() as f64 * NEWEST_SHARE) as usize).clamp(1, times.len().max(1));
    let at = times.len().checked_sub(newest + 1)?;
    let (_, cut, _) = times.select_nth_unstable(at);
    Some(*cut)
}
