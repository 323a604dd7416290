//! What was done is kept: one file per finished cell, whole or not at all.
//!
//! A cell's name is for people; what decides whether it still holds is the identity in it, a hash of everything its result
//! depends on. A cell that is damaged, or that is the answer to another question, is done again. A file that does not begin as a cell does
//! is somebody's own, and is not written over.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use satf::data::{NewFolder, write_atomically};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ReproduceError;

/// What a cell looks like; a later format gets a higher number, and older cells are done again.
const FORMAT: u64 = 1;

/// Where unfinished training is kept, among the cells.
const CHECKPOINTS: &str = ".checkpoints";

/// Who has it open is alone.
const LOCK: &str = ".lock";

/// The folder of cells, held by this process.
pub(crate) struct Store {
    folder: PathBuf,
    made: NewFolder,
    /// Whether the lock was not there before.
    is_lock_new: bool,
    /// Keeps other processes out until it is dropped, or the process ends.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct CellFile<T> {
    format: u64,
    identity: String,
    /// What the identity is the hash of, for people.
    asked: Value,
    /// Wall-clock seconds it took.
    seconds: f64,
    result: T,
}

/// A finished cell.
#[derive(Clone, Debug)]
pub(crate) struct Cell<T> {
    pub(crate) result: T,
    pub(crate) seconds: f64,
}

impl Store {
    /// Opens the store in `out`, or begins it.
    pub(crate) fn open(out: &Path) -> Result<Store, ReproduceError> {
        let folder = out.join("cells");
        let unusable = |path: &Path, problem| {
            let path = path.to_owned();
            move |source| ReproduceError::Folder { path, problem, source }
        };
        let made = NewFolder::make(&folder).map_err(unusable(&folder, "cannot create the folder"))?;
        let path = folder.join(LOCK);
        let is_lock_new = !path.exists();
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(unusable(&folder, "cannot write here"))?;
        match lock.try_lock() {
            Ok(()) => {
                remove_torn(&folder);
                Ok(Store { folder, made, is_lock_new, _lock: lock })
            }
            Err(TryLockError::WouldBlock) => Err(ReproduceError::Busy(folder)),
            Err(TryLockError::Error(error)) => Err(unusable(&path, "cannot lock")(error)),
        }
    }

    /// Leaves nothing behind if no cell was begun: what else is here is somebody's own.
    pub(crate) fn leave(&self) {
        let is_ours = |entry: fs::DirEntry| {
            let is_cell =
                || fs::read(entry.path()).is_ok_and(|text| !text.is_empty() && begins_as_a_cell(&text));
            entry.file_name() == CHECKPOINTS || (entry.file_name() != LOCK && is_cell())
        };
        let mut entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_used = entries.any(is_ours);
        let is_alone = fs::read_dir(&self.folder).is_ok_and(|entries| entries.count() == 1);
        if !is_used && (self.is_lock_new || is_alone) {
            // Without it nobody waits for us, and nothing is here to be guarded.
            let _ = fs::remove_file(self.folder.join(LOCK));
            self.made.remove_if_empty();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// The folder in which unfinished training of a cell is kept.
    pub(crate) fn checkpoints(&self, name: &str) -> PathBuf {
        self.folder.join(CHECKPOINTS).join(name)
    }

    /// Removes what was kept of the training of a cell that is done. If that fails, nothing but room is lost.
    pub(crate) fn forget_checkpoints(&self, name: &str) {
        let _ = fs::remove_dir_all(self.checkpoints(name));
        // It goes once it is empty.
        let _ = fs::remove_dir(self.folder.join(CHECKPOINTS));
    }

    /// The cell `name`, if it is there, whole, and the answer to what is asked now. An error if something else is in its place.
    pub(crate) fn find<T: DeserializeOwned>(
        &self,
        name: &str,
        asked: &Value,
    ) -> Result<Option<Cell<T>>, ReproduceError> {
        let path = self.path(name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                tracing::warn!("{}: {error}; it is computed again", path.display());
                return Ok(None);
            }
        };
        if !begins_as_a_cell(&text) {
            return Err(ReproduceError::Foreign(path));
        }
        // The identity comes before the result: a cell of another question need not have a result we can read.
        let cell = serde_json::from_slice::<CellFile<Value>>(&text);
        Ok(match cell {
            Ok(cell) if cell.format != FORMAT || cell.identity != identity(asked) => {
                tracing::debug!(
                    "{}: was made from other data, settings or release; it is computed again",
                    path.display()
                );
                None
            }
            Ok(cell) => match serde_json::from_value(cell.result) {
                Ok(result) => Some(Cell { result, seconds: cell.seconds }),
                Err(error) => damaged(&path, &error),
            },
            Err(error) => damaged(&path, &error),
        })
    }

    /// Keeps a cell. It is safely on disk when this returns, and is returned as it will be read back.
    pub(crate) fn keep<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        asked: &Value,
        result: T,
        seconds: f64,
    ) -> Result<Cell<T>, ReproduceError> {
        let path = self.path(name);
        let cell =
            CellFile { format: FORMAT, identity: identity(asked), asked: asked.clone(), seconds, result };
        let cell = write_cell(&path, &cell).map_err(|source| ReproduceError::Keep { path, source })?;
        Ok(Cell { result: cell.result, seconds: cell.seconds })
    }
}

/// Writes a cell and returns it as it is read: a run that goes on has to see what one that comes back will see.
fn write_cell<T: Serialize + DeserializeOwned>(path: &Path, cell: &CellFile<T>) -> io::Result<CellFile<T>> {
    let text = serde_json::to_string_pretty(cell)? + "\n";
    write_atomically(path, |writer| writer.write_all(text.as_bytes()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Whether a text is that of a cell, or of one that was cut short: nothing of a cell is lost that cannot be computed again.
fn begins_as_a_cell(text: &[u8]) -> bool {
    let parts = [&b"{"[..], b"\"format\"", b":"];
    let mut rest = text.trim_ascii_start();
    for part in parts {
        match rest.strip_prefix(part) {
            Some(after) => rest = after.trim_ascii_start(),
            None => return part.starts_with(rest),
        }
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = rest[digits..].trim_ascii_start();
    let identity = b",\"identity\"";
    let after: Vec<u8> =
        after.iter().filter(|byte| !byte.is_ascii_whitespace()).take(identity.len()).copied().collect();
    (digits > 0 || rest.is_empty()) && identity.starts_with(&after)
}

/// Temporary files of a process that was killed while it wrote. Nobody else writes here as long as the lock is held.
fn remove_torn(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(".satf-") && name.ends_with(".tmp") {
            // It only takes room.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn damaged<T>(path: &Path, error: &serde_json::Error) -> Option<Cell<T>> {
    tracing::warn!("{}: is damaged ({error}); it is computed again", path.display());
    None
}

/// The same question has the same identity, on any machine.
fn identity(asked: &Value) -> String {
    blake3::hash(asked.to_string().as_bytes()).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find<T: DeserializeOwned>(store: &Store, name: &str, asked: &Value) -> Option<Cell<T>> {
        store.find(name, asked).unwrap()
    }

    #[test]
    fn a_cell_is_found_as_long_as_the_question_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let asked = json!({ "rank": 5, "scaling": 0.1 + 0.2 });
        assert!(find::<f64>(&store, "a", &asked).is_none());
        let kept = store.keep("a", &asked, 0.1f64 + 0.7, 2.5).unwrap();
        let found = find::<f64>(&store, "a", &asked).unwrap();
        assert_eq!(found.result.to_bits(), kept.result.to_bits());
        assert_eq!(found.seconds.to_bits(), kept.seconds.to_bits());
        assert!(find::<f64>(&store, "a", &json!({ "rank": 6 })).is_none());
        assert!(find::<f64>(&store, "b", &asked).is_none());
        // A result of another shape, torn and empty files.
        assert!(find::<Vec<u8>>(&store, "a", &asked).is_none());
        let text = fs::read(store.path("a")).unwrap();
        for length in 0..text.len() - 2 {
            fs::write(store.path("a"), &text[..length]).unwrap();
            assert!(find::<f64>(&store, "a", &asked).is_none(), "{length}");
        }
        // Of an older or a newer release.
        fs::write(store.path("a"), "{\"format\":12, \"identity\": \"x\", \"other\": 1}").unwrap();
        assert!(find::<f64>(&store, "a", &asked).is_none());
    }

    #[test]
    fn what_is_not_a_cell_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("cells")).unwrap();
        let (path, lock) = (folder.path().join("cells/a.json"), folder.path().join("cells/.lock"));
        for text in
            ["precious", "{}", "[1]", "{\"format\": \"x\"}", "{\"format\": 1, \"name\": \"ann\"}", "1"]
        {
            fs::write(&path, text).unwrap();
            let store = Store::open(folder.path()).unwrap();
            let error = store.find::<f64>("a", &json!(1)).err().unwrap().to_string();
            assert!(error.contains("a.json") && error.contains("hint: "), "{text}: {error}");
            store.leave();
            assert!(!lock.exists() && fs::read_to_string(&path).unwrap() == text, "{text}");
        }
        // A lock stays where cells are.
        fs::remove_file(&path).unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.keep("b", &json!(1), 1.0, 1.0).unwrap();
        store.leave();
        assert!(lock.exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        drop(Store::open(folder.path()).unwrap());
        let torn = folder.path().join("cells/.satf-x.tmp");
        fs::write(&torn, "{").unwrap();
        Store::open(folder.path()).unwrap();
        assert!(!torn.exists());
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let error = Store::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("another process"), "{error}");
        drop(store);
        Store::open(folder.path()).unwrap();
    }
}
