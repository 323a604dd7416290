//! What is served, and how much there is to do.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State as AxumState;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use super::{Asked, Reply, Shared, answered, model_of};
use crate::error::json as json_response;
use crate::metrics::{escaped, head};
use crate::models::Served;
use crate::scoring::write;
use crate::stats::resident_bytes;
#[cfg(test)]
use crate::wire::StatsResponse;
use crate::wire::{AttributeSummary, ModelQuery, ModelResponse, ModelSummary, ModelsResponse};

/// Values of the attention curve that are told.
const MOST_LAGS: usize = 100;

fn age(served: &Served) -> f64 {
    served.loaded.elapsed().map_or(0.0, |age| age.as_secs_f64())
}

/// What a model is, what it learned from and how it weighs the past
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/model", tag = "models", params(ModelQuery),
        responses((status = 200, description = "The model.", body = ModelResponse))
    )
)]
pub(crate) async fn model(AxumState(state): Shared, Asked(query): Asked<ModelQuery>) -> Reply {
    let ModelQuery { model } = query;
    let served = model_of(&state, model.as_deref())?;
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
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/models", tag = "models",
        responses((status = 200, description = "All models.", body = ModelsResponse))
    )
)]
pub(crate) async fn models(AxumState(state): Shared) -> Response {
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
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/stats", tag = "operations",
        responses((status = 200, description = "Figures of the last two minutes.", body = StatsResponse))
    )
)]
pub(crate) async fn stats(AxumState(state): Shared) -> Response {
    json_response(StatusCode::OK, &state.stats())
}

/// Figures for Prometheus
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/metrics", tag = "operations",
        responses((status = 200, description = "Text as Prometheus reads it.", body = String, content_type = "text/plain"))
    )
)]
pub(crate) async fn metrics(AxumState(state): Shared) -> Response {
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
    head(&mut text, "satf_late_seconds", "gauge", "How long requests of a crowd wait before they are read.");
    let _ = writeln!(text, "satf_late_seconds {}", state.pulse.late().as_secs_f64());
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
