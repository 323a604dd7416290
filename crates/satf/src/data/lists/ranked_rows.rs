//! Rows of one item each, put together to lists.

use std::cmp::Ordering;
use std::path::Path;

use super::{List, Lists, Whom};
use crate::data::DataError;
use crate::data::columns::OrderBy;
use crate::interactions::{Id, Ids, shortest_integer};

/// Rows as they came.
#[derive(Default)]
pub(super) struct RankedRows {
    rows: Vec<RankedRow>,
    /// What orders a list; the order of the rows if nothing does.
    by: Option<OrderBy>,
}

#[derive(Clone, Copy)]
struct RankedRow {
    whom: Whom,
    item: u32,
    /// Its rank or score.
    order: f64,
}

impl RankedRows {
    pub(super) fn push(&mut self, whom: Whom, item: u32, order: f64, by: Option<OrderBy>) {
        self.by = by;
        self.rows.push(RankedRow { whom, item, order });
    }

    /// Adds the lists that the rows are. Numbers of users and items become their ranks by id.
    pub(super) fn into_lists(
        mut self,
        ranked_whom: impl Fn(Whom) -> Whom,
        item_ranks: &[u32],
        source: &Path,
        lists: &mut Lists,
    ) -> Result<(), DataError> {
        for row in &mut self.rows {
            (row.whom, row.item) = (ranked_whom(row.whom), item_ranks[row.item as usize]);
        }
        // Rows of one list keep the order of the file.
        self.rows.sort_by_key(|row| row.whom);
        for rows in self.rows.chunk_by_mut(|one, next| one.whom == next.whom) {
            match self.by {
                Some(OrderBy::Rank) => add_by_rank(rows, source, lists)?,
                Some(OrderBy::Score) => {
                    let items = &lists.items;
                    rows.sort_by(|one, other| {
                        (other.order + 0.0)
                            .total_cmp(&(one.order + 0.0))
                            .then_with(|| compare_ids(items, one.item, other.item))
                    });
                    add(rows, lists);
                }
                None => add(rows, lists),
            }
        }
        Ok(())
    }
}

/// Adds one list; or, where ranks begin again, several one after the other.
fn add_by_rank(rows: &mut [RankedRow], source: &Path, lists: &mut Lists) -> Result<(), DataError> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|one, other| one.order.total_cmp(&other.order));
    let repeated = sorted.windows(2).find(|two| two[0].order >= two[1].order).map(|two| two[0].order);
    let (Some(repeated), Some(lowest)) = (repeated, sorted.first().map(|row| row.order)) else {
        add(&sorted, lists);
        return Ok(());
    };
    let several: Vec<&[RankedRow]> = rows.chunk_by(|one, next| one.order < next.order).collect();
    if several.iter().any(|list| list[0].order > lowest) {
        let whom = match rows[0].whom {
            Whom::User(user) | Whom::At(user, _) | Whom::EventId(user) => lists.users.get(user as usize),
            Whom::Place(_) => Id::Text(""),
        };
        let (path, whom) = (source.to_owned(), whom.to_string().into());
        return Err(DataError::RepeatedRank { path, whom, rank: repeated });
    }
    for list in several {
        add(list, lists);
    }
    Ok(())
}

fn add(rows: &[RankedRow], lists: &mut Lists) {
    let start = lists.ranked.len();
    lists.ranked.extend(rows.iter().map(|row| row.item));
    let whom = rows[0].whom;
    lists.spans.push(List { whom, start, end: lists.ranked.len() });
}

/// The order of two ids as a catalogue has it: integers as numbers, others as texts.
fn compare_ids(items: &Ids, one: u32, other: u32) -> Ordering {
    let number = |at: u32| match items.get(at as usize) {
        Id::Integer(id) => Some(id),
        Id::Text(id) => shortest_integer(id.as_bytes()),
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.cmp(&other),
    }
}
