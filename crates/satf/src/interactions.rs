//! The log as the rest of the crate sees it: events of a user, an item and a time, in dense indices.
//!
//! Callers' ids (strings or integers) live at the edges only, in [`Ids`]; everything inside works with
//! [`UserIndex`] and [`ItemIndex`]. Both are ranks: integer ids in numeric order, string ids in byte order,
//! so that an index does not depend on the order of the rows. "The lower item index", the tie rule of every
//! ranking, therefore means "the lower id".
//!
//! An index belongs to exactly one catalogue of [`Ids`], and means nothing in another. Before a split that is the catalogue of the
//! whole log ([`Interactions::items`]); after it, in everything that a model learns from, is asked and answers, it is that of the
//! training set ([`Histories::catalog`](crate::prepare::Histories::catalog)). What crosses from one to the other goes through ids.

mod history;
mod history_view;
mod ids;
mod join;
mod mixer;

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

pub use history::OwnedHistory;
pub use history_view::History;
pub(crate) use ids::shortest_integer;
pub use ids::{AsId, Id, Ids, OwnedId};
pub use join::MixedClocks;
pub(crate) use mixer::{Mixer, event_hash};

/// A user, as the rank of its id among all users of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserIndex(pub u32);

/// An item, as the rank of its id in one catalogue: that of a log or, after a split, that of its training set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct ItemIndex(pub u32);

impl UserIndex {
    /// The index as a position in a slice.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

impl ItemIndex {
    /// The index as a position in a slice.
    pub fn get(self) -> usize {
        self.0 as usize
    }
}

/// A point in time: microseconds since 1970-01-01 UTC, or the row number for a log without times
/// (see [`Clock`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// A time given in whole seconds since 1970-01-01 UTC.
    pub fn from_seconds(seconds: i64) -> Self {
        Timestamp(seconds.saturating_mul(1_000_000))
    }
}

/// What the times of a log mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Microseconds since 1970-01-01 UTC: calendar offsets apply.
    Calendar,
    /// The row number: only the order is known.
    RowOrder,
}

/// One row of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interaction {
    /// Who.
    pub user: UserIndex,
    /// Took what.
    pub item: ItemIndex,
    /// When.
    pub time: Timestamp,
}

/// A whole log: events of a user, an item and a time. Rows stand in the order in which they were read or added, users and items are indices into the ids
/// of the log.
///
/// Made by [`Interactions::from_events`] from a list, by [`LogBuilder`](crate::data::LogBuilder) from anywhere, by
/// [`read_log`](crate::data::read_log) from files.
#[derive(Clone, Debug, PartialEq)]
pub struct Interactions {
    users: Arc<Ids>,
    items: Arc<Ids>,
    rows: Vec<Interaction>,
    clock: Clock,
}

impl Interactions {
    /// A log from rows that are indexed already. Ids without a row are left out, and the others are numbered without gaps.
    ///
    /// # Panics
    /// If ids are not ascending and distinct, or an index is not below their number.
    pub fn from_indexed(
        users: impl Into<Arc<Ids>>,
        items: impl Into<Arc<Ids>>,
        rows: Vec<Interaction>,
        clock: Clock,
    ) -> Self {
        let (users, items) = (users.into(), items.into());
        assert!(users.are_ascending(), "ids of users are ascending and distinct");
        assert!(items.are_ascending(), "ids of items are ascending and distinct");
        Interactions { users, items, rows, clock }.renumbered()
    }

    /// The same from ids that are ascending and each have a row.
    pub(crate) fn from_ranked(users: Ids, items: Ids, rows: Vec<Interaction>, clock: Clock) -> Self {
        debug_assert!(users.are_ascending() && items.are_ascending());
        Interactions { users: Arc::new(users), items: Arc::new(items), rows, clock }
    }

    /// Ids of the users; every one of them has at least one row.
    pub fn users(&self) -> &Arc<Ids> {
        &self.users
    }

    /// Ids of the items; every one of them has at least one row.
    pub fn items(&self) -> &Arc<Ids> {
        &self.items
    }

    /// The rows, in the order in which they were read or added.
    pub fn rows(&self) -> &[Interaction] {
        &self.rows
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What the times mean.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A number that two logs share only if they have the same rows in the same order, as good as certainly. It tells a
    /// log that has changed; it does not withstand forgery.
    pub fn fingerprint(&self) -> u64 {
        let mut mixer = Mixer::new(0);
        mixer.add(u64::from(self.clock == Clock::Calendar));
        for ids in [&self.users, &self.items] {
            mixer.add(ids.len() as u64);
            match &**ids {
                Ids::Integers(ids) => ids.iter().for_each(|&id| mixer.add(id as u64)),
                Ids::Texts(ids) => ids.iter().for_each(|id| mixer.add_text(id)),
            }
        }
        for row in &self.rows {
            mixer.add(u64::from(row.user.0) << 32 | u64::from(row.item.0));
            mixer.add(row.time.0 as u64);
        }
        mixer.value()
    }

    /// Keeps the rows for which `keep` holds, in order, and renumbers users and items without gaps.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(usize, &Interaction) -> bool) -> Interactions {
        let kept =
            self.rows.iter().enumerate().filter(|(at, row)| keep(*at, row)).map(|(_, row)| *row).collect();
        let (users, items) = (Arc::clone(&self.users), Arc::clone(&self.items));
        Interactions { users, items, rows: kept, clock: self.clock }.renumbered()
    }

    /// The same rows with ids that have one alone.
    fn renumbered(mut self) -> Self {
        let (users, user_ranks) = compact(self.users.len(), self.rows.iter().map(|row| row.user.0));
        let (items, item_ranks) = compact(self.items.len(), self.rows.iter().map(|row| row.item.0));
        if users.len() == self.users.len() && items.len() == self.items.len() {
            return self;
        }
        for row in &mut self.rows {
            row.user = UserIndex(user_ranks[row.user.get()]);
            row.item = ItemIndex(item_ranks[row.item.get()]);
        }
        Interactions {
            users: Arc::new(self.users.subset(&users)),
            items: Arc::new(self.items.subset(&items)),
            ..self
        }
    }
}

/// The indices that occur, ascending, and the new rank of every old index (`u32::MAX` for those that do not).
pub(crate) fn compact(len: usize, used: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<u32>) {
    let mut ranks = vec![u32::MAX; len];
    for index in used {
        ranks[index as usize] = 0;
    }
    let mut kept = Vec::new();
    for (index, rank) in ranks.iter_mut().enumerate() {
        if *rank == 0 {
            *rank = kept.len() as u32;
            kept.push(index as u32);
        }
    }
    (kept, ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_renumbers_without_gaps() {
        let row = |user, item, time| Interaction {
            user: UserIndex(user),
            item: ItemIndex(item),
            time: Timestamp(time),
        };
        let log = Interactions {
            users: Arc::new(Ids::Integers(vec![3, 5, 9])),
            items: Arc::new(Ids::Texts(vec!["a".into(), "b".into(), "c".into()])),
            rows: vec![row(0, 0, 1), row(2, 2, 2), row(1, 1, 3), row(2, 0, 4)],
            clock: Clock::Calendar,
        };
        let kept = log.filter(|_, row| row.user == UserIndex(2));
        assert_eq!(*kept.users, Ids::Integers(vec![9]));
        assert_eq!(*kept.items, Ids::Texts(vec!["a".into(), "c".into()]));
        assert_eq!(kept.rows, vec![row(0, 1, 2), row(0, 0, 4)]);
    }

    #[test]
    fn fingerprints_tell_logs_apart() {
        let row = |user, item, time| Interaction {
            user: UserIndex(user),
            item: ItemIndex(item),
            time: Timestamp(time),
        };
        let log = Interactions {
            users: Arc::new(Ids::Integers(vec![3, 5])),
            items: Arc::new(Ids::Texts(vec!["a".into(), "b".into()])),
            rows: vec![row(0, 0, 1), row(1, 1, 1)],
            clock: Clock::Calendar,
        };
        assert_eq!(log.fingerprint(), log.clone().fingerprint());
        let mut others = vec![log.clone(); 5];
        others[0].rows.swap(0, 1);
        others[1].rows[0].time = Timestamp(2);
        others[2].users = Arc::new(Ids::Integers(vec![3, 6]));
        others[3].items = Arc::new(Ids::Texts(vec!["a".into(), "b\0".into()]));
        others[4].clock = Clock::RowOrder;
        let mut all: Vec<u64> = others.iter().chain([&log]).map(Interactions::fingerprint).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
