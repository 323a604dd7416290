//! Short memories of what sessions looked at, for those who ask with one item at a time.
//!
//! Bounded in number and length, forgotten when idle, and never written anywhere. Sessions are in two generations: one that is asked
//! for moves to the young one; when that is full, or half the idle time is over, the old one is dropped whole. So nothing is ever searched.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use satf::interactions::OwnedId;

use crate::config::{SessionConfig, seconds};

const SHARDS: usize = 16;

/// All sessions.
pub(crate) struct Sessions {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    most_of_shard: usize,
    items: usize,
    idle: Duration,
}

struct Shard {
    young: HashMap<Box<str>, Session>,
    old: HashMap<Box<str>, Session>,
    turned: Instant,
}

struct Session {
    items: Vec<OwnedId>,
    asked: Instant,
}

impl Sessions {
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let now = Instant::now();
        let shard = || Mutex::new(Shard { young: HashMap::new(), old: HashMap::new(), turned: now });
        Sessions {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
            most_of_shard: config.most / SHARDS,
            items: config.items,
            idle: seconds(config.idle_seconds),
        }
    }

    /// Adds an item, if there is one, and gives all of the session, oldest first.
    pub(crate) fn visit(&self, id: &str, item: Option<OwnedId>, now: Instant) -> Vec<OwnedId> {
        let Some(shard) = self.shards.get(self.hasher.hash_one(id) as usize % SHARDS) else {
            return Vec::new();
        };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        // Each generation may have half of what is kept.
        let half = (self.most_of_shard / 2).max(1);
        shard.turn_if(half, self.idle, now);
        let known = shard.young.remove(id).or_else(|| shard.old.remove(id));
        let mut items = known
            .filter(|session| now.saturating_duration_since(session.asked) < self.idle)
            .map_or_else(Vec::new, |session| session.items);
        // Whoever comes back to an item they look at already has not gone anywhere.
        if let Some(item) = item.filter(|item| items.last() != Some(item)) {
            items.push(item);
            let surplus = items.len().saturating_sub(self.items);
            items.drain(..surplus);
        }
        if !items.is_empty() {
            shard.young.insert(id.into(), Session { items: items.clone(), asked: now });
        }
        items
    }

    /// Forgets a session. Whether there was one.
    pub(crate) fn forget(&self, id: &str) -> bool {
        let Some(shard) = self.shards.get(self.hasher.hash_one(id) as usize % SHARDS) else { return false };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        shard.young.remove(id).is_some() | shard.old.remove(id).is_some()
    }

    /// Forgets what is idle, whether or not anybody asks.
    pub(crate) fn sweep(&self, now: Instant) {
        for shard in &self.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).turn_if(usize::MAX, self.idle, now);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        let count = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.young.len() + shard.old.len()
        };
        self.shards.iter().map(count).sum()
    }
}

impl Shard {
    fn turn_if(&mut self, most: usize, idle: Duration, now: Instant) {
        let age = now.saturating_duration_since(self.turned);
        if self.young.len() < most && age < idle {
            return;
        }
        // Whatever is in the old one was last asked for before the turn.
        self.old = std::mem::take(&mut self.young);
        self.turned = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(most: usize, items: usize) -> Sessions {
        Sessions::new(&SessionConfig { most, items, idle_seconds: 10.0 })
    }

    fn id(item: i64) -> OwnedId {
        OwnedId::Integer(item)
    }

    #[test]
    fn a_session_remembers_its_newest_items_until_it_is_idle() {
        let (sessions, start) = (sessions(1_000, 2), Instant::now());
        let at = |second: u64| start + Duration::from_secs(second);
        assert_eq!(sessions.visit("a", Some(id(1)), at(0)), [OwnedId::Integer(1)]);
        sessions.visit("a", Some(id(1)), at(1));
        sessions.visit("a", Some(id(2)), at(2));
        assert_eq!(sessions.visit("a", Some(id(3)), at(11)), [OwnedId::Integer(2), OwnedId::Integer(3)]);
        assert_eq!(sessions.visit("a", None, at(20)).len(), 2);
        assert_eq!(sessions.visit("a", None, at(31)).len(), 0);
        assert_eq!(sessions.len(), 0, "what is empty is not kept");
        sessions.visit("b", Some(id(1)), at(31));
        assert!(sessions.forget("b") && !sessions.forget("b"));
        sessions.visit("c", Some(id(1)), at(32));
        sessions.sweep(at(43));
        sessions.sweep(at(54));
        assert_eq!(sessions.len(), 0, "nobody asked for it");
    }

    #[test]
    fn there_are_never_more_than_allowed() {
        let (sessions, now) = (sessions(160, 5), Instant::now());
        for session in 0..10_000 {
            sessions.visit(&session.to_string(), Some(id(1)), now);
            assert!(sessions.len() <= 160 + SHARDS, "{}", sessions.len());
        }
        assert_eq!(sessions.visit("9999", Some(id(2)), now).len(), 2);
    }
}
