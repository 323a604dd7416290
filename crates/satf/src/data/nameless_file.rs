//! Files for what does not fit into memory, which nobody else sees and which vanish with the process.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;

/// Names that are tried before a folder counts as one in which no file can be made.
const ATTEMPTS: usize = 100;

/// A new file in the folder for temporary files, to be written and read.
///
/// Its name is gone before anybody knows it; where the system cannot do that, it goes when the file is closed.
pub(crate) fn nameless_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    for _ in 0..ATTEMPTS {
        // Keys of a new hasher are random.
        let number = RandomState::new().hash_one(std::process::id());
        let path = folder.join(format!(".satf-{number:016x}.tmp"));
        match make(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => {
                let named = |error: io::Error| {
                    io::Error::new(
                        error.kind(),
                        format!("no file can be created in {}: {error}", folder.display()),
                    )
                };
                return outcome.map_err(named);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for a temporary file is taken"))
}

#[cfg(unix)]
fn make(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    // It never follows a link, and nobody else may read it.
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

#[cfg(windows)]
fn make(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    /// Kept in memory if there is room, removed when it is closed.
    const TEMPORARY: u32 = 0x100;
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).share_mode(0);
    options.attributes(TEMPORARY).custom_flags(DELETE_ON_CLOSE).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_no_two_files_are_one() {
        let mut files = [nameless_file().unwrap(), nameless_file().unwrap()];
        for (at, file) in files.iter_mut().enumerate() {
            write!(file, "file {at}").unwrap();
        }
        for (at, file) in files.iter_mut().enumerate() {
            file.seek(SeekFrom::Start(0)).unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("file {at}"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let metadata = files[0].metadata().unwrap();
            assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (0, 0o600));
        }
    }
}
