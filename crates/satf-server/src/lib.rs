//! Recommendations over HTTP: what `satf serve` runs.
//!
//! [`Config`] says what to serve, [`State::open`] reads and checks all of it, [`app`] makes a router that can be tested without a
//! socket, and [`serve`] answers until it is asked to stop. The types of requests and answers are in [`wire`].
//!
//! A request goes this way: the gate (who asks, how many there are) → the body (bounded in bytes, pieces and time) → a query in the
//! indices of one model, which it takes once → computed at once, or by the computing threads through a bounded queue → JSON.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::unreachable,
    clippy::todo,
    clippy::unimplemented
)]

mod attributes;
mod body;
pub mod config;
mod cors;
mod error;
mod filter;
mod gate;
mod keys;
mod listen;
pub mod load;
mod log;
mod metrics;
mod models;
mod openapi;
mod pulse;
mod quantiles;
mod query;
mod routes;
mod scoring;
mod sessions;
mod state;
mod stats;
mod titles;
mod tls;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};

pub use config::{Config, ConfigError};
pub use error::{ErrorBody, ErrorDetail, ServeError};
pub use listen::{Server, serve};
pub use openapi::description;
pub use state::State;
pub use tls::TlsFiles;

use error::ApiError;
use routes::{admin, health, inference, items, models as model_routes, page, recommend};

/// All routes, over what they share.
pub fn app(state: Arc<State>) -> Router {
    let router = Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::part))
        .route("/docs", get(page::docs))
        .route("/openapi.json", get(openapi::openapi))
        .route("/v1/recommend", get(recommend::session).post(recommend::recommend))
        .route("/v1/recommend/batch", post(recommend::batch))
        .route("/v1/similar", get(items::similar))
        .route("/v1/popular", get(items::popular))
        .route("/v1/items", get(items::complete))
        .route("/v1/items/{id}", get(items::item))
        .route("/v1/model", get(model_routes::model))
        .route("/v1/models", get(model_routes::models))
        .route("/v1/stats", get(model_routes::stats))
        .route("/v1/admin/reload", post(admin::reload))
        .route("/metrics", get(model_routes::metrics))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/v2", get(inference::server))
        .route("/v2/health/live", get(health::live))
        .route("/v2/health/ready", get(health::ready))
        .route("/v2/models/{name}", get(inference::model))
        .route("/v2/models/{name}/ready", get(inference::ready))
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_this_way)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&state), gate::gate));
    let router = if state.config.cors.is_empty() {
        router
    } else {
        router.layer(axum::middleware::from_fn_with_state(Arc::clone(&state), cors::cors))
    };
    router.with_state(state)
}

async fn nothing_here() -> ApiError {
    ApiError::not_found("not_found", "there is nothing here; /docs says what there is")
}

async fn not_this_way() -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this path takes another method; /docs says which",
    )
}
