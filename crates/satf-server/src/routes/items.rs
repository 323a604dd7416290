//! Items: alike, popular, found, looked at.

use std::sync::Arc;

use axum::extract::{Path, State as AxumState};
use axum::response::Response;
use satf::interactions::{Id, ItemIndex};
use satf::recommend::Request;

use super::{Given, answered, compute_here, given};
use crate::error::{ApiError, ErrorBody};
use crate::models::Served;
use crate::query::{choose, count, filter, id, rule};
use crate::scoring::write;
use crate::state::State;
use crate::wire::{
    CompletionQuery, ItemList, ItemResponse, ItemSummary, ModelQuery, PopularQuery, SimilarItemOut,
    SimilarQuery, SimilarResponse,
};

fn find(served: &Served, item: &str) -> Result<ItemIndex, ApiError> {
    let found = served.model.catalog().find(Id::Text(item)).map(|at| ItemIndex(at as u32));
    found.ok_or_else(|| {
        let shown: String = item.chars().take(100).collect();
        ApiError::not_found(
            "unknown_item",
            format!("the model '{}' does not know the item '{shown}'", served.name),
        )
    })
}

/// Items that could stand in the same place as an item
#[utoipa::path(
    get, path = "/v1/similar", tag = "answers", params(SimilarQuery),
    responses(
        (status = 200, description = "Items like this one, the most alike first.", body = SimilarResponse),
        (status = "4XX", description = "The request cannot be answered.", body = ErrorBody),
        (status = 503, description = "Overload: try again after the seconds of Retry-After.", body = ErrorBody),
    )
)]
pub(crate) async fn similar(
    AxumState(state): AxumState<Arc<State>>,
    query: Given<SimilarQuery>,
) -> Result<Response, ApiError> {
    let SimilarQuery { item_id, n, model } = given(query)?;
    let n = count(n, &state.config.limits)?;
    let served = Arc::clone(choose(&state.models.load(), model.as_deref(), None, None)?);
    let item = find(&served, &item_id)?;
    let own = Arc::clone(&served);
    let compute = move |_: &mut _| {
        let similar = own.model.similar_items_indexed(item, n)?;
        write(&SimilarResponse {
            model: &own.name,
            model_version: &own.version,
            measure: similar.measure,
            items: similar
                .items
                .into_iter()
                .map(|item| SimilarItemOut {
                    item_id: id(&own, item.item),
                    similarity: item.similarity,
                    title: own.title(item.item),
                })
                .collect(),
        })
    };
    Ok(answered(state.scorer.compute(compute).await?, served))
}

fn summary(served: &Served, item: ItemIndex) -> ItemSummary<'_> {
    ItemSummary {
        item_id: id(served, item),
        count: served.model.item_counts().get(item.get()).copied().unwrap_or(0),
        title: served.title(item),
    }
}

fn list(served: &Served, items: impl IntoIterator<Item = ItemIndex>) -> ItemList<'_> {
    ItemList {
        model: &served.name,
        model_version: &served.version,
        items: items.into_iter().map(|item| summary(served, item)).collect(),
    }
}

/// The items that were taken most often
#[utoipa::path(
    get, path = "/v1/popular", tag = "answers", params(PopularQuery),
    responses(
        (status = 200, description = "The most popular items.", body = ItemList),
        (status = "4XX", description = "The request cannot be answered.", body = ErrorBody),
        (status = 503, description = "Overload: try again after the seconds of Retry-After.", body = ErrorBody),
    )
)]
pub(crate) async fn popular(
    AxumState(state): AxumState<Arc<State>>,
    query: Given<PopularQuery>,
) -> Result<Response, ApiError> {
    let PopularQuery { n, r#where, model } = given(query)?;
    let n = count(n, &state.config.limits)?;
    let served = Arc::clone(choose(&state.models.load(), model.as_deref(), None, None)?);
    let filter = r#where.as_deref().map(filter).transpose()?;
    let own = Arc::clone(&served);
    let compute = move |_: &mut _| {
        let prepared = own.model.prepare(&Request::new(n))?;
        let prepared = match rule(&own, filter.as_ref())? {
            Some(rule) => prepared.with_rule(rule),
            None => prepared,
        };
        let items = prepared.popular();
        let indices = items.iter().filter_map(|item| own.model.catalog().find(item.item.as_id()));
        write(&list(&own, indices.map(|at| ItemIndex(at as u32))))
    };
    Ok(answered(state.scorer.compute(compute).await?, served))
}

/// Items whose title, or a word of it, or whose id begins with what was typed
#[utoipa::path(
    get, path = "/v1/items", tag = "items", params(CompletionQuery),
    responses(
        (status = 200, description = "Items that match, the most popular first.", body = ItemList),
        (status = "4XX", description = "The request cannot be answered.", body = ErrorBody),
        (status = 503, description = "Overload: try again after the seconds of Retry-After.", body = ErrorBody),
    )
)]
pub(crate) async fn complete(
    AxumState(state): AxumState<Arc<State>>,
    query: Given<CompletionQuery>,
) -> Result<Response, ApiError> {
    let CompletionQuery { prefix, n, model } = given(query)?;
    let n = count(n, &state.config.limits)?;
    let served = Arc::clone(choose(&state.models.load(), model.as_deref(), None, None)?);
    let written = compute_here(|_| {
        let items = if prefix.trim().is_empty() {
            let popular = served.model.popular(&Request::new(n))?;
            let catalog = served.model.catalog();
            popular
                .iter()
                .filter_map(|item| catalog.find(item.item.as_id()))
                .map(|at| ItemIndex(at as u32))
                .collect()
        } else {
            served.titles.complete(&prefix, n, served.model.item_counts())
        };
        write(&list(&served, items))
    });
    Ok(answered(written?, served))
}

/// All that is known of an item
#[utoipa::path(
    get, path = "/v1/items/{id}", tag = "items", params(("id" = String, Path, description = "The item."), ModelQuery),
    responses(
        (status = 200, description = "The item.", body = ItemResponse),
        (status = "4XX", description = "The model does not know it.", body = ErrorBody),
    )
)]
pub(crate) async fn item(
    AxumState(state): AxumState<Arc<State>>,
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
    query: Given<ModelQuery>,
) -> Result<Response, ApiError> {
    let ModelQuery { model } = given(query)?;
    let Path(item) = path.map_err(|error| ApiError::malformed(error.body_text()))?;
    let served = Arc::clone(choose(&state.models.load(), model.as_deref(), None, None)?);
    let item = find(&served, &item)?;
    let ItemSummary { item_id, count, title } = summary(&served, item);
    let mut attributes = serde_json::Map::new();
    for (name, value) in served.attributes.of(item) {
        let value = serde_json::to_value(value).map_err(|error| ApiError::internal(error.to_string()))?;
        attributes.insert(name.to_owned(), value);
    }
    let written = write(&ItemResponse {
        model: &served.name,
        model_version: &served.version,
        item_id,
        count,
        title,
        attributes: attributes.into(),
    })?;
    Ok(answered(written, Arc::clone(&served)))
}
