//! How this program was called, and how it is called again: it may be a binary of its own, or part of an interpreter's process.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

static CALL: OnceLock<Call> = OnceLock::new();

struct Call {
    words: Vec<OsString>,
    again: Vec<OsString>,
}

/// Remembers the words of the command line, the name of the program first, and what starts the program without arguments.
pub(crate) fn set(words: Vec<OsString>, again: Vec<OsString>) {
    // A second call would be of the same process, which was called once.
    let _ = CALL.set(Call { words, again });
}

/// The arguments of this call.
pub(crate) fn arguments() -> &'static [OsString] {
    CALL.get().and_then(|call| call.words.get(1..)).unwrap_or_default()
}

/// This program once more, without arguments; none if it is not known how to start it.
pub(crate) fn again() -> Option<Command> {
    let (program, rest) = CALL.get()?.again.split_first()?;
    let mut command = Command::new(program);
    command.args(rest);
    Some(command)
}
