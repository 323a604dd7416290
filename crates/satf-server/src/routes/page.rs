//! The page: files that are part of the program.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use super::{Named, Reply};
use crate::error::ApiError;

/// Nothing but what this server itself has: no script in the page, nothing of anybody else's.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page with its name.
macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../page/", $name)))
    };
}

/// The files of the page, by name. Every new file is one line here.
const FILES: [(&str, &str); 19] = [
    file!("docs.html"),
    file!("index.html"),
    file!("base.css"),
    file!("console.css"),
    file!("docs.css"),
    file!("icon.svg"),
    file!("docs.js"),
    file!("console.js"),
    file!("answers.js"),
    file!("api.js"),
    file!("chart.js"),
    file!("curve.js"),
    file!("elements.js"),
    file!("history.js"),
    file!("load.js"),
    file!("picker.js"),
    file!("rules.js"),
    file!("store.js"),
    file!("walk.js"),
];

/// The type of a file, by the ending of its name.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

/// The page itself.
pub(crate) async fn index() -> Reply {
    file("index.html")
}

/// What the API is, to be read.
pub(crate) async fn docs() -> Reply {
    file("docs.html")
}

/// What the page is made of.
pub(crate) async fn part(Named(name): Named) -> Reply {
    file(&name)
}

fn file(name: &str) -> Reply {
    let found = FILES.iter().find(|(file, _)| *file == name);
    let (name, content) = found.ok_or_else(|| ApiError::not_found("not_found", "there is no such file"))?;
    Ok(respond(kind(name), content))
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
