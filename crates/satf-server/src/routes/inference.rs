//! The parts of the Open Inference Protocol that say what is served and whether it is ready.

use axum::extract::State as AxumState;
use axum::http::StatusCode;
use axum::response::Response;

use super::{Named, Reply, Shared, model_of};
use crate::error::json;
use crate::wire::{HealthResponse, InferenceModel, InferenceServer, InferenceTensor};

/// The server, as the Open Inference Protocol describes it
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v2", tag = "open inference protocol",
        responses((status = 200, description = "The server.", body = InferenceServer))
    )
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
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v2/models/{name}", tag = "open inference protocol",
        params(("name" = String, Path, description = "The model.")),
        responses((status = 200, description = "The model.", body = InferenceModel))
    )
)]
pub(crate) async fn model(AxumState(state): Shared, Named(name): Named) -> Reply {
    let served = model_of(&state, Some(&name))?;
    let tensor = |name: &str, datatype: &str| InferenceTensor {
        name: name.to_owned(),
        datatype: datatype.to_owned(),
        shape: vec![-1],
    };
    let model = InferenceModel {
        name: served.name.to_string(),
        versions: vec![served.version.to_string()],
        platform: "satf".to_owned(),
        inputs: vec![tensor("history", "BYTES")],
        outputs: vec![tensor("item_id", "BYTES"), tensor("score", "FP32")],
    };
    Ok(json(StatusCode::OK, &model))
}

/// Whether a model is ready
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v2/models/{name}/ready", tag = "open inference protocol",
        params(("name" = String, Path, description = "The model.")),
        responses((status = 200, description = "It is.", body = HealthResponse))
    )
)]
pub(crate) async fn ready(AxumState(state): Shared, Named(name): Named) -> Reply {
    model_of(&state, Some(&name))?;
    Ok(json(StatusCode::OK, &HealthResponse { status: "ready".to_owned() }))
}
