//! Input that may keep us waiting: a pipe, a terminal, a file that another program has yet to open.

use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::monitor::{Monitor, check_cancelled};

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// Chunks that are read ahead.
const AHEAD: usize = 4;
/// How long a wish to stop may go unheard.
const TICK: Duration = Duration::from_millis(50);

/// A reader that may block for ever. It is opened and read on a thread of its own, so that a wish to stop is heard meanwhile; the
/// thread stays behind and ends with the process, or with its input.
pub(super) struct Waiting<'a> {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: Cursor<Vec<u8>>,
    monitor: &'a dyn Monitor,
}

impl<'a> Waiting<'a> {
    pub(super) fn new<R: Read + 'static>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        monitor: &'a dyn Monitor,
    ) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(AHEAD);
        thread::Builder::new().name("input".to_owned()).spawn(move || match open() {
            Ok(reader) => forward(reader, &sender),
            Err(error) => drop(sender.send(Err(error))),
        })?;
        Ok(Waiting { chunks, current: Cursor::default(), monitor })
    }
}

/// Sends what is read, until it ends, fails, or nobody wants more.
fn forward(mut reader: impl Read, sender: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let sent = match reader.read(&mut chunk) {
            Ok(0) => return,
            Ok(got) => {
                chunk.truncate(got);
                sender.send(Ok(chunk))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                drop(sender.send(Err(error)));
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

impl Read for Waiting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.current.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            check_cancelled(self.monitor).map_err(io::Error::other)?;
            match self.chunks.recv_timeout(TICK) {
                Ok(chunk) => self.current = Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::data::error::is_cancelled;

    /// Gives numbered chunks, then fails.
    struct Failing(u8);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Err(io::ErrorKind::Interrupted.into()),
                2..=9 => {
                    buffer[..1000].fill(self.0);
                    Ok(1000)
                }
                _ => Err(io::Error::other("broken")),
            }
        }
    }

    #[test]
    fn everything_comes_through_in_order_and_so_do_errors() {
        let mut reader = Waiting::new(|| Ok(Cursor::new(vec![7; 3 * CHUNK + 1])), &()).unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, vec![7; 3 * CHUNK + 1]);

        let mut reader = Waiting::new(|| Ok(Failing(0)), &()).unwrap();
        let mut read = Vec::new();
        let error = reader.read_to_end(&mut read).unwrap_err();
        assert_eq!(error.to_string(), "broken");
        assert_eq!(read, (2..=9).flat_map(|byte| vec![byte; 1000]).collect::<Vec<u8>>());

        let mut reader = Waiting::new(|| Err::<io::Empty, _>(io::ErrorKind::NotFound.into()), &()).unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// Wants to stop when it was asked a few times.
    struct SoonTired(AtomicUsize);

    impl Monitor for SoonTired {
        fn is_cancelled(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) > 2
        }
    }

    #[test]
    fn waiting_ends_when_somebody_wants_to_stop() {
        // A reader that blocks until the test is over.
        struct Blocked(mpsc::Receiver<()>);
        impl Read for Blocked {
            fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(0)
            }
        }
        let (_keep, blocked) = mpsc::channel();
        let monitor = SoonTired(AtomicUsize::new(0));
        let mut reader = Waiting::new(|| Ok(Blocked(blocked)), &monitor).unwrap();
        assert!(is_cancelled(&reader.read(&mut [0; 8]).unwrap_err()));
    }
}
