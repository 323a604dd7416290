//! JSON objects, one a line or the elements of a list: Amazon reviews and any other.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::columns::{self, Chosen, Columns, OrderBy, Role, Wanted};
use super::error::{Fault, Position, shown};
use super::field::Field;
use super::history_text::JsonList;
use super::json_texts::JsonTexts;
use super::records::nul_fault;
use super::rows::{Next, Row};
use super::source::Source;
use super::{DataError, Format, ReadOptions};

/// The keys of the values in every object.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) user: String,
    pub(super) item: String,
    pub(super) time: Option<String>,
    /// Whether the item's value is a whole history, or a whole list.
    is_whole: bool,
    order: Option<(String, OrderBy)>,
    is_event: bool,
}

impl Keys {
    /// The keys a format is known for, those asked for put in their place.
    pub(super) fn fixed(user: &str, item: &str, time: &str, options: &ReadOptions) -> Keys {
        let key = |role, usual: &str| options.column(role).unwrap_or(usual).to_owned();
        Keys {
            user: key(Role::User, user),
            item: key(Role::Item, item),
            time: (!options.order_is_time).then(|| key(Role::Time, time)),
            is_whole: false,
            order: None,
            is_event: false,
        }
    }

    fn chosen(chosen: Chosen, names: &[String]) -> Keys {
        Keys {
            user: names[chosen.user].clone(),
            item: names[chosen.item].clone(),
            time: chosen.time.map(|at| names[at].clone()),
            is_whole: chosen.is_whole,
            order: chosen.order.map(|(at, by)| (names[at].clone(), by)),
            is_event: chosen.is_event,
        }
    }

    /// What the values are called and mean.
    pub(super) fn columns(&self) -> Columns {
        let order = self.order.as_ref().map(|(name, _)| name);
        let names = [Some(&self.user), Some(&self.item), self.time.as_ref(), order];
        let names: Vec<String> = names.into_iter().flatten().cloned().collect();
        let time = self.time.is_some().then_some(2);
        let order = self.order.as_ref().map(|(_, by)| (names.len() - 1, *by));
        let (is_whole, is_event) = (self.is_whole, self.is_event);
        Columns::named(Chosen { is_whole, order, is_event, ..Chosen::rows(0, 1, time) }, &names)
    }

    /// What the value of `key` is for.
    #[inline]
    pub(super) fn role(&self, key: &[u8]) -> Option<Role> {
        if key == self.user.as_bytes() {
            Some(Role::User)
        } else if key == self.item.as_bytes() {
            Some(if self.is_whole { Role::History } else { Role::Item })
        } else if self.time.as_ref().is_some_and(|time| key == time.as_bytes()) {
            Some(Role::Time)
        } else if self.order.as_ref().is_some_and(|(order, _)| key == order.as_bytes()) {
            Some(Role::Rank)
        } else {
            None
        }
    }
}

/// The rows of a file of JSON objects. Where histories are wanted, a list of ids is a history of its own, and its user is its number from 1.
pub(super) struct JsonRows<'a> {
    texts: JsonTexts<'a>,
    wanted: Wanted<'a>,
    known: Option<(Keys, Columns)>,
    /// What a value is expected to be.
    expected: &'static str,
    lists: i64,
    objects: u64,
}

impl<'a> JsonRows<'a> {
    pub(super) fn open(source: Source<'a>, format: Format, wanted: Wanted<'a>) -> Result<Self, DataError> {
        let known = (format == Format::Amazon).then(|| {
            let keys = Keys::fixed("reviewerID", "asin", "unixReviewTime", &wanted.options);
            let columns = keys.columns();
            (keys, columns)
        });
        let expected = match &known {
            None if wanted.is_histories() => {
                "a history such as {\"user_id\": \"ann\", \"history\": [\"tent\", \"sleeping bag\"]}"
            }
            _ => "a JSON object",
        };
        Ok(JsonRows { texts: JsonTexts::open(source)?, wanted, known, expected, lists: 0, objects: 0 })
    }

    pub(super) fn path(&self) -> &Path {
        self.texts.path()
    }

    pub(super) fn text_bytes(&self) -> u64 {
        self.texts.text_bytes()
    }

    /// Whether all values so far were lists that stand alone, in which nothing has a name.
    pub(super) fn has_only_lists(&self) -> bool {
        self.lists > 0 && self.objects == 0
    }

    #[inline]
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(&Columns, Row<'_>) -> T,
    ) -> Result<Next<T>, DataError> {
        let Some(line) = self.texts.advance()? else { return Ok(Next::End) };
        let text = self.texts.text();
        if memchr(0, text).is_some() {
            return Ok(Next::Bad(Position::Line(line), Box::new(nul_fault(text))));
        }
        if self.wanted.is_histories() && text.first() == Some(&b'[') {
            self.lists += 1;
            return Ok(match parse(text, AnyValue { keeps_lists: true }, self.expected) {
                Ok(list) => {
                    let user = Field::Integer(self.lists);
                    Next::Row(take(
                        &bare_lists(),
                        Row {
                            position: Position::Line(line),
                            user,
                            item: list.field(),
                            time: None,
                            order: None,
                        },
                    ))
                }
                Err(fault) => Next::Bad(Position::Line(line), fault),
            });
        }
        self.objects += 1;
        let (keys, columns) = match &self.known {
            Some((keys, columns)) => (keys, columns),
            // The first object shows what the keys are.
            None => match parse(text, KeyList, self.expected) {
                Ok(names) => {
                    let chosen = columns::choose(self.texts.path(), &names, &self.wanted)?;
                    let keys = Keys::chosen(chosen, &names);
                    let columns = keys.columns();
                    let (keys, columns) = self.known.insert((keys, columns));
                    (&*keys, &*columns)
                }
                Err(fault) => return Ok(Next::Bad(Position::Line(line), fault)),
            },
        };
        Ok(match parse(text, RowOf(keys), self.expected) {
            Ok([user, item, time, order]) => {
                let time = keys.time.is_some().then(|| time.field());
                let order = keys.order.is_some().then(|| order.field());
                let (user, item) = (user.field(), item.field());
                Next::Row(take(columns, Row { position: Position::Line(line), user, item, time, order }))
            }
            Err(fault) => Next::Bad(Position::Line(line), fault),
        })
    }
}

/// Lists that stand alone have no names.
fn bare_lists() -> Columns {
    Columns::numbered(Chosen::whole(0, 1))
}

fn parse<'a, S: DeserializeSeed<'a>>(
    text: &'a [u8],
    seed: S,
    expected: &str,
) -> Result<S::Value, Box<Fault>> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        // The parser counts lines too, and here there is only one.
        let reason = error.to_string().replace(" at line 1 column", " at byte");
        Box::new(Fault::of_line(format!("{} ({reason})", shown(text)), expected))
    })
}

/// A value as far as it matters here.
enum Value<'a> {
    Missing,
    Text(Cow<'a, str>),
    Number(Field<'static>),
    List(JsonList<'a>),
    Other(&'static str),
}

impl Value<'_> {
    fn field(&self) -> Field<'_> {
        match self {
            Value::Missing => Field::Missing,
            Value::Text(text) => Field::Text(text.as_bytes()),
            Value::Number(number) => *number,
            Value::List(list) => Field::List(list),
            Value::Other(what) => Field::Other(what),
        }
    }
}

/// Collects the keys of an object.
struct KeyList;

impl<'de> DeserializeSeed<'de> for KeyList {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for KeyList {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut keys = Vec::new();
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            keys.push(key);
        }
        Ok(keys)
    }
}

/// What the values of [`RowOf`] are called.
pub(super) const ROLES: [&str; 4] = ["user", "item or history", "time", "rank or score"];

/// Takes user, item, time and rank or score out of an object.
struct RowOf<'k>(&'k Keys);

impl<'de> DeserializeSeed<'de> for RowOf<'_> {
    type Value = [Value<'de>; 4];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowOf<'_> {
    type Value = [Value<'de>; 4];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [Value::Missing, Value::Missing, Value::Missing, Value::Missing];
        while let Some(role) = map.next_key_seed(Key(self.0))? {
            let at = match role {
                Some(Role::User) => 0,
                Some(Role::Item | Role::History) => 1,
                Some(Role::Time) => 2,
                Some(Role::Rank) => 3,
                None => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if !matches!(values[at], Value::Missing) {
                return Err(A::Error::custom(format_args!("the key of the {} appears twice", ROLES[at])));
            }
            let keeps_lists = role == Some(Role::History);
            values[at] = map.next_value_seed(AnyValue { keeps_lists })?;
        }
        Ok(values)
    }
}

/// Tells a key's role without keeping it.
struct Key<'k>(&'k Keys);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<Role>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<Role>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.role(key.as_bytes()))
    }
}

/// Reads a value of any type; what is no id, no time and no list of ids is passed over.
struct AnyValue {
    keeps_lists: bool,
}

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Field::Integer(number)))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value<'de>, E> {
        let small = i64::try_from(number).map(Field::Integer);
        Ok(Value::Number(small.unwrap_or(Field::Unsigned(number))))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(Field::Float(number)))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Value<'de>, E> {
        Ok(Value::Other(if truth { "true" } else { "false" }))
    }

    fn visit_unit<E: Error>(self) -> Result<Value<'de>, E> {
        Ok(Value::Other("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value<'de>, A::Error> {
        if self.keeps_lists {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                entries.push(entry);
            }
            return Ok(Value::List(JsonList(entries)));
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an object"))
    }
}
