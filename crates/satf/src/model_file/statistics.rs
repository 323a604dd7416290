//! The events that a model learned from, at the end of its file.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::StatisticsError;
use super::catalog::{self, Names};
use super::safetensors::LastTensor;
use crate::counts::MOST_EVENTS;
use crate::data::time::{EARLIEST, LATEST};
use crate::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex};
use crate::models::{Array, SharedBytes, StoredTensor, StoredTensors, Tensor, TensorError};
use crate::prepare::Histories;

/// What a manifest says of the events that its file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptEvents {
    /// How many users have events.
    pub users: usize,
    /// How many events there are.
    pub events: usize,
    /// Whether events have times; if not, they have an order only.
    pub has_times: bool,
    /// The BLAKE3 hash of their arrays, as they lie in the file.
    pub checksum: String,
}

/// Where the events of a model are.
pub(crate) enum Events {
    /// In memory.
    Here(Box<Histories>),
    /// In the file of the model.
    InFile(StoredEvents),
    /// In a file that was not kept.
    Elsewhere,
}

/// The arrays of events as they lie in a file, not checked yet.
pub(crate) struct StoredEvents {
    file: SharedBytes,
    tensors: Vec<LastTensor>,
}

const USERS: Names =
    Names { integers: "event_user_ids", bytes: "event_user_id_bytes", offsets: "event_user_id_offsets" };
const OFFSETS: &str = "event_offsets";
const ITEMS: &str = "event_items";
const TIMES: &str = "event_times";

/// All arrays, in their order in a file: wide values first, as everywhere.
pub(super) const NAMES: [&str; 6] = [OFFSETS, TIMES, USERS.offsets, USERS.integers, ITEMS, USERS.bytes];

impl StoredEvents {
    /// Arrays whose values begin at a byte of the file.
    pub(super) fn new(file: &SharedBytes, values_at: usize, mut tensors: Vec<LastTensor>) -> Self {
        for tensor in &mut tensors {
            tensor.range = tensor.range.start + values_at..tensor.range.end + values_at;
        }
        StoredEvents { file: Arc::clone(file), tensors }
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        (*self.file).as_ref().get(range).unwrap_or_default()
    }

    fn view(&self, tensor: &LastTensor) -> StoredTensor<'_> {
        let bytes = self.bytes(tensor.range.clone());
        StoredTensor { kind: tensor.kind, shape: tensor.shape.clone(), bytes }
    }

    /// The arrays, for items that occur so often. Nothing in the file is believed.
    fn checked(&self, kept: &KeptEvents, counts: &[u32]) -> Result<CheckedEvents, StatisticsError> {
        let num_items = counts.len();
        let ends = self.tensors.first().zip(self.tensors.last());
        let all = ends.map_or(0..0, |(first, last)| first.range.start..last.range.end);
        let mut hasher = blake3::Hasher::new();
        if hasher.update_rayon(self.bytes(all)).finalize().to_hex().as_str() != kept.checksum {
            return Err(StatisticsError::Checksum);
        }
        let tensors = self.tensors.iter().map(|tensor| (tensor.name.to_owned(), self.view(tensor)));
        let tensors = StoredTensors::new(tensors.collect()).within(&self.file).with_num_items(num_items);
        let users = catalog::restore(&USERS, &tensors)?;
        let items: Array<u32> = tensors.array(ITEMS, &[None])?;
        if items.len() > MOST_EVENTS {
            let expected = format!("at most {MOST_EVENTS}");
            return Err(TensorError::new(ITEMS, format!("{} events", items.len()), expected).into());
        }
        let offsets = tensors.offsets(OFFSETS, Some(users.len()), items.len())?;
        let times: Array<i64> = tensors.array(TIMES, &[Some(items.len())])?;
        if let Some(at) = items.par_iter().position_first(|&item| item as usize >= num_items) {
            let expected = format!("items below {num_items}");
            return Err(TensorError::new(ITEMS, format!("item {} at place {at}", items[at]), expected).into());
        }
        let possible = if kept.has_times { EARLIEST..=LATEST } else { 0..=i64::MAX - 1 };
        if let Some(at) = times.par_iter().position_first(|time| !possible.contains(time)) {
            let found = format!("{} at place {at}", times[at]);
            return Err(TensorError::new(TIMES, found, "times that a log may have").into());
        }
        for (user, ends) in offsets.windows(2).enumerate() {
            if ends[0] == ends[1] {
                let found = format!("no event of user {user}");
                return Err(TensorError::new(OFFSETS, found, "at least one event of each user").into());
            }
            if !times[ends[0] as usize..ends[1] as usize].is_sorted() {
                let found = format!("the events of user {user} out of order");
                return Err(TensorError::new(TIMES, found, "the oldest event of each user first").into());
            }
        }
        let checked = CheckedEvents { users, items, offsets, times };
        checked.compare(kept, counts)?;
        Ok(checked)
    }

    /// The events as a log.
    fn log(
        &self,
        kept: &KeptEvents,
        catalog: &Arc<Ids>,
        counts: &[u32],
    ) -> Result<Interactions, StatisticsError> {
        let CheckedEvents { users, items, offsets, times } = self.checked(kept, counts)?;
        let mut rows = Vec::with_capacity(items.len());
        for (user, ends) in (0..).map(UserIndex).zip(offsets.windows(2)) {
            rows.extend((ends[0] as usize..ends[1] as usize).map(|at| Interaction {
                user,
                item: ItemIndex(items[at]),
                time: Timestamp(times[at]),
            }));
        }
        let clock = if kept.has_times { Clock::Calendar } else { Clock::RowOrder };
        // How ties are ordered is not read but follows from the events.
        Ok(Interactions::from_indexed(users, Arc::clone(catalog), rows, clock))
    }
}

/// The arrays of events, each of them possible.
struct CheckedEvents {
    users: Ids,
    items: Array<u32>,
    offsets: Array<u64>,
    times: Array<i64>,
}

impl CheckedEvents {
    /// An error if the rest of the file says something else of these events.
    fn compare(&self, kept: &KeptEvents, counts: &[u32]) -> Result<(), TensorError> {
        for (name, found, told, what) in [
            (ITEMS, self.items.len(), kept.events, "events"),
            (OFFSETS, self.users.len(), kept.users, "users"),
        ] {
            if found != told {
                let expected = format!("{told} as in the manifest");
                return Err(TensorError::new(name, format!("{found} {what}"), expected));
            }
        }
        let mut found = vec![0u32; counts.len()];
        self.items.iter().for_each(|&item| found[item as usize] += 1);
        match found.iter().zip(counts).position(|(found, told)| found != told) {
            None => Ok(()),
            Some(item) => {
                let expected = format!("{} as in item_counts", counts[item]);
                Err(TensorError::new(ITEMS, format!("{} events of item {item}", found[item]), expected))
            }
        }
    }
}

impl Events {
    /// The arrays that a file has of them.
    pub(crate) fn tensors(&self) -> Vec<Tensor<'_>> {
        match self {
            Events::Here(histories) => tensors(histories),
            Events::InFile(stored) => {
                stored.tensors.iter().map(|tensor| Tensor::stored(tensor.name, stored.view(tensor))).collect()
            }
            Events::Elsewhere => Vec::new(),
        }
    }

    /// What a manifest says of these histories.
    pub(crate) fn describe(histories: &Histories) -> KeptEvents {
        let mut hasher = blake3::Hasher::new();
        for tensor in tensors(histories) {
            let outcome = tensor.write(&mut |bytes| -> io::Result<()> {
                hasher.update(bytes);
                Ok(())
            });
            debug_assert!(outcome.is_ok(), "a hasher takes everything");
        }
        KeptEvents {
            users: histories.num_users(),
            events: histories.num_rows(),
            has_times: histories.clock() == Clock::Calendar,
            checksum: hasher.finalize().to_hex().to_string(),
        }
    }

    /// The events as a log.
    pub(crate) fn log(
        &self,
        kept: &KeptEvents,
        catalog: &Arc<Ids>,
        counts: &[u32],
    ) -> Result<Interactions, StatisticsError> {
        match self {
            Events::Here(histories) => Ok(histories.to_log()),
            Events::InFile(stored) => stored.log(kept, catalog, counts),
            Events::Elsewhere => Err(StatisticsError::NotLoaded),
        }
    }

    /// An error if the events are not what was written, or not what the rest of the file says of them.
    pub(crate) fn check(&self, kept: &KeptEvents, counts: &[u32]) -> Result<(), StatisticsError> {
        match self {
            Events::Here(_) => Ok(()),
            Events::InFile(stored) => stored.checked(kept, counts).map(drop),
            Events::Elsewhere => Err(StatisticsError::NotLoaded),
        }
    }
}

/// The arrays of histories.
fn tensors(histories: &Histories) -> Vec<Tensor<'_>> {
    let offsets: Vec<u64> = histories.offsets().iter().map(|&offset| offset as u64).collect();
    let mut tensors = catalog::tensors(&USERS, histories.users());
    tensors.push(Tensor::list(OFFSETS, offsets));
    tensors.push(Tensor::list(ITEMS, histories.items()));
    tensors.push(Tensor::list(TIMES, histories.times()));
    tensors.sort_by_key(|tensor| NAMES.iter().position(|name| *name == tensor.name));
    tensors
}
