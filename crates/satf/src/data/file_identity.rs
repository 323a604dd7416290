//! Which file a path names.

use std::fs;
use std::io;
use std::path::Path;

use super::atomic_file::{folder_of, follow_links};

/// Which file a path names, whatever it is called: equal for two paths to one file, through links or not.
///
/// A file that is not there yet is known by its folder and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity(Place);

#[cfg(unix)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// Device and number on it.
    File(u64, u64),
    /// Device and number of the folder, and the name in it.
    Unmade(u64, u64, std::ffi::OsString),
}

#[cfg(not(unix))]
type Place = std::path::PathBuf;

impl FileIdentity {
    /// The file that standard output goes to, if it is one and not a terminal, a pipe or a device.
    pub fn of_stdout() -> Option<Self> {
        #[cfg(unix)]
        return FileIdentity::of_stream(&io::stdout());
        #[cfg(not(unix))]
        None
    }

    /// The same of standard error.
    pub fn of_stderr() -> Option<Self> {
        #[cfg(unix)]
        return FileIdentity::of_stream(&io::stderr());
        #[cfg(not(unix))]
        None
    }

    #[cfg(unix)]
    fn of_stream(stream: &impl std::os::fd::AsFd) -> Option<Self> {
        let stream = stream.as_fd().try_clone_to_owned().ok()?;
        let metadata = fs::File::from(stream).metadata().ok()?;
        if metadata.is_file() { FileIdentity::of_file(Path::new(""), &metadata).ok() } else { None }
    }

    /// The file at `path`. An error if it is not there and its folder is not either, or may not be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(metadata) => FileIdentity::of_file(path, &metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => FileIdentity::of_new(path),
            Err(error) => Err(error),
        }
    }
}

impl FileIdentity {
    /// The place that a path names: its folder and the name in it, links followed. Unlike for [`FileIdentity::of`], two names of one file
    /// (hard links) are two places: whoever replaces the file at one of them leaves the other.
    pub fn of_place(path: &Path) -> io::Result<Self> {
        FileIdentity::of_new(path)
    }
}

#[cfg(unix)]
impl FileIdentity {
    #[allow(clippy::unnecessary_wraps, reason = "other systems may fail here")]
    fn of_file(_path: &Path, metadata: &fs::Metadata) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        Ok(FileIdentity(Place::File(metadata.dev(), metadata.ino())))
    }

    fn of_new(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let target = follow_links(path)?;
        let folder = fs::metadata(folder_of(&target))?;
        let name = target.file_name().unwrap_or_default().to_owned();
        Ok(FileIdentity(Place::Unmade(folder.dev(), folder.ino(), name)))
    }
}

#[cfg(not(unix))]
impl FileIdentity {
    fn of_file(path: &Path, _metadata: &fs::Metadata) -> io::Result<Self> {
        fs::canonicalize(path).map(FileIdentity)
    }

    fn of_new(path: &Path) -> io::Result<Self> {
        let target = follow_links(path)?;
        let folder = fs::canonicalize(folder_of(&target))?;
        Ok(FileIdentity(folder.join(target.file_name().unwrap_or_default())))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn one_file_has_one_identity_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("log"), "").unwrap();
        fs::write(at("other"), "").unwrap();
        fs::hard_link(at("log"), at("hard")).unwrap();
        symlink("../log", at("deep/link")).unwrap();
        symlink("deep", at("folder")).unwrap();
        symlink("deep/new", at("unmade")).unwrap();
        let same = |one: &str, other: &str| {
            FileIdentity::of(&at(one)).unwrap() == FileIdentity::of(&at(other)).unwrap()
        };
        for name in ["hard", "deep/link", "folder/link", "./deep/../log"] {
            assert!(same("log", name), "{name}");
        }
        assert!(!same("log", "other"));
        // Files that are not there yet.
        assert!(same("deep/new", "folder/new") && same("unmade", "deep/new"));
        assert!(!same("deep/new", "new") && !same("deep/new", "deep/newer"));
        assert!(FileIdentity::of(&at("nowhere/new")).is_err());
        // Places: symbolic links lead to one, hard links are others.
        let place = |name: &str| FileIdentity::of_place(&at(name)).unwrap();
        for name in ["deep/link", "folder/link", "./deep/../log"] {
            assert_eq!(place("log"), place(name), "{name}");
        }
        assert_ne!(place("log"), place("hard"));
    }
}
