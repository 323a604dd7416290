//! Training and holdout parts of a log, and the events a model is judged on.
//!
//! The protocol: cut points are calendar offsets back from the newest time,
//! `test_from = max - test`, `valid_from = test_from - valid`; training is `t <= valid_from`, validation
//! `valid_from < t <= test_from`, test what comes later. The final score refits on training + validation.
//! Items unknown to the training set are dropped from the holdout; an event without any history (the first
//! one of a user unknown to the training set) is not scored, it only starts the history; every other holdout
//! event is one prediction from the training items and this user's earlier holdout items.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::histories::{Histories, marks};
use super::offset::Offset;
use super::statistics::iso;
use super::ties::{TiePolicy, Timeline};
use crate::interactions::{
    Clock, History, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex, compact,
};
use crate::numbers::{Count, counted};

/// How a log is cut into training, validation and test sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitScheme {
    /// By calendar time, the same cut for all users: nothing of the future is known.
    Calendar {
        /// Length of the validation set.
        valid: Offset,
        /// Length of the test set.
        test: Offset,
    },
    /// By calendar time, without a validation set: all but the newest `test` trains.
    Holdout {
        /// Length of the test set.
        test: Offset,
    },
    /// Each user's newest event is the test, the one before it the validation set; users with fewer than
    /// three events only train. *Leaks the future*: other users' training events happen after a test event.
    LeaveOneOut,
}

/// Why a log cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// The log has an order but no times.
    #[error(
        "this log has no times, only an order, so it cannot be cut at {0} before its end; hint: {hint}",
        hint = SplitHint::LeaveOneOut
    )]
    NoTimes(Offset),
    /// The offsets reach back past the first row.
    #[error(
        "no row is left for training: {}{test} before {last} reach back past the first row at {first}; hint: {hint}",
        valid.map(|valid| format!("{valid} and ")).unwrap_or_default(), hint = SplitHint::ShorterOffsets
    )]
    OffsetTooLong {
        /// Validation offset, if there is a validation set.
        valid: Option<Offset>,
        /// Test offset.
        test: Offset,
        /// First time of the log.
        first: String,
        /// Last time of the log.
        last: String,
    },
    /// A holdout part has no row.
    #[error("the {part} set has no rows{reason}")]
    EmptyHoldout {
        /// Which one.
        part: &'static str,
        /// Why.
        reason: Emptiness,
    },
    /// No event of the holdout can be predicted.
    #[error(
        "no event of the {part} set can be scored: of {}, {} are of items unknown to the training set and {} only start a \
         new user's history", counted(*rows, "row"), Count::of(*unknown_items), Count::of(*unscored)
    )]
    NothingToScore {
        /// Which part.
        part: &'static str,
        /// Rows in it.
        rows: usize,
        /// Rows dropped for their items.
        unknown_items: usize,
        /// Events without a history.
        unscored: usize,
    },
    /// Too little to learn from or to rank.
    #[error("the training set has {}: at least 2 are needed to recommend anything", counted(*found, what))]
    TooSmall {
        /// `user` or `item`.
        what: &'static str,
        /// How many there are.
        found: usize,
    },
}

/// Why a holdout part has no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Emptiness {
    /// Nothing happened in that time.
    ShortOffset,
    /// The log itself has no row.
    EmptyLog,
    /// No user has three events, of which one trains, one validates and one tests.
    ShortHistories,
}

impl fmt::Display for Emptiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Emptiness::ShortOffset => write!(f, "; hint: {}", SplitHint::LongerOffset),
            Emptiness::EmptyLog => f.write_str(": the log is empty"),
            Emptiness::ShortHistories => f.write_str(": no user has three events or more"),
        }
    }
}

/// What the caller can do about a [`SplitError`]. Its text ends that of the error, after `hint: `; a program with options of its
/// own words it itself instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitHint {
    /// Split by [`SplitScheme::LeaveOneOut`], which needs no times.
    LeaveOneOut,
    /// Hold back less.
    ShorterOffsets,
    /// Hold back more.
    LongerOffset,
}

impl fmt::Display for SplitHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SplitHint::LeaveOneOut => "split by leave-one-out",
            SplitHint::ShorterOffsets => "choose a shorter time",
            SplitHint::LongerOffset => "choose a longer offset",
        })
    }
}

impl SplitError {
    /// What the caller can do about it. It is part of the error's text.
    pub fn hint(&self) -> Option<SplitHint> {
        match self {
            SplitError::NoTimes(_) => Some(SplitHint::LeaveOneOut),
            SplitError::OffsetTooLong { .. } => Some(SplitHint::ShorterOffsets),
            SplitError::EmptyHoldout { reason: Emptiness::ShortOffset, .. } => Some(SplitHint::LongerOffset),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Train,
    Valid,
    Test,
}

/// A log cut into three parts.
#[derive(Clone, Debug)]
pub struct Split<'a> {
    timeline: Timeline<'a>,
    parts: Vec<Part>,
}

/// A training set and what is asked of a model trained on it.
#[derive(Clone, Debug)]
pub struct Partition {
    /// What models learn from.
    pub train: Histories,
    /// What they are judged on.
    pub holdout: Holdout,
}

/// Holdout events with their histories.
#[derive(Clone, Debug)]
pub struct Holdout {
    /// Ids of the users behind [`Event::user`]: all users of the log.
    pub users: Arc<Ids>,
    /// Whole sequences of the users in the holdout: training items, then known holdout items.
    pub(super) items: Vec<ItemIndex>,
    /// For each of them whether it has the same time as the one before it.
    pub(super) with_previous: Vec<bool>,
    /// One a scored event, in the order of time.
    pub events: Vec<Event>,
    /// What the times of events mean.
    pub clock: Clock,
    /// What was counted on the way.
    pub counts: EventCounts,
}

/// One prediction asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whose event (an index into [`Holdout::users`]).
    pub user: UserIndex,
    /// The item of the event.
    pub target: ItemIndex,
    /// When.
    pub time: Timestamp,
    pub(super) history_start: usize,
    pub(super) history_end: usize,
}

impl Event {
    /// How many items the prediction is made from.
    pub fn history_len(&self) -> usize {
        self.history_end - self.history_start
    }
}

/// How many holdout rows there were and what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Holdout rows.
    pub rows: usize,
    /// Rows whose item the training set knows.
    pub known: usize,
    /// Events scored.
    pub scored: usize,
    /// Rows dropped because the training set does not know the item.
    pub dropped_unknown_items: usize,
    /// Events without a history, which only start one.
    pub unscored_first: usize,
    /// Events scored whose item is in the history already. Seen items are left out of rankings, so no model can hit them.
    #[serde(default)]
    pub repeats: usize,
}

impl Holdout {
    /// The items an event is predicted from, oldest first.
    pub fn history(&self, event: &Event) -> History<'_> {
        let range = event.history_start..event.history_end;
        History::with_baskets(&self.items[range.clone()], &self.with_previous[range])
    }
}

impl<'a> Split<'a> {
    /// Cuts an ordered log.
    pub fn new(timeline: Timeline<'a>, scheme: SplitScheme) -> Result<Self, SplitError> {
        let parts = match scheme {
            SplitScheme::Calendar { valid, test } => calendar_parts(&timeline, Some(valid), test)?,
            SplitScheme::Holdout { test } => calendar_parts(&timeline, None, test)?,
            SplitScheme::LeaveOneOut => leave_one_out_parts(&timeline)?,
        };
        Ok(Split { timeline, parts })
    }

    /// Rows in the training, validation and test sets.
    pub fn rows(&self) -> [usize; 3] {
        [Part::Train, Part::Valid, Part::Test].map(|part| self.parts.iter().filter(|&&p| p == part).count())
    }

    /// Training part against validation set: for tuning.
    pub fn validation(&self) -> Result<Partition, SplitError> {
        self.partition(Part::Valid, "validation")
    }

    /// Training and validation set together against the test set: for the final score.
    pub fn test(&self) -> Result<Partition, SplitError> {
        self.partition(Part::Test, "test")
    }

    /// The training, validation and test sets as logs of their own, in the order of time, ties settled. A set may be empty.
    pub fn logs(&self) -> [Interactions; 3] {
        [Part::Train, Part::Valid, Part::Test].map(|wanted| {
            let rows = self.timeline.rows.iter().zip(&self.parts).filter(|&(_, &part)| part == wanted);
            let log = self.timeline.log;
            let (users, items) = (Arc::clone(log.users()), Arc::clone(log.items()));
            Interactions::from_indexed(users, items, rows.map(|(row, _)| *row).collect(), log.clock())
        })
    }

    fn partition(&self, holdout: Part, name: &'static str) -> Result<Partition, SplitError> {
        let log = self.timeline.log;
        let rows_of = |wanted: fn(Part, Part) -> bool| {
            let both = self.timeline.rows.iter().zip(&self.parts);
            both.filter(move |&(_, &part)| wanted(part, holdout)).map(|(row, _)| row)
        };
        let train_rows = rows_of(|part, holdout| part < holdout);
        let (users, user_ranks) = compact(log.users().len(), train_rows.clone().map(|row| row.user.0));
        let (items, item_ranks) = compact(log.items().len(), train_rows.clone().map(|row| row.item.0));
        for (what, found) in [("user", users.len()), ("item", items.len())] {
            if found < 2 {
                return Err(SplitError::TooSmall { what, found });
            }
        }
        let train = Histories::from_ordered_rows(
            Arc::new(log.users().subset(&users)),
            Arc::new(log.items().subset(&items)),
            log.clock(),
            train_rows.map(|row| {
                let user = UserIndex(user_ranks[row.user.get()]);
                (user, ItemIndex(item_ranks[row.item.get()]), row.time)
            }),
        );
        let holdout =
            self.holdout(&train, &user_ranks, &item_ranks, &rows_of(|part, holdout| part == holdout));
        let EventCounts { rows, scored, dropped_unknown_items, unscored_first, .. } = holdout.counts;
        if rows == 0 {
            return Err(SplitError::EmptyHoldout { part: name, reason: Emptiness::ShortOffset });
        }
        if scored == 0 {
            let (unknown_items, unscored) = (dropped_unknown_items, unscored_first);
            return Err(SplitError::NothingToScore { part: name, rows, unknown_items, unscored });
        }
        Ok(Partition { train, holdout })
    }

    fn holdout<'r>(
        &self,
        train: &Histories,
        user_ranks: &[u32],
        item_ranks: &[u32],
        rows: &(impl Iterator<Item = &'r Interaction> + Clone),
    ) -> Holdout {
        // Lay out one sequence a holdout user: training items first, known holdout items after them.
        let users = self.timeline.log.users();
        let known = rows.clone().filter(|row| item_ranks[row.item.get()] != u32::MAX);
        let mut length = vec![0usize; users.len()];
        for row in known.clone() {
            length[row.user.get()] += 1;
        }
        let trained = |user: usize| match user_ranks[user] {
            u32::MAX => (&[][..], &[][..]),
            rank => (train.items_of(UserIndex(rank)), train.times_of(UserIndex(rank))),
        };
        let mut items = Vec::new();
        let mut times = Vec::new();
        let mut start = vec![0usize; users.len()];
        let mut end = vec![0usize; users.len()];
        for (user, &held) in length.iter().enumerate().filter(|(_, held)| **held > 0) {
            start[user] = items.len();
            let (past, past_times) = trained(user);
            items.extend_from_slice(past);
            times.extend_from_slice(past_times);
            end[user] = items.len();
            items.resize(items.len() + held, ItemIndex(0));
            times.resize(times.len() + held, Timestamp(0));
        }

        let mut counts = EventCounts {
            rows: rows.clone().count(),
            known: length.iter().sum(),
            scored: 0,
            dropped_unknown_items: 0,
            unscored_first: 0,
            repeats: 0,
        };
        counts.dropped_unknown_items = counts.rows - counts.known;
        let mut events = Vec::with_capacity(counts.known);
        for row in known {
            let (user, target) = (row.user, ItemIndex(item_ranks[row.item.get()]));
            let history_start = start[user.get()];
            let at = end[user.get()];
            let history_end = match self.timeline.policy {
                TiePolicy::File | TiePolicy::Shuffle => at,
                TiePolicy::Basket => {
                    history_start + times[history_start..at].partition_point(|&time| time < row.time)
                }
            };
            if history_end == history_start {
                counts.unscored_first += 1;
            } else {
                counts.repeats += usize::from(items[history_start..history_end].contains(&target));
                events.push(Event { user, target, time: row.time, history_start, history_end });
            }
            items[at] = target;
            times[at] = row.time;
            end[user.get()] += 1;
        }
        counts.scored = events.len();
        // The first item of a user may follow one of another user at the same time: it is the first of its history.
        let with_previous = marks(&times).collect();
        let clock = self.timeline.log.clock();
        Holdout { users: Arc::clone(users), items, with_previous, events, clock, counts }
    }
}

fn calendar_parts(
    timeline: &Timeline<'_>,
    valid: Option<Offset>,
    test: Offset,
) -> Result<Vec<Part>, SplitError> {
    if timeline.log.clock() == Clock::RowOrder {
        return Err(SplitError::NoTimes(test));
    }
    let (Some(first), Some(last)) = (timeline.rows.first(), timeline.rows.last()) else {
        return Err(SplitError::EmptyHoldout { part: "test", reason: Emptiness::EmptyLog });
    };
    let too_long = || SplitError::OffsetTooLong { valid, test, first: iso(first.time), last: iso(last.time) };
    let test_from = test.before(last.time).ok_or_else(too_long)?;
    let valid_from = valid.map_or(Some(test_from), |valid| valid.before(test_from)).ok_or_else(too_long)?;
    if first.time > valid_from {
        return Err(too_long());
    }
    let part_of = |time: Timestamp| match time {
        time if time <= valid_from => Part::Train,
        time if time <= test_from => Part::Valid,
        _ => Part::Test,
    };
    Ok(timeline.rows.iter().map(|row| part_of(row.time)).collect())
}

fn leave_one_out_parts(timeline: &Timeline<'_>) -> Result<Vec<Part>, SplitError> {
    let mut remaining = vec![0usize; timeline.log.users().len()];
    for row in &timeline.rows {
        remaining[row.user.get()] += 1;
    }
    let short: Vec<bool> = remaining.iter().map(|&len| len < 3).collect();
    let parts: Vec<Part> = timeline
        .rows
        .iter()
        .map(|row| {
            let left = &mut remaining[row.user.get()];
            *left -= 1;
            match *left {
                _ if short[row.user.get()] => Part::Train,
                0 => Part::Test,
                1 => Part::Valid,
                _ => Part::Train,
            }
        })
        .collect();
    if parts.contains(&Part::Test) {
        Ok(parts)
    } else {
        Err(SplitError::EmptyHoldout { part: "test", reason: Emptiness::ShortHistories })
    }
}
