//! Hashes that depend on what is said alone: on ids and times, never on indices, rows or the machine.

use super::{Id, Timestamp};

/// Mixes words into one number; every bit of a word reaches every bit of the result.
pub(crate) struct Mixer(u64);

impl Mixer {
    /// A mixer for one purpose: other seeds give other numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Mixer(seed)
    }

    pub(crate) fn add(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(31);
    }

    pub(crate) fn add_text(&mut self, text: &str) {
        self.add(text.len() as u64);
        for bytes in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.add(u64::from_le_bytes(word));
        }
    }

    /// An id. An integer and its decimal text are the same: whether a log has integer ids may change with a single row.
    pub(crate) fn add_id(&mut self, id: Id<'_>) {
        match id {
            Id::Text(id) => self.add_text(id),
            Id::Integer(id) => {
                let mut digits = [0; 20];
                self.add_text(decimal(id, &mut digits));
            }
        }
    }

    /// What came of it.
    pub(crate) fn value(&self) -> u64 {
        self.0
    }

    /// What came of it, with one more round for the last word: good enough to draw from.
    pub(crate) fn finish(mut self) -> u64 {
        self.add(0);
        self.0 ^ self.0 >> 32
    }
}

/// An integer as `Display` writes it, without an allocation.
fn decimal(number: i64, digits: &mut [u8; 20]) -> &str {
    let mut rest = number.unsigned_abs();
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    std::str::from_utf8(&digits[start..]).unwrap_or_default()
}

/// The seeded number of an event, by which one user's events of the same time are ordered: it depends on the event alone, so an event
/// can be added, removed or moved to another machine and the order of the others stays.
pub(crate) fn event_hash(seed: u64, user: Id<'_>, item: Id<'_>, time: Timestamp) -> u64 {
    let mut mixer = Mixer::new(seed ^ 0x6f72_6465_7220_6f66);
    mixer.add_id(user);
    mixer.add(time.0 as u64);
    mixer.add_id(item);
    mixer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_their_text() {
        for number in [0, 7, -1, 12_345, i64::MAX, i64::MIN] {
            let mut digits = [0; 20];
            assert_eq!(decimal(number, &mut digits), number.to_string());
        }
        let hash = |id: Id<'_>| event_hash(1, id, id, Timestamp(5));
        assert_eq!(hash(Id::Integer(-40)), hash(Id::Text("-40")));
    }

    #[test]
    fn every_part_of_an_event_counts() {
        let hash = |seed, user: i64, item: i64, time| {
            event_hash(seed, Id::Integer(user), Id::Integer(item), Timestamp(time))
        };
        let mut all =
            vec![hash(0, 1, 2, 3), hash(1, 1, 2, 3), hash(0, 2, 1, 3), hash(0, 1, 3, 2), hash(0, 12, 3, 3)];
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5);
        // Which of two events comes first is a fair draw, over users as over seeds.
        let first = |user, seed| hash(seed, user, 1, 0) < hash(seed, user, 2, 0);
        let over_users = (0..4000).filter(|&user| first(user, 0)).count();
        let over_seeds = (0..4000).filter(|&seed| first(1, seed)).count();
        assert!(
            (1900..2100).contains(&over_users) && (1900..2100).contains(&over_seeds),
            "{over_users} {over_seeds}"
        );
    }
}
