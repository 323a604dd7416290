//! The files that a command reads and writes: none may be both, and no two that are written may be one.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use satf::data::{FileIdentity, check_writable};

use crate::args::{Listed, LogArguments, RecommendArguments};
use crate::{escape, table, terminal};

/// What the files of a log are called.
const LOG: &str = "LOG";

/// Standard input under the name that a system may have for it.
const STANDARD_INPUT: &str = "/dev/stdin";

/// What a command reads and writes, each with the option that names it.
#[derive(Default)]
pub(crate) struct Files {
    read: Vec<(&'static str, PathBuf)>,
    written: Vec<(&'static str, PathBuf)>,
    kept: Vec<(&'static str, PathBuf)>,
}

/// Where a command prints.
#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Stream::Output => table::STANDARD_OUTPUT,
            Stream::Error => "standard error",
        }
    }

    /// The file that it goes to, if it is one.
    fn identity(self) -> Option<FileIdentity> {
        match self {
            Stream::Output => FileIdentity::of_stdout(),
            Stream::Error => FileIdentity::of_stderr(),
        }
    }
}

impl Files {
    /// The files of a log are read.
    pub(crate) fn of_log(log: &LogArguments) -> Self {
        log.files.iter().fold(Files::default(), |files, path| files.reading(LOG, Some(path)))
    }

    /// A file is read, if it is given.
    pub(crate) fn reading(mut self, option: &'static str, path: Option<impl AsRef<Path>>) -> Self {
        self.read.extend(path.map(|path| (option, path.as_ref().to_owned())));
        self
    }

    /// A file is written, if it is given.
    pub(crate) fn writing(mut self, option: &'static str, path: Option<impl AsRef<Path>>) -> Self {
        self.written.extend(path.map(|path| (option, path.as_ref().to_owned())));
        self
    }

    /// A file, or whatever lies in a folder and in those within it, is kept from run to run.
    pub(crate) fn keeping(mut self, option: &'static str, path: Option<impl AsRef<Path>>) -> Self {
        self.kept.extend(path.map(|path| (option, path.as_ref().to_owned())));
        self
    }

    /// An error if a file that is read lies in one of these folders, in which the command writes as it likes.
    pub(crate) fn keep_out_of(&self, option: &str, folders: &[PathBuf]) -> anyhow::Result<()> {
        // Folders that are not there yet hold nothing.
        let folders: Vec<_> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        for (input, path) in &self.read {
            let Ok(real) = path.canonicalize() else { continue };
            if let Some(folder) = folders.iter().find(|folder| real.starts_with(folder)) {
                bail!(
                    "{}: is in {}, where results are written ({option}); hint: move it, or give another folder",
                    name(input, path),
                    escape::path(folder)
                );
            }
        }
        Ok(())
    }

    /// An error if a file would be lost, or if one could not be written now: better before long work than after it.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.check_distinct()?;
        for (option, path) in &self.written {
            check_writable(path).with_context(|| format!("{}: cannot be written", name(option, path)))?;
        }
        Ok(())
    }

    /// An error if a file would be lost.
    pub(crate) fn check_distinct(&self) -> anyhow::Result<()> {
        self.check_streams()?;
        // What is not there to be read is missed by whoever reads it.
        let there = self.read.iter().filter(|(_, path)| path.exists());
        let read: Vec<_> = there.filter_map(identified).collect();
        for (at, (identity, option, path)) in
            read.iter().enumerate().filter(|(_, (_, option, _))| *option == LOG)
        {
            let is_same = |other: &&(FileIdentity, &str, &Path)| other.1 == LOG && other.0 == *identity;
            if let Some((_, _, other)) = read[..at].iter().find(is_same) {
                bail!(
                    "{}: this file is given twice ({}), and its rows would count twice; hint: give it once",
                    name(option, path),
                    escape::path(other)
                );
            }
        }
        let written: Vec<_> = self.written.iter().filter_map(identified).collect();
        for (at, (identity, option, path)) in written.iter().enumerate() {
            let name_of = |(_, option, path): &(FileIdentity, &str, &Path)| name(option, path);
            let is_same = |other: &&(FileIdentity, &str, &Path)| other.0 == *identity;
            if let Some(input) = read.iter().find(is_same) {
                bail!(
                    "{}: this file is also read ({}) and would be lost; hint: give another name",
                    name(option, path),
                    name_of(input)
                );
            }
            if let Some(other) = written[..at].iter().find(is_same) {
                bail!(
                    "{}: this file is written twice ({}); hint: give another name",
                    name(option, path),
                    name_of(other)
                );
            }
        }
        Ok(())
    }
}

impl Files {
    /// An error if what is printed would go into one of the files.
    fn check_streams(&self) -> anyhow::Result<()> {
        for stream in [Stream::Output, Stream::Error] {
            let Some(identity) = stream.identity() else { continue };
            let is_it = |path: &Path| FileIdentity::of(path).is_ok_and(|other| other == identity);
            let among = |files: &[(&'static str, PathBuf)], use_of_it: &'static str| {
                let found = files.iter().find(|(_, path)| lies_at(path, &is_it));
                found.map(|(option, path)| format!("{use_of_it} ({})", name(option, path)))
            };
            let found = among(&self.read, "read")
                .or_else(|| among(&self.written, "written"))
                .or_else(|| among(&self.kept, "kept"));
            let Some(found) = found else { continue };
            let message =
                format!("{} is a file that is also {found}; hint: send it to another file", stream.name());
            if matches!(stream, Stream::Error) {
                // To say it there would do the very harm.
                terminal::silence();
                let _ = table::print(&format!("error: {message}"));
            }
            bail!(message);
        }
        Ok(())
    }
}

/// Whether a file is the one that is looked for, or a folder holds it at any depth.
fn lies_at(path: &Path, is_it: &dyn Fn(&Path) -> bool) -> bool {
    if !path.is_dir() {
        return is_it(path);
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    // Links to folders are not followed: they may lead in circles.
    entries
        .map(|entry| entry.path())
        .any(|entry| if entry.is_symlink() { is_it(&entry) } else { lies_at(&entry, is_it) })
}

/// A file with its identity, if it has one: a folder that is not there holds no file of anybody.
fn identified<'a>((option, path): &'a (&'static str, PathBuf)) -> Option<(FileIdentity, &'a str, &'a Path)> {
    Some((FileIdentity::of(path).ok()?, *option, path.as_path()))
}

fn name(option: &str, path: &Path) -> String {
    format!("{option} {}", escape::path(path))
}

/// The files of `satf recommend`.
pub(crate) fn of_recommend(arguments: &RecommendArguments) -> Files {
    let histories = arguments.histories.as_deref();
    let histories =
        histories.map(|path| if path == Path::new("-") { Path::new(STANDARD_INPUT) } else { path });
    let list = |list: &Option<Listed>| list.as_ref()?.file().cloned();
    let boosts = arguments.boost.iter().filter_map(Listed::file);
    boosts
        .fold(Files::default(), |files, path| files.reading("--boost", Some(path)))
        .reading("MODEL", Some(&arguments.model))
        .reading("--histories", histories)
        .reading("--titles", arguments.titles.as_ref())
        .reading("--history", list(&arguments.history))
        .reading("--exclude", list(&arguments.exclude))
        .reading("--only", list(&arguments.only))
        .reading("--allow-seen", arguments.allow_seen.as_ref().and_then(list))
        .writing("--output", arguments.output.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_or_written_but_not_both_and_not_twice() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| Some(folder.path().join(name));
        std::fs::write(at("log").unwrap(), "x").unwrap();
        let check = |files: Files| files.check().map_err(|error| format!("{error:#}"));
        let log = || Files::default().reading("LOG", at("log"));
        assert_eq!(
            check(log().reading("--config", at("log")).writing("--svg", at("a")).writing("--png", at("b"))),
            Ok(())
        );
        for (files, parts) in [
            (log().writing("-o", at("./log")), ["-o ", "also read (LOG "]),
            (log().writing("--svg", at("new")).writing("--png", at("./new")), ["--png ", "twice (--svg "]),
            (log().reading("LOG", at("./log")), ["LOG ", "given twice"]),
            (log().writing("-o", at("no/where")), ["-o ", "there is no folder"]),
        ] {
            let message = check(files).unwrap_err();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        // What is not there is not lost.
        assert_eq!(check(Files::default().reading("LOG", at("new")).writing("-o", at("new"))), Ok(()));
    }
}
