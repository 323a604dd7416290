//! Histories to recommend for: from lists, from a log, of users the model learned from.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList, PySet, PyString, PyTuple};
use satf::data::{HistoryOptions, UserHistories};
use satf::interactions::{Ids, Interactions, ItemIndex, OwnedHistory, OwnedId, UserIndex};
use satf::monitor::Monitor;
use satf::prepare;

use crate::failure::{Failure, Kind};
use crate::plain::{to_id, to_ids};
use crate::table::text_column;

/// Histories in the indices of one model's catalogue, and whose they are.
#[pyclass(frozen, name = "Histories", module = "satf._satf")]
pub(crate) struct Histories {
    pub(crate) users: Users,
    pub(crate) histories: Vec<OwnedHistory>,
}

/// Whose histories they are.
pub(crate) enum Users {
    Integers(Vec<i64>),
    Texts(Vec<Box<str>>),
}

impl Users {
    /// Numbers from 0.
    fn counted(count: usize) -> Self {
        Users::Integers((0..count as i64).collect())
    }

    /// Ids, all of one type.
    fn of(ids: Vec<OwnedId>) -> Result<Self, Failure> {
        let mixed = |id: &OwnedId, before: &str| {
            let message = format!("user {id}: expected {before}, as the users before it are");
            Failure::new(Kind::Data, message)
        };
        match ids.first() {
            None | Some(OwnedId::Integer(_)) => {
                let number = |id: OwnedId| match id {
                    OwnedId::Integer(number) => Ok(number),
                    OwnedId::Text(_) => Err(mixed(&id, "an integer")),
                };
                Ok(Users::Integers(ids.into_iter().map(number).collect::<Result<_, _>>()?))
            }
            Some(OwnedId::Text(_)) => {
                let text = |id: OwnedId| match id {
                    OwnedId::Text(text) => Ok(text),
                    OwnedId::Integer(_) => Err(mixed(&id, "a string")),
                };
                Ok(Users::Texts(ids.into_iter().map(text).collect::<Result<_, _>>()?))
            }
        }
    }

    /// Each user so many times, as a column.
    pub(crate) fn column(&self, times: impl Iterator<Item = usize> + Clone) -> ArrayRef {
        let repeated = times.enumerate().flat_map(|(user, times)| std::iter::repeat_n(user, times));
        match self {
            Users::Integers(ids) => Arc::new(Int64Array::from_iter_values(repeated.map(|user| ids[user]))),
            Users::Texts(ids) => text_column(repeated.map(|user| &*ids[user])),
        }
    }
}

#[pymethods]
impl Histories {
    fn __len__(&self) -> usize {
        self.histories.len()
    }

    /// How many items of the histories the model does not know.
    #[getter]
    fn unknown_items(&self) -> usize {
        self.histories.iter().map(OwnedHistory::unknown).sum()
    }

    /// Those of some users; a user that has none gets one without items.
    #[pyo3(name = "of_users")]
    fn picked(&self, users: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ids = to_ids(users)?;
        let place = |at: usize| match &self.users {
            Users::Integers(ids) => OwnedId::Integer(ids[at]),
            Users::Texts(ids) => OwnedId::Text(ids[at].clone()),
        };
        let places: HashMap<OwnedId, usize> = (0..self.histories.len()).map(|at| (place(at), at)).collect();
        let history = |id: &OwnedId| places.get(id).map(|&at| self.histories[at].clone()).unwrap_or_default();
        let histories = ids.iter().map(history).collect();
        Ok(Histories { users: Users::of(ids)?, histories })
    }

    /// How many histories have no item that the model knows.
    #[getter]
    fn without_known_items(&self) -> usize {
        self.histories.iter().filter(|history| history.is_empty()).count()
    }
}

impl Histories {
    /// From an iterable of histories, each an iterable of ids, oldest first. A list within a history is a basket.
    pub(crate) fn of_lists(
        catalog: &Ids,
        lists: &Bound<'_, PyAny>,
        users: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let histories =
            lists.try_iter()?.map(|list| history_of(catalog, &list?)).collect::<PyResult<Vec<_>>>()?;
        let users = match users {
            Some(users) => Users::of(to_ids(users)?)?,
            None => Users::counted(histories.len()),
        };
        Ok(Histories { users, histories })
    }

    /// From the events of a log: users in the order in which they first appear, events in the order of their times, equal times in
    /// that of the rows.
    pub(crate) fn of_log(catalog: &Ids, log: &Interactions) -> Self {
        let known: Vec<Option<ItemIndex>> =
            log.items().iter().map(|id| catalog.find(id).map(|index| ItemIndex(index as u32))).collect();
        let mut place = vec![usize::MAX; log.users().len()];
        let mut order: Vec<usize> = Vec::new();
        let mut lengths: Vec<usize> = Vec::new();
        for row in log.rows() {
            let own = &mut place[row.user.get()];
            if *own == usize::MAX {
                *own = order.len();
                order.push(row.user.get());
                lengths.push(0);
            }
            lengths[*own] += 1;
        }
        let mut next: Vec<usize> = Vec::with_capacity(lengths.len());
        let mut end = 0;
        for length in &lengths {
            next.push(end);
            end += length;
        }
        let mut events = vec![(0i64, 0u32); log.len()];
        for row in log.rows() {
            let at = &mut next[place[row.user.get()]];
            events[*at] = (row.time.0, row.item.0);
            *at += 1;
        }
        let mut rest = &mut events[..];
        let mut histories = Vec::with_capacity(order.len());
        for &length in &lengths {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(length);
            rest = others;
            own.sort_by_key(|&(time, _)| time);
            let mut history = OwnedHistory::new();
            let mut last = None;
            for &(time, item) in &*own {
                history.push(known[item as usize], last.replace(time) == Some(time));
            }
            histories.push(history);
        }
        let users = match &**log.users() {
            Ids::Integers(ids) => Users::Integers(order.iter().map(|&user| ids[user]).collect()),
            Ids::Texts(ids) => Users::Texts(order.iter().map(|&user| ids[user].clone()).collect()),
        };
        Histories { users, histories }
    }

    /// What some users did in the log that a model learned from; all of them if none are named.
    pub(crate) fn of_users(kept: &KeptHistories, ids: Option<Vec<OwnedId>>) -> Result<Self, Failure> {
        let all = kept.histories.users();
        let owned = |user: usize| {
            let history = kept.histories.history_of(UserIndex(user as u32), &kept.with_previous);
            let mut owned = OwnedHistory::new();
            for (at, &item) in history.items().iter().enumerate() {
                owned.push(Some(item), history.is_with_previous(at));
            }
            owned
        };
        let Some(ids) = ids else {
            let users = match &**all {
                Ids::Integers(ids) => Users::Integers(ids.clone()),
                Ids::Texts(ids) => Users::Texts(ids.clone()),
            };
            return Ok(Histories { users, histories: (0..all.len()).map(owned).collect() });
        };
        // A user that is not known has a history without items.
        let histories =
            ids.iter().map(|id| all.find(id.as_id()).map_or_else(OwnedHistory::new, owned)).collect();
        Ok(Histories { users: Users::of(ids)?, histories })
    }

    /// From a file that the command line reads histories from.
    pub(crate) fn of_file(
        catalog: &Ids,
        path: &Path,
        options: &HistoryOptions,
        monitor: &dyn Monitor,
    ) -> Result<Self, Failure> {
        let (mut users, mut histories) = (Vec::new(), Vec::new());
        for history in UserHistories::open(path, catalog, options, monitor)? {
            let history = history?;
            users.push(history.user);
            histories.push(history.history);
        }
        Ok(Histories { users: Users::of(users)?, histories })
    }
}

/// One history. Arrays are read as the lists they stand for.
pub(crate) fn history_of(catalog: &Ids, list: &Bound<'_, PyAny>) -> PyResult<OwnedHistory> {
    if list.is_instance_of::<PyString>() || list.try_iter().is_err() {
        let shown: String = list.repr()?.to_string().chars().take(80).collect();
        let message = format!(
            "{shown} is not a history: expected a list of ids, oldest first; hint: one history is a list in a list, [[\"a\", \"b\"]]"
        );
        return Err(Failure::new(Kind::Data, message).into());
    }
    let list = if list.is_instance_of::<PyList>() || !list.hasattr("tolist")? {
        list.clone()
    } else {
        list.call_method0("tolist")?
    };
    let mut history = OwnedHistory::new();
    for item in list.try_iter()? {
        let item = item?;
        let is_basket = item.is_instance_of::<PyList>()
            || item.is_instance_of::<PyTuple>()
            || item.is_instance_of::<PySet>()
            || item.is_instance_of::<PyFrozenSet>();
        if is_basket {
            for (at, id) in to_ids(&item)?.iter().enumerate() {
                history.push_id(catalog, id, at > 0);
            }
        } else {
            history.push_id(catalog, to_id(&item)?, false);
        }
    }
    Ok(history)
}

/// The histories that a model learned from, kept with it in memory.
pub(crate) struct KeptHistories {
    pub(crate) histories: prepare::Histories,
    with_previous: Vec<bool>,
}

impl KeptHistories {
    pub(crate) fn new(histories: prepare::Histories) -> Self {
        let with_previous = histories.with_previous();
        KeptHistories { histories, with_previous }
    }
}
