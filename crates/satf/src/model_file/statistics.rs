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

    /// The events, for a catalogue of items. Nothing in the file is believed.
    fn log(&self, kept: &KeptEvents, catalog: &Arc<Ids>) -> Result<Interactions, StatisticsError> {
        let ends = self.tensors.first().zip(self.tensors.last());
        let all = ends.map_or(0..0, |(first, last)| first.range.start..last.range.end);
        let mut hasher = blake3::Hasher::new();
        if hasher.update_rayon(self.bytes(all)).finalize().to_hex().as_str() != kept.checksum {
            return Err(StatisticsError::Checksum);
        }
        let tensors = self.tensors.iter().map(|tensor| (tensor.name.to_owned(), self.view(tensor)));
        let tensors = StoredTensors::new(tensors.collect()).within(&self.file).with_num_items(catalog.len());
        let users = catalog::restore(&USERS, &tensors)?;
        let items: Array<u32> = tensors.array(ITEMS, &[None])?;
        if items.len() > MOST_EVENTS {
            let expected = format!("at most {MOST_EVENTS}");
            return Err(TensorError::new(ITEMS, format!("{} events", items.len()), expected).into());
        }
        let offsets = tensors.offsets(OFFSETS, Some(users.len()), items.len())?;
        let times: Array<i64> = tensors.array(TIMES, &[Some(items.len())])?;
        if let Some(at) = items.par_iter().position_first(|&item| item as usize >= catalog.len()) {
            let expected = format!("items below {}", catalog.len());
            return Err(TensorError::new(ITEMS, format!("item {} at place {at}", items[at]), expected).into());
        }
        let possible = if kept.has_times { EARLIEST..=LATEST } else { 0..=i64::MAX - 1 };
        if let Some(at) = times.par_iter().position_first(|time| !possible.contains(time)) {
            let found = format!("{} at place {at}", times[at]);
            return Err(TensorError::new(TIMES, found, "times that a log may have").into());
        }
        let mut rows = Vec::with_capacity(items.len());
        for (user, ends) in offsets.windows(2).enumerate() {
            let range = ends[0] as usize..ends[1] as usize;
            if !times[range.clone()].is_sorted() {
                let found = format!("the events of user {user} out of order");
                return Err(TensorError::new(TIMES, found, "the oldest event of each user first").into());
            }
            let user = UserIndex(user as u32);
            rows.extend(range.map(|at| Interaction {
                user,
                item: ItemIndex(items[at]),
                time: Timestamp(times[at]),
            }));
        }
        let clock = if kept.has_times { Clock::Calendar } else { Clock::RowOrder };
        // Users and items without events are left out. How ties are ordered is not read but follows from the events.
        Ok(Interactions::from_indexed(users, Arc::clone(catalog), rows, clock))
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
    pub(crate) fn log(&self, kept: &KeptEvents, catalog: &Arc<Ids>) -> Result<Interactions, StatisticsError> {
        match self {
            Events::Here(histories) => Ok(histories.to_log()),
            Events::InFile(stored) => stored.log(kept, catalog),
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
