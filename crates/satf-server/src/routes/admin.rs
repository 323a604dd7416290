//! What takes a key of an admin.

use std::sync::Arc;

use axum::extract::State as AxumState;
use axum::http::StatusCode;
use axum::response::Response;

use crate::error::{ApiError, ErrorBody, json};
use crate::state::{Reload, State};
use crate::wire::{Refusal, ReloadResponse};

/// Read models, items, keys and certificates again
#[utoipa::path(
    post, path = "/v1/admin/reload", tag = "operations",
    responses(
        (status = 200, description = "Everything that changed is served now.", body = ReloadResponse),
        (status = 409, description = "Something was refused; what was served before goes on.", body = ReloadResponse),
        (status = "4XX", description = "The key is not that of an admin.", body = ErrorBody),
    )
)]
pub(crate) async fn reload(AxumState(state): AxumState<Arc<State>>) -> Result<Response, ApiError> {
    let outcome = tokio::task::spawn_blocking(move || state.reload(Reload::Asked)).await;
    let outcome = outcome.map_err(|error| ApiError::internal(format!("reading the files again: {error}")))?;
    let status = if outcome.refused.is_empty() { StatusCode::OK } else { StatusCode::CONFLICT };
    let refused = outcome.refused.into_iter().map(|(name, reason)| Refusal { name, reason }).collect();
    let response = ReloadResponse {
        loaded: outcome.loaded,
        unchanged: outcome.unchanged,
        removed: outcome.removed,
        refused,
    };
    Ok(json(status, &response))
}
