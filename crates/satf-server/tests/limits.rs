//! What is refused: too much, the wrong kind, the wrong people.

#![allow(clippy::unwrap_used)]

mod served;

use std::fs;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::json;
use served::{Served, json_request};

#[tokio::test]
async fn more_than_the_limits_is_refused_by_name() {
    let served = Served::new(|config, _| {
        config.limits.history = 50;
        config.limits.batch = 3;
        config.limits.list = 20;
    });
    let items = |count: usize| vec!["tent"; count];
    for (body, part) in [
        (json!({"n": 1_000_000_000u64}), "n: 1000000000"),
        (json!({"n": u64::MAX}), "n: 18446744073709551615"),
        (json!({"history": items(51)}), "history: items: 51"),
        (json!({"history": [items(30), items(30)]}), "history: items: 60"),
        (json!({"exclude": items(21)}), "exclude: ids: 21"),
        (json!({"only": items(21)}), "only: ids: 21"),
        (json!({"allow_seen": items(21)}), "allow_seen: ids: 21"),
        (json!({"boost": vec![json!({"item_id": 1, "add": 1}); 21]}), "boost: items: 21"),
    ] {
        let (status, error) = served.post("/v1/recommend", &body.to_string()).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status == StatusCode::UNPROCESSABLE_ENTITY && message.starts_with(part), "{message}");
        let (status, error) =
            served.post("/v1/recommend/batch", &json!({"requests": [{}, body]}).to_string()).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status.is_client_error() && message.starts_with("requests[1]: "), "{message}");
    }
    let (status, _) =
        served.post("/v1/recommend/batch", &json!({"requests": vec![json!({}); 4]}).to_string()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn what_is_not_a_request_is_refused_with_its_place() {
    let served = Served::new(|_, _| ());
    for (body, status, part) in [
        ("", 400, "not JSON"),
        ("{\"history\": [", 400, "line 1"),
        ("[]", 422, "an object"),
        ("{\"boost\": [[\"tent\", 1.5]]}", 422, "an object"),
        ("{\"histry\": []}", 422, "histry"),
        ("{\"history\": [1.5]}", 422, "an id, a list of ids"),
        ("{\"history\": [[[1]]]}", 422, "an id"),
        ("{\"history\": [{\"item_id\": 1, \"when\": 2}]}", 422, "when"),
        ("{\"history\": [{\"item_id\": 1, \"time\": 2}, 3]}", 422, "1 of 2 steps have a time"),
        ("{\"history\": [{\"item_id\": 1, \"time\": \"soon\"}]}", 422, "history"),
        ("{\"history\": [18446744073709551615]}", 422, "64 bits"),
        ("{\"n\": -1}", 422, "n"),
        ("{\"n\": 1e3}", 422, ""),
        ("{\"boost\": [{\"item_id\": \"tent\"}]}", 422, "expected multiply, add or both"),
        ("{\"boost\": [{\"item_id\": \"tent\", \"multiply\": 0}]}", 422, "above 0"),
        ("{\"boost\": [{\"item_id\": \"tent\", \"multiply\": -1}]}", 422, "above 0"),
        ("{\"boost\": [{\"item_id\": \"tent\", \"add\": 1e60}]}", 400, "out of range"),
        ("{\"fallback\": \"random\"}", 422, "random"),
        ("{\"allow_seen\": 3}", 422, "true, false, or a list of ids"),
    ] {
        let (got, error) = served.post("/v1/recommend", body).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(got.as_u16() == status && message.contains(part), "{body}: {got} {message}");
    }
    let deep = format!("{{\"history\": {}", "[".repeat(500_000));
    assert_eq!(served.post("/v1/recommend", &deep).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let invalid = Request::post("/v1/recommend").header("content-type", "application/json");
    let invalid = invalid.body(Body::from(b"{\"history\": [\"\xff\xfe\"]}".to_vec())).unwrap();
    assert_eq!(served.send(invalid).await.0, StatusCode::BAD_REQUEST);
    let large = format!("{{\"history\": [\"{}\"]}}", "x".repeat(2 << 20));
    assert_eq!(served.post("/v1/recommend", &large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    // A page of a stranger can post a form, and nothing else, without asking first.
    let form = Request::post("/v1/recommend").header("content-type", "text/plain").body("{}".into()).unwrap();
    assert_eq!(served.send(form).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let plain = Request::post("/v1/recommend").body("{}".into()).unwrap();
    assert_eq!(served.send(plain).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_body_in_crumbs_is_refused_before_it_is_whole() {
    let served = Served::new(|_, _| ());
    let crumbs = tokio_stream(3_000_000);
    let request =
        Request::post("/v1/recommend").header("content-type", "application/json").body(crumbs).unwrap();
    let (status, error) = served.send(request).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("pieces"));
}

/// So many pieces of one byte each.
fn tokio_stream(pieces: usize) -> Body {
    struct Crumbs(usize);
    impl axum::body::HttpBody for Crumbs {
        type Data = bytes::Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, std::io::Error>>> {
            assert!(self.0 > 2_900_000, "the rest should not have been asked for");
            self.0 -= 1;
            std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(bytes::Bytes::from_static(b" ")))))
        }
    }
    Body::new(Crumbs(pieces))
}

const READ: &str = "a key to read with, of a shop";
const ADMIN: &str = "a key of the administrator";

#[tokio::test]
async fn keys_open_what_they_are_for_and_nothing_else() {
    let served = Served::with_keys(|_, _| (), [Some(READ.to_owned()), Some(ADMIN.to_owned())]);
    let ask = async |method: &str, path: &str, key: Option<&str>| {
        let mut request =
            Request::builder().method(method).uri(path).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        served.send(request.body("{}".into()).unwrap()).await.0.as_u16()
    };
    for (method, path) in [
        ("POST", "/v1/recommend"),
        ("GET", "/v1/recommend"),
        ("GET", "/v1/popular"),
        ("GET", "/v1/model"),
        ("GET", "/v1/models"),
        ("GET", "/v1/stats"),
        ("GET", "/v1/items"),
        ("GET", "/metrics"),
        ("GET", "/v2/models/dense"),
        ("GET", "/v1/items/tent"),
        ("GET", "/v1/similar?item_id=tent"),
    ] {
        assert_eq!(ask(method, path, None).await, 401, "{path}");
        assert_eq!(ask(method, path, Some("a key to read with, of a shoq")).await, 401, "{path}");
        assert_eq!(ask(method, path, Some(READ)).await, 200, "{path}");
        assert_eq!(ask(method, path, Some(ADMIN)).await, 200, "{path}");
    }
    assert_eq!(ask("POST", "/v1/admin/reload", None).await, 401);
    assert_eq!(ask("POST", "/v1/admin/reload", Some(READ)).await, 403);
    assert_eq!(ask("POST", "/v1/admin/reload", Some(ADMIN)).await, 200);
    for path in ["/health/live", "/health/ready", "/", "/openapi.json", "/docs", "/page/console.js"] {
        assert_eq!(ask("GET", path, None).await, 200, "{path}");
    }
    let (_, metrics) = served.send(json_with_key("/metrics", READ)).await;
    assert!(metrics.as_str().unwrap().contains("satf_unauthorized_total 24\n"), "{metrics}");
}

fn json_with_key(path: &str, key: &str) -> Request<Body> {
    Request::get(path).header("x-api-key", key).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn pages_of_strangers_reach_nothing() {
    let served = Served::new(|config, _| config.hosts = vec!["shop.internal".to_owned()]);
    for (host, status) in [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("shop.internal:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8080", 403),
    ] {
        let mut request = json_request("/v1/recommend", "{}");
        request.headers_mut().insert(header::HOST, host.parse().unwrap());
        request.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
        let (got, response, _) = served.send_whole(request).await;
        assert_eq!(got.as_u16(), status, "{host}");
        assert!(!response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    }
    let open = Served::new(|config, _| config.cors = vec!["https://shop.example".to_owned()]);
    for (origin, is_allowed) in [("https://shop.example", true), ("https://evil.example", false)] {
        let mut request = json_request("/v1/recommend", "{}");
        request.headers_mut().insert(header::ORIGIN, origin.parse().unwrap());
        let (_, response, _) = open.send_whole(request).await;
        let allowed = response.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        assert_eq!(allowed.is_some_and(|allowed| allowed == origin), is_allowed, "{origin}");
    }
}

#[tokio::test]
async fn responses_carry_ids_and_pages_a_policy() {
    let served = Served::new(|_, _| ());
    let mut request = json_request("/v1/recommend", "{}");
    request.headers_mut().insert("x-request-id", "order-17".parse().unwrap());
    let (_, response, _) = served.send_whole(request).await;
    assert_eq!(response.headers()["x-request-id"], "order-17");
    let (_, response, _) = served.send_whole(json_request("/v1/recommend", "{}")).await;
    assert_eq!(response.headers()["x-request-id"].len(), 16);
    for path in ["/", "/docs"] {
        let (_, response, page) = served.send_whole(Request::get(path).body(Body::empty()).unwrap()).await;
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!page.as_str().unwrap().contains("onclick="));
    }
}

#[tokio::test]
async fn overload_is_answered_at_once_and_says_when_to_come_back() {
    let served = std::sync::Arc::new(Served::new(|config, _| {
        config.limits.queue = 1;
        config.threads = Some(1);
    }));
    let body = json!({"requests": vec![json!({"model": "dense", "history": ["tent", "laptop"], "n": 300, "explain": true}); 200]})
        .to_string();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (served, body) = (std::sync::Arc::clone(&served), body.clone());
        tasks.spawn(async move { served.send_whole(json_request("/v1/recommend/batch", &body)).await });
    }
    let (mut accepted, mut rejected) = (0, 0);
    for (status, response, body) in tasks.join_all().await {
        if status == StatusCode::OK {
            accepted += 1;
        } else {
            rejected += 1;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
            assert_eq!(response.headers()[header::RETRY_AFTER], "1");
            assert_eq!(body["error"]["code"], "overloaded");
        }
    }
    assert!(accepted >= 1 && rejected >= 10, "{accepted} accepted, {rejected} rejected");
    assert_eq!(served.post("/v1/recommend/batch", &body).await.0, StatusCode::OK, "normal again");
}

#[tokio::test]
async fn a_model_that_is_refused_leaves_the_old_one_serving() {
    let served = Served::new(|config, _| config.limits.model_bytes = 8 << 20);
    let path = served.models().join("sparse.satf");
    let before = served.answer(r#"{"history": ["tent"]}"#).await;
    let good = fs::read(&path).unwrap();
    let reload = async || served.send(Request::post("/v1/admin/reload").body(Body::empty()).unwrap()).await;
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let mut hostile = good.clone();
    hostile[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    for (what, bytes, part) in [
        ("truncated", good[..good.len() / 2].to_vec(), "checksum"),
        ("flipped", flipped, "checksum"),
        ("hostile", hostile, "header would need"),
        ("empty", Vec::new(), "not a satf model"),
        ("text", b"user,item\n".repeat(100), "not a satf model"),
        ("oversized", vec![0; 9 << 20], "at most 8.0 MiB"),
    ] {
        // In place, under the nose of the model that was loaded from it.
        fs::write(&path, bytes).unwrap();
        let (status, outcome) = reload().await;
        assert_eq!(status, StatusCode::CONFLICT, "{what}: {outcome}");
        let refused = &outcome["refused"][0];
        assert_eq!(refused["name"], "sparse", "{what}");
        assert!(refused["reason"].as_str().unwrap().contains(part), "{what}: {refused}");
        assert_eq!(served.answer(r#"{"history": ["tent"]}"#).await, before, "{what}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(reload().await.0, StatusCode::CONFLICT, "the default model cannot go");
    assert_eq!(served.answer(r#"{"history": ["tent"]}"#).await, before);
    let other = served::sparse(&served::log(300));
    other.save(&path).unwrap();
    let (status, outcome) = reload().await;
    assert_eq!((status, &outcome["loaded"]), (StatusCode::OK, &json!(["sparse"])), "{outcome}");
    let after = served.answer(r#"{"history": ["tent"]}"#).await;
    assert_ne!(after["model_version"], before["model_version"]);
    fs::write(served.models().join("new.satf"), good).unwrap();
    assert_eq!(reload().await.1["loaded"], json!(["new"]));
    let third = served.answer(r#"{"history": ["tent"], "model": "new"}"#).await;
    assert_eq!(third["items"], before["items"]);
    fs::remove_file(served.models().join("new.satf")).unwrap();
    assert_eq!(reload().await.1["removed"], json!(["new"]));
}
