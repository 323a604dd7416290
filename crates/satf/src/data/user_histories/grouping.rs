//! Rows of one item each into histories, whatever their order.

use std::io;

use super::UserHistory;
use super::gathered::{Gathered, GatheredHistories};
use super::spill::{Spill, SpilledHistories};
use crate::data::DataError;
use crate::interactions::Id;

/// Rows on their way to histories.
pub(super) struct Grouping {
    stage: Stage,
    ready: Option<Ready>,
    rows: u64,
    memory: usize,
}

enum Stage {
    /// All rows are in memory, and nobody knows how many more will come.
    Gathering(Gathered),
    /// The rows of each user stand together: only those of one user are in memory.
    Streaming(Gathered),
    /// There are too many rows for memory, in any order.
    Spilling(Spill),
}

/// Histories that are complete.
enum Ready {
    InMemory(GatheredHistories),
    OnDisk(SpilledHistories),
}

impl Grouping {
    pub(super) fn new(memory: usize) -> Self {
        Grouping { stage: Stage::Gathering(Gathered::default()), ready: None, rows: 0, memory }
    }

    /// The number of the next row.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes a row.
    pub(super) fn push(&mut self, user: Id<'_>, item: u32, time: i64) -> Result<(), DataError> {
        let number = self.rows;
        self.rows += 1;
        match &mut self.stage {
            Stage::Gathering(gathered) => gathered.push(user, item, time, number),
            Stage::Streaming(gathered) => {
                if !gathered.is_empty() && !gathered.ends_with(user) {
                    self.ready = Some(Ready::InMemory(std::mem::take(gathered).into_histories()));
                }
                gathered.push(user, item, time, number);
            }
            Stage::Spilling(spill) => spill.write(user, item, time, number).map_err(temporary)?,
        }
        Ok(())
    }

    /// Whether the rows in memory are as many as they may be, and it has to be known whether those of a user stand together.
    pub(super) fn is_full(&self) -> bool {
        matches!(&self.stage, Stage::Gathering(gathered) if gathered.bytes() >= self.memory)
    }

    /// Goes on with little memory.
    pub(super) fn make_room(&mut self, is_grouped: bool) -> Result<(), DataError> {
        let Stage::Gathering(gathered) = &mut self.stage else { return Ok(()) };
        let gathered = std::mem::take(gathered);
        self.stage = if is_grouped {
            Stage::Streaming(gathered)
        } else {
            let mut spill = Spill::new().map_err(temporary)?;
            for ((user, row), number) in gathered.iter().zip(0..) {
                spill.write(user, row.item, row.time, number).map_err(temporary)?;
            }
            Stage::Spilling(spill)
        };
        Ok(())
    }

    /// No more rows will come.
    pub(super) fn finish(&mut self) -> Result<(), DataError> {
        let nothing = Stage::Gathering(Gathered::default());
        self.ready = Some(match std::mem::replace(&mut self.stage, nothing) {
            Stage::Gathering(gathered) | Stage::Streaming(gathered) => {
                Ready::InMemory(gathered.into_histories())
            }
            Stage::Spilling(spill) => Ready::OnDisk(spill.into_histories().map_err(temporary)?),
        });
        Ok(())
    }

    /// The next history that is complete.
    pub(super) fn next(&mut self) -> Result<Option<UserHistory>, DataError> {
        let next = match &mut self.ready {
            None => return Ok(None),
            Some(Ready::InMemory(histories)) => histories.next().map(|(_, history)| history),
            Some(Ready::OnDisk(histories)) => histories.next().map_err(temporary)?,
        };
        if next.is_none() {
            self.ready = None;
        }
        Ok(next)
    }
}

fn temporary(source: io::Error) -> DataError {
    DataError::Temporary { path: std::env::temp_dir(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::OwnedId;

    /// Users and items of all histories from these rows of user, item and time.
    fn group(
        rows: &[(i64, u32, i64)],
        memory: usize,
        is_grouped: bool,
    ) -> Vec<(OwnedId, Vec<u32>, Vec<bool>)> {
        let mut grouping = Grouping::new(memory);
        let mut all = Vec::new();
        let mut drain = |grouping: &mut Grouping| {
            while let Some(UserHistory { user, history }) = grouping.next().unwrap() {
                let items = history.items().iter().map(|item| item.0).collect();
                all.push((user, items, history.with_previous().to_vec()));
            }
        };
        for &(user, item, time) in rows {
            let text = format!("user {user}");
            let user = if user < 50 { Id::Integer(user) } else { Id::Text(&text) };
            grouping.push(user, item, time).unwrap();
            drain(&mut grouping);
            if grouping.is_full() {
                grouping.make_room(is_grouped).unwrap();
            }
        }
        grouping.finish().unwrap();
        drain(&mut grouping);
        all
    }

    #[test]
    fn any_order_of_rows_gives_the_same_histories_in_memory_and_on_disk() {
        let rows: Vec<(i64, u32, i64)> =
            (0..3000u32).map(|at| (i64::from(at * 7 % 101), at, i64::from(at * 31 % 47 / 2))).collect();
        let in_memory = group(&rows, usize::MAX, false);
        assert_eq!(in_memory.len(), 101);
        assert_eq!(in_memory[1].0, OwnedId::Integer(7));
        assert!(in_memory.iter().all(|(_, items, _)| items.len() >= 29));
        assert!(in_memory.iter().any(|(_, _, marks)| marks.contains(&true)));
        for memory in [0, 5000, 60_000] {
            assert_eq!(group(&rows, memory, false), in_memory, "{memory}");
        }
        // Together they stream to the same histories.
        let mut grouped = rows.clone();
        let first = |user: i64| rows.iter().position(|row| row.0 == user);
        grouped.sort_by_key(|row| first(row.0));
        for memory in [0, 60_000, usize::MAX] {
            assert_eq!(group(&grouped, memory, true), in_memory, "{memory}");
        }
    }
}
