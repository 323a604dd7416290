//! Which column is the user, which the item, which the time: by the names people give them.

use std::fmt;
use std::path::Path;

use super::error::shown;
use super::{DataError, ReadOptions, time};
use crate::interactions::Clock;

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
    "client", "reviewer", "sessionid", "session", "userhash", "userindex", "useridx", "u",
];
#[rustfmt::skip]
const ITEM_NAMES: &[&str] = &[
    "itemid", "item", "iid", "movieid", "asin", "productid", "parentasin", "trackid", "songid",
    "artistid", "bookid", "isbn", "articleid", "newsid", "videoid", "gameid", "appid", "businessid",
    "poiid", "venueid", "locationid", "goodsid", "contentid", "animeid", "recipeid", "beerid",
    "clickarticleid", "sku", "product", "movie", "track", "song", "artist", "book", "article", "video",
    "game", "itemindex", "itemidx", "i",
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
pub(super) struct Wanted {
    /// What the caller says about the file.
    pub(super) options: ReadOptions,
    /// The number of the first row of a prepared log whose times are row numbers.
    pub(super) first_number: i64,
    purpose: Purpose,
}

#[derive(Clone, Debug)]
enum Purpose {
    /// Rows of user, item and time.
    Log,
    /// Rows of user, item and, if there is one, time; or of user and whole history.
    Histories {
        /// The column of histories that the caller asks for.
        column: Option<String>,
    },
}

impl Wanted {
    pub(super) fn log(options: &ReadOptions, first_number: i64) -> Self {
        Wanted { options: options.clone(), first_number, purpose: Purpose::Log }
    }

    pub(super) fn histories(options: &ReadOptions, column: Option<&str>) -> Self {
        let purpose = Purpose::Histories { column: column.map(Into::into) };
        Wanted { options: options.clone(), first_number: 0, purpose }
    }

    /// Whether histories are wanted, and not a log.
    pub(super) fn is_histories(&self) -> bool {
        matches!(self.purpose, Purpose::Histories { .. })
    }

    /// The column the caller asks for in a role.
    fn column(&self, role: Role) -> Option<&str> {
        match (&self.purpose, role) {
            (Purpose::Histories { column }, Role::History) => column.as_deref(),
            _ => self.options.column(role),
        }
    }

    /// The column that holds whole histories, if one does.
    fn history(&self, path: &Path, names: &[String]) -> Result<Option<usize>, DataError> {
        if !self.is_histories()
            || (self.column(Role::History).is_none() && self.options.item_column.is_some())
        {
            return Ok(None);
        }
        if self.column(Role::History).is_some() {
            return required(path, names, self, Role::History).map(Some);
        }
        let surest = names.iter().position(|name| normalized(name) == HISTORY_NAMES[0]);
        let has_items = common(names, Role::Item).is_some();
        Ok(surest.or_else(|| common(names, Role::History).filter(|_| !has_items)))
    }
}

impl Role {
    /// `user`, `item`, `time` or `history`.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Item => "item",
            Role::Time => "time",
            Role::History => "history",
        }
    }

    fn common_names(self) -> &'static [&'static str] {
        match self {
            Role::User => USER_NAMES,
            Role::Item => ITEM_NAMES,
            Role::Time => TIME_NAMES,
            Role::History => HISTORY_NAMES,
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
            Role::History => None,
        }
    }
}

/// The positions of the three columns; no time if the order of the rows is the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) user: usize,
    pub(super) item: usize,
    pub(super) time: Option<usize>,
    /// Whether the item's column holds whole histories.
    pub(super) is_whole: bool,
}

impl Chosen {
    /// The columns that are used, and what for.
    pub(super) fn by_role(self) -> impl Iterator<Item = (Role, usize)> {
        let item = if self.is_whole { Role::History } else { Role::Item };
        [(Role::User, Some(self.user)), (item, Some(self.item)), (Role::Time, self.time)]
            .into_iter()
            .filter_map(|(role, at)| at.map(|at| (role, at)))
    }
}

/// What the columns of a file are called and what they mean.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) names: ColumnNames,
    pub(super) clock: Clock,
    /// Whether the item's column holds whole histories.
    pub(super) is_whole: bool,
}

impl Columns {
    fn new(chosen: Chosen, name: impl Fn(usize) -> Box<str>) -> Self {
        let names =
            ColumnNames { user: name(chosen.user), item: name(chosen.item), time: chosen.time.map(&name) };
        let clock = if chosen.time.is_some() { Clock::Calendar } else { Clock::RowOrder };
        Columns { names, clock, is_whole: chosen.is_whole }
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
pub(super) fn is_header(names: &[String], wanted: &Wanted) -> bool {
    if let Some(told) = wanted.options.header {
        return told;
    }
    if names.iter().any(|name| time::looks_like_time(name.as_bytes())) {
        return false;
    }
    let roles = [Role::User, Role::Item, Role::Time, Role::History];
    let is_asked_for = roles
        .iter()
        .filter_map(|&role| wanted.column(role))
        .any(|asked| names.iter().any(|name| name == asked));
    let names_both = common(names, Role::User).is_some() && common(names, Role::Item).is_some();
    let names_history = wanted.is_histories() && common(names, Role::History).is_some();
    is_asked_for
        || names.len() > 2
        || names_both
        || names_history
        || names.iter().any(|name| is_sure_name(name))
}

/// Whether `name` is a common name that is a name only: made of two words, the second of which says what it stands for.
pub(super) fn is_sure_name(name: &str) -> bool {
    let name = normalized(name);
    let is_common =
        [Role::User, Role::Item, Role::Time].iter().any(|role| role.common_names().contains(&name.as_str()));
    is_common && ["id", "index", "idx", "hash", "time", "timestamp"].iter().any(|end| name.ends_with(end))
}

/// Chooses among named columns: those asked for, else those with common names.
///
/// Two columns, none of them a time, are a user and an item in order of time. Histories need no times.
pub(super) fn choose(path: &Path, names: &[String], wanted: &Wanted) -> Result<Chosen, DataError> {
    let options = &wanted.options;
    let history = wanted.history(path, names)?;
    let user = required(path, names, wanted, Role::User)?;
    if let Some(item) = history {
        return Ok(Chosen { user, item, time: None, is_whole: true });
    }
    let item = required(path, names, wanted, Role::Item)?;
    let is_asked_for = options.time_column.is_some();
    let is_there = is_asked_for || common(names, Role::Time).is_some();
    let may_lack_times = wanted.is_histories() || names.len() == 2;
    let has_times = !options.order_is_time && (is_there || !may_lack_times);
    let time = has_times.then(|| required(path, names, wanted, Role::Time)).transpose()?;
    Ok(Chosen { user, item, time, is_whole: false })
}

/// Chooses among `count` columns without names: those asked for by number, else the usual order.
pub(super) fn choose_unnamed(path: &Path, count: usize, wanted: &Wanted) -> Result<Chosen, DataError> {
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
        return Ok(Chosen { user: position(Role::User)?, item, time: None, is_whole: true });
    }
    let time = if options.order_is_time || (count == 2 && options.time_column.is_none()) {
        None
    } else {
        Some(position(Role::Time)?)
    };
    Ok(Chosen { user: position(Role::User)?, item: position(Role::Item)?, time, is_whole: false })
}

fn required(path: &Path, names: &[String], wanted: &Wanted, role: Role) -> Result<usize, DataError> {
    let wanted = wanted.column(role);
    let found = match wanted {
        Some(wanted) => named(names, wanted),
        None => common(names, role),
    };
    found.ok_or_else(|| DataError::UnknownColumn {
        path: path.to_owned(),
        role,
        wanted: wanted.map(Into::into),
        columns: names.to_vec(),
        nearest: wanted.and_then(|wanted| nearest(names, wanted)),
    })
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
        Chosen { user, item, time, is_whole: false }
    }

    #[test]
    fn a_header_of_two_columns_names_both_or_has_a_name_that_no_id_has() {
        let log = Wanted::log(&ReadOptions::default(), 0);
        let histories = Wanted::histories(&ReadOptions::default(), None);
        for names in [["ann", "book"], ["u", "tent"], ["ann", "game"], ["client", "7"], ["x", "session"]] {
            assert!(!is_header(&owned(&names), &log) && !is_header(&owned(&names), &histories), "{names:?}");
        }
        for names in [["u", "i"], ["user", "book"], ["user_id", "thing"], ["who", "item_id"]] {
            assert!(is_header(&owned(&names), &log) && is_header(&owned(&names), &histories), "{names:?}");
        }
        assert!(is_header(&owned(&["ann", "history"]), &histories));
        assert!(!is_header(&owned(&["ann", "history"]), &log));
        let told = ReadOptions { header: Some(false), ..ReadOptions::default() };
        assert!(!is_header(&owned(&["user", "item"]), &Wanted::histories(&told, None)));
    }

    #[test]
    fn histories_are_whole_in_a_column_or_rows_with_or_without_times() {
        let plain = Wanted::histories(&ReadOptions::default(), None);
        let asked = Wanted::histories(&ReadOptions::default(), Some("basket"));
        let choose = |names: &[&str], wanted: &Wanted| choose(Path::new("log"), &owned(names), wanted);
        let whole = Chosen { user: 0, item: 1, time: None, is_whole: true };
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
