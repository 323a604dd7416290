//! Who may replace a file: one at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::monitor::{Cancelled, Monitor, check_cancelled};

/// Between two looks whether a file is free.
const WAIT: Duration = Duration::from_millis(20);

/// Held by whoever reads a file in order to replace it ([`write_atomically`](super::write_atomically)): what others write meanwhile would
/// be lost.
///
/// It is an advisory lock on the file itself, by whatever name or link it is reached, and leaves nothing beside it. The system takes it
/// away when the process ends, in whatever way. Readers need none: they see the old file or the new one.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits until nobody else holds the lock of the file at `path`, and calls `waits` once if that takes a while. The monitor may end
    /// the waiting.
    ///
    /// Nothing if there is no such file yet, or where the system has no such locks: whoever has to be sure looks, before the file is
    /// replaced, whether it is still the one that was read.
    pub fn acquire(
        path: &Path,
        monitor: &dyn Monitor,
        waits: impl FnOnce(),
    ) -> Result<Option<FileLock>, Cancelled> {
        let mut waits = Some(waits);
        loop {
            check_cancelled(monitor)?;
            let Some(file) = open(path) else { return Ok(None) };
            match file.try_lock() {
                // Whoever had it before may have replaced the file: then this lock is of one that nobody sees any more.
                Ok(()) if is_at(&file, path) => return Ok(Some(FileLock { _file: file })),
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(_)) => return Ok(None),
            }
            if let Some(waits) = waits.take() {
                waits();
            }
            thread::sleep(WAIT);
        }
    }
}

/// The file, if it can be opened and is a file: a pipe would keep us waiting. Some systems lock only what is open for writing.
#[cfg(unix)]
fn open(path: &Path) -> Option<File> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return None;
    }
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.or_else(|_| File::open(path)).ok()
}

/// Elsewhere a lock keeps the holder itself from reading the file another time.
#[cfg(not(unix))]
fn open(_path: &Path) -> Option<File> {
    None
}

/// Whether a path leads to this very file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (ours, found) = (file.metadata().map(place), fs::metadata(path).map(place));
    matches!((ours, found), (Ok(ours), Ok(found)) if ours == found)
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::data::write_atomically;

    struct Impatient;

    impl Monitor for Impatient {
        fn is_cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn one_after_the_other_each_sees_what_the_one_before_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("sum"), folder.path().join("link"));
        fs::write(&path, "0").unwrap();
        symlink("sum", &link).unwrap();
        let waited = AtomicUsize::new(0);
        let count = || {
            waited.fetch_add(1, Ordering::Relaxed);
        };
        thread::scope(|scope| {
            for path in [&path, &link, &path, &link] {
                scope.spawn(move || {
                    for _ in 0..25 {
                        let lock = FileLock::acquire(path, &(), count).unwrap().unwrap();
                        let sum: u32 = fs::read_to_string(path).unwrap().parse().unwrap();
                        let text = (sum + 1).to_string();
                        write_atomically(path, |file| file.write_all(text.as_bytes())).unwrap();
                        drop(lock);
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "100");
        assert!(waited.load(Ordering::Relaxed) > 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn waiting_ends_on_request_and_what_is_not_there_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(FileLock::acquire(&path, &(), || ()).unwrap().is_none());
        assert!(FileLock::acquire(folder.path(), &(), || ()).unwrap().is_none());
        fs::write(&path, "").unwrap();
        let lock = FileLock::acquire(&path, &(), || ()).unwrap().unwrap();
        assert_eq!(FileLock::acquire(&path, &Impatient, || ()).err(), Some(Cancelled));
        drop(lock);
        assert!(FileLock::acquire(&path, &(), || ()).unwrap().is_some());
    }
}
