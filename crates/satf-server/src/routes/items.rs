//! Items: alike, popular, found, looked at.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State as AxumState;
use satf::interactions::{Id, ItemIndex};
use satf::recommend::Request;

use super::{Asked, Named, Reply, Shared, answered, compute_here, model_of};
use crate::error::ApiError;
use crate::models::Served;
use crate::query::{count, filter, id, rule};
use crate::scoring::write;
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
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/similar", tag = "answers", params(SimilarQuery),
        responses((status = 200, description = "Items like this one, the most alike first.", body = SimilarResponse))
    )
)]
pub(crate) async fn similar(AxumState(state): Shared, Asked(query): Asked<SimilarQuery>) -> Reply {
    let SimilarQuery { item_id, n, model } = query;
    let n = count(n, &state.config.limits)?;
    let served = model_of(&state, model.as_deref())?;
    let item = find(&served, &item_id)?;
    let own = Arc::clone(&served);
    let compute = move |_: &mut _| {
        let started = Instant::now();
        let similar = own.model.similar_items_indexed(item, n)?;
        own.costs.similar.record(started.elapsed(), 1);
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
    let cost = served.costs.similar.of(1);
    Ok(answered(state.scorer.compute(cost, compute).await?, served))
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
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/popular", tag = "answers", params(PopularQuery),
        responses((status = 200, description = "The most popular items.", body = ItemList))
    )
)]
pub(crate) async fn popular(AxumState(state): Shared, Asked(query): Asked<PopularQuery>) -> Reply {
    let PopularQuery { n, r#where, model } = query;
    let n = count(n, &state.config.limits)?;
    let served = model_of(&state, model.as_deref())?;
    let filter = r#where.as_deref().map(filter).transpose()?;
    let own = Arc::clone(&served);
    let compute = move |_: &mut _| {
        let started = Instant::now();
        let prepared = own.model.prepare(&Request::new(n))?;
        let prepared = match rule(&own, filter.as_ref())? {
            Some(rule) => prepared.with_rule(rule),
            None => prepared,
        };
        let items = prepared.popular();
        own.costs.popular.record(started.elapsed(), 1);
        let indices = items.iter().filter_map(|item| own.model.catalog().find(item.item.as_id()));
        write(&list(&own, indices.map(|at| ItemIndex(at as u32))))
    };
    let cost = served.costs.popular.of(1);
    Ok(answered(state.scorer.compute(cost, compute).await?, served))
}

/// Items whose title, or a word of it, or whose id begins with what was typed
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/items", tag = "items", params(CompletionQuery),
        responses((status = 200, description = "Items that match, the most popular first.", body = ItemList))
    )
)]
pub(crate) async fn complete(AxumState(state): Shared, Asked(query): Asked<CompletionQuery>) -> Reply {
    let CompletionQuery { prefix, n, model } = query;
    let n = count(n, &state.config.limits)?;
    let served = model_of(&state, model.as_deref())?;
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
#[cfg_attr(
    test,
    utoipa::path(
        get, path = "/v1/items/{id}", tag = "items", params(("id" = String, Path, description = "The item."), ModelQuery),
        responses((status = 200, description = "The item.", body = ItemResponse))
    )
)]
pub(crate) async fn item(
    AxumState(state): Shared,
    Named(item): Named,
    Asked(query): Asked<ModelQuery>,
) -> Reply {
    let ModelQuery { model } = query;
    let served = model_of(&state, model.as_deref())?;
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
