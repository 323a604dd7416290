//! From a log to what models learn from and are judged on: duplicates, the p-core, statistics, the order of
//! events, the split.

mod core;
mod disorder;
mod duplicates;
mod event_ids;
mod export;
mod histories;
mod offset;
mod split;
mod statistics;
mod suggestion;
mod ties;

pub use core::p_core;
pub use duplicates::{Duplicates, count_duplicates, resolve_duplicates};
pub use event_ids::{EventIds, OtherHoldout};
pub use histories::{Histories, popularity_weights};
pub use offset::{Offset, OffsetError};
pub use split::{
    Emptiness, Event, EventCounts, Holdout, Partition, Split, SplitError, SplitHint, SplitScheme,
};
pub use statistics::{Statistics, count_tied_rows, iso};
pub use suggestion::{suggest_offset, suggest_offsets_by_share};
pub use ties::{TiePolicy, Timeline};

pub(crate) use crate::interactions::History;

#[cfg(test)]
pub(crate) mod testing {
    //! Logs written by hand.

    use crate::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

    /// A log of `(user id, item id, seconds)` rows.
    pub(crate) fn log(rows: &[(i64, i64, i64)]) -> Interactions {
        let sorted = |mut ids: Vec<i64>| {
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let users = sorted(rows.iter().map(|row| row.0).collect());
        let items = sorted(rows.iter().map(|row| row.1).collect());
        let rank = |ids: &[i64], id| ids.binary_search(&id).unwrap() as u32;
        let rows = rows
            .iter()
            .map(|&(user, item, seconds)| Interaction {
                user: UserIndex(rank(&users, user)),
                item: ItemIndex(rank(&items, item)),
                time: Timestamp::from_seconds(seconds),
            })
            .collect();
        Interactions::from_ranked(Ids::Integers(users), Ids::Integers(items), rows, Clock::Calendar)
    }
}
