//! The API as OpenAPI describes it, made from the types themselves.

use std::sync::OnceLock;

use axum::http::StatusCode;
use axum::response::Response;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};

use crate::error::json_bytes;
use crate::routes::{admin, health, inference, items, models, recommend};
use crate::wire::{AnyId, Step};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "satf",
        description = "What comes next: recommendations from ordered histories.\n\nEvery response carries x-request-id. A key, where the \
            server has some, is given as `Authorization: Bearer KEY`."
    ),
    paths(
        recommend::recommend,
        recommend::batch,
        recommend::session,
        items::similar,
        items::popular,
        items::complete,
        items::item,
        models::model,
        models::models,
        models::stats,
        models::metrics,
        health::live,
        health::ready,
        admin::reload,
        inference::server,
        inference::model,
        inference::ready,
    ),
    components(schemas(AnyId, Step))
)]
struct Api;

/// The description, in JSON.
pub fn description() -> &'static str {
    static DESCRIPTION: OnceLock<String> = OnceLock::new();
    DESCRIPTION.get_or_init(|| {
        let mut api = Api::openapi();
        let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
        if let Some(components) = &mut api.components {
            components.security_schemes.insert("key".to_owned(), bearer);
        }
        // A key, or none where the server has none.
        api.security = Some(vec![
            SecurityRequirement::default(),
            SecurityRequirement::new("key", std::iter::empty::<String>()),
        ]);
        api.to_json().unwrap_or_default()
    })
}

pub(crate) async fn openapi() -> Response {
    json_bytes(StatusCode::OK, description().as_bytes().to_vec())
}
