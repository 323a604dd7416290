//! One JSON object a line: Amazon reviews and any other.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::columns::{self, ColumnNames, Role};
use super::error::{Fault, shown};
use super::intake::Intake;
use super::log_builder::Field;
use super::records::nul_fault;
use super::source::Source;
use super::{DataError, Format};
use crate::interactions::Clock;

/// The keys of the three values in every object.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) user: String,
    pub(super) item: String,
    pub(super) time: Option<String>,
}

impl Keys {
    /// The keys a format is known for, those asked for put in their place.
    pub(super) fn fixed(user: &str, item: &str, time: &str, intake: &Intake<'_>) -> Keys {
        let options = intake.options;
        let key = |role, usual: &str| options.column(role).unwrap_or(usual).to_owned();
        Keys {
            user: key(Role::User, user),
            item: key(Role::Item, item),
            time: (!options.order_is_time).then(|| key(Role::Time, time)),
        }
    }

    /// Tells the intake what the values are called.
    pub(super) fn announce(&self, intake: &mut Intake<'_>) -> Result<(), DataError> {
        let name = |key: &str| shown(key.as_bytes()).into();
        let names = ColumnNames {
            user: name(&self.user),
            item: name(&self.item),
            time: self.time.as_deref().map(name),
        };
        let clock = if self.time.is_some() { Clock::Calendar } else { Clock::RowOrder };
        intake.set_columns(names, clock)
    }

    /// What the value of `key` is for.
    #[inline]
    pub(super) fn role(&self, key: &[u8]) -> Option<Role> {
        if key == self.user.as_bytes() {
            Some(Role::User)
        } else if key == self.item.as_bytes() {
            Some(Role::Item)
        } else if self.time.as_ref().is_some_and(|time| key == time.as_bytes()) {
            Some(Role::Time)
        } else {
            None
        }
    }
}

/// Reads all rows of a file of JSON objects.
pub(super) fn read(
    source: &mut Source<'_>,
    format: Format,
    intake: &mut Intake<'_>,
) -> Result<(), DataError> {
    let mut keys = None;
    if format == Format::Amazon {
        let known = Keys::fixed("reviewerID", "asin", "unixReviewTime", intake);
        known.announce(intake)?;
        keys = Some(known);
    }
    while let Some(line) = source.next_line()? {
        let number = line.number;
        let text = source.text(line);
        if memchr(0, text).is_some() {
            intake.bad_row(number, nul_fault(text))?;
            continue;
        }
        let keys = match &mut keys {
            Some(keys) => keys,
            // The first object shows what the keys are.
            unknown @ None => match parse(text, KeyList) {
                Ok(names) => {
                    let chosen = columns::choose(intake.path(), &names, intake.options)?;
                    let found = unknown.insert(Keys {
                        user: names[chosen.user].clone(),
                        item: names[chosen.item].clone(),
                        time: chosen.time.map(|at| names[at].clone()),
                    });
                    found.announce(intake)?;
                    found
                }
                Err(fault) => {
                    intake.bad_row(number, *fault)?;
                    continue;
                }
            },
        };
        match parse(text, Row(keys)) {
            Ok([user, item, time]) => {
                let time = keys.time.is_some().then(|| time.field());
                intake.row(number, user.field(), item.field(), time)?;
            }
            Err(fault) => intake.bad_row(number, *fault)?,
        }
    }
    Ok(())
}

fn parse<'a, S: DeserializeSeed<'a>>(text: &'a [u8], seed: S) -> Result<S::Value, Box<Fault>> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        // The parser counts lines too, and here there is only one.
        let reason = error.to_string().replace(" at line 1 column", " at byte");
        Box::new(Fault::of_line(format!("{} ({reason})", shown(text)), "a JSON object"))
    })
}

/// A value as far as it matters here.
enum Value<'a> {
    Missing,
    Text(Cow<'a, str>),
    Number(Field<'static>),
    Other(&'static str),
}

impl Value<'_> {
    fn field(&self) -> Field<'_> {
        match self {
            Value::Missing => Field::Missing,
            Value::Text(text) => Field::Text(text.as_bytes()),
            Value::Number(number) => *number,
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

/// Takes user, item and time out of an object.
struct Row<'k>(&'k Keys);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = [Value<'de>; 3];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = [Value<'de>; 3];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [Value::Missing, Value::Missing, Value::Missing];
        while let Some(role) = map.next_key_seed(Key(self.0))? {
            let at = match role {
                Some(Role::User) => 0,
                Some(Role::Item) => 1,
                Some(Role::Time) => 2,
                None => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            values[at] = map.next_value_seed(AnyValue)?;
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

/// Reads a value of any type; what is no id and no time is passed over.
struct AnyValue;

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
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other("an object"))
    }
}
