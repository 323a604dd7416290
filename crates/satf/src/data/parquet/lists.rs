//! Columns of lists: whole histories.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;

use crate::data::arrow::{Column, element};
use crate::data::error::{Fault, shown};
use crate::data::field::{Field, IdList};
use crate::interactions::{Id, Ids, OwnedHistory};

pub(super) fn is_list(data_type: &DataType) -> bool {
    element(data_type).is_some()
}

/// A list for every row of a batch.
pub(super) struct ListColumn {
    /// Where each list begins and ends among the elements; none for null.
    bounds: Vec<Option<(usize, usize)>>,
    elements: Elements,
}

enum Elements {
    Ids(Column),
    /// Items of one basket.
    Baskets(Box<ListColumn>),
}

impl ListColumn {
    /// The lists of an array; none if they hold no ids.
    pub(super) fn new(lists: &ArrayRef) -> Option<Self> {
        let (bounds, elements) = match lists.data_type() {
            DataType::List(_) => parts::<i32>(lists),
            DataType::LargeList(_) => parts::<i64>(lists),
            _ => {
                let lists = lists.as_fixed_size_list();
                let length = usize::try_from(lists.value_length()).unwrap_or(0);
                let bounds = |at: usize| lists.is_valid(at).then_some((at * length, (at + 1) * length));
                ((0..lists.len()).map(bounds).collect(), lists.values().clone())
            }
        };
        let elements = if is_list(elements.data_type()) {
            Elements::Baskets(Box::new(ListColumn::new(&elements)?))
        } else {
            Elements::Ids(Column::new(&elements)?)
        };
        Some(ListColumn { bounds, elements })
    }

    /// The list of a row; none for null.
    pub(super) fn at(&self, row: usize) -> Option<RowList<'_>> {
        let (start, end) = self.bounds[row]?;
        Some(RowList { elements: &self.elements, start, end })
    }
}

fn parts<O: OffsetSizeTrait>(lists: &ArrayRef) -> (Vec<Option<(usize, usize)>>, ArrayRef) {
    let lists = lists.as_list::<O>();
    let offsets = lists.value_offsets().windows(2);
    let bounds = offsets
        .enumerate()
        .map(|(at, ends)| lists.is_valid(at).then(|| (ends[0].as_usize(), ends[1].as_usize())));
    (bounds.collect(), lists.values().clone())
}

/// The list of one row.
pub(super) struct RowList<'c> {
    elements: &'c Elements,
    start: usize,
    end: usize,
}

impl IdList for RowList<'_> {
    fn push_to(&self, catalog: &Ids, history: &mut OwnedHistory) -> Result<(), Box<Fault>> {
        for at in self.start..self.end {
            let place = at - self.start + 1;
            match self.elements {
                Elements::Ids(ids) => push(ids, at, false, place, catalog, history)?,
                Elements::Baskets(baskets) => {
                    let Some((start, end)) = baskets.bounds[at] else { return Err(Box::new(null(place))) };
                    let Elements::Ids(ids) = &baskets.elements else { return Err(Box::new(null(place))) };
                    for id in start..end {
                        push(ids, id, id > start, place, catalog, history)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Adds the id at a place of a list, counted from 1.
fn push(
    ids: &Column,
    at: usize,
    is_with_previous: bool,
    place: usize,
    catalog: &Ids,
    history: &mut OwnedHistory,
) -> Result<(), Box<Fault>> {
    match ids.get(at) {
        Field::Integer(id) => history.push_id(catalog, Id::Integer(id), is_with_previous),
        Field::Unsigned(id) => history.push_id(catalog, Id::Text(&id.to_string()), is_with_previous),
        Field::Text(text) if !text.is_empty() => {
            let id = std::str::from_utf8(text).map_err(|_| {
                let found = format!("{} at place {place} of the list", shown(text));
                Box::new(Fault::of_line(found, "the id of an item in valid UTF-8"))
            })?;
            history.push_id(catalog, Id::Text(id), is_with_previous);
        }
        Field::Text(_) => {
            let found = format!("nothing at place {place} of the list");
            return Err(Box::new(Fault::of_line(found, "the id of an item")));
        }
        _ => return Err(Box::new(null(place))),
    }
    Ok(())
}

fn null(place: usize) -> Fault {
    Fault::of_line(format!("null at place {place} of the list"), "the id of an item")
}
