//! What every request passes: who asks, how many there are, what is counted and logged.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State as AxumState};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::config::{LoggedRequests, seconds};
use crate::error::ApiError;
use crate::keys::Role;
use crate::log::{self, Level, RequestLine};
use crate::metrics::{Gauge, ROUTES, Route};
use crate::models::Served;
use crate::state::State;

/// The model that answered, for the log.
#[derive(Clone)]
pub(crate) struct AnsweredBy(pub(crate) Arc<Served>);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// Whose figures a path counts to, and what it takes to ask there.
fn route_of(path: &str) -> (Route, Option<Role>) {
    match path {
        "/v1/recommend" => (Route::Recommend, Some(Role::Read)),
        "/v1/recommend/batch" => (Route::Batch, Some(Role::Read)),
        "/v1/similar" => (Route::Similar, Some(Role::Read)),
        "/v1/popular" => (Route::Popular, Some(Role::Read)),
        "/v1/items" | "/v1/items/{id}" => (Route::Items, Some(Role::Read)),
        "/v1/admin/reload" => (Route::Admin, Some(Role::Admin)),
        "/health/live" | "/health/ready" | "/v2/health/live" | "/v2/health/ready" => (Route::Health, None),
        // The page and the description of the API say nothing of the models.
        "" | "/" | "/openapi.json" | "/docs" | "/page/{file}" | "/v2" => (Route::Other, None),
        _ => (Route::Model, Some(Role::Read)),
    }
}

pub(crate) async fn gate(AxumState(state): AxumState<Arc<State>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let (route, role) = route_of(path);
    let given_id = request.headers().get(REQUEST_ID).filter(|id| is_plain(id)).cloned();
    let trace = request.headers().get(TRACE_PARENT).and_then(Trace::parse);
    let method = request.method().clone();

    let (_in_flight, before) = Gauge::enter(&state.metrics.in_flight);
    let limits = &state.config.limits;
    // It waits again before it is computed, and before its answer is sent: a part of the time may be over by now.
    let is_late = state.pulse.is_later_than(seconds(limits.wait_seconds / 2.0));
    let is_crowded = is_late || before >= limits.in_flight as i64;
    let admitted = if is_crowded && route != Route::Health {
        Err(ApiError::overloaded("too many requests are under way"))
    } else {
        admit(&state, &request, role)
    };
    let mut response = match admitted {
        Err(error) => error.into_response(),
        Ok(()) => run(&state, request, next).await,
    };

    let elapsed = started.elapsed();
    count(&state, route, &response, elapsed);
    let id = given_id.unwrap_or_else(|| {
        HeaderValue::from_str(&state.request_id()).unwrap_or(HeaderValue::from_static(""))
    });
    tell(&state, &method, route, &response, elapsed, &id, trace.as_ref());
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The answer, unless it takes too long.
async fn run(state: &State, request: Request, next: Next) -> Response {
    let limit = seconds(state.config.limits.request_seconds + state.config.limits.body_seconds);
    let answer = tokio::time::timeout(limit, next.run(request)).await;
    answer.unwrap_or_else(|_| {
        let message = format!("there was no answer within {} seconds", limit.as_secs_f64());
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message).into_response()
    })
}

fn count(state: &State, route: Route, response: &Response, elapsed: Duration) {
    let status = response.status();
    if let Some(figures) = state.metrics.route(route) {
        if let Some(count) = figures.by_class.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        // What is refused at once would make answers look quick.
        if status != StatusCode::SERVICE_UNAVAILABLE {
            figures.latency.record(elapsed);
        }
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        state.metrics.rejected.fetch_add(1, Ordering::Relaxed);
    }
}

fn tell(
    state: &State,
    method: &Method,
    route: Route,
    response: &Response,
    elapsed: Duration,
    id: &HeaderValue,
    trace: Option<&Trace>,
) {
    let status = response.status().as_u16();
    let is_wanted = match state.log.requests {
        LoggedRequests::All => true,
        LoggedRequests::Errors => status >= 500,
        LoggedRequests::None => false,
    };
    if !is_wanted {
        return;
    }
    let served = response.extensions().get::<AnsweredBy>().map(|answered| &answered.0);
    let name = ROUTES.iter().find(|(other, _)| *other == route).map_or("other", |(_, name)| name);
    state.log.request(&RequestLine {
        time: log::now(),
        level: if status >= 500 { Level::Error } else { Level::Info },
        message: "request",
        request_id: id.to_str().unwrap_or_default(),
        trace_id: trace.map(|trace| &*trace.trace_id),
        parent_span_id: trace.map(|trace| &*trace.parent_id),
        method: method.as_str(),
        route: name,
        status,
        milliseconds: (elapsed.as_secs_f64() * 1e6).round() / 1e3,
        model: served.map(|served| &*served.name),
        model_version: served.map(|served| &*served.version),
    });
}

/// Whether the request may be answered.
fn admit(state: &State, request: &Request, role: Option<Role>) -> Result<(), ApiError> {
    let keys = state.keys.load();
    if keys.is_empty() {
        return check_host(state, request);
    }
    let Some(role) = role else { return Ok(()) };
    match keys.role(request.headers()) {
        Some(own) if own >= role => Ok(()),
        Some(_) => {
            state.metrics.unauthorized.fetch_add(1, Ordering::Relaxed);
            Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", "this takes a key of an admin"))
        }
        None => {
            state.metrics.unauthorized.fetch_add(1, Ordering::Relaxed);
            let message = "expected a key: Authorization: Bearer KEY";
            Err(ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message))
        }
    }
}

/// A server without keys on this machine answers nobody who calls it by a strange name: that is how pages of strangers would reach it
/// through a browser.
fn check_host(state: &State, request: &Request) -> Result<(), ApiError> {
    if !state.config.listen.ip().is_loopback() || state.config.insecure {
        return Ok(());
    }
    let Some(host) = host(request.headers()) else {
        return Ok(());
    };
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    let is_own = name.eq_ignore_ascii_case("localhost")
        || name == "[::1]"
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || state.config.hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_own {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::FORBIDDEN,
        "unknown_host",
        "this server has no keys and is called by a name that is not its own; hint: add the name to hosts in its configuration",
    ))
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?"))
}

/// Whether an id of somebody else's can be logged and sent back.
fn is_plain(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}

/// Where a request comes from, as W3C trace context has it.
struct Trace {
    trace_id: String,
    parent_id: String,
}

impl Trace {
    fn parse(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?;
        let mut parts = text.split('-');
        let (version, trace_id, parent_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length
                && text.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
        };
        let is_valid = is_hex(version, 2)
            && version != "ff"
            && is_hex(trace_id, 32)
            && is_hex(parent_id, 16)
            && is_hex(flags, 2)
            && (version != "00" || parts.next().is_none())
            && trace_id.bytes().any(|digit| digit != b'0')
            && parent_id.bytes().any(|digit| digit != b'0');
        is_valid.then(|| Trace { trace_id: trace_id.to_owned(), parent_id: parent_id.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_those_of_the_standard() {
        let parse =
            |text: &str| Trace::parse(&HeaderValue::from_str(text).unwrap()).map(|trace| trace.trace_id);
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(parse(good).as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert!(parse(&format!("{good}-more")).is_none());
        assert!(parse(&good.replace("00-", "ff-")).is_none());
        assert!(parse(&good.replace("00-", "01-")).is_some());
        assert!(parse(&good.to_uppercase()).is_none());
        assert!(parse("00-00000000000000000000000000000000-00f067aa0ba902b7-01").is_none());
        assert!(parse("").is_none());
    }
}
