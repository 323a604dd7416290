//! The library's hints in the words of the command line.
//!
//! Errors of the library say what helps in words of the library, and as a value. Here, and nowhere else, such a value becomes
//! options and commands, which take the place of the library's words in the message.

use std::error::Error;
use std::path::PathBuf;

use satf::data::{DataError, DataHint, Format, Role};
use satf::evaluate::{OrderError, PerEventError, PerEventHint};
use satf::experiment::{ExperimentError, ExperimentHint};
use satf::model_file::{ModelFileError, ModelFileHint};
use satf::monitor::Cancelled;
use satf::prepare::{SplitError, SplitHint};
use satf::recommend::StreamError;
use satf::tune::{TuneError, TuneHint};
use satf_report::reproduce::ReproduceError;

use crate::escape;

/// Files that an error names; the rest is counted.
const NAMED: usize = 5;

/// The error and its causes, without repeating a cause that the message above it already holds.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    chain_of(error.as_ref())
}

/// The same of any error.
pub(crate) fn chain_of(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in std::iter::successors(Some(error), |&error| error.source()) {
        let cause = worded(cause);
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// The error, its causes, and what the command had written by then. Whoever keeps something of his own says so himself.
pub(crate) fn ending(error: &anyhow::Error, written: &[PathBuf]) -> String {
    let mut text = chain(error);
    if !written.is_empty() {
        let names: Vec<String> = written.iter().take(NAMED).map(|path| escape::path(path)).collect();
        text.push_str(&format!("; written: {}", names.join(", ")));
        if written.len() > NAMED {
            text.push_str(&format!(" and {} more", written.len() - NAMED));
        }
    } else if text.ends_with(&Cancelled.to_string()) {
        text.push_str("; nothing was written");
    }
    text
}

/// What was wrong with a row that was left out.
pub(crate) fn skipped_row(message: &str) -> String {
    [Role::User, Role::Item]
        .into_iter()
        .map(DataHint::ReadIdsAsText)
        .fold(message.to_owned(), |text, hint| text.replace(&hint.to_string(), &of_data(hint)))
}

/// The text of an error, its hint in the words of the command line.
fn worded(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    match hint(error) {
        Some((library, ours)) => text.replace(&library, &ours),
        // The faults of a server are texts, whatever they were made of.
        None => text.replace(&ModelFileHint::SaveOne.to_string(), &of_model_file(ModelFileHint::SaveOne)),
    }
}

/// The hint of an error: in the library's words, and in ours.
fn hint(error: &(dyn Error + 'static)) -> Option<(String, String)> {
    let error = inner(error);
    if let Some(hint) = data_error(error).and_then(DataError::hint) {
        return Some((hint.to_string(), of_data(hint)));
    }
    if let Some(hint) = split_error(error).and_then(SplitError::hint) {
        return Some((hint.to_string(), of_split(hint)));
    }
    if let Some(hint) = error.downcast_ref().and_then(ExperimentError::hint) {
        return Some((hint.to_string(), of_experiment(hint)));
    }
    if let Some(hint) = error.downcast_ref().and_then(PerEventError::hint) {
        return Some((hint.to_string(), of_per_event(hint)));
    }
    if let Some(hint) = error.downcast_ref().and_then(ModelFileError::hint) {
        return Some((hint.to_string(), of_model_file(hint)));
    }
    let hint = error.downcast_ref().and_then(TuneError::hint)?;
    Some((hint.to_string(), of_tune(hint)))
}

/// The error behind one that only passes it on.
fn inner<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    match error.downcast_ref() {
        Some(ReproduceError::Data(error)) => error,
        Some(ReproduceError::Experiment(error)) => error,
        Some(ReproduceError::Tune(error)) => error,
        _ => error,
    }
}

fn data_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a DataError> {
    match error.downcast_ref() {
        Some(StreamError::Data(error)) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn split_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a SplitError> {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(OrderError::Split(error)), _) | (_, Some(ExperimentError::Split(error))) => Some(error),
        _ => error.downcast_ref(),
    }
}

fn of_data(hint: DataHint) -> String {
    match hint {
        DataHint::GiveFormat => format!("give it with --format (one of {})", Format::names()),
        DataHint::GiveColumn(role) => {
            let order = ", or use --order-is-time if the order of the rows is the time";
            let order = if role == Role::Time { order } else { "" };
            format!("name it with --{role}-column (a name, or a number from 1){order}")
        }
        DataHint::ReadIdsAsText(role) => format!("--{role}-type string reads all these ids as text"),
        DataHint::GiveTimeUnit => {
            "give the unit with --time-unit seconds, milliseconds, microseconds, nanoseconds or yyyymmdd"
                .to_owned()
        }
        DataHint::OrderIsTime => "--order-is-time reads every file without its times".to_owned(),
        DataHint::GiveHeader => "if it is an event, add --header no".to_owned(),
        other => other.to_string(),
    }
}

fn of_split(hint: SplitHint) -> String {
    match hint {
        SplitHint::LeaveOneOut => "--split leave-one-out".to_owned(),
        other => other.to_string(),
    }
}

fn of_experiment(hint: ExperimentHint) -> String {
    match hint {
        ExperimentHint::LeaveOneOut => "--split leave-one-out".to_owned(),
        ExperimentHint::GiveOffsets => {
            "give --valid and --test, such as --valid 3weeks --test 3weeks".to_owned()
        }
        ExperimentHint::GiveTest => "give --test, such as --test 3weeks, or --split leave-one-out".to_owned(),
        other => other.to_string(),
    }
}

fn of_per_event(hint: PerEventHint) -> String {
    match hint {
        PerEventHint::WriteThem => "write them with satf evaluate --per-event FILE".to_owned(),
        other => other.to_string(),
    }
}

fn of_model_file(hint: ModelFileHint) -> String {
    match hint {
        ModelFileHint::SaveOne => "satf train LOG -o FILE writes one".to_owned(),
        other => other.to_string(),
    }
}

fn of_tune(hint: TuneHint) -> String {
    match hint {
        TuneHint::StudyIsMade => "made by satf tune".to_owned(),
        TuneHint::EmptyFolder => "give an empty or new folder with --study".to_owned(),
        TuneHint::WritableFolder => "choose a folder that you may write to with --study".to_owned(),
        TuneHint::FreeSpace => {
            "what was done is kept: free some space and run the same command again".to_owned()
        }
        TuneHint::RepeatOrMove => "repeat its command, or give another folder with --study".to_owned(),
        TuneHint::Wait => "wait for it, or stop it, then run this command again".to_owned(),
        TuneHint::GoOn => "the same command continues from there".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use satf::tune::Damage;

    use super::*;

    #[test]
    fn hints_of_the_library_become_options() {
        let path = || PathBuf::from("log.csv");
        let column = |role| DataError::UnknownColumn {
            path: path(),
            role,
            wanted: None,
            columns: vec!["a".to_owned()],
            nearest: None,
        };
        let cases: [(anyhow::Error, &str); 12] = [
            (ReproduceError::Data(column(Role::Item)).into(), "--item-column (a name"),
            (ExperimentError::NoTimes.into(), "hint: --split leave-one-out"),
            (ExperimentError::NoOffsets.into(), "hint: give --valid and --test"),
            (ExperimentError::NoTestOffset.into(), "hint: give --test, such as"),
            (
                DataError::UnknownFormat { path: path(), found: "x".into() }.into(),
                "--format (one of movielens",
            ),
            (column(Role::Item).into(), "--item-column (a name"),
            (column(Role::Time).into(), "or use --order-is-time if"),
            (StreamError::Data(column(Role::User)).into(), "--user-column"),
            (
                OrderError::Split(SplitError::NoTimes("1day".parse().unwrap())).into(),
                "hint: --split leave-one-out",
            ),
            (
                PerEventError::Content { path: path(), reason: "x".to_owned() }.into(),
                "satf evaluate --per-event",
            ),
            (ModelFileError::NotAModel { path: path(), reason: "x".to_owned() }.into(), "hint: satf train"),
            (
                TuneError::Damaged { path: path(), damage: Box::new(Damage::Stranger("x".to_owned())) }
                    .into(),
                "with --study",
            ),
        ];
        for (error, words) in cases {
            let text = chain(&error);
            assert!(text.contains(words), "{text}");
            let text = chain(&error.context("while trying"));
            assert!(text.starts_with("while trying: ") && text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_wish_to_stop_is_said_once_with_what_was_kept() {
        let error = anyhow::Error::from(DataError::from(Cancelled));
        assert_eq!(ending(&error, &[]), "stopped on request; nothing was written");
        let written = |count: usize| vec![PathBuf::from("a.csv"); count];
        assert_eq!(ending(&error, &written(1)), "stopped on request; written: a.csv");
        assert!(ending(&error, &written(7)).ends_with("a.csv, a.csv and 2 more"));
        let full = anyhow::anyhow!("standard output: full");
        assert_eq!(ending(&full, &[]), "standard output: full");
        assert_eq!(ending(&full, &written(2)), "standard output: full; written: a.csv, a.csv");
        let folder = PathBuf::from("study");
        let error = TuneError::Stopped { done: 1, asked: 2, folder, source: Cancelled };
        assert!(chain(&error.into()).ends_with("kept in study; the same command continues from there"));
    }
}
