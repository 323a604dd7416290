//! Columns of lists: whole histories.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;

use crate::data::arrow::{Column, element};
use crate::data::error::{Fault, shown};
use crate::data::field::{Field, IdList};
use crate::data::history_text::no_basket;
use crate::interactions::{Id, Ids, OwnedHistory};

pub(super) fn is_list(data_type: &DataType) -> bool {
    element(data_type).is_some()
}

/// A list for every row of a batch.
pub(in crate::data) struct ListColumn {
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
    pub(in crate::data) fn new(lists: &ArrayRef) -> Option<Self> {
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
    pub(in crate::data) fn at(&self, row: usize) -> Option<RowList<'_>> {
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
pub(in crate::data) struct RowList<'c> {
    elements: &'c Elements,
    start: usize,
    end: usize,
}

impl IdList for RowList<'_> {
    fn push_to(&self, catalog: &Ids, history: &mut OwnedHistory) -> Result<(), Box<Fault>> {
        for at in self.start..self.end {
            let place = at - self.start + 1;
            match self.elements {
                Elements::Ids(ids) => with_id(ids, at, place, |id| history.push_id(catalog, id, false))?,
                Elements::Baskets(baskets) => {
                    let Some((start, end)) = baskets.bounds[at] else { return Err(Box::new(null(place))) };
                    let Elements::Ids(ids) = &baskets.elements else { return Err(Box::new(null(place))) };
                    for at in start..end {
                        with_id(ids, at, place, |id| history.push_id(catalog, id, at > start))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn each(&self, take: &mut dyn FnMut(Id<'_>)) -> Result<(), Box<Fault>> {
        for at in self.start..self.end {
            let place = at - self.start + 1;
            match self.elements {
                Elements::Ids(ids) => with_id(ids, at, place, &mut *take)?,
                Elements::Baskets(_) => return Err(Box::new(no_basket(place))),
            }
        }
        Ok(())
    }
}

/// Hands out the id at a place of a list, counted from 1.
fn with_id(ids: &Column, at: usize, place: usize, take: impl FnOnce(Id<'_>)) -> Result<(), Box<Fault>> {
    match ids.get(at) {
        Field::Integer(id) => take(Id::Integer(id)),
        Field::Unsigned(id) => take(Id::Text(&id.to_string())),
        Field::Text(text) if !text.is_empty() => {
            let id = std::str::from_utf8(text).map_err(|_| {
                let found = format!("{} at place {place} of the list", shown(text));
                Box::new(Fault::of_line(found, "the id of an item in valid UTF-8"))
            })?;
            take(Id::Text(id));
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
