//! The parts of the Open Inference Protocol that say what is served and whether it is ready.

use std::sync::Arc;

use axum::extract::{Path, State as AxumState};
use axum::http::StatusCode;
use axum::response::Response;

use crate::error::{ApiError, ErrorBody, json};
use crate::query::choose;
use crate::state::State;
use crate::wire::{HealthResponse, InferenceModel, InferenceServer, InferenceTensor};

type Name = Result<Path<String>, axum::extract::rejection::PathRejection>;

fn check(state: &State, name: Name) -> Result<(String, String), ApiError> {
    let Path(name) = name.map_err(|error| ApiError::malformed(error.body_text()))?;
    let models = state.models.load();
    let served = choose(&models, Some(&name), None, None)?;
    Ok((served.name.to_string(), served.version.to_string()))
}

/// The server, as the Open Inference Protocol describes it
#[utoipa::path(
    get, path = "/v2", tag = "open inference protocol",
    responses((status = 200, description = "The server.", body = InferenceServer))
)]
pub(crate) async fn server() -> Response {
    let server = InferenceServer {
        name: "satf".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        extensions: Vec::new(),
    };
    json(StatusCode::OK, &server)
}

/// A model, as the Open Inference Protocol describes it
#[utoipa::path(
    get, path = "/v2/models/{name}", tag = "open inference protocol",
    params(("name" = String, Path, description = "The model.")),
    responses(
        (status = 200, description = "The model.", body = InferenceModel),
        (status = "4XX", description = "There is no such model.", body = ErrorBody),
    )
)]
pub(crate) async fn model(AxumState(state): AxumState<Arc<State>>, name: Name) -> Result<Response, ApiError> {
    let (name, version) = check(&state, name)?;
    let tensor = |name: &str, datatype: &str| InferenceTensor {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        shape: vec![-1],
    };
    let model = InferenceModel {
        name,
        versions: vec![version],
        platform: "satf".to_owned(),
        inputs: vec![tensor("history", "BYTES")],
        outputs: vec![tensor("item_id", "BYTES"), tensor("score", "FP32")],
    };
    Ok(json(StatusCode::OK, &model))
}

/// Whether a model is ready
#[utoipa::path(
    get, path = "/v2/models/{name}/ready", tag = "open inference protocol",
    params(("name" = String, Path, description = "The model.")),
    responses(
        (status = 200, description = "It is.", body = HealthResponse),
        (status = "4XX", description = "There is no such model.", body = ErrorBody),
    )
)]
pub(crate) async fn ready(AxumState(state): AxumState<Arc<State>>, name: Name) -> Result<Response, ApiError> {
    check(&state, name)?;
    Ok(json(StatusCode::OK, &HealthResponse { status: "ready".to_owned() }))
}
