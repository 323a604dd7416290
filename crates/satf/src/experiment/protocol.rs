//! How a log is cut, and what of it is scored.

use serde::{Deserialize, Serialize};

use super::{ExperimentError, OffsetSource, SharedKeys, Warning};
use crate::evaluate::SeenPolicy;
use crate::interactions::{Clock, Interactions};
use crate::models::{Preset, PresetProtocol};
use crate::prepare::{
    Offset, Partition, Split, SplitScheme, TiePolicy, Timeline, suggest_offset, suggest_offsets_by_share,
};

/// Enough events for a standard error of a few thousandths.
const ENOUGH_EVENTS: usize = 5000;
/// The share of the rows that validation and test sets get each where no usual offset suits the log.
const SHARE_HELD_BACK: f64 = 0.1;

/// Everything that decides what is learned from and what is scored.
///
/// ```
/// use satf::experiment::Protocol;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let month = Some("1month".parse()?);
/// let protocol = Protocol { valid: month, test: month, seed: 7, ..Protocol::default() };
/// // The same from a file or over a network; what is not said stays at its default.
/// assert_eq!(protocol, serde_json::from_str(r#"{ "valid": "1month", "test": "1month", "seed": 7 }"#)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocol {
    /// By what the log is cut (default: by the calendar).
    pub split: SplitKind,
    /// Length of the validation set, counted back from the test set (default: none). If only one of the two lengths is given, it is used for both; if neither is, they
    /// are chosen to suit the log, and a [`Warning`] names them.
    pub valid: Option<Offset>,
    /// Length of the test set, counted back from the newest time (default: none).
    pub test: Option<Offset>,
    /// Which part is scored (default: the test set).
    pub part: Part,
    /// Order of one user's events with equal times (default: shuffled).
    pub ties: TiePolicy,
    /// Which items are left out of a ranking (default: those of the history).
    pub seen: SeenPolicy,
    /// Longest history that order-aware models look at (default: as long as each model's own default).
    pub max_len: Option<usize>,
    /// Seed for everything random (default: 0).
    pub seed: u64,
}

/// By what a log is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitKind {
    /// By the calendar, the same cut for all users: nothing of the future is known.
    #[default]
    Calendar,
    /// Each user's newest event is the test, the one before it the validation set. *Leaks the future*.
    LeaveOneOut,
}

/// What is scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The test set, after training on all before it.
    #[default]
    Test,
    /// The validation set, after training on all before it.
    Validation,
}

impl Protocol {
    /// The protocol that a preset belongs to.
    pub fn of_preset(preset: PresetProtocol) -> Self {
        let PresetProtocol { valid, test, ties, max_len } = preset;
        Protocol { valid: Some(valid), test: Some(test), ties, max_len: Some(max_len), ..Protocol::default() }
    }

    /// The one protocol that all these presets belong to, if there are any; an error if they belong to different ones.
    pub fn common(presets: &[Preset]) -> Result<Option<PresetProtocol>, ExperimentError> {
        let Some(first) = presets.first() else { return Ok(None) };
        match presets.iter().find(|other| other.protocol != first.protocol) {
            None => Ok(Some(first.protocol)),
            Some(other) => Err(ExperimentError::DifferentProtocols {
                first: first.name.clone(),
                other: other.name.clone(),
            }),
        }
    }

    /// The keys that models take over from it.
    pub fn shared_keys(&self) -> SharedKeys {
        SharedKeys { seed: self.seed, max_len: self.max_len, memory_bytes: None }
    }

    /// Orders and cuts a log. What may mislead is in [`Cut::warnings`].
    pub fn cut<'a>(&self, log: &'a Interactions) -> Result<Cut<'a>, ExperimentError> {
        let mut warnings = Vec::new();
        let cut = self.cut_telling(log, &mut warnings)?;
        Ok(Cut { warnings, ..cut })
    }

    /// The same, with the warnings in a list of the caller's, which has them even if the log cannot be cut.
    pub fn cut_telling<'a>(
        &self,
        log: &'a Interactions,
        warnings: &mut Vec<Warning>,
    ) -> Result<Cut<'a>, ExperimentError> {
        let timeline = Timeline::new(log, self.ties, self.seed);
        warnings.extend(Warning::of_ties(&timeline));
        let (scheme, offsets) = match self.split {
            SplitKind::LeaveOneOut => {
                warnings.push(Warning::LeaksFuture);
                (SplitScheme::LeaveOneOut, None)
            }
            SplitKind::Calendar => {
                let (valid, test) = self.offsets(&timeline, warnings)?;
                (SplitScheme::Calendar { valid, test }, Some((valid, test)))
            }
        };
        let (tied_rows, ties) = (timeline.tied_rows, timeline.policy);
        let split = Split::new(timeline, scheme)?;
        let [train, valid, test] = split.rows();
        let partition = match self.part {
            Part::Test => split.test()?,
            Part::Validation => split.validation()?,
        };
        warnings.extend(Warning::of_repeats(partition.holdout.counts));
        let description = CutDescription {
            split: self.split,
            leaks_future: offsets.is_none(),
            valid: offsets.map(|(valid, _)| valid),
            test: offsets.map(|(_, test)| test),
            rows: PartRows { train, valid, test },
            scored_part: self.part,
            train: TrainingSize {
                users: partition.train.num_users(),
                items: partition.train.num_items(),
                rows: partition.train.num_rows(),
            },
            ties,
            tied_rows,
            seen: self.seen,
            max_len: self.max_len,
            seed: self.seed,
        };
        Ok(Cut { split, partition, description, warnings: Vec::new() })
    }

    fn offsets(
        &self,
        timeline: &Timeline<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Offset, Offset), ExperimentError> {
        let (valid, test, source) = match (self.valid, self.test) {
            (Some(valid), Some(test)) => return Ok((valid, test)),
            (Some(one), None) | (None, Some(one)) => return Ok((one, one)),
            (None, None) => match usual_offset(timeline) {
                Some(offset) => (offset, offset, OffsetSource::Usual),
                None if timeline.log.clock() == Clock::RowOrder => return Err(ExperimentError::NoTimes),
                None => {
                    let (valid, test) = suggest_offsets_by_share(timeline, SHARE_HELD_BACK)
                        .ok_or(ExperimentError::NoOffsets)?;
                    (valid, test, OffsetSource::Share(SHARE_HELD_BACK))
                }
            },
        };
        warnings.push(Warning::OffsetsChosen { valid: Some(valid), test, source });
        Ok((valid, test))
    }
}

/// A cut without a validation set: the one asked for, or one that suits the log, which a warning names.
pub fn holdout_scheme(
    log: &Interactions,
    split: Option<SplitKind>,
    test: Option<Offset>,
    warnings: &mut Vec<Warning>,
) -> Result<SplitScheme, ExperimentError> {
    if let Some(test) = test {
        return Ok(SplitScheme::Holdout { test });
    }
    match split {
        Some(SplitKind::LeaveOneOut) => return Ok(SplitScheme::LeaveOneOut),
        None if log.clock() == Clock::RowOrder => {
            warnings.push(Warning::OrderOnly);
            return Ok(SplitScheme::LeaveOneOut);
        }
        Some(SplitKind::Calendar) | None => {}
    }
    let timeline = Timeline::new(log, TiePolicy::File, 0);
    let by_share = || {
        Some((suggest_offsets_by_share(&timeline, SHARE_HELD_BACK)?.1, OffsetSource::Share(SHARE_HELD_BACK)))
    };
    let chosen = usual_offset(&timeline).map(|offset| (offset, OffsetSource::Usual)).or_else(by_share);
    let (test, source) = chosen.ok_or(ExperimentError::NoTestOffset)?;
    warnings.push(Warning::OffsetsChosen { valid: None, test, source });
    Ok(SplitScheme::Holdout { test })
}

/// The shortest usual offset with enough events to tell models apart.
fn usual_offset(timeline: &Timeline<'_>) -> Option<Offset> {
    suggest_offset(timeline, ENOUGH_EVENTS.min(timeline.rows.len() / 50))
}

/// A log cut as a protocol has it.
pub struct Cut<'a> {
    /// The whole split, for those who need the validation set too.
    pub split: Split<'a>,
    /// The part asked for, and what trains for it.
    pub partition: Partition,
    /// What was done, for a report.
    pub description: CutDescription,
    /// What may mislead.
    pub warnings: Vec<Warning>,
}

/// What a protocol came to on a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutDescription {
    /// By what the log was cut.
    pub split: SplitKind,
    /// Whether models trained on events that happened after some they predicted.
    pub leaks_future: bool,
    /// Length of the validation set, given or chosen.
    pub valid: Option<Offset>,
    /// Length of the test set, given or chosen.
    pub test: Option<Offset>,
    /// Rows of the three parts.
    pub rows: PartRows,
    /// Which part is scored.
    pub scored_part: Part,
    /// What trains for it.
    pub train: TrainingSize,
    /// Order of events with equal times.
    pub ties: TiePolicy,
    /// Rows that share user and time with another.
    pub tied_rows: usize,
    /// Which items are left out of a ranking.
    pub seen: SeenPolicy,
    /// Longest history that order-aware models look at.
    pub max_len: Option<usize>,
    /// Seed for everything random.
    pub seed: u64,
}

/// Rows of the parts of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRows {
    /// Of the training set.
    pub train: usize,
    /// Of the validation set.
    pub valid: usize,
    /// Of the test set.
    pub test: usize,
}

/// How much models learn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingSize {
    /// Users.
    pub users: usize,
    /// Items.
    pub items: usize,
    /// Rows.
    pub rows: usize,
}
