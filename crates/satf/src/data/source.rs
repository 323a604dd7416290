//! A file as a stream of lines: opened, unpacked, counted, never held whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use memchr::{memchr, memchr_iter};

use super::error::{Fault, TrailingBytes, is_cancelled, shown};
use super::foreign::ForeignKind;
use super::waiting::Waiting;
use super::{DataError, gzip};
use crate::monitor::{Monitor, OnlyCancels, check_cancelled};

/// What is read to tell packed files and Parquet from text.
pub(super) const MAGIC_LENGTH: u64 = 4;

/// The most bytes a line, or a quoted record of several lines, may have.
pub(super) const LONGEST_LINE: usize = 16 << 20;

/// The most bytes back that zstd data may refer to, which all are kept in memory: what the decoder allows by itself.
const LARGEST_WINDOW: u64 = 128 << 20;

/// The most bytes of a text that is read whole.
const LARGEST_TEXT: u64 = 256 << 20;

/// The most bytes of a configuration.
const LARGEST_CONFIGURATION: u64 = 16 << 20;

/// How much is read at once: small enough for the cache, large enough to make system calls rare.
const CHUNK: usize = 256 << 10;

/// Where the line read last lies in the buffer: see [`Source::text`].
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// The number of the line, from 1.
    pub(super) number: u64,
    start: usize,
    text_end: usize,
    end: usize,
}

/// What stands behind a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// A file on the disk, which can be opened again.
    File,
    /// A pipe or a terminal, which gives its bytes once, and may be endless.
    Pipe,
    /// A reader of the caller's.
    Reader,
}

/// A log file being read.
pub(super) struct Source<'a> {
    path: PathBuf,
    compression: Option<&'static str>,
    is_parquet: bool,
    backing: Backing,
    reader: Box<dyn Read + Send + 'a>,
    /// Bytes `start..end` are read and not yet handed out.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    line: u64,
    text_bytes: u64,
    monitor: &'a dyn Monitor,
}

impl<'a> Source<'a> {
    pub(super) fn open(path: &Path, monitor: &'a dyn Monitor) -> Result<Self, DataError> {
        let failed = |source| DataError::open(path, source);
        if fs::metadata(path).map_err(failed)?.is_file() {
            let mut source = Source::new(path, File::open(path).map_err(failed)?, monitor)?;
            source.backing = Backing::File;
            return Ok(source);
        }
        // Even opening a pipe waits for whoever writes it.
        let owned = path.to_owned();
        let mut source =
            Source::new(path, Waiting::new(|| File::open(owned), monitor).map_err(failed)?, monitor)?;
        source.backing = Backing::Pipe;
        Ok(source)
    }

    /// The same for a file that may be empty: none then.
    pub(super) fn open_unless_empty(
        path: &Path,
        monitor: &'a dyn Monitor,
    ) -> Result<Option<Self>, DataError> {
        match Source::open(path, monitor) {
            Err(DataError::Empty { .. }) => Ok(None),
            source => source.map(Some),
        }
    }

    /// The same from a reader that may keep us waiting, such as standard input; `path` is what messages call it.
    pub(super) fn from_waiting(
        path: &Path,
        reader: impl Read + Send + 'static,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        let waiting = Waiting::new(|| Ok(reader), monitor);
        let mut source =
            Source::new(path, waiting.map_err(|source| DataError::open(path, source))?, monitor)?;
        source.backing = Backing::Pipe;
        Ok(source)
    }

    /// The same from any other reader.
    pub(super) fn new(
        path: &Path,
        mut file: impl Read + Send + 'a,
        monitor: &'a dyn Monitor,
    ) -> Result<Self, DataError> {
        let mut magic = Vec::new();
        file.by_ref()
            .take(MAGIC_LENGTH)
            .read_to_end(&mut magic)
            .map_err(|source| DataError::open(path, source))?;
        if magic.is_empty() {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        monitor.advance(magic.len() as u64);
        let is_gzip = magic.starts_with(&gzip::MAGIC);
        let is_zstd = is_zstd(&magic);
        let is_parquet = magic == *b"PAR1";
        let file = BufReader::with_capacity(CHUNK, Watched { file, monitor });
        let file = io::Cursor::new(magic).chain(file);
        let (reader, compression): (Box<dyn Read + Send + 'a>, _) = if is_gzip {
            (Box::new(gzip::Streams::new(file)), Some("gzip"))
        } else if is_zstd {
            let decoder = zstd::stream::read::Decoder::with_buffer(file);
            (Box::new(decoder.map_err(|source| DataError::open(path, source))?), Some("zstd"))
        } else {
            (Box::new(file), None)
        };
        let mut source = Source {
            path: path.to_owned(),
            compression,
            is_parquet,
            backing: Backing::Reader,
            reader,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            at_end: false,
            line: 0,
            text_bytes: 0,
            monitor,
        };
        // Parquet is read from its end, not from here.
        while source.end < ForeignKind::TELLING && !source.at_end && !is_parquet {
            source.fill()?;
        }
        if source.end == 0 && !is_parquet {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        if let Some(kind) = ForeignKind::of(&source.buffer[..source.end]).filter(|_| !is_parquet) {
            return Err(DataError::Foreign { path: path.to_owned(), kind });
        }
        if source.buffer[..source.end].starts_with(b"\xEF\xBB\xBF") {
            source.start = 3;
        }
        Ok(source)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file, or what is packed in it, is Parquet.
    pub(super) fn is_parquet(&self) -> bool {
        self.is_parquet || self.buffer[self.start..self.end].starts_with(b"PAR1")
    }

    pub(super) fn backing(&self) -> Backing {
        self.backing
    }

    /// All bytes of a file that is neither compressed nor read yet.
    pub(super) fn into_reader(self) -> Box<dyn Read + Send + 'a> {
        self.reader
    }

    /// How the file is compressed, if it is.
    pub(super) fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// Bytes of text unpacked so far.
    pub(super) fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// The first two bytes that are not blank, left where they are.
    pub(super) fn leading(&mut self) -> Result<[Option<u8>; 2], DataError> {
        loop {
            let unread = &self.buffer[self.start..self.end];
            let mut bytes = unread.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
            let leading = [bytes.next(), bytes.next()];
            if leading[1].is_some() || self.at_end || unread.len() > LONGEST_LINE {
                return Ok(leading);
            }
            self.fill()?;
        }
    }

    /// What is read and not yet handed out, at least a byte of it; empty at the end of the file.
    pub(super) fn chunk(&mut self) -> Result<&[u8], DataError> {
        while self.start == self.end && !self.at_end {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Takes so many bytes of [`Source::chunk`].
    pub(super) fn consume(&mut self, count: usize) {
        let taken = &self.buffer[self.start..self.start + count];
        self.line += memchr_iter(b'\n', taken).count() as u64;
        self.start += count;
    }

    /// How many lines are behind.
    pub(super) fn lines(&self) -> u64 {
        self.line
    }

    /// The next line that is not blank, left where it is; empty at the end of the file.
    pub(super) fn peek_line(&mut self) -> Result<&[u8], DataError> {
        let range = match self.next_line()? {
            Some(line) => {
                self.start = line.start;
                self.line -= 1;
                line.start..line.text_end
            }
            None => self.end..self.end,
        };
        Ok(&self.buffer[range])
    }

    /// The next line that is not blank.
    #[inline]
    pub(super) fn next_line(&mut self) -> Result<Option<Line>, DataError> {
        loop {
            match self.next_raw_line()? {
                Some(line) if is_blank(self.text(line)) => {}
                line => return Ok(line),
            }
        }
    }

    /// The next line, blank or not.
    #[inline]
    pub(super) fn next_raw_line(&mut self) -> Result<Option<Line>, DataError> {
        let (text_end, end) = self.find_line()?;
        let start = self.start;
        if end == start {
            return Ok(None);
        }
        self.start = end;
        self.line += 1;
        Ok(Some(Line { number: self.line, start, text_end, end }))
    }

    /// The text of the line read last, without what ends it.
    #[inline]
    pub(super) fn text(&self, line: Line) -> &[u8] {
        &self.buffer[line.start..line.text_end]
    }

    /// What ends the line read last: `\n`, `\r\n`, or nothing at the end of the file.
    pub(super) fn ending(&self, line: Line) -> &[u8] {
        &self.buffer[line.text_end..line.end]
    }

    /// Reads on until a whole line is in the buffer; where its text and where the line ends (both `start` at the
    /// end of the file).
    fn find_line(&mut self) -> Result<(usize, usize), DataError> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let newline = self.start + searched + at;
                if newline - self.start > LONGEST_LINE {
                    return Err(self.too_long(self.line + 1));
                }
                let has_return = newline > self.start && self.buffer[newline - 1] == b'\r';
                return Ok((newline - usize::from(has_return), newline + 1));
            }
            searched = self.end - self.start;
            if self.at_end {
                return Ok((self.end, self.end));
            }
            if searched > LONGEST_LINE {
                return Err(self.too_long(self.line + 1));
            }
            self.fill()?;
        }
    }

    pub(super) fn too_long(&self, line: u64) -> DataError {
        DataError::LineTooLong { path: self.path.clone(), line, limit: LONGEST_LINE }
    }

    fn fill(&mut self) -> Result<(), DataError> {
        // Here and not with the rows alone: a file may have none, and never end.
        check_cancelled(self.monitor)?;
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        let got = loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(got) => break got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
            }
        };
        self.at_end = got == 0;
        self.end += got;
        self.text_bytes += got as u64;
        Ok(())
    }

    fn failed(&self, error: io::Error) -> DataError {
        let path = self.path.clone();
        let line = self.line;
        let trailing = error.get_ref().and_then(|cause| cause.downcast_ref::<TrailingBytes>());
        match self.compression {
            Some(compression) if trailing.is_some() || self.is_after_zstd(&error) => {
                let begin = trailing.map(|trailing| trailing.begin.as_str().into());
                DataError::Trailing { path, compression, line, begin }
            }
            // The decoder's own words for it; it has no kind.
            Some("zstd") if error.to_string().contains("requires too much memory") => {
                DataError::WindowTooLarge { path, limit: LARGEST_WINDOW }
            }
            Some(compression) if error.kind() == io::ErrorKind::UnexpectedEof => {
                DataError::Truncated { path, compression, line }
            }
            // An error of the system has a number; one of the decoder has not.
            Some(compression) if error.raw_os_error().is_none() && !is_cancelled(&error) => {
                DataError::Corrupt { path, compression, line, reason: error.to_string().into() }
            }
            _ => DataError::open(&path, error),
        }
    }

    /// Whether the zstd decoder met something else than zstd after it had unpacked something.
    fn is_after_zstd(&self, error: &io::Error) -> bool {
        self.compression == Some("zstd")
            && self.text_bytes > 0
            && error.to_string().contains("Unknown frame descriptor")
    }
}

/// What is in a file.
pub(crate) enum Content {
    /// Parquet, which is read from its end, or something with its magic number.
    Parquet,
    /// Everything else: the bytes, unpacked if they were packed, without a byte order mark.
    Bytes(Vec<u8>),
}

/// Reads all of a file, which may be compressed, empty, or a pipe, but no more than `limit` bytes of it. The monitor may stop the reading.
pub(crate) fn read_content(path: &Path, limit: u64, monitor: &dyn Monitor) -> Result<Content, DataError> {
    let monitor = OnlyCancels(monitor);
    let mut content = Vec::new();
    let Some(mut source) = Source::open_unless_empty(path, &monitor)? else {
        return Ok(Content::Bytes(content));
    };
    if source.is_parquet() {
        return Ok(Content::Parquet);
    }
    loop {
        let chunk = source.chunk()?;
        if chunk.is_empty() {
            return Ok(Content::Bytes(content));
        }
        if (content.len() + chunk.len()) as u64 > limit {
            return Err(DataError::TooLarge { path: path.to_owned(), limit });
        }
        content.extend_from_slice(chunk);
        let count = chunk.len();
        source.consume(count);
    }
}

/// Reads a text whole, such as a list of ids: plain, gzip or zstd, from a file or a pipe, without a byte order mark. An empty file is an
/// empty text, and one of more than 256 MiB is refused. The monitor may stop the reading.
pub fn read_text(path: &Path, monitor: &dyn Monitor) -> Result<String, DataError> {
    text_up_to(path, LARGEST_TEXT, monitor)
}

/// Reads a configuration, in the same ways as [`read_text`], but one of more than 16 MiB is refused: parsed, it would take many times as
/// much memory.
pub fn read_configuration(path: &Path, monitor: &dyn Monitor) -> Result<String, DataError> {
    text_up_to(path, LARGEST_CONFIGURATION, monitor)
}

fn text_up_to(path: &Path, limit: u64, monitor: &dyn Monitor) -> Result<String, DataError> {
    let Content::Bytes(content) = read_content(path, limit, monitor)? else {
        return Err(Fault::of_line("a Parquet file", "text").at(path, 1));
    };
    String::from_utf8(content).map_err(|error| {
        let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = memchr_iter(b'\n', valid).count() as u64 + 1;
        let begin = memchr::memrchr(b'\n', valid).map_or(0, |at| at + 1);
        let end = valid.len() + memchr(b'\n', rest).unwrap_or(rest.len());
        Fault::of_line(shown(&error.as_bytes()[begin..end]), "valid UTF-8").at(path, line)
    })
}

/// Whether a file begins as zstd does: with data, or with a frame to skip, which other programs put their notes in.
fn is_zstd(magic: &[u8]) -> bool {
    match magic {
        [0x28, 0xB5, 0x2F, 0xFD] => true,
        [kind, 0x2A, 0x4D, 0x18] => kind & 0xF0 == 0x50,
        _ => false,
    }
}

/// Whether a line is but spaces (tabs are columns, if empty ones).
#[inline]
fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|&byte| byte == b' ' || byte == b'\r')
}

/// A file that tells the monitor how far it got.
struct Watched<'a, R> {
    file: R,
    monitor: &'a dyn Monitor,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(buffer)?;
        self.monitor.advance(got as u64);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(content: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content).unwrap();
        let mut source = Source::open(file.path(), &()).unwrap();
        let mut lines = Vec::new();
        while let Some(line) = source.next_raw_line().unwrap() {
            lines.push((line.number, source.text(line).to_vec()));
        }
        lines
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        let expected = vec![(1, b"a".to_vec()), (2, b"".to_vec()), (3, b"b\r".to_vec()), (4, b"c".to_vec())];
        assert_eq!(lines(b"\xEF\xBB\xBFa\r\n\nb\r\r\nc"), expected);
    }

    #[test]
    fn lines_longer_than_a_chunk_come_whole() {
        let long = vec![b'x'; 3 * CHUNK + 5];
        let mut content = long.clone();
        content.extend(b"\nshort\n");
        content.extend(&long);
        assert_eq!(lines(&content), vec![(1, long.clone()), (2, b"short".to_vec()), (3, long)]);
    }

    #[test]
    fn texts_come_whole_and_without_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let read = |content: &[u8]| {
            let path = folder.path().join("list");
            std::fs::write(&path, content).unwrap();
            read_text(&path, &()).map_err(|error| error.to_string())
        };
        assert_eq!(read(b"").unwrap(), "");
        assert_eq!(read(b"\xEF\xBB\xBFa\r\nb").unwrap(), "a\r\nb");
        let long = "x\n".repeat(CHUNK);
        assert_eq!(read(&zstd::encode_all(long.as_bytes(), 1).unwrap()).unwrap(), long);
        let message = read(b"a\nb\xffc\nd").unwrap_err();
        assert!(message.contains("line 2") && message.contains("\"b\\xffc\""), "{message}");
    }

    #[test]
    fn peeking_passes_blank_lines_and_takes_nothing() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\n  \r\nfirst\nsecond").unwrap();
        let mut source = Source::open(file.path(), &()).unwrap();
        assert_eq!(source.peek_line().unwrap(), b"first");
        assert_eq!(source.peek_line().unwrap(), b"first");
        assert_eq!(source.next_line().unwrap().unwrap().number, 3);
        let second = source.next_line().unwrap().unwrap();
        assert_eq!(source.text(second), b"second");
        assert!(source.next_line().unwrap().is_none());
        assert_eq!(source.peek_line().unwrap(), b"");
    }
}
