//! A shop that is served, without a socket.

#![allow(clippy::unwrap_used, dead_code)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use satf::generate::{ShopOptions, shop};
use satf::models::Registry;
use satf::{FitOptions, Model};
use satf_server::{Config, State, app};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// A folder of models and what serves it.
pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) state: Arc<State>,
    pub(crate) app: Router,
}

/// The log of a shop.
pub(crate) fn log(users: usize) -> satf::Interactions {
    shop(&ShopOptions { users, ..ShopOptions::default() }).unwrap()
}

/// Writes the two models of the tests: one that scores all items, one that looks at few.
pub(crate) fn write_models(folder: &std::path::Path) {
    let log = log(400);
    fs::create_dir_all(folder).unwrap();
    Model::fit(&log).unwrap().save(folder.join("dense.satf")).unwrap();
    sparse(&log).save(folder.join("sparse.satf")).unwrap();
}

/// A model of sparse rows.
pub(crate) fn sparse(log: &satf::Interactions) -> Model {
    Model::fit_with(log, &FitOptions::new("d-satf").set("balance", 0.0), &()).unwrap()
}

impl Served {
    /// Serves the models of the tests after a change of the configuration.
    pub(crate) fn new(change: impl FnOnce(&mut Config, PathBuf)) -> Self {
        Served::with_keys(change, [None, None])
    }

    pub(crate) fn with_keys(change: impl FnOnce(&mut Config, PathBuf), keys: [Option<String>; 2]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let models = folder.path().join("models");
        write_models(&models);
        let mut config =
            Config { models: Some(models), default_model: Some("sparse".to_owned()), ..Config::default() };
        change(&mut config, folder.path().to_owned());
        let state = State::open_with_keys(config, Registry::default(), keys, true).unwrap();
        Served { folder, app: app(Arc::clone(&state)), state }
    }

    pub(crate) fn models(&self) -> PathBuf {
        self.folder.path().join("models")
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let (status, _, body) = self.send_whole(request).await;
        (status, body)
    }

    pub(crate) async fn send_whole(&self, request: Request<Body>) -> (StatusCode, Response<()>, Value) {
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        (parts.status, Response::from_parts(parts, ()), value)
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> (StatusCode, Value) {
        self.send(json_request(path, body)).await
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// The answer to a request that must be answered.
    pub(crate) async fn answer(&self, body: &str) -> Value {
        let (status, answer) = self.post("/v1/recommend", body).await;
        assert_eq!(status, StatusCode::OK, "{body}: {answer}");
        answer
    }
}

pub(crate) fn json_request(path: &str, body: &str) -> Request<Body> {
    Request::post(path).header("content-type", "application/json").body(body.to_owned().into()).unwrap()
}

/// The ids of a list.
pub(crate) fn ids(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().map(|item| item["item_id"].as_str().unwrap()).collect()
}

/// Ids and the bits of scores.
pub(crate) fn bits(answer: &Value) -> Vec<(String, u32)> {
    let items = answer["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let score: f32 = serde_json::from_str(&item["score"].to_string()).unwrap();
            (item["item_id"].as_str().unwrap().to_owned(), score.to_bits())
        })
        .collect()
}
