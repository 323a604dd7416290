//! What is wrong with a value that was given: field, value and what is allowed.

use std::fmt;

/// One wrong field of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} = {value}: expected {expected}")]
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

/// Each fault on an indented line of its own.
pub(crate) fn lines(faults: &[impl fmt::Display]) -> String {
    use fmt::Write;
    faults.iter().fold(String::new(), |mut text, fault| {
        write!(text, "\n  {fault}").expect("invariant: writing to a string does not fail");
        text
    })
}
