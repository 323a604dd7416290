//! A reader of one Python dictionary, as `repr` of Python 2 or 3 writes it.
//!
//! Keys and values are handed out as they lie in the line; a string is spelled out only where it has escapes and
//! only if somebody wants it. Lists, tuples, sets and nested dictionaries are passed over.

use memchr::memchr2;

use super::field::Field;

/// How deep brackets may nest.
const DEEPEST: usize = 128;

/// What is wrong with a literal, and at which byte (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

/// A value of the dictionary.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// The key did not occur.
    Missing,
    /// A string as it stands between its quotes.
    Text { raw: &'a [u8], has_escapes: bool, at: usize },
    /// Anything else.
    Other(Field<'a>),
}

impl<'a> Value<'a> {
    /// The value itself; `spelled` holds a string that had escapes.
    #[inline]
    pub(super) fn field(self, spelled: &'a mut Vec<u8>) -> Result<Field<'a>, SyntaxError> {
        match self {
            Value::Missing => Ok(Field::Missing),
            Value::Other(field) => Ok(field),
            Value::Text { raw, has_escapes: false, .. } => Ok(Field::Text(raw)),
            Value::Text { raw, at, .. } => {
                spelled.clear();
                spell_out(raw, spelled)
                    .map_err(|error| SyntaxError { what: error.what, at: at + error.at })?;
                Ok(Field::Text(spelled))
            }
        }
    }
}

/// A dictionary being read: [`Dictionary::next_key`], then one of the two ways to take its value, and so on.
pub(super) struct Dictionary<'a> {
    text: &'a [u8],
    at: usize,
    is_first: bool,
}

impl<'a> Dictionary<'a> {
    pub(super) fn open(text: &'a [u8]) -> Result<Self, SyntaxError> {
        let mut dictionary = Dictionary { text, at: 0, is_first: true };
        dictionary.pass_spaces();
        dictionary.expect(b'{', "expected {")?;
        Ok(dictionary)
    }

    /// The next key as it stands between its quotes, or none at the end of the dictionary.
    #[inline]
    pub(super) fn next_key(&mut self) -> Result<Option<&'a [u8]>, SyntaxError> {
        self.pass_spaces();
        if !self.is_first && self.peek() != Some(b'}') {
            self.expect(b',', "expected , or }")?;
            self.pass_spaces();
        }
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.pass_spaces();
            return if self.at == self.text.len() { Ok(None) } else { Err(self.error("text after the end")) };
        }
        self.is_first = false;
        self.pass_prefix();
        if !matches!(self.peek(), Some(b'\'' | b'"')) {
            return Err(self.error("expected a string as key"));
        }
        let (key, _) = self.string()?;
        self.pass_spaces();
        self.expect(b':', "expected :")?;
        self.pass_spaces();
        Ok(Some(key))
    }

    /// The value of the key just read.
    #[inline]
    pub(super) fn next_value(&mut self) -> Result<Value<'a>, SyntaxError> {
        let is_bytes = matches!(self.peek(), Some(b'b' | b'B'));
        self.pass_prefix();
        match self.peek() {
            Some(b'\'' | b'"') => {
                let at = self.at + 1;
                let (raw, has_escapes) = self.string()?;
                if is_bytes {
                    return Ok(Value::Other(Field::Other("a bytes literal")));
                }
                Ok(Value::Text { raw, has_escapes, at })
            }
            Some(b'[' | b'(' | b'{') => {
                self.pass_brackets()?;
                Ok(Value::Other(Field::Other("a list, tuple or dictionary")))
            }
            _ => self.word().map(Value::Other),
        }
    }

    /// Passes over the value of the key just read.
    #[inline]
    pub(super) fn skip_value(&mut self) -> Result<(), SyntaxError> {
        self.next_value().map(|_| ())
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn error(&self, what: &'static str) -> SyntaxError {
        SyntaxError { what, at: self.at }
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), SyntaxError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.error(what))
        }
    }

    #[inline]
    fn pass_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes the `u` or `b` before a quote.
    #[inline]
    fn pass_prefix(&mut self) {
        if let [b'u' | b'U' | b'b' | b'B', b'\'' | b'"', ..] = self.text[self.at..] {
            self.at += 1;
        }
    }

    /// What stands between the quotes here, and whether it has escapes.
    #[inline]
    fn string(&mut self) -> Result<(&'a [u8], bool), SyntaxError> {
        let opened = self.at;
        let quote = self.text[opened];
        let start = opened + 1;
        let mut at = start;
        let mut has_escapes = false;
        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            let Some(found) = memchr2(quote, b'\\', rest) else {
                return Err(self.error("a string without end"));
            };
            if rest[found] == quote {
                self.at = at + found + 1;
                return Ok((&self.text[start..at + found], has_escapes));
            }
            has_escapes = true;
            at += found + 2;
        }
    }

    /// Passes over everything up to the bracket that closes the one here.
    fn pass_brackets(&mut self) -> Result<(), SyntaxError> {
        let mut open = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.error("a bracket without end")),
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(bracket @ (b'[' | b'(' | b'{')) => {
                    if open.len() == DEEPEST {
                        return Err(self.error("brackets nested too deep"));
                    }
                    open.push(match bracket {
                        b'[' => b']',
                        b'(' => b')',
                        _ => b'}',
                    });
                }
                Some(bracket @ (b']' | b')' | b'}')) => {
                    if open.pop() != Some(bracket) {
                        return Err(self.error("a bracket that closes another"));
                    }
                    if open.is_empty() {
                        self.at += 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
            self.at += 1;
        }
    }

    /// A number, `True`, `False`, `None`, `nan` or `inf`.
    fn word(&mut self) -> Result<Field<'a>, SyntaxError> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-' | b'_');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let field = parse_word(&rest[..length]).ok_or_else(|| self.error("expected a value"))?;
        self.at += length;
        Ok(field)
    }
}

fn parse_word(word: &[u8]) -> Option<Field<'static>> {
    match word {
        b"None" => return Some(Field::Other("None")),
        b"True" => return Some(Field::Other("True")),
        b"False" => return Some(Field::Other("False")),
        _ => {}
    }
    let word = std::str::from_utf8(word).ok()?;
    // Python 2 wrote long integers as `7L`.
    let digits = word.strip_suffix('L').unwrap_or(word);
    if let Ok(number) = digits.parse::<i64>() {
        return Some(Field::Integer(number));
    }
    if let Ok(number) = digits.parse::<u64>() {
        return Some(Field::Unsigned(number));
    }
    word.parse().ok().map(Field::Float)
}

/// Appends the string whose source text is `raw` to `out`.
fn spell_out(raw: &[u8], out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &raw[at..]) {
        out.extend_from_slice(&raw[at..at + found]);
        at += found;
        let error = |what| SyntaxError { what, at };
        let Some(&kind) = raw.get(at + 1) else { return Err(error("a backslash without anything after it")) };
        let simple = match kind {
            b'\\' | b'\'' | b'"' => Some(kind),
            b'n' => Some(b'\n'),
            b't' => Some(b'\t'),
            b'r' => Some(b'\r'),
            b'a' => Some(0x07),
            b'b' => Some(0x08),
            b'f' => Some(0x0C),
            b'v' => Some(0x0B),
            _ => None,
        };
        if let Some(byte) = simple {
            out.push(byte);
            at += 2;
            continue;
        }
        let (code, length) = match kind {
            b'x' => (hexadecimal(raw, at + 2, 2), 4),
            b'u' => match (hexadecimal(raw, at + 2, 4), raw.get(at + 6..at + 8)) {
                // Two halves of one character.
                (Some(high @ 0xD800..0xDC00), Some(b"\\u")) => match hexadecimal(raw, at + 8, 4) {
                    Some(low @ 0xDC00..0xE000) => {
                        (Some(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 12)
                    }
                    _ => (None, 6),
                },
                (code, _) => (code, 6),
            },
            b'U' => (hexadecimal(raw, at + 2, 8), 10),
            b'0'..=b'7' => {
                let digits = raw[at + 1..].iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7'));
                let (code, length) = digits
                    .fold((0, 0), |(code, length), digit| (8 * code + u32::from(digit - b'0'), length + 1));
                (Some(code), 1 + length)
            }
            b'N' => return Err(error("characters by name (\\N{...}) are not supported")),
            _ => {
                // Python keeps the backslash of an escape it does not know.
                out.push(b'\\');
                at += 1;
                continue;
            }
        };
        let character =
            code.and_then(char::from_u32).ok_or_else(|| error("an escape that is not a character"))?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        at += length;
    }
    out.extend_from_slice(&raw[at..]);
    Ok(())
}

fn hexadecimal(raw: &[u8], at: usize, length: usize) -> Option<u32> {
    raw.get(at..at + length)?.iter().try_fold(0u32, |code, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        code.checked_mul(16)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<(String, String)>, &'static str> {
        let mut all = Vec::new();
        let mut dictionary = Dictionary::open(text.as_bytes()).map_err(|error| error.what)?;
        while let Some(key) = dictionary.next_key().map_err(|error| error.what)? {
            let value = dictionary.next_value().map_err(|error| error.what)?;
            let mut spelled = Vec::new();
            let shown = match value.field(&mut spelled).map_err(|error| error.what)? {
                Field::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
                other => other.shown(),
            };
            all.push((String::from_utf8_lossy(key).into_owned(), shown));
        }
        Ok(all)
    }

    fn spelled(raw: &str) -> Result<String, &'static str> {
        values(&format!("{{u'k': u'{raw}'}}")).map(|all| all[0].1.trim_matches('\'').to_owned())
    }

    #[test]
    fn a_review_of_steam_is_read() {
        let line = r#" {u'username': u'Chaos Syren', u'hours': 0.1, u'products': 41L, "product_id": "it's", u'page': -1, u'none': None, 'x': [u'}', {1: (2, "]")}], u'early_access': False, } "#;
        let all = values(line).unwrap();
        let shown: Vec<_> = all.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = [
            "username='Chaos Syren'",
            "hours=0.1",
            "products=41",
            "product_id='it's'",
            "page=-1",
            "none=None",
            "x=a list, tuple or dictionary",
            "early_access=False",
        ];
        assert_eq!(shown, expected);
        assert_eq!(values("{}").unwrap(), []);
    }

    #[test]
    fn every_escape_is_spelled_out() {
        assert_eq!(spelled(r"a\\b\'c\x22\t\n\r").unwrap(), "a\\b'c\"\t\n\r");
        assert_eq!(spelled(r"\xe9\u20ac\U0001f600\101\0z\7").unwrap(), "é€😀A\0z\u{7}");
        assert_eq!(spelled(r"\ud83d\ude00").unwrap(), "😀");
        assert_eq!(spelled(r"\d\q").unwrap(), r"\d\q");
        assert_eq!(spelled("straight é").unwrap(), "straight é");
        for raw in
            [r"\ud83d", r"\ud83dx", r"\ude00\ud83d", r"\x1", r"\u12", r"\U00110000", r"\N{DASH}", r"\xzz"]
        {
            assert!(spelled(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn broken_dictionaries_are_refused() {
        for text in [
            "",
            "{",
            "}",
            "[]",
            "{1: 2}",
            "{'a'}",
            "{'a': }",
            "{'a': 1",
            "{'a': 1}}",
            "{'a': 1} x",
            "{'a' 1}",
            "{'a': 'b}",
            "{'a': 'b\\",
            "{'a': [(])}",
            "{'a': [",
            "{'a': word}",
            "{'a': 1 'b': 2}",
            "{,}",
            "{'a': 'x\\'}",
            "{'a': \"b'}",
        ] {
            assert!(values(text).is_err(), "{text}");
        }
        let deep = format!("{{'a': {}1{}}}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(values(&deep), Err("brackets nested too deep"));
    }
}
