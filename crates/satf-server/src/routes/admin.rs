//! What takes a key of an admin.

use axum::extract::State as AxumState;
use axum::http::StatusCode;

use super::{Reply, Shared};
use crate::error::{ApiError, json};
use crate::state::Reload;
use crate::wire::{Refusal, ReloadResponse};

/// Read models, items, keys and certificates again
#[cfg_attr(
    test,
    utoipa::path(
        post, path = "/v1/admin/reload", tag = "operations",
        responses(
            (status = 200, description = "Everything that changed is served now.", body = ReloadResponse),
            (status = 409, description = "Something was refused; what was served before goes on.", body = ReloadResponse),
        )
    )
)]
pub(crate) async fn reload(AxumState(state): Shared) -> Reply {
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
