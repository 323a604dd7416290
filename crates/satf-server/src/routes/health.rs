//! Whether the server is alive, and ready.

use std::sync::atomic::Ordering;

use axum::extract::State as AxumState;
use axum::http::StatusCode;
use axum::response::Response;

use super::Shared;
use crate::error::json;
use crate::wire::HealthResponse;

/// Whether the server is alive
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/health/live", tag = "operations",
        responses((status = 200, description = "It is.", body = HealthResponse))
    )
)]
pub(crate) async fn live() -> Response {
    json(StatusCode::OK, &HealthResponse { status: "live".to_owned() })
}

/// Whether the server takes requests
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/health/ready", tag = "operations",
        responses(
            (status = 200, description = "It does.", body = HealthResponse),
            (status = 503, description = "It is about to stop.", body = HealthResponse),
        )
    )
)]
pub(crate) async fn ready(AxumState(state): Shared) -> Response {
    let (status, word) = if state.is_draining.load(Ordering::Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "draining")
    } else {
        (StatusCode::OK, "ready")
    };
    json(status, &HealthResponse { status: word.to_owned() })
}
