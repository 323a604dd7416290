//! The library's hints in the words of the command line.
//!
//! Errors of the library say what helps in words of the library, and as a value. Here, and nowhere else, such a value becomes
//! options and commands, which take the place of the library's words in the message. Only options of the command that runs are named, or
//! those of another command together with its name.

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
use crate::options::Options;

/// Files that an error names; the rest is counted.
const NAMED: usize = 5;

/// The error and its causes, without repeating a cause that the message above it already holds.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    chain_of(error.as_ref())
}

/// The same of any error.
pub(crate) fn chain_of(error: &(dyn Error + 'static)) -> String {
    chain_for(error, Options::running())
}

/// The same in a command with these options.
fn chain_for(error: &(dyn Error + 'static), options: &Options) -> String {
    let causes = || std::iter::successors(Some(error), |&error| error.source());
    // An error may repeat in its own text what its cause says, hint included.
    let hints: Vec<(String, String)> = causes().filter_map(|cause| hint(cause, options)).collect();
    let mut text = String::new();
    for cause in causes() {
        let cause = worded(cause, &hints, options);
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
        .fold(message.to_owned(), |text, hint| {
            text.replace(&hint.to_string(), &of_data(hint, Options::running()))
        })
}

/// The text of an error, with these hints in the words of the command line.
fn worded(error: &(dyn Error + 'static), hints: &[(String, String)], options: &Options) -> String {
    // The faults of a server and of a suite are texts, whatever they were made of.
    let known = [
        (ModelFileHint::SaveOne.to_string(), of_model_file(ModelFileHint::SaveOne)),
        (DataHint::LoadModel.to_string(), of_data(DataHint::LoadModel, options)),
    ];
    let hints = hints.iter().chain(&known);
    hints.fold(error.to_string(), |text, (library, ours)| text.replace(library, ours))
}

/// The hint of an error: in the library's words, and in ours.
fn hint(error: &(dyn Error + 'static), options: &Options) -> Option<(String, String)> {
    let error = inner(error);
    if let Some(hint) = data_error(error).and_then(DataError::hint) {
        return Some((hint.to_string(), of_data(hint, options)));
    }
    if let Some(hint) = split_error(error).and_then(SplitError::hint) {
        return Some((hint.to_string(), of_split(hint, options)));
    }
    if let Some(hint) = error.downcast_ref().and_then(ExperimentError::hint) {
        return Some((hint.to_string(), of_experiment(hint, options)));
    }
    if let Some(hint) = error.downcast_ref().and_then(PerEventError::hint) {
        return Some((hint.to_string(), of_per_event(hint)));
    }
    if let Some(hint) = error.downcast_ref().and_then(ModelFileError::hint) {
        return Some((hint.to_string(), of_model_file(hint)));
    }
    let hint = error.downcast_ref().and_then(TuneError::hint)?;
    Some((hint.to_string(), of_tune(hint, options)))
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

fn of_data(hint: DataHint, options: &Options) -> String {
    let (option, words) = match hint {
        DataHint::GiveFormat => {
            ("--format".to_owned(), format!("give it with --format (one of {})", Format::names()))
        }
        DataHint::GiveColumn(role) => {
            let order = ", or use --order-is-time if the order of the rows is the time";
            let order = if role == Role::Time { order } else { "" };
            let words = format!("name it with --{role}-column (a name, or a number from 1){order}");
            (format!("--{role}-column"), words)
        }
        DataHint::ReadIdsAsText(role) => {
            (format!("--{role}-type"), format!("--{role}-type string reads all these ids as text"))
        }
        DataHint::GiveTimeUnit => (
            "--time-unit".to_owned(),
            "give the unit with --time-unit seconds, milliseconds, microseconds, nanoseconds or yyyymmdd"
                .to_owned(),
        ),
        DataHint::OrderIsTime => {
            ("--order-is-time".to_owned(), "--order-is-time reads every file without its times".to_owned())
        }
        DataHint::GiveHeader => ("--header".to_owned(), "if it is an event, add --header no".to_owned()),
        DataHint::LoadModel => {
            return "satf inspect FILE shows what is in a model".to_owned();
        }
        other => return other.to_string(),
    };
    if options.has(&option) {
        return words;
    }
    if hint == DataHint::GiveColumn(Role::History) {
        return "satf recommend MODEL --histories FILE --history-column NAME reads it".to_owned();
    }
    // A prepared log is read without options.
    format!("satf prepare FILE {option} … -o LOG makes a log of it that every command reads as it is")
}

/// A log without times is cut by leave-one-out, by those who can.
fn leave_one_out(options: &Options) -> String {
    if options.has("--split") {
        return "--split leave-one-out".to_owned();
    }
    "do without the offset; satf evaluate LOG --split leave-one-out scores models on such a log".to_owned()
}

fn of_split(hint: SplitHint, options: &Options) -> String {
    match hint {
        SplitHint::LeaveOneOut => leave_one_out(options),
        other => other.to_string(),
    }
}

fn of_experiment(hint: ExperimentHint, options: &Options) -> String {
    match hint {
        ExperimentHint::LeaveOneOut => leave_one_out(options),
        ExperimentHint::GiveOffsets if options.have(&["--valid", "--test"]) => {
            "give --valid and --test, such as --valid 3weeks --test 3weeks".to_owned()
        }
        ExperimentHint::GiveTest if options.have(&["--test", "--split"]) => {
            "give --test, such as --test 3weeks, or --split leave-one-out".to_owned()
        }
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

fn of_tune(hint: TuneHint, options: &Options) -> String {
    let has_study = options.has("--study");
    match hint {
        TuneHint::StudyIsMade => "made by satf tune".to_owned(),
        TuneHint::EmptyFolder if has_study => "give an empty or new folder with --study".to_owned(),
        TuneHint::WritableFolder if has_study => {
            "choose a folder that you may write to with --study".to_owned()
        }
        TuneHint::FreeSpace => {
            "what was done is kept: free some space and run the same command again".to_owned()
        }
        TuneHint::RepeatOrMove if has_study => {
            "repeat its command, or give another folder with --study".to_owned()
        }
        TuneHint::Wait => "wait for it, or stop it, then run this command again".to_owned(),
        TuneHint::GoOn => "the same command continues from there".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use satf::data::{ForeignKind, Position};

    use super::*;
    use crate::options::tests::{commands, foreign_options};

    /// Every hint there is, on the error that has it.
    fn errors() -> Vec<anyhow::Error> {
        let path = || PathBuf::from("log.csv");
        let column = |role| DataError::UnknownColumn {
            path: path(),
            role,
            wanted: None,
            columns: vec!["a".to_owned()],
            nearest: None,
        };
        let row = |hint| DataError::BadRow {
            path: path(),
            position: Position::Line(1),
            column: None,
            found: "x".into(),
            expected: "y".into(),
            hint: Some(hint),
        };
        let tuning = |hint| TuneError::File {
            action: "write",
            path: path(),
            source: std::io::Error::other("x"),
            hint: Some(hint),
        };
        let roles = [Role::User, Role::Item, Role::Time, Role::History];
        let mut all: Vec<anyhow::Error> = roles.into_iter().map(|role| column(role).into()).collect();
        all.extend(roles.into_iter().map(|role| ReproduceError::Data(column(role)).into()));
        all.extend(roles.into_iter().map(|role| StreamError::Data(column(role)).into()));
        all.extend([Role::User, Role::Item].map(|role| row(DataHint::ReadIdsAsText(role)).into()));
        let hints = [
            DataHint::GiveFormat,
            DataHint::GiveTimeUnit,
            DataHint::OrderIsTime,
            DataHint::GiveHeader,
            DataHint::ConvertToUtf8,
            DataHint::LoadModel,
        ];
        all.extend(hints.map(|hint| row(hint).into()));
        all.extend(
            [ForeignKind::Utf16, ForeignKind::Model]
                .map(|kind| DataError::Foreign { path: path(), kind }.into()),
        );
        all.push(DataError::UnknownFormat { path: path(), found: "x".into() }.into());
        all.extend(
            [ExperimentError::NoTimes, ExperimentError::NoOffsets, ExperimentError::NoTestOffset]
                .map(Into::into),
        );
        all.push(SplitError::NoTimes("1day".parse().unwrap()).into());
        all.push(OrderError::Split(SplitError::NoTimes("1day".parse().unwrap())).into());
        all.push(ExperimentError::Split(SplitError::NoTimes("1day".parse().unwrap())).into());
        all.push(PerEventError::Content { path: path(), reason: "x".to_owned() }.into());
        all.push(ModelFileError::NotAModel { path: path(), reason: "x".to_owned() }.into());
        let hints = [
            TuneHint::StudyIsMade,
            TuneHint::EmptyFolder,
            TuneHint::NewStudy,
            TuneHint::WritableFolder,
            TuneHint::FreeSpace,
            TuneHint::RepeatOrMove,
            TuneHint::Wait,
            TuneHint::GoOn,
        ];
        all.extend(hints.map(|hint| tuning(hint).into()));
        all
    }

    #[test]
    fn no_hint_names_an_option_that_the_command_does_not_have() {
        let all = commands();
        assert!(all.len() >= 18, "{:?}", all.keys());
        for (name, options) in &all {
            for error in errors() {
                let text = chain_for(error.as_ref(), options);
                let foreign = foreign_options(&text, options, &all);
                assert!(foreign.is_empty(), "satf {name}: {foreign:?} in: {text}");
            }
        }
    }

    #[test]
    fn hints_of_the_library_become_options() {
        let all = commands();
        let says = |command: &str, words: &str| {
            let texts: Vec<String> =
                errors().iter().map(|error| chain_for(error.as_ref(), &all[command])).collect();
            assert!(texts.iter().any(|text| text.contains(words)), "{command}: {words}: {texts:#?}");
        };
        for (command, words) in [
            ("stats", "name it with --item-column (a name"),
            ("recommend", "name it with --history-column (a name"),
            ("evaluate", "or use --order-is-time if"),
            ("bench serve", "--format (one of movielens"),
            ("reproduce", "satf prepare FILE --item-column … -o LOG makes"),
            ("serve", "satf prepare FILE --format … -o LOG makes"),
            ("evaluate", "hint: --split leave-one-out"),
            ("train", "hint: do without the offset; satf evaluate LOG --split leave-one-out"),
            ("tune", "hint: give --valid and --test"),
            ("stats", "hint: give --test, such as"),
            ("reproduce", "hint: give the lengths of the validation set"),
            ("compare", "satf evaluate --per-event"),
            ("serve", "hint: satf train"),
            ("tune", "with --study"),
            ("stats", "satf inspect FILE"),
        ] {
            // A build without the server does not have its commands.
            if cfg!(feature = "serve") || !command.ends_with("serve") {
                says(command, words);
            }
        }
        let error =
            anyhow::Error::from(ModelFileError::NotAModel { path: "m".into(), reason: "x".to_owned() });
        let twice = PerEventError::from(DataError::Foreign { path: "m".into(), kind: ForeignKind::Model });
        let text = chain(&twice.into());
        assert_eq!(text.matches("hint").count(), 1, "{text}");
        let text = chain(&error.context("while trying"));
        assert!(text.starts_with("while trying: ") && text.contains("hint: satf train"), "{text}");
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
