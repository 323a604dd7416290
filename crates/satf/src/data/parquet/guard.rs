//! The decoder answers some damaged files with a panic: it becomes an error.

use std::cell::Cell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::DataError;

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread decodes Parquet at the moment, so that a panic becomes an error: what a panic hook would print of it helps nobody.
pub fn is_decoding() -> bool {
    IS_DECODING.get()
}

/// Runs a step of the decoder, which answers some damaged files with a panic where it should with an error.
pub(crate) fn guarded<T, E: Display>(
    path: &Path,
    decode: impl FnOnce() -> Result<T, E>,
) -> Result<T, DataError> {
    // A decoder within a decoder: the outer one goes on.
    let is_within = IS_DECODING.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    IS_DECODING.set(is_within);
    match decoded {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(broken(path, in_words(&error.to_string()))),
        Err(_) => Err(broken(path, "it is damaged")),
    }
}

/// What the decoder says in words. After them it may list its own values, and all bytes that it met among them.
fn in_words(error: &str) -> &str {
    let end = [" {", " [", "(["].iter().filter_map(|list| error.find(list)).min().unwrap_or(error.len());
    error[..end].trim_end_matches([':', ' '])
}

pub(super) fn broken(path: &Path, reason: impl Into<Box<str>>) -> DataError {
    DataError::Parquet { path: path.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_decoder_says_ends_where_it_lists_bytes() {
        for (said, words) in [
            ("Parquet error: Corrupt footer", "Parquet error: Corrupt footer"),
            ("External: FromUtf8Error { bytes: [117, 115] }", "External: FromUtf8Error"),
            ("Arrow: invalid: RangeOutOfBounds([1, 2])", "Arrow: invalid: RangeOutOfBounds"),
            ("found: [1, 2]", "found"),
        ] {
            assert_eq!(in_words(said), words);
        }
    }

    #[test]
    fn a_panic_of_the_decoder_is_told_from_others_while_it_decodes() {
        let path = Path::new("log.parquet");
        assert!(!is_decoding());
        let inner = || guarded(path, || -> Result<(), String> { panic!("is_decoding: {}", is_decoding()) });
        let outer = guarded(path, || {
            assert!(inner().is_err() && is_decoding());
            Ok::<_, String>(())
        });
        assert!(outer.is_ok() && !is_decoding());
    }
}
