//! Lines into fields.
//!
//! A line without a quote is split where it lies in the buffer. Only a record with quotes, which may span lines,
//! goes through the CSV automaton and is copied.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use memchr::{memchr, memchr_iter};

use super::DataError;
use super::error::{Fault, shown};
use super::source::{LONGEST_LINE, Line, Source};
use crate::numbers::counted;

/// What stands between two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Splitting {
    /// One byte, unless it is inside quotes.
    Delimiter(u8),
    /// `::`, and nothing is quoted.
    DoubleColon,
    /// Any run of spaces or tabs, and nothing is quoted.
    Spaces,
}

/// The fields of one row.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    spans: &'a [(usize, usize)],
}

impl<'a> Record<'a> {
    /// How many fields there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    #[inline]
    pub(super) fn field(&self, at: usize) -> &'a [u8] {
        let (start, end) = self.spans[at];
        &self.bytes[start..end]
    }

    /// A field as text, or what is wrong with it.
    pub(super) fn text(&self, at: usize) -> Result<&'a str, Box<Fault>> {
        let field = self.field(at);
        std::str::from_utf8(field).map_err(|_| {
            let (column, found) = (Some((at + 1).to_string().into()), shown(field).into());
            Box::new(Fault { column, found, expected: "valid UTF-8".into(), hint: None })
        })
    }

    /// All fields as texts.
    pub(super) fn texts(&self) -> Result<Vec<String>, Box<Fault>> {
        (0..self.len()).map(|at| self.text(at).map(str::to_owned)).collect()
    }

    /// The row as a whole, for messages.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Takes records from a source one after the other.
pub(super) struct Records {
    splitting: Splitting,
    spans: Vec<(usize, usize)>,
    quoted: Quoted,
}

impl Records {
    pub(super) fn new(splitting: Splitting) -> Self {
        let delimiter = if let Splitting::Delimiter(delimiter) = splitting { delimiter } else { b',' };
        Records { splitting, spans: Vec::new(), quoted: Quoted::new(delimiter) }
    }

    /// The next record, or what is wrong with it, and the line it begins on.
    #[inline]
    #[allow(clippy::type_complexity)]
    pub(super) fn next<'s>(
        &'s mut self,
        source: &'s mut Source<'_>,
    ) -> Result<Option<(u64, Result<Record<'s>, Box<Fault>>)>, DataError> {
        let Some(line) = source.next_line()? else { return Ok(None) };
        let text = source.text(line);
        if memchr(0, text).is_some() {
            return Ok(Some((line.number, Err(Box::new(nul_fault(text))))));
        }
        self.spans.clear();
        match self.splitting {
            Splitting::Delimiter(_) if memchr(b'"', text).is_some() => {
                if let Some(fault) = self.quoted.read(source, line, &mut self.spans)? {
                    return Ok(Some((line.number, Err(Box::new(fault)))));
                }
                // The buffer is longer than what stands in it.
                let bytes = &self.quoted.bytes[..self.spans.last().map_or(0, |(_, end)| *end)];
                return Ok(Some((line.number, Ok(Record { bytes, spans: &self.spans }))));
            }
            Splitting::Delimiter(delimiter) => {
                let mut start = 0;
                for at in memchr_iter(delimiter, text) {
                    self.spans.push((start, at));
                    start = at + 1;
                }
                self.spans.push((start, text.len()));
            }
            Splitting::DoubleColon => {
                let mut start = 0;
                while let Some(length) = find_double_colon(&text[start..]) {
                    self.spans.push((start, start + length));
                    start += length + 2;
                }
                self.spans.push((start, text.len()));
            }
            Splitting::Spaces => {
                let mut start = None;
                for (at, byte) in text.iter().enumerate() {
                    match (byte.is_ascii_whitespace(), start) {
                        (false, None) => start = Some(at),
                        (true, Some(from)) => {
                            self.spans.push((from, at));
                            start = None;
                        }
                        _ => {}
                    }
                }
                self.spans.extend(start.map(|from| (from, text.len())));
            }
        }
        Ok(Some((line.number, Ok(Record { bytes: source.text(line), spans: &self.spans }))))
    }
}

/// Ids are short: a loop beats setting up a substring search.
#[inline]
fn find_double_colon(text: &[u8]) -> Option<usize> {
    text.windows(2).position(|pair| pair == b"::")
}

pub(super) fn nul_fault(text: &[u8]) -> Fault {
    let at = memchr(0, text).unwrap_or(0);
    // Latin letters in UTF-16 have one at every second place.
    let is_utf16 = text.len() > 3 && memchr_iter(0, text).count() * 3 > text.len();
    let expected = if is_utf16 { "text in UTF-8 (this looks like UTF-16: convert it)" } else { "text" };
    Fault::of_line(format!("a NUL byte after {} of {}", counted(at, "byte"), shown(text)), expected)
}

/// Where in a record with quotes the reading is. The automaton takes `"2"x` for 2x in silence; here it is told.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Where a field begins.
    #[default]
    Begin,
    /// In a field that is not quoted: a quote in it is a character like any other.
    Plain,
    /// Between quotes.
    Quoted,
    /// After a quote that ends the field, unless another one follows.
    AfterQuote,
}

impl Place {
    /// Passes over the text of a line; where something follows a closing quote that must not.
    fn pass(&mut self, text: &[u8], delimiter: u8) -> Option<usize> {
        for (at, &byte) in text.iter().enumerate() {
            *self = match (*self, byte) {
                (Place::Quoted, b'"') => Place::AfterQuote,
                (Place::Quoted, _) | (Place::Begin | Place::AfterQuote, b'"') => Place::Quoted,
                (_, byte) if byte == delimiter => Place::Begin,
                (Place::AfterQuote, _) => return Some(at),
                _ => Place::Plain,
            };
        }
        None
    }
}

/// Records with quotes: read through the automaton into a buffer of their own.
struct Quoted {
    delimiter: u8,
    automaton: Reader,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Quoted {
    fn new(delimiter: u8) -> Self {
        let mut quoted =
            Quoted { delimiter, automaton: Reader::new(), bytes: vec![0; 1024], ends: vec![0; 16] };
        quoted.restart();
        quoted
    }

    /// Forgets a record half read.
    fn restart(&mut self) {
        self.automaton = ReaderBuilder::new().delimiter(self.delimiter).build();
        // The automaton passes over a byte-order mark at its very beginning; here that is any record.
        self.automaton.read_record(b"\n", &mut self.bytes, &mut self.ends);
    }

    /// Reads the record that begins with `first`, and as many more lines as its quotes span.
    fn read(
        &mut self,
        source: &mut Source<'_>,
        first: Line,
        spans: &mut Vec<(usize, usize)>,
    ) -> Result<Option<Fault>, DataError> {
        let mut filled = Filled::default();
        let mut place = Place::default();
        let mut line = first;
        let mut length = 0;
        loop {
            let text = source.text(line);
            length += text.len() + 2;
            if length > LONGEST_LINE {
                return Err(source.too_long(first.number));
            }
            if memchr(0, text).is_some() {
                let fault = nul_fault(text);
                self.restart();
                return Ok(Some(fault));
            }
            // A carriage return in the middle of a line has a message of its own.
            if let Some(at) = place.pass(text, self.delimiter).filter(|&at| text[at] != b'\r') {
                let found = format!("{} in {}", shown(&text[at..]), shown(text));
                self.restart();
                let expected =
                    "the end of the field after a closing quote (a quote within quotes is written twice)";
                return Ok(Some(Fault::of_line(found, expected)));
            }
            if self.feed(text, &mut filled) {
                let fault = Fault::of_line(shown(text), "no carriage return inside a line, except in quotes");
                self.restart();
                return Ok(Some(fault));
            }
            // The last line may lack its end; only an open quote needs more than that.
            let ending = if source.ending(line).is_empty() { b"\n" } else { source.ending(line) };
            if self.feed(ending, &mut filled) {
                let mut start = 0;
                spans.extend(
                    self.ends[..filled.ends].iter().map(|&end| (std::mem::replace(&mut start, end), end)),
                );
                return Ok(None);
            }
            let Some(next) = source.next_raw_line()? else {
                let found = format!("the end of the file after {}", shown(&self.bytes[..filled.bytes]));
                self.restart();
                return Ok(Some(Fault::of_line(found, "a closing quote")));
            };
            line = next;
        }
    }

    /// Feeds `input`; whether that completes a record.
    fn feed(&mut self, mut input: &[u8], filled: &mut Filled) -> bool {
        while !input.is_empty() {
            let (result, read, written, ended) = self.automaton.read_record(
                input,
                &mut self.bytes[filled.bytes..],
                &mut self.ends[filled.ends..],
            );
            input = &input[read..];
            filled.bytes += written;
            filled.ends += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
        false
    }
}

/// How much of the automaton's output is in use.
#[derive(Default)]
struct Filled {
    bytes: usize,
    ends: usize,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn records(splitting: Splitting, content: &str) -> Vec<(u64, Result<Vec<String>, String>)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let mut source = Source::open(file.path(), &()).unwrap();
        let mut records = Records::new(splitting);
        let mut all = Vec::new();
        while let Some((line, record)) = records.next(&mut source).unwrap() {
            let record = record
                .map(|record| {
                    (0..record.len())
                        .map(|at| String::from_utf8_lossy(record.field(at)).into_owned())
                        .collect()
                })
                .map_err(|fault| fault.expected.into());
            all.push((line, record));
        }
        all
    }

    fn fields(line: u64, fields: &[&str]) -> (u64, Result<Vec<String>, String>) {
        (line, Ok(fields.iter().map(|&field| field.to_owned()).collect()))
    }

    #[test]
    fn quoted_records_span_lines_and_keep_line_numbers() {
        let content = "a,b\r\n\r\n\"x, \"\"y\"\"\",\"1\r\n\n2\"\r\n\u{feff}c,d\n\u{feff}\"e,\"f\"";
        let expected = vec![
            fields(1, &["a", "b"]),
            fields(3, &["x, \"y\"", "1\r\n\n2"]),
            fields(6, &["\u{feff}c", "d"]),
            fields(7, &["\u{feff}\"e", "f"]),
        ];
        assert_eq!(records(Splitting::Delimiter(b','), content), expected);
    }

    #[test]
    fn an_open_quote_is_a_fault_of_the_line_it_begins_on() {
        let got = records(Splitting::Delimiter(b';'), "a;b\n\"c;d\ne;f\n");
        assert_eq!(got, vec![fields(1, &["a", "b"]), (2, Err("a closing quote".into()))]);
    }

    #[test]
    fn a_nul_byte_is_a_fault_and_the_next_record_is_whole() {
        let got = records(Splitting::Delimiter(b','), "a,\0\n\"b\nc\0\",d\n\"e\",f\n");
        let nul = || Err("text".to_owned());
        assert_eq!(got, vec![(1, nul()), (2, nul()), fields(4, &["e", "f"])]);
    }

    #[test]
    fn other_splittings_quote_nothing() {
        let colons = records(Splitting::DoubleColon, "1::\"a:b::::4\n");
        assert_eq!(colons, vec![fields(1, &["1", "\"a:b", "", "4"])]);
        let pairs = records(Splitting::Spaces, " 1  \"2\t\n3 4");
        assert_eq!(pairs, vec![fields(1, &["1", "\"2"]), fields(2, &["3", "4"])]);
    }
}
