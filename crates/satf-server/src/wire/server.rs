//! What the server says of itself: its models, its load, its health.

use serde::Serialize;

/// The models that are served.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ModelsResponse {
    /// The model of requests that name none.
    pub default_model: String,
    /// All of them.
    pub models: Vec<ModelSummary>,
}

/// A model that is served.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
    #[cfg_attr(test, schema(value_type = Object))]
    pub configuration: serde_json::Value,
    /// What training found by itself; null where the file does not tell.
    #[cfg_attr(test, schema(value_type = Object))]
    pub learned: serde_json::Value,
    /// What it learned from: users, items, rows and so on.
    #[cfg_attr(test, schema(value_type = Object))]
    pub dataset: serde_json::Value,
    /// How good it was on events held back, if that was measured.
    #[cfg_attr(test, schema(value_type = Option<Object>))]
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AttributeSummary {
    /// Its name.
    pub name: String,
    /// `number`, `flag` or `text`.
    pub kind: String,
}

/// What came of reading the files again.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Refusal {
    /// The model, or `items`, `keys` or `tls`.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// How much the server has to do: now, and second by second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct HealthResponse {
    /// `live`, `ready` or `draining`.
    pub status: String,
}

/// A model as the Open Inference Protocol describes it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
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
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct InferenceTensor {
    /// Its name.
    pub name: String,
    /// `BYTES` or `FP32`.
    pub datatype: String,
    /// Its shape; -1 is any.
    pub shape: Vec<i64>,
}

/// The server as the Open Inference Protocol describes it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct InferenceServer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Extensions of the protocol: none.
    pub extensions: Vec<String>,
}
