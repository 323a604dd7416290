//! What is wrong with a value that was given: field, value and what is allowed.

use std::borrow::Cow;
use std::fmt;

/// The most characters that a message repeats of a value.
const LONGEST_EXCERPT: usize = 200;

/// The most faults that a message names.
const MOST_LINES: usize = 50;

/// One wrong field of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {}: expected {expected}", excerpt(value))]
pub struct Fault {
    /// The field's name, as in the configuration file.
    pub field: &'static str,
    /// The value given.
    pub value: String,
    /// What is allowed.
    pub expected: String,
}

impl Fault {
    /// A fault of `field`, which has `value` where `expected` was allowed.
    pub fn new(field: &'static str, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Fault { field, value: value.to_string(), expected: expected.into() }
    }
}

/// The beginning of a value that may be of any length, for a message that people read.
///
/// ```
/// use satf::fault::excerpt;
///
/// assert_eq!(excerpt("rank"), "rank");
/// assert!(excerpt(&"x".repeat(20_000_000)).ends_with("x… (20000000 bytes)"));
/// ```
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_EXCERPT) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… ({} bytes)", &text[..end], text.len())),
    }
}

/// What a parser says of a text, as lines of a message. Below its first line it is a picture of the place, which may be a line of any
/// length: those are cut.
pub fn picture(error: &dyn fmt::Display) -> String {
    let text = error.to_string();
    let lines: Vec<Cow<'_, str>> = text.trim_end().lines().map(excerpt).collect();
    lines.join("\n  ")
}

/// Each fault on an indented line of its own; many are counted.
pub fn lines(faults: &[impl fmt::Display]) -> String {
    let mut text = String::new();
    for fault in faults.iter().take(MOST_LINES) {
        text.push_str(&format!("\n  {fault}"));
    }
    if faults.len() > MOST_LINES {
        text.push_str(&format!("\n  and {} more", faults.len() - MOST_LINES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_says_of_a_long_line_is_short() {
        let text = format!("rank = {}", "[".repeat(1_000_000));
        let message = picture(&text.parse::<toml::Table>().unwrap_err());
        assert!(message.starts_with("TOML parse error at line 1") && message.len() < 2_000, "{message}");
        assert!(message.lines().skip(1).all(|line| line.starts_with("  ")), "{message}");
        let fault = Fault::new("rank", "7".repeat(1_000_000), "less").to_string();
        assert!(fault.starts_with("rank = 777") && fault.len() < 400, "{fault}");
        assert_eq!(lines(&["a", "b"]), "\n  a\n  b");
        let many = lines(&vec!["x"; 1_000_000]);
        assert!(many.ends_with("\n  and 999950 more") && many.len() < 1_000, "{many}");
    }
}
