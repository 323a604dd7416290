//! JSON values one after the other: one per line, or the elements of one list, which may be of any length.

use std::path::Path;

use super::DataError;
use super::error::{Fault, shown};
use super::source::{LONGEST_LINE, Line, Source};

/// The values of a file, one at a time.
pub(super) struct JsonTexts<'a> {
    source: Source<'a>,
    layout: Layout,
}

enum Layout {
    Lines {
        current: Option<Line>,
    },
    /// The elements of a list.
    List {
        element: Vec<u8>,
        is_begun: bool,
        is_over: bool,
    },
}

impl<'a> JsonTexts<'a> {
    pub(super) fn open(mut source: Source<'a>) -> Result<Self, DataError> {
        let layout = if source.leading()?[0] == Some(b'[') {
            Layout::List { element: Vec::new(), is_begun: false, is_over: false }
        } else {
            Layout::Lines { current: None }
        };
        Ok(JsonTexts { source, layout })
    }

    pub(super) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(super) fn text_bytes(&self) -> u64 {
        self.source.text_bytes()
    }

    /// Goes to the next value; the line it begins on, or none at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<Option<u64>, DataError> {
        match &mut self.layout {
            Layout::Lines { current } => {
                *current = self.source.next_line()?;
                Ok(current.map(|line| line.number))
            }
            Layout::List { is_over: true, .. } => Ok(None),
            Layout::List { element, is_begun, is_over } => {
                let line = next_element(&mut self.source, element, is_begun)?;
                *is_over = line.is_none();
                Ok(line)
            }
        }
    }

    /// The value.
    #[inline]
    pub(super) fn text(&self) -> &[u8] {
        match &self.layout {
            Layout::Lines { current } => current.map_or(&[], |line| self.source.text(line)),
            Layout::List { element, .. } => element,
        }
    }
}

/// Reads the next element of a list, and what stands before it; the line it begins on, or none at the end of the list.
fn next_element(
    source: &mut Source<'_>,
    element: &mut Vec<u8>,
    is_begun: &mut bool,
) -> Result<Option<u64>, DataError> {
    let is_first = !std::mem::replace(is_begun, true);
    match skip_blank(source)? {
        Some(b'[') if is_first => source.consume(1),
        Some(b',') if !is_first => source.consume(1),
        Some(b']') if !is_first => return end(source),
        _ => return Err(malformed(source, "a comma and the next element, or the end of the list")),
    }
    match skip_blank(source)? {
        Some(b']') if is_first => end(source),
        Some(b',' | b']' | b'}') | None => Err(malformed(source, "an element of the list")),
        Some(_) => {
            let line = source.lines() + 1;
            read_element(source, element, line)?;
            Ok(Some(line))
        }
    }
}

/// Passes over the end of the list, behind which nothing may stand.
fn end(source: &mut Source<'_>) -> Result<Option<u64>, DataError> {
    source.consume(1);
    match skip_blank(source)? {
        None => Ok(None),
        Some(_) => Err(malformed(source, "nothing after the end of the list")),
    }
}

fn skip_blank(source: &mut Source<'_>) -> Result<Option<u8>, DataError> {
    loop {
        let chunk = source.chunk()?;
        if chunk.is_empty() {
            return Ok(None);
        }
        let blank = chunk.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = chunk.get(blank).copied();
        source.consume(blank);
        if next.is_some() {
            return Ok(next);
        }
    }
}

/// Copies one element, whose parts are checked later; what counts here is where it ends.
fn read_element(source: &mut Source<'_>, element: &mut Vec<u8>, line: u64) -> Result<(), DataError> {
    element.clear();
    let mut scan = Scan::default();
    loop {
        let chunk = source.chunk()?;
        if chunk.is_empty() {
            return Err(malformed(source, "the end of the list"));
        }
        let end = chunk.iter().position(|&byte| scan.ends_before(byte));
        let length = end.unwrap_or(chunk.len());
        element.extend_from_slice(&chunk[..length]);
        source.consume(length);
        if element.len() > LONGEST_LINE {
            return Err(source.too_long(line));
        }
        if end.is_some() {
            return Ok(());
        }
    }
}

/// Where in an element the reading is.
#[derive(Default)]
struct Scan {
    depth: u32,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Scan {
    /// Takes one byte; whether the element ended before it.
    fn ends_before(&mut self, byte: u8) -> bool {
        if self.is_complete {
            return true;
        }
        if self.in_string {
            if self.is_escaped {
                self.is_escaped = false;
            } else if byte == b'\\' {
                self.is_escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
                self.is_complete = self.depth == 0;
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                self.is_complete = self.depth == 0;
            }
            b'}' | b']' | b',' => return self.depth == 0,
            byte if byte.is_ascii_whitespace() => return self.depth == 0,
            _ => {}
        }
        false
    }
}

/// The list itself is broken: what follows cannot be told apart.
fn malformed(source: &mut Source<'_>, expected: &str) -> DataError {
    let (path, line) = (source.path().to_owned(), source.lines() + 1);
    let found = match source.chunk() {
        Ok([]) => "the end of the file".to_owned(),
        Ok(chunk) => shown(&chunk[..chunk.len().min(40)]),
        Err(error) => return error,
    };
    Fault::of_line(found, expected).at(&path, line)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn texts(content: &str) -> Result<Vec<(u64, String)>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let mut texts = JsonTexts::open(Source::open(file.path(), &()).unwrap()).unwrap();
        let mut all = Vec::new();
        while let Some(line) = texts.advance().map_err(|error| error.to_string())? {
            all.push((line, String::from_utf8(texts.text().to_vec()).unwrap()));
        }
        Ok(all)
    }

    #[test]
    fn elements_of_a_list_come_one_by_one_with_their_lines() {
        let content = " [\n {\"a\": \"}\\\"]\"},\n [1,\n [2]] , 7,\"x,\\\\\"\n]\n";
        let expected = [(2, "{\"a\": \"}\\\"]\"}"), (3, "[1,\n [2]]"), (4, "7"), (4, "\"x,\\\\\"")];
        assert_eq!(texts(content).unwrap(), expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(texts("[]").unwrap(), []);
        let long = (0..200_000).map(|at| format!("[{at}],")).collect::<Vec<_>>().concat();
        assert_eq!(texts(&format!("[{long}[1]]")).unwrap().len(), 200_001);
    }

    #[test]
    fn a_broken_list_says_where() {
        for (content, part) in [
            ("[[1]\n[2]]", "line 2: expected a comma"),
            ("[[1],\n", "line 2: expected an element of the list, found the end of the file"),
            ("[[1", "expected the end of the list, found the end of the file"),
            ("[[1]]\n[2]", "line 2: expected nothing after the end of the list"),
            ("[,]", "expected an element"),
        ] {
            let message = texts(content).unwrap_err();
            assert!(message.contains(part), "{content}: {message}");
        }
    }
}
