//! Names for the events of a holdout, by which other programs can speak of them.

use super::split::Partition;
use crate::interactions::{Id, Ids};

/// What every id begins with.
const PREFIX: &str = "event-";

/// The ids of the events of a holdout: `event-17-3f2a9c01` is the 18th, of the holdout whose mark is `3f2a9c01`.
///
/// The mark is made of all events and their histories, so that ids of another cut, another order of ties or another seed are told apart
/// and are not taken for events of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventIds {
    mark: String,
    len: usize,
}

/// An id of an event of another holdout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{id}' is an event of another cut of the log than this one, whose events end in -{mark}: they were exported from other files, or with \
     other lengths of the validation and test sets, another order of ties or another seed; hint: export the events again"
)]
pub struct OtherHoldout {
    /// The id.
    pub id: String,
    /// The mark that was expected.
    pub mark: String,
}

impl EventIds {
    /// The ids of the events that a model trained on the training set has to predict.
    pub fn of(partition: &Partition) -> Self {
        let Partition { train, holdout } = partition;
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"satf events 1");
        for event in &holdout.events {
            hash_id(&mut hasher, &holdout.users, event.user.get());
            hasher.update(&event.time.0.to_le_bytes());
            hasher.update(&event.target.0.to_le_bytes());
            hasher.update(&(event.history_start as u64).to_le_bytes());
            hasher.update(&(event.history_end as u64).to_le_bytes());
        }
        for (item, with_previous) in holdout.items.iter().zip(&holdout.with_previous) {
            hasher.update(&item.0.to_le_bytes()).update(&[u8::from(*with_previous)]);
        }
        for item in 0..train.num_items() {
            hash_id(&mut hasher, train.catalog(), item);
        }
        let mark = hasher.finalize().to_hex()[..8].to_owned();
        EventIds { mark, len: holdout.events.len() }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The id of the event at a place of the holdout.
    pub fn id(&self, place: usize) -> String {
        format!("{PREFIX}{place}-{}", self.mark)
    }

    /// The place of the event with this id; none for a text that is no such id, an error for one of another holdout.
    pub fn place(&self, id: &str) -> Result<Option<usize>, OtherHoldout> {
        let parts = id.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some((place, mark)) = parts else { return Ok(None) };
        let Ok(place) = place.parse::<usize>() else { return Ok(None) };
        if mark.len() != self.mark.len() || !mark.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(None);
        }
        if mark != self.mark || place >= self.len {
            return Err(OtherHoldout { id: id.to_owned(), mark: self.mark.clone() });
        }
        // One event has one id: `event-007-` is none.
        Ok((self.id(place) == id).then_some(place))
    }
}

fn hash_id(hasher: &mut blake3::Hasher, ids: &Ids, at: usize) {
    match ids.get(at) {
        Id::Integer(id) => hasher.update(&id.to_le_bytes()),
        Id::Text(id) => hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::testing::log;
    use crate::prepare::{Split, SplitScheme, TiePolicy, Timeline};

    fn ids(test: &str, ties: TiePolicy, seed: u64) -> EventIds {
        let rows: Vec<(i64, i64, i64)> = (0..90).map(|at| (at % 4, at * at % 7, at / 6 * 86_400)).collect();
        let log = log(&rows);
        let scheme = SplitScheme::Holdout { test: test.parse().unwrap() };
        EventIds::of(&Split::new(Timeline::new(&log, ties, seed), scheme).unwrap().test().unwrap())
    }

    #[test]
    fn ids_are_read_back_and_those_of_other_holdouts_are_refused() {
        let own = ids("3days", TiePolicy::Shuffle, 0);
        assert_eq!(own, ids("3days", TiePolicy::Shuffle, 0));
        for place in [0, 1, own.len() - 1] {
            assert_eq!(own.place(&own.id(place)), Ok(Some(place)));
        }
        for text in ["", "ann", "event-1", "event-x-12345678", "event-1-1234567", "event-1-1234567z"] {
            assert_eq!(own.place(text), Ok(None), "{text}");
        }
        for other_spelling in ["event-00-", "event-+0-"] {
            assert_eq!(
                own.place(&own.id(0).replace("event-0-", other_spelling)),
                Ok(None),
                "{other_spelling}"
            );
        }
        let others = [
            ids("4days", TiePolicy::Shuffle, 0),
            ids("3days", TiePolicy::File, 0),
            ids("3days", TiePolicy::Shuffle, 1),
        ];
        for other in others {
            assert!(own.place(&other.id(0)).is_err(), "{other:?}");
        }
        assert!(own.place(&own.id(own.len())).is_err());
    }
}
