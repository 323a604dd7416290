//! Histories: items, items taken together, items with times.

use std::fmt;

use satf::interactions::OwnedId;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::AnyId;

/// A step of a history: an item; several items taken together; or an item and when it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Step {
    /// An item.
    Item(OwnedId),
    /// Items taken together.
    Basket(Vec<OwnedId>),
    /// An item and its time: seconds since 1970, or a date and time. Either all steps have one or none.
    Timed {
        /// The item.
        #[serde(rename = "item_id")]
        item: OwnedId,
        /// When.
        time: StepTime,
    },
}

/// When an item was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum StepTime {
    /// Seconds since 1970, or milliseconds and so on by their size, as in a log.
    Number(i64),
    /// A date, with or without a time: `2024-05-17`, `2024-05-17T08:30:00Z`.
    Text(Box<str>),
}

impl<'de> Deserialize<'de> for StepTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match AnyId::deserialize(deserializer)?.0 {
            OwnedId::Integer(number) => StepTime::Number(number),
            OwnedId::Text(text) => StepTime::Text(text),
        })
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = Step;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id, a list of ids taken together, or {\"item_id\": .., \"time\": ..}")
            }

            fn visit_i64<E: de::Error>(self, id: i64) -> Result<Step, E> {
                Ok(Step::Item(OwnedId::Integer(id)))
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<Step, E> {
                let id = i64::try_from(id);
                id.map(|id| Step::Item(OwnedId::Integer(id)))
                    .map_err(|_| E::custom("an integer beyond 64 bits: expected an id"))
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<Step, E> {
                Ok(Step::Item(OwnedId::Text(id.into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut ids: A) -> Result<Step, A::Error> {
                let mut basket = Vec::new();
                while let Some(AnyId(id)) = ids.next_element()? {
                    basket.push(id);
                }
                Ok(Step::Basket(basket))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Step, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Fields {
                    item_id: AnyId,
                    time: Option<StepTime>,
                }
                let fields = Fields::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(match fields.time {
                    Some(time) => Step::Timed { item: fields.item_id.0, time },
                    None => Step::Item(fields.item_id.0),
                })
            }
        }
        deserializer.deserialize_any(StepVisitor)
    }
}
