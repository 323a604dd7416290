//! A comparison that was to fail if something got worse, and did: an exit code of its own.

use std::error::Error;
use std::fmt;

/// The exit code.
pub(crate) const EXIT_CODE: u8 = 3;

/// What got worse, in words.
#[derive(Debug)]
pub(crate) struct Worse(pub(crate) String);

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Worse {}

/// Whether an error says that something got worse.
pub(crate) fn is_worse(error: &anyhow::Error) -> bool {
    error.chain().any(<dyn Error>::is::<Worse>)
}
