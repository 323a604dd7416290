//! What is asked of a model, and its answers as a table.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{ArrayRef, Float32Array, Float64Array, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Fields};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use satf::data::Boost;
use satf::interactions::{History, Id, Ids, ItemIndex, OwnedId};
use satf::monitor::{Monitor, check_cancelled};
use satf::recommend::{Answer, Explanation, Fallback, Prepared, Request, Seen};

use crate::failure::{Failure, Kind};
use crate::histories::Histories;
use crate::plain::{to_id, to_ids};
use crate::table::{Table, id_column};
use crate::work::Watch;

/// Histories between two questions whether to stop.
const HISTORIES_AT_ONCE: usize = 8192;

/// What is asked, from a dict: `Request` with boosts as the command line writes them.
pub(crate) fn request_of(asked: &Bound<'_, PyDict>) -> PyResult<Request> {
    let list = |name: &str| -> PyResult<Option<Vec<OwnedId>>> {
        asked.get_item(name)?.filter(|ids| !ids.is_none()).map(|ids| to_ids(&ids)).transpose()
    };
    let truth =
        |name: &str| -> PyResult<bool> { asked.get_item(name)?.map_or(Ok(false), |value| value.extract()) };
    let mut request = Request {
        n: asked.get_item("k")?.map_or(Ok(10), |k| k.extract())?,
        exclude: list("exclude")?.unwrap_or_default(),
        only: list("only")?,
        seen: if truth("filter_viewed")? { Seen::Exclude } else { Seen::Allow },
        repeatable: list("allow_seen")?.unwrap_or_default(),
        fallback: if truth("popular")? { Fallback::Popular } else { Fallback::Empty },
        explain: truth("explain")?,
        ..Request::default()
    };
    let boosts = asked.get_item("boost")?.filter(|boosts| !boosts.is_none());
    for (item, boost) in boosts.map(Bound::cast_into::<PyDict>).transpose()?.into_iter().flatten() {
        let item = to_id(&item)?;
        let text = boost.str()?.to_string();
        match Boost::parse(&text) {
            Some(Boost::Add(number)) => request.boosts.push((item, number)),
            Some(Boost::Multiply(factor)) => request.factors.push((item, factor)),
            None => {
                let message = format!(
                    "boost of {item} = {text}: expected a finite number to add, or a text such as '*1.5' to multiply by a number above 0"
                );
                return Err(Failure::new(Kind::Config, message).into());
            }
        }
    }
    Ok(request)
}

/// The lists of a few histories, on the thread that a pool has for them.
pub(crate) fn answer_few(prepared: &Prepared<'_>, histories: &Histories) -> Result<Table, Failure> {
    let mut workspace = satf::models::Workspace::new();
    let answers = histories.histories.iter().map(|history| prepared.answer_indexed(history, &mut workspace));
    let answers = answers.collect::<Result<Vec<_>, _>>()?;
    Ok(recommendations(prepared, histories, &answers))
}

/// The lists of many.
pub(crate) fn answer_many(
    prepared: &Prepared<'_>,
    histories: &Histories,
    watch: &Watch,
) -> Result<Table, Failure> {
    watch.begin("recommending", histories.histories.len() as u64);
    let views: Vec<History<'_>> = histories.histories.iter().map(Into::into).collect();
    let mut answers = Vec::with_capacity(views.len());
    for views in views.chunks(HISTORIES_AT_ONCE) {
        check_cancelled(watch)?;
        answers.extend(prepared.answer_batch_indexed(views)?);
        watch.advance(views.len() as u64);
    }
    Ok(recommendations(prepared, histories, &answers))
}

/// Lists of all histories as rows, with the columns of the command line's.
fn recommendations(prepared: &Prepared<'_>, histories: &Histories, answers: &[Answer<ItemIndex>]) -> Table {
    let catalog = prepared.model().catalog();
    let all = || answers.iter().flat_map(|answer| &answer.items);
    let ranks = answers.iter().flat_map(|answer| 1..=answer.items.len() as u32);
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("user_id", histories.users.column(answers.iter().map(|answer| answer.items.len()))),
        ("item_id", id_column(catalog, all().map(|recommendation| recommendation.item.get()))),
        ("score", Arc::new(Float32Array::from_iter_values(all().map(|recommendation| recommendation.score)))),
        ("rank", Arc::new(UInt32Array::from_iter_values(ranks))),
    ];
    if prepared.fallback() == Fallback::Popular {
        let word = |answer: &Answer<ItemIndex>| answer.is_fallback.then_some("popular");
        let words = answers.iter().flat_map(|answer| std::iter::repeat_n(word(answer), answer.items.len()));
        columns.push(("fallback", Arc::new(words.collect::<StringArray>())));
    }
    if prepared.explains() {
        let explanations = || all().filter_map(|recommendation| recommendation.explanation.as_ref());
        let base = |explanation: &Explanation<ItemIndex>| explanation.base;
        let boost = |explanation: &Explanation<ItemIndex>| explanation.boost;
        columns.push(("shares", shares(catalog, explanations())));
        columns.push(("base", Arc::new(Float64Array::from_iter_values(explanations().map(base)))));
        columns.push(("boost", Arc::new(Float64Array::from_iter_values(explanations().map(boost)))));
    }
    Table::of(columns)
}

/// What each item of a history adds, as lists of `item_id` and `share`.
fn shares<'a>(catalog: &Ids, explanations: impl Iterator<Item = &'a Explanation<ItemIndex>>) -> ArrayRef {
    let has_integers = matches!(catalog, Ids::Integers(_));
    let id_type = if has_integers { DataType::Int64 } else { DataType::Utf8 };
    let fields: Fields =
        vec![Field::new("item_id", id_type, false), Field::new("share", DataType::Float64, false)].into();
    let element = Arc::new(Field::new("item", DataType::Struct(fields.clone()), false));
    let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0)).with_field(element);
    for explanation in explanations {
        for share in &explanation.shares {
            let row = lists.values();
            match catalog.get(share.item.get()) {
                Id::Integer(id) => {
                    row.field_builder::<Int64Builder>(0)
                        .expect("invariant: a column of integers")
                        .append_value(id);
                }
                Id::Text(id) => {
                    row.field_builder::<StringBuilder>(0)
                        .expect("invariant: a column of texts")
                        .append_value(id);
                }
            }
            row.field_builder::<Float64Builder>(1)
                .expect("invariant: a column of numbers")
                .append_value(share.share);
            row.append(true);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}
