//! Rows of any order in memory, given back as histories.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::UserHistory;
use crate::interactions::{Id, ItemIndex, OwnedHistory, OwnedId, Timestamp};

/// An item that the catalogue does not know.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// What a row and a user take at most, with room to grow and to sort; the text of an id comes on top.
const BYTES_A_ROW: usize = 40;
const BYTES_A_USER: usize = 96;

/// A row: whose number by first appearance, which item, when.
#[derive(Clone, Copy)]
pub(super) struct GatheredRow {
    user: u32,
    pub(super) item: u32,
    pub(super) time: i64,
}

struct User {
    id: OwnedId,
    /// The number of its first row.
    first: u64,
}

/// Rows gathered so far, in the order they came.
#[derive(Default)]
pub(super) struct Gathered {
    users: Vec<User>,
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    rows: Vec<GatheredRow>,
    text_bytes: usize,
}

impl Gathered {
    /// Adds a row, which is the `number`-th of its file.
    pub(super) fn push(&mut self, user: Id<'_>, item: u32, time: i64, number: u64) {
        let last = self.rows.last().map(|row| row.user);
        let user = match last {
            Some(last) if self.id(last) == user => last,
            _ => self.intern(user, number),
        };
        self.rows.push(GatheredRow { user, item, time });
    }

    fn id(&self, user: u32) -> Id<'_> {
        self.users[user as usize].id.as_id()
    }

    fn intern(&mut self, user: Id<'_>, number: u64) -> u32 {
        let hash = self.hasher.hash_one(user);
        let (users, hasher) = (&self.users, &self.hasher);
        if let Some(&known) = self.numbers.find(hash, |&other| users[other as usize].id.as_id() == user) {
            return known;
        }
        let new = users.len() as u32;
        self.numbers.insert_unique(hash, new, |&other| hasher.hash_one(users[other as usize].id.as_id()));
        self.text_bytes += if let Id::Text(id) = user { id.len() } else { 0 };
        self.users.push(User { id: user.to_owned(), first: number });
        new
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the newest row is one of this user.
    pub(super) fn ends_with(&self, user: Id<'_>) -> bool {
        self.rows.last().is_some_and(|row| self.id(row.user) == user)
    }

    /// The most memory that the rows take.
    pub(super) fn bytes(&self) -> usize {
        self.rows.len() * BYTES_A_ROW + self.users.len() * BYTES_A_USER + self.text_bytes
    }

    /// Users and rows in the order they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id<'_>, GatheredRow)> {
        self.rows.iter().map(|row| (self.id(row.user), *row))
    }

    /// The histories, in the order of their first rows, each in the order of time; equal times keep the order of the rows.
    pub(super) fn into_histories(mut self) -> GatheredHistories {
        self.rows.sort_by_key(|row| (row.user, row.time));
        GatheredHistories { users: self.users.into_iter().enumerate(), rows: self.rows, next: 0 }
    }
}

/// Histories with the number of their first rows.
pub(super) struct GatheredHistories {
    users: std::iter::Enumerate<std::vec::IntoIter<User>>,
    rows: Vec<GatheredRow>,
    next: usize,
}

impl Iterator for GatheredHistories {
    type Item = (u64, UserHistory);

    fn next(&mut self) -> Option<Self::Item> {
        let (number, user) = self.users.next()?;
        let rest = &self.rows[self.next..];
        let rows = &rest[..rest.partition_point(|row| row.user as usize == number)];
        self.next += rows.len();
        let events = rows.iter().map(|row| {
            let item = (row.item != UNKNOWN).then_some(ItemIndex(row.item));
            (Timestamp(row.time), item)
        });
        let history = OwnedHistory::from_ordered(events);
        Some((user.first, UserHistory { user: user.id, history }))
    }
}
