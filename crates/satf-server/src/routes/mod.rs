//! What can be asked, a file each.

pub(crate) mod admin;
pub(crate) mod health;
pub(crate) mod inference;
pub(crate) mod items;
pub(crate) mod models;
pub(crate) mod page;
pub(crate) mod recommend;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Query as AxumQuery, Request, State as AxumState};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use satf::models::Workspace;
use serde::de::DeserializeOwned;

use crate::body::read_json;
use crate::error::{ApiError, json_bytes};
use crate::gate::AnsweredBy;
use crate::models::Served;
use crate::query::choose;
use crate::scoring::Written;
use crate::state::State;

/// What all requests share.
pub(crate) type Shared = AxumState<Arc<State>>;

/// A response, or why there is none.
pub(crate) type Reply = Result<Response, ApiError>;

/// What follows the question mark.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = AxumQuery::try_from_uri(&parts.uri);
        query.map(|AxumQuery(query)| Asked(query)).map_err(|error| ApiError::malformed(error.body_text()))
    }
}

/// The part of the path that names something.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Named(name)).map_err(|error| ApiError::malformed(error.body_text()))
    }
}

/// The body, in JSON and within the limits.
pub(crate) struct Posted<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<State>> for Posted<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<State>) -> Result<Self, ApiError> {
        read_json(request, &state.config.limits).await.map(Posted)
    }
}

/// The model of a name, or the default one. It is taken once: a request sees one version, whatever is loaded meanwhile.
fn model_of(state: &State, name: Option<&str>) -> Result<Arc<Served>, ApiError> {
    choose(&state.models.load(), name, None, None).cloned()
}

/// An answer with the model that gave it.
fn answered(written: Vec<u8>, served: Arc<Served>) -> Response {
    let mut response = json_bytes(StatusCode::OK, written);
    response.extensions_mut().insert(AnsweredBy(served));
    response
}

/// Computes on this thread, with a workspace that it keeps.
fn compute_here(compute: impl FnOnce(&mut Workspace) -> Written) -> Written {
    thread_local! {
        static WORKSPACE: std::cell::RefCell<Workspace> = std::cell::RefCell::default();
    }
    WORKSPACE.with_borrow_mut(|workspace| {
        // A panic of a model costs whoever asked an answer, and nobody else anything.
        let computed = catch_unwind(AssertUnwindSafe(|| compute(workspace)));
        computed.unwrap_or_else(|_| {
            *workspace = Workspace::new();
            Err(ApiError::internal("the answer could not be computed: the model gave up; the log says why"))
        })
    })
}
