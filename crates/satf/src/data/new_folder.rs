//! Folders that are made for what is to come, and go again if nothing does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder that is there now, and which folders were made for it.
#[derive(Clone, Debug)]
pub struct NewFolder {
    /// The innermost first.
    made: Vec<PathBuf>,
}

impl NewFolder {
    /// Makes a folder with those above it, unless they are there.
    pub fn make(path: &Path) -> io::Result<Self> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let made: Vec<PathBuf> = path.ancestors().take_while(is_missing).map(Path::to_owned).collect();
        fs::create_dir_all(path)?;
        Ok(NewFolder { made })
    }

    /// Removes the folders that were made, as far as nothing is in them.
    pub fn remove_if_empty(&self) {
        for folder in &self.made {
            if fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_goes_again_unless_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        NewFolder::make(&inner).unwrap().remove_if_empty();
        assert!(!folder.path().join("a").exists());

        let made = NewFolder::make(&inner).unwrap();
        fs::write(folder.path().join("a/kept"), "x").unwrap();
        made.remove_if_empty();
        assert!(folder.path().join("a/kept").exists() && !inner.exists());

        // What was there before stays, empty as it is.
        fs::create_dir(&inner).unwrap();
        NewFolder::make(&inner).unwrap().remove_if_empty();
        assert!(inner.exists());
        assert!(NewFolder::make(&folder.path().join("a/kept/b")).is_err());
    }
}
