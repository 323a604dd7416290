//! What can be wrong with a space.

use crate::fault::excerpt;
use crate::models::KeyFault;
use crate::numbers::Count;

/// One thing that is wrong with a space.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceFault {
    /// A key that the model does not have.
    #[error(transparent)]
    Key(#[from] KeyFault),
    /// An entry that no space has.
    #[error("unknown entry '{}': expected keys, constraints or summary", excerpt(_0))]
    UnknownEntry(String),
    /// An entry of another type.
    #[error("{entry} = {}: expected {expected}", excerpt(value))]
    Entry {
        /// `summary` or `constraints`.
        entry: &'static str,
        /// What is there.
        value: String,
        /// What should be there.
        expected: &'static str,
    },
    /// No keys at all.
    #[error("no keys: expected a table such as keys.rank = [100, 200]")]
    NoKeys,
    /// Something that is neither a value nor a range.
    #[error("{key} = {}: expected values or ranges", excerpt(value))]
    NoValue {
        /// The key.
        key: String,
        /// What is there.
        value: String,
    },
    /// A range that cannot be read.
    #[error("{key} = {}: {fault}", excerpt(range))]
    Range {
        /// The key.
        key: String,
        /// The range.
        range: String,
        /// What is wrong with it.
        fault: RangeFault,
    },
    /// No value, or too many.
    #[error("{key} has {values} values: expected 1 to {most}")]
    NumValues {
        /// The key.
        key: String,
        /// How many there are.
        values: usize,
        /// The most there may be.
        most: usize,
    },
    /// Several numbers of iterations, which one training scores up to the largest.
    #[error(
        "{key} = [{}]: expected one number, the most iterations; every number up to it is scored",
        excerpt(values)
    )]
    Iterations {
        /// The key.
        key: String,
        /// Its values.
        values: String,
    },
    /// A constraint that is not text.
    #[error("constraint {}: expected a text such as \"a < b\"", excerpt(_0))]
    NotText(String),
    /// A constraint that cannot be read, or does not apply.
    #[error("constraint '{}': {fault}", excerpt(text))]
    Constraint {
        /// The constraint.
        text: String,
        /// What is wrong with it.
        fault: ConstraintFault,
    },
    /// More points than can be counted out.
    #[error("{} points: expected at most {}; take coarser steps", Count::of(*points), Count::of(*most))]
    NumPoints {
        /// How many there are before constraints.
        points: usize,
        /// The most there may be.
        most: usize,
    },
}

/// What is wrong with a range of values.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeFault {
    /// A field that no range has.
    #[error("unknown '{}': expected {{ from, to, step }} or {{ from, to, log }}", excerpt(_0))]
    Unknown(String),
    /// A field that is missing.
    #[error("no '{0}': expected {{ from, to, step }} or {{ from, to, log }}")]
    Missing(&'static str),
    /// Neither `step` nor `log`, or both.
    #[error("expected {{ from, to, step }} or {{ from, to, log }}")]
    StepOrLog,
    /// A field that is not a number.
    #[error("{field} = {}: expected a number", excerpt(value))]
    NotNumber {
        /// The field.
        field: &'static str,
        /// What is there.
        value: String,
    },
    /// A number that is too far from zero, or none at all.
    #[error("{field} = {}: expected a number from -{most:e} to {most:e}", excerpt(value))]
    TooFar {
        /// The field.
        field: &'static str,
        /// What is there.
        value: String,
        /// The farthest that a range may go.
        most: f64,
    },
    /// The upper end comes first.
    #[error("from {from} to {to}: expected the lower end first")]
    Order {
        /// The first end.
        from: f64,
        /// The other.
        to: f64,
    },
    /// A step that leads nowhere, or to too many values.
    #[error("step = {step}: expected above 0, for at most {most} values")]
    Step {
        /// The step.
        step: f64,
        /// The most values there may be.
        most: usize,
    },
    /// A number of values that makes no range.
    #[error("log = {}: expected how many values, 2 to {most}", excerpt(given))]
    Count {
        /// What is there.
        given: String,
        /// The most values there may be.
        most: usize,
    },
    /// A lower end that has no logarithm.
    #[error("from = {0}: expected above 0 for a logarithm")]
    NoLogarithm(f64),
}

/// What is wrong with a constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstraintFault {
    /// A quote without its partner.
    #[error("a quote is not closed")]
    OpenQuote,
    /// A parenthesis without its partner.
    #[error("a parenthesis is not closed")]
    OpenParenthesis,
    /// More words and signs than a condition may have.
    #[error("it is too long: expected at most {most} words and signs")]
    TooLong {
        /// The most there may be.
        most: usize,
    },
    /// More parentheses within each other than a condition may have.
    #[error("its parentheses are too deep: expected at most {most} within each other")]
    TooDeep {
        /// The most there may be.
        most: usize,
    },
    /// Something that has no place there.
    #[error("unexpected {}", excerpt(_0))]
    Unexpected(String),
    /// No comparison where one should be; what is there instead, if anything.
    #[error("{}", expected(found.as_deref(), "<, <=, >, >=, == or !="))]
    NoComparison {
        /// What is there.
        found: Option<String>,
    },
    /// No key or value where one should be; what is there instead, if anything.
    #[error("{}", expected(found.as_deref(), "a key, a number or a \"text\""))]
    NoOperand {
        /// What is there.
        found: Option<String>,
    },
    /// A key without a value.
    #[error("{} has no value here", excerpt(_0))]
    NoKey(String),
    /// Something that cannot be reckoned with.
    #[error("{}: expected numbers", excerpt(_0))]
    NotNumbers(String),
    /// Values that have no order.
    #[error("{} and {} have no order: expected numbers", excerpt(left), excerpt(right))]
    NoOrder {
        /// One of them.
        left: String,
        /// The other.
        right: String,
    },
}

fn expected(found: Option<&str>, what: &str) -> String {
    match found {
        Some(found) => format!("{}: expected {what}", excerpt(found)),
        None => format!("it ends where {what} is expected"),
    }
}
