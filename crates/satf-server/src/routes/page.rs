//! The page: files that are part of the program.

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use crate::error::ApiError;

/// Nothing but what this server itself has: no script in the page, nothing of anybody else's.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page, by name, with their type. Every new file is one line here.
const FILES: [(&str, &str, &str); 5] = [
    ("index.html", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("console.css", "text/css; charset=utf-8", include_str!("../page/console.css")),
    ("console.js", "text/javascript; charset=utf-8", include_str!("../page/console.js")),
    ("docs.css", "text/css; charset=utf-8", include_str!("../page/docs.css")),
    ("docs.js", "text/javascript; charset=utf-8", include_str!("../page/docs.js")),
];

const DOCS: &str = include_str!("../page/docs.html");

/// The page itself.
pub(crate) async fn index() -> Result<Response, ApiError> {
    file("index.html")
}

/// What the API is, to be read.
pub(crate) async fn docs() -> Response {
    respond("text/html; charset=utf-8", DOCS)
}

/// What the page is made of.
pub(crate) async fn part(
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Response, ApiError> {
    let Path(name) = path.map_err(|error| ApiError::malformed(error.body_text()))?;
    file(&name)
}

fn file(name: &str) -> Result<Response, ApiError> {
    let found = FILES.iter().find(|(file, _, _)| *file == name);
    let (_, kind, content) =
        found.ok_or_else(|| ApiError::not_found("not_found", "there is no such file"))?;
    Ok(respond(kind, content))
}

fn respond(kind: &'static str, content: &'static str) -> Response {
    let mut response = Response::new(content.into());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
