//! The protocol asked for, and what the library warns of, in the words of the command line.

use satf::experiment::{Cut, OffsetSource, Part, Protocol, SplitKind, Warning};
use satf::interactions::Interactions;
use satf::models::Registry;
use satf::prepare::Offset;

use crate::args::{PartArgument, ProtocolArguments, SplitArgument};
use crate::misuse::{OnCommandLine, misuse};
use crate::options::Options;
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
        let words = in_words(warning, Options::running());
        if warning.is_minor() {
            tracing::debug!("{words}");
        } else {
            tracing::warn!("{words}");
        }
    }
}

/// A warning with the options that it is about, if the command has them.
fn in_words(warning: &Warning, options: &Options) -> String {
    match warning {
        Warning::TiedRows { tied, rows, ties } => {
            let share = if warning.is_minor() {
                "less than 1 %".to_owned()
            } else {
                format!("{:.0} %", 100.0 * *tied as f64 / (*rows).max(1) as f64)
            };
            format!(
                "{} of {} rows ({share}) share user and time with another, so their order is not known; they are ordered by \
                 the policy {}{}",
                table::count(*tied),
                table::count(*rows),
                ties.name(),
                if options.has("--ties") { ", and --ties names another one" } else { "" },
            )
        }
        Warning::Repeats { repeats, scored } => format!(
            "{} of {} {} of items that their users already have: seen items are never recommended, so \
             these events cannot be hit; hint: satf prepare --duplicates last",
            table::count(*repeats),
            table::counted(*scored, "scored event"),
            table::agreeing(*repeats, "is", "are"),
        ),
        Warning::OffsetsChosen { valid, test, source } => offsets_chosen(*valid, *test, *source, options),
        Warning::LastWasBest { key, best, .. } if options.has("--set") => {
            format!("{warning}: --set {key}={}", best.saturating_mul(2))
        }
        other => other.to_string(),
    }
}

/// Which offsets were chosen, as they would be given.
fn offsets_chosen(valid: Option<Offset>, test: Offset, source: OffsetSource, options: &Options) -> String {
    let given = match valid {
        Some(valid) if options.have(&["--valid", "--test"]) => format!("--valid {valid} --test {test}"),
        None if options.has("--test") => format!("--test {test}"),
        Some(valid) => format!("{valid} for validation and {test} for the test"),
        None => format!("{test} for the test"),
    };
    let what = if valid.is_some() { "offsets" } else { "offset" };
    match (source, valid) {
        (OffsetSource::Usual, _) => format!("no {what} given: using {given}"),
        (OffsetSource::Share(share), Some(_)) => {
            let percent = 100.0 * share;
            format!(
                "no offsets given, and no usual one leaves enough rows for validation and test: using the newest \
                 {percent:.0} % of the rows as the test set and the {percent:.0} % before them as the validation set, which is \
                 {given}"
            )
        }
        (OffsetSource::Share(share), None) => format!(
            "no offset given, and no usual one leaves enough rows: using the newest {:.0} % of them, which is {given}",
            100.0 * share
        ),
    }
}

#[cfg(test)]
mod tests {
    use satf::prepare::TiePolicy;

    use super::*;
    use crate::options::tests::{commands, foreign_options};

    #[test]
    fn no_warning_names_an_option_that_the_command_does_not_have() {
        let offset = || "3weeks".parse().unwrap();
        let mut warnings = vec![
            Warning::TiedRows { tied: 5, rows: 10, ties: TiePolicy::Shuffle },
            Warning::LeaksFuture,
            Warning::Repeats { repeats: 1, scored: 9 },
            Warning::OrderOnly,
            Warning::NotIterative { label: "mp".to_owned() },
            Warning::TestPartScoredBefore { times: 2 },
            Warning::LastWasBest { label: "ga-satf".to_owned(), key: "num_iters".to_owned(), best: 4 },
        ];
        for source in [OffsetSource::Usual, OffsetSource::Share(0.1)] {
            for valid in [None, Some(offset())] {
                warnings.push(Warning::OffsetsChosen { valid, test: offset(), source });
            }
        }
        let all = commands();
        for (name, options) in &all {
            for warning in &warnings {
                let text = in_words(warning, options);
                let foreign = foreign_options(&text, options, &all);
                assert!(foreign.is_empty(), "satf {name}: {foreign:?} in: {text}");
            }
        }
        let says = |command: &str, at: usize| in_words(&warnings[at], &all[command]);
        assert!(says("evaluate", 0).contains("policy shuffle, and --ties names"), "{}", says("evaluate", 0));
        assert!(says("forget", 0).ends_with("the policy shuffle"), "{}", says("forget", 0));
        assert!(says("tune", 6).ends_with(": --set num_iters=8"), "{}", says("tune", 6));
        assert_eq!(says("evaluate", 8), "no offsets given: using --valid 3weeks --test 3weeks");
        assert_eq!(says("stats", 7), "no offset given: using --test 3weeks");
    }
}
