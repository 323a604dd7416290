//! What comes next: for one history, for many, for a session.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State as AxumState;
use satf::interactions::{Id, OwnedId};
use satf::models::Workspace;

use super::{Asked, Posted, Reply, Shared, answered, compute_here};
use crate::error::ApiError;
use crate::query::{Query, choose, count};
use crate::scoring::{Written, write};
use crate::state::State;
#[cfg(test)]
use crate::wire::RecommendResponse;
use crate::wire::{BatchRequest, BatchResponse, RecommendRequest, SessionQuery};

/// What comes next after a history
#[cfg_attr(
    test,
    utoipa::path(
        post, path = "/v1/recommend", tag = "answers", request_body = RecommendRequest,
        responses((status = 200, description = "The best items, best first.", body = RecommendResponse))
    )
)]
pub(crate) async fn recommend(AxumState(state): Shared, Posted(request): Posted<RecommendRequest>) -> Reply {
    // The models are taken once: this request sees one version, whatever is loaded meanwhile.
    let query = Query::new(request, &state.models.load(), &state.config.limits)?;
    respond(&state, query).await
}

async fn respond(state: &State, query: Query) -> Reply {
    let served = Arc::clone(&query.served);
    let written = if query.is_quick() {
        compute_here(|workspace| write(&query.answer(workspace)?))
    } else {
        state.scorer.answer(query).await
    };
    Ok(answered(written?, served))
}

/// Many requests at once, each answered as if it came alone
#[cfg_attr(
    test,
    utoipa::path(
        post, path = "/v1/recommend/batch", tag = "answers", request_body = BatchRequest,
        responses((status = 200, description = "The answers, in the order of the requests.", body = BatchResponse))
    )
)]
pub(crate) async fn batch(
    AxumState(state): Shared,
    Posted(BatchRequest { requests }): Posted<BatchRequest>,
) -> Reply {
    let limits = &state.config.limits;
    if requests.len() > limits.batch {
        return Err(ApiError::beyond("requests", requests.len(), limits.batch));
    }
    let models = state.models.load_full();
    let queries = (0..)
        .zip(requests)
        .map(|(at, request)| Query::new(request, &models, limits).map_err(|error| within(at, error)));
    let queries: Vec<Query> = queries.collect::<Result<_, _>>()?;
    let served =
        queries.first().map_or_else(|| Arc::clone(models.default_model()), |query| Arc::clone(&query.served));
    let cost = queries.iter().map(|query| query.served.costs.history.of(1)).sum();
    let written = state.scorer.compute(cost, move |workspace| answer_batch(&queries, workspace)).await?;
    Ok(answered(written, served))
}

fn within(at: usize, mut error: ApiError) -> ApiError {
    error.message.insert_str(0, &format!("requests[{at}]: "));
    error
}

/// Histories that are scored together at most: between them others get their turn at memory.
const TOGETHER: usize = 32;

fn answer_batch(queries: &[Query], workspace: &mut Workspace) -> Written {
    let mut answers = Vec::with_capacity(queries.len());
    let mut rest = queries;
    while let Some(first) = rest.first() {
        let is_same = |query: &&Query| Arc::ptr_eq(&query.served, &first.served);
        let length = rest.iter().take(TOGETHER).take_while(is_same).count();
        let Some((together, after)) = rest.split_at_checked(length) else { break };
        let together: Vec<&Query> = together.iter().collect();
        for answer in Query::answer_together(&together, workspace) {
            answers.push(answer.map_err(|error| within(answers.len(), error))?);
        }
        rest = after;
    }
    write(&BatchResponse { answers })
}

/// What comes next in a session, item after item
///
/// With the consent of the visitor the session's items are remembered for a while, in memory only; without it nothing is kept.
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/recommend", tag = "answers", params(SessionQuery),
        responses((status = 200, description = "The best items, best first.", body = RecommendResponse))
    )
)]
pub(crate) async fn session(AxumState(state): Shared, Asked(query): Asked<SessionQuery>) -> Reply {
    let SessionQuery { session_id, item_id, user_consent, n, model } = query;
    let n = count(n, &state.config.limits)?;
    let session = session_id.as_deref();
    if session.is_some_and(|session| session.is_empty() || session.len() > 200) {
        return Err(ApiError::invalid("session_id: expected 1 to 200 bytes"));
    }
    let models = state.models.load();
    let served = choose(&models, model.as_deref(), None, session.map(Id::Text))?;
    let item = item_id.map(OwnedId::from);
    let items = match session {
        Some(session) if user_consent => state.sessions.visit(session, item, Instant::now()),
        session => {
            if let Some(session) = session {
                state.sessions.forget(session);
            }
            item.into_iter().collect()
        }
    };
    let query = Query::of_items(served, &items, n);
    drop(models);
    respond(&state, query).await
}
