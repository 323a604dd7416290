//! Which columns of a file of lists are which.

use std::path::Path;

use super::{Chosen, OrderBy, Role, Wanted, common, normalized, not_repeated, required};
use crate::data::DataError;

/// Columns of lists of recommendations: whole lists where no column holds items, what orders a list, which event it is for.
const LIST_NAMES: &[&str] =
    &["items", "itemids", "itemlist", "itemidlist", "recommendations", "recommended", "list"];
pub(super) const RANK_NAMES: &[&str] = &["rank", "position"];
const SCORE_NAMES: &[&str] = &["score", "prediction"];
const EVENT_NAME: &str = "eventid";

/// Chooses the columns of lists. An event says all about whom a list is for; else it is for a user, at a time if there is one.
pub(super) fn choose(path: &Path, names: &[String], wanted: &Wanted<'_>) -> Result<Chosen, DataError> {
    let options = &wanted.options;
    let at = |common: &[&str]| {
        common.iter().find_map(|common| names.iter().position(|name| normalized(name) == *common))
    };
    let event = at(&[EVENT_NAME]).filter(|_| options.user_column.is_none());
    let user = match event {
        Some(event) => not_repeated(path, names, event, Role::User)?,
        None => required(path, names, wanted, Role::User)?,
    };
    let has_items = options.item_column.is_some() || common(names, Role::Item).is_some();
    let whole = at(LIST_NAMES).filter(|_| !has_items);
    let item = match whole {
        Some(list) => not_repeated(path, names, list, Role::Item)?,
        None => required(path, names, wanted, Role::Item)?,
    };
    let has_time = options.time_column.is_some() || common(names, Role::Time).is_some();
    let time = (event.is_none() && has_time && !options.order_is_time)
        .then(|| required(path, names, wanted, Role::Time))
        .transpose()?;
    let by = [(RANK_NAMES, OrderBy::Rank), (SCORE_NAMES, OrderBy::Score)];
    let order = by.into_iter().find_map(|(names, by)| Some((at(names)?, by))).filter(|_| whole.is_none());
    if let Some((at, _)) = order {
        not_repeated(path, names, at, Role::Rank)?;
    }
    Chosen { user, item, time, is_whole: whole.is_some(), order, is_event: event.is_some() }
        .apart(path, names)
}
