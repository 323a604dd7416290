//! Command lines that cannot be meant, beyond what their grammar tells: exit code 2, like all that is wrong with a command line.

use std::error::Error;
use std::fmt;

/// What is wrong with a command line, told without looking into any file.
#[derive(Debug)]
pub(crate) struct Misuse(anyhow::Error);

impl Misuse {
    /// An error of the command line, because of this one.
    pub(crate) fn because(error: impl Into<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(Misuse(error.into()))
    }

    /// The same error where a file had to be read to tell: the command line alone is not to blame.
    pub(crate) fn told_by_a_file(mut error: anyhow::Error) -> anyhow::Error {
        loop {
            match error.downcast::<Misuse>() {
                Ok(Misuse(cause)) => error = cause,
                Err(error) => return error,
            }
        }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Misuse {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.chain().nth(1)
    }
}

/// Whether an error is one of the command line.
pub(crate) fn is_misuse(error: &anyhow::Error) -> bool {
    error.chain().any(<dyn Error>::is::<Misuse>)
}

/// An error that the command line alone is to blame for.
pub(crate) trait OnCommandLine<T> {
    /// The same as [`Misuse`].
    fn on_command_line(self) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> OnCommandLine<T> for Result<T, E> {
    fn on_command_line(self) -> anyhow::Result<T> {
        self.map_err(Misuse::because)
    }
}

/// Returns with an error that the command line alone is to blame for.
macro_rules! misuse {
    ($($message:tt)*) => {
        return Err($crate::misuse::Misuse::because(anyhow::anyhow!($($message)*)))
    };
}

pub(crate) use misuse;
