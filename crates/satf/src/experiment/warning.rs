//! What may mislead in an experiment, as values: the caller puts them into words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::prepare::{EventCounts, Offset, TiePolicy, Timeline};

/// Ties are worth a warning from this share of the rows on: fewer hardly move a score.
const TIES_WORTH_TELLING: f64 = 0.01;

/// Something that may mislead, or that was chosen because the caller did not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// Rows that share user and time with another, so that their order is not known.
    TiedRows {
        /// How many.
        tied: usize,
        /// Of so many.
        rows: usize,
        /// How they are ordered.
        ties: TiePolicy,
    },
    /// Models train on events that happen after those they predict.
    LeaksFuture,
    /// Events of items that their users already have: no model can hit them, for seen items are never recommended.
    Repeats {
        /// How many.
        repeats: usize,
        /// Of so many events scored.
        scored: usize,
    },
    /// Offsets were chosen to suit the log, because none were given.
    OffsetsChosen {
        /// Length of the validation set, if there is one.
        valid: Option<Offset>,
        /// Length of the test set.
        test: Offset,
        /// How they were chosen.
        source: OffsetSource,
    },
    /// The log has an order but no times: each user's last event is predicted.
    OrderOnly,
    /// Early stopping was asked for, and the model does not learn iteratively.
    NotIterative {
        /// What the model is called.
        label: String,
    },
    /// The test set was scored before, for a configuration that is no longer the best.
    TestPartScoredBefore {
        /// How often.
        times: u64,
    },
    /// A model that was trained elsewhere may have learned from the events that it predicts.
    MayHaveSeen {
        /// What the model is called.
        label: String,
        /// Until when its log went.
        until: String,
        /// When the first event to predict happened.
        first_event: String,
    },
    /// A model that was trained elsewhere does not say until when its log went.
    TrainingUnknown {
        /// What the model is called.
        label: String,
    },
    /// The last iteration allowed was the best one: there may be better ones after it.
    LastWasBest {
        /// What the model is called.
        label: String,
        /// The key that says how many iterations there are at most.
        key: String,
        /// Its value.
        best: usize,
    },
}

/// How offsets were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OffsetSource {
    /// The shortest usual one that leaves enough rows.
    Usual,
    /// So that each part has this share of the rows.
    Share(f64),
}

impl Warning {
    /// Says how many rows of a log have no known order, if any.
    pub fn of_ties(timeline: &Timeline<'_>) -> Option<Warning> {
        Warning::of_tied_rows(timeline.tied_rows, timeline.rows.len(), timeline.policy)
    }

    /// The same by numbers: so many of all rows, ordered so.
    pub fn of_tied_rows(tied: usize, rows: usize, ties: TiePolicy) -> Option<Warning> {
        (tied > 0).then_some(Warning::TiedRows { tied, rows, ties })
    }

    /// Says how many events no model can hit, if any.
    pub(super) fn of_repeats(counts: EventCounts) -> Option<Warning> {
        let EventCounts { repeats, scored, .. } = counts;
        (repeats > 0).then_some(Warning::Repeats { repeats, scored })
    }

    /// Whether it hardly matters: few rows are tied.
    pub fn is_minor(&self) -> bool {
        matches!(self, Warning::TiedRows { tied, rows, .. } if (*tied as f64) < TIES_WORTH_TELLING * *rows as f64)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::TiedRows { tied, rows, ties } => write!(
                f,
                "{tied} of {rows} rows share user and time with another, so their order is not known; ties are ordered \
                 by the policy {}",
                ties.name()
            ),
            Warning::LeaksFuture => f.write_str(
                "leave-one-out leaks the future: models train on events that happen after those they predict; \
                 compare these scores only with others made the same way",
            ),
            Warning::Repeats { repeats, scored } => write!(
                f,
                "{repeats} of {scored} scored events are of items that their users already have: seen items are never \
                 recommended, so these events cannot be hit; hint: resolve duplicates first"
            ),
            Warning::OffsetsChosen { valid, test, source } => {
                f.write_str("no offsets given: using ")?;
                if let OffsetSource::Share(share) = source {
                    write!(f, "those that leave {:.0} % of the rows to each part, ", 100.0 * share)?;
                }
                match valid {
                    Some(valid) => write!(f, "{valid} for validation and {test} for the test"),
                    None => write!(f, "{test} for the test"),
                }
            }
            Warning::OrderOnly => {
                f.write_str("this log has no times, only an order: each user's last event is predicted")
            }
            Warning::NotIterative { label } => {
                write!(f, "{label} does not learn iteratively: early stopping does not apply")
            }
            Warning::TestPartScoredBefore { .. } => f.write_str(
                "the test set was scored before, for a configuration that is no longer the best: the more often it is \
                 looked at, the less its score says",
            ),
            Warning::MayHaveSeen { label, until, first_event } => write!(
                f,
                "{label} learned from a log that goes to {until}, and the first event to predict is of {first_event}: it may have \
                 seen what it predicts, and its scores may be too good; hint: train it without the test set"
            ),
            Warning::TrainingUnknown { label } => write!(
                f,
                "{label} does not say until when its log went: it may have seen what it predicts, and its scores may be too good"
            ),
            Warning::LastWasBest { label, key, best } => {
                write!(f, "{label}: the last of {key} = {best} was the best; more may be better")
            }
        }
    }
}
