//! How many rows each user has.

use rand_chacha::ChaCha8Rng;

use super::ShapeOptions;
use crate::generate::draw::{log_normal, stream};

/// The lengths of all histories, one after the other: skewed, and exactly the rows asked for in sum.
///
/// Shares of the rows are drawn twice, to sum them up and to hand them out, so that no list of users is kept.
pub(super) struct Lengths {
    rng: ChaCha8Rng,
    users_left: usize,
    shortest: usize,
    /// The most rows that a user may have beyond the shortest history.
    most: usize,
    /// Rows beyond the shortest histories: how many are left, and how many one share is worth.
    left: usize,
    per_share: f64,
    /// What all shares so far were worth beyond what was handed out.
    owed: f64,
}

impl Lengths {
    pub(super) fn new(options: &ShapeOptions) -> Self {
        let mut rng = shares(options);
        let sum: f64 = (0..options.users).map(|_| share(&mut rng)).sum();
        let longest = longest(options);
        let shortest = (options.rows / options.users).min(5).min(longest);
        let left = options.rows - shortest * options.users;
        Lengths {
            rng: shares(options),
            users_left: options.users,
            shortest,
            most: longest - shortest,
            left,
            per_share: left as f64 / sum,
            owed: 0.0,
        }
    }
}

impl Iterator for Lengths {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.users_left = self.users_left.checked_sub(1)?;
        self.owed += share(&mut self.rng) * self.per_share;
        // No more than a user may have; no less than what the users after this one could not have.
        let least = self.left.saturating_sub(self.users_left.saturating_mul(self.most));
        // Rounding what is owed, not each share, makes the parts add up to the whole.
        let part = (self.owed.round().max(0.0) as usize).max(least).min(self.most).min(self.left);
        self.owed -= part as f64;
        self.left -= part;
        Some(self.shortest + part)
    }
}

fn shares(options: &ShapeOptions) -> ChaCha8Rng {
    stream(options.seed, u64::MAX)
}

fn share(rng: &mut ChaCha8Rng) -> f64 {
    log_normal(rng, 1.0, 1.0)
}

/// The longest history allowed: with half of the catalogue free, a draw seldom meets an item already taken.
fn longest(options: &ShapeOptions) -> usize {
    (options.items / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_add_up_to_the_rows_where_nothing_is_to_spare() {
        // The last shape has just as many rows as its histories may hold.
        for (users, items, rows) in [(10, 8, 20), (1000, 100, 25_000), (7, 9, 7), (50, 5, 100), (1, 1, 1)] {
            let options = ShapeOptions { users, items, rows, seed: 3 };
            let lengths: Vec<usize> = Lengths::new(&options).collect();
            assert_eq!((lengths.len(), lengths.iter().sum::<usize>()), (users, rows));
            assert!(lengths.iter().all(|length| (1..=longest(&options)).contains(length)), "{lengths:?}");
        }
    }
}
