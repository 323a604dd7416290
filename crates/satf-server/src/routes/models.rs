//! What is served, and how much there is to do.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State as AxumState;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use super::{Given, answered, given};
use crate::error::{ApiError, ErrorBody, json as json_response};
use crate::metrics::{escaped, head};
use crate::models::Served;
use crate::query::choose;
use crate::scoring::write;
use crate::state::State;
use crate::stats::resident_bytes;
use crate::wire::{AttributeSummary, ModelQuery, ModelResponse, ModelSummary, ModelsResponse, StatsResponse};

/// Values of the attention curve that are told.
const MOST_LAGS: usize = 100;

fn age(served: &Served) -> f64 {
    served.loaded.elapsed().map_or(0.0, |age| age.as_secs_f64())
}

/// What a model is, what it learned from and how it weighs the past
#[utoipa::path(
    get, path = "/v1/model", tag = "models", params(ModelQuery),
    responses(
        (status = 200, description = "The model.", body = ModelResponse),
        (status = "4XX", description = "There is no such model.", body = ErrorBody),
    )
)]
pub(crate) async fn model(
    AxumState(state): AxumState<Arc<State>>,
    query: Given<ModelQuery>,
) -> Result<Response, ApiError> {
    let ModelQuery { model } = given(query)?;
    let served = Arc::clone(choose(&state.models.load(), model.as_deref(), None, None)?);
    let manifest = served.model.manifest();
    let recommender = served.model.recommender();
    let written = write(&ModelResponse {
        name: served.name.to_string(),
        version: served.version.to_string(),
        kind: manifest.model.clone(),
        items: served.model.num_items(),
        file_bytes: served.file_bytes,
        age_seconds: age(&served),
        explains: recommender.has_shares(),
        configuration: manifest.configuration.clone(),
        learned: json!(served.model.learned()),
        dataset: json!(manifest.dataset),
        validation: manifest.validation.as_ref().map(|validation| json!(validation)),
        satf_version: manifest.satf_version.clone(),
        attention: recommender.lag_weights().unwrap_or_default().iter().take(MOST_LAGS).copied().collect(),
        attributes: served
            .attributes
            .kinds()
            .map(|(name, kind)| AttributeSummary { name: name.to_owned(), kind: kind.to_owned() })
            .collect(),
        items_with_attributes: served.attributes.known(),
    })?;
    Ok(answered(written, Arc::clone(&served)))
}

/// The models that are served
#[utoipa::path(
    get, path = "/v1/models", tag = "models",
    responses(
        (status = 200, description = "All models.", body = ModelsResponse),
        (status = "4XX", description = "The request cannot be answered.", body = ErrorBody),
    )
)]
pub(crate) async fn models(AxumState(state): AxumState<Arc<State>>) -> Response {
    let set = state.models.load();
    let summary = |served: &Arc<Served>| ModelSummary {
        name: served.name.to_string(),
        version: served.version.to_string(),
        kind: served.model.manifest().model.clone(),
        items: served.model.num_items(),
        share: set.share(&served.name),
        age_seconds: age(served),
    };
    let models = set.iter().map(summary).collect();
    let default_model = set.default_model().name.to_string();
    json_response(StatusCode::OK, &ModelsResponse { default_model, models })
}

/// How much the server has to do, second by second
#[utoipa::path(
    get, path = "/v1/stats", tag = "operations",
    responses(
        (status = 200, description = "Figures of the last two minutes.", body = StatsResponse),
        (status = "4XX", description = "The request cannot be answered.", body = ErrorBody),
    )
)]
pub(crate) async fn stats(AxumState(state): AxumState<Arc<State>>) -> Response {
    json_response(StatusCode::OK, &state.stats())
}

/// Figures for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "operations",
    responses(
        (status = 200, description = "Text as Prometheus reads it.", body = String, content_type = "text/plain"),
        (status = "4XX", description = "The request cannot be answered.", body = ErrorBody),
    )
)]
pub(crate) async fn metrics(AxumState(state): AxumState<Arc<State>>) -> Response {
    let mut text = String::new();
    state.metrics.render(&mut text);
    for (name, help, value) in [
        ("satf_sessions", "Sessions kept.", state.sessions.len() as u64),
        ("satf_queue", "Requests that wait to be computed.", state.scorer.waiting() as u64),
        ("process_resident_memory_bytes", "Resident memory.", resident_bytes("self").unwrap_or(0)),
    ] {
        head(&mut text, name, "gauge", help);
        let _ = writeln!(text, "{name} {value}");
    }
    head(&mut text, "satf_model_age_seconds", "gauge", "Time since a model was loaded.");
    let models = state.models.load();
    for served in models.iter() {
        let (name, version) = (escaped(&served.name), &served.version);
        let _ = writeln!(
            text,
            "satf_model_age_seconds{{model=\"{name}\",version=\"{version}\"}} {}",
            age(served)
        );
    }
    let mut response = Response::new(text.into());
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
