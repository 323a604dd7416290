//! The body of a request: bounded in bytes, in pieces and in time.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

use crate::config::{Limits, seconds};
use crate::error::ApiError;
use crate::wire::Object;

/// Pieces that a body may come in: the network makes large ones.
const MOST_PIECES: usize = 4_096;

/// Reads a request in JSON.
pub(crate) async fn read_json<T: DeserializeOwned>(request: Request, limits: &Limits) -> Result<T, ApiError> {
    let is_json =
        request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind.eq_ignore_ascii_case("application/json")
        });
    if !is_json {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            "expected the header content-type: application/json",
        ));
    }
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > limits.body_bytes as u64) {
        return Err(ApiError::too_large(limits.body_bytes));
    }
    let body = read(request.into_body(), limits.body_bytes);
    let bytes = tokio::time::timeout(seconds(limits.body_seconds), body).await.map_err(|_| {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_timeout",
            format!("the body did not come within {} seconds", limits.body_seconds),
        )
    })??;
    parse(&bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice::<Object<T>>(bytes).map(|object| object.0).map_err(|error| {
        // The message may repeat what was sent.
        let message: String = error.to_string().chars().take(300).collect();
        if error.is_data() {
            ApiError::invalid(message)
        } else {
            ApiError::malformed(format!("not JSON: {message}"))
        }
    })
}

async fn read(mut body: Body, most: usize) -> Result<Bytes, ApiError> {
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    let mut pieces = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::malformed(format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        pieces += 1;
        if pieces > MOST_PIECES {
            return Err(ApiError::malformed(format!("the body comes in more than {MOST_PIECES} pieces")));
        }
        if all.len() + first.as_ref().map_or(0, Buf::remaining) + data.len() > most {
            return Err(ApiError::too_large(most));
        }
        // Nearly always there is one piece, which need not be copied.
        match first.take() {
            None if all.is_empty() => first = Some(data),
            before => {
                all.extend_from_slice(&before.unwrap_or_default());
                all.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}
