//! Which pages of others may call the server: those of the origins that the configuration lists, and none by default.

use std::sync::Arc;

use axum::extract::{Request, State as AxumState};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::state::State;

const METHODS: HeaderValue = HeaderValue::from_static("GET,POST");
const HEADERS: HeaderValue =
    HeaderValue::from_static("authorization,content-type,x-api-key,x-request-id,traceparent");

/// Tells browsers which origins may read an answer, and answers what they ask beforehand. Whether a request is answered at all does not
/// depend on it.
pub(crate) async fn cors(AxumState(state): AxumState<Arc<State>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN);
    let is_listed =
        |origin: &&HeaderValue| state.config.cors.iter().any(|listed| listed.as_bytes() == origin.as_bytes());
    let allowed = origin.filter(is_listed).cloned();
    let is_preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight {
        let mut response = StatusCode::NO_CONTENT.into_response();
        if allowed.is_some() {
            response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        }
        response
    } else {
        next.run(request).await
    };
    // What is kept of an answer is kept by origin.
    response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = allowed {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}
