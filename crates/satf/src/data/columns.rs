//! Which column is the user, which the item, which the time: by the names people give them.

mod of_lists;

use std::fmt;
use std::path::Path;

use super::error::shown;
use super::{DataError, FirstRow, ReadOptions, time};
use crate::interactions::{Clock, Id, Ids};

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ids of users.
    User,
    /// Ids of items.
    Item,
    /// Times.
    Time,
    /// Whole histories.
    History,
    /// Ranks or scores: what orders a list.
    Rank,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Names by role, the surest first, as [`normalized`] spells them.
#[rustfmt::skip]
const USER_NAMES: &[&str] = &[
    "userid", "user", "uid", "reviewerid", "username", "visitorid", "customerid", "clientid", "memberid",
    "accountid", "profileid", "playerid", "personid", "steamid", "deviceid", "visitor", "customer",
    "client", "reviewer", "sessionid", "session", "userhash", "userindex", "useridx", "usernum", "u",
];
#[rustfmt::skip]
const ITEM_NAMES: &[&str] = &[
    "itemid", "item", "iid", "movieid", "asin", "productid", "parentasin", "trackid", "songid",
    "artistid", "bookid", "isbn", "articleid", "newsid", "videoid", "gameid", "appid", "businessid",
    "poiid", "venueid", "locationid", "goodsid", "contentid", "animeid", "recipeid", "beerid",
    "clickarticleid", "sku", "product", "movie", "track", "song", "artist", "book", "article", "video",
    "game", "itemindex", "itemidx", "itemnum", "i",
];
#[rustfmt::skip]
const TIME_NAMES: &[&str] = &[
    "timestamp", "unixreviewtime", "unixtimestamp", "unixtime", "eventtime", "eventtimestamp", "time",
    "ts", "datetime", "date", "createdat", "createtime", "creationtime", "createdtime", "eventdate",
    "reviewtime", "reviewdate", "ratingtime", "clicktimestamp", "clicktime", "visittime", "at", "t",
];

/// A column of the first name holds histories whatever else is there; those of the others if no column holds items.
const HISTORY_NAMES: &[&str] =
    &["history", "items", "itemids", "itemlist", "itemidlist", "itemsequence", "sequence"];

/// What is looked for in a file.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'c> {
    /// What the caller says about the file.
    pub(super) options: ReadOptions,
    /// The number of the first row of a prepared log whose times are row numbers.
    pub(super) first_number: i64,
    purpose: Purpose<'c>,
}

#[derive(Clone, Debug)]
enum Purpose<'c> {
    /// Rows of user, item and time.
    Log,
    /// Rows of user, item and, if there is one, time; or of user and whole history.
    Histories {
        /// The column of histories that the caller asks for.
        column: Option<String>,
        /// The items that are known.
        catalog: &'c Ids,
    },
    /// Rows of user or event, item and rank or score; or of user or event and whole list. A time is that of the event.
    Lists,
}

impl<'c> Wanted<'c> {
    pub(super) fn log(options: &ReadOptions, first_number: i64) -> Self {
        Wanted { options: options.clone(), first_number, purpose: Purpose::Log }
    }

    pub(super) fn histories(options: &ReadOptions, column: Option<&str>, catalog: &'c Ids) -> Self {
        let purpose = Purpose::Histories { column: column.map(Into::into), catalog };
        Wanted { options: options.clone(), first_number: 0, purpose }
    }

    pub(super) fn lists(options: &ReadOptions) -> Self {
        Wanted { options: options.clone(), first_number: 0, purpose: Purpose::Lists }
    }

    /// Whether lists of recommendations are wanted.
    fn is_lists(&self) -> bool {
        matches!(self.purpose, Purpose::Lists)
    }

    /// Whether histories are wanted, and not a log.
    pub(super) fn is_histories(&self) -> bool {
        matches!(self.purpose, Purpose::Histories { .. })
    }

    /// Whether an item of this name is known.
    fn knows(&self, item: &str) -> bool {
        matches!(self.purpose, Purpose::Histories { catalog, .. } if catalog.find(Id::Text(item)).is_some())
    }

    /// Whether a column of this name was asked for.
    fn asks_for(&self, name: &str) -> bool {
        let roles = [Role::User, Role::Item, Role::Time, Role::History];
        roles.iter().any(|&role| self.column(role) == Some(name))
    }

    /// The column the caller asks for in a role.
    fn column(&self, role: Role) -> Option<&str> {
        match (&self.purpose, role) {
            (Purpose::Histories { column, .. }, Role::History) => column.as_deref(),
            _ => self.options.column(role),
        }
    }

    /// The column that holds whole histories, if one does.
    fn history(&self, path: &Path, names: &[String]) -> Result<Option<usize>, DataError> {
        if !self.is_histories()
            || (self.column(Role::History).is_none()
                && (self.options.item_column.is_some() || self.options.time_column.is_some()))
        {
            return Ok(None);
        }
        if self.column(Role::History).is_some() {
            return required(path, names, self, Role::History).map(Some);
        }
        let surest = names.iter().position(|name| normalized(name) == HISTORY_NAMES[0]);
        let has_items = common(names, Role::Item).is_some();
        let found = surest.or_else(|| common(names, Role::History).filter(|_| !has_items));
        found.map(|at| not_repeated(path, names, at, Role::History)).transpose()
    }
}

impl Role {
    /// `user`, `item`, `time`, `history` or `rank`.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Item => "item",
            Role::Time => "time",
            Role::History => "history",
            Role::Rank => "rank",
        }
    }

    fn common_names(self) -> &'static [&'static str] {
        match self {
            Role::User => USER_NAMES,
            Role::Item => ITEM_NAMES,
            Role::Time => TIME_NAMES,
            Role::History => HISTORY_NAMES,
            Role::Rank => of_lists::RANK_NAMES,
        }
    }
}

impl ReadOptions {
    /// The column the caller asks for in a role.
    pub(super) fn column(&self, role: Role) -> Option<&str> {
        match role {
            Role::User => self.user_column.as_deref(),
            Role::Item => self.item_column.as_deref(),
            Role::Time => self.time_column.as_deref(),
            Role::History | Role::Rank => None,
        }
    }
}

/// What orders the items of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderBy {
    /// The lower the better.
    Rank,
    /// The higher the better.
    Score,
}

/// The positions of the columns; no time if the order of the rows is the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) user: usize,
    pub(super) item: usize,
    pub(super) time: Option<usize>,
    /// Whether the item's column holds whole histories, or whole lists.
    pub(super) is_whole: bool,
    /// What orders the items of a list, where lists are wanted.
    pub(super) order: Option<(usize, OrderBy)>,
    /// Whether the user's column holds ids of events.
    pub(super) is_event: bool,
}

impl Chosen {
    /// Rows of one item each.
    pub(super) fn rows(user: usize, item: usize, time: Option<usize>) -> Self {
        Chosen { user, item, time, is_whole: false, order: None, is_event: false }
    }

    /// Rows of whole histories.
    pub(super) fn whole(user: usize, item: usize) -> Self {
        Chosen { is_whole: true, ..Chosen::rows(user, item, None) }
    }

    /// The same, or an error if a column would serve twice.
    fn apart(self, path: &Path, names: &[String]) -> Result<Self, DataError> {
        let used: Vec<(Role, usize)> = self.by_role().collect();
        for (at, &(second, column)) in used.iter().enumerate() {
            if let Some(&(first, _)) = used[..at].iter().find(|(_, before)| *before == column) {
                let (path, column) = (path.to_owned(), names[column].as_str().into());
                return Err(DataError::SameColumn { path, column, first, second });
            }
        }
        Ok(self)
    }

    /// The columns that are used, and what for.
    pub(super) fn by_role(self) -> impl Iterator<Item = (Role, usize)> {
        let item = if self.is_whole { Role::History } else { Role::Item };
        let order = self.order.map(|(at, _)| at);
        [(Role::User, Some(self.user)), (item, Some(self.item)), (Role::Time, self.time), (Role::Rank, order)]
            .into_iter()
            .filter_map(|(role, at)| at.map(|at| (role, at)))
    }
}

/// What the columns of a file are called and what they mean.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) names: ColumnNames,
    pub(super) clock: Clock,
    /// Whether the item's column holds whole histories, or whole lists.
    pub(super) is_whole: bool,
    /// What orders the items of a list.
    pub(super) order: Option<OrderBy>,
    /// Whether the user's column holds ids of events.
    pub(super) is_event: bool,
}

impl Columns {
    fn new(chosen: Chosen, name: impl Fn(usize) -> Box<str>) -> Self {
        let names = ColumnNames {
            user: name(chosen.user),
            item: name(chosen.item),
            time: chosen.time.map(&name),
            order: chosen.order.map(|(at, _)| name(at)),
        };
        let clock = if chosen.time.is_some() { Clock::Calendar } else { Clock::RowOrder };
        let order = chosen.order.map(|(_, by)| by);
        Columns { names, clock, is_whole: chosen.is_whole, order, is_event: chosen.is_event }
    }

    /// Columns with names.
    pub(super) fn named(chosen: Chosen, names: &[String]) -> Self {
        Columns::new(chosen, |at| shown(names[at].as_bytes()).into())
    }

    /// Columns without names go by number, from 1.
    pub(super) fn numbered(chosen: Chosen) -> Self {
        Columns::new(chosen, |at| (at + 1).to_string().into())
    }
}

/// What the columns are called in messages.
#[derive(Clone, Debug, Default)]
pub(super) struct ColumnNames {
    pub(super) user: Box<str>,
    pub(super) item: Box<str>,
    pub(super) time: Option<Box<str>>,
    pub(super) order: Option<Box<str>>,
}

/// Lower case without `_`, `-`, `.` and spaces: `Movie_ID` is `movieid`.
pub(super) fn normalized(name: &str) -> String {
    name.trim()
        .chars()
        .filter(|character| !matches!(character, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Whether the first row of a file names its columns.
///
/// The caller knows; else a row with a name that was asked for does, and a row of three or more columns without a time. A row of two
/// columns has no time that could tell it from a header, and words such as `book` or `u` are ids as well: it is a header if it
/// names a user and an item, or holds a name that no id is likely to have, such as `user_id`.
fn is_header(names: &[String], wanted: &Wanted<'_>) -> bool {
    if wanted.is_lists() {
        // Nothing but their names tells ranks, scores and times apart.
        return true;
    }
    if let Some(told) = wanted.options.header {
        return told;
    }
    if names.iter().any(|name| time::looks_like_time(name.as_bytes())) {
        return false;
    }
    let is_asked_for = names.iter().any(|name| wanted.asks_for(name));
    let names_both = common(names, Role::User).is_some() && common(names, Role::Item).is_some();
    let names_history = wanted.is_histories() && common(names, Role::History).is_some();
    is_asked_for
        || names.len() > 2
        || names_both
        || names_history
        || names.iter().any(|name| is_sure_name(name))
}

/// What the first row of a file is: whether it names the columns, and the row itself where that is a guess.
///
/// A header such as `u,game` may be a user and an item as well. Where histories are wanted, an item that is known tells; else it is
/// taken for a header.
pub(super) fn judge_first_row(
    path: &Path,
    names: &[String],
    wanted: &Wanted<'_>,
) -> (bool, Option<FirstRow>) {
    if !is_header(names, wanted) {
        return (false, None);
    }
    // A row of more columns has a time, unless none is looked for, and a header has none.
    let could_be_event = names.len() == 2 || wanted.options.order_is_time;
    let is_sure = wanted.options.header.is_some()
        || wanted.is_lists()
        || names.iter().any(|name| wanted.asks_for(name) || is_sure_name(name))
        || (has(names, &["user"]) && has(names, &["item", "items", "history"]));
    if is_sure || !could_be_event {
        return (true, None);
    }
    let unnamed = choose_unnamed(path, names.len(), wanted);
    let is_header = !unnamed.is_ok_and(|event| wanted.knows(&names[event.item]));
    (is_header, Some(FirstRow { fields: names.to_vec(), is_header }))
}

fn has(names: &[String], words: &[&str]) -> bool {
    names.iter().any(|name| words.contains(&normalized(name).as_str()))
}

/// Whether `name` is a common name that is a name only: made of two words, the second of which says what it stands for.
pub(super) fn is_sure_name(name: &str) -> bool {
    let name = normalized(name);
    let is_common =
        [Role::User, Role::Item, Role::Time].iter().any(|role| role.common_names().contains(&name.as_str()));
    is_common && ["id", "index", "idx", "hash", "time", "timestamp"].iter().any(|end| name.ends_with(end))
}

/// Which of these columns of a table, by their places, are the user, the item and, unless the order of the rows is the time, the time: as
/// rows of a log are read. Messages call the table by `name`. It tells what to take of a table before anything of it is read.
pub fn choose_columns(
    name: impl AsRef<Path>,
    names: &[String],
    options: &ReadOptions,
) -> Result<Vec<(Role, usize)>, DataError> {
    Ok(choose(name.as_ref(), names, &Wanted::log(options, 0))?.by_role().collect())
}

/// Chooses among named columns: those asked for, else those with common names.
///
/// Two columns, none of them a time, are a user and an item in order of time. Histories need no times.
pub(super) fn choose(path: &Path, names: &[String], wanted: &Wanted<'_>) -> Result<Chosen, DataError> {
    if wanted.is_lists() {
        return of_lists::choose(path, names, wanted);
    }
    let options = &wanted.options;
    let history = wanted.history(path, names)?;
    let user = required(path, names, wanted, Role::User)?;
    if let Some(item) = history {
        return Chosen::whole(user, item).apart(path, names);
    }
    let item = required(path, names, wanted, Role::Item)?;
    let is_asked_for = options.time_column.is_some();
    let is_there = is_asked_for || common(names, Role::Time).is_some();
    let may_lack_times = wanted.is_histories() || names.len() == 2;
    let has_times = !options.order_is_time && (is_there || !may_lack_times);
    let time = has_times.then(|| required(path, names, wanted, Role::Time)).transpose()?;
    Chosen::rows(user, item, time).apart(path, names)
}

/// Chooses among `count` columns without names: those asked for by number, else the usual order.
pub(super) fn choose_unnamed(path: &Path, count: usize, wanted: &Wanted<'_>) -> Result<Chosen, DataError> {
    let options = &wanted.options;
    let numbers: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
    let usual = |role: Role| match (role, count) {
        (Role::User, 2..=4) => Some(0),
        (Role::Item, 2..=4) => Some(1),
        (Role::Time, 3..=4) => Some(count - 1),
        _ => None,
    };
    let position = |role: Role| match (wanted.column(role), usual(role)) {
        (None, Some(position)) => Ok(position),
        _ => required(path, &numbers, wanted, role),
    };
    if let Some(item) = wanted.history(path, &numbers)? {
        let user = position(Role::User)?;
        return Chosen::whole(user, item).apart(path, &numbers);
    }
    let time = if options.order_is_time || (count == 2 && options.time_column.is_none()) {
        None
    } else {
        Some(position(Role::Time)?)
    };
    let (user, item) = (position(Role::User)?, position(Role::Item)?);
    Chosen::rows(user, item, time).apart(path, &numbers)
}

fn required(path: &Path, names: &[String], wanted: &Wanted<'_>, role: Role) -> Result<usize, DataError> {
    let wanted = wanted.column(role);
    let found = match wanted {
        Some(wanted) => named(names, wanted),
        None => common(names, role),
    };
    let found = found.ok_or_else(|| DataError::UnknownColumn {
        path: path.to_owned(),
        role,
        wanted: wanted.map(Into::into),
        columns: names.to_vec(),
        nearest: wanted.and_then(|wanted| nearest(names, wanted)),
    })?;
    match wanted {
        // A number says which of them it is, and so does a name that only one of them has letter by letter.
        Some(wanted) if normalized(wanted) != normalized(&names[found]) => Ok(found),
        Some(wanted) if names.iter().filter(|name| *name == wanted).count() == 1 => Ok(found),
        _ => not_repeated(path, names, found, role),
    }
}

/// The same column, or an error if another one has its name as well.
fn not_repeated(path: &Path, names: &[String], found: usize, role: Role) -> Result<usize, DataError> {
    if repeats(names, found) {
        let (path, column) = (path.to_owned(), names[found].as_str().into());
        return Err(DataError::RepeatedColumn { path, column, role });
    }
    Ok(found)
}

/// Whether another column has the name of this one, as [`normalized`] spells it.
pub(super) fn repeats(names: &[String], at: usize) -> bool {
    let name = normalized(&names[at]);
    names.iter().filter(|other| normalized(other) == name).count() > 1
}

/// The column called `wanted`: letter by letter, else by [`normalized`] name, else by number from 1.
fn named(names: &[String], wanted: &str) -> Option<usize> {
    let exact = names.iter().position(|name| name == wanted);
    let similar = || names.iter().position(|name| normalized(name) == normalized(wanted));
    let numbered = || {
        let number: usize = wanted.parse().ok()?;
        (1..=names.len()).contains(&number).then(|| number - 1)
    };
    exact.or_else(similar).or_else(numbered)
}

/// The column with the surest common name of a role.
pub(super) fn common(names: &[String], role: Role) -> Option<usize> {
    let names: Vec<String> = names.iter().map(|name| normalized(name)).collect();
    role.common_names().iter().find_map(|common| names.iter().position(|name| name == common))
}

fn nearest(names: &[String], wanted: &str) -> Option<Box<str>> {
    const NEAR: f64 = 0.5;
    let wanted = normalized(wanted);
    let (likeness, name) = names
        .iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&normalized(name), &wanted), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= NEAR).then(|| name.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], options: &ReadOptions) -> Result<Chosen, DataError> {
        choose(Path::new("log"), &owned(names), &Wanted::log(options, 0))
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn rows(user: usize, item: usize, time: Option<usize>) -> Chosen {
        Chosen::rows(user, item, time)
    }

    #[test]
    fn a_header_of_two_columns_names_both_or_has_a_name_that_no_id_has() {
        let catalog = Ids::Texts(Vec::new());
        let log = Wanted::log(&ReadOptions::default(), 0);
        let histories = Wanted::histories(&ReadOptions::default(), None, &catalog);
        for names in [["ann", "book"], ["u", "tent"], ["ann", "game"], ["client", "7"], ["x", "session"]] {
            assert!(!is_header(&owned(&names), &log) && !is_header(&owned(&names), &histories), "{names:?}");
        }
        for names in [["u", "i"], ["user", "book"], ["user_id", "thing"], ["who", "item_id"]] {
            assert!(is_header(&owned(&names), &log) && is_header(&owned(&names), &histories), "{names:?}");
        }
        assert!(is_header(&owned(&["ann", "history"]), &histories));
        assert!(!is_header(&owned(&["ann", "history"]), &log));
        let told = ReadOptions { header: Some(false), ..ReadOptions::default() };
        assert!(!is_header(&owned(&["user", "item"]), &Wanted::histories(&told, None, &catalog)));
    }

    #[test]
    fn a_row_that_may_be_a_header_or_an_event_is_told_of() {
        let catalog = Ids::Texts(vec!["game".into()]);
        let options = ReadOptions::default();
        let ordered = ReadOptions { order_is_time: true, ..ReadOptions::default() };
        let log = Wanted::log(&options, 0);
        let histories = Wanted::histories(&options, None, &catalog);
        let judge = |names: &[&str], wanted: &Wanted<'_>| {
            let (is_header, told) = judge_first_row(Path::new("log"), &owned(names), wanted);
            assert!(
                told.as_ref().is_none_or(|told| told.is_header == is_header && told.fields == owned(names))
            );
            (is_header, told.is_some())
        };
        // What is known is an item; what is not known may still be one.
        assert_eq!(judge(&["u", "game"], &histories), (false, true));
        assert_eq!(judge(&["u", "game"], &log), (true, true));
        assert_eq!(judge(&["u", "book"], &histories), (true, true));
        assert_eq!(judge(&["u", "items"], &histories), (true, true));
        assert_eq!(judge(&["u", "game", "red"], &Wanted::log(&ordered, 0)), (true, true));
        // There is no doubt about these.
        for names in [&["user_id", "game"][..], &["user", "item"], &["u", "game", "t"], &["User", "Items"]] {
            assert_eq!(judge(names, &histories), (true, false), "{names:?}");
        }
        assert_eq!(judge(&["ann", "tent"], &histories), (false, false));
        for is_header in [true, false] {
            let told = ReadOptions { header: Some(is_header), ..ReadOptions::default() };
            assert_eq!(judge(&["u", "game"], &Wanted::histories(&told, None, &catalog)), (is_header, false));
        }
        let named = ReadOptions { item_column: Some("game".into()), ..ReadOptions::default() };
        assert_eq!(judge(&["u", "game"], &Wanted::histories(&named, None, &catalog)), (true, false));
    }

    #[test]
    fn histories_are_whole_in_a_column_or_rows_with_or_without_times() {
        let catalog = Ids::Texts(Vec::new());
        let plain = Wanted::histories(&ReadOptions::default(), None, &catalog);
        let asked = Wanted::histories(&ReadOptions::default(), Some("basket"), &catalog);
        let choose = |names: &[&str], wanted: &Wanted| choose(Path::new("log"), &owned(names), wanted);
        let whole = Chosen::whole(0, 1);
        assert_eq!(choose(&["user", "history", "item_id"], &plain).unwrap(), whole);
        assert_eq!(choose(&["user", "item_ids"], &plain).unwrap(), whole);
        assert_eq!(choose(&["user", "basket", "history"], &asked).unwrap(), whole);
        assert_eq!(choose(&["user", "item", "sequence"], &plain).unwrap(), rows(0, 1, None));
        assert_eq!(choose(&["user", "item", "sequence", "time"], &plain).unwrap(), rows(0, 1, Some(3)));
        let message = choose(&["user", "item"], &asked).unwrap_err().to_string();
        assert!(message.contains("no history column named \"basket\""), "{message}");
    }

    #[test]
    fn common_names_are_found_in_any_spelling() {
        let options = ReadOptions::default();
        for names in [
            ["movieId", "User_ID", "Time-Stamp"],
            ["asin", "reviewerID", "unixReviewTime"],
            ["PRODUCT.ID", "visitorid", "event time"],
            ["item", "session_id", "ts"],
        ] {
            assert_eq!(chosen(&names, &options).unwrap(), rows(1, 0, Some(2)));
        }
        let both = chosen(&["session_id", "user_id", "item_id", "date", "timestamp"], &options).unwrap();
        assert_eq!(both, rows(1, 2, Some(4)));
    }

    #[test]
    fn a_wrong_name_lists_the_columns_and_the_nearest() {
        let options = ReadOptions { user_column: Some("custmer".into()), ..ReadOptions::default() };
        let message = chosen(&["customer", "thing", "when"], &options).unwrap_err().to_string();
        for part in
            ["\"custmer\"", "\"customer\", \"thing\", \"when\"", "did you mean \"customer\"", "user_column"]
        {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn two_columns_are_ordered_rows() {
        let two = chosen(&["user_id", "item_id"], &ReadOptions::default()).unwrap();
        assert_eq!(two, rows(0, 1, None));
        assert!(chosen(&["user_id", "item_id", "rating"], &ReadOptions::default()).is_err());
        let ordered = ReadOptions { order_is_time: true, ..ReadOptions::default() };
        assert_eq!(chosen(&["user_id", "item_id", "rating"], &ordered).unwrap(), two);
    }

    #[test]
    fn no_column_serves_twice() {
        let asked = |user: Option<&str>, item: Option<&str>, time: Option<&str>| ReadOptions {
            user_column: user.map(Into::into),
            item_column: item.map(Into::into),
            time_column: time.map(Into::into),
            ..ReadOptions::default()
        };
        let names = ["user_id", "item_id", "timestamp"];
        for (options, part) in [
            (asked(Some("item_id"), None, None), "\"item_id\" cannot be both the user and the item"),
            (asked(None, Some("USER-ID"), None), "\"user_id\" cannot be both the user and the item"),
            (asked(None, None, Some("1")), "\"user_id\" cannot be both the user and the time"),
            (asked(Some("2"), Some("2"), None), "both the user and the item"),
        ] {
            let message = chosen(&names, &options).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains("_column"), "{message}");
            let unnamed = choose_unnamed(Path::new("log"), 3, &Wanted::log(&options, 0));
            assert!(unnamed.is_err());
        }
        let unnamed = choose_unnamed(Path::new("log"), 3, &Wanted::log(&asked(Some("2"), None, None), 0));
        assert!(unnamed.unwrap_err().to_string().contains("\"2\" cannot be both the user and the item"));
        let catalog = Ids::Texts(Vec::new());
        let options = asked(Some("history"), None, None);
        let histories = Wanted::histories(&options, None, &catalog);
        let message =
            choose(Path::new("log"), &owned(&["user", "history"]), &histories).unwrap_err().to_string();
        assert!(message.contains("both the user and the history"), "{message}");
    }

    #[test]
    fn a_name_that_two_columns_have_is_no_name() {
        let names = ["user_id", "item_id", "timestamp", "item_id", "note", "note"];
        let by = |column: &str| ReadOptions { item_column: Some(column.into()), ..ReadOptions::default() };
        for options in [ReadOptions::default(), by("item_id"), by("Item ID")] {
            let message = chosen(&names, &options).unwrap_err().to_string();
            assert!(message.contains("several columns are called \"item_id\""), "{message}");
        }
        assert_eq!(chosen(&names, &by("4")).unwrap(), rows(0, 3, Some(2)));
    }

    #[test]
    fn unnamed_columns_go_by_number() {
        let path = Path::new("log");
        let plain = Wanted::log(&ReadOptions::default(), 0);
        let swapped = ReadOptions {
            user_column: Some("5".into()),
            item_column: Some("1".into()),
            time_column: Some("2".into()),
            ..ReadOptions::default()
        };
        let swapped = Wanted::log(&swapped, 0);
        assert_eq!(choose_unnamed(path, 4, &plain).unwrap(), rows(0, 1, Some(3)));
        assert_eq!(choose_unnamed(path, 5, &swapped).unwrap(), rows(4, 0, Some(1)));
        assert!(choose_unnamed(path, 5, &plain).is_err());
        assert!(choose_unnamed(path, 4, &swapped).is_err());
    }
}
