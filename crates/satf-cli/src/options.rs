//! The options of the command that runs.
//!
//! Errors and warnings of the library become words with options in them, and most of them may come of several commands. What they name
//! is asked for here first, so that nobody is told to use an option that his command does not have.

use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

static RUNNING: OnceLock<Options> = OnceLock::new();

/// Options of `satf train` that say what `--update` takes from the model: there they may be repeated, and nothing else.
const KEPT_BY_UPDATE: [&str; 10] = [
    "--with-statistics",
    "--model",
    "--preset",
    "--config",
    "--set",
    "--quantize",
    "--leave-out",
    "--ties",
    "--max-len",
    "--seed",
];

/// The options that may be given to a command.
#[derive(Debug, Default)]
pub(crate) struct Options(Vec<String>);

static GIVEN: OnceLock<Vec<String>> = OnceLock::new();

impl Options {
    /// All options of a command that its help shows.
    pub(crate) fn of(command: &Command) -> Self {
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        Options(shown.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect())
    }

    /// Those of the command that was asked for.
    fn asked_for(command: &Command, matches: &ArgMatches) -> Self {
        let (command, matches) = innermost(command, matches);
        let mut options = Options::of(command);
        if command.get_name() == "train" && matches.contains_id("update") {
            options.0.retain(|option| !KEPT_BY_UPDATE.contains(&option.as_str()));
        }
        options
    }

    /// Remembers which command runs.
    pub(crate) fn remember(command: &Command, matches: &ArgMatches) {
        // There is one command line.
        let _ = RUNNING.set(Options::asked_for(command, matches));
        let (command, matches) = innermost(command, matches);
        let given = command.get_arguments().filter(|argument| {
            matches.try_contains_id(argument.get_id().as_str()).is_ok()
                && matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        });
        let given = given.filter_map(|argument| Some(format!("--{}", argument.get_long()?)));
        let _ = GIVEN.set(given.collect());
    }

    /// Whether this one is given, even with the value it has by default.
    pub(crate) fn is_given(option: &str) -> bool {
        GIVEN.get().is_some_and(|given| given.iter().any(|known| known == option))
    }

    /// Those of the command that runs.
    pub(crate) fn running() -> &'static Options {
        RUNNING.get_or_init(Options::default)
    }

    /// Whether this one may be given.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.0.iter().any(|known| known == option)
    }

    /// Whether all of these may be given.
    pub(crate) fn have(&self, options: &[&str]) -> bool {
        options.iter().all(|option| self.has(option))
    }
}

/// The command that was asked for, which may be within another one.
fn innermost<'a>(mut command: &'a Command, mut matches: &'a ArgMatches) -> (&'a Command, &'a ArgMatches) {
    while let Some((name, inner)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(name)
    {
        (command, matches) = (found, inner);
    }
    (command, matches)
}

/// What tests know of all commands.
#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    /// All commands by name, such as `train` or `tune status`, with what may be given to them.
    pub(crate) fn commands() -> BTreeMap<String, Options> {
        fn add(command: &Command, path: &str, all: &mut BTreeMap<String, Options>) {
            for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
                let name = format!("{path} {}", inner.get_name()).trim().to_owned();
                add(inner, &name, all);
                all.insert(name, Options::of(inner));
            }
        }
        let mut command = Arguments::command();
        command.build();
        let mut all = BTreeMap::new();
        add(&command, "", &mut all);
        all
    }

    /// Options that no help shows.
    fn hidden() -> Vec<String> {
        let mut command = Arguments::command();
        command.build();
        let arguments = command.get_subcommands().flat_map(Command::get_arguments);
        let hidden = arguments.filter(|argument| argument.is_hide_set());
        hidden.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
    }

    /// The options of a text that neither the command has nor another one that the text names before them, as in `satf evaluate --test`.
    pub(crate) fn foreign_options(
        text: &str,
        options: &Options,
        all: &BTreeMap<String, Options>,
    ) -> Vec<String> {
        let mut foreign = Vec::new();
        for (at, _) in text.match_indices("--") {
            let is_begin = !text[..at].ends_with(|c: char| c == '-' || c.is_alphanumeric());
            let end = text[at + 2..].find(|c: char| !c.is_ascii_lowercase() && c != '-');
            let option = text[at..end.map_or(text.len(), |end| at + 2 + end)].trim_end_matches('-');
            if !is_begin || option.len() < 3 {
                continue;
            }
            // Within a sentence or so.
            let before: String = text[..at].chars().rev().take(120).collect();
            let before: String = before.chars().rev().collect();
            let is_of_other = before.match_indices("satf ").any(|(begin, word)| {
                // Not the end of a name such as shop.satf.
                let is_command = !before[..begin].ends_with(|c: char| c == '.' || c.is_alphanumeric());
                let named = &before[begin + word.len()..];
                is_command && all.iter().any(|(name, other)| is_called(named, name) && other.has(option))
            });
            if !options.has(option) && !is_of_other {
                foreign.push(option.to_owned());
            }
        }
        foreign
    }

    fn is_called(named: &str, command: &str) -> bool {
        named.strip_prefix(command).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    }

    #[test]
    fn options_are_those_of_the_command_asked_for() {
        let asked = |line: &str| {
            let mut command = Arguments::command();
            let matches = command.try_get_matches_from_mut(line.split(' ')).unwrap();
            Options::asked_for(&command, &matches)
        };
        let train = asked("satf train log.csv -o m.satf");
        assert!(train.have(&["--ties", "--validate", "--user-column"]) && !train.has("--split"));
        let update = asked("satf train --update m.satf log.csv");
        assert!(update.has("--validate") && !update.has("--ties") && !update.has("--with-statistics"));
        assert!(
            asked("satf tune log.csv -m mp").has("--study") && !asked("satf tune status x").has("--study")
        );
        assert!(!asked("satf tune log.csv -m mp").has("--on"));
        let mut command = Arguments::command();
        command.build();
        for option in KEPT_BY_UPDATE {
            assert!(Options::of(command.find_subcommand("train").unwrap()).has(option), "{option}");
        }
    }

    /// Sources of what several commands share, and one option that all of these commands have.
    const SHARED: [(&str, &str); 3] =
        [("settings.rs", "--set"), ("statistics.rs", "--with-statistics"), ("files.rs", "--histories")];

    /// What a command says in its own file, it says of its own options.
    #[test]
    fn no_command_names_an_option_that_it_does_not_have() {
        let (all, hidden) = (commands(), hidden());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
        let mut checked = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(stem) = name.strip_suffix(".rs") else { continue };
            let shared = SHARED.iter().find(|(file, _)| *file == name).map(|(_, option)| option);
            let mut having: Vec<&Options> = match (shared, all.get(stem)) {
                (Some(option), _) => all.values().filter(|options| options.has(option)).collect(),
                (None, Some(options)) => vec![options],
                (None, None) => continue,
            };
            // The commands within a command are in its file.
            having.extend(
                all.iter().filter(|(inner, _)| inner.starts_with(&format!("{stem} "))).map(|(_, o)| o),
            );
            // It starts a server.
            having.extend((stem == "bench").then(|| all.get("serve")).flatten());
            let own = Options(having.iter().flat_map(|options| options.0.clone()).collect());
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap();
            let code: Vec<&str> =
                code.lines().filter(|line| !line.trim_start().starts_with("//")).map(str::trim).collect();
            // A text may go on over lines.
            let code = code.join("\n").replace("\\\n", "");
            checked += code.matches("--").count();
            let mut foreign = foreign_options(&code, &own, &all);
            // Those are named where they are refused, or given by one command to another.
            foreign.retain(|option| !hidden.contains(option));
            assert!(foreign.is_empty(), "{name}: {foreign:?}");
        }
        assert!(checked > 80, "{checked}");
    }
}
