//! How every file is written: whole or not at all.
//!
//! The content goes into a temporary file beside the file it will be: `.satf-<hash of the name>-<process>-<number>.tmp`. It is
//! locked as long as somebody writes it, and the system takes the lock away when the process ends, in whatever way. So a
//! temporary file without a lock was left by a process that was killed, and whoever writes the same file next removes it;
//! one with a lock is never touched.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Links that lead to links: so many are followed.
const LONGEST_CHAIN: usize = 40;
/// Names that are tried before a folder counts as one in which no file can be made.
const ATTEMPTS: usize = 1000;
const BUFFER: usize = 1 << 18;
/// How often, and how far apart, a process whose memory ran out tries to remove its files.
const LAST_ATTEMPTS: usize = 50;
const LAST_WAIT: Duration = Duration::from_millis(10);

/// The temporary files that this process is writing. Whoever makes, renames or removes one holds the lock.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Numbers temporary files of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a file whole or not at all.
///
/// The content goes into a temporary file beside `path`, which takes the place of `path` once everything is safely on
/// disk. If anything fails the old file stays as it was and the temporary one is removed. A symbolic link stays, and the file it
/// leads to is replaced. A file that is replaced keeps its permissions; a new one has those of any new file. What a process
/// that was killed left of an earlier attempt is removed.
pub fn write_atomically<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let (file, temporary) = Temporary::beside(path)?;
    let mut writer = BufWriter::with_capacity(BUFFER, file);
    let value = write(&mut writer)?;
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Ok(replaced) = fs::metadata(&temporary.target) {
        take_over(&file, &replaced)?;
    }
    file.sync_all()?;
    // The lock goes with the file, after it has its name.
    temporary.finish()?;
    Ok(value)
}

/// Whether [`write_atomically`] could write this file now: asked before long work whose result goes there.
pub fn check_writable(path: &Path) -> io::Result<()> {
    Temporary::beside(path).map(drop)
}

/// Removes the temporary files of everything this process is writing, for a process that ends at once. Writes that
/// are under way can neither fail nor finish afterwards: they wait for the end.
pub fn discard_unfinished() {
    let mut files = unfinished();
    for file in files.drain(..) {
        // What cannot be removed now is removed by whoever writes the same file next.
        let _ = fs::remove_file(file);
    }
    std::mem::forget(files);
}

/// The same for a process whose memory ran out: without asking for any, and without waiting long for a thread that may be the one
/// that calls. Whether the files are gone; if not, whoever writes the same files next removes them.
pub fn discard_unfinished_if_free() -> bool {
    for _ in 0..LAST_ATTEMPTS {
        let files = match UNFINISHED.try_lock() {
            Ok(files) => files,
            Err(sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(sync::TryLockError::WouldBlock) => {
                thread::sleep(LAST_WAIT);
                continue;
            }
        };
        let mut all_gone = true;
        for file in files.iter() {
            all_gone &= fs::remove_file(file).is_ok();
        }
        std::mem::forget(files);
        return all_gone;
    }
    false
}

/// Where a file of this name lies: symbolic links are followed, also to where nothing is yet.
pub(super) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match fs::read_link(&target) {
            Ok(link) => target = folder_of(&target).join(link),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link in a loop of links"))
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A temporary file on its way to its place; removed if it never gets there.
struct Temporary {
    path: PathBuf,
    target: PathBuf,
    is_finished: bool,
}

impl Temporary {
    /// A new file beside `path`, and what becomes of it.
    fn beside(path: &Path) -> io::Result<(File, Temporary)> {
        let target = follow_links(path)?;
        let refused = |reason: &str| io::Error::new(io::ErrorKind::InvalidInput, reason);
        let replaced = fs::metadata(&target).ok();
        if replaced.as_ref().is_some_and(|found| !found.is_file()) {
            return Err(refused("it exists and is not a regular file"));
        }
        let Some(name) = target.file_name().filter(|_| !names_a_folder(&target)) else {
            return Err(refused("it is the name of a folder"));
        };
        let (folder, prefix) = (folder_of(&target), prefix(name));
        remove_leftovers(folder, &prefix);
        let (file, path) = create(folder, &prefix, replaced.as_ref()).map_err(|error| {
            let folder = folder.display();
            let reason = match error.kind() {
                io::ErrorKind::NotFound => format!("there is no folder {folder}"),
                kind => format!("no file can be created in {folder}: {kind}"),
            };
            io::Error::new(error.kind(), reason)
        })?;
        Ok((file, Temporary { path, target, is_finished: false }))
    }

    fn finish(mut self) -> io::Result<()> {
        let mut files = unfinished();
        fs::rename(&self.path, &self.target)?;
        files.retain(|file| *file != self.path);
        drop(files);
        self.is_finished = true;
        sync_folder(folder_of(&self.target))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_finished {
            let mut files = unfinished();
            // There is nobody left to tell.
            let _ = fs::remove_file(&self.path);
            files.retain(|file| *file != self.path);
        }
    }
}

fn names_a_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|&last| std::path::is_separator(char::from(last)))
}

/// What the names of all temporary files of one file begin with. The name itself might leave no room for more.
fn prefix(name: &OsStr) -> String {
    let hash = blake3::hash(name.as_encoded_bytes()).to_hex();
    format!(".satf-{}-", &hash[..16])
}

/// Makes a file of its own, and locks it.
fn create(folder: &Path, prefix: &str, replaced: Option<&Metadata>) -> io::Result<(File, PathBuf)> {
    let process = std::process::id();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // What nobody else may read in the end is not to be read before.
    #[cfg(unix)]
    if let Some(replaced) = replaced {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
        options.mode(replaced.mode() & 0o666);
    }
    #[cfg(not(unix))]
    let _ = replaced;
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{prefix}{process}-{number}.tmp"));
        let listed = path.clone();
        let mut files = unfinished();
        // Memory that runs out does so before the file is there, not between its making and its listing.
        files.reserve(1);
        let file = match options.open(&path) {
            Ok(file) => file,
            // Left by a process of the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        // Between its making and its locking it looks like something left behind, and may be taken for that.
        let is_lost = match file.try_lock() {
            Ok(()) => !is_still_there(&file, &path),
            Err(TryLockError::WouldBlock) => true,
            // Where there are no locks nobody removes what is not theirs.
            Err(TryLockError::Error(_)) => false,
        };
        if !is_lost {
            files.push(listed);
            return Ok((file, path));
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name is taken"))
}

#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |metadata: Metadata| (metadata.dev(), metadata.ino());
    let (ours, found) = (file.metadata().map(place), fs::symlink_metadata(path).map(place));
    matches!((ours, found), (Ok(ours), Ok(found)) if ours == found)
}

#[cfg(not(unix))]
fn is_still_there(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Removes temporary files that nobody writes any more. What cannot be looked at or removed stays: it only takes room.
fn remove_leftovers(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let is_temporary = name.starts_with(prefix.as_bytes()) && name.ends_with(b".tmp");
        if !is_temporary || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        // Some systems lock only what is open for writing.
        let file = OpenOptions::new().write(true).open(&path).or_else(|_| File::open(&path));
        // Whoever still writes it has the lock. It is held until the file is gone, so that nobody begins to write it meanwhile.
        if let Ok(file) = file
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Gives a file the permissions of the one it replaces and, as far as that is allowed, its owner and group.
#[cfg(unix)]
fn take_over(file: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata()?;
    let (user, group) = (replaced.uid(), replaced.gid());
    if (own.uid(), own.gid()) != (user, group) && fchown(file, Some(user), Some(group)).is_err() {
        // Only the superuser gives files away, but a group may be one of the user's own.
        let _ = fchown(file, None, Some(group));
    }
    if own.mode() == replaced.mode() { Ok(()) } else { file.set_permissions(replaced.permissions()) }
}

#[cfg(not(unix))]
fn take_over(_file: &File, _replaced: &Metadata) -> io::Result<()> {
    Ok(())
}

/// A new name is safe only once the folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    // A folder that may be written but not read cannot be synced; the file is in its place all the same.
    let Ok(folder) = File::open(folder) else { return Ok(()) };
    match folder.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        outcome => outcome,
    }
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    fn write(path: &Path, content: &[u8]) -> io::Result<()> {
        write_atomically(path, |file| file.write_all(content))
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_others_write_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let left = folder.path().join(format!("{}1-0.tmp", prefix(OsStr::new("log.csv"))));
        let of_another_file = folder.path().join(format!("{}1-0.tmp", prefix(OsStr::new("other.csv"))));
        fs::write(&left, "half").unwrap();
        fs::write(&of_another_file, "half").unwrap();
        // Two writers at once: each finishes, and neither takes the other's file for something left behind.
        write_atomically(&path, |outer| {
            outer.write_all(b"outer")?;
            write(&path, b"inner")?;
            assert_eq!(fs::read(&path)?, b"inner");
            io::Result::Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"outer");
        let other = of_another_file.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(names(folder.path()), [other, "log.csv".to_owned()]);
    }

    #[test]
    fn names_of_any_length_and_only_names_of_files() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("x".repeat(255)), b"long").unwrap();
        assert_eq!(names(folder.path()), ["x".repeat(255)]);
        for (name, reason) in [("", "regular file"), ("new/", "name of a folder"), ("no/where", "no folder")]
        {
            let message = check_writable(&folder.path().join(name)).unwrap_err().to_string();
            assert!(message.contains(reason), "{name}: {message}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_lead_to_what_is_written() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/second", at("first")).unwrap();
        symlink("../file", at("deep/second")).unwrap();
        // First where nothing is yet, then over what is there.
        for content in [b"new", b"old"] {
            write(&at("first"), content).unwrap();
            assert_eq!(fs::read(at("file")).unwrap(), content);
            assert!(at("first").is_symlink() && at("deep/second").is_symlink() && !at("file").is_symlink());
        }
        assert_eq!(names(folder.path()), ["deep", "file", "first"]);
        assert_eq!(names(&at("deep")), ["second"]);
        symlink("loop", at("loop")).unwrap();
        assert!(write(&at("loop"), b"x").unwrap_err().to_string().contains("loop of links"));
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay_with_the_file_and_new_files_have_the_usual_ones() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let (plain, ours) = (folder.path().join("plain"), folder.path().join("ours"));
        fs::write(&plain, "").unwrap();
        write(&ours, b"1").unwrap();
        assert_eq!(mode(&ours), mode(&plain));
        for kept in [0o600, 0o640, 0o664, 0o444, 0o755] {
            fs::set_permissions(&ours, fs::Permissions::from_mode(kept)).unwrap();
            write_atomically(&ours, |file| {
                // Nobody else may look into the file while it is written either.
                assert_eq!(file.get_ref().metadata()?.permissions().mode() & 0o7777 & !kept, 0, "{kept:o}");
                file.write_all(b"2")
            })
            .unwrap();
            assert_eq!(mode(&ours), kept, "{kept:o}");
        }
    }
}
