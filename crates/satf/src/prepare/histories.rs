//! What models learn from: every user's items, oldest first, in one compact array.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::interactions::{Clock, History, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};

/// The diagonal of the popularity debiasing $D$: $d_j = c_j^{(s-1)/2}$ for counts $c_j$ and scaling $s$; 0 for an item
/// without events.
pub fn popularity_weights(counts: &[u32], scaling: f64) -> Vec<f64> {
    let weight = |&count: &u32| if count == 0 { 0.0 } else { f64::from(count).powf((scaling - 1.0) / 2.0) };
    counts.iter().map(weight).collect()
}

/// Histories of all users of a training set, oldest item first.
///
/// Compressed rows: user `u` owns `items[offsets[u]..offsets[u + 1]]` and the times beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Histories {
    users: Arc<Ids>,
    catalog: Arc<Ids>,
    clock: Clock,
    offsets: Vec<usize>,
    items: Vec<ItemIndex>,
    times: Vec<Timestamp>,
    lengths: Vec<(usize, u64)>,
}

impl Histories {
    /// Histories from rows already ordered as they happened (by time, ties settled); users' rows may interleave.
    pub fn from_ordered_rows(
        users: Arc<Ids>,
        catalog: Arc<Ids>,
        clock: Clock,
        rows: impl Iterator<Item = (UserIndex, ItemIndex, Timestamp)> + Clone,
    ) -> Self {
        let mut offsets = vec![0usize; users.len() + 1];
        for (user, _, _) in rows.clone() {
            offsets[user.get() + 1] += 1;
        }
        for user in 0..users.len() {
            offsets[user + 1] += offsets[user];
        }
        let mut next = offsets.clone();
        let len = offsets[users.len()];
        let mut items = vec![ItemIndex(0); len];
        let mut times = vec![Timestamp(0); len];
        for (user, item, time) in rows {
            let at = next[user.get()];
            next[user.get()] += 1;
            items[at] = item;
            times[at] = time;
        }
        let lengths = count_lengths(&offsets);
        Histories { users, catalog, clock, offsets, items, times, lengths }
    }

    /// The rows of a log by user, in the order in which they stand there, and not yet in the order of time.
    pub(super) fn by_user(log: &Interactions) -> Self {
        let (users, catalog) = (Arc::clone(log.users()), Arc::clone(log.items()));
        let num_users = users.len();
        let mut offsets = vec![0usize; num_users + 1];
        for row in log.rows() {
            offsets[row.user.get() + 1] += 1;
        }
        for user in 0..num_users {
            offsets[user + 1] += offsets[user];
        }
        let lengths = count_lengths(&offsets);
        let mut items = vec![ItemIndex(0); log.len()];
        let mut times = vec![Timestamp(0); log.len()];
        // Where the next row of every user goes. In the end that is where the next user begins.
        for row in log.rows() {
            let next = &mut offsets[row.user.get()];
            items[*next] = row.item;
            times[*next] = row.time;
            *next += 1;
        }
        offsets.copy_within(..num_users, 1);
        offsets[0] = 0;
        Histories { users, catalog, clock: log.clock(), offsets, items, times, lengths }
    }

    /// The items and times of many users at a time, to be put into another order: the first of the users, where their histories end, and
    /// all that is theirs.
    pub(super) fn pieces_mut(&mut self, users_a_piece: usize) -> Vec<PieceMut<'_>> {
        let (mut items, mut times) = (&mut self.items[..], &mut self.times[..]);
        let mut pieces = Vec::new();
        for (piece, ends) in self.offsets[1..].chunks(users_a_piece).enumerate() {
            let first_user = piece * users_a_piece;
            let start = self.offsets[first_user];
            let len = ends.last().map_or(0, |end| end - start);
            let (own_items, later_items) = std::mem::take(&mut items).split_at_mut(len);
            let (own_times, later_times) = std::mem::take(&mut times).split_at_mut(len);
            (items, times) = (later_items, later_times);
            pieces.push(PieceMut { first_user, start, ends, items: own_items, times: own_times });
        }
        pieces
    }

    /// Histories of anonymous users `0..n` over items `0..num_items`, of which only the order is known: for tests, examples and
    /// generated data.
    pub fn from_sequences(num_items: usize, sequences: &[Vec<u32>]) -> Self {
        let ids = |n: usize| Arc::new(Ids::Integers((0..n as i64).collect()));
        let rows = sequences.iter().enumerate().flat_map(|(user, items)| {
            items
                .iter()
                .enumerate()
                .map(move |(at, &item)| (UserIndex(user as u32), ItemIndex(item), Timestamp(at as i64)))
        });
        Histories::from_ordered_rows(ids(sequences.len()), ids(num_items), Clock::RowOrder, rows)
    }

    /// Ids of the users, in the order of their indices.
    pub fn users(&self) -> &Arc<Ids> {
        &self.users
    }

    /// Ids of the items of this part: the catalogue.
    pub fn catalog(&self) -> &Arc<Ids> {
        &self.catalog
    }

    /// Number of users.
    pub fn num_users(&self) -> usize {
        self.users.len()
    }

    /// Number of items in the catalogue.
    pub fn num_items(&self) -> usize {
        self.catalog.len()
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.items.len()
    }

    /// The events as a log, user by user.
    pub(crate) fn to_log(&self) -> Interactions {
        let rows = (0..self.num_users() as u32).map(UserIndex).flat_map(|user| {
            let events = self.items_of(user).iter().zip(self.times_of(user));
            events.map(move |(&item, &time)| Interaction { user, item, time })
        });
        let (users, items) = (Arc::clone(&self.users), Arc::clone(&self.catalog));
        Interactions::from_indexed(users, items, rows.collect(), self.clock)
    }

    /// The same users and catalogue with what happened up to `time` alone.
    #[must_use]
    pub fn until(&self, time: Timestamp) -> Self {
        let kept = |user: usize| {
            let times = &self.times[self.offsets[user]..self.offsets[user + 1]];
            self.offsets[user]..self.offsets[user] + times.partition_point(|&at| at <= time)
        };
        let mut offsets = vec![0];
        let (mut items, mut times) = (Vec::new(), Vec::new());
        for user in 0..self.num_users() {
            items.extend_from_slice(&self.items[kept(user)]);
            times.extend_from_slice(&self.times[kept(user)]);
            offsets.push(items.len());
        }
        Histories {
            users: Arc::clone(&self.users),
            catalog: Arc::clone(&self.catalog),
            clock: self.clock,
            lengths: count_lengths(&offsets),
            offsets,
            items,
            times,
        }
    }

    /// The same users and catalogue with the histories of some users alone; those of the others are empty.
    #[must_use]
    pub(crate) fn of_users(&self, is_kept: impl Fn(UserIndex) -> bool) -> Self {
        let mut offsets = vec![0];
        let (mut items, mut times) = (Vec::new(), Vec::new());
        for user in (0..self.num_users() as u32).map(UserIndex) {
            if is_kept(user) {
                items.extend_from_slice(self.items_of(user));
                times.extend_from_slice(self.times_of(user));
            }
            offsets.push(items.len());
        }
        let (users, catalog) = (Arc::clone(&self.users), Arc::clone(&self.catalog));
        let lengths = count_lengths(&offsets);
        Histories { users, catalog, clock: self.clock, offsets, items, times, lengths }
    }

    /// Every length that histories have, ascending, and how many have it: what takes long to count user by user, for those who ask
    /// often.
    pub fn lengths(&self) -> &[(usize, u64)] {
        &self.lengths
    }

    /// What the times mean: on a log whose order is its time they tell what came first, and not how long ago.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where each user's rows begin, and where the last one's end.
    pub(crate) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The item of each row, in the order of users.
    pub(crate) fn items(&self) -> &[ItemIndex] {
        &self.items
    }

    /// When each row happened, in the order of users.
    pub fn times(&self) -> &[Timestamp] {
        &self.times
    }

    /// A user's items, oldest first.
    pub fn items_of(&self, user: UserIndex) -> &[ItemIndex] {
        &self.items[self.offsets[user.get()]..self.offsets[user.get() + 1]]
    }

    /// A user's items, to be put into another order.
    pub(super) fn items_of_mut(&mut self, user: UserIndex) -> &mut [ItemIndex] {
        &mut self.items[self.offsets[user.get()]..self.offsets[user.get() + 1]]
    }

    /// When a user's events happened.
    pub fn times_of(&self, user: UserIndex) -> &[Timestamp] {
        &self.times[self.offsets[user.get()]..self.offsets[user.get() + 1]]
    }

    /// For each row whether it has the same user and time as the row before it: what [`Histories::history_of`] wants. One
    /// pass over all rows.
    pub fn with_previous(&self) -> Vec<bool> {
        self.offsets.windows(2).flat_map(|ends| marks(&self.times[ends[0]..ends[1]])).collect()
    }

    /// A user's history, with the marks of [`Histories::with_previous`].
    ///
    /// # Panics
    /// If there are not as many marks as rows.
    pub fn history_of<'a>(&'a self, user: UserIndex, with_previous: &'a [bool]) -> History<'a> {
        assert_eq!(with_previous.len(), self.num_rows(), "one mark per row");
        let range = self.offsets[user.get()]..self.offsets[user.get() + 1];
        History::with_baskets(&self.items[range.clone()], &with_previous[range])
    }

    /// Every user's items, in the order of the users.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[ItemIndex]> + Clone {
        self.offsets.windows(2).map(|ends| &self.items[ends[0]..ends[1]])
    }

    /// How often every item occurs: the popularity `c_j`, over whole histories.
    pub fn popularity(&self) -> Vec<u32> {
        let mut counts = vec![0u32; self.num_items()];
        for item in &self.items {
            counts[item.get()] += 1;
        }
        counts
    }
}

/// What belongs to some consecutive users.
pub(super) struct PieceMut<'a> {
    first_user: usize,
    start: usize,
    ends: &'a [usize],
    items: &'a mut [ItemIndex],
    times: &'a mut [Timestamp],
}

impl PieceMut<'_> {
    /// Gives every user's items and times to `change`.
    pub(super) fn each_user(self, mut change: impl FnMut(UserIndex, &mut [ItemIndex], &mut [Timestamp])) {
        let mut from = 0;
        for (at, end) in self.ends.iter().enumerate() {
            let range = from..end - self.start;
            from = range.end;
            let user = UserIndex((self.first_user + at) as u32);
            change(user, &mut self.items[range.clone()], &mut self.times[range]);
        }
    }
}

/// For each of these times whether it is that of the one before.
pub(super) fn marks(times: &[Timestamp]) -> impl Iterator<Item = bool> {
    times.iter().enumerate().map(|(at, time)| at > 0 && times[at - 1] == *time)
}

/// Lengths that are counted in a table; longer ones are rare.
const SHORT: usize = 4096;

/// Distinct lengths in ascending order, each with its number.
fn count_lengths(offsets: &[usize]) -> Vec<(usize, u64)> {
    let mut short = vec![0u64; SHORT];
    let mut long = BTreeMap::new();
    for ends in offsets.windows(2) {
        let len = ends[1] - ends[0];
        *short.get_mut(len).unwrap_or_else(|| long.entry(len).or_default()) += 1;
    }
    short.into_iter().enumerate().filter(|&(_, count)| count > 0).chain(long).collect()
}
