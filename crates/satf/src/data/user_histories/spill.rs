//! Rows of any order that are too many for memory, sorted into histories in temporary files.
//!
//! Rows go into parts by their user, so that a part has all rows of its users. Each part is then gathered in memory and written back as
//! histories in the order of their first rows, and merging the parts by that number gives all histories in the order of
//! first appearance. Memory is that of one part: a 64th of the rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use hashbrown::DefaultHashBuilder;

use super::UserHistory;
use super::gathered::Gathered;
use crate::data::nameless_file;
use crate::interactions::{Id, ItemIndex, OwnedHistory, OwnedId};

/// Few enough to be open at once anywhere.
const PARTS: usize = 64;

/// Rows in temporary files, which have no names and vanish with the process.
pub(super) struct Spill {
    parts: Vec<BufWriter<File>>,
    hasher: DefaultHashBuilder,
}

impl Spill {
    pub(super) fn new() -> io::Result<Self> {
        let parts = (0..PARTS).map(|_| Ok(BufWriter::new(nameless_file()?))).collect::<io::Result<_>>()?;
        Ok(Spill { parts, hasher: DefaultHashBuilder::default() })
    }

    /// Writes a row, which is the `number`-th of its file.
    pub(super) fn write(&mut self, user: Id<'_>, item: u32, time: i64, number: u64) -> io::Result<()> {
        let part = (self.hasher.hash_one(user) % PARTS as u64) as usize;
        let part = &mut self.parts[part];
        part.write_all(&number.to_le_bytes())?;
        part.write_all(&time.to_le_bytes())?;
        part.write_all(&item.to_le_bytes())?;
        write_id(part, user)
    }

    /// All histories, in the order of their first rows.
    pub(super) fn into_histories(self) -> io::Result<SpilledHistories> {
        let mut runs = Vec::with_capacity(PARTS);
        for part in self.parts {
            let mut rows = rewind(part)?;
            let mut gathered = Gathered::default();
            while let Some(number) = read_u64(&mut rows)? {
                let time = i64::from_le_bytes(read_array(&mut rows)?);
                let item = u32::from_le_bytes(read_array(&mut rows)?);
                gathered.push(read_id(&mut rows)?.as_id(), item, time, number);
            }
            drop(rows);
            let mut run = BufWriter::new(nameless_file()?);
            for (first, history) in gathered.into_histories() {
                write_history(&mut run, first, &history)?;
            }
            runs.push(rewind(run)?);
        }
        SpilledHistories::new(runs)
    }
}

/// Histories in several files, each in the order of first rows, as one.
pub(super) struct SpilledHistories {
    runs: Vec<BufReader<File>>,
    /// The number of the next history of each run.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl SpilledHistories {
    fn new(mut runs: Vec<BufReader<File>>) -> io::Result<Self> {
        let mut next = BinaryHeap::new();
        for (at, run) in runs.iter_mut().enumerate() {
            next.extend(read_u64(run)?.map(|first| Reverse((first, at))));
        }
        Ok(SpilledHistories { runs, next })
    }

    pub(super) fn next(&mut self) -> io::Result<Option<UserHistory>> {
        let Some(Reverse((_, at))) = self.next.pop() else { return Ok(None) };
        let run = &mut self.runs[at];
        let history = read_history(run)?;
        self.next.extend(read_u64(run)?.map(|first| Reverse((first, at))));
        Ok(Some(history))
    }
}

fn rewind(writer: BufWriter<File>) -> io::Result<BufReader<File>> {
    let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(BufReader::new(file))
}

fn write_history(run: &mut impl Write, first: u64, history: &UserHistory) -> io::Result<()> {
    let UserHistory { user, history } = history;
    run.write_all(&first.to_le_bytes())?;
    write_id(run, user.as_id())?;
    run.write_all(&(history.unknown() as u64).to_le_bytes())?;
    run.write_all(&(history.len() as u64).to_le_bytes())?;
    for (item, &with_previous) in history.items().iter().zip(history.with_previous()) {
        run.write_all(&item.0.to_le_bytes())?;
        run.write_all(&[u8::from(with_previous)])?;
    }
    Ok(())
}

fn read_history(run: &mut impl Read) -> io::Result<UserHistory> {
    let user = read_id(run)?;
    let unknown = u64::from_le_bytes(read_array(run)?) as usize;
    let len = u64::from_le_bytes(read_array(run)?) as usize;
    let (mut items, mut with_previous) = (Vec::with_capacity(len), Vec::with_capacity(len));
    for _ in 0..len {
        items.push(ItemIndex(u32::from_le_bytes(read_array(run)?)));
        with_previous.push(read_array::<1>(run)? == [1]);
    }
    Ok(UserHistory { user, history: OwnedHistory::from_parts(items, with_previous, unknown) })
}

/// An integer behind `u32::MAX`, or a string behind its length.
fn write_id(writer: &mut impl Write, id: Id<'_>) -> io::Result<()> {
    match id {
        Id::Integer(id) => {
            writer.write_all(&u32::MAX.to_le_bytes())?;
            writer.write_all(&id.to_le_bytes())
        }
        Id::Text(id) => {
            let length = u32::try_from(id.len()).map_err(io::Error::other)?;
            writer.write_all(&length.to_le_bytes())?;
            writer.write_all(id.as_bytes())
        }
    }
}

fn read_id(reader: &mut impl Read) -> io::Result<OwnedId> {
    let length = u32::from_le_bytes(read_array(reader)?);
    if length == u32::MAX {
        return Ok(OwnedId::Integer(i64::from_le_bytes(read_array(reader)?)));
    }
    let mut bytes = vec![0; length as usize];
    reader.read_exact(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(OwnedId::Text(text.into()))
}

fn read_array<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The number that begins the next record; none at the end.
fn read_u64(reader: &mut BufReader<File>) -> io::Result<Option<u64>> {
    use std::io::BufRead;
    if reader.fill_buf()?.is_empty() { Ok(None) } else { Ok(Some(u64::from_le_bytes(read_array(reader)?))) }
}
