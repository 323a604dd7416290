//! The protocol asked for, and what the library warns of, in the words of the command line.

use satf::experiment::{Cut, OffsetSource, Part, Protocol, SplitKind, Warning};
use satf::interactions::Interactions;
use satf::models::Registry;

use crate::args::{PartArgument, ProtocolArguments, SplitArgument};
use crate::misuse::{OnCommandLine, misuse};
use crate::table;

impl From<SplitArgument> for SplitKind {
    fn from(split: SplitArgument) -> Self {
        match split {
            SplitArgument::Calendar => SplitKind::Calendar,
            SplitArgument::LeaveOneOut => SplitKind::LeaveOneOut,
        }
    }
}

/// What was asked for; where nothing was, what the presets say.
pub(crate) fn resolve(
    arguments: &ProtocolArguments,
    presets: &[String],
    registry: &Registry,
) -> anyhow::Result<Protocol> {
    if arguments.split == SplitArgument::LeaveOneOut {
        for (option, offset) in [("--valid", arguments.valid), ("--test", arguments.test)] {
            if let Some(offset) = offset {
                misuse!(
                    "{option} {offset}: --split leave-one-out holds out the last events of every user, whenever they were; hint: leave \
                     out one of the two options"
                );
            }
        }
    }
    let presets = presets.iter().map(|name| registry.preset(name.trim()));
    let presets = presets.collect::<Result<Vec<_>, _>>().on_command_line()?;
    let preset = Protocol::common(&presets).on_command_line()?;
    let preset = preset.map(Protocol::of_preset).unwrap_or_default();
    Ok(Protocol {
        split: arguments.split.into(),
        valid: arguments.valid.or(preset.valid),
        test: arguments.test.or(preset.test),
        part: match arguments.on {
            PartArgument::Test => Part::Test,
            PartArgument::Validation => Part::Validation,
        },
        ties: arguments.ties.unwrap_or(preset.ties),
        seen: arguments.seen,
        max_len: arguments.max_len.or(preset.max_len),
        seed: arguments.seed.unwrap_or_default(),
    })
}

/// Orders and cuts a log, and warns of what may mislead, even if it cannot be cut.
pub(crate) fn cut<'a>(protocol: &Protocol, log: &'a Interactions) -> anyhow::Result<Cut<'a>> {
    let mut warnings = Vec::new();
    let cut = protocol.cut_telling(log, &mut warnings);
    tell(&warnings);
    Ok(cut?)
}

/// Says what may mislead.
pub(crate) fn tell(warnings: &[Warning]) {
    for warning in warnings {
        if warning.is_minor() {
            tracing::debug!("{}", in_words(warning));
        } else {
            tracing::warn!("{}", in_words(warning));
        }
    }
}

/// A warning with the options that it is about.
fn in_words(warning: &Warning) -> String {
    match warning {
        Warning::TiedRows { tied, rows, ties } => {
            let share = if warning.is_minor() {
                "less than 1 %".to_owned()
            } else {
                format!("{:.0} %", 100.0 * *tied as f64 / (*rows).max(1) as f64)
            };
            format!(
                "{} of {} rows ({share}) share user and time with another, so their order is not known; they are ordered by \
                 --ties {}",
                table::count(*tied),
                table::count(*rows),
                ties.name(),
            )
        }
        Warning::Repeats { repeats, scored } => format!(
            "{} of {} scored events are of items that their users already have: seen items are never recommended, so \
             these events cannot be hit; hint: satf prepare --duplicates last",
            table::count(*repeats),
            table::count(*scored),
        ),
        Warning::OffsetsChosen { valid: Some(valid), test, source: OffsetSource::Usual } => {
            format!("no offsets given: using --valid {valid} --test {test}")
        }
        Warning::OffsetsChosen { valid: Some(valid), test, source: OffsetSource::Share(share) } => {
            let percent = 100.0 * share;
            format!(
                "no offsets given, and no usual one leaves enough rows for validation and test: using the newest \
                 {percent:.0} % of the rows as the test set and the {percent:.0} % before them as the validation set, which is \
                 --valid {valid} --test {test}"
            )
        }
        Warning::OffsetsChosen { valid: None, test, source: OffsetSource::Usual } => {
            format!("no offset given: using --test {test}")
        }
        Warning::OffsetsChosen { valid: None, test, source: OffsetSource::Share(share) } => format!(
            "no offset given, and no usual one leaves enough rows: using the newest {:.0} % of them, which is --test {test}",
            100.0 * share
        ),
        Warning::LastWasBest { key, best, .. } => {
            format!("{warning}: --set {key}={}", best.saturating_mul(2))
        }
        other => other.to_string(),
    }
}
