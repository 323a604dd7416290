//! A process that ends at once leaves nothing half written. Alone in its file: afterwards nothing can be written any more.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{self, Write};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use satf::data::{discard_unfinished, write_atomically};

#[test]
fn what_is_being_written_is_removed_and_never_finished() {
    let folder = tempfile::tempdir().unwrap();
    let count = || fs::read_dir(folder.path()).unwrap().count();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::write(&old, "old").unwrap();
    let (begun, begins) = channel();
    let mut resume = Vec::new();
    for path in [old.clone(), new] {
        let (sender, goes_on) = channel::<()>();
        resume.push(sender);
        let begun = begun.clone();
        thread::spawn(move || {
            let written = write_atomically(&path, |file| {
                file.write_all(b"half")?;
                begun.send(()).unwrap();
                goes_on.recv().map_err(io::Error::other)
            });
            panic!("it went on after the end: {written:?}");
        });
    }
    begins.recv().unwrap();
    begins.recv().unwrap();
    assert_eq!(count(), 3);
    discard_unfinished();
    assert_eq!(count(), 1);
    for thread in &resume {
        thread.send(()).unwrap();
    }
    thread::sleep(Duration::from_millis(200));
    assert_eq!((count(), fs::read_to_string(&old).unwrap().as_str()), (1, "old"));
}
