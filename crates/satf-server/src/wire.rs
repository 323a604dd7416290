//! Requests and answers as they come and go: JSON. These types are the API; `/openapi.json` is made from them.

use std::borrow::Cow;
use std::fmt;

use satf::interactions::{Id, OwnedId};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

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

fn id_schema() -> Schema {
    let id = OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(Type::String))
        .item(
            ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))),
        )
        .description(Some("An id: a string, or an integer of 64 bits."));
    Schema::OneOf(id.build())
}

impl PartialSchema for AnyId {
    fn schema() -> RefOr<Schema> {
        RefOr::T(id_schema())
    }
}

impl ToSchema for AnyId {
    fn name() -> Cow<'static, str> {
        "Id".into()
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
fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|object| object.0).collect())
}

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

impl PartialSchema for Step {
    fn schema() -> RefOr<Schema> {
        let id = || Ref::from_schema_name("Id");
        let time = OneOfBuilder::new()
            .item(ObjectBuilder::new().schema_type(Type::Integer))
            .item(ObjectBuilder::new().schema_type(Type::String))
            .description(Some("Seconds since 1970, or a date and time such as 2024-05-17T08:30:00Z."));
        let timed = ObjectBuilder::new()
            .property("item_id", id())
            .property("time", time)
            .required("item_id")
            .additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::FreeForm(false)));
        let step =
            OneOfBuilder::new().item(id()).item(ArrayBuilder::new().items(id())).item(timed).description(
                Some("An item; several items taken together; or an item and when it was taken."),
            );
        RefOr::T(Schema::OneOf(step.build()))
    }
}

impl ToSchema for Step {
    fn name() -> Cow<'static, str> {
        "Step".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push(("Id".to_owned(), AnyId::schema()));
    }
}

/// Which items of the history may be recommended again: none (`false`), all (`true`), or those of a list, such as what is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "true, false, or a list of ids")]
pub enum AllowSeen {
    /// None or all.
    All(bool),
    /// These.
    These(Vec<AnyId>),
}

impl Default for AllowSeen {
    fn default() -> Self {
        AllowSeen::All(false)
    }
}

/// What becomes of an item's score before the best are taken: it is multiplied first, then added to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemBoost {
    /// The item.
    pub item_id: AnyId,
    /// How many times as good it is: above 0.
    #[schema(exclusive_minimum = 0.0)]
    pub multiply: Option<f32>,
    /// Added to its score.
    pub add: Option<f32>,
}

/// What a history gets of which no item is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FallbackKind {
    /// The most popular items.
    #[default]
    Popular,
    /// Nothing.
    Empty,
}

/// What is asked of a model. Filters apply before the best items are taken, so `n` items come back whenever that many are allowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecommendRequest {
    /// What was taken so far, oldest first.
    pub history: Vec<Step>,
    /// How many items to recommend (default 10).
    #[schema(minimum = 0, maximum = 1000)]
    pub n: Option<u64>,
    /// Items that may not be recommended.
    pub exclude: Vec<AnyId>,
    /// The only items that may be recommended.
    pub only: Option<Vec<AnyId>>,
    /// A filter over the attributes of items, such as `category = tents and price < 100`.
    pub r#where: Option<String>,
    /// Items that are to come sooner or later than their scores say.
    #[serde(deserialize_with = "objects")]
    pub boost: Vec<ItemBoost>,
    /// Which items of the history may be recommended again (default none).
    pub allow_seen: AllowSeen,
    /// Whether to say how much of each score comes from which past item (default no).
    pub explain: bool,
    /// What a history gets of which no item is known (default the most popular items).
    pub fallback: FallbackKind,
    /// The model that answers (default: by the split, or the default model).
    pub model: Option<String>,
    /// Who asks: decides which model answers if requests are split. Nothing is kept of it.
    pub user_id: Option<AnyId>,
    /// The session: decides as `user_id` does, where that is missing.
    pub session_id: Option<AnyId>,
}

/// Many requests at once. Each is answered as if it had come alone, to the bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The requests.
    #[serde(deserialize_with = "objects")]
    pub requests: Vec<RecommendRequest>,
}

/// One item after the other, as a page of a shop asks.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SessionQuery {
    /// The session. What it looked at before is remembered if there is consent.
    #[param(min_length = 1, max_length = 200)]
    pub session_id: Option<String>,
    /// The item that is looked at.
    pub item_id: Option<String>,
    /// Whether the visitor agreed to be remembered (default no: then nothing is kept, and what was is forgotten).
    #[serde(default)]
    pub user_consent: bool,
    /// How many items to recommend (default 10).
    #[param(minimum = 0, maximum = 1000)]
    pub n: Option<u64>,
    /// The model that answers.
    pub model: Option<String>,
}

/// Which model, and how much.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SimilarQuery {
    /// The item.
    pub item_id: String,
    /// How many items (default 10).
    #[param(minimum = 0, maximum = 1000)]
    pub n: Option<u64>,
    /// The model that answers.
    pub model: Option<String>,
}

/// Which model, and how much.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PopularQuery {
    /// How many items (default 10).
    #[param(minimum = 0, maximum = 1000)]
    pub n: Option<u64>,
    /// A filter over the attributes of items.
    pub r#where: Option<String>,
    /// The model that answers.
    pub model: Option<String>,
}

/// What was typed.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CompletionQuery {
    /// The beginning of a title, of a word of it, or of an id; empty for the most popular.
    #[serde(default)]
    pub prefix: String,
    /// How many items (default 10).
    #[param(minimum = 0, maximum = 1000)]
    pub n: Option<u64>,
    /// The model whose catalogue is searched.
    pub model: Option<String>,
}

/// Which model.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ModelQuery {
    /// The model (default: the default model).
    pub model: Option<String>,
}

/// Why the list does not follow from the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// The history is empty.
    EmptyHistory,
    /// The model knows no item of the history.
    NoKnownItem,
}

/// What a history gets.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecommendResponse<'a> {
    /// The model that answered.
    pub model: &'a str,
    /// Its version: the beginning of its file's checksum.
    pub model_version: &'a str,
    /// Items, best first.
    pub items: Vec<RecommendedItem<'a>>,
    /// How many items of the history the model does not know.
    pub unknown_items: usize,
    /// Why the list does not follow from the history; null if it does.
    pub fallback: Option<FallbackReason>,
    /// Ids of `exclude`, `only`, `boost` and `allow_seen` that the model does not know, at most ten of them. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<AnyId>, required = false)]
    pub unknown_ids: Vec<Id<'a>>,
}

/// An item that is recommended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RecommendedItem<'a> {
    /// The item.
    #[schema(value_type = AnyId)]
    pub item_id: Id<'a>,
    /// Its score, in single precision.
    pub score: f32,
    /// What people call it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<&'a str>,
    /// Where the score comes from, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub explanation: Option<ScoreExplanation<'a>>,
}

/// Where a score comes from: shares, base and boost sum to it, up to the rounding of single precision.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ScoreExplanation<'a> {
    /// What each known item of the history adds, oldest first.
    pub shares: Vec<HistoryShare<'a>>,
    /// What does not come from the history.
    pub base: f64,
    /// What `boost` made of it.
    pub boost: f64,
}

/// What an item of the history adds to a score.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HistoryShare<'a> {
    /// The item.
    #[schema(value_type = AnyId)]
    pub item_id: Id<'a>,
    /// What it adds.
    pub share: f64,
}

/// The answers to a batch call, in the order of its requests.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BatchResponse<'a> {
    /// The answers.
    pub answers: Vec<RecommendResponse<'a>>,
}

/// Items that are alike.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SimilarResponse<'a> {
    /// The model that answered.
    pub model: &'a str,
    /// Its version.
    pub model_version: &'a str,
    /// What was measured, in a few words.
    pub measure: &'a str,
    /// The most alike first.
    pub items: Vec<SimilarItemOut<'a>>,
}

/// An item like another one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SimilarItemOut<'a> {
    /// The item.
    #[schema(value_type = AnyId)]
    pub item_id: Id<'a>,
    /// How alike it is: above 0.
    pub similarity: f32,
    /// What people call it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<&'a str>,
}

/// Items with their counts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ItemList<'a> {
    /// The model whose catalogue it is.
    pub model: &'a str,
    /// Its version.
    pub model_version: &'a str,
    /// The items.
    pub items: Vec<ItemSummary<'a>>,
}

/// An item of the catalogue.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ItemSummary<'a> {
    /// The item.
    #[schema(value_type = AnyId)]
    pub item_id: Id<'a>,
    /// How often it was taken in the log that the model learned from.
    pub count: u32,
    /// What people call it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<&'a str>,
}

/// All that is known of an item.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ItemResponse<'a> {
    /// The model whose catalogue it is in.
    pub model: &'a str,
    /// Its version.
    pub model_version: &'a str,
    /// The item.
    #[schema(value_type = AnyId)]
    pub item_id: Id<'a>,
    /// How often it was taken in the log that the model learned from.
    pub count: u32,
    /// What people call it; null if that is not known.
    pub title: Option<&'a str>,
    /// Its attributes, by name.
    #[schema(value_type = Object)]
    pub attributes: serde_json::Value,
}

/// The models that are served.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelsResponse {
    /// The model of requests that name none.
    pub default_model: String,
    /// All of them.
    pub models: Vec<ModelSummary>,
}

/// A model that is served.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelSummary {
    /// What requests call it.
    pub name: String,
    /// The beginning of its file's checksum.
    pub version: String,
    /// Its kind, such as `d-satf`.
    pub kind: String,
    /// Items of its catalogue.
    pub items: usize,
    /// Its share of the requests that name no model, from 0 to 1, if they are split.
    pub share: Option<f64>,
    /// Seconds since it was loaded.
    pub age_seconds: f64,
}

/// What a model is, what it learned from and how it weighs the past.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelResponse {
    /// What requests call it.
    pub name: String,
    /// The beginning of its file's checksum.
    pub version: String,
    /// Its kind, such as `d-satf`.
    pub kind: String,
    /// Items of its catalogue.
    pub items: usize,
    /// Bytes of its file.
    pub file_bytes: u64,
    /// Seconds since it was loaded.
    pub age_seconds: f64,
    /// Whether it can say how much of a score comes from which past item.
    pub explains: bool,
    /// Every key of its configuration.
    #[schema(value_type = Object)]
    pub configuration: serde_json::Value,
    /// What training found by itself; null where the file does not tell.
    #[schema(value_type = Object)]
    pub learned: serde_json::Value,
    /// What it learned from: users, items, rows and so on.
    #[schema(value_type = Object)]
    pub dataset: serde_json::Value,
    /// How good it was on events held back, if that was measured.
    #[schema(value_type = Option<Object>)]
    pub validation: Option<serde_json::Value>,
    /// The version of satf that trained it.
    pub satf_version: String,
    /// What an item of a history counts by its lag, the newest first: the attention curve, its first 100 values. Empty if the model has
    /// none.
    pub attention: Vec<f64>,
    /// The attributes that filters can ask for.
    pub attributes: Vec<AttributeSummary>,
    /// How many items of the catalogue have attributes.
    pub items_with_attributes: usize,
}

/// An attribute that filters can ask for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttributeSummary {
    /// Its name.
    pub name: String,
    /// `number`, `flag` or `text`.
    pub kind: String,
}

/// What came of reading the files again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReloadResponse {
    /// Models that are new, or of a new version.
    pub loaded: Vec<String>,
    /// Models whose files are as they were.
    pub unchanged: Vec<String>,
    /// Models whose files are gone.
    pub removed: Vec<String>,
    /// What was refused, and why: what was served before goes on.
    pub refused: Vec<Refusal>,
}

/// What was refused, and why.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Refusal {
    /// The model, or `items`, `keys` or `tls`.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// How much the server has to do: now, and second by second.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StatsResponse {
    /// Seconds since the server started.
    pub uptime_seconds: f64,
    /// Requests under way.
    pub in_flight: i64,
    /// Open connections.
    pub connections: i64,
    /// Sessions kept.
    pub sessions: usize,
    /// Histories that wait for a computing thread.
    pub queue: usize,
    /// Resident memory of the server in bytes, where the system tells.
    pub memory_bytes: Option<u64>,
    /// The last two minutes, the newest second last.
    pub seconds: Vec<SecondStats>,
    /// Figures since the start, by model.
    pub models: Vec<ModelStats>,
}

/// What happened in a second. Latencies are those of requests for items, as the server sees them.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct SecondStats {
    /// Requests for items that were answered.
    pub requests: u64,
    /// Responses with status 4xx, of all routes.
    pub client_errors: u64,
    /// Responses with status 5xx, of all routes.
    pub server_errors: u64,
    /// Requests that were refused because of overload.
    pub rejected: u64,
    /// Half of the requests took at most so many milliseconds; null if there were none.
    pub p50_ms: Option<f64>,
    /// Nine of ten did.
    pub p90_ms: Option<f64>,
    /// Ninety-nine of a hundred did.
    pub p99_ms: Option<f64>,
}

/// Figures of a model since the start.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelStats {
    /// The model.
    pub name: String,
    /// Histories answered.
    pub answers: u64,
    /// Items of histories that it did not know.
    pub unknown_items: u64,
    /// Histories without a known item.
    pub fallbacks: u64,
}

/// Whether the server is alive, or ready.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct HealthResponse {
    /// `live`, `ready` or `draining`.
    pub status: String,
}

/// A model as the Open Inference Protocol describes it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InferenceModel {
    /// Its name.
    pub name: String,
    /// Its versions: the one that is served.
    pub versions: Vec<String>,
    /// Who made it.
    pub platform: String,
    /// What it takes.
    pub inputs: Vec<InferenceTensor>,
    /// What it gives.
    pub outputs: Vec<InferenceTensor>,
}

/// A tensor as the Open Inference Protocol describes it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InferenceTensor {
    /// Its name.
    pub name: String,
    /// `BYTES` or `FP32`.
    pub datatype: String,
    /// Its shape; -1 is any.
    pub shape: Vec<i64>,
}

/// The server as the Open Inference Protocol describes it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InferenceServer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Extensions of the protocol: none.
    pub extensions: Vec<String>,
}
