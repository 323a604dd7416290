//! What a client is told when it gets no answer, and why a server does not start.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use satf::recommend::RecommendError;
use serde::Serialize;

use crate::config::{ConfigError, all_of};

/// Why there is no answer: the body of every response whose status is 4xx or 5xx.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ErrorDetail {
    /// One word for programs, such as `too_large`, `unknown_model` or `overloaded`.
    #[cfg_attr(test, schema(value_type = String))]
    pub code: &'static str,
    /// A sentence for people: the place, the value, what was expected.
    pub message: String,
}

/// A response that is not an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        ApiError { status, code, message: message.into() }
    }

    /// The request is not what it should be.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    /// The request can be read and asks for what cannot be had.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    /// More than a limit allows.
    pub(crate) fn beyond(what: &str, value: usize, limit: usize) -> Self {
        ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "beyond_limit",
            format!("{what}: {value}: expected at most {limit}"),
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body is larger than the {limit} bytes that are taken"),
        )
    }

    pub(crate) fn overloaded(what: &str) -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", format!("{what}; try again in a second"))
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl From<RecommendError> for ApiError {
    fn from(error: RecommendError) -> Self {
        match &error {
            RecommendError::UnknownId { .. } => ApiError::not_found("unknown_item", error.to_string()),
            RecommendError::NotFinite { .. } => ApiError::internal(error.to_string()),
            _ => ApiError::invalid(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: ErrorDetail { code: self.code, message: self.message } };
        let mut response = json(self.status, &body);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A JSON body that was written already.
pub(crate) fn json_bytes(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match satf::escape::to_json(body) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Why the server does not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// What was configured.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Files that cannot be used: models, items, keys, certificates. One line each.
    #[error("{}", all_of(.0))]
    Files(Vec<String>),
    /// The port, or the system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}
