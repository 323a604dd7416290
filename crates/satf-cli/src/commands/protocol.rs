//! The protocol asked for: options, presets and defaults become a split.

use anyhow::{Context, bail};
use satf::evaluate::SeenPolicy;
use satf::interactions::Interactions;
use satf::models::Preset;
use satf::prepare::{
    Offset, Partition, Split, SplitScheme, TiePolicy, Timeline, count_duplicates, suggest_offset,
};
use serde_json::{Value, json};

use crate::args::{PartArgument, ProtocolArguments, SplitArgument};
use crate::table;

/// Enough events for a standard error of a few thousandths.
const ENOUGH_EVENTS: usize = 5000;

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
    pub(crate) fn resolve(arguments: &ProtocolArguments, presets: &[String]) -> anyhow::Result<Self> {
        let presets = presets.iter().map(|name| Preset::find(name.trim())).collect::<Result<Vec<_>, _>>()?;
        if let [first, others @ ..] = presets.as_slice()
            && let Some(other) = others.iter().find(|other| other.protocol != first.protocol)
        {
            bail!("{} and {} belong to different protocols: run them one by one", first.name, other.name);
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
        self.warn_of_traps(&timeline);
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
            (None, None) => {
                let offset = usual_offset(timeline).context(
                    "no usual offset leaves enough rows for training, validation and test; \
                     hint: give --valid and --test, such as --valid 3weeks --test 3weeks",
                )?;
                tracing::warn!("no offsets given: taking --valid {offset} --test {offset}");
                Ok((offset, offset))
            }
        }
    }

    fn warn_of_traps(&self, timeline: &Timeline<'_>) {
        warn_of_ties(timeline);
        let duplicates = count_duplicates(timeline.log);
        if duplicates > 0 {
            tracing::warn!(
                "{} rows repeat a user and item: seen items are never recommended, so such an event cannot be hit; \
                 hint: satf prepare --duplicates last",
                table::count(duplicates)
            );
        }
        if self.split == SplitArgument::LeaveOneOut {
            tracing::warn!(
                "leave-one-out leaks the future: models train on events that happen after those they predict; \
                 compare these scores only with others made the same way"
            );
        }
    }
}

/// Says how many rows have no known order, if any.
pub(crate) fn warn_of_ties(timeline: &Timeline<'_>) {
    let rows = timeline.rows.len();
    if timeline.tied_rows > 0 {
        tracing::warn!(
            "{} of {} rows ({:.0} %) share user and time with another, so their order is not known; they are \
             ordered by --ties {}",
            table::count(timeline.tied_rows),
            table::count(rows),
            100.0 * timeline.tied_rows as f64 / rows as f64,
            json!(timeline.policy).as_str().unwrap_or_default(),
        );
    }
}

/// The shortest usual offset with enough events to tell models apart.
pub(crate) fn usual_offset(timeline: &Timeline<'_>) -> Option<Offset> {
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
