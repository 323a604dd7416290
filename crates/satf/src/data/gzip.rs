//! gzip: one stream after the other, and nothing else after the last.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::error::{TrailingBytes, shown};

/// The first bytes of every stream.
pub(super) const MAGIC: [u8; 2] = [0x1F, 0x8B];

/// The content of all streams of a file. Zeros after the last one fill up blocks of a tape or a disk and say nothing; anything
/// else there is an error.
pub(super) struct Streams<R: BufRead> {
    /// None for a moment only, between two streams.
    current: Option<GzDecoder<R>>,
}

impl<R: BufRead> Streams<R> {
    pub(super) fn new(file: R) -> Self {
        Streams { current: Some(GzDecoder::new(file)) }
    }
}

impl<R: BufRead> Read for Streams<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(stream) = &mut self.current {
            let got = stream.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            self.current = match self.current.take().map(GzDecoder::into_inner) {
                Some(file) => next_stream(file)?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// The stream that comes next; none at the end of the file.
fn next_stream<R: BufRead>(mut file: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let ahead = match file.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            ahead => ahead?,
        };
        let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
        match &ahead[zeros..] {
            [] if zeros == 0 => return Ok(None),
            [] => file.consume(zeros),
            // One byte may be all that is there as yet.
            rest if rest.starts_with(&MAGIC) || rest == &MAGIC[..1] => {
                file.consume(zeros);
                return Ok(Some(GzDecoder::new(file)));
            }
            rest => {
                let begin = shown(&rest[..rest.len().min(16)]);
                return Err(io::Error::new(io::ErrorKind::InvalidData, TrailingBytes { begin }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(file: &[u8], buffer: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        Streams::new(BufReader::with_capacity(buffer, file)).read_to_end(&mut text).map(|_| text)
    }

    #[test]
    fn streams_follow_each_other_with_zeros_between_and_after() {
        let parts =
            [packed(b"one "), packed(b""), vec![0; 700], packed(b"two "), packed(b"three"), vec![0; 5]];
        for buffer in [1, 2, 3, 64, 4096] {
            assert_eq!(unpacked(&parts.concat(), buffer).unwrap(), b"one two three", "{buffer}");
        }
    }

    #[test]
    fn other_bytes_after_the_end_are_told_from_damage() {
        for buffer in [1, 4096] {
            let error = unpacked(&[packed(b"one"), b"more".to_vec()].concat(), buffer).unwrap_err();
            let trailing = error.get_ref().and_then(|error| error.downcast_ref::<TrailingBytes>());
            assert!(trailing.is_some_and(|trailing| trailing.begin.starts_with("\"m")), "{error}");
        }
        let whole = packed(b"some text that takes a few bytes");
        assert_eq!(unpacked(&whole[..whole.len() - 9], 64).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
