//! JSON whose objects have every key once. Parsers take the last of several values for one key; which one was meant nobody knows.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::fault::excerpt;

/// Any value, for `deserialize_with`.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Unique::deserialize(deserializer).map(|unique| unique.0)
}

/// An object, for `deserialize_with`.
pub(crate) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match value(deserializer)? {
        Value::Object(object) => Ok(object),
        other => {
            Err(D::Error::custom(format_args!("expected an object, found {}", excerpt(&other.to_string()))))
        }
    }
}

/// A map of keys to values of one type, for `deserialize_with`.
pub(crate) fn map<'de, D, T, M>(deserializer: D) -> Result<M, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    M: Default + Extend<(String, T)>,
{
    struct MapVisitor<T, M>(PhantomData<(T, M)>);
    impl<'de, T: Deserialize<'de>, M: Default + Extend<(String, T)>> Visitor<'de> for MapVisitor<T, M> {
        type Value = M;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<M, A::Error> {
            let (mut map, mut seen) = (M::default(), hashbrown::HashSet::new());
            while let Some(key) = entries.next_key::<String>()? {
                let value = entries.next_value()?;
                if !seen.insert(key.clone()) {
                    return Err(repeated(&key));
                }
                map.extend([(key, value)]);
            }
            Ok(map)
        }
    }
    deserializer.deserialize_map(MapVisitor(PhantomData))
}

/// That a key appears twice.
pub(crate) fn repeated<E: Error>(key: &str) -> E {
    E::custom(format_args!("the key '{}' appears twice", excerpt(key)))
}

/// Any value, whose objects have every key once.
pub(crate) struct Unique(pub(crate) Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Unique)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Unique(value) = entries.next_value()?;
            if object.contains_key(&key) {
                return Err(repeated(&key));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_they_were_and_keys_are_there_once() {
        for text in ["null", "[1, -2, 2.5, \"x\", true]", r#"{"b": {"a": []}, "a": 18446744073709551615}"#] {
            let Unique(read) = serde_json::from_str(text).unwrap();
            assert_eq!(read, serde_json::from_str::<Value>(text).unwrap());
        }
        let message = serde_json::from_str::<Unique>(r#"[{"x": {"a": 1, "b": 2, "a": 1}}]"#).err().unwrap();
        assert!(message.to_string().contains("the key 'a' appears twice"), "{message}");
    }
}
