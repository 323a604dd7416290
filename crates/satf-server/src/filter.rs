//! Filters over attributes of items: `category = tents and price < 100`.
//!
//! ```text
//! filter     = all { "or" all }
//! all        = one { "and" one }
//! one        = "not" one | "(" filter ")" | comparison
//! comparison = name ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) value
//!            | name [ "not" ] "in" "(" value { "," value } ")"
//! value      = number | "true" | "false" | word | 'text' | "text"
//! ```
//!
//! An item without a value satisfies no comparison but `!=` and `not in`.

use std::fmt;

/// A filter as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Filter {
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    Compare { name: String, comparison: Comparison, value: String },
    In { name: String, values: Vec<String> },
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// What is wrong with a filter, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterError {
    /// Where, in bytes from the beginning.
    at: usize,
    message: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.message)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Symbol(&'static str),
    /// A word that may be a keyword.
    Word(String),
    /// A text in quotes.
    Quoted(String),
}

/// How deep brackets and `not` may go.
const DEEPEST: usize = 32;
/// How many comparisons a filter may have, each value of a list being one.
const MOST: usize = 1_000;

impl Filter {
    pub(crate) fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { tokens: tokens(text)?, next: 0, end: text.len(), comparisons: 0 };
        let filter = parser.any(0)?;
        match parser.peek() {
            None => Ok(filter),
            Some(_) => Err(parser.fault("expected `and`, `or` or the end")),
        }
    }
}

const SYMBOLS: [&str; 9] = ["!=", "<=", ">=", "=", "<", ">", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FilterError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(tokens) };
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push((at, Token::Symbol(symbol)));
            rest = rest.strip_prefix(symbol).unwrap_or_default();
        } else if first == '\'' || first == '"' {
            let (value, after) = quoted(rest, first)
                .ok_or_else(|| FilterError { at, message: format!("a {first} that is never closed") })?;
            tokens.push((at, Token::Quoted(value)));
            rest = after;
        } else {
            let is_end = |letter: char| letter.is_whitespace() || "!<>=(),'\"".contains(letter);
            let length = rest.find(is_end).unwrap_or(rest.len());
            let Some((word, after)) = rest.split_at_checked(length).filter(|(word, _)| !word.is_empty())
            else {
                return Err(FilterError { at, message: format!("'{first}' has no meaning here") });
            };
            tokens.push((at, Token::Word(word.to_owned())));
            rest = after;
        }
    }
}

/// A text in quotes, in which two quotes stand for one, and what follows it.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text.strip_prefix(quote)?;
    loop {
        let (part, after) = rest.split_once(quote)?;
        value.push_str(part);
        match after.strip_prefix(quote) {
            Some(more) => {
                value.push(quote);
                rest = more;
            }
            None => return Some((value, after)),
        }
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
    comparisons: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn fault(&self, message: impl Into<String>) -> FilterError {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        FilterError { at, message: message.into() }
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(found)) if found.eq_ignore_ascii_case(word));
        self.next += usize::from(is_it);
        is_it
    }

    fn takes_symbol(&mut self, symbol: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol);
        self.next += usize::from(is_it);
        is_it
    }

    fn any(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let mut parts = vec![self.all(depth)?];
        while self.takes_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Filter::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let mut parts = vec![self.one(depth)?];
        while self.takes_word("and") {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Filter::All(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if depth > DEEPEST {
            return Err(self.fault(format!("more than {DEEPEST} brackets within each other")));
        }
        if self.takes_word("not") {
            return Ok(Filter::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes_symbol("(") {
            let filter = self.any(depth + 1)?;
            return if self.takes_symbol(")") { Ok(filter) } else { Err(self.fault("expected `)`")) };
        }
        let name = match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => name.clone(),
            _ => return Err(self.fault("expected the name of an attribute, such as category")),
        };
        self.next += 1;
        if self.takes_word("not") {
            return if self.takes_word("in") {
                Ok(Filter::Not(Box::new(self.list(name)?)))
            } else {
                Err(self.fault("expected `in`"))
            };
        }
        if self.takes_word("in") {
            return self.list(name);
        }
        let comparison = match self.peek() {
            Some(Token::Symbol("=")) => Comparison::Equal,
            Some(Token::Symbol("!=")) => Comparison::Unequal,
            Some(Token::Symbol("<")) => Comparison::Less,
            Some(Token::Symbol("<=")) => Comparison::AtMost,
            Some(Token::Symbol(">")) => Comparison::Greater,
            Some(Token::Symbol(">=")) => Comparison::AtLeast,
            _ => return Err(self.fault("expected =, !=, <, <=, >, >= or in")),
        };
        self.next += 1;
        Ok(Filter::Compare { name, comparison, value: self.value()? })
    }

    fn list(&mut self, name: String) -> Result<Filter, FilterError> {
        if !self.takes_symbol("(") {
            return Err(self.fault("expected a list of values in brackets"));
        }
        let mut values = vec![self.value()?];
        while self.takes_symbol(",") {
            values.push(self.value()?);
        }
        if self.takes_symbol(")") {
            Ok(Filter::In { name, values })
        } else {
            Err(self.fault("expected `,` or `)`"))
        }
    }

    /// A value: a text in quotes, or words up to the next keyword or symbol, so that `category = camping gear` needs no quotes.
    fn value(&mut self) -> Result<String, FilterError> {
        self.comparisons += 1;
        if self.comparisons > MOST {
            return Err(self.fault(format!("more than {MOST} comparisons")));
        }
        if let Some(Token::Quoted(value)) = self.peek() {
            let value = value.clone();
            self.next += 1;
            return Ok(value);
        }
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.peek() {
            if ["and", "or"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) {
                break;
            }
            words.push(word.clone());
            self.next += 1;
        }
        if words.is_empty() { Err(self.fault("expected a value")) } else { Ok(words.join(" ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(name: &str, comparison: Comparison, value: &str) -> Filter {
        Filter::Compare { name: name.to_owned(), comparison, value: value.to_owned() }
    }

    #[test]
    fn and_binds_stronger_than_or_and_brackets_than_both() {
        let filter = Filter::parse("a = 1 or b != camping gear AND not (c >= 'it''s' or d<2)").unwrap();
        let inner =
            Filter::Any(vec![compare("c", Comparison::AtLeast, "it's"), compare("d", Comparison::Less, "2")]);
        let expected = Filter::Any(vec![
            compare("a", Comparison::Equal, "1"),
            Filter::All(vec![
                compare("b", Comparison::Unequal, "camping gear"),
                Filter::Not(Box::new(inner)),
            ]),
        ]);
        assert_eq!(filter, expected);
        let list = Filter::parse("kind not in (tent, \"camp, bed\")").unwrap();
        let values = vec!["tent".to_owned(), "camp, bed".to_owned()];
        assert_eq!(list, Filter::Not(Box::new(Filter::In { name: "kind".to_owned(), values })));
    }

    #[test]
    fn faults_say_where() {
        for (text, at) in [
            ("", 1),
            ("price", 6),
            ("price <", 8),
            ("price < 3 price > 2 =", 11 + 6),
            ("(a = 1", 7),
            ("a = 'x", 5),
            ("a in 3", 6),
            ("a in (3", 8),
            ("a ! 3", 3),
            ("= 3", 1),
        ] {
            let error = Filter::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("at character {at}:")), "{text}: {error}");
        }
        assert!(Filter::parse(&"(".repeat(100_000)).is_err());
        assert!(Filter::parse(&"not ".repeat(100_000)).is_err());
        assert!(Filter::parse(&format!("a in ({}1)", "1,".repeat(2_000))).is_err());
    }
}
