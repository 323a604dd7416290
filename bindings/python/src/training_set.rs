//! What a model of one's own learns from, and the events it is asked for.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, TimestampMicrosecondArray, UInt32Array};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use satf::interactions::{Clock, UserIndex};
use satf::prepare::Partition;

use crate::table::{Table, id_column};

/// The histories of a training set: items of all users one after the other, oldest first, and where each user's begin.
#[pyclass(frozen, name = "TrainingSet", module = "satf._satf")]
pub(crate) struct TrainingSet {
    pub(crate) partition: Arc<Partition>,
}

#[pymethods]
impl TrainingSet {
    #[getter]
    fn num_users(&self) -> usize {
        self.partition.train.num_users()
    }

    #[getter]
    fn num_items(&self) -> usize {
        self.partition.train.num_items()
    }

    #[getter]
    fn num_events(&self) -> usize {
        self.partition.train.num_rows()
    }

    /// Ids of the users.
    fn users(&self) -> Table {
        let users = self.partition.train.users();
        Table::of(vec![("user_id", id_column(users, 0..users.len()))])
    }

    /// Ids of the items: the catalogue.
    fn items(&self) -> Table {
        let items = self.partition.train.catalog();
        Table::of(vec![("item_id", id_column(items, 0..items.len()))])
    }

    /// Where each user's items begin, and where the last one's end.
    fn indptr<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let mut ends = vec![0i64];
        for items in self.partition.train.iter() {
            ends.push(ends.last().copied().unwrap_or_default() + items.len() as i64);
        }
        ends.to_pyarray(py)
    }

    /// The items of all users, as places in the catalogue.
    fn indices<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let items: Vec<i64> = self.partition.train.iter().flatten().map(|item| i64::from(item.0)).collect();
        items.to_pyarray(py)
    }

    /// The times of all of them: microseconds since 1970, or row numbers.
    fn times<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let times: Vec<i64> = self.partition.train.times().iter().map(|time| time.0).collect();
        times.to_pyarray(py)
    }

    /// Its events as columns `user_id`, `item_id`, `timestamp`, user by user.
    fn table(&self) -> Table {
        let train = &self.partition.train;
        let users = (0..train.num_users())
            .flat_map(|user| std::iter::repeat_n(user, train.items_of(UserIndex(user as u32)).len()));
        let times = train.times().iter().map(|time| time.0);
        let times: ArrayRef = match train.clock() {
            Clock::Calendar => {
                Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
            }
            Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
        };
        Table::of(vec![
            ("user_id", id_column(train.users(), users)),
            ("item_id", id_column(train.catalog(), train.iter().flatten().map(|item| item.get()))),
            ("timestamp", times),
        ])
    }
}

/// The events to predict: place, user, item, time, length of the history.
pub(crate) fn events_of(partition: &Partition) -> Table {
    let Partition { train, holdout } = partition;
    let events = &holdout.events;
    let times = events.iter().map(|event| event.time.0);
    let times: ArrayRef = match holdout.clock {
        Clock::Calendar => Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
        Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
    };
    let lengths = events.iter().map(|event| event.history_len() as u32);
    Table::of(vec![
        ("event", Arc::new(Int64Array::from_iter_values(0..events.len() as i64))),
        ("user_id", id_column(&holdout.users, events.iter().map(|event| event.user.get()))),
        ("item_id", id_column(train.catalog(), events.iter().map(|event| event.target.get()))),
        ("timestamp", times),
        ("history_length", Arc::new(UInt32Array::from_iter_values(lengths))),
    ])
}

/// The items that events are predicted from, as places in the catalogue, event after event.
pub(crate) fn histories_of_events(partition: &Partition) -> Table {
    let holdout = &partition.holdout;
    let events = holdout.events.iter().enumerate();
    let pairs = events.flat_map(|(at, event)| {
        holdout.history(event).items().iter().map(move |item| (at as i64, item.get()))
    });
    let (events, items): (Vec<i64>, Vec<usize>) = pairs.unzip();
    Table::of(vec![
        ("event", Arc::new(Int64Array::from(events))),
        ("item_id", id_column(partition.train.catalog(), items.into_iter())),
    ])
}
