//! Ids, and what JSON must be an object.

use std::fmt;

use satf::interactions::OwnedId;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// An id of an item, a user or a session: a string, or an integer of 64 bits. Where a catalogue has integers, `"7"` and `7` are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct AnyId(pub OwnedId);

impl<'de> Deserialize<'de> for AnyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = AnyId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id: a string or an integer of 64 bits")
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<AnyId, E> {
                Ok(AnyId(OwnedId::Integer(id)))
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<AnyId, E> {
                let id = i64::try_from(id);
                id.map(|id| AnyId(OwnedId::Integer(id)))
                    .map_err(|_| E::custom("an integer beyond 64 bits: expected an id"))
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<AnyId, E> {
                Ok(AnyId(OwnedId::Text(id.into())))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// What is written as an object, and not as a list of its values in order, which serde would take too.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(std::marker::PhantomData))
    }
}

/// A list of objects.
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}
