//! The protocol asked for: options, presets and defaults become a split.

use anyhow::{Context, bail};
use satf::evaluate::SeenPolicy;
use satf::interactions::{Clock, Interactions};
use satf::models::Registry;
use satf::prepare::{
    EventCounts, Offset, Partition, Split, SplitScheme, TiePolicy, Timeline, suggest_offset,
    suggest_offsets_by_share,
};
use serde_json::{Value, json};

use crate::args::{PartArgument, ProtocolArguments, SplitArgument};
use crate::misuse::{OnCommandLine, misuse};
use crate::table;

/// Enough events for a standard error of a few thousandths.
const ENOUGH_EVENTS: usize = 5000;
/// The share of the rows that validation and test part get each where no usual offset suits the log.
const SHARE_HELD_BACK: f64 = 0.1;
/// Ties are worth a warning from this share of the rows on: fewer hardly move a score.
const TIES_WORTH_TELLING: f64 = 0.01;

/// Everything that decides what is learned from and what is scored.
pub(crate) struct Protocol {
    valid: Option<Offset>,
    test: Option<Offset>,
    split: SplitArgument,
    on: PartArgument,
    ties: TiePolicy,
    pub(crate) seen: SeenPolicy,
    pub(crate) max_len: Option<usize>,
    pub(crate) seed: u64,
}

impl Protocol {
    /// What was asked for; where nothing was, what the presets say.
    pub(crate) fn resolve(
        arguments: &ProtocolArguments,
        presets: &[String],
        registry: &Registry,
    ) -> anyhow::Result<Self> {
        let presets = presets.iter().map(|name| registry.preset(name.trim()));
        let presets = presets.collect::<Result<Vec<_>, _>>().on_command_line()?;
        if let [first, others @ ..] = presets.as_slice()
            && let Some(other) = others.iter().find(|other| other.protocol != first.protocol)
        {
            misuse!("{} and {} belong to different protocols: run them one by one", first.name, other.name);
        }
        let preset = presets.first().map(|preset| preset.protocol);
        Ok(Protocol {
            valid: arguments.valid.or(preset.map(|preset| preset.valid)),
            test: arguments.test.or(preset.map(|preset| preset.test)),
            split: arguments.split,
            on: arguments.on,
            ties: arguments.ties.or(preset.map(|preset| preset.ties)).unwrap_or_default(),
            seen: arguments.seen,
            max_len: arguments.max_len.or(preset.map(|preset| preset.max_len)),
            seed: arguments.seed,
        })
    }

    /// Orders and cuts a log, and warns of what may mislead.
    pub(crate) fn cut<'a>(&self, log: &'a Interactions) -> anyhow::Result<Cut<'a>> {
        let timeline = Timeline::new(log, self.ties, self.seed);
        warn_of_ties(&timeline);
        self.warn_of_leaks();
        let (scheme, offsets) = match self.split {
            SplitArgument::LeaveOneOut => (SplitScheme::LeaveOneOut, None),
            SplitArgument::Calendar => {
                let (valid, test) = self.offsets(&timeline)?;
                (SplitScheme::Calendar { valid, test }, Some((valid, test)))
            }
        };
        let (tied_rows, policy) = (timeline.tied_rows, timeline.policy);
        let split = Split::new(timeline, scheme)?;
        let [train, valid, test] = split.rows();
        let partition = match self.on {
            PartArgument::Test => split.test()?,
            PartArgument::Validation => split.validation()?,
        };
        warn_of_repeats(partition.holdout.counts);
        let description = json!({
            "split": if offsets.is_some() { "calendar" } else { "leave-one-out" },
            "leaks_future": offsets.is_none(),
            "valid": offsets.map(|(valid, _)| valid.to_string()),
            "test": offsets.map(|(_, test)| test.to_string()),
            "rows": { "train": train, "valid": valid, "test": test },
            "scored_part": match self.on { PartArgument::Test => "test", PartArgument::Validation => "validation" },
            "train": {
                "users": partition.train.num_users(),
                "items": partition.train.num_items(),
                "rows": partition.train.num_rows(),
            },
            "ties": policy,
            "tied_rows": tied_rows,
            "seen": self.seen,
            "max_len": self.max_len,
            "seed": self.seed,
        });
        Ok(Cut { split, partition, description })
    }

    fn offsets(&self, timeline: &Timeline<'_>) -> anyhow::Result<(Offset, Offset)> {
        match (self.valid, self.test) {
            (Some(valid), Some(test)) => Ok((valid, test)),
            (Some(one), None) | (None, Some(one)) => Ok((one, one)),
            (None, None) => match usual_offset(timeline) {
                Some(offset) => {
                    tracing::warn!("no offsets given: taking --valid {offset} --test {offset}");
                    Ok((offset, offset))
                }
                None => offsets_by_share(timeline),
            },
        }
    }

    fn warn_of_leaks(&self) {
        if self.split == SplitArgument::LeaveOneOut {
            tracing::warn!(
                "leave-one-out leaks the future: models train on events that happen after those they predict; \
                 compare these scores only with others made the same way"
            );
        }
    }
}

/// Says how many rows have no known order, if there are so many that it could matter.
pub(crate) fn warn_of_ties(timeline: &Timeline<'_>) {
    let (tied, rows) = (timeline.tied_rows, timeline.rows.len());
    let share = tied as f64 / rows.max(1) as f64;
    let said = format!(
        "{} of {} rows ({}) share user and time with another, so their order is not known; they are ordered by --ties {}",
        table::count(tied),
        table::count(rows),
        if share < TIES_WORTH_TELLING {
            "less than 1 %".to_owned()
        } else {
            format!("{:.0} %", 100.0 * share)
        },
        json!(timeline.policy).as_str().unwrap_or_default(),
    );
    if share >= TIES_WORTH_TELLING {
        tracing::warn!("{said}");
    } else if tied > 0 {
        tracing::debug!("{said}");
    }
}

/// Says how many events no model can hit, if any.
fn warn_of_repeats(counts: EventCounts) {
    if counts.repeats > 0 {
        tracing::warn!(
            "{} of {} scored events are of items that their users already have: seen items are never recommended, so \
             these events cannot be hit; hint: satf prepare --duplicates last",
            table::count(counts.repeats),
            table::count(counts.scored),
        );
    }
}

/// Offsets by the share of rows they hold back, where no usual offset suits the log; said as a warning.
fn offsets_by_share(timeline: &Timeline<'_>) -> anyhow::Result<(Offset, Offset)> {
    if timeline.log.clock() == Clock::RowOrder {
        bail!(
            "this log has no times, only an order, so it cannot be cut by the calendar; hint: --split leave-one-out"
        );
    }
    let (valid, test) = suggest_offsets_by_share(timeline, SHARE_HELD_BACK).context(
        "no usual offset, nor a share of the rows, leaves enough of them for training, validation and test; \
         hint: give --valid and --test, such as --valid 3weeks --test 3weeks",
    )?;
    let percent = 100.0 * SHARE_HELD_BACK;
    tracing::warn!(
        "no offsets given, and no usual one leaves enough rows for validation and test: taking the newest {percent:.0} % of the \
         rows as test part and the {percent:.0} % before them as validation part, which is --valid {valid} --test {test}"
    );
    Ok((valid, test))
}

/// The length of a test part with enough events to tell models apart; said as a warning, for nobody gave it.
pub(crate) fn test_offset(timeline: &Timeline<'_>) -> Option<Offset> {
    if let Some(offset) = usual_offset(timeline) {
        tracing::warn!("no offset given: taking --test {offset}");
        return Some(offset);
    }
    let (_, test) = suggest_offsets_by_share(timeline, SHARE_HELD_BACK)?;
    tracing::warn!(
        "no offset given, and no usual one leaves enough rows: taking the newest {:.0} % of them, which is --test {test}",
        100.0 * SHARE_HELD_BACK
    );
    Some(test)
}

/// The shortest usual offset with enough events to tell models apart.
fn usual_offset(timeline: &Timeline<'_>) -> Option<Offset> {
    suggest_offset(timeline, ENOUGH_EVENTS.min(timeline.rows.len() / 50))
}

/// A log cut as the protocol has it.
pub(crate) struct Cut<'a> {
    /// The whole split, for those who need the validation part too.
    pub(crate) split: Split<'a>,
    /// The part asked for and what trains for it.
    pub(crate) partition: Partition,
    /// The protocol in words, for the report.
    pub(crate) description: Value,
}
