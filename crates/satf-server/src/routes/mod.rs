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

use axum::extract::Query as AxumQuery;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::Response;
use satf::models::Workspace;

use crate::error::{ApiError, json_bytes};
use crate::gate::AnsweredBy;
use crate::models::Served;
use crate::scoring::Written;

/// What follows the question mark, or what is wrong with it.
type Given<T> = Result<AxumQuery<T>, QueryRejection>;

fn given<T>(query: Given<T>) -> Result<T, ApiError> {
    query.map(|AxumQuery(query)| query).map_err(|error| ApiError::malformed(error.body_text()))
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
