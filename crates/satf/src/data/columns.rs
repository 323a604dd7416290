//! Which column is the user, which the item, which the time: by the names people give them.

use std::path::Path;

use super::{DataError, ReadOptions};

/// What a column is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Item,
    Time,
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

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Item => "item",
            Role::Time => "time",
        }
    }

    fn common_names(self) -> &'static [&'static str] {
        match self {
            Role::User => USER_NAMES,
            Role::Item => ITEM_NAMES,
            Role::Time => TIME_NAMES,
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
        }
    }
}

/// The positions of the three columns; no time if the order of the rows is the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) user: usize,
    pub(super) item: usize,
    pub(super) time: Option<usize>,
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

/// Whether `name` is a common name of any role.
pub(super) fn is_common_name(name: &str) -> bool {
    let name = normalized(name);
    [Role::User, Role::Item, Role::Time].iter().any(|role| role.common_names().contains(&name.as_str()))
}

/// Chooses among named columns: those asked for, else those with common names.
///
/// Two columns, none of them a time, are a user and an item in order of time.
pub(super) fn choose(path: &Path, names: &[String], options: &ReadOptions) -> Result<Chosen, DataError> {
    let user = required(path, names, options, Role::User)?;
    let item = required(path, names, options, Role::Item)?;
    let is_pair = names.len() == 2 && options.time_column.is_none() && common(names, Role::Time).is_none();
    let has_times = !options.order_is_time && !is_pair;
    let time = has_times.then(|| required(path, names, options, Role::Time)).transpose()?;
    Ok(Chosen { user, item, time })
}

/// Chooses among `count` columns without names: those asked for by number, else the usual order.
pub(super) fn choose_unnamed(path: &Path, count: usize, options: &ReadOptions) -> Result<Chosen, DataError> {
    let numbers: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
    let usual = |role: Role| match (role, count) {
        (Role::User, 2..=4) => Some(0),
        (Role::Item, 2..=4) => Some(1),
        (Role::Time, 3..=4) => Some(count - 1),
        _ => None,
    };
    let position = |role: Role| match (options.column(role), usual(role)) {
        (None, Some(position)) => Ok(position),
        _ => required(path, &numbers, options, role),
    };
    let time = if options.order_is_time || (count == 2 && options.time_column.is_none()) {
        None
    } else {
        Some(position(Role::Time)?)
    };
    Ok(Chosen { user: position(Role::User)?, item: position(Role::Item)?, time })
}

fn required(path: &Path, names: &[String], options: &ReadOptions, role: Role) -> Result<usize, DataError> {
    let wanted = options.column(role);
    let found = match wanted {
        Some(wanted) => named(names, wanted),
        None => common(names, role),
    };
    found.ok_or_else(|| DataError::UnknownColumn {
        path: path.to_owned(),
        role: role.name(),
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
        choose(Path::new("log"), &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), options)
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
            assert_eq!(chosen(&names, &options).unwrap(), Chosen { user: 1, item: 0, time: Some(2) });
        }
        let both = chosen(&["session_id", "user_id", "item_id", "date", "timestamp"], &options).unwrap();
        assert_eq!(both, Chosen { user: 1, item: 2, time: Some(4) });
    }

    #[test]
    fn a_wrong_name_lists_the_columns_and_the_nearest() {
        let options = ReadOptions { user_column: Some("custmer".into()), ..ReadOptions::default() };
        let message = chosen(&["customer", "thing", "when"], &options).unwrap_err().to_string();
        for part in
            ["\"custmer\"", "\"customer\", \"thing\", \"when\"", "did you mean \"customer\"", "--user-column"]
        {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn two_columns_are_ordered_rows() {
        let two = chosen(&["user_id", "item_id"], &ReadOptions::default()).unwrap();
        assert_eq!(two, Chosen { user: 0, item: 1, time: None });
        assert!(chosen(&["user_id", "item_id", "rating"], &ReadOptions::default()).is_err());
        let ordered = ReadOptions { order_is_time: true, ..ReadOptions::default() };
        assert_eq!(chosen(&["user_id", "item_id", "rating"], &ordered).unwrap(), two);
    }

    #[test]
    fn unnamed_columns_go_by_number() {
        let path = Path::new("log");
        let plain = ReadOptions::default();
        let swapped = ReadOptions {
            user_column: Some("5".into()),
            item_column: Some("1".into()),
            time_column: Some("2".into()),
            ..ReadOptions::default()
        };
        assert_eq!(choose_unnamed(path, 4, &plain).unwrap(), Chosen { user: 0, item: 1, time: Some(3) });
        assert_eq!(choose_unnamed(path, 5, &swapped).unwrap(), Chosen { user: 4, item: 0, time: Some(1) });
        assert!(choose_unnamed(path, 5, &plain).is_err());
        assert!(choose_unnamed(path, 4, &swapped).is_err());
    }
}
