//! Conditions between the keys of a space, such as `attention_rank < attention_window`.
//!
//! ```text
//! condition  = clause { "or" clause }
//! clause     = part { "and" part }
//! part       = "(" condition ")" | sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum
//! sum        = product { ("+" | "-") product }
//! product    = atom { "*" atom }
//! atom       = number | "text" | true | false | key
//! ```
//!
//! It is read and held by functions that call themselves, so both its length and its depth have a bound.

use std::iter::Peekable;
use std::vec::IntoIter;

use toml::Value;

use super::{ConstraintFault, SpaceFault};

/// A condition that a point must meet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Constraint {
    /// As it was written.
    pub(super) text: String,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Compare(Expression, Comparison, Expression),
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Key(String),
    Literal(Scalar),
    Binary(Box<Expression>, char, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Unequal,
}

/// A value of a key, as conditions see it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Number(f64),
    Text(String),
    Truth(bool),
}

impl Scalar {
    /// What a value is in a condition; none for arrays, tables and times.
    pub(super) fn of(value: &Value) -> Option<Scalar> {
        match value {
            Value::Integer(number) => Some(Scalar::Number(*number as f64)),
            Value::Float(number) => Some(Scalar::Number(*number)),
            Value::String(text) => Some(Scalar::Text(text.clone())),
            Value::Boolean(truth) => Some(Scalar::Truth(*truth)),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Literal(Scalar),
    Sign(&'static str),
}

/// Most words and signs of a condition: a long sum is as deep as it is long.
const MOST_WORDS: usize = 1_000;
/// Most parentheses within each other.
const MOST_NESTED: usize = 50;

const SIGNS: [&str; 11] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "(", ")"];

impl Constraint {
    /// Reads a condition.
    pub(super) fn parse(text: &str) -> Result<Self, SpaceFault> {
        let fail = |fault: ConstraintFault| SpaceFault::Constraint { text: text.to_owned(), fault };
        let tokens = tokens(text).map_err(fail)?;
        let mut parser = Parser { tokens: tokens.into_iter().peekable(), nested: 0 };
        let condition = parser.condition().map_err(fail)?;
        match parser.tokens.next() {
            None => Ok(Constraint { text: text.to_owned(), condition }),
            Some(token) => Err(fail(ConstraintFault::Unexpected(shown(&token)))),
        }
    }

    /// The keys it speaks of.
    pub(super) fn keys(&self) -> Vec<&str> {
        let mut keys = Vec::new();
        self.condition.collect_keys(&mut keys);
        keys
    }

    /// Whether it holds where `value` gives the keys' values.
    pub(super) fn holds<'v>(&self, value: &impl Fn(&str) -> Option<&'v Scalar>) -> Result<bool, SpaceFault> {
        self.condition.holds(value).map_err(|fault| SpaceFault::Constraint { text: self.text.clone(), fault })
    }
}

impl Condition {
    fn collect_keys<'a>(&'a self, keys: &mut Vec<&'a str>) {
        match self {
            Condition::Any(parts) | Condition::All(parts) => {
                for part in parts {
                    part.collect_keys(keys);
                }
            }
            Condition::Compare(left, _, right) => {
                left.collect_keys(keys);
                right.collect_keys(keys);
            }
        }
    }

    fn holds<'v>(&self, value: &impl Fn(&str) -> Option<&'v Scalar>) -> Result<bool, ConstraintFault> {
        match self {
            Condition::Any(parts) => {
                for part in parts {
                    if part.holds(value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::All(parts) => {
                for part in parts {
                    if !part.holds(value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Compare(left, comparison, right) => {
                compare(&left.value(value)?, *comparison, &right.value(value)?)
            }
        }
    }
}

impl Expression {
    fn collect_keys<'a>(&'a self, keys: &mut Vec<&'a str>) {
        match self {
            Expression::Key(key) => keys.push(key),
            Expression::Literal(_) => {}
            Expression::Binary(left, _, right) => {
                left.collect_keys(keys);
                right.collect_keys(keys);
            }
        }
    }

    fn value<'v>(&self, value: &impl Fn(&str) -> Option<&'v Scalar>) -> Result<Scalar, ConstraintFault> {
        match self {
            Expression::Key(key) => value(key).cloned().ok_or_else(|| ConstraintFault::NoKey(key.clone())),
            Expression::Literal(literal) => Ok(literal.clone()),
            Expression::Binary(left, sign, right) => match (left.value(value)?, right.value(value)?) {
                (Scalar::Number(left), Scalar::Number(right)) => Ok(Scalar::Number(match sign {
                    '+' => left + right,
                    '-' => left - right,
                    _ => left * right,
                })),
                (left, right) => Err(ConstraintFault::NotNumbers(format!("{left:?} {sign} {right:?}"))),
            },
        }
    }
}

fn compare(left: &Scalar, comparison: Comparison, right: &Scalar) -> Result<bool, ConstraintFault> {
    match (comparison, left, right) {
        (Comparison::Equal, left, right) => Ok(left == right),
        (Comparison::Unequal, left, right) => Ok(left != right),
        (comparison, Scalar::Number(left), Scalar::Number(right)) => Ok(match comparison {
            Comparison::Less => left < right,
            Comparison::LessEqual => left <= right,
            Comparison::Greater => left > right,
            _ => left >= right,
        }),
        _ => Err(ConstraintFault::NoOrder { left: format!("{left:?}"), right: format!("{right:?}") }),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, ConstraintFault> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            sign.len()
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or(ConstraintFault::OpenQuote)?;
            tokens.push(Token::Literal(Scalar::Text(rest[1..=end].to_owned())));
            end + 2
        } else {
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
            let word = &rest[..end];
            tokens.push(match (word, word.parse::<f64>()) {
                ("", _) => return Err(ConstraintFault::Unexpected(format!("'{first}'"))),
                ("true" | "false", _) => Token::Literal(Scalar::Truth(word == "true")),
                (_, Ok(number)) if first.is_ascii_digit() => Token::Literal(Scalar::Number(number)),
                _ => Token::Word(word.to_owned()),
            });
            end
        };
        if tokens.len() > MOST_WORDS {
            return Err(ConstraintFault::TooLong { most: MOST_WORDS });
        }
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

fn shown(token: &Token) -> String {
    match token {
        Token::Word(word) => format!("'{word}'"),
        Token::Literal(literal) => format!("{literal:?}"),
        Token::Sign(sign) => format!("'{sign}'"),
    }
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
    /// Parentheses that are open.
    nested: usize,
}

impl Parser {
    fn take(&mut self, expected: &Token) -> bool {
        self.tokens.next_if(|token| token == expected).is_some()
    }

    fn condition(&mut self) -> Result<Condition, ConstraintFault> {
        let mut clauses = vec![self.clause()?];
        while self.take(&Token::Word("or".to_owned())) {
            clauses.push(self.clause()?);
        }
        Ok(if clauses.len() == 1 { clauses.remove(0) } else { Condition::Any(clauses) })
    }

    fn clause(&mut self) -> Result<Condition, ConstraintFault> {
        let mut parts = vec![self.part()?];
        while self.take(&Token::Word("and".to_owned())) {
            parts.push(self.part()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn part(&mut self) -> Result<Condition, ConstraintFault> {
        if self.take(&Token::Sign("(")) {
            self.nested += 1;
            if self.nested > MOST_NESTED {
                return Err(ConstraintFault::TooDeep { most: MOST_NESTED });
            }
            let condition = self.condition()?;
            self.nested -= 1;
            return if self.take(&Token::Sign(")")) {
                Ok(condition)
            } else {
                Err(ConstraintFault::OpenParenthesis)
            };
        }
        let left = self.sum()?;
        let comparison = match self.tokens.next() {
            Some(Token::Sign("<")) => Comparison::Less,
            Some(Token::Sign("<=")) => Comparison::LessEqual,
            Some(Token::Sign(">")) => Comparison::Greater,
            Some(Token::Sign(">=")) => Comparison::GreaterEqual,
            Some(Token::Sign("==")) => Comparison::Equal,
            Some(Token::Sign("!=")) => Comparison::Unequal,
            other => return Err(ConstraintFault::NoComparison { found: other.as_ref().map(shown) }),
        };
        Ok(Condition::Compare(left, comparison, self.sum()?))
    }

    fn sum(&mut self) -> Result<Expression, ConstraintFault> {
        let mut sum = self.product()?;
        loop {
            let sign = match self.tokens.peek() {
                Some(Token::Sign("+")) => '+',
                Some(Token::Sign("-")) => '-',
                _ => return Ok(sum),
            };
            self.tokens.next();
            sum = Expression::Binary(Box::new(sum), sign, Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, ConstraintFault> {
        let mut product = self.atom()?;
        while self.take(&Token::Sign("*")) {
            product = Expression::Binary(Box::new(product), '*', Box::new(self.atom()?));
        }
        Ok(product)
    }

    fn atom(&mut self) -> Result<Expression, ConstraintFault> {
        match self.tokens.next() {
            Some(Token::Literal(literal)) => Ok(Expression::Literal(literal)),
            Some(Token::Word(word)) if word != "and" && word != "or" => Ok(Expression::Key(word)),
            other => Err(ConstraintFault::NoOperand { found: other.as_ref().map(shown) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn holds(text: &str, values: &[(&str, Scalar)]) -> Result<bool, String> {
        let values: HashMap<&str, Scalar> = values.iter().cloned().collect();
        let constraint = Constraint::parse(text).map_err(|fault| fault.to_string())?;
        constraint.holds(&|key: &str| values.get(key)).map_err(|fault| fault.to_string())
    }

    #[test]
    fn arithmetic_and_logic_bind_as_usual() {
        let values = [("a", Scalar::Number(2.0)), ("b", Scalar::Number(5.0)), ("on", Scalar::Truth(true))];
        for (text, expected) in [
            ("a < b", true),
            ("a + b * 2 == 12", true),
            ("b - a - 1 == 2", true),
            ("a * b <= 9.5", false),
            ("a == 3 or a == 2 and b == 5", true),
            ("(a == 2 or a == 3) and b != 5", false),
            ("a >= 2 and b > 4", true),
            ("on == true", true),
            ("on == false or on != true", false),
        ] {
            assert_eq!(holds(text, &values), Ok(expected), "{text}");
        }
        assert_eq!(holds("start == 'random'", &[("start", Scalar::Text("random".to_owned()))]), Ok(true));
    }

    #[test]
    fn no_condition_is_too_deep_for_the_stack() {
        let within = |depth: usize| format!("{}a < 1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Constraint::parse(&within(MOST_NESTED)).is_ok());
        let chain = |sign: &str| format!("a < 1{}", format!(" {sign} 1").repeat(100_000));
        for text in
            [within(MOST_NESTED + 1), within(1_000_000), "(".repeat(1_000_000), chain("+"), chain("*")]
        {
            let error = Constraint::parse(&text).unwrap_err().to_string();
            assert!(error.contains("at most") && error.len() < 400, "{error}");
        }
        let longest = format!("a < 1{}", " + 1".repeat(MOST_WORDS / 2 - 2));
        assert_eq!(holds(&longest, &[("a", Scalar::Number(1.0))]), Ok(true));
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        for (text, part) in [
            ("a <", "it ends"),
            ("a b", "expected <"),
            ("a", "it ends"),
            ("(a < 1", "not closed"),
            ("a < 1)", "unexpected ')'"),
            ("a < 'x", "quote"),
            ("a < ?", "unexpected '?'"),
            ("and < 1", "expected a key"),
        ] {
            let error = Constraint::parse(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(text), "{text}: {error}");
        }
        let order = holds("a < 'x'", &[("a", Scalar::Number(1.0))]).unwrap_err();
        assert!(order.contains("no order"), "{order}");
        assert!(holds("a < 1", &[]).unwrap_err().contains("a has no value"));
    }
}
